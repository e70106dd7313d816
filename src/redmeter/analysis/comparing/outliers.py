"""Groups that stand out: that changed, otherwise than all others did, beyond noise.

Problem: when everything doubles, every group doubles, and that explains nothing. When one route
rises five times, the shares of all other routes fall, though nothing happened to them. When a plan
with 60 % of the traffic doubles, most of the traffic doubled, and the others, which stayed, are not
the cause.

Idea: in a model, some groups changed, each by its own factor, and all the rest by a common
one. The likelihood chooses among models, each built step by step from another common factor.

    exposure    an event is expected where it could happen: failures and slow requests in proportion
                to the requests of the same label set, counts by time
    reference   all intervals before the window, if the baseline ends there, since more intervals
                show better how much is usual. Otherwise the baseline
    start       the common factor that a model begins with: 1, the weighted median of the growth of
                all label sets, and the growth of the rest of each large group
    step        the group that explains most by a factor of its own, by likelihood; then its label
                sets count as expected. A change of one route also shows in its method, but the
                other routes of the method do not fit. Where two groups explain as much, a route is
                preferred
    noise       counts vary more than by chance: see noise.py
    test        every group of a model has to differ from the rest of it. Given all events, those of
                the window are binomial. The reference counts as the number of events that its noise
                is worth. Exact for random events, also for few
    shifts      a change of a count may begin with the window or within it. Each start is tested by
                all intervals from it on, weighted by precision: where bursts last, the first
                ones most (generalized least squares). The expected count of an interval comes from
                all other groups in it, so that no traffic that all share is taken for a change
    many tests  the level ALPHA is divided among the groups of all labels and the starts
                (Bonferroni): half of it equally, half by the groups' parts of the events. A group
                with most of the events, whose own change is significant, is tested at
                ALPHA by the number of labels: that the others stayed shows by few events
    choice      of the models: deviance, divided by the dispersion that the best of them leaves, and
                a penalty for each group and for a common factor other than 1
    least       an effect of LEAST_RATIO, and a part of the largest one
    names       a group is named if it also differs from its own baseline, in the same direction. A
                group that stayed while all others rose is no cause of the rise

Bound: groups times series, for each start and group; a few milliseconds for 1,000 label sets.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import sub
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
#: The share of it for each further group: that there are several causes is rarer.
FURTHER: Final = 0.1
#: Part of all events from which on a group whose change is significant needs less to differ from
#: the rest: its level is divided among the labels, of which each has one such group.
MAJORITY: Final = 0.5
#: The share of it for a change that begins with the window; the rest is for later starts.
ALIGNED: Final = 0.8
#: Part of all events from which on the growth of a group's rest is tried as the common one.
LARGE: Final = 0.3
#: Part of the best explanation from which on another one is as good.
AS_GOOD: Final = 0.9
#: Least deviance that a group explains.
LEAST_DEVIANCE: Final = 3.0
#: What a group of a model costs, in deviance, and a common factor of LEAST_RATIO or more.
PENALTY: Final = 10.0
COMMON_PENALTY: Final = 15.0
#: The label that is preferred.
PREFERRED: Final = "route"
#: The same of the total, which is not a cause.
CHANGED: Final = 0.01
#: The same of a group that differs from the rest already.
CHANGED_ITSELF: Final = 0.05
#: Least growth relative to the common growth, or its inverse.
LEAST_RATIO: Final = 1.25
#: The same, or its inverse, relative to the group's own baseline.
LEAST_OWN_RATIO: Final = 1.15
#: Least excess, as a share of that of the first group.
LEAST_SHARE: Final = 0.1
#: Least part of a change, without which the others' is looked at alone.
LEAST_PART: Final = 0.2
#: Most groups that are named.
MAX_NAMED: Final = 10
#: Intervals that are needed to estimate noise.
FEWEST_INTERVALS: Final = 8
#: Variation between groups that limits the weight of a large group in the common growth.
_BETWEEN: Final = 0.3
#: Events that are added to both counts of a label set for the median.
_PRIOR: Final = 0.5
#: Expected events that are none but for rounding.
_NONE: Final = 1e-9
#: Common factors that differ by less, on a logarithmic scale, are the same.
_SAME: Final = 0.05
#: Rounds in which the factors of groups that overlap are fitted, and the change that ends them.
_ROUNDS: Final = 10
_SETTLED: Final = 1e-3
#: Doublings by which values are higher at most, and how often this range is halved.
_FARTHEST, _HALVINGS = 6.0, 14

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
    #: If these are the values above a threshold: how many are expected in the window if all values
    #: were higher by a factor. None if there are more events by the factor itself.
    shifted: Callable[[float], float] | None = None


class Excess(NamedTuple):
    """A group whose change differs from that of the rest."""

    key: Key
    #: Events beyond the expected ones; negative if they are fewer.
    excess: float


class Model(NamedTuple):
    """Which groups changed otherwise than the rest."""

    #: Those that differ from their own baseline as well.
    named: list[Excess]
    #: How many groups differ from the rest.
    groups: int
    #: Its deviance from the counts of all label sets, and the penalty of its parameters.
    deviance: float
    penalty: float


@dataclass(slots=True)
class _Group:
    members: list[int] = field(default_factory=list)
    #: Its share of the expected events.
    part: float = 0.0
    #: By which factor its reference is higher than usual, and how many events it is worth.
    level: float = 1.0
    worth: float = 0.0
    #: The probability of its change, if nothing changed, below which it is named.
    significance: float = 0.0
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


def outliers(events: Sequence[Events], windows: Windows) -> Model:
    """Return the groups that differ from the rest.

    Args:
        events: of each label set, all with as many intervals of history; with fewer than
            FEWEST_INTERVALS, no group does.
    """
    if not events or len(events[0].history) < FEWEST_INTERVALS:
        return Model([], 0, 0.0, 0.0)
    finder = _Finder(events, windows)
    return likeliest(list(map(finder.model, finder.starts())), len(events))


def likeliest(models: Sequence[Model], label_sets: int) -> Model:
    """Return the model of the same counts that fits best, with its penalty."""
    dispersion = max(1.0, min(model.deviance for model in models) / label_sets)
    return min(models, key=lambda model: model.deviance / dispersion + model.penalty)


class _Factors(NamedTuple):
    """The factors of a model."""

    common: float
    #: The factor of each group, and their product for each label set.
    groups: Mapping[Key, float]
    scale: Sequence[float]
    #: The events of the rest by interval of the window, and the expected ones.
    within: Sequence[float]
    usual: Sequence[float]


class _Finder:
    """Finds models of the changes of label sets."""

    def __init__(self, events: Sequence[Events], windows: Windows) -> None:
        self.after = [one.after for one in events]
        self.baseline = [from_baseline(one, windows) for one in events]
        self.expected = self.baseline
        if windows.adjacent:
            self.expected = [_from_history(one, windows) for one in events]
        self.events = events
        #: The part of a window that has the events of the reference: where there are none.
        self.share = windows.window / len(events[0].history) if windows.adjacent else windows.scale
        by_key = groups_of(one.labels for one in events)
        self.groups = {key: _Group(members) for key, members in by_key.items()}
        _estimate(self.groups, events, self.expected, windows)
        labels = len({label for label, _ in self.groups})
        self.of_majority = ALPHA / labels if labels else 0.0
        for group in self.groups.values():
            group.significance = ALPHA * (group.part / labels + 1 / len(self.groups)) / 2
        #: The events of each interval of the window, and the expected ones, if they are known.
        self.within: list[Sequence[float]] = []
        self.usual: list[list[float]] = []
        if windows.adjacent and all(one.within for one in events):
            self.within = [one.within for one in events]
            self.usual = [_usual_within(one, windows) for one in events]
        self.totals_within = sums(self.within), sums(self.usual)
        self.fits: dict[frozenset[Key], _Factors] = {}
        self.chances: dict[tuple[Key, frozenset[Key]], float] = {}

    def starts(self) -> list[float]:
        """Return the common factors that models begin with."""
        every = range(len(self.events))
        if self.events[0].shifted:
            growths = [self._factor([at], [1.0], self.after[at]) for at in every]
            growths = [sorted(growths)[len(growths) // 2]]
        else:
            growths = [common_growth(zip(self.expected, self.after, strict=True))]
        for group in self.groups.values():
            if LARGE <= group.part < 1:
                inside = set(group.members)
                growths.append(self._common([at for at in every if at not in inside]))
        starts = [1.0]
        for growth in growths:
            if all(abs(math.log(growth / one)) > _SAME for one in starts):
                starts.append(growth)
        return starts

    def _grown(self, at: int, factor: float) -> float:
        """Return the expected events of a label set that changed by a factor."""
        shifted = self.events[at].shifted
        return shifted(factor) if shifted else factor * self.expected[at]

    def _common(self, rest: Sequence[int]) -> float:
        """Return the common factor of label sets."""
        return self._factor(rest, [1.0] * len(rest), sum([self.after[at] for at in rest]))

    def _factor(self, members: Sequence[int], scale: Sequence[float], count: float) -> float:
        """Return the factor by which label sets changed that have so many events."""

        pairs = list(zip(members, scale, strict=True))
        if not self.events[0].shifted:
            return _ratio(sum([one * self.expected[at] for at, one in pairs]), count)

        def grown(factor: float) -> float:
            return sum([self._grown(at, factor * one) for at, one in pairs])

        low, high = -_FARTHEST, _FARTHEST
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if grown(2.0**middle) < count else (low, middle)
        return float(2.0 ** ((low + high) / 2))

    def model(self, growth: float) -> Model:
        """Return the model that is built from a common factor."""
        chosen = self._steps(growth)
        while chosen:
            chances = [self._chance(key, chosen) / self._level(key, chosen) for key in chosen]
            if max(chances) <= 1:
                break
            chosen.pop(chances.index(max(chances)))
        factors = self._fitted(frozenset(chosen))
        fitted = [self._grown(at, factors.common * one) for at, one in enumerate(factors.scale)]
        away = min(1.0, abs(math.log(factors.common)) / math.log(LEAST_RATIO))
        named = []
        for key in chosen:
            excess = self._own_excess(self.groups[key])
            if excess * math.log(factors.groups[key]) > 0:
                named.append(Excess(key, excess))
        return Model(
            named,
            len(chosen),
            sum(map(_deviance, fitted, self.after)),
            PENALTY * len(chosen) + COMMON_PENALTY * away**2,
        )

    def _level(self, key: Key, chosen: Sequence[Key]) -> float:
        """Return the significance that a group of a model needs, next to the rest of it."""
        group = self.groups[key]
        if key != chosen[0]:
            return FURTHER * group.significance
        return max(group.significance, self.of_majority if group.part >= MAJORITY else 0.0)

    def _own_excess(self, group: _Group) -> float:
        """Return by how many events a group differs from its own baseline; 0 for few."""
        first, second = _sums(group, self.baseline, self.after)
        before = sum([self.events[at].before for at in group.members])
        likely = split_probability(second, before, _share(first, before, self.share))
        is_small = abs(math.log(_ratio(first, second))) < math.log(LEAST_OWN_RATIO)
        return 0.0 if is_small or likely > CHANGED_ITSELF else second - first

    def _steps(self, growth: float) -> list[Key]:
        """Return the groups that explain most, step by step."""
        after = list(self.after)
        expected = [self._grown(at, growth) for at in range(len(after))]
        baseline = [growth * one for one in self.baseline]
        if self.events[0].shifted:
            baseline = list(expected)
        chosen: list[Key] = []
        largest = 0.0
        while len(chosen) < MAX_NAMED:
            candidates = []
            for key, group in self.groups.items():
                first, second = _sums(group, expected, after)
                first *= group.level
                excess, explained = second - first, _deviance(first, second)
                if explained < LEAST_DEVIANCE or abs(excess) < LEAST_SHARE * largest:
                    continue
                direction = _direction(first, second)
                if direction and direction == _direction(*_sums(group, baseline, after)):
                    candidates.append((explained, key, first, second))
            candidates.sort(key=lambda one: -one[0])
            least = 0.0
            best: Key | None = None
            for explained, key, first, second in candidates:
                if explained < least:
                    break
                if best and key[0] != PREFERRED:
                    continue
                group = self.groups[key]
                share = _share(first, group.worth, self.share * growth)
                if (
                    split_probability(second, group.worth, share) <= group.significance
                    or self._chance(key, chosen) <= group.significance
                ):
                    best, least = key, least or AS_GOOD * explained
                    if key[0] == PREFERRED:
                        break
            if best is None:
                break
            chosen.append(best)
            group = self.groups[best]
            first, second = _sums(group, expected, after)
            largest = max(largest, abs(second - first * group.level))
            for at in group.members:
                after[at] = expected[at] * group.level
                baseline[at] = after[at]
        return chosen

    def _fitted(self, chosen: frozenset[Key]) -> _Factors:
        """Fit a factor for each group, and a common one by the rest."""
        if chosen in self.fits:
            return self.fits[chosen]
        members = {key: self.groups[key].members for key in chosen}
        inside = {at for group in members.values() for at in group}
        common = self._common([at for at in range(len(self.after)) if at not in inside])
        scale = [common] * len(self.after)
        of_groups = dict.fromkeys(chosen, 1.0)
        for _ in range(_ROUNDS):
            before = dict(of_groups)
            for key, group in members.items():
                count = sum([self.after[at] for at in group])
                factor = self._factor(group, [scale[at] for at in group], count)
                of_groups[key] *= factor
                for at in group:
                    scale[at] *= factor
            if all(math.isclose(of_groups[key], before[key], rel_tol=_SETTLED) for key in chosen):
                break
        within, usual = self.totals_within
        if inside and within:
            within = list(map(sub, within, sums(self.within[at] for at in inside)))
            usual = list(map(sub, usual, sums(self.usual[at] for at in inside)))
        scale = [one / common for one in scale]
        self.fits[chosen] = _Factors(common, of_groups, scale, within, usual)
        return self.fits[chosen]

    def _chance(self, key: Key, chosen: Sequence[Key]) -> float:
        """Return the probability that a group differs so much from the rest of a model."""
        others = frozenset(chosen) - {key}
        if (key, others) not in self.chances:
            self.chances[key, others] = self._chance_beside(self.groups[key], others)
        return self.chances[key, others]

    def _chance_beside(self, group: _Group, others: frozenset[Key]) -> float:
        inside = {at for key in others for at in self.groups[key].members}
        members = [at for at in group.members if at not in inside]
        if not members or len(members) + len(inside) == len(self.after):
            return 1.0
        factors = self._fitted(others)
        if factors.within and group.worth and group.part < MAJORITY:
            return self._chance_within(group, members, factors)
        outside = inside.union(members)
        rest = [at for at in range(len(self.after)) if at not in outside]
        growth = self._common(rest)
        first = sum([self._grown(at, growth * factors.scale[at]) for at in group.members])
        counted = sum([self.after[at] for at in rest])
        worth = 1 / (1 / group.worth + 1 / (counted + _PRIOR)) if group.worth else 0.0
        share = _share(group.level * first, worth, self.share * growth)
        return split_probability(sum([self.after[at] for at in group.members]), worth, share)

    def _chance_within(self, group: _Group, own: Sequence[int], factors: _Factors) -> float:
        """Return the probability of a change like that of a group, for any start of it."""
        counts = sums(self.within[at] for at in group.members)
        usual = sums([factors.scale[at] * one for one in self.usual[at]] for at in group.members)
        rest = map(sub, factors.within, sums(self.within[at] for at in own))
        rest_usual = list(map(sub, factors.usual, sums(self.usual[at] for at in own)))
        expected = [
            n * one / of if of > _NONE else 0.0
            for n, one, of in zip(rest, usual, rest_usual, strict=True)
        ]
        part = sum(usual) / (sum(usual) + sum(rest_usual)) if sum(usual) else 0.0
        track = Track(counts, expected, others_of(part))
        chances = [_chance_of(shift) for shift in shifts(group.track, track, group.noise)]
        if not chances:
            return 1.0
        return min(chances[0] / ALIGNED, len(chances) * min(chances) / (1 - ALIGNED))


def _usual_within(one: Events, windows: Windows) -> list[float]:
    """Return the events that a label set's history leads one to expect in each interval."""
    requests = (one.among and one.among.within) or [1.0] * windows.window
    whole = sum(one.among.history) if one.among else len(one.history)
    rate = sum(one.history) / whole if whole else 0.0
    return [rate * n for n in requests]


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


