"""Packing: commands as they go over the wire, of text and bytes alone.

Problem: hiredis makes texts of numbers as well, and does not look whether it could. While it does,
Python carries out what is due of signals; a handler that raises there, as that of Ctrl-C does, ends
the process by a segmentation fault.

Idea: it is given no number. A `Command` has none by its type, and what a connection says by itself
as it connects (`SELECT 6`, `HELLO 3`) has its numbers spelled here.

Not done: connections that a caller's client makes say that as the client packs it.
"""

from collections.abc import Callable

import hiredis

from redmeter.store.replies import Command

#: Return a command as it goes over the wire.
pack: Callable[[Command], bytes] = hiredis.pack_command  # type: ignore[assignment]  # its stub


class Packer:
    """What a connection of redis-py packs its commands with; those are the client's own."""

    def pack(self, name: str, *rest: str | bytes | float) -> list[bytes]:
        """Return a command as it goes over the wire.

        Args:
            name: one word or several, "CLIENT SETINFO" for one.
        """
        return [
            pack((*name.split(), *(p if isinstance(p, str | bytes) else repr(p) for p in rest)))
        ]
