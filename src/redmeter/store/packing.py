"""Packing: commands as they go over the wire, of text and bytes alone.

Problem: hiredis also converts numbers to text, and does not check that it could. Meanwhile Python
may run a signal handler; if that raises, as the handler of Ctrl-C does, the process crashes.

Idea: hiredis never gets a number. By its type a `Command` has none, and the numbers of the commands
that a connection sends when it connects (`SELECT 6`, `HELLO 3`) are converted here.

Not done: connections made by a caller's client pack these commands themselves.
"""

from collections.abc import Callable

import hiredis

from redmeter.store.replies import Command

#: Return a command as it goes over the wire.
pack: Callable[[Command], bytes] = hiredis.pack_command  # type: ignore[assignment]  # its stub


class Packer:
    """Packs the commands that a connection of redis-py sends when it connects."""

    def pack(self, name: str, *rest: str | bytes | float) -> list[bytes]:
        """Return a command as it goes over the wire.

        Args:
            name: one word or several, "CLIENT SETINFO" for one.
        """
        return [
            pack((*name.split(), *(p if isinstance(p, str | bytes) else repr(p) for p in rest)))
        ]
