"""Whether a server that is spoken to by itself is a node of a cluster.

Such a node answers for its own slots as any server does, and what is asked of a store may happen to
lie there, or would if there were anything: the store then seems to be empty, while the others have
it. So a link that has not seen a store yet looks for `meta:`, and where there is none asks for keys
of many slots. Writing cannot go wrong like this: see binding.py.
"""

from redmeter.errors import StoreRefused, StoreUnavailable
from redmeter.keys import Keys
from redmeter.partitions import TAGS
from redmeter.store.link import Link
from redmeter.store.redirects import MOVES
from redmeter.store.replies import Command, Reply

#: Tags whose slots are asked for, evenly over all that a cluster has.
_ASKED = TAGS[::8]


def see_that_it_is_alone(link: Link, keys: Keys, meta: Reply) -> None:
    """Look once whether a server is a node of a cluster: it refuses what is of other nodes' slots.

    Args:
        meta: what `meta:` holds, or anything else that is there. Where a store is, this is no
            such node.

    Raises:
        StoreRefused: it is: MOVED, or ASK.
    """
    if link.alone:
        return
    # No precision is 0. Who may read counters may ask for these.
    asked: list[Command] = [("HGETALL", keys.count(0, f"{{{tag}}}")) for tag in _ASKED]
    replies = [meta] if meta else link.collect(asked)
    for reply in replies:
        if isinstance(reply, StoreRefused) and reply.code in MOVES:
            raise reply
    # Who may not ask for these is never told; what does not answer for now is asked again.
    link.alone = not any(isinstance(reply, StoreUnavailable | StoreRefused) for reply in replies)
