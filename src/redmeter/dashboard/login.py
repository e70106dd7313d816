"""Tokens, names and passwords, and the sign-in page for browsers.

A token opens the page by a link, or by the sign-in form; a name and its password by the form. They
are exchanged for a cookie, and the address is left without the token. Programs send a token as
`Authorization: Bearer`, names and passwords as `Authorization: Basic`. Comparisons take constant
time: digests under a random key are compared, all of them.

Guessing is slow: after FREE failures of an address, each further one is answered later than the one
before, see FailedAttempts. Credentials are compared before that, so valid ones never wait, also
behind a proxy, where all have one address.

The sign-in page needs no scripts and no further files, because those require the token as well: its
only style sheet is inline, and the policy allows it by its hash. The form is sent to the address of
the page itself, so the requested page follows the sign-in; the token never appears in an address.
"""

import base64
import binascii
import hashlib
import hmac
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qs, quote, urlencode

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from redmeter.dashboard.access import MIN_SECRET, AccessAnswer, local
from redmeter.dashboard.errors import HTTPError
from redmeter.errors import InvalidSetting

logger = logging.getLogger("redmeter")

#: Largest form that is read, bytes. A token is shorter.
MAX_FORM = 4_096
#: Failures of an address that are answered at once; the longest delay of others, seconds.
FREE, LONGEST_DELAY = 3, 8.0
#: How long failures of an address are remembered, seconds, and of how many addresses.
REMEMBERED_SECONDS, ADDRESSES = 600.0, 1_000
#: Failures that wait at once; further ones are refused.
MAX_DELAYED = 64
#: The beginning of a cookie's name, and the cookie by which the page knows that it can sign out.
COOKIE, SIGNED_IN = "redmeter-", "redmeter-signed-in"

_STYLE = """
:root { color-scheme: light; --ground: #f5f6f8; --surface: #ffffff; --line: #c9ced6;
  --text: #12161c; --text-2: #4f5a67; --accent: #3151d3; --accent-text: #ffffff;
  --bad: #b3202d; --bad-soft: #fce8e9; }
@media (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --ground: #0a0c0f; --surface: #111418; --line: #38404a;
    --text: #e9ecf0; --text-2: #a4aeba; --accent: #93aaff; --accent-text: #0b1020;
    --bad: #ff9aa2; --bad-soft: #3a1418; }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 16px;
  background: var(--ground); color: var(--text); line-height: 1.5;
  font-family: Inter, ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { width: 100%; max-width: 400px; padding: 24px; background: var(--surface);
  border: 1px solid var(--line); border-radius: 10px; }
h1 { margin: 0 0 8px; font-size: 20px; }
p { margin: 0 0 16px; color: var(--text-2); font-size: 14px; overflow-wrap: anywhere; }
code { color: var(--text); white-space: nowrap;
  font-family: ui-monospace, Menlo, Consolas, monospace; }
p.problem { padding: 8px 12px; border-radius: 6px; color: var(--bad); background: var(--bad-soft); }
label { display: block; margin: 12px 0 4px; font-size: 14px; font-weight: 600; }
input, button { width: 100%; min-height: 44px; padding: 8px 12px; border-radius: 6px;
  font: inherit; }
input { border: 1px solid var(--text-2); background: var(--ground); color: var(--text); }
button { margin-top: 16px; border: 0; background: var(--accent); color: var(--accent-text);
  font-weight: 600; cursor: pointer; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Sign in · Redmeter</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main>
<h1>Sign in to Redmeter</h1>
{problem}<form method="post">
{name}<label for="token">{secret}</label>
<p id="hint">{hint}</p>
<input id="token" name="token" type="password" required{focus} maxlength="1000"
  autocomplete="current-password" autocapitalize="none" spellcheck="false"
  aria-describedby="{described}"{invalid}>
<button type="submit">Sign in</button>
</form>
</main>
</body>
</html>
"""

_HINT = (
    "The one that <code>redmeter up</code> printed when it started, or the one that was set for it "
    "with <code>REDMETER_TOKEN</code> or <code>--token-file</code>."
)
_NO_NAME = '<input hidden name="username" autocomplete="username" value="redmeter">\n'
_NAME = """<label for="username">Name</label>
<input id="username" name="username" required autofocus maxlength="200" autocomplete="username"
  autocapitalize="none" spellcheck="false">
"""
_EITHER = _NAME.replace(" required", "").replace("Name<", "Name (none, to sign in with a token)<")
#: Whether there are tokens, and users -> the field of the name, the label of the secret, the hint.
_FIELDS = {
    (True, False): (_NO_NAME, "Token", _HINT),
    (False, True): (_NAME, "Password", "As in the file of <code>--users-file</code>."),
    (True, True): (_EITHER, "Password or token", _HINT),
}
_WRONG = '<p class="problem" id="problem" role="alert">This {secret} is not valid.</p>\n'

_BEARER = 'Bearer realm="redmeter"'
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'sha256-"
        + base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
        + "'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


