"""Detect a single cluster node behind a URL that names one server.

Such a node answers for its own slots as any server does. A series that is asked for may be in one
of them, or would be if it existed: the store then looks empty, while the other nodes have it. So
the first reading of a link asks for keys of many slots in the same exchange; a cluster node refuses
those of other nodes. Where the store has a `meta:` key, the answers do not matter. Writing is safe
without this: see binding.py.

A new connection may lead to another server, so each one asks again. Not done: the pool of a
caller's client reconnects unnoticed, so there only a failed exchange has the next one ask again.
"""

from collections.abc import Sequence

from redmeter.errors import StoreRefused, StoreUnavailable
from redmeter.keys import Keys
from redmeter.partitions import TAGS
from redmeter.store.link import Link
from redmeter.store.redirects import MOVES
from redmeter.store.replies import Command, Reply

#: Tags whose slots are asked for, evenly over all that a cluster has.
_ASKED = TAGS[::8]


def node_questions(link: Link, keys: Keys) -> list[Command]:
    """Return commands that a cluster node refuses; none once the server is known to be alone."""
    if link.alone:
        return []
    # No precision is 0. Who may read counters may ask for these.
    return [("HGETALL", keys.count(0, f"{{{tag}}}")) for tag in _ASKED]


def refuse_node(link: Link, keys: Keys, meta: Reply, replies: Sequence[Reply]) -> None:
    """Raise the error of a cluster node, which refuses keys of other nodes' slots.

    Args:
        meta: the content of `meta:`. A cluster node has none.
        replies: to the node questions; empty where the exchange opened a new connection, to a
            server that has not been asked: it is asked now.

    Raises:
        StoreRefused: MOVED or ASK.
    """
    if link.alone:
        return
    answers = [meta] if meta else replies or link.collect(node_questions(link, keys))
    for reply in answers:
        if isinstance(reply, StoreRefused) and reply.code in MOVES:
            raise reply
    # Without the rights for these keys it stays unknown; a server that is not ready is asked again.
    link.alone = not any(isinstance(reply, StoreUnavailable | StoreRefused) for reply in answers)
