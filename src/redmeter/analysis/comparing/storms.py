"""Is a rise a storm, or older than the deploy? What "worse" needs in addition to a test.

Problem: storms of three to eight minutes, about one in an hour, in which some routes have three
times the traffic and 15 % of it fails. An hour before a deploy has one or none, so its noise does
not show that a storm after the deploy is as usual as any before.

Idea: a significant rise is called worse if one of these holds, and is watched until then:

    history   it is more unusual than any window of as many minutes, or of 5 or 10, within at least
              six hours of 5-minute sums, of any route. If nothing changed, windows of one length
              are exchangeable, so the newest of n is the most unusual one with a probability of
              1/n, for storms of any kind; and an hour with a storm is less unusual than the storm
              itself. The scores are signed roots of the deviance. This is evidence only where the
              window is too short, or its intervals are too wide, for the next one
    lasting   it is in the first part of the window, in the middle and in the last part; more than 8
              minutes are between the first and the last one. The same for the last two thirds of
              the window and for the last one: a rise may begin later
    at once   at least half of all requests fail; or more than 20 % of them, and more than three
              times as many as in the worst 5 minutes of the baseline

A rise that began at least two intervals before the deploy is not its effect: if a step there is
EARLIER times likelier than one at the deploy, and one more at the deploy is not as likely.

Bound: some 1 us for each 5-minute sum of a route, if any test is significant.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from redmeter.analysis.comparing.significance import Counts, binomial_tail, total_counts

#: The width of the sums of a history, seconds, and how many there must be: six hours.
SUM_WIDTH: Final = 300
LEAST_SUMS: Final = 72
#: The longest storm, seconds, and the least distance of the first part from the last one.
STORM: Final = 480
_APART: Final = STORM + 60
#: The probability of a rise in a part by chance, at most: of the whole window, and of its last
#: parts.
_IN_PART, _IN_LAST_PART = 0.12, 0.03
#: Shares of failing requests that no storm reaches: alone, and if far above the worst.
_HALF, _FIFTH, _FACTOR = 0.5, 0.2, 3.0
#: Requests of 5 minutes that have a worst share.
_LEAST_OF: Final = 20
#: How much likelier an earlier beginning has to be.
EARLIER: Final = 1_000.0


def lasts(after: Sequence[Counts], before: Sequence[Counts], seconds: float) -> bool:
    """Return whether a rise is in each part of a window, and so longer than a storm.

    Args:
        after, before: intervals of the windows, oldest first.
        seconds: the length of the window after.
    """
    number, then = len(after), total_counts(before)
    for start in sorted({0, number // 3, number // 3 * 2}):
        window = after[start:]
        end = ends(len(window), seconds * len(window) / number) if window else 0
        parts = (window[:end], window[end:-end], window[-end:])
        most = _IN_LAST_PART if start else _IN_PART
        if end and all(_rose(total_counts(part), then, most) for part in parts):
            return True
    return False


def began_before(after: Sequence[Counts], before: Sequence[Counts]) -> int:
    """Return how many intervals before the deploy a rise began; 0 if it came with the deploy.

    Args:
        after, before: intervals of the windows, oldest first.
    """
    of = [0.0, *accumulate(one.of for one in (*before, *after))]
    events = [0.0, *accumulate(one.events for one in (*before, *after))]
    last, deploy = len(of) - 1, len(before)

    def likelihood(*edges: int) -> float:
        """Return the logarithm of it, if the share changes only at the edges."""
        return sum(
            _likelihood(events[end] - events[start], of[end] - of[start])
            for start, end in itertools.pairwise((0, *edges, last))
        )

    begin = max(range(1, deploy - 1), key=likelihood, default=deploy)
    least = math.log(EARLIER)
    if likelihood(begin) - likelihood(deploy) < least:
        return 0
    shares = [
        (events[end] - events[start]) / (of[end] - of[start] or 1)
        for start, end in ((0, begin), (begin, deploy), (deploy, last))
    ]
    again = likelihood(begin, deploy) - likelihood(begin) >= least and shares[2] > shares[1]
    return 0 if again or shares[1] <= shares[0] else deploy - begin


def _likelihood(events: float, of: float) -> float:
    """Return the logarithm of the likelihood of events at their own share."""
    others = of - events
    return sum(part * math.log(part / of) for part in (events, others) if part > 0)


def ends(number: int, seconds: float) -> int:
    """Return how many intervals the first and the last part of a window have.

    It is 0 if the window is too short, or its intervals too wide, to see how long a rise lasts.

    Args:
        number: intervals of the window; seconds: its length.
    """
    width = seconds / max(number, 1)
    return max(min(number // 3, int((seconds - _APART) / 2 // width)), 0)


def _rose(part: Counts, before: Counts, most: float) -> bool:
    if not part.of or not part.events:
        return False
    share = part.of / (part.of + before.of)
    return binomial_tail(part.events, part.events + before.events, share) <= most


def at_once(after: Counts, worst: float) -> bool:
    """Return whether so many requests fail that no storm is like it.

    Args:
        after: all requests after the deploy.
        worst: the share of the worst 5 minutes of the baseline.
    """
    share = after.events / after.of if after.of else 0.0
    return share >= _HALF or (share > _FIFTH and share > _FACTOR * worst)


def five_minutes(intervals: Sequence[Counts], width: float) -> list[Counts]:
    """Return the sums of 5 minutes of narrower intervals; wider ones stay as they are."""
    step = max(int(SUM_WIDTH // width), 1)
    return [total_counts(intervals[at : at + step]) for at in range(0, len(intervals), step)]


def worst_share(sums: Iterable[Counts]) -> float:
    """Return the highest share of failures of 5-minute sums."""
    return max((one.events / one.of for one in sums if one.of >= _LEAST_OF), default=0.0)


def highest_score(sums: Sequence[Counts], length: int) -> float:
    """Return the highest score of the windows of a history.

    Args:
        length: of a window, in sums; windows of one and of two sums count as well.
    """
    whole = total_counts(sums)
    events = [0.0, *accumulate(one.events for one in sums)]
    of = [0.0, *accumulate(one.of for one in sums)]
    return max(
        (
            deviance(Counts(events[end] - events[end - size], of[end] - of[end - size]), whole)
            for size in sorted({1, 2, length})
            for end in range(size, len(events))
        ),
        default=0.0,
    )


def deviance(window: Counts, history: Counts) -> float:
    """Return how unusual the events of a window are: the signed root of the deviance; 0 for a fall.

    Args:
        history: its total.
    """
    expected = window.of * (history.events + 0.5) / (history.of + 1.0)
    if window.events <= expected:
        return 0.0
    logarithm = window.events * math.log(window.events / expected)
    return math.sqrt(max(2.0 * (logarithm - (window.events - expected)), 0.0))
