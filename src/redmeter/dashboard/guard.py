"""Checks of every request, and headers of every response.

The Host header must name us: otherwise a page elsewhere could point its own name to this machine
and read our responses ("DNS rebinding"). Starlette's TrustedHostMiddleware knows no IPv6 addresses
and no requests with two hosts or a host in the target.

Nothing here changes state, so every method except GET and HEAD is refused, apart from the sign-in
form, which must come from this origin.

The headers of responses restrict browsers: scripts and styles only from files of this origin, no
frames around the page, no content sniffing, no access by other origins, and no referrer.
"""

import ipaddress
import logging
import re
import socket
from collections.abc import Iterable, MutableMapping
from typing import Any
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redmeter.dashboard import access
from redmeter.dashboard.api import prometheus
from redmeter.dashboard.api.serialize import as_json
from redmeter.dashboard.errors import HTTPError
from redmeter.dashboard.login import Login
from redmeter.errors import InvalidSetting

logger = logging.getLogger("redmeter")

#: Sent with every answer.
HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "font-src 'self'",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        )
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

#: Paths of probes, which need no credentials; two are Prometheus'. The first one answers as long as
#: this process does: a probe that fails with the store would restart a page that is fine.
ALIVE = "/-/healthy"
VITAL = (ALIVE, "/-/ready", "/healthz")
#: Where the page's own server ends a sign-in.
SIGN_OUT = "/sign-out"
#: What may be asked; nothing here changes state.
ALLOWED_METHODS = ("GET", "HEAD")
#: Longest path, bytes.
MAX_PATH = 1_000

#: What stays as it is in a query that is sent back.
URL_SAFE = "%=&+;:@/?!$'()*,~-._"

#: Names by which this machine calls itself.
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_ABSOLUTE = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{0,5})?")


def host_of(header: str) -> str | None:
    """Return the name within a Host header, lower-case and without its port; None where none is."""
    match = _HOST.fullmatch(header)
    return match[1].strip("[]").lower().rstrip(".") if match else None


class Hosts:
    """The names by which the page may be called.

    Args:
        names: host names and addresses, without ports; `*.example.org` stands for all below it.
        addresses: whether any address (no name) is allowed too: nobody can make one point here.

    Raises:
        InvalidSetting: something is no name.
    """

    def __init__(self, names: Iterable[str], *, addresses: bool = False) -> None:
        if isinstance(names, str):
            raise InvalidSetting("allowed_hosts", "a list of names: [name]")
        self.names = [_checked(name) for name in names]
        self._addresses = addresses

    def allow(self, header: str) -> bool:
        """Return whether a Host header names us."""
        host = host_of(header)
        if host is None:
            return False
        if self._addresses:
            try:
                ipaddress.ip_address(host)
            except ValueError:
                pass
            else:
                return True
        return any(
            host.endswith(name[1:]) if name.startswith("*.") else host == name
            for name in self.names
        )


def _checked(name: object) -> str:
    bare = name.removeprefix("*.") if isinstance(name, str) else ""
    try:
        if ipaddress.ip_address(bare.strip("[]")):
            return bare.strip("[]").lower()
    except ValueError:
        pass
    if not bare or ":" in bare or host_of(bare) is None:
        raise InvalidSetting(
            "allowed_hosts", f"{str(name)!r:.60} is no host name: give it without scheme and port"
        )
    return str(name).lower().rstrip(".")


def own_hosts(host: str, more: Iterable[str] = ()) -> Hosts:
    """Return the names of the page on its own.

    On loopback these are the names of loopback; elsewhere also this machine's name, and addresses.

    Args:
        host: the address that is bound.
        more: further names.

    Raises:
        InvalidSetting: see Hosts.
    """
    if access.is_loopback(host):
        return Hosts([*LOOPBACK, host.strip("[]"), *more])
    allowed = [*LOOPBACK, *more]
    for name in (host, socket.gethostname()):
        try:
            allowed.append(_checked(name))
        except InvalidSetting:
            continue  # a machine may have no name that a URL could hold
    return Hosts(allowed, addresses=True)


