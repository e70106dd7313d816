"""Migrate a store to another server, database, prefix or cluster, as a short planned outage.

    states.py    the source: a lease, and the commit that seals it; the target: who may write to it
    contents.py  the keys, and the shards they belong to
    layouts.py   what changes with a prefix that is new, or no longer there
    copy.py      reads, writes and compares them
    report.py    results and errors

The steps: the target starts to receive, the source is frozen, everything is copied and verified,
all shards of the source are sealed, and only then the shards of the target are opened. Every state
is in `meta:` of a shard and changed by a script that compares before it writes, so a mover may be
killed, or stopped and continued, anywhere. Running the same command again

- starts from the beginning if no shard of the source is sealed: nothing had happened yet;
- copies again if some are: nobody could write to the target, and nothing is written to the source;
- only opens the target if all are, and the target has everything.

A failover of the source may undo the seal. So a replica of each of its primaries is waited for,
for some seconds, and the seal is read again right before the target is opened.

Writers keep their events in memory while the source is frozen; see recording/sending/delivery.py.
So at every moment at most one of the two stores accepts writes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from redmeter.migrating import copy as copying
from redmeter.migrating import states
from redmeter.migrating.contents import StoredKey, all_keys, parse_key
from redmeter.migrating.copy import survey
from redmeter.migrating.report import Interrupted, MigrationError, MigrationReport, Survey
from redmeter.migrating.states import Freeze, Waiting, wait_for_others
from redmeter.store import Store
from redmeter.store.config import (
    ShardState,
    StoreConfig,
    check_configs,
    move_of,
    read_states,
)

__all__ = [
    "Interrupted",
    "MigrationError",
    "MigrationReport",
    "Survey",
    "check",
    "migrate",
    "survey",
]


def _ignore(*_: object) -> None:
    pass


def check(
    source: Store,
    target: Store,
    *,
    replace: bool = False,
    waiting: Waiting = _ignore,
    quit: Callable[[], bool] = lambda: False,  # noqa: A002
) -> None:
    """Check that migrate() with the same arguments would begin, or go on; changes nothing.

    Args:
        replace, waiting, quit: as for migrate().

    Raises:
        Interrupted, MigrationError, StoreError: those that migrate() raises before it begins.
    """
    _Move(source, target, replace, _ignore, waiting, quit).check()


def migrate(
    source: Store,
    target: Store,
    *,
    replace: bool = False,
    erase: bool = False,
    progress: Callable[[int], None] = _ignore,
    waiting: Waiting = _ignore,
    quit: Callable[[], bool] = lambda: False,  # noqa: A002
) -> MigrationReport:
    """Migrate a store, or finish an earlier run.

    Args:
        replace: remove the data that the target has; needed if there are any.
        erase: remove the data of the source in the end. The state "moved" stays.
        progress: called with the number of keys copied so far.
        waiting: called about once a second while it waits, with the reason and how long at most.
        quit: asked between two steps; once it returns True, the source is thawed.

    Raises:
        Interrupted: by `quit`; the source is in use again, and unchanged.
        MigrationError: it cannot begin or go on; unless shards were sealed already, the source is
            in use again.
        StoreError: a server cannot be reached or refuses.
    """
    return _Move(source, target, replace, progress, waiting, quit).run(erase=erase)


@dataclass
class _Move:
    """One run; see migrate() for its attributes."""

    source: Store
    target: Store
    replace: bool
    progress: Callable[[int], None]
    waiting: Waiting
    quit: Callable[[], bool]

    def __post_init__(self) -> None:
        self._token = states.new_token()
        self._report = MigrationReport()

    def run(self, *, erase: bool) -> MigrationReport:
        """Migrate, and return a report."""
        source, target, report = self.source, self.target, self._report
        started = source.clock.monotonic()
        self.check()
        config, _ = _config_of(source), _config_of(target)
        found, there = read_states(source), read_states(target)
        if all(state.moved for state in found):
            report.move = self._choose(found, there)
            moves = {s.moved for s in found} | {move_of(s.verified) for s in there}
            report.already = moves == {report.move}
        if not report.already:
            self._copy_and_commit(config)
        report.seal = states.confirm_seal(source, report.move, self.waiting)
        states.check_sealed(source, report.move)
        states.open_shards(target, read_states(target), report.move)
        if erase:
            writer = copying.FencedWriter(source, "moved", report.move)
            shards = range(len(source.shards))
            report.erased = copying.remove_all(source, shards, writer, lambda: None)
        report.seconds = source.clock.monotonic() - started
        return report

    def check(self) -> None:
        """Raise what keeps the move from beginning, or from going on."""
        source, target = self.source, self.target
        _check_prefixes(source.keys.prefix, target.keys.prefix)
        for store in (source, target):
            check_configs(store)
        _check_different(source, target, self._token)
        wait_for_others(source, self.quit, self.waiting)
        found, there = read_states(source), read_states(target)
        move = self._choose(found, there)
        if {s.moved for s in found} | {move_of(s.verified) for s in there} == {move}:
            return  # everything is copied
        states.check_source(source)
        if shards := _to_be_filled(found, there, move):
            states.check_target(target, shards, replace=self.replace)
            if not target.keys.prefix and not any(state.receiving for state in there):
                _check_bare(source, target, replace=self.replace)

    def _choose(self, found: list[ShardState], there: list[ShardState]) -> str:
        """Return the ID of the move: that of an earlier run, if this one goes on with it."""
        moves = {state.moved for state in found if state.moved}
        if not moves:
            return states.new_token()
        fences = [fence for state in there for fence in (state.receiving, state.verified)]
        if both := moves & {move_of(fence) for fence in fences}:
            return min(both)
        if self.replace:
            return states.new_token()
        part = "" if all(state.moved for state in found) else "partly "
        raise MigrationError(
            "moved-elsewhere",
            f"the source was {part}moved already, and not to {self.target.location}, or the copy "
            "there is lost: give --replace to copy it there again",
        )

    def _copy_and_commit(self, config: StoreConfig) -> None:
        source, target, report = self.source, self.target, self._report
        freeze = Freeze(source, self._token)

        def between() -> None:
            if self.quit():
                raise Interrupted
            freeze.renew_if_due()

        try:
            freeze.begin()
            # Only now: nobody else can seal a shard any more.
            found, there = read_states(source), read_states(target)
            report.move = self._choose(found, there)
            moves = {state.moved for state in found}
            before = max(moves - {report.move}, default="")
            fence = f"{self._token} {report.move}"
            shards = _to_be_filled(found, there, report.move)
            states.begin(target, fence, config, shards, replace=self.replace)
            if all(moves):  # both name the move from now on, so another run goes on with it
                freeze.commit(report.move, before, target.keys.prefix)
            servers = copying.servers_of(source), copying.servers_of(target)
            writer = copying.FencedWriter(target, "receiving", fence)
            copying.remove_all(target, shards, writer, between)
            copy = copying.Copy(source, target, shards, writer, report, between)
            copy.run(self.progress)
            copying.check_contents(target, copy, shards)
            states.mark_verified(target, fence, shards)
            copying.check_servers(source, servers[0], "source")
            copying.check_servers(target, servers[1], "target")
            between()
        except BaseException:
            freeze.end()
            raise
        try:
            freeze.commit(report.move, before, target.keys.prefix)
        except MigrationError:
            freeze.end()
            raise
        report.freeze_seconds = source.clock.monotonic() - freeze.since


def _to_be_filled(found: list[ShardState], there: list[ShardState], move: str) -> list[int]:
    """Return the shards of the target that are copied to: not those that are in use already.

    There are some if the source is sealed and another shard of the target lost its data since.
    """
    sealed = all(state.moved == move for state in found)
    return [n for n, state in enumerate(there) if not (sealed and states.is_open(state, move))]


def _config_of(store: Store) -> StoreConfig:
    """Return what a store keeps; written down if it is new."""
    for error in store.load_configs(range(len(store.shards))).values():
        raise error
    return store.config()


def _check_prefixes(*prefixes: str) -> None:
    """Check that no key of one of the stores looks like a key of the other one."""
    inner, outer = sorted(prefixes, key=len, reverse=True)
    key = f"{inner}stats:x".encode()
    if inner != outer and inner.startswith(outer) and parse_key(outer, key) is not None:
        raise MigrationError(
            "prefix", f"keys with the prefix {inner!r} look like keys with {outer!r}: use another"
        )


def _check_bare(source: Store, target: Store, *, replace: bool) -> None:
    """Check that a target without a prefix is empty, and that no other program's key is in the way.

    Its indexes do not show that: the listings write statistics and messages without any.
    """
    others: list[StoredKey] = []
    data = sum(1 for _ in all_keys(target, others.append))
    if data and not replace:
        states.refuse_data(target)
    taken = {(each.family.name, each.stem): each.key for each in others}
    for stored in all_keys(source) if taken else ():
        if key := taken.get((stored.family.name, stored.stem)):
            raise MigrationError(
                "taken",
                f"{key.decode(errors='replace')!a} in {target.location} belongs to another "
                "program: give --target-prefix, or choose another database",
            )


def _check_different(source: Store, target: Store, token: str) -> None:
    """Check that the two are different stores, whatever their URLs are."""
    probe = target.shards[0].keys.meta
    target.ask([("HSET", probe, "probe", token)])
    try:
        (seen,) = source.ask([("HGET", source.shards[0].keys.meta, "probe")])
    finally:
        target.ask([("HDEL", probe, "probe")])
    if seen == token.encode():
        raise MigrationError("same", "source and target are the same store")
