"""An incident minute by minute: the truth, and what the page, the verdict and alerts answer.

    python benchmarks/incident.py [--seed N] [--minutes N] [--quiet]
    REDMETER_BENCH_SMOKE=1 python benchmarks/incident.py        its first minutes

A shop of ten routes and 600 requests per minute, after four hours without an incident. Causes begin
and end as in CAUSES, several at once: visitors three times as many; then a dependency of /checkout
fails, four minutes before the deploy; since the deploy /search is slow and /hook, which has 1 % of
the requests, fails; eight minutes after it a task fails. The dependency recovers, the deploy is
rolled back, the task is fixed.

A private server has a clock of its own, which the benchmark moves. In each minute it records the
events, evaluates ALERTS three times, and asks /api/status, /api/overview, /api/alerts and
/api/verdict as the page does. It prints one row for each minute, and then each contradiction:

    missed      a cause runs longer than its delay, and the status is "usual" or leaves it out
    blamed      a route or task is named, but nothing is wrong with it, nor was some minutes ago
    figures     a figure of the status or of a tile is not the ledger's
    times       a change began, or was over, more than some minutes from when its cause did
    the mark    a change is said to have begun with the deploy, but did not
    green       the status line is green, and an alert fires, a figure is red, or a verdict is worse
    verdict     it names a route as worse that the deploy did not make worse

The exit code is 1 if there is any.
"""

import argparse
import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from redmeter import Meter  # noqa: E402
from redmeter.alerting.evaluator import Evaluator  # noqa: E402
from redmeter.alerting.rules_file import parse_rules  # noqa: E402
from redmeter.clock import SystemClock  # noqa: E402
from redmeter.dashboard import Dashboard  # noqa: E402
from support.asking import ask, asking  # noqa: E402
from support.fixed_time import FixedTime  # noqa: E402
from support.observed import exact_quantile, near  # noqa: E402
from support.servers import Server  # noqa: E402
from support.stores import opened_store  # noqa: E402

#: Requests per minute by route.
SHOP = {"/": 180, "/search": 120, "/p": 90, "/cart": 60, "/login": 48, "/checkout": 30}
SHOP |= {"/api": 30, "/me": 30, "/admin": 6, "/hook": 6}
#: Runs of a task per minute.
TASKS = {"mail": 10, "thumbnails": 20}
#: Minutes recorded before the first row; the share that fails without a cause.
HISTORY, FAILING = 240, 0.01
#: Minutes after which a cause that is over may still be named, and in which the end is noticed.
OVER = 7
ALERTS = """
[[alert]]
name = "errors"
when = "ratio"
metric = 'http_requests{status="5xx"}'
of = "http_requests"
above = 0.03
window = "5m"

[[alert]]
name = "failed-tasks"
when = "ratio"
metric = 'task_runs{state="failure"}'
of = "task_runs"
by = "task"
above = 0.2
at_least = 20
window = "5m"

[[alert]]
name = "deploy"
when = "verdict"
"""


@dataclass(frozen=True)
class Cause:
    """Something that changes a route or a task from one minute until another."""

    title: str
    since: int
    until: int
    #: The measure that shows it; the routes or tasks, all of them if empty.
    measure: str
    names: tuple[str, ...] = ()
    #: Factor of the requests, error rate, and factor of the response time.
    traffic: float = 1.0
    failing: float = FAILING
    slower: float = 1.0
    #: Whether the deploy is its cause.
    deployed: bool = False
    #: Minutes within which it has to be found.
    delay: int = 5

    def runs(self, minute: int) -> bool:
        return self.since <= minute < self.until


DEPLOY, ROLLBACK = 32, 80
CAUSES = (
    Cause("visitors × 3", 6, 16, "requests", traffic=3.0),
    Cause("payments fail", 28, 66, "error rate", ("/checkout",), failing=0.35),
    Cause("2.4.0: /search slow", 32, 80, "p95", ("/search",), slower=5.0, deployed=True),
    Cause("2.4.0: /hook fails", 32, 80, "error rate", ("/hook",), failing=0.7, deployed=True,
          delay=8),
    Cause("mail fails", 40, 92, "failures", ("mail",), failing=0.6),
)  # fmt: skip
MINUTES = 130
#: Seconds of a minute in which the page looks.
LOOKS = (2, 30, 58)


