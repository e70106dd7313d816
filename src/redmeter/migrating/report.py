"""What a move to another store tells: how much was taken, and what became of it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from redmeter.errors import StoreError
from redmeter.keys import Kept

#: Names of what was left alone that are told, at most.
EXAMPLES = 100


class MigrationError(StoreError):
    """A store cannot be moved now, or what arrived is not what was sent."""


@dataclass(slots=True)
class Sum:
    """Events of one kind and precision; taken is the sum of the next five."""

    #: Events that lay in FROM: what was counted or observed, slices of gauges, messages, marks.
    taken: int = 0
    #: TO has answered that it stored them.
    stored: int = 0
    #: Slices, hours and messages that TO keeps no more, or that lie too far in the future.
    aged: int = 0
    future: int = 0
    #: TO has something else under their keys; they stay in FROM, see Report.left.
    refused: int = 0
    #: Stored or not, nobody can know: TO has lost the watermark of a batch that was sent before.
    uncertain: int = 0
    #: Stored events that were looked for in TO afterwards; and by how many it has more than before,
    #: with what others wrote meanwhile.
    looked_for: int = 0
    found: int = 0
    #: What was no slice, or not of the form, in FROM.
    unread: int = 0

    def add(self, other: "Sum") -> None:
        """Add another one."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass(slots=True)
class Report:
    """What a move did, in all its runs."""

    #: Kind -> precision, 0 where it has none -> events.
    sums: dict[str, dict[int, Sum]] = field(default_factory=dict)
    #: Hashes, lists and so on that were taken, by all runs; and by this one after its first round.
    pieces: int = 0
    stragglers: int = 0
    #: What earlier runs had told of both.
    earlier: Sum = field(default_factory=Sum)
    earlier_pieces: int = 0
    batches: int = 0
    #: Events that TO had stored and lost, and that this run has sent again.
    again: int = 0
    #: Kind -> precision -> series that stay in FROM, since TO does not keep the precision.
    unkept: dict[str, dict[int, int]] = field(default_factory=dict)
    #: Keys that look like ours and are not; left alone.
    strange: list[str] = field(default_factory=list)
    #: Key -> kind and name: what was taken stays in FROM there, since TO has not stored all of it.
    left: dict[str, str] = field(default_factory=dict)
    #: Whether the last round found nothing more; else the run was ended, or its rounds ran out.
    finished: bool = False
    #: Whether an earlier run had begun.
    resumed: bool = False
    #: Seconds that this run took.
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do: all was found and, as far as TO keeps it, stored."""
        return self.finished and not self.left and not self.nothing

    @property
    def nothing(self) -> bool:
        """Whether neither this run nor one that FROM remembers has found anything.

        FROM remembers a move for a day. Is it the right FROM?
        """
        return self.finished and not (self.pieces or self.unkept or self.resumed)

    def sum_of(self, kind: str, precision: int) -> Sum:
        """Return the sum of a kind and precision, to be added to."""
        return self.sums.setdefault(kind, {}).setdefault(precision, Sum())

    def total(self) -> Sum:
        """Return the sum of all."""
        whole = Sum()
        for by_precision in self.sums.values():
            for one in by_precision.values():
                whole.add(one)
        return whole

    def now(self) -> Sum:
        """Return the sum of what this run did."""
        whole, before = self.total(), self.earlier
        return Sum(
            **{f.name: getattr(whole, f.name) - getattr(before, f.name) for f in fields(Sum)}
        )

    def leave(self, key: str) -> None:
        """Note a key that was left alone."""
        if key not in self.strange and len(self.strange) < EXAMPLES:
            self.strange.append(key)

    def leave_unkept(self, kind: str, precision: int) -> None:
        """Note a series of a precision that TO does not keep."""
        counts = self.unkept.setdefault(kind, {})
        counts[precision] = counts.get(precision, 0) + 1

    def passed_by(self) -> int:
        """Return how many series stay in FROM, since TO does not keep their precision."""
        return sum(number for counts in self.unkept.values() for number in counts.values())

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, in types that JSON has."""
        now = {"pieces": self.pieces - self.earlier_pieces} | asdict(self.now())
        ended = {"complete": self.complete, "nothing": self.nothing}
        return asdict(self) | {"total": asdict(self.total()), "now": now} | ended


@dataclass(slots=True)
class Survey:
    """What there is to move."""

    #: Kind -> precision, 0 where it has none -> series, and slices or entries of these.
    series: dict[str, dict[int, int]] = field(default_factory=dict)
    entries: dict[str, dict[int, int]] = field(default_factory=dict)
    unkept: dict[str, dict[int, int]] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)
    #: How the retentions differ, in words.
    differences: list[str] = field(default_factory=list)
    #: Whether TO has nothing yet, and whether FROM says what it keeps.
    new: bool = False
    told: bool = False
    #: Bytes that FROM may grow by, None where that has no end; and how many it may lack, about.
    room: int | None = None
    short: int = 0
    #: First batch that TO had stored and lost, which the move sends again first; or 0.
    lost: int = 0
    #: Where all of it was moved to, in words, should it have been; else "".
    moved: str = ""


def differences(source: Kept, target: Kept) -> list[str]:
    """Return in words what TO keeps otherwise than FROM."""
    told = []
    for what, theirs, ours in (
        ("counters and gauges", source.series, target.series),
        ("histograms", source.histograms, target.histograms),
    ):
        told += [
            f"{what} at {precision} s: FROM keeps {samples} samples, TO {_kept(ours, precision)}"
            for precision, samples in theirs.items()
            if ours.get(precision) != samples
        ]
    return told


def _kept(retention: Mapping[int, int], precision: int) -> str:
    samples = retention.get(precision)
    return "none, so they stay in FROM" if samples is None else f"{samples}"


def shown(names: Iterable[str], most: int = 3) -> str:
    """Return some of many names, and how many more there are."""
    listed = list(names)
    more = f" … ({len(listed) - most:,} more)" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
