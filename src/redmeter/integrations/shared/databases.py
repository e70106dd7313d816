"""Time in databases: how much of a request or task it is, and which statements are sent.

    db_query_seconds{statement}         durations, by group
    db_errors{statement,error}          failures, by type of the error
    db_queries{route,statement}         executions by the requests of a route
    db_queries{task,statement}          executions by the runs of a task

analysis/text/statements.py groups statements; `(many)` marks those executed for many rows at once,
since the duration covers all rows. Waits without a statement are named `COMMIT`, `ROLLBACK` and
`(connect)`: for a new connection, or one of the pool.

Problem: a page is slow because of its own code or because of its queries. The middleware that times
the page does not see the queries, and the hook that times the queries does not know the page. Nor
does every library have a hook for each wait.

Idea: the middleware collects, and the hook adds the time of each part. A context variable connects
them: tasks inherit it, and so do threads that run in a copy of the context, as those of Starlette,
asgiref and asyncio.to_thread() do.

    with collect() as spent:              # the middleware, around a request
        ...
            spend(0.012, 1)             # the database's hook, somewhere within
        ...
    spent.seconds                       # 0.012
    spent.statements                    # 1
    spent.names()                       # {"SELECT orders WHERE id": 1}, if a name was passed

`spent.end()` does the same without `with`; collect_if_enabled() costs next to nothing unless a hook
is installed. A part counts for all nested collections that are open, and for none that has ended.
Concurrent parts are summed, so the sum may exceed the duration of the whole. Statements are counted
by their route or task when it ends (Callers).

A method for which a library has no hook, such as a pool's connect() or a connection's commit(), is
timed by an attribute of one object that hides the method of its class (listen). It calls the
method, passes on the result or the exception, and reports the duration to listeners. Classes and
all other objects stay unchanged, and removing the attribute restores the object. All listeners of a
method share one attribute, so its time is spent once. Calls within connect(), such as a new
connection's rollback(), are part of it: listeners do not receive them, and statements within are
recorded, but not spent again.

Bound: per statement a look-up by the hash of its text, of which TEXTS are cached, two more look-ups
and two appends; per timed call two readings of the clock and one context variable. No lock, since
each thread has its own sums. GROUPS groups are distinguished; further ones are `(other)`. When a
request ends, one look-up and one append for each of its different statements; PAIRS pairs of a
caller and a statement are counted in each process. Further pairs are not counted, nor is a pair
whose series name would be too long; the statement's own duration still is.

Not done: an object that accepts no attributes is not timed.
"""

import functools
import os
import threading
import weakref
from _thread import get_ident
from collections.abc import Callable
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Self

from redmeter import Meter
from redmeter.analysis.text.statements import statement_of
from redmeter.errors import InvalidName
from redmeter.integrations.shared.interface import Names, record_error
from redmeter.names import DB_ERRORS, DB_QUERIES, DB_QUERY_SECONDS

#: Groups of statements that are distinguished.
GROUPS = 200
#: Texts of statements whose groups are cached, by their hashes.
TEXTS = 2000
#: Marks statements that were executed for many rows at once.
_MANY = " (many)"
#: Waits without a statement.
CONNECT, COMMIT, ROLLBACK = "(connect)", "COMMIT", "ROLLBACK"
#: Pairs of a caller and a statement that are counted.
PAIRS = 500


# The time of a request or task


