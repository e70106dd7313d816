"""The metrics of web requests, for ASGI, WSGI and all frameworks.

    hits                                      requests
    hits_failed                               failed requests, status 5xx; 0 in intervals in which
                                              none failed
    hits_seconds                              durations
    http_requests{method,route,status}        requests by method, route and status
    http_request_seconds{method,route}        durations by method and route
    http_request_db_seconds{method,route}     wait for databases within the duration
    http_request_db_ratio{method,route}       this wait divided by the duration
    db_queries{route,statement}               their database statements, see databases.py

    http: error                               unhandled exceptions, with route and place; they are
                                              also recorded as exceptions
    http: warning                             slow requests, with route and duration

Problem: clients choose methods and paths, so these cannot be labels as they are. And counting a
request must neither slow it down nor make it fail.

Idea: every label has few values. A route is the template by which the application found its
handler, `/users/{id}`, never a path; without one, `(unmatched)`. A method is a known one, or
`_OTHER`. A status is a class, `2xx`. So a dictionary holds the series of a request by method, route
and status, and recording it costs four appends, five if it failed.

The first three series are totals, exact even if the label sets of routes exceed a limit. Readers
must distinguish an interval without failures from one before failures were counted, so hits_failed
gets a 0 in each interval with requests, see Instrumentation.counter().

A client that left before it was answered is not an error of the application: the status is
`disconnected`.

Bound: the dictionary holds HANDLES entries; further label sets are looked up in the meter, which
has its own limits. If an application adds labels with too many values, only these become `(other)`,
see recording/registry.py; method, route and status stay. Nothing here waits, opens a connection or
raises: an error, e.g. in a function that makes labels, is counted (`Meter.recorder_health()`) and
logged once a minute, and the request is recorded without its result.

Not done: requests in progress are not counted. The sizes of bodies are not measured.

Source: OpenTelemetry, "Semantic conventions for HTTP metrics" (methods, what a route is).
"""

import fnmatch
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from random import SystemRandom
from typing import Any

from redmeter import Meter, settings
from redmeter.errors import InvalidName, RedmeterError, StoreError
from redmeter.integrations.shared.databases import Callers, Spent, collect_if_enabled
from redmeter.integrations.shared.interface import Instrumentation
from redmeter.integrations.shared.meters import METER_SETTINGS, meter_of
from redmeter.integrations.shared.options import Options
from redmeter.maintenance import cleaning
from redmeter.names import (
    EVENT_STREAM_SECONDS,
    HITS,
    HITS_FAILED,
    HITS_SECONDS,
    OTHER_METHOD,
    REQUEST_DB_RATIO,
    REQUEST_DB_SECONDS,
    REQUESTS,
    SECONDS,
    WEBSOCKET_SECONDS,
    is_failure,
    label_value,
)
from redmeter.recording.logging.coalesce import Fingerprint, with_place
from redmeter.recording.logging.tracebacks import describe_error

#: The logger of the messages.
_LOGGER = "http"

