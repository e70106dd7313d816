"""Applications in processes of their own, and what they stored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.programs import Programs, Total
from support.servers import Server


@pytest.fixture
def programs(server: Server, tmp_path: Path) -> Iterator[Programs]:
    """Starts programs that are given the address of `server`."""
    with Programs(tmp_path, server.url) as programs:
        yield programs


@pytest.fixture
def total(conn: Any) -> Total:
    """Return what is stored of a series, at the precision of a day as well as altogether."""

    def total(name: str = "x") -> int:
        grand = int(conn.hget("redmeter:total:", name) or 0)
        days = conn.hgetall(f"redmeter:count:86400:{name}")
        assert sum(map(int, days.values())) == grand, days
        return grand

    return total
