"""Traffic: whether a count is as usual, since when it is not, and since when there is silence.

Problem: traffic varies by factors, by the hour of the day and the minute of the hour. A count that
is compared with the minutes right before it follows any fall after a while.

Idea: a fall or a rise is a step. For each moment at which it may have begun, the five-minute sums
since then are compared with the level of the hour before that moment.

    level       the median of the LEVEL_BLOCKS sums before; logarithms
    noise       how much the sums of the past differ from their own level (median of the distances),
                and chance
    minutes     what happens at the same five minutes of most hours is a habit, such as a batch at
                each full hour
    days        if earlier days are known by the hour, a sum within their range at this time of day
                is usual, regardless of the step: an opening at nine
    step        the change has to come within STEP_BLOCKS: a slow decline in the evening is none
    rises       a rise is usual if two earlier episodes of the last hours reached it: a crawler
    silence     no events at all, for much longer than ever before, though many were expected

A fall needs three low minutes of the last five: two missing ones are none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from statistics import median
from typing import Final

from redmeter.analysis.comparing.incidents import (
    BLOCK,
    DAY_SECONDS,
    FALSE_ALARM,
    MINUTE,
    RECENTLY,
    CellGrid,
)
from redmeter.analysis.comparing.significance import normal_quantile
from redmeter.clock import Zone
from redmeter.stored.keys import HOUR

#: Five-minute sums of a level, and of a baseline at least.
LEVEL_BLOCKS: Final = 12
#: In how many five-minute sums a step has to be complete.
STEP_BLOCKS: Final = 2
#: Part of the sums since a step that are nearer to the new level than to the old one.
_HELD: Final = 0.8
#: Least factor of a step, and of a count that no earlier day had though there was no step.
LEAST_FACTOR: Final = 1.25
_FAR: Final = 3.0
#: Standard deviations of a value that is not usual.
_DEVIATIONS: Final = normal_quantile(FALSE_ALARM)
#: Events that are expected at least in a silence, in multiples of the dispersion.
_EXPECTED: Final = -math.log(FALSE_ALARM)
#: How long a silence lasts at least, seconds, and how much longer than the longest before.
SILENCE_SECONDS: Final = 180
_LONGER: Final = 1.5
_PRIOR: Final = 0.375
#: Least factor of each hour of a new level to the same hours of the days before.
_HELD_FACTOR: Final = 1.5
#: Part of a rise that two earlier episodes had, if it is usual.
_REACHED: Final = 0.5


@dataclass(frozen=True, slots=True)
class Quiet:
    """A time without any events that is longer than any before."""

    #: Start, Unix seconds, and events that were expected in five minutes.
    since: int
    expected: float
    #: Width of the interval in which it began, seconds.
    precision: int


@dataclass(frozen=True, slots=True)
class NewLevel:
    """A level of traffic that has held for a day."""

    #: Unix seconds, and events a minute: since then, and on the day before.
    since: int
    now: float
    before: float


@dataclass(frozen=True, slots=True)
class TrafficJudgment:
    """A five-minute sum with its expected range."""

    state: str
    value: float
    low: float
    mid: float
    high: float
    #: The baseline, Unix seconds, and how many five-minute sums it has.
    since: int
    until: int
    blocks: int
    #: When the change began, and when it was over; None if it is not.
    began: int | None = None
    ended: int | None = None
    #: The value while it lasted, in five minutes.
    while_it_lasted: float | None = None


def silence(grid: CellGrid, counts: Sequence[int], of: Sequence[int] = ()) -> Quiet | None:
    """Return the silence that goes on; None if there are events, or silence is usual.

    Args:
        counts: of each cell.
        of: of all groups, if these are of one: then its share of them is expected.
    """
    last = len(grid)
    start = last
    while start and not counts[start - 1]:
        start -= 1
    if not start or start == last:
        return None
    began = grid.starts[start]
    seconds = grid.end - began
    if not SILENCE_SECONDS <= seconds < DAY_SECONDS:
        return None
    recorded = next(at for at, count in enumerate(counts) if count) + 1  # the first is a part
    first = max(grid.at(began - DAY_SECONDS), min(recorded, start - 1))
    among = of or grid.lengths
    spell = longest = 0
    for at in range(recorded, start):
        spell = 0 if counts[at] else spell + grid.lengths[at]
        longest = max(longest, spell)
    known = grid.starts[start - 1] - grid.starts[first]
    if known < LEVEL_BLOCKS * BLOCK or seconds <= _LONGER * longest + MINUTE:
        return None
    number, whole = sum(counts[first : start - 1]), sum(among[first : start - 1])
    rate = number / whole if whole else 0.0
    spread, blocks = 0.0, 0
    for a, b in grid.blocks:
        if first <= a and b <= start and grid.lengths[a] <= BLOCK:
            expected = rate * sum(among[a:b])
            if expected:
                spread += (sum(counts[a:b]) - expected) ** 2 / expected
                blocks += 1
    spread = max(1.0, spread / max(1, blocks - 1))
    # Bursts that last do not make silence likelier without end.
    spread = min(spread, max(4.0, number / known * BLOCK / 4))
    if rate * sum(among[start:]) < _EXPECTED * spread:
        return None
    # Part of the interval before may be silent, too.
    length = grid.lengths[start - 1]
    rest = max(0.0, 1 - counts[start - 1] / max(rate * among[start - 1], 1e-9))
    began -= int(rest * length) // MINUTE * MINUTE
    return Quiet(began, number / known * BLOCK, length)


class TrafficLevel:
    """The counts of a series by cell.

    Args:
        counts: of each cell.
        zone: whose hours of the day are compared.
    """

    def __init__(self, grid: CellGrid, counts: Sequence[int], zone: Zone) -> None:
        self._grid, self._counts, self._zone = grid, counts, zone
        #: Starts and sums of five minutes, the newest first; further back, means of an hour.
        self._sums: list[tuple[int, float]] = []
        #: How many five minutes each is of.
        self._sizes: list[int] = []
        for a, b in reversed(grid.blocks):
            size = sum(grid.lengths[a:b]) // BLOCK
            if size:
                self._sums.append((grid.starts[a], sum(counts[a:b]) / size))
                self._sizes.append(size)
        while self._sums and not self._sums[-1][1]:
            self._sums.pop()  # before the first event
        del self._sums[-1:]  # in which it came
        del self._sizes[len(self._sums) :]
        self._hours = self._learn_hours()
        self._profile = self._learn_profile()
        self._habits = self._learn_habits()
        #: Logarithms, without the habits of their minute and their hour.
        self._levels = [
            math.log(number + _PRIOR) - self._of_hour(start, size) - self._of_minute(start, size)
            for (start, number), size in zip(self._sums, self._sizes, strict=True)
        ]
        #: What a level of 1 leads to expect of the sums before each one, newest first: least, most.
        self._expected: tuple[list[float], list[float]] = ([0.0], [0.0])
        for at, size in enumerate(self._sizes):
            edges = self._edges(at, 0.0)
            for sums, edge in zip(self._expected, edges, strict=True):
                sums.append(sums[-1] + (edge + _PRIOR) * size)
        self._totals = [0.0, *accumulate(map(mul, (n for _, n in self._sums), self._sizes))]
        self._before = [0, *accumulate(self._sizes)]
        self._known: dict[tuple[int, int], float] = {}
        self._noise = self._learn_noise()

    @property
    def blocks(self) -> int:
        """How many five-minute sums are known before the last one."""
        return max(0, len(self._sums) - 1)

    def _of_minute(self, start: int, size: int) -> float:
        return sum(self._habit(start)) / 2 if size == 1 else 0.0

    def _of_hour(self, start: int, size: int) -> float:
        """Return the habit of the hour of the day, between the middles of hours; logarithms."""
        if not self._profile:
            return 0.0
        middle = start + size * BLOCK / 2 - HOUR / 2
        hour = math.floor(middle / HOUR) * HOUR
        part = (middle - hour) / HOUR
        low, high = (self._profile.get(at, 0.0) for at in (hour, hour + HOUR))
        return low + part * (high - low)

    def _learn_profile(self) -> dict[int, float]:
        """Return the usual count of the hours of the last day, by those of other days.

        Empty if fewer than two days are known: then none of their hours is usual yet.
        """
        newest = self._grid.end - self._grid.end % HOUR
        profile = {}
        for hour in range(newest - DAY_SECONDS - HOUR, newest + 2 * HOUR, HOUR):
            values = [
                math.log(self._hours[earlier] + 12 * _PRIOR)
                for day in range(1, 11)
                if (earlier := hour - self._zone.back(hour, day * DAY_SECONDS, HOUR)) in self._hours
            ]
            if len(values) < 2:
                return {}
            profile[hour] = median(values)
        middle = median(profile.values())
        return {hour: value - middle for hour, value in profile.items()}

    # --- Habits and noise ------------------------------------------------------------------------

    def _learn_habits(self) -> dict[int, float]:
        """Return by how much the sums of the same minutes of most hours differ: logarithms."""
        sums = dict[int, int]()
        for start, length, number in zip(
            self._grid.starts, self._grid.lengths, self._counts, strict=True
        ):
            if length <= BLOCK:
                slot = start // BLOCK
                sums[slot] = sums.get(slot, 0) + number
        slots = sorted(sums)[1:-1]
        ratios: dict[int, list[float]] = {}
        for slot in slots:
            around = [sums[near] for near in range(slot - 6, slot + 7) if near in sums]
            level = median(around)
            if level:
                ratio = math.log((sums[slot] + _PRIOR) / (level + _PRIOR))
                ratios.setdefault(slot % 12, []).append(ratio)
        habits = {}
        for position, found in ratios.items():
            middle = median(found)
            alike = sum(one * middle > 0 and abs(one) > abs(middle) / 2 for one in found)
            if len(found) > 1 and abs(middle) > 0.1 and alike >= _HELD * len(found):
                habits[position] = middle
        return habits

    def _habit(self, start: int) -> tuple[float, float]:
        """Return the least and the largest habit of the five minutes from a time on."""
        first = self._habits.get(start // BLOCK % 12, 0.0)
        if start % BLOCK == 0:
            return first, first
        second = self._habits.get((start // BLOCK + 1) % 12, 0.0)
        return min(first, second), max(first, second)

    def _learn_noise(self) -> float:
        """Return the standard deviation of sums from their level, beyond chance."""
        distances, chance = list[float](), list[float]()
        for at in range(1, len(self._levels) - LEVEL_BLOCKS):
            if self._sizes[at] > 1 and len(distances) >= LEVEL_BLOCKS:
                break
            level = self._level(at + 1)
            distances.append(abs(self._levels[at] - level))
            chance.append(1 / (self._sums[at][1] + 1))
        if not distances:
            return 0.1
        spread = 1.4826 * median(distances) * (1 + 2 / len(distances))
        return math.sqrt(max(spread**2 - 1.13 * median(chance), 0.0004))

    def _level(self, at: int, blocks: int = LEVEL_BLOCKS) -> float:
        """Return the level of so many five minutes before one."""
        known = self._known.get((at, blocks))
        if known is None:
            end, size = at, 0
            while end < len(self._sizes) and (size < blocks or end - at < 3):
                size += self._sizes[end]
                end += 1
            known = self._known[at, blocks] = median(self._levels[at:end])
        return known

    def _learn_hours(self) -> dict[int, int]:
        """Return the counts of complete hours."""
        hours: dict[int, int] = {}
        lengths: dict[int, int] = {}
        for start, length, number in zip(
            self._grid.starts, self._grid.lengths, self._counts, strict=True
        ):
            hour = start - start % HOUR
            hours[hour] = hours.get(hour, 0) + number
            lengths[hour] = lengths.get(hour, 0) + length
        recorded = [hour for hour in sorted(hours) if lengths[hour] == HOUR]
        first = next((at for at, hour in enumerate(recorded) if hours[hour]), len(recorded))
        return {hour: hours[hour] for hour in recorded[first + 1 :]}

    def _of_days(self, start: int) -> tuple[float, float, int] | None:
        """Return what five minutes had at this time of earlier days: least, most, how many days.

        The hour and its nearer neighbour count, since traffic may change within it or at its edge.
        """
        near = start - 1800, start + BLOCK + 1800
        touched = range(near[0] - near[0] % HOUR, near[1], HOUR)
        days: list[list[float]] = []
        for day in range(1, 11):
            values = []
            for hour in touched:
                back = self._zone.back(hour, day * DAY_SECONDS, HOUR)
                number = self._hours.get(hour - back)
                if number is not None:
                    values.append(number / 12)
            if len(values) == len(touched):
                days.append(values)
        if not days:
            return None
        older = sorted(days[1:], key=sum)
        if len(older) >= 5:
            older = older[1:-1]
        values = [value for one in [days[0], *older] for value in one]
        return min(values), max(values), len(days)

    def new_level(self) -> NewLevel | None:
        """Return the level that has become usual, since it has held for a day; None later on."""
        newest = max(self._hours, default=0)
        factors: list[float] = []
        for hour in range(newest - DAY_SECONDS - HOUR, newest + HOUR, HOUR):
            backs = (self._zone.back(hour, day * DAY_SECONDS, HOUR) for day in range(1, 8))
            before = [self._hours[hour - back] for back in backs if hour - back in self._hours]
            if hour not in self._hours or not before:
                return None
            factors.append(math.log((self._hours[hour] + 1) / (median(before) + 1)))
        first, _, *held = factors
        sign = 1 if held[0] > 0 else -1
        if min(one * sign for one in held) < math.log(_HELD_FACTOR) or abs(first) > math.log(
            LEAST_FACTOR
        ):
            return None
        hours = sorted(self._hours)
        return NewLevel(
            newest - DAY_SECONDS + HOUR,
            median(self._hours[hour] for hour in hours[-24:]) / 60,
            median(self._hours[hour] for hour in hours[-50:-26]) / 60,
        )

    # --- Judging ---------------------------------------------------------------------------------

    def _deviations(self, number: float, expected: float, blocks: float = 1) -> float:
        """Return by how many standard deviations a count is off.

        Args:
            expected: as many.
            blocks: five-minute sums that both are of.
        """
        noise = self._noise / math.sqrt(1 + (blocks - 1) / 3)
        level = self._noise**2 * 1.13 / LEVEL_BLOCKS
        by_factor = math.log((number + _PRIOR) / (expected + _PRIOR)) / math.sqrt(
            noise**2 + level + 1.13 / (expected + _PRIOR)
        )
        by_chance = (
            2
            * (math.sqrt(number + _PRIOR) - math.sqrt(expected + _PRIOR))
            / math.sqrt(1.13 + (noise**2 + level) * expected)
        )
        return min(by_factor, by_chance, key=abs)

    def _edges(self, at: int, level: float) -> tuple[float, float]:
        """Return what a level leads to expect of a sum, by the habits of its time."""
        start, size = self._sums[at][0], self._sizes[at]
        low, high = self._habit(start) if size == 1 else (0.0, 0.0)
        level += self._of_hour(start, size)
        return math.exp(level + low) - _PRIOR, math.exp(level + high) - _PRIOR

    def judge(self) -> TrafficJudgment:
        """Judge the last five minutes. At least LEVEL_BLOCKS sums before them are needed."""
        start, number = self._sums[0]
        first = self._sums[-1][0]
        usual = self._usual_judgment(start, number, first)
        for newest in range(RECENTLY // BLOCK):
            change = self._change(newest, first)
            if change is None:
                continue
            if newest:
                return replace(change, state="usual", value=number) if change.ended else usual
            return change
        return usual

    def _usual_judgment(self, start: int, number: float, first: int) -> TrafficJudgment:
        level = self._level(1)
        edges = self._edges(0, level)
        low, high = self._range(edges, self._of_days(start))
        far = self._far(start, number)
        state = far or "usual"
        low, high = (min(low, number), max(high, number)) if not far else (low, high)
        mid = sum(edges) / 2
        return TrafficJudgment(state, number, low, mid, high, first, start, self.blocks)

    def _range(
        self, edges: tuple[float, float], days: tuple[float, float, int] | None
    ) -> tuple[float, float]:
        """Return the expected range of a sum."""
        low, high = edges
        if days is not None:
            low, high = min(low, days[0]), max(high, days[1])

        def edge(inside: float, outside: float) -> float:
            expected = inside

            def is_out(number: float) -> bool:
                off = abs(math.log((number + _PRIOR) / (expected + _PRIOR)))
                far = abs(self._deviations(number, expected)) > _DEVIATIONS
                return far and off > math.log(LEAST_FACTOR)

            if not is_out(outside):
                return outside
            for _ in range(40):
                middle = (inside + outside) / 2
                if is_out(middle):
                    outside = middle
                else:
                    inside = middle
            return inside

        return edge(low, 0.0), edge(high, (4 + 40 * self._noise) * high + 100)

    def _far(self, start: int, number: float) -> str:
        """Return "low" or "high" if no earlier day had anything near, for a quarter of an hour."""
        states = set()
        for at in range(3):
            if at >= len(self._sums):
                return ""
            start, number = self._sums[at]
            days = self._of_days(start)
            if days is None or days[2] < 3:
                return ""
            low, high, _ = days
            habit = self._habit(start)
            low, high = low * math.exp(habit[0]), high * math.exp(habit[1])
            if number < low / _FAR and self._deviations(number, low) < -_DEVIATIONS:
                states.add("low")
            elif number > high * _FAR and self._deviations(number, high) > _DEVIATIONS:
                states.add("high")
            else:
                return ""
        return states.pop() if len(states) == 1 else ""

    def _change(self, newest: int, first: int) -> TrafficJudgment | None:
        """Return the change that goes on at one of the sums.

        Args:
            newest: the position of the sum.
        """
        best: tuple[float, TrafficJudgment] | None = None
        for begin in range(newest + 1, len(self._sums) - 2):
            if sum(self._sizes[begin:]) < LEVEL_BLOCKS or (
                self._grid.end - self._sums[begin][0] > DAY_SECONDS + HOUR
            ):
                break
            candidate = self._step(newest, begin, first)
            if candidate is not None and (best is None or candidate[0] > best[0]):
                best = candidate
        return None if best is None else best[1]

    def _step(self, newest: int, begin: int, first: int) -> tuple[float, TrafficJudgment] | None:
        """Judge the sums from one on, up to the newest, by the level before.

        Args:
            begin: one past the oldest sum of the change, which it may have a part of.
        """
        level = self._level(begin)
        if abs(self._levels[newest] - level) < math.log(LEAST_FACTOR) / 2:
            return None
        whole = range(newest, max(begin - 1, newest + 1))
        start, number = self._sums[newest]
        levels = level, self._level(begin, 3 * LEVEL_BLOCKS)
        stop = whole.stop
        blocks = self._before[stop] - self._before[newest]
        total = self._totals[stop] - self._totals[newest]
        least, most = (sums[stop] - sums[newest] for sums in self._expected)
        low = math.exp(min(levels)) * least - _PRIOR * blocks
        high = math.exp(max(levels)) * most - _PRIOR * blocks
        if low <= total <= high:
            return None
        edge = low if total < low else high
        strength = abs(self._deviations(total, edge, blocks))
        change = math.log((total + _PRIOR * blocks) / (edge + _PRIOR * blocks))
        if strength < _DEVIATIONS or abs(change) < math.log(LEAST_FACTOR):
            return None
        sign = 1 if change > 0 else -1
        offsets = [
            (value - level) * sign for value in self._levels[newest : max(begin - 1, newest + 1)]
        ]
        far = [offset > abs(change) / 2 for offset in offsets]
        if not far[0] or sum(far) < _HELD * len(far):
            return None
        # The step itself: the sums right before it are near the old level, those after it are not.
        after = offsets[-STEP_BLOCKS:]
        before = [(value - level) * sign for value in self._levels[begin : begin + 2]]
        if max(after) < 0.6 * abs(change) or min(before) > 0.4 * abs(change):
            return None
        days = self._of_days(start)
        if days is None and self._drifts(newest, begin, abs(change)):
            return None
        if days is not None:
            habit = self._habit(start)
            low, high = days[0] * math.exp(habit[0]), days[1] * math.exp(habit[1])
            nearest = low if sign < 0 else high
            if self._deviations(number, nearest) * sign < 0.75 * _DEVIATIONS:
                return None
            if (number - nearest) * sign <= 0.1 * nearest:
                return None
        if sign > 0 and self._reached_before(begin, edge / blocks, number):
            return None
        if sign < 0 and newest == 0 and begin <= 2 and not self._low_minutes(level, change):
            return None
        began, ended = self._refined(newest, begin, level, change)
        edges = self._edges(newest, level)
        low, high = self._range(edges, days)
        mid = sum(edges) / 2
        low, high = (max(low, number + 1), high) if sign < 0 else (low, min(high, number - 1))
        judged = TrafficJudgment(
            "low" if sign < 0 else "high", number, low, mid, high, first, began,
            len(self._sums) - begin, began, ended, total / blocks,
        )  # fmt: skip
        # The step that is sharpest.
        sharp = sum(after) / len(after) - sum(max(0.0, one) for one in before) / len(before)
        return sharp * math.sqrt(min(blocks, 4)), judged

    def _drifts(self, newest: int, begin: int, change: float) -> bool:
        """Whether sums are as far from the level so long before again and again."""
        back = begin - newest - 1
        if back < LEVEL_BLOCKS:
            return False
        distances = [
            abs(self._levels[at] - self._level(at + 1 + back))
            for at in range(begin, len(self._levels) - LEVEL_BLOCKS - back)
        ]
        return len(distances) >= LEVEL_BLOCKS and 2.5 * median(distances) > change

    def _reached_before(self, begin: int, usual: float, number: float) -> bool:
        """Whether two earlier episodes were about as high."""
        border = usual + _REACHED * (number - usual)
        episodes, inside = 0, False
        for _, earlier in self._sums[begin + 1 :]:
            reached = earlier > border
            episodes += reached and not inside
            inside = reached
        return episodes >= 2

    def _low_minutes(self, level: float, change: float) -> bool:
        """Whether three of the last five minutes are nearer to the new level than to the old."""
        border = math.exp(level + self._of_hour(self._sums[0][0], 1) + change / 2) / 5
        minutes = self._counts[-5:]
        return sum(count < border for count in minutes) >= 3

    def _refined(
        self, newest: int, begin: int, level: float, change: float
    ) -> tuple[int, int | None]:
        """Return the minute in which a change began, and the one in which it was over, if it is."""
        start = self._sums[begin - 1][0]
        level += self._of_hour(start, 1)
        usual, now = math.exp(level) / BLOCK, math.exp(level + change) / BLOCK
        dispersion = 1 + (self._noise**2) * math.exp(level)

        def score(at: int) -> float:
            """By how much likelier a cell is at the new level."""
            length = self._grid.lengths[at]
            return self._counts[at] * math.log(now / usual) - (now - usual) * length

        first = self._grid.at(start - BLOCK)
        last = self._grid.at(start + 2 * BLOCK)
        best, total, began = -math.inf, 0.0, start
        for at in reversed(range(first, min(max(last, first + 1), len(self._counts)))):
            total += score(at)
            if total > best:
                best, began = total, self._grid.starts[at]
        ended = None
        if newest:
            begin_at = self._grid.at(self._sums[newest][0])
            total, most = 0.0, 0.0
            for at in reversed(range(begin_at, len(self._counts))):
                total -= score(at)
                if total > most:
                    most, ended = total, self._grid.starts[at]
            if ended is not None and (
                most / dispersion < math.log(100) or self._grid.end - ended < SILENCE_SECONDS
            ):
                ended = None
        return began, ended
