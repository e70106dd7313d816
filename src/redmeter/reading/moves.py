"""Whether a store is on its way to another one, or still read together with the one before.

Questions, and findings from their answers, for health.py. How a store is moved: redmeter.migrating.
"""

from collections.abc import Iterator, Sequence

from redmeter.errors import StoreError
from redmeter.keys import Keys
from redmeter.partitions import SpreadKeys
from redmeter.reading.findings import Finding
from redmeter.store import Store
from redmeter.store.link import Command, Reply

_END = "let all writers move, then run `redmeter migrate` with the same FROM and TO"


def questions(keys: Keys) -> list[Command]:
    """Ask how far a move of this store has come; a cluster is moved nowhere."""
    if isinstance(keys, SpreadKeys):
        return []
    return [("HGET", keys.moving, field) for field in ("target", "complete")]


def away(replies: Sequence[Reply], *, filled: bool) -> Iterator[Finding]:
    """Judge the answers.

    Args:
        filled: whether anything lies in this store.
    """
    if replies and isinstance(replies[0], StoreError):  # an ACL forbids to ask
        text = f"whether it is moved cannot be told: {replies[0]}"
        yield Finding("warn", "move", text, "see Stored format, ACL, for what examining needs")
        return
    if not replies or replies[0] is None:
        return
    target, complete = ascii(replies[0].decode(errors="replace"))[1:-1], replies[1] == b"1"
    if not complete:
        text = f"a move to {target} has begun: the rest is there, and a run may be at work"
        yield Finding("warn", "move", text, _END)
    elif filled:
        text = f"was moved to {target}, and has been written to since"
        yield Finding("warn", "move", text, _END)
    else:
        yield Finding("ok", "move", f"all of it was moved to {target}")


def before(store: Store) -> Iterator[Finding]:
    """Judge what lies in the store that this one was moved from, where that is read too."""
    # Most processes never read two stores.
    from redmeter.store.previous import Previous

    if not isinstance(store.link, Previous):
        return
    try:
        number = store.link.left()
    except StoreError as error:
        fix = "start it again; where all of it was moved, do without REDMETER_PREVIOUS_URL"
        yield Finding("warn", "move", f"the store before cannot be read: {error}", fix)
        return
    where = store.link.other_location
    if number:
        text = f"{where} is read as well: {number:,} entries lie there still"
        yield Finding("warn", "move", text, _END)
    else:
        text = f"nothing lies in {where} any more: readers may do without REDMETER_PREVIOUS_URL"
        yield Finding("ok", "move", text)
