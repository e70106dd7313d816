"""Reports: what became of the stages, as a table for people, and as JSON."""

import dataclasses
import datetime
import os
import platform
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import redis

import redmeter
from soak.checks import Ledger

#: Between these lines of a page the last result stands.
BEGIN, END = "<!-- the last long run -->", "<!-- end of the last long run -->"


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a stage."""

    stage: str
    seconds: float
    ledger: Ledger
    #: What the grand totals lack of what was counted, and is not lost.
    missing: int
    #: The sum of the grand totals.
    counted: int
    faults: Counter[str]
    failovers: int
    #: The longest fault, until all was in order again, and the longest time from then until
    #: everything was stored, seconds.
    longest: float
    again: float
    #: The most memory that a writer took, and what the servers take in the end, bytes.
    rss: int
    used: int
    watermarks: int
    #: Questions and passes of those who read and clean; how many met a fault.
    asked: int
    troubled: int
    processes: int
    wrong: list[str]

    def rows(self) -> dict[str, str]:
        """Return what a table shows."""
        ledger = self.ledger
        reasons: Counter[str] = Counter()
        for (reason, precision), events in ledger.reasons.items():
            reasons[reason] = max(reasons[reason], events)
            del precision
        lost = ", ".join(f"{reason} {events:,}" for reason, events in sorted(reasons.items()))
        return {
            "seconds": f"{self.seconds:,.0f}",
            "writing processes": f"{self.processes:,}",
            "events recorded": f"{ledger.events:,}",
            "events stored, by the recorders' books": f"{ledger.stored:,}",
            "counted and in the grand totals": f"{self.counted:,}",
            "counted and missing there": f"{self.missing:,}",
            "dropped from the finest precisions": lost or "0",
            "uncertain": f"{ledger.uncertain:,}",
            "lost by a server, and sent again": f"{ledger.repaired:,}",
            "lost by a server, and reported": f"{ledger.reported:,}",
            "lost by a server, not reported, at most": f"{ledger.unreported:,}",
            "in memory of killed processes, at most": f"{ledger.killed:,}",
            "missing, at most": f"{ledger.most_missing:,}",
            "faults": f"{self.faults.total():,}",
            "failovers": f"{self.failovers:,}",
            "longest outage": f"{self.longest:.1f} s",
            "all stored again after, at most": f"{self.again:.1f} s",
            "readings, pages, cleanings": f"{self.asked:,}",
            "of these met by a fault": f"{self.troubled:,}",
            "memory of a writer, at most": f"{self.rss / 2**20:.0f} MiB",
            "memory of the servers": f"{self.used / 2**20:.1f} MiB",
            "watermarks": f"{self.watermarks:,}",
            "wrong": f"{len(self.wrong):,}",
        }

    def as_dict(self) -> dict[str, Any]:
        """Return everything, in types that JSON has."""
        told = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "ledger"
        }
        ledger = self.ledger
        told["lost"] = {f"{reason} at {p} s": n for (reason, p), n in ledger.reasons.items()}
        for name in (
            *("events", "stored", "uncertain", "killed", "most_missing"),
            *("repaired", "reported", "unreported"),
        ):
            told[name] = getattr(ledger, name)
        return told


def table(results: Sequence[Result]) -> str:
    """Return a table in Markdown: a column for each stage."""
    rows = [result.rows() for result in results]
    lines = [f"| | {' | '.join(result.stage for result in results)} |"]
    lines.append(f"|---|{'---:|' * len(results)}")
    lines += [f"| {name} | {' | '.join(row[name] for row in rows)} |" for name in rows[0]]
    return "\n".join(lines)


def faults(results: Sequence[Result]) -> str:
    """Return what was done in each stage, and how often."""
    return "\n".join(
        f"- {result.stage}: "
        + ", ".join(f"{name} ({times})" for name, times in sorted(result.faults.items()))
        for result in results
    )


def conditions(seconds: float, seed: str, server: str) -> str:
    """Return when, where and by what it was run."""
    today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"{today}: {seconds:,.0f} s, seed {seed}, {server}; Redmeter {redmeter.__version__}, "
        f"Python {platform.python_version()}, redis-py {redis.__version__}; {platform.system()} "
        f"{platform.release()}, {platform.machine()}, {os.cpu_count()} cores."
    )


def write(page: Path, text: str) -> None:
    """Put a result into a page, in place of the last one."""
    found = page.read_text(encoding="utf-8")
    if BEGIN not in found or END not in found:
        raise ValueError(f"{page} has no lines {BEGIN} and {END}")
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{BEGIN}\n{text}\n{END}", found), encoding="utf-8")
