"""A single server that keeps its data, and what can be done to it."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from soak.place import Hold, Place
from support.servers import Server


class OneServer(Place):
    """A server that writes to disk every second.

    Args:
        folder: where its data lie.
        chance: what is chosen by.
        hold: see Hold.
        name: a key of binaries.BINARIES.
    """

    lossy = frozenset({"killed"})

    def __init__(self, folder: Path, chance: random.Random, hold: Hold, name: str) -> None:
        super().__init__(chance, hold)
        config = {"appendonly": "yes", "appendfsync": "everysec"}
        self._server = Server(name, config=config, dir=folder / "data")

    @property
    def url(self) -> str:
        return self._server.url

    def start(self) -> None:
        self._server.start()

    def close(self) -> None:
        self._server.close()

    def masters(self) -> frozenset[str]:
        return frozenset()

    def clients(self) -> list[Any]:
        return [self._server.client(decode_responses=True)]

    def own_faults(self) -> Mapping[str, Callable[[], None]]:
        return {
            "restarted": self._restart,
            "killed": self._kill,
            "stopped": self._stop,
            "paused": self._pause,
            "full": self._fill,
        }

    def _ask(self, *words: str) -> None:
        with self._server.client() as client:
            client.execute_command(*words)

    def _restart(self) -> None:
        self._server.stop()
        self._wait(0, 2)
        self._server.start()

    def _kill(self) -> None:
        self._server.kill()
        self._wait(0, 2)
        self._server.start()

    def _stop(self) -> None:
        self._server.pause()
        self._wait(0.5, 4)
        self._server.resume()

    def _pause(self) -> None:
        seconds, what = self._chance.uniform(0.5, 3), self._chance.choice(["ALL", "WRITE"])
        self._ask("CLIENT", "PAUSE", str(int(1000 * seconds)), what)
        self._hold(seconds)

    def _fill(self) -> None:
        self._ask("CONFIG", "SET", "maxmemory", "1")
        self._wait(0.5, 3)
        self._ask("CONFIG", "SET", "maxmemory", "0")
