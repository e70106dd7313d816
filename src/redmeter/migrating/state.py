"""How far a move has come, as it is written down in FROM: see journal.py. Pure.

Another program, or a newer version of this one, may have written there. So all of it is looked at
before anything is moved by it, and what is not understood to the last field is refused.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from redmeter.migrating.families import Sliced
from redmeter.migrating.report import MigrationError, Sum
from redmeter.migrating.walk import FAMILIES

#: What a number of a batch is below; and how many batches a group has at most.
_NUMBERS, ROUNDS = 2**53, 2**20

#: What is raised where it is not of the form.
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)


@dataclass(slots=True)
class Group:
    """What was taken together and is under way."""

    family: str
    #: Of its first batch.
    number: int
    #: Names and sizes of its units.
    units: list[tuple[str, int]]
    #: How many of its rounds have arrived.
    done: int = 0
    #: When it was taken, or sent long after that; Unix seconds by this machine's clock.
    since: float = 0.0

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps([self.family, self.number, self.units, self.done, self.since])

    @classmethod
    def read(cls, text: bytes) -> "Group":
        """Read what text() returned."""
        family, number, units, done, since = json.loads(text)
        _require(isinstance(family, str) and family in FAMILIES)
        _require(_is_count(number, _NUMBERS) and number > 0 and _is_count(done, ROUNDS))
        _require(isinstance(units, list) and math.isfinite(since))
        pairs = [(_name(family, name), size) for name, size in units]
        _require(all(_is_count(size, _NUMBERS) for _, size in pairs))
        return cls(family, number, pairs, done, float(since))


@dataclass(slots=True)
class State:
    """What is written down."""

    id: str = ""
    target: str = ""
    number: int = 1
    group: Group | None = None
    sums: dict[str, Any] = field(default_factory=dict)
    #: Key of what was taken and stays -> kind and name.
    left: dict[str, str] = field(default_factory=dict)
    complete: bool = False


def arrived_in(state: State) -> dict[int, int]:
    """Return partition of TO -> highest number of which it has said that it has it."""
    return {int(at): number for at, number in state.sums.get("arrived", {}).items()}


def first_of(state: State) -> int:
    """Return the number of the move's first batch."""
    first: int = state.sums.get("first", 1 if state.sums else state.number)
    return first


def state_of(fields: dict[bytes, bytes]) -> State:
    """Read what is written down.

    Raises:
        MigrationError: another program has written there, or a newer version.
    """
    text = {name.decode(errors="replace"): value for name, value in fields.items()}
    group = text.get("group")
    try:
        state = State(
            id=text.get("id", b"").decode(),
            target=text.get("target", b"").decode(),
            number=_number(text.get("number", b"1")),
            group=None if group is None else Group.read(group),
            sums=_sums(json.loads(text.get("sums", b"{}"))),
            complete=text.get("complete") == b"1",
        )
        for name, value in text.items():
            if state.id and name.startswith(f"left:{state.id}:"):
                state.left |= _left(json.loads(value))
        _require(state.group is None or state.group.number == state.number)
    except UNREADABLE:
        raise unreadable() from None
    return state


def unreadable() -> MigrationError:
    """Return the error that what is written down is not understood."""
    return MigrationError(
        "what an earlier run has written down in FROM, under moving:, cannot be read: another "
        "program or a newer version has written there. If nothing is under way, delete that "
        "key, and begin anew"
    )


# --- The form of it ------------------------------------------------------------------------


def _require(right: bool) -> None:
    if not right:
        raise ValueError("it is not of the form")


def _is_count(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value < most


def _number(text: bytes) -> int:
    _require(text.isdigit() and len(text) < 20 and 0 < int(text) < _NUMBERS)
    return int(text)


def _name(family: str, name: Any) -> str:
    """Return the name of a unit, if it is one."""
    _require(isinstance(name, str))
    name.encode()  # no half of a pair
    _require(not isinstance(FAMILIES[family], Sliced) or FAMILIES[family].parse(name) is not None)
    return str(name)


def _sums(found: Any) -> dict[str, Any]:
    """Return what was told so far, if it is that."""
    _require(isinstance(found, dict) and all(_SUMS[name](one) for name, one in found.items()))
    return dict(found)


def _are_sums(found: Any) -> bool:
    names = {one.name for one in fields(Sum)}
    for kind, by_precision in found.items():
        _require(kind in FAMILIES)
        for precision, one in by_precision.items():
            _require(_is_digits(precision) and one.keys() <= names)
            _require(all(type(value) is int for value in one.values()))
    return True


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10


def _is_number(found: Any) -> bool:
    return _is_count(found, _NUMBERS)


#: What `sums` has -> whether it is that.
_SUMS: dict[str, Callable[[Any], bool]] = {
    "sums": _are_sums,
    "pieces": _is_number,
    "batches": _is_number,
    "first": _is_number,
    "acknowledged": lambda found: isinstance(found, list) and all(map(_is_number, found)),
    "arrived": lambda found: all(_is_digits(at) and _is_number(n) for at, n in found.items()),
}


def _left(found: Any) -> dict[str, str]:
    for text in (part for pair in found.items() for part in pair):
        text.encode()
    return dict(found)
