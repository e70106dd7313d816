"""Servers for tests: one private process per kind and test worker, made as new before each test.

REDMETER_TEST_SERVERS names what `any_server` runs on: a comma list of names out of
`support.servers.BINARIES`, or "all"; else the default and the oldest supported.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from support.proxy import Proxy
from support.servers import BINARIES, Server, Unavailable

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None)

IN_CI = os.environ.get("CI") == "true"
settings.load_profile("ci" if IN_CI else "dev")


def chosen_servers() -> list[str]:
    """Return the names that REDMETER_TEST_SERVERS asks for."""
    asked = os.environ.get("REDMETER_TEST_SERVERS", "valkey-9.1,redis-6.2")
    names = list(BINARIES) if asked == "all" else [name.strip() for name in asked.split(",")]
    if wrong := [name for name in names if name not in BINARIES]:
        raise pytest.UsageError(f"REDMETER_TEST_SERVERS: no {wrong}; there are {list(BINARIES)}")
    return names


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
                if IN_CI and BINARIES[name].end:
                    pytest.fail(str(exc), pytrace=False)
                pytest.skip(str(exc))
        server = self._servers[name]
        if not server.running:
            server.start()
        server.resume()
        try:
            self._renew(server)
        except redis.RedisError:  # a password, a paused server, a setting that cannot be set back
            server.kill()
            server.start()
            self._renew(server)
        return server

    def _renew(self, server: Server) -> None:
        """Undo whatever a test may have done to the server."""
        client: Any  # its execute_command has no types
        # Brief: while CLIENT PAUSE holds back everything, UNPAUSE is held back too.
        options: dict[str, Any] = {"retry": Retry(NoBackoff(), 0), "socket_timeout": 1.0}
        with server.client(decode_responses=True, **options) as client:
            client.execute_command("CLIENT", "UNPAUSE")
            client.execute_command("REPLICAOF", "NO", "ONE")
            for user in client.execute_command("ACL", "USERS"):
                if user != "default":
                    client.execute_command("ACL", "DELUSER", user)
            client.execute_command(
                *("ACL", "SETUSER", "default", "reset", "on", "nopass", "~*", "&*", "+@all")
            )
            now = settings_of(client)
            as_new = self._settings.setdefault(server.name, now)
            for setting, value in as_new.items():
                if now.get(setting) != value:
                    client.execute_command("CONFIG", "SET", setting, value)
            client.execute_command("FLUSHALL")
            client.execute_command("SCRIPT", "FLUSH")
            if not server.name.startswith("redis-6"):
                client.execute_command("FUNCTION", "FLUSH")
            client.execute_command("SLOWLOG", "RESET")
            client.execute_command("CONFIG", "RESETSTAT")

    def close(self) -> None:
        """End them all."""
        for server in self._servers.values():
            server.close()


def settings_of(client: Any) -> dict[str, str]:
    """Return all settings of the server."""
    found: dict[str, str] = client.config_get()
    return found


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """The servers of this test worker, ended with it."""
    fleet = Fleet()
    yield fleet
    fleet.close()


@pytest.fixture
def server(fleet: Fleet) -> Iterator[Server]:
    """A private Valkey 9.1: empty, no scripts, its settings as at the start."""
    server = fleet.get("valkey-9.1")
    yield server
    server.close_clients()


@pytest.fixture
def redis62(fleet: Fleet) -> Iterator[Server]:
    """A private Redis 6.2, the oldest server we support, as new."""
    server = fleet.get("redis-6.2")
    yield server
    server.close_clients()


@pytest.fixture(params=chosen_servers())
def any_server(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[Server]:
    """A private server of each kind in turn, as new."""
    server = fleet.get(request.param)
    yield server
    server.close_clients()


@pytest.fixture
def conn(server: Server) -> Iterator[redis.Redis]:
    """A client on `server`, closed after the test."""
    with server.client() as client:
        yield client


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A proxy in front of `server` that breaks connections when told to."""
    with Proxy(server.port) as proxy:
        yield proxy
