"""Judge explain() by injected causes, and print one table.

    python benchmarks/explain.py [--runs N] [--nulls N] [--requests N] [--minutes N] [--only WORD]
    python benchmarks/explain.py --log FILE       the noise of an access log, and that of this table

A web application has 20 routes and three methods (and three statuses for counts). One route, drawn
by its share of the traffic, changes by a factor in the last 15 of 119 minutes, which a new store
keeps; or in the last 12 (`late`). Counted is how often this route is named first, and how often
anything is named where nothing changed. The traffic of all routes also varies together. 3 % of
requests fail. The noise multiplies each minute of a route by a log-normal factor:

    bursty      sigma 0.3
    lasting     sigma 0.2, with an autocorrelation of 0.8
    drifting    sigma 0.1, and a wave of four hours and +-30 %, at another phase for each route

For p95 the factors are those of response times, with a sixth of the sigma.

--log compares this noise with a real one: the six busiest routes of a log, in minutes that have
requests. Beyond chance and beyond the traffic of all routes: the standard deviation of a minute,
its correlation with the next one, and the standard deviation of 15 minutes by the 60 before. It
also explains each window of 15 minutes after the first 60, in which nothing was injected.
Needs numpy.
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

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from redmeter.analysis.comparing.explain import (
    Causes,
    HistogramRow,
    explain_count,
    explain_p95,
    explain_rate,
)
from redmeter.analysis.comparing.noise import Windows
from redmeter.analysis.comparing.outliers import Events
from redmeter.analysis.comparing.significance import sum_counts
from redmeter.ingest.access_log import parse_hit
from redmeter.ingest.routes import fold

ROUTES, WINDOW = 20, 15
#: Minutes of the window and before it; a new store keeps 119 complete ones.
MINUTES = 119
#: Minutes before a window of a log.
HISTORY = 60
#: Minutes of the window in which a late change has not begun.
LATE = 3
SHARES = [1 / (number + 1) ** 0.8 for number in range(ROUTES)]
METHODS = (("GET", 0.75), ("POST", 0.2), ("PUT", 0.05))
STATUSES = (("2xx", 0.93), ("4xx", 0.06), ("5xx", 0.01))
NOISES = ("random", "bursty", "lasting", "drifting")
#: Factors, and after how many minutes of the window they begin.
EFFECTS = ((1.0, 0), (1.5, 0), (2.0, 0), (2.0, LATE), (5.0, 0))
#: The share of requests that fails.
FAILING = 0.03
#: What the factors of a minute do to response times, as an exponent; their sigma, and the standard
#: deviation of the routes' medians.
SLOWING, SPREAD, MEDIANS = 1 / 6, 0.5, 0.2
BUCKETS = range(-64, 96)
EDGES = [2 ** (index / 16) for index in BUCKETS]


def factors(rng: random.Random, noise: str) -> list[float]:
    """Draw the factor of each minute of a route."""
    if noise == "random":
        return [1.0] * MINUTES
    if noise == "bursty":
        return [math.exp(rng.gauss(0, 0.3)) for _ in range(MINUTES)]
    if noise == "drifting":
        phase = rng.uniform(0, 2 * math.pi)
        return [
            math.exp(0.3 * math.sin(phase + t * math.pi / 120) + rng.gauss(0, 0.1))
            for t in range(MINUTES)
        ]
    level, drawn = rng.gauss(0, 0.2), []
    for _ in range(MINUTES):
        drawn.append(math.exp(level))
        level = 0.8 * level + rng.gauss(0, 0.12)
    return drawn


def counts(
    rng: random.Random, noise: str, effect: float, requests: int, late: int
) -> tuple[Causes, str]:
    """Explain a count; return also the route that changed."""
    cause = rng.choices(range(ROUTES), SHARES)[0]
    numbers = np.random.default_rng(rng.randrange(2**32))
    common = [math.exp(rng.gauss(0, 0.05) + 0.1 * math.sin(t / 30)) for t in range(MINUTES)]
    rows = []
    for route in range(ROUTES):
        own = factors(rng, noise)
        for method, of_method in METHODS:
            for status, of_status in STATUSES:
                mean = requests * SHARES[route] / sum(SHARES) * of_method * of_status
                growth = _growth(effect if route == cause else 1.0, late)
                drawn = numbers.poisson(mean * np.array(common) * own * growth).tolist()
                labels = {"route": f"/{route}", "method": method, "status": status}
                rows.append(Events(labels, *_sides(drawn), drawn[-WINDOW:]))
    return explain_count(rows, Windows(WINDOW, WINDOW)), f"/{cause}"


def rates(
    rng: random.Random, noise: str, effect: float, requests: int, late: int
) -> tuple[Causes, str]:
    """Explain an error rate; return also the route that changed."""
    cause = rng.choices(range(ROUTES), SHARES)[0]
    numbers = np.random.default_rng(rng.randrange(2**32))
    rows = []
    for route in range(ROUTES):
        own, errors = factors(rng, noise), factors(rng, noise)
        for method, of_method in METHODS:
            mean = requests * SHARES[route] / sum(SHARES) * of_method
            drawn = numbers.poisson(mean * np.array(own))
            rate = FAILING * np.array(errors) * _growth(effect if route == cause else 1.0, late)
            failed = np.minimum(drawn, numbers.poisson(drawn * rate)).tolist()
            drawn = drawn.tolist()
            labels = {"route": f"/{route}", "method": method}
            made = Events(labels, *_sides(drawn), drawn[-WINDOW:])
            rows.append(Events(labels, *_sides(failed), failed[-WINDOW:], made))
    return explain_rate(rows, Windows(WINDOW, WINDOW)), f"/{cause}"


def times(
    rng: random.Random, noise: str, effect: float, requests: int, late: int
) -> tuple[Causes, str]:
    """Explain a p95; return also the route that changed."""
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
            at += np.log(_growth(effect if route == cause else 1.0, late))
            parts = np.interp((edges[None, :] - at[:, None]) / SPREAD, grid, table)
            parts[:, 1:] -= parts[:, :-1].copy()
            drawn = numbers.poisson(mean * np.array(own)[:, None] * parts).tolist()
            spread = [
                {edge: float(n) for edge, n in zip(EDGES, row, strict=True) if n} for row in drawn
            ]
            history = spread[: MINUTES - WINDOW]
            before, after = sum_counts(history[-WINDOW:]), sum_counts(spread[-WINDOW:])
            labels = {"route": f"/{route}", "method": method}
            rows.append(HistogramRow(labels, before, after, history))
    return explain_p95(rows, Windows(WINDOW, WINDOW)), f"/{cause}"


def drawn_routes(rng: random.Random, noise: str, requests: int) -> list[list[int]]:
    """Draw the requests of each route by minute, without an effect."""
    means = (requests * share / sum(SHARES) for share in SHARES)
    numbers = np.random.default_rng(rng.randrange(2**32))
    return [numbers.poisson(mean * np.array(factors(rng, noise))).tolist() for mean in means]


def logged_routes(file: Path) -> list[list[int]]:
    """Return the requests of each route of an access log, by minute that has any."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        hits = Counter((fold(hit.path), hit.time // 60) for hit in map(parse_hit, lines))
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
        for at in range(HISTORY, len(counts) - WINDOW + 1):
            before, after = slice(at - HISTORY, at), slice(at, at + WINDOW)
            usual = sum(counts[before]) / sum(totals[before]) * sum(totals[after])
            chance = usual * (1 + WINDOW / HISTORY)
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


