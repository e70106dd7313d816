"""Judge deploy verdicts by simulation: false alarms without an effect, and power with one.

    python benchmarks/verdict.py [--nulls N] [--many N] [--only WORDS] [--hours H]
    REDMETER_BENCH_SMOKE=1 python benchmarks/verdict.py         each row once, at tiny sizes

A deploy without an effect ("null") is judged at all three looks, 5, 15 and 60 minutes; it counts as
a false alarm if any look calls any route or the whole worse. At a budget of 5 %, 64 of
1,000 are two standard deviations above 50. Each kind of traffic has an error rate of 1 % and
log-normal response times; the busiest routes have most of the requests, as 1/rank. 5-minute sums
of nine hours before the deploy are known, or of --hours; below six, only the last hour counts.

    poisson    requests come independently, at a constant rate
    bursty     the rate of each minute is exponential; failures and slow minutes come in clusters
    errors     the logarithm of the error rate is autocorrelated by 0.8 from minute to minute, with
               a standard deviation of 0.5; so is that of response times, with 0.05
    drifting   the rate rises or falls by e in two hours, with an autocorrelated part; response
               times follow it, with an elasticity of 0.05
    daily      a rhythm of 24 hours: requests by 60 %, error rates by 30 %
    falling    the rate halves in each hour
    storms     about once an hour, for 3 to 8 minutes, up to three routes have three times the
               traffic, and 15 % of it fails
    mix        the slowest quarter of the routes, which is three times as slow and fails five times
               as often, has four times the traffic after the deploy
    blips      twice an hour, for 1 or 2 minutes, a dependency of half of the routes is twice as
               slow, and 20 % fails
    tail       about 5 % of the response times are anywhere above, more or fewer by the minute
    quiet      the busiest route has 6 requests per minute

`previous` compares minutes with the hour before. `yesterday` compares an hour with the same hour of
the other day, and learns from the 24 hours before how much two days differ: the first four kinds of
traffic by the hour, with a rhythm of the day; `drifting` traffic is up to e times that of the other
day. `last-week` is the same, but the error rate and the response times of each route are other than
a week ago, by factors whose logarithms have standard deviations of 0.3 and 0.03.

Response times below the 60th percentile are one bucket, since no test of p95 sees them.

Power: one route has more failures, or twice the p95, after the deploy; the others are as before.
The number of requests is that of this route within the look of 60 minutes. "Exact" is a one-sided
conditional binomial test of the error rate alone, with Bonferroni over routes and metrics, without
margins, minimum effects, dispersion and other looks.
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

from redmeter.analysis.comparing.significance import Counts, binomial_tail  # noqa: E402
from redmeter.analysis.comparing.storms import five_minutes  # noqa: E402
from redmeter.analysis.comparing.verdict import judge  # noqa: E402
from redmeter.analysis.comparing.verdict_metrics import BLOCKS, Traffic  # noqa: E402
from redmeter.results.verdict import (  # noqa: E402
    LEVEL,
    LOOKS,
    WATCHING,
    WORSE,
    Against,
    level_of,
)
from table import Row, sized  # noqa: E402

BY_THE_HOUR = ("poisson", "bursty", "errors", "drifting")
KINDS = (*BY_THE_HOUR, "daily", "falling", "storms", "mix", "blips", "tail", "quiet")
#: Minutes before a deploy, and of the longest look; requests per minute of the busiest route.
BEFORE, AFTER, BUSIEST = 60, 60, 400
RATE = 0.01
#: Hours of 5-minute sums before a deploy.
SUMS = 9
#: Deploys with an effect: the error rate of a route before and after, and its response times.
EFFECTS = {
    "1 % -> 3 %": (0.01, 0.03, 1.0),
    "0 -> 1 %": (0.0, 0.01, 1.0),
    "2 x p95": (0.01, 0.01, 2.0),
}
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


OCTAVE = 16 / math.log(2)


class Minutes(NamedTuple):
    """By route and minute: requests, error rates, and shifts of response times in buckets."""

    rate: Any
    failing: Any
    shift: Any

    def drawn(self, rng: Any) -> tuple[Any, Any, Any]:
        """Return the same with numbers of requests."""
        return rng.poisson(self.rate), np.minimum(self.failing, 1.0), self.shift


def minutes(rng: Any, kind: str, routes: int, busiest: float, sums: int) -> tuple[Any, Any, Any]:
    """Return by route and minute: requests, error rates, shifts of response times in buckets.

    Args:
        sums: hours before the deploy.
    """
    shape = (routes, 60 * max(sums, 1) + AFTER)
    busiest = 6 if kind == "quiet" else busiest
    rate = np.full(shape, busiest) / np.arange(1, routes + 1)[:, None]
    made = Minutes(rate, np.full(shape, RATE), np.zeros(shape))
    change = CHANGES.get(kind)
    return (change(rng, made, shape) if change else made).drawn(rng)


def _bursty(rng: Any, made: Minutes, shape: tuple[int, int]) -> Minutes:
    rate = made.rate * rng.exponential(1.0, (1, shape[1])) * rng.gamma(4, 0.25, shape)
    failing = made.failing * rng.gamma(0.5, 2.0, shape)
    return Minutes(rate, failing, rng.normal(0, 0.05, shape) * OCTAVE)


def _errors(rng: Any, made: Minutes, shape: tuple[int, int]) -> Minutes:
    failing = made.failing * np.exp(autocorrelated(rng, shape, 0.5) - 0.125)
    return Minutes(made.rate, failing, autocorrelated(rng, shape, 0.05) * OCTAVE)


def _drifting(rng: Any, made: Minutes, shape: tuple[int, int]) -> Minutes:
    line = np.zeros(shape[1])
    line[-120:] = np.linspace(-0.5, 0.5, 120) * rng.choice([-1, 1])
    line[:-120] = line[-120]
    change = line + autocorrelated(rng, (1, shape[1]), 0.2, 0.95)
    return Minutes(made.rate * np.exp(change), made.failing, 0.05 * change * OCTAVE + made.shift)


def _daily(rng: Any, made: Minutes, shape: tuple[int, int]) -> Minutes:
    wave = np.sin(np.arange(shape[1]) * 2 * math.pi / 1440 + rng.uniform(0, 2 * math.pi))
    return Minutes(made.rate * (1 + 0.6 * wave), made.failing * (1 + 0.3 * wave), made.shift)


def _falling(rng: Any, made: Minutes, shape: tuple[int, int]) -> Minutes:  # noqa: ARG001
    return made._replace(rate=made.rate * 2.0 ** -((np.arange(shape[1]) - shape[1] + 120) / 60))


def _events(rng: Any, number: int, rate: float, low: float, high: float) -> list[Any]:
    """Return by event how much of each minute it covers; `rate` of them begin in a minute."""
    covers = []
    for _ in range(rng.poisson(rate * (number + high))):
        begin = rng.uniform(-high, number)
        end = begin + rng.uniform(low, high)
        at = np.arange(number)
        covers.append(np.clip(np.minimum(end, at + 1) - np.maximum(begin, at), 0, 1))
    return covers


def _storms(rng: Any, made: Minutes, shape: tuple[int, int]) -> Minutes:
    rate, failing = made.rate.copy(), made.failing.copy()
    for cover in _events(rng, shape[1], 1 / 60, 3, 8):
        number = rng.integers(1, min(3, shape[0]) + 1)
        for route in rng.choice(shape[0], number, replace=False):
            calm, wild = rate[route] * (1 - cover), 3 * rate[route] * cover
            failing[route] = (calm * failing[route] + wild * 0.15) / (calm + wild)
            rate[route] = calm + wild
    return Minutes(rate, failing, made.shift)


def _mix(rng: Any, made: Minutes, shape: tuple[int, int]) -> Minutes:  # noqa: ARG001
    slow = np.arange(shape[0]) >= shape[0] * 3 // 4
    rate, failing, shift = (one.copy() for one in made)
    rate[slow, -AFTER:] *= 4
    failing[slow] *= 5
    shift[slow] += 16 * math.log2(3)
    return Minutes(rate, failing, shift)


def _blips(rng: Any, made: Minutes, shape: tuple[int, int]) -> Minutes:
    failing, shift = made.failing.copy(), made.shift.copy()
    half = np.arange(shape[0]) % 2 == 0
    for cover in _events(rng, shape[1], 2 / 60, 1, 2):
        failing[half] += 0.2 * cover
        shift[half] += 16 * cover
    return Minutes(made.rate, failing, shift)


CHANGES = {
    "bursty": _bursty,
    "errors": _errors,
    "drifting": _drifting,
    "daily": _daily,
    "falling": _falling,
    "storms": _storms,
    "mix": _mix,
    "blips": _blips,
}


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
    if kind == "bursty":
        rate = rate * rng.gamma(4, 0.25, shape)
        failing = failing * rng.gamma(0.5, 2.0, shape)
        shift = rng.normal(0, 0.05, shape) * OCTAVE
    elif kind == "errors":
        failing = failing * np.exp(autocorrelated(rng, shape, 0.5) - 0.125)
        shift = autocorrelated(rng, shape, 0.05) * OCTAVE
    elif kind == "drifting":
        change = autocorrelated(rng, (1, shape[1]), 0.2, 0.95)
        change[:, HOURS + 1 :] += rng.uniform(-1, 1)
        rate, shift = rate * np.exp(change), shift + 0.05 * change * OCTAVE
    if week:
        then = slice(HOURS + 1, None)
        failing[:, then] *= np.exp(rng.normal(0, week, (routes, 1)))
        shift[:, then] += rng.normal(0, week / 10, (routes, 1)) * OCTAVE
    return rng.poisson(rate), np.minimum(failing, 1.0), shift


STEPS = np.linspace(-8, 8, 401)
TABLE = np.array([NormalDist().cdf(step) for step in STEPS])


def spread_of(rng: Any, requests: Any, shift: Any, tail: Any = None) -> Any:
    """Return the response times of each interval of a route: numbers by bucket.

    Args:
        tail: the share of each interval that is anywhere above.
    """
    edges = (np.append(BUCKETS, BUCKETS[-1] + 1)[None, :] - shift[:, None]) / WIDTH
    cumulated = np.interp(edges, STEPS, TABLE)
    cumulated[:, 0] = 0.0
    parts = np.diff(cumulated, axis=1)
    parts /= parts.sum(axis=1, keepdims=True)
    if tail is not None:
        far = np.where(BUCKETS > 24, 1.0, 0.0) / (BUCKETS > 24).sum()
        parts = parts * (1 - tail[:, None]) + far[None, :] * tail[:, None]
    return rng.multinomial(requests, parts)


def buckets_of(row: Any) -> dict[int, int]:
    """Return numbers by bucket, without empty buckets."""
    full = np.flatnonzero(row)
    return dict(zip(BUCKETS[full].tolist(), row[full].tolist(), strict=True))


class Simulated(NamedTuple):
    """A route, or all requests: failures and requests, and response times, by interval."""

    route: str | None
    #: From BEFORE minutes before the deploy, or of the hours that are compared.
    counts: list[Counts]
    spread: Any
    times: list[dict[int, int]]
    #: 5-minute sums before the deploy.
    history: list[Counts]


def deploy(
    rng: Any,
    kind: str,
    routes: int,
    busiest: float,
    effect: tuple[float, float, float] = (RATE, RATE, 1.0),
    *,
    against: str = "previous",
    sums: int = SUMS,
) -> list[Simulated]:
    """Simulate a deploy; the first route is the one with an effect: see EFFECTS."""
    paired = against != "previous"
    if paired:
        requests, failing, shift = hours(
            rng, kind, routes, busiest, WEEK * (against != "yesterday")
        )
    else:
        requests, failing, shift = minutes(rng, kind, routes, busiest, sums)
    changed = slice(HOURS, HOURS + 1) if paired else slice(-AFTER, None)
    before, after, slower = effect
    after_failing = np.minimum(failing[0, changed] * after / RATE, 1.0)
    failing[0] *= before / RATE
    failing[0, changed] = after_failing
    shift[0, changed] += 16 * math.log2(slower)
    failed = rng.binomial(requests, failing)
    first = 0 if paired else requests.shape[1] - BEFORE - AFTER
    tails = [None] * routes
    if kind == "tail":
        tails = rng.beta(5, 95, requests.shape)[:, first:]
    spreads = [
        spread_of(rng, requests[route, first:], shift[route, first:], tails[route])
        for route in range(routes)
    ]
    found = [_simulated(None, failed.sum(0), requests.sum(0), sum(spreads), first)]
    found += [
        _simulated(f"/{at}", failed[at], requests[at], spreads[at], first) for at in range(routes)
    ]
    return found


def _simulated(route: str | None, failed: Any, requests: Any, spread: Any, first: int) -> Simulated:
    counts = list(map(Counts, failed.tolist(), requests.tolist()))
    history = five_minutes(counts[:-AFTER], 60) if first else []
    return Simulated(route, counts[first:], spread, [buckets_of(row) for row in spread], history)


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
    traffic.history = one.history
    traffic.all_after = buckets_of(one.spread[after].sum(0))
    traffic.all_before = buckets_of(one.spread[before].sum(0))
    traffic.p95_after, traffic.p95_before = p95(traffic.all_after), p95(traffic.all_before)
    return traffic


def judged(
    simulated: Sequence[Simulated], look: int, *, paired: bool = False
) -> dict[str, set[str | None]]:
    """Return the routes that a look calls worse, and those that it watches."""
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
            level=level_of(look),
        )
    return {
        judgment: {
            row.route for row in rows if judgment in (row.error_rate.verdict, row.p95.verdict)
        }
        for judgment in (WORSE, WATCHING)
    }


class Alarms(NamedTuple):
    """Deploys without an effect that were called worse or watched: in all, and by look."""

    worse: int
    watched: int
    by_look: dict[int, int]


def false_alarms(
    kind: str, routes: int, nulls: int, against: str = "previous", sums: int = SUMS
) -> Alarms:
    """Judge deploys without an effect; return the alarms, in all and by look."""
    rng = np.random.default_rng(KINDS.index(kind) * 1000 + routes)
    paired = against != "previous"
    all_looks = LOOKS[-1:] if paired else LOOKS
    worse = watched = 0
    by_look = dict.fromkeys(all_looks, 0)
    for _ in range(nulls):
        traffic = deploy(rng, kind, routes, BUSIEST, against=against, sums=sums)
        found = {look: judged(traffic, look, paired=paired) for look in all_looks}
        worse += any(one[WORSE] for one in found.values())
        watched += any(one[WATCHING] for one in found.values())
        for look, one in found.items():
            by_look[look] += bool(one[WORSE])
    return Alarms(worse, watched, by_look)


class Power(NamedTuple):
    """Shares of deploys with an effect that are found at the look of 60 minutes."""

    worse: float
    watched: float
    #: By an exact test; None for p95.
    exact: float | None


def power(what: str, requests: int, routes: int, times: int, sums: int = SUMS) -> Power:
    """Return the share of deploys with an effect on the busiest route that are found."""
    rng = np.random.default_rng(requests + routes)
    effect, found = EFFECTS[what], {WORSE: 0, WATCHING: 0}
    exact = 0
    for _ in range(times):
        traffic = deploy(rng, "poisson", routes, requests / AFTER, effect, sums=sums)
        for judgment, names in judged(traffic, LOOKS[-1]).items():
            found[judgment] += "/0" in names
        before, after = traffic[1].counts[:BEFORE], traffic[1].counts[BEFORE:]
        n, k = (sum(one.of for one in side) for side in (after, before))
        events, others = (sum(one.events for one in side) for side in (after, before))
        exact += binomial_tail(events, events + others, n / (n + k)) <= LEVEL / (2 * routes)
    by_exact = exact / times if effect[2] == 1.0 else None
    return Power(found[WORSE] / times, found[WATCHING] / times, by_exact)


def rows(conn: object, url: str) -> Iterator[Row]:  # noqa: ARG001 - simulated, without a server
    """Judge simulated deploys of one route."""
    nulls, times = sized(200, 1), sized(50, 1)
    for kind in KINDS:
        alarms = false_alarms(kind, 1, nulls).worse
        share = alarms / nulls
        yield Row(f"verdict, false alarms, {kind}", f"{alarms}", f"of {nulls}", share, "<= 0.064")
    for what in EFFECTS:
        share = power(what, 10_000, 1, times).worse
        yield Row(f"verdict, power, {what}", f"{share:.2f}", "10,000 requests", share, ">= 0.9")


ROWS = {"verdict": rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nulls", type=int, default=sized(250, 2), help="with 1 and 20 routes")
    parser.add_argument("--many", type=int, default=sized(40, 1), help="with 200 routes")
    parser.add_argument("--hours", type=int, default=SUMS, help="of 5-minute sums before")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| against | traffic | routes | called worse | at which look | watched | CPU of each |")
    for against in get_args(Against):
        for kind in KINDS if against == "previous" else BY_THE_HOUR:
            for routes in (1, 20, 200):
                nulls = options.many if routes > 20 else options.nulls
                if not nulls or options.only not in f"{against} {kind} {routes}.":
                    continue
                started = time.process_time()
                count = sized(routes, min(routes, 2))
                alarms = false_alarms(kind, count, nulls, against, options.hours)
                looks = ", ".join(f"{look // 60} min: {n}" for look, n in alarms.by_look.items())
                each = (time.process_time() - started) / nulls * 1e3
                cells: tuple[str, ...] = (
                    against,
                    kind,
                    str(routes),
                    f"{alarms.worse} of {nulls:,}",
                    looks,
                )
                print(f"| {' | '.join(cells)} | {alarms.watched} | {each:.0f} ms |", flush=True)
    if options.only in "power":
        print("| effect | routes | requests | called worse | watched | exact test |")
        for routes in sized((1, 20), (1,)):
            for requests in sized((100, 1_000, 10_000), (100,)):
                for what in EFFECTS:
                    shares = power(what, requests, routes, sized(100, 2), options.hours)
                    texts = ["-" if share is None else f"{share:.2f}" for share in shares]
                    cells = (what, str(routes), f"{requests:,}", *texts)
                    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
