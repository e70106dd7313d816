"""Stores and meters on the private servers, closed after the test."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter.store import Store, scripts
from support.servers import Server
from support.stores import OpenMeter, OpenStore, SetTime, opened_meters, opened_stores


@pytest.fixture
def client(any_server: Server) -> Iterator[Any]:
    """A client that does not decode, on each server in turn."""
    with any_server.client() as client:
        yield client


@pytest.fixture
def open_store(any_server: Server) -> Iterator[OpenStore]:
    """Open stores on the server, as store.open() does."""
    yield from opened_stores(any_server.url)


@pytest.fixture
def bare(open_store: OpenStore) -> Store:
    """A store on the keys of the listings."""
    return open_store(prefix="")


@pytest.fixture
def open_meter(any_server: Server) -> Iterator[OpenMeter]:
    """Open meters on the server: what is counted is there when count() returns."""
    yield from opened_meters(any_server.url, sync=True)


@pytest.fixture
def set_time(monkeypatch: pytest.MonkeyPatch) -> SetTime:
    """Have the script go by a time that the test sets, instead of the server's clock."""
    whole = scripts.Script._text_and_sha
    clock = b"local server = time[1] + time[2] / 1000000\n"
    now = [0.0]

    def told(self: scripts.Script) -> tuple[bytes, str]:
        text, sha = whole(self)
        if not now[0] or self.name != "apply":
            return text, sha
        assert clock in text
        text = text.replace(clock, b"local server = %r\n" % now[0])
        return text, hashlib.sha1(text, usedforsecurity=False).hexdigest()

    monkeypatch.setattr(scripts.Script, "_text_and_sha", told)

    def set_to(time: float) -> None:
        now[0] = float(time)

    return set_to
