"""Whether the last five complete minutes of an application are as usual.

    requests     or another count: the five-minute sum against the forecast of the sums before it
    error rate   failures against the failures that the rate before leads one to expect, divided by
                 their dispersion: failures come in bursts, and a binomial test alone would raise
                 too many alarms. Blocks out of the ordinary do not count in the usual rate. Needs
                 LEAST_REQUESTS requests
    p95          its logarithm against the median of those of the five-minute blocks before, in
                 robust standard deviations, at least RESOLUTION

Each range is made for 997 of 1,000 values, wider than the 95 % of a chart, since three measures are
looked at all the time.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal

from redmeter.analysis.comparing.sentences import unit_of
from redmeter.analysis.comparing.significance import split_probability
from redmeter.analysis.forecasting.forecast import forecast
from redmeter.names import REQUESTS, SECONDS
from redmeter.results.explanation import Check, ExplainLink
from redmeter.results.series import Series

#: Length of the window and of the blocks it is compared with, seconds.
BLOCK: Final = 300
#: Requests that an error rate and a p95 need, and blocks that a baseline needs.
LEAST_REQUESTS: Final = 100
FEWEST_BLOCKS: Final = 12
#: Probability of a usual value out of its range.
FALSE_ALARM_PROBABILITY: Final = 0.003
#: A range of 95 % is widened by this factor, to the same level.
_WIDER: Final = 1.5
#: Robust standard deviations from the median, and one in median distances from it.
_DEVIATIONS, _DEVIATION = 3.5, 1.4826
#: Least relative distance of a p95 from the median.
RESOLUTION: Final = 0.05
#: Least distance of an error rate from the usual one.
LEAST_RATE: Final = 0.002


def check_requests(check: Check, value: int, blocks: Series[int]) -> Check:
    """Judge a five-minute sum.

    Args:
        blocks: the sums before it.
    """
    expected = forecast(blocks, counts=True, ahead=1)
    check = replace(check, value=value, count=value)
    if not expected.ahead:
        return replace(check, reason=expected.reason)
    point = expected.ahead[0]
    mid = point.mid + 0.375
    # Traffic varies by factors, so the range is widened on a logarithmic scale.
    low, high = (mid * ((edge + 0.375) / mid) ** _WIDER - 0.375 for edge in (point.low, point.high))
    return _judged(check, max(0.0, low), point.mid, high)


def check_rate(check: Check, failed: int, count: int, blocks: Sequence[tuple[int, int]]) -> Check:
    """Judge an error rate.

    Args:
        blocks: failures and requests of the five-minute blocks before.
    """
    value = failed / count if count else None
    check = replace(check, value=value, count=count)
    if count < LEAST_REQUESTS:
        return replace(check, reason=_too_few_requests(count, "an error rate"))
    known = [block for block in blocks if block[1]]
    if len(known) < FEWEST_BLOCKS:
        return replace(check, reason=_too_few(len(known)))
    failures, requests, spread = _usual(known)
    share = count / (count + requests)

    def is_usual(number: float) -> bool:
        return (
            split_probability(number / spread, failures / spread, share) > FALSE_ALARM_PROBABILITY
        )

    usual = failures / requests
    slack = max(LEAST_RATE, 0.25 * usual) * count
    middle = usual * count
    low, high = middle, middle
    step = max(1.0, math.sqrt(middle))
    while is_usual(high) and high < count:
        high += step / 4
    while low > 0 and is_usual(low):
        low -= step / 4
    low, high = min(low, middle - slack), max(high, middle + slack)
    return _judged(check, max(0.0, low / count), usual, min(1.0, high / count))


def _usual(blocks: Sequence[tuple[int, int]]) -> tuple[float, float, float]:
    """Return usual failures and requests, and the dispersion, without blocks that stand out."""
    pooled = max(_median(f / n for f, n in blocks), 0.5 / sum(n for _, n in blocks))

    def score(block: tuple[int, int]) -> float:
        return (block[0] - pooled * block[1]) / math.sqrt(max(1.0, pooled * block[1]))

    limit = _DEVIATIONS * max(1.0, _DEVIATION * _median(abs(score(block)) for block in blocks))
    kept = [block for block in blocks if abs(score(block)) <= limit]
    failures, requests = sum(block[0] for block in kept), sum(block[1] for block in kept)
    rate = failures / requests if failures else 0.5 / requests
    squares = sum((f - rate * n) ** 2 / (rate * n) for f, n in kept)
    spread = max(1.0, squares / max(1, len(kept) - 1)) * (1 + 4 / len(kept))
    return float(failures), float(requests), spread


def check_p95(check: Check, value: float | None, count: int, blocks: Sequence[float]) -> Check:
    """Judge a p95.

    Args:
        blocks: those of the five-minute blocks before that have enough requests.
    """
    check = replace(check, value=value, count=count)
    if value is None or count < LEAST_REQUESTS:
        return replace(check, reason=_too_few_requests(count, "a p95"))
    known = [math.log(block) for block in blocks if block > 0]
    if len(known) < FEWEST_BLOCKS:
        return replace(check, reason=_too_few(len(known)))
    median = _median(known)
    spread = _DEVIATION * _median(abs(each - median) for each in known) * (1 + 4 / len(known))
    width = max(_DEVIATIONS * spread, 2 * RESOLUTION)
    return _judged(check, math.exp(median - width), math.exp(median), math.exp(median + width))


def _median(values: Iterable[float]) -> float:
    """Return the upper median."""
    ascending = sorted(values)
    return ascending[len(ascending) // 2]


def _too_few_requests(count: int, measure: str) -> str:
    few = f"{count:,} requests in 5 min are too few to judge {measure}"
    return f"{few}: {LEAST_REQUESTS} are needed"


def _too_few(blocks: int) -> str:
    return f"{blocks} blocks of 5 min before are too few: {FEWEST_BLOCKS} are needed"


def _judged(check: Check, low: float, mid: float, high: float) -> Check:
    assert check.value is not None, "it is known"
    value, check = check.value, replace(check, low=low, mid=mid, high=high)
    if low <= value <= high:
        return replace(check, state="usual")
    return replace(check, state="high" if value > high else "low")


def check_of(
    measure: Literal["requests", "error rate", "p95", "count"],
    name: str,
    failing: Sequence[str] = (),
) -> Check:
    """Return a check that is not judged yet.

    Args:
        failing: labels of the requests that failed, such as "status=5xx".
    """
    explained = {"p95": SECONDS, "count": name}.get(measure, REQUESTS)
    return Check(
        measure=measure,
        name=name,
        unit={"error rate": "ratio", "p95": "seconds"}.get(measure, unit_of(name)),
        explain=ExplainLink(name=explained, failing=tuple(failing)),
    )
