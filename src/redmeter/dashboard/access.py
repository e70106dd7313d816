"""Who may look: by credentials where the page is on its own, else as the application says.

On its own, the rule goes by the address that is bound: on loopback there is no login, anywhere else
there is one, whoever asks and whatever a proxy says of him. Mounted, the application says who may,
by a callable that is given the request; or that everybody may, by the word "open".

A token opens the page by a link, or by the form of signin.py for browsers without a cookie. It is
exchanged for a cookie, and the address is left without it. Programs send it as
`Authorization: Bearer`. Names and passwords are `Authorization: Basic`.

Comparisons take as long whatever is given: digests of a secret key are compared, all of them.
"""

import base64
import binascii
import hashlib
import hmac
import inspect
import ipaddress
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import quote, urlencode

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from redmeter.dashboard import signin
from redmeter.dashboard.refusals import Refusal
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
        Refusal: it may not. Where the callable fails, nobody may, and the log tells why.
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
    except Refusal:
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


def forbidden() -> Refusal:
    """Return what is said to who may not look."""
    return Refusal(403, "forbidden", "you may not look at this", "log in to the application")


def _raised(status: int, detail: str, headers: Mapping[str, str] | None) -> Refusal:
    """Return the refusal that an application raised, as its frameworks do; never a welcome."""
    if status < 300:
        return forbidden()
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "refused"
    code = "-".join(phrase.lower().split())
    return Refusal(status, code, str(detail) or phrase, "log in to the application", headers)


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


class Login:
    """Lets those pass who know a token, or a name and its password.

    Args:
        tokens: each of MIN_SECRET characters or more.
        users: name -> password.

    Raises:
        InvalidSetting: there is neither, or a token is too short.
    """

    def __init__(self, tokens: Iterable[str] = (), users: Mapping[str, str] | None = None) -> None:
        self._key = secrets.token_bytes(32)
        known = list(tokens)
        if any(len(token) < MIN_SECRET or not token.isascii() for token in known):
            raise InvalidSetting("token", f"{MIN_SECRET} ASCII characters or more")
        if not known and not users:
            raise InvalidSetting("access", "neither a token nor users are given")
        self._tokens = [self._digest(token) for token in known]
        self._users = [
            self._digest(f"{name}:{password}") for name, password in (users or {}).items()
        ]
        # Of a token, so that a cookie holds for as long as that does; and not the token itself.
        self._cookies = {_cookie_name(token): _cookie_value(token) for token in known}
        self._named = {self._digest(token): _cookie_name(token) for token in known}

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(errors="replace"), "sha256")

    def __call__(self, request: Request) -> Answer:
        """Let a request pass, answer it, or refuse it: a browser by the form to sign in.

        Raises:
            Refusal: 401.
        """
        given = request.query_params.getlist("token")
        if given and request.method in ("GET", "HEAD"):
            return self._exchange(request, given[-1])
        scheme, _, rest = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_one(rest.strip(), self._tokens):
            return True
        if scheme.lower() == "basic" and self._is_one(_decoded(rest), self._users):
            return True
        # Each is compared, so that what is found out does not depend on where it stands.
        passed = [
            hmac.compare_digest(self._digest(request.cookies.get(name, "")), self._digest(value))
            for name, value in self._cookies.items()
        ]
        if any(passed):
            return True
        return self._refused(request)

    @property
    def has_form(self) -> bool:
        """Whether one may sign in by a form: with a token."""
        return bool(self._tokens)

    async def sign_in(self, request: Request) -> Response:
        """Answer the form: by the page and a cookie, or by the form again.

        Raises:
            Refusal: it is no such form.
        """
        token = await signin.read_token(request)
        if not self._is_one(token, self._tokens):
            return signin.page(self._refusal().headers, wrong=True)
        return self._admit(request, token)

    def _is_one(self, text: str, known: list[bytes]) -> bool:
        digest = self._digest(text)
        return any([hmac.compare_digest(digest, each) for each in known])  # noqa: C419  all of them

    def _exchange(self, request: Request, token: str) -> Response:
        if not self._is_one(token, self._tokens):
            return self._refused(request, wrong=True)
        return self._admit(request, token)

    def _refused(self, request: Request, *, wrong: bool = False) -> Response:
        """Return the form for a browser that asks for the page.

        Raises:
            Refusal: 401, for all others.
        """
        refusal = self._refusal()
        root = request.scope.get("root_path", "")
        if (
            self.has_form
            and request.scope["path"] in ("/", f"{root}/")
            and signin.is_wanted(request)
        ):
            return signin.page(refusal.headers, wrong=wrong)
        raise refusal

    def _admit(self, request: Request, token: str) -> Response:
        """Return the page's address without a token, and the cookie."""
        name = self._named[self._digest(token)]
        left = [(k, v) for k, v in request.query_params.multi_items() if k != "token"]
        root = quote(request.scope.get("root_path", "")) + "/"
        address = local(quote(request.scope["path"])) + (f"?{urlencode(left)}" if left else "")
        # A link followed from another site: its redirect would go without a strict cookie.
        if request.headers.get("sec-fetch-site") == "cross-site":
            answer = Response("opening the page …", media_type="text/plain")
            answer.headers["Refresh"] = f"0; url={address}"
        else:
            answer = Response(status_code=303, headers={"Location": address})
        answer.set_cookie(
            name,
            self._cookies[name],
            path=root,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    def _refusal(self) -> Refusal:
        ways = ['Basic realm="redmeter", charset="UTF-8"'] if self._users else []
        if self._tokens and not ways:  # beside the other one no browser would ask for a password
            ways = ['Bearer realm="redmeter"']
        fix = (
            "send the token (Authorization: Bearer), or open the page and sign in: it is the one "
            "that `redmeter up` printed, or that REDMETER_TOKEN or --token-file set"
        )
        if self._users:
            fix = "send name and password (Authorization: Basic)"
        return Refusal(
            401,
            "login-needed",
            "you have not said who you are",
            fix,
            {"WWW-Authenticate": ", ".join(ways)},
        )


def local(path: str) -> str:
    """Return a path as a reference that cannot name another host: `//evil` would."""
    return "/" + path.lstrip("/\\")


def _cookie_name(token: str) -> str:
    # Of the token: cookies know no ports, so two pages on one host would take each other's.
    return "redmeter-" + hashlib.sha256(b"name:" + token.encode()).hexdigest()[:12]


def _cookie_value(token: str) -> str:
    return hmac.new(token.encode(), b"redmeter cookie", "sha256").hexdigest()


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
