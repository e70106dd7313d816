"""Results and errors of a migration."""

from dataclasses import dataclass, field

from redmeter.errors import RedmeterError

#: Foreign keys that a report names.
FOREIGN_SHOWN = 20


class MigrationError(RedmeterError):
    """A migration cannot begin or go on.

    Attributes:
        reason: a word that programs go by.
    """

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class Interrupted(RedmeterError):
    """Somebody asked the migration to stop. The source is in use again, and unchanged."""

    def __init__(self) -> None:
        super().__init__("interrupted: the source is in use again, and unchanged")


@dataclass(slots=True)
class Survey:
    """The data to copy, and how long writers would have to wait."""

    #: Family of keys, e.g. `count`, to their number; indexes and totals are not counted.
    keys: dict[str, int]
    #: An estimate, seconds.
    freeze_seconds: float
    #: Whether the source was moved already, or a part of it.
    moved: bool

    @property
    def total(self) -> int:
        """How many keys there are."""
        return sum(self.keys.values())


@dataclass(slots=True)
class MigrationReport:
    """The result of a migration."""

    #: ID of the move, which the source names from now on.
    move: str = ""
    #: Family of keys to the number of keys that were copied, e.g. {"count": 7000}.
    keys: dict[str, int] = field(default_factory=dict)
    #: Fields, members and entries in them, also in indexes and totals.
    values: int = 0
    #: Keys of other programs that have the names of Redmeter's, by type or content: not copied. The
    #: number, and the first of them.
    foreign: int = 0
    foreign_keys: list[str] = field(default_factory=list)
    #: Primary of the source -> whether a replica has the seal: "replicated", "no replica", or
    #: "unconfirmed" if none confirmed it in time.
    seal: dict[str, str] = field(default_factory=dict)
    #: How long the source was frozen, and how long everything took, seconds.
    freeze_seconds: float = 0.0
    seconds: float = 0.0
    #: Whether an earlier run had copied everything, and this one only opened the target.
    already: bool = False
    #: Keys of the old copy that were removed.
    erased: int = 0

    @property
    def total(self) -> int:
        """How many keys were copied."""
        return sum(self.keys.values())

    def note_foreign(self, key: bytes) -> None:
        """Note a key that was not copied."""
        self.foreign += 1
        if len(self.foreign_keys) < FOREIGN_SHOWN:
            self.foreign_keys.append(ascii(key.decode(errors="replace"))[1:-1])
