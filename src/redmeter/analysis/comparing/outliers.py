"""Groups that stand out: whose change differs from that of all others, beyond noise.

Problem: when everything doubles, every group doubles, and that explains nothing. When one route
rises five times, the shares of all other routes fall, though nothing happened to them.

Idea: a group is compared with the common growth, a weighted median of the growth of all label sets,
which one group does not move. The excess of a group is its events in the window less the expected
ones at the common growth.

    exposure    an event is expected where it could happen: failures and slow requests in proportion
                to the requests of the same label set, counts by time
    reference   all intervals before the window, if the baseline ends there, since more intervals
                show better how much is usual. Otherwise the baseline
    noise       counts vary more than by chance: see noise.py
    test        given all events, those of the window are binomial. The reference counts as the
                number of events that its noise is worth. Exact for random events, also for few
    starts      a change of a count may begin with the window or within it. Each start is tested by
                all intervals from it on, weighted by precision: where bursts last, the first
                ones most (generalized least squares). The expected count of an interval comes from
                all other groups in it, so that no traffic that all share is taken for a change
    many tests  the level ALPHA is divided among the groups of all labels and the starts
                (Bonferroni): half of it equally, half by the groups' parts of the events
    least       an effect of LEAST_RATIO, and a part of the largest one
    one name    a change of one route also shows in its method. The group whose excess is largest
                and that is the smallest part of the expected events is named; then its label sets
                count as expected, and the others are tested anew

Bound: groups times series, for each named group; a few milliseconds for 1,000 label sets.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from redmeter.analysis.comparing.noise import (
    Noise,
    Shift,
    Track,
    Windows,
    fit,
    others_of,
    predict,
    shifts,
    sums,
)
from redmeter.analysis.comparing.significance import split_probability

#: Probability that any group is named where there is only noise.
ALPHA: Final = 0.01
#: The share of it for a change that begins with the window; the rest is for later starts.
ALIGNED: Final = 0.8
#: Part of all events up to which a group's intervals are compared with those of the others.
LARGEST: Final = 0.8
#: The same of the total, which is not a cause.
CHANGED: Final = 0.01
#: Least growth relative to the common growth, or its inverse.
LEAST_RATIO: Final = 1.25
#: Least excess, as a share of that of the first group.
LEAST_SHARE: Final = 0.1
#: Most groups that are named.
MAX_NAMED: Final = 10
#: Intervals that are needed to estimate noise.
FEWEST_INTERVALS: Final = 8
#: Variation between groups that limits the weight of a large group in the common growth.
_BETWEEN: Final = 0.3
#: Events that are added to both counts of a label set for the median.
_PRIOR: Final = 0.5


_NOTHING: Final = Track((), ())
_NO_NOISE: Final = Noise()

#: A label and its value; None for series without the label.
Key = tuple[str, str | None]


@dataclass(slots=True)
class Events:
    """The events of one label set."""

    labels: Mapping[str, str]
    #: Events of the baseline, not scaled, and of the window.
    before: float = 0.0
    after: float = 0.0
    #: Events of each interval before the window.
    history: Sequence[float] = ()
    #: Events of each interval of the window; empty if only the sum is known.
    within: Sequence[float] = ()
    #: The requests among which these events are, in the same intervals; None if they are counted
    #: by time.
    among: "Events | None" = None


class Excess(NamedTuple):
    """A group whose change differs from that of the others."""

    key: Key
    #: Events beyond the expected ones; negative if they are fewer.
    excess: float


@dataclass(slots=True)
class _Group:
    members: list[int] = field(default_factory=list)
    #: Its share of the expected events.
    part: float = 0.0
    #: By which factor its reference is higher than usual, and how many events it is worth.
    level: float = 1.0
    worth: float = 0.0
    #: Its events by interval before the window, and how much they vary.
    track: Track = _NOTHING
    noise: Noise = _NO_NOISE


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


def common_growth(pairs: Iterable[tuple[float, float]]) -> float:
    """Return the weighted median of the growth of label sets, from expected and counted events."""
    growths = []
    for expected, after in pairs:
        if not expected and not after:
            continue
        noise = 1.0 / (after + _PRIOR) + 1.0 / (expected + _PRIOR)
        growths.append((_ratio(expected, after), 1.0 / (noise + _BETWEEN**2)))
    growths.sort()
    half = sum(weight for _, weight in growths) / 2
    for growth, weight in growths:
        half -= weight
        if half <= 0:
            return growth
    return 1.0


def from_baseline(one: Events, windows: Windows) -> float:
    """Return the events that a label set's baseline leads one to expect in the window."""
    if one.among is None:
        return one.before * windows.scale
    # A label set that had no requests counts as one that had one.
    return one.before * (one.among.after + windows.scale) / (one.among.before + 1.0)


