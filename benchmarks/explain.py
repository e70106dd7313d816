"""Judge explain() by injected causes, and print one table.

    python benchmarks/explain.py [--runs N] [--requests N] [--only WORD]
    python benchmarks/explain.py --log FILE       the noise of an access log, and that of this table

A web application has 20 routes and three methods (and three statuses for counts). One route, drawn
by its share of the traffic, changes by a factor in the last 15 of 75 minutes. Counted is how often
this route is named first, and how often anything is named where nothing changed. `bursty` noise
multiplies each minute of a route by a log-normal factor (sigma 0.3); `lasting` noise is the same
with an autocorrelation of 0.8 (sigma 0.2); for p95 the factors are those of response times, with a
sixth of the sigma. The traffic of all routes also varies together. 3 % of requests fail.

The last column is what an oracle reaches at 2 times, in percent: it knows the noise, the share of
each route and that only routes change, and makes the same number of tests at the same level. With
6,000 requests per minute, the smallest route has 3.6 failures per minute; nobody can tell whether
they doubled if they also come in bursts.

--log compares this noise with a real one: the six busiest routes of a log, in minutes that have
requests. Beyond chance and beyond the traffic of all routes: the standard deviation of a minute,
its correlation with the next one, and the standard deviation of 15 minutes by the 60 before.
Needs numpy for p95.
"""

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist, fmean

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from redmeter.analysis.explain import (
    Causes,
    CountRow,
    HistogramRow,
    RateRow,
    explain_count,
    explain_p95,
    explain_rate,
    merge,
)
from redmeter.analysis.noise import Noise, Track, Windows, predict
from redmeter.analysis.outliers import ALPHA
from redmeter.formats.access_log import parse
from redmeter.formats.routes import fold

ROUTES, MINUTES, WINDOW = 20, 75, 15
SHARES = [1 / (number + 1) ** 0.8 for number in range(ROUTES)]
METHODS = (("GET", 0.75), ("POST", 0.2), ("PUT", 0.05))
STATUSES = (("2xx", 0.93), ("4xx", 0.06), ("5xx", 0.01))
NOISES = ("random", "bursty", "lasting")
EFFECTS = (1.0, 1.5, 2.0, 5.0)
#: The share of requests that fails.
FAILING = 0.03
#: What the factors of a minute do to response times, as an exponent; their sigma, and the standard
#: deviation of the routes' medians.
SLOWING, SPREAD, MEDIANS = 1 / 6, 0.5, 0.2
BUCKETS = range(-64, 96)
EDGES = [2 ** (index / 16) for index in BUCKETS]


def poisson(rng: random.Random, mean: float) -> int:
    """Draw a Poisson number."""
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    limit, number, product = math.exp(-mean), 0, rng.random()
    while product > limit:
        number += 1
        product *= rng.random()
    return number


def factors(rng: random.Random, noise: str) -> list[float]:
    """Draw the factor of each minute of a route."""
    if noise == "random":
        return [1.0] * MINUTES
    if noise == "bursty":
        return [math.exp(rng.gauss(0, 0.3)) for _ in range(MINUTES)]
    level, drawn = rng.gauss(0, 0.2), []
    for _ in range(MINUTES):
        drawn.append(math.exp(level))
        level = 0.8 * level + rng.gauss(0, 0.12)
    return drawn


def counts(rng: random.Random, noise: str, effect: float, requests: int) -> tuple[Causes, str]:
    """Explain a count; return also the route that changed."""
    cause = rng.choices(range(ROUTES), SHARES)[0]
    common = [math.exp(rng.gauss(0, 0.05) + 0.1 * math.sin(t / 30)) for t in range(MINUTES)]
    rows = []
    for route in range(ROUTES):
        own = factors(rng, noise)
        for method, of_method in METHODS:
            for status, of_status in STATUSES:
                mean = requests * SHARES[route] / sum(SHARES) * of_method * of_status
                drawn = [
                    poisson(rng, mean * common[t] * own[t] * _effect(effect, route == cause, t))
                    for t in range(MINUTES)
                ]
                labels = {"route": f"/{route}", "method": method, "status": status}
                rows.append(CountRow(labels, *_sides(drawn)))
    return explain_count(rows, Windows(WINDOW, WINDOW)), f"/{cause}"


