"""Meter, the object that an application holds: it records through recording/; queries/ reads."""

import contextlib
import time
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

from redmeter import settings
from redmeter import store as stores
from redmeter.clock import SYSTEM, Clock
from redmeter.errors import InvalidSetting
from redmeter.queries import Queries
from redmeter.recording.instruments import Counter, Gauge, Histogram
from redmeter.recording.logging.coalesce import Fingerprint, with_place
from redmeter.recording.logging.exceptions import SEVERITIES
from redmeter.recording.logging.marks import label_of
from redmeter.recording.logging.messages import format_message
from redmeter.recording.logging.redact import MessageRules
from redmeter.recording.logging.shortening import with_traceback
from redmeter.recording.logging.tracebacks import GROUP_ATTRIBUTE, describe_error
from redmeter.recording.recorder import Recorder
from redmeter.recording.scopes import CountedExceptions, Timer
from redmeter.recording.sending.delivery import NextStore
from redmeter.recording.sync import SyncRecorder
from redmeter.results.recorder import RecorderHealth
from redmeter.store import Store
from redmeter.store.servers import urls
from redmeter.stored.message import check_logger, check_severity, severity_of

if TYPE_CHECKING:
    import redis


#: How long close() and the exit of a process wait for the last flush, seconds.
CLOSE_SECONDS = 2.0

# See recording/instruments.py: another 1, or True, takes the slower path.
_ONE = 1


class Helper(Protocol):
    """A thread of an integration that uses a meter's store, such as its cleaner."""

    def stop(self, timeout: float) -> None:
        """End it, and wait at most so many seconds for that."""
        ...


