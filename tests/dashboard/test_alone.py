"""The dashboard on its own: a real server, as `redmeter up` and the demo run it."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from redmeter import Meter
from redmeter.dashboard.alone import Alone, Credentials, address_of, bound
from redmeter.dashboard.defaults import PORT, PORTS
from redmeter.errors import InvalidSetting
from support.servers import Server


@contextmanager
def served(page: Alone) -> Iterator[Alone]:
    """Serve a page in a thread."""
    ready = threading.Event()
    thread = threading.Thread(target=page.run, args=(ready.set,))
    thread.start()
    try:
        assert ready.wait(10)
        yield page
    finally:
        page.stop()
        thread.join(10)
        assert not thread.is_alive()


def test_it_answers_once_it_says_so(server: Server, meter: Meter) -> None:
    """On this machine alone, without a login; another name is refused."""
    meter.count("hits", 3)
    with served(Alone(server.url)) as page:
        assert page.address.startswith("http://127.0.0.1:73")
        assert page.link == page.address
        assert not page.login
        answer = httpx.get(f"{page.address}api/series?name=hits")
        assert sum(answer.json()["series"][0]["values"]) == 3
        assert "server" not in answer.headers
        answer = httpx.get(f"{page.address}api/marks", headers={"Host": "evil.example"})
        assert answer.status_code == 421


def test_it_ends_though_pages_hold_their_connections(server: Server) -> None:
    """And frees its port; the next one has it."""
    page = Alone(server.url, port=0)
    port = int(page.address.rpartition(":")[2][:-1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with served(page):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"ok"}'
    connection.close()
    bound("127.0.0.1", port).close()


def test_beyond_loopback_it_asks_for_a_token_that_it_made_up(server: Server) -> None:
    """The link has it, the address has not; whoever comes from here is asked too."""
    page = Alone(server.url, host="0.0.0.0", port=0, credentials=Credentials("0.0.0.0"))
    assert page.login
    address, _, token = page.link.partition("?token=")
    assert address == page.address
    assert len(token) >= 32
    port = int(page.address.rpartition(":")[2][:-1])
    with served(page):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        statuses = []
        for headers in ({}, {"Authorization": f"Bearer {token}"}, {"X-Forwarded-For": "127.0.0.1"}):
            connection.request("GET", "/api/marks", headers=headers)
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        assert statuses == [401, 200, 401]
        connection.close()


def test_the_next_port_is_taken_where_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to a number of them; a port that was asked for is that one or none."""
    with bound("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidSetting, match=rf"--port: 127.0.0.1, port {port}: .*in use"):
            bound("127.0.0.1", port)
        monkeypatch.setattr("redmeter.dashboard.alone.PORT", port)
        with bound("127.0.0.1") as other:
            assert port < other.getsockname()[1] < port + PORTS
        monkeypatch.setattr("redmeter.dashboard.alone.PORTS", 1)
        with pytest.raises(InvalidSetting, match="Address already in use"):
            bound("127.0.0.1")
    assert 1024 < PORT < 32768  # below those that systems give out


@pytest.mark.parametrize("host", ["192.0.2.77", "no such host", "a" * 300, "999.1.1.1"])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    """With the option that names it."""
    with pytest.raises(InvalidSetting, match="--host and --port name another one"):
        bound(host, 0)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:80/"),
        ("localhost", "http://localhost:80/"),
        ("::1", "http://[::1]:80/"),
        ("[::1]", "http://[::1]:80/"),
    ],
)
def test_an_address_can_be_opened(host: str, address: str) -> None:
    """As a browser takes it; of all addresses, one that others know."""
    assert address_of(host, 80) == address
    shown = address_of("0.0.0.0", 80)
    assert shown.startswith("http://")
    assert "0.0.0.0" not in shown


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\xff\xfe?\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /api/marks?since=" + b"1" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde",
    ],
)
def test_bytes_that_are_no_request_get_no_markup_and_no_500(sent: bytes, server: Server) -> None:
    """And the server goes on."""
    with served(Alone(server.url, port=0)) as page:
        port = int(page.address.rpartition(":")[2][:-1])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
            raw.sendall(sent)
            raw.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: raw.recv(65536), b""))
        assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 3")) or not answer, answer[:200]
        assert b"<" not in answer
        assert httpx.get(f"{page.address}healthz").status_code == 200
