"""Groups that stand out: whose change differs from that of all others, beyond noise.

Problem: when everything doubles, every group doubles, and that explains nothing. When one route
rises five times, the shares of all other routes fall, though nothing happened to them.

Idea: a group is compared with the common growth, a weighted median of the growth of all label sets,
which one group does not move. The excess of a group is its events in the window less its events in
the baseline at the common growth.

    noise       counts vary more than by chance of their own. For each group, the intervals before
                the window show how much more: the dispersion is the long-run variance (with
                autocorrelation, weights after Bartlett) of the residuals of its share over their
                mean, and at least the typical one of all groups
    test        given all events of the group in both windows, those of the window are binomial;
                both counts are divided by the dispersion. Exact for random events, also for few
    many tests  the level ALPHA is divided by the number of groups of all labels (Bonferroni)
    least       an effect of LEAST_RATIO, and a part of the largest one
    one name    a change of one route also shows in its method. The group whose excess is largest
                and that is the smallest part of the baseline is named; then its label sets count as
                expected, and the others are tested anew

Bound: groups times series, for each named group; a few milliseconds for 1,000 label sets.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from redmeter.analysis.tails import chance

#: Probability that any group is named where there is only noise, if the dispersion is right.
ALPHA: Final = 0.001
#: The same of the total, which is not a cause.
CHANGED: Final = 0.01
#: Least growth relative to the common growth, or its inverse.
LEAST_RATIO: Final = 1.25
#: Least excess, as a share of that of the first group.
LEAST_SHARE: Final = 0.1
#: Most groups that are named.
MAX_NAMED: Final = 10
#: Intervals that are needed to estimate the dispersion, and after how many its uncertainty has
#: halved.
FEWEST_INTERVALS: Final = 8
_UNCERTAIN: Final = 8.0
#: Lags of the autocorrelation that count.
_LAGS: Final = 10
#: Variation between groups that limits the weight of a large group in the common growth.
_BETWEEN: Final = 0.3
#: Events that are added to both counts of a label set for the median.
_PRIOR: Final = 0.5
#: Means of an interval from which a group's dispersion is part of the typical one.
_MEASURABLE: Final = 0.5

#: A label and its value; None for series without the label.
Key = tuple[str, str | None]


@dataclass(slots=True)
class Events:
    """The events of one label set."""

    labels: Mapping[str, str]
    #: Events of the baseline and of the window.
    before: float
    after: float
    #: Events of each interval before the window, from which the dispersion is estimated.
    history: Sequence[float] = ()


class Excess(NamedTuple):
    """A group whose change differs from that of the others."""

    key: Key
    #: Events beyond the common growth; negative if they are fewer.
    excess: float


@dataclass(slots=True)
class _Group:
    members: list[int] = field(default_factory=list)
    dispersion: float = 1.0
    #: Its share of the baseline.
    part: float = 0.0


def groups_of(label_sets: Iterable[Mapping[str, str]]) -> dict[Key, list[int]]:
    """Return the label sets of each group by their positions, for all labels that differ."""
    rows = list(label_sets)
    by_key: dict[Key, list[int]] = {}
    for label in sorted({label for row in rows for label in row}):
        groups: dict[Key, list[int]] = {}
        for at, row in enumerate(rows):
            groups.setdefault((label, row.get(label)), []).append(at)
        if len(groups) > 1:
            by_key |= groups
    return by_key


class Dispersion(NamedTuple):
    """By how much the variance of a sum of counts exceeds that of random events."""

    #: The variance of an interval over its mean.
    ratio: float
    #: The long-run variance over that of an interval: above 1 if bursts last.
    lasting: float


def dispersion(history: Sequence[float], totals: Sequence[float]) -> Dispersion:
    """Estimate the dispersion of counts.

    Args:
        history: counts by interval.
        totals: the counts of all groups by interval; what all have in common is no noise.
    """
    number, total = len(history), sum(totals)
    share = sum(history) / total if total else 0.0
    if number < 2 or not share:
        return Dispersion(1.0, 1.0)
    errors = [count - share * whole for count, whole in zip(history, totals, strict=True)]
    variance = sum([error * error for error in errors])
    if not variance:
        return Dispersion(1.0, 1.0)
    long_run, lags = variance, min(_LAGS, number // 4)
    for lag in range(1, lags + 1):
        product = sum([one * other for one, other in zip(errors, errors[lag:], strict=False)])
        long_run += 2.0 * (1.0 - lag / (lags + 1)) * product
    mean = share * total / number
    ratio = max(1.0, variance / (number - 1) / mean)
    return Dispersion(ratio, max(1.0, long_run / variance))


def common_growth(events: Sequence[Events], prior: float) -> float:
    """Return the weighted median of the growth of label sets.

    Args:
        prior: the growth that is expected of few events: the ratio of the windows' lengths, or the
            growth of the requests among which the events are.
    """
    growths = []
    for one in events:
        if not one.before and not one.after:
            continue
        growth = (one.after + _PRIOR * prior) / (one.before + _PRIOR)
        noise = prior / (one.after + _PRIOR * prior) + 1.0 / (one.before + _PRIOR)
        growths.append((growth, 1.0 / (noise + _BETWEEN**2)))
    growths.sort()
    half = sum(weight for _, weight in growths) / 2
    for growth, weight in growths:
        half -= weight
        if half <= 0:
            return growth
    return prior


def outliers(events: Sequence[Events], prior: float) -> list[Excess]:
    """Return the groups that stand out, the main one first.

    Args:
        events: of each label set, all with as many intervals of history; with fewer than
            FEWEST_INTERVALS, the result is empty.
        prior: the growth that is expected of few events.
    """
    if not events or len(events[0].history) < FEWEST_INTERVALS:
        return []
    by_key = groups_of(one.labels for one in events)
    groups = {key: _Group(members) for key, members in by_key.items()}
    growth = common_growth(events, prior)
    _estimate(groups, events)
    before = [one.before for one in events]
    after = [one.after for one in events]
    named: list[Excess] = []
    while len(named) < MAX_NAMED:
        best, highest = None, 0.0
        for key, group in groups.items():
            excess = _excess(group, before, after, growth, len(groups))
            if named and abs(excess) < LEAST_SHARE * abs(named[0].excess):
                continue
            score = abs(excess) * (1.0 - group.part)
            if score > highest:
                best, highest = Excess(key, excess), score
        if best is None:
            break
        named.append(best)
        for at in groups[best.key].members:
            after[at] = growth * before[at]
    return named


def changed(events: Sequence[Events], growth: float) -> bool:
    """Return whether all events together grew otherwise than by a factor, beyond noise."""
    totals = [float(sum(counts)) for counts in zip(*(one.history for one in events), strict=True)]
    if len(totals) < FEWEST_INTERVALS:
        return False
    noise = dispersion(totals, [1.0] * len(totals))
    spread = noise.ratio * noise.lasting * (1.0 + _UNCERTAIN / len(totals))
    before, after = sum(one.before for one in events), sum(one.after for one in events)
    return chance(after / spread, before / spread, growth / (1.0 + growth)) <= CHANGED


def _estimate(groups: Mapping[Key, _Group], events: Sequence[Events]) -> None:
    """Set the dispersion of each group, which is at least the typical one, and its part."""
    totals = [float(sum(counts)) for counts in zip(*(one.history for one in events), strict=True)]
    whole = sum(one.before for one in events) or 1.0
    estimates: dict[Key, Dispersion] = {}
    measurable = []
    for key, group in groups.items():
        members = [events[at].history for at in group.members]
        history = [float(sum(counts)) for counts in zip(*members, strict=True)]
        estimates[key] = dispersion(history, totals)
        group.part = min(1.0, sum([events[at].before for at in group.members]) / whole)
        if sum(history) >= _MEASURABLE * len(totals):
            measurable.append(estimates[key])
    least = Dispersion(
        _median([one.ratio for one in measurable]), _median([one.lasting for one in measurable])
    )
    uncertainty = 1.0 + _UNCERTAIN / len(totals)
    for key, group in groups.items():
        ratio, lasting = estimates[key]
        group.dispersion = max(ratio, least.ratio) * max(lasting, least.lasting) * uncertainty


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 1.0


def _excess(
    group: _Group, before: Sequence[float], after: Sequence[float], growth: float, tests: int
) -> float:
    """Return the excess of a group; 0 if it may be noise or is small."""
    first = sum([before[at] for at in group.members])
    second = sum([after[at] for at in group.members])
    expected = growth * first
    ratio = (second + _PRIOR) / (expected + _PRIOR)
    if not math.isfinite(ratio) or 1.0 / LEAST_RATIO < ratio < LEAST_RATIO:
        return 0.0
    likely = chance(second / group.dispersion, first / group.dispersion, growth / (1.0 + growth))
    return second - expected if likely * tests <= ALPHA else 0.0
