"""The dashboard on its own: a socket, the rule of who may look, and uvicorn.

A page that is bound to loopback without credentials is open; any other requires them. The rule is
applied here, once, to the bound address.

Any client that reaches the port can open connections, without a token. So their number is limited
to less than the process's limit of open files: one too many closes the one that has been idle for
longest. A connection is also closed if its request never completes or its client does not read.
Errors for a lack of file descriptors are logged a few times a minute at most.

Options of uvicorn do not replace this: `timeout_keep_alive` begins after the first response, so a
client that never finishes a header stays; at `limit_concurrency` every new client gets a 503, so
idle connections lock everybody out. There is no timeout for clients that do not read.
"""

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from redmeter.dashboard import HOST, PORT, PORTS, TOKEN, USERS
from redmeter.dashboard.access import is_loopback, new_access_token, read_users
from redmeter.dashboard.app import Dashboard
from redmeter.dashboard.guard import own_hosts
from redmeter.dashboard.login import Login
from redmeter.errors import InvalidSetting

#: How long a connection without requests is kept, seconds: longer than pages wait for the next.
KEEP_ALIVE = 75
#: Connections at most; never more than half of the files that the process may open.
MAX_OPEN = 512
#: Connections that wait in the system to be taken, and that are taken at once.
BACKLOG = 64
#: How long the header of a request may take, seconds.
HEADER_SECONDS = 10.0
#: How long a client may read nothing of its response, seconds.
READ_SECONDS = 30.0
#: Records of one logger within a minute.
MAX_RECORDS = 5


