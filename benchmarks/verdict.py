"""Judge deploy verdicts by simulation: false alarms without an effect, and power with one.

    python benchmarks/verdict.py [--nulls N] [--only WORD]
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

Power: one route has three times the error rate, or twice the p95, after the deploy; the others are
as before. The number of requests is that of this route within the look of 60 minutes.
Needs numpy.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]

from redmeter.analysis.rates import Counts  # noqa: E402
from redmeter.analysis.verdict import BLOCKS, Traffic, judge  # noqa: E402
from redmeter.verdicts import LEVEL, LOOKS, WORSE  # noqa: E402
from table import Row, sized  # noqa: E402

KINDS = ("poisson", "bursty", "errors", "drifting")
#: Minutes before a deploy, and of the longest look; requests per minute of the busiest route.
BEFORE, AFTER, BUSIEST = 60, 60, 400
RATE = 0.01
#: What a deploy may do to a route.
EFFECTS = {"3 x errors": {"errors": 3.0}, "2 x p95": {"slower": 2.0}}
#: Standard deviation of the logarithm of response times, in buckets, and the buckets themselves.
WIDTH = 0.5 / math.log(2) * 16
BUCKETS = np.arange(-48, 64)


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


def spread_of(rng: Any, requests: Any, shift: Any) -> list[dict[int, int]]:
    """Return the response times of each minute of a route."""
    steps = np.linspace(-8, 8, 4001)
    table = np.array([NormalDist().cdf(step) for step in steps[::10]])
    edges = (np.append(BUCKETS, BUCKETS[-1] + 1)[None, :] - shift[:, None]) / WIDTH
    cumulated = np.interp(edges, steps[::10], table)
    parts = np.diff(cumulated, axis=1)
    parts /= parts.sum(axis=1, keepdims=True)
    drawn = rng.multinomial(requests, parts)
    return [{int(BUCKETS[at]): int(row[at]) for at in np.flatnonzero(row)} for row in drawn]


def deploy(
    rng: Any, kind: str, routes: int, busiest: float, errors: float = 1.0, slower: float = 1.0
) -> list[Traffic]:
    """Simulate a deploy; the first route is the one with an effect."""
    requests, failing, shift = minutes(rng, kind, routes, busiest)
    failing[0, BEFORE:] = np.minimum(failing[0, BEFORE:] * errors, 1.0)
    shift[0, BEFORE:] += 16 * math.log2(slower)
    failed = rng.binomial(requests, failing)
    found = []
    for route in range(routes):
        counts = [
            Counts(int(f), int(n)) for f, n in zip(failed[route], requests[route], strict=True)
        ]
        found.append((counts, spread_of(rng, requests[route], shift[route])))
    whole = [Counts(int(f), int(n)) for f, n in zip(failed.sum(0), requests.sum(0), strict=True)]
    times = [_merge([times[at] for _, times in found]) for at in range(BEFORE + AFTER)]
    rows = [(None, whole, times), *((f"/{at}", *one) for at, one in enumerate(found))]
    return [Traffic(name, counts, (), spread, ()) for name, counts, spread in rows]


def _merge(parts: Sequence[Mapping[int, int]]) -> dict[int, int]:
    whole: dict[int, int] = {}
    for part in parts:
        for bucket, number in part.items():
            whole[bucket] = whole.get(bucket, 0) + number
    return whole


def p95(buckets: dict[int, int]) -> float | None:
    """Return the p95 of response times, seconds."""
    left = 0.95 * sum(buckets.values())
    for bucket in sorted(buckets):
        left -= buckets[bucket]
        if left <= 0:
            return float(0.1 * 2 ** ((bucket + 0.5) / 16))
    return None


def worse(all_traffic: list[Traffic], look: int) -> set[str | None]:
    """Return what a look calls worse."""
    number = look // 60
    traffic = []
    for one in all_traffic:
        cut = Traffic(
            one.route,
            one.after[BEFORE : BEFORE + number],
            one.after[:BEFORE],
            one.times_after[BEFORE : BEFORE + number],
            one.times_after[:BEFORE],
        )
        cut.p95_after = p95(_merge(cut.times_after))
        cut.p95_before = p95(_merge(cut.times_before))
        traffic.append(cut)
    rows = judge(
        traffic,
        lengths=(1, BLOCKS[look] // 60),
        seconds=(float(look), BEFORE * 60.0),
        level=LEVEL / len(LOOKS),
    )
    return {row.route for row in rows if WORSE in (row.error_rate.verdict, row.p95.verdict)}


def false_alarms(kind: str, routes: int, nulls: int) -> tuple[int, dict[int, int]]:
    """Judge deploys without an effect; return the alarms, in all and by look."""
    rng = np.random.default_rng(KINDS.index(kind) * 1000 + routes)
    alarms, by_look = 0, dict.fromkeys(LOOKS, 0)
    for _ in range(nulls):
        traffic = deploy(rng, kind, routes, BUSIEST)
        looks = [look for look in LOOKS if worse(traffic, look)]
        alarms += bool(looks)
        for look in looks:
            by_look[look] += 1
    return alarms, by_look


def power(what: str, requests: int, routes: int, times: int) -> float:
    """Return the share of deploys with an effect on the busiest route that are called worse."""
    rng = np.random.default_rng(requests + routes)
    found = (
        "/0" in worse(deploy(rng, "poisson", routes, requests / AFTER, **EFFECTS[what]), LOOKS[-1])
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
    print("| traffic | routes | called worse | at which look |")
    for kind in KINDS:
        # Fewer deploys of many routes: one of 200 routes takes a second or more.
        for routes, part in ((1, 1.0), (20, 0.3), (200, 0.03)):
            if options.only in f"{kind} {routes}":
                nulls = max(1, round(options.nulls * part))
                alarms, by_look = false_alarms(kind, sized(routes, min(routes, 2)), nulls)
                looks = ", ".join(f"{look // 60} min: {n}" for look, n in by_look.items())
                print(f"| {kind} | {routes} | {alarms} of {nulls:,} | {looks} |", flush=True)
    if options.only in "power":
        print("| effect | routes | requests | called worse |")
        for routes in sized((1, 20), (1,)):
            for requests in sized((100, 1_000, 10_000), (100,)):
                for what in EFFECTS:
                    share = power(what, requests, routes, sized(50, 2))
                    print(f"| {what} | {routes} | {requests:,} | {share:.2f} |", flush=True)


if __name__ == "__main__":
    main()
