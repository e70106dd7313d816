"""What is recorded of a web request, whatever serves it: ASGI, WSGI, a framework.

    hits                                      requests
    hits_failed                               those that failed, status 5xx; 0 in the intervals
                                              in which none did
    hits_seconds                              durations
    http_requests{method,route,status}        requests by method, route and status
    http_request_seconds{method,route}        durations by method and route
    http_request_db_seconds{method,route}     how much of that it waited for databases
    http_request_db_ratio{method,route}       the same, as a part of it
    db_queries{route,statement}               its database statements, see callers.py

    http: error                               exceptions that nobody handled, with route and place;
                                              they are also recorded as exceptions
    http: warning                             requests whose answer was long in coming, with theirs

Problem: labels are made of what strangers send, and a request must not become slower, nor fail, by
being counted.

Idea: every label is one of few. A route is the template by which the application found its handler,
`/users/{id}`, never a path; where there is none, `(unmatched)`. A method is one of those that are
known, or `_OTHER`. A status is a class, `2xx`. So the series of a request are found in a
dictionary, by method, route and status, and recording it is four appends, five where it failed.

The first three series are totals: exact at any number of routes, whatever label sets a limit drops.
Their readers must know whether an interval without failures had none, or is older than the counter
of failures. So that one gets a 0 wherever there are requests, see Counter.part.

A client that went away before it had its answer is no error of the application: the status is
`disconnected` then.

Bound: the dictionary holds HANDLES entries; what does not fit is looked up in the meter, which has
limits of its own. Where an application adds labels with too many values, only these become
`(other)`, see registry.py; method, route and status stay. Nothing here waits, opens a connection or
raises: what goes wrong, e.g. in a function that makes labels, is counted as a trouble of the meter
(`Meter.health()`), logged once a minute, and the request is recorded without it.

Not done: requests that are running now are not counted, only those that have ended. The sizes of
bodies are not measured.

Source: OpenTelemetry, "Semantic conventions for HTTP metrics" (methods, what a route is).
"""

import fnmatch
import logging
import re
import time
from collections.abc import Callable, Mapping
from random import SystemRandom
from typing import Any

from redmeter import Meter, settings
from redmeter.errors import InvalidName, StoreError
from redmeter.integrations.callers import Callers
from redmeter.integrations.cleaner import Cleaner
from redmeter.integrations.interface import Instrumentation
from redmeter.integrations.meters import METER_SETTINGS, meter_of
from redmeter.integrations.options import Arguments, Options
from redmeter.integrations.spent import DATABASE, Spent
from redmeter.names import (
    HITS,
    HITS_FAILED,
    HITS_SECONDS,
    REQUESTS,
    SECONDS,
    cleaned,
    is_failure,
)
from redmeter.recording.messages.fingerprint import Fingerprint, with_place
from redmeter.recording.messages.tracebacks import describe_error

#: Also of other files: integrations find all they need of requests here.
__all__ = [
    "DISCONNECTED",
    "FAILED",
    "HITS",
    "HITS_FAILED",
    "HITS_SECONDS",
    "METER_SETTINGS",
    "REQUESTS",
    "ROUTE",
    "SECONDS",
    "WATCHED",
    "WEBSOCKET",
    "Arguments",
    "Cleaner",
    "Options",
    "Requests",
    "meter_of",
    "requests_of",
]

#: Of requests that sent anything to a database, where a hook tells of it: see spent.py.
DB_SECONDS, DB_RATIO = "http_request_db_seconds", "http_request_db_ratio"
#: The logger of the messages.
LOGGER = "http"

