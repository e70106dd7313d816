"""Which exceptions are one group: as a person would put them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from redmeter import Meter
from redmeter.recording.logging.tracebacks import origin_of
from redmeter.stored.exception import group_of
from redmeter.testing import MemoryMeter

EMPTY: dict[str, int] = {}


def group(call: Callable[..., object], *args: Any) -> str:
    """Return the group of the exception that a call raises."""
    try:
        call(*args)
    except Exception as error:  # noqa: BLE001 - of any kind
        return group_of(*origin_of(error).key)
    raise AssertionError("it did not raise")


class ApiError(Exception):
    """An error of a client."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        if code is not None:
            self.status_code = code


def by_line(status: int) -> None:
    """Raise in a line for each status."""
    if status == 400:
        raise ApiError("bad request")
    if status == 404:
        raise ApiError("not found")
    raise ApiError("failed")


def by_value(status: int) -> None:
    """Raise in one line."""
    raise ApiError("failed", status)


def by_text(status: int) -> None:
    """Raise in one line, with a text."""
    raise ApiError(f"{status} Client Error for /orders/17")


def by_args(status: int) -> None:
    """Raise in one line, with two arguments."""
    raise OSError(status, "failed")


@pytest.mark.parametrize("client", [by_line, by_value, by_text, by_args])
def test_errors_of_one_helper_are_told_apart(client: Callable[[int], None]) -> None:
    """A client that raises for 400, 404 and 500."""
    assert len({group(client, status) for status in (400, 404, 500)}) == 3
    assert group(client, 404) == group(client, 404)


def test_a_number_that_is_no_status_does_not_group() -> None:
    """Such as that of an order."""

    def lookup(order: int) -> None:
        raise KeyError(order)

    def rows(count: int) -> None:
        raise ValueError(f"{count} rows are missing, code {count}x")

    assert len({group(lookup, order) for order in range(390, 520, 7)}) == 1
    assert len({group(rows, count) for count in range(390, 520, 7)}) == 1


def test_the_cause_counts() -> None:
    """`raise … from` a KeyError and a ZeroDivisionError."""

    def wrapped(action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:
            raise ApiError("failed") from error

    looked = group(wrapped, lambda: EMPTY["a"])
    divided = group(wrapped, lambda: 1 / 0)
    assert len({looked, divided, group(wrapped, lambda: EMPTY["b"])}) == 2


def test_the_function_of_a_library_that_raised_counts() -> None:
    """Two errors of a library below one line."""

    def load(text: str) -> None:
        json.loads(text)

    missing, extra = group(load, "x"), group(load, "1 2")
    assert missing != extra
    assert missing == group(load, "y")


SOURCE = """
def work(which):
    if which == 1:
        return {}["one"]
    if which == 2:
        return {}["two"]
"""


def test_lines_of_one_function_are_told_apart_wherever_they_are(tmp_path: Any) -> None:
    """Line numbers don't count; without its source a function is one place."""
    groups = []
    for name, head in (("a", ""), ("b", "\n\n# more\n")):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "work.py"
        file.write_text(head + SOURCE)
        space: dict[str, Any] = {"__name__": "work"}
        exec(compile(head + SOURCE, str(file), "exec"), space)  # noqa: S102 - a function of its own
        groups.append((group(space["work"], 1), group(space["work"], 2)))
    assert groups[0] == groups[1]
    assert len(set(groups[0])) == 2
    space = {"__name__": "work"}
    exec(compile(SOURCE, "/nowhere/work.py", "exec"), space)  # noqa: S102 - a function of its own
    assert group(space["work"], 1) == group(space["work"], 2)


def test_recursion_is_one_group() -> None:
    """At any depth, and at the limit, of one function or two."""

    def ping(depth: int) -> None:
        if depth == 0:
            raise ValueError
        pong(depth - 1)

    def pong(depth: int) -> None:
        if depth == 0:
            raise ValueError
        ping(depth - 1)

    def endless(depth: int) -> None:
        other(depth + 1)

    def other(depth: int) -> None:
        endless(depth + 1)

    def from_deeper(depth: int) -> None:
        if depth:
            from_deeper(depth - 1)
        endless(0)

    assert len({group(ping, depth) for depth in (0, 2, 3, 8, 9, 100, 101)}) == 1
    assert len({group(from_deeper, depth) for depth in (1, 2, 3)}) == 1


def test_what_is_numbered_at_run_time_is_one_group() -> None:
    """Classes that no module has, and functions that are compiled from text."""

    def dynamic(name: str) -> None:
        raise type(name, (Exception,), {})

    assert len({group(dynamic, f"Error{number}") for number in range(20)}) == 1
    assert len({group(dynamic, f"Order_{number:08x}af1_Failed") for number in range(20)}) == 1
    assert group(dynamic, "NoSuchKey") != group(dynamic, "AccessDenied")
    groups = set()
    for number in range(20):
        space: dict[str, Any] = {}
        exec(f"def handler_{number}():\n    raise KeyError({number})", space)  # noqa: S102 - a function of its own
        groups.add(group(space[f"handler_{number}"]))
        code = compile(f"def run():\n    raise KeyError({number})", f"<made {number}>", "exec")
        exec(code, space)  # noqa: S102 - a function of its own
        groups.add(group(space["run"]))
    assert len(groups) == 2


class Grouped(Exception):
    """Has a group of its own."""

    redmeter_group = "provider"


class Hostile(Exception):
    """Computes its attributes, and fails."""

    @property
    def redmeter_group(self) -> str:
        """Fail."""
        raise ZeroDivisionError

    @property
    def args(self) -> Any:  # type: ignore[override]
        """Fail."""
        raise ZeroDivisionError


def test_an_application_sets_the_group() -> None:
    """By an attribute of the class or by an argument, of all types; others stay apart."""
    with MemoryMeter() as meter:
        meter.record_exception(Grouped(1))
        meter.log("shop", "failed", severity="error", exception=Grouped(2))
        meter.record_exception(KeyError(), group="provider")
        again = KeyError()
        meter.record_exception(again, group="provider", route="/a")
        meter.record_exception(again)
        meter.record_exception(KeyError())
        meter.record_exception(Grouped(3), group="another")
        meter.record_exception(Hostile(), group="not taken")
        counts = sorted(one.count for one in meter.exceptions().groups)
    assert counts == [1, 1, 1, 4]
    with Meter("off") as off:
        off.record_exception(KeyError(), group="x")
