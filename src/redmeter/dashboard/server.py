"""The dashboard on its own: a socket, the rule of who may look, and uvicorn.

A page that is bound to loopback without credentials is open; any other requires them. The rule is
applied here, once, to the bound address.
"""

import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from redmeter.dashboard.access import is_loopback, new_token, read_users
from redmeter.dashboard.app import Dashboard
from redmeter.dashboard.connections import BACKLOG, Connection, LogRateLimit
from redmeter.dashboard.defaults import HOST, PORT, PORTS, TOKEN, USERS
from redmeter.dashboard.guard import own_hosts
from redmeter.dashboard.login import Login
from redmeter.errors import InvalidSetting

#: How long a connection without requests is kept, seconds: longer than pages wait for the next.
KEEP_ALIVE = 75


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
            self.minted = new_token()
            self.login = Login([self.minted])


def _read(option: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no UTF-8"
        raise InvalidSetting(option, f"{path} cannot be read: {why}") from None


def listen(host: str, port: int | None = None) -> socket.socket:
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
        # At once: two may be bound to a port that nobody listens at yet.
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
        host, port: see listen().
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
        self._socket = listen(host, port)
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


class _Server(uvicorn.Server):
    ready: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Report that the server answers requests."""
        await super().startup(sockets)
        if self.started:
            self.ready()
