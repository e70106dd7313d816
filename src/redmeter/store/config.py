"""The store's configuration, in `meta:`: format, shards, retention and its version; and its
migration.

The retention is the store's, not a process's: otherwise one process would trim samples that another
one keeps. Each batch therefore names the version that it was made for, and the script applies no
batch made for another one, so a change reaches every writer with its next write. The version is
the Unix time of the change in microseconds (or one or two more than the last), so a store that was
wiped and created again never repeats one. It is odd if someone chose the retention. On a cluster
each shard has its own `meta:`, and they may differ while a node is unreachable.
"""

import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from operator import is_
from typing import NamedTuple, Protocol

from redmeter.clock import Clock
from redmeter.errors import IncompatibleStore, StoreError, StoreMoving
from redmeter.store.query import StoreReader
from redmeter.store.scripts import BIND, RETAIN, Steps, run_pipelined
from redmeter.store.servers.replies import Command, Link, Reply, mapped, raised
from redmeter.stored.keys import (
    FORMAT,
    HISTOGRAMS,
    UNNAMED_HISTOGRAMS,
    Kept,
    Keys,
    Retention,
    epoch_of,
)

_FIELDS = b"format", b"partitions", b"retention", b"histograms", b"version"

logger = logging.getLogger("redmeter")


class StoreConfig(NamedTuple):
    """The configuration of a store, or of one of its shards."""

    #: The retention of counters and gauges.
    retention: Retention
    histograms: Retention
    #: Version of the retention; "" if the store does not exist yet.
    version: str

    @property
    def kept(self) -> Kept:
        """Both retentions."""
        return Kept(self.retention, self.histograms)

    @property
    def epoch(self) -> tuple[int, int]:
        """The order among different configurations: the highest is valid."""
        return epoch_of(self.version)


class WantedConfig:
    """The configuration that this process gives to a new store.

    It logs a warning once if the store's differs from the configuration of this process. A
    process without such settings adopts the store's silently.

    Args:
        configured: whether the retention, and that of histograms, was configured.
    """

    def __init__(
        self,
        retention: Retention,
        histograms: Retention,
        configured: tuple[bool, bool] = (False, False),
    ) -> None:
        self.config = StoreConfig(retention, histograms, "")
        self._configured = configured
        #: The valid configuration among those of the shards that were loaded.
        self.known: StoreConfig | None = None
        self._compared = False

    def compare(self, stored: StoreConfig) -> None:
        """Log a warning if the store's retention replaces the configured one."""
        if self.known is None or stored.epoch > self.known.epoch:
            self.known = stored
        if self._compared:
            return
        self._compared = True
        counters, histograms = self._configured
        for configured, what, ours, theirs in (
            (counters, "", self.config.retention, stored.retention),
            (histograms, " of histograms", self.config.histograms, stored.histograms),
        ):
            if configured and ours != theirs:
                logger.warning(
                    "the store keeps %s%s, this process is configured for %s and goes on with the "
                    "store's; `redmeter retention` changes it for all",
                    *(theirs, what, ours),
                )


def new_version(now: float, after: str = "", *, chosen: bool = False) -> str:
    """Return a version that the store has never had before.

    Args:
        now: Unix seconds.
        after: the current version, "" if there is none.
        chosen: whether someone chose the retention: then the version is odd, else even.
    """
    version = max(int(now * 1e6), int(after or 0) + 1)
    return str(version + (version % 2 != chosen))


def read_meta(fields: dict[bytes, bytes | None], shards: int) -> StoreConfig | None:
    """Parse the fields and values of `meta:`.

    Args:
        shards: the number of shards that the store must have.

    Returns:
        None if there is no configuration.

    Raises:
        IncompatibleStore: this version does not know the format or the number of shards.
    """
    text = {
        key.decode(errors="replace"): (value or b"").decode(errors="replace")
        for key, value in fields.items()
    }
    if not any(text.values()):
        return None
    if text.get("format") != FORMAT:
        raise IncompatibleStore("format version", text.get("format", ""), FORMAT)
    if text.get("partitions") != str(shards):
        raise IncompatibleStore("number of shards", text.get("partitions", ""), str(shards))
    try:
        retention = Retention.parse(text.get("retention", ""))
        histograms = Retention(UNNAMED_HISTOGRAMS, of=HISTOGRAMS)
        if text.get("histograms"):
            histograms = Retention.parse(text["histograms"], of=HISTOGRAMS)
        version = text.get("version", "")
        int(version)
    except ValueError:
        raise IncompatibleStore("retention", text.get("retention", ""), "1=120 5=120 …") from None
    # The version as it is spelled: the script compares texts.
    return StoreConfig(retention, histograms, version)


