"""Writers: threads and processes that record into a store, and remember what they recorded.

Each has a Meter of its own, so each is a producer of its own. What they recorded is held against
what is stored by `history.py`.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Self

from redmeter import Meter
from redmeter.results import RecorderHealth
from support.history import OBSERVED, Event, Ledger
from support.names import one_in_each
from support.recorders import check_sums

#: How many events come at once, and how long a writer then rests, seconds.
BURST, PAUSE = 10, 0.04

#: Seconds between two looks at what a recorder says of itself.
WATCH = 0.2

#: What a Meter of a writer may keep in memory, bytes.
LIMIT = 4_000_000

OPTIONS: dict[str, Any] = {"flush_interval": 0.1, "timeout": 0.5, "buffer_bytes": LIMIT}


def names() -> list[str]:
    """Return names: of each shard a series that is counted, one with a label, one observed."""
    kinds = ("load.{}", 'load{{n="{}"}}', OBSERVED + ".{}")
    return [name for kind in kinds for name in one_in_each(kind)]


class Writer:
    """A thread that records into a Meter until told to stop, and another that watches it.

    Args:
        url: of the store.
        options: of the Meter, next to OPTIONS.
    """

    def __init__(self, url: str, **options: Any) -> None:
        self.meter = Meter(url, **{**OPTIONS, **options})
        self._stop = threading.Event()
        self._raised: list[BaseException] = []
        self.events: list[Event] = []
        #: What the recorder said of itself meanwhile, each with its monotonic time.
        self.looks: list[tuple[float, RecorderHealth]] = []
        self._threads = [
            threading.Thread(target=self._guard, args=(work,), daemon=True)
            for work in (self._record, self._watch)
        ]

    def start(self) -> Self:
        """Begin to record."""
        for thread in self._threads:
            thread.start()
        return self

    def _guard(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:
            self._raised.append(error)
            raise

    def _record(self) -> None:
        turn, amounts = itertools.cycle(names()), itertools.cycle((1, 1, 2, 1, 3))
        while not self._stop.wait(PAUSE):
            for _ in range(BURST):
                self._one(next(turn), next(amounts))

    def _one(self, series: str, amount: int) -> None:
        now = time.time()
        if series.startswith(OBSERVED):
            self.meter.observe(series, amount, at=now)
            amount = 1
        else:
            self.meter.count(series, amount, at=now)
        self.events.append(Event(time.monotonic(), int(now), series, amount))

    def _watch(self) -> None:
        while not self._stop.wait(WATCH):
            health = self.meter.recorder_health()
            check_sums(health)
            assert health.buffer_bytes <= 2 * LIMIT, health
            self.looks.append((time.monotonic(), health))

    def stop(self) -> None:
        """Record no more. What the application saw raised, and false books, are raised here."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._raised:
            raise self._raised[0]

    def finish(self, timeout: float = 90.0) -> Ledger:
        """Stop, store what is left, and tell all."""
        self.stop()
        assert self.meter.flush(timeout), self.meter.recorder_health()
        health = self.meter.recorder_health()
        assert health.recorded == sum(event.amount for event in self.events), health
        assert health.overflowed == 0
        lost: Counter[tuple[int, str]] = Counter()
        for loss in health.losses:
            lost[loss.precision, loss.series] += loss.events
        return Ledger(self.events, lost, health.uncertain)

    def close(self) -> None:
        """Stop, and close the Meter."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self.meter.close()


class WriterProcess:
    """The same in a process of its own. It reports what it recorded at its end.

    Args:
        url: of the store.
    """

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "support.writers", url]
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def start(self) -> None:
        """Wait until it has begun to record."""
        assert self._child.stdout is not None
        assert self._child.stdout.readline() == "recording\n"

    def finish(self, timeout: float = 120.0) -> Ledger:
        """Have it stop and store what is left; return what it tells."""
        out, _ = self._child.communicate("stop\n", timeout)
        assert self._child.returncode == 0
        told = json.loads(out)
        lost = Counter({(precision, series): n for precision, series, n in told["lost"]})
        return Ledger([Event(*event) for event in told["events"]], lost, told["uncertain"])

    def close(self) -> None:
        """End it, whatever it does."""
        self._child.kill()
        self._child.communicate()


class Writers:
    """Several writers at once; a context manager that ends them.

    Args:
        url: of the store.
        threads: how many of this process.
        processes: how many besides, each in a process of its own.
        options: of the Meters of this process, next to OPTIONS.
    """

    def __init__(self, url: str, *, threads: int = 2, processes: int = 0, **options: Any) -> None:
        self.threads = [Writer(url, **options) for _ in range(threads)]
        self.processes = [WriterProcess(url) for _ in range(processes)]

    def __enter__(self) -> Self:
        for writer in self.threads:
            writer.start()
        try:
            for process in self.processes:
                process.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.close()
        for writer in self.threads:
            writer.close()

    def healths(self) -> list[RecorderHealth]:
        """Return what the recorders of this process say now."""
        return [writer.meter.recorder_health() for writer in self.threads]

    def catch_up(self) -> None:
        """Have those of this process store what they have, without waiting for their next try."""
        for writer in self.threads:
            assert writer.meter.flush(20.0), writer.meter.recorder_health()

    def troubles(self) -> Counter[str]:
        """Return what went wrong in the background so far."""
        found: Counter[str] = Counter()
        for health in self.healths():
            found.update(health.troubles)
        return found

    def finish(self) -> Ledger:
        """Stop all, have them store what is left; return what they recorded in all."""
        for writer in self.threads:
            writer.stop()
        ledgers = [writer.finish() for writer in self.threads]
        ledgers += [process.finish() for process in self.processes]
        return sum(ledgers, Ledger())


def _lines(ledger: Ledger) -> Iterator[tuple[int, str, int]]:
    return ((precision, series, n) for (precision, series), n in ledger.lost.items())


def main(url: str) -> None:
    """Record until told to stop; then tell."""
    writer = Writer(url).start()
    print("recording", flush=True)  # noqa: T201
    sys.stdin.readline()
    ledger = writer.finish()
    told = {"events": ledger.events, "lost": list(_lines(ledger)), "uncertain": ledger.uncertain}
    sys.stdout.write(json.dumps(told))
    writer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
