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
from functools import wraps
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

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
        TypeError: it is not a function; it is a static or class method, whose decorator belongs
            above this one; or it is an asynchronous generator: use `with` in its body.
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
