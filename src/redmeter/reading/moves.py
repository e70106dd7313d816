"""Whether a store is on its way to another one, or still read together with the one before.

Questions, and findings from their answers, for health.py. How a store is moved: redmeter.migrating.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from redmeter.errors import StoreError
from redmeter.keys import Keys
from redmeter.partitions import SpreadKeys
from redmeter.reading.findings import Finding
from redmeter.store import Store
from redmeter.store.replies import Command, Reply, raised

#: What TTL says of a key that is not there.
_NONE = -2
#: How much is taken of what another program may have written: of a place, and digits of a number.
_SHOWN, _DIGITS = 500, 18

_END = "let all writers move, then run `redmeter migrate` with the same FROM and TO"


def questions(keys: Keys) -> list[Command]:
    """Ask how far a move of this store has come; a cluster is moved nowhere."""
    if isinstance(keys, SpreadKeys):
        return []
    fields = "target", "complete", "left", "unkept", "sums"
    return [("TTL", f"{keys.moving}lock"), *(("HGET", keys.moving, field) for field in fields)]


def away(replies: Sequence[Reply], live: Mapping[str, AbstractSet[int]]) -> Iterator[Finding]:
    """Judge the answers.

    Args:
        live: kind -> precisions of which something lies in this store, as far as one has looked.
    """
    refused = next((reply for reply in replies if isinstance(reply, StoreError)), None)
    if refused is not None:  # an ACL forbids to ask
        text = f"whether it is moved cannot be told: {refused}"
        yield Finding("warn", "move", text, "see Stored format, ACL, for what examining needs")
        return
    if not replies or replies[1] is None:
        return
    lock, where, complete, left, passed, sums = replies
    target, unkept = ascii(where[:_SHOWN].decode(errors="replace"))[1:-1], _unkept(passed)
    if complete != b"1" and lock != _NONE:
        text = f"it is being moved to {target}: a run is at work, or was some seconds ago"
        yield Finding("warn", "move", text, "let it end")
        return
    if complete != b"1":
        text = f"a move to {target} has begun, and no run is at work: the rest is there"
        yield Finding("warn", "move", text, _END)
        return
    stays = int(left[:_DIGITS]) if left is not None and left.isdigit() else 0
    if stays:
        keys = "1 key" if stays == 1 else f"{stays:,} keys"
        text = f"was moved to {target}, but for {keys} whose contents it could not store"
        fix = "`redmeter migrate` with the same FROM and TO names them: see How-to, Move"
        yield Finding("warn", "move", text, fix)
    if any(some - unkept.get(kind, set()) for kind, some in live.items()):
        text = f"was moved to {target}, and has been written to since"
        yield Finding("warn", "move", text, _END)
    elif not stays and (unkept or sums not in (None, b"{}")):  # else there was nothing to move
        what = "all of it that is kept there" if unkept else "all of it"
        yield Finding("ok", "move", f"{what} was moved to {target}")


def _unkept(text: bytes | None) -> dict[str, set[int]]:
    """Read of what precisions something stays, since the other store does not keep them."""
    try:
        found: dict[str, dict[str, int]] = json.loads(text or b"{}")
        return {kind: {int(precision) for precision in some} for kind, some in found.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):  # another program's
        return {}


def before(store: Store) -> Iterator[Finding]:
    """Judge what lies in the store that this one was moved from, where that is read too."""
    # Most processes never read two stores.
    from redmeter.store.previous import Previous

    if not isinstance(store.link, Previous):
        return
    link, keys = store.link.before
    where = link.location
    kept = store.seen
    indexes = (keys.known, kept.series), (keys.gauges, kept.series), (keys.hists, kept.histograms)
    asked: list[Command] = [
        ("ZLEXCOUNT", index, f"[{precision}:", f"({precision};")
        for index, retention in indexes
        for precision in retention  # what this one does not keep stays there
    ]
    try:
        replies = link.exchange([*asked, ("ZCARD", keys.messages)])
        number = sum(raised(reply) for reply in replies)
    except StoreError as error:
        fix = "mend that; where all of it was moved, do without REDMETER_PREVIOUS_URL"
        yield Finding("fail", "move", f"{where} cannot be read: {error}", fix)
        return
    if store.link.missing:  # what was asked before was denied, say
        fix = "see Stored format, ACL, for what examining needs"
        yield Finding("fail", "move", f"{store.link.missing}: what lies there is missing", fix)
    elif number:
        text = f"{where} is read as well: {number:,} entries lie there still"
        yield Finding("warn", "move", text, _END)
    else:
        text = f"nothing lies in {where} any more: readers may do without REDMETER_PREVIOUS_URL"
        yield Finding("ok", "move", text)
