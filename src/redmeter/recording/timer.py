"""Timers: how long something took, observed when it ends, however it ends.

One timer serves any number of threads, tasks and calls at the same time, also within each other,
so it cannot hold when one of them began. That lies with whoever runs: in a context variable, which
each thread and each task has for itself. It is a chain, since timers lie within timers; what ends
is looked for by its timer, since a generator may end later than what it was begun in.

Where something begins in one context and ends in another, as the set-up and the end of a fixture
may, nothing is found there. Then the time at which this timer was last begun is taken: right as
long as it is not used twice at once.
"""

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from redmeter.errors import StoreError

F = TypeVar("F", bound=Callable[..., Any])

#: Timer, when it began, and what was begun before.
_Chain: TypeAlias = "tuple[Timer, float, _Chain] | None"

_begun: ContextVar[_Chain] = ContextVar("redmeter_timers", default=None)


class Observing(Protocol):
    """What takes a duration."""

    def observe(self, value: float) -> None:
        """Take it in, seconds."""
        ...


class Timer:
    """Observes how long something takes, in seconds. Made by Meter.timer().

        with timer: …           # and `async with`
        @timer                  # each call of a function, of a coroutine until it is done, and of
        def f(): …              # a generator from its first value until it is through or closed

    Args:
        histogram: what takes the durations.
        now: a clock that never goes back, seconds.
    """

    __slots__ = ("_histogram", "_last", "_now")

    def __init__(self, histogram: Observing, now: Callable[[], float]) -> None:
        self._histogram = histogram
        self._now = now
        self._last: float | None = None

    def __repr__(self) -> str:
        return f"<Timer of {self._histogram!r}>"

    def __enter__(self) -> Self:
        self._last = start = self._now()
        _begun.set((self, start, _begun.get()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        end = self._now()
        start, rest = _taken(self, _begun.get())
        if start is None:
            start = self._last
        else:
            _begun.set(rest)
        if start is None:
            raise RuntimeError("a timer was ended that was not begun")
        self._observe(start, end, failed=error is not None)

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
        """Return a function that does the same and is timed.

        Raises:
            TypeError: no function, or an asynchronous generator: time its body by `with`.
        """
        if not callable(function):
            raise TypeError(f"a timer decorates a function, not {type(function).__name__}")
        called = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
        if inspect.isasyncgenfunction(function) or inspect.isasyncgenfunction(called):
            raise TypeError(
                "a timer does not decorate an asynchronous generator: use `with` in its body"
            )
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):

            @wraps(function)
            async def timed(*args: Any, **kwargs: Any) -> Any:
                start, failed = self._now(), True
                try:
                    result = await function(*args, **kwargs)
                    failed = False
                    return result
                finally:
                    self._observe(start, self._now(), failed=failed)

        elif inspect.isgeneratorfunction(function) or inspect.isgeneratorfunction(called):

            @wraps(function)
            def timed(*args: Any, **kwargs: Any) -> Any:
                start, failed = self._now(), True
                try:
                    result = yield from function(*args, **kwargs)
                    failed = False
                    return result
                finally:
                    self._observe(start, self._now(), failed=failed)

        else:

            @wraps(function)
            def timed(*args: Any, **kwargs: Any) -> Any:
                start, failed = self._now(), True
                try:
                    result = function(*args, **kwargs)
                    failed = False
                    return result
                finally:
                    self._observe(start, self._now(), failed=failed)

        return timed  # type: ignore[return-value]

    def _observe(self, start: float, end: float, *, failed: bool) -> None:
        try:
            self._histogram.observe(max(0.0, end - start))
        except StoreError:  # of a meter that stores at once
            if not failed:  # else the error of what was timed is the one to be told
                raise


def _taken(timer: Timer, chain: _Chain) -> tuple[float | None, _Chain]:
    """Return when a timer was last begun in a chain, and the chain without that."""
    passed: list[tuple[Timer, float]] = []
    while chain is not None:
        of, start, chain = chain
        if of is timer:
            for each in reversed(passed):
                chain = (*each, chain)
            return start, chain
        passed.append((of, start))
    return None, None
