"""Sentinels: the current primary of a service, and a link that follows it.

Problem: a failover leaves connections that look healthy. The old primary may be down, or a replica,
or accept writes for seconds that will be lost, until the sentinels demote it.

Idea: a `ServerLink` like any other, to one server at a time. The sentinels are asked for its
address before the first exchange, after each one that broke or met a replica, and once a second in
between (one small request on an idle connection), also while the recorder backs off or a reply is
late. If they name another server, all connections to the old one are discarded. An exchange in
progress finishes first, unless the server hangs: then it ends without a reply.

A process that lives longer than a second also subscribes to a sentinel's announcements. No thread
waits for them: before each exchange, and while a reply is late, the socket is polled. If anything
has arrived, whatever it is, the sentinels are asked at once. So a missed announcement, a sentinel
that ends, or a user without the right to subscribe cost no more than that second.

Bound: writes to an old primary before we learn of the new one are lost with it: those until the
sentinels name it, and without a subscription for about a second more. With `min-replicas-to-write
1` it refuses them as soon as no replica is connected. While no sentinel replies, the server that
was named last is used.

The command is SENTINEL GET-MASTER-ADDR-BY-NAME, which names the new primary as soon as the failover
is decided; the client library waits for its end. This module only finds servers: store.py reads and
writes.

Source: the guidelines for clients, https://valkey.io/topics/sentinel-clients/.
"""

import contextlib
import math
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import redis.exceptions as client_errors

from redmeter.errors import AccessDenied, StoreError, StoreRefused, StoreUnavailable
from redmeter.store.servers.connection import ServerLink, is_foreign
from redmeter.store.servers.replies import Command, Reply, pairs, plain_text, raised
from redmeter.store.servers.retry import is_not_primary, system_random
from redmeter.store.servers.topology import Address
from redmeter.store.servers.urls import Target

if TYPE_CHECKING:
    import redis

#: Interval between two requests to the sentinels while nothing fails, seconds.
LOOK_SECONDS = 1.0
#: Backoff from sentinels that are not needed, and from a replica, after a failure, seconds.
LATER_SECONDS = 10.0
#: Longest time that such a request may delay an exchange, seconds.
LOOK_PATIENCE = 0.25

#: Seconds that a reply is awaited before the sentinels are asked whether that is worthwhile.
REPLY_PATIENCE = 0.25

#: Announcements: the sentinel that leads a failover names the new primary from +promoted-slave on,
#: the others from +switch-master on.
_SUBSCRIBE: Sequence[Command] = (("SUBSCRIBE", "+promoted-slave"), ("SUBSCRIBE", "+switch-master"))

#: Flags of a replica that must not be read.
_ILL = {"s_down", "o_down", "disconnected"}


class Subscription(ServerLink):
    """A connection on which a sentinel announces new primaries."""

    def subscribe(self) -> None:
        """Subscribe, unless it is done. Raises: see ServerLink.exchange()."""
        if self._pid != os.getpid() or not self._idle:
            self.exchange(_SUBSCRIBE)

    def heard(self) -> bool:
        """Return whether anything was announced, or the subscription has ended. Does not wait."""
        client = self._client
        try:
            connection = self._idle.pop()
        except IndexError:  # not subscribed, or another thread is looking
            return False
        heard, intact = False, is_foreign(connection)
        try:
            connection.verify()
            while not intact and connection._sock is not None:
                if connection.can_read():
                    heard = True
                    self._read(connection, _SUBSCRIBE[0])
                else:
                    intact = True
        except (client_errors.RedisError, OSError):
            pass  # closed by the sentinel
        finally:
            if intact and client is not None:
                self._give_back(client, connection, None)
            else:
                connection.disconnect()
        return heard or not intact


