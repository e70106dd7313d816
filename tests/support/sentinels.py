"""Sentinels for tests: three of them, a master and two replicas, all private and on loopback.

Quick: for the first sentinel a master that is silent for half a second is down, and it may say so
alone (quorum 1); to the others it seems so a second later each. Were it the same moment, each would
vote for itself, and try again seconds later. What sentinels do once in a second or two is done more
often (SENTINEL DEBUG, of Redis 7 and Valkey). Which server is the master changes; ask `master`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

import redis

from support.lifetimes import Started
from support.servers import Server
from support.waiting import eventually

#: What the sentinels call the master.
SERVICE = "figures"
#: Seconds that a failover, or to be whole again, may take.
PATIENCE = 20.0

# A replica may succeed if it told of itself within five ping periods; once its master is down it is
# asked each second, whatever info-period says.
_QUICK = {"info-period": 100, "ping-period": 400, "ask-period": 100, "publish-period": 500}
_QUICK |= {"election-timeout": 1000, "min-link-reconnect-period": 1000}
# One that was paused would do nothing for half a minute, since its clock seems to have jumped.
_QUICK |= {"tilt-trigger": 600_000}
_NODE = {"repl-diskless-sync-delay": 0, "repl-ping-replica-period": 1}


class Sentinel(Server):
    """A sentinel.

    Args:
        watched: the port of the master.
        down_after: for how long it has to be silent, milliseconds.
        lines: of its file, next to those about the master.
    """

    def __init__(
        self, name: str, watched: int, down_after: int = 500, lines: tuple[str, ...] = ()
    ) -> None:
        super().__init__(name)
        told = (
            f"sentinel monitor {SERVICE} 127.0.0.1 {watched} 1",
            f"sentinel down-after-milliseconds {SERVICE} {down_after}",
            f"sentinel failover-timeout {SERVICE} 2000",
            *lines,
        )
        self._file = self.dir / "sentinel.conf"  # which it writes itself from then on
        self._file.write_text("\n".join(told) + "\n")

    def _command(self) -> list[str]:
        words = [str(self.binary), str(self._file), "--port", str(self._port)]
        words += ["--bind", "127.0.0.1", "--unixsocket", str(self.socket), "--dir", str(self.dir)]
        return [*words, "--sentinel"]

    def told(self, *words: str | int) -> Any:
        """Return what it answers to SENTINEL and some words."""
        with self.client(decode_responses=True) as client:
            return client.execute_command("SENTINEL", *words)

    def haste(self, settings: Mapping[str, int] = _QUICK) -> None:
        """Set how often it does things, milliseconds, where it can be told: not of Redis 6.2."""
        pairs = [str(word) for pair in settings.items() for word in pair]
        with self.client(decode_responses=True) as client:
            try:
                client.execute_command("SENTINEL", "DEBUG", *pairs)
            except redis.ResponseError as error:
                if "subcommand" not in str(error):
                    raise


class Watched(Started):
    """A master and its replicas, and the sentinels that watch them; a context manager.

    Attributes:
        servers: the master of the beginning first.
        sentinels: all of them.
    """

    def __init__(self, name: str = "valkey-9.1", *, replicas: int = 2, sentinels: int = 3) -> None:
        self._name = name
        self.servers = [Server(name, config=_NODE)]
        self.servers += [Server(name) for _ in range(replicas)]
        self.sentinels: list[Sentinel] = []
        self._count = sentinels

    def start(self) -> Self:
        """Start them all, and wait until they know of each other."""
        first, *others = self.servers
        first.start()
        for other in others:
            other.config += [
                *("--replicaof", "127.0.0.1", str(first.port)),
                *(word for k, v in _NODE.items() for word in (f"--{k}", str(v))),
            ]
            other.start()
        for number in range(self._count):
            sentinel = Sentinel(self._name, first.port, 500 + 1000 * number)
            self.sentinels.append(sentinel)
            sentinel.start()
            sentinel.haste()
        self.heal()
        return self

    def close(self) -> None:
        """End them all, the sentinels first."""
        for server in (*self.sentinels, *self.servers):
            server.close()

    @property
    def url(self) -> str:
        """The address of database 0 of the master."""
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}/0"

    @property
    def master(self) -> Server:
        """The server that the sentinels name."""
        return self._named(self.sentinels[0])

    @property
    def replicas(self) -> list[Server]:
        """The others."""
        master = self.master
        return [server for server in self.servers if server is not master]

    def _named(self, sentinel: Sentinel) -> Server:
        _, port = sentinel.told("GET-MASTER-ADDR-BY-NAME", SERVICE)
        (found,) = [server for server in self.servers if server.port == int(port)]
        return found

    def heal(self) -> None:
        """Have all of them run, and wait until they know of each other, with one master."""
        for server in (*self.servers, *self.sentinels):
            server.resume()
            if not server.running:
                server.start()
        for sentinel in self.sentinels:
            sentinel.haste()
        eventually(self._whole, PATIENCE, "sentinels and replicas know of each other")

    def _whole(self) -> bool:
        masters = {self._named(sentinel) for sentinel in self.sentinels}
        if len(masters) > 1:
            return False
        (master,) = masters
        others = [server for server in self.servers if server is not master]
        # The sentinels would tell them too, seconds later.
        following = [_follows(server, master) for server in others]
        return all(following) and all(map(self._sees_all, self.sentinels))

    def _sees_all(self, sentinel: Sentinel) -> bool:
        told = sentinel.told("MASTER", SERVICE), *sentinel.told("SENTINELS", SERVICE)
        replicas = sentinel.told("REPLICAS", SERVICE)
        return (
            not any("down" in each["flags"].replace("master_down", "") for each in told)
            and len(told) == self._count
            and [each["flags"] for each in replicas] == ["slave"] * (len(self.servers) - 1)
            and all(each["master-link-status"] == "ok" for each in replicas)
        )

    def renew(self) -> None:
        """Make it as new: whole, and empty."""
        self.heal()
        with self.master.client() as client:
            client.flushall()
            client.script_flush()
        self.wait_for_replicas()

    def forget_commands(self) -> None:
        """Reset the counts of commands and errors on all servers."""
        for server in self.servers:
            with server.client() as client:
                client.config_resetstat()

    def wait_for_replicas(self) -> None:
        """Wait until they have all that was written to the master before."""
        with self.master.client() as client:
            client.delete("waited")  # what WAIT waits for is what its own connection wrote
            client.set("waited", 1)
            assert client.wait(len(self.servers) - 1, 5000) == len(self.servers) - 1
            client.delete("waited")

    def fail_over(self) -> Server:
        """Have the sentinels make another master, the old one being well; return the new one.

        The first sentinel does it, and is asked again if it gave up.
        """
        before, first = self.master, self.sentinels[0]

        def moved() -> Server | None:
            told = first.told("MASTER", SERVICE)
            if int(told["port"]) == before.port and "failover_in_progress" not in told["flags"]:
                first.told("FAILOVER", SERVICE)
            return self._agreed(before)

        return self._awaited(moved)

    def moved_from(self, before: Server) -> Server:
        """Wait until all sentinels name another master than this one, and return that."""
        return self._awaited(lambda: self._agreed(before))

    def _agreed(self, before: Server) -> Server | None:
        named = {self._named(sentinel) for sentinel in self.sentinels if sentinel.running}
        return named.pop() if before not in named and len(named) == 1 else None

    def _awaited(self, moved: Callable[[], Server | None]) -> Server:
        try:
            found = eventually(moved, PATIENCE, "the sentinels name another master")
        except AssertionError as error:
            for sentinel in self.sentinels:
                if sentinel.running:
                    error.add_note(str(sentinel.told("MASTER", SERVICE)))
            raise
        assert found is not None
        return found


def _follows(server: Server, master: Server) -> bool:
    """Whether it is a replica of that master, and hears from it; if not, it is reported to."""
    try:
        with server.client(decode_responses=True) as client:
            told: Any = client.info("replication")
            if (told.get("role"), told.get("master_port")) == ("slave", master.port):
                return bool(told["master_link_status"] == "up")
            client.execute_command("REPLICAOF", "127.0.0.1", str(master.port))
    except redis.RedisError:
        pass
    return False
