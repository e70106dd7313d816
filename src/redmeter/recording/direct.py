"""Write counts at once and wait for the store's answer."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from redmeter.errors import StoreRefused, StoreUnavailable
from redmeter.keys import Retention
from redmeter.kinds import counter
from redmeter.model import Operations, Outcome, Rejection
from redmeter.store import Store

#: Why a slice may be left out without anything being wrong.
_BY_TIME = ("aged", "future")


class Written(NamedTuple):
    """What became of some counts."""

    #: Events of batches that the store has applied.
    events: int
    #: Events of which nobody can know whether they were applied.
    uncertain: int
    #: Single slices, or totals, that were not written, and why.
    rejections: tuple[Rejection, ...]

    @property
    def errors(self) -> tuple[Rejection, ...]:
        """Those that something is wrong with, rather than just late or early."""
        return tuple(r for r in self.rejections if r.reason not in _BY_TIME)


def write_counts(
    store: Store, counts: Mapping[str, Mapping[int, int]], *, now: float | None = None
) -> Written:
    """Write counts, in as many batches as they need.

    Args:
        counts: series name (in its stored spelling) -> {Unix second -> how many}.
        now: a time not later than the server's, to leave out beforehand what it would refuse.

    Raises:
        StoreError: from the first batch that could not be written; those before it are stored.
    """
    events = uncertain = 0
    rejections: list[Rejection] = []
    for part in counter.portions(counts, store.binding().retention, now=now):
        outcome = store.write(partial(_operations, store, part, now))
        size = sum(sum(seconds.values()) for seconds in part.values())
        if outcome.uncertain:
            uncertain += size
        else:
            events += size
        rejections += outcome.rejections
    return Written(events, uncertain, tuple(rejections))


def check_written(outcome: Outcome, store: Store) -> None:
    """Raise what is wrong with the outcome of one event; being late or early is nothing wrong.

    Raises:
        StoreRefused: the server refused a part of it; all others were carried out.
        StoreUnavailable: nobody can know whether it was stored.
    """
    if outcome.uncertain:
        reason = "the event was sent, and what tells whether it was stored is gone"
        raise StoreUnavailable(store.location, reason, sent=True)
    for rejection in outcome.rejections:
        if rejection.reason not in _BY_TIME:
            raise StoreRefused(rejection.reason, f"{rejection.key}: {rejection.detail}")


def _operations(
    store: Store, counts: Mapping[str, Mapping[int, int]], now: float | None, retention: Retention
) -> Operations:
    return counter.operations(store.keys, retention, counts, now=now)
