"""Meter: what an application uses. Records through recording/; what it answers is in asking.py."""

import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from redmeter import settings
from redmeter import store as stores
from redmeter.asking import Asking
from redmeter.clock import SYSTEM, Clock
from redmeter.model import RecorderHealth
from redmeter.recording.cells import Counter, Gauge
from redmeter.recording.direct import DirectRecorder
from redmeter.recording.recorder import Recorder

if TYPE_CHECKING:
    import redis


#: How long close() and the exit of a process wait for the last flush, seconds.
CLOSE_SECONDS = 2.0

# See recording/cells.py: another 1, or True, takes the longer way.
_ONE = 1


class Meter(Asking):
    """Counts what happens in an application, and answers how often it did.

    Recording touches memory only; a background thread stores what was recorded, once a second, and
    keeps it while the store is away. It starts with the first event. Constructing a Meter
    connects to nothing and starts nothing. Safe to share between threads, tasks and forked
    processes, and to use in signal handlers. With the URL `off`, every call does nothing and
    readings are empty.

    Args:
        url: `redis://`, `rediss://`, `unix://`, `embedded://PATH` or `off`. None: REDMETER_URL,
            else the embedded server in the user's data directory.
        client: a redis-py client of yours, used instead of a URL and never closed.
        prefix: what stands before every key.
        retention: precision (seconds) -> number of newest samples kept, should the store be new.
        timeout: how long to wait for the store, seconds.
        sync: store each event at once, and raise where that fails: for scripts that need the
            answer now.
        flush_interval: how long what was recorded waits in memory, seconds.
        buffer_bytes: how much memory may hold what is not stored yet, about.
        max_series: how many series to tell apart; all further ones become `(other)`.
        max_label_sets: how many of one name; all further ones become one, labelled
            `overflow="true"`.
        clock: where time comes from.

    Raises:
        InvalidSetting: a setting cannot be used.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client: "redis.Redis | None" = None,
        prefix: str | None = None,
        retention: Mapping[int, int] | str | None = None,
        timeout: float | None = None,
        sync: bool = False,
        flush_interval: float | None = None,
        buffer_bytes: int | None = None,
        max_series: int | None = None,
        max_label_sets: int | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        interval = settings.resolve("flush_interval", flush_interval)
        limits = {
            "limit": settings.resolve("buffer_bytes", buffer_bytes),
            "max_series": settings.resolve("max_series", max_series),
            "max_label_sets": settings.resolve("max_label_sets", max_label_sets),
        }
        store = stores.open(
            url,
            client=client,
            prefix=prefix,
            retention=dict(retention) if isinstance(retention, Mapping) else retention,
            timeout=timeout,
            clock=clock,
        )
        super().__init__(store)
        self._recorder: Recorder | DirectRecorder
        if sync or self._store is None:
            self._recorder = DirectRecorder(self._store, clock.wall)
        else:
            self._recorder = Recorder(self._store, interval=interval, **limits)
            # A meter that nobody holds any more still stores what it has.
            weakref.finalize(self, self._recorder.close_soon).atexit = False
        self._now = clock.wall
        self._by_name = self._recorder.by_name

    def __repr__(self) -> str:
        return f"<Meter {self._store.location if self._store else 'off'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Store what was recorded, for 2 s at most, and close the connections, unless yours.

        What is recorded afterwards starts everything again.
        """
        self._recorder.close(CLOSE_SECONDS)
        if self._store is not None:
            self._store.close()

    # Recording

    def count(
        self,
        name: str,
        amount: int = 1,
        *,
        labels: Mapping[str, str] | None = None,
        at: float | None = None,
    ) -> None:
        """Count that something happened, at every precision that is kept.

        Args:
            name: 1 to 200 bytes, see redmeter.names; may carry labels.
            amount: how often, a whole number, not negative.
            labels: more labels, e.g. {"plan": "pro"}; their order does not matter.
            at: when it happened, Unix seconds; now, if not given. A slice that the retention no
                longer holds is left out.

        Raises:
            InvalidName: the name or a label is not allowed.
            InvalidValue: amount or time out of range.
            TypeError: the amount is not a whole number.
            StoreError: only with sync=True: the store cannot be reached or refuses; a part of the
                event may have been refused by itself, e.g. as a slice would pass 2^63 - 1.
        """
        if amount is _ONE and labels is None and at is None:
            try:
                counter = self._by_name[name]
            except (KeyError, TypeError):
                pass
            else:
                time = self._now()
                if time < counter.due:
                    counter.events.append(time)
                else:
                    counter.put(time, time)
                return
        self._recorder.count(name, amount, labels, at)

    def counter(self, name: str, *, labels: Mapping[str, str] | None = None) -> Counter:
        """Return the counter of a series, bound: `inc()` is the fastest way to count.

        Raises:
            InvalidName: see count().
        """
        return self._recorder.counter(name, labels)

    def gauge(
        self, name: str, *, labels: Mapping[str, str] | None = None, per_process: bool = False
    ) -> Gauge:
        """Return the gauge of a series: `set(value)` says what it is now.

        Of each slice the newest value stays, by the time at which it was set. Counters and gauges
        of one name are two series.

        Args:
            name, labels: see count().
            per_process: each process has its own, told apart by a label `instance`: 0, 1, 2 …,
                given out by the store; the number of a process that ended goes to another one.

        Raises:
            InvalidName: see count().
        """
        return self._recorder.gauge(name, labels, per_process=per_process)

    def flush(self, timeout: float = CLOSE_SECONDS) -> bool:
        """Store what was recorded before this call.

        Args:
            timeout: how long to try, seconds.

        Returns:
            Whether all went well: nothing is waiting, and nothing was denied. health() tells more.
        """
        return self._recorder.flush(timeout)

    def flush_on_sigterm(self) -> None:
        """From now on, flush when SIGTERM comes, then do what would have been done.

        By default SIGTERM ends a process at once, and what was recorded within the last second is
        lost. Servers such as gunicorn and uvicorn end gracefully and need nothing of this.

        Raises:
            ValueError: not called in the main thread.
        """
        self._recorder.flush_on_sigterm()

    def health(self) -> RecorderHealth:
        """Return what this process' recording knows of itself: stored, waiting, lost, and why."""
        return self._recorder.health()
