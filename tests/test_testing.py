"""The Meter for users' own tests: it takes, refuses and shows what a Meter does, serverless."""

import logging
from typing import Any

import pytest

from redmeter import (
    InvalidName,
    InvalidSetting,
    InvalidValue,
    LimitExceeded,
    Meter,
    UnknownPrecision,
)
from redmeter.integrations.logging import install
from redmeter.testing import Event, ManualClock, MemoryMeter
from support.servers import Server

#: A Unix time at the start of a day, and 40 s later.
DAY = 1_700_006_400
THEN = DAY + 40.0


@pytest.fixture
def meter() -> MemoryMeter:
    """A meter whose clock stands still."""
    return MemoryMeter(clock=ManualClock(THEN))


def test_what_was_counted_can_be_asserted(meter: MemoryMeter) -> None:
    """Over all label sets of a name, or those that match."""
    meter.count("signups")
    meter.count("signups", 2, labels={"plan": "pro"})
    meter.counter("signups", labels={"plan": "pro"}).inc()
    assert meter.recorded("signups") == 4
    assert meter.recorded("signups", labels={"plan": "pro"}) == 3
    assert meter.recorded('signups{plan="pro"}') == 3
    assert meter.recorded("logins") == 0


def test_what_a_gauge_was_set_to_can_be_asserted(meter: MemoryMeter) -> None:
    """The last value; a counter of that name is another series."""
    meter.count("depth")
    assert meter.value("depth") is None
    for value in (3, 17.5):
        meter.gauge("depth").set(value)
    assert meter.value("depth") == 17.5
    assert meter.recorded("depth") == 1


def test_what_was_observed_can_be_asserted(meter: MemoryMeter) -> None:
    """In order, by series; what is not finite is left out, as nothing of it is stored."""
    meter.count("size_bytes")
    meter.gauge("size_bytes").set(7)
    for value in (3, 1.5, float("nan"), -2, 10**400):
        meter.observe("size_bytes", value, at=DAY)
    meter.histogram("size_bytes", labels={"a": "b"}).observe(4)
    assert meter.observed("size_bytes") == [3.0, 1.5, -2.0]
    assert meter.observed("size_bytes", labels={"a": "b"}) == [4.0]
    assert meter.observed("other") == []
    health = meter.recorder_health()
    assert (health.recorded, health.dropped, health.lost()) == (2, 2, {"not-finite": {0: 2}})
    assert (meter.recorded("size_bytes"), meter.value("size_bytes")) == (1, 7.0)
    assert meter.events[2] == Event("size_bytes", DAY, None, None, 3.0)
    with pytest.raises(TypeError):
        meter.observe("size_bytes", "3")  # type: ignore[arg-type]


def test_every_call_is_kept_in_order_until_it_is_forgotten(meter: MemoryMeter) -> None:
    """With the time at which it happened, which is the clock's or the one given."""
    meter.count("a", at=DAY)
    meter.clock.advance(5)
    meter.gauge("b").set(2)
    assert meter.events == [Event("a", DAY, 1, None), Event("b", THEN + 5, None, 2.0)]
    meter.mark("v1")
    meter.log("app", "x")
    meter.forget()
    assert (meter.events, meter.recorded("a"), meter.names()) == ([], 0, [])
    assert (meter.marks(), meter.messages, meter.loggers()) == ([], [], [])


def test_what_was_logged_comes_the_newest_first(meter: MemoryMeter) -> None:
    """Messages as many as asked for, and loggers, which log again."""
    for logger in ("a", "b", "c", "b"):
        meter.log(logger, f"of {logger}")
        meter.clock.advance(1)
    assert [(s.logger, s.last) for s in meter.loggers()] == [
        ("b", THEN + 3),
        ("c", THEN + 2),
        ("a", THEN),
    ]
    assert [m.time for m in meter.log_messages("b")] == [THEN + 3, THEN + 1]
    assert [m.time for m in meter.log_messages("b", limit=1)] == [THEN + 3]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda meter: meter.count("a{"), InvalidName),
        (lambda meter: meter.counter("\n"), InvalidName),
        (lambda meter: meter.count("a", 1.5), TypeError),
        (lambda meter: meter.count("a", -1), InvalidValue),
        (lambda meter: meter.count("a", at=float("nan")), InvalidValue),
        (lambda meter: meter.series("a", precision=7), UnknownPrecision),
        (lambda meter: meter.top(precision=7), UnknownPrecision),
        (lambda meter: meter.top(precision=60, last=0), InvalidValue),
        (lambda meter: meter.top(precision=60, limit=-1), LimitExceeded),
        (lambda meter: meter.series_many(["a"] * 5001, precision=60), LimitExceeded),
        (lambda meter: meter.series("a", precision=60, since=1e300), InvalidValue),
        (lambda meter: meter.gauge_series("a", precision=60, until=float("nan")), InvalidValue),
    ],
)
def test_what_a_meter_refuses_is_refused(
    meter: MemoryMeter, call: Any, error: type[Exception]
) -> None:
    """With the same errors, and nothing is recorded."""
    with pytest.raises(error):
        call(meter)
    assert meter.events == []


