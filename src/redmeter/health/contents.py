"""The types of a store's indexes and totals, and its configuration, as doctor checks them."""

from collections.abc import Iterator, Sequence

from redmeter.errors import AccessDenied, StoreError, StoreUnavailable
from redmeter.families import FAMILIES
from redmeter.health import findings
from redmeter.health.findings import Finding
from redmeter.keys import Keys
from redmeter.shards import ShardedKeys
from redmeter.store.config import read_meta
from redmeter.store.replies import Command, Reply, pairs, raised


class Contents:
    """Checks the types of the indexes and of `total:`, and `meta:`; on a cluster in each shard.

    Another program may use these keys for something else.
    """

    def __init__(self, keys: Keys) -> None:
        families = [family for family in FAMILIES.values() if family.members]
        #: Key -> its type, and the kind of its records.
        self._kinds = {
            keys.key(family.name): (family.type.encode(), family.kind) for family in families
        }
        self._named = [(key, one) for key in self._kinds for one in keys.in_each(key)]
        # On a single server every read checks `meta:`.
        self._metas = keys.in_each(keys.meta) if isinstance(keys, ShardedKeys) else []
        self._wrong: dict[str, list[tuple[str, str]]] = {}
        self._strange: list[tuple[str, StoreError]] = []
        self.commands: list[Command] = [("TYPE", key) for _, key in self._named]
        self.commands += [("HGETALL", key) for key in self._metas]

    def read(self, replies: Sequence[Reply]) -> None:
        """Evaluate the replies to the commands; a key without a reply counts as correct."""
        kinds, metas = replies[: len(self._named)], replies[len(self._named) :]
        for (key, shard_key), kind in zip(self._named, kinds, strict=True):
            if not isinstance(kind, StoreError) and kind not in (self._kinds[key][0], b"none"):
                self._wrong.setdefault(key, []).append((shard_key, kind.decode()))
        for key, meta in zip(self._metas, metas, strict=True):
            if isinstance(meta, StoreUnavailable | AccessDenied):
                continue
            try:
                read_meta(dict(pairs(raised(meta))), len(self._metas))
            except StoreError as error:
                self._strange.append((key, error))

    def usable(self, key: str) -> bool:
        """Return whether a key has its type, in each shard."""
        return key not in self._wrong

    def findings(self) -> Iterator[Finding]:
        """Return a finding for each key that is something else."""
        for key, others in self._wrong.items():
            kind, topic = self._kinds[key]
            yield from findings.unusable(others, kind.decode(), topic)
        if self._strange:
            yield from findings.strange_shards(self._strange, len(self._metas))
