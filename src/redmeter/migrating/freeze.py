"""Freeze: nothing is written to the source while it is copied, and never again once it has moved.

Each shard of the source has a lease in its `meta:`, "TOKEN DEADLINE" by the server's clock. Scripts
apply no batch before the deadline. The mover renews the lease while it copies. If it dies or
sleeps, the lease expires and writers go on; a mover that wakes up later can neither
renew nor commit, since both compare the token and the time in the same script.
"""

import contextlib
from collections.abc import Callable, Sequence

from redmeter.errors import StoreError
from redmeter.migrating.report import Interrupted, MigrationError
from redmeter.store import Store
from redmeter.store.migration_state import read_states
from redmeter.store.replies import Reply, raised
from redmeter.store.scripts import FREEZE, collect_scripts

#: How long the source stays frozen after the last renewal, seconds.
LEASE = 30.0
#: How often the lease is renewed, seconds.
RENEWAL = 5.0
#: How often a lease of another mover is looked at, seconds.
LOOK = 0.5


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
        for done, moved, receiving, _, _ in self._all("freeze", str(LEASE)):
            if not done and not moved:
                self.end()
                if receiving:
                    raise MigrationError("source-unfinished", _UNFINISHED)
                raise MigrationError("busy", "another migration of this source is running")

    def renew_if_due(self) -> None:
        """Renew the leases, every RENEWAL seconds.

        Raises:
            MigrationError: one has expired.
        """
        now = self._source.clock.monotonic()
        if now - self._renewed < RENEWAL:
            return
        for done, moved, *_ in self._all("renew", str(LEASE)):
            if not done and not moved:
                raise MigrationError("expired", _EXPIRED)
        self._renewed = now

    def end(self) -> None:
        """Let writers go on, as far as the source can be reached; elsewhere the lease expires."""
        with contextlib.suppress(StoreError):
            self._all("unfreeze")

    def commit(self, move: str, before: str) -> None:
        """Seal all shards, for good.

        Args:
            move: ID of the move.
            before: the ID that shards have which moved in an earlier run; "" if none has.

        Raises:
            MigrationError: the lease of a shard had expired; it was not sealed.
        """
        if not all(done for done, *_ in self._all("commit", move, before)):
            raise MigrationError("expired", _EXPIRED)

    def _all(self, action: str, *args: str) -> Sequence[tuple[int, str, str, str, float]]:
        """Run the script on all shards; see lua/freeze.lua for its reply."""
        words = [action, self._token, *args]
        shards = self._source.shards
        commands = [FREEZE.command([s.keys.meta, s.keys.known], words) for s in shards]
        return [_parsed(raised(r)) for r in collect_scripts(shards[0].link.collect, commands)]


_EXPIRED = "the source was not frozen all the time: this process was stopped for too long"
_UNFINISHED = "the source is itself the target of a migration that has not finished"


def _parsed(reply: Reply) -> tuple[int, str, str, str, float]:
    done, moved, receiving, holder, left = reply
    return done, moved.decode(), receiving.decode(), holder.decode(), float(left)


def wait_for_others(source: Store, quit: Callable[[], bool]) -> None:  # noqa: A002
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
                raise MigrationError("busy", "another migration of this source is running")
        source.clock.sleep(LOOK)
