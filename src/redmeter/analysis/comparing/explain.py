"""What accounts for a rise or a fall of a count, an error rate or a p95, by the values of labels.

Counts: the change of each group, and its share of the total's change, within each label. The same
events appear in each label, so changes of different labels must not be added.

Error rate: the rate R is the sum of w r over groups, of their shares of requests w and their rates
r. A group changes it by its rate and by its share (midpoint decomposition; Kitagawa, "Components of
a difference between two rates", 1955):

    rate effect    (r1 - r0) (w0 + w1) / 2
    mix effect     (w1 - w0) ((r0 + r1) / 2 - (R0 + R1) / 2)

All effects of one label sum exactly to R1 - R0: they are computed as fractions. A group's mix
effect is relative to the average rate, since more requests to an average group change nothing.

p95: percentiles are not additive, so an effect is in seconds: the p95 of the window, less the p95
of the window with this group replaced by its baseline, scaled to the length of the window. A route
that is as slow as before explains nothing, however slow it is. Within a bucket of the histogram,
values are interpolated, so that small effects are visible.

The causes are the groups that stand out: see outliers.py. For an error rate its events are the
failures, for a p95 the values above the lower one of both p95. A group whose share of requests
changed, and that way the error rate, is a cause as well.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, NamedTuple, TypeVar

from redmeter.analysis.comparing.noise import Windows
from redmeter.analysis.comparing.outliers import (
    FEWEST_INTERVALS,
    Events,
    Key,
    Model,
    alike,
    changed,
    groups_of,
    outliers,
)
from redmeter.analysis.comparing.significance import PER_DOUBLING, QUANTILE, sum_counts
from redmeter.results.explanation import ChangedGroup, ChangedLabel

#: Groups of a label that are listed.
LISTED_GROUPS: Final = 20
#: Least effect of a cause on an error rate or a p95, as a share of the baseline's.
LEAST_EFFECT: Final = 0.01
#: Least mix effect of a cause whose own error rate did not change, as a share of the total's change
#: and of the baseline's rate.
LEAST_MIX: Final = (0.2, 0.05)

T = TypeVar("T")

#: A histogram: upper edge of a bucket -> number of values in it. Zero and negative values have
#: their own edges.
EdgeCounts = Mapping[float, float]


class Causes(NamedTuple):
    """The total before and after, the groups of each label, and the causes."""

    before: float
    after: float
    dimensions: list[ChangedLabel]
    causes: list[ChangedGroup]
    #: Whether the total changed beyond noise; and, if there are no causes, whether all groups did
    #: alike, or some otherwise than the others.
    changed: bool
    even: bool
    uneven: bool


@dataclass(slots=True)
class HistogramRow:
    """The values of a label set."""

    labels: Mapping[str, str]
    before: EdgeCounts = field(default_factory=dict)
    after: EdgeCounts = field(default_factory=dict)
    #: The buckets of each interval before the window.
    history: Sequence[EdgeCounts] = ()


# --- Counts --------------------------------------------------------------------------------


def explain_count(rows: Sequence[Events], windows: Windows) -> Causes:
    """Explain the change of a count.

    Args:
        rows: the events of each label set, by time.
        windows: the lengths of the window and of the baseline.
    """
    scale = windows.scale
    before, after = scale * sum(row.before for row in rows), sum(row.after for row in rows)
    change = after - before
    groups = {}
    for key, members in groups_of(row.labels for row in rows).items():
        first, second = _sum(rows, members, "before"), _sum(rows, members, "after")
        difference = second - scale * first
        groups[key] = ChangedGroup(
            label=key[0],
            value=key[1],
            before=scale * first,
            after=second,
            change=difference,
            share=difference / change if change else None,
            count_before=first,
            count=second,
        )
    return _causes(before, after, groups, rows, windows, outliers(rows, windows))


# --- Error rates ---------------------------------------------------------------------------


class Effects(NamedTuple):
    """The effects of a group on the overall rate."""

    rate: Fraction
    mix: Fraction


def decompose(groups: Sequence[tuple[int, int, int, int]]) -> list[Effects]:
    """Return the rate effect and the mix effect of each group; all of them sum to the change.

    Args:
        groups: requests before, failures before, requests after, failures after; there must be
            requests before and after.
    """
    before, after = sum(row[0] for row in groups), sum(row[2] for row in groups)
    overall = Fraction(sum(row[1] for row in groups), before)
    overall += Fraction(sum(row[3] for row in groups), after)
    effects = []
    for n0, f0, n1, f1 in groups:
        if not n0 and not n1:
            effects.append(Effects(Fraction(0), Fraction(0)))
            continue
        # A group without requests on one side has no rate there: it only changes the mix.
        r0 = Fraction(f0, n0) if n0 else Fraction(f1, n1)
        r1 = Fraction(f1, n1) if n1 else Fraction(f0, n0)
        w0, w1 = Fraction(n0, before), Fraction(n1, after)
        mix = (w1 - w0) * (r0 + r1 - overall) / 2
        effects.append(Effects((r1 - r0) * (w0 + w1) / 2, mix))
    return effects


def explain_rate(rows: Sequence[Events], windows: Windows) -> Causes:
    """Explain the change of an error rate. There must be requests before and after.

    Args:
        rows: the failures of each label set among its requests.
        windows: the lengths of the window and of the baseline.
    """
    requests = [row.among for row in rows if row.among is not None]
    n0, n1 = sum(row.before for row in requests), sum(row.after for row in requests)
    before, after = sum(row.before for row in rows) / n0, sum(row.after for row in rows) / n1
    change = after - before
    groups: dict[Key, ChangedGroup] = {}
    for label, keys in _by_label(groups_of(row.labels for row in rows)).items():
        numbers = [
            (
                _sum(requests, members, "before"),
                _sum(rows, members, "before"),
                _sum(requests, members, "after"),
                _sum(rows, members, "after"),
            )
            for members in keys.values()
        ]
        for key, (first, failed_first, second, failed), effect in zip(
            keys, numbers, decompose(numbers), strict=True
        ):
            total = float(effect.rate + effect.mix)
            groups[label, key] = ChangedGroup(
                label=label,
                value=key,
                before=failed_first / first if first else None,
                after=failed / second if second else None,
                change=total,
                share=total / change if change else None,
                rate_effect=float(effect.rate),
                mix_effect=float(effect.mix),
                count_before=first,
                count=second,
            )
    model = outliers(rows, windows)
    out = [
        excess for excess in model.named if abs(groups[excess.key].change) >= LEAST_EFFECT * before
    ]
    least = max(LEAST_MIX[0] * abs(change), LEAST_MIX[1] * before)
    named = {excess.key for excess in out}
    for excess in outliers(requests, windows).named:
        mix = groups[excess.key].mix_effect or 0.0
        if excess.key not in named and mix * change > 0 and abs(mix) >= least:
            out.append(excess)
    return _causes(before, after, groups, rows, windows, model._replace(named=out))


# --- p95 -----------------------------------------------------------------------------------


def quantile(buckets: EdgeCounts, q: float = QUANTILE) -> float:
    """Return a quantile of a histogram, interpolated within the bucket.

    Args:
        buckets: there must be values in them.
    """
    rank = q * sum(buckets.values())
    edges = sorted(edge for edge, count in buckets.items() if count > 0)
    for edge in edges:
        count = buckets[edge]
        if rank <= count or edge == edges[-1]:
            return lower_edge(edge) + (edge - lower_edge(edge)) * min(1.0, max(0.0, rank / count))
        rank -= count
    raise ValueError("no quantile of no values")


def lower_edge(edge: float) -> float:
    """Return the lower edge of a positive bucket, whose upper edge is 2^(1/16) times as high.

    Zero and the edges of negative buckets are returned as they are.
    """
    return edge / _BASE if edge > 0 else edge


_BASE: Final = 2 ** (1 / PER_DOUBLING)


def explain_p95(rows: Sequence[HistogramRow], windows: Windows) -> Causes:
    """Explain the change of p95. There must be values before and after.

    Args:
        windows: the lengths of the window and of the baseline.
    """
    whole_before = sum_counts(row.before for row in rows)
    whole = sum_counts(row.after for row in rows)
    before, after = quantile(whole_before), quantile(whole)
    groups = {}
    for key, members in groups_of(row.labels for row in rows).items():
        first = sum_counts(rows[at].before for at in members)
        second = sum_counts(rows[at].after for at in members)
        groups[key] = ChangedGroup(
            label=key[0],
            value=key[1],
            before=quantile(first) if first else None,
            after=quantile(second) if second else None,
            change=replaced_effect(whole, first, second, windows.scale),
            count_before=round(sum(first.values())),
            count=round(sum(second.values())),
        )
    threshold = min(before, after)
    events = [_slow(row, threshold, windows) for row in rows]
    model = outliers(events, windows)
    out = [
        excess
        for excess in model.named
        if groups[excess.key].change * excess.excess > 0
        # A group that became faster is no cause of a rise.
        and groups[excess.key].change * (after - before) >= 0
        and abs(groups[excess.key].change) >= LEAST_EFFECT * before
    ]
    model = model._replace(named=out)
    return _causes(before, after, groups, events, windows, model, additive=False)


def _slow(row: HistogramRow, threshold: float, windows: Windows) -> Events:
    """Return the values above a threshold, among all of the same label set."""
    requests = Events(
        row.labels,
        sum(row.before.values()),
        sum(row.after.values()),
        [sum(each.values()) for each in row.history],
    )
    return Events(
        row.labels,
        above(row.before, threshold),
        above(row.after, threshold),
        [above(each, threshold) for each in row.history],
        among=requests,
        shifted=_shifted(
            sum_counts(row.history) if windows.adjacent else row.before, threshold, requests.after
        ),
    )


def _shifted(
    buckets: EdgeCounts, threshold: float, number: float
) -> Callable[[float], float] | None:
    """Return a function: how many of so many values are above a threshold, if all are higher by a
    factor than those of a histogram. None for a threshold that is not positive."""
    if threshold <= 0:
        return None
    indexes = {round(PER_DOUBLING * math.log2(edge)): n for edge, n in buckets.items() if edge > 0}
    if not indexes:
        return lambda _: 0.0
    first, last = min(indexes), max(indexes)
    #: Values in this bucket and all higher ones.
    higher = [0.0]
    for index in range(last, first - 1, -1):
        higher.append(higher[-1] + indexes.get(index, 0.0))
    share, position = number / sum(buckets.values()), PER_DOUBLING * math.log2(threshold)

    def expected(factor: float) -> float:
        earlier = position - PER_DOUBLING * math.log2(factor)
        index = math.ceil(earlier)
        if index > last:
            return 0.0
        if index < first:
            return share * higher[-1]
        edge = 2 ** (index / PER_DOUBLING)
        part = (edge - 2 ** (earlier / PER_DOUBLING)) / (edge - edge / _BASE)
        return share * (higher[last - index] + part * indexes.get(index, 0.0))

    return expected


def replaced_effect(
    whole: EdgeCounts, before: EdgeCounts, after: EdgeCounts, scale: float
) -> float:
    """Return a p95 less the same with a group replaced by its baseline.

    Args:
        whole: the values of all groups in the window.
        before, after: the values of the group in the baseline and in the window.
    """
    replaced = dict(whole)
    for edge, count in after.items():
        replaced[edge] = replaced.get(edge, 0.0) - count
    for edge, count in before.items():
        replaced[edge] = replaced.get(edge, 0.0) + scale * count
    left = {edge: count for edge, count in replaced.items() if count > 1e-9}
    return quantile(whole) - quantile(left) if left else 0.0


def above(buckets: EdgeCounts, threshold: float) -> float:
    """Return the number of values above a threshold, interpolated within its bucket."""
    number = 0.0
    for edge, count in buckets.items():
        lower = lower_edge(edge)
        if lower >= threshold:
            number += count
        elif edge > threshold:
            number += count * (edge - threshold) / (edge - lower)
    return number


# --- What all have in common ---------------------------------------------------------------


def judged(intervals: int) -> str:
    """Return why noise cannot be estimated from so many intervals; "" if it can."""
    if intervals >= FEWEST_INTERVALS:
        return ""
    return (
        f"{intervals} intervals before the window, {FEWEST_INTERVALS} are needed to estimate noise"
    )


def _causes(
    before: float,
    after: float,
    groups: Mapping[Key, ChangedGroup],
    events: Sequence[Events],
    windows: Windows,
    model: Model,
    *,
    additive: bool = True,
) -> Causes:
    causes = [replace(groups[excess.key], named=True) for excess in model.named]
    causes.sort(key=lambda one: (one.change * (after - before) < 0, -abs(one.change)))
    named = {(one.label, one.value) for one in causes}
    dimensions = []
    for label, values in _by_label(groups).items():
        rows = [replace(one, named=(label, one.value) in named) for one in values.values()]
        rows.sort(key=lambda one: (not one.named, -abs(one.change), one.value or ""))
        rest = [row.change for row in rows[LISTED_GROUPS:]]
        dimensions.append(
            ChangedLabel(
                label=label,
                groups=tuple(rows[:LISTED_GROUPS]),
                of=len(rows),
                rest=sum(rest) if additive else None,
            )
        )
    has_changed = changed(events, windows)
    unnamed = has_changed and not causes
    even = unnamed and not model.groups and alike(events, windows)
    uneven = unnamed and model.groups > 0
    return Causes(before, after, dimensions, causes, has_changed, even, uneven)


def _by_label(groups: Mapping[Key, T]) -> dict[str, dict[str | None, T]]:
    labels: dict[str, dict[str | None, T]] = {}
    for (label, value), one in groups.items():
        labels.setdefault(label, {})[value] = one
    return labels


def _sum(rows: Sequence[Events], members: Sequence[int], name: str) -> int:
    return int(sum([getattr(rows[at], name) for at in members]))
