"""The fixed sequences of operations behind the golden files. Chapters are independent.

Change a chapter only to add to its end, so that a diff of its golden file shows additions alone.
The clock moves by multiples of 0.25 s, to which times to live are rounded.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import flask
import redis
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from redmeter import Meter, book
from redmeter import store as stores
from redmeter.alerting.state import AlertState
from redmeter.alerting.store import AlertStore, Notice, Silence, Transition
from redmeter.clock import ManualClock
from redmeter.ingest import replay
from redmeter.integrations.asgi import RedmeterMiddleware
from redmeter.integrations.flask import Redmeter
from redmeter.integrations.logging import RedmeterHandler
from redmeter.maintenance import cleaning, forgetting
from redmeter.store import Store
from support.asgi import call, http_scope
from support.fixed_time import FixedTime

#: 2100-01-01 12:34:56.25 UTC: far enough from now that no server expires what is written.
START = 4_102_490_096.25

#: A module of an application that fails; its name and lines are part of messages.
_SHOP = """
def pay(plan):
    raise KeyError(plan)

def check_out(plan):
    try:
        pay(plan)
    except KeyError as error:
        raise RuntimeError("no payment") from error

def sell(meter, plan):
    try:
        check_out(plan)
    except RuntimeError as error:
        meter.log("shop.orders", "job %s failed", 7, severity="error", exception=error)

async def fail(request):
    raise LookupError("no such plan")
"""


def _shop() -> dict[str, Any]:
    shop: dict[str, Any] = {"__name__": "shop.checkout"}
    exec(compile(_SHOP, "/srv/shop/checkout.py", "exec"), shop)  # noqa: S102
    return shop


@dataclass(frozen=True)
class World:
    """A store, and the time."""

    server: FixedTime
    #: Of the real server; does not decode.
    client: Any
    clock: ManualClock

    def meter(self, **options: Any) -> Meter:
        """Return a meter that stores at once."""
        return Meter(self.server.url, clock=self.clock, **{"sync": True, **options})

    @contextmanager
    def store(self, **options: Any) -> Iterator[Store]:
        """Return a store."""
        store = stores.open(self.server.url, clock=self.clock, **options)
        assert store is not None
        try:
            yield store
        finally:
            store.close()


def counters(world: World) -> None:
    """Counters: amounts, labels, spellings, times; slices that leave the retention."""
    with world.meter() as meter:
        meter.count("hits")
        meter.count("hits", 41)
        meter.counter("hits").inc(2)
        meter.count("signups", labels={"plan": "pro", "from": "ad"})
        meter.count('signups{plan="free"}', 3)
        meter.count("orders:paid", labels={"text": 'a"b\\c'})
        meter.count("点击量", 2)
        meter.count("nothing", 0)
        meter.count("large", 2**53 + 1)
        meter.count("late", 5, at=world.clock.wall() - 7000)
        meter.count("early", 6, at=world.clock.wall() + 90)
        world.clock.advance(1.5)
        meter.count("hits")
        world.clock.advance(150)
        meter.count("hits", 7)
        world.clock.advance(3600)
        meter.count("hits", 8)
        world.clock.advance(2 * 86400)
        meter.count("hits", 9)


def gauges(world: World) -> None:
    """Gauges: values, times, the newest wins."""
    with world.meter() as meter:
        meter.gauge("queue_length").set(17)
        meter.gauge("queue_length").set(17.5)
        meter.gauge("temperature", labels={"room": "attic"}).set(-3.25e-7)
        world.clock.advance(61)
        meter.gauge("queue_length").set(4)
        world.clock.advance(3600)
        meter.gauge("queue_length").set(5)


def histograms(world: World) -> None:
    """Histograms and their statistics by the hour, over an hour's end; timers."""
    with world.meter() as meter:
        for value in (1, 1.02, 2, 1000, 0, -3):
            meter.observe("cart_value", value)
        for value in (0.012, 0.013, 0.5, 1e-310, 1.7e308):
            meter.observe("checkout_seconds", value, labels={"shop": "a"})
        for name in ("job:last", "job:start"):
            meter.histogram(name).observe(2.5)
        with meter.timer("timed_seconds"):
            world.clock.advance(1.25)
        world.clock.advance(1800)
        meter.observe("cart_value", 12.5)
        meter.observe("cart_value", 11.5, at=world.clock.wall() - 1800)
        world.clock.advance(7200)
        meter.observe("cart_value", 13.5)


