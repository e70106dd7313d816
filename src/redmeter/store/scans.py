"""Scans: keys, members of a sorted set, or fields of a hash, in pages that do not block the server.

A hash that every shard has a part of is scanned on all shards at once.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from redmeter.store.query import Query, ShardedRead, ShardSteps
from redmeter.store.servers.replies import Command, Reply, raised
from redmeter.stored.keys import Keys
from redmeter.stored.shards import ShardedKeys

#: Fields that the server looks at in one step: about 1 ms.
FIELDS = 5_000


def scan(
    exchange: Callable[[Sequence[Command]], Sequence[Reply]], command: Callable[[bytes], Command]
) -> Iterator[Sequence[bytes]]:
    """Yield the pages of a scan. An element that is there all the time comes at least once.

    Args:
        exchange: sends commands to a server.
        command: makes the command for a cursor.

    Raises:
        StoreError: the server is unreachable or refuses.
    """
    cursor = b"0"
    while True:
        (reply,) = exchange([command(cursor)])
        cursor, page = raised(reply)
        yield page
        if int(cursor) == 0:
            return


def escaped(text: str) -> str:
    """Return a text as a pattern that matches this text only."""
    return re.sub(r"([\\*?\[\]])", r"\\\1", text)


def scan_fields(keys: Keys, key: str, pattern: str) -> Query[dict[bytes, bytes]]:
    """Read the fields of a hash whose names match a pattern: field -> value.

    A field that is there for the whole time of the scan is found. Takes a round trip for each
    FIELDS of a server's fields.

    Args:
        key: one that every shard has on a cluster, such as `total:`.
        pattern: a glob as Redis matches it; see escaped().

    Raises:
        StoreError: the server is unreachable or refuses.
    """

    def command(key: str, cursor: bytes) -> Command:
        return ("HSCAN", key, cursor, "MATCH", pattern, "COUNT", str(FIELDS))

    fields_found: dict[bytes, bytes] = {}
    if isinstance(keys, ShardedKeys):
        _, replies = yield [ShardedRead(lambda: _on_shards(keys, key, command), _nothing)]
        fields = raised(replies[0])[1]
        return dict(zip(fields[::2], fields[1::2], strict=True))
    cursor = b"0"
    while True:
        _, (reply,) = yield [command(key, cursor)]
        cursor, fields = raised(reply)
        fields_found.update(zip(fields[::2], fields[1::2], strict=True))
        if int(cursor) == 0:
            return fields_found


def _on_shards(keys: ShardedKeys, key: str, command: Callable[[str, bytes], Command]) -> ShardSteps:
    cursors = dict.fromkeys(keys.in_each(key), b"0")
    fields_found: list[bytes] = []
    while cursors:
        replies: Sequence[Reply] = yield [command(key, at) for key, at in cursors.items()]
        before, cursors = cursors, {}
        for key, reply in zip(before, replies, strict=True):
            if isinstance(reply, Exception):
                return reply
            cursor, fields = reply
            fields_found += fields
            if int(cursor) != 0:
                cursors[key] = cursor
    return [b"0", fields_found]


def _nothing(command: Command) -> Reply:  # noqa: ARG001
    return [b"0", []]
