"""Tokens, names and passwords, and the sign-in page for browsers.

A token opens the page by a link, or by the sign-in form. It is exchanged for a cookie, and the
address is left without it. Programs send it as `Authorization: Bearer`. Names and passwords are
`Authorization: Basic`. Comparisons take constant time: digests under a random key are compared, all
of them.

The sign-in page needs no scripts and no further files, because those require the token as well: its
only style sheet is inline, and the policy allows it by its hash. The form is sent to the address of
the page itself, so the requested page follows the sign-in; the token never appears in an address.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from redmeter.dashboard.access import MIN_SECRET, AccessAnswer, local
from redmeter.dashboard.errors import HTTPError
from redmeter.errors import InvalidSetting

#: Largest form that is read, bytes. A token is shorter.
MAX_FORM = 4_096

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
label { display: block; margin-bottom: 4px; font-size: 14px; font-weight: 600; }
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
<label for="token">Token</label>
<p id="hint">{hint}</p>
<input hidden name="username" autocomplete="username" value="redmeter">
<input id="token" name="token" type="password" required autofocus maxlength="1000"
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
_WRONG = '<p class="problem" id="problem" role="alert">This token is not valid.</p>\n'

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
        # Derived from a token, so that a cookie is valid as long as it is; not the token itself.
        self._cookies = {_cookie_name(token): _cookie_value(token) for token in known}
        self._named = {self._digest(token): _cookie_name(token) for token in known}

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(errors="replace"), "sha256")

    def __call__(self, request: Request) -> AccessAnswer:
        """Let a request pass, answer it, or refuse it: a browser by the form to sign in.

        Raises:
            HTTPError: 401.
        """
        tokens = request.query_params.getlist("token")
        if tokens and request.method in ("GET", "HEAD"):
            if self._is_one(tokens[-1], self._tokens):
                return self._admit(request, tokens[-1])
            return self._refused(request, wrong=True)
        scheme, _, rest = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_one(rest.strip(), self._tokens):
            return True
        if scheme.lower() == "basic" and self._is_one(_decoded(rest), self._users):
            return True
        # All are compared, so that the duration does not depend on the position of the right one.
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
            HTTPError: it is no such form.
        """
        token = await _read_token(request)
        if not self._is_one(token, self._tokens):
            return sign_in_page(self._unauthorized().headers, wrong=True)
        return self._admit(request, token)

    def _is_one(self, text: str, known: list[bytes]) -> bool:
        digest = self._digest(text)
        return any([hmac.compare_digest(digest, each) for each in known])  # noqa: C419  all of them

    def _refused(self, request: Request, *, wrong: bool = False) -> Response:
        """Return the form for a browser that asks for the page.

        Raises:
            HTTPError: 401, for all others.
        """
        error = self._unauthorized()
        root = request.scope.get("root_path", "")
        if self.has_form and request.scope["path"] in ("/", f"{root}/") and _wants_html(request):
            return sign_in_page(error.headers, wrong=wrong)
        raise error

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

    def _unauthorized(self) -> HTTPError:
        ways = ['Basic realm="redmeter", charset="UTF-8"'] if self._users else []
        if self._tokens and not ways:  # with both, browsers do not ask for a password
            ways = ['Bearer realm="redmeter"']
        fix = (
            "send the token (Authorization: Bearer), or open the page and sign in: it is the one "
            "that `redmeter up` printed, or that REDMETER_TOKEN or --token-file set"
        )
        if self._users:
            fix = "send name and password (Authorization: Basic)"
        return HTTPError(
            401,
            "login-needed",
            "you have not said who you are",
            fix,
            {"WWW-Authenticate": ", ".join(ways)},
        )


def sign_in_page(headers: dict[str, str], *, wrong: bool) -> Response:
    """Return the form, which is the answer to a browser that has not signed in.

    Args:
        headers: of the answer, e.g. WWW-Authenticate.
        wrong: whether a token was given, and is none.
    """
    text = _PAGE.format(
        style=_STYLE,
        hint=_HINT,
        problem=_WRONG if wrong else "",
        described="problem hint" if wrong else "hint",
        invalid=' aria-invalid="true"' if wrong else "",
    )
    return HTMLResponse(
        text,
        HTTPStatus.UNAUTHORIZED,
        {
            **headers,
            "Content-Security-Policy": _POLICY,
            "Cache-Control": "no-store",
            "Vary": "Accept, Cookie",
        },
    )


def _wants_html(request: Request) -> bool:
    """Return whether a browser requests a page, rather than a program data."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


async def _read_token(request: Request) -> str:
    """Return the token of a form that was sent; "" if it has none.

    Starlette's request.form() needs another package and has no limit for a body.

    Raises:
        HTTPError: another site sent it, it is too large, or it is no form.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        fix = "open the page by its own address"
        raise HTTPError(403, "cross-site", "another site sent this form", fix)
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
    return fields.get("token", [""])[-1].strip()


def _cookie_name(token: str) -> str:
    # By the token: cookies ignore ports, so two pages on one host would share a fixed name.
    return "redmeter-" + hashlib.sha256(b"name:" + token.encode()).hexdigest()[:12]


def _cookie_value(token: str) -> str:
    return hmac.new(token.encode(), b"redmeter cookie", "sha256").hexdigest()


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
