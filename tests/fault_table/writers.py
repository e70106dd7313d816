"""Writers of the fault table: each event has a series of its own, so each can be found again."""

import abc
import contextlib
import dataclasses
import itertools
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, Self

from redmeter import Meter, book
from redmeter.errors import RedmeterError, StoreError
from redmeter.stored.shards import TAGS, shard_of
from redmeter.types import LostEvents
from support.later import LaterClock
from support.stores import give_up
from support.waiting import eventually

#: Seconds between two events, and between two flushes.
PAUSE, INTERVAL = 0.01, 0.05
#: Seconds of a call, and until everything has to be stored in the end.
TIMEOUT, FINISH = 0.5, 60.0
#: Events that `more` waits for.
MORE = 20


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What a writer knows of its events."""

    recorded: int
    stored: int
    buffered: int = 0
    repaired: int = 0
    uncertain: int = 0
    #: Reason -> events.
    dropped: Counter[str] = dataclasses.field(default_factory=Counter)

    @property
    def balanced(self) -> bool:
        """Whether each event is in one place."""
        parts = self.stored + self.buffered + self.uncertain + self.dropped.total()
        return self.recorded == parts and min(self.stored, self.buffered, self.uncertain) >= 0


class Writer(abc.ABC):
    """Records one event after the other in a thread; a context manager that ends it.

    The first event of each shard comes at once: what a server has lost of a writer that it has
    never heard of is uncertain.

    Args:
        shards: of the store.
    """

    def __init__(self, shards: int) -> None:
        self.clock = LaterClock()
        self.ended = False
        self._shards = shards
        self._number = itertools.count(1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on)

    def __enter__(self) -> Self:
        return self

    def start(self) -> None:
        """Begin to record."""
        for name in _one_for_each("first", self._shards):
            self._record(name)
        self.flush()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self.close()

    def _go_on(self) -> None:
        while not self._stop.wait(PAUSE):
            self._record(f"event{next(self._number)}")

    @abc.abstractmethod
    def _record(self, name: str) -> None:
        """Record one event of a series."""

    @abc.abstractmethod
    def numbers(self) -> Numbers:
        """Return what it knows."""

    @abc.abstractmethod
    def close(self) -> None:
        """End it."""

    def more(self, events: int = MORE) -> None:
        """Wait until so many further events were acknowledged."""
        before = self.numbers().stored
        eventually(lambda: self.numbers().stored >= before + events, FINISH, "more is stored")

    def flush(self) -> None:  # noqa: B027 - of most, nothing is in memory
        """Store what is in memory."""

    def finish(self) -> None:
        """Record no more, after one last event for each shard; then all is stored."""
        if self.ended:
            return
        self._stop.set()
        self._thread.join()
        for name in _one_for_each("last", self._shards):
            self._record(name)
        self.flush()

    def end(self) -> None:
        """End for good: it will not know what happens from now on."""
        self.finish()
        self.ended = True
        self.close()


def _one_for_each(word: str, shards: int) -> Iterator[str]:
    missing = set(range(shards))
    for number in itertools.count():
        if not missing:
            return
        name = f"{word}{number}"
        shard = shard_of(name) if shards == len(TAGS) else 0
        if shard in missing:
            missing.remove(shard)
            yield name


class MeterWriter(Writer):
    """A Meter. Args: the URL and whether each call stores its event."""

    def __init__(self, url: str, shards: int, *, sync: bool) -> None:
        super().__init__(shards)
        self._sync = sync
        options: dict[str, Any] = {} if sync else {"flush_interval": INTERVAL}
        self._meter = Meter(url, sync=sync, clock=self.clock, timeout=TIMEOUT, **options)

    def _record(self, name: str) -> None:
        with contextlib.suppress(RedmeterError):  # counted: see numbers()
            self._meter.count(name)

    def flush(self) -> None:
        eventually(lambda: self._meter.flush(1.0), FINISH, "all is stored")

    def numbers(self) -> Numbers:
        health = self._meter.recorder_health()
        dropped: Counter[str] = Counter()
        for reason, precisions in health.lost().items():
            if 0 in precisions:  # without the grand total: gone everywhere
                dropped[reason] += precisions[0]
        if rest := health.dropped - dropped.total():
            dropped["raised"] += rest
        return Numbers(
            *(health.recorded, health.stored, health.buffered, health.repaired),
            *(health.uncertain, +dropped),
        )

    def close(self) -> None:
        self._meter.close()
        give_up(self._meter)  # of a row that failed: it must not go on in the next one


class BookWriter(Writer):
    """The functions of redmeter.book, which log what a server has lost. Args: a client."""

    def __init__(self, client: Any) -> None:
        super().__init__(1)
        self._client = client
        self._calls: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._handler = logging.Handler(logging.WARNING)
        self._handler.emit = self._heard  # type: ignore[method-assign]
        logging.getLogger("redmeter").addHandler(self._handler)

    def _heard(self, record: logging.LogRecord) -> None:
        lost = record.args[1] if isinstance(record.args, tuple) and len(record.args) > 1 else None
        if isinstance(lost, LostEvents):
            self._lost[lost.reason] += lost.events
            self._calls["uncertain"] += lost.uncertain
            self._calls["stored"] -= lost.events + lost.uncertain

    def _record(self, name: str) -> None:
        self._calls["recorded"] += 1
        try:
            book.update_counter(self._client, name)
        except StoreError as error:
            self._calls["uncertain" if error.sent else "raised"] += 1
        else:
            self._calls["stored"] += 1

    def numbers(self) -> Numbers:
        calls = self._calls
        dropped = +Counter(raised=calls["raised"]) + self._lost
        done = calls["stored"] + calls["uncertain"] + dropped.total()
        buffered = calls["recorded"] - done
        return Numbers(
            *(calls["recorded"], calls["stored"], buffered, 0, calls["uncertain"], dropped)
        )

    def close(self) -> None:
        logging.getLogger("redmeter").removeHandler(self._handler)
        self._client.close()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Have Redmeter log nothing: its warnings are the point of every row."""
    logger = logging.getLogger("redmeter")
    before, logger.propagate = logger.propagate, False
    nowhere = logging.NullHandler()
    logger.addHandler(nowhere)
    try:
        yield
    finally:
        logger.propagate = before
        logger.removeHandler(nowhere)