def messages(world: World) -> None:
    """Messages by patterns, with exceptions and secrets, over hours; the handler of logging."""
    with world.meter() as meter:
        for delay in (10, 20):
            meter.log("shop.mail", "retrying %s in %d ms", "smtp://mail", delay, severity="warning")
        meter.log("shop.orders", "order 4711 of ada@example.org done")
        meter.log("shop.orders", "order 4712 of bob@example.org done")
        meter.log("shop.orders", "password=hunter2 token=abcdef0123456789abcdef", severity="error")
        meter.log("shop.orders", "two\nlines and a\ttab", severity=15)
        _shop()["sell"](meter, "pro")
        handler = RedmeterHandler(meter)
        record = logging.makeLogRecord(
            {"name": "shop", "levelno": logging.ERROR, "levelname": "ERROR", "msg": "%s: %s"}
            | {"args": ("stock", 12)}
        )
        handler.handle(record)
        world.clock.advance(1800)
        meter.log("shop.orders", "order 4713 of eve@example.org done")
        world.clock.advance(5400)
        meter.log("shop.orders", "order 4714 of eve@example.org done")


def marks(world: World) -> None:
    """Marks: releases and labels, the same label soon after, a label again; the status."""
    with world.meter(release="v1") as meter:
        meter.mark()
        meter.mark("deploy")
        world.clock.advance(120)
        meter.mark("deploy")
        meter.mark("sale begins", at=world.clock.wall() - 3600)
        world.clock.advance(3600)
        meter.mark("deploy")
    with world.meter(release="v2") as meter:
        meter.mark()
        meter.mark()
        meter.status()


def web(world: World) -> None:
    """Requests of an ASGI and a WSGI application: routes, statuses, durations, an exception."""
    with world.meter() as meter:
        taken = itertools.cycle((0.25, 0.5, 1.5))

        async def user(_: Request) -> PlainTextResponse:
            world.clock.advance(next(taken))
            return PlainTextResponse("welcome")

        shop = Mount("/shop/{tenant}", routes=[Route("/fail", _shop()["fail"])])
        app = RedmeterMiddleware(Starlette(routes=[Route("/users/{id}", user), shop]), meter)
        for method, path in (
            *(("GET", f"/users/{number}") for number in range(3)),
            ("POST", "/users/7"),
            ("GET", "/shop/a/fail"),
            ("GET", "/none"),
        ):
            request = {"type": "http.request", "body": b"", "more_body": False}
            asyncio.run(call(app, http_scope(method, path), [request]))

        site = flask.Flask("shop")
        Redmeter(site, meter=meter)

        @site.get("/orders/<int:number>")
        def order(number: int) -> Any:
            world.clock.advance(next(taken))
            return ("missing", 404) if number == 13 else "paid"

        for number in (12, 13):
            site.test_client().get(f"/orders/{number}")


def replayed(world: World) -> None:
    """A small access log, with lines that are none."""

    def line(ago: float, request: str, status: int) -> str:
        at = datetime.fromtimestamp(world.clock.wall() - ago, UTC).strftime("%d/%b/%Y:%H:%M:%S")
        return f'192.0.2.1 - ada [{at} +0000] "{request} HTTP/1.1" {status} 5 "-" "-"'

    log = [
        line(300, "GET /users/7?token=x", 200),
        line(299, "GET /users/8", 200),
        line(200, "POST /cart", 500),
        line(1e9, "GET /old", 200),
        "no line of a log",
        line(6, "GET /", 304),
    ]
    with world.store() as store:
        report = replay.replay(store, [log])
    assert (report.requests, report.too_old, report.malformed) == (5, 1, {"no time": 1})