def bind(keys: Keys, wanted: StoreConfig, shards: int) -> Steps[tuple[StoreConfig, str]]:
    """Return a shard's configuration, after writing the wanted one if it has none; and its birth.

    The birth is a random text: a store that was emptied and created again has another one.

    Args:
        wanted: with the version for a new shard.

    Raises:
        IncompatibleStore: this version does not know the format or the number of shards.
        StoreError: the server is unreachable or refuses.
    """
    assert wanted.version, "the caller makes one"
    kept = str(wanted.retention), str(wanted.histograms), wanted.version
    values = FORMAT, str(shards), *kept, os.urandom(8).hex()
    fields = raised((yield BIND.command(_named(keys), values)))
    config = read_meta(dict(zip(_FIELDS, fields[:-1], strict=True)), shards)
    if config is None:  # another program's hash
        raise IncompatibleStore("format version", "", FORMAT)
    return config, (fields[-1] or b"").decode(errors="replace")


def retain(keys: Keys, seen: StoreConfig, wanted: StoreConfig) -> Steps[Reply]:
    """Change a shard's configuration; the result is 0 if another process just did, or an error.

    Args:
        seen: the configuration that the change is based on.
        wanted: with its new version.
    """
    args = str(wanted.retention), str(wanted.histograms), seen.version, wanted.version
    return (yield RETAIN.command(_named(keys), args))


def _named(keys: Keys) -> list[str]:
    """Return the keys that a script names to write `meta:`.

    There are two, in different slots: so a cluster node that is taken for a single server refuses
    the script, as it refuses all batches, and nothing is stored on it.
    """
    return [keys.meta, keys.known]


class ConfiguredShard(Protocol):
    """A shard, as far as its configuration is concerned. See Shard."""

    link: Link
    config: StoreConfig | None

    @property
    def keys(self) -> Keys:
        """The names of its keys."""

    def load_config(self, version: str = "") -> Steps[StoreConfig]:
        """Load its configuration, which is created if it is new."""


class ShardConfigs:
    """The configuration of a store: that of all its shards, which agree in the end."""

    def __init__(
        self, shards: Sequence[ConfiguredShard], wanted: WantedConfig, clock: Clock
    ) -> None:
        self.shards = shards
        self.clock = clock
        self._wanted = wanted
        #: The shards' configurations when they were last compared, and the valid one of them.
        self._ranked: tuple[list[StoreConfig], StoreConfig] = [], wanted.config

    @property
    def kept(self) -> Kept:
        """The retention, as far as known without an exchange."""
        return self._known.kept

    @property
    def _known(self) -> StoreConfig:
        loaded = [shard.config for shard in self.shards if shard.config is not None]
        compared, valid = self._ranked
        if len(loaded) != len(compared) or not all(map(is_, loaded, compared)):
            valid = max(loaded, key=lambda config: config.epoch, default=self._wanted.config)
            self._ranked = loaded, valid
        return valid

    def config(self) -> StoreConfig:
        """Return the store's configuration, which is created if the store is new."""
        if any(shard.config is None for shard in self.shards):
            self.load_config()
        return self._known

    def load_config(self) -> None:
        """Load the configuration of all shards, and make all have the one of the last change.

        Raises:
            IncompatibleStore: the store has another format.
            StoreError: a server is unreachable or refuses.
        """
        version = new_version(self.clock.wall())
        steps = {number: shard.load_config(version) for number, shard in enumerate(self.shards)}
        for result in run_pipelined(self.shards[0].link, steps).values():
            raised(result)
        newest = self._known
        if any(shard.config != newest for shard in self.shards):
            self._retain(newest)

    def sync_config(self) -> None:
        """Load configurations that this process has not loaded, and update outdated ones.

        Errors of single shards are ignored; the next write to such a shard reports them.
        """
        self.load_configs(self.unloaded())
        if outdated := self.outdated():
            self.update_configs(outdated)

    def unloaded(self) -> list[int]:
        """Return the shards whose configuration this process has not loaded."""
        return [number for number, shard in enumerate(self.shards) if shard.config is None]

    def load_configs(self, numbers: Sequence[int]) -> dict[int, StoreError]:
        """Load the configuration of some shards; return the errors of those that failed."""
        version = new_version(self.clock.wall())
        steps = {number: self.shards[number].load_config(version) for number in numbers}
        results = run_pipelined(self.shards[0].link, steps)
        return {n: result for n, result in results.items() if isinstance(result, StoreError)}

    def outdated(self) -> list[int]:
        """Return the shards that lack the last change of the configuration, as far as known."""
        known, shards = self._known, enumerate(self.shards)
        return [number for number, shard in shards if shard.config and shard.config != known]

    def update_configs(self, numbers: Sequence[int]) -> dict[int, StoreError]:
        """Make some shards have the last change; return the errors of those that failed."""
        errors = self.load_configs(numbers)
        with contextlib.suppress(StoreError):  # the next call tries again
            self._retain(self._known, numbers)
        return errors

    def _retain(self, wanted: StoreConfig, numbers: Sequence[int] | None = None) -> bool:
        """Change the configuration of all or some shards; return whether no other process did."""
        steps = {}
        for number in range(len(self.shards)) if numbers is None else numbers:
            shard = self.shards[number]
            if shard.config is not None and shard.config != wanted:
                steps[number] = retain(shard.keys, shard.config, wanted)
        changed = True
        for number, reply in run_pipelined(self.shards[0].link, steps).items():
            if raised(reply):
                self.shards[number].config = wanted
            else:
                changed = False
        return changed

    def change_retention(
        self, changes: Sequence[tuple[int, int]], *, histograms: bool = False
    ) -> Retention:
        """Change the retention for every process that uses this store.

        Args:
            changes: (precision, samples) pairs; 0 samples removes the precision.
            histograms: change that of histograms instead of that of counters and gauges.

        Returns:
            The retention from now on.

        Raises:
            InvalidSetting: out of range; nothing was changed.
            StoreError: a server is unreachable or refuses. On a cluster some shards may have been
                changed; the others follow when the store is used again.
        """
        while True:
            self.load_config()
            seen = self._known
            changed = (seen.histograms if histograms else seen.retention).changed(changes)
            if histograms:
                kept = seen._replace(histograms=changed)
            else:
                kept = seen._replace(retention=changed)
            if kept == seen:
                return changed
            version = new_version(self.clock.wall(), seen.version, chosen=True)
            if self._retain(kept._replace(version=version)):
                return changed


