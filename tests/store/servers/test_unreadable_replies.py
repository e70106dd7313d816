"""Replies that no parser can read: an error of ours and a closed connection."""

import socket
from collections.abc import Iterator

import pytest
import redis

from redmeter.dashboard import Dashboard
from redmeter.errors import StoreUnavailable
from redmeter.health import doctor
from redmeter.store import Store
from redmeter.store import open as open_store
from redmeter.store.servers.connection import ServerLink
from support.asking import asking
from support.babbler import Babbler
from support.invoking import invoking
from support.waiting import eventually

#: hiredis raises TypeError for the first two, and the client's error for the number; the client
#: raises ValueError for the redirect.
UNREADABLE = {
    "map in map": b"%1\r\n%1\r\n%1\r\n%1\r\n+a\r\n+b\r\n",
    "map as key": b"%1\r\n%1\r\n+a\r\n+b\r\n:1\r\n",
    "redirect": b"-MOVED x\r\n",
    "number": b",abc\r\n",
}
URLS = {
    "single": "redis://127.0.0.1:{port}?protocol=2",
    "protocol 3": "redis://127.0.0.1:{port}?protocol=3",
    "cluster": "redis+cluster://127.0.0.1:{port}",
    "sentinel": "redis+sentinel://127.0.0.1:{port}/main",
}


@pytest.fixture
def babbler() -> Iterator[tuple[Babbler, int]]:
    """A server that keeps its connections open, and its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = Babbler(listening)
    server.stays = True
    yield server, listening.getsockname()[1]
    server.close()


def assert_unreadable(store: Store, server: Babbler) -> None:
    """Assert that a read fails with an error of ours, and that the client closes its connection."""
    with pytest.raises(StoreUnavailable):
        store.read()
    eventually(lambda: server.closed >= 1, what="the client has closed the connection")
    store.close()


@pytest.mark.parametrize("polite", [False, True], ids=["handshake", "exchange"])
@pytest.mark.parametrize("says", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_an_unreadable_reply_is_an_error_of_ours(
    babbler: tuple[Babbler, int], url: str, says: bytes, polite: bool
) -> None:
    """For one server, a cluster's node and a sentinel; during the handshake and later."""
    server, port = babbler
    server.says, server.polite = says, polite
    store = open_store(url.format(port=port), timeout=2.0)
    assert store is not None
    assert_unreadable(store, server)


@pytest.mark.parametrize("polite", [False, True], ids=["handshake", "exchange"])
def test_an_unreadable_reply_to_a_callers_client_is_an_error_of_ours(
    babbler: tuple[Babbler, int], polite: bool
) -> None:
    """The connection is of the caller's pool, or of our own where the time is limited."""
    server, port = babbler
    server.says, server.polite = UNREADABLE["map in map"], polite
    client = redis.Redis(port=port, protocol=2)
    link = ServerLink(lambda: client, "the caller's client", owned=False)
    with pytest.raises(StoreUnavailable):
        link.exchange([("TIME",)])
    with link.within(2.0), pytest.raises(StoreUnavailable):
        link.exchange([("TIME",)])
    eventually(lambda: server.closed >= 2, what="the client has closed both connections")
    link.close()
    client.close()


def test_the_exception_of_a_signal_handler_stays_the_applications(
    babbler: tuple[Babbler, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task's time limit that passes during an exchange is raised in the task."""

    class SoftTimeLimit(Exception):
        pass

    def interrupted(*_: object, **__: object) -> object:
        raise SoftTimeLimit

    server, port = babbler
    server.says = b"+OK\r\n"
    store = open_store(f"redis://127.0.0.1:{port}?protocol=2", timeout=2.0)
    assert store is not None
    monkeypatch.setattr(redis.connection.AbstractConnection, "read_response", interrupted)
    with pytest.raises(SoftTimeLimit):
        store.read()
    eventually(lambda: server.closed >= 1, what="the client has closed the connection")
    store.close()


def test_every_reader_reports_an_unreadable_reply(babbler: tuple[Babbler, int]) -> None:
    """The doctor, the command and the page."""
    server, port = babbler
    server.says = UNREADABLE["map in map"]
    url = f"redis://127.0.0.1:{port}?protocol=2"
    store = open_store(url, timeout=2.0)
    assert store is not None
    with pytest.raises(StoreUnavailable):
        doctor.examine(store)
    store.close()
    with invoking() as run:
        answer = run("doctor", "--url", url)
        assert answer.code == 3
        assert "cannot be parsed" in answer.err
    dashboard = Dashboard(url, access="open")
    with asking(dashboard) as client:
        reply = client.get("/api/overview")
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "store-unavailable")
    dashboard.close()
