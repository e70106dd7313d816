"""Scopes: objects that are context managers, asynchronous ones, and decorators of functions.

with gauge.track_in_progress(): …
async with meter.count_exceptions("failures"): …
@histogram.time()
def check_out(): …
"""

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from functools import wraps
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from redmeter.errors import StoreError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def decorate(
    function: F,
    begin: Callable[[], T],
    end: Callable[[T, BaseException | None], None],
    noun: str,
) -> F:
    """Return a function that does the same, with something done around each of its calls.

    A call of a coroutine function lasts until the coroutine is done, one of a generator function
    from its first value until it is exhausted or closed.

    Args:
        begin: called before; its result is passed to `end`.
        end: called after, with the exception that the call raised.
        noun: the decorator's name in errors, "a timer".

    Raises:
        TypeError: not a function, a static or class method, or an asynchronous generator.
    """
    if isinstance(function, staticmethod | classmethod):
        above = type(function).__name__
        raise TypeError(f"{noun} decorates the function: @{above} goes above it")
    if not callable(function):
        raise TypeError(f"{noun} decorates a function, not {type(function).__name__}")
    called = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    if inspect.isasyncgenfunction(function) or inspect.isasyncgenfunction(called):
        raise TypeError(f"{noun} cannot decorate an asynchronous generator: use `with` in its body")
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):

        @wraps(function)
        async def decorated(*args: Any, **kwargs: Any) -> Any:
            token = begin()
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                end(token, error)
                raise
            end(token, None)
            return result

    elif inspect.isgeneratorfunction(function) or inspect.isgeneratorfunction(called):

        @wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            token = begin()
            try:
                result = yield from function(*args, **kwargs)
            except BaseException as error:
                end(token, error)
                raise
            end(token, None)
            return result

    else:

        @wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            token = begin()
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                end(token, error)
                raise
            end(token, None)
            return result

    return decorated  # type: ignore[return-value]


class Scope(ABC):
    """Does something when a block or a call begins and ends. Safe to share and to nest."""

    __slots__ = ()
    _NOUN = "this"

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _end(self, error: BaseException | None) -> None: ...

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(error)

    def __call__(self, function: F) -> F:
        """Decorate a function, a coroutine function or a generator function."""
        return decorate(function, self._begin, lambda _, error: self._end(error), self._NOUN)


class _Incrementing(Protocol):
    def inc(self, amount: int = 1) -> None: ...


class _GoingUpAndDown(Protocol):
    def inc(self, amount: float = 1) -> None: ...

    def dec(self, amount: float = 1) -> None: ...


class InProgress(Scope):
    """Counts up a gauge while a block or a call runs. Made by Gauge.track_in_progress()."""

    __slots__ = ("_gauge", "_process")
    _NOUN = "track_in_progress()"

    def __init__(self, gauge: _GoingUpAndDown) -> None:
        self._gauge = gauge
        self._process = 0

    def _begin(self) -> None:
        self._process = os.getpid()
        self._gauge.inc()

    def _end(self, error: BaseException | None) -> None:
        # A child that was forked within the block has a part of its own, which begins at 0.
        if self._process == os.getpid():
            with suppress(StoreError) if error is not None else nullcontext():
                self._gauge.dec()


class CountedExceptions(Scope):
    """Counts the exceptions that leave a block or a call. Made by Meter.count_exceptions()."""

    __slots__ = ("_counter", "_kinds")
    _NOUN = "count_exceptions()"

    def __init__(
        self,
        counter: _Incrementing,
        kinds: type[BaseException] | tuple[type[BaseException], ...],
    ) -> None:
        self._counter = counter
        self._kinds = kinds

    def _begin(self) -> None:
        pass

    def _end(self, error: BaseException | None) -> None:
        if isinstance(error, self._kinds):
            with suppress(StoreError):  # with sync=True: the caller gets its own exception
                self._counter.inc()


# --- Timers --------------------------------------------------------------------------------------

