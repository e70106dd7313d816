"""Redirects: what a node of a cluster says of who has a slot, and what it is told in return.

No I/O.
"""

import re
from collections.abc import Collection, Sequence

from redmeter.errors import AccessDenied, StoreRefused
from redmeter.store.replies import Command, Reply
from redmeter.store.slots import UNKNOWN_HOST, Address, Remap, as_told

#: What leads to another node: for good, or for once.
MOVES = {"MOVED", "ASK"}
#: The next command is for a slot that the node is but to get; readings are answered by replicas; is
#: it one, and does it hear from its master?
ASKING: Command = ("ASKING",)
READONLY: Command = ("READONLY",)
ROLE: Command = ("ROLE",)

#: What a node says of a slot: which, and who has it.
_REDIRECTED = re.compile(r"(\d+) (\S*):(\d+)")


def place_in(
    reply: StoreRefused,
    address: Address,
    known: Collection[Address],
    remap: Remap = as_told,
) -> Address | None:
    """Return where a redirect leads; None where it does not say.

    Args:
        address: of the node that said so, which may call the other by no name.
        known: nodes that may be meant by one without a name, where they are reached.
        remap: where a node is reached, by where it is said to be.
    """
    found = _REDIRECTED.search(reply.detail)
    if found is None:
        return None
    host, port = found[2] or address[0], int(found[3])
    if host == UNKNOWN_HOST:
        meant = next((other for other in known if other[1] == port), None)
        return meant or remap((address[0], port))
    return remap((host, port))


def answers(sent: Sequence[Command], replies: Sequence[Reply]) -> list[Reply]:
    """Return the replies to all but our own words; who may not say one is told that instead."""
    found, always, once = list[Reply](), None, None
    for command, reply in zip(sent, replies, strict=True):
        denied = reply if isinstance(reply, AccessDenied) else None
        if command == READONLY:
            always = denied
        elif command == ASKING:
            once = denied
        elif command == ROLE:
            pass  # see is_cut_off()
        else:  # a master that got the slot meanwhile carries it out all the same
            sent_on = isinstance(reply, StoreRefused) and reply.code in MOVES
            found.append((once or always or reply) if sent_on else reply)
            once = None
    return found


def is_cut_off(reply: Reply) -> bool:
    """Tell by its answer to ROLE whether a node is a replica that does not hear from its master.

    One that may not be asked is taken to be well.
    """
    told = reply if isinstance(reply, list) else []
    return len(told) > 3 and told[0] == b"slave" and told[3] != b"connected"
