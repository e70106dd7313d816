"""The writers of the store, and the report that each of them publishes.

A writer is a producer that publishes a report from time to time; see store/writer_reports.py.
Reports come from other processes, perhaps of other versions, so nothing in them is assumed: a value
that is not a number or a text counts as 0 or "".
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from redmeter.expressions import late
from redmeter.keys import MAX_TIME, Keys
from redmeter.reading.foreign_keys import there
from redmeter.store.replies import Command, Reply, pairs, raised, scored
from redmeter.store.writer_reports import INSTANCE_SECONDS, WRITER_SECONDS

#: Most writers that are read, the newest ones.
MAX_WRITERS = 1000
#: Longest report, bytes, and most braces and brackets in one; usual are 1,000 bytes and 10.
MAX_REPORT, MAX_BRACES = 65_536, 200

_PRECISION = late("[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Writer:
    """A producer and its last report."""

    #: 128 random bits, in hexadecimal.
    producer: str
    #: When it last published, by the server's clock, Unix seconds.
    seen: float
    #: Its instance number: 0, 1, 2 …; None if it has none.
    instance: int | None
    #: RecorderHealth.as_dict(), with `host` and `pid` for people.
    report: Mapping[str, Any]

    def alive(self, now: float) -> bool:
        """Return whether it has published recently.

        Args:
            now: the server's clock, Unix seconds.
        """
        return self.seen >= now - INSTANCE_SECONDS

    def number(self, field: str) -> int:
        """Return a number of events, 0 if it is missing."""
        return _number(self.report.get(field))

    def moment(self, field: str) -> float | None:
        """Return a time, Unix seconds; None if it is missing."""
        value = self.report.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if abs(value) < MAX_TIME else None

    def text(self, field: str) -> str:
        """Return a text, "" if it is missing."""
        value = self.report.get(field)
        return value if isinstance(value, str) else ""

    def counts(self, field: str) -> dict[str, int]:
        """Return counts by kind; {} if the report has none."""
        counts = {kind: _number(count) for kind, count in _items(self.report.get(field))}
        return {kind: count for kind, count in counts.items() if count}

    def lost(self) -> dict[str, dict[int, int]]:
        """Return the events missing from single precisions: reason -> {precision: events}."""
        lost: dict[str, dict[int, int]] = {}
        for reason, by_precision in _items(self.report.get("lost")):
            for precision, events in _items(by_precision):
                if (number := _number(events)) and _PRECISION.fullmatch(precision):
                    lost.setdefault(reason, {})[int(precision)] = number
        return lost

    def past(self) -> dict[int, int]:
        """Return the events that were too old when they were recorded: {precision: events}."""
        counts = self.counts("past")
        return {int(text): number for text, number in counts.items() if _PRECISION.fullmatch(text)}


def writer_commands(keys: Keys) -> list[Command]:
    """Return the commands whose replies parse_writers() takes."""
    return [
        ("ZREVRANGE", keys.writers, "0", str(MAX_WRITERS - 1), "WITHSCORES"),
        ("HGETALL", keys.reports),
        ("HGETALL", keys.instances),
    ]


def parse_writers(
    now: float, replies: Sequence[Reply], *, needed: bool = True
) -> tuple[list[Writer], int]:
    """Return the writers of the last day, and the number of reports that cannot be parsed.

    Args:
        now: the server's clock, Unix seconds.
        needed: if False, a key that another program uses counts as empty.

    Raises:
        StoreError: the error that a reply is.
    """
    seen, reports, instances = (raised(r) if needed else there(r, []) for r in replies)
    texts, numbers = dict(pairs(reports)), dict(pairs(instances))
    writers, unreadable = [], 0
    for producer, score in scored(seen):
        if not now - WRITER_SECONDS <= score <= now + WRITER_SECONDS:
            continue  # expired; the next report removes it
        report = _parsed(texts.get(producer, b""))
        if report is None:
            unreadable += 1
            continue
        number = numbers.get(producer, b"")
        instance = int(number) if number.isdigit() and len(number) <= 10 else None
        name = producer.decode(errors="replace")
        writers.append(Writer(name, score, instance, report))
    return writers, unreadable


def _parsed(text: bytes) -> dict[str, Any] | None:
    """Parse a report; None if it is not one, or not printable."""
    if len(text) > MAX_REPORT or text.count(b"{") + text.count(b"[") > MAX_BRACES:
        return None
    try:
        report = json.loads(text, parse_float=_finite, parse_constant=_refuse)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        _refuse(text)
    return number


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number that JSON has")


def _items(value: object) -> Iterable[tuple[str, object]]:
    return value.items() if isinstance(value, dict) else ()


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value < 2**63 else 0
