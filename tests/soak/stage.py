"""A stage: a store, its crew, one fault after the other; then all is stopped, and checked."""

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import redis

from redmeter import Meter
from redmeter.errors import RedmeterError
from redmeter.maintenance import cleaning
from soak import asked, checks, explained, readings
from soak.checks import Ledger, Window
from soak.clustered import Clustered
from soak.crew import WATCHING, WRITERS, Crew
from soak.journal import Book
from soak.one_server import OneServer
from soak.place import HANDED_OVER, Hold, Place
from soak.plan import Plan
from soak.report import Result
from soak.residue import read_gauges, read_messages, residue
from soak.watched import Lagging, Sentinels
from soak.writers import FINISH, MESSAGE
from support.history import Stored
from support.stores import opened_store

#: Seconds between two looks, and between the end of a fault and the next, at random.
LOOK, CALM = 0.1, (0.3, 2.0)
#: Memory of one writer at the end, of what it was at half time, and how much more it may be, bytes.
GROWTH, ROOM = 1.3, 8 * 2**20
#: What a series, and a watermark, may take on the servers, bytes.
SERIES_BYTES, WATERMARK_BYTES, EMPTY_BYTES = 300_000, 2_000, 20 * 2**20


class Kind(NamedTuple):
    """A kind of stage: where, and whether faults may cost what was stored shortly before."""

    place: str
    lossy: bool


PLACES: dict[str, Callable[[Path, random.Random, Hold, str], Place]] = {
    "server": OneServer,
    "cluster": Clustered,
    "sentinel": Sentinels,
    "lagging": Lagging,
}

STAGES = {
    "server": Kind("server", lossy=False),
    "crash": Kind("server", lossy=True),
    "cluster": Kind("cluster", lossy=False),
    "failover": Kind("cluster", lossy=True),
    "sentinel": Kind("sentinel", lossy=True),
    "lagging": Kind("lagging", lossy=True),
}