class Sentinels:
    """The sentinels of one service.

    Args:
        links: a link to each of them.
        subscriptions: one for each of them, in the same order.
        service: its name.
        location: of the service, for messages.
    """

    def __init__(
        self,
        links: Sequence[ServerLink],
        subscriptions: Sequence[Subscription],
        service: str,
        location: str,
    ) -> None:
        self._links = tuple(links)
        self._subscriptions = tuple(subscriptions)
        #: The number of the one that is used, and when it may be tried, by the monotonic clock.
        self._subscribed, self._subscribe_at = 0, 0.0
        self._service = service
        self._location = location
        self._first = 0

    def primary(self, seconds: float) -> Address:
        """Return the address of the primary.

        Args:
            seconds: how long to try.

        Raises:
            StoreUnavailable: no sentinel replies, or none knows the service.
            AccessDenied: a sentinel requires other credentials.
        """
        reply = self._ask(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service), seconds)
        try:
            host, port = reply
            return plain_text(host), int(port)
        except (ValueError, TypeError):
            raise self._strange() from None

    def replicas(self, seconds: float) -> list[Address]:
        """Return the healthy replicas with a link to their primary. Args, Raises: as above."""
        reply = self._ask(("SENTINEL", "REPLICAS", self._service), seconds)
        try:
            replicas = [{plain_text(k): plain_text(v) for k, v in pairs(one)} for one in reply]
            return [
                (one["ip"], int(one["port"]))
                for one in replicas
                if not _ILL & set(one["flags"].split(",")) and one["master-link-status"] == "ok"
            ]
        except (ValueError, TypeError, LookupError):
            raise self._strange() from None

    def _strange(self) -> StoreUnavailable:
        return StoreUnavailable(self._location, "a reply of the sentinels cannot be parsed")

    def subscribe(self) -> None:
        """Have the sentinel that replied last announce new primaries, unless another one does."""
        if time.monotonic() < self._subscribe_at:
            return
        self._subscribe_at = math.inf  # only one of several threads does it
        self._subscribed = self._first
        try:
            self._subscriptions[self._subscribed].subscribe()
        except StoreError:  # without the right to subscribe, they are asked once a second
            self._subscribe_at = time.monotonic() + LATER_SECONDS

    def announced(self) -> bool:
        """Return whether something was announced; that sentinel is asked first from now on."""
        if not self._subscriptions[self._subscribed].heard():
            return False
        self._first = self._subscribed
        self._subscribe_at = 0.0
        return True

    def pass_on(self) -> None:
        """Ask another sentinel first from now on: this one may not know of a failover yet."""
        self._first = (self._first + 1) % len(self._links)

    def close(self) -> None:
        """Close the connections."""
        for link in (*self._links, *self._subscriptions):
            link.close()
        self._subscribe_at = 0.0

    def _ask(self, command: Command, seconds: float) -> Reply:
        """Ask one sentinel after the other, until one knows."""
        until, problems, fix = time.monotonic() + seconds, [], ""
        denied, strange = None, False
        count, first = len(self._links), self._first
        for at in range(count):
            link = self._links[(first + at) % count]
            try:
                # A silent sentinel leaves its share of the time to the others.
                with link.within(max((until - time.monotonic()) / (count - at), 0.01)):
                    (reply,) = link.exchange([command])
                if raised(reply) is not None:
                    self._first = (first + at) % count
                    return reply
                strange = True
            except AccessDenied as error:
                denied = denied or AccessDenied(
                    error.code,
                    f"the sentinel at {link.location}, by sentinel_username and "
                    f"sentinel_password: {error.detail}",
                )
            except StoreUnavailable as error:
                problems.append(f"{link.location}: {error.reason}")
                fix = fix or error.fix
            except StoreRefused as error:
                if "No such master" in error.detail:
                    strange = True
                else:
                    what = "is no sentinel" if "unknown command" in error.detail else error.detail
                    problems.append(f"{link.location}: {what}")
        if strange:
            text = f"the sentinels know no service named {self._service!a}{self._known()}"
            raise StoreUnavailable(self._location, text, fix="the URL ends with /NAME or /NAME/DB")
        if denied is not None:
            raise denied
        text = f"no sentinel replies ({'; '.join(problems)})"
        fix = fix or "are they running, and does the URL name them?"
        raise StoreUnavailable(self._location, text, fix=fix)

    def _known(self) -> str:
        """Return a text with the services that they know, if they list them."""
        names: dict[str, None] = {}
        for link in self._links:
            try:
                with link.within(LOOK_PATIENCE):
                    (reply,) = link.exchange([("SENTINEL", "MASTERS")])
                names |= dict.fromkeys(
                    plain_text(dict(pairs(one))[b"name"]) for one in raised(reply)
                )
            except (StoreError, ValueError, TypeError, LookupError):
                continue  # it may forbid the command, or be no sentinel; only a detail of a message
        return f", only {', '.join(map(ascii, sorted(names)))}" if names else ""


def link_to(
    target: Target,
    options: dict[str, Any],
    connect: "Callable[[dict[str, Any], Address], redis.Redis]",
    *,
    replicas: bool = False,
) -> "SentinelLink":
    """Return a link to the server that sentinels name. Connects to nothing.

    Args:
        target: see urls.parse_target().
        options: of every connection.
        connect: makes a client from options and an address.
        replicas: read from one if there is any.
    """
    # The same timeouts and TLS options, but another user.
    sentinel_options = {k: v for k, v in options.items() if k not in ("username", "password", "db")}
    sentinel_options |= target.of_sentinels
    scheme = target.location.partition("://")[0]
    patience = options["socket_timeout"]
    seconds = min(LOOK_PATIENCE, patience)
    # By protocol 3 an announcement would not be a reply.
    brief = {"socket_timeout": seconds, "socket_connect_timeout": seconds, "protocol": 2}
    links, subscriptions = list[ServerLink](), list[Subscription]()
    for host, port in target.nodes:
        location, at = f"{scheme}://{host}:{port}", (host, port)
        links.append(ServerLink(partial(connect, sentinel_options, at), location))
        subscriptions.append(Subscription(partial(connect, sentinel_options | brief, at), location))
    sentinels = Sentinels(links, subscriptions, target.service, target.location)
    return SentinelLink(
        sentinels, partial(connect, options), target.location, patience, replica=replicas
    )


