"""The sign-in page: where a browser that has no cookie yet is asked for the token.

It is complete without scripts and further files, since those are behind the token as well: its one
style sheet is in the page, and the policy names it by its hash. The form is sent to the address of
the page itself, so that whoever signs in sees what was asked for; the token is in no address.
"""

import base64
import hashlib
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from redmeter.dashboard.refusals import Refusal

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


def page(headers: dict[str, str], *, wrong: bool) -> Response:
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


def is_wanted(request: Request) -> bool:
    """Tell whether a browser asks for a page, and not a program for figures."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


async def read_token(request: Request) -> str:
    """Return the token of a form that was sent; "" if it has none.

    Raises:
        Refusal: another site sent it, it is too large, or it is no form.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        fix = "open the page by its own address"
        raise Refusal(403, "cross-site", "another site sent this form", fix)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal(415, "not-a-form", "this is not a form", "send token=… as a form does")
    body = b""
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_FORM:
                fix = f"at most {MAX_FORM:,} bytes"
                raise Refusal(413, "form-too-large", "the form is too large", fix)
    except ClientDisconnect:
        raise Refusal(400, "disconnected", "the client has left", "send the form again") from None
    fields = parse_qs(body.decode("ascii", "replace"))
    return fields.get("token", [""])[-1].strip()
