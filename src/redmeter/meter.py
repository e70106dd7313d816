"""Meter: what an application uses. Records through recording/; its queries are in queries/."""

import time
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from redmeter import settings
from redmeter import store as stores
from redmeter.clock import SYSTEM, Clock
from redmeter.errors import InvalidSetting
from redmeter.format.message import check_logger, check_severity, severity_of
from redmeter.queries import Queries
from redmeter.recorder_health import RecorderHealth
from redmeter.recording.exceptions import SEVERITIES
from redmeter.recording.instruments import Counter, Gauge, Histogram
from redmeter.recording.marks import label_of
from redmeter.recording.messages.fingerprint import Fingerprint, with_place
from redmeter.recording.messages.instrument import format_message
from redmeter.recording.messages.redact import MessageRules
from redmeter.recording.messages.tracebacks import describe_error
from redmeter.recording.next_store import NextStore
from redmeter.recording.recorder import Recorder
from redmeter.recording.scopes import CountedExceptions
from redmeter.recording.sync import SyncRecorder
from redmeter.recording.timer import Timer
from redmeter.store import Store, urls

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
    """Counts what happens in an application, and answers how often it did.

    Recording touches memory only; a background thread stores what was recorded, once a second, and
    keeps it while the store is away. It starts with the first event. Constructing a Meter
    connects to nothing and starts nothing. If it finds neither a URL nor a program for the embedded
    server, it logs an error. Safe to share between threads, tasks and forked
    processes, and to use in signal handlers. With the URL `off`, every call does nothing and
    readings are empty.

    Args:
        url: `redis://`, `rediss://`, `redis+sentinel://`, `redis+cluster://`, `unix://`,
            `embedded://PATH` or `off`. None: REDMETER_URL, else the embedded server in the user's
            data directory.
        client: a redis-py client of yours, used instead of a URL and never closed.
        next_url: where to go on once `redmeter migrate` has moved the store; a URL as above.
        prefix: what stands before every key.
        retention: precision (seconds) -> number of newest samples kept, should the store be new.
        histogram_retention: the same of histograms.
        timeout: how long to wait for the store, seconds.
        sync: store each event at once, and raise where that fails: for scripts that need the
            answer now.
        flush_interval: how long what was recorded waits in memory, seconds.
        buffer_bytes: how much memory may hold what is not stored yet, about.
        max_series: how many series to tell apart; all further ones become `(other)`.
        max_label_sets: how many of one name; all further ones become one, labelled
            `overflow="true"`.
        recent_messages: how many of the newest messages of each logger and severity to keep, up to
            1,000; the same in all processes, since each keeps so many of everybody's.
        mask: takes the text of a message and returns it without secrets, instead of
            redmeter.analysis.secrets.mask, which it may call. It is called in the background as a
            rule, and must not wait for anything. Where it fails, `(masking failed)` is stored.
        release: what mark() notes where it is given no label: a version, a commit.
        embedded_idle: after how long without a client the embedded server ends, seconds.
        read_from: `primary`, or `replica` to read from a replica if one is healthy.
        clock: where time comes from.

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
        flush_interval: float | None = None,
        buffer_bytes: int | None = None,
        max_series: int | None = None,
        max_label_sets: int | None = None,
        recent_messages: int | None = None,
        mask: Callable[[str], str] | None = None,
        release: str | None = None,
        embedded_idle: float | None = None,
        read_from: str | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        interval = settings.resolve("flush_interval", flush_interval)
        limits: dict[str, Any] = {
            "limit": settings.resolve("buffer_bytes", buffer_bytes),
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
            "clock": clock,
        }
        store = stores.open(url, client=client, announce=True, **options)
        next_store = self._next_store(settings.resolve("next_url", next_url), options)
        super().__init__(store)
        self._release: str = settings.resolve("release", release)
        self._recorder: Recorder | SyncRecorder
        if sync or self._store is None:
            self._recorder = SyncRecorder(self._store, clock, rules, self._release)
        else:
            self._recorder = Recorder(
                self._store,
                interval=interval,
                rules=rules,
                release=self._release,
                next_store=next_store,
                **limits,
            )
            # A meter that nobody holds any more still stores what it has.
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

    # Recording

    def count(
        self,
        name: str,
        amount: int = 1,
        *,
        labels: Mapping[str, object] | None = None,
        at: float | None = None,
    ) -> None:
        """Count that something happened, at every precision that is kept.

        Args:
            name: 1 to 200 bytes, see redmeter.names; may carry labels.
            amount: how often, a whole number, not negative.
            labels: more labels, e.g. {"plan": "pro"}; their order does not matter. Values are
                converted with str(), and cut where the name has no room for them, see health().
            at: when it happened, Unix seconds; now, if not given. A slice that the retention no
                longer holds is left out.

        Raises:
            InvalidName: the name or a label's name is not allowed.
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
                if time < counter._due:
                    counter._events.append(time)
                else:
                    counter._put(time, time)
                return
        self._recorder.count(name, amount, labels, at)

    def counter(self, name: str, *, labels: Mapping[str, object] | None = None) -> Counter:
        """Return the counter of a series, bound: `inc()` is the fastest way to count.

        Raises:
            InvalidName: see count().
        """
        return self._recorder.counter(name, labels)

    def count_exceptions(
        self,
        name: str,
        kinds: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        *,
        labels: Mapping[str, object] | None = None,
    ) -> CountedExceptions:
        """Return a context manager and decorator that counts exceptions, and lets them pass.

            with meter.count_exceptions("payment_failures", labels={"provider": "acme"}):
                ...

            @meter.count_exceptions("import_failures", (OSError, ValueError))
            def import_orders(): ...

        Args:
            name, labels: see count().
            kinds: which exceptions to count.

        Raises:
            InvalidName: see count().
        """
        return CountedExceptions(self._recorder.counter(name, labels), kinds)

    def gauge(
        self,
        name: str,
        *,
        labels: Mapping[str, object] | None = None,
        per_process: bool = False,
        callback: Callable[[], float | None] | None = None,
    ) -> Gauge:
        """Return the gauge of a series, a value that goes up and down.

            meter.gauge("waiting_list").set(17)
            meter.gauge("jobs_in_progress").inc()               # and dec(), track_in_progress()
            meter.gauge("queue_length", callback=queue.qsize)

        `set()` sets one value for the whole application; `inc()` and `dec()` change the part of
        this process, which readings of the name add up. Counters and gauges of one name are two
        series.

        Args:
            name, labels: see count().
            per_process: each process sets a value of its own, told apart by a label `instance`: 0,
                1, 2 …, assigned by the store; the number of a process that ended is reused.
            callback: a function that is called before each flush and returns the value, or None for
                no value. It replaces an earlier one of this gauge, and must not wait for anything.
                If it raises, that is counted: see health(). The background thread that calls it
                starts with the first recorded event of a process; with sync=True there is none.

        Raises:
            InvalidName: see count().
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
        """Take in a measured value: a duration, a size, an amount of money.

        Of each slice of time it is kept how the values were spread: count, sum, extremes and
        percentiles. Values may be negative. One that is not finite, or that no float holds, is
        counted as lost: see health().

        Args:
            name, labels, at: see count(). A name says its unit, e.g. `checkout_seconds`.
            value: a number.

        Raises:
            InvalidName, InvalidValue, StoreError: see count().
            TypeError: the value is not a number.
        """
        self._recorder.observe(name, value, labels, at)

    def histogram(self, name: str, *, labels: Mapping[str, object] | None = None) -> Histogram:
        """Return the histogram of a series, bound: `observe(value)` is the fastest way to measure.

        Raises:
            InvalidName: see count().
        """
        return self._recorder.histogram(name, labels)

    def timer(self, name: str, *, labels: Mapping[str, object] | None = None) -> Timer:
        """Return a timer, which observes how long something takes, in seconds.

            with meter.timer("checkout_seconds"):    # and `async with`
                ...

            @meter.timer("checkout_seconds")         # functions, coroutines, generators
            def check_out(): ...

        Observed is what raises, too; the exception passes on. One timer may be used by many
        threads and tasks at once, and within itself.

        Args:
            name, labels: see count().

        Raises:
            InvalidName: see count().
        """
        return Timer(self._recorder.histogram(name, labels), self._monotonic)

    def log(
        self,
        logger: str,
        message: str,
        *args: object,
        severity: int | str = "info",
        exception: BaseException | None = None,
    ) -> None:
        """Log a message: the newest of each logger and severity are kept, and all are counted.

        They are counted by their pattern: the format where there are args, else the text with all
        that varies taken out, and so where the format has no letters. Secrets are masked before
        anything is stored. See also redmeter.integrations.logging.

        Args:
            logger: who says so; 1 to 200 bytes without control characters.
            message: a text, or a format as in logging, for the args.
            args: what belongs into the format. Where they do not fit, the text says so.
            severity: a name, or a level of logging.
            exception: its type and its place in the application are added to the pattern; its
                frames, its message and its causes to the text. With severity `error` or above, it
                is recorded as by record_exception() as well.

        Raises:
            InvalidName: the logger's name is not allowed.
            TypeError: the severity is neither text nor a whole number, or the exception is none.
            StoreError: only with sync=True, see count().
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
            pattern, text = with_place(pattern, place), f"{text}\n{frames}"
            if stored in SEVERITIES:
                self._recorder.record_exception(exception, "", frames)
        self._recorder.log(name, stored, pattern, text, self._now())

    def record_exception(self, error: BaseException, *, route: str = "") -> None:
        """Record an exception: exceptions of one type and origin are counted as one group.

            try:
                charge(order)
            except PaymentFailed as error:
                meter.record_exception(error)

        A group has its count by interval, when it was first and last seen, its routes and releases,
        and the traceback of its newest exception, with secrets masked: see exceptions(). An
        exception that passes through several integrations and logs is counted once, so recording
        one that is raised again is safe.

        Args:
            error: the exception.
            route: where it happened: the route of a request, or the name of a task.

        Raises:
            TypeError: not an exception.
            StoreError: only with sync=True, see count().
        """
        _check_exception(error)
        self._recorder.record_exception(error, route)

    def mark(self, label: str | None = None, *, at: float | None = None) -> None:
        """Note a moment that explains what is seen elsewhere, a deploy for instance.

        It is stored in the background, like counts. Without a label it marks the setting
        `release`, once per release: every process and host may do so whenever it starts, and only
        another release, or a rollback to an earlier one, adds a mark. An explicit label is the
        same mark as the same label within ten minutes. Marks are kept for 90 days, 1,000 of them.

        Args:
            label: one line, cut to 100 characters; the release, if not given.
            at: when it was, Unix seconds; now, if not given.

        Raises:
            InvalidValue: there is no label, or the time is out of range.
            TypeError: the label is not text.
            StoreError: only with sync=True, see count().
        """
        self._recorder.mark(label_of(label, self._release), at, release=label is None)

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


def _check_exception(error: object) -> None:
    if not isinstance(error, BaseException):
        kind = type(error).__name__
        raise TypeError(f"an exception is one that was raised (except … as error), not {kind}")


def _plain(retention: Mapping[int, int] | str | None) -> dict[int, int] | str | None:
    return dict(retention) if isinstance(retention, Mapping) else retention
