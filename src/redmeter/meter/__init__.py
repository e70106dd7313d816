"""Meter, the object that an application holds.

It records through recording/: metrics.py and events.py have the methods. Queries are in queries/.
"""

import time
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

from redmeter import settings
from redmeter import store as stores
from redmeter.clock import SYSTEM, Clock
from redmeter.errors import InvalidSetting
from redmeter.meter.events import EventMethods
from redmeter.meter.metrics import MetricMethods
from redmeter.queries import Queries
from redmeter.recording.logging.redact import MessageRules
from redmeter.recording.next_store import NextStore
from redmeter.recording.recorder import Recorder
from redmeter.recording.sync import SyncRecorder
from redmeter.store import Store, urls
from redmeter.types import RecorderHealth

if TYPE_CHECKING:
    import redis


#: How long close() and the exit of a process wait for the last flush, seconds.
CLOSE_SECONDS = 2.0


class Helper(Protocol):
    """A thread of an integration that uses a meter's store, such as its cleaner."""

    def stop(self, timeout: float) -> None:
        """End it, and wait at most so many seconds for that."""
        ...


class Meter(MetricMethods, EventMethods, Queries):
    """Records an application's metrics, and answers queries about them.

        meter = Meter("redis://localhost")
        meter.count("orders", labels={"plan": "pro"})
        meter.observe("checkout_seconds", 0.21)
        meter.series("orders", precision="1m", last="1h").total

    Recording only touches memory. A background thread starts with the first event and stores events
    once a second; while Redis is unreachable, it keeps them. Creating a Meter connects to nothing
    and starts nothing. If there is neither a URL nor a program for the embedded server, it logs an
    error. A Meter can be shared between threads, tasks and forked processes, and used in signal
    handlers. With the URL `off`, every call does nothing and queries return empty results.

    Arguments that are None come from the environment, REDMETER_URL and so on, or have the defaults
    of the page "Settings" of the docs.

    Args:
        url: `redis://`, `rediss://`, `redis+sentinel://`, `redis+cluster://`, `unix://`,
            `embedded://PATH` or `off`. Default: the embedded server in the user's data directory.
        client: a redis-py client of yours, used instead of a URL and never closed.
        next_url: the store to continue with after `redmeter migrate` has moved this one; a URL as
            above.
        prefix: the beginning of every key.
        retention: for a new store: precision in seconds -> number of newest samples that are kept.
        histogram_retention: the same for histograms.
        timeout: longest time to wait for Redis, seconds.
        sync: store each event at once, and raise if that fails; for scripts that need the result
            immediately.
        durability: what must confirm that stored events are durable: `none`, `replica` (one replica
            has them) or `disk` (they are in the server's append-only file on its disk). Events
            without a confirmation in time are stored anyway; recorder_health().troubles counts
            their batches as `unconfirmed`. With `sync`, the call raises Unconfirmed.
        flush_interval: how often events are stored, seconds.
        buffer_bytes: most memory for events that are not stored yet, approximately.
        repair_bytes: most memory for stored events of the last minute, approximately, which are
            sent again if the server loses them.
        max_series: most series in memory; events of further ones go to the series `(other)`.
        max_label_sets: most label sets of one name; events of further ones go to one that is
            labeled `overflow="true"`.
        recent_messages: number of newest messages that are kept for each logger and severity, up to
            1,000; use the same number in all processes.
        mask: a function that takes the text of a message and returns it without secrets. It
            replaces redmeter.analysis.text.secrets.mask, which it may call. It usually runs in the
            background, and must not wait for anything. If it raises, `(masking failed)` is stored.
        release: a version or commit, which mark() notes if it is called without a label.
        embedded_idle: how long the embedded server runs without clients, seconds.
        read_from: `primary`, or `replica` to read from a replica if one is healthy.
        timezone: whose clock the habits in forecasts and comparisons with other days follow: an
            IANA name such as Europe/Berlin. Default: UTC.
        clock: the source of time.

    Raises:
        InvalidSetting: a setting cannot be used.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        next_url: str | None = None,
        client: "redis.Redis | None" = None,
        prefix: str | None = None,
        retention: Mapping[int, int] | str | None = None,
        histogram_retention: Mapping[int, int] | str | None = None,
        timeout: float | None = None,
        sync: bool = False,
        durability: str | None = None,
        flush_interval: float | None = None,
        buffer_bytes: int | None = None,
        repair_bytes: int | None = None,
        max_series: int | None = None,
        max_label_sets: int | None = None,
        recent_messages: int | None = None,
        mask: Callable[[str], str] | None = None,
        release: str | None = None,
        embedded_idle: float | None = None,
        read_from: str | None = None,
        timezone: str | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        interval = settings.resolve("flush_interval", flush_interval)
        limits: dict[str, Any] = {
            "limit": settings.resolve("buffer_bytes", buffer_bytes),
            "keep": settings.resolve("repair_bytes", repair_bytes),
            "max_series": settings.resolve("max_series", max_series),
            "max_label_sets": settings.resolve("max_label_sets", max_label_sets),
        }
        rules = MessageRules(settings.resolve("recent_messages", recent_messages))
        if mask is not None:
            if not callable(mask):
                raise InvalidSetting("mask", "a function that takes a text and returns one")
            rules = rules._replace(mask=mask)
        options: dict[str, Any] = {
            "prefix": prefix,
            "retention": _plain(retention),
            "histogram_retention": _plain(histogram_retention),
            "timeout": timeout,
            "embedded_idle": embedded_idle,
            "read_from": read_from,
            "timezone": timezone,
            "clock": clock,
        }
        store = stores.open(url, client=client, announce=True, **options)
        next_store = self._next_store(settings.resolve("next_url", next_url), options)
        super().__init__(store)
        self._release = settings.resolve("release", release)
        self._durability: str = settings.resolve("durability", durability)
        if sync or self._store is None:
            self._recorder = SyncRecorder(
                self._store, clock, rules, self._release, next_store, self._durability
            )
        else:
            self._recorder = Recorder(
                self._store,
                interval=interval,
                rules=rules,
                release=self._release,
                next_store=next_store,
                durability=self._durability,
                **limits,
            )
            # A meter that is garbage-collected stores its pending events.
            weakref.finalize(self, self._recorder.close_soon).atexit = False
        #: Ended by close(). Replaced as a whole, never changed.
        self._helpers: tuple[Helper, ...] = ()
        self._now = clock.wall
        self._monotonic = clock.monotonic
        self._by_name = self._recorder.by_name

    def _next_store(self, url: str, options: Mapping[str, Any]) -> NextStore | None:
        """Return the store to go on with once this one has moved; reads then go there as well."""
        try:
            if not url or urls.parse(url).kind == "off":
                return None
        except InvalidSetting as error:
            raise InvalidSetting("next_url", error.reason) from None
        meter = weakref.ref(self)

        def open_next() -> Store:
            store = stores.open(url, **options)
            assert store is not None, "it is not off"
            return store

        def use(store: Store) -> None:
            if (found := meter()) is not None:
                found._store = store

        return NextStore(open_next, use)

    def __repr__(self) -> str:
        return f"<Meter {self._store.location if self._store else 'off'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Meter cannot be pickled: make one in each process, at the top of a module; Meter() "
            "reads REDMETER_URL, which child processes inherit"
        )

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
        """Store recorded events and close the connections, unless they are yours.

        Takes 2 s at most. A cleaner that an integration started for this meter ends as well.
        Recording another event starts everything again.
        """
        helpers, self._helpers = self._helpers, ()
        until = time.monotonic() + CLOSE_SECONDS
        for helper in helpers:
            helper.stop(0.0)  # it ends while events are stored
        self._recorder.close(CLOSE_SECONDS)
        for helper in helpers:
            helper.stop(max(0.0, until - time.monotonic()))
        if self._store is not None:
            self._store.close()

    def flush(self, timeout: float = CLOSE_SECONDS, *, durability: str | None = None) -> bool:
        """Store all events that were recorded before this call.

        Args:
            timeout: how long to try, seconds.
            durability: what must confirm that they are durable, also those that were stored before:
                `replica`, `disk` or `none`. Default: that of the Meter. The server waits three
                quarters of the time that is left, or of the setting `timeout` if that is shorter.

        Returns:
            Whether everything is stored: nothing is waiting, and nothing was rejected; and, with
            `durability`, whether that was confirmed in time. Events without a confirmation stay
            stored and are not sent again, so you can ask again. recorder_health() has the details.

        Raises:
            InvalidSetting: there is no such durability.
        """
        if durability is not None:
            durability = settings.resolve("durability", durability)
        return self._recorder.flush(timeout, durability or self._durability)

    def flush_on_sigterm(self) -> None:
        """Flush when SIGTERM arrives, then do what the previous handler does.

        By default SIGTERM ends a process at once, and the events of the last second are lost.
        Servers such as gunicorn and uvicorn end gracefully and do not need this. In the workers of
        a `multiprocessing.Pool`, no handler of SIGTERM is reliable, and the end of a `with` block
        may wait for them forever: call `pool.close()` and `pool.join()` there instead.

        Raises:
            ValueError: not called in the main thread.
        """
        self._recorder.flush_on_sigterm()

    def recorder_health(self) -> RecorderHealth:
        """Return the statistics of this process's recorder: stored, waiting and lost events."""
        return self._recorder.health()


def _plain(retention: Mapping[int, int] | str | None) -> dict[int, int] | str | None:
    return dict(retention) if isinstance(retention, Mapping) else retention
