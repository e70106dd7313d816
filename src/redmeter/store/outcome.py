"""Parses the reply of lua/apply.lua, the script that applies a batch."""

from collections.abc import Sequence
from typing import Any

from redmeter.errors import StoreMoving, StoreRefused
from redmeter.store.replies import SCRIPT, Reply, error_code, raised
from redmeter.types import Batch, Operations, Outcome, Rejection


class RetentionChanged(StoreRefused):
    """A batch was made for another retention than the store's; nothing was written."""


_APPLIED = Outcome()
#: What the script answers where the store is being moved.
_STATES = {-3: "frozen", -4: "receiving", -5: "moved"}


def outcome_of(batch: Batch, reply: Reply) -> Outcome:
    """Parse the script's reply to a batch.

    Raises:
        RetentionChanged, StoreError: see Shard.applying().
    """
    if reply == 1:
        return _APPLIED
    if reply == 0:
        return Outcome(applied=False)
    if reply == -1:
        raise RetentionChanged("ERR", "the store's retention has changed")
    if reply == -2:
        return Outcome(applied=False, uncertain=True)
    if isinstance(reply, int):
        raise StoreMoving(_STATES[reply])
    return _outcome(batch.operations, raised(reply)[1:])


def _outcome(operations: Operations, reply: Sequence[Any]) -> Outcome:
    """Read (number of a key, what there is to tell, …) of the script's reply."""
    keys = [key for operation in operations for key in operation.keys]
    told: Sequence[tuple[str, int]] | None = None
    answers, rejections = [], []
    for number, what in zip(reply[::2], reply[1::2], strict=True):
        at = int(number) - 3  # after watermark and meta
        text = what if isinstance(what, str) else what.decode(errors="replace")
        if text.startswith("is "):
            answers.append((keys[at], text[3:]))
            continue
        if told is None:
            told = [each for operation in operations for each in operation.told()]
        text = SCRIPT.sub("", text)
        rejections.append(Rejection(keys[at], _reason(text), text, *told[at]))
    return Outcome(rejections=tuple(rejections), answers=tuple(answers))


def _reason(text: str) -> str:
    """Return the class of an error, a small fixed vocabulary that can be counted."""
    if text in ("aged", "future"):
        return text
    if text.startswith("unkept"):
        return "unkept"
    if "overflow" in text or "ERR value is not an integer" in text:  # an amount past 2^63 - 1
        return "overflow"
    if "not an integer" in text:  # "hash value is not …": somebody else's
        return "not-a-number"
    code = error_code(text)
    return "denied" if code == "NOPERM" else code
