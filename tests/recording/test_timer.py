"""Timers: how long something took, whatever it is, however it ends and whoever else is timed."""

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Generator
from typing import Any

import pytest

from redmeter import StoreUnavailable
from redmeter.clock import ManualClock
from redmeter.recording.scopes import Timer, _begun
from redmeter.testing import MemoryMeter


class Observed:
    """Notes durations."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def observe(self, value: float) -> None:
        """Note one."""
        self.seconds.append(value)


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture
def seen() -> Observed:
    """What takes the durations."""
    return Observed()


@pytest.fixture
def timer(clock: ManualClock, seen: Observed) -> Timer:
    """The timer under test."""
    return Timer(seen, clock.monotonic)


# As a context manager


def test_a_body_is_timed(timer: Timer, clock: ManualClock, seen: Observed) -> None:
    """In seconds."""
    with timer as same:
        clock.advance(2.5)
    assert same is timer
    assert seen.seconds == [2.5]


def test_a_body_that_raises_is_timed_too(timer: Timer, clock: ManualClock, seen: Observed) -> None:
    """And what it raised passes on."""
    problem = KeyError("x")

    def fail() -> None:
        with timer:
            clock.advance(1)
            raise problem

    with pytest.raises(KeyError) as caught:
        fail()
    assert caught.value is problem
    assert seen.seconds == [1]


def test_bodies_within_each_other_are_each_timed(
    timer: Timer, clock: ManualClock, seen: Observed
) -> None:
    """By one timer, with another one between."""
    other = Timer(seen, clock.monotonic)
    with timer:
        clock.advance(1)
        with other:
            clock.advance(2)
            with timer:
                clock.advance(4)
        clock.advance(8)
    assert seen.seconds == [4, 6, 15]


def test_what_ends_before_what_it_holds_takes_none_of_its_beginnings(
    timer: Timer, clock: ManualClock, seen: Observed
) -> None:
    """Those of another timer are left, in their order."""
    outer = Timer(seen, clock.monotonic)
    for one in (outer, timer, timer):
        one.__enter__()
        clock.advance(1)
    for one in (outer, timer, timer):
        one.__exit__(None, None, None)
        clock.advance(10)
    assert seen.seconds == [3, 11, 22]


def test_a_clock_that_goes_back_gives_no_negative_duration(seen: Observed) -> None:
    """A clock that should not, but does."""
    times = iter([5.0, 3.0])
    with Timer(seen, lambda: next(times)):
        pass
    assert seen.seconds == [0.0]


def test_threads_do_not_disturb_each_other(
    timer: Timer, clock: ManualClock, seen: Observed
) -> None:
    """Each began at its own time, though they end in another order."""
    gates = [threading.Event() for _ in range(3)]
    begun = [threading.Event() for _ in range(3)]

    def work(at: int) -> None:
        with timer:
            begun[at].set()
            gates[at].wait(10)

    threads = [threading.Thread(target=work, args=[at]) for at in range(3)]
    for at, thread in enumerate(threads):
        thread.start()
        begun[at].wait(10)
        clock.advance(10**at)
    for at in (0, 2, 1):
        gates[at].set()
        threads[at].join()
    assert seen.seconds == [111, 100, 110]


def test_tasks_do_not_disturb_each_other(timer: Timer, clock: ManualClock, seen: Observed) -> None:
    """Nor the one that they were started from, which is timed by the same timer."""

    async def work(begin: int, end: int) -> None:
        for _ in range(begin):
            await asyncio.sleep(0)
        async with timer:
            for _ in range(end - begin):
                await asyncio.sleep(0)

    async def tick() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
            clock.advance(1)

    async def main() -> None:
        with timer:
            await asyncio.gather(tick(), work(0, 9), work(2, 5), work(4, 13))

    asyncio.run(main())
    assert seen.seconds == [3, 9, 9, 20]


def test_generators_that_take_turns_are_each_timed(
    timer: Timer, clock: ManualClock, seen: Observed
) -> None:
    """Each with a timer of its own, and not ended in the order of their beginning."""

    def work(own: Timer) -> Generator[None]:
        with own:
            yield

    generators = [work(Timer(seen, clock.monotonic)) for _ in range(3)]
    for at, generator in enumerate(generators):
        next(generator)
        clock.advance(10**at)
    for at in (0, 2, 1):
        generators[at].close()
    assert seen.seconds == [111, 100, 110]


def test_what_ends_elsewhere_than_it_began_is_timed(
    timer: Timer, clock: ManualClock, seen: Observed
) -> None:
    """As the set-up and the end of a fixture may, in contexts of their own."""
    contextvars.copy_context().run(timer.__enter__)
    clock.advance(3)
    contextvars.copy_context().run(timer.__exit__, None, None, None)
    assert seen.seconds == [3]


def kept() -> int:
    """Return how many beginnings this context holds."""
    chain, count = _begun.get(), 0
    while chain is not None:
        chain, count = chain[2], count + 1
    return count


def test_what_ended_elsewhere_is_not_taken_for_what_is_under_way(
    timer: Timer, clock: ManualClock, seen: Observed
) -> None:
    """Begun here and ended there, then begun there and ended here."""
    here, there = contextvars.Context(), contextvars.Context()
    here.run(timer.__enter__)
    clock.advance(1)
    there.run(timer.__exit__, None, None, None)
    clock.advance(100)
    there.run(timer.__enter__)
    clock.advance(2)
    here.run(timer.__exit__, None, None, None)
    assert seen.seconds == [1, 2]
    here.run(timer.__enter__)
    assert here.run(kept) == 1


def test_generators_that_nobody_reads_to_the_end_leave_nothing_behind(
    timer: Timer, clock: ManualClock, seen: Observed
) -> None:
    """The event loop closes them in a task of its own, which has a copy of the context."""

    async def rows() -> AsyncIterator[int]:
        async with timer:
            for number in range(3):
                clock.advance(1)
                yield number

    async def work() -> None:
        for _ in range(1000):
            async for _ in rows():
                break
            for _ in range(5):  # until it is closed
                await asyncio.sleep(0)
            assert kept() <= 1

    contextvars.copy_context().run(asyncio.run, work())
    assert seen.seconds == [1.0] * 1000


def test_generators_that_overlap_leave_little_behind(clock: ManualClock) -> None:
    """Each begins before the one before it is closed, which happens elsewhere."""

    def overlap() -> None:
        last = Timer(Observed(), clock.monotonic)
        last.__enter__()
        for _ in range(1000):
            following = Timer(Observed(), clock.monotonic)
            following.__enter__()
            contextvars.copy_context().run(last.__exit__, None, None, None)
            last = following
        assert kept() < 50

    contextvars.copy_context().run(overlap)


def test_an_end_without_a_beginning_is_an_error(timer: Timer) -> None:
    """Of whoever calls it."""
    with pytest.raises(RuntimeError):
        timer.__exit__(None, None, None)


def test_nothing_is_left_behind(timer: Timer, clock: ManualClock) -> None:
    """However often it is used, also together with others."""
    others = [Timer(Observed(), clock.monotonic) for _ in range(3)]
    before = dict(contextvars.copy_context().items())
    for one in (timer, *others):
        with contextlib.ExitStack() as stack:
            for other in (one, *others):
                stack.enter_context(other)
    after = dict(contextvars.copy_context().items())
    assert {name.name: value for name, value in after.items() if value is not None} == {
        name.name: value for name, value in before.items() if value is not None
    }


# As a decorator


def test_each_call_of_a_function_is_timed(timer: Timer, clock: ManualClock, seen: Observed) -> None:
    """What it takes, returns and raises stays, and so does what it is called."""

    @timer
    def work(seconds: float, *, fail: bool = False) -> float:
        """Work."""
        clock.advance(seconds)
        if fail:
            raise KeyError(seconds)
        return seconds

    assert (work(2), work(seconds=3)) == (2, 3)
    with pytest.raises(KeyError):
        work(4, fail=True)
    assert seen.seconds == [2, 3, 4]
    assert (work.__name__, work.__doc__) == ("work", "Work.")
    assert list(inspect.signature(work).parameters) == ["seconds", "fail"]


def test_a_function_that_calls_itself_is_timed_each_time(
    timer: Timer, clock: ManualClock, seen: Observed
) -> None:
    """The inner call first."""

    @timer
    def work(depth: int) -> None:
        clock.advance(1)
        if depth:
            work(depth - 1)

    work(2)
    assert seen.seconds == [1, 2, 3]


def test_a_coroutine_is_timed_until_it_is_done(
    timer: Timer, clock: ManualClock, seen: Observed
) -> None:
    """Not until it is made; also where it is cancelled, and of a partial or a callable object."""

    @timer
    async def work(turns: int) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
            clock.advance(1)
        return turns

    class Callable:
        async def __call__(self, turns: int) -> int:
            return await work(turns)

    async def main() -> None:
        made = work(3)
        clock.advance(100)
        assert await made == 3
        assert await timer(functools.partial(work, 2))() == 2
        assert await timer(Callable())(1) == 1
        task = asyncio.ensure_future(work(50))
        for _ in range(6):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert inspect.iscoroutinefunction(work)
    asyncio.run(main())
    assert seen.seconds == [3, 2, 2, 1, 1, 5]


def test_a_generator_is_timed_from_its_first_value_to_its_end(
    timer: Timer, clock: ManualClock, seen: Observed
) -> None:
    """With the time that whoever takes the values needs; what is sent and returned stays."""

    @timer
    def work() -> Any:
        clock.advance(1)
        got = yield 1
        yield got
        return 7

    generator = work()
    clock.advance(100)
    assert next(generator) == 1
    clock.advance(5)
    assert generator.send("x") == "x"
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == 7
    assert seen.seconds == [6]
    other = work()
    next(other)
    other.close()
    assert seen.seconds == [6, 1]


def test_what_cannot_be_decorated_is_refused(timer: Timer) -> None:
    """With what to do instead."""

    async def work() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(TypeError, match="use `with` in its body"):
        timer(work)
    with pytest.raises(TypeError, match="decorates a function, not int"):
        timer(5)  # type: ignore[type-var]
    method: Any
    for method in (staticmethod(work), classmethod(work)):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=f"@{type(method).__name__} goes above it"):
            timer(method)


# Where the duration cannot be stored


def test_an_error_of_the_store_hides_none_of_what_was_timed(clock: ManualClock) -> None:
    """Which is the one to be told; without one, that of the store is."""

    class Away:
        def observe(self, value: float) -> None:
            raise StoreUnavailable("here", f"{value}")

    timer = Timer(Away(), clock.monotonic)

    @timer
    def work(error: Exception | None) -> None:
        if error:
            raise error

    with pytest.raises(KeyError):
        work(KeyError())
    with pytest.raises(StoreUnavailable):
        work(None)
    with pytest.raises(KeyError), timer:
        raise KeyError
    with pytest.raises(StoreUnavailable), timer:
        pass


# Of a meter


def test_a_meters_timer_goes_by_its_clock_and_observes_by_name() -> None:
    """With labels; the same histogram as any other way to observe."""
    meter = MemoryMeter()
    with meter.timer("work_seconds", labels={"a": "b"}):
        meter.clock.advance(1.5)
        meter.clock.set_wall(0)  # somebody sets the clock
    meter.histogram('work_seconds{a="b"}').observe(2)
    meter.observe("work_seconds", 2.5, labels={"a": "b"})
    assert meter.observed("work_seconds", labels={"a": "b"}) == [1.5, 2.0, 2.5]
