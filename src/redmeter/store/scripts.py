"""The Lua scripts of lua/, one file per operation, and how to call one.

A script is called by its hash (EVALSHA) and sent whole only when the server does not know it:
after a restart, a failover or SCRIPT FLUSH. NOSCRIPT means that nothing ran, so sending again is
always safe.
"""

import hashlib
from collections.abc import Sequence
from importlib.resources import files

from redmeter.errors import StoreRefused
from redmeter.store.link import Command, Link, Reply


class Script:
    """One file of lua/, read on first use."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Not by functools.cached_property: before Python 3.12 it holds a lock, which a process
        # that is forked meanwhile would find held for good.
        self._known: tuple[bytes, str] | None = None

    def _text_and_sha(self) -> tuple[bytes, str]:
        if self._known is None:
            text = (files("redmeter.store") / "lua" / f"{self.name}.lua").read_bytes()
            self._known = text, hashlib.sha1(text, usedforsecurity=False).hexdigest()
        return self._known

    def command(
        self, keys: Sequence[str | bytes], args: Sequence[str | bytes | int], *, whole: bool = False
    ) -> Command:
        """Return the command that runs it."""
        text, sha = self._text_and_sha()
        if whole:
            return ("EVAL", text, len(keys), *keys, *args)
        return ("EVALSHA", sha, len(keys), *keys, *args)

    def run(
        self, link: Link, keys: Sequence[str | bytes], args: Sequence[str | bytes | int]
    ) -> Reply:
        """Run it and return its reply; an error of the server's is returned, not raised.

        Raises:
            StoreUnavailable, AccessDenied: see Link.exchange.
        """
        (reply,) = link.exchange([self.command(keys, args)])
        if isinstance(reply, StoreRefused) and reply.code == "NOSCRIPT":
            (reply,) = link.exchange([self.command(keys, args, whole=True)])
        return reply


APPLY = Script("apply")
BIND = Script("bind")
RETAIN = Script("retain")
CLEAN = Script("clean")
COMPACT = Script("compact")
PUBLISH = Script("publish")
