"""Synchronous recorder: each call returns when the store has replied.

For scripts that need the reply at once (`Meter(sync=True)`), for `redmeter.book`, and for `off`.
"""

import logging
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from redmeter.clock import Clock
from redmeter.errors import (
    StoreError,
    StoreMoving,
    StoreRefused,
    StoreUnavailable,
    Unconfirmed,
)
from redmeter.names import cleaned, parse_name, recorded_name
from redmeter.recording.buffer import Resolution
from redmeter.recording.instruments import Counter, Gauge, Histogram, Instrument
from redmeter.recording.logging.coalesce import Fingerprint, message_event
from redmeter.recording.logging.exceptions import (
    OccurrencesByInterval,
    PendingExceptions,
    next_number,
    occurrence,
    redact_exceptions,
)
from redmeter.recording.logging.redact import MessageRules, redact_messages
from redmeter.recording.pending import (
    INSTANCE_BYTES,
    PendingHistogram,
    needs_instance,
    per_process_series,
    with_instance,
    without_instance,
)
from redmeter.recording.registry import LABEL_VALUE, Labels
from redmeter.recording.scopes import Timer
from redmeter.recording.sending.delivery import NextStore
from redmeter.recording.status import RENEW_SECONDS, RecorderStats
from redmeter.results.recorder import AGED, FUTURE, NOT_FINITE, RecorderHealth
from redmeter.store import Store
from redmeter.store.durability import NONE, confirm_batches
from redmeter.store.producers import ASK_SECONDS
from redmeter.store.shard import Shard
from redmeter.stored import (
    counter,
    exponential_histogram,
    mark,
)
from redmeter.stored.counter import check_amount
from redmeter.stored.exception import FINEST, SHARE_BYTES, exception_operations
from redmeter.stored.gauge import gauge_operations
from redmeter.stored.histogram import histogram_operations
from redmeter.stored.keys import MAX_TIME, Kept, Keys, check_time
from redmeter.stored.mark import mark_operations
from redmeter.stored.message import message_operations, source_name
from redmeter.stored.moments import to_float
from redmeter.types import LostEvents, Operations, Outcome

logger = logging.getLogger("redmeter")

T = TypeVar("T")
#: A kind of instrument.
C = TypeVar("C", bound=Instrument)

#: Reasons for skipping an interval that are no errors.
_BY_TIME = (AGED, FUTURE)


def check_written(outcome: Outcome, location: str) -> None:
    """Raise the error in the outcome of one event; a late or early event is no error.

    Earlier events that the server has lost are logged.

    Raises:
        StoreRefused: the server rejected a part of it; the rest was applied, so `sent` is true.
        StoreUnavailable: the outcome is unknown.
        Unconfirmed: it is stored, but not confirmed to be durable.
    """
    log_lost(outcome.lost, location)
    if outcome.uncertain:
        reason = "the event was sent, and its watermark is gone: it may be stored or not"
        raise StoreUnavailable(location, reason, sent=True)
    for rejection in outcome.rejections:
        if rejection.reason not in _BY_TIME:
            error = StoreRefused(rejection.reason, f"{rejection.key}: {rejection.detail}")
            error.sent = True
            raise error
    if outcome.unconfirmed is not None:
        raise outcome.unconfirmed


def log_lost(lost: Iterable[LostEvents], location: str) -> None:
    """Log events that a server has lost."""
    for each in lost:
        logger.warning("redmeter: %s: %s", location, each)


class SyncCounter(Counter):
    """A counter whose inc() returns when the event is stored."""

    __slots__ = ("_recorder",)

    def __init__(self, series: str, recorder: "SyncRecorder") -> None:
        self.name = self._series = series
        self._zero_series = ""
        self._recorder = recorder

    def inc(self, amount: int = 1) -> None:
        """Count an event that happens now.

        Args:
            amount: how many events, a whole number, not negative.

        Raises:
            InvalidValue, TypeError: the amount cannot be counted.
            StoreError: Redis is unreachable or refuses.
        """
        self._recorder.count(self._series, amount, None, None)
        if self._zero_series:
            self._recorder.count(self._zero_series, 0, None, None)