#: Methods that are told apart; all others are OTHER_METHOD. WEBSOCKET is no method of HTTP: it
#: stands for a connection, whose duration is that of the connection.
METHODS = frozenset(
    {
        *("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "QUERY"),
        "WEBSOCKET",
    }
)
OTHER_METHOD = "_OTHER"
WEBSOCKET = "WEBSOCKET"

#: The route of a request that none of the application's routes matched.
UNMATCHED = "(unmatched)"
#: The status of a request whose client went away before it was answered.
DISCONNECTED = "disconnected"
#: The status of a request that was answered with a number that is no status.
OTHER_STATUS = "other"

#: Bytes of a route at most, as it is written in a name; a longer one is cut.
ROUTE_BYTES = 120
#: Keys of a WSGI environ or an ASGI scope: the route, where an application or another integration
#: knows it; the request is watched, by the outermost integration, should there be several; what
#: nobody handled, of which an integration further in tells.
ROUTE, WATCHED, FAILED = "redmeter.route", "redmeter.request", "redmeter.error"

#: How many combinations of labels are remembered.
HANDLES = 4096
#: Seconds between two lines in the log.
LOG_SECONDS = 60.0

_LABELS = frozenset({"method", "route", "status", "sampled"})

#: What counts a request, what takes its duration, and whether it failed.
_Handles = tuple[Callable[[], None], Callable[[float], None], bool]

# Not the generator of the application, which may have seeded it. Forked processes draw different
# numbers, as they come from the operating system.
_chance = SystemRandom()

logger = logging.getLogger("redmeter")


def requests_of(
    meter: Meter | None,
    given: Mapping[str, Any],
    framework: Mapping[str, Any] | None = None,
) -> "Requests":
    """Return what records requests, as settings say. What cannot be used is logged.

    Args:
        meter: where to; None makes one.
        given: see Arguments; those of Meter only where there is none.
        framework: see Options.of().

    Raises:
        TypeError: there is no option of such a name, or the meter is none.
    """
    own = {name: given[name] for name in METER_SETTINGS if given.get(name) is not None}
    if meter is not None:
        if not isinstance(meter, Meter):
            raise TypeError(
                f"a meter is a Meter, not {type(meter).__name__}; a URL is given as url="
            )
        if own:
            raise TypeError(f"a meter that is given has its own {', '.join(sorted(own))}")
    options = Options.of(
        {name: value for name, value in given.items() if name not in METER_SETTINGS}, framework
    )
    return Requests(meter_of(own, framework) if meter is None else meter, options)


class Requests:
    """Records requests. Safe to share between threads and tasks; nothing of it raises.

        requests = Requests(meter, Options.of({"ignore_paths": "/health"}))
        ...
        if not requests.watched(path):
            return app(...)
        start = requests.now()
        ...
        requests.record(method, path, route, status, requests.now() - start, environ)

    Args:
        meter: where to.
        options: what.
    """

    def __init__(self, meter: Meter, options: Options | None = None) -> None:
        self.meter = meter
        self.options = options = options or Options()
        #: Whether anything is recorded at all: not by a meter whose URL is `off`.
        self.on = not Instrumentation(meter).is_off
        #: Seconds by the meter's clock, for durations.
        self._instrumentation = Instrumentation(meter)
        self.now: Callable[[], float] = self._instrumentation.monotonic
        self._include = _matcher(options.include_paths)
        self._ignore = _matcher(options.ignore_paths)
        self._all = self.on and self._include is None and self._ignore is None
        self._sampled = options.sample_durations < 1
        self._share = options.sample_durations
        self._slow = options.slow_request
        self._labels_of = options.labels
        # Label sets of durations that are samples show it.
        self._timed = {"sampled": f"{self._share:g}"} if self._sampled else {}
        self._handles: dict[Any, _Handles] = {}
        self._waits: dict[Any, tuple[Callable[[float], None], Callable[[float], None]]] = {}
        self._callers = Callers(meter, "route")
        self._said = -LOG_SECONDS
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
    ) -> None:
        """Record a request that has ended. Never raises.

        Args:
            method: as it was sent, or WEBSOCKET.
            path: without the query; compared with count_paths, and part of slow requests' text.
            route: the template, in any of the frameworks' spellings; None: there is none.
            status: the number that was sent, or DISCONNECTED; None: none was sent.
            seconds: how long it took.
            request: what options.labels takes.
            error: what nobody handled; the status is 500 then, where it is no server error yet.
            spent: what begin_if_told() returned as it began; it is ended here.
            began: after how many seconds its answer began, by which it is slow or not, since a
                stream may last. None: it came as a whole.
        """
        try:
            if error is not None and (not isinstance(status, int) or status < 500):
                status = 500
            if self._labels_of is None:
                found = self._handles.get((method, route, status))
                if found is None:
                    method = _method(method)
                    found = self._made(method, route, status, {})
            else:
                method = _method(method)
                found = self._labelled(method, route, status, request)
            count, observe, failed = found
            self._count_hit()
            if failed:
                self._count_failed()
            count()
            if not self._sampled or _chance.random() < self._share:
                observe(seconds)
                self._observe_hit(seconds)
            if spent is not None:
                spent.end()
                if spent:
                    self._waited(method, route, seconds, spent[DATABASE])
                    self._callers.record(_route(route), spent)
            if self._paths:
                for matches, also_count in self._paths:
                    if matches(path) is not None:
                        also_count()
            if error is not None:
                self._failed(method, route, error)
            elif seconds >= self._slow and method != WEBSOCKET:
                took = seconds if began is None else began
                self._may_be_slow(method, route, path, took, spent)
        except Exception as failure:  # noqa: BLE001 - counting a request must not make it fail
            self.record_error("recording a request", failure)

    def failed(self, method: str, route: str | None, error: BaseException) -> None:
        """Log an exception that came after the request was answered. Never raises."""
        try:
            self._failed(method, route, error)
        except Exception as failure:  # noqa: BLE001 - see record()
            self.record_error("logging an exception", failure)

    def record_error(self, doing: str, error: Exception) -> None:
        """Count that something went wrong, and log it once a minute. Never raises."""
        try:
            if not isinstance(error, StoreError):
                self._instrumentation.record_error(
                    "web", f"{doing}: {type(error).__name__}: {error}"
                )
            now = time.monotonic()
            if now - self._said >= LOG_SECONDS:
                self._said = now
                logger.warning("redmeter: %s: %r (logged once a minute)", doing, error)
        except Exception:  # noqa: BLE001, S110 - an error without a text, or somebody's log handler
            pass

    # The series of a request

    def _labelled(
        self, method: str, route: str | None, status: int | str | None, request: object
    ) -> _Handles:
        assert self._labels_of is not None, "the caller looks"
        more: Mapping[str, str] = {}
        try:
            more = self._labels_of(request) or {}
            key: Any = (method, route, status, tuple(more.items())) if more else None
            found = self._handles.get(key or (method, route, status))
            if found is not None:
                return found
            if taken := _LABELS & more.keys():
                raise InvalidName(", ".join(sorted(taken)), "requests have it anyway", what="label")
            return self._made(method, route, status, more)
        except Exception as error:  # noqa: BLE001 - of a function of the application, or its labels
            self.record_error("making labels of a request", error)
        found = self._handles.get((method, route, status))
        return self._made(method, route, status, {}) if found is None else found

    def _made(
        self, method: str, route: str | None, status: int | str | None, more: Mapping[str, str]
    ) -> _Handles:
        """Return the handles of a label set, and remember them.

        Args:
            method: one of METHODS, or OTHER_METHOD: whoever asks chooses what it was, so what is
                remembered holds no other.
        """
        key: Any = (method, route, status, tuple(more.items())) if more else None
        key = key or (method, route, status)
        if key in self._handles:
            return self._handles[key]
        recorder = self._instrumentation
        labels = {"method": method, "route": _route(route)}
        outcome = self._status(status)
        found = (
            recorder.counter(REQUESTS, {**labels, "status": outcome}, more).inc,
            recorder.histogram(SECONDS, labels | self._timed, more).observe,
            is_failure(outcome),
        )
        if len(self._handles) < HANDLES:
            self._handles[key] = found
        return found

    def _status(self, status: int | str | None) -> str:
        if status == DISCONNECTED:
            return DISCONNECTED
        number = int(status) if isinstance(status, int) else 0
        if self.options.exact_status:
            return str(number) if 100 <= number <= 999 else OTHER_STATUS
        return f"{number // 100}xx" if 100 <= number <= 599 else OTHER_STATUS

    def _waited(self, method: str, route: str | None, seconds: float, waited: float) -> None:
        """Record how long a request waited for databases, a part of all it took."""
        observers = self._waits.get((method, route))
        if observers is None:
            meter = self.meter
            assert meter is not None, "nothing is recorded without one"
            labels = {"method": method, "route": _route(route)}
            made = (meter.histogram(name, labels=labels) for name in (DB_SECONDS, DB_RATIO))
            first, second = (histogram.observe for histogram in made)
            observers = first, second
            if len(self._waits) < HANDLES:
                self._waits[method, route] = observers
        observers[0](waited)
        # Statements side by side take more together than the request does.
        observers[1](min(1.0, waited / seconds) if seconds > 0 else 1.0)

    # Messages

    def _failed(self, method: str, route: str | None, error: BaseException) -> None:
        place, frames = describe_error(error)
        what = f"{_method(method)} {_route(route)}"
        self._instrumentation.record_exception(error, _route(route), frames)
        self._log("error", with_place(what, place), f"{what}\n{frames}")

    def _may_be_slow(
        self, method: str, route: str | None, path: str, seconds: float, spent: Spent | None
    ) -> None:
        if seconds >= self._slow:
            what = f"slow request {method} {_route(route)}"
            database = f", {_database(spent)}" if spent else ""
            # The path is last: where a long text is cut, nothing else is lost.
            self._log("warning", what, f"{what}: {seconds:.3f} s{database}, path {path}")

    def _log(self, severity: str, pattern: Fingerprint, text: str) -> None:
        meter = self._instrumentation
        meter.message_sink(LOGGER, severity).put_message(pattern, text, meter.now())


def _database(spent: Spent) -> str:
    count = spent.statements
    return f"database {spent[DATABASE]:.3f} s in {count} statement{'s' * (count != 1)}"


def _matcher(patterns: str) -> Callable[[str], object] | None:
    """Return what tells whether a path matches one of some patterns; None where there is none."""
    parts = [fnmatch.translate(pattern) for pattern in patterns.split()]
    return re.compile("|".join(parts)).match if parts else None


def _method(method: str) -> str:
    return method if method in METHODS else OTHER_METHOD


def _route(route: str | None) -> str:
    """Return a route as a label's value: without what no name may hold, and not too long."""
    if not route:
        return UNMATCHED
    text = cleaned(route)
    if _written(text) <= ROUTE_BYTES:
        return text or UNMATCHED
    while _written(text) > ROUTE_BYTES - len("…".encode()):
        text = text[:-1]
    return f"{text}…"


def _written(text: str) -> int:
    return len(text.encode()) + text.count("\\") + text.count('"')