class Credentials:
    """Who may look where the page is on its own.

    Args:
        host: the address that will be bound, or a name of it.
        token_file: holds a token in its first line.
        users_file: lines of NAME:PASSWORD.
        environ: REDMETER_TOKEN and REDMETER_USERS are the same, without a file.

    Raises:
        InvalidSetting: a file cannot be read, or holds something else.
    """

    def __init__(
        self,
        host: str,
        token_file: Path | None = None,
        users_file: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        variables = environ or {}
        token = variables.get(TOKEN, "")
        if token_file is not None:
            token = (_read("--token-file", token_file).splitlines() or [""])[0].strip()
            if not token:
                raise InvalidSetting("--token-file", f"{token_file} is empty")
        users = read_users(variables[USERS], USERS) if variables.get(USERS) else {}
        if users_file is not None:
            users = read_users(_read("--users-file", users_file), "--users-file")
        #: A token that was made up here, since none was given where one is needed; else None.
        self.minted: str | None = None
        #: What asks for it; None where everybody may look.
        self.login = Login([token] if token else [], users) if token or users else None
        self.require(host)

    def require(self, host: str) -> None:
        """Make up a token where nothing is asked for, and an address needs it."""
        if self.login is None and not is_loopback(host):
            self.minted = new_access_token()
            self.login = Login([self.minted])


def _read(option: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no UTF-8"
        raise InvalidSetting(option, f"{path} cannot be read: {why}") from None


def listen_on(host: str, port: int | None = None) -> socket.socket:
    """Return a socket that listens.

    Args:
        port: None: PORT, or the next one that is free; 0: any.

    Raises:
        InvalidSetting: the address is none of this machine's, or the port is taken.
    """
    ports = range(PORT, PORT + PORTS) if port is None else (port,)
    why = ""
    for number in ports:
        try:
            return _listen(host, number)
        except (OSError, UnicodeError, OverflowError) as error:
            why = str(getattr(error, "strerror", "") or error)
            if getattr(error, "errno", None) not in (errno.EADDRINUSE, errno.EACCES):
                break
    where = f"port {ports[0]}" if len(ports) == 1 else f"ports {ports[0]} to {ports[-1]}"
    raise InvalidSetting(
        "--port" if "ddress already" in why else "--host",
        f"{host}, {where}: {why}; --host and --port name another one",
    )


def _listen(host: str, port: int) -> socket.socket:
    addresses = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, address = addresses[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(address)
        # At once: two may be bound to a port that no process listens at yet.
        made.listen(BACKLOG)
    except BaseException:
        made.close()
        raise
    made.set_inheritable(False)
    return made


def address_of(host: str, port: int) -> str:
    """Return the address to open, e.g. http://127.0.0.1:7380/."""
    shown = host.strip("[]")
    if shown in ("0.0.0.0", "::", ""):  # noqa: S104  compared, not bound
        shown = _outward() or socket.gethostname()
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/"


def _outward() -> str:
    """Return the address of this machine that others know; "" where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # sends nothing: the route is looked up (RFC 5737)
        return str(probe.getsockname()[0])
    return ""


class PageServer:
    """A dashboard that is served.

    Args:
        source, prefix: see Dashboard.
        host, port: see listen_on().
        credentials: who may look; made for the same host.
        allow_hosts: further host names of the page, in addition to the machine's own.

    Raises:
        InvalidSetting: nothing can be bound there, or a name is none.
    """

    def __init__(
        self,
        source: Any,
        *,
        prefix: str | None = None,
        host: str = HOST,
        port: int | None = None,
        credentials: Credentials | None = None,
        allow_hosts: Iterable[str] = (),
    ) -> None:
        own_hosts(host, allow_hosts)  # rejects invalid names before anything is bound
        self._socket = listen_on(host, port)
        # The rule applies to this address, not to the name, which may resolve to any address.
        bound = self._socket.getsockname()[0]
        try:
            who = credentials or Credentials(bound)
            who.require(bound)
            self.dashboard = Dashboard(
                source,
                access=who.login or "open",
                prefix=prefix,
                allowed_hosts=own_hosts(bound, [host, *allow_hosts] if host else allow_hosts),
            )
        except BaseException:
            self._socket.close()
            raise
        self.address = address_of(host, self._socket.getsockname()[1])
        self.login = who.login is not None
        #: The address to open; where a token was made up, with it: to be shown once.
        self.link = self.address + (f"?token={who.minted}" if who.minted else "")
        self._server = _Server(
            uvicorn.Config(
                self.dashboard,
                http=partial(Connection, waiting={}),  # type: ignore[arg-type]  # makes one
                backlog=BACKLOG,
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,  # a client can set them
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=1,
                h11_max_incomplete_event_size=128 * 1024,
            )
        )
        # What strangers send must not fill a log.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until stop(), Ctrl-C or SIGTERM; the signals only in the main thread.

        Args:
            ready: called once it answers.
        """
        self._server.ready = ready
        seldom, noisy = LogRateLimit(), logging.getLogger("asyncio")
        noisy.addFilter(seldom)
        try:
            self._server.run(sockets=[self._socket])
        finally:
            noisy.removeFilter(seldom)
            self._socket.close()

    def stop(self) -> None:
        """End it, from any thread."""
        self._server.should_exit = True


def most_open() -> int:
    """Return how many connections there may be."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_OPEN if soft == resource.RLIM_INFINITY else max(8, min(MAX_OPEN, soft // 2))


class Connection(H11Protocol):
    """A connection that is closed where it waits for too long, or takes the place of others.

    Args:
        waiting: of one server: its connections without a request under way, the oldest first.
        options: see H11Protocol.
    """

    def __init__(self, *, waiting: "dict[Connection, None]", **options: Any) -> None:
        super().__init__(**options)
        self._waiting = waiting
        self._patience: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; where there are too many, end the one that has waited longest."""
        super().connection_made(transport)
        self._waiting[self] = None
        self._watch()
        if len(self.connections) > most_open():
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self._answering:
            self._waiting[self] = None
            if self.conn.trailing_data[0]:
                self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._waiting.pop(self, None)
        self._unwatch()
        self._unstick()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that does not read its response."""
        super().pause_writing()
        self._stuck = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on, since the client reads."""
        super().resume_writing()
        self._unstick()

    def _unstick(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _watch(self) -> None:
        if self._answering:
            self._waiting.pop(self, None)
            self._unwatch()
        elif self._patience is None:
            self._patience = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _unwatch(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        if not self._answering:
            self.transport.abort()


class LogRateLimit(logging.Filter):
    """Lets a few records of a logger pass within a minute.

    Args:
        monotonic: a clock, for tests.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._since, self._passed = -60.0, 0

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002
        """Return whether a record passes."""
        now = self._monotonic()
        if now - self._since >= 60.0:
            self._since, self._passed = now, 0
        self._passed += 1
        return self._passed <= MAX_RECORDS


class _Server(uvicorn.Server):
    ready: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Report that the server answers requests."""
        await super().startup(sockets)
        if self.started:
            self.ready()