def _from_history(one: Events, windows: Windows) -> float:
    """Return the events that a label set's history leads one to expect in the window."""
    number = sum(one.history)
    if one.among is None:
        return number * windows.window / len(one.history)
    return number * one.among.after / max(sum(one.among.history), 1.0)


def outliers(events: Sequence[Events], windows: Windows) -> list[Excess]:
    """Return the groups that stand out, the main one first.

    Args:
        events: of each label set, all with as many intervals of history; with fewer than
            FEWEST_INTERVALS, the result is empty.
    """
    if not events or len(events[0].history) < FEWEST_INTERVALS:
        return []
    by_key = groups_of(one.labels for one in events)
    groups = {key: _Group(members) for key, members in by_key.items()}
    after = [one.after for one in events]
    baseline = [from_baseline(one, windows) for one in events]
    growth = common_growth(zip(baseline, after, strict=True))
    baseline = [growth * one for one in baseline]
    expected = baseline
    if windows.adjacent:
        expected = [_from_history(one, windows) for one in events]
        growth = common_growth(zip(expected, after, strict=True))
        expected = [growth * one for one in expected]
    _estimate(groups, events, expected, windows)
    #: The part of a window that has the events of the reference: where there are none.
    share = growth * (
        windows.window / len(events[0].history) if windows.adjacent else windows.scale
    )
    within = _Within(events, windows)
    labels = len({label for label, _ in groups})

    def is_beyond_noise(group: _Group) -> bool:
        if within.known and group.worth and group.part <= LARGEST:
            likely = within.chance(group)
        else:
            first, second = _sums(group, expected, after, group.level)
            likely = split_probability(second, group.worth, _share(first, group.worth, share))
        return likely <= ALPHA * (group.part / labels + 1 / len(groups)) / 2

    named: list[Excess] = []
    while len(named) < MAX_NAMED:
        candidates = []
        for key, group in groups.items():
            excess = _excess(group, expected, after)
            if named and abs(excess) < LEAST_SHARE * abs(named[0].excess):
                continue
            if excess and _is_large(group, baseline, after, excess):
                candidates.append((abs(excess) * (1.0 - group.part), Excess(key, excess)))
        candidates.sort(key=lambda one: -one[0])
        best = next((one for _, one in candidates if is_beyond_noise(groups[one.key])), None)
        if best is None:
            break
        named.append(best)
        group = groups[best.key]
        for at in group.members:
            after[at] = expected[at] * group.level
            baseline[at] = after[at]
        within.leave_out(group)
    return named


class _Within:
    """The intervals of the window: their counts, and those that the history leads to expect."""

    def __init__(self, events: Sequence[Events], windows: Windows) -> None:
        self.known = windows.adjacent and all(one.within for one in events)
        if not self.known:
            return
        self.counts = [list(one.within) for one in events]
        self.usual: list[list[float]] = []
        for one in events:
            requests = (one.among and one.among.within) or [1.0] * windows.window
            whole = sum(one.among.history) if one.among else len(one.history)
            rate = sum(one.history) / whole if whole else 0.0
            self.usual.append([rate * n for n in requests])
        self.total, self.usual_total = sums(self.counts), sums(self.usual)

    def chance(self, group: _Group) -> float:
        """Return the probability of a change like that of a group, for any start of it."""
        within = self._track(group)
        chances = [_chance_of(shift) for shift in shifts(group.track, within, group.noise)]
        if not chances:
            return 1.0
        return min(chances[0] / ALIGNED, len(chances) * min(chances) / (1 - ALIGNED))

    def leave_out(self, group: _Group) -> None:
        """Leave the events of a named group out of all others."""
        for at in group.members if self.known else ():
            for counts, total in ((self.counts, self.total), (self.usual, self.usual_total)):
                for interval, count in enumerate(counts[at]):
                    total[interval] -= count
                counts[at] = [0.0] * len(total)

    def _track(self, group: _Group) -> Track:
        """Return the counts of a group, and those that all others lead one to expect."""
        counts = sums(self.counts[at] for at in group.members)
        usual = sums(self.usual[at] for at in group.members)
        totals = zip(self.total, counts, self.usual_total, usual, strict=True)
        expected = [
            (total - count) * one / (whole - one) if whole > one else 0.0
            for total, count, whole, one in totals
        ]
        return Track(counts, expected, group.track.others)


