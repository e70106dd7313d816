"""Forgetting: remove everything stored for a series, a logger, a mark or exceptions.

Events that a writer still holds in memory are stored afterwards. Series that are no longer written
expire automatically, and the cleaner removes their index entries.
"""

from collections.abc import Iterator

from redmeter.names import check_text
from redmeter.store import Store, View
from redmeter.store.config import parse_state, state_read
from redmeter.store.query import scan
from redmeter.store.resolve import resolve_name
from redmeter.store.servers.replies import Command, pairs, raised
from redmeter.stored.exception import check_group
from redmeter.stored.families import FAMILIES, SERIES_INDEXES, listed_by
from redmeter.stored.keys import Keys, parse_entry
from redmeter.stored.keys import entry as entry_of
from redmeter.stored.mark import clean_label, parse_release
from redmeter.stored.message import SEVERITY_OF_LEVEL, check_logger, parse_source, source_name


def meant(store: Store, name: str) -> str:
    """Return the stored spelling of the name of a series to forget.

    With a prefix, labels may be in any order. Without one, the name is taken as it is, because
    another order of labels may be another program's series.

    Raises:
        InvalidName: the name is empty, too long, or has forbidden characters.
        StoreError: the server is unreachable or refuses the command.
    """
    return resolve_name(store, name) if store.keys.prefix else check_text(name)


def forget(store: Store, name: str) -> bool:
    """Remove the counter of a name with its grand total, its gauge, its histogram and statistics.

    Args:
        name: the series, with its labels if it has any, in any order if the store has a prefix.

    Returns:
        Whether anything was removed.

    Raises:
        InvalidName: the name is empty, too long, or has forbidden characters.
        StoreMoving: the store is being moved, or was moved.
        StoreError: the server is unreachable or refuses the command.
    """
    series = meant(store, name)
    keys = store.shard(series).keys
    view = _check_state(store, keys)
    commands: list[Command] = []
    for family in FAMILIES.values():
        if family.members == "NAME":
            commands.append(("HDEL", keys.key(family.name), series))
        elif family.rest == "NAME":
            commands.append(("UNLINK", *keys.keys_of(family, series)))
    for index in SERIES_INDEXES:
        key = keys.key(index.name)
        # Including precisions that are no longer kept, or that another program chose.
        precisions = {*view.retention_of(index.kind), *_precisions(store, key, series)}
        entries = [entry_of(precision, series) for precision in precisions]
        hashes = [keys.key(data.name, entry) for data in listed_by(index) for entry in entries]
        commands += [("UNLINK", *hashes), ("ZREM", key, *entries)]
    removed = [raised(reply) for reply in store.ask(commands)]
    return any(removed)


def forget_logger(store: Store, logger: str) -> bool:
    """Remove the messages of a logger, of all severities: texts, patterns, examples and counts.

    Returns:
        Whether anything was removed.

    Raises:
        InvalidName: the name is empty, too long, or has control characters.
        StoreMoving: the store is being moved, or was moved.
        StoreError: the server is unreachable or refuses the command.
    """
    name = check_logger(logger)
    keys = store.shard(name).keys
    _check_state(store, keys)
    # Including the standard severities, which other programs write without an index entry.
    severities = dict.fromkeys(SEVERITY_OF_LEVEL.values())
    for member in _members(store, keys.messages):
        if (source := parse_source(member.decode(errors="replace")))[0] == name:
            severities[source[1]] = None
    sources = [source_name(name, severity) for severity in severities]
    commands: list[Command] = [("ZREM", keys.messages, *sources)]
    for family in FAMILIES.values():
        rests = {"LOGGER": [name], "LOGGER:SEVERITY": sources}.get(family.rest, [])
        commands += [("UNLINK", *keys.keys_of(family, rest)) for rest in rests]
    removed = [raised(reply) for reply in store.ask(commands)]
    return any(removed)


def forget_mark(store: Store, label: str) -> int:
    """Remove all marks of a label; return their number.

    Raises:
        TypeError: the label is not text.
        InvalidValue: the label is empty or too long.
        StoreMoving: the store is being moved, or was moved.
        StoreError: the server is unreachable or refuses the command.
    """
    text, key = clean_label(label), store.keys.marks
    _check_state(store, store.shard("").keys)
    members = {m for m in _members(store, key) if m.partition(b" ")[2] == text.encode()}
    if not members:
        return 0
    raised(store.ask([("ZREM", key, *members)])[0])
    return sum(not parse_release(member) for member in members)


def forget_exception(store: Store, group: str) -> bool:
    """Remove a group of exceptions: counts, routes, releases and traceback.

    Returns:
        Whether anything was removed.

    Raises:
        InvalidValue: not the ID of a group.
        StoreMoving: the store is being moved, or was moved.
        StoreError: the server is unreachable or refuses the command.
    """
    check_group(group)
    keys = store.shard("").keys
    _check_state(store, keys)
    commands: list[Command] = [
        ("UNLINK", keys.key("exception", group)),
        ("ZREM", keys.exceptions, group),
    ]
    removed = [raised(reply) for reply in store.ask(commands)]
    return any(removed)


def _check_state(store: Store, keys: Keys) -> View:
    """Return the view of the store.

    Raises:
        StoreMoving: the shard is being moved, or was moved.
    """
    view, (reply,) = store.read([state_read(keys)])
    parse_state(reply).check(view.now)
    return view


def _members(store: Store, key: str) -> Iterator[bytes]:
    """Yield the members of a sorted set; some may come twice."""
    for page in scan(store.ask, lambda cursor: ("ZSCAN", key, cursor, "COUNT", "1000")):
        yield from (member for member, _ in pairs(page))


def _precisions(store: Store, index: str, name: str) -> Iterator[int]:
    """Yield the precisions at which a name has an entry in an index."""
    ending = b":" + name.encode()
    for member in _members(store, index):
        if member.endswith(ending):
            parsed = parse_entry(member.decode(errors="replace"))
            if parsed and parsed[1] == name:
                yield parsed[0]