class SyncGauge(Gauge):
    """A gauge whose methods return when the value is stored."""

    __slots__ = ("_recorder",)

    def __init__(self, series: str, recorder: "SyncRecorder") -> None:
        self.name, self._series = without_instance(series), series
        self._recorder = recorder

    def set(self, value: float, *, at: float | None = None) -> None:
        """Set the value. Each interval keeps the value with the newest time.

        Args:
            value: an int, float, Decimal, Fraction or number of numpy. One that is not finite is
                counted as dropped.
            at: when it had this value, Unix seconds; now, if not given.

        Raises:
            InvalidValue, TypeError: not a number, or a time out of range.
            StoreError: Redis is unreachable or refuses.
        """
        number = to_float(value, "a gauge's set()")
        if math.isfinite(number):
            self._recorder.set(self._series, number, at)
        else:
            self._drop()

    def _drop(self) -> None:
        self._recorder.drop_value(self._series)

    def _change(self, amount: float) -> None:
        self._recorder.change(self._recorder.process_series(self._series), amount)


class SyncHistogram(Histogram):
    """A histogram whose observe() returns when the value is stored."""

    __slots__ = ("_recorder",)

    def __init__(self, series: str, recorder: "SyncRecorder") -> None:
        self.name = self._series = series
        self._recorder = recorder

    def observe(self, value: float) -> None:
        """Record a value that is measured now.

        Args:
            value: a number. One that is not finite is counted as dropped: see
            Meter.recorder_health().

        Raises:
            TypeError: not a number.
            StoreError: Redis is unreachable or refuses.
        """
        self._recorder.observe(self._series, value, None, None)

    def time(self) -> Timer:
        """Return a context manager and decorator that observes durations, in seconds."""
        return Timer(self, self._recorder.monotonic)


#: Kind of instrument without options -> its class here.
_AT_ONCE: Final[Mapping[type[Instrument], Callable[..., Any]]] = {
    Counter: SyncCounter,
    Histogram: SyncHistogram,
}


class SyncMessages(NamedTuple):
    """The instrument of one logger and severity."""

    recorder: "SyncRecorder"
    logger: str
    severity: str

    def put_message(self, pattern: Fingerprint, text: str, time: float) -> None:
        """Record a message. Raises: see Meter.log()."""
        self.recorder.log(self.logger, self.severity, pattern, text, time)


