"""What a request waited for comes together, wherever it was waited for."""

import asyncio
import contextvars
import threading
import time
from typing import Any

from redmeter.integrations.shared.databases import StatementRecorder, collect, spend
from redmeter.testing import MemoryMeter


def test_what_is_spent_within_is_collected() -> None:
    """And nothing of before and after."""
    spend(1.0)
    with collect() as spent:
        assert not spent
        spend(0.5)
        spend(0.25)
    assert not spent.names()
    spend(1.0)
    assert spent
    assert (spent.seconds, spent.statements) == (0.75, 0)


def test_what_is_spent_counts_for_all_that_is_around_it() -> None:
    """A task that runs within a request counts for both."""
    with collect() as outer:
        with collect() as inner:
            spend(1.0)
        spend(2.0)
    assert (inner.seconds, outer.seconds) == (1.0, 3.0)


def test_tasks_and_threads_with_a_copy_of_the_context_count() -> None:
    """As those of asyncio.to_thread() have."""

    async def query() -> None:
        await asyncio.sleep(0)
        spend(1.0)

    async def serve() -> float:
        with collect() as spent:
            await asyncio.gather(*[query() for _ in range(10)])
            await asyncio.gather(*[asyncio.to_thread(spend, 1.0) for _ in range(10)])
        return spent.seconds

    assert asyncio.run(serve()) == 20.0


def test_statements_with_a_name_are_counted_by_it() -> None:
    """For all that is around them."""
    with collect() as outer:
        spend(0.1, 1, "SELECT a")
        with collect() as inner:
            spend(0.1, 2, "SELECT b")
        spend(0.1)
        spend(0.1, 1, "SELECT a")
    assert (inner.names(), outer.names()) == ({"SELECT b": 2}, {"SELECT a": 2, "SELECT b": 2})


class Hesitant(dict[Any, tuple[float, int]]):
    """A dictionary that lets other threads go first between a look and what comes of it."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Look, and hesitate."""
        found = super().get(key, default)
        time.sleep(0.0005)
        return found


def test_side_by_side_nothing_is_lost() -> None:
    """However threads take turns."""
    with collect() as spent:
        spent._parts = Hesitant()
        contexts = [contextvars.copy_context() for _ in range(4)]
        threads = [
            threading.Thread(target=lambda c=c: [c.run(spend, 1.0) for _ in range(20)])
            for c in contexts
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert spent.seconds == 80.0


def test_what_comes_after_the_end_counts_for_what_is_around() -> None:
    """A background task that goes on after the answer."""

    async def serve() -> tuple[float, float]:
        with collect() as outer:
            with collect() as inner:
                spend(1.0)
                later = asyncio.create_task(background())
            await later
        return inner.seconds, outer.seconds

    async def background() -> None:
        await asyncio.sleep(0)
        spend(5.0)

    assert asyncio.run(serve()) == (1.0, 6.0)


def test_what_was_ended_in_another_task_is_not_around_anything() -> None:
    """Or each request that is served by one task would hold all of those before it."""

    async def serve() -> None:
        for _ in range(3):
            spent = collect()
            await asyncio.create_task(end(spent))
        assert collect()._outer is None

    async def end(spent: object) -> None:
        spent.end()  # type: ignore[attr-defined]

    contextvars.Context().run(asyncio.run, serve())  # in which nothing has begun


def test_statements_are_counted_whoever_sends_them() -> None:
    """One that was sent for many rows is one; one that failed counts as well."""
    queries = StatementRecorder(MemoryMeter())

    def work() -> None:
        for error in (None, KeyError()):
            queries.took("SELECT 1", 0.5, many=True, error=error)

    with collect() as spent:
        assert spent.statements == 0
        work()
        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
        thread.start()
        thread.join()
    assert (spent.statements, spent.seconds) == (4, 2.0)
