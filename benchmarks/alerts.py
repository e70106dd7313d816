"""The fault table of alerts: what evaluators record and send while they are killed.

    python benchmarks/alerts.py [--rounds N] [--steps N]

In each round an alert with two notifiers fires and resolves, so there are 2 transitions and 4
notices. Evaluators are processes of their own. They are killed without any cleanup before or after
each exchange with the server and each notice (--steps limits how many of these), at random times
while two of them run, or they find the server stopped for a while. A killed evaluator's lease is
ended, as time would, and another one finishes the work.

In a last table, a killed evaluator's lease is left to expire, and another evaluator waits for it:
the seconds from the kill until it has the lease, and until all notices have arrived (--takeovers
limits the steps).

Printed for each fault: kills, transitions recorded, distinct keys of notices, notices repeated
(the same key again) and missing. It must be that transitions are 2 and distinct keys 4 for each
round, repeated is at most kills, and missing is 0; otherwise the exit code is 1.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
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
from redmeter.alerting.notifiers import begin_attempt  # noqa: E402
from redmeter.alerting.rules import Notifier  # noqa: E402
from redmeter.alerting.rules_file import parse_rules  # noqa: E402
from redmeter.alerting.store import AlertStore, Notice  # noqa: E402
from redmeter.errors import StoreError  # noqa: E402
from support.alerts import RULES  # noqa: E402
from support.servers import Server  # noqa: E402
from support.stores import opened_store  # noqa: E402

#: Transitions and notices of one round.
TRANSITIONS, NOTICES = 2, 4
#: Seconds after a kill in which another evaluator has to take over.
MOST_TAKEOVER = 15.0
#: Exit code of an evaluator that reached its step.
KILLED = 9
ALERTS = "redmeter:alerts:"


@dataclass
class Row:
    """The counts of one fault."""

    fault: str
    rounds: int = 0
    kills: int = 0
    transitions: int = 0
    keys: int = 0
    repeated: int = 0
    missing: int = 0

    @property
    def right(self) -> bool:
        """Whether nothing was lost, and no more was repeated than evaluators were killed."""
        exact = self.transitions == TRANSITIONS * self.rounds and self.keys == NOTICES * self.rounds
        return exact and self.missing == 0 and self.repeated <= self.kills


class Stage:
    """A server, and the file in which the receiver notes what arrives."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.received = folder / "received"

    def change(self, length: float) -> None:
        """Set the gauge that the alert is about, so that the newest reading is this one."""
        with Meter(self.server.url, sync=True) as meter:
            gauge = meter.gauge("queue_length")
            gauge.set(length, at=time.time() - (30 if length > 100 else 12))

    def deliver(self, notifier: Notifier, notice: Notice, _: float) -> tuple[()]:
        """Note a notice durably, as a receiver that gets it."""
        with self.received.open("a") as file:
            file.write(f"{notice.key} {notifier.name} {notice.status}\n")
        return ()

    def attempt(self, notifier: Notifier, notice: Notice, seconds: float) -> Iterator[None]:
        """Run a command that notes the notice after a second, and die after half of it."""
        line = f"{notice.key} {notifier.name} {notice.status}"
        note = 'sleep 1; echo "$1" >> "$2"'
        words = ("sh", "-c", note, "sh", line, str(self.received))
        begun = time.monotonic()
        for _ in begin_attempt(Notifier("ops", "command", {"command": words}), notice, seconds):
            yield
            if time.monotonic() - begun > 0.5:
                os._exit(KILLED)

    def start(self, step: int = 0, when: str = "", cycles: int | None = 1) -> int:
        """Start an evaluator in a process of its own.

        Args:
            step: it dies at this exchange or notice; 0: it does not.
            when: "before" or "after" the step, or "during": while an attempt runs.
            cycles: how often it evaluates; None: until it is killed.

        Returns:
            The process's ID.
        """
        if child := os.fork():
            return child
        code = 1
        try:
            left = [step]
            AlertStore._run = _dying(AlertStore._run, left, when)  # type: ignore[method-assign]
            deliver = _dying(self.attempt if when == "during" else self.deliver, left, when)
            with opened_store(self.server.url) as store:
                evaluator = Evaluator(store, parse_rules(RULES), deliver=deliver)
                if cycles is None:
                    evaluator.run(threading.Event().wait)
                for _ in range(cycles or 0):
                    evaluator.cycle()
            code = 0
        except StoreError:
            code = 2
        finally:
            os._exit(code)

    def finish(self) -> None:
        """End the lease of whoever was killed, and let another evaluator do what is left."""
        with self.server.client() as client:
            if lease := client.hget(ALERTS, "lease"):
                epoch, _, owner = lease.split()
                client.hset(ALERTS, "lease", b"%s 0 %s" % (epoch, owner))
        ended(self.start())
        with self.server.client() as client:
            epoch, _, owner = client.hget(ALERTS, "lease").split()
            client.hset(ALERTS, "lease", b"%s 0 %s" % (epoch, owner))

    def round(self, row: Row, fault: Callable[[], int]) -> int:
        """Let the alert fire and resolve under a fault; return how many evaluators it killed."""
        with self.server.client() as client:
            client.flushall()
        self.received.write_text("")
        kills = 0
        for length in (500, 5):
            self.change(length)
            kills += fault()
            self.finish()
        with opened_store(self.server.url) as store:
            row.transitions += len(AlertStore(store).transitions())
        lines = [line.split(" ") for line in self.received.read_text().splitlines()]
        times = Counter(line[0] for line in lines)
        row.rounds += 1
        row.kills += kills
        row.keys += len(times)
        row.repeated += times.total() - len(times)
        row.missing += NOTICES - len({(name, status) for _, name, status in lines})
        return kills


