"""Sentinels: where the master of a service is now, and a link that follows it.

Problem: a failover leaves connections behind that look well. The old master may be dead, or a
replica, or still take writes for seconds that nobody will ever see, until the sentinels tell it.

Idea: a `ServerLink` like any other, to one server at a time. Where that is, the sentinels are asked
before the first exchange, after each one that broke or met a replica, and once a second in between
(one small question on a connection that is kept). Should they name another server, all connections
to the old one are forgotten: those under way end with what they do.

Bound: what is written to an old master before we hear of the new one is lost with it, for about a
second. With `min-replicas-to-write 1` that master refuses it as soon as no replica listens to it.
While no sentinel answers, we go on with the server that was named last.

Asked is SENTINEL GET-MASTER-ADDR-BY-NAME, which names the new master as soon as the failover is
decided; the client library's own way waits for its end. Here nothing is written or read: see
store.py.

Source: the guidelines for clients, https://valkey.io/topics/sentinel-clients/.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING, Any, NamedTuple

import redis.exceptions as client_errors

from redmeter.errors import AccessDenied, StoreError, StoreRefused, StoreUnavailable
from redmeter.store.connection import ServerLink
from redmeter.store.replies import Command, Reply, pairs, raised
from redmeter.store.retry import is_not_primary
from redmeter.store.urls import Target

if TYPE_CHECKING:
    import redis

#: How often the sentinels are asked while all is well, seconds.
LOOK_SECONDS = 1.0
#: For how long something is left alone that failed: sentinels that are not needed, a replica.
LATER_SECONDS = 10.0
#: How long that question may keep an exchange waiting, seconds.
LOOK_PATIENCE = 0.25

#: What a sentinel says of a replica that is not to be read.
_ILL = {"s_down", "o_down", "disconnected"}

# Not the generator of the application, which may have seeded it.
_chance = SystemRandom()


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int


class Sentinels:
    """What the sentinels say of one service.

    Args:
        links: one to each of them.
        service: what they call the master.
        location: of the service, for messages.
    """

    def __init__(self, links: Sequence[ServerLink], service: str, location: str) -> None:
        self._links = tuple(links)
        self._service = service
        self._location = location
        self._first = 0

    def master(self, seconds: float) -> Address:
        """Return where the master is.

        Args:
            seconds: how long to try.

        Raises:
            StoreUnavailable: no sentinel answers, or none knows the service.
            AccessDenied: a sentinel wants other credentials.
        """
        told = self._ask(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service), seconds)
        try:
            host, port = told
            return Address(_text(host), int(port))
        except (ValueError, TypeError):
            raise self._strange() from None

    def replicas(self, seconds: float) -> list[Address]:
        """Return the replicas that are well, and hear from their master. Args, Raises: as above."""
        told = self._ask(("SENTINEL", "REPLICAS", self._service), seconds)
        try:
            found = [{_text(k): _text(v) for k, v in pairs(one)} for one in told]
            return [
                Address(one["ip"], int(one["port"]))
                for one in found
                if not _ILL & set(one["flags"].split(",")) and one["master-link-status"] == "ok"
            ]
        except (ValueError, TypeError, LookupError):
            raise self._strange() from None

    def _strange(self) -> StoreUnavailable:
        return StoreUnavailable(self._location, "what the sentinels say cannot be understood")

    def pass_on(self) -> None:
        """Ask another one first from now on: this one may not have heard of a failover."""
        self._first = (self._first + 1) % len(self._links)

    def close(self) -> None:
        """Close the connections."""
        for link in self._links:
            link.close()

    def _ask(self, command: Command, seconds: float) -> Reply:
        """Ask one after the other, until one knows."""
        until, problems, fix = time.monotonic() + seconds, [], ""
        denied, strange = None, False
        count, first = len(self._links), self._first
        for at in range(count):
            link = self._links[(first + at) % count]
            try:
                # Whoever is silent leaves its share to the others.
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
            text = f"the sentinels know no master named {self._service!a}{self._known()}"
            raise StoreUnavailable(self._location, text, fix="the URL ends with /NAME or /NAME/DB")
        if denied is not None:
            raise denied
        text = f"no sentinel answers ({'; '.join(problems)})"
        fix = fix or "do they run, and does the URL name them?"
        raise StoreUnavailable(self._location, text, fix=fix)

    def _known(self) -> str:
        """Return which masters they know, where they say so."""
        names: dict[str, None] = {}
        for link in self._links:
            try:
                with link.within(LOOK_PATIENCE):
                    (reply,) = link.exchange([("SENTINEL", "MASTERS")])
                names |= dict.fromkeys(_text(dict(pairs(one))[b"name"]) for one in raised(reply))
            except (StoreError, ValueError, TypeError, LookupError):
                continue  # it may not be allowed, or no sentinel, and is said by the way
        return f", only {', '.join(map(ascii, sorted(names)))}" if names else ""


class Finder:
    """Chooses the server that a link leads to, and makes its client.

    Args:
        sentinels: whom to ask.
        connect: makes a client of an address.
        patience: how long to ask, seconds.
        replica: read from a replica, where there is one.
    """

    def __init__(
        self,
        sentinels: Sentinels,
        connect: "Callable[[Address], redis.Redis]",
        patience: float,
        *,
        replica: bool,
    ) -> None:
        self.sentinels = sentinels
        self._connect = connect
        self.patience = patience
        self._replica = replica
        self._last: Address | None = None
        # A replica that did not answer, and until when it is not asked, by the monotonic clock.
        self._avoided: tuple[Address | None, float] = (None, 0.0)

    def client(self) -> "redis.Redis":
        """Return a client of the server that the sentinels name, else of the one named last."""
        try:
            allowed = self.allowed(self.patience)
        except StoreUnavailable:
            if self._last is None:
                raise
            allowed = [self._last]
        self._last = _chance.choice(allowed)
        return self._connect(self._last)

    def avoid(self, address: Address) -> None:
        """Leave a replica alone for a while."""
        self._avoided = address, time.monotonic() + LATER_SECONDS

    def allowed(self, seconds: float) -> list[Address]:
        """Return the servers of which any will do.

        Raises:
            StoreError: see Sentinels.master().
        """
        found: list[Address] = []
        if self._replica:
            found = self.sentinels.replicas(seconds)
            avoided, until = self._avoided
            if avoided in found and time.monotonic() < until:
                found.remove(avoided)
        return found or [self.sentinels.master(seconds)]


def link_to(
    target: Target,
    options: dict[str, Any],
    connect: "Callable[[dict[str, Any], tuple[str, int]], redis.Redis]",
    *,
    replica: bool = False,
) -> "SentinelLink":
    """Return a link to the server that sentinels name. Connects to nothing.

    Args:
        target: see urls.parse().
        options: of every connection.
        connect: makes a client of options and a place.
        replica: see Finder.
    """
    # The same timeouts, and what is verified of certificates; but another user.
    own = {k: v for k, v in options.items() if k not in ("username", "password", "db")}
    own |= target.of_sentinels
    scheme = target.location.partition("://")[0]
    links = [
        ServerLink(partial(connect, own, (host, port)), f"{scheme}://{host}:{port}")
        for host, port in target.nodes
    ]
    sentinels = Sentinels(links, target.service, target.location)
    patience = options["socket_timeout"]
    finder = Finder(sentinels, partial(connect, options), patience, replica=replica)
    return SentinelLink(finder, target.location, replica=replica)


class SentinelLink(ServerLink):
    """A way to exchange commands with the master of a service, or with one of its replicas.

    Args:
        finder: chooses the server.
        location: for messages, without credentials.
        replica: whether it is for reading.
    """

    def __init__(self, finder: Finder, location: str, *, replica: bool = False) -> None:
        self._finder = finder
        self._replica = replica
        self._look_at = 0.0
        super().__init__(finder.client, location)

    def exchange(
        self,
        commands: Sequence[Command],
        take: Callable[[Reply], Any] | None = None,
        *,
        spin: bool = False,
    ) -> list[Reply]:
        """Exchange commands with the server that is it now: see ServerLink.exchange()."""
        self._look_again()
        try:
            return super().exchange(commands, take, spin=spin)
        except StoreError:
            self._forget()
            raise

    def cap_timeout(self, seconds: float) -> None:
        """See ServerLink.cap_timeout(): the sentinels are asked no longer either."""
        super().cap_timeout(seconds)
        self._finder.patience = min(self._finder.patience, seconds)

    def close(self) -> None:
        """Close the connections, those to the sentinels too."""
        super().close()
        self._finder.sentinels.close()

    def _open(self) -> "redis.Redis":
        client = super()._open()
        self._look_at = time.monotonic() + LOOK_SECONDS
        return client

    def _look_again(self) -> None:
        """Forget the server where the sentinels, asked once in a while, name another."""
        now, client = time.monotonic(), self._client
        if client is None or now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS  # of several threads one asks
        try:
            allowed = self._finder.allowed(min(LOOK_PATIENCE, self._finder.patience))
        except StoreError:
            self._look_at = now + LATER_SECONDS
        else:
            if _address(client) not in allowed:
                self._drop_client()

    def _forget(self) -> None:
        client = self._client
        if client is not None:
            if self._replica:
                self._finder.avoid(_address(client))
            self._drop_client()
        self._finder.sentinels.pass_on()

    def _read(self, connection: Any, command: Command) -> Reply:
        reply = super()._read(connection, command)
        if self._replica and is_not_primary(reply):  # no answer: the reading is repeated, elsewhere
            raise client_errors.ConnectionError("this replica cannot be read at the moment")
        return reply


def _address(client: "redis.Redis") -> Address:
    options = client.connection_pool.connection_kwargs
    return Address(options["host"], options["port"])


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
