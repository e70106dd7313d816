"""Timers: the duration of a block or a call, observed when it ends, even if it raises.

Any number of threads, tasks and calls may use one timer at once, also nested, so the timer itself
cannot hold a start time. Start times are in a context variable, which each thread and each task has
for itself. They form a chain, because timed blocks can be nested; a block's end looks for the entry
of its own timer, because a generator may end later than the block in which it began.

A block may begin in one context and end in another, such as set-up and tear-down of a fixture, or
an asynchronous generator that is never exhausted. Its start is then not found, and the time at
which this timer last began is used, which is right unless the timer is in use twice at that moment.
An entry records that it has ended, so that the context in which it began can drop it.
"""

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol, Self, TypeAlias

from redmeter.errors import StoreError
from redmeter.recording.scopes import F, decorate


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
        ...


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