def buffered(world: World) -> None:
    """All kinds of records in batches of the background thread, and its report."""
    with world.meter(sync=False, flush_interval=3600.0) as meter:
        for amount in (1, 2, 3):
            meter.count("hits", amount)
            meter.count("signups", amount, labels={"plan": "pro"})
            meter.observe("cart_value", 10.0 * amount)
            meter.log("shop", "paid %d", amount)
        meter.gauge("queue_length").set(7)
        meter.gauge("workers", per_process=True).set(3)
        meter.mark("v1")
        assert meter.flush(), meter.recorder_health()
        world.clock.advance(1.0)
        meter.count("hits")


def history(world: World) -> None:
    """Counts of 100 hours, for forecasts; used by the golden files of `public/` only."""
    world.clock.advance(1.0)  # writers of the same second are in the order of their random ids
    with world.meter(sync=False, flush_interval=3600.0) as meter:
        for hour in range(100):
            meter.count("hits", 20 + 5 * hour % 17, at=world.clock.wall() - 3600 * hour)


def listings(world: World) -> None:
    """The functions of the book, which write the keys of its listings."""
    with redis.Redis(port=world.server.port) as conn:
        book.update_counter(conn, "hits")
        book.update_counter(conn, "hits", count=5, now=world.clock.wall() - 90)
        book.log_recent(conn, "shop", "paid 12")
        book.log_common(conn, "shop", "out of stock", "error")
        book.update_stats(conn, "checkout", "AccessTime", 0.5)
        world.clock.advance(3600)
        book.update_counter(conn, "hits")
        book.log_common(conn, "shop", "out of stock", "error")
        book.update_stats(conn, "checkout", "AccessTime", 0.25)
    with world.meter(prefix="") as meter:
        meter.count("hits")
        meter.gauge("queue_length").set(2)
        meter.observe("cart_value", 12.5)
        meter.log("shop", "paid %d", 13)
        meter.mark("v1")


def kept(world: World) -> None:
    """Retention is changed, names are forgotten, a mark is removed; a cleaner, a report."""
    with world.meter() as meter:
        for name in ("hits", "old", 'old{plan="pro"}'):
            meter.count(name)
            meter.observe(name, 2.0)
            meter.gauge(name).set(1)
        meter.log("shop", "paid %d", 13)
        meter.log("worker", "done")
        meter.mark("v1")
        meter.mark("v2")
    with world.store() as store:
        store.change_retention([(10, 60), (1, 0)])
        store.change_retention([(60, 240)], histograms=True)
        assert forgetting.forget(store, "old")
        assert forgetting.forget_logger(store, "worker")
        assert forgetting.forget_mark(store, "v1")
    with world.meter() as meter:
        meter.count("hits", 2)
        world.clock.advance(3000)
        meter.count("later")
    with world.store() as store:
        assert cleaning.clean(store).complete
        store.publish("0" * 32, "{}", instance=True, ended=False)


def alerts(world: World) -> None:
    """An alert that fires, its notice, and a silence."""
    fired = world.clock.wall()
    with world.store() as store:
        states = AlertStore(store, "ada")
        assert states.acquire(60.0) == fired
        states.silence(Silence("s1", "queue*", fired + 600.0, "planned"))
        firing = AlertState(1, "firing", fired, 0.0, "firing", fired, 1_000, ("ops",))
        texts = ("queue", "ops", "firing", "page", "queue is 12", "over 10")
        notice = Notice(0, "k1", "i1", *texts, 12.0, {"host": "a"}, fired, fired)
        transition = Transition("queue", "firing", fired, "page", 12.0, "over 10")
        assert states.write("queue", AlertState(), firing, transition, [notice])


CHAPTERS: tuple[Callable[[World], None], ...] = (
    *(counters, gauges, histograms, messages, marks),
    *(web, replayed, buffered, listings, kept, alerts),
)
