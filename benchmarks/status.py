"""Judge status() by simulation: how often normal traffic is unusual, and which faults are found.

    python benchmarks/status.py [--hours N] [--faults N] [--routes N]
    REDMETER_BENCH_SMOKE=1 python benchmarks/status.py          each row once, at tiny sizes

A web application of ten routes (or --routes: the n-th has 1/n of the first one's requests) with 600
requests per minute, of which 1 % fail. A store has had it for ten days, with the default retention.

Normal: a look every five minutes. An alarm is an episode in which any check is out of its range.

    steady     requests come independently, at a constant rate
    daily      the rate follows the time of day, by a factor of 9 between night and noon
    bursty     the logarithms of the five-minute sum and of its error rate have standard deviations
               of 0.2 and 0.5, with an autocorrelation of 0.5
    quiet      5 requests per minute
    small      40 requests per minute
    batch      1.6 times the requests in the first three minutes of each hour
    opening    10 requests per minute, and 600 from 9 to 18 o'clock
    night      200 requests per minute, and 3 from 23 to 6 o'clock
    crawler    every one to three hours 1.3 to 2.5 times the requests for 5 to 12 minutes

Faults of an age, judged by the checks of the status: found, with the cause first, with a group that
did nothing, and with the beginning off by more than two minutes (or a tenth of the age).
"""

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]

from redmeter.analysis.comparing.status import (  # noqa: E402
    GroupCounts,
    Observed,
    judge_checks,
)
from redmeter.results import Check  # noqa: E402
from redmeter.stored.keys import (  # noqa: E402
    DEFAULT_HISTOGRAMS,
    DEFAULT_RETENTION,
    HISTOGRAMS,
    Retention,
)
from table import Row, sized  # noqa: E402

KINDS = ("steady", "daily", "bursty", "quiet", "small", "batch", "opening", "night", "crawler")
#: Routes, and how many requests of 600 each has.
SHOP = {
    "/": 180,
    "/search": 120,
    "/p": 90,
    "/cart": 60,
    "/login": 48,
    "/checkout": 30,
    "/api": 30,
    "/me": 30,
    "/admin": 6,
    "/hook": 6,
}
RETENTION = Retention(DEFAULT_RETENTION)
TIMED = Retention(DEFAULT_HISTOGRAMS, of=HISTOGRAMS)
#: The beginning of the store, Unix seconds, and how long it has been there at the first look, days.
START, DAYS = 1_700_000_000 // 86_400 * 86_400, 10
FAILING = 0.01
WIDTHS = (60, 300, 3600)


def poisson(rng: random.Random, mean: float) -> int:
    """Draw a Poisson number."""
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    limit, number, product = math.exp(-mean), 0, rng.random()
    while product > limit:
        number, product = number + 1, product * rng.random()
    return number


def binomial(rng: random.Random, of: int, share: float) -> int:
    """Draw how many of so many fail."""
    if of > 200:
        return (
            min(of, poisson(rng, of * share))
            if share < 0.1
            else max(0, min(of, round(rng.gauss(of * share, math.sqrt(of * share * (1 - share))))))
        )
    return sum(rng.random() < share for _ in range(of))


#: Minutes since the start, route -> factor of its requests; and what share of them fails.
Factor = Callable[[int, str], float]


@dataclass
class World:
    """The counts of an application, minute by minute."""

    rng: random.Random
    routes: dict[str, float]
    seen: dict[str, GroupCounts] = field(default_factory=dict)
    total: GroupCounts = field(default_factory=lambda: GroupCounts({}, {}))

    def minute(self, number: int, traffic: Factor, failing: Factor) -> None:
        """Record a minute."""
        at = START + 60 * number
        for route, base in self.routes.items():
            count = poisson(self.rng, base * traffic(number, route))
            failed = binomial(self.rng, count, failing(number, route))
            group = self.seen.setdefault(route, GroupCounts({}, {}))
            amounts = (
                (group.of, count),
                (group.failed, failed),
                (self.total.of, count),
                (self.total.failed, failed),
            )
            for counts, amount in amounts:
                if amount:
                    for width in WIDTHS:
                        by_start = counts.setdefault(width, {})
                        start = at // width * width
                        by_start[start] = by_start.get(start, 0) + amount

    def look(self, minutes: int) -> list[Check]:
        """Judge it after so many minutes."""
        seen = Observed(START + 60 * minutes + 20, RETENTION, TIMED)
        seen.requests, seen.failed = self.total.of, self.total.failed
        seen.routes = self.seen
        seen.first = START
        return judge_checks(seen)


