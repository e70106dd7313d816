"""Recorder: records in the application, stores in the background.

Recording appends to a list (instruments.py). Once a second a thread (sending/flusher.py) moves the
events of all lists to a buffer (collector.py), which merges them by interval (buffer.py), and sends
it in numbered batches (sending/delivery.py). The thread starts with the first event, and again in
each forked child.

There are two locks. `_lock` guards buffer and statistics; it is held for moments, never during I/O,
and a signal handler that interrupts its holder leaves its event in the list. `_sending` is held by
the thread that delivers, which uses a worker per node of a cluster (sending/node_workers.py). An
exception raised by a signal handler leaves neither of them held: see process.py.
"""

import contextlib
import math
import os
import sys
import time
from _thread import RLock, get_ident  # as they are on import: see sending/flusher.py
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar

from redmeter.clock import Clock
from redmeter.names import parse_name
from redmeter.recording import process
from redmeter.recording.buffer import SERIES_BYTES, Buffer
from redmeter.recording.collector import ATTENTION, Collector
from redmeter.recording.hooks import FlushHooks
from redmeter.recording.instruments import NOW, Counter, Gauge, Histogram, Instrument
from redmeter.recording.logging.coalesce import Fingerprint
from redmeter.recording.logging.redact import MessageRules
from redmeter.recording.pending import without_instance
from redmeter.recording.process import Children, TicketLock
from redmeter.recording.registry import Registry
from redmeter.recording.sending.delivery import Delivery, NextStore
from redmeter.recording.sending.flusher import Flusher, FlushFailed, FlushRequest
from redmeter.recording.status import RecorderStats, StatusReporter
from redmeter.results.recorder import NOT_FINITE, RecorderHealth
from redmeter.store import Store
from redmeter.store.durability import NONE
from redmeter.store.servers.retry import is_recoverable
from redmeter.stored.counter import check_amount
from redmeter.stored.keys import check_time
from redmeter.stored.mark import Noted
from redmeter.stored.moments import to_float

#: Minimum time to wait for a reply when the process ends, seconds.
SHORTEST = 0.1
#: The timeout of the last confirmation, seconds: a report comes after it, and little time is left.
SHORT_CONFIRMATION = 1.0
#: How many flushes are tried at least when the process ends, if events keep arriving.
PASSES = 3

#: Set while a thread works for a recorder. Messages that a client library or a masking function
#: logs then are not recorded: each would cause another one.
is_storing: ContextVar[bool] = ContextVar("redmeter_quiet", default=False)


