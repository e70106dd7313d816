"""Checks: what was recorded, held against what is stored, series by series and slice by slice.

    recorded - lost - uncertain - missing  <=  stored  <=  recorded - lost

and no interval has more than was recorded in it, whatever happened. Where nothing is uncertain and
nothing may be missing of a series, each interval has exactly what was recorded in it.

`missing` is bounded by what each process said at the time. Of one that was killed: what it had
recorded, less what it last knew to be stored. For each fault that may cost something: what it came
to know to be stored from shortly before the fault to its end, of the series that it did not write
again after that. One that has written again has sent again what the server lost, or says that it is
lost or uncertain. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from redmeter.stored.shards import TAGS, shard_of
from soak.crew import Seen
from soak.journal import Book, level
from soak.place import LAG
from support.history import TOTAL, Place, Stored, check_sums_of, slices_of

#: Seconds that may pass until somebody notices that a fault has begun, or is over.
SLACK = 5.0


#: Seconds until a recorder has read an answer that was under way.
ANSWERED = 1.0


class Window(NamedTuple):
    """Something that was wrong for a time, monotonic seconds."""

    name: str
    start: float
    end: float
    #: Until when what was stored may be gone; None where nothing may.
    risk: float | None = None
    #: The shards of what may be gone; None: all.
    shards: frozenset[int] | None = None

    def may_cost(self, series: str) -> bool:
        """Whether something of a series may be gone."""
        where = self.shards
        return self.risk is not None and (where is None or shard_of(series) in where)

    def touches(self, start: float, end: float) -> bool:
        """Whether it may have been noticed in a time."""
        return start <= self.end + SLACK and self.start - SLACK <= end


class Ledger:
    """What all writers of a stage say, added up.

    Attributes:
        recorded: series -> second -> amount.
        lost: place -> events; reasons: (reason, precision) -> events.
        may_miss: series -> how many events may be missing of it, or be uncertain.
        most_missing: how many of all together.
        repaired: events that were sent again, since a server had lost them.
        reported: events that recorders say a server has lost for good.
        unreported: events that a server may have lost of writers that did not write again.
    """

    def __init__(self, books: Iterable[Book], windows: Iterable[Window]) -> None:
        self.books = list(books)
        self.recorded: dict[str, Counter[int]] = defaultdict(Counter)
        self.lost: Counter[Place] = Counter()
        self.reasons: Counter[tuple[str, int]] = Counter()
        self.may_miss: Counter[str] = Counter()
        self.events = self.killed = self.uncertain = self.most_missing = self.stored = 0
        self.repaired = self.reported = self.unreported = 0
        lossy = [window for window in windows if window.risk is not None]
        for book in self.books:
            for series, seconds in book.recorded.items():
                self.recorded[series].update(seconds)
            for (reason, series, precision), events in book.losses().items():
                self.lost[precision, series] += events
                self.reasons[reason, precision] += events
            risks = [(window, at_risk(book, window)) for window in lossy]
            risks = [(window, number) for window, number in risks if number]
            unknown = book.unsettled + book.uncertain + book.lost_by_server
            unreported: Counter[Window] = Counter()
            for series, events in book.events.items():
                gone = 0
                for window, most in risks:
                    again = book.wrote_again(series, window.end + SLACK)
                    if window.may_cost(series) and not again:
                        of_series = min(most, at_risk_of(book, window, series))
                        gone += of_series
                        unreported[window] += of_series
                self.may_miss[series] += min(events, unknown + gone)
            most_unreported = sum(min(most, unreported[window]) for window, most in risks)
            self.most_missing += unknown + most_unreported
            self.unreported += most_unreported
            self.reported += book.lost_by_server
            self.repaired += book.repaired
            self.events += book.amount
            self.killed += book.unsettled
            self.uncertain += book.uncertain
            self.stored += int(book.said.get("stored", 0))


def at_risk(book: Book, window: Window) -> int:
    """Return how much of what a process knew to be stored a fault may have cost at most."""
    assert window.risk is not None
    return max(0, book.done_after(window.risk + ANSWERED) - book.done_by(window.start - LAG))


def at_risk_of(book: Book, window: Window, series: str) -> int:
    """Return how much of that may be of one series."""
    assert window.risk is not None
    return book.noted_of(series, window.start - LAG, window.risk + ANSWERED)


def sums(ledger: Ledger, stored: Stored) -> Iterator[str]:
    """Yield what is wrong with what is stored of counters and observed values."""
    for series in sorted({series for _, series in stored.slices} - set(ledger.recorded)):
        yield f"{series} is stored, and nobody recorded it"
    short: Counter[int] = Counter()
    for series, seconds in ledger.recorded.items():
        if not stored.tags[series] <= {"", TAGS[shard_of(series)]}:
            yield f"{series} lies in {stored.tags[series]}"
        for precision, samples in stored.precisions(series).items():
            oldest = stored.oldest(precision, samples)
            wanted = slices_of(seconds, precision, oldest)
            there = stored.slices[precision, series]
            yield from _too_much(series, precision, seconds, there)
            found = sum(amount for start, amount in there.items() if start >= oldest)
            lost, may_miss = ledger.lost[precision, series], ledger.may_miss[series]
            most = wanted.total() - (lost if oldest <= min(seconds, default=0) else 0)
            if not most - lost - may_miss <= found <= most:
                yield (
                    f"{series} at {precision} s: {found} stored of {wanted.total()} recorded, "
                    f"{lost} lost, {may_miss} may be missing"
                )
            if not lost and not may_miss:
                kept = {start: amount for start, amount in there.items() if start >= oldest}
                if kept != {start: amount for start, amount in wanted.items() if amount}:
                    yield f"{series} at {precision} s has other slices than were recorded"
            short[precision] += max(0, wanted.total() - lost - found)
        yield from _unequal(ledger, stored, series)
    for precision, events in short.items():
        if events > ledger.most_missing:
            yield f"at {precision} s {events} events are missing, {ledger.most_missing} may be"


def missing(ledger: Ledger, stored: Stored) -> int:
    """Return how much of what was counted is missing in the grand totals."""
    short = 0
    for series, seconds in ledger.recorded.items():
        if TOTAL in stored.precisions(series):
            lost = ledger.lost[TOTAL, series]
            short += seconds.total() - lost - stored.slices[TOTAL, series][0]
    return short


def _too_much(
    series: str, precision: int, seconds: Counter[int], there: Counter[int]
) -> Iterator[str]:
    wanted = slices_of(seconds, precision, float("-inf"))
    for start, amount in there.items():
        if amount > wanted[start]:
            yield f"{series} at {precision} s, {start}: {amount} stored, {wanted[start]} recorded"


def _unequal(ledger: Ledger, stored: Stored, series: str) -> Iterator[str]:
    if any(ledger.lost[precision, series] for precision in stored.precisions(series)):
        return
    if any(second > stored.now for second in ledger.recorded[series]):
        return  # coarse intervals that are to come reach further than fine ones
    try:
        check_sums_of(stored, series)
    except AssertionError as error:
        yield f"slices of {series} are not the sums of finer ones: {error}"


def gauges(ledger: Ledger, slices: dict[tuple[int, str], dict[int, str]]) -> Iterator[str]:
    """Yield what is wrong with gauges.

    Args:
        slices: (precision, gauge) -> start -> text, as stored.
    """
    set_at: dict[str, dict[int, float]] = defaultdict(dict)
    for book in ledger.books:
        for name, seconds in book.set_at.items():
            for second, time in seconds.items():
                set_at[name][second] = max(time, set_at[name].get(second, 0.0))
    for (precision, name), texts in slices.items():
        last: dict[int, float] = {}
        for second, time in set_at[name].items():
            start = second // precision * precision
            last[start] = max(time, last.get(start, 0.0))
        for start, text in texts.items():
            value, time = map(float, text.split())
            where = f"{name} at {precision} s, {start}"
            if value != level(time) or time > last.get(start, 0.0):
                yield f"{where}: nobody set it to {text}"
            elif time != last[start] and not ledger.may_miss[name]:
                yield f"{where}: last set at {last[start]}, stored is {time}"
    for name in set(set_at) - {name for _, name in slices}:
        if not ledger.may_miss[name]:
            yield f"{name} is not stored"


def messages(ledger: Ledger, counted: dict[tuple[str, int], int]) -> Iterator[str]:
    """Yield what is wrong with how often messages are counted.

    Args:
        counted: (logger, start of the hour) -> how often, of the two hours that the store knows.
    """
    logged: Counter[tuple[str, int]] = Counter()
    for book in ledger.books:
        for logger, hours in book.logged.items():
            logged.update({(logger, hour): number for hour, number in hours.items()})
    for (logger, hour), found in counted.items():
        wanted = logged[logger, hour]
        if not wanted - ledger.may_miss[logger] <= found <= wanted:
            yield f"{logger} in the hour {hour}: {found} counted, {wanted} logged"
    for logger in {logger for logger, _ in logged} - {logger for logger, _ in counted}:
        if logged_in(logged, logger) > ledger.may_miss[logger]:
            yield f"{logger}: nothing counted"


def logged_in(logged: Counter[tuple[str, int]], logger: str) -> int:
    """Return how often a logger was logged."""
    return sum(number for (name, _), number in logged.items() if name == logger)


def books(ledger: Ledger, windows: list[Window]) -> Iterator[str]:
    """Yield what is wrong with what recorders said at their end."""
    for book in ledger.books:
        said = book.said
        if not said:
            continue
        parts = sum(said[part] for part in ("stored", "buffered", "uncertain", "dropped"))
        if said["recorded"] != parts:
            yield f"{book.path.name}: {said['recorded']} recorded, {parts} in all places"
        if said["overflowed"]:
            yield f"{book.path.name}: {said['overflowed']} in series beyond the most"
        if book.last and said["recorded"] != book.amount:
            yield f"{book.path.name}: {said['recorded']} recorded, {book.amount} written down"
        ended = book.looks[-1].time
        calm = not any(window.touches(ended - 2, ended) for window in windows)
        if book.last and said["buffered"] and calm:
            yield f"{book.path.name}: {said['buffered']} not stored at its end"


def seen(told: Iterable[Seen], windows: list[Window]) -> Iterator[str]:
    """Yield what those who looked have seen, and should not have."""
    for one in told:
        near = [window for window in windows if window.touches(one.start, one.end)]
        expected = {
            "ready": True,
            "done": True,
            "told": True,  # see readings.py
            "error": bool(near),
            "down": any(window.risk is not None for window in near),
            "unequal": any(window.risk is not None for window in near),
        }
        if not expected.get(one.what, False):
            yield f"{one.slot}: {one.what}: {one.text}"
