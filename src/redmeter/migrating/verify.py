"""Verify: the target has everything, and neither store was replaced under the copy.

The size of every key is compared as it is written: see copy.py. Here the indexes and totals of the
target are compared with those of the source, and both stores must still be served by the same
processes: a server that restarted or failed over may have lost the last writes, or the freeze.
"""

from collections.abc import Collection
from typing import NamedTuple

from redmeter.families import FAMILIES
from redmeter.keys import Keys
from redmeter.migrating.copy import CHUNK, SIZES, Copy, whole_number
from redmeter.migrating.report import MigrationError
from redmeter.store import Store
from redmeter.store.replies import pairs, raised
from redmeter.store.scans import scan


class Servers(NamedTuple):
    """The processes that serve a store."""

    #: Address -> ID of the process.
    runs: dict[str, str]
    #: Address -> the shards it has.
    shards: dict[str, list[int]]


def servers_of(store: Store) -> Servers:
    """Ask which processes serve a store."""
    runs = {}
    for name, (reply,) in store.link.ask_servers([("INFO", "server")]).items():
        text = raised(reply).decode(errors="replace")
        runs[name] = next((line for line in text.split() if line.startswith("run_id:")), "run_id:")
    return Servers(runs, {name: list(numbers) for name, numbers in store.by_server().items()})


def check_servers(store: Store, before: Servers, what: str) -> None:
    """Check that the same processes serve a store as before.

    Raises:
        MigrationError: a server restarted, failed over, or a slot moved.
    """
    if servers_of(store) != before:
        raise MigrationError(
            "server-changed", f"a server of the {what} restarted, failed over or gave slots away"
        )


def check_contents(target: Store, copy: Copy, shards: Collection[int]) -> None:
    """Check the indexes and totals of the target.

    Raises:
        MigrationError: they differ from those of the source.
    """
    for number in shards:
        keys = target.shards[number].keys
        families = [family for family in FAMILIES.values() if family.members]
        sizes = target.ask([(SIZES[one.type], keys.key(one.name)) for one in families])
        for family, size in zip(families, sizes, strict=True):
            copied = copy.members[number, family.name]
            _compare(f"{family.name} in shard {number}", copied, raised(size))
        _compare(f"sum of totals in shard {number}", copy.totals[number], _total(target, keys))


def _total(target: Store, keys: Keys) -> int:
    fields: dict[bytes, bytes] = {}
    for page in scan(target.ask, lambda at: ("HSCAN", keys.total, at, "COUNT", str(CHUNK))):
        fields.update(pairs(page))
    return sum(map(whole_number, fields.values()))


def _compare(what: str, wanted: int, found: int) -> None:
    if wanted != found:
        raise MigrationError(
            "differs",
            f"{what}: {found:,} in the target, {wanted:,} were copied; something else writes to "
            "one of the stores, or a server has lost data",
        )
