"""Packing: what goes over the wire is what the client would send, and no signal crashes it."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.connection import HiredisRespSerializer

from redmeter.store import open
from redmeter.store.servers import sockets
from redmeter.store.servers.replies import Command
from redmeter.store.servers.sockets import Packer, pack
from support.servers import Server

WORDS = st.text(st.characters(codec="utf-8")) | st.binary()
NUMBERS = st.integers(-(2**63), 2**63) | st.floats()
NAMES = st.sampled_from(["SELECT", "HELLO", "AUTH", "CLIENT SETINFO", "CONFIG GET"])


@given(NAMES, st.lists(WORDS | NUMBERS, max_size=5))
def test_what_a_connection_says_by_itself_is_what_the_client_would_have_sent(
    name: str, rest: list[str | bytes | float]
) -> None:
    """Numbers as they are spelled by it, and a name of several words as several."""
    theirs = HiredisRespSerializer().pack(name, *rest)  # type: ignore[arg-type]  # its stub
    assert Packer().pack(name, *rest) == theirs


@pytest.mark.parametrize("unix", [False, True])
def test_a_connection_of_ours_begins_without_numbers(
    unix: bool, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database is a text."""
    sent: list[Command] = []

    def noting(command: Command) -> bytes:
        sent.append(command)
        return pack(command)

    monkeypatch.setattr(sockets, "pack", noting)
    url = (server.unix_url if unix else f"{server.url}?db=0").replace("db=0", "db=3")
    store = open(url)
    assert store is not None
    store.ask([("PING",)])
    store.close()
    assert ("SELECT", "3") in sent
    assert all(isinstance(part, str | bytes) for command in sent for part in command)


_INTERRUPTED = """
import signal, sys, time
from redmeter import Meter
def handler(*_):
    raise KeyboardInterrupt
meter = Meter(sys.argv[1], sync=True)
meter.count("x")
signal.signal(signal.SIGALRM, handler)
interrupted = 0
for turn in range(600):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0003 + turn % 100 * 1e-5)
        until = time.monotonic() + 1
        while time.monotonic() < until:
            meter.count("x")
    except KeyboardInterrupt:
        interrupted += 1
print(interrupted)
"""


def test_a_signal_handler_may_raise_in_the_midst_of_a_write(server: Server) -> None:
    """As that of Ctrl-C does: the process goes on, wherever it came."""
    url = f"{server.url}?db=6"  # so that each new connection has a number to say
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, url], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500
