"""Exceptions that wait in memory: counted once for each object, bounded, and still all there."""

from redmeter.format.exception import FINEST, MAX_GROUPS, OTHER, Details, Occurrences, group_of
from redmeter.recording.exceptions import (
    MANY,
    Found,
    Occurrence,
    PendingExceptions,
    occurrence,
    redact_exceptions,
)
from redmeter.recording.messages.redact import MessageRules
from redmeter.recording.messages.tracebacks import Origin, origin_of

NOW = 1_700_000_400.0


def fresh(number: int, group: str) -> Occurrence:
    """Return an exception as it waits."""
    origin = Origin("E", str(number), "", "[E]", (), ())
    return Occurrence(NOW + number * 1e-3, NOW, 1, 0, group, "", origin, "traceback")


def redacted(events: list[Occurrence]) -> Found:
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
            groups.add(group_of(origin.kind, origin.functions))
            assert origin.functions[-1].endswith("<locals>.descend")
    assert len(groups) == 1


def test_too_many_groups_are_counted_as_other() -> None:
    """The newest stay; no exception is lost."""
    found = redacted([fresh(number, f"{number:016x}") for number in range(MANY + 50)])
    ((start, groups),) = found.items()
    assert start % FINEST == 0
    assert groups[OTHER].events >= 50
    assert sum(one.events for one in groups.values()) == MANY + 50
    assert len(groups) <= MAX_GROUPS + 1


def test_under_memory_pressure_tracebacks_go_first_and_no_count() -> None:
    """Then groups become (other)."""
    pending = PendingExceptions()
    details = Details("E", "m", "p", "[E]", "f", "x" * 1000)
    for number in range(20):
        one = Occurrences(2, NOW, NOW, details, {}, {})
        pending.add(300 * (number % 2), {f"{number:016x}": one})
    full = pending.bytes
    freed, lost = pending.give_up_texts(5_000)
    assert freed >= 5_000
    assert (lost, pending.events) == (0, 40)
    assert pending.bytes < full
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
