"""What the page costs: its JSON, its round trips, the browser, and the server. Rows for run.py."""

import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import redis

from redmeter import store as stores
from redmeter.dashboard.api.endpoints import API, ENDPOINTS
from redmeter.dashboard.api.parameters import parse_query
from redmeter.dashboard.api.serialize import as_json
from redmeter.dashboard.cache import Body
from redmeter.names import HITS, HITS_FAILED, HITS_SECONDS, canonical
from redmeter.store import Store
from redmeter.stored.keys import DEFAULT_RETENTION, Keys, entry
from support import chromium
from support.observed import put_observed
from support.stores import exchanges
from table import Row, milli, sized, turns

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

#: Seconds for which a page is watched.
WATCHED = sized(20.0, 1.0)
#: Counters of the smaller and of the larger store, and how often the overview is asked for.
FEW, MANY, ASKED = sized(1_000, 400), sized(20_000, 500), sized(40, 2)
#: Series that are visible at once, and how many times others are.
VISIBLE, REFRESHES = 50, sized(14, 1)


def overview(conn: redis.Redis, url: str) -> Iterator[Row]:
    """The overview's JSON, compressed, with FEW and with MANY counters; 300 of them are pages'."""
    p95: dict[int, float] = {}
    for number in (FEW, MANY):
        conn.flushall()
        with _opened(url) as store:
            _fill(conn, number)
            with _trips() as trips:
                taken = [_answering(API(store), "overview") for _ in range(ASKED)]
            watched = API(store)
            again = statistics.median(_answering(watched, "overview") for _ in range(sized(10, 1)))
            before = _cpu(conn)
            for _ in range(10):
                _answer(API(store), "overview")
            server = (_cpu(conn) - before) / 10
        p95[number] = sorted(taken)[ASKED * 37 // 40]
        note = (
            f"{len(trips) / ASKED:.1f} round trips, server {milli(server)}; watched {milli(again)}"
        )
        ratio = None if number == FEW else p95[number] / p95[FEW]
        target = "none" if ratio is None else "<= 3"
        yield Row(
            f"overview of {number:,} counters, p95", milli(p95[number]), "", ratio, target, note
        )


def visible(conn: redis.Redis, url: str) -> Iterator[Row]:
    """VISIBLE series of 120 samples: one request, and 50 requests for one each, by HTTP."""
    _fill(conn, FEW)
    names = [
        f"name=shop_{n % 40:02}_events%7Bkind%3D%22{n}%22%7D" for n in range(VISIBLE * REFRESHES)
    ]
    parts = [
        names[at : at + VISIBLE] for at in range(0, len(names), VISIBLE)
    ]  # each is asked once: none is cached
    with _served(url) as address, _connected(address) as get:
        get(names[-1])
        rounds = [(_taken(get, ["&".join(some)]), _taken(get, some)) for some in parts]
    mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(a / b for a, b in rounds)
    with _opened(url) as store, _trips() as trips:
        api = API(store)
        _answer(api, "series", "&".join(parts[0]))
        number = len(trips)
        one, other, within = turns(
            lambda: _answer(api, "series", "&".join(parts[0])),
            lambda: [_answer(api, "series", name) for name in parts[0]],
            rounds=15,
            calls=3,
        )
    note = f"round trips: {number}; without HTTP {milli(one)}, {milli(other)}: {within:.2f}"
    yield Row(
        f"{VISIBLE} visible series, one refresh", milli(mine), milli(theirs), ratio, "<= 0.4", note
    )


def page(conn: redis.Redis, url: str) -> Iterator[Row]:
    """A page in a browser: until it is ready, what is transferred, what it costs while watched."""
    path = chromium.find()
    if path is None:
        print(f"left out: page (no Chromium: set {chromium.NAMED})", file=sys.stderr)
        return
    from playwright.sync_api import sync_playwright

    _fill(conn, FEW)
    with _served(url) as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=chromium.flags())
        ready, sizes = [], []
        for _ in range(sized(7, 1)):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            tab = context.new_page()
            began = time.perf_counter()
            tab.goto(address)
            tab.get_by_role("list", name="Key figures").wait_for()
            ready.append(time.perf_counter() - began)
            sizes.append(
                tab.evaluate(
                    """performance.getEntriesByType("resource").concat(
                        performance.getEntriesByType("navigation"))
                        .reduce((sum, e) => sum + e.transferSize, 0)"""
                )
            )
            context.close()
        size = f"{statistics.median(sizes) / 1000:.0f} kB transferred"
        yield Row(
            "page ready after navigation", milli(statistics.median(ready)), "", None, "none", size
        )
        for query, target in (("", "<= 0.01"), ("?range=1", "none")):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            tab = context.new_page()
            tab.goto(address + query)
            tab.get_by_role("list", name="Key figures").wait_for()
            share, asked = _watched(tab, conn)
            name = "default refresh" if not query else "2 min by 1 s"
            yield Row(
                f"watched page, server, {name}",
                f"{share:.2%}",
                "of a core",
                share,
                target,
                f"{asked / WATCHED:.1f} requests a second",
            )
            context.close()
        browser.close()


