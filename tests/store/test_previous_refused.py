"""A store that is moved and answers with a refusal: left out, and named, where that may be."""

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from redmeter import AccessDenied, Meter, StoreError, StoreRefused
from redmeter.dashboard import Dashboard
from support.asking import asking
from support.commands import Home
from support.servers import Server
from support.waiting import eventually

#: What is told of a server that is of no use for now, by why.
REFUSALS = {
    "busy": "is busy with a script",
    "password": "denies access: ",
    "rights": "denies access: ",
}


@pytest.fixture(params=REFUSALS)
def refusal(request: pytest.FixtureRequest) -> str:
    """Why FROM refuses."""
    return str(request.param)


@pytest.fixture
def before(redis62: Server, refusal: str) -> Iterator[str]:
    """The URL of a FROM that refuses."""
    with Meter(redis62.url, sync=True) as meter:
        meter.count("hits")
        meter.count("there")
    users = {"password": "ada:wrong@", "rights": "ada:s@"}
    with redis62.client() as client:
        # All but the indexes.
        keys = "~redmeter:meta:", "~redmeter:count:*", "~redmeter:total:"
        client.execute_command("ACL", "SETUSER", "ada", "on", ">s", "+@all", *keys)
    with busy(redis62) if refusal == "busy" else contextlib.nullcontext():
        yield redis62.url.replace("://", f"://{users.get(refusal, '')}")


@contextlib.contextmanager
def busy(server: Server) -> Iterator[None]:
    """Have a server do nothing but run a script."""

    def run() -> None:
        with contextlib.suppress(redis.ResponseError), server.client() as other:
            other.execute_command("EVAL", "while true do end", 0)

    def is_busy() -> bool:
        try:
            client.ping()
        except redis.ResponseError as error:
            return "BUSY" in str(error)
        return False

    with server.client() as client:
        client.config_set("lua-time-limit", 50)
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            eventually(is_busy, 10.0, "it says that it is busy")
            yield
        finally:
            client.script_kill()
            thread.join(10.0)


@pytest.fixture
def meter(server: Server, before: str) -> Iterator[Meter]:
    """A meter on the store that FROM is moved to, which reads both."""
    with Meter(server.url, previous_url=before, sync=True) as meter:
        meter.count("hits")
        meter.log("app", "hello", severity="error")
        yield meter


def test_the_page_shows_what_lies_in_the_other(meter: Meter, refusal: str) -> None:
    """Each answer names what is missing."""
    with contextlib.closing(Dashboard(meter, access="open")) as page, asking(page) as client:
        for path in ("overview", "counters", "pages", "names", "top?name=hits", "messages"):
            answer = client.get(f"/api/{path}")
            assert answer.status_code == 200, answer.text
            (missing,) = answer.json()["missing"]
            assert REFUSALS[refusal] in missing, path
        assert "hits" in client.get("/api/names").text
        assert client.get("/api/health").status_code == 200


def test_who_needs_both_is_told_which_one_refuses(meter: Meter, refusal: str) -> None:
    """With the class and the code of the error as ever."""
    expected: type[Any] = StoreRefused if refusal == "busy" else AccessDenied
    told = r"the store before \(REDMETER_PREVIOUS_URL\): "
    for ask in (meter.names, lambda: meter.top("hits", precision=60)):
        with pytest.raises(expected, match=told) as caught:
            ask()
        codes = {"busy": "BUSY", "password": "WRONGPASS", "rights": "NOPERM"}
        assert caught.value.code == codes[refusal]


@pytest.mark.slow
def test_commands_go_on_without_it_where_they_may(
    meter: Meter, server: Server, before: str, refusal: str, tmp_path: Path
) -> None:
    """With --partly; the doctor examines the rest, and fails."""
    home = Home(tmp_path, server.url)
    with contextlib.closing(home):
        home.env["REDMETER_PREVIOUS_URL"] = before
        done = home.run("names")
        assert (done.code, done.out) == (3, "")
        assert "the store before (REDMETER_PREVIOUS_URL)" in done.err
        done = home.run("names", "--partly")
        assert done.code == 0, done.err
        assert "hits" in done.out
        assert REFUSALS[refusal] in done.err
        done = home.run("doctor", "--json")
        assert done.code == 1, done.err
        found = json.loads(done.out)
        assert found["series"]["60"] == 1
        (finding,) = (one for one in found["findings"] if one["topic"] == "move")
        assert finding["level"] == "fail"
        assert "cannot be read" in finding["text"]
        assert "wrong" not in done.out


def test_an_error_of_one_key_is_still_an_error(redis62: Server, server: Server) -> None:
    """What a store of another program's answers is not taken for a store that is away."""
    with redis62.client() as client:
        client.set("redmeter:marks:", "theirs")
    with Meter(server.url, previous_url=redis62.url, sync=True) as meter:
        meter.mark("v1")
        assert [mark.label for mark in meter.marks()] == ["v1"]
        with server.client() as client:
            client.delete("redmeter:marks:")
            client.set("redmeter:marks:", "theirs")
        with pytest.raises(StoreError, match="another program keeps"):
            meter.marks()
