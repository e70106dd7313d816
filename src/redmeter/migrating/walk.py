"""The walk through a store that is moved: which units there are, and how large they are.

By SCAN, in small steps, and not by the indexes: statistics have none, other programs' messages have
no entry, and a hash whose entry was lost shall come along. SCAN finds what is there throughout;
what comes up behind it is found by the next round.

Where there is no prefix, the database may be another program's too. There a counter is one that
`known:` names, and messages are those of a severity that is known.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redmeter.errors import StoreError, StoreRefused
from redmeter.keys import Kept
from redmeter.kinds.message import SEVERITY, parse_name
from redmeter.migrating.families import Counters, Family, Gauges, Histograms, Totals
from redmeter.migrating.others import Frequencies, Marks, Recent, Samples, Statistics
from redmeter.store import Store
from redmeter.store.replies import Command, Reply, pairs, raised

#: Keys that are looked through by one SCAN, and grand totals that are taken at once.
PAGE, _TOTALS_PAGE = 500, 200

#: All kinds, by their name.
FAMILIES: dict[str, Family] = {
    each.name: each
    for each in (
        Counters(),
        Gauges(),
        Histograms(),
        Statistics(),
        Frequencies(),
        Recent(),
        Samples(),
        Totals(),
        Marks(),
    )
}
_TOTALS, _MARKS = FAMILIES["totals"], FAMILIES["marks"]
_MESSAGES = frozenset(("patterns", "messages", "samples"))


class Unit(NamedTuple):
    """What is taken at once."""

    family: Family
    name: str
    #: How many items it has, about.
    size: int
    #: Fields that are taken of a hash; () stands for whole keys.
    fields: tuple[bytes, ...] = ()


class Passed(NamedTuple):
    """What is not moved, and why: "" where it is none of ours, else TO does not keep it."""

    family: Family
    name: str
    why: str


class Walk:
    """Goes through a store, again and again.

    Args:
        source: on one server.
        kept: what the other store keeps.
    """

    def __init__(self, source: Store, kept: Kept) -> None:
        self._store = source
        self._kept = kept
        keys = source.keys
        self._heads = [
            (each.head(keys).encode(), each)
            for each in FAMILIES.values()
            if each not in (_TOTALS, _MARKS)
        ]
        self._bare = not keys.prefix

    def total(self) -> int:
        """Return about how many units there are; each grand total is one. Of some kinds: listed."""
        keys = self._store.keys
        indexes = keys.known, keys.gauges, keys.hists, keys.messages, keys.messages, keys.messages
        commands: list[Command] = [("ZCARD", index) for index in indexes]
        replies = self._store.ask([*commands, ("HLEN", keys.total)])
        return sum(reply for reply in replies if isinstance(reply, int))

    def pages(self) -> Iterator[list[Unit | Passed]]:
        """Yield all there is, page by page; some may come twice."""
        for found in self._scanned():
            yield self._sized(found)
        yield self._sized(dict.fromkeys([(_MARKS, "")]))
        yield from self._totals()

    def _scanned(self) -> Iterator[dict[tuple[Family, str], None]]:
        cursor = b"0"
        words: tuple[str, ...] = ("COUNT", str(PAGE))
        if not self._bare:
            words = ("MATCH", _escaped(self._store.keys.prefix) + "*", *words)
        while True:
            cursor, page = raised(self._store.ask([("SCAN", cursor, *words)])[0])
            yield dict.fromkeys(one for key in page if (one := self._unit(key)) is not None)
            if int(cursor) == 0:
                return

    def _unit(self, key: bytes) -> tuple[Family, str] | None:
        for head, family in self._heads:
            if key.startswith(head):
                try:
                    name = family.parse(key[len(head) :].decode())
                except UnicodeDecodeError:
                    name = None
                return None if name is None else (family, name)
        return None

    def _sized(self, found: dict[tuple[Family, str], None]) -> list[Unit | Passed]:
        """Ask how large units are; leave out what is not there any more."""
        made: list[Unit | Passed] = []
        commands: list[Command] = []
        asked: list[tuple[Family, str, int]] = []
        keys = self._store.keys
        for family, name in found:
            retention, precision = family.kept(self._kept), family.precision(name)
            if retention is not None and precision not in retention:
                made.append(Passed(family, name, "unkept"))
                continue
            own = family.sizes(keys, name)
            if self._bare and isinstance(family, Counters):
                own.append(("ZSCORE", keys.known, name))
            elif self._bare and family.name in _MESSAGES:
                own.append(("ZSCORE", keys.messages, name))
            commands += own
            asked.append((family, name, len(own)))
        replies = iter(self._store.ask(commands) if commands else [])
        for family, name, count in asked:
            some = [next(replies) for _ in range(count)]
            size = self._size(family, name, some)
            if size is None:
                made.append(Passed(family, name, ""))
            elif size:
                made.append(Unit(family, name, size))
        return made

    def _size(self, family: Family, name: str, replies: Sequence[Reply]) -> int | None:
        for reply in replies:
            if isinstance(reply, StoreRefused) and reply.code == "WRONGTYPE":
                return None
            if isinstance(reply, StoreError):
                raise reply
        own = replies
        if self._bare and (isinstance(family, Counters) or family.name in _MESSAGES):
            *own, score = replies
            known = score is not None
            if family.name in _MESSAGES:
                known = known or parse_name(name)[1] in SEVERITY.values()
            if not known:
                return None
        return family.size(own)

    def _totals(self) -> Iterator[list[Unit | Passed]]:
        cursor, key = b"0", self._store.keys.total
        while True:
            (reply,) = self._store.ask([("HSCAN", key, cursor, "COUNT", str(_TOTALS_PAGE))])
            cursor, page = raised(reply)
            fields = [name for name, _ in pairs(page)]
            # A small hash comes at once, however many are asked for.
            for at in range(0, len(fields), _TOTALS_PAGE):
                some = tuple(fields[at : at + _TOTALS_PAGE])
                yield [Unit(_TOTALS, "", len(some), some)]
            if int(cursor) == 0:
                return


def _escaped(prefix: str) -> str:
    """Return a prefix as it stands in a pattern."""
    return "".join(f"\\{c}" if c in "*?[]\\^-" else c for c in prefix)
