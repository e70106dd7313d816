"""Incidents: since when a share of events is higher than usual, and whether that is over.

Problem: a share, such as that of failed requests, is compared with its past. If the past has a
fixed length, it soon is the incident itself, and all looks usual.

Idea: the past is cut into cells, minutes near the end and hours far from it. An incident is the
stretch of cells at the end that is likelier at its own share than at the usual one; the usual one
is that of the cells before it. Both are found in turn, until they agree.

    usual       the pooled share of DAY_SECONDS before, without the two episodes that stand out
                most, if these are no chance: a former incident is not usual
    noise       failures come in bursts. Five minutes vary by more than a binomial number does: by
                the dispersion of the five minutes before. Where that is above 1, the share varies
                by factors, and the test is that of the logarithm too; the less likely one counts
    test        a conditional binomial test of the stretch against the cells before, both divided by
                the dispersion, at FALSE_ALARM
    end         it is over once its last END_SECONDS or more together are END_RATIO times likelier
                at the usual share than at that of the incident. A few good minutes end nothing: in
                an incident of a tenth of the requests they are frequent

A p95 is judged the same way, by the share of values above the usual p95.

Bound: linear in the cells, some 100 us for a series that is as usual, a few ms for another one.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from redmeter.analysis.comparing.significance import binomial_tail
from redmeter.stored.keys import HOUR, Retention, slice_end, slice_start

MINUTE: Final = 60
#: Length of the window and of the blocks it is compared with, seconds.
BLOCK: Final = 300
#: How far back the usual share is learned, seconds before a change.
DAY_SECONDS: Final = 86_400

#: Probability that a series which is as usual is called high at one look; a third of it for each
#: route of many.
FALSE_ALARM: Final = 3e-5
#: Least ratio to the usual share, and least distance from it.
LEAST_RISE: Final = 1.25
LEAST_RATE: Final = 0.002
#: When an incident is over: see above.
END_SECONDS: Final = 180
END_RATIO: Final = 100.0
#: Cells of each width at most, and how long ago an incident may have ended, seconds.
_MOST: Final = {MINUTE: 120, BLOCK: 120, HOUR: 240}
RECENTLY: Final = 1_800
#: Five-minute blocks by which dispersion is learned at least; with fewer, hours count, too.
_FEWEST: Final = 12
#: A series whose last half hour is likelier than this needs no closer look.
_SCREEN: Final = 1e-4
_TURNS: Final = 4


class CellGrid:
    """The cells of all series: minutes, then blocks of five minutes, then hours, back to a time.

    Args:
        now: the server's clock, Unix seconds.
        retention: of the series; cells of a precision reach as far back as it keeps.
        first: when the first event was recorded, Unix seconds.
    """

    def __init__(self, now: float, retention: Retention, first: float) -> None:
        self.end = slice_start(now, MINUTE)
        #: Starts and lengths of the cells, ascending.
        self.starts: list[int] = []
        self.lengths: list[int] = []
        widths = [width for width in (MINUTE, BLOCK, HOUR) if width in retention]
        reaches = {
            width: slice_end(
                max(
                    retention.oldest(width, now),
                    self.end - _MOST[width] * width,
                    first,
                ),
                width,
            )
            for width in widths
        }
        border, newest = self.end, list[tuple[int, int]]()
        for width, coarser in zip(widths, [*widths[1:], 0], strict=True):
            oldest = reaches[width]
            if coarser and reaches[coarser] < slice_end(oldest, coarser):
                oldest = slice_end(oldest, coarser)
            while border - width >= oldest and border % width in (0, self.end % width):
                border -= width
                newest.append((border, width))
            if coarser and border % coarser:
                break  # the coarser ones do not reach further back
        for start, width in reversed(newest):
            self.starts.append(start)
            self.lengths.append(width)
        #: The cells of each block of five minutes or more: first, one past the last. The newest
        #: blocks are the five minutes that end with the window.
        self.blocks: list[tuple[int, int]] = []
        stop = len(self.starts)
        while stop > 0:
            start = stop - 1
            while (
                start > 0
                and self.starts[stop - 1] + self.lengths[stop - 1] - (self.starts[start - 1])
                <= max(BLOCK, self.lengths[stop - 1])
                and self.lengths[start - 1] == self.lengths[stop - 1]
            ):
                start -= 1
            self.blocks.append((start, stop))
            stop = start
        self.blocks.reverse()
        #: The first cells of the blocks.
        self.firsts = [first for first, _ in self.blocks]

    def __len__(self) -> int:
        return len(self.starts)

    def at(self, moment: float) -> int:
        """Return the first cell that does not begin before a moment."""
        return bisect_left(self.starts, moment)


class UsualShare(NamedTuple):
    """A usual share, and how much it varies."""

    #: Events, and of how many.
    events: float
    of: int
    #: How much more five minutes vary than binomial numbers, 1 for equal.
    dispersion: float
    #: The standard deviation of the logarithm of the share of five minutes.
    deviation: float
    #: Start of the first cell it was learned from, Unix seconds, and how many blocks those are.
    since: int
    blocks: int

    @property
    def share(self) -> float:
        """The usual share; where there was no event, as if there had been half of one."""
        return max(self.events, 0.5) / self.of


@dataclass(frozen=True, slots=True)
class Incident:
    """A stretch in which a share is higher than usual."""

    #: Start, Unix seconds; end, excluded, and whether it is over.
    since: int
    until: int
    over: bool
    events: int
    of: int
    #: Probability of at least so many events if the share is as usual.
    p: float
    usual: UsualShare
    #: Since when too few events came to judge whether it is over, Unix seconds; None: enough did.
    unsure_since: int | None = None


class Shares:
    """One series by cell.

    Args:
        grid: the cells.
        events, of: of each cell, how many events it has, and of how many.
    """

    def __init__(self, grid: CellGrid, events: Sequence[int], of: Sequence[int]) -> None:
        # Where failures are counted by others than events, there may be more of them.
        self.events: Sequence[int] = list(map(min, events, of))
        self.grid, self.of = grid, of
        self._events = [0, *accumulate(self.events)]
        self._of = [0, *accumulate(of)]
        #: Each block: events, of how many, and whether it has five minutes at most.
        self._blocks = [
            (
                self._events[b] - self._events[a],
                self._of[b] - self._of[a],
                grid.lengths[a] <= BLOCK,
            )
            for a, b in grid.blocks
        ]

    def sums(self, start: int, stop: int) -> tuple[int, int]:
        """Return the events of some cells, and of how many."""
        return self._events[stop] - self._events[start], self._of[stop] - self._of[start]

    # --- The usual share -------------------------------------------------------------------------

    def usual(self, stop: int, *, fallback: "UsualShare | None" = None) -> UsualShare | None:
        """Return the usual share of the day before a cell; None if there was nothing before.

        Args:
            fallback: of all series, for one that had too little.
        """
        if stop <= 0:
            return fallback
        grid = self.grid
        end = grid.starts[stop - 1] + grid.lengths[stop - 1]
        first = grid.at(end - DAY_SECONDS)
        begin = bisect_left(grid.firsts, first)
        last = bisect_left(grid.firsts, stop)
        blocks = [block for block in self._blocks[begin:last] if block[1]]
        if last and grid.blocks[last - 1][1] > stop:  # the change begins within a block
            a, _ = grid.blocks[last - 1]
            events, of = self.sums(a, stop)
            blocks = [block for block in self._blocks[begin : last - 1] if block[1]]
            blocks += [(events, of, True)] if of else []
        known = end - grid.starts[first]
        if not blocks or known < min(DAY_SECONDS, max(HOUR, (grid.end - grid.starts[0]) // 10)):
            return fallback
        usual = _usual(blocks, grid.starts[first])
        if fallback is not None and usual.of < _ENOUGH:
            return fallback
        return usual

    def _starting_shares(self) -> list[float]:
        """Return shares that may be usual: of a good quarter of all blocks, of half of a day."""
        grid, shares = self.grid, []
        for since, part in ((0, 0.25), (grid.end - DAY_SECONDS, 0.5)):
            first = bisect_left(grid.firsts, grid.at(since))
            ordered = sorted([(events / of, of) for events, of, _ in self._blocks[first:] if of])
            whole = sum([of for _, of in ordered])
            left = part * whole
            for share, of in ordered:
                left -= of
                if left <= 0:
                    shares.append(max(share, 0.5 / whole))
                    break
        return shares

    # --- Incidents -------------------------------------------------------------------------------

    def incident(
        self,
        *,
        fallback: UsualShare | None = None,
        least_ratio: float = LEAST_RISE,
        least_rate: float = LEAST_RATE,
        level: float = FALSE_ALARM,
    ) -> Incident | None:
        """Return the incident that goes on or ended within RECENTLY, if there is one.

        Args:
            fallback: the usual share of all series, for one that has had too little.
            least_ratio, least_rate: least ratio to the usual share, and distance from it.
            level: probability of an incident where all is as usual.
        """
        last = len(self.grid)
        if (
            not last
            or not self.events
            or not any(self.events[self.grid.at(self.grid.end - HOUR) :])
        ):
            return None
        best: Incident | None = None
        starting = self._starting_shares() or ([fallback.share] if fallback else [])
        for share in dict.fromkeys(starting):
            if self._is_plain(share):
                continue
            for first_share in self._likely_shares(share):
                candidate = self._settle(share, first_share, fallback)
                if candidate is None or candidate.events / max(candidate.of, 1) < max(
                    least_ratio * candidate.usual.share, candidate.usual.share + least_rate
                ):
                    continue
                if candidate.p <= level and (best is None or candidate.p < best.p):
                    best = candidate
        return best

    def _is_plain(self, share: float) -> bool:
        """Whether the last five minutes to an hour are no more than this share leads to expect."""
        grid, last = self.grid, len(self.grid)
        for seconds in (BLOCK, 900, HOUR):
            events, of = self.sums(grid.at(grid.end - seconds), last)
            if events > share * of and binomial_tail(events, of, min(share, 0.999)) < _SCREEN:
                return False
        for a, b in grid.blocks:
            if grid.starts[a] >= grid.end - RECENTLY:
                events, of = self.sums(a, b)
                if events > share * of and binomial_tail(events, of, min(share, 0.999)) < _SCREEN:
                    return False
        return True

    def _likely_shares(self, usual: float) -> list[float]:
        """Return shares that an incident may have: of the last minutes, and of the worst block."""
        grid, last = self.grid, len(self.grid)
        shares = []
        for seconds in (END_SECONDS, BLOCK):
            events, of = self.sums(grid.at(grid.end - seconds), last)
            shares.append(events / of if of else 0.0)
        blocks = [b for b in grid.blocks if grid.starts[b[0]] >= grid.end - RECENTLY]
        rates = [self.sums(*block) for block in blocks]
        shares.append(max((e / of for e, of in rates if of), default=0.0))
        return [share for share in dict.fromkeys(shares) if share >= LEAST_RISE * usual]

    def _settle(self, usual: float, share: float, fallback: UsualShare | None) -> Incident | None:
        """Find the stretch, and the usual share before it, in turn."""
        stretch: tuple[int, int] | None = None
        known: UsualShare | None = None
        for _ in range(_TURNS):
            likeliest = self._stretch(usual, share)
            if likeliest is None:
                return None
            start, stop = likeliest
            known = self.usual(start, fallback=fallback)
            if known is None:
                return None
            events, of = self.sums(start, stop)
            usual = min(known.share, 0.98)
            share = min(max(events / of, LEAST_RISE * usual, usual + LEAST_RATE), 0.999)
            if likeliest == stretch:
                break
            stretch = likeliest
        assert stretch is not None
        assert known is not None
        return self._judged(*stretch, known, share)

    def _scores(self, usual: float, share: float) -> list[float]:
        """Return by how much likelier each cell is at a share than at the usual one, logarithms."""
        usual, share = min(max(usual, 1e-9), 0.98), min(max(share, 2e-9), 0.999)
        more, fewer = math.log(share / usual), math.log((1 - share) / (1 - usual))
        return [
            events * more + (of - events) * fewer
            for events, of in zip(self.events, self.of, strict=True)
        ]

    def _stretch(self, usual: float, share: float) -> tuple[int, int] | None:
        """Return the likeliest stretch that ends within RECENTLY."""
        grid, last = self.grid, len(self.grid)
        earliest = grid.at(grid.end - RECENTLY)
        total, start, best = 0.0, 0, (0.0, 0, 0)
        for at, score in enumerate(self._scores(usual, share)):
            if total <= 0:
                total, start = 0.0, at
            total += score
            if at >= earliest and total > best[0]:
                best = total, start, at + 1
        return None if best[2] > last or not best[0] else best[1:]

    def _judged(self, start: int, stop: int, usual: UsualShare, share: float) -> Incident | None:
        grid, last = self.grid, len(self.grid)
        events, of = self.sums(start, stop)
        if events / of < max(LEAST_RISE * usual.share, usual.share + LEAST_RATE):
            return None
        seconds = sum(grid.lengths[start:stop])
        p = rise_probability(events, of, usual, seconds)
        over, unsure = False, None
        if stop < last:
            score = -sum(self._scores(usual.share, share)[stop:]) / usual.dispersion
            seconds = grid.end - grid.starts[stop]
            if seconds >= END_SECONDS:
                over = score >= math.log(END_RATIO)
                unsure = None if over else grid.starts[stop]
                if unsure is not None and score < 0:
                    unsure = None
        until = grid.starts[stop] if stop < last and (over or unsure) else grid.end
        if not over and unsure is None:
            events, of = self.sums(start, last)
        return Incident(grid.starts[start], until, over, events, of, p, usual, unsure)


#: Least number of events of which a series' own usual share is learned, if there is a fallback.
_ENOUGH: Final = 30


def rise_probability(events: float, of: float, usual: UsualShare, seconds: float = BLOCK) -> float:
    """Return the probability of at least so many events, if the share is the usual one.

    Args:
        seconds: how long the stretch is: where shares vary by factors, long ones vary less.
    """
    part = of / (of + usual.of) if of else 0.5
    spread = usual.dispersion
    # Where none failed before, the next failure is no surprise: as if there had been half of one.
    before = max(usual.events, 0.5)
    tail = binomial_tail(events / spread, (events + before) / spread, part)
    if usual.deviation and events:
        independent = 1 + max(0.0, seconds / BLOCK - 1) / 3
        noise = usual.deviation**2 / independent + 1 / events + 1 / max(before, 1)
        z = math.log(events / of / usual.share) / math.sqrt(noise)
        tail = max(tail, 0.5 * math.erfc(z / math.sqrt(2)) if z > 0 else 1.0)
    return tail


def highest_usual(of: float, usual: UsualShare, level: float = FALSE_ALARM) -> float:
    """Return the highest share of so many events in five minutes that counts as usual."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if rise_probability(middle * of, of, usual) > level:
            low = middle
        else:
            high = middle
    return max(high, LEAST_RISE * usual.share, usual.share + LEAST_RATE)