def rates(rng: random.Random, noise: str, effect: float, requests: int) -> tuple[Causes, str]:
    """Explain an error rate; return also the route that changed."""
    cause = rng.choices(range(ROUTES), SHARES)[0]
    rows = []
    for route in range(ROUTES):
        own, errors = factors(rng, noise), factors(rng, noise)
        for method, of_method in METHODS:
            mean = requests * SHARES[route] / sum(SHARES) * of_method
            drawn = [poisson(rng, mean * own[t]) for t in range(MINUTES)]
            failed = [
                min(n, poisson(rng, n * FAILING * errors[t] * _effect(effect, route == cause, t)))
                for t, n in enumerate(drawn)
            ]
            before, after, history = _sides(drawn)
            failed_before, failed_after, failed_history = _sides(failed)
            labels = {"route": f"/{route}", "method": method}
            rows.append(
                RateRow(labels, before, after, failed_before, failed_after, history, failed_history)
            )
    return explain_rate(rows, Windows(WINDOW, WINDOW)), f"/{cause}"


def times(rng: random.Random, noise: str, effect: float, requests: int) -> tuple[Causes, str]:
    """Explain a p95; return also the route that changed."""
    import numpy as np

    cause = rng.choices(range(ROUTES), SHARES)[0]
    numbers = np.random.default_rng(rng.randrange(2**32))
    cdf = np.vectorize(NormalDist().cdf)
    grid = np.linspace(-8, 8, 3_201)
    table, edges = cdf(grid), np.log(EDGES)
    rows = []
    for route in range(ROUTES):
        middle = rng.gauss(0, MEDIANS)
        own, slowing = factors(rng, noise), factors(rng, noise)
        for method, of_method in METHODS:
            mean = requests * SHARES[route] / sum(SHARES) * of_method
            at = middle + SLOWING * np.log(slowing)
            at[MINUTES - WINDOW :] += math.log(effect) if route == cause else 0.0
            parts = np.interp((edges[None, :] - at[:, None]) / SPREAD, grid, table)
            parts[:, 1:] -= parts[:, :-1].copy()
            drawn = numbers.poisson(mean * np.array(own)[:, None] * parts).tolist()
            spread = [
                {edge: float(n) for edge, n in zip(EDGES, row, strict=True) if n} for row in drawn
            ]
            history = spread[: MINUTES - WINDOW]
            before, after = merge(history[-WINDOW:]), merge(spread[-WINDOW:])
            labels = {"route": f"/{route}", "method": method}
            rows.append(HistogramRow(labels, before, after, history))
    return explain_p95(rows, Windows(WINDOW, WINDOW)), f"/{cause}"


def oracle(measure: str, noise: str, effect: float, requests: int) -> float:
    """Return the probability that a test with the true noise finds the cause."""
    known = {"random": Noise(), "bursty": Noise(brief=0.09), "lasting": Noise(0.0, 0.04, 0.8)}
    share_above = {"count": 1.0, "error rate": FAILING, "p95": 0.05}[measure]
    tests = ROUTES + len(METHODS) + (len(STATUSES) if measure == "count" else 0)
    level = -NormalDist().inv_cdf(ALPHA / tests / 2)
    change, factor = math.log(effect), 1.0
    if measure == "p95":
        # A log-normal time has this many more values above a threshold, and so much more noise.
        above = NormalDist().inv_cdf(0.95)
        change = math.log((1 - NormalDist().cdf(above - change / SPREAD)) / 0.05)
        factor = (SLOWING * NormalDist().pdf(above) / 0.05 / SPREAD) ** 2
    found = 0.0
    for share in SHARES:
        mean = requests * share / sum(SHARES) * share_above
        track = Track([mean] * (MINUTES - WINDOW), [mean] * (MINUTES - WINDOW))
        variance = predict(track, known[noise].times(factor), Windows(WINDOW, WINDOW)).variance
        distance = change / math.sqrt(variance + 1 / (mean * WINDOW))
        found += share / sum(SHARES) * NormalDist().cdf(distance - level)
    return found


def drawn_routes(rng: random.Random, noise: str, requests: int) -> list[list[int]]:
    """Draw the requests of each route by minute, without an effect."""
    means = (requests * share / sum(SHARES) for share in SHARES)
    return [[poisson(rng, mean * own) for own in factors(rng, noise)] for mean in means]


