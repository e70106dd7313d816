"""What the soak lets pass, and that it finds the one event, key or answer that is wrong."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter
from redmeter.maintenance import cleaning
from redmeter.results import RecorderHealth
from soak import checks, report
from soak.checks import Ledger, Window
from soak.crew import Seen
from soak.journal import ENDING, Book, Journal, Said, level
from soak.residue import residue
from support.history import Stored
from support.servers import Server
from support.stores import opened_store

pytestmark = pytest.mark.nightly

#: A second that begins a minute, and when its events were noted.
START = 1_700_006_400
COUNTED, SEEN = "load", "seen.load"


def health(stored: int, **numbers: Any) -> RecorderHealth:
    """Return what a recorder says that has stored so much."""
    none: dict[str, Any] = dict.fromkeys((field.name for field in fields(RecorderHealth)), 0)
    none |= {"losses": (), "troubles": {}, "recorded": stored, "stored": stored}
    return RecorderHealth(**(none | numbers))


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A writer that counted 3 and 2, observed once, set a gauge, logged; all of it is stored."""
    journal = Journal(tmp_path, "writer")
    journal.note("c", START + 0.5, COUNTED, 3)
    journal.note("c", START + 61.0, COUNTED, 2)
    journal.note("o", START + 61.5, SEEN, 7)
    journal.note("g", START + 61.75, "level")
    journal.note("m", START + 62.0, "app")
    journal.look(Said.of(health(8)), last=True)
    journal.close()
    found = Book(next(tmp_path.glob(f"*{ENDING}")))
    found.read()
    return found