def test_readings_are_those_of_a_meter_on_a_server(server: Server) -> None:
    """The same calls at the same times give the same series, totals, names and rankings."""
    with server.client() as client:
        clock = ManualClock(float(client.time()[0]))
    with Meter(server.url, clock=clock, sync=True) as real:
        memory = MemoryMeter(clock=clock)
        for meter in (real, memory):
            now = clock.wall()
            for ago, plan in ((0, "pro"), (61, "free"), (3, "pro"), (130, "pro"), (0, "free")):
                meter.count("orders", 1 + ago % 3, labels={"plan": plan}, at=now - ago)
            meter.count("hits", at=now - 7)
            meter.gauge("depth").set(4)
        for precision in (1, 60, 86400):
            names = real.names()
            assert (
                memory.names()
                == names
                == ["hits", *(f'orders{{plan="{p}"}}' for p in ("free", "pro"))]
            )
            theirs = real.series_many(names, precision=precision)
            ours = memory.series_many(names, precision=precision)
            for name in names:
                # A second may pass on the server meanwhile: its newest slice is a later one.
                shared = [sample for sample in theirs[name] if sample in list(ours[name])]
                assert [s for s in ours[name] if s.value] == [s for s in shared if s.value]
                assert memory.total(name) == real.total(name)
            assert memory.top("orders", by="plan", precision=86400) == real.top(
                "orders", by="plan", precision=86400
            )
            ours_set = [s for s in memory.gauge_series("depth", precision=precision) if s.value]
            theirs_set = [s for s in real.gauge_series("depth", precision=precision) if s.value]
            assert ours_set == theirs_set


def test_nothing_is_started_and_nothing_is_waited_for(meter: MemoryMeter) -> None:
    """The rest of a meter's face is there and does nothing."""
    with meter:
        meter.count("a")
        assert meter.flush()
        assert meter.recorder_health().buffered == 0
    assert meter.recorded("a") == 1
    assert repr(meter) == "<MemoryMeter 1 events>"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda m: m.summary("x", precision=60, labels={"": "b"}), InvalidName),
        (lambda m: m.summary("x", precision=1), UnknownPrecision),
        (lambda m: m.summary_many(["x"] * 501, precision=60), LimitExceeded),
        (lambda m: m.summary_many("abc", precision=60), TypeError),
        (lambda m: m.series_many("abc", precision=60), TypeError),
        (lambda m: m.log_frequencies("a\nb"), InvalidName),
        (lambda m: m.log_messages(""), InvalidName),
        (lambda m: m.log_messages("a", severity=1.5), TypeError),
        (lambda m: m.log_changes(7), InvalidName),
        (lambda m: m.top("x", precision=60, limit=1001), LimitExceeded),
        (lambda m: m.top("x", precision=60, order="p95", limit=1001), LimitExceeded),
        (lambda m: m.top("x", precision=60, last="5x"), InvalidValue),
        (lambda m: m.top("x", precision=60, labels=["a"]), TypeError),
        (lambda m: m.mark(), InvalidValue),
    ],
)
def test_what_cannot_be_asked_of_a_store_cannot_be_asked_in_memory(
    server: Server, meter: MemoryMeter, call: Any, error: type[Exception]
) -> None:
    """By the same errors with the same words."""
    said = []
    with Meter(server.url) as real:
        for one in (real, meter):
            one.count("y")
            one.observe("x", 1.0)
            assert one.flush()
            with pytest.raises(error) as caught:
                call(one)
            said.append(str(caught.value))
    assert said[0] == said[1]


def test_settings_are_those_of_a_meter() -> None:
    """What is kept of histograms, how many messages are, what a mark is called."""
    meter = MemoryMeter(
        release="v7", histogram_retention="10=3", retention={5: 4}, recent_messages=2
    )
    meter.mark()
    assert [mark.label for mark in meter.marks()] == ["v7"]
    meter.observe("x", 1.0)
    assert meter.summary("x", precision=10).count == 1
    for n in range(3):
        meter.log("app", f"{n}")
        meter.log("app", f"{n}", severity="error")
        meter.clock.advance(1)
    assert [m.text for m in meter.log_messages("app")] == ["2", "2", "1", "1"]
    assert len(meter.logged("app")) == 6
    with pytest.raises(UnknownPrecision):
        meter.series("x", precision=10)
    with pytest.raises(InvalidSetting):
        MemoryMeter(recent_messages=0)


def test_what_is_logged_is_of_the_time_that_the_clock_shows(meter: MemoryMeter) -> None:
    """Records carry that of the machine, of which the clock knows nothing."""
    log = logging.getLogger("shop.memory")
    handler = install(meter, logger=log)
    try:
        log.warning("retrying %d", 7)
        record = log.makeRecord("shop.memory", logging.INFO, "", 1, "late", (), None)
        record.created -= 30
        log.handle(record)
    finally:
        log.removeHandler(handler)
    assert meter.log_frequencies("shop.memory")[0].count == 1
    assert [change.kind for change in meter.log_changes()] == ["new", "new"]
    late, now = meter.log_messages("shop.memory")[::-1]
    assert (now.time, now.text) == (THEN, "retrying 7")
    assert late.time == pytest.approx(THEN - 30, abs=5)