def _dying(function: Callable[..., Any], left: list[int], when: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and when == "before":
            os._exit(KILLED)
        result = function(*args)
        if left[0] == 0:
            os._exit(KILLED)
        return result

    return call


def ended(child: int) -> int:
    """Wait for a process; return its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def at_each_step(stage: Stage, when: str, most: int) -> Row:
    """Kill an evaluator before or after each step, until a round has fewer steps."""
    row = Row(f"killed {when} each step")
    for step in range(1, most + 1):

        def fault(step: int = step) -> int:
            return ended(stage.start(step, when)) == KILLED

        if not stage.round(row, fault):
            break
    return row


def two_evaluators(stage: Stage, rounds: int, rng: random.Random) -> Row:
    """Run two evaluators at once and kill one of them at a random time."""
    row = Row("two evaluators, one killed at any time")

    def fault() -> int:
        children = [stage.start(cycles=3), stage.start(cycles=3)]
        time.sleep(rng.uniform(0, 0.3))
        os.kill(rng.choice(children), signal.SIGKILL)
        return sum(ended(child) == -signal.SIGKILL for child in children)

    for _ in range(rounds):
        stage.round(row, fault)
    return row


@dataclass
class Takeover:
    """The times of one kind of kill, seconds after the kill."""

    killed: str
    leases: list[float] = field(default_factory=list)
    notices: list[float] = field(default_factory=list)
    repeated: int = 0

    @property
    def times(self) -> tuple[list[float], list[float]]:
        """Until the lease is taken, and until all notices have arrived."""
        return self.leases, self.notices


def takeovers(stage: Stage, when: str, most: int) -> Takeover:
    """Kill an evaluator that has the lease, at each step, while another one waits for it."""
    row = Takeover("while an attempt runs" if when == "during" else f"{when} each step")
    for step in range(2, most + 2) if when != "during" else [0]:
        with stage.server.client() as client:
            client.flushall()
            stage.received.write_text("")
            stage.change(500)
            if ended(stage.start(step, when)) != KILLED:
                break
            killed = time.monotonic()
            lease = client.hget(ALERTS, "lease")
            other = stage.start(cycles=None)
            try:
                while client.hget(ALERTS, "lease").split()[2] == lease.split()[2]:
                    time.sleep(0.01)
                row.leases.append(time.monotonic() - killed)
                while client.hlen("redmeter:notices:") or not client.llen("redmeter:transitions:"):
                    time.sleep(0.01)
                row.notices.append(time.monotonic() - killed)
            finally:
                os.kill(other, signal.SIGKILL)
                ended(other)
        lines = stage.received.read_text().splitlines()
        assert len(set(lines)) == NOTICES // 2, "a notice is missing"
        row.repeated += len(lines) - len(set(lines))
    return row


def outages(stage: Stage, rounds: int) -> Row:
    """Let an evaluator find the server stopped; the data are back afterwards."""
    row = Row("server stopped during a cycle")

    def fault() -> int:
        with stage.server.client() as client:
            client.save()
        stage.server.kill()
        code = ended(stage.start())
        stage.server.start()
        assert code != 0, "an evaluator worked without a server"
        return 0

    for _ in range(rounds):
        stage.round(row, fault)
    return row


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The fault table of alerts.")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of random faults")
    parser.add_argument("--steps", type=int, default=100, help="most steps that are killed at")
    parser.add_argument("--takeovers", type=int, default=100, help="most steps of the last table")
    options = parser.parse_args()
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        stage = Stage(server, Path(folder))
        rows = [
            at_each_step(stage, "before", options.steps),
            at_each_step(stage, "after", options.steps),
            two_evaluators(stage, options.rounds, rng),
            outages(stage, max(1, options.rounds // 4)),
        ]
        times = [
            takeovers(stage, when, options.takeovers) for when in ("before", "after", "during")
        ]
    line = "| {:39} | {:>6} | {:>5} | {:>11} | {:>13} | {:>8} | {:>7} |"
    print(
        line.format(
            "fault", "rounds", "kills", "transitions", "distinct keys", "repeated", "missing"
        )
    )
    print("|---" * 7 + "|")
    for row in rows:
        print(line.format(*vars(row).values()))
    line = "| {:20} | {:>5} | {:>15} | {:>17} | {:>8} |"
    print()
    print(line.format("killed", "kills", "lease taken, s", "notices sent, s", "repeated"))
    print("|---" * 5 + "|")
    for each in times:
        if each.leases:
            leases, notices = (f"{min(all_):.1f} to {max(all_):.1f}" for all_ in each.times)
            print(line.format(each.killed, len(each.leases), leases, notices, each.repeated))
    soon = all(seconds <= MOST_TAKEOVER for each in times for seconds in each.leases)
    return 0 if soon and all(row.right for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