class StageClock(SystemClock):
    """The clock of the stage for the time of events; waits are real."""

    def __init__(self, server: FixedTime) -> None:
        self._server = server

    def wall(self) -> float:
        return self._server.now


def poisson(rng: random.Random, mean: float) -> int:
    return max(0, round(rng.gauss(mean, math.sqrt(mean))))


@dataclass
class Ledger:
    """Every recorded event by minute and route or task."""

    events: Counter[tuple[int, str]] = field(default_factory=Counter)
    failures: Counter[tuple[int, str]] = field(default_factory=Counter)
    took: dict[tuple[int, str], list[float]] = field(default_factory=dict)

    def sums(self, since: float, until: float, names: Any) -> tuple[int, int]:
        """Return events and failures of a time."""
        minutes = range(int(since), int(until), 60)
        keys = [(at, name) for at in minutes for name in names]
        return sum(self.events[key] for key in keys), sum(self.failures[key] for key in keys)

    def p95(self, since: float, until: float, names: Any) -> float:
        minutes = range(int(since), int(until), 60)
        return exact_quantile(
            [x for at in minutes for name in names for x in self.took.get((at, name), ())], 0.95
        )


class Stage:
    """The shop, its store and its clock.

    Args:
        start: the beginning of minute 0, Unix seconds.
    """

    def __init__(self, meter: Meter, server: FixedTime, start: int, seed: int) -> None:
        self.start, self.ledger = start, Ledger()
        self._meter, self._server, self._rng = meter, server, random.Random(seed)

    def record(self, minute: int) -> None:
        """Record the events of a minute."""
        at, running = self.start + 60 * minute, [c for c in CAUSES if c.runs(minute)]
        hits = failed_hits = 0
        for name, usual in (SHOP | TASKS).items():
            mine = [c for c in running if name in c.names or (not c.names and name in SHOP)]
            count = poisson(self._rng, usual * math.prod(c.traffic for c in mine))
            share = max([FAILING, *(c.failing for c in mine)]) if name in SHOP else max(
                [0.0, *(c.failing for c in mine)]
            )  # fmt: skip
            failed = sum(self._rng.random() < share for _ in range(count))
            self.ledger.events[at, name], self.ledger.failures[at, name] = count, failed
            if name in TASKS:
                for state, number in (("success", count - failed), ("failure", failed)):
                    labels = {"task": name, "state": state}
                    self._meter.count("task_runs", number, labels=labels, at=at)
                continue
            labels = {"method": "GET", "route": name}
            for status, number in (("2xx", count - failed), ("5xx", failed)):
                if number:
                    self._meter.count(
                        "http_requests", number, labels=labels | {"status": status}, at=at
                    )
            slower = math.prod(c.slower for c in mine)
            times = [self._rng.lognormvariate(-3, 0.5) * slower for _ in range(count)]
            self.ledger.took[at, name] = times
            for took in times:
                self._meter.observe("http_request_seconds", took, labels=labels, at=at)
                self._meter.observe("hits_seconds", took, at=at)
            hits, failed_hits = hits + count, failed_hits + failed
        self._meter.count("hits", hits, at=at)
        self._meter.count("hits_failed", failed_hits, at=at)
        if any(c.title == "payments fail" for c in running):
            self._meter.record_exception(ConnectionError("payments refused"), route="/checkout")
            self._meter.log("payments", "payments refused", severity="error")
        for label, moment in (("shop 2.4.0", DEPLOY), ("shop 2.3.9", ROLLBACK)):
            if minute == moment:
                self._meter.mark(label, at=at)
        assert self._meter.flush(60)


@dataclass
class Seen:
    """What the page has at a moment."""

    status: Any
    overview: Any
    verdict: Any
    firing: list[str]

    @property
    def dot(self) -> str:
        """The color of the status line: as in frontend/src/views/statusline.tsx."""
        if self.firing:
            return "red"
        return {"usual": "green", "unusual": "red"}.get(str(self.status["state"]), "grey")

    @property
    def line(self) -> str:
        """The text of the status line."""
        more = len(self.firing) - len(self.status["firing"])
        return str(self.status["sentence"]) + (f" {more} alert firing." if more > 0 else "")

    @property
    def bad(self) -> list[Any]:
        return [one for one in self.status["checks"] if one["state"] in ("high", "low")]

    @property
    def worse(self) -> list[str]:
        """What the verdict on the newest deploy calls worse."""
        if self.verdict is None or self.verdict["verdict"] != "worse":
            return []
        rows = [row["route"] for row in self.verdict["routes"] if row["verdict"] == "worse"]
        return rows or ["all"]


