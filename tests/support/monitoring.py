"""The commands that a server gets over TCP, scripts' calls included, as `MONITOR` shows them."""

import ast
import re
import socket
from collections.abc import Callable

from support.servers import Server

#: `TIME [DB CLIENT] "COMMAND" "ARGUMENT" ...`; the client is `lua` for the call of a script.
_LINE = re.compile(rb"^\+[0-9.]+ \[\d+ ([^\]]+)\] (.*)\r\n$")
_ARGUMENT = re.compile(rb'"(?:[^"\\]|\\.)*"')

Command = tuple[bytes, ...]


def monitored(server: Server, act: Callable[[], object]) -> list[Command]:
    """Return the commands that reach a server over TCP while something runs, each once.

    Commands over the unix socket are left out, and so are the calls of scripts that they run.
    """
    found: dict[Command, None] = {}
    with socket.create_connection(("127.0.0.1", server.port), 10.0) as watching:
        lines = watching.makefile("rb")
        watching.sendall(b"MONITOR\r\n")
        assert lines.readline() == b"+OK\r\n"
        act()
        with socket.create_connection(("127.0.0.1", server.port), 10.0) as ending:
            ending.sendall(b"ECHO that-is-all\r\n")
            by_tcp = False
            for line in lines:
                shown = _LINE.match(line)
                assert shown is not None, line
                command = tuple(
                    ast.literal_eval(f"b{argument.decode('latin-1')}")
                    for argument in _ARGUMENT.findall(shown[2])
                )
                if command == (b"ECHO", b"that-is-all"):
                    break
                if shown[1] != b"lua":
                    by_tcp = not shown[1].startswith(b"unix:")
                if by_tcp:
                    found[command] = None
    return list(found)
