"""Commands, replies and the links that exchange them: types, parsing, errors. No I/O."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import redis.exceptions as client_errors

from redmeter.errors import (
    AccessDenied,
    StoreError,
    StoreMoving,
    StoreRefused,
    StoreUnavailable,
)
from redmeter.lazy_regex import late
from redmeter.store.servers.urls import advice

#: One command: its name and arguments. No numbers: see sockets.py.
Command = tuple[str | bytes, ...]
#: A reply: bytes, int, None, a list of replies, or the error it was.
Reply = Any

# --- Replies ---------------------------------------------------------------------------------


def raised(reply: Reply) -> Reply:
    """Return a reply, or raise it if it is an error.

    Raises:
        StoreError: the reply.
    """
    if isinstance(reply, StoreError):
        raise reply
    return reply


def pairs(reply: Reply) -> list[tuple[bytes, bytes]]:
    """Read a map, which comes flat by protocol 2 and as a mapping by protocol 3."""
    if isinstance(reply, dict):
        return list(reply.items())
    return list(zip(reply[::2], reply[1::2], strict=True))


def mapped(reply: Reply) -> dict[bytes, bytes]:
    """Read a map as pairs() does, for who looks up its keys."""
    if isinstance(reply, dict):
        return reply
    parts = iter(reply)
    return dict(zip(parts, parts, strict=True))


def scored(reply: Reply) -> list[tuple[bytes, float]]:
    """Read members with their scores, flat by protocol 2 and two by two by protocol 3."""
    flat = [part for item in reply for part in (item if isinstance(item, list) else [item])]
    return [(m, float(s)) for m, s in zip(flat[::2], flat[1::2], strict=True)]


def plain_text(value: object) -> str:
    """Return a text of a reply, which a caller's client may have decoded."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def is_misplaced(reply: Reply) -> bool:
    """Return whether a reply is an error of one key, while others can be read.

    It has another type; or, in best-effort mode, it is on a server that is unreachable: see
    Store.best_effort().
    """
    if isinstance(reply, StoreUnavailable):
        return True
    return isinstance(reply, StoreRefused) and reply.code == "WRONGTYPE"


# --- Errors ----------------------------------------------------------------------------------

_CODES = late(
    r"\b(NOSCRIPT|OOM|READONLY|LOADING|MISCONF|NOREPLICAS|MASTERDOWN|BUSY|CLUSTERDOWN|TRYAGAIN|MOVED"
    r"|ASK|CROSSSLOT|WRONGTYPE|NOAUTH|WRONGPASS|NOPERM)\b"
)
#: The arguments of an unknown command, which a server repeats.
ARGUMENTS = late(r",? with args beginning with:.*", re.DOTALL)
#: The name of the script in its error, before the error (Redis up to 6.2) or after it.
SCRIPT = late(
    r"Error running script \(call to \w+\): |@user_script: ?[0-9]+: -?"
    r"| script: ([0-9a-f]{40}, )?on @user_script:[0-9]+\.$"
)
#: The error of scripts that change a store which is being moved: see lua/operations/states.lua.
_MOVING = late(r"STORE_MOVING (frozen|receiving|moved)\b")
_BY_CLASS: tuple[tuple[type[Exception], str], ...] = (
    (client_errors.NoScriptError, "NOSCRIPT"),
    (client_errors.OutOfMemoryError, "OOM"),
    (client_errors.ReadOnlyError, "READONLY"),
    (client_errors.BusyLoadingError, "LOADING"),
    (client_errors.NoPermissionError, "NOPERM"),
    (client_errors.AuthenticationWrongNumberOfArgsError, "WRONGPASS"),
    (client_errors.AuthenticationError, "WRONGPASS"),
    (client_errors.AuthorizationError, "NOAUTH"),
    (client_errors.TryAgainError, "TRYAGAIN"),
    (client_errors.MasterDownError, "MASTERDOWN"),
    (client_errors.ClusterDownError, "CLUSTERDOWN"),  # of which the one above is a kind
    (client_errors.ClusterCrossSlotError, "CROSSSLOT"),
    (client_errors.MovedError, "MOVED"),
    (client_errors.AskError, "ASK"),  # of which the one above is a kind
)
#: Texts without a code: Redis up to 7.0 within scripts, all servers for superfluous passwords.
_BY_TEXT = (
    ("user executing the script can't", "NOPERM"),  # run this command, access these keys
    ("No permissions", "NOPERM"),
    ("has no permissions", "NOPERM"),
    ("ACL failure", "NOPERM"),
    ("Authentication required", "NOAUTH"),
    ("client already authenticated", "NOAUTH"),
    ("invalid username-password", "WRONGPASS"),
    ("without any password", "WRONGPASS"),
)


