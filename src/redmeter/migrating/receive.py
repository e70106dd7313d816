"""Receive: the target belongs to one mover at a time, and is opened once everything is there.

`receiving` of each shard names the mover and the move, "TOKEN ID"; everything that is written to
the shard is refused unless it comes from this mover. The newest mover wins. `verified` is written
last. A shard is opened only if it has both, so a target that lost data by a restart from an older
snapshot stays closed, and is copied to again.
"""

import os
from collections.abc import Collection, Sequence

from redmeter.families import FAMILIES
from redmeter.keys import FORMAT
from redmeter.migrating.report import MigrationError
from redmeter.store import Store
from redmeter.store.config import StoreConfig, new_version
from redmeter.store.migration_state import ShardState, move_of
from redmeter.store.replies import Reply, raised
from redmeter.store.scripts import RECEIVE, collect_scripts


def new_token() -> str:
    """Return a random token, of a mover or a move."""
    return os.urandom(8).hex()


def is_open(state: ShardState, move: str) -> bool:
    """Return whether a shard has received all data of a move, and is in use."""
    return not state.receiving and bool(move) and move_of(state.verified) == move


def begin(
    target: Store, fence: str, config: StoreConfig, shards: Collection[int], *, replace: bool
) -> None:
    """Take possession of shards of the target. They keep what the source keeps.

    Args:
        replace: also if they have data.

    Raises:
        MigrationError: the target has data, or is the source of another migration.
    """
    after = max(target.config().version, config.version, key=int)
    version = new_version(target.clock.wall(), after, chosen=True)
    for done in _all(
        *(target, shards, "begin", fence, "1" if replace else "0", FORMAT),
        *(str(len(target.shards)), str(config.retention), str(config.histograms), version),
    ):
        if done == -1:
            raise MigrationError("busy", "the target is being migrated to another server itself")
        if not done:
            raise MigrationError(
                "not-empty",
                f"there are data in {target.location}: choose an empty target, or give --replace "
                "to remove them first",
            )


def verify(target: Store, fence: str, shards: Collection[int]) -> None:
    """Note that shards of the target have everything."""
    if not all(_all(target, shards, "verify", fence)):
        raise MigrationError("fenced", "another migration has taken over the target")


def open_shards(target: Store, states: Sequence[ShardState], move: str) -> None:
    """Open all shards of the target that have everything, and see that all have.

    Args:
        states: of the shards, read after the source was committed.

    Raises:
        MigrationError: some shards lack data.
    """
    for number, state in enumerate(states):
        if move_of(state.verified) != move or not all(
            _all(target, [number], "open", state.verified)
        ):
            raise MigrationError(
                "not-verified",
                "the target has lost data or was taken over by another run after the source was "
                "sealed: run the same command again, which copies them again",
            )


def _all(target: Store, shards: Collection[int], action: str, *args: str) -> list[Reply]:
    """Run the script on some shards; see lua/receive.lua."""
    commands = []
    for number in shards:
        keys = target.shards[number].keys
        names = [keys.meta]
        if action == "begin":
            names += [keys.key(one.name) for one in FAMILIES.values() if one.kind and not one.rest]
        commands.append(RECEIVE.command(names, [action, *args]))
    return [raised(reply) for reply in collect_scripts(target.shards[0].link.collect, commands)]
