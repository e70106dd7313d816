"""Judge explain() by injected causes, and print one table.

    python benchmarks/explain.py [--runs N]

A web application has 20 routes, three methods and three statuses; one route, drawn by its share of
the traffic, changes by a factor in the last 15 of 75 minutes. Counted is how often this route is
named first, and how often anything is named where nothing changed. Noise: `random`, Poisson;
`bursty`, each route's minute times a log-normal factor (sigma 0.3); `lasting`, the same with
autocorrelation of 0.8 (sigma 0.2). The traffic of all routes also varies together.
"""

import argparse
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from redmeter.analysis.explain import (
    Causes,
    CountRow,
    RateRow,
    explain_count,
    explain_rate,
)

ROUTES, MINUTES, WINDOW = 20, 75, 15
SHARES = [1 / (number + 1) ** 0.8 for number in range(ROUTES)]
METHODS = (("GET", 0.75), ("POST", 0.2), ("PUT", 0.05))
STATUSES = (("2xx", 0.93), ("4xx", 0.06), ("5xx", 0.01))
NOISES = ("random", "bursty", "lasting")
EFFECTS = (1.0, 1.5, 2.0, 5.0)
#: Requests of all routes in a minute, and the share of them that fails.
REQUESTS, FAILING = 6_000, 0.03


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


def counts(rng: random.Random, noise: str, effect: float) -> tuple[Causes, str]:
    """Explain a count; return also the route that changed."""
    cause = rng.choices(range(ROUTES), SHARES)[0]
    common = [math.exp(rng.gauss(0, 0.05) + 0.1 * math.sin(t / 30)) for t in range(MINUTES)]
    rows = []
    for route in range(ROUTES):
        own = factors(rng, noise)
        for method, of_method in METHODS:
            for status, of_status in STATUSES:
                mean = REQUESTS * SHARES[route] / sum(SHARES) * of_method * of_status
                drawn = [
                    poisson(rng, mean * common[t] * own[t] * _effect(effect, route == cause, t))
                    for t in range(MINUTES)
                ]
                labels = {"route": f"/{route}", "method": method, "status": status}
                rows.append(CountRow(labels, *_sides(drawn)))
    return explain_count(rows, 1.0), f"/{cause}"


def rates(rng: random.Random, noise: str, effect: float) -> tuple[Causes, str]:
    """Explain an error rate; return also the route that changed."""
    cause = rng.choices(range(ROUTES), SHARES)[0]
    rows = []
    for route in range(ROUTES):
        own, errors = factors(rng, noise), factors(rng, noise)
        for method, of_method in METHODS:
            mean = REQUESTS * SHARES[route] / sum(SHARES) * of_method
            requests = [poisson(rng, mean * own[t]) for t in range(MINUTES)]
            failed = [
                min(n, poisson(rng, n * FAILING * errors[t] * _effect(effect, route == cause, t)))
                for t, n in enumerate(requests)
            ]
            before, after, history = _sides(requests)
            failed_before, failed_after, failed_history = _sides(failed)
            labels = {"route": f"/{route}", "method": method}
            rows.append(
                RateRow(labels, before, after, failed_before, failed_after, history, failed_history)
            )
    return explain_rate(rows, 1.0), f"/{cause}"


def _effect(effect: float, is_cause: bool, minute: int) -> float:
    return effect if is_cause and minute >= MINUTES - WINDOW else 1.0


def _sides(drawn: Sequence[int]) -> tuple[int, int, list[int]]:
    history = list(drawn[: MINUTES - WINDOW])
    return sum(history[-WINDOW:]), sum(drawn[-WINDOW:]), history


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args(arguments).runs
    print("| measure | noise | no change: any named | 1.5 times | 2 times | 5 times |")
    print("|---|---|---|---|---|---|")
    for measure, explained in (("count", counts), ("error rate", rates)):
        for noise in NOISES:
            cells = []
            for effect in EFFECTS:
                hits = 0
                for seed in range(runs):
                    rng = random.Random(f"{measure} {noise} {effect} {seed}")
                    causes, route = explained(rng, noise, effect)
                    names = [(one.label, one.value) for one in causes.causes]
                    hits += bool(names) if effect == 1.0 else names[:1] == [("route", route)]
                cells.append(f"{hits} of {runs}")
            print(f"| {measure} | {noise} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