#: Methods that are distinguished; all others are OTHER_METHOD. WEBSOCKET is not an HTTP method: it
#: is a connection, which has a lifetime instead of a duration.
_METHODS = frozenset(
    {
        *("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "QUERY"),
        "WEBSOCKET",
    }
)
WEBSOCKET = "WEBSOCKET"

#: The route of a request that none of the application's routes matched.
UNMATCHED = "(unmatched)"
#: The status of a request whose client left before it was answered.
DISCONNECTED = "disconnected"
#: The status of a request whose status code is invalid.
OTHER_STATUS = "other"

#: Keys of a WSGI environ or an ASGI scope: the route, if an application or another integration sets
#: it; the mark of the outermost integration, which records the request; an unhandled exception, set
#: by an inner integration; an exception that a framework converted, which counts if the status is
#: 5xx.
ROUTE, WATCHED, FAILED = "redmeter.route", "redmeter.request", "redmeter.error"
CONVERTED = "redmeter.converted"

#: The content type of server-sent events.
EVENTS = "text/event-stream"

#: How many label sets are cached.
HANDLES = 4096
#: Seconds between two lines in the log.
_LOG_SECONDS = 60.0

_LABELS = frozenset({"method", "route", "status", "sampled"})

#: For a label set: the counter's inc(), the histogram's observe(), and whether it means a failure.
_Handles = tuple[Callable[[], None], Callable[[float], None], bool]

# Not the global generator, which the application may have seeded. The operating system's numbers
# differ between forked processes.
_chance = SystemRandom()

logger = logging.getLogger("redmeter")


def requests_of(
    meter: Meter | None,
    given: Mapping[str, Any],
    framework: Mapping[str, Any] | None = None,
) -> "Requests":
    """Return a recorder of requests by the settings. Invalid settings are logged.

    Args:
        meter: records the requests; None: a Meter by the settings.
        given: see Arguments; without a meter, also Meter's own arguments.
        framework: see Options.of().

    Raises:
        TypeError: an option's name is unknown, `meter` is not a Meter, or `given` has arguments of
            Meter in addition to a meter.
    """
    of_meter = {name: given[name] for name in METER_SETTINGS if given.get(name) is not None}
    if meter is not None:
        if not isinstance(meter, Meter):
            raise TypeError(
                f"meter must be a Meter, not {type(meter).__name__}; pass a URL as url="
            )
        if of_meter:
            names = ", ".join(sorted(of_meter))
            raise TypeError(f"pass either meter= or {names}: the meter has its own")
    options = Options.of(
        {name: value for name, value in given.items() if name not in METER_SETTINGS}, framework
    )
    return Requests(meter_of(of_meter, framework) if meter is None else meter, options)


class Requests:
    """Records requests. Safe to share between threads and tasks; no method raises.

        requests = Requests(meter, Options.of({"ignore_paths": "/health"}))
        ...
        if not requests.watched(path):
            return app(...)
        spent, start = requests.begin()
        ...
        requests.record(
            method, path, route, status, requests.now() - start, environ, error, spent
        )

    Args:
        meter: records the requests.
        options: None: the defaults.
    """

    def __init__(self, meter: Meter, options: Options | None = None) -> None:
        self.meter = meter
        self.options = options = options or Options()
        #: Cleans the meter's store while requests are served; None if the option is off.
        self.cleaner = Cleaner(meter) if options.cleaner else None
        self._instrumentation = Instrumentation(meter)
        #: Whether anything is recorded: False if the meter's URL is `off`.
        self.on = not self._instrumentation.is_off
        #: Seconds by the meter's monotonic clock, for durations.
        self.now: Callable[[], float] = self._instrumentation.monotonic
        self._include = _matcher(options.include_paths)
        self._ignore = _matcher(options.ignore_paths)
        self._all = self.on and self._include is None and self._ignore is None
        self._sampled = options.sample_durations < 1
        self._share = options.sample_durations
        self._slow = options.slow_request
        self._labels_of = options.labels
        # Sampled durations have the share as a label.
        self._timed = {"sampled": f"{self._share:g}"} if self._sampled else {}
        self._handles: dict[Any, _Handles] = {}
        self._waits: dict[Any, tuple[Callable[[float], None], Callable[[float], None]]] = {}
        self._lifetimes: dict[tuple[str, str | None], Callable[[float], None]] = {}
        self._callers = Callers(meter, "route")
        self._logged_at = -_LOG_SECONDS
        self._count_hit: Callable[[], None] = lambda: None
        self._count_failed: Callable[[], None] = lambda: None
        self._observe_hit: Callable[[float], None] = lambda _: None
        self._paths: list[tuple[Callable[[str], object], Callable[[], None]]] = []
        if self.on:
            hits = self._instrumentation.counter(HITS, zero_series=HITS_FAILED)
            self._count_hit = hits.inc
            self._count_failed = meter.counter(HITS_FAILED).inc
            self._observe_hit = meter.histogram(HITS_SECONDS, labels=self._timed).observe
            for pattern, name in settings.named_patterns(options.count_paths):
                matches = _matcher(pattern)
                assert matches is not None, "settings take no empty pattern"
                self._paths.append((matches, meter.counter(name).inc))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.meter!r}>"

    def watched(self, path: str) -> bool:
        """Return whether requests for a path are recorded."""
        if self._all:
            return True
        if self._include is not None and self._include(path) is None:
            return False
        return self.on and (self._ignore is None or self._ignore(path) is None)

    def begin(self) -> tuple[Spent | None, float]:
        """Begin a request: return what collects its time in databases, and the time by now()."""
        if self.cleaner is not None:
            self.cleaner.start()
        return collect_if_enabled(), self.now()

    def record(
        self,
        method: str,
        path: str,
        route: str | None,
        status: int | str | None,
        seconds: float,
        request: object = None,
        error: BaseException | None = None,
        spent: Spent | None = None,
        began: float | None = None,
        content_type: str = "",
    ) -> None:
        """Record a request that has ended. Never raises.

        Args:
            method: as sent, or WEBSOCKET.
            path: without the query; matched against count_paths, and part of slow requests' text.
            route: the template, in any framework's notation; None: no route matched.
            status: the code that was sent, or DISCONNECTED; None: none was sent.
            seconds: its duration.
            request: the argument of options.labels.
            error: the unhandled exception; the status is 500 then, unless it is 5xx already.
            spent: the result of begin(); it is ended here.
            began: seconds until the response began, which decide whether it is slow, since a
                stream may last. None: use `seconds`.
            content_type: of the response. For server-sent events, the duration is `began`, and
                `seconds` is the lifetime of the stream.
        """
        try:
            if error is not None and (not isinstance(status, int) or status < 500):
                status = 500
            if self._labels_of is None:
                handles = self._handles.get((method, route, status))
                if handles is None:
                    method = _method(method)
                    handles = self._made(method, route, status, {})
            else:
                method = _method(method)
                handles = self._labelled(method, route, status, request)
            count, observe, failed = handles
            self._count_hit()
            if failed:
                self._count_failed()
            count()
            took = seconds if began is None else began
            if method == WEBSOCKET:
                self._lived(WEBSOCKET_SECONDS, route, seconds)
            elif content_type[: len(EVENTS)].lower() == EVENTS:
                self._lived(EVENT_STREAM_SECONDS, route, seconds)
                seconds = took
            if method != WEBSOCKET and (not self._sampled or _chance.random() < self._share):
                observe(seconds)
                self._observe_hit(seconds)
            if spent is not None:
                spent.end()
                if spent:
                    self._waited(method, route, seconds, spent.seconds)
                    self._callers.record(_route(route), spent)
            if self._paths:
                for matches, also_count in self._paths:
                    if matches(path) is not None:
                        also_count()
            if error is not None:
                self._failed(method, route, error)
            elif took >= self._slow and method != WEBSOCKET:
                self._was_slow(method, route, path, took, spent)
        except Exception as failure:  # noqa: BLE001 - counting a request must not make it fail
            self.record_error("recording a request", failure)

    def failed(self, method: str, route: str | None, error: BaseException) -> None:
        """Log an exception that came after the request was answered. Never raises."""
        try:
            self._failed(method, route, error)
        except Exception as failure:  # noqa: BLE001 - see record()
            self.record_error("logging an exception", failure)

    def record_error(self, doing: str, error: Exception) -> None:
        """Count an error of this integration, and log at most one per minute. Never raises."""
        try:
            if not isinstance(error, StoreError):
                self._instrumentation.record_error(
                    "web", f"{doing}: {type(error).__name__}: {error}"
                )
            now = time.monotonic()
            if now - self._logged_at >= _LOG_SECONDS:
                self._logged_at = now
                logger.warning("redmeter: %s: %r (logged once a minute)", doing, error)
        except Exception:  # noqa: BLE001, S110 - str(error) or a foreign log handler raised
            pass

    # The series of a request

    def _labelled(
        self, method: str, route: str | None, status: int | str | None, request: object
    ) -> _Handles:
        assert self._labels_of is not None, "the caller looks"
        more: Mapping[str, str] = {}
        try:
            more = self._labels_of(request) or {}
            handles = self._handles.get((method, route, status, *more.items()))
            if handles is not None:
                return handles
            if taken := _LABELS & more.keys():
                reason = "requests already have this label; rename yours"
                raise InvalidName(", ".join(sorted(taken)), reason, what="label")
            return self._made(method, route, status, more)
        except Exception as error:  # noqa: BLE001 - the application's function, or its labels
            self.record_error("making labels of a request", error)
        return self._made(method, route, status, {})

    def _made(
        self, method: str, route: str | None, status: int | str | None, more: Mapping[str, str]
    ) -> _Handles:
        """Return the handles of a label set, and cache them.

        Args:
            method: one of _METHODS, or OTHER_METHOD: a client could fill the cache with others.
        """
        key = method, route, status, *more.items()
        if key in self._handles:
            return self._handles[key]
        recorder = self._instrumentation
        labels = {"method": method, "route": _route(route)}
        outcome = self._status(status)
        handles = (
            recorder.counter(REQUESTS, {**labels, "status": outcome}, more).inc,
            recorder.histogram(SECONDS, labels | self._timed, more).observe,
            is_failure(outcome),
        )
        if len(self._handles) < HANDLES:
            self._handles[key] = handles
        return handles

    def _status(self, status: int | str | None) -> str:
        if status == DISCONNECTED:
            return DISCONNECTED
        number = int(status) if isinstance(status, int) else 0
        if self.options.exact_status:
            return str(number) if 100 <= number <= 999 else OTHER_STATUS
        return f"{number // 100}xx" if 100 <= number <= 599 else OTHER_STATUS

    def _lived(self, name: str, route: str | None, seconds: float) -> None:
        """Record how long a connection lasted, which is no response time."""
        observe = self._lifetimes.get((name, route))
        if observe is None:
            observe = self.meter.histogram(name, labels={"route": _route(route)}).observe
            if len(self._lifetimes) < HANDLES:
                self._lifetimes[name, route] = observe
        observe(seconds)

    def _waited(self, method: str, route: str | None, seconds: float, waited: float) -> None:
        """Record how long a request waited for databases, and the share of its duration."""
        observers = self._waits.get((method, route))
        if observers is None:
            labels = {"method": method, "route": _route(route)}
            histogram = self.meter.histogram
            observers = (
                histogram(REQUEST_DB_SECONDS, labels=labels).observe,
                histogram(REQUEST_DB_RATIO, labels=labels).observe,
            )
            if len(self._waits) < HANDLES:
                self._waits[method, route] = observers
        observers[0](waited)
        # Concurrent statements may take longer in total than the request.
        observers[1](min(1.0, waited / seconds) if seconds > 0 else 1.0)

    # Messages

    def _failed(self, method: str, route: str | None, error: BaseException) -> None:
        place, frames = describe_error(error)
        what = f"{_method(method)} {_route(route)}"
        self._instrumentation.record_exception(error, _route(route), frames)
        self._log("error", with_place(what, place), f"{what}\n{frames}")

    def _was_slow(
        self, method: str, route: str | None, path: str, seconds: float, spent: Spent | None
    ) -> None:
        what = f"slow request {method} {_route(route)}"
        database = f", {_database(spent)}" if spent else ""
        # The path is last, so that truncation removes nothing else.
        self._log("warning", what, f"{what}: {seconds:.3f} s{database}, path {path}")

    def _log(self, severity: str, pattern: Fingerprint, text: str) -> None:
        meter = self._instrumentation
        meter.message_sink(_LOGGER, severity).put_message(pattern, text, meter.now())


