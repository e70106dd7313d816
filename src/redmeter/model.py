"""The values that pass between the layers, all of them immutable.

Upwards: Sample, Series, Ranked. Downwards: Operations, Batch, Rejection, Outcome.
Imports nothing of ours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload


class Sample(NamedTuple):
    """What one slice of a series holds."""

    #: Start of the slice, Unix seconds (UTC).
    start: int
    #: How often it happened in [start, start + precision).
    value: int


@dataclass(frozen=True, slots=True)
class Series(Sequence[Sample]):
    """The kept samples of one series at one precision, oldest first, without holes.

    A sequence of Sample; `values` are the bare numbers. Slices between two samples in which
    nothing happened are zeros. Empty where nothing is kept.
    """

    name: str
    #: Slice width, seconds.
    precision: int
    #: Start of the oldest slice, Unix seconds.
    start: int
    values: tuple[int, ...]
    #: Whether the newest slice is still running, so that its value may grow.
    partial: bool

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self.values)))]
        value = self.values[index]
        if index < 0:
            index += len(self.values)
        return Sample(self.start + index * self.precision, value)

    def __iter__(self) -> Iterator[Sample]:
        starts = range(self.start, self.start + len(self.values) * self.precision, self.precision)
        return map(Sample, starts, self.values)

    @property
    def total(self) -> int:
        """The sum of all samples."""
        return sum(self.values)


@dataclass(frozen=True, slots=True)
class Ranked:
    """One row of a ranking."""

    #: A label's value, or a series' name. None stands for "without this label".
    key: str | None
    #: How often it happened within the slices asked for.
    count: int
    #: Its part of all that was ranked, 0 to 1.
    share: float


class Operations(NamedTuple):
    """What a batch does, flat, as the script takes it: see store/lua/apply.lua.

    keys: one data key for each operation, in order.
    args: runs of [code, how many, then each one's arguments].
    """

    keys: tuple[str, ...]
    args: tuple[str | int, ...]


class Batch(NamedTuple):
    """The immutable unit of writing. Sent as often as it takes, it is applied once."""

    #: Who writes: 128 random bits, in hexadecimal.
    producer: str
    #: 1, 2, 3 … of this producer.
    number: int
    operations: Operations


class Rejection(NamedTuple):
    """One operation of a batch that was not carried out."""

    key: str
    #: aged, future, denied, or the class of error: WRONGTYPE, overflow, not-a-number, ERR.
    reason: str
    #: What the server said, where it said something.
    detail: str
    #: Slice start or field, as sent.
    field: str
    #: The amount that was to be added.
    amount: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a batch."""

    #: False where it had been applied before: sent again, counted once.
    applied: bool = True
    #: True where nobody can know: it was sent, and its watermark is gone.
    uncertain: bool = False
    rejections: tuple[Rejection, ...] = field(default=())
