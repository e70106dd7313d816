"""Who writes to the store, and what each of them tells of itself.

A writer is a producer that publishes a report now and then; see store/writer_reports.py. Reports
come from other processes, perhaps of other versions, so nothing in them is taken for granted: what
cannot be read as a number or a text counts as 0 or "".
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from redmeter.expressions import late
from redmeter.keys import MAX_TIME, Keys
from redmeter.reading.foreign_keys import there
from redmeter.store import Store
from redmeter.store.replies import Command, Reply, pairs, raised, scored
from redmeter.store.writer_reports import INSTANCE_SECONDS, WRITER_SECONDS

#: Most writers that are read, the newest ones.
MAX_WRITERS = 1000
#: Longest report, bytes, and most braces and brackets in one; usual are 1,000 bytes and 10.
MAX_REPORT, MAX_BRACES = 65_536, 200

_PRECISION = late("[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Writer:
    """A producer, and its last report."""

    #: 128 random bits, in hexadecimal.
    producer: str
    #: When it last published, by the server's clock, Unix seconds.
    seen: float
    #: Which of the processes it is: 0, 1, 2 …; None where it holds no number.
    instance: int | None
    #: What it said: RecorderHealth.as_dict(), with `host` and `pid` for people.
    report: Mapping[str, Any]

    def alive(self, now: float) -> bool:
        """Whether it has published lately.

        Args:
            now: the server's clock, Unix seconds.
        """
        return self.seen >= now - INSTANCE_SECONDS

    def number(self, field: str) -> int:
        """Return a number of events, 0 where there is none."""
        return _number(self.report.get(field))

    def moment(self, field: str) -> float | None:
        """Return a time, Unix seconds, None where there is none."""
        value = self.report.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if abs(value) < MAX_TIME else None

    def text(self, field: str) -> str:
        """Return a text, "" where there is none."""
        value = self.report.get(field)
        return value if isinstance(value, str) else ""

    def counts(self, field: str) -> dict[str, int]:
        """Return how often what happened: {} where it does not say."""
        found = {what: _number(count) for what, count in _items(self.report.get(field))}
        return {what: count for what, count in found.items() if count}

    def lost(self) -> dict[str, dict[int, int]]:
        """Return what single precisions lack: reason -> {precision: events}."""
        found: dict[str, dict[int, int]] = {}
        for reason, some in _items(self.report.get("lost")):
            for precision, events in _items(some):
                if (number := _number(events)) and _PRECISION.fullmatch(precision):
                    found.setdefault(reason, {})[int(precision)] = number
        return found

    def past(self) -> dict[int, int]:
        """Return what was too old when it was recorded: {precision: events}."""
        found = self.counts("past")
        return {int(text): number for text, number in found.items() if _PRECISION.fullmatch(text)}


def read_writers(store: Store) -> list[Writer]:
    """Return those who published within the last day, the newest first, in one round trip.

    At most MAX_WRITERS; without those whose report cannot be read.

    Raises:
        StoreError: the server cannot be reached or refuses.
    """
    view, replies = store.read(questions(store.keys))
    return answers(view.now, replies)[0]


def questions(keys: Keys) -> list[Command]:
    """Return the commands that answers() takes the replies of."""
    return [
        ("ZREVRANGE", keys.writers, "0", str(MAX_WRITERS - 1), "WITHSCORES"),
        ("HGETALL", keys.reports),
        ("HGETALL", keys.instances),
    ]


def answers(
    now: float, replies: Sequence[Reply], *, needed: bool = True
) -> tuple[list[Writer], int]:
    """Return the writers of the last day, and how many have a report that cannot be read.

    Args:
        now: the server's clock, Unix seconds.
        needed: else what another program keeps in place of one of these keys is as good as nothing.

    Raises:
        StoreError: what the server answered.
    """
    seen, reports, instances = (raised(r) if needed else there(r, []) for r in replies)
    told, numbers = dict(pairs(reports)), dict(pairs(instances))
    writers, unreadable = [], 0
    for producer, score in scored(seen):
        if not now - WRITER_SECONDS <= score <= now + WRITER_SECONDS:
            continue  # left over until the next one publishes
        report = _parsed(told.get(producer, b""))
        if report is None:
            unreadable += 1
            continue
        number = numbers.get(producer, b"")
        instance = int(number) if number.isdigit() and len(number) <= 10 else None
        name = producer.decode(errors="replace")
        writers.append(Writer(name, score, instance, report))
    return writers, unreadable


def _parsed(text: bytes) -> dict[str, Any] | None:
    """Read a report; None where it is none, or one that nobody could print."""
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
