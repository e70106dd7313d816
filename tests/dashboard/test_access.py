"""Who may look."""

import asyncio
import base64
import hashlib
import threading
from collections.abc import Iterator
from typing import Any

import flask
import httpx
import pytest
from fastapi import HTTPException as FastAPIError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteError
from starlette.requests import Request
from starlette.responses import RedirectResponse

from dashboard.conftest import error_of
from redmeter.dashboard import Dashboard
from redmeter.dashboard.access import (
    ACCESS_THREADS,
    is_loopback,
    local,
    new_access_token,
    read_users,
)
from redmeter.dashboard.login import FREE, LONGEST_DELAY, MAX_DELAYED, Login
from redmeter.dashboard.server import Credentials
from redmeter.errors import InvalidSetting
from support.asking import asking
from support.servers import Server

TOKEN = "a-token-of-some-length"
PATHS = ["/", "/assets/x.js", "/api/marks", "/api/openapi.json", "/nothing"]


async def no_wait(_: float) -> None:
    """Answer a failure at once."""


def basic(name: str, password: str) -> dict[str, str]:
    """Return the header that a browser sends."""
    text = base64.b64encode(f"{name}:{password}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


@pytest.mark.parametrize("access", [None, "closed", "", 5, True])
def test_a_dashboard_is_not_made_without_saying_who_may_look(access: Any) -> None:
    """The error says what to write."""
    with pytest.raises(InvalidSetting, match='access="open" for everybody'):
        Dashboard("redis://localhost", access=access)
    with pytest.raises(InvalidSetting, match="a function of your application"):
        Dashboard("redis://localhost")


async def only_ada(request: Request) -> bool:
    """Let Ada pass."""
    return request.headers.get("x-user") == "ada"


def only_ada_plain(request: Request) -> Any:
    """Let Ada pass."""
    return True if request.headers.get("x-user") == "ada" else None


class OnlyAda:
    """Lets Ada pass."""

    async def __call__(self, request: Request) -> bool:
        """Say so."""
        return await only_ada(request)


@pytest.mark.parametrize("access", [only_ada, only_ada_plain, OnlyAda()])
@pytest.mark.parametrize("path", PATHS)
def test_an_application_says_who_may_look(access: Any, path: str, server: Server) -> None:
    """By a function, plain or async, for whatever lies below; what is alive everybody may know."""
    dashboard = Dashboard(server.url, access=access)
    with asking(dashboard) as client:
        answer = client.get(path)
        assert (answer.status_code, error_of(answer)["code"]) == (403, "forbidden")
        assert client.head(path).status_code == 403
        assert client.get(path, headers={"x-user": "ada"}).status_code != 403
        assert client.get("/healthz").status_code == 200
    dashboard.close()


def test_an_application_may_answer_by_itself(server: Server) -> None:
    """As by sending somebody to its login; our headers are added."""
    dashboard = Dashboard(server.url, access=lambda _: RedirectResponse("/login", 303))
    with asking(dashboard) as client:
        answer = client.get("/api/marks")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        assert answer.headers["x-content-type-options"] == "nosniff"


def generating(_: Request) -> Any:
    """Is never run."""
    yield True


@pytest.mark.parametrize(
    "said",
    [
        *((False, "no"), "denied", "yes", 1, [True], object(), only_ada, lambda _: True),
        flask.Response("no", 403),
        flask.redirect("/login"),
        generating,
    ],
    ids=lambda said: type(said).__name__,
)
def test_what_is_merely_true_lets_nobody_pass(
    said: Any, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """As the answer of another framework is; the log names it."""
    access = generating if said is generating else lambda _: said
    dashboard = Dashboard(server.url, access=access)
    with asking(dashboard) as client:
        answer = client.get("/api/marks")
    assert (answer.status_code, error_of(answer)["code"]) == (403, "forbidden")
    kind = "generator" if said is generating else type(said).__name__
    assert f"access= of the dashboard returned {kind}, " in caplog.text


@pytest.mark.parametrize("made", [StarletteError, FastAPIError], ids=["starlette", "fastapi"])
def test_an_error_that_is_an_answer_is_that_answer(
    made: Any, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """As applications raise it; it is no fault, and one of success is no welcome."""
    dashboards = {}
    for status, headers in ((401, {"WWW-Authenticate": "Bearer"}), (303, {"Location": "/l"})):

        def raises(_: Request, status: int = status, headers: Any = headers) -> bool:
            raise made(status, "who are you", headers)

        dashboards[status] = Dashboard(server.url, access=raises)
    with asking(dashboards[401]) as client:
        answer = client.get("/api/marks")
        assert (answer.status_code, error_of(answer)["code"]) == (401, "unauthorized")
        assert error_of(answer)["message"] == "who are you"
        assert answer.headers["www-authenticate"] == "Bearer"
    with asking(dashboards[303]) as client:
        answer = client.get("/api/marks")
        assert (answer.status_code, answer.headers["location"]) == (303, "/l")

    async def welcome(_: Request) -> bool:
        raise made(200, "come in")

    with asking(Dashboard(server.url, access=welcome)) as client:
        assert client.get("/api/marks").status_code == 403
    assert caplog.text == ""


def test_functions_that_wait_take_no_threads_from_the_application(server: Server) -> None:
    """They have a few of their own, and the rest of them wait for these."""
    may = threading.Event()
    waiting: list[int] = []

    def slow(_: Request) -> bool:
        waiting.append(1)
        return may.wait(20)

    dashboard = Dashboard(server.url, access=slow)

    async def watched() -> list[int]:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(dashboard), base_url="http://localhost"
        ) as client:
            asked = [asyncio.create_task(client.get("/api/marks")) for _ in range(60)]
            while len(waiting) < ACCESS_THREADS:  # noqa: ASYNC110  threads add to it
                await asyncio.sleep(0.01)
            # What the application does in its own threads goes on.
            assert await asyncio.wait_for(run_in_threadpool(lambda: 5), 10) == 5
            assert len(waiting) == ACCESS_THREADS
            may.set()
            return [answer.status_code for answer in await asyncio.gather(*asked)]

    assert asyncio.run(watched()) == [200] * 60
    dashboard.close()


def test_a_function_that_fails_lets_nobody_pass(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """And the log says why."""

    def broken(_: Request) -> bool:
        raise RuntimeError("no session")

    dashboard = Dashboard(server.url, access=broken)
    with asking(dashboard) as client:
        assert client.get("/api/marks").status_code == 403
    assert "redmeter: access= of the dashboard failed" in caplog.text
    caplog.clear()


# --- Credentials ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.7", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_the_rule_goes_by_the_address_that_is_bound(host: str, loopback: bool) -> None:
    """On loopback there is no login; beyond it there is one that nobody asked for."""
    assert is_loopback(host) is loopback
    made = Credentials(host)
    assert (made.login is None) is loopback
    assert (made.minted is None) is loopback
    assert new_access_token() != new_access_token()


def test_a_login_on_loopback_is_had_by_giving_credentials() -> None:
    """They come by the environment or by files, never by the command line."""
    made = Credentials("127.0.0.1", environ={"REDMETER_TOKEN": TOKEN})
    assert made.login is not None
    assert made.minted is None
    assert Credentials("127.0.0.1", environ={"REDMETER_USERS": "ada:a-password"}).login


def test_files_of_secrets_are_read(tmp_path: Any) -> None:
    """A token's first line, and lines of names and passwords, which no error repeats."""
    file = tmp_path / "secret"
    file.write_text(f"{TOKEN}\n")
    assert Credentials("0.0.0.0", token_file=file).minted is None
    file.write_text("ada:has:colons\n\nbob:password2\n")
    assert Credentials("0.0.0.0", users_file=file).login
    assert read_users("ada:has:colons", "x") == {"ada": "has:colons"}
    for text in ("", "ada", ":password", "ada:short", "ada:long-enough\nx"):
        file.write_text(text)
        with pytest.raises(InvalidSetting, match="--users-file") as raised:
            Credentials("127.0.0.1", users_file=file)
        assert "short" not in str(raised.value)
    with pytest.raises(InvalidSetting, match=r"--token-file: .*No such file"):
        Credentials("127.0.0.1", token_file=tmp_path / "nothing")
    with pytest.raises(InvalidSetting, match="8 ASCII characters"):
        Credentials("127.0.0.1", environ={"REDMETER_TOKEN": "short"})


@pytest.fixture
def locked(server: Server) -> Any:
    """A client of a dashboard that asks for credentials."""
    login = Login([TOKEN], {"ada": "correct-horse"}, sleep=no_wait)
    dashboard = Dashboard(server.url, access=login)
    with asking(dashboard) as client:
        yield client
    dashboard.close()


@pytest.mark.parametrize("path", PATHS)
def test_without_credentials_there_is_nothing(path: str, locked: httpx.Client) -> None:
    """Whoever asks, and whatever he says of where he comes from."""
    for sent in (
        {},
        {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff\xfe").decode()},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"redmeter={TOKEN}"},
        basic("ada", "wrong"),
        basic("", ""),
        basic("ada:correct-horse", ""),
        basic("eve", "correct-horse"),
    ):
        answer = locked.get(path, headers=sent)
        assert (answer.status_code, error_of(answer)["code"]) == (401, "login-needed")
        assert answer.headers["www-authenticate"].startswith("Basic realm=")
    for path in ("/healthz", "/-/ready", "/-/healthy"):
        assert locked.get(path).json() == {"status": "ok"}


@pytest.mark.parametrize(
    "sent", [{"Authorization": f"Bearer {TOKEN}"}, basic("ada", "correct-horse")]
)
def test_credentials_are_taken(sent: dict[str, str], locked: httpx.Client) -> None:
    """A token by Bearer, a name by Basic."""
    assert locked.get("/api/marks", headers=sent).status_code == 200


def test_a_token_in_the_address_becomes_a_cookie(locked: httpx.Client) -> None:
    """It is taken once, and the address is left without it; the cookie is for this page alone."""
    answer = locked.get(f"/?token={TOKEN}&view=routes&name=%C3%A4")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?view=routes&name=%C3%A4"
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    for part in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert part in cookie
    assert "Secure" not in cookie
    assert locked.get("/api/marks").status_code == 200  # the client keeps it
    locked.cookies.clear()
    assert locked.get("/api/marks").status_code == 401


def test_a_wrong_token_is_refused_though_there_is_a_cookie(locked: httpx.Client) -> None:
    """And leaves no other."""
    assert locked.get(f"/?token={TOKEN}").status_code == 303
    answer = locked.get("/?token=wrong")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_a_link_from_another_site_opens_too(locked: httpx.Client) -> None:
    """A redirect of such a navigation goes without the cookie, so the browser is redirected."""
    answer = locked.get(f"/?token={TOKEN}", headers={"Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, answer.headers["refresh"]) == (200, "0; url=/")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "set-cookie" in answer.headers


def test_a_cookie_goes_encrypted_where_the_page_does(server: Server) -> None:
    """And below the mount alone."""
    dashboard = Dashboard(server.url, access=Login([TOKEN]))
    with asking(dashboard, root_path="/metrics", base_url="https://localhost") as client:
        answer = client.get(f"/metrics/?token={TOKEN}")
        assert answer.headers["location"] == "/metrics/"
        assert "Secure" in answer.headers["set-cookie"]
        assert "Path=/metrics/" in answer.headers["set-cookie"]
        refused = client.get("/metrics/", headers={"Cookie": "x=1"})
        assert refused.headers["www-authenticate"] == 'Bearer realm="redmeter"'
    dashboard.close()


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
#: What a browser sends that opens a page.
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def signing(server: Server) -> Iterator[httpx.Client]:
    """A client of a dashboard that asks for a token."""
    dashboard = Dashboard(server.url, access=Login([TOKEN, f"{TOKEN}-2"], sleep=no_wait))
    with asking(dashboard) as client:
        yield client
    dashboard.close()


def is_form(answer: httpx.Response) -> bool:
    """Whether an answer is the form, under the policy of all answers but for its own needs."""
    if not answer.headers["content-type"].startswith("text/html"):
        return False
    assert answer.status_code == 401
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["www-authenticate"] == 'Bearer realm="redmeter"'
    assert answer.headers["x-frame-options"] == "DENY"
    policy = dict(
        part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["form-action"] == "'self'"
    assert "script-src" not in policy
    style = answer.text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy["style-src"] == f"'sha256-{digest}'"
    return True


def test_a_browser_is_asked_for_the_token_by_a_form(signing: httpx.Client) -> None:
    """On the page alone; it says where a token may come from. Programs get JSON."""
    answer = signing.get("/?range=60", headers=BROWSER)
    assert is_form(answer)
    for text in ('<label for="token">', "redmeter up", "REDMETER_TOKEN", "--token-file"):
        assert text in answer.text
    assert 'role="alert"' not in answer.text
    assert "<script" not in answer.text
    for path in PATHS[1:]:
        assert error_of(signing.get(path, headers=BROWSER))["code"] == "login-needed"
    error = error_of(signing.get("/"))
    assert "REDMETER_TOKEN" in error["fix"]
    assert "sign in" in error["fix"]
    assert "token=" not in str(error)


@pytest.mark.parametrize("token", [TOKEN, f"{TOKEN}-2"])
def test_the_form_becomes_a_cookie_and_the_page_that_was_asked_for(
    token: str, signing: httpx.Client
) -> None:
    """The address holds no token, and is of this site."""
    answer = signing.post("/?range=60&name=%C3%A4&token=x", data={"token": f" {token}\n"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/?range=60&name=%C3%A4")
    cookie = answer.headers["set-cookie"]
    assert token not in cookie
    for part in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert part in cookie
    assert signing.get("/api/marks").status_code == 200
    for evil in ("/?next=//evil.example", "/?url=https://evil.example/"):
        where = signing.post(evil, data={"token": token}).headers["location"]
        assert where.startswith("/?")


@pytest.mark.parametrize("sent", ["wrong", "", "ä", "\x00", TOKEN[:-1], f"{TOKEN} {TOKEN}"])
def test_a_wrong_token_gets_the_form_again_with_a_message(sent: str, signing: httpx.Client) -> None:
    """And is not repeated; nor is one in the address."""
    for answer in (
        signing.post("/", data={"token": sent}, headers=BROWSER),
        signing.get("/", params={"token": sent or "wrong"}, headers=BROWSER),
    ):
        assert is_form(answer)
        assert 'role="alert">This token is not valid.' in answer.text
        assert 'aria-invalid="true"' in answer.text
        assert "set-cookie" not in answer.headers
        assert TOKEN[:-1] not in answer.text
    assert signing.get("/api/marks").status_code == 401


def test_nothing_but_the_form_is_taken(signing: httpx.Client, locked: httpx.Client) -> None:
    """Not from other sites, not of any size, and nowhere else; nor where there is no token."""
    form = {"token": TOKEN}
    for site in ("cross-site", "same-site"):
        answer = signing.post("/", data=form, headers={"Sec-Fetch-Site": site})
        assert (answer.status_code, error_of(answer)["code"]) == (403, "cross-site")
        assert "set-cookie" not in answer.headers
    answer = signing.post("/", data={"token": "x" * 5000})
    assert (answer.status_code, error_of(answer)["code"]) == (413, "form-too-large")
    answer = signing.post("/", json=form)
    assert (answer.status_code, error_of(answer)["code"]) == (415, "not-a-form")
    for path in PATHS[1:]:
        assert signing.post(path, data=form).status_code == 405
    assert signing.put("/", data=form).status_code == 405
    assert signing.post("/", content=b"&" * 50, headers=FORM).status_code == 401


def test_an_application_has_a_form_of_its_own(server: Server) -> None:
    """So there is none of ours."""
    for access in (only_ada, "open"):
        dashboard = Dashboard(server.url, access=access)
        with asking(dashboard) as client:
            assert client.post("/", data={"token": TOKEN}).status_code == 405
            if access != "open":
                assert error_of(client.get("/", headers=BROWSER))["code"] != ""
        dashboard.close()


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "///x"])
def test_an_address_that_is_sent_back_is_here(path: str) -> None:
    """`//name` would be another host."""
    assert local(path).startswith("/")
    assert not local(path).startswith(("//", "/\\"))


def test_names_and_passwords_have_the_form_too(server: Server) -> None:
    """A browser gets a cookie for them; with tokens, one form takes both."""
    dashboard = Dashboard(server.url, access=Login(users={"ada": "correct-horse"}, sleep=no_wait))
    with asking(dashboard) as client:
        form = client.get("/", headers=BROWSER)
        assert is_form(form)
        for text in ('<label for="username">Name', '<label for="token">Password', "--users-file"):
            assert text in form.text
        for name, password in (("ada", "wrong"), ("eve", "correct-horse"), ("", "correct-horse")):
            answer = client.post("/", data={"username": name, "token": password})
            assert is_form(answer)
            assert "correct" not in answer.text
        sent = {"username": "ada", "token": "correct-horse"}
        assert client.post("/?range=60", data=sent).status_code == 303
        assert client.get("/api/marks").status_code == 200
    dashboard.close()
    both = Dashboard(server.url, access=Login([TOKEN], {"ada": "correct-horse"}, sleep=no_wait))
    for form_sent in (sent, {"username": "", "token": TOKEN}):
        with asking(both) as client:
            assert client.post("/", data=form_sent).status_code == 303
            assert client.get("/api/marks").status_code == 200
    both.close()


def test_signing_out_ends_a_sign_in(signing: httpx.Client) -> None:
    """By a link of the page; another site cannot do it. The page knows that it can by a cookie."""
    signing.post("/", data={"token": TOKEN})
    assert signing.cookies["redmeter-signed-in"] == "1"
    other = signing.get("/sign-out", headers={"Sec-Fetch-Site": "cross-site"})
    assert error_of(other)["code"] == "cross-site"
    assert signing.get("/api/marks").status_code == 200
    answer = signing.get("/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert not signing.cookies
    assert signing.get("/api/marks").status_code == 401


def test_the_name_of_the_cookie_is_the_same_for_all_tokens(server: Server) -> None:
    """It has the port, as cookies ignore ports, and nothing of the token."""
    names = []
    for token in (TOKEN, f"{TOKEN}-2"):
        dashboard = Dashboard(server.url, access=Login([token]))
        with asking(dashboard, base_url="http://localhost:8899") as client:
            client.get(f"/?token={token}")
            names.append(sorted(client.cookies))
        dashboard.close()
    assert names == [["redmeter-8899", "redmeter-signed-in"]] * 2


WRONG: list[dict[str, Any]] = [
    {"url": "/?token=guess-guess"},
    {"url": "/api/marks", "headers": {"Authorization": "Bearer guess-guess"}},
    {"url": "/api/marks", "headers": basic("ada", "guess-guess")},
    {"url": "/", "method": "POST", "data": {"token": "guess-guess"}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=["address", "bearer", "basic", "form"])
def test_failures_are_answered_later_and_later_and_logged(
    wrong: dict[str, Any], server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Those of one address; the log has the address, and no secret."""
    waits: list[float] = []

    async def waited(seconds: float) -> None:
        waits.append(seconds)

    login = Login([TOKEN], {"ada": "correct-horse"}, sleep=waited)
    dashboard = Dashboard(server.url, access=login)
    with asking(dashboard) as client, caplog.at_level("WARNING"):
        client.get("/api/marks")  # without credentials, which is no guess
        for _ in range(FREE + 7):
            assert client.request(**{"method": "GET", **wrong}).status_code == 401
        assert waits == [0.5, 1, 2, 4, LONGEST_DELAY, LONGEST_DELAY, LONGEST_DELAY]
        for sent in ({"Authorization": f"Bearer {TOKEN}"}, basic("ada", "correct-horse")):
            assert client.get("/api/marks", headers=sent).status_code == 200
        assert client.post("/", data={"token": TOKEN}).status_code == 303
        assert client.get("/api/marks").status_code == 200
    dashboard.close()
    assert len(waits) == 7
    logged = [r.getMessage() for r in caplog.records if "sign-in failed" in r.getMessage()]
    assert len(logged) == FREE + 7
    assert "127.0.0.1" in logged[0]
    assert "guess" not in "".join(logged)


def test_failures_that_wait_are_bounded_and_delay_nobody_else(server: Server) -> None:
    """Further ones are refused; valid credentials pass, from the same address too."""

    async def attempt() -> list[int]:
        until, full, held_now = asyncio.Event(), asyncio.Event(), list[float]()

        async def held(seconds: float) -> None:
            held_now.append(seconds)
            if len(held_now) == MAX_DELAYED:
                full.set()
            await until.wait()

        app = Dashboard(server.url, access=Login([TOKEN], sleep=held))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            guesses = [
                asyncio.create_task(client.get("/api/marks", headers={"Authorization": "Bearer x"}))
                for _ in range(FREE + MAX_DELAYED)
            ]
            await asyncio.wait_for(full.wait(), 30)
            refused = await client.get("/api/marks", headers={"Authorization": "Bearer x"})
            passed = await client.get("/api/marks", headers={"Authorization": f"Bearer {TOKEN}"})
            assert sum(guess.done() for guess in guesses) <= FREE
            until.set()
            answers = await asyncio.gather(*guesses)
        app.close()
        assert refused.headers["retry-after"] == "8"
        return [refused.status_code, passed.status_code, *{each.status_code for each in answers}]

    assert asyncio.run(attempt()) == [429, 200, 401]