def _chance_of(shift: Shift) -> float:
    """Return the probability of a change at least as large as this one, where there is none."""
    size, variance, expected = shift
    beyond = max(variance - 1 / expected, 1e-9)
    return split_probability(
        max(0.0, expected * (1 + size)), 1 / beyond, expected / (expected + 1 / beyond)
    )


def changed(events: Sequence[Events], windows: Windows) -> bool:
    """Return whether all events together changed, beyond noise."""
    totals = sums(one.history for one in events)
    if len(totals) < FEWEST_INTERVALS:
        return False
    before, after = sum(one.before for one in events), sum(one.after for one in events)
    expected = sum(from_baseline(one, windows) for one in events)
    track = Track(totals, _expected_of(totals, events))
    worth = _worth(before, fit([track])[0], windows)
    scale = expected / before if before else windows.scale
    return split_probability(after, worth, _share(expected, worth, scale)) <= CHANGED


def _expected_of(history: Sequence[float], members: Sequence[Events]) -> list[float]:
    """Return the expected events of each interval, without what all groups have in common."""
    expected = [0.0] * len(history)
    for one in members:
        number = sum(one.history)
        if one.among is None:
            mean = number / len(history)
            expected = [sum_ + mean for sum_ in expected]
        elif whole := sum(one.among.history):
            rate = number / whole
            requests = one.among.history
            expected = [sum_ + rate * n for sum_, n in zip(expected, requests, strict=True)]
    return expected


def _estimate(
    groups: Mapping[Key, _Group],
    events: Sequence[Events],
    expected: Sequence[float],
    windows: Windows,
) -> None:
    """Set the part of each group, its level, and the worth of its reference."""
    totals = sums(one.history for one in events)
    usual = _expected_of(totals, events)
    common = [total / one if one else 1.0 for total, one in zip(totals, usual, strict=True)]
    whole, counted = sum(expected) or 1.0, sum(totals) or 1.0
    labels: dict[str, dict[Key, Track]] = {}
    for key, group in groups.items():
        members = [events[at] for at in group.members]
        history = sums(one.history for one in members)
        rates = _expected_of(history, members)
        track = Track(
            history,
            [one * factor for one, factor in zip(rates, common, strict=True)],
            others_of(sum(history) / counted),
        )
        labels.setdefault(key[0], {})[key] = track
        group.part = min(1.0, sum([expected[at] for at in group.members]) / whole)
    for tracks in labels.values():
        for (key, track), noise in zip(tracks.items(), fit(list(tracks.values())), strict=True):
            group = groups[key]
            group.track, group.noise = track, noise
            if windows.adjacent:
                group.level, variance = predict(track, noise, windows)
                group.worth = 1.0 / variance
                if not sum(track.counts):
                    group.level, group.worth = 1.0, 0.0
            else:
                number = sum([events[at].before for at in group.members])
                group.worth = _worth(number, noise, windows)


def _worth(before: float, noise: Noise, windows: Windows) -> float:
    """Return the number of events that a baseline is worth, with the noise of both windows."""
    if before <= 0:
        return 0.0
    return 1.0 / (1.0 / before + noise.of_mean(windows.window) + noise.of_mean(windows.baseline))


def _share(expected: float, worth: float, otherwise: float) -> float:
    """Return the part of all events that is expected in the window."""
    return expected / (expected + worth) if worth else otherwise / (1.0 + otherwise)


def _sums(
    group: _Group, expected: Sequence[float], after: Sequence[float], level: float
) -> tuple[float, float]:
    """Return the expected events of a group, and those that were counted."""
    members = group.members
    return level * sum([expected[at] for at in members]), sum([after[at] for at in members])


def _ratio(expected: float, after: float) -> float:
    return (after + _PRIOR) / (expected + _PRIOR)


def _is_large(
    group: _Group, baseline: Sequence[float], after: Sequence[float], excess: float
) -> bool:
    """Return whether a group differs enough from its baseline, in the direction of its excess."""
    ratio = _ratio(*_sums(group, baseline, after, 1.0))
    return ratio >= LEAST_RATIO if excess > 0 else ratio <= 1.0 / LEAST_RATIO


def _excess(group: _Group, expected: Sequence[float], after: Sequence[float]) -> float:
    """Return the excess of a group; 0 if it is small."""
    first, second = _sums(group, expected, after, group.level)
    ratio = _ratio(first, second)
    is_small = not math.isfinite(ratio) or 1.0 / LEAST_RATIO < ratio < LEAST_RATIO
    return 0.0 if is_small else second - first