def _watched(tab: "Page", conn: redis.Redis) -> tuple[float, int]:
    """Watch a page; return the part of a core that the server took, and how often it was asked."""
    asked: list[str] = []

    def note(request: "Request") -> None:
        asked.append(request.url)

    tab.on("request", note)
    before = _cpu(conn)
    tab.wait_for_timeout(WATCHED * 1000)
    return (_cpu(conn) - before) / WATCHED, len(asked)


# --- What they share -----------------------------------------------------------------------


def _fill(conn: redis.Redis, number: int) -> None:
    """Write counters, 120 samples each at the three precisions that the page reads, and pages."""
    keys, now = Keys(), int(time.time())
    pages = [("GET", f"/page/{n // 3}", ("2xx", "4xx", "5xx")[n % 3]) for n in range(299)]
    names = [f'shop_{n % 40:02}_events{{kind="{n}"}}' for n in range(number - 300)]
    names += [
        canonical("http_requests", dict(zip(("method", "route", "status"), one, strict=True)))
        for one in pages
    ]
    pipe = conn.pipeline(transaction=False)
    for at, name in enumerate([*names, HITS, HITS_FAILED]):
        for precision in DEFAULT_RETENTION:
            pipe.zadd(keys.known, {entry(precision, name): 0})
            if precision in (60, 300, 3600):
                start = now // precision * precision
                samples: Mapping[Any, Any] = {
                    start - n * precision: (at + n) % 50 + 1 for n in range(119, -1, -1)
                }
                pipe.hset(keys.count(precision, name), mapping=samples)
        if at % 500 == 499:
            pipe.execute()
    pipe.execute()
    given = {
        canonical("http_request_seconds", {"method": "GET", "route": f"/page/{n}"}): [
            (now - 60.0 * minute, 0.001 * (n + 1) * (1 + minute % 5)) for minute in range(120)
        ]
        for n in range(100)
    }
    given[HITS_SECONDS] = [one for some in given.values() for one in some]
    put_observed(conn, given)


def _answer(api: API, name: str, query: str = "") -> Body:
    """Answer a request as the application does, without its cache."""
    endpoint = next(one for one in ENDPOINTS if one.path == f"/api/{name}")
    asked = "&".join(filter(None, ["precision=60", query]))
    values = parse_query(endpoint, asked.encode())
    return Body(as_json(api.answer(endpoint, values)), "application/json")


def _answering(api: API, name: str) -> float:
    """Return how long an answer takes, seconds."""
    began = time.perf_counter()
    _answer(api, name)
    return time.perf_counter() - began


def _cpu(conn: redis.Redis) -> float:
    """Return the processor time that the server has taken, seconds."""
    told: Any = conn.info("cpu")
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


@contextmanager
def _opened(url: str) -> Iterator[Store]:
    store = stores.open(url)
    assert store is not None
    store.load_config()  # as the first write does
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _connected(address: str) -> Iterator[Callable[[str], None]]:
    """Connect to a page; yield what asks for series by a query, on one connection."""
    host = urlsplit(address)
    connection = http.client.HTTPConnection(str(host.hostname), host.port, timeout=10)

    def get(query: str) -> None:
        connection.request("GET", f"{host.path}api/series?precision=60&{query}")
        with connection.getresponse() as answer:
            assert answer.status == 200
            answer.read()

    try:
        yield get
    finally:
        connection.close()


def _taken(get: Callable[[str], None], queries: Iterable[str]) -> float:
    began = time.perf_counter()
    for query in queries:
        get(query)
    return time.perf_counter() - began


@contextmanager
def _trips() -> Iterator[list[int]]:
    """Record each round trip."""
    with pytest.MonkeyPatch.context() as patch, exchanges(patch) as seen:
        yield seen


@contextmanager
def _served(url: str) -> Iterator[str]:
    """Serve the page by `redmeter up`; yield its address."""
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "redmeter", "up", "--port", "0"]
        env = os.environ | {"HOME": home, "XDG_STATE_HOME": home, "REDMETER_URL": url}
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=-3, text=True, env=env)
        try:
            assert up.stdout is not None
            yield next(found[0] for line in up.stdout if (found := re.search(r"http://\S+", line)))
        finally:
            up.terminate()
            up.wait()


ROWS = {"overview": overview, "visible": visible, "page": page}
