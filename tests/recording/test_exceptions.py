"""Exceptions that wait in memory: counted once for each object, bounded, and still all there."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from redmeter.recording.logging.exceptions import (
    MAX_OCCURRENCES,
    MAX_WAITING,
    RECORDED_BY,
    Occurrence,
    OccurrencesByInterval,
    PendingExceptions,
    occurrence,
    redact_exceptions,
)
from redmeter.recording.logging.redact import MessageRules
from redmeter.recording.logging.tracebacks import Origin, origin_of
from redmeter.stored.exception import FINEST, MAX_COARSE, Details, Occurrences, group_of
from redmeter.stored.keys import OTHER

NOW = 1_700_000_400.0
COARSE = group_of(("coarse",), ("E", "f"))


def fresh(number: int, group: str) -> Occurrence:
    """Return an exception as it waits."""
    origin = Origin("E", str(number), "", "[E]", "f", ())
    return Occurrence(NOW + number * 1e-3, NOW, 1, 0, group, "", origin, "traceback")


def redacted(events: list[Occurrence]) -> OccurrencesByInterval:
    """Return exceptions as they are stored."""
    return redact_exceptions(events, MessageRules(), "", lambda *_: None)


def test_an_object_counts_once_for_each_meter() -> None:
    """The first to know the route adds it; another meter counts for itself."""
    error = ValueError("x")
    first = occurrence(1, error, NOW, "", None)
    second = occurrence(1, error, NOW, "/buy", None)
    assert first is not None
    assert second is not None
    assert (first.events, second.events, second.on_route) == (1, 0, 1)
    assert second.group == first.group
    assert occurrence(1, error, NOW, "/buy", None) is None
    assert occurrence(2, error, NOW, "/buy", None) is not None


KEPT = LookupError("kept at module level")


def deep() -> None:
    """Raise the instance that is kept."""
    raise KEPT


def other() -> None:
    """Raise it in another place."""
    raise KEPT


def handled(function: Callable[[], None], route: str) -> list[int]:
    """Return how often a request counts it: in a log, after it is raised on, and at the end."""
    counts = []
    try:
        try:
            try:
                function()
            except LookupError as error:
                counts.append(occurrence(5, error, NOW, "", None))
                raise error  # a statement too, of what was just handled
        except LookupError as error:
            counts.append(occurrence(5, error, NOW, "", None))
            raise
    except LookupError as error:
        counts.append(occurrence(5, error, NOW, route, None))
        counts.append(occurrence(5, error, NOW, route, None))
    return [0 if each is None else each.events for each in counts]


def test_an_instance_that_is_raised_again_counts_again() -> None:
    """Once for each time that the application raises it, in the same group."""
    for route in ("/a", "/b", "/b"):
        assert handled(deep, route) == [1, 0, 0, 0]
    group = vars(KEPT)[RECORDED_BY][5][0]
    assert handled(other, "/a") == [0, 0, 0, 0]  # a new place may be a relay of the first raise
    for function in (other, deep, deep, other):
        assert handled(function, "/a") == [1, 0, 0, 0]
    assert vars(KEPT)[RECORDED_BY][5][0] == group
    loop, error = [], KeyError()
    for _ in range(3):
        try:
            raise error
        except KeyError:
            loop.append(occurrence(5, error, NOW, "", None))
    assert [each and each.events for each in loop] == [1, 1, 1]


def test_an_exception_of_another_task_or_thread_counts_once() -> None:
    """Its result raises the same object again, in code of the standard library."""

    async def fails() -> None:
        try:
            deep_error()
        except ValueError as error:
            counts.append(occurrence(6, error, NOW, "", None))
            raise

    async def waits(task: Awaitable[None]) -> None:
        try:
            await task
        except ValueError as error:
            counts.append(occurrence(6, error, NOW, "", None))
            raise

    async def main() -> None:
        task = asyncio.ensure_future(fails())
        results = await asyncio.gather(waits(task), waits(task), return_exceptions=True)
        try:
            raise next(each for each in results if each is not None)
        except ValueError as error:
            counts.append(occurrence(6, error, NOW, "/buy", None))

    def deep_error() -> None:
        raise ValueError

    counts: list[Occurrence | None] = []
    asyncio.run(main())
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(deep_error)
        for _ in range(3):
            with pytest.raises(ValueError) as caught:
                future.result()
            counts.append(occurrence(6, caught.value, NOW, "", None))
    events = [0 if each is None else each.events for each in counts]
    assert events == [1, 0, 0, 0, 1, 0, 0]


def test_an_exception_that_takes_no_attributes_is_recorded() -> None:
    """Whatever its class does."""

    class Odd(Exception):
        __dict__ = property(lambda _: 1 / 0)

    found = occurrence(1, Odd("odd"), NOW, "", None)
    assert found is not None
    assert found.events == 1


def test_a_recursion_is_one_function_at_any_depth() -> None:
    """So that a group does not depend on how deep it was."""

    def descend(depth: int) -> None:
        if not depth:
            raise KeyError
        descend(depth - 1)

    groups = set()
    for depth in (1, 5, 200):
        try:
            descend(depth)
        except KeyError as error:
            origin = origin_of(error)
            groups.add(group_of(*origin.key))
            assert origin.function.endswith("<locals>.descend")
    assert len(groups) == 1


def test_a_flood_that_waits_loses_texts_before_groups() -> None:
    """The first stay as they are; beyond the most that wait, the coarse group counts."""
    known = [fresh(0, "f" * 16)] * 50
    flood = [fresh(number + 1, f"{number:016x}") for number in range(MAX_WAITING + 50)]
    found = redacted(known + flood[:1200])
    ((start, groups),) = found.items()
    assert start % FINEST == 0
    assert len(groups) == 1201
    assert groups["f" * 16].events == 50
    whole = [one for one in groups.values() if one.details and one.details.traceback]
    assert len(whole) == MAX_OCCURRENCES
    ((_, groups),) = redacted(known + flood + known).items()
    assert groups["f" * 16].events == 100
    assert groups[COARSE].events == 51
    assert groups[COARSE].details is not None
    assert sum(one.events for one in groups.values()) == MAX_WAITING + 150
    assert len(groups) == MAX_WAITING + 1
    pending = PendingExceptions()
    pending.add(start, groups)
    assert pending.events == MAX_WAITING + 150
    assert len(pending) == MAX_WAITING + 1


def test_too_many_coarse_groups_that_wait_are_other() -> None:
    """No count is lost."""
    flood = [
        fresh(number, f"{number:016x}")._replace(origin=Origin("E", "", "", "", str(number), ()))
        for number in range(MAX_WAITING + MAX_COARSE + 7)
    ]
    ((_, groups),) = redacted(flood).items()
    assert groups[OTHER].events == 7
    assert len(groups) == MAX_WAITING + MAX_COARSE + 1


def test_under_memory_pressure_tracebacks_go_first_and_no_count() -> None:
    """Then groups become (other)."""
    pending = PendingExceptions()
    details = Details("E", "m", "p", "[E]", "f", "x" * 1000)
    for number in range(20):
        one = Occurrences(2, NOW, NOW, details, {}, {}, COARSE)
        pending.add(300 * (number % 2), {f"{number:016x}": one})
    full = pending.bytes
    freed, lost = pending.give_up_texts(5_000)
    assert freed >= 5_000
    assert (lost, pending.events) == (0, 40)
    assert pending.bytes < full
    assert pending.give_up_patterns(2_000) >= 2_000
    assert {COARSE, OTHER} & {group for _, groups in pending for group in groups} == {COARSE}
    assert pending.events == 40
    assert pending.give_up_patterns(full) > 0
    assert pending.events == 40
    assert {group for _, groups in pending for group in groups} == {OTHER}


def test_a_part_that_is_cut_has_the_oldest_groups() -> None:
    """Both parts together have everything."""
    pending = PendingExceptions()
    for number in range(10):
        one = Occurrences(1, NOW, NOW, None, {}, {})
        pending.add(300 * (number // 5), {f"{number:016x}": one})
    part = pending.cut(7)
    assert (len(part), len(pending), part.events, pending.events) == (7, 3, 7, 3)
    assert (part.first, pending.first) == (0, 300)
    assert pending.older(600) == 3
