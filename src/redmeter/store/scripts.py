"""The Lua scripts of lua/, one file per operation, and how to call one.

A script is called by its hash (EVALSHA) and sent whole only when the server does not know it:
after a restart, a failover or SCRIPT FLUSH. NOSCRIPT means that nothing ran, so sending again is
always safe.
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files

from redmeter.errors import StoreRefused
from redmeter.store.link import Command, Link, Reply


class Script:
    """One file of lua/, read on first use."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def _text(self) -> bytes:
        return (files("redmeter.store") / "lua" / f"{self.name}.lua").read_bytes()

    @cached_property
    def _sha(self) -> str:
        return hashlib.sha1(self._text, usedforsecurity=False).hexdigest()

    def command(
        self, keys: Sequence[str | bytes], args: Sequence[str | bytes | int], *, whole: bool = False
    ) -> Command:
        """Return the command that runs it."""
        if whole:
            return ("EVAL", self._text, len(keys), *keys, *args)
        return ("EVALSHA", self._sha, len(keys), *keys, *args)

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