def error_code(text: str) -> str:
    """Return the code within a server's error text, also where a script's error wraps it."""
    match = _CODES.search(text)
    if match:
        return match[1]
    return next((code for part, code in _BY_TEXT if part in text), "ERR")


def translate(error: Exception, location: str) -> StoreError:
    """Turn an error of the client library into one of ours."""
    if isinstance(error, StoreError):
        return error
    # A server without AUTH repeats its arguments, a password among them.
    text = SCRIPT.sub("", ARGUMENTS.sub("", str(error)))
    if moving := _MOVING.search(text):
        return StoreMoving(moving[1])
    code = next((c for kind, c in _BY_CLASS if isinstance(error, kind)), None)
    if code in (None, "WRONGPASS"):
        nested = error_code(text)
        code = nested if nested != "ERR" or code is None else code
    if code in ("NOAUTH", "WRONGPASS", "NOPERM"):
        return AccessDenied(code, text)
    # A reply that cannot be parsed is no reply either.
    broken = client_errors.ConnectionError | client_errors.TimeoutError
    network = isinstance(error, broken | client_errors.InvalidResponse | OSError)
    if network and code == "ERR":
        reason = text or type(error).__name__
        return StoreUnavailable(location, reason, fix=advice(location, reason))
    return StoreRefused(code or "ERR", text)


# --- Links ---------------------------------------------------------------------------------------
# Link: what the store needs of a connection to Redis.
#
# Implemented by `ServerLink` and `SentinelLink` for one server, by `ClusterLink` for the nodes of a
# cluster, by `FanOut` for reads of all shards, and by test doubles.


class Link(Protocol):
    """Exchanges commands with a server, or with all servers of a cluster."""

    #: The address, without credentials.
    location: str

    @property
    def database(self) -> int:
        """The number of the database; 0 on a cluster."""
        return 0

    def exchange(
        self, commands: Sequence[Command], take: Callable[[Reply], Any] | None = None
    ) -> list[Reply]:
        """Send commands together and return one reply for each; a server's error is a reply.

        Args:
            take: called with each reply, on one server as it arrives; its results are returned
                instead.

        Raises:
            StoreUnavailable: there is no connection, or it broke; on a cluster, to a node that has
                one of the keys.
            StoreError: the server refuses the connection.
        """
        replies = self.collect(commands)
        for reply in replies:
            if isinstance(reply, StoreUnavailable):
                raise reply
        return replies if take is None else [take(reply) for reply in replies]

    def collect(self, commands: Sequence[Command], *, spin: bool = False) -> list[Reply]:
        """Exchange commands; a command that was not answered has the error as its reply.

        Args:
            spin: look for the reply without sleeping for a moment, where that is faster.
        """
        ...

    def bounded(self, seconds: float) -> AbstractContextManager[None]:  # noqa: ARG002
        """Limit the exchanges of this thread to so many seconds where the client is a caller's."""
        return nullcontext()

    def best_effort(self) -> "Link":
        """Return a link for reads that continue without unreachable servers."""
        return self

    def skipped(self) -> list[str]:
        """Return what best-effort reads left out, as sentences: "HOST:PORT does not answer"."""
        return []

    def unreachable(self) -> list[str]:
        """Return the servers of a cluster that did not answer the last time."""
        return []

    def by_server(self, keys: Sequence[str]) -> dict[str, list[int]]:
        """Return the positions of the keys that each server has; under "" those without a server.

        Raises:
            StoreError: no node of a cluster returns the slots; also by servers() and ask_servers().
        """
        ...

    def servers(self) -> "Sequence[Link]":
        """Return a link to each server."""
        ...

    def ask_servers(self, commands: Sequence[Command]) -> dict[str, list[Reply]]:
        """Send the same commands to each server; return the replies by its address, HOST:PORT."""
        ...

    def retry_after(self, key: str) -> float:  # noqa: ARG002
        """Return the seconds for which the server that has a key is not contacted."""
        return 0.0

    def replaced(self) -> bool:
        """Return whether another server has taken the place of one that failed."""
        return False

    def recover(self) -> None:
        """Prepare for another exchange after a connection broke."""
        ...

    def cap_timeout(self, seconds: float) -> None:
        """From now on, wait for a reply no longer than about that."""
        ...

    def close(self) -> None:
        """Close the connections, unless they are a caller's."""
        ...
