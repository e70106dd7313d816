"""Stores and meters on the private servers, closed after the test."""

from collections.abc import Iterator
from typing import Any

import pytest

from redmeter import Meter
from redmeter import store as stores
from redmeter.store import Store
from support.servers import Server
from support.stores import OpenMeter, OpenStore


@pytest.fixture
def client(any_server: Server) -> Iterator[Any]:
    """A client that does not decode, on each server in turn."""
    with any_server.client() as client:
        yield client


@pytest.fixture
def open_store(any_server: Server) -> Iterator[OpenStore]:
    """Open stores on the server, as store.open() does."""
    opened: list[Store] = []

    def open_one(url: str = "", **options: Any) -> Store:
        store = stores.open(url or any_server.url, **options)
        assert store is not None
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def bare(open_store: OpenStore) -> Store:
    """A store on the keys of the listings."""
    return open_store(prefix="")


@pytest.fixture
def open_meter(any_server: Server) -> Iterator[OpenMeter]:
    """Open meters on the server."""
    opened: list[Meter] = []

    def open_one(url: str | None = None, **options: Any) -> Meter:
        options.setdefault("sync", True)  # what is counted is there when count() returns
        meter = Meter(None if "client" in options else url or any_server.url, **options)
        opened.append(meter)
        return meter

    yield open_one
    for meter in opened:
        meter.close()