class Meter(Queries):
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
        client: a client of yours, used instead of a URL and never closed: of redis-py, or of a fork
            with its interface such as valkey-py, with whose options Redmeter connects. Not of
            asyncio.
        next_url: the store to continue with after `redmeter migrate` has moved this one; a URL as
            above. Its prefix is the one that the move gave it.
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
        client: "redis.Redis | Any | None" = None,
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
        rules = MessageRules(
            settings.resolve("recent_messages", recent_messages),
            source_lines=settings.resolve("source_lines"),
        )
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
            self._recorder: Recorder | SyncRecorder = SyncRecorder(
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
        self._by_name: Mapping[str, Counter] = self._recorder.by_name

    def _next_store(self, url: str, options: Mapping[str, Any]) -> NextStore | None:
        """Return the store to go on with once this one has moved; reads then go there as well."""
        try:
            if not url or urls.parse_target(url).kind == "off":
                return None
        except InvalidSetting as error:
            raise InvalidSetting("next_url", error.reason) from None
        meter = weakref.ref(self)

        def open_next(prefix: str | None) -> Store:
            moved = options if prefix is None else {**options, "prefix": prefix}
            store = stores.open(url, **moved)
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

    # --- Counters, gauges and histograms ---

    def count(
        self,
        name: str,
        amount: int = 1,
        *,
        labels: Mapping[str, object] | None = None,
        at: float | None = None,
    ) -> None:
        """Count an event, at every precision that is kept.

            meter.count("orders")
            meter.count("items_sold", 3, labels={"plan": "pro"})

        Args:
            name: 1 to 200 bytes of UTF-8, up to 500 with labels, without control characters;
                labels in braces, `orders{plan="pro"}`.
            amount: the number of events, a whole number, not negative.
            labels: more labels; their order does not matter. Values are converted with str(), and
                truncated if the name would become too long; recorder_health() counts that.
            at: the time of the event, Unix seconds. Default: now. Intervals that the retention no
                longer holds are left out.

        Raises:
            InvalidName: the name or a label's name is not allowed.
            InvalidValue: the amount or the time is out of range.
            TypeError: the amount is not a whole number.
            StoreError: only with sync=True: the store is unreachable or refuses all of the event,
                or a part of it, such as an interval whose count would exceed 2^63 - 1.
        """
        if amount is _ONE and labels is None and at is None:
            try:
                counter = self._by_name[name]
            except (KeyError, TypeError):
                pass
            else:
                time = self._now()
                if time < counter._due:
                    counter._events.append(time)
                else:
                    counter._put(time, time)
                return
        self._recorder.count(name, amount, labels, at)

    def counter(self, name: str, *, labels: Mapping[str, object] | None = None) -> Counter:
        """Return the counter of a series, whose `inc()` is the fastest way to count.

            orders = meter.counter("orders", labels={"plan": "pro"})
            orders.inc()

        Args:
            name, labels: as for count().

        Raises:
            InvalidName: the name or a label's name is not allowed.
        """
        return self._recorder.instrument(Counter, name, labels)

    def count_exceptions(
        self,
        name: str,
        kinds: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        *,
        labels: Mapping[str, object] | None = None,
    ) -> CountedExceptions:
        """Return a context manager and decorator that counts exceptions, and lets them propagate.

            with meter.count_exceptions("payment_failures", labels={"provider": "acme"}):
                ...

            @meter.count_exceptions("import_failures", (OSError, ValueError))
            def import_orders(): ...

        Args:
            name, labels: as for count().
            kinds: the classes of exceptions that are counted.

        Raises:
            InvalidName: the name or a label's name is not allowed.
        """
        return CountedExceptions(self._recorder.instrument(Counter, name, labels), kinds)

    def gauge(
        self,
        name: str,
        *,
        labels: Mapping[str, object] | None = None,
        per_process: bool = False,
        callback: Callable[[], float | None] | None = None,
    ) -> Gauge:
        """Return the gauge of a series: a value that goes up and down.

            meter.gauge("waiting_list").set(17)
            meter.gauge("jobs_in_progress").inc()               # and dec(), track_in_progress()
            meter.gauge("queue_length", callback=queue.qsize)

        `set()` sets one value for the whole application. `inc()` and `dec()` change the part of
        this process; gauge_series() sums the parts of all processes. A counter and a gauge of the
        same name are two series.

        Args:
            name, labels: as for count().
            per_process: each process has a value of its own, identified by the label `instance`: 0,
                1, 2 …, assigned by the store. The number of a process that ended is reused.
            callback: a function that is called before each flush and returns the value, or None for
                no value. It replaces an earlier one of this gauge, and must not wait for anything.
                recorder_health() counts its exceptions. The background thread that calls it starts
                with the first recorded event of a process; with sync=True there is none.

        Raises:
            InvalidName: the name or a label's name is not allowed.
        """
        return self._recorder.gauge(name, labels, per_process=per_process, callback=callback)

    def observe(
        self,
        name: str,
        value: float,
        *,
        labels: Mapping[str, object] | None = None,
        at: float | None = None,
    ) -> None:
        """Record a value in a histogram: a duration, a size, an amount of money.

            meter.observe("checkout_seconds", 0.21)

        Each interval stores the distribution of its values: count, sum, extremes and percentiles.
        Values may be negative. A value that is not finite is dropped, and recorder_health() counts
        it.

        Args:
            name, labels, at: as for count(). End the name with its unit: `checkout_seconds`.
            value: a number.

        Raises:
            InvalidName: the name or a label's name is not allowed.
            InvalidValue: the time is out of range.
            TypeError: the value is not a number.
            StoreError: only with sync=True: the store is unreachable or refuses.
        """
        self._recorder.observe(name, value, labels, at)

    def histogram(self, name: str, *, labels: Mapping[str, object] | None = None) -> Histogram:
        """Return the histogram of a series, whose `observe()` is the fastest way to measure.

        Args:
            name, labels: as for count().

        Raises:
            InvalidName: the name or a label's name is not allowed.
        """
        return self._recorder.instrument(Histogram, name, labels)

    def timer(self, name: str, *, labels: Mapping[str, object] | None = None) -> Timer:
        """Return a timer, which records durations in a histogram, in seconds.

            with meter.timer("checkout_seconds"):    # and `async with`
                ...

            @meter.timer("checkout_seconds")         # functions, coroutines, generators
            def check_out(): ...

        Blocks and calls that raise are timed as well. One timer can be used by many threads and
        tasks at once, and nested.

        Args:
            name, labels: as for count().

        Raises:
            InvalidName: the name or a label's name is not allowed.
        """
        return Timer(self._recorder.instrument(Histogram, name, labels), self._monotonic)

    # --- Messages, exceptions and marks ---

    def log(
        self,
        logger: str,
        message: str,
        *args: object,
        severity: int | str = "info",
        exception: BaseException | None = None,
    ) -> None:
        """Log a message: the newest of each logger and severity are kept, and all are counted.

            meter.log("payments", "retrying order %s", order_id, severity="warning")

        Messages are counted by their pattern: the format if there are arguments and it has letters,
        otherwise the text without its variable parts. Secrets are masked before anything is stored.
        To log through the standard library, use redmeter.integrations.logging.

        Args:
            logger: the name of the logger; 1 to 200 bytes without control characters.
            message: a text, or a format as in logging, for the arguments.
            args: the arguments of the format. If they do not fit, the stored text mentions it.
            severity: a name, or a level of logging.
            exception: adds its type and its place in the application to the pattern, and its
                frames, message and causes to the text. With severity "error" or above, it is also
                recorded as by record_exception().

        Raises:
            InvalidName: the logger's name is not allowed.
            TypeError: the severity is neither text nor a whole number, or the exception is not one.
            StoreError: only with sync=True: the store is unreachable or refuses.
        """
        name = check_logger(logger)
        check_severity(severity)
        stored = severity_of(severity)
        if exception is not None:
            _check_exception(exception)
        pattern: Fingerprint
        pattern, text, problem = format_message(message, args)
        if problem:
            self._recorder.record_error("format", f"formatting a message: {problem}")
        if exception is not None:
            place, frames = describe_error(exception)
            pattern, text = with_place(pattern, place), with_traceback(text, frames)
            if stored in SEVERITIES:
                self._recorder.record_exception(exception, "", frames)
        self._recorder.log(name, stored, pattern, text, self._now())

    def record_exception(self, error: BaseException, *, route: str = "", group: str = "") -> None:
        """Record an exception. Exceptions of one type and origin are one group.

            try:
                charge(order)
            except PaymentFailed as error:
                meter.record_exception(error)

        A group has its count by interval, when it was first and last seen, its routes and releases,
        and the traceback of its newest exception, with secrets masked; exceptions() returns them.
        An exception that passes through several integrations and logs is counted once, so it is
        safe to record one that is raised again.

        Args:
            error: the exception.
            route: where it happened: the route of a request, or the name of a task.
            group: what its group has in common, instead of what Redmeter finds: all exceptions with
                the same text are one group. It becomes the exception's attribute
                `redmeter_group`, which an exception or its class may also have of its own.

        Raises:
            TypeError: not an exception.
            StoreError: only with sync=True: the store is unreachable or refuses.
        """
        _check_exception(error)
        if group:
            with contextlib.suppress(Exception):  # of a class that takes no attributes
                setattr(error, GROUP_ATTRIBUTE, group)
        self._recorder.record_exception(error, route)

    def mark(self, label: str | None = None, *, at: float | None = None) -> None:
        """Note a moment that explains a change in the metrics, such as a deploy.

        Without a label, it marks the setting `release`, once per release: every process and host
        may do so when it starts, and only another release, or a rollback to an earlier one, adds a
        mark. With a label, it is the same mark as one with this label in the ten minutes before.
        The newest 1,000 marks are kept, for 90 days.

        Args:
            label: one line, truncated to 100 characters. Default: the release.
            at: the time, Unix seconds. Default: now.

        Raises:
            InvalidValue: there is no label, or the time is out of range.
            TypeError: the label is not text.
            StoreError: only with sync=True: the store is unreachable or refuses.
        """
        self._recorder.mark(label_of(label, self._release), at, release=label is None)

    # --- The recorder ---

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


def _check_exception(error: object) -> None:
    if not isinstance(error, BaseException):
        kind = type(error).__name__
        raise TypeError(f"an exception is one that was raised (except … as error), not {kind}")


def _plain(retention: Mapping[int, int] | str | None) -> dict[int, int] | str | None:
    return dict(retention) if isinstance(retention, Mapping) else retention
