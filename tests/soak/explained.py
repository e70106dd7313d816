"""What recorders say is lost or uncertain, held against what the journals and the faults explain.

The sums in checks.py take a recorder's word for what is lost. So that must not be anything it
likes: an event is `aged` or `future` only if its time was, and lost by a server, for good or not,
only after a fault that may cost so much. Nothing else is ever lost here. Of
a batch the recorder is uncertain only where a server may have lost what tells; with `sync=True`
where no answer came for as long as it waits. Pure.
"""

from collections.abc import Iterator, Mapping

from soak.checks import Ledger, Window, at_risk
from soak.journal import LOST_BY_SERVER, Book
from soak.plan import STEPS
from soak.writers import TIMEOUT
from support.history import OBSERVED, Stored

#: The slot of the writer that is reported of each event what became of it.
TOLD = "sync"
#: The slot of the writer whose clock is set.
STEPPED = "stepped"

#: Seconds that something may wait at most next to the longest outage: for its flush, for a retry,
#: for a processor.
LATE = 30.0
#: How far two readings of the same clock may differ, seconds.
APART = 5.0


def uncertain(ledger: Ledger, windows: list[Window]) -> Iterator[str]:
    """Yield of which events recorders did not know what became of them, and should have."""
    lossy = [window for window in windows if window.risk is not None]
    for book in ledger.books:
        before, start = 0, book.began / 1e9
        for look in book.looks:
            if look.uncertain > before:
                near = windows if book.slot == TOLD else lossy
                waited = book.slot == TOLD and look.time - start >= TIMEOUT
                if not waited and not any(window.touches(start, look.time) for window in near):
                    number = look.uncertain - before
                    yield f"{book.path.name}: {number} uncertain, and nothing was lost"
            before, start = look.uncertain, look.time


def losses(
    ledger: Ledger, stored: Stored, windows: list[Window], monotonic: float
) -> Iterator[str]:
    """Yield what recorders say is lost and is not, or not for that reason.

    Args:
        monotonic: Unix seconds, less those of the monotonic clock.
    """
    lossy = [window for window in windows if window.risk is not None]
    late = LATE + max((window.end - window.start for window in windows), default=0.0)
    for book in ledger.books:
        may_be = sum(at_risk(book, window) for window in lossy)
        if book.lost_by_server > may_be:
            yield f"{book.path.name}: {book.lost_by_server} lost by a server, {may_be} may be"
        if book.repaired and not lossy:
            yield f"{book.path.name}: {book.repaired} sent again, and nothing was lost"
        for (reason, series, precision), events in book.losses().items():
            if reason in LOST_BY_SERVER:
                continue
            kept = stored.observed if series.startswith(OBSERVED) else stored.counted
            most = _explained(book, reason, series, precision, kept, late, monotonic)
            if events > most:
                where = f"{book.path.name}: {series} at {precision} s"
                yield f"{where}: {events} lost as {reason}, {most} may be"


def _explained(
    book: Book,
    reason: str,
    series: str,
    precision: int,
    kept: Mapping[int, int],
    late: float,
    monotonic: float,
) -> int:
    """Return how many events of a series may be lost for a reason at a precision."""
    if reason not in ("aged", "future") or precision not in kept or series not in book.noted:
        return 0
    # One whose clock is set may hold for older what waits while that is done.
    late += max(STEPS) - min(STEPS) if book.slot == STEPPED else 0.0
    window, noted, most = precision * kept[precision], book.noted[series], 0
    for moment, second, events in zip(noted.moments, noted.seconds, noted.events, strict=True):
        start, then = second - second % precision, moment + monotonic
        aged = then + late - (start + precision) > window
        future = start - (then - APART) > window
        if aged if reason == "aged" else future:
            most += events
    return most
