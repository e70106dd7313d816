"""The table of key families: all keys that a store has.

A family is a kind of key: `count:` for the hashes of counters, `known:` for their index. Key names,
shards, cleaning, forgetting, name resolution, migration and `redmeter doctor` go through this table
instead of naming families. docs/stored-format.md describes the content of each key.

Some families form a group: an index, and the data families that it lists. A member of the index is
the rest of a data key, e.g. `60:hits` in `known:` for `count:60:hits`.

Pure: no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

#: The text after a family's name, or a member of an index.
Layout = Literal[
    "", "PRECISION:NAME", "NAME", "LOGGER:SEVERITY", "LOGGER", "PRODUCER", "GROUP", "MINUTE"
]
#: Kinds of series, and of records, by the names that users know them by.
SeriesKindName = Literal["counter", "gauge", "histogram"]
RecordKind = Literal["", SeriesKindName, "message", "exception", "mark"]

_Text = TypeVar("_Text", str, bytes)


@dataclass(frozen=True, slots=True)
class Family:
    """Keys of one kind.

    The rest of a key, or a member of an index, determines three things:

    - The shard, on a cluster: that of its NAME or LOGGER. See `shard` for families with neither.
    - `redmeter clean --forget` removes the keys, members and fields of a NAME, those of a LOGGER
      with `--forget-logger`, those of a GROUP with `--forget-exception`.
    - The cleaner walks each index of PRECISION:NAME. It removes intervals outside the retention
      from the hashes, and members whose hashes are gone. Writers trim and expire all others.
    """

    #: The word after the prefix; in the key, a colon follows.
    name: str
    type: Literal["hash", "zset", "list", "string"]
    kind: RecordKind = ""
    #: The rest of its keys, after the name and the colon.
    rest: Layout = ""
    #: The members of an index, or the fields of totals. Each shard has those of its names.
    members: Layout = ""
    #: The index whose members list its keys.
    index: str = ""
    #: Whether its keys have a time to live, if the prefix is not empty.
    expires: bool = True
    #: Whether Redis stores it compactly once it has no more fields than the retention allows.
    compact: bool = False
    #: Whether it is of the layout of "Redis in Action": other programs write it too, and with an
    #: empty prefix it has no prefix at all.
    shared: bool = False
    #: Whether there is one key for the current hour and one for the hour before, next to strings
    #: that date them: see Keys.hourly_parts().
    hourly: bool = False
    #: The shard of keys without NAME and LOGGER: "members" are spread; or the keys are in the
    #: "first" shard; or "every" shard has its own.
    shard: Literal["members", "first", "every"] = "members"
    #: Whether a migration copies it. The others describe the old store.
    copied: bool = True


_ENTRY: Final = "PRECISION:NAME"
_SOURCE: Final = "LOGGER:SEVERITY"

#: Name -> family. An index comes before the families it lists.
FAMILIES: Final = {
    family.name: family
    for family in (
        Family("known", "zset", "counter", members=_ENTRY, expires=False, shared=True),
        Family("count", "hash", "counter", _ENTRY, index="known", compact=True, shared=True),
        Family("total", "hash", "counter", members="NAME", expires=False),
        Family("gauges", "zset", "gauge", members=_ENTRY, expires=False),
        Family("gauge", "hash", "gauge", _ENTRY, index="gauges", compact=True),
        Family("hists", "zset", "histogram", members=_ENTRY, expires=False),
        Family("hist", "hash", "histogram", _ENTRY, index="hists"),
        Family("moments", "hash", "histogram", _ENTRY, index="hists"),
        Family("sums", "hash", "histogram", members="NAME", expires=False),
        Family("spreads", "hash", "histogram", members="NAME", expires=False),
        Family("stats", "zset", "histogram", "NAME", shared=True, hourly=True),
        Family("messages", "zset", "message", members=_SOURCE),
        Family("recent", "list", "message", _SOURCE, index="messages", shared=True),
        Family("common", "zset", "message", _SOURCE, index="messages", shared=True, hourly=True),
        Family("patterns", "hash", "message", _SOURCE, index="messages"),
        Family("steps", "hash", "message", _SOURCE, index="messages"),
        Family("distinct", "hash", "message", "LOGGER", index="messages"),
        Family("exceptions", "zset", "exception", members="GROUP", shard="first"),
        Family("exception", "hash", "exception", "GROUP", index="exceptions", shard="first"),
        Family("marks", "zset", "mark", shard="first"),
        Family("alerts", "hash", shard="first"),
        Family("notices", "hash", shard="first"),
        Family("transitions", "list", shard="first"),
        Family("writers", "zset", shard="first"),
        Family("reports", "hash", shard="first"),
        Family("instances", "hash", shard="first"),
        Family("status", "string", rest="MINUTE", shard="first", copied=False),
        Family("cleaned", "hash", shard="first", expires=False, copied=False),
        Family("meta", "hash", shard="every", expires=False, copied=False),
        Family("batch", "string", rest="PRODUCER", shard="every", copied=False),
    )
}

#: The indexes, of series, messages and exceptions.
INDEXES: Final = tuple(
    family for family in FAMILIES.values() if family.members and family.type == "zset"
)
#: Kind of record -> its index.
INDEX_OF: Final[Mapping[str, Family]] = {index.kind: index for index in INDEXES}


def listed_by(index: Family) -> tuple[Family, ...]:
    """Return the data families whose keys an index lists."""
    return tuple(family for family in FAMILIES.values() if family.index == index.name)


@dataclass(frozen=True, slots=True)
class SeriesKind:
    """A kind of series: one row of the table of kinds, as far as it is stored.

    Each layer has a row of its own for it, by its name: how it is recorded (recording/pending.py),
    what may be read of it at once (reading/selection.py), its curve (reading/page/curves.py), its
    rows in an export (reading/export/rows.py), its name for Prometheus (export/).
    """

    #: The hashes of a series: at each precision, one of each of these families.
    hashes: tuple[Family, ...]
    #: Those whose fields have the number of events of an interval; None: it has a state instead.
    events: Family | None
    #: The field of Kept that has its retention.
    retention: Literal["series", "histograms"] = "series"
    #: Whether the grand total of a name is kept.
    has_total: bool = False

    @property
    def index(self) -> Family:
        """The index that lists its series."""
        return FAMILIES[self.hashes[0].index]


#: Kind -> how it is stored.
SERIES_KINDS: Final[Mapping[str, SeriesKind]] = {
    "counter": SeriesKind((FAMILIES["count"],), FAMILIES["count"], has_total=True),
    "gauge": SeriesKind((FAMILIES["gauge"],), None),
    "histogram": SeriesKind(
        (FAMILIES["hist"], FAMILIES["moments"]), FAMILIES["moments"], "histograms"
    ),
}
#: The kinds whose intervals have a value and no events, such as the newest one of a gauge. What
#: reads a gauge reads all of them alike, given how one is parsed: see reading/selection.py.
STATES: Final = tuple(kind for kind, stored in SERIES_KINDS.items() if stored.events is None)
#: The indexes of series.
SERIES_INDEXES: Final = tuple(kind.index for kind in SERIES_KINDS.values())


def owner(layout: Layout, text: _Text) -> _Text:
    """Return the part of a text that determines the shard: the name of a series, or a logger.

    Args:
        layout: the form of the text.
        text: the rest of a key, or a member of an index.
    """
    name, colon = (text, ":") if isinstance(text, str) else (text, b":")
    if layout == _ENTRY:
        return name.partition(colon)[2]
    if layout == _SOURCE:
        return name.rpartition(colon)[0]
    return name
