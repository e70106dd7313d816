"""Those that read a store all the time, and those that clean it: programs that tell what they see.

    python -m soak.watching reader URL        python -m soak.watching cleaner URL

A line of output is a JSON object: `what` happened, from `start` to `end` by the monotonic clock,
and the `text`. Whether an error or a total that went down was to be expected, and whether a total
was right, is for those to say who know what was broken and recorded: see checks.py, readings.py.
SIGINT ends them.
"""

import itertools
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from redmeter import Meter
from redmeter import store as stores
from redmeter.errors import StoreError
from redmeter.maintenance import cleaning
from soak.writers import SEEN, SHARED, TIMEOUT

#: Seconds between two questions, and between two passes of a cleaner.
READ_PAUSE, CLEAN_PAUSE = 0.1, 1.0
#: Precisions of which one divides the other.
FINE, COARSE = (1, 5, 60), (5, 60, 300)
#: Precisions of which intervals are kept for longer than a soak takes.
LONG = (3600, 86400)


class Watcher:
    """Does things again and again until told to stop, and reports what goes wrong."""

    def __init__(self) -> None:
        self.asked = False
        self._parent = os.getppid()
        self.done = 0
        signal.signal(signal.SIGINT, self._ask)
        self.tell("ready", time.monotonic(), "")

    def _ask(self, *_: object) -> None:
        self.asked = True

    @property
    def going_on(self) -> bool:
        """Whether nobody asked it to end, and whoever started it is there."""
        return not self.asked and os.getppid() == self._parent

    def tell(self, what: str, start: float, text: str) -> None:
        """Print what happened since a monotonic time."""
        said = {"what": what, "start": start, "end": time.monotonic(), "text": text}
        print(json.dumps(said), flush=True)  # noqa: T201

    def attempt(self, name: str, work: Callable[[], object]) -> None:
        """Do something; a StoreError is told as one, everything else as wrong."""
        start = time.monotonic()
        try:
            work()
        except StoreError as error:
            self.tell("error", start, f"{name}: {type(error).__name__}: {error}")
        except Exception:  # noqa: BLE001  whatever it is, it should not be
            self.tell("wrong", start, f"{name}: {traceback.format_exc()}")
        self.done += 1

    def end(self) -> None:
        """Tell how much was done."""
        self.tell("done", time.monotonic(), str(self.done))


