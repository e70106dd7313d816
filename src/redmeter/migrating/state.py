"""How far a move has come, as it is written down in FROM: see journal.py. Pure."""

import json
from dataclasses import dataclass, field
from typing import Any

from redmeter.migrating.report import MigrationError
from redmeter.migrating.walk import FAMILIES


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
    #: When it was taken, Unix seconds by this machine's clock.
    since: float = 0.0

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps([self.family, self.number, self.units, self.done, self.since])

    @classmethod
    def read(cls, text: bytes) -> "Group":
        """Read what text() returned."""
        family, number, units, done, since = json.loads(text)
        if family not in FAMILIES or not (isinstance(number, int) and isinstance(done, int)):
            raise ValueError(family)
        pairs = [(str(name), int(size)) for name, size in units]
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
        MigrationError: another program has written there.
    """
    text = {name.decode(errors="replace"): value for name, value in fields.items()}
    group = text.get("group")
    try:
        state = State(
            id=text.get("id", b"").decode(),
            target=text.get("target", b"").decode(),
            number=int(text.get("number", b"1")),
            group=None if group is None else Group.read(group),
            sums=json.loads(text.get("sums", b"{}")),
            complete=text.get("complete") == b"1",
        )
        for name, value in text.items():
            if state.id and name.startswith(f"left:{state.id}:"):
                state.left |= json.loads(value)
        if not isinstance(state.sums, dict):
            raise ValueError("sums are by name")
    except (ValueError, TypeError, RecursionError):
        raise MigrationError(
            "what an earlier run has written down in FROM, under moving:, cannot be read: another "
            "program has written there. If nothing is under way, delete that key, and begin anew"
        ) from None
    return state