class Guard:
    """Middleware: checks requests, and adds headers to responses.

    Args:
        app: what answers.
        access: see redmeter.dashboard.access; None: everybody may.
        hosts: None: the application in front of us checks them.
    """

    def __init__(self, app: ASGIApp, access: access.Access | None, hosts: Hosts | None) -> None:
        self._app = app
        self._access = access
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope, authority = _plain(scope)
        began = False

        async def guarded(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                headers = MutableHeaders(raw=message["headers"] or [])
                for name, value in {**HEADERS, "Cache-Control": "no-store"}.items():
                    headers.setdefault(name, value)
                message["headers"] = headers.raw
            await send(message)

        try:
            answer = await self._checked(Request(scope, receive), authority)
            if answer is None:
                await self._app(scope, receive, guarded)
                return
        except HTTPError as error:
            answer = refusal(scope, error)
        except Exception:
            logger.exception(
                "redmeter: the dashboard failed to answer %s", ascii(scope.get("path"))
            )
            if began:
                raise
            fix = "look at the log of the process that serves it"
            failed = HTTPError(500, "internal-error", "the dashboard failed", fix)
            answer = refusal(scope, failed)
        await answer(scope, receive, guarded)

    async def _checked(self, request: Request, authority: str | None) -> Response | None:
        """Check a request; an answer where it shall go no further."""
        scope = request.scope
        path = route_path(scope)
        if path in VITAL and request.method in ALLOWED_METHODS:  # probes name any host, or none
            return None
        hosts = request.headers.getlist("host")
        if len(hosts) < 2 and authority is not None:
            hosts = [authority]  # the target takes precedence (RFC 9112, section 3.2.2)
        if len(hosts) > 1 or (hosts and host_of(hosts[0]) is None):
            raise HTTPError(400, "bad-host", "the Host header is no host's name", "send one name")
        if self._hosts is not None and not (hosts and self._hosts.allow(hosts[0])):
            requested = hosts[0] if hosts else "(none)"
            raise HTTPError(
                421,
                "unknown-host",
                f"this page is not called {ascii(requested)[:100]}",
                "open it by its own address; `redmeter up --allow-host NAME` allows a name, "
                "where it is mounted allowed_hosts=[NAME] does",
            )
        login = self._access if isinstance(self._access, Login) else None
        if request.method == "POST" and login and path == "/":
            return await login.sign_in(request)
        if request.method == "GET" and login and path == SIGN_OUT:
            return login.sign_out(request)
        form = request.method == "POST" and path in prometheus.FORMS
        if request.method not in ALLOWED_METHODS and not form:
            allow = ", ".join(ALLOWED_METHODS)
            raise HTTPError(
                405, "method-not-allowed", "nothing here can be changed", "GET", {"Allow": allow}
            )
        if path == "":  # what the page asks for is relative to the mount's slash
            address = access.local(quote(scope.get("root_path", "") + "/"))
            if query := scope.get("query_string", b"").decode("ascii", "replace"):
                address += f"?{quote(query, safe=URL_SAFE)}"
            return Response(status_code=307, headers={"Location": address})
        if len(scope["path"]) > MAX_PATH:
            raise HTTPError(414, "path-too-long", "the path is too long", "see /api/openapi.json")
        if self._access is None:
            return None
        return await access.ask_access(self._access, request)


def _plain(scope: Scope) -> tuple[Scope, str | None]:
    """Return a scope with a path, and a root without a slash at its end.

    Returns:
        Also the host in the target, as in requests to proxies.
    """
    path, root = scope["path"], scope.get("root_path", "")
    authority = None
    if found := _ABSOLUTE.match(path):
        authority, path = found[1], path[found.end() :] or "/"
    if root.endswith("/"):
        bare = root.rstrip("/")
        if path.startswith(root):
            path = f"{bare}/{path[len(root) :].lstrip('/')}"
        root = bare
    if path != scope["path"] or root != scope.get("root_path", ""):
        scope = {**scope, "path": path, "root_path": root}
    return scope, authority


def route_path(scope: MutableMapping[str, Any]) -> str:
    """Return the path below where the application is mounted: "" for the mount without a slash.

    The path of a scope is the whole one; some servers and frameworks leave the mount out.
    """
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and (path == root or path.startswith(root + "/")):
        return path[len(root) :]
    return path


def refusal(scope: Scope, error: HTTPError) -> Response:
    """Return the answer to a request that is refused, in the form of the API it is for."""
    if route_path(scope).startswith(prometheus.ROOT):
        return prometheus.prometheus_error(error)
    return error_response(error)


def error_response(error: HTTPError) -> Response:
    """Return the answer to a request that is refused."""
    return Response(
        as_json(error.answer()),
        error.status,
        {**error.headers, "Cache-Control": "no-store"},
        "application/json",
    )