def look(url: str, *, marked: bool) -> Seen:
    """Ask everything that the page asks, without the answers of an earlier moment."""
    dashboard = Dashboard(url, access="open")

    with asking(dashboard) as client:
        alerts = ask(client, "alerts")
        seen = Seen(
            ask(client, "status"),
            ask(client, "overview", precision=60),
            ask(client, "verdict") if marked else None,
            [
                alert["name"]
                for rule in alerts["rules"]
                for alert in rule["alerts"]
                if alert["status"] == "firing"
            ],
        )
    dashboard.close()
    return seen


Problem = tuple[str, str]


def contradictions(seen: Seen, stage: Stage, minute: int) -> Iterator[Problem]:
    """Yield what is not true in a minute: the kind, and a description.

    Args:
        minute: the running one; the status is of the five before it.
    """
    running = [c for c in CAUSES if c.runs(minute)]
    recent = [c for c in CAUSES if c.since <= minute < c.until + OVER]
    named = {part["value"] for part in seen.status["parts"] if part["kind"] == "group"}
    measures = {one["measure"] for one in seen.bad}
    for cause in running:
        if minute - cause.since < cause.delay:
            continue
        if seen.status["state"] != "unusual":
            yield "missed", f"{cause.title}: the status is {seen.status['state']}"
        elif cause.names and not named & {*cause.names}:
            yield "missed", f"{cause.title} is not named"
        elif not cause.names and cause.measure not in measures:
            yield "missed", f"{cause.title}: {cause.measure} is as expected"
    for one in seen.bad:
        names = {*one["labels"].values()} | {c["value"] for c in one["causes"]}
        mine = [c for c in recent if c.measure == one["measure"]]
        if names - {name for c in mine for name in c.names or SHOP}:
            yield "blamed", f"{one['measure']} of {names}"
        if not mine:
            yield "blamed", f"{one['measure']} is {one['state']}"
        began, ended = (_minute(stage, one[key]) for key in ("began", "ended"))
        if began is not None and all(
            abs(began - c.since) > max(3, (minute - c.since) / 10) for c in mine
        ):
            yield "times", f"{one['measure']} of {names or 'all'} began in minute {began}"
        if ended is not None and all(abs(ended - c.until) > 3 for c in mine):
            yield "times", f"{one['measure']} of {names or 'all'} was over in minute {ended}"
        deployed = any(c.deployed and (not names or names & {*c.names}) for c in mine)
        if one["mark"] and one["mark"]["label"] == "shop 2.4.0" and not deployed:
            yield "the mark", f"{one['measure']} of {names or 'all'}"
    for one in seen.status["checks"]:
        ended = _minute(stage, one["ended"])
        mine = [c for c in CAUSES if c.measure == one["measure"]]
        if one["state"] == "usual" and ended and all(abs(ended - c.until) > OVER for c in mine):
            yield "times", f"{one['measure']} was over in minute {ended}"
    yield from _figures(seen, stage)
    red = seen.bad or seen.firing or seen.worse
    if seen.dot == "green" and red:
        yield "green", f"{len(seen.bad)} red figures, {seen.firing} fire, {seen.worse} worse"
    newest = seen.verdict["mark"]["label"] if seen.verdict else ""
    innocent = {*seen.worse} - {
        name for c in CAUSES if c.deployed and newest == "shop 2.4.0" for name in c.names
    }
    if innocent:
        yield "verdict", f"{newest} made {sorted(innocent)} worse"


def _minute(stage: Stage, moment: float | None) -> int | None:
    return None if moment is None else round((moment - stage.start) / 60)