class FailedAttempts:
    """Delays the answers to failed attempts, in turn for each address.

    Args:
        sleep: waits, for tests.
    """

    def __init__(self, sleep: Callable[[float], Awaitable[object]]) -> None:
        self._sleep = sleep
        self._waiting = 0
        # Address -> failures, and when the last one was, by the monotonic clock.
        self._known: OrderedDict[str, tuple[int, float]] = OrderedDict()

    async def wait(self, request: Request, way: str) -> None:
        """Note a failure in the log, and delay its answer.

        Args:
            way: the kind of credentials, for the log: no secret.

        Raises:
            HTTPError: 429, too many wait already.
        """
        address, now = request.client.host if request.client else "unknown", time.monotonic()
        count, last = self._known.pop(address, (0, now))
        count = 1 if now - last > REMEMBERED_SECONDS else count + 1
        self._known[address] = count, now
        if len(self._known) > ADDRESSES:
            self._known.popitem(last=False)
        if self._waiting >= MAX_DELAYED:
            fix = "send valid credentials, or try again later"
            retry = {"Retry-After": f"{LONGEST_DELAY:.0f}"}
            raise HTTPError(429, "too-many-attempts", "too many attempts failed", fix, retry)
        logger.warning(
            "redmeter: sign-in failed: wrong %s from %s, failure %d", way, ascii(address), count
        )
        if count <= FREE:
            return
        self._waiting += 1
        try:
            await self._sleep(min(LONGEST_DELAY, 0.5 * 2.0 ** (count - FREE - 1)))
        finally:
            self._waiting -= 1


class Login:
    """Lets those pass who know a token, or a name and its password.

    Args:
        tokens: each of MIN_SECRET characters or more.
        users: name -> password.
        sleep: delays answers to failures, for tests.

    Raises:
        InvalidSetting: there is neither, or a token is too short.
    """

    def __init__(
        self,
        tokens: Iterable[str] = (),
        users: Mapping[str, str] | None = None,
        sleep: Callable[[float], Awaitable[object]] = anyio.sleep,
    ) -> None:
        self._key = secrets.token_bytes(32)
        known = list(tokens)
        if any(len(token) < MIN_SECRET or not token.isascii() for token in known):
            raise InvalidSetting("token", f"{MIN_SECRET} ASCII characters or more")
        if not known and not users:
            raise InvalidSetting("access", "neither a token nor users are given")
        pairs = [f"{name}:{password}" for name, password in (users or {}).items()]
        self._tokens, self._users = list(map(self._digest, known)), list(map(self._digest, pairs))
        # Derived from a secret, so that a cookie is valid as long as it is; not the secret itself.
        self._cookies = {self._digest(secret): _cookie_value(secret) for secret in known + pairs}
        self._valid = [self._digest(value) for value in self._cookies.values()]
        self._failures = FailedAttempts(sleep)

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(errors="replace"), "sha256")

    async def __call__(self, request: Request) -> AccessAnswer:
        """Let a request pass, answer it, or refuse it: a browser by the form to sign in.

        Raises:
            HTTPError: 401, or 429 where too many have failed.
        """
        way = ""
        tokens = request.query_params.getlist("token")
        if tokens and request.method in ("GET", "HEAD"):
            if self._is_one(tokens[-1], self._tokens):
                return self._admit(request, tokens[-1])
            way = "token in an address"
        elif self._passes(request):
            return True
        elif request.headers.get("authorization"):
            way = "credentials in a header"
        if way:
            await self._failures.wait(request, way)
        return self._refused(request, wrong=bool(tokens))

    def _passes(self, request: Request) -> bool:
        scheme, _, rest = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_one(rest.strip(), self._tokens):
            return True
        if scheme.lower() == "basic" and self._is_one(_decoded(rest), self._users):
            return True
        # All are compared, so that the duration does not depend on the position of the right one.
        passed = [self._is_one(value, self._valid) for value in _cookies_of(request).values()]
        return any(passed)

    async def sign_in(self, request: Request) -> Response:
        """Answer the form: by the page and a cookie, or by the form again.

        Raises:
            HTTPError: it is no such form, or 429 where too many have failed.
        """
        name, secret = await _read_form(request)
        for text, known in ((secret, self._tokens), (f"{name}:{secret}", self._users)):
            if self._is_one(text, known):
                return self._admit(request, text)
        await self._failures.wait(request, "form")
        return self._form(wrong=True)

    def sign_out(self, request: Request) -> Response:
        """Return the page's address, without the cookies.

        Raises:
            HTTPError: another site sent it.
        """
        _check_origin(request)
        root = quote(request.scope.get("root_path", "")) + "/"
        answer = Response(status_code=303, headers={"Location": local(root)})
        for name in [*_cookies_of(request), SIGNED_IN]:
            answer.delete_cookie(name, path=root)
        return answer

    def _is_one(self, text: str, known: list[bytes]) -> bool:
        digest = self._digest(text)
        return any([hmac.compare_digest(digest, each) for each in known])  # noqa: C419  all of them

    def _refused(self, request: Request, *, wrong: bool = False) -> Response:
        """Return the form for a browser that asks for the page.

        Raises:
            HTTPError: 401, for all others.
        """
        root = request.scope.get("root_path", "")
        if request.scope["path"] in ("/", f"{root}/") and _wants_html(request):
            return self._form(wrong=wrong)
        raise self._unauthorized()

    def _form(self, *, wrong: bool) -> Response:
        return sign_in_page(_FIELDS[bool(self._tokens), bool(self._users)], wrong=wrong)

    def _admit(self, request: Request, secret: str) -> Response:
        """Return the page's address without a token, and the cookie."""
        left = [(k, v) for k, v in request.query_params.multi_items() if k != "token"]
        root = quote(request.scope.get("root_path", "")) + "/"
        address = local(quote(request.scope["path"])) + (f"?{urlencode(left)}" if left else "")
        # A link followed from another site: its redirect would go without a strict cookie.
        if request.headers.get("sec-fetch-site") == "cross-site":
            answer = Response("opening the page …", media_type="text/plain")
            answer.headers["Refresh"] = f"0; url={address}"
        else:
            answer = Response(status_code=303, headers={"Location": address})
        value = self._cookies[self._digest(secret)]
        # Cookies ignore ports, so two pages on one host would share a fixed name.
        for name, text in ((f"{COOKIE}{request.url.port or 0}", value), (SIGNED_IN, "1")):
            answer.set_cookie(
                name,
                text,
                path=root,
                httponly=name != SIGNED_IN,
                samesite="strict",
                secure=request.url.scheme == "https",
            )
        return answer

    def _unauthorized(self) -> HTTPError:
        ways = ['Basic realm="redmeter", charset="UTF-8"'] if self._users else []
        if self._tokens and not ways:  # with both, browsers do not ask for a password
            ways = [_BEARER]
        fix = (
            "send the token (Authorization: Bearer), or open the page and sign in: it is the one "
            "that `redmeter up` printed, or that REDMETER_TOKEN or --token-file set"
        )
        if self._users:
            fix = "send name and password (Authorization: Basic), or open the page and sign in"
        return HTTPError(
            401,
            "login-needed",
            "you have not said who you are",
            fix,
            {"WWW-Authenticate": ", ".join(ways)},
        )


