"""What TO has lost since it said that it stored it, and how it comes there again.

A TO that is killed and begins from an older file, or fails over to a replica that lagged, has lost
its newest batches, and its watermark with them: that is lower than what FROM has noted as arrived.
What was taken lies in FROM for a day still, and beside it what it was. So these batches are made
once more and sent under their numbers, before anything newer is: what TO has counts once.

Where there is no watermark at all, or FROM has not got all of it any more, nobody can know what TO
has. That is an error for as long as FROM remembers the move.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from redmeter.migrating.journal import Journal, gone
from redmeter.migrating.state import Group, State, first_of
from redmeter.store import Store
from redmeter.store.partition import WATERMARK_SECONDS

#: How much earlier than written a watermark is taken for over, seconds: clocks differ.
_SLACK = 60.0


class Arrived(NamedTuple):
    """A group that has arrived, or of which some rounds have."""

    group: Group
    #: Highest number of it that has arrived.
    last: int


class Lost(NamedTuple):
    """What TO has not got any more."""

    #: Partition -> highest number that it has, and that it had.
    parts: dict[int, tuple[int, int]]
    #: Partitions that were to have forgotten by now who had sent what: nothing is told by these.
    forgotten: set[int]
    #: What was in it, and maybe more.
    groups: list[Arrived]

    def has(self, part: int, number: int) -> bool:
        """Tell whether a partition has a batch, or never said that it had it."""
        has, had = self.parts.get(part, (number, number))
        return not has < number <= had


def _numbers(groups: Iterable[Arrived]) -> set[int]:
    return {number for group, last in groups for number in range(group.number, last + 1)}


def find(
    target: Store,
    journal: Journal,
    state: State,
    had: Mapping[int, int],
    has: Mapping[int, int],
    now: float,
) -> Lost:
    """Tell what TO has lost; nothing is changed.

    Args:
        state: as it is written down.
        had: partition -> highest number of which it had said that it has it.
        has: the same as it is now, of those that have less.
        now: Unix seconds, by this machine's clock.

    Raises:
        MigrationError: nobody can know, or FROM has not got it any more.
        StoreError: FROM cannot be reached or refuses.
    """
    if not has:
        return Lost({}, set(), [])
    first = max(min(has.values()) + 1, first_of(state))
    groups = [
        Arrived(group, last) for group, last in journal.arrived(state.id, first, state.number - 1)
    ]
    under_way = state.group
    if under_way and under_way.done and now - under_way.since <= WATERMARK_SECONDS / 2:
        groups.append(Arrived(under_way, under_way.number + under_way.done - 1))
    kept = _numbers(groups)
    # What was sent so long ago may have been noted as arrived long after that, where the run was
    # killed in between: its watermark is over before the note is.
    recent = _numbers(
        each for each in groups if now - each.group.since < WATERMARK_SECONDS - _SLACK
    )
    forgotten = {at for at, number in has.items() if not number and had[at] not in recent}
    parts = {at: (number, had[at]) for at, number in has.items() if at not in forgotten}
    for number, most in parts.values():
        start = max(number + 1, first)
        if not number:
            raise gone(target, journal.key, (start, most), "with the note of what it had")
        if any(one not in kept for one in range(start, most + 1)):
            raise gone(
                target, journal.key, (start, most), "and FROM has not got all of it any more"
            )
    return Lost(parts, forgotten, groups)
