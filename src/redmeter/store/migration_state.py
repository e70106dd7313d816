"""The states of a store that is moved to another server, as `meta:` of each shard has them.

`frozen` and `moved` are states of the store that is left, `receiving` and `verified` of the new
one. The scripts check them wherever something is written: see lua/apply.lua.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from redmeter.errors import StoreMoving
from redmeter.keys import Keys
from redmeter.store.replies import Command, Reply, mapped, raised

if TYPE_CHECKING:
    from redmeter.store.store import Store


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
    text = {name: meta.get(name.encode(), b"").decode(errors="replace") for name in _FIELDS}
    holder, _, deadline = text["frozen"].partition(" ")
    try:
        until = float(deadline)
    except ValueError:
        holder, until = "", 0.0
    return ShardState(holder, until, text["moved"], text["receiving"], text["verified"])


def read_states(store: "Store") -> list[ShardState]:
    """Return the state of each shard of a store."""
    commands = [state_read(shard.keys) for shard in store.shards]
    return [parse_state(reply) for reply in store.ask(commands)]


def move_of(fence: str) -> str:
    """Return the ID of the move in `receiving` or `verified`."""
    return fence.partition(" ")[2]


def is_target_of(target: "Store", source: "Store") -> bool:
    """Return whether a store was moved to another one."""
    moves = {state.moved for state in read_states(source)} - {""}
    shards = read_states(target)
    fences = [fence for state in shards for fence in (state.receiving, state.verified)]
    return not moves.isdisjoint(map(move_of, fences))


_FIELDS = ("frozen", "moved", "receiving", "verified")