class Stage:
    """One stage.

    Args:
        name: a key of STAGES.
        seconds: how long.
        seed: what the plan of faults, and all else, is chosen by.
        folder: where journals lie; it has to be empty.
        server: a key of binaries.BINARIES.
        say: takes a line of progress.
    """

    def __init__(
        self,
        name: str,
        seconds: float,
        seed: str,
        folder: Path,
        server: str,
        say: Callable[[str], None],
    ) -> None:
        self._seconds = seconds
        self._folder = folder
        self._say = say
        self._chance = random.Random(f"{seed} {name}")
        self._seed = f"{seed} {name}"
        self._lossy = STAGES[name].lossy
        make = PLACES[STAGES[name].place]
        self._place: Place = make(folder, self._chance, self._hold, server)
        self._windows: list[Window] = []
        self._faults: Counter[str] = Counter()
        self._failovers = 0
        #: Who the primaries were when all was whole for the last time, and when that was.
        self._masters: frozenset[str] = frozenset()
        self._whole = 0.0
        self._again: list[float] = []
        self._wrong: list[str] = []
        self._half: dict[str, int] = {}
        #: Whether something is being done to the place.
        self._broken = False
        self._started = 0.0
        self.name = name

    def run(self) -> Result:
        """Run it."""
        with contextlib.closing(self._place) as place:
            place.start()
            self._masters, self._whole = place.masters(), time.monotonic()
            with Crew(self._folder, place.url, self._seed) as self._crew:
                self._crew.start_all()
                eventually_all_record(self._crew)
                self._started = time.monotonic()
                self._plan = Plan(self._chance, self._crew, self._folder, self._calm)
                for name, happen in self._plan.happenings(self._chosen_faults()):
                    if time.monotonic() - self._started > self._seconds:
                        break
                    self._do(name, happen)
                    self._hold(self._chance.uniform(*CALM))
                self._hold(self._started + self._seconds - time.monotonic())
                return self._checked()

    # --- What happens -----------------------------------------------------------------------

    def _chosen_faults(self) -> dict[str, Callable[[], None]]:
        """Return what must be done to the place: each waits until all is well again."""
        return {
            name: partial(self._break, name, fault)
            for name, fault in self._place.faults().items()
            if self._lossy or name not in self._place.lossy
        }

    def _do(self, name: str, happen: Callable[[], None]) -> None:
        self._faults[name] += 1
        if name not in self._place.faults():
            self._say(name)
        happen()

    def _calm(self) -> bool:
        """Tell whether nothing is wrong."""
        now = time.monotonic()
        return not self._broken and not any(window.touches(now, now) for window in self._windows)

    def _break(self, name: str, fault: Callable[[], None]) -> None:
        """Break something, wait until it is whole, and until all is stored again."""
        self._look_for_failover()
        before, start = self._masters, time.monotonic()
        self._broken = True
        try:
            fault()
        except (AssertionError, redis.RedisError, OSError) as error:
            self._wrong.append(f"{name}: the servers are not in order again: {error!r}")
        self._broken = False
        end, after = time.monotonic(), self._place.masters()
        self._failovers += len(after - before)
        # On a busy machine a node that stands still for a moment may be held to be gone.
        if name in self._place.lossy or (after != before and name != HANDED_OVER):
            risk = end if name in self._place.until_end else start
            window = Window(name, start, end, risk, self._place.touched)
        else:
            window = Window(name, start, end)
        self._windows.append(window)
        again = self._stored_again()
        self._windows[-1] = window._replace(end=max(end, end + again - checks.SLACK))
        self._masters, self._whole = self._place.masters(), time.monotonic()
        self._again.append(again)
        told = f"{name}: {end - start:.1f} s, all stored again after {again:.1f} s"
        self._say(f"{told}, another master" if after != before else told)

    def _look_for_failover(self) -> None:
        """See whether there was one without a fault: a busy machine, a node silent for too long."""
        now, masters = time.monotonic(), self._place.masters()
        if masters != self._masters:
            self._say("a failover that nobody asked for")
            self._windows.append(Window("by itself", self._whole, now, risk=now))
        self._masters, self._whole = masters, now

    def _stored_again(self) -> float:
        """Wait until all that living writers had recorded is in no memory; return how long."""
        began = time.monotonic()
        self._crew.follow()
        needed = {book.path: book.amount for book in self._crew.living()}
        while time.monotonic() - began < FINISH:
            left = [book for book in self._crew.living() if book.done < needed.get(book.path, 0)]
            if not left:
                return time.monotonic() - began
            self._hold(LOOK)
        for book in left:
            missing = needed[book.path] - book.done
            self._wrong.append(f"{book.path.name}: {missing} not stored within {FINISH:.0f} s")
        return time.monotonic() - began

    def _hold(self, seconds: float) -> None:
        """Wait, and see what the crew does meanwhile."""
        until = time.monotonic() + seconds
        if self._broken and (happening := self._plan.take_meanwhile()):
            self._do(*happening)
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(LOOK, left))
            self._crew.follow()
            self._wrong += self._crew.ended_by_itself()
            if not self._half and time.monotonic() - self._started > self._seconds / 2:
                self._half = self._memory()

    def _memory(self) -> dict[str, int]:
        """Return how much memory each writer takes that runs."""
        return {book.slot: book.looks[-1].rss for book in self._crew.living() if book.looks}

    # --- The end ----------------------------------------------------------------------------

    def _checked(self) -> Result:
        """Stop all, and check everything."""
        crew, end = self._crew, self._memory()
        crew.stop(*WRITERS)
        crew.stop("up", *WATCHING)
        crew.follow()
        self._look_for_failover()
        lasted = time.monotonic() - self._started
        clients = self._place.clients()
        stored, ledger = Stored.read(clients), Ledger(crew.books.values(), self._windows)
        wrong = [*self._wrong, *crew.wrong]
        wrong += checks.sums(ledger, stored)
        wrong += checks.gauges(ledger, read_gauges(clients))
        wrong += checks.messages(ledger, read_messages(clients, MESSAGE))
        wrong += checks.books(ledger, self._windows)
        wrong += checks.seen(crew.seen, self._windows)
        wrong += explained.uncertain(ledger, self._windows)
        apart = time.time() - time.monotonic()
        wrong += explained.losses(ledger, stored, self._windows, apart)
        wrong += readings.readings(crew.seen, ledger, self._windows)
        wrong += asked.histograms(clients, stored)
        wrong += self._asked(ledger, stored)
        for _ in range(2):  # what expires between the two is gone by the second time
            self._clean()
            left = list(residue(clients, lasted))
        wrong += left
        wrong += self._grown(end)
        used = sum(int(client.info("memory")["used_memory"]) for client in clients)
        watermarks = sum(len(list(c.scan_iter("*batch:*", count=1000))) for c in clients)
        wrong += self._too_large(used, len(ledger.recorded), watermarks, len(clients))
        return Result(
            stage=self.name,
            seconds=lasted,
            ledger=ledger,
            missing=checks.missing(ledger, stored),
            counted=sum(sum(stored.slices[0, series].values()) for series in ledger.recorded),
            faults=self._faults,
            failovers=self._failovers,
            longest=max((window.end - window.start for window in self._windows), default=0.0),
            again=max(self._again, default=0.0),
            rss=max((look.rss for book in ledger.books for look in book.looks), default=0),
            used=used,
            watermarks=watermarks,
            asked=sum(int(one.text) for one in crew.seen if one.what == "done"),
            troubled=sum(one.what == "error" for one in crew.seen),
            processes=len(ledger.books),
            wrong=wrong,
        )

    def _asked(self, ledger: Ledger, stored: Stored) -> list[str]:
        try:
            with Meter(self._place.url, timeout=FINISH) as meter:
                return list(asked.answers(meter, ledger, stored))
        except RedmeterError as error:
            return [f"asked in the end: {error}"]

    def _clean(self) -> None:
        try:
            with opened_store(self._place.url) as store:
                if not cleaning.clean(store).complete:
                    self._wrong.append("a cleaner's pass does not come to its end")
        except RedmeterError as error:
            self._wrong.append(f"a last pass of the cleaner: {error}")

    def _grown(self, end: dict[str, int]) -> Iterator[str]:
        for slot, most in self._half.items():
            if end.get(slot, 0) > GROWTH * most + ROOM:
                yield f"{slot} took {most:,} bytes at half time, {end[slot]:,} at the end"

    def _too_large(self, used: int, series: int, watermarks: int, servers: int) -> Iterator[str]:
        most = series * SERIES_BYTES + watermarks * WATERMARK_BYTES + servers * EMPTY_BYTES
        if used > most:
            yield f"the servers take {used:,} bytes for {series} series: over {most:,}"


def eventually_all_record(crew: Crew) -> None:
    """Wait until each writer has stored something."""
    until = time.monotonic() + FINISH
    books: list[Book] = []
    while len(books) < len(WRITERS):
        if time.monotonic() > until:
            raise AssertionError(f"not all writers record: {[book.slot for book in books]}")
        time.sleep(LOOK)
        crew.follow()
        if wrong := crew.ended_by_itself():
            raise AssertionError("; ".join(wrong))
        books = [book for book in crew.living() if book.done]