def stored() -> Stored:
    """Return a store that has what the book reports of."""
    found = Stored()
    found.counted, found.observed, found.now = {1: 120, 60: 120}, {60: 120}, START + 62
    found.slices[0, COUNTED][0] = 5
    for precision in (1, 60):
        found.slices[precision, COUNTED][START // precision * precision] += 3
        found.slices[precision, COUNTED][(START + 61) // precision * precision] += 2
    found.slices[60, SEEN][START + 60] = 1
    return found


def wrong(book: Book, there: Stored, *windows: Window) -> list[str]:
    """Return what is wrong with the sums."""
    return list(checks.sums(Ledger([book], windows), there))


def test_what_was_recorded_and_nothing_else_is_right(book: Book) -> None:
    """Every event is in its intervals and in the total."""
    assert wrong(book, stored()) == []
    assert (book.amount, book.done, book.unsettled) == (8, 8, 0)


def one_more(there: Stored) -> None:
    """An interval has one event too many."""
    there.slices[60, COUNTED][START] += 1


def one_less(there: Stored) -> None:
    """The total lacks one."""
    there.slices[0, COUNTED][0] -= 1


def moved(there: Stored) -> None:
    """An event is in the interval next to its own."""
    there.slices[1, COUNTED][START] -= 1
    there.slices[1, COUNTED][START + 1] += 1


def unseen(there: Stored) -> None:
    """What was observed is not there."""
    there.slices[60, SEEN].clear()


def a_stranger(there: Stored) -> None:
    """A series is there that nobody recorded."""
    there.slices[0, "stranger"][0] = 1


def elsewhere(there: Stored) -> None:
    """A series is in a shard that is not its own."""
    there.tags[COUNTED].add("none")


@pytest.mark.parametrize("break_it", [one_more, one_less, moved, unseen, a_stranger, elsewhere])
def test_a_single_wrong_slice_is_found(book: Book, break_it: Callable[[Stored], None]) -> None:
    """One event too many, too few, in another interval or of another series."""
    there = stored()
    break_it(there)
    assert wrong(book, there)


def test_of_a_killed_writer_what_was_in_memory_may_be_missing_and_no_more(book: Book) -> None:
    """It had recorded eight, and knew seven to be stored."""
    book.looks[-1] = book.looks[-1]._replace(done=7)
    there = stored()
    for place in ((0, COUNTED), (1, COUNTED), (60, COUNTED)):
        there.slices[place][max(there.slices[place])] -= 1
    assert wrong(book, there) == []
    there.slices[0, COUNTED][0] -= 1
    assert wrong(book, there)
    book.flushed = True  # asked to end while all was well
    book.looks[-1] = book.looks[-1]._replace(done=0)
    assert book.unsettled == 5


def test_a_fault_may_cost_what_was_stored_shortly_before(book: Book) -> None:
    """Not what was stored long before, and of no shard but those it hit."""
    there, last = stored(), book.looks[-1]
    for place in ((0, COUNTED), (1, COUNTED), (60, COUNTED)):
        there.slices[place][max(there.slices[place])] -= 1
    just_now = Window("killed", last.time, last.time, risk=last.time)
    assert wrong(book, there, just_now) == []
    assert wrong(book, there, just_now._replace(risk=None))
    assert wrong(book, there, just_now._replace(shards=frozenset()))
    later = last.time + 60.0
    book.looks.append(last._replace(time=later))
    assert wrong(book, there, Window("killed", later, later, risk=later))


def test_a_gauge_has_the_last_value_and_none_that_nobody_set(book: Book) -> None:
    """Of each interval, at each precision."""
    ledger, at = Ledger([book], []), START + 61.75
    right = {(1, "level"): {START + 61: f"{level(at)} {at}"}}
    assert list(checks.gauges(ledger, right)) == []
    assert list(checks.gauges(ledger, {}))
    for text in (f"1.5 {at}", f"{level(at - 0.5)} {at - 0.5}", f"{level(at + 1)} {at + 1}"):
        assert list(checks.gauges(ledger, {(1, "level"): {START + 61: text}})), text


def test_messages_are_counted_as_often_as_they_were_logged(book: Book) -> None:
    """By logger and hour."""
    hour = START // 3600 * 3600
    ledger = Ledger([book], [])
    assert list(checks.messages(ledger, {("app", hour): 1})) == []
    for counted in ({("app", hour): 2}, {("app", hour): 0}, {}, {("app", hour - 3600): 1}):
        assert list(checks.messages(ledger, counted)), counted


def test_books_balance_and_say_what_was_written_down(book: Book) -> None:
    """And nothing is left where nothing was wrong."""
    ended = book.looks[-1].time
    outage = Window("stopped", ended - 1, ended + 1)
    assert list(checks.books(Ledger([book], []), [])) == []
    book.said |= {"stored": 7, "buffered": 1}
    assert list(checks.books(Ledger([book], []), []))
    assert list(checks.books(Ledger([book], []), [outage])) == []
    for numbers in ({"stored": 6}, {"recorded": 9, "stored": 8}, {"overflowed": 1}):
        before = dict(book.said)
        book.said |= numbers
        assert list(checks.books(Ledger([book], []), [outage])), numbers
        book.said = before


@pytest.mark.parametrize(
    ("what", "without", "harmless", "lossy"),
    [("error", 1, 0, 0), ("down", 1, 1, 0), ("unequal", 1, 1, 0), ("wrong", 1, 1, 1)],
)
def test_what_readers_may_see_depends_on_what_was_broken(
    what: str, without: int, harmless: int, lossy: int
) -> None:
    """Errors while something is; totals that go down where something may be gone."""
    told = [Seen("reader", what, 100.0, 101.0, "")]
    window = Window("stopped", 99.0, 102.0)
    assert len(list(checks.seen(told, []))) == without
    assert len(list(checks.seen(told, [window]))) == harmless
    assert len(list(checks.seen(told, [window._replace(risk=99.0)]))) == lossy
    assert list(checks.seen(told, [Window("stopped", 10.0, 20.0, risk=10.0)]))


def test_a_line_that_was_cut_off_tells_of_nothing(tmp_path: Path) -> None:
    """Its writer was killed in the middle of it, before it recorded what it tells."""
    path = tmp_path / f"writer-1-1{ENDING}"
    path.write_text(f"c 1.5 {START} 3 {COUNTED}\nc 1.6 {START} 4")
    found = Book(path)
    found.read()
    assert found.amount == 3
    with path.open("a") as file:
        file.write(f" {COUNTED}\n")
    found.read()
    assert found.amount == 7


def test_keys_that_nothing_removes_are_found(server: Server, conn: Any) -> None:
    """One that never expires, one that nobody names, one that is gone, one too long kept."""
    with Meter(server.url) as meter:
        meter.count("load", at=START)
        meter.count("load")
        meter.gauge("level").set(1.0)
        meter.observe("seen", 1.0)
        meter.log("app", "started")
        assert meter.flush(5.0)
    with opened_store(server.url) as store:
        cleaning.clean(store)

    def found() -> list[str]:
        with server.client(decode_responses=True) as client:
            return list(residue([client], 60.0))

    assert found() == []
    (batch,) = conn.keys("redmeter:batch:*")
    for break_it, mend in (
        (("PERSIST", "redmeter:count:60:load"), ("EXPIRE", "redmeter:count:60:load", "60")),
        (("ZADD", "redmeter:known:", "0", "60:x"), ("ZREM", "redmeter:known:", "60:x")),
        (("ZREM", "redmeter:gauges:", "60:level"), ("ZADD", "redmeter:gauges:", "0", "60:level")),
        (("EXPIRE", batch, "60"), ("EXPIRE", batch, "86400")),
        (("SET", "else", "1"), ("DEL", "else")),
    ):
        conn.execute_command(*break_it)
        assert len(found()) == 1, break_it
        conn.execute_command(*mend)
        assert found() == [], mend


def test_a_result_takes_the_place_of_the_last_one(tmp_path: Path) -> None:
    """In the page that reports of it; what stands around it stays."""
    page = tmp_path / "soak.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.write(page, r"new \1")
    assert page.read_text() == f"before\n{report.BEGIN}\nnew \\1\n{report.END}\nafter\n"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="no lines"):
        report.write(page, "new")


def test_a_writer_that_has_written_again_may_miss_nothing(tmp_path: Path) -> None:
    """Of the series that it has written; a synchronous one may, and so may another series."""
    for slot, missing in (("steady", 0), ("sync", 3)):
        journal = Journal(tmp_path, slot)
        journal.note("c", START + 0.5, COUNTED, 3)
        journal.note("c", START + 0.5, "other", 2)
        journal.look(Said.of(health(5)))
        path = next(tmp_path.glob(f"{slot}-*{ENDING}"))
        book = Book(path)
        book.read()
        now = book.looks[-1].time
        window = Window("killed", now - 0.5, now, risk=now)
        before = Ledger([book], [window])
        assert (before.may_miss[COUNTED], before.may_miss["other"], before.unreported) == (3, 2, 5)
        # Much later, as far as the journal is concerned.
        journal._write(f"c {now + 60:.6f} {START + 61.0!r} 1 {COUNTED}")
        said = {**book.said, "recorded": 6, "stored": 6, "repaired": 3}
        journal._write(f"h {now + 61:.6f} {json.dumps(said)}")
        journal.close()
        book.read()
        after = Ledger([book], [window])
        assert after.may_miss[COUNTED] == missing
        assert after.may_miss["other"] == 2
        assert (after.unreported, after.repaired) == (missing + 2, 3)
