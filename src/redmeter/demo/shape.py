"""The model of the business: when visitors come, and their actions.

One description for the past, which is computed, and for the present, which happens: so charts go
on where they left off. All of it follows from a seed. Pure.
"""

import math
import random

#: Visits a second at the height of the day, and at night as a part of that.
BUSY, QUIET = 1.4, 0.28
#: Seconds that a burst lasts at its height: a newsletter went out.
BURST = 900.0
#: How many times as many people come then.
BURST_HEIGHT = 2.6

_DAY, _HOUR = 86400, 3600

#: What a visit consists of: how often each happens in one, on average. A checkout needs a cart.
SEARCHES_PER_VISIT, PRODUCTS_PER_VISIT, INTO_CART, LOOKS_AT_CART, CHECKOUTS = (
    0.5,
    2.2,
    0.36,
    0.3,
    0.14,
)
#: A checkout has so many lines, and pieces of each, on average.
LINES_PER_ORDER, PIECES_PER_LINE = 2.0, 1.6
#: Robots that ask for pages of other programs, by visits; looks at the report, a second.
STRAY, REPORTS = 0.06, 1 / 45

#: The releases, and how they differ: the newest one has a quick report, and a new bank.
OLD_RELEASE, NEW_RELEASE = "2.3.1", "2.4.0"
#: Which part of payments the bank refuses, and which part it does not answer.
REFUSED = {OLD_RELEASE: 0.03, NEW_RELEASE: 0.05}
LOST = {OLD_RELEASE: 0.008, NEW_RELEASE: 0.08}

#: The name of the runs that confirm orders, which the page lists under Jobs; and which part of the
#: letters the postal system does not take at once.
TASK, POSTPONED = "shop.confirm_order", 0.08


def visits(at: float, seed: int) -> float:
    """Return how many visits begin in a second.

    Args:
        at: Unix seconds.
    """
    hour = at % _DAY / _HOUR
    # Two peaks, before noon and in the evening; UTC, as the charts are.
    day = 0.8 * _hump(hour, 10.5, 2.6) + _hump(hour, 19.5, 2.4) + 0.35 * _hump(hour, 15.0, 3.0)
    weekday = int(at // _DAY + 4) % 7  # 0 is Sunday
    level = BUSY * (QUIET + (1 - QUIET) * min(1.0, day)) * (0.85 if weekday in (0, 6) else 1.0)
    return level * burst(at, seed) * _ripple(at, seed)


def burst(at: float, seed: int) -> float:
    """Return how many times as many people as usual come at a time, for a newsletter's sake.

    There is one on most days, at varying times.
    """
    day = int(at // _DAY)
    times = random.Random(f"{seed} {day}")
    if times.random() < 0.25:
        return 1.0
    since = at - (day * _DAY + times.uniform(8, 17) * _HOUR)
    if since < 0:
        return 1.0
    return 1.0 + (BURST_HEIGHT - 1) * min(1.0, since / 120) * math.exp(-max(0.0, since) / BURST)


def _hump(hour: float, middle: float, width: float) -> float:
    apart = min(abs(hour - middle), 24 - abs(hour - middle))
    return math.exp(-((apart / width) ** 2) / 2)


def _ripple(at: float, seed: int) -> float:
    """Return what makes two days differ."""
    slow = math.sin(at / 5400 + seed) + math.sin(at / 1700 + 2 * seed)
    return 1.0 + 0.06 * slow


def poisson(mean: float, chance: random.Random) -> int:
    """Return how often something happens that happens so often on average."""
    if mean > 50:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, chance.random()
    while product > limit:
        count += 1
        product *= chance.random()
    return count
