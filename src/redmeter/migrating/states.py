"""Freeze: nothing is written to the source while it is copied, and never again once it has moved.

Each shard of the source has a lease in its `meta:`, "TOKEN DEADLINE" by the server's clock. Scripts
apply no batch before the deadline. The mover renews the lease while it copies. If it dies or
sleeps, the lease expires and writers go on; a mover that wakes up later can neither
renew nor commit, since both compare the token and the time in the same script.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn

from redmeter.errors import StoreError
from redmeter.migrating.report import Interrupted, MigrationError
from redmeter.store import Store
from redmeter.store.config import ShardState, StoreConfig, move_of, new_version, read_states
from redmeter.store.durability import wait_command
from redmeter.store.scripts import FREEZE, RECEIVE, collect_scripts
from redmeter.store.servers.replies import Reply, raised
from redmeter.stored.families import FAMILIES
from redmeter.stored.keys import FORMAT

#: How long the source stays frozen after the last renewal, seconds.
FREEZE_SECONDS = 30.0
#: How often the lease is renewed, seconds.
RENEWAL = 5.0
#: How often a lease of another mover is looked at, seconds.
LOOK = 0.5
#: How long replicas of the source have to confirm the seal, and one WAIT at most, seconds.
CONFIRM, WAIT = 5.0, 1.0

#: Called while a run waits: with the reason, and for how many seconds at most.
Waiting = Callable[[str, float], None]


class Freeze:
    """The leases on all shards of a source.

    Args:
        token: of this mover, random.
    """

    def __init__(self, source: Store, token: str) -> None:
        self._source = source
        self._token = token
        self._renewed = 0.0
        #: When the source was frozen, monotonic seconds.
        self.since = 0.0

    def begin(self) -> None:
        """Freeze all shards but those that have moved already.

        Raises:
            MigrationError: a shard is frozen by another mover, or receives data itself.
        """
        self.since = self._renewed = self._source.clock.monotonic()
        for done, moved, receiving, _, _ in self._all("freeze", str(FREEZE_SECONDS)):
            if not done and not moved:
                self.end()
                _refuse(receiving)

    def renew_if_due(self) -> None:
        """Renew the leases, every RENEWAL seconds.

        Raises:
            MigrationError: one has expired.
        """
        now = self._source.clock.monotonic()
        if now - self._renewed < RENEWAL:
            return
        for done, moved, *_ in self._all("renew", str(FREEZE_SECONDS)):
            if not done and not moved:
                raise MigrationError("expired", _EXPIRED)
        self._renewed = now

    def end(self) -> None:
        """Let writers go on, as far as the source can be reached; elsewhere the lease expires."""
        with contextlib.suppress(StoreError):
            self._all("unfreeze")

    def commit(self, move: str, before: str, prefix: str) -> None:
        """Seal all shards, for good.

        Args:
            move: ID of the move.
            before: the ID that shards have which moved in an earlier run; "" if none has.
            prefix: of the target.

        Raises:
            MigrationError: the lease of a shard had expired; it was not sealed.
        """
        if not all(done for done, *_ in self._all("commit", move, before, prefix)):
            raise MigrationError("expired", _EXPIRED)

    def _all(self, action: str, *args: str) -> Sequence[tuple[int, str, str, str, float]]:
        """Run the script on all shards; see lua/freeze.lua for its reply."""
        words = [action, self._token, *args]
        shards = self._source.shards
        commands = [FREEZE.command([s.keys.meta, s.keys.known], words) for s in shards]
        return [_parsed(raised(r)) for r in collect_scripts(shards[0].link.collect, commands)]


def check_source(source: Store) -> None:
    """Check that the shards of a source that have not moved can be frozen, once nobody else does.

    Raises:
        MigrationError: a shard is frozen by another mover, or receives data itself.
    """
    for _, moved, receiving, holder, _ in Freeze(source, "")._all("look"):
        if not moved and (receiving or holder):
            _refuse(receiving)


def _refuse(receiving: str) -> NoReturn:
    if receiving:
        raise MigrationError("source-unfinished", _UNFINISHED)
    raise MigrationError("busy", _BUSY)


_BUSY = "another migration of this source is running"
_EXPIRED = "the source was not frozen all the time: this process was stopped for too long"
_UNFINISHED = "the source is itself the target of a migration that has not finished"


def _parsed(reply: Reply) -> tuple[int, str, str, str, float]:
    done, moved, receiving, holder, left = reply
    return done, moved.decode(), receiving.decode(), holder.decode(), float(left)


def wait_for_others(source: Store, quit: Callable[[], bool], waiting: Waiting) -> None:  # noqa: A002
    """Wait until no shard is frozen by another mover: it may have been killed.

    Raises:
        MigrationError: that mover renews its lease, so it is alive.
        Interrupted: by `quit`.
    """
    seen: dict[int, float] = {}
    while True:
        view, _ = source.read()
        shards = enumerate(read_states(source))
        frozen = {n: state for n, state in shards if state.name(view.now) == "frozen"}
        if not frozen:
            return
        if quit():
            raise Interrupted
        for number, state in frozen.items():
            if state.deadline > seen.setdefault(number, state.deadline):
                raise MigrationError("busy", _BUSY)
        left = max(state.deadline for state in frozen.values()) - view.now
        waiting("the freeze by an earlier run to end", left)
        source.clock.sleep(LOOK)


# --- The seal ------------------------------------------------------------------------------------

# Seal: a failover to a replica that has not received it would open the source again. So a replica
# of each primary is waited for, and the seal is read once more before the target is opened.


def confirm_seal(source: Store, move: str, waiting: Waiting) -> dict[str, str]:
    """Wait until a replica of each primary of a sealed source has the seal.

    Returns:
        Primary -> "replicated", "no replica", or "unconfirmed" after CONFIRM seconds.
    """
    # WAIT waits for what its own connection has written, so the seal is written again before.
    commits = [
        FREEZE.command([shard.keys.meta, shard.keys.known], ["commit", "", move, move])
        for shard in source.shards
    ]
    until = source.clock.monotonic() + CONFIRM
    seals = {}
    for server in source.link.servers():
        *sealed, info = server.exchange([*commits, ("INFO", "replication")])
        if not any(isinstance(reply, list) for reply in sealed):
            continue  # all shards are on other servers
        seal = "no replica" if b"connected_slaves:0" in raised(info).split() else "unconfirmed"
        while seal == "unconfirmed":
            left = max(0.1, until - source.clock.monotonic())
            seconds = min(WAIT, left, source.timeout / 2)
            *_, replicas = server.exchange([*commits, wait_command("replica", seconds)])
            left = until - source.clock.monotonic()
            if isinstance(replicas, int) and replicas:
                seal = "replicated"
            elif left <= 0 or isinstance(replicas, StoreError):
                break
            else:
                waiting(f"a replica of {server.location} to confirm the seal", left)
        seals[server.location] = seal
    return seals


def check_sealed(source: Store, move: str) -> None:
    """Check that all shards of the source are sealed, on the servers that are its primaries now.

    Raises:
        MigrationError: one is not.
    """
    source.link.close()  # the next connections may lead to other servers
    if not all(state.moved == move for state in read_states(source)):
        raise MigrationError(
            "unsealed",
            "the source lost its seal, by a failover to a replica that had not received it: it "
            "accepts events again, and the target was not opened",
        )


# --- The target ----------------------------------------------------------------------------------

# Receive: the target belongs to one mover at a time, and is opened once everything is there.
#
# `receiving` of each shard names the mover and the move, "TOKEN ID"; everything that is written to
# the shard is refused unless it comes from this mover. The newest mover wins. `verified` is
# written last. A shard is opened only if it has both, so a target that lost data by a restart from
# an older snapshot stays closed, and is copied to again.


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
        MigrationError: see check_target().
    """
    after = max(target.config().version, config.version, key=int)
    version = new_version(target.clock.wall(), after, chosen=True)
    kept = str(config.retention), str(config.histograms), version
    words = fence, "1" if replace else "0", FORMAT, str(len(target.shards)), *kept
    _check_begun(target, _all(target, shards, "begin", *words))


def check_target(target: Store, shards: Collection[int], *, replace: bool) -> None:
    """Check that shards of the target can be taken possession of; changes nothing.

    Args:
        replace: also if they have data.

    Raises:
        MigrationError: the target has data, or is the source of another migration.
    """
    _check_begun(target, _all(target, shards, "look", "", "1" if replace else "0"))


def _check_begun(target: Store, replies: Sequence[Reply]) -> None:
    for done in replies:
        if done == -1:
            raise MigrationError("busy", "the target is being migrated to another server itself")
        if not done:
            refuse_data(target)


def refuse_data(target: Store) -> NoReturn:
    """Raise the error about a target that has data."""
    raise MigrationError(
        "not-empty",
        f"there are data in {target.location}: choose an empty target, or give --replace "
        "to remove them first",
    )


def mark_verified(target: Store, fence: str, shards: Collection[int]) -> None:
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
        if action in ("begin", "look"):
            names += [keys.key(one.name) for one in FAMILIES.values() if one.kind and not one.rest]
        commands.append(RECEIVE.command(names, [action, *args]))
    return [raised(reply) for reply in collect_scripts(target.shards[0].link.collect, commands)]