def logged_routes(file: Path) -> list[list[int]]:
    """Return the requests of each route of an access log, by minute that has any."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        hits = Counter((fold(hit.path), hit.time // 60) for hit in map(parse, lines))
    minutes = sorted({minute for _, minute in hits})
    return [[hits[route, at] for at in minutes] for route in {route for route, _ in hits}]


def variation(routes: Sequence[Sequence[int]]) -> list[float]:
    """Return squares, relative: of a minute, of adjacent ones, of 15 by the 60 before."""
    totals = [sum(column) for column in zip(*routes, strict=True)]
    found, weights = [0.0] * 3, [0.0] * 3
    for counts in sorted(routes, key=sum)[-6:]:
        part = sum(counts) / sum(totals)
        expected = [part * total for total in totals]
        errors = [(n - one) / (1 - part) for n, one in zip(counts, expected, strict=True)]
        found[0] += sum(one * one for one in errors) - sum(expected) / (1 - part)
        found[1] += sum(one * other for one, other in pairwise(errors))
        weights[0] += sum(one * one for one in expected)
        weights[1] += sum(one * other for one, other in pairwise(expected))
        for at in range(MINUTES - WINDOW, len(counts) - WINDOW + 1):
            before, after = slice(at - MINUTES + WINDOW, at), slice(at, at + WINDOW)
            usual = sum(counts[before]) / sum(totals[before]) * sum(totals[after])
            chance = usual * (1 + WINDOW / (MINUTES - WINDOW))
            found[2] += (sum(counts[after]) - usual) ** 2 - chance
            weights[2] += usual**2
    return [one / weight for one, weight in zip(found, weights, strict=True)]


def print_noise(log: Path, requests: int) -> None:
    """Print how the routes of a log vary, and those of the simulation."""
    print("| routes | a minute | correlation with the next | 15 minutes by the 60 before |")
    print("|---|---|---|---|")
    tables = {"access log": [logged_routes(log)]}
    for noise in NOISES:
        rng = random.Random(noise)
        tables[noise] = [drawn_routes(rng, noise, requests) for _ in range(100)]
    for name, drawn in tables.items():
        squares = [fmean(column) for column in zip(*map(variation, drawn), strict=True)]
        minute, longer = (math.sqrt(max(squares[at], 0.0)) for at in (0, 2))
        correlation = squares[1] / squares[0] if minute >= 0.01 else 0.0
        print(f"| {name} | {minute:.2f} | {correlation:.2f} | {longer:.2f} |")


def _effect(effect: float, is_cause: bool, minute: int) -> float:
    return effect if is_cause and minute >= MINUTES - WINDOW else 1.0


def _sides(drawn: Sequence[int]) -> tuple[int, int, list[int]]:
    history = list(drawn[: MINUTES - WINDOW])
    return sum(history[-WINDOW:]), sum(drawn[-WINDOW:]), history


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--requests", type=int, default=6_000, help="of all routes in a minute")
    parser.add_argument("--only", default="", help="a word of the measure and the noise")
    parser.add_argument("--log", type=Path, help="an access log, to compare its noise")
    options = parser.parse_args(arguments)
    if options.log:
        print_noise(options.log, options.requests)
        return
    print(f"{options.requests:,} requests per minute")
    print("| measure | noise | no change: any named | 1.5 times | 2 times | 5 times | oracle |")
    print("|---|---|---|---|---|---|---|")
    for measure, explained in (("count", counts), ("error rate", rates), ("p95", times)):
        for noise in NOISES:
            if options.only not in f"{measure} {noise}":
                continue
            cells = []
            for effect in EFFECTS:
                hits = 0
                for seed in range(options.runs):
                    rng = random.Random(f"{measure} {noise} {effect} {seed}")
                    causes, route = explained(rng, noise, effect, options.requests)
                    names = [(one.label, one.value) for one in causes.causes]
                    hits += bool(names) if effect == 1.0 else names[:1] == [("route", route)]
                cells.append(f"{hits} of {options.runs}")
            cells.append(f"{100 * oracle(measure, noise, 2.0, options.requests):.0f}")
            print(f"| {measure} | {noise} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
