"""Journals: what a process records, written down before; and what its recorder says of itself.

A line is in the file, and outlives a SIGKILL, before the event that it tells of is recorded. So of
a process that was killed the journal knows everything, and its last look at the recorder how much
of that was stored by then: the rest is all that nobody can know.

    c|o MONOTONIC WALL AMOUNT SERIES    counted; observed, which is one event whatever the amount
    g   MONOTONIC WALL 0 SERIES         a gauge was set, to level(WALL)
    m   MONOTONIC WALL 0 LOGGER         a message was logged
    -   MONOTONIC WALL AMOUNT SERIES    the last one raised, and was not stored: it is none
    h   MONOTONIC {…}                   what the recorder says
"""

import json
import os
import time
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple, Self

from redmeter.results import RecorderHealth
from redmeter.stored.keys import HOUR

ENDING = ".journal"

#: What is written down of a recorder.
NUMBERS = (
    *("recorded", "stored", "buffered", "uncertain", "dropped", "repaired"),
    *("retried", "overflowed"),
)

#: Reasons for which a server has lost what it had acknowledged.
LOST_BY_SERVER = ("rolled-back", "emptied")
#: Slots of writers that do not send again what a server has lost.
FORGETFUL = ("sync", "bulk")

#: How much is counted at once, in turn.
AMOUNTS = (1, 1, 2, 1, 5)


def level(wall: float) -> float:
    """Return what a gauge is set to at a time: so each value reports when it was set."""
    return round(wall % 10_000, 3)


