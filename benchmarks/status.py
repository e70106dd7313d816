"""Judge status() by simulation: how often it calls normal traffic unusual, and how often a fault.

    python benchmarks/status.py [--normal N] [--faults N]
    REDMETER_BENCH_SMOKE=1 python benchmarks/status.py          each row once, at tiny sizes

A web application with 500 requests per minute, of which 1 % fail, with log-normal response times.
Known are ten hours of five-minute sums and two hours of response times, which are what a store
keeps by default. Kinds of traffic:

    steady     requests come independently, at a constant rate
    daily      the rate follows the time of day, by a factor of 4 between night and noon
    bursty     the logarithm of each five-minute sum has a standard deviation of 0.2, that of its
               error rate of 0.5, and that of its response times of 0.05, with an autocorrelation of
               0.5

Faults in the last five minutes: half of the traffic, five times the error rate, twice the response
times. Counted is how often any measure is called unusual, and of faults the measure of the fault.
"""

import argparse
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]

from redmeter.analysis.comparing.status import (  # noqa: E402
    BLOCK,
    check_of,
    check_p95,
    check_rate,
    check_requests,
)
from redmeter.results import (  # noqa: E402
    Check,
    Series,
)
from table import Row, sized  # noqa: E402

KINDS = ("steady", "daily", "bursty")
#: Factors of requests, of the error rate and of response times in the last five minutes.
FAULTS = {
    "requests": ("half of the traffic", (0.5, 1.0, 1.0)),
    "error rate": ("5 times the error rate", (1.0, 5.0, 1.0)),
    "p95": ("twice the p95", (1.0, 1.0, 2.0)),
}
#: Five-minute blocks of counts, and of response times; requests of a block, and those that fail.
BLOCKS, TIMED = 120, 23
REQUESTS, FAILING = 2_500.0, 0.01
#: The standard deviation of the logarithm of response times.
SPREAD = 0.5


def poisson(rng: random.Random, mean: float) -> int:
    """Draw a Poisson number."""
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    limit, number, product = math.exp(-mean), 0, rng.random()
    while product > limit:
        number, product = number + 1, product * rng.random()
    return number


def noise(rng: random.Random, deviation: float) -> list[float]:
    """Return factors whose logarithm is autocorrelated by 0.5."""
    level, drawn = rng.gauss(0, deviation), []
    for _ in range(BLOCKS + 1):
        drawn.append(math.exp(level))
        level = 0.5 * level + rng.gauss(0, deviation * math.sqrt(0.75))
    return drawn


def p95(rng: random.Random, requests: int, factor: float) -> float:
    """Return the p95 of so many log-normal response times, as a histogram's bucket has it."""
    error = SPREAD * math.sqrt(0.95 * 0.05 / max(requests, 1)) / 0.1031
    exact = math.log(factor) + 1.645 * SPREAD + rng.gauss(0, error)
    return math.exp((math.floor(exact / math.log(2) * 16) + 0.5) / 16 * math.log(2))


def checks(rng: random.Random, kind: str, fault: tuple[float, float, float]) -> list[Check]:
    """Return the checks of a window after ten hours."""
    bursts = [noise(rng, deviation) for deviation in (0.2, 0.5, 0.05)]
    if kind != "bursty":
        bursts = [[1.0] * (BLOCKS + 1)] * 3
    phase = rng.uniform(0, 2 * math.pi)
    requests, failed, times = [], [], []
    for at in range(BLOCKS + 1):
        now = fault if at == BLOCKS else (1.0, 1.0, 1.0)
        day = 1 + 0.6 * math.sin(phase + at * 2 * math.pi / 288) if kind == "daily" else 1.0
        number = poisson(rng, REQUESTS * day * bursts[0][at] * now[0])
        requests.append(number)
        failed.append(min(number, poisson(rng, number * FAILING * bursts[1][at] * now[1])))
        times.append(p95(rng, number, bursts[2][at] * now[2]))
    series = Series("hits", BLOCK, 0, tuple(requests[:-1]), partial=False)
    known = [*zip(failed, requests, strict=True)][:-1]
    return [
        check_requests(check_of("requests", "hits"), requests[-1], series),
        check_rate(check_of("error rate", "hits_failed"), failed[-1], requests[-1], known),
        check_p95(check_of("p95", "hits_seconds"), times[-1], requests[-1], times[-1 - TIMED : -1]),
    ]


def unusual(kind: str, measure: str, runs: int) -> dict[str, int]:
    """Return how often each measure is unusual, and any; `measure` has a fault, "" for none."""
    fault = FAULTS[measure][1] if measure else (1.0, 1.0, 1.0)
    found = dict.fromkeys(("any", *FAULTS), 0)
    for seed in range(runs):
        rng = random.Random(f"{kind} {measure} {seed}")
        states = {one.measure: one.state for one in checks(rng, kind, fault)}
        out = [name for name, state in states.items() if state in ("high", "low")]
        found["any"] += bool(out)
        for name in out:
            found[name] += 1
    return found


def rows(conn: object, url: str) -> Iterator[Row]:  # noqa: ARG001 - simulated, without a server
    """Judge normal windows and faults."""
    for kind in KINDS:
        runs = sized(100, 1)
        share = unusual(kind, "", runs)["any"] / runs
        yield Row(f"status, normal, {kind}", f"{share:.1%}", f"of {runs}", share, "<= 0.03")


ROWS = {"status": rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--normal", type=int, default=sized(1_000, 2), help="normal windows")
    parser.add_argument("--faults", type=int, default=sized(200, 2), help="windows with a fault")
    options = parser.parse_args()
    faults = " | ".join(words for words, _ in FAULTS.values())
    print(f"| traffic | normal: any unusual | by requests, error rate, p95 | {faults} |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        normal = unusual(kind, "", options.normal)
        by = ", ".join(str(normal[name]) for name in FAULTS)
        cells = [f"{normal['any']} of {options.normal:,}", by]
        cells += [
            f"{unusual(kind, name, options.faults)[name]} of {options.faults}" for name in FAULTS
        ]
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