def _usual(blocks: Sequence[tuple[int, int, bool]], since: int) -> UsualShare:
    """Return the usual share of blocks: events, of how many, and whether they have five minutes."""
    left_out = set[int]()
    for episode in _episodes(blocks):
        without = left_out | episode
        rest = [block for at, block in enumerate(blocks) if at not in without]
        if len(rest) < 3:
            continue
        usual = _pooled(rest, since)
        events = sum(blocks[at][0] for at in episode)
        of = sum(blocks[at][1] for at in episode)
        if rise_probability(events, of, usual) < FALSE_ALARM:
            left_out = without
    return _pooled([block for at, block in enumerate(blocks) if at not in left_out], since)


def _episodes(blocks: Sequence[tuple[int, int, bool]]) -> list[set[int]]:
    """Return the two episodes that stand out most: adjacent blocks, by their positions."""
    events, of = sum(block[0] for block in blocks), sum(block[1] for block in blocks)
    rates = sorted((block[0] / block[1], block[1]) for block in blocks)
    left, share = of / 2, 0.0
    for share, size in rates:  # noqa: B007 - the weighted median
        left -= size
        if left <= 0:
            break
    share = max(share, 0.5 / of) if share * of >= 3 else max(events, 0.5) / of
    scores = [(f - share * n) / math.sqrt(share * n) for f, n, _ in blocks]
    episodes: list[set[int]] = []
    taken: set[int] = set()
    for at in sorted(range(len(blocks)), key=lambda at: -scores[at])[:10]:
        if at in taken or len(episodes) == 2 or scores[at] < 2:
            continue
        episode = {at}
        for step in (1, -1):
            near = at + step
            while 0 <= near < len(blocks) and scores[near] > 2:
                episode.add(near)
                near += step
        episodes.append(episode)
        taken |= episode
    return episodes


def _pooled(blocks: Sequence[tuple[int, int, bool]], since: int) -> UsualShare:
    events, of = sum(block[0] for block in blocks), sum(block[1] for block in blocks)
    short = [block for block in blocks if block[2]]
    varied = short if len(short) >= _FEWEST else blocks
    number = len(varied)
    total = sum(block[1] for block in varied)
    share = max(sum(block[0] for block in varied), 0.5) / total if total else 0.5
    squares = sum((f - share * n) ** 2 / (share * (1 - min(share, 0.9)) * n) for f, n, _ in varied)
    dispersion = max(1.0, squares / max(1, number - 1)) * (1 + 4 / max(number, 4))
    expected = share * total / number if number else 0.0
    deviation = 0.0
    if dispersion > 1.5 and expected:
        deviation = math.sqrt(math.log1p((dispersion - 1) / expected))
    return UsualShare(float(events), of, dispersion, deviation, since, len(blocks))
