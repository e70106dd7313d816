"""The public names."""

import dataclasses
import inspect
import typing
from collections.abc import Iterator

import redmeter
from redmeter import Meter, results
from redmeter.results import explanation

#: All public names.
PUBLIC = {name: getattr(redmeter, name) for name in redmeter.__all__} | {
    name: getattr(results, name) for name in results.__all__
}
#: Modules of values, whose fields are public as well.
VALUES = ("redmeter.results", "redmeter.types")


def ours(hint: object) -> Iterator[type]:
    """Yield the classes of this library that a type mentions."""
    if isinstance(hint, type) and hint.__module__.startswith("redmeter."):
        yield hint
    for part in typing.get_args(hint):
        yield from ours(part)


def mentioned(kind: type) -> set[type]:
    """Return the classes that a class has to do with: of its calls, and of fields of a value."""
    members = [inspect.getattr_static(kind, name) for name in dir(kind) if name[0] != "_"]
    calls = [m.fget if isinstance(m, property) else m for m in members]
    # Results are imported with their first use.
    late = vars(explanation) | PUBLIC
    told = [typing.get_type_hints(call, localns=late) for call in calls if inspect.isfunction(call)]
    if kind.__module__.startswith(VALUES):
        told.append(typing.get_type_hints(kind))
    return {found for hints in told for hint in hints.values() for found in ours(hint)}


def test_what_a_meter_takes_and_returns_has_a_public_name() -> None:
    """So that it can be named in annotations; what values consist of included."""
    waiting: set[type] = mentioned(Meter)
    seen: set[type] = {Meter}
    while waiting:
        kind = waiting.pop()
        seen.add(kind)
        if kind.__module__.startswith(VALUES):
            waiting |= mentioned(kind) - seen
    assert {kind.__name__ for kind in seen} <= PUBLIC.keys()
    assert {"HourlyStats", "Loss", "Timer"} <= {kind.__name__ for kind in seen}


def test_results_hold_tuples_not_lists() -> None:
    """A frozen result cannot be changed through its fields."""
    kinds = PUBLIC.values()
    hints = [typing.get_type_hints(kind) for kind in kinds if dataclasses.is_dataclass(kind)]
    assert len(hints) > 30
    lists = [field for each in hints for field, hint in each.items() if "list[" in str(hint)]
    assert lists == []


def test_all_names_are_there_in_order() -> None:
    """Each of them once."""
    for module in (redmeter, results):
        assert all(hasattr(module, name) for name in module.__all__)
        assert module.__all__ == sorted(set(module.__all__))
