"""Series that may be ranked, with their slices: a join for each range of an index that they lie in.

What is made of them is for tallied.py and ranked.py, and how many may be looked at.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from redmeter.errors import LimitExceeded
from redmeter.keys import Keys, entry
from redmeter.reading.catalogue import matching, matching_ends
from redmeter.reading.join import Joined, join, of_window
from redmeter.reading.label_sets import has_labels
from redmeter.reading.observed import Sum, sum_of_all
from redmeter.reading.rankings import Group
from redmeter.reading.windows import Window
from redmeter.store import indexes
from redmeter.store.query import Read
from redmeter.store.replies import Reply, raised


class Rankable(NamedTuple):
    """Which series may be ranked: see rankings.rank()."""

    name: str
    precision: int
    by: str | None
    where: Mapping[str, str] | None
    #: How many may be looked at.
    most: int

    def reads(self, keys: Keys, index: str, family: str, seen: Window) -> list[Read]:
        """Return the reads of series with their slices, and of how many there are, by turns.

        Args:
            index: of counters or of histograms.
            family: what stands in the key of slices before the precision.
            seen: which slices.
        """
        cut = len(entry(self.precision, ""))
        reads: list[Read] = []
        for ends in self._ends():
            reads += [
                join(keys, index, ends, cut, [of_window(family, seen)], count=self.most),
                indexes.size_between(keys, index, *ends),
            ]
        return reads

    def _ends(self) -> list[tuple[str | bytes, str | bytes]]:
        """Return where their entries begin and end.

        With a label all label sets, and the name without any; else what the pattern matches.
        """
        whole = entry(self.precision, self.name)
        if self.by:
            return [(f"[{whole}{{", f"({whole}|"), (f"[{whole}", f"[{whole}")]
        return [matching_ends(self.precision, self.name)]

    def read(self, replies: Sequence[Reply]) -> Iterator[tuple[str, Sequence[bytes]]]:
        """Yield the series, with their slices: [start, value, …].

        Raises:
            LimitExceeded: there are too many.
            StoreError: a reply is an error.
        """
        there = sum(map(raised, replies[1::2]))
        if there > self.most:
            raise LimitExceeded("series", there, self.most, "narrow the pattern down")
        for reply in replies[::2]:
            for member, (slices,) in Joined(reply, 1).readable():
                try:
                    series = member.decode().partition(":")[2]
                except UnicodeDecodeError:
                    continue  # no name of ours
                fits = self.by or matching([series], self.name)
                if fits and (not self.where or has_labels(series, self.where)):
                    yield series, slices


def summed(found: Iterable[tuple[str, Sequence[bytes]]], group: Group) -> dict[str | None, Sum]:
    """Add up moments by what a row stands for; series without a value are left out."""
    sums: dict[str | None, Sum] = {}
    for series, slices in found:
        whole = sum_of_all(slices[1::2])
        if whole.count:
            sums.setdefault(group(series), Sum()).add(series, whole)
    return sums