class Spent:
    """The time spent on databases since collect(), and the statements sent."""

    __slots__ = ("_names", "_open", "_outer", "_parts")

    def __init__(self, outer: "Spent | None") -> None:
        self._outer = outer
        #: Thread -> seconds, statements.
        self._parts: dict[int, tuple[float, int]] = {}
        #: (statement, thread) -> executions.
        self._names: dict[tuple[str, int], int] = {}
        self._open = True

    @property
    def seconds(self) -> float:
        """How long databases took; 0.0 if nothing was reported."""
        return sum([part[0] for part in list(self._parts.values())], 0.0)

    @property
    def statements(self) -> int:
        """How many statements were sent; 0 if none were reported."""
        return sum([part[1] for part in list(self._parts.values())])

    def names(self) -> dict[str, int]:
        """Return the executions of each statement that has a name."""
        counts: dict[str, int] = {}
        for (name, _), count in list(self._names.items()):
            counts[name] = counts.get(name, 0) + count
        return counts

    def __bool__(self) -> bool:
        """Whether anything was spent: a cheap test."""
        return bool(self._parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop collecting; later parts count for the enclosing collection only. Idempotent."""
        self._open = False
        if _current.get() is self:
            _current.set(self._outer)


_current: ContextVar[Spent | None] = ContextVar("redmeter_spent", default=None)


#: Whether a hook in this process reports parts.
_enabled = False


def enable() -> None:
    """Enable collect_if_enabled(), when a hook that reports parts is installed."""
    global _enabled
    _enabled = True


def collect() -> Spent:
    """Begin a collection in this context."""
    outer = _current.get()
    while outer is not None and not outer._open:  # ended in another task
        outer = outer._outer
    spent = Spent(outer)
    _current.set(spent)
    return spent


def collect_if_enabled() -> Spent | None:
    """Begin to collect if a hook in this process reports parts, else return None."""
    return collect() if _enabled else None


_NOTHING = 0.0, 0


def spend(seconds: float, statements: int = 0, name: str = "") -> None:
    """Add time spent on a database to this context's request or task, if anything collects it.

    Args:
        seconds: how long it took.
        statements: how many statements were sent to a database.
        name: the group of the statement.
    """
    spent = _current.get()
    while spent is not None:
        if spent._open:
            thread = get_ident()
            before = spent._parts.get(thread, _NOTHING)
            spent._parts[thread] = before[0] + seconds, before[1] + statements
            if name:
                names = spent._names
                names[name, thread] = names.get((name, thread), 0) + statements
        spent = spent._outer


# The statements of a caller


class Callers:
    """Counts statements by caller.

    Args:
        meter: records the counts.
        label: the kind of caller: "route" or "task".
    """

    def __init__(self, meter: Meter, label: str) -> None:
        self._meter = meter
        self._label = label
        self._known: dict[tuple[str, str], Callable[[int], None] | None] = {}

    def record(self, caller: str, spent: Spent) -> None:
        """Count the statements that a request or a run of a task has sent."""
        for statement, count in spent.names().items():
            pair = caller, statement
            if pair not in self._known:
                if len(self._known) >= PAIRS:
                    continue
                self._known[pair] = self._inc_of(caller, statement)
            inc = self._known[pair]
            if inc is not None:
                inc(count)

    def _inc_of(self, caller: str, statement: str) -> Callable[[int], None] | None:
        labels = {self._label: caller, "statement": statement}
        try:
            return self._meter.counter(DB_QUERIES, labels=labels).inc
        except InvalidName:
            return None


# Methods without a hook

#: Takes the duration of a call, seconds, and the exception it raised. Must not raise.
Listener = Callable[[float, BaseException | None], None]

_changing = threading.Lock()


def _forked() -> None:
    global _changing
    _changing = threading.Lock()  # a thread of the parent may have held it


os.register_at_fork(after_in_child=_forked)

#: Whether a timed call is running in this context.
_within: ContextVar[bool] = ContextVar("redmeter_waiting", default=False)


class _Timed:
    """Times a method of one object, as an attribute of that object."""

    def __init__(self, target: Any, name: str, *, outer: bool) -> None:
        method = getattr(target, name)
        functools.update_wrapper(self, method)
        self._method: Callable[..., Any] = method
        self._name = name
        self._outer = outer
        self._target = weakref.ref(target)
        #: The attribute that was there before, if any.
        self._before = vars(target).get(name)
        #: By owner. Replaced, never changed, since calls may be running.
        self.listeners: dict[str, Listener] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        if _within.get():
            return self._method(*args, **kwargs)
        outer = self._outer
        if outer:
            _within.set(True)
        error = None
        began = perf_counter()
        try:
            return self._method(*args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            seconds = perf_counter() - began
            if outer:
                _within.set(False)
            if self.listeners:
                spend(seconds)
                for listener in self.listeners.values():
                    listener(seconds, error)
            error = None  # it holds this frame

    def is_of(self, target: Any, name: str) -> bool:
        """Return whether it times this method of this object."""
        return self._name == name and self._target() is target

    def restore(self) -> None:
        """Restore the object, unless another library replaced the attribute since."""
        target = self._target()
        if target is not None and vars(target).get(self._name) is self:
            if self._before is None:
                delattr(target, self._name)
            else:
                setattr(target, self._name, self._before)


_all: "weakref.WeakSet[_Timed]" = weakref.WeakSet()


def listen(target: Any, name: str, by: str, listener: Listener, *, outer: bool = False) -> None:
    """Report the durations of a method of an object to a listener from now on.

    Args:
        name: of the method.
        by: the owner of the listener. It has one per method: a second call does nothing.
        outer: whether statements or other timed calls may run within the method.

    Raises:
        AttributeError, TypeError: the object accepts no attributes, or has no such method.
    """
    timed = vars(target).get(name)
    if type(timed) is _Timed and by in timed.listeners:
        return
    with _changing:
        timed = vars(target).get(name)
        if timed is not None and type(timed) is not _Timed:  # another library's, maybe around ours
            timed = next((each for each in _all if each.is_of(target, name)), None)
        if timed is None:
            timed = _Timed(target, name, outer=outer)
            setattr(target, name, timed)
            _all.add(timed)
        timed.listeners = {**timed.listeners, by: listener}


def stop_listening(by: str) -> None:
    """Remove all listeners of an owner, and restore the objects that have none left."""
    with _changing:
        for timed in list(_all):
            if by in timed.listeners:
                timed.listeners = {name: f for name, f in timed.listeners.items() if name != by}
                if not timed.listeners:
                    timed.restore()
                    _all.discard(timed)


# Statements


class StatementRecorder:
    """Records statements, whichever library sends them.

    Args:
        meter: records the durations and errors.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._group = Names(statement_of, GROUPS)
        #: (hash of a text, whether it was for many rows) -> group, histogram's observe().
        self._known: dict[tuple[int, bool], tuple[str, Callable[[float], None]]] = {}
        #: Listeners that record waits without a statement.
        self.connect, self.commit, self.rollback = map(self._wait, (CONNECT, COMMIT, ROLLBACK))

    def took(self, sql: str, seconds: float, *, many: bool, error: BaseException | None) -> None:
        """Record that a statement was executed. Never raises.

        Args:
            sql: its text.
            seconds: how long it took.
            many: whether it was executed for many sets of parameters.
            error: why it failed; None: it succeeded.
        """
        try:
            name, observe = self._known.get((hash(sql), many)) or self._found(sql, many)
            if not _within.get():
                spend(seconds, 1, name)
            observe(seconds)
            if error is not None:
                self._failed(name, error)
        except Exception as failure:  # noqa: BLE001 - timing a query must not make it fail
            record_error(self._meter, "db", failure)

    def _wait(self, name: str) -> Listener:
        """Return a listener that records waits without a statement. Never raises."""
        observe: Callable[[float], None] | None = None

        def waited(seconds: float, error: BaseException | None) -> None:
            nonlocal observe
            try:
                if observe is None:
                    observe = self._observe_of(name)
                observe(seconds)
                if error is not None:
                    self._failed(name, error)
            except Exception as failure:  # noqa: BLE001 - see took()
                record_error(self._meter, "db", failure)

        return waited

    def _failed(self, name: str, error: BaseException) -> None:
        labels = {"statement": name, "error": type(error).__name__[:40]}
        self._meter.count(DB_ERRORS, labels=labels)

    def _observe_of(self, name: str) -> Callable[[float], None]:
        return self._meter.histogram(DB_QUERY_SECONDS, labels={"statement": name}).observe

    def _found(self, sql: str, many: bool) -> tuple[str, Callable[[float], None]]:
        name = self._group(sql) + _MANY * many
        known = name, self._observe_of(name)
        if len(self._known) < TEXTS:
            self._known[hash(sql), many] = known
        return known