def zipf(number: int) -> dict[str, float]:
    """Return routes with 600 requests per minute in all."""
    if number == len(SHOP):
        return dict(SHOP)
    whole = sum(1 / n for n in range(1, number + 1))
    return {f"/{n}": 600 / n / whole for n in range(1, number + 1)}


def normal_traffic(kind: str, rng: random.Random) -> tuple[Factor, Factor]:
    """Return the traffic of a kind."""
    state = {"level": 0.0, "errors": 0.0, "until": 0.0, "next": 0.0, "factor": 1.0, "at": -1.0}

    def traffic(number: int, _: str) -> float:
        hour = number % 1440 / 60
        if number != state["at"]:
            state["at"] = number
            if kind == "bursty" and number % 5 == 0:
                for name, deviation in (("level", 0.2), ("errors", 0.5)):
                    state[name] = 0.5 * state[name] + rng.gauss(0, deviation * math.sqrt(0.75))
            if kind == "crawler" and number >= state["next"]:
                state["until"] = number + rng.randint(5, 12)
                state["next"] = number + rng.randint(60, 180)
                state["factor"] = rng.uniform(1.3, 2.5)
        return {
            "daily": 1 + 0.8 * math.sin(hour / 12 * math.pi),
            "quiet": 5 / 600,
            "small": 40 / 600,
            "batch": 1.6 if number % 60 < 3 else 1.0,
            "opening": 1.0 if 9 <= hour < 18 else 1 / 60,
            "night": 3 / 600 if hour < 6 or hour >= 23 else 1 / 3,
            "crawler": state["factor"] if number < state["until"] else 1.0,
        }.get(kind, 1.0) * math.exp(state["level"])

    def failing(_: int, __: str) -> float:
        return min(0.5, FAILING * math.exp(state["errors"]))

    return traffic, failing


def alarms(kind: str, hours: int, routes: int) -> tuple[int, int, list[str]]:
    """Return the alarms of normal hours, looks, and descriptions of the alarms."""
    rng = random.Random(f"{kind} {routes}")
    world = World(rng, zipf(routes))
    traffic, failing = normal_traffic(kind, rng)
    episodes = looks = 0
    last = dict[tuple[str, str], int]()
    descriptions = []
    for number in range(DAYS * 1440 + hours * 60):
        world.minute(number, traffic, failing)
        if number < DAYS * 1440 or number % 5:
            continue
        looks += 1
        for check in world.look(number + 1):
            if check.state in ("high", "low"):
                key = check.measure, str(check.labels)
                if last.get(key, -99) < number - 15:
                    episodes += 1
                    clock = f"{number % 1440 // 60:02}:{number % 60:02}"
                    descriptions.append(
                        f"{clock} {check.state} {key} {check.value} {check.mid} {check.high}"
                    )
                last[key] = number
    return episodes, looks, descriptions


@dataclass(frozen=True)
class Fault:
    """A fault with a known truth."""

    title: str
    #: The measure, and the route that is the cause; "" for all alike.
    measure: str
    route: str
    traffic: Callable[[str], float] = lambda _: 1.0
    failing: Callable[[str], float] = lambda _: FAILING
    #: The factor of all traffic, before and since.
    size: float = 1.0


def _only(route: str, value: float, other: float) -> Callable[[str], float]:
    return lambda each: value if each == route else other