class SyncRecorder:
    """Writes each event as a batch of its own; without a store, only checks it.

    Args:
        store: the store to write to; None if the URL is `off`.
        clock: the source of time.
        rules: how messages are redacted.
        release: of the application, for exceptions; "" if unknown.
        next_store: the store to use after this one was moved; None if there is none.
        durability: what must confirm each event: "none", "replica" or "disk".
    """

    def __init__(
        self,
        store: Store | None,
        clock: Clock,
        rules: MessageRules = MessageRules(),  # noqa: B008 - it does not change
        release: str = "",
        next_store: NextStore | None = None,
        durability: str = NONE,
    ) -> None:
        self._durability = durability
        self._store = store
        self._next = next_store
        self.rules = rules
        self.release = cleaned(release, SHARE_BYTES)
        self._exceptions_number = next_number()
        self._now, self.monotonic = clock.wall, clock.monotonic
        self._begin()
        #: Empty: no counter has the buffered recorder's fast path.
        self.by_name: dict[Any, Counter] = {}

    def _look_for_fork(self) -> None:
        if self._pid != os.getpid():
            self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        # A signal handler may write while its own thread holds the lock.
        self._lock = threading.RLock()
        self._stats = RecorderStats(self._now())
        self._producer = os.urandom(16).hex()
        self._instance: int | None = None
        #: Series of a part of this process -> its value.
        self._levels: dict[str, float] = {}
        self._numbered = 0.0
        self._compared = self.monotonic()

    def series_name(self, name: str, labels: Labels, *, reserve: int = 0) -> str:
        """Return the stored spelling of a name, and count label values that were changed."""
        series, note = recorded_name(name, labels, reserve=reserve)
        if note:
            self.record_error(LABEL_VALUE, f"{series}: {note}")
        return without_instance(series)  # an application's empty label is no placeholder

    def count(
        self, name: str, amount: int, labels: Mapping[str, object] | None, at: float | None
    ) -> None:
        """Count events. See Meter.count()."""
        series = self.series_name(name, labels)
        amount = check_amount(amount)
        second = int(self._now() // 1 if at is None else check_time(at) // 1)
        self._write(
            amount,
            series,
            lambda keys, kept: counter.event(keys, kept.series, series, second, amount),
        )

    def observe(
        self, name: str, value: float, labels: Mapping[str, object] | None, at: float | None
    ) -> None:
        """Observe a value. See Meter.observe()."""
        series = self.series_name(name, labels)
        number = to_float(value, "observe()")
        second = int(self._now() // 1 if at is None else check_time(at) // 1)
        store = self._store
        if store is None:
            return
        if not math.isfinite(number):
            self._drop(series, PendingHistogram.retention(store.kept))
            return
        if self._is_gone(store.kept, series, second):
            return
        distribution = exponential_histogram.Distribution()
        distribution.add_all([number])
        intervals = {series: {second: distribution}}
        self._write(
            1,
            series,
            lambda keys, kept: histogram_operations(keys, kept.histograms, intervals),
        )

    def drop_value(self, series: str) -> None:
        """Count a value of a gauge as dropped that is not finite."""
        if self._store is not None:
            self._drop(without_instance(series), self._store.kept.series)

    def _drop(self, series: str, precisions: Iterable[int]) -> None:
        self._look_for_fork()
        with self._lock:
            self._stats.recorded += 1
            self._stats.drop(NOT_FINITE, series, tuple(precisions), 1)

    def _is_gone(self, kept: Kept, series: str, second: int) -> bool:
        """Return whether no precision holds a value any more; if so, record the loss."""
        resolution = Resolution(PendingHistogram.retention(kept))
        if resolution.at(self._now() - second):
            return False
        self._look_for_fork()
        with self._lock:
            self._stats.recorded += 1
            self._stats.dropped += 1
            self._stats.record_loss(AGED, series, resolution.lost(resolution.finest, 0), 1)
        return True

    def set(self, series: str, value: float, at: float | None) -> None:
        """Set a gauge by its stored name."""
        time = self._now() if at is None else check_time(at)
        if self._store is None:
            return
        self._look_for_fork()
        if at is None and needs_instance(series):
            with self._lock:
                self._levels[series] = value
        if needs_instance(series):
            series = with_instance(series, self._following(self._number))
        values = {series: {int(time // 1): (time, value)}}
        self._write(1, series, lambda keys, kept: gauge_operations(keys, kept.series, values))

    def process_series(self, series: str) -> str:
        """Return the name of this process's part of a gauge."""
        if needs_instance(series):
            return series
        base, labels = parse_name(series)
        return per_process_series(self.series_name(base, dict(labels), reserve=INSTANCE_BYTES))

    def change(self, series: str, amount: float) -> None:
        """Change the part of this process, a series with a placeholder for the instance number."""
        self._look_for_fork()
        with self._lock:
            level = self._levels[series] = self._levels.get(series, 0.0) + amount
        self.set(series, level, None)

    def log(self, logger: str, severity: str, pattern: Fingerprint, text: str, time: float) -> None:
        """Record a message. See Recorder.log()."""
        if self._store is None:
            return
        name = source_name(logger, severity)
        moment = time if -MAX_TIME < time < MAX_TIME else self._now()
        event = message_event(moment, pattern, text)
        messages = {name: redact_messages([event], self.rules, self.record_error)}
        self._write(1, logger, lambda keys, _: message_operations(keys, messages))

    def record_exception(
        self, error: BaseException, route: str = "", traceback: str | None = None
    ) -> None:
        """Record an exception. See Recorder.record_exception()."""
        if self._store is None:
            return
        groups = self._redacted(error, route, traceback)
        events = sum(map(PendingExceptions.events_of, groups.values()))
        if groups:
            self._write(events, "", lambda keys, _: exception_operations(keys, groups, FINEST))

    def _redacted(
        self, error: BaseException, route: str, traceback: str | None
    ) -> OccurrencesByInterval:
        event = occurrence(self._exceptions_number, error, self._now(), route, traceback)
        events = [] if event is None else [event]
        return redact_exceptions(events, self.rules, self.release, self.record_error)

    def sink(self, logger: str, severity: str) -> "SyncMessages":
        """Return the instrument of a logger and severity. See log()."""
        return SyncMessages(self, logger, severity)

    def mark(self, label: str, at: float | None, *, release: bool) -> None:
        """Record a mark with a clean label. See Meter.mark()."""
        one = mark.Noted(self._now() if at is None else check_time(at), label, release)
        self._write(1, "", lambda keys, _: mark_operations(keys, [one]))

    def record_error(self, kind: str, text: str) -> None:
        """Count a problem with an event."""
        with self._lock:
            self._stats.record_error(kind, text)

    def _write(self, events: int, name: str, build: Callable[[Keys, Kept], Operations]) -> None:
        """Write the operations of events, unless the URL is `off`.

        Args:
            name: whose shard gets them.
            build: makes the operations from the keys of a shard and the store's retention.
        """
        if self._store is None:
            return
        self._look_for_fork()
        stats = self._stats

        def write(store: Store) -> tuple[Shard, Outcome]:
            shard = store.shard(name)
            made = shard.write(
                lambda kept: build(shard.keys, kept), durability=self._durability, events=events
            )
            return shard, made

        try:
            shard, outcome = self._following(write)
        except StoreError as error:
            with self._lock:
                stats.recorded += events
                stats.record_error(getattr(error, "code", type(error).__name__), str(error))
                if getattr(error, "sent", False):
                    stats.uncertain += events
                else:
                    stats.dropped += events
            raise
        with self._lock:
            stats.recorded += events
            stats.batches += 1
            if outcome.uncertain:
                stats.uncertain += events
            else:
                stats.stored += events
                stats.last_flush = self._now()
            stats.reject(shard.keys, outcome.rejections)
            stats.crowd(shard.keys, outcome.answers)
            if isinstance(outcome.unconfirmed, Unconfirmed):
                stats.record_unconfirmed(outcome.unconfirmed)
        self._take_back(outcome.lost, shard)
        self._compare_others(shard, everyone=bool(outcome.lost))
        check_written(outcome, shard.link.location)

    def _take_back(self, lost: Iterable[LostEvents], shard: Shard) -> None:
        for each in lost:
            with self._lock:
                self._stats.take_back(each, shard.kept)

    def _compare_others(self, shard: Shard, *, everyone: bool) -> None:
        """Once a minute, and after a gap, ask the other shards too: see Shard.compare()."""
        now, store = self.monotonic(), self._store
        if store is not None and (everyone or now - self._compared > ASK_SECONDS):
            self._compared = now
            for other in store.shards:
                if other is not shard:
                    lost = other.compare(everyone=everyone)
                    self._take_back(lost, other)
                    log_lost(lost, other.link.location)

    def _following(self, write: Callable[[Store], T]) -> T:
        """Write to the store; if it was moved, to the next one, from now on."""
        store = self._store
        assert store is not None, "the caller looks"
        try:
            return write(store)
        except StoreMoving as error:
            if error.state != "moved" or self._next is None:
                raise
            with self._lock:  # one of several threads follows
                after = self._store
                if after is store:
                    after = self._next.follow(store, self._switch, self.record_error)
            if after is None:
                raise
            return write(after)

    def _switch(self, store: Store) -> None:
        self._store, self._instance = store, None

    def _number(self, store: Store) -> int:
        """Return the instance number, and renew its lease before another process can get it."""
        now = store.clock.monotonic()
        if self._instance is None or now - self._numbered > RENEW_SECONDS:
            self._instance = store.publish(self._producer, "{}", instance=True, ended=False)
            self._numbered = now
        assert self._instance is not None, "it was asked for"
        return self._instance

    def instrument(
        self, kind: type[C], name: str, labels: Labels = None, extra: Labels = None
    ) -> C:
        """Return the instrument of a series. See Registry.instrument(); here are no limits."""
        made: C = _AT_ONCE[kind](self.series_name(name, _both(labels, extra)), self)
        return made

    def gauge(
        self,
        name: str,
        labels: Mapping[str, object] | None,
        *,
        per_process: bool,
        callback: Callable[[], float | None] | None = None,  # noqa: ARG002
    ) -> Gauge:
        """Return the gauge of a series. See Meter.gauge(); callbacks need a flush, so have none."""
        reserve = INSTANCE_BYTES if per_process else 0
        series = self.series_name(name, labels, reserve=reserve)
        return SyncGauge(per_process_series(series) if per_process else series, self)

    def before_flush(self, look: Callable[[], None]) -> None:
        """Do nothing: there are no flushes."""

    def flush(self, timeout: float, durability: str = NONE) -> bool:
        """Return whether everything is durable: no event is ever buffered. See Meter.flush()."""
        store, problems = self._store, list[Unconfirmed]()
        if store is not None and durability != NONE:
            shards = [(shard.keys, each) for shard in store.shards for each in shard.producers]
            timeout = min(timeout, store.timeout)
            problems = confirm_batches(store.link, shards, durability, timeout=timeout)
        with self._lock:
            for problem in problems:
                self._stats.record_unconfirmed(problem)
        return not problems

    def close(self, timeout: float) -> bool:  # noqa: ARG002
        """Return True: no event is ever buffered."""
        return True

    def close_soon(self) -> None:
        """Do nothing: no event is ever buffered."""

    def flush_on_sigterm(self) -> None:
        """Do nothing: no event is ever buffered."""

    def health(self) -> RecorderHealth:
        """Return the statistics. See Meter.recorder_health()."""
        with self._lock:
            return self._stats.health(producer=self._producer, instance=self._instance)


def _both(labels: Labels, extra: Labels) -> Labels:
    return {**labels, **extra} if labels and extra else labels or extra
