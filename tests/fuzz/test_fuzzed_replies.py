"""Fuzz: what comes over sockets and is in files next to the server: replies, states, locks.

Next to tests/store/servers/test_connection.py, where each error of servers is told.
"""

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redmeter.errors import EmbeddedServerError, StoreError, StoreUnavailable
from redmeter.health.servers import _info
from redmeter.store import open as open_store
from redmeter.store.embedded import files, launcher
from redmeter.store.servers.replies import error_code, mapped, pairs, scored
from redmeter.store.servers.topology import Slots
from support.babbler import Babbler
from support.fuzzing import (
    HOSTILE,
    assert_work_is_linear,
    fuzzed,
    fuzzed_slowly,
    grown,
    mutated_bytes,
)

REPLIES = (
    *("+OK\r\n", "-ERR no\r\n", "-NOAUTH x\r\n", ":12\r\n", "$3\r\nabc\r\n", "$-1\r\n", "*0\r\n"),
    *("*2\r\n$1\r\na\r\n:1\r\n", "*-1\r\n", "*1\r\n" * 12 + ":1\r\n", "-MOVED 1 a:1\r\n", "_\r\n"),
    *("%1\r\n+a\r\n+b\r\n", "~1\r\n+a\r\n", ",1.5\r\n", "#t\r\n", "(1\r\n", "=5\r\ntxt:x\r\n"),
)


@pytest.fixture
def babbler() -> Iterator[tuple[Babbler, int]]:
    """A server at a port, and the port."""
    listening = socket.create_server(("127.0.0.1", 0))
    one = Babbler(listening)
    yield one, listening.getsockname()[1]
    one.close()


@pytest.fixture
def mumbler(tmp_path: Path) -> Iterator[tuple[Babbler, str]]:
    """A server at a unix socket, and its path."""
    path = str(tmp_path / "s.sock")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen()
    one = Babbler(listening)
    yield one, path
    one.close()


@fuzzed
@given(st.lists(mutated_bytes(REPLIES), min_size=1, max_size=4), st.booleans())
@example([b"-MOVED x\r\n"], False)
@example([b"-ASK 1 a:\r\n"], True)
@example([b"%1\r\n%1\r\n%1\r\n%1\r\n+a\r\n+b\r\n"], False)
@example([b"%1\r\n%1\r\n%1\r\n%1\r\n+a\r\n+b\r\n"], True)
def test_whatever_a_server_says_is_a_reply_or_an_error_of_ours(
    babbler: tuple[Babbler, int], said: list[bytes], polite: bool
) -> None:
    """Also where it speaks another protocol, or stops in the middle of a word."""
    server, port = babbler
    server.says, server.polite = b"".join(said), polite
    store = open_store(f"redis://127.0.0.1:{port}?protocol=2", timeout=2.0)
    assert store is not None
    with contextlib.suppress(StoreError):
        assert len(store.link.exchange([("TIME",), ("GET", "a")])) == 2
    store.close()


@fuzzed
@given(
    st.lists(mutated_bytes((*REPLIES, "$5\r\na:1\r\n\r\n", "connected_clients:7\r\n")), max_size=4)
)
@example([b"$5\na:1\r\n"])
@example([b"connected_clients:" + b"9" * 5000])
def test_the_supervisor_reads_any_reply(mumbler: tuple[Babbler, str], said: list[bytes]) -> None:
    """Numbers come of it, whatever it is."""
    server, path = mumbler
    server.says = b"".join(said)
    assert isinstance(files.ask_socket(path, "PING"), bytes)
    clients, connections = files.census(path)
    assert isinstance(clients, int)
    assert isinstance(connections, int)


@fuzzed
@given(mutated_bytes(("# Server\r\nredis_version:7.2.0\r\nused_memory:1\r\n:\r\n", "a", "a:b:c")))
def test_what_a_server_tells_of_itself_is_read(text: bytes) -> None:
    """By lines; what has no name is left out or has an empty one."""
    assert all(isinstance(value, str) for value in _info(text).values())


