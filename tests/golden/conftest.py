"""A world with a fixed clock: a real server, its clock and this process's, all at one time."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from golden.story import START, World
from redmeter import settings
from redmeter.clock import ManualClock, SystemClock
from redmeter.stored.keys import Retention
from support.fixed_time import FixedTime
from support.servers import Server


class _Clock(ManualClock):
    """The clock of meters; the server's follows."""

    def __init__(self, server: FixedTime, client: Any) -> None:
        super().__init__(START)
        self._server, self._client = server, client

    def advance(self, seconds: float) -> None:
        """Let time pass on all clocks."""
        super().advance(seconds)
        self._server.advance(seconds, self._client)


def _pin_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give new stores 120 intervals of each precision: the golden files hold that retention."""
    for name, kept in (
        ("retention", dict.fromkeys((1, 5, 60, 300, 3600, 18000, 86400), 120)),
        ("histogram_retention", {5: 24, 60: 120, 3600: 120}),
    ):
        setting = settings._BY_NAME[name]._replace(default=Retention(kept))
        monkeypatch.setitem(settings._BY_NAME, name, setting)


@pytest.fixture
def world(any_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An empty store, at the start of the story."""
    _pin_defaults(monkeypatch)
    with FixedTime(any_server.port, START) as server, any_server.client() as client:
        clock = _Clock(server, client)
        monkeypatch.setattr(SystemClock, "wall", staticmethod(clock.wall))
        monkeypatch.setattr(time, "time", clock.wall)
        monkeypatch.setattr(time, "time_ns", lambda: round(clock.wall() * 1e9))
        monkeypatch.delenv("REDMETER_PREFIX", raising=False)
        monkeypatch.setenv("REDMETER_URL", server.url)
        yield World(server, client, clock)