class Said:
    """What recorders say of themselves, added up.

    Attributes:
        numbers: as RecorderHealth calls them.
        losses: (reason, series, precision) -> events.
        troubles: what -> how often.
    """

    def __init__(self) -> None:
        self.numbers: Counter[str] = Counter()
        self.losses: Counter[tuple[str, str, int]] = Counter()
        self.troubles: Counter[str] = Counter()

    @classmethod
    def of(cls, health: RecorderHealth) -> Self:
        """Return what one says."""
        said = cls()
        said.numbers.update({name: getattr(health, name) for name in NUMBERS})
        said.losses.update(
            {(one.reason, one.series, one.precision): one.events for one in health.losses}
        )
        said.troubles.update(health.troubles)
        return said

    def __add__(self, other: Self) -> Self:
        both = type(self)()
        for name in ("numbers", "losses", "troubles"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both


class Journal:
    """What one process writes.

    Args:
        folder: where all journals lie.
        slot: which of the writers it is.
    """

    def __init__(self, folder: Path, slot: str) -> None:
        path = folder / f"{slot}-{os.getpid()}-{time.monotonic_ns()}{ENDING}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)

    def note(self, kind: str, wall: float, name: str, amount: int = 0) -> None:
        """Write down that something is about to be recorded."""
        self._write(f"{kind} {time.monotonic():.6f} {wall!r} {amount} {name}")

    def look(self, said: Said, *, last: bool = False) -> None:
        """Write down what recorders say."""
        told: dict[str, Any] = {name: said.numbers[name] for name in NUMBERS}
        told |= {"rss": resident(), "last": last, "troubles": said.troubles}
        told["losses"] = [(*place, events) for place, events in said.losses.items()]
        self._write(f"h {time.monotonic():.6f} {json.dumps(told)}")

    def _write(self, line: str) -> None:
        os.write(self._file, f"{line}\n".encode())


def resident() -> int:
    """Return how much memory this process takes, bytes; 0 where that cannot be told."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Look(NamedTuple):
    """What a recorder said at a moment."""

    #: By the monotonic clock.
    time: float
    #: Events that are in no memory any more: stored, uncertain or dropped.
    done: int
    buffered: int
    rss: int
    stored: int = 0
    uncertain: int = 0
    #: Events that were written down by then.
    noted: int = 0


class Noted:
    """When the events of a series were written down: a row for each line, in three columns."""

    def __init__(self) -> None:
        #: When, by the monotonic clock.
        self.moments = array("d")
        #: In which second it happened, Unix.
        self.seconds = array("q")
        #: How many events it is.
        self.events = array("q")

    def add(self, moment: float, second: int, events: int) -> None:
        """Add a row."""
        self.moments.append(moment)
        self.seconds.append(second)
        self.events.append(events)


def _time(look: Look) -> float:
    return look.time


class Book:
    """What one journal says, read as it grows.

    Attributes:
        slot: which of the writers it is of.
        pid: its process; began: when it began, monotonic nanoseconds; ended: whether it is gone.
        recorded: series -> second -> amount, of what is counted and observed.
        set_at: gauge -> second -> when it was last set.
        logged: logger -> hour -> messages.
        events: how many events there are of each series, gauge and logger.
        noted: when each of them was written down.
        refused: how many of these raised, and were not stored.
        looks: what the recorder said, in the order of time.
        last: whether the last of these came after everything.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.slot, pid, began = path.name.removesuffix(ENDING).split("-")
        self.pid, self.began = int(pid), int(began)
        self.ended = False
        self.recorded: dict[str, Counter[int]] = defaultdict(Counter)
        self.set_at: dict[str, dict[int, float]] = defaultdict(dict)
        self.logged: dict[str, Counter[int]] = defaultdict(Counter)
        self.events: Counter[str] = Counter()
        self.noted: dict[str, Noted] = defaultdict(Noted)
        self.refused = 0
        self.looks: list[Look] = []
        self.said: dict[str, Any] = {}
        self.last = False
        #: Whether it was asked to end by SIGTERM, flushes then and tells no more, and nothing was
        #: wrong.
        self.flushed = False
        self._offset = 0
        #: When nothing was in memory, by the monotonic clock.
        self._settled = [0.0]

    @property
    def amount(self) -> int:
        """How many events there are."""
        return self.events.total()

    @property
    def done(self) -> int:
        """How many events were in no memory any more, as far as is known."""
        return self.looks[-1].done if self.looks else 0

    @property
    def unsettled(self) -> int:
        """How many events were in memory when it ended, at most."""
        if self.flushed:
            return min(max(AMOUNTS), self.amount - self.done)  # the one not yet recorded
        return self.amount - self.done

    @property
    def uncertain(self) -> int:
        """Of how many events its recorder did not know whether they were stored."""
        return int(self.said.get("uncertain", 0))

    @property
    def repaired(self) -> int:
        """How many events it has sent again."""
        return int(self.said.get("repaired", 0))

    @property
    def lost_by_server(self) -> int:
        """How many events it says a server has acknowledged and lost for good."""
        return sum(
            events
            for (reason, _, precision), events in self.losses().items()
            if reason in LOST_BY_SERVER and precision == 0
        )

    def wrote_again(self, series: str, moment: float) -> bool:
        """Whether something of a series was written down after a moment, and then stored.

        Then it knows what the server has lost of that shard until the moment, and has sent it
        again, or reports it.
        """
        if self.slot in FORGETFUL:
            return False
        moments = self.noted[series].moments if series in self.noted else ()
        number = bisect_right(moments, moment)
        return number < len(moments) and self._settled[-1] > moments[number]

    def noted_of(self, series: str, since: float, until: float) -> int:
        """Return how many events of a series may have been stored in a time.

        Args:
            since: those that were stored before are left out, as far as is known.
        """
        since = self._settled[bisect_right(self._settled, since) - 1]
        noted = self.noted.get(series, Noted())
        first, last = bisect_right(noted.moments, since), bisect_right(noted.moments, until)
        return sum(noted.events[first:last])

    def losses(self) -> Counter[tuple[str, str, int]]:
        """Return what was lost: (reason, series, precision) -> events."""
        return Counter({(r, s, p): events for r, s, p, events in self.said.get("losses", ())})

    def done_by(self, moment: float) -> int:
        """Return what was surely done at a moment."""
        number = bisect_right(self.looks, moment, key=_time)
        return self.looks[number - 1].done if number else 0

    def done_after(self, moment: float) -> int:
        """Return what may have been done at a moment."""
        number = bisect_left(self.looks, moment, key=_time)
        return self.looks[number].done if number < len(self.looks) else self.amount

    def read(self) -> None:
        """Read on."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text.rfind(b"\n") + 1  # a line that was cut off reports of nothing
        self._offset += whole
        for line in text[:whole].decode().splitlines():
            self._take(line)

    def _take(self, line: str) -> None:
        kind, moment, rest = line.split(" ", 2)
        if kind == "h":
            said = json.loads(rest)
            done = said["stored"] + said["uncertain"] + said["dropped"]
            self.looks.append(
                Look(
                    *(float(moment), done, said["buffered"], said["rss"]),
                    *(said["stored"], said["uncertain"], self.amount),
                )
            )
            self.said, self.last = said, said["last"]
            if done >= self.amount:
                self._settled.append(float(moment))
            return
        wall, amount, name = rest.split(" ", 2)
        second = int(float(wall) // 1)
        if kind == "-":  # it stays an event of the recorder, which dropped it
            self.recorded[name][second] -= int(amount)
            self.refused += int(amount)
            return
        events = int(amount) if kind == "c" else 1
        self.events[name] += events
        self.noted[name].add(float(moment), second, events)
        if kind == "g":
            self.set_at[name][second] = float(wall)
        elif kind == "m":
            self.logged[name][second // HOUR * HOUR] += 1
        else:
            self.recorded[name][second] += events