def log_windows(routes: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return in how many windows of a log something is named, and of how many."""
    named = 0
    starts = range(HISTORY, len(routes[0]) - WINDOW + 1)
    for at in starts:
        rows = [
            Events({"route": str(n)}, *_sides(counts[: at + WINDOW]), counts[at : at + WINDOW])
            for n, counts in enumerate(routes)
        ]
        named += bool(explain_count(rows, Windows(WINDOW, WINDOW)).causes)
    return named, len(starts)


def _growth(effect: float, late: int) -> np.ndarray:
    """Return the factor of each minute of a route that changes."""
    growth = np.ones(MINUTES)
    growth[MINUTES - WINDOW + late :] = effect
    return growth


def _sides(drawn: Sequence[int]) -> tuple[int, int, list[int]]:
    history = list(drawn[:-WINDOW])
    return sum(history[-WINDOW:]), sum(drawn[-WINDOW:]), history


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100, help="with a cause")
    parser.add_argument("--nulls", type=int, default=100, help="without a cause")
    parser.add_argument("--requests", type=int, default=6_000, help="of all routes in a minute")
    parser.add_argument("--minutes", type=int, default=MINUTES, help="with the window's")
    parser.add_argument("--only", default="", help="a word of the measure and the noise")
    parser.add_argument("--log", type=Path, help="an access log, to compare its noise")
    options = parser.parse_args(arguments)
    globals()["MINUTES"] = options.minutes
    if options.log:
        print_noise(options.log, options.requests)
        named, of = log_windows(logged_routes(options.log))
        print(f"Windows of the log in which a route is named: {named} of {of}")
        return
    print(f"{options.requests:,} requests per minute")
    print("| measure | noise | no change: any named | 1.5 times | 2 times | late | 5 times |")
    print("|---|---|---|---|---|---|---|")
    for measure, explained in (("count", counts), ("error rate", rates), ("p95", times)):
        for noise in NOISES:
            if options.only not in f"{measure} {noise}":
                continue
            cells = []
            for effect, late in EFFECTS:
                runs = options.nulls if effect == 1.0 else options.runs
                hits = 0
                for seed in range(runs):
                    rng = random.Random(f"{measure} {noise} {effect} {late} {seed}")
                    causes, route = explained(rng, noise, effect, options.requests, late)
                    names = [(one.label, one.value) for one in causes.causes]
                    hits += bool(names) if effect == 1.0 else names[:1] == [("route", route)]
                cells.append(f"{hits} of {runs}")
            print(f"| {measure} | {noise} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
