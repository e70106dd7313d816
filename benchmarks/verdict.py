"""Judge deploy verdicts by simulation: false alarms without an effect, and power with one.

    python benchmarks/verdict.py [--nulls N] [--only WORDS]
    REDMETER_BENCH_SMOKE=1 python benchmarks/verdict.py         each row once, at tiny sizes

A deploy without an effect ("null") is judged at all three looks, 5, 15 and 60 minutes; it counts as
a false alarm if any look calls any route or the whole worse. At a budget of 5 %, 64 of
1,000 are two standard deviations above 50. Each kind of traffic has an error rate of 1 % and
log-normal response times; the busiest routes have most of the requests, as 1/rank.

    poisson    requests come independently, at a constant rate
    bursty     the rate of each minute is exponential; failures and slow minutes come in clusters
    errors     the logarithm of the error rate is autocorrelated by 0.8 from minute to minute, with
               a standard deviation of 0.5; so is that of response times, with 0.05
    drifting   the rate rises or falls by e in two hours, with an autocorrelated part; response
               times follow it, with an elasticity of 0.05

`previous` compares minutes with the hour before. `yesterday` compares an hour with the same hour of
the other day, and learns from the 24 hours before how much two days differ: the same kinds of
traffic by the hour, with a rhythm of the day; `drifting` traffic is up to e times that of the other
day. `last-week` is the same, but the error rate and the response times of each route are other than
a week ago, by factors whose logarithms have standard deviations of 0.3 and 0.03.

Response times below the 60th percentile are one bucket, since no test of p95 sees them.

Power: one route has three times the error rate, or twice the p95, after the deploy; the others are
as before. The number of requests is that of this route within the look of 60 minutes.
Needs numpy.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple, get_args

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]

from redmeter.analysis.comparing.significance import Counts  # noqa: E402
from redmeter.analysis.comparing.verdict import BLOCKS, Traffic, judge  # noqa: E402
from redmeter.results.verdict import LEVEL, LOOKS, WORSE, Against  # noqa: E402
from table import Row, sized  # noqa: E402

KINDS = ("poisson", "bursty", "errors", "drifting")
#: Minutes before a deploy, and of the longest look; requests per minute of the busiest route.
BEFORE, AFTER, BUSIEST = 60, 60, 400
RATE = 0.01
#: By which factors a deploy may change a route's error rate, and its response times.
EFFECTS = {"3 x errors": (3.0, 1.0), "2 x p95": (1.0, 2.0)}
#: Standard deviation of the logarithm of response times, in buckets, and the buckets themselves.
WIDTH = 0.5 / math.log(2) * 16
BUCKETS = np.arange(3, 64)
#: Hours before a deploy whose pairs on another day are compared.
HOURS = 24
#: The standard deviation of the logarithm by which the error rates of two weeks differ.
WEEK = 0.3


def autocorrelated(rng: Any, shape: tuple[int, int], sd: float, by: float = 0.8) -> Any:
    """Return first-order autoregressive noise, a row for each route."""
    steps = rng.normal(0, sd * math.sqrt(1 - by * by), shape)
    steps[:, 0] = rng.normal(0, sd, shape[0])
    for at in range(1, shape[1]):
        steps[:, at] += by * steps[:, at - 1]
    return steps


def minutes(rng: Any, kind: str, routes: int, busiest: float) -> tuple[Any, Any, Any]:
    """Return by route and minute: requests, error rates, shifts of response times in buckets."""
    shape = (routes, BEFORE + AFTER)
    rate = np.full(shape, busiest) / np.arange(1, routes + 1)[:, None]
    failing, shift = np.full(shape, RATE), np.zeros(shape)
    octave = 16 / math.log(2)
    if kind == "bursty":
        rate = rate * rng.exponential(1.0, (1, shape[1])) * rng.gamma(4, 0.25, shape)
        failing = failing * rng.gamma(0.5, 2.0, shape)
        shift = rng.normal(0, 0.05, shape) * octave
    elif kind == "errors":
        failing = failing * np.exp(autocorrelated(rng, shape, 0.5) - 0.125)
        shift = autocorrelated(rng, shape, 0.05) * octave
    elif kind == "drifting":
        line = np.linspace(-0.5, 0.5, shape[1]) * rng.choice([-1, 1])
        change = line + autocorrelated(rng, (1, shape[1]), 0.2, 0.95)
        rate, shift = rate * np.exp(change), shift + 0.05 * change * octave
    return rng.poisson(rate), np.minimum(failing, 1.0), shift


def hours(
    rng: Any, kind: str, routes: int, busiest: float, week: float = 0.0
) -> tuple[Any, Any, Any]:
    """Return the same as minutes(), by route and hour of two days, one after the other.

    Args:
        week: the standard deviation of the logarithm by which error rates differ between them.
    """
    shape = (routes, 2 * (HOURS + 1))
    rhythm = 1 + 0.6 * np.sin(np.arange(HOURS + 1) * 2 * math.pi / 24 + rng.uniform(0, 6))
    rate = 60 * busiest * np.tile(rhythm, 2) / np.arange(1, routes + 1)[:, None]
    failing, shift = np.full(shape, RATE), np.zeros(shape)
    octave = 16 / math.log(2)
    if kind == "bursty":
        rate = rate * rng.gamma(4, 0.25, shape)
        failing = failing * rng.gamma(0.5, 2.0, shape)
        shift = rng.normal(0, 0.05, shape) * octave
    elif kind == "errors":
        failing = failing * np.exp(autocorrelated(rng, shape, 0.5) - 0.125)
        shift = autocorrelated(rng, shape, 0.05) * octave
    elif kind == "drifting":
        change = autocorrelated(rng, (1, shape[1]), 0.2, 0.95)
        change[:, HOURS + 1 :] += rng.uniform(-1, 1)
        rate, shift = rate * np.exp(change), shift + 0.05 * change * octave
    if week:
        then = slice(HOURS + 1, None)
        failing[:, then] *= np.exp(rng.normal(0, week, (routes, 1)))
        shift[:, then] += rng.normal(0, week / 10, (routes, 1)) * octave
    return rng.poisson(rate), np.minimum(failing, 1.0), shift


STEPS = np.linspace(-8, 8, 401)
TABLE = np.array([NormalDist().cdf(step) for step in STEPS])


def spread_of(rng: Any, requests: Any, shift: Any) -> Any:
    """Return the response times of each interval of a route: numbers by bucket."""
    edges = (np.append(BUCKETS, BUCKETS[-1] + 1)[None, :] - shift[:, None]) / WIDTH
    cumulated = np.interp(edges, STEPS, TABLE)
    cumulated[:, 0] = 0.0
    parts = np.diff(cumulated, axis=1)
    parts /= parts.sum(axis=1, keepdims=True)
    return rng.multinomial(requests, parts)


def buckets_of(row: Any) -> dict[int, int]:
    """Return numbers by bucket, without empty buckets."""
    full = np.flatnonzero(row)
    return dict(zip(BUCKETS[full].tolist(), row[full].tolist(), strict=True))


class Simulated(NamedTuple):
    """A route, or all requests: failures and requests, and response times, by interval."""

    route: str | None
    counts: list[Counts]
    spread: Any
    times: list[dict[int, int]]


def deploy(
    rng: Any,
    kind: str,
    routes: int,
    busiest: float,
    errors: float = 1.0,
    slower: float = 1.0,
    *,
    against: str = "previous",
) -> list[Simulated]:
    """Simulate a deploy; the first route is the one with an effect."""
    paired = against != "previous"
    if paired:
        requests, failing, shift = hours(
            rng, kind, routes, busiest, WEEK * (against != "yesterday")
        )
    else:
        requests, failing, shift = minutes(rng, kind, routes, busiest)
    changed = slice(HOURS, HOURS + 1) if paired else slice(BEFORE, None)
    failing[0, changed] = np.minimum(failing[0, changed] * errors, 1.0)
    shift[0, changed] += 16 * math.log2(slower)
    failed = rng.binomial(requests, failing)
    spreads = [spread_of(rng, requests[route], shift[route]) for route in range(routes)]
    found = [_simulated(None, failed.sum(0), requests.sum(0), sum(spreads))]
    found += [_simulated(f"/{at}", failed[at], requests[at], spreads[at]) for at in range(routes)]
    return found


def _simulated(route: str | None, failed: Any, requests: Any, spread: Any) -> Simulated:
    pairs = zip(failed.tolist(), requests.tolist(), strict=True)
    counts = [Counts(*pair) for pair in pairs]
    return Simulated(route, counts, spread, [buckets_of(row) for row in spread])


def p95(buckets: dict[int, int]) -> float | None:
    """Return the p95 of response times, seconds."""
    left = 0.95 * sum(buckets.values())
    for bucket in sorted(buckets):
        left -= buckets[bucket]
        if left <= 0:
            return float(0.1 * 2 ** ((bucket + 0.5) / 16))
    return None


def _traffic(one: Simulated, after: slice, before: slice) -> Traffic:
    traffic = Traffic(
        one.route, one.counts[after], one.counts[before], one.times[after], one.times[before]
    )
    traffic.all_after = buckets_of(one.spread[after].sum(0))
    traffic.all_before = buckets_of(one.spread[before].sum(0))
    traffic.p95_after, traffic.p95_before = p95(traffic.all_after), p95(traffic.all_before)
    return traffic


def worse(simulated: Sequence[Simulated], look: int, *, paired: bool = False) -> set[str | None]:
    """Return what a look calls worse."""
    if paired:
        traffic = []
        for one in simulated:
            other = HOURS + 1 + HOURS
            mine = _traffic(one, slice(HOURS, HOURS + 1), slice(other, other + 1))
            pairs = [(at, at + HOURS + 1) for at in range(HOURS)]
            mine.pairs = [(one.counts[at], one.counts[then]) for at, then in pairs]
            mine.times_pairs = [(one.times[at], one.times[then]) for at, then in pairs]
            traffic.append(mine)
        rows = judge(traffic, lengths=(1,), seconds=(3600.0, 3600.0), level=LEVEL, paired=True)
    else:
        before, after = slice(0, BEFORE), slice(BEFORE, BEFORE + look // 60)
        rows = judge(
            [_traffic(one, after, before) for one in simulated],
            lengths=(1, BLOCKS[look] // 60),
            seconds=(float(look), BEFORE * 60.0),
            level=LEVEL / len(LOOKS),
        )
    return {row.route for row in rows if WORSE in (row.error_rate.verdict, row.p95.verdict)}


def false_alarms(
    kind: str, routes: int, nulls: int, against: str = "previous"
) -> tuple[int, dict[int, int]]:
    """Judge deploys without an effect; return the alarms, in all and by look."""
    rng = np.random.default_rng(KINDS.index(kind) * 1000 + routes)
    paired = against != "previous"
    all_looks = LOOKS[-1:] if paired else LOOKS
    alarms, by_look = 0, dict.fromkeys(all_looks, 0)
    for _ in range(nulls):
        traffic = deploy(rng, kind, routes, BUSIEST, against=against)
        looks = [look for look in all_looks if worse(traffic, look, paired=paired)]
        alarms += bool(looks)
        for look in looks:
            by_look[look] += 1
    return alarms, by_look


def power(what: str, requests: int, routes: int, times: int) -> float:
    """Return the share of deploys with an effect on the busiest route that are called worse."""
    rng = np.random.default_rng(requests + routes)
    found = (
        "/0" in worse(deploy(rng, "poisson", routes, requests / AFTER, *EFFECTS[what]), LOOKS[-1])
        for _ in range(times)
    )
    return sum(found) / times


def rows(conn: object, url: str) -> Iterator[Row]:  # noqa: ARG001 - simulated, without a server
    """Judge simulated deploys of one route."""
    nulls, times = sized(200, 1), sized(50, 1)
    for kind in KINDS:
        alarms, _ = false_alarms(kind, 1, nulls)
        share = alarms / nulls
        yield Row(f"verdict, false alarms, {kind}", f"{alarms}", f"of {nulls}", share, "<= 0.064")
    for what in EFFECTS:
        share = power(what, 10_000, 1, times)
        yield Row(f"verdict, power, {what}", f"{share:.2f}", "10,000 requests", share, ">= 0.9")


ROWS = {"verdict": rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nulls", type=int, default=sized(1_000, 2))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| against | traffic | routes | called worse | at which look | CPU of each |")
    for against in get_args(Against):
        for kind in KINDS:
            for routes in (1, 20, 200):
                if options.only not in f"{against} {kind} {routes}.":
                    continue
                started, nulls = time.process_time(), options.nulls
                count = sized(routes, min(routes, 2))
                alarms, by_look = false_alarms(kind, count, nulls, against)
                looks = ", ".join(f"{look // 60} min: {n}" for look, n in by_look.items())
                each = (time.process_time() - started) / nulls * 1e3
                cells = (against, kind, str(routes), f"{alarms} of {nulls:,}", looks)
                print(f"| {' | '.join(cells)} | {each:.0f} ms |", flush=True)
    if options.only in "power":
        print("| effect | routes | requests | called worse |")
        for routes in sized((1, 20), (1,)):
            for requests in sized((100, 1_000, 10_000), (100,)):
                for what in EFFECTS:
                    share = power(what, requests, routes, sized(50, 2))
                    print(f"| {what} | {routes} | {requests:,} | {share:.2f} |", flush=True)


if __name__ == "__main__":
    main()
