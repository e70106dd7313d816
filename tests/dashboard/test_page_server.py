"""The dashboard on its own: a real server, as `redmeter up` and the demo run it."""

import contextlib
import http.client
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from redmeter import Meter
from redmeter.dashboard import PORT, PORTS
from redmeter.dashboard.server import (
    MAX_RECORDS,
    Credentials,
    LogRateLimit,
    PageServer,
    address_of,
    listen_on,
)
from redmeter.errors import InvalidSetting
from support.servers import Server
from support.waiting import eventually


@contextmanager
def served(page: PageServer) -> Iterator[PageServer]:
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
    with served(PageServer(server.url)) as page:
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
    page = PageServer(server.url, port=0)
    port = int(page.address.rpartition(":")[2][:-1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with served(page):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"ok"}'
    connection.close()
    listen_on("127.0.0.1", port).close()


def test_beyond_loopback_it_asks_for_a_token_that_it_made_up(server: Server) -> None:
    """The link has it, the address has not; whoever comes from here is asked too."""
    page = PageServer(server.url, host="0.0.0.0", port=0, credentials=Credentials("0.0.0.0"))
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
    with listen_on("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidSetting, match=rf"--port: 127.0.0.1, port {port}: .*in use"):
            listen_on("127.0.0.1", port)
        monkeypatch.setattr("redmeter.dashboard.server.PORT", port)
        with listen_on("127.0.0.1") as other:
            assert port < other.getsockname()[1] < port + PORTS
        monkeypatch.setattr("redmeter.dashboard.server.PORTS", 1)
        with pytest.raises(InvalidSetting, match="Address already in use"):
            listen_on("127.0.0.1")
    assert 1024 < PORT < 32768  # below those that systems give out


@pytest.mark.parametrize("host", ["192.0.2.77", "no such host", "a" * 300, "999.1.1.1"])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    """With the option that names it."""
    with pytest.raises(InvalidSetting, match="--host and --port name another one"):
        listen_on(host, 0)


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


def raw_answer(page: PageServer, sent: bytes) -> tuple[int, dict[str, str]]:
    """Send bytes; return status and headers."""
    port = int(page.address.rpartition(":")[2][:-1])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
        raw.sendall(sent)
        answer = http.client.HTTPResponse(raw)
        answer.begin()
        answer.read()
        return answer.status, {name.lower(): text for name, text in answer.getheaders()}


def test_targets_of_all_forms_are_read(server: Server) -> None:
    """A whole address, as to a proxy, whose name counts; and none at all."""
    host = b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served(PageServer(server.url, port=0)) as page:
        assert raw_answer(page, b"GET http://localhost:80/api/marks?since=1" + host)[0] == 200
        assert raw_answer(page, b"GET HTTP://127.0.0.1/healthz" + host)[0] == 200
        assert raw_answer(page, b"GET http://evil.example/api/marks" + host)[0] == 421
        evil = host.replace(b"localhost", b"evil.example")
        assert raw_answer(page, b"GET http://localhost/api/marks" + evil)[0] == 200
        status, headers = raw_answer(page, b"GET ?view=routes" + host)
        assert (status, headers["location"]) == (307, "/?view=routes")


@pytest.mark.parametrize("host", ["127.0.0.2", "127.1", "localhost"])
def test_a_page_answers_at_the_address_that_it_says(host: str, server: Server) -> None:
    """Whichever one of loopback that is; the rule is made of what was bound."""
    with served(PageServer(server.url, host=host, port=0)) as page:
        assert not page.login
        assert host in page.address
        port = page.address.rpartition(":")[2]
        for name in {host, "127.0.0.1", page._socket.getsockname()[0]}:
            sent = {"Host": f"{name}:{port.strip('/')}"}
            assert httpx.get(f"{page.address}api/marks", headers=sent).status_code == 200
        answer = httpx.get(f"{page.address}api/marks", headers={"Host": "127.0.0.9"})
        assert answer.status_code == 421


def test_a_rule_that_was_made_for_another_address_does_not_hold(server: Server) -> None:
    """As where a name stands for another one by the time at which it is bound."""
    open_to_all = Credentials("127.0.0.1")
    assert open_to_all.login is None
    page = PageServer(server.url, host="0.0.0.0", port=0, credentials=open_to_all)
    assert page.login
    port = page.address.rpartition(":")[2]
    with served(page):
        assert httpx.get(f"http://127.0.0.1:{port}api/marks").status_code == 401
        token = page.link.partition("?token=")[2]
        sent = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"http://127.0.0.1:{port}api/marks", headers=sent).status_code == 200


def closed(raw: socket.socket) -> bool:
    """Whether the other side has closed a connection, without waiting for that."""
    raw.setblocking(False)
    try:
        return raw.recv(65536) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


#: Requests that do not end.
BEGUN = (
    b"",
    b"GET / HTT",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1",
)


def test_a_connection_whose_request_does_not_end_is_closed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a request was answered before; one that rests between requests stays."""
    monkeypatch.setattr("redmeter.dashboard.server.HEADER_SECONDS", 0.5)
    with served(PageServer(server.url, port=0)) as page, contextlib.ExitStack() as stack:
        port = int(page.address.rpartition(":")[2][:-1])
        rests = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        rests.request("GET", "/healthz")
        rests.getresponse().read()
        opened = []
        for sent in BEGUN:
            raw = socket.create_connection(("127.0.0.1", port), timeout=10)
            opened.append(stack.enter_context(raw))
            raw.sendall(sent)
            if sent.startswith(b"POST"):
                assert raw.recv(65536).startswith(b"HTTP/1.1 405")
                raw.sendall(b"2")
        for sent, raw in zip(BEGUN, opened, strict=True):
            eventually(lambda raw=raw: closed(raw), 10.0, f"closed: {sent!r}")  # type: ignore[misc]
        mine = rests.sock
        rests.request("GET", "/healthz")
        assert rests.getresponse().read() == b'{"status":"ok"}'
        assert rests.sock is mine
        rests.close()


def test_a_connection_that_nobody_reads_from_is_closed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many answers it is owed."""
    monkeypatch.setattr("redmeter.dashboard.server.READ_SECONDS", 0.5)
    page = PageServer(server.url, port=0)
    request = b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served(page), socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", int(page.address.rpartition(":")[2][:-1])))
        raw.sendall(request * 500)
        eventually(lambda: bool(page._server.server_state.connections), 10.0)
        eventually(lambda: not page._server.server_state.connections, 20.0)


def test_of_too_many_connections_the_one_that_waited_longest_goes(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So who asks now is answered."""
    monkeypatch.setattr("redmeter.dashboard.server.MAX_OPEN", 10)
    with served(PageServer(server.url, port=0)) as page:
        port = int(page.address.rpartition(":")[2][:-1])
        with contextlib.ExitStack() as stack:
            made = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
                for _ in range(12)
            ]
            eventually(lambda: [closed(one) for one in made] == [True] * 2 + [False] * 10, 10.0)
            assert httpx.get(f"{page.address}healthz").status_code == 200
            eventually(lambda: sum(map(closed, made)) == 3, 10.0)


def test_a_logger_that_says_the_same_for_ever_says_it_a_few_times_a_minute() -> None:
    """And then again."""
    now = [0.0]
    seldom = LogRateLimit(lambda: now[0])
    record = logging.makeLogRecord({})
    assert sum(seldom.filter(record) for _ in range(1000)) == MAX_RECORDS
    now[0] = 61.0
    assert seldom.filter(record)


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
    with served(PageServer(server.url, port=0)) as page:
        port = int(page.address.rpartition(":")[2][:-1])
        answer = b""
        # What is refused before it was read whole is a reset, which may overtake the answer.
        with (
            socket.create_connection(("127.0.0.1", port), timeout=10) as raw,
            contextlib.suppress(ConnectionError),
        ):
            raw.sendall(sent)
            with contextlib.suppress(OSError):  # reset already: "not connected"
                raw.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: raw.recv(65536), b""))
        assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 3")) or not answer, answer[:200]
        assert b"<" not in answer
        assert httpx.get(f"{page.address}healthz").status_code == 200
