"""What readers were told of series that all share, held against what was there at that moment.

    settled by then  <=  told  <=  recorded by then

Settled of a series is what a writer had recorded of it, less all that its recorder did not know to
be stored: that might be of this series. Of writers that were killed it is what they last knew. A
fault that may cost something takes off what it may have cost. Pure.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from soak.checks import Ledger, Window, at_risk
from soak.crew import Seen
from soak.journal import Book


class Growth:
    """A number that grows, by time."""

    def __init__(self, steps: Iterable[tuple[float, int]]) -> None:
        ordered = sorted(steps)
        self._times = [time for time, _ in ordered]
        self._sums = list(accumulate(step for _, step in ordered))

    def at(self, time: float) -> int:
        """Return what it was at a time."""
        number = bisect_right(self._times, time)
        return self._sums[number - 1] if number else 0


def readings(told: Iterable[Seen], ledger: Ledger, windows: list[Window]) -> Iterator[str]:
    """Yield which answers told of too little, or of more than was recorded."""
    lossy = [window for window in windows if window.risk is not None]
    bounds: dict[str, tuple[Growth, Growth]] = {}
    for one in told:
        if one.what != "told":
            continue
        # While another primary takes over one may still be asked that was left behind.
        doubtful = any(window.touches(one.start, one.end) for window in lossy)
        for question, amounts in json.loads(one.text).items():
            for series, amount in amounts.items():
                if series not in bounds:
                    bounds[series] = _settled(ledger, series, lossy), _recorded(ledger, series)
                settled, recorded = bounds[series]
                least, most = settled.at(one.start), recorded.at(one.end)
                if amount > most or (amount < least and not doubtful):
                    yield f"{one.slot}: {question} of {series}: {amount}, not {least} to {most}"


def _recorded(ledger: Ledger, series: str) -> Growth:
    return Growth(
        step
        for book in ledger.books
        if series in book.noted
        for step in zip(book.noted[series].moments, book.noted[series].events, strict=True)
    )


def _settled(ledger: Ledger, series: str, lossy: list[Window]) -> Growth:
    steps = [step for book in ledger.books for step in _settled_of(book, series)]
    for window in lossy:
        if window.may_cost(series):
            gone = sum(at_risk(book, window) for book in ledger.books)
            steps.append((window.start, -gone))
    return Growth(steps)


def _settled_of(book: Book, series: str) -> Iterator[tuple[float, int]]:
    """Yield by how much more was surely stored of a series, and when that was known."""
    if series not in book.noted:
        return
    recorded = Growth(zip(book.noted[series].moments, book.noted[series].events, strict=True))
    known = 0
    for look in book.looks:
        waiting = look.noted - look.stored
        if (least := recorded.at(look.time) - waiting) > known:
            yield look.time, least - known
            known = least
