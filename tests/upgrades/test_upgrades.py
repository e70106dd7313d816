"""Upgrades: stores of earlier code are read and continued; old and new processes share one."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import redmeter
from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.maintenance import cleaning
from redmeter.store import opening
from support.fixed_time import FixedTime
from support.programs import Programs
from support.servers import Server
from upgrades import stored

FILES = sorted(stored.FOLDER.iterdir())
#: The time at which a stored store is opened: within its last hour.
NOW = stored.START + (stored.HOURS - 1) * 3600.0 + 1.0
#: The start of the newest hour of the store.
HOUR = NOW // 3600 * 3600
#: Records COUNT events one by one, as fast as it can, and stores them in several batches.
WRITER = """
count = int(sys.argv[2])
with Meter(URL, flush_interval=0.05) as meter:
    print(sys.modules["redmeter"].__file__, flush=True)
    for number in range(count):
        meter.count("orders")
        meter.count("signups", 2, labels={"plan": ("pro", "free")[number % 2]})
        meter.observe("checkout_seconds", number % 7)
        if number % 50 == 0:
            time.sleep(0.02)
    assert meter.flush(30.0)
"""
WRITERS, COUNT = 2, 500


class Opened(NamedTuple):
    """A store of earlier code, and a meter of today's."""

    meter: Meter
    server: FixedTime


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def opened(request: pytest.FixtureRequest, server: Server) -> Iterator[Opened]:
    """Load each store, and open it at its own time."""
    with server.client() as client:
        keys = stored.load(client, request.param.read_text(encoding="utf-8"))
        assert client.dbsize() == keys > 50
    with (
        FixedTime(server.port, NOW) as fixed,
        Meter(fixed.url, clock=ManualClock(NOW), flush_interval=3600.0) as meter,
    ):
        yield Opened(meter, fixed)


def test_a_store_of_earlier_code_is_read(opened: Opened) -> None:
    """All that fill.py recorded: sums, values, distributions, messages, marks."""
    meter = opened.meter
    assert meter.total("orders") == 33
    assert meter.total("signups", labels={"plan": "free"}) == 9
    assert meter.total("点击量") == 3
    assert [*meter.series("orders", precision="1h", last="3h").values] == [10, 11, 12]
    assert [*meter.series("signups", precision="1h", last="3h").values] == [5, 5, 5]
    gauge = meter.gauge_series("queue_length", precision="1h", last="3h")
    assert [*gauge.values] == [7.5, 8.5, 9.5]
    summary = meter.summary("checkout_seconds", labels={"shop": "a"}, precision="1h", last="3h")
    assert (summary.count, summary.low, summary.high) == (9, 0.25, 4.0)
    texts = [one.text for one in meter.log_messages("shop.orders")]
    assert [text for text in texts if "order" in text] == [
        f"order {number} of ada paid" for number in (4713, 4712, 4711)
    ]
    assert sorted(mark.label for mark in meter.marks()) == ["v0", "v1", "v2"]


def test_a_store_of_earlier_code_is_continued(opened: Opened) -> None:
    """New events are added to the same intervals, and a cleaner finds nothing wrong."""
    meter = opened.meter
    meter.count("orders", 100)
    meter.count("signups", labels={"plan": "free"})
    meter.gauge("queue_length").set(1)
    meter.observe("checkout_seconds", 2.0, labels={"shop": "a"})
    meter.log("shop.orders", "order %d of %s paid", 4714, "eve", severity="info")
    assert meter.flush(30.0), meter.recorder_health()
    assert meter.total("orders") == 133
    assert [*meter.series("orders", precision="1h", last="3h").values] == [10, 11, 112]
    assert meter.gauge_series("queue_length", precision="1h", last="3h").values[-1] == 1
    assert meter.summary("checkout_seconds", precision="1h", last="3h").count == 10
    rows = meter.log_frequencies("shop.orders", severity="info")
    assert [row.pattern for row in rows] == ["order %d of %s paid"]
    store = opening.open(opened.server.url, clock=ManualClock(NOW))
    assert store is not None
    assert cleaning.clean(store).complete
    store.close()
    assert meter.total("orders") == 133
    assert [*meter.series("orders", precision="1h", last="3h").values] == [10, 11, 112]


@pytest.mark.slow
@pytest.mark.parametrize("commit", [file.stem for file in FILES])
def test_old_and_new_processes_write_one_store_at_once(
    commit: str, server: Server, tmp_path: Path
) -> None:
    """As in a rolling upgrade: each event counts once, whichever code stored it."""
    try:
        source = stored.old_code(commit, tmp_path / "old")
    except stored.NoSuchCommit as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the history is not complete: {error}")
    with Programs(tmp_path, server.url) as programs:
        started = [
            programs.start(WRITER, str(COUNT), python=sys.executable, env=env)
            for env in ({"PYTHONPATH": str(source)}, {})
            for _ in range(WRITERS)
        ]
        code = [Path(program.line(0)).parents[1] for program in started]
        assert code == [source] * WRITERS + [Path(redmeter.__file__).parents[1]] * WRITERS
        ended = [program.finish() for program in started]
    assert [(done.code, done.err) for done in ended] == [(0, "")] * len(started)
    events = 2 * WRITERS * COUNT
    with Meter(server.url) as meter:
        assert meter.total("orders") == events
        minutes = meter.series("orders", precision="1m", last="10m").values
        assert sum(value or 0 for value in minutes) == events
        for plan in ("pro", "free"):
            assert meter.total("signups", labels={"plan": plan}) == events
        summary = meter.summary("checkout_seconds", precision="1m", last="10m")
        assert summary.count == events
        assert summary.total == 2 * WRITERS * sum(number % 7 for number in range(COUNT))