# --- Migration -----------------------------------------------------------------------------------
# The states of a store that is moved to another server, as `meta:` of each shard has them.
#
# `frozen` and `moved` are states of the store that is left, `receiving` and `verified` of the new
# one. The scripts check them wherever something is written: see lua/apply.lua.

_STATE_FIELDS = ("frozen", "moved", "receiving", "verified")


class ShardState(NamedTuple):
    """The fields of a shard's `meta:` that are about a move."""

    #: Token of the process that has frozen it, and until when: Unix seconds by the server's clock.
    holder: str = ""
    deadline: float = 0.0
    #: ID of the move that took it away.
    moved: str = ""
    #: "TOKEN ID" of the process that copies to it, and of the one that has copied everything.
    receiving: str = ""
    verified: str = ""

    def name(self, now: float) -> str:
        """Return "frozen", "receiving" or "moved", or "" if it can be written to.

        Args:
            now: Unix seconds, by the server's clock.
        """
        if self.moved:
            return "moved"
        if self.receiving:
            return "receiving"
        return "frozen" if now < self.deadline else ""

    def check(self, now: float) -> None:
        """Raise StoreMoving if nothing may be written now."""
        if name := self.name(now):
            raise StoreMoving(name)


def state_read(keys: Keys) -> Command:
    """Return the command that reads the state of a shard."""
    return ("HGETALL", keys.meta)


def parse_state(reply: Reply) -> ShardState:
    """Read the reply to state_read(). Raises: the error that it is."""
    return state_of(mapped(raised(reply)))


def state_of(meta: Mapping[bytes, bytes]) -> ShardState:
    """Return the state in the fields of `meta:`."""
    text = {name: meta.get(name.encode(), b"").decode(errors="replace") for name in _STATE_FIELDS}
    holder, _, deadline = text["frozen"].partition(" ")
    try:
        until = float(deadline)
    except ValueError:
        holder, until = "", 0.0
    return ShardState(holder, until, text["moved"], text["receiving"], text["verified"])


class _Store(StoreReader, Protocol):
    @property
    def shards(self) -> Sequence[ConfiguredShard]: ...


def read_states(store: _Store) -> list[ShardState]:
    """Return the state of each shard of a store."""
    commands = [state_read(shard.keys) for shard in store.shards]
    return [parse_state(reply) for reply in store.ask(commands)]


def check_configs(store: _Store) -> None:
    """Check that a store has a format that this version knows, or none yet; writes nothing.

    Raises:
        IncompatibleStore: it has another format, or number of shards.
    """
    for reply in store.ask([state_read(shard.keys) for shard in store.shards]):
        meta = mapped(raised(reply))
        read_meta({name: meta.get(name) for name in _FIELDS}, len(store.shards))


def moved_prefix(source: _Store) -> str | None:
    """Return the prefix that a store has had since it was moved; None if that is not stored."""
    for reply in source.ask([state_read(shard.keys) for shard in source.shards]):
        prefix = mapped(raised(reply)).get(b"moved_prefix")
        if prefix is not None:
            return prefix.decode(errors="replace")
    return None


def move_of(fence: str) -> str:
    """Return the ID of the move in `receiving` or `verified`."""
    return fence.partition(" ")[2]


def is_target_of(target: _Store, source: _Store) -> bool:
    """Return whether a store was moved to another one."""
    moves = {state.moved for state in read_states(source)} - {""}
    shards = read_states(target)
    fences = [fence for state in shards for fence in (state.receiving, state.verified)]
    return not moves.isdisjoint(map(move_of, fences))
