"""Fuzz: a store in which another program has put what it liked, read by the page and the command.

Valid content of every kind is written, then some of it is replaced by hostile texts. Whatever that
is, each endpoint answers with JSON that browsers take, or says in its own words why it cannot; and
the command prints what no terminal takes for orders.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import Meter
from redmeter.dashboard import Dashboard
from redmeter.dashboard import app as page
from support.asking import asking as client_of
from support.fuzzing import fuzzed_slowly, mutated_bytes
from support.invoking import Run, invoking
from support.servers import Server

PATHS = (
    *("/api/overview?precision=60", "/api/routes", "/api/routes?order=p95", "/api/doctor"),
    *("/api/metrics?grouped=1&order=change", "/api/metrics?kind=gauge"),
    *("/api/metrics?kind=histogram&grouped=1", "/api/detail?name=hits", "/api/detail?name=took"),
    *("/api/detail?name=depth", "/api/series?name=hits", "/api/names", "/api/marks"),
    *("/api/summary?name=took&over_time=1", "/api/top?name=http_requests&by=route"),
    *("/api/top?name=took&order=p95", "/api/messages", "/api/messages?logger=shop"),
    "/api/forecast?name=hits",
    "/api/verdict",
)
CALLS = (
    *(("doctor",), ("series", "hits"), ("names",), ("names", "--kind", "gauge"), ("retention",)),
    *(
        ("summary", "took"),
        ("top", "http_requests", "--by", "route"),
        ("top", "took", "--order", "p95"),
    ),
    *(("logs",), ("logs", "shop"), ("logs", "--changes"), ("logs", "-c"), ("mark", "--list")),
    *(("forecast", "hits"), ("clean",), ("doctor", "--json"), ("logs", "--json")),
)

#: What a terminal would take for an order, or a reader for other text than it is.
ORDERS = set(
    map(chr, [*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0xFEFF])
)


@pytest.fixture
def filled(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server with something of everything."""
    monkeypatch.setattr(page, "KEEP", 0.0)
    fill(server)
    return server


def fill(server: Server) -> None:
    """Write something of everything."""
    with server.client() as client:
        client.flushall()
    with Meter(server.url, sync=True) as meter:
        meter.count("hits", 12)
        for status in ("2xx", "5xx"):
            labels = {"method": "GET", "route": "/", "status": status}
            meter.count("http_requests", 3, labels=labels)
        meter.observe("http_request_seconds", 0.25, labels={"method": "GET", "route": "/"})
        for value in (0.5, 1.5, 12.0):
            meter.observe("took", value)
        meter.gauge("depth").set(7.5)
        meter.log("shop", "cannot pay %s", 12, severity="error")
        meter.mark("v1.4.2")


@pytest.fixture
def asked(filled: Server, caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[str], Any]]:
    """Asks the page for a path; what fails there is an error."""
    dashboard = Dashboard(filled.url, access="open")
    with client_of(dashboard) as client:

        def ask(path: str) -> Any:
            answer = client.get(path)
            assert answer.status_code in (200, 400, 503), (path, answer.text[:300], caplog.text)
            assert answer.content.isascii()
            return json.loads(answer.text, parse_constant=refuse)

        yield ask
    dashboard.close()


def refuse(constant: str) -> None:
    """Refuse what is no JSON."""
    raise AssertionError(f"{constant} is no JSON")


POISON = (
    *("17", "17.0 1700000000.0", "6 27.5 59.208", "0.1|9.0|0|-54=1,0,3/12=2|", "1700000000 1 x"),
    *("2026-11-21T16:13:00.123456Z \x1b[31mred", '{"host":"\\u001b[2J","lost":{"aged":{"1":1}}}'),
    *("<script>alert(1)</script>", "9" * 400, "1e308", "-1e308", "[" * 3000, "60:hits", "14"),
    *("1 1.7e308 1e308", "1700000000.125 \x1b]0;owned\x07", "60:\u202eevil", "60:x{", "shop:error"),
)
#: Which of the keys, which of its elements, and what is put there, by which score.
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 0.999),
        st.floats(0, 0.999),
        st.sampled_from(["element", "member", "type"]),
        mutated_bytes(POISON, most=2),
        st.floats(allow_nan=False) | st.sampled_from([1e308, -1e308, float("inf"), 0.0]),
    ),
    min_size=1,
    max_size=12,
)
Change = tuple[float, float, str, bytes, float]