class Recorder:
    """Records into memory and stores in the background.

    Args:
        store: the store to write to.
        interval: seconds from one flush to the next.
        limit: approximate bytes above which the buffer rolls up fine intervals.
        keep: most bytes of acknowledged batches: see store/producers.py.
        max_series: limit of series.
        max_label_sets: limit of label sets per name.
        rules: how messages are redacted.
        release: of the application, for exceptions; "" if unknown.
        next_store: the store to use after this one was moved; None if there is none.
        durability: what must confirm batches: "none", "replica" or "disk".
    """

    def __init__(
        self,
        store: Store,
        *,
        interval: float,
        limit: int,
        keep: int,
        max_series: int,
        max_label_sets: int,
        rules: MessageRules = MessageRules(),  # noqa: B008 - it does not change
        release: str = "",
        next_store: NextStore | None = None,
        durability: str = NONE,
    ) -> None:
        self._durability = durability
        self._store = store
        self._next = next_store
        self._clock: Clock = store.clock
        self._interval = interval
        self._limit = limit
        self._keep = keep
        self._registry = Registry(
            self,
            store.clock.wall,
            store.clock.monotonic,
            max_series=max_series,
            max_label_sets=max_label_sets,
            rules=rules,
            release=release,
        )
        #: See Registry.
        self.by_name = self._registry.by_name
        self.instrument = self._registry.instrument
        self.sink = self._registry.messages
        self._hooks = FlushHooks(self.record_error)
        self._children = Children()
        self._begin()
        process.add_listener(self)  # a child may be the first that records

    def _begin(self) -> None:
        """Start with empty statistics and no thread: in the constructor and in a forked child."""
        self._pid = os.getpid()
        self._lock = RLock()
        self._sending = TicketLock()
        self._stats = RecorderStats(self._clock.wall())
        number_of = self._store.shard_number if len(self._store.shards) > 1 else None
        self._buffer = Buffer(self._store.kept, self._stats, self._limit, number_of)
        self._collector = Collector(
            self._registry, self._buffer, self._stats, self._lock, self._clock
        )
        self._delivery = Delivery(
            self._store,
            self._buffer,
            self._stats,
            self._lock,
            interval=self._interval,
            around=self._at_work,
            keep=self._keep,
        )
        self._delivery.lease.needed = self._registry.per_process
        #: Threads that flush or are about to. A signal handler or destructor in one of them must
        #: not flush, and need not.
        self._flushing: set[int] = set()
        self._reporter = StatusReporter(
            self._delivery.publish, self._stats, self._lock, self.health
        )
        self._hooks.after_fork()
        self._flusher = self._made_flusher()
        self._leaving = False
        #: When close() last timed out, monotonic seconds.
        self._closed_in_vain = -math.inf

    def _made_flusher(self) -> Flusher:
        return Flusher(
            self._flush,
            self._collector.collect_to_keep,
            self._collector.waiting,
            self._interval,
            hangs=self._hooks.hang,
            replace=self._replaced_flusher,
            recovered=lambda: self._store.link.replaced(),
        )

    def _replaced_flusher(self) -> Flusher:
        """Go on with another flusher, without the hook that hangs. See FlushHooks."""
        with self._lock:
            name = self._hooks.give_up()
            if name:
                before, self._flusher = self._flusher, self._made_flusher()
                self._flusher.take_over(before)
        if name:
            self._reporter.record_hanging(name)
        return self._flusher

    # Recording

    def count(
        self, name: str, amount: int, labels: Mapping[str, object] | None, at: float | None
    ) -> None:
        """Count events. See Meter.count()."""
        now = self._clock.wall()
        event = (now if at is None else check_time(at), check_amount(amount))
        self.instrument(Counter, name, labels)._put(event, now)

    def gauge(
        self,
        name: str,
        labels: Mapping[str, object] | None,
        *,
        per_process: bool,
        callback: Callable[[], float | None] | None = None,
    ) -> Gauge:
        """Return the gauge of a series. See Meter.gauge()."""
        gauge = self._registry.gauge(name, labels, per_process=per_process)
        self._delivery.lease.needed = self._registry.per_process
        if callback is not None:
            self._hooks.set_callback(gauge, callback)
        return gauge

    def process_gauge(self, series: str) -> Gauge:
        """Return the gauge of this process's part of a series."""
        base, labels = parse_name(series)
        return self.gauge(base, dict(labels), per_process=True)

    def log(self, logger: str, severity: str, pattern: Fingerprint, text: str, time: float) -> None:
        """Record a message. Does not raise if the arguments are valid.

        Args:
            logger, severity: as they are stored: see stored/message.py.
            pattern: the fingerprint, or None: see coalesce.py.
            text: of any length, with any characters.
            time: when it was logged, Unix seconds.
        """
        self.sink(logger, severity).put_message(pattern, text, time)

    def record_exception(
        self, error: BaseException, route: str = "", traceback: str | None = None
    ) -> None:
        """Record an exception, unless it was recorded before. Never raises.

        Args:
            route: "" if unknown.
            traceback: as describe_error() returned it; None: it is made here.
        """
        self._registry.exceptions().put_exception(error, route, traceback)

    def mark(self, label: str, at: float | None, *, release: bool) -> None:
        """Record a mark with a clean label. See Meter.mark()."""
        now = self._clock.wall()
        time = now if at is None else check_time(at)
        self._registry.marks()._put(Noted(time, label, release), now)

    def before_flush(self, look: Callable[[], None]) -> None:
        """Call a hook before each flush, which can set gauges.

        It runs in the flushing thread and starts none: a process that records nothing has none. All
        recorders of the process wait for it, so it must return within moments. An exception counts
        as an error. It is not called before the last flush.
        """
        self._hooks.add(look)

    def record_error(self, kind: str, text: str) -> None:
        """Count a problem with an event."""
        with self._lock:
            self._stats.record_error(kind, text)

    def drop_value(self, series: str) -> None:
        """Count a value of a gauge as dropped that is not finite."""
        with self._lock:
            self._stats.recorded += 1
            precisions = tuple(self._store.kept.series)
            self._stats.drop(NOT_FINITE, without_instance(series), precisions, 1)

    def observe(
        self, name: str, value: float, labels: Mapping[str, object] | None, at: float | None
    ) -> None:
        """Observe a value. See Meter.observe()."""
        now = self._clock.wall()
        event = (now if at is None else float(check_time(at)), to_float(value, "observe()"))
        self.instrument(Histogram, name, labels)._put(event, now)

    def attend(self, instrument: Instrument) -> None:
        """Ensure that a flusher runs and that the list stays short. See instruments.py."""
        if self._pid != os.getpid():  # forked by code that runs no hooks
            event = instrument._events[-instrument._LIST.ELEMENTS :]
            self.after_fork()
            instrument._events.extend(event)
        if self._leaving:
            if get_ident() not in self._flushing:  # else the flush collects it
                self._store_now()
            return
        process.watch_uvicorn()
        if not self._flusher.running:
            process.add_listener(self)
            self._children.has_events()
            if process.at_the_very_end() or not self._flusher.start():
                self._go_on_without_thread(instrument)
                return
        if self._collector.shorten(instrument):
            self._flusher.ring()
        instrument._due = self._clock.wall() + ATTENTION
        if len(instrument._events) > instrument._LIST.TOO_LONG:
            self._flusher.ring()
            time.sleep(0.001)

    def _go_on_without_thread(self, instrument: Instrument) -> None:
        if process.at_the_very_end():  # this may be the last occasion
            self._leaving = True
            self._store_now()
        elif process.is_ending():  # other threads still run, and may record more
            if get_ident() not in self._flushing:
                self._flusher.flush_until(time.monotonic(), last=False)
            instrument._due = self._clock.wall() + self._interval
        else:  # the system's limit of threads
            self._collector.shorten(instrument)

    def _store_now(self) -> None:
        """Store while the process ends: this may be the last occasion."""
        with process.spending() as left:
            if self._flusher.running and not sys.is_finalizing():  # else its thread no longer runs
                self._flusher.request(left, last=True).wait()
            else:
                self.exit(left)

    # Flushing

    def flush(self, timeout: float, durability: str = NONE) -> bool:
        """Store everything recorded before this call. See Meter.flush()."""
        until = time.monotonic() + timeout
        if not self._flush_all(timeout, last=False):
            return False
        return self._confirmed(durability, until - time.monotonic(), again=True)

    def _confirmed(self, durability: str, timeout: float, *, again: bool = False) -> bool:
        """Return whether all stored batches are durable, and report those that are not."""
        if durability == NONE:
            return True
        problems = self._delivery.confirm(durability, timeout, again=again)
        for problem in problems:
            self._reporter.record_unconfirmed(problem)
        return not problems

    def close(self, timeout: float) -> bool:
        """Flush, and end the thread once all is stored. Later events start it again."""
        done = self._flush_all(timeout, last=True)
        self._closed_in_vain = -math.inf if done else time.monotonic()
        return done

    def _flush_all(self, timeout: float, *, last: bool) -> bool:
        if self._pid != os.getpid():
            self.after_fork()
        within = get_ident() in self._flushing
        if within and not last:  # otherwise each flush could cause another one
            return False
        if not self._flusher.running and self._all_done():
            return True
        request = self._flusher.try_request(timeout, last=last)
        if request is None:
            return not within and self._flusher.flush_until(time.monotonic() + timeout, last=last)
        # A signal handler or destructor that interrupted the lock or a flush: the thread needs us.
        held: bool = self._lock._is_owned()  # type: ignore[attr-defined]  # as of Condition
        return not (held or within) and request.wait()

    def _all_done(self) -> bool:
        self._take_ended_children()
        return self._collector.empty() and not self._reporter.must_report

    def _take_ended_children(self) -> None:
        if ended := self._children.take_ended():
            self._reporter.record_ended_children(ended)

    def close_soon(self) -> None:
        """Make the thread flush and end, without waiting."""
        if self._flusher.running or not self._collector.empty():  # it may not have started yet
            self._flusher.request(process.EXIT_SECONDS, last=True)

    def _flush(self, *, last: bool, requested: bool) -> None:
        """Collect and send everything. See flusher.Flush.

        Raises:
            FlushFailed: events are left: the store, or a part of it, is unreachable or refuses.
        """
        sending, ticket = self._sending, object()  # a child forked during this has another lock
        with self._at_work():
            if not last and not self._leaving:
                self._hooks.run()  # before others have to wait for this thread
            try:
                if not sending.wait(ticket, process.EXIT_SECONDS):
                    raise FlushFailed(passing=True)  # another thread is sending, and hangs
                self._collect_and_send(last=last, requested=requested)
            finally:
                sending.tickets.pop(ticket, None)

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """Mark the current thread as working for this recorder."""
        flushing, me, before = self._flushing, get_ident(), is_storing.get()
        # Each `finally` begins with a single call, which no signal handler can prevent.
        try:
            try:
                flushing.add(me)
                is_storing.set(True)
                yield
            finally:
                is_storing.set(before)
        finally:
            flushing.discard(me)

    def _collect_and_send(self, *, last: bool, requested: bool) -> None:
        left = None
        try:
            process.add_listener(self)
            if last:
                self._collector.let_all_be_due()  # later events start another thread
            elif not self._leaving:
                for gauge in self._registry.process_gauges():
                    gauge._refresh()
            self._collector.collect()
            self._take_ended_children()
            left = self._send(requested=requested)
            self._confirmed(self._durability, SHORT_CONFIRMATION if last else math.inf)
            if left is None or left.partly:
                last = last and left is None
                self._reporter.report(last=last)
                if self._reporter.registered or last:
                    self._children.settled()
        except Exception as error:  # even a bug of ours must not end the thread
            self._reporter.record_error(error)
            self._collector.keep()
            raise FlushFailed(passing=is_recoverable(error)) from error
        if left is not None:
            raise left
        if last:
            self._delivery.dismiss()

    def _send(self, *, requested: bool) -> FlushFailed | None:
        """Send the collected events; return the reason if some are left."""
        left = None
        try:
            self._delivery.run(requested=requested)
        except FlushFailed as incomplete:
            left = incomplete
        for error in self._delivery.take_errors():
            self._reporter.record_error(error)
        if self._next and self._delivery.may_follow:
            store = self._next.follow(self._store, self._delivery.follow, self.record_error)
            if store is not None:
                self._store, self._next = store, None
                return self._send(requested=requested)
        if left is None:
            self._collector.anchor()
        else:
            self._collector.keep()
        return left

    # Forks and exits

    def before_fork(self) -> None:
        """Share memory with a child that is about to be forked. See Children."""
        self._children.before_fork()

    def after_fork(self) -> None:
        """Discard the parent's events, in a forked child."""
        for instrument in self._registry.instruments():
            instrument._clear()
            instrument._due = NOW
        self._children = self._children.in_child()
        self._begin()

    def begin_exit(self, timeout: float) -> FlushRequest | None:
        """Request a last flush; None if no thread can do it."""
        self._leaving = True
        self._collector.let_all_be_due()
        if time.monotonic() - self._closed_in_vain < timeout:
            return None  # close() has just waited for as long
        if not self._flusher.running and self._all_done():
            return None
        return self._flusher.try_request(timeout, last=True)

    def exit(self, timeout: float) -> None:
        """Flush in this thread if events are left and there is time, or a chance."""
        if get_ident() in self._flushing:  # that flush collects again
            return
        in_vain = time.monotonic() - self._closed_in_vain < timeout
        until = time.monotonic() + max(0.0, timeout)
        if self._all_done() or in_vain:
            return
        if timeout <= 0 and (self._flusher.failing or self._sending.tickets):
            return
        self._store.link.cap_timeout(max(timeout, SHORTEST))
        # More than once: signal handlers and destructors may record meanwhile.
        passes = 0
        while not self._all_done() and self._flusher.flush_until(until, last=True):
            passes += 1
            if passes >= PASSES and time.monotonic() >= until:
                return

    def log_unstored(self) -> None:
        """Log how many events are not stored and are lost if the process ends now."""
        self._reporter.log_unstored()

    def flush_on_sigterm(self) -> None:
        """Flush when SIGTERM arrives. See Meter.flush_on_sigterm()."""

        def request(timeout: float) -> FlushRequest | None:
            if not self._flusher.running and self._collector.empty():
                return None
            return self._flusher.try_request(timeout, last=True)

        process.flush_on_sigterm(request)

    # Status

    def health(self) -> RecorderHealth:
        """Return the statistics of this recorder. See Meter.recorder_health()."""
        with self._lock:
            stats, delivery = self._stats, self._delivery
            instruments = self._registry.instruments()
            lists = [(each, each._snapshot()) for each in instruments]
            fresh = sum(each._LIST.size(events) for each, events in lists)
            waiting = sum(each._LIST.size_in_memory(events) for each, events in lists)
            return stats.health(
                producer=delivery.writer,
                instance=delivery.lease.number,
                fresh=fresh,
                series=len(instruments),
                buffer_bytes=(
                    self._buffer.bytes
                    + len(instruments) * SERIES_BYTES
                    + waiting
                    + delivery.kept_bytes
                ),
            )