def alike(events: Sequence[Events], windows: Windows) -> bool:
    """Return whether a total that changed would have without any group as well."""
    differences = [one.after - from_baseline(one, windows) for one in events]
    whole = sum(differences)
    largest: dict[str, tuple[float, list[int]]] = {}
    for (label, _), members in groups_of(one.labels for one in events).items():
        part = sum([differences[at] for at in members]) / whole if whole else 0.0
        largest[label] = max(largest.get(label, (LEAST_PART, [])), (part, members))
    for part, members in largest.values():
        inside = set(members)
        rest = [one for at, one in enumerate(events) if at not in inside]
        if part >= 1 or (members and not changed(rest, windows)):
            return False
    return True


def _expected_of(history: Sequence[float], members: Sequence[Events]) -> list[float]:
    """Return the expected events of each interval, without what all groups have in common."""
    expected = [0.0] * len(history)
    counted = 0.0
    for one in members:
        number = sum(one.history)
        if one.among is None:
            counted += number
        elif whole := sum(one.among.history):
            rate = number / whole
            requests = one.among.history
            expected = [sum_ + rate * n for sum_, n in zip(expected, requests, strict=True)]
    mean = counted / len(history)
    return [one + mean for one in expected]


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


def _sums(group: _Group, expected: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Return the expected events of a group, and those that were counted."""
    return sum([expected[at] for at in group.members]), sum([after[at] for at in group.members])


def _ratio(expected: float, after: float) -> float:
    return (after + _PRIOR) / (expected + _PRIOR)


def _direction(first: float, second: float) -> int:
    """Return 1 for a large rise, -1 for a large fall, else 0."""
    ratio = _ratio(first, second)
    return 1 if ratio >= LEAST_RATIO else -1 if ratio <= 1 / LEAST_RATIO else 0


def _deviance(expected: float, count: float) -> float:
    """Return twice the logarithm by which a count is likelier with a factor of its own."""
    ratio = _ratio(expected, count)
    return 2 * ((count + _PRIOR) * math.log(ratio) - (count - expected))
