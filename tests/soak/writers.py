"""Writers: programs that record, and write down before what they record.

    python -m soak.writers KIND SLOT FOLDER URL SEED

SIGINT ends one in good order: all is stored first. SIGTERM ends it as an application would be, with
what its Meter does about that. Nobody is left behind: who has lost its parent ends.
"""

import atexit
import itertools
import os
import random
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from redmeter import Meter
from soak.journal import AMOUNTS, Journal, Said, level
from soak.moments import SoakClock

#: Seconds between two bursts of events, and between two flushes.
PAUSE, INTERVAL = 0.2, 0.25
#: Seconds to wait for the store.
TIMEOUT = 1.0
#: Seconds that storing what is left may take in the end.
FINISH = 60.0

#: What all writers count and observe together.
SHARED = tuple(f"shared.{number}" for number in range(10))
SEEN = tuple(f"seen.{number}" for number in range(4))
#: What those count whose clocks are right, and `stepped`, which must not spoil it.
MIXED = ("mixed.0", "mixed.1")
#: What `bulk` counts of the past, and `stepped` as well.
BULK = tuple(f"bulk.{number}" for number in range(4))
#: What is logged; the pattern by which it is counted.
MESSAGE = "job %d is done"

OPTIONS: dict[str, Any] = {"flush_interval": INTERVAL, "timeout": TIMEOUT}


class Writer:
    """A Meter, the journal of what it records, and when to end.

    Args:
        slot: which of the writers of a stage it is.
        folder: where journals lie.
        url: of the store.
        seed: what chance goes by.
        clock: its file, where the clock must be set.
        options: of the Meter.
    """

    def __init__(
        self, slot: str, folder: Path, url: str, seed: str, *, clock: str = "", **options: Any
    ) -> None:
        self.slot = slot
        self.random = random.Random(seed)
        self.clock = SoakClock(folder / clock if clock else None)
        self.clock.look()
        self._folder = folder
        self._parent = os.getppid()
        #: The signal that ends it.
        self.asked: int | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)
        self._turns = itertools.cycle(AMOUNTS), itertools.cycle(SHARED), itertools.cycle(SEEN)
        self.meter = Meter(url, clock=self.clock, **OPTIONS, **options)
        self.journal = Journal(folder, slot)
        self._own = f'own{{writer="{slot}"}}'
        self._brief = f"brief.{int(time.time()) // 60 % 60}"
        # Before the Meter has an exit of its own to go through, so it is called after that.
        atexit.register(self.look, last=True)

    def _ask(self, number: int, _: FrameType | None) -> None:
        self.asked = number

    @property
    def going_on(self) -> bool:
        """Whether nobody asked it to end, and whoever started it is there."""
        return self.asked is None and os.getppid() == self._parent

    def forked(self, slot: str) -> None:
        """Be another writer, in a forked child."""
        self.journal.close()
        self.journal = Journal(self._folder, slot)
        self._own = f'own{{writer="{slot}"}}'
        self._parent = os.getppid()

    # --- What is recorded -------------------------------------------------------------------

    def count(self, series: str, amount: int) -> None:
        """Count something, now."""
        with self.clock.held() as now:
            self.journal.note("c", now, series, amount)
            self.meter.count(series, amount)

    def count_at(self, series: str, amount: int, ago: float) -> None:
        """Count something of another time; a negative one is to come."""
        at = self.clock.wall() - ago
        self.journal.note("c", at, series, amount)
        self.meter.count(series, amount, at=at)

    def observe(self, series: str, value: int) -> None:
        """Observe a value, now."""
        with self.clock.held() as now:
            self.journal.note("o", now, series, value)
            self.meter.observe(series, value)

    def set(self, series: str) -> None:
        """Set a gauge."""
        with self.clock.held() as now:
            self.journal.note("g", now, series)
            self.meter.gauge(series).set(level(now))

    def log(self, logger: str) -> None:
        """Log a message."""
        with self.clock.held() as now:
            self.journal.note("m", now, logger)
            self.meter.log(logger, MESSAGE, self.random.randrange(1000))

    def burst(self) -> None:
        """Record something of each kind, of series that others record as well and of its own."""
        amounts, shared, seen = self._turns
        for _ in range(4):
            self.count(next(shared), next(amounts))
        self.count(self._own, 1)
        self.count(self.random.choice(MIXED), 1)
        self.count(self._brief, 1)
        self.observe(next(seen), next(amounts))
        self.set(f'level{{writer="{self.slot}"}}')
        if self.random.random() < 0.3:
            self.log(f"soak.{self.slot}")

    # --- What the recorder says -------------------------------------------------------------

    def said(self) -> Said:
        """Return what its recorder says."""
        return Said.of(self.meter.recorder_health())

    def look(self, *, last: bool = False) -> None:
        """Write down what the recorder says."""
        self.journal.look(self.said(), last=last)

    def pause(self) -> None:
        """Look, and rest."""
        self.look()
        time.sleep(self.random.uniform(0.5, 1.5) * PAUSE)
        self.clock.look()

    def end(self) -> None:
        """End as was asked for."""
        if self.asked == signal.SIGINT:
            self.meter.flush(FINISH)
            self.meter.close()
        sys.exit(0)  # which stores what is left, unless nobody is there any more


def main(kind: str, *arguments: str) -> None:
    """Run a writer of a kind."""
    from soak.kinds import KINDS

    slot, folder, url, seed = arguments
    KINDS[kind](slot, Path(folder), url, seed)


if __name__ == "__main__":
    main(*sys.argv[1:])