FAULTS = (
    Fault("/ fails, 30 %", "error rate", "/", failing=_only("/", 0.3, FAILING)),
    Fault("/checkout (5 %) fails, 10 %", "error rate", "/checkout",
          failing=_only("/checkout", 0.1, FAILING)),
    Fault("/hook (1 %) fails, 38 %", "error rate", "/hook", failing=_only("/hook", 0.38, FAILING)),
    Fault("/hook (1 %) fails wholly", "error rate", "/hook", failing=_only("/hook", 1, FAILING)),
    Fault("all fail, 20 %", "error rate", "", failing=lambda _: 0.2),
    Fault("all fail, 3 %", "error rate", "", failing=lambda _: 0.03),
    Fault("no requests", "requests", "", traffic=lambda _: 0.0),
    Fault("traffic × 0.3", "requests", "", traffic=lambda _: 0.3),
    Fault("traffic × 3", "requests", "", traffic=lambda _: 3.0),
    Fault("/search is missing", "requests", "/search", traffic=_only("/search", 0, 1)),
    Fault("15 requests a minute, all fail", "error rate", "", failing=lambda _: 1.0, size=15 / 600),
)  # fmt: skip
AGES = (4, 12, 25, 90)


def staged(fault: Fault, age: int, seed: int) -> tuple[list[Check], int]:
    """Return the checks of a fault of an age, minutes; and when it began, Unix seconds."""
    rng = random.Random(f"{fault.title} {age} {seed}")
    world = World(rng, dict(SHOP))
    minutes = rng.randint(300, 420)
    began = minutes - age

    def traffic(number: int, route: str) -> float:
        return fault.size * (fault.traffic(route) if number >= began else 1.0)

    def failing(number: int, route: str) -> float:
        return fault.failing(route) if number >= began else FAILING

    for number in range(minutes):
        world.minute(number, traffic, failing)
    return world.look(minutes), START + 60 * began


def judged(fault: Fault, age: int, seed: int) -> tuple[bool, bool, bool, bool]:
    """Return whether a fault is found, its cause first, another blamed, its beginning wrong."""
    checks, began = staged(fault, age, seed)
    bad = [check for check in checks if check.state in ("high", "low")]
    mine = [check for check in bad if check.measure == fault.measure]
    causes = [
        route
        for check in bad
        for route in (check.labels.values() or [one.value for one in check.causes])
    ]
    if fault.route:
        first = bool(causes) and causes[0] == fault.route
        wrong = any(cause != fault.route for cause in causes)
    else:
        first, wrong = bool(mine) and mine[0].everywhere, False
    late = any(
        check.began is None or abs(check.began - began) > max(120, 6 * age) for check in mine[:1]
    )
    return bool(mine), first, wrong, late


def rows(conn: object, url: str) -> Iterator[Row]:  # noqa: ARG001 - simulated, without a server
    """Judge normal hours and faults."""
    for kind in KINDS:
        hours = sized(20, 1)
        count, looks, _ = alarms(kind, hours, 10)
        yield Row(f"status, normal, {kind}", f"{count}", f"of {looks} looks", count / hours,
                  "<= 0.05")  # fmt: skip


ROWS = {"status": rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--hours", type=int, default=sized(200, 1), help="normal hours")
    parser.add_argument("--faults", type=int, default=sized(50, 1), help="faults of each kind, age")
    parser.add_argument("--routes", type=int, default=len(SHOP), help="routes of normal hours")
    parser.add_argument("--kinds", nargs="*", default=KINDS, help="kinds of normal traffic")
    parser.add_argument("--show", type=int, default=0, help="alarms that are printed")
    options = parser.parse_args()
    print(f"| traffic | alarms in {options.hours} hours |\n|---|---|")
    for kind in options.kinds:
        count, _, descriptions = alarms(kind, options.hours, options.routes)
        print(f"| {kind} | {count} |", flush=True)
        print("".join(f"    {one}\n" for one in descriptions[: options.show]), end="", flush=True)
    if not options.faults:
        return
    print(f"\n| fault | {' | '.join(f'{age} min' for age in AGES)} |")
    print("|---|" + "---|" * len(AGES))
    for fault in FAULTS:
        cells = []
        for age in AGES:
            judgments = [judged(fault, age, seed) for seed in range(options.faults)]
            sums = [sum(column) for column in zip(*judgments, strict=True)]
            cells.append(" / ".join(map(str, sums)))
        print(f"| {fault.title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