def _figures(seen: Seen, stage: Stage) -> Iterator[Problem]:
    status, ledger = seen.status, stage.ledger
    for one in status["checks"]:
        if one["state"] not in ("usual", "high", "low") or one["value"] is None:
            continue
        names = [*one["labels"].values()] or [*SHOP]
        over = one["state"] == "usual" and one["ended"]
        unsure = one["unsure_since"]
        since, until = one["since"] or status["since"], over or unsure or status["until"]
        of, failed = ledger.sums(since, until, names)
        if of == 0 and one["measure"] != "requests":
            continue
        if one["measure"] == "requests":
            lasted = until - since if over else 300
            true = math.isclose(one["value"] * lasted, of * 300)
        elif one["measure"] in ("error rate", "failures"):
            true = math.isclose(one["value"], failed / of, abs_tol=1e-9)
        elif one["measure"] == "p95":
            true = near(one["value"], ledger.p95(since, until, names))
        else:
            continue
        if not true:
            yield "figures", f"{one['measure']} of {names[:1]}: {one['value']}, {failed} of {of}"
    end = int(seen.overview["now"]) // 60 * 60
    of, failed = ledger.sums(end - 300, end, SHOP)
    numbers = seen.overview["numbers"]
    if round(numbers["hits"]["recent"] * 300) != of:
        yield "figures", f"tile of requests: {numbers['hits']['recent'] * 300}, not {of}"
    if not math.isclose(numbers["errors"]["recent"], failed / of, abs_tol=1e-9):
        yield "figures", f"tile of errors: {numbers['errors']['recent']}, not {failed / of}"
    if not near(numbers["p95"]["recent"], ledger.p95(end - 300, end, SHOP)):
        yield "figures", f"tile of p95: {numbers['p95']['recent']}"


def run(seed: int, minutes: int, show: Callable[[str], None]) -> list[tuple[int, Problem]]:
    """Stage the incident; return its contradictions by minute."""
    start = (int(time.time()) // 3600 + 1 + HISTORY // 60) * 3600
    problems: list[tuple[int, Problem]] = []
    columns = ("min", "truth", "line", "sentence", "verdict", "firing")
    show("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    with Server() as private, FixedTime(private.port, start - 60 * HISTORY) as clock:
        options: dict[str, Any] = {"flush_interval": 3600, "max_series": 50_000}
        with Meter(clock.url, clock=StageClock(clock), **options) as meter:
            stage = Stage(meter, clock, start, seed)
            for minute in range(-HISTORY, 0):
                clock.now = start + 60 * minute
                stage.record(minute)
            with opened_store(clock.url) as store:
                evaluator = Evaluator(store, parse_rules(ALERTS))
                for minute in range(minutes):
                    for second in LOOKS:
                        clock.now = start + 60 * minute + second
                        evaluator.cycle()
                        seen = look(clock.url, marked=minute > DEPLOY)
                        found = [*contradictions(seen, stage, minute)]
                        problems += [(minute, one) for one in found]
                        if second == LOOKS[1]:
                            show(row(minute, seen))
                    stage.record(minute)
    return problems


def row(minute: int, seen: Seen) -> str:
    """Return a line of the table."""
    truth = [c.title for c in CAUSES if c.runs(minute)]
    verdict = "" if seen.verdict is None else seen.verdict["verdict"]
    cells = (
        f"{minute}",
        ", ".join(truth) or "–",
        seen.dot,
        seen.line,
        f"{verdict} ({', '.join(seen.worse)})" if seen.worse else verdict,
        ", ".join(seen.firing) or "–",
    )
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=43)
    smoke = os.environ.get("REDMETER_BENCH_SMOKE")
    parser.add_argument("--minutes", type=int, default=2 if smoke else MINUTES)
    parser.add_argument("--quiet", action="store_true", help="only the contradictions")
    options = parser.parse_args()
    show = (lambda _: None) if options.quiet else (lambda line: print(line, flush=True))
    problems = run(options.seed, options.minutes, show)
    counts = Counter((kind, text) for _, (kind, text) in problems)
    for (kind, text), number in counts.items():
        first = next(minute for minute, problem in problems if problem == (kind, text))
        print(f"{kind}: {text}: {number} of {3 * options.minutes} looks, first in minute {first}")
    print(f"{len(problems)} contradictions in {len(LOOKS) * options.minutes} looks")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