# Timers: the duration of a block or a call, observed when it ends, even if it raises.
#
# Any number of threads, tasks and calls may use one timer at once, also nested, so the timer
# itself cannot hold a start time. Start times are in a context variable, which each thread and
# each task has for itself. They form a chain, because timed blocks can be nested; a block's end
# looks for the entry of its own timer, because a generator may end later than the block in which
# it began.
#
# A block may begin in one context and end in another, such as set-up and tear-down of a fixture,
# or an asynchronous generator that is never exhausted. Its start is then not found, and the time
# at which this timer last began is used, which is right unless the timer is in use twice at that
# moment. An entry records that it has ended, so that the context in which it began can drop it.


class _Beginning:
    """The start of a timed block, shared by all contexts that were copied meanwhile."""

    __slots__ = ("ended", "start")

    def __init__(self, start: float) -> None:
        self.start = start
        self.ended = False


#: The timer, its start, the enclosing entries, and the length of the chain.
_Chain: TypeAlias = "tuple[Timer, _Beginning, _Chain, int] | None"

#: A chain whose length is a multiple of it is searched for entries that ended elsewhere.
_LONG = 32

_begun: ContextVar[_Chain] = ContextVar("redmeter_timers", default=None)


class Observing(Protocol):
    """Takes durations."""

    def observe(self, value: float) -> None:
        """Observe a duration, seconds."""


class Timer:
    """Observes durations, in seconds. Made by Meter.timer().

        with timer: …           # and `async with`
        @timer                  # each call of a function, of a coroutine until it is done, and of
        def f(): …              # a generator from its first value until it is exhausted or closed

    Args:
        histogram: takes the durations.
        now: a clock that never goes back, seconds.
    """

    __slots__ = ("_histogram", "_last", "_now")

    def __init__(self, histogram: Observing, now: Callable[[], float]) -> None:
        self._histogram = histogram
        self._now = now
        self._last: _Beginning | None = None

    def __repr__(self) -> str:
        return f"<Timer of {self._histogram!r}>"

    def __enter__(self) -> Self:
        before = _begun.get()
        while before is not None and before[1].ended:
            before = before[2]
        length = 1 if before is None else before[3] + 1
        if length % _LONG == 0:
            before = _open(before)
            length = 1 if before is None else before[3] + 1
        self._last = beginning = _Beginning(self._now())
        _begun.set((self, beginning, before, length))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        end = self._now()
        chain = first = _begun.get()
        while chain is not None and (chain[0] is not self or chain[1].ended):
            chain = chain[2]
        beginning = self._last if chain is None else chain[1]
        if beginning is None:
            raise RuntimeError("the timer ended, but was not started")
        beginning.ended = True
        if chain is not None:
            _begun.set(chain[2] if chain is first else _open(first))
        self._observe(beginning.start, end, failed=error is not None)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __call__(self, function: F) -> F:
        """Decorate a function: each of its calls is timed.

        Raises:
            TypeError: it is not a function; it is a static or class method, whose decorator belongs
                above the timer; or it is an asynchronous generator: use `with` in its body.
        """
        return decorate(function, self._now, self._observe_since, "a timer")

    def _observe_since(self, start: float, error: BaseException | None) -> None:
        self._observe(start, self._now(), failed=error is not None)

    def _observe(self, start: float, end: float, *, failed: bool) -> None:
        try:
            self._histogram.observe(max(0.0, end - start))
        except StoreError:  # of a synchronous meter
            if not failed:  # otherwise the caller gets the error of the timed code
                raise


def _open(chain: _Chain) -> _Chain:
    """Return a chain without the entries that have ended."""
    left: list[tuple[Timer, _Beginning]] = []
    while chain is not None:
        timer, beginning, chain, _ = chain
        if not beginning.ended:
            left.append((timer, beginning))
    for length, each in enumerate(reversed(left), 1):
        chain = (*each, chain, length)
    return chain
