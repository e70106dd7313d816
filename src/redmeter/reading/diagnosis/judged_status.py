"""A status is judged once for each complete minute, and kept for the next readers.

So the page, the command, the API and other programs show the same, and five watchers cost as much
as one. The first reader takes the key of the minute: for LEASE_MS it is empty, which means that
one is judging; then it has the status as JSON, for STATUS_SECONDS. The key names the rules and the
time zone, since other ones make another status.

A reader that may not write judges without keeping it: by the same function, of the same data. So
does one that left out a part of the store.
"""

import dataclasses
import json
import types
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from redmeter.analysis.comparing.incidents import MINUTE
from redmeter.errors import StoreError
from redmeter.reading.diagnosis.status import judge_now
from redmeter.results.explanation import Status
from redmeter.store import Store
from redmeter.stored.keys import slice_start

#: Changes with every change of what a status is made of.
RULES: Final = "2"
#: How long one is given to judge, milliseconds, and how often others look, seconds.
LEASE_MS: Final = 5_000
_LOOK: Final = 0.05
#: How long a status is kept.
STATUS_SECONDS: Final = 300
#: The states of a store that moves: nothing is written then.
_MOVING: Final = ("frozen", "moved", "receiving")

T = TypeVar("T")


def read_status(store: Store) -> tuple[float, Status]:
    """Return the status of the last complete minute, and the server's clock, Unix seconds.

    Raises:
        StoreError: the server is unreachable or refuses.
    """
    view, _ = store.read()
    minute = slice_start(view.now, MINUTE)
    kept = _KeptStatus(store.primary, minute, view.now)
    taken = kept.take()
    if taken is not None and not taken:  # another one is judging
        for _ in range(int(LEASE_MS / 1000 / _LOOK)):
            if kept.status is not None:
                break
            store.clock.sleep(_LOOK)
            kept.look()
    if kept.status is not None:
        return view.now, kept.status
    now, status = judge_now(store)
    if taken:
        kept.leave(status if status.until == minute and not store.skipped() else None)
    return now, status


class _KeptStatus:
    """The status of a minute, as a store keeps it.

    Args:
        primary: the store, where it is written to.
        minute: the end of the five minutes, Unix seconds.
        now: the server's clock, Unix seconds.
    """

    def __init__(self, primary: Store, minute: int, now: float) -> None:
        shard = primary.shards[0]
        self._link, self._meta = shard.link, shard.keys.meta
        self._key = shard.keys.key("status", f"{minute}:{RULES}:{primary.zone.name}")
        self._now = int(now * 1000)
        self.status: Status | None = None

    def take(self) -> bool | None:
        """Look for the status, and take the minute if there is none.

        Returns:
            Whether the minute is taken now; None: this reader may not write.
        """
        try:
            text, moving = self._link.exchange(
                [("GET", self._key), ("HMGET", self._meta, *_MOVING)]
            )
            if self._read(text):
                return False
            if isinstance(moving, Exception) or any(moving):
                return None
            end = str(self._now + LEASE_MS)
            (reply,) = self._link.exchange([("SET", self._key, "", "NX", "PXAT", end)])
        except StoreError:
            return None
        if isinstance(reply, Exception):
            return None
        return reply is not None

    def look(self) -> None:
        """Look for the status once more."""
        try:
            (text,) = self._link.exchange([("GET", self._key)])
        except StoreError:
            return
        self._read(text)

    def leave(self, status: Status | None) -> None:
        """Keep a status; None: let the next one judge."""
        text, end = "", self._now
        if status is not None:
            text = json.dumps(dataclasses.asdict(status), ensure_ascii=False, separators=(",", ":"))
            end += 1000 * STATUS_SECONDS
        try:
            self._link.exchange([("SET", self._key, text, "PXAT", str(end))])
        except StoreError:
            return  # the next one judges again

    def _read(self, text: Any) -> bool:
        """Read a reply; whether there is something: a status, or the mark of one who is judging."""
        if text is None or isinstance(text, Exception):
            return False
        if text:
            try:
                self.status = restored(Status, json.loads(text))
            except (ValueError, TypeError, KeyError):
                return False  # another program's
        return True


def restored(kind: type[T], value: Any) -> T:
    """Return the dataclass that dataclasses.asdict() and JSON made a value of."""
    return _restored(kind, value)  # type: ignore[no-any-return]


def _restored(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _restored(hints[name], one) for name, one in value.items()})  # type: ignore[operator]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _restored(next(one for one in arguments if one is not type(None)), value)
    if origin is tuple:
        if arguments[-1] is ...:
            return tuple(_restored(arguments[0], one) for one in value)
        return tuple(_restored(*pair) for pair in zip(arguments, value, strict=True))
    if origin is dict or origin is Mapping:
        return {key: _restored(arguments[1], one) for key, one in value.items()}
    if origin is Literal:
        return value
    return float(value) if kind is float else value
