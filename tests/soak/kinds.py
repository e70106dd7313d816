"""The kinds of writers, by what is special about each."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from redmeter import store as stores
from redmeter.errors import StoreError
from redmeter.recording.bulk_writer import BulkWriter
from redmeter.store import Store
from redmeter.stored.exponential_histogram import Distribution
from soak.journal import AMOUNTS, Said
from soak.writers import BULK, FINISH, MIXED, PAUSE, TIMEOUT, Writer

#: The file that says how far off the clock of `stepped` is, seconds.
CLOCK = "clock"

#: How long ago things happened that `stepped` reports of, seconds; negative: are to happen.
AGO = (3, 30, 110, 700, 4_000, 90_000, 10**8, -20, -500, -5_000, -(10**7))

#: Bursts of a worker of `prefork` until another takes its place.
TURNS = (15, 60)
WORKERS = 2


def plain(slot: str, folder: Path, url: str, seed: str) -> None:
    """Record, and fork children now and then. SIGTERM is answered by the Meter alone."""
    writer = Writer(slot, folder, url, seed)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    writer.meter.flush_on_sigterm()
    children: list[int] = []
    while writer.going_on:
        writer.burst()
        if writer.random.random() < 0.04 and len(children) < 2:
            children.append(_forked_child(writer))
        children = [pid for pid in children if not _has_ended(pid)]
        writer.pause()
    for pid in children:
        os.waitpid(pid, 0)
    writer.end()


def _forked_child(writer: Writer) -> int:
    pid = os.fork()
    if pid == 0:
        writer.forked(f"{writer.slot}_child")
        for _ in range(5):
            writer.burst()
            writer.pause()
        if writer.random.random() < 0.5:
            writer.meter.close()
        raise SystemExit
    return pid


def _has_ended(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] == pid


def steady(slot: str, folder: Path, url: str, seed: str) -> None:
    """Record, and do nothing else: nobody kills this one."""
    writer = Writer(slot, folder, url, seed)
    while writer.going_on:
        writer.burst()
        writer.pause()
    writer.end()


def stepped(slot: str, folder: Path, url: str, seed: str) -> None:
    """Record by a clock that is set, and things of other times."""
    writer = Writer(slot, folder, url, seed, clock=CLOCK)
    turn = 0
    while writer.going_on:
        for number in range(3):
            writer.count(f"stepped.{number}", AMOUNTS[turn % len(AMOUNTS)])
            turn += 1
        writer.count(writer.random.choice(MIXED), 1)
        writer.count(writer.random.choice(BULK), 1)
        writer.observe("seen.stepped", AMOUNTS[turn % len(AMOUNTS)])
        writer.count_at(f"odd.{turn % 4}", 1, writer.random.choice(AGO))
        writer.pause()
    writer.end()


def sync(slot: str, folder: Path, url: str, seed: str) -> None:
    """Store each event before the next, and go by what is raised."""
    writer = Writer(slot, folder, url, seed, sync=True)
    while writer.going_on:
        for series in (f'own{{writer="{slot}"}}', "shared.0", "seen.sync"):
            observed = series.startswith("seen")
            with writer.clock.held() as now:
                writer.journal.note("o" if observed else "c", now, series, 1)
            try:
                if observed:
                    writer.meter.observe(series, 1, at=now)
                else:
                    writer.meter.count(series, at=now)
            except StoreError as error:
                if not error.sent:
                    writer.journal.note("-", now, series, 1)
            writer.look()
        writer.pause()
    writer.end()


def prefork(slot: str, folder: Path, url: str, seed: str) -> None:
    """Fork workers, each of which serves for a while, as gunicorn does."""
    writer = Writer(slot, folder, url, seed)
    writer.burst()
    workers: set[int] = set()
    while writer.going_on:
        while len(workers) < WORKERS:
            turns = writer.random.randint(*TURNS)
            chance = str(writer.random.random())
            pid = os.fork()
            if pid == 0:
                _serve(writer, turns, chance)
            workers.add(pid)
        writer.pause()
        workers -= {pid for pid in workers if _has_ended(pid)}
    for pid in workers:
        os.kill(pid, writer.asked or signal.SIGTERM)
    for pid in workers:
        os.waitpid(pid, 0)
    writer.end()


def _serve(writer: Writer, turns: int, chance: str) -> None:
    writer.forked(f"{writer.slot}_worker")
    writer.random = random.Random(chance)
    while writer.going_on and turns:
        writer.burst()
        writer.pause()
        turns -= 1
    writer.end()


def bulk(slot: str, folder: Path, url: str, seed: str) -> None:
    """Store what happened within the last two hours, many events at once, again and again."""
    writer, store = InBulk(slot, folder, url, seed), stores.open(url, timeout=TIMEOUT)
    assert store is not None
    while writer.going_on:
        try:
            store.read()  # what is kept
        except StoreError:
            writer.pause()
            continue
        writer.load(store)
        for _ in range(10):
            writer.pause()
    store.close()
    writer.end()


class InBulk(Writer):
    """A writer whose events go into many recorders, one after the other."""

    def __init__(self, slot: str, folder: Path, url: str, seed: str) -> None:
        self._current: BulkWriter | None = None
        self._before = Said()
        super().__init__(slot, folder, url, seed)

    def said(self) -> Said:
        """Return what all its recorders say, added up."""
        if self._current is None:
            return self._before
        return self._before + Said.of(self._current.health())

    def load(self, store: Store) -> None:
        """Store forty events; not given up before the store is back."""
        now = store.clock.wall()
        self._current = bulk = BulkWriter(store)
        for _ in range(40):
            second = int((now - self.random.uniform(0, 7000)) // 1)
            if self.random.random() < 0.8:
                series, amount = self.random.choice(BULK), self.random.randint(1, 5)
                self.journal.note("c", second, series, amount)
                bulk.add(series, second, amount, now)
            else:
                value = Distribution()
                value.add_all([1.0])
                self.journal.note("o", second, "seen.bulk", 1)
                bulk.observe("seen.bulk", second, value, now)
        until = time.monotonic() + FINISH
        while True:
            try:
                bulk.write(TIMEOUT, now)
                break
            except StoreError:
                if time.monotonic() > until:
                    raise
                self.look()
                time.sleep(PAUSE)
        self._before, self._current = self.said(), None


KINDS: dict[str, Callable[[str, Path, str, str], None]] = {
    "plain": plain,
    "steady": steady,
    "stepped": stepped,
    "sync": sync,
    "prefork": prefork,
    "bulk": bulk,
}
