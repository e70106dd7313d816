"""The events of a name's label sets by interval, for comparisons: see comparison.py.

Counters are read as a whole at one precision, histograms by the intervals that are compared. Up to
_MAX_LABEL_SETS are read, _PAGE in each round trip. Histograms are up to a hundred times as large as
counts, so they are read for MAX_CELLS intervals of label sets in all, the busiest ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from redmeter.reading.diagnosis.windows import Comparison
from redmeter.reading.distributions import interval_distributions
from redmeter.reading.join import Ask, Joined, series_in
from redmeter.reading.samples import number_of
from redmeter.reading.selection import OTHER, LabelSets
from redmeter.store.query import Query, Read
from redmeter.store.servers.replies import Reply, pairs
from redmeter.stored.counter import parse_counter
from redmeter.stored.exponential_histogram import Distribution, upper_edge
from redmeter.stored.keys import Keys
from redmeter.stored.packed_text import parse_moments

#: Label sets that are read at most, and in one round trip.
_MAX_LABEL_SETS: Final = 5_000
_PAGE: Final = 1_000
#: Intervals of histograms that are read at most, over all label sets.
MAX_CELLS: Final = 10_000
#: Fields above which a hash is read as a whole.
_MANY: Final = 40


@dataclass(slots=True)
class LabelEvents:
    """The events of label sets."""

    #: Counts by the start of their interval, of each label set.
    counts: list[tuple[Mapping[str, str], Mapping[int, int]]] = field(default_factory=list)
    #: The same of histograms.
    histograms: list[tuple[Mapping[str, str], Mapping[int, Distribution]]] = field(
        default_factory=list
    )
    #: Sentences about label sets that were not read.
    not_compared: list[str] = field(default_factory=list)

    def label_sets(self) -> list[Mapping[str, str]]:
        """Return the label sets."""
        return [labels for labels, _ in [*self.counts, *self.histograms]]


def read_counts(
    keys: Keys, name: str, comparison: Comparison, labels: Mapping[str, str]
) -> Query[LabelEvents]:
    """Read the counts of all label sets that have some labels. One round trip for each _PAGE."""
    precision = comparison.precision
    assert precision is not None, "it is compared"
    ask = Ask("HGETALL", f"{keys.key('count')}{precision}:")
    result = LabelEvents()
    label_sets = LabelSets(keys, keys.known, precision, name)
    joins = yield from _pages(label_sets, ask, result)
    for _, own, reply in _matching(joins, name, labels):
        result.counts.append((own, parse_counter(pairs(reply))))
    return result


def read_histograms(
    keys: Keys, name: str, comparison: Comparison, labels: Mapping[str, str]
) -> Query[LabelEvents]:
    """Read the histograms of label sets: those of the busiest, after one round trip for moments."""
    precision = comparison.precision
    assert precision is not None, "it is compared"
    starts = sorted({*comparison.window, *comparison.baseline, *comparison.recent})
    fields = [str(start) for start in starts]
    label_sets = LabelSets(keys, keys.hists, precision, name)
    result = LabelEvents()
    joins = yield from _pages(label_sets, moments_ask(keys, precision, fields), result)
    compared = {*comparison.window, *comparison.baseline}
    sizes: dict[str, int] = {}
    labels_of: dict[str, Mapping[str, str]] = {}
    for stored, own, reply in _matching(joins, name, labels):
        sums = moments_of(reply, fields).items()
        sizes[stored] = sum(count for start, (count, _) in sums if start in compared)
        labels_of[stored] = own
    busiest = sorted((n for n in sizes if sizes[n]), key=lambda name: (-sizes[name], name))
    chosen = busiest[: max(1, MAX_CELLS // max(1, len(fields)))]
    if left := sum(sizes[name] for name in busiest[len(chosen) :]):
        share = left / sum(sizes.values())
        result.not_compared.append(
            f"{len(busiest) - len(chosen):,} of {len(busiest):,} label sets, the least busy: "
            f"{share:.1%} of the values"
        )
    histograms = yield from interval_distributions(keys, chosen, precision, starts)
    result.histograms += [(labels_of[one], intervals) for one, intervals in histograms.items()]
    return result


def moments_ask(keys: Keys, precision: int, fields: Sequence[str]) -> Ask:
    """Ask for the moments of intervals; moments_of() takes the reply."""
    head = f"{keys.key('moments')}{precision}:"
    if len(fields) > _MANY:
        return Ask("HGETALL", head)
    return Ask("HMGET", head, arguments=tuple(fields))


def moments_of(reply: Reply, fields: Sequence[str]) -> dict[int, tuple[int, float]]:
    """Read the reply to moments_ask(): start -> count and total."""
    if len(fields) > _MANY:
        texts = {start.decode(errors="replace"): text for start, text in pairs(reply)}
        values = [texts.get(start) for start in fields]
    else:
        values = reply
    sums_of = {}
    for start, text in zip(fields, values, strict=True):
        if text is not None and (sums := parse_moments(text)) is not None:
            sums_of[int(start)] = (sums.count, sums.total)
    return sums_of


def edges_of(distribution: Distribution) -> dict[float, float]:
    """Return the counts of buckets by their upper edges."""
    edges = {upper_edge(index): float(count) for index, count in distribution.positive.items()}
    edges |= {-upper_edge(i - 1): float(count) for i, count in distribution.negative.items()}
    if distribution.zeros:
        edges[0.0] = float(distribution.zeros)
    return edges


def _pages(label_sets: LabelSets, ask: Ask, result: LabelEvents) -> Query[list[Joined]]:
    """Read label sets page by page, and the series without labels."""
    reads: list[Read] = [
        label_sets.join([ask], _PAGE),
        label_sets.join_base([ask]),
        label_sets.size(),
    ]
    _, (first, base, size) = yield reads
    joins = yield from label_sets.read_on(
        Joined(first, 1, needed=False), [ask], _PAGE, _MAX_LABEL_SETS
    )
    read = sum(len(page.members) for page in joins)
    if (number := number_of(size)) > read:
        result.not_compared.append(f"{number - read:,} of {number:,} label sets: over the limit")
    return [Joined(base, 1, needed=False), *joins]


def _matching(
    joins: Sequence[Joined], name: str, labels: Mapping[str, str]
) -> Iterator[tuple[str, Mapping[str, str], Reply]]:
    """Yield each series of a name that has certain labels: as stored, its labels, its reply."""
    for stored, parsed, (reply,) in series_in(joins):
        pairs_of = dict(parsed.labels)
        if parsed.base == name and all(pairs_of.get(k) == v for k, v in labels.items()):
            yield stored, pairs_of, reply


def with_overflow(label_sets: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Give the series of all label sets over the limit the value `(other)` in each label."""
    labels = {label for one in label_sets for label in one} - {"overflow"}
    other = dict.fromkeys(labels, OTHER)
    return [other if one == {"overflow": "true"} else one for one in label_sets]