def poison(server: Server, changes: list[Change]) -> None:
    """Change what is stored."""
    with server.client() as client:
        for place, element, what, text, score in changes:
            keys = sorted(client.scan_iter(count=1000))
            key = keys[int(place * len(keys))]
            kind = client.type(key)
            if what == "type":
                client.delete(key)
                client.set(key, text)
            elif kind == b"hash":
                fields = sorted(client.hkeys(key))
                field = text if what == "member" else fields[int(element * len(fields))]
                client.hset(key, field, text)
            elif kind == b"zset":
                members = client.zrange(key, 0, -1)
                member = text if what == "member" else members[int(element * len(members))]
                client.zadd(key, {member: score})
            elif kind == b"list":
                client.lpush(key, text)
            else:
                client.set(key, text)


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Run a command in this process."""
    with invoking() as run:
        yield run


def test_all_of_it_is_there_as_long_as_nobody_changes_it(
    filled: Server, asked: Callable[[str], Any], run: Run
) -> None:
    """Or the others would read nothing."""
    for path in PATHS:
        assert "error" not in asked(path)
    for call in CALLS:
        done = run(*call, "--url", filled.url)
        assert done.code == (call[0] == "forecast"), call  # of so short a time there is none


@fuzzed_slowly
@given(CHANGES)
def test_the_page_answers_whatever_is_stored(
    filled: Server, asked: Callable[[str], Any], changes: list[Change]
) -> None:
    """With JSON of what can be read, or with a refusal of its own."""
    fill(filled)
    poison(filled, changes)
    for path in PATHS:
        asked(path)


def test_orders_in_every_place_are_printed_as_escapes(filled: Server, run: Run) -> None:
    """In names, texts, patterns, marks, reports: other programs clean nothing."""
    order = "x\x1b[2J\x9b1m\u202ey\x07"
    now = int(time.time())
    with filled.client() as client:
        for width in (1, 5, 60, 300, 3600):
            client.zadd("redmeter:known:", {f"{width}:{order}": 0})
            client.hset(f"redmeter:count:{width}:{order}", now - now % width, 3)
            client.zadd("redmeter:gauges:", {f"{width}:{order}": 0})
        client.hset("redmeter:total:", order, 3)
        client.zadd("redmeter:messages:", {f"{order}:error": now})
        for logger in ("shop", order):
            client.lpush(f"redmeter:recent:{logger}:error", f"2026-11-21T16:13:00Z {order}", order)
            client.zadd(f"redmeter:common:{logger}:error", {order: 1_000})
            client.set(f"redmeter:common:{logger}:error:start", now - now % 3600)
            client.hset(f"redmeter:patterns:{logger}:error", order, f"{now} {now} {order}")
        client.zadd("redmeter:marks:", {f"{now}.000 {order}": now})
        client.zadd("redmeter:writers:", {order: now})
        told = {"host": order, "pid": order, "dropped": 1, "lost": {order: {"1": 2}}}
        waits = {"buffered": 5, "last_trouble": order, "last_flush": now - 500.0}
        client.hset("redmeter:reports:", order, json.dumps(told | waits))
    seen = ""
    for call in (*CALLS, ("series", order), ("logs", order), ("summary", order)):
        done = run(*call, "--url", filled.url)
        assert done.code in (0, 1, 2), call
        assert not ORDERS & set(done.out + done.err), call
        seen += done.out + done.err
    assert seen.count("\\x1b[2J") > 8


@fuzzed_slowly
@given(CHANGES)
def test_the_command_prints_nothing_that_a_terminal_obeys(
    filled: Server, run: Run, changes: list[Change]
) -> None:
    """And ends with a code of its own, not with a traceback."""
    fill(filled)
    poison(filled, changes)
    logging.getLogger("redmeter").setLevel(logging.ERROR)
    for call in CALLS:
        done = run(*call, "--url", filled.url)  # which raises what is no exit code
        assert done.code in (0, 1, 2, 3)
        assert not ORDERS & set(done.out + done.err), call
