"""Who may look: by credentials where the page is on its own, else as the application says.

On its own, the rule goes by the address that is bound: on loopback there is no login, anywhere else
there is one, whoever asks and whatever a proxy says of him. Mounted, the application says who may,
by a callable that is given the request; or that everybody may, by the word "open". Tokens, names
and passwords are checked in login.py.
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

#: Tells whether a request may pass, or answers it.
Answer = bool | Response | None
Access = Callable[[Any], Answer | Awaitable[Answer]]
#: What is given for `access=`.
Given = Access | Literal["open"] | None

#: Random bytes of a token.
_TOKEN_BYTES = 24
#: Shortest token and password that are taken, characters.
MIN_SECRET = 8
#: Plain functions that are asked at once: threads of our own, not those of the application.
THREADS = 8

_HOW = (
    "say who may look: access=a function of your application that is given the request and returns "
    'whether it may pass, or access="open" for everybody'
)


def check_access(given: Given) -> Access | None:
    """Return the callable that is asked; None where everybody may.

    Raises:
        InvalidSetting: nothing was said, or something else than a callable or "open".
    """
    if given == "open":
        return None
    if given is None or not callable(given):
        raise InvalidSetting("access", _HOW)
    return given


_limiter: RunVar[CapacityLimiter] = RunVar("redmeter_access")


def _threads() -> CapacityLimiter:
    """Return the limiter of this event loop."""
    try:
        return _limiter.get()
    except LookupError:
        made = CapacityLimiter(THREADS)
        _limiter.set(made)
        return made


async def ask(access: Access, request: HTTPConnection) -> Response | None:
    """Ask whether a request may pass; a plain function is asked in a thread, as it may wait.

    It may pass where True is returned, that very value: what an application writes to refuse, as a
    response of another framework or a text, is often true too.

    Returns:
        None where it may; else an answer of the application's own.

    Raises:
        HTTPError: it may not. Where the callable fails, nobody may, and the log tells why.
    """
    try:
        if inspect.iscoroutinefunction(access) or inspect.iscoroutinefunction(
            getattr(access, "__call__", None)  # noqa: B004  an object with an async __call__
        ):
            said: Any = access(request)
        else:
            said = await run_sync(access, request, limiter=_threads())
        if inspect.isawaitable(said):
            said = await said
        if isinstance(said, Response):
            return said
        answer = _of_werkzeug(said, request)
        if answer is not None:
            return answer
        if passes(said):
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


def passes(said: object) -> bool:
    """Tell whether what `access=` returned lets a request pass: True alone does.

    False and None refuse; so does anything else, and the log names it.
    """
    if said is not True and said is not False and said is not None:
        logger.error(
            "redmeter: access= of the dashboard returned %s, which is neither True nor False nor "
            "an answer; the request is refused",
            type(said).__name__,
        )
    return said is True


def forbidden() -> HTTPError:
    """Return what is said to who may not look."""
    return HTTPError(403, "forbidden", "you may not look at this", "log in to the application")


def _raised(status: int, detail: str, headers: Mapping[str, str] | None) -> HTTPError:
    """Return the refusal that an application raised, as its frameworks do; never a welcome."""
    if status < 300:
        return forbidden()
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "refused"
    code = "-".join(phrase.lower().split())
    return HTTPError(status, code, str(detail) or phrase, "log in to the application", headers)


def _of_werkzeug(said: Any, request: HTTPConnection) -> Response | None:
    """Return a response of Flask's or another WSGI framework's as one of ours; None: it is none."""
    environ = request.scope.get("wsgi_environ")
    if (
        environ is None
        or not callable(said)
        or not isinstance(getattr(said, "status_code", None), int)
    ):
        return None
    told: list[Any] = []
    body = b"".join(said(environ, lambda *given: told.extend(given)))
    answer = Response(body, int(told[0].split(" ")[0]))
    raw = [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in told[1]]
    answer.raw_headers = [pair for pair in raw if pair[0] != b"content-length"]
    answer.raw_headers.append((b"content-length", b"%d" % len(body)))
    return answer


def _of_werkzeug_error(error: Exception, request: HTTPConnection) -> Response | None:
    """Return what Flask's abort() stands for; None where the error is another one."""
    environ = request.scope.get("wsgi_environ")
    made = getattr(error, "get_response", None)
    if environ is None or made is None or not hasattr(error, "code"):
        return None
    try:
        return _of_werkzeug(made(environ), request)
    except Exception:  # noqa: BLE001  the error itself is logged
        return None


def is_loopback(host: str) -> bool:
    """Tell whether an address that is bound can be reached from this machine alone.

    Args:
        host: the address; of a name, all that it stands for now.
    """
    bare = host.strip("[]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(bare, None, type=socket.SOCK_STREAM) if bare else []
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(is_loopback(str(address[0])) for *_, address in found)


def new_token() -> str:
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
