"""Servers that sentinels watch: the primary dies, stands still or is replaced."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from soak.place import HANDED_OVER, Hold, Place
from support.sentinels import Watched
from support.servers import Server


class Sentinels(Place):
    """A primary and two replicas, watched by three sentinels. Args: see OneServer."""

    # Asked to make another primary, they do not wait until it has all that the old one has.
    lossy = frozenset({"killed", "stopped for long", HANDED_OVER})
    until_end = frozenset({HANDED_OVER})

    def __init__(self, _: Path, chance: random.Random, hold: Hold, name: str) -> None:
        super().__init__(chance, hold)
        self._watched = Watched(name)

    @property
    def url(self) -> str:
        return self._watched.url

    def start(self) -> None:
        self._watched.start()

    def close(self) -> None:
        self._watched.close()

    def masters(self) -> frozenset[str]:
        return frozenset({str(self._watched.master.port)})

    def clients(self) -> list[Any]:
        return [self._watched.master.client(decode_responses=True)]

    def own_faults(self) -> Mapping[str, Callable[[], None]]:
        return {
            "killed": lambda: self._lose(Server.kill),
            "stopped for long": lambda: self._lose(Server.pause),
            HANDED_OVER: self._hand_over,
            "replica killed": self._kill_replica,
            "sentinel killed": self._kill_sentinel,
        }

    def _ask(self, *words: str) -> None:
        with self._watched.master.client() as client:
            client.execute_command(*words)

    def _lose(self, break_it: Callable[[Server], None]) -> None:
        master = self._watched.master
        break_it(master)
        self._watched.moved_from(master)
        self._wait(0, 2)
        self._watched.heal()

    def _hand_over(self) -> None:
        self._watched.fail_over()
        self._watched.heal()

    def _kill_replica(self) -> None:
        self._chance.choice(self._watched.replicas).kill()
        self._wait(0, 2)
        self._watched.heal()

    def _kill_sentinel(self) -> None:
        self._chance.choice(self._watched.sentinels[1:]).kill()
        self._wait(0, 2)
        self._watched.heal()


class Lagging(Sentinels):
    """The same, whose replicas lack what was stored last when the primary dies or stands still."""

    lossy = Sentinels.lossy
    until_end = lossy

    def own_faults(self) -> Mapping[str, Callable[[], None]]:
        return {
            "killed": lambda: self._lose_more(Server.kill),
            "stopped for long": lambda: self._lose_more(Server.pause),
            HANDED_OVER: self._hand_over,
        }

    def _lose_more(self, break_it: Callable[[Server], None]) -> None:
        replicas = self._watched.replicas
        for replica in replicas:
            replica.pause()
        self._ask("CLIENT", "KILL", "TYPE", "replica")
        self._wait(0.5, 1.5)
        master = self._watched.master
        break_it(master)
        for replica in replicas:
            replica.resume()
        self._watched.moved_from(master)
        self._wait(0, 2)
        self._watched.heal()