class Reader(Watcher):
    """Asks all that a Meter may be asked."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.meter = Meter(url, timeout=TIMEOUT)
        self._totals: dict[str, tuple[float, int]] = {}

    def run(self) -> None:
        """Ask until told to stop."""
        questions = itertools.cycle(
            (
                *("names", "totals", "sums", "top", "totals", "summary", "sums", "messages"),
                *("gauges", "totals", "sums", "series"),
            )
        )
        while self.going_on:
            question = next(questions)
            self.attempt(question, getattr(self, question))
            time.sleep(READ_PAUSE)
        self.meter.close()
        self.end()

    def answer(self, question: str, asked: float, amounts: dict[str, int]) -> None:
        """Tell how much there is of some series, all that was ever recorded of them."""
        self.tell("told", asked, json.dumps({question: amounts}))

    def names(self) -> None:
        """All names of all kinds."""
        for kind in ("counter", "gauge", "histogram"):
            self.meter.names(kind=kind)

    def series(self) -> None:
        """All series that are shared, at each precision; the coarse ones hold all of the soak."""
        for precision in FINE:
            self.meter.series_many(list(SHARED), precision=precision)
        for precision in LONG:
            asked = time.monotonic()
            found = self.meter.series_many(list(SHARED), precision=precision)
            amounts = {name: one.total for name, one in found.items()}
            self.answer(f"series at {precision} s", asked, amounts)

    def gauges(self) -> None:
        """A gauge, and statistics."""
        self.meter.gauge_series("level", labels={"writer": "steady"}, precision=1)
        self.meter.statistics(SEEN[0])

    def top(self) -> None:
        """What happened most often, took longest, and by a label."""
        self.meter.top(precision=60)
        self.meter.top("own", by="writer", precision=60)
        self.meter.top("seen*", precision=60, order="p95")

    def summary(self) -> None:
        """How values were spread."""
        for precision in (5, 60):
            self.meter.summary_many(list(SEEN), precision=precision)
        asked = time.monotonic()
        found = self.meter.summary_many(list(SEEN), precision=LONG[0])
        amounts = {name: one.count for name, one in found.items()}
        self.answer("summary", asked, amounts)

    def messages(self) -> None:
        """Who logs, what, and what changed."""
        self.meter.loggers()
        self.meter.log_frequencies("soak.steady")
        self.meter.log_messages("soak.steady")
        self.meter.log_changes()

    def totals(self) -> None:
        """Grand totals, which never go down."""
        for series in SHARED:
            asked = time.monotonic()
            total = self.meter.total(series)
            before, most = self._totals.get(series, (asked, 0))
            if total < most:
                self.tell("down", before, f"total of {series}: {most}, then {total}")
            self._totals[series] = asked, total
            self.answer("total", asked, {series: total})

    def sums(self) -> None:
        """Intervals hold the sum of the finer ones within them."""
        number = random.randrange(len(FINE))
        fine, coarse, series = FINE[number], COARSE[number], random.choice(SHARED)
        start = time.monotonic()
        first = self._slices(series, fine)
        whole = self._slices(series, coarse)
        if first != self._slices(series, fine):
            return  # something was stored meanwhile
        oldest = time.time() - 115 * fine
        sums: Counter[int] = Counter()
        for second, amount in first.items():
            sums[second // coarse * coarse] += amount
        for second, amount in whole.items():
            if second >= oldest and sums[second] != amount:
                text = f"{series}, {second}: {amount} at {coarse} s, {sums[second]} at {fine} s"
                self.tell("unequal", start, text)

    def _slices(self, series: str, precision: int) -> dict[int, int]:
        found = self.meter.series(series, precision=precision)
        return {sample.start: sample.value for sample in found if sample.value}


class Cleaner(Watcher):
    """Makes one pass after the other, over everything."""

    def __init__(self, url: str) -> None:
        super().__init__()
        store = stores.open(url, timeout=TIMEOUT)
        assert store is not None
        self._store = store

    def run(self) -> None:
        """Clean until told to stop."""
        while self.going_on:
            self.attempt("clean", lambda: cleaning.clean(self._store))
            time.sleep(CLEAN_PAUSE)
        self._store.close()
        self.end()


class Page(Watcher):
    """Asks the page of `redmeter up`, whose address is in a file."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = Path(file)

    def run(self) -> None:
        """Ask until told to stop."""
        import httpx

        paths = itertools.cycle(
            (
                *("/", "/api/overview", "/api/names", "/api/series?name=shared.0&precision=1"),
                *(
                    "/api/top?name=shared.*",
                    "/api/summary?name=seen.0",
                    "/api/messages",
                    "/api/doctor",
                ),
            )
        )
        with httpx.Client(timeout=10.0) as client:
            while self.going_on:
                path, start = next(paths), time.monotonic()
                try:
                    answer = client.get(self._file.read_text().strip() + path)
                except httpx.HTTPError as error:
                    self.tell("error", start, f"{path}: {type(error).__name__}: {error}")
                else:
                    if answer.status_code == 503 and path != "/":  # which needs no store
                        self.tell("error", start, f"{path}: {answer.text[:500]}")
                    elif answer.status_code != 200:
                        self.tell("wrong", start, f"{path}: {answer.status_code} {answer.text}")
                self.done += 1
                time.sleep(3 * READ_PAUSE)
        self.end()


WATCHERS: dict[str, Callable[[str], Reader | Cleaner | Page]] = {
    "reader": Reader,
    "cleaner": Cleaner,
    "page": Page,
}


def main(kind: str, address: str) -> None:
    """Run one."""
    WATCHERS[kind](address).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