class SentinelLink(ServerLink):
    """Exchanges commands with the primary of a service, or with one of its replicas. See Link.

    Args:
        sentinels: the sentinels of the service.
        connect: makes a client for an address.
        location: for messages, without credentials.
        patience: how long to ask the sentinels, seconds.
        replica: whether it is for reading: from a replica if there is one.
    """

    def __init__(
        self,
        sentinels: Sentinels,
        connect: "Callable[[Address], redis.Redis]",
        location: str,
        patience: float,
        *,
        replica: bool = False,
    ) -> None:
        super().__init__(lambda: None, location)  # _open() chooses the server
        self._sentinels = sentinels
        self._connect_to = connect
        self._patience = patience
        self._replica = replica
        #: The server that was chosen last.
        self._last: Address | None = None
        #: A replica that did not reply, and when it may be tried again, by the monotonic clock.
        self._avoided: tuple[Address | None, float] = (None, 0.0)
        self._look_at = 0.0
        #: The server of the last exchange, if that failed or met a replica.
        self._failed: Address | None = None
        #: The servers that a sentinel named since the client was opened.
        self._named: list[Address] = []

    def _chosen(self) -> Address:
        """Return one of the servers that the sentinels name, or the last one that they named."""
        try:
            allowed = self._allowed(self._patience)
        except StoreUnavailable:
            if self._last is None:
                raise
            allowed = [self._last]
        self._last = system_random.choice(allowed)
        return self._last

    def _allowed(self, seconds: float) -> list[Address]:
        """Return the servers any of which can be used. Raises: see Sentinels.primary()."""
        addresses: list[Address] = []
        if self._replica:
            addresses = self._sentinels.replicas(seconds)
            avoided, until = self._avoided
            if avoided in addresses and time.monotonic() < until:
                addresses.remove(avoided)
        return addresses or [self._sentinels.primary(seconds)]

    def exchange(
        self,
        commands: Sequence[Command],
        take: Callable[[Reply], Any] | None = None,
        *,
        spin: bool = False,
    ) -> list[Reply]:
        client = self._client
        if client is not None and (allowed := self._look()) and _address(client) not in allowed:
            self._drop_client()
        self._failed = None
        try:
            return super().exchange(commands, take, spin=spin)
        except StoreError:
            self._forget()
            raise

    def replaced(self) -> bool:
        """Return whether the sentinels, asked once in a while, name another server by now."""
        failed = self._failed
        allowed = self._look() if failed is not None else []
        return bool(allowed) and failed not in allowed

    def cap_timeout(self, seconds: float) -> None:
        """Limit timeouts, including those of the sentinels. See ServerLink.cap_timeout()."""
        super().cap_timeout(seconds)
        self._patience = min(self._patience, seconds)

    def close(self) -> None:
        """Close all connections, including those to the sentinels."""
        super().close()
        self._sentinels.close()

    def _open(self) -> "redis.Redis":
        self._connect = partial(self._connect_to, self._chosen())
        client = super()._open()
        self._named = []
        self._look_at = time.monotonic() + LOOK_SECONDS
        return client

    def _look(self) -> list[Address]:
        """Return the servers that the sentinels name; none if they were asked a moment ago."""
        now = time.monotonic()
        if now < self._look_at and not self._sentinels.announced():
            return []
        self._look_at = now + LOOK_SECONDS  # only one of several threads asks
        try:
            allowed = self._allowed(min(LOOK_PATIENCE, self._patience))
        except StoreError:
            self._look_at = now + LATER_SECONDS
            return []
        self._sentinels.subscribe()
        self._named = allowed
        return allowed

    def _forget(self) -> None:
        client = self._client
        if client is not None:
            self._failed = _address(client)
            if self._replica:
                self._avoided = self._failed, time.monotonic() + LATER_SECONDS
            self._drop_client()
            if self._named and self._failed not in self._named:
                return  # the sentinel knows more than this server
        self._sentinels.pass_on()

    def _leave(self, client: "redis.Redis") -> None:
        self._failed = _address(client)
        super()._leave(client)

    def _read(self, connection: Any, command: Command) -> Reply:
        self._await(connection)
        reply = super()._read(connection, command)
        if self._replica and is_not_primary(reply):  # not a reply: the read is repeated elsewhere
            raise client_errors.ConnectionError("this replica cannot be read at the moment")
        return reply

    def _await(self, connection: Any) -> None:
        """Wait for a reply, but not from a server that is no longer named: it may hang."""
        until = time.monotonic() + (connection.socket_timeout or math.inf)
        # Closed by the server, the connection may still hold a reply: the read finds out.
        with contextlib.suppress(client_errors.ConnectionError):
            while not connection.can_read(max(0.0, min(REPLY_PATIENCE, until - time.monotonic()))):
                if time.monotonic() >= until:
                    raise client_errors.TimeoutError("Timeout reading from socket")
                named = self._look()
                if named and (connection.host, connection.port) not in named:
                    raise OSError("another server has taken its place")


def _address(client: "redis.Redis") -> Address:
    options = client.connection_pool.connection_kwargs
    return options["host"], options["port"]