# The thread that cleans a store while an application serves requests, see maintenance/cleaning.py


class Cleaner:
    """A thread that cleans a meter's store every minute. `meter.close()` ends it.

    Any number of processes may have one. An error is logged, and ends it unless it passes.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = Instrumentation(meter)
        self._pid = 0
        #: Changes with each start; None after stop(). Not an Event: a fork may copy its lock while
        #: it is held.
        self._run: object = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start it, unless it was started in this process before; stop() permits another start.

        Called with each request: servers fork, and threads stay behind then.
        """
        pid = os.getpid()
        if self._meter.store is None or (self._run is not None and self._pid == pid):
            return
        self._pid, self._run = pid, object()
        self._thread = threading.Thread(
            target=self._clean, args=(self._run,), name="redmeter-cleaner", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError as error:  # a limit of the machine
            logger.error("redmeter cannot start a thread for its cleaner: %s", error)
            self._thread = None
        else:
            self._meter.add_helper(self)

    def stop(self, timeout: float = 1.0) -> None:
        """End it, and wait at most so many seconds for that."""
        if self._pid == os.getpid():
            self._run = None
            self._meter.remove_helper(self)
            if self._thread is not None:
                self._thread.join(timeout)

    def _clean(self, run: object) -> None:
        store = self._meter.store
        assert store is not None, "start() looks"
        try:
            cleaning.clean_every_minute(
                store,
                quit=lambda: self._run is not run,
                store_bytes=settings.resolve("store_bytes"),
            )
        except RedmeterError as error:
            logger.error("redmeter stops cleaning: %s", error)


def _database(spent: Spent) -> str:
    count = spent.statements
    return f"database {spent.seconds:.3f} s in {count} statement{'s' * (count != 1)}"


def _matcher(patterns: str) -> Callable[[str], object] | None:
    """Return a function that matches a path against patterns; None if there are none."""
    parts = [fnmatch.translate(pattern) for pattern in patterns.split()]
    return re.compile("|".join(parts)).match if parts else None


def _method(method: str) -> str:
    return method if method in _METHODS else OTHER_METHOD


def _route(route: str | None) -> str:
    """Return a route as a label value: without forbidden characters, and truncated."""
    if not route:
        return UNMATCHED
    return label_value(route) or UNMATCHED