STATE = json.dumps(
    {"pid": 7, "supervisor": 8, "socket": "/tmp/x.sock", "version": "valkey 9.1.2", "started": 1.5}
)


@fuzzed
@given(mutated_bytes((STATE, "", "[]", "null")), mutated_bytes(("4711\n", "", "-1\n", "0\n")))
def test_damaged_files_of_a_server_are_told(
    tmp_path_factory: pytest.TempPathFactory, state: bytes, lock: bytes
) -> None:
    """And what stands there for a process is never taken for one of others."""
    data = tmp_path_factory.getbasetemp() / "damaged"
    data.mkdir(exist_ok=True)
    (data / files.STATE_FILE).write_bytes(state)
    (data / files.SUPERVISOR_LOCK).write_bytes(lock)
    with held(data / files.SUPERVISOR_LOCK):
        with contextlib.suppress(EmbeddedServerError):
            info = launcher.running(data)
            assert info is None or (info.pid > 0 and info.supervisor_pid > 0)
        with contextlib.suppress(EmbeddedServerError):
            owner = launcher._owner(data) if lock.strip() else None
            assert owner is None or owner > 0
    files.end_orphan(tmp_path_factory.getbasetemp())


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock in a file, as a supervisor does."""
    import fcntl

    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


ADDRESSES = st.lists(st.binary(max_size=3) | st.none() | st.integers(), max_size=4)


@fuzzed
@given(
    st.lists(
        st.lists(st.integers(0, 16383) | ADDRESSES | st.binary(max_size=3), max_size=5)
        | st.integers()
        | st.none(),
        max_size=4,
    )
)
@example([[0, 16383, [b"a", 6379], [None, 6380]]])
def test_what_a_node_says_of_its_slots_is_understood_or_told(reply: list[Any]) -> None:
    """It may be no node at all."""
    with contextlib.suppress(StoreUnavailable):
        slots = Slots.read(reply, "127.0.0.1")
        assert all(slots.range_of(number) is None or slots.primaries for number in (0, 1, 16383))


SAID = ("*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n", "*2\r\n+a\r\n+b\r\n", "*-1\r\n", "*1\r\n+a\r\n")


@fuzzed_slowly
@given(st.lists(mutated_bytes((*SAID, "+OK\r\n")), min_size=1, max_size=3))
@example([SAID[1].encode()])
@example([SAID[2].encode()])
@example([SAID[3].encode()])
def test_whatever_a_sentinel_says_is_a_master_or_an_error_of_ours(
    babbler: tuple[Babbler, int], said: list[bytes]
) -> None:
    """Where nobody is at the place that it names, too."""
    server, port = babbler
    server.says, server.polite = b"".join(said), True
    store = open_store(f"redis+sentinel://127.0.0.1:{port}/main?protocol=2", timeout=0.1)
    assert store is not None
    with contextlib.suppress(StoreError):
        store.read()
    store.close()


@fuzzed
@given(st.lists(st.binary(max_size=4), max_size=6).filter(lambda flat: len(flat) % 2 == 0))
def test_maps_are_the_same_flat_and_whole(flat: list[bytes]) -> None:
    """As protocol 2 and protocol 3 have them."""
    whole = dict(zip(flat[::2], flat[1::2], strict=True))
    assert dict(pairs(flat)) == mapped(flat) == mapped(whole) == whole
    assert scored([b"a", b"1", b"b", b"inf"]) == scored([[b"a", 1.0], [b"b", float("inf")]])


@fuzzed_slowly
@given(grown((*REPLIES, *HOSTILE, "a:b\r\n", "NOAUTH ", "$1")))
def test_replies_take_work_by_their_length(of_length: object) -> None:
    """Whatever is repeated in them."""

    def work(text: str) -> None:
        error_code(text)
        _info(text.encode(errors="replace"))

    assert_work_is_linear(work, of_length)  # type: ignore[arg-type]
