"""The servers of one test worker, and how each is made as new before every test."""

import os
import socket
from collections.abc import Callable
from typing import Any, NoReturn

import hiredis
import pytest
import redis

from support.binaries import BINARIES, Unavailable
from support.servers import Server, connected

#: There, a server that cannot be had is a failure.
IN_CI = os.environ.get("CI") == "true"

#: What tests get that ask for no other.
DEFAULT = "valkey-9.1"
#: What tests marked `servers` run on: the default and the oldest supported, which are the newest of
#: one engine and the oldest of the other. `make nightly` runs all of them on all of `ENDS`.
EVERYDAY = [DEFAULT, "redis-6.2"]
#: The oldest and newest of each engine: in CI, one that cannot be had is a failure.
ENDS = [name for name, build in BINARIES.items() if build.end]


def asked_servers() -> list[str]:
    """Return the names that REDMETER_TEST_SERVERS asks for; none where it is not set."""
    asked = os.environ.get("REDMETER_TEST_SERVERS", "")
    given = [name.strip() for name in asked.split(",") if name.strip()]
    names = list(BINARIES) if given == ["all"] else given
    if wrong := [name for name in names if name not in BINARIES]:
        raise pytest.UsageError(f"REDMETER_TEST_SERVERS: no {wrong}; there are {list(BINARIES)}")
    return names


def servers_of_a_test(depends: bool) -> list[str]:
    """Return what a test runs on: those that are asked for, or else the everyday ones.

    Args:
        depends: whether it is marked `servers`.
    """
    return asked_servers() or (EVERYDAY if depends else [DEFAULT])


def usual_server() -> str:
    """Return what tests run on that are there once: the default, unless others are asked for."""
    asked = asked_servers()
    return DEFAULT if DEFAULT in asked or not asked else asked[0]


class Fleet:
    """The servers of one test worker, each started when first asked for."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}
        self._settings: dict[str, dict[str, str]] = {}

    def get(self, name: str) -> Server:
        """Return the server of that name, as new; skip (in CI: fail) where it cannot be had."""
        if name not in self._servers:
            try:
                self._servers[name] = Server(name)
            except Unavailable as exc:
                missing(exc)
        server = self._servers[name]
        if not server.running:
            server.start()
        server.resume()
        try:
            self._renew(server)
        except (
            OSError,
            redis.RedisError,
        ):  # a password, a paused server, a setting that cannot be set back
            server.kill()
            server.start()
            self._renew(server)
        return server

    def _renew(self, server: Server) -> None:
        """Undo whatever a test may have done to the server."""
        with connected(server.socket, timeout=2.0) as sock:
            # While CLIENT PAUSE holds back everything, UNPAUSE is held back too.
            *_, users, found = exchanged(
                sock,
                ("CLIENT", "UNPAUSE"),
                ("REPLICAOF", "NO", "ONE"),
                ("ACL", "USERS"),
                ("CONFIG", "GET", "*"),
            )
            now = dict(zip(found[::2], found[1::2], strict=True))
            as_new = self._settings.setdefault(server.name, now)
            without_functions = server.name.startswith("redis-6")
            exchanged(
                sock,
                *(("ACL", "DELUSER", user) for user in users if user != "default"),
                ("ACL", "SETUSER", "default", "reset", "on", "nopass", "~*", "&*", "+@all"),
                *(("CONFIG", "SET", *changed) for changed in as_new.items() - now.items()),
                ("FLUSHALL",),
                ("SCRIPT", "FLUSH"),
                *(() if without_functions else (("FUNCTION", "FLUSH"),)),
                ("SLOWLOG", "RESET"),
                ("CONFIG", "RESETSTAT"),
            )

    def close(self) -> None:
        """End them all."""
        for server in self._servers.values():
            server.close()


def missing(error: Unavailable) -> NoReturn:
    """End a test whose server cannot be had: a failure in CI where it should be there."""
    if IN_CI and error.name in ENDS:
        pytest.fail(str(error), pytrace=False)
    pytest.skip(str(error))


def settings_of(client: Any) -> dict[str, str]:
    """Return all settings of the server."""
    found: dict[str, str] = client.config_get()
    return found


def exchanged(sock: socket.socket, *commands: tuple[str, ...]) -> list[Any]:
    """Send commands at once; return the replies. A client takes three times the processor for it.

    Raises:
        OSError: no reply in time.
        redis.RedisError: the first reply that is an error, or the server closed the connection.
    """
    pack: Callable[[tuple[str, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]
    sock.sendall(b"".join(map(pack, commands)))
    reader = hiredis.Reader(encoding="utf-8", replyError=redis.ResponseError)
    replies: list[Any] = []
    while len(replies) < len(commands):
        if not (data := sock.recv(65536)):
            raise redis.ConnectionError("closed by the server")
        reader.feed(data)
        while (reply := reader.gets()) is not False:
            if isinstance(reply, redis.RedisError):
                raise reply
            replies.append(reply)
    return replies
