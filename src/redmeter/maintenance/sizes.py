"""Sizes: how much memory a store takes in Redis, by name; an estimate from a sample.

Some entries of each index are drawn at random, and the server is asked for the size of their keys.
The share of a name in the sample is extrapolated to the index; a small index is read as a whole.

Cost: 1 to 2 µs of the server for each key of the sample, in exchanges of _PAGE commands.
"""

from collections import Counter
from typing import NamedTuple

from redmeter.store import Store, indexes
from redmeter.store.query import Read, View
from redmeter.store.servers.replies import Command, raised
from redmeter.stored.exception import is_group
from redmeter.stored.families import FAMILIES, INDEXES, Family, RecordKind, listed_by, owner
from redmeter.stored.keys import Keys, parse_entry
from redmeter.stored.message import parse_source

#: Entries drawn of each index.
SAMPLED_ENTRIES = 1_000
#: Commands in one exchange.
_PAGE = 1_000


class NameSize(NamedTuple):
    """The memory of all series of a name, or of all messages of a logger."""

    #: A name without labels, a logger, or "(exceptions)".
    name: str
    #: "counter", "gauge", "histogram", "message" or "exception".
    kind: RecordKind
    #: Series of the name, severities of the logger, or groups of exceptions.
    series: int
    #: An estimate, with a share of the index and of the grand totals.
    bytes: int


def sizes_by_name(store: Store, sample: int = SAMPLED_ENTRIES) -> list[NameSize]:
    """Estimate the memory of a store by name, the largest first. Their sum is the whole store.

    Names too rare for the sample are missing, and their memory is in that of the others.

    Args:
        sample: how many entries of each index are drawn.

    Raises:
        StoreError: the server cannot be reached or refuses: MEMORY USAGE is a right of its own.
    """
    keys = store.keys
    reads: list[Read] = []
    for index in INDEXES:
        key = keys.key(index.name)
        reads += [indexes.size(keys, key), indexes.sample(keys, key, sample)]
        reads += [indexes.memory_usage(keys, keys.key(name)) for name in _shared(index)]
    view, replies = store.read(reads)
    answers, found = iter(replies), list[NameSize]()
    for index in INDEXES:
        count, drawn = raised(next(answers)), raised(next(answers))
        shared = sum(raised(next(answers)) or 0 for _ in _shared(index))
        members = [member.decode(errors="replace") for member in drawn]
        if members:
            scale, share = count / len(members), shared / len(members)
            entries = Counter(_name(index, member) for member in members)
            for name, size in _measured(store, index, members).items():
                estimate = round(scale * size + share * entries[name])
                found.append(NameSize(name, index.kind, round(scale * entries[name]), estimate))
    return sorted(
        _with_series(store, view, found), key=lambda each: (-each.bytes, each.name, each.kind)
    )


def typed_keys_of(keys: Keys, index: Family, entry: str) -> list[tuple[str, bytes]]:
    """Return the keys that an entry of an index lists, with their types; none if malformed."""
    if index.members == "LOGGER:SEVERITY":
        if not all(parse_source(entry)):
            return []
    elif not is_group(entry) if index.members == "GROUP" else parse_entry(entry) is None:
        return []
    typed: list[tuple[str, bytes]] = []
    for family in listed_by(index):
        rest = owner(index.members, entry) if family.rest == "LOGGER" else entry
        family_keys = keys.keys_of(family, rest)
        # The hourly keys alternate: two that have data, and their dates.
        checked = family_keys[:3:2] if family.hourly else family_keys
        typed += [(key, family.type.encode()) for key in checked]
    return typed


def _shared(index: Family) -> list[str]:
    """Return the families of one key for all members of an index: itself, and grand totals."""
    totals = [family.name for family in FAMILIES.values() if family.members == "NAME"]
    return [index.name, *(name for name in totals if FAMILIES[name].kind == index.kind)]


def _name(index: Family, entry: str) -> str:
    if index.members == "GROUP":
        return "(exceptions)"
    name = owner(index.members, entry)
    return name if index.members == "LOGGER:SEVERITY" else name.partition("{")[0]


def _measured(store: Store, index: Family, members: list[str]) -> Counter[str]:
    """Return the size of the keys of some members of an index, by name."""
    sampled = [
        (_name(index, member), key)
        for member in members
        for key, _ in typed_keys_of(store.keys, index, member)
    ]
    measured = Counter(dict.fromkeys((_name(index, member) for member in members), 0))
    for at in range(0, len(sampled), _PAGE):
        page = sampled[at : at + _PAGE]
        commands: list[Command] = [("MEMORY", "USAGE", key) for _, key in page]
        for (name, _), reply in zip(page, store.ask(commands), strict=True):
            measured[name] += raised(reply) or 0
    return measured


def _with_series(store: Store, view: View, found: list[NameSize]) -> list[NameSize]:
    """Count the series of each name: the entries of the widest precision."""
    index_of = {index.kind: index for index in INDEXES if index.members == "PRECISION:NAME"}
    named = [each for each in found if each.kind in index_of]
    reads: list[Read] = []
    for each in named:
        key = store.keys.key(index_of[each.kind].name)
        entry = f"{max(view.retention_of(each.kind))}:{each.name}"
        reads.append(indexes.size_between(store.keys, key, f"[{entry}", f"[{entry}"))
        reads.append(indexes.size_between(store.keys, key, f"[{entry}{{", f"({entry}|"))
    counts = [
        raised(reply)
        for at in range(0, len(reads), _PAGE)
        for reply in store.ask(reads[at : at + _PAGE], view)
    ]
    series = {
        (each.name, each.kind): sum(counts[2 * at : 2 * at + 2]) for at, each in enumerate(named)
    }
    return [each._replace(series=series.get((each.name, each.kind), each.series)) for each in found]
