"""Who may look: by credentials where the page is on its own, else as the application says.

On its own, the rule goes by the address that is bound: on loopback there is no login, anywhere else
there is one, whoever asks and whatever a proxy says of him. Mounted, the application says who may,
by a callable that is given the request; or that everybody may, by the word "open".

A token opens the page by a link: it is exchanged for a cookie, and the address is left without it.
Programs send it as `Authorization: Bearer`. Names and passwords are `Authorization: Basic`.

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
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

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


async def ask(access: Access, request: HTTPConnection) -> Response | None:
    """Ask whether a request may pass; a plain function is asked in a thread, as it may wait.

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
            said = await run_in_threadpool(access, request)
        if inspect.isawaitable(said):
            said = await said
    except Refusal:
        raise
    except Exception:
        logger.exception("access= of the dashboard failed; the request is refused")
        said = False
    if isinstance(said, Response):
        return said
    if said is not True and not said:
        raise Refusal(403, "forbidden", "you may not look at this", "log in to the application")
    return None


def is_loopback(host: str) -> bool:
    """Tell whether an address that is bound can be reached from this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


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
        """Let a request pass, answer it, or refuse it.

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
        raise self._refusal()

    def _is_one(self, text: str, known: list[bytes]) -> bool:
        digest = self._digest(text)
        return any([hmac.compare_digest(digest, each) for each in known])  # noqa: C419  all of them

    def _exchange(self, request: Request, token: str) -> Response:
        if not self._is_one(token, self._tokens):
            raise self._refusal()
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
        fix = "open the address with the token that `redmeter up` printed"
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
