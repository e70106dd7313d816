"""Access control: by credentials on the page's own server, by the application if it is mounted.

On its own server, the bound address decides: on loopback there is no login, on any other address
there is one, regardless of the client and of proxy headers. Mounted, the application passes a
callable that gets the request, or "open" for everybody. Tokens, names and passwords are checked in
login.py.
"""

import inspect
import ipaddress
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Literal

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from redmeter.dashboard.errors import HTTPError
from redmeter.errors import InvalidSetting

logger = logging.getLogger("redmeter")

#: Whether a request is allowed, or a response to it.
AccessAnswer = bool | Response | None
Access = Callable[[Any], AccessAnswer | Awaitable[AccessAnswer]]
#: The value of `access=`.
Given = Access | Literal["open"] | None

#: Random bytes of a token.
_TOKEN_BYTES = 24
#: Shortest token and password that are taken, characters.
MIN_SECRET = 8
#: Plain functions that run concurrently, in threads of our own, not the application's.
ACCESS_THREADS = 8

_HOW = (
    "decide who has access: access=a function of your application that gets the request and "
    'returns whether it is allowed, or access="open" for everybody'
)


def check_access(given: Given) -> Access | None:
    """Return the callable; None if everybody has access.

    Raises:
        InvalidSetting: nothing was given, or something else than a callable or "open".
    """
    if given == "open":
        return None
    if given is None or not callable(given):
        raise InvalidSetting("access", _HOW)
    return given


_limiter: RunVar[CapacityLimiter] = RunVar("redmeter_access")


def _threads() -> CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        made = CapacityLimiter(ACCESS_THREADS)
        _limiter.set(made)
        return made


async def ask_access(access: Access, request: HTTPConnection) -> Response | None:
    """Ask whether a request may pass; a plain function is asked in a thread, as it may wait.

    It may pass where True is returned, that very value: what an application writes to refuse, as a
    response of another framework or a text, is often true too.

    Returns:
        None if the request is allowed; otherwise a response of the application.

    Raises:
        HTTPError: it is not allowed. If the callable raises, it is refused and the error is logged.
    """
    try:
        if inspect.iscoroutinefunction(access) or inspect.iscoroutinefunction(
            getattr(access, "__call__", None)  # noqa: B004  an object with an async __call__
        ):
            result: Any = access(request)
        else:
            result = await run_sync(access, request, limiter=_threads())
        if inspect.isawaitable(result):
            result = await result
        if isinstance(result, Response):
            return result
        answer = _of_werkzeug(result, request)
        if answer is not None:
            return answer
        if passes(result):
            return None
    except HTTPError:
        raise
    except HTTPException as error:
        raise _raised(error.status_code, error.detail, error.headers) from None
    except Exception as error:
        answer = _of_werkzeug_error(error, request)
        if answer is not None:
            return answer
        logger.exception("redmeter: access= of the dashboard failed; the request is refused")
    raise forbidden()


def passes(result: object) -> bool:
    """Return whether the result of `access=` allows a request: only True does.

    False and None refuse; so does anything else, which is logged.
    """
    if result is not True and result is not False and result is not None:
        logger.error(
            "redmeter: access= of the dashboard returned %s, which is neither True nor False nor "
            "an answer; the request is refused",
            type(result).__name__,
        )
    return result is True


def forbidden() -> HTTPError:
    """Return the error for a request that is not allowed."""
    return HTTPError(403, "forbidden", "you may not look at this", "log in to the application")


def _raised(status: int, detail: str, headers: Mapping[str, str] | None) -> HTTPError:
    """Return the refusal that an application raised in the way of its framework."""
    if status < 300:
        return forbidden()
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "refused"
    code = "-".join(phrase.lower().split())
    return HTTPError(status, code, str(detail) or phrase, "log in to the application", headers)


def _of_werkzeug(result: Any, request: HTTPConnection) -> Response | None:
    """Return a response of Flask's or another WSGI framework's as one of ours; None: it is none."""
    environ = request.scope.get("wsgi_environ")
    if (
        environ is None
        or not callable(result)
        or not isinstance(getattr(result, "status_code", None), int)
    ):
        return None
    started: list[Any] = []
    body = b"".join(result(environ, lambda *start: started.extend(start)))
    answer = Response(body, int(started[0].split(" ")[0]))
    raw = [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in started[1]]
    answer.raw_headers = [pair for pair in raw if pair[0] != b"content-length"]
    answer.raw_headers.append((b"content-length", b"%d" % len(body)))
    return answer


def _of_werkzeug_error(error: Exception, request: HTTPConnection) -> Response | None:
    """Return the response of Flask's abort(); None for any other error."""
    environ = request.scope.get("wsgi_environ")
    made = getattr(error, "get_response", None)
    if environ is None or made is None or not hasattr(error, "code"):
        return None
    try:
        return _of_werkzeug(made(environ), request)
    except Exception:  # noqa: BLE001  the error itself is logged
        return None


def is_loopback(host: str) -> bool:
    """Return whether a bound address is reachable from this machine only.

    Args:
        host: the address, or a name, whose current addresses must all be local.
    """
    bare = host.strip("[]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        pass
    try:
        addresses = socket.getaddrinfo(bare, None, type=socket.SOCK_STREAM) if bare else []
    except (OSError, UnicodeError):
        return False
    return bool(addresses) and all(is_loopback(str(address[0])) for *_, address in addresses)


def new_access_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def read_users(text: str, source: str) -> dict[str, str]:
    """Read lines of NAME:PASSWORD.

    Args:
        source: where they are from, for the error.

    Raises:
        InvalidSetting: a line is none.
    """
    users: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, colon, password = line.partition(":")
        if not colon or not name or len(password) < MIN_SECRET:
            raise InvalidSetting(
                source, f"line {number} is not NAME:PASSWORD of {MIN_SECRET} characters or more"
            )
        users[name] = password
    if not users:
        raise InvalidSetting(source, "there is no line NAME:PASSWORD")
    return users


def local(path: str) -> str:
    """Return a path as a reference that cannot name another host: `//evil` would."""
    return "/" + path.lstrip("/\\")