def sign_in_page(fields: tuple[str, str, str], *, wrong: bool) -> Response:
    """Return the form, which is the answer to a browser that has not signed in.

    Args:
        fields: the field of the name, the label of the secret, and the hint, as HTML.
        wrong: whether something was sent that is not valid.
    """
    name, secret, hint = fields
    text = _PAGE.format(
        style=_STYLE,
        name=name,
        secret=secret,
        hint=hint,
        problem=_WRONG.format(secret=secret.lower()) if wrong else "",
        described="problem hint" if wrong else "hint",
        invalid=' aria-invalid="true"' if wrong else "",
        focus="" if "autofocus" in name else " autofocus",
    )
    return HTMLResponse(
        text,
        HTTPStatus.UNAUTHORIZED,
        {
            # With Basic, a browser would open a window of its own.
            "WWW-Authenticate": _BEARER,
            "Content-Security-Policy": _POLICY,
            "Cache-Control": "no-store",
            "Vary": "Accept, Cookie",
        },
    )


def _wants_html(request: Request) -> bool:
    """Return whether a browser requests a page, rather than a program data."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


async def _read_form(request: Request) -> tuple[str, str]:
    """Return the name and the secret of a form that was sent; "" for a missing one.

    Starlette's request.form() needs another package and has no limit for a body.

    Raises:
        HTTPError: another site sent it, it is too large, or it is no form.
    """
    _check_origin(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPError(415, "not-a-form", "this is not a form", "send token=… as a form does")
    body = b""
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_FORM:
                fix = f"at most {MAX_FORM:,} bytes"
                raise HTTPError(413, "form-too-large", "the form is too large", fix)
    except ClientDisconnect:
        raise HTTPError(400, "disconnected", "the client has left", "send the form again") from None
    fields = parse_qs(body.decode("ascii", "replace"))
    name, secret = (fields.get(each, [""])[-1].strip() for each in ("username", "token"))
    return name, secret


def _check_origin(request: Request) -> None:
    """Raise an HTTPError if another site sent a request."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        fix = "open the page by its own address"
        raise HTTPError(403, "cross-site", "another site sent this form", fix)


def _cookies_of(request: Request) -> dict[str, str]:
    """Return the cookies that may be of a sign-in, with any port."""
    return {n: v for n, v in request.cookies.items() if n.startswith(COOKIE) and n != SIGNED_IN}


def _cookie_value(secret: str) -> str:
    return hmac.new(secret.encode(), b"redmeter cookie", "sha256").hexdigest()


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
