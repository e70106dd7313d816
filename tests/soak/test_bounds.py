"""What recorders may call lost or uncertain, what readers may be told, and what is asked."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter
from redmeter.results import Loss
from soak import asked, explained, readings
from soak.checks import Ledger, Window
from soak.crew import Seen
from soak.journal import ENDING, Book, Journal, Said
from soak.plan import STEPS
from soak.test_checks import COUNTED, SEEN, START, health
from soak.writers import TIMEOUT
from support.history import Stored
from support.servers import Server

pytestmark = pytest.mark.nightly


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Book]:
    """Return what writes a journal of one event, and reads it."""

    def write(slot: str, at: float, **numbers: Any) -> Book:
        journal = Journal(tmp_path, slot)
        journal.look(Said.of(health(0)))
        journal.note("c", at, COUNTED, 3)
        journal.look(Said.of(health(3, **numbers)), last=True)
        journal.close()
        book = Book(next(tmp_path.glob(f"{slot}-*{ENDING}")))
        book.read()
        return book

    return write


def test_only_a_fault_that_may_cost_something_leaves_a_recorder_uncertain(
    written: Callable[..., Book],
) -> None:
    """All others are answered by sending the batch again; with sync=True one is told of them."""
    buffered, told = written("plain1", START, uncertain=1), written("sync", START, uncertain=1)
    now = buffered.looks[-1].time

    def found(book: Book, *windows: Window) -> list[str]:
        return list(explained.uncertain(Ledger([book], windows), list(windows)))

    harmless, long_ago = Window("stopped", now, now), Window("killed", now - 60, now - 50, risk=now)
    lossy = harmless._replace(risk=now)
    assert [len(found(buffered)), len(found(buffered, harmless, long_ago))] == [1, 1]
    assert found(buffered, lossy) == []
    assert [len(found(told)), len(found(told, long_ago))] == [1, 1]
    assert found(told, harmless) == []
    told.looks[-1] = told.looks[-1]._replace(time=told.looks[0].time + TIMEOUT)
    assert found(told) == []


def losses(written: Callable[..., Book], slot: str, ago: float, *lost: Loss) -> list[str]:
    """Return what is wrong with losses of a writer whose only event was so long ago."""
    stored = Stored()
    stored.counted = {1: 120, 60: 120}
    book = written(slot, time.time() - ago, losses=lost)
    return list(explained.losses(Ledger([book], []), stored, [], time.time() - time.monotonic()))


@pytest.mark.parametrize(
    ("reason", "precision", "ago", "events"),
    [
        ("aged", 1, 150, 3),
        ("aged", 60, 7_300, 1),
        ("future", 1, -150, 3),
        ("future", 60, -7_300, 3),
    ],
)
def test_what_was_too_old_or_to_come_may_be_lost_at_a_precision(
    written: Callable[..., Book], reason: str, precision: int, ago: float, events: int
) -> None:
    """Its interval, or less."""
    assert losses(written, "plain1", ago, Loss(reason, COUNTED, precision, events)) == []


@pytest.mark.parametrize(
    ("reason", "series", "precision", "ago", "events"),
    [
        ("aged", COUNTED, 1, 0, 3),
        ("aged", COUNTED, 1, 60, 3),
        ("aged", COUNTED, 60, 150, 3),
        ("aged", COUNTED, 1, 150, 4),
        ("aged", COUNTED, 0, 150, 3),
        ("aged", "others", 1, 150, 3),
        ("aged", COUNTED, 1, -150, 3),
        ("future", COUNTED, 1, 150, 3),
        ("future", COUNTED, 1, -60, 3),
        ("future", COUNTED, 60, -150, 3),
        ("memory", COUNTED, 1, 150, 3),
    ],
)
def test_what_cannot_be_lost_is_not_taken_for_lost(
    written: Callable[..., Book], reason: str, series: str, precision: int, ago: float, events: int
) -> None:
    """It was of the present, at that precision; more than there was; for another reason."""
    assert losses(written, "plain1", ago, Loss(reason, series, precision, events))


def test_who_sets_its_clock_may_hold_things_for_older(written: Callable[..., Book]) -> None:
    """By the widest step of it."""
    one = Loss("aged", COUNTED, 60, 3)
    assert losses(written, "plain1", max(STEPS), one)
    assert losses(written, "stepped", max(STEPS), one) == []


def test_an_outage_makes_things_old(written: Callable[..., Book]) -> None:
    """As long as the longest of them took."""
    stored, now = Stored(), time.monotonic()
    stored.counted = {1: 120}
    book = written("plain1", time.time(), losses=(Loss("aged", COUNTED, 1, 3),))

    def found(seconds: float) -> list[str]:
        windows = [Window("stopped", now - seconds, now)]
        apart = time.time() - time.monotonic()
        return list(explained.losses(Ledger([book], windows), stored, windows, apart))

    assert found(60.0)
    assert found(120.0) == []


def test_readers_are_told_what_is_settled_and_no_more_than_was_recorded(tmp_path: Path) -> None:
    """What a recorder does not know to be stored may be missing, of whatever series it is."""
    journal = Journal(tmp_path, "writer")
    journal.note("c", START, COUNTED, 3)
    journal.look(Said.of(health(3)))
    journal.note("c", START, COUNTED, 2)
    journal.note("o", START, SEEN, 7)
    journal.look(Said.of(health(5, buffered=1)))
    journal.close()
    book = Book(next(tmp_path.glob(f"*{ENDING}")))
    book.read()
    first, last = (look.time for look in book.looks)

    def wrong(amount: int, start: float, end: float, *windows: Window, name: str = COUNTED) -> bool:
        one = Seen("reader", "told", start, end, json.dumps({"total": {name: amount}}))
        return bool(list(readings.readings([one], Ledger([book], windows), list(windows))))

    assert [wrong(n, 0.0, last) for n in (0, 5, 6)] == [False, False, True]
    assert [wrong(n, first, first) for n in (2, 3, 4)] == [True, False, True]
    assert [wrong(n, last, last) for n in (3, 4, 5)] == [True, False, False]
    assert [wrong(n, last, last, name=SEEN) for n in (0, 1, 2)] == [False, False, True]
    before, later = Window("killed", first, first, risk=last), last + 60.0
    assert wrong(3, last, last, before._replace(risk=None))
    assert not wrong(3, last, last, before)
    assert [wrong(n, later, later, before) for n in (0, 6)] == [False, True]
    assert wrong(0, later, later, before._replace(shards=frozenset()))


@pytest.fixture
def recorded(server: Server, conn: Any, tmp_path: Path) -> tuple[Meter, Ledger]:
    """A Meter that has counted, observed and logged what a journal reports of."""
    journal, now = Journal(tmp_path, "writer"), time.time()
    with Meter(server.url) as meter:
        for value in (1, 2, 5):
            journal.note("c", now, COUNTED, value)
            meter.count(COUNTED, value, at=now)
            for name in ("seen.0", "seen.1", "seen.2", "seen.3"):
                journal.note("o", now, name, value)
                meter.observe(name, value, at=now)
                assert meter.flush(5.0)
        journal.note("m", now, "app")
        meter.log("app", "job %d is done", 7)
        assert meter.flush(5.0)
        journal.look(Said.of(meter.recorder_health()), last=True)
    journal.close()
    book = Book(next(tmp_path.glob(f"*{ENDING}")))
    book.read()
    return Meter(server.url), Ledger([book], [])


def test_what_is_asked_in_the_end_is_what_the_keys_hold(
    recorded: tuple[Meter, Ledger], server: Server, conn: Any
) -> None:
    """Totals, intervals, summaries, statistics and messages: each of them may differ."""
    meter, ledger = recorded
    with meter, server.client(decode_responses=True) as client:

        def found() -> list[str]:
            return list(asked.answers(meter, ledger, Stored.read([client])))

        assert found() == []
        for place in ((0, COUNTED), (1, COUNTED), (86400, COUNTED), (60, "seen.0")):
            stored = Stored.read([client])
            stored.slices[place][max(stored.slices[place])] += 1
            assert len(list(asked.answers(meter, ledger, stored))) == 1, place
        conn.zincrby("redmeter:stats:seen.0", 1, "count")
        assert [text.split(",")[0] for text in found()] == ["statistics of seen.0"]
        conn.zincrby("redmeter:stats:seen.0", -1, "count")
        (key,) = conn.keys("redmeter:recent:*")
        conn.lset(key, 0, conn.lindex(key, 0).replace(b"job 7", b"job x"))
        assert found() == ["app: nobody logged 'job x is done'"]
        conn.delete(key)
        assert found() == ["app: 0 messages are the newest, of 1"]


def test_buckets_are_as_many_as_were_counted(
    recorded: tuple[Meter, Ledger], server: Server, conn: Any
) -> None:
    """One too few, an interval that has none, and one that nobody counted."""
    recorded[0].close()
    (key,) = conn.keys("redmeter:hist:3600:seen.0")
    ((start, whole),) = conn.hgetall(key).items()

    def found() -> int:
        with server.client(decode_responses=True) as client:
            return len(list(asked.histograms([client], Stored.read([client]))))

    assert found() == 0
    for text in (b"1.0|5.0|0|-1=1/37=1|", b"1.0|5.0|1|-1=1|", b"1.0|5.0|0|-1=3,0,1|", b"nonsense"):
        conn.hset(key, start, text)
        assert found() == 1, text
    conn.hdel(key, start)
    assert found() == 1
    conn.hset(key, mapping={start: whole, str(int(start) + 3600): whole})
    assert found() == 1
