"""Whoever waits for one reply looks for it where that is quicker, and sleeps where it is not."""

import subprocess
import sys
import threading
import time
from typing import Any

import pytest
import redis

from redmeter.errors import StoreRefused, StoreUnavailable
from redmeter.store import spinning
from redmeter.store.link import Link
from redmeter.store.spinning import SPIN_SECONDS, TRY, Spinning
from support.canned import Canned, client_of
from support.servers import Server


def shares(spinner: Spinning, spun: float, slept: float, waits: int) -> float:
    """Have waits take so long, seconds, and return the part of them that spun."""
    times = 0
    for _ in range(waits):
        spins = spinner.spins()
        times += spins
        spinner.learn(spins, spun if spins else slept)
    return times / waits


@pytest.mark.parametrize(
    ("spun", "slept", "expected"),
    [
        (40e-6, 80e-6, True),
        (80e-6, 40e-6, False),
        (78e-6, 80e-6, False),  # not worth the processor
        (250e-6, 240e-6, False),
        (5.0, 9.0, False),  # a server far away: neither is a matter of being woken
    ],
)
def test_what_is_quicker_is_done_and_the_other_way_tried_at_times(
    spun: float, slept: float, expected: bool
) -> None:
    """From the third wait on."""
    share = shares(Spinning(), spun, slept, 100 * TRY)
    assert share == pytest.approx(1 - 1 / TRY if expected else 1 / TRY, abs=0.001)


def test_a_mind_is_changed_soon_and_not_by_a_single_wait() -> None:
    """A few tries of the other way are enough; one long wait is forgotten as soon."""
    spinner = Spinning()
    assert shares(spinner, 40e-6, 80e-6, 10 * TRY) > 0.9
    shares(spinner, 120e-6, 80e-6, TRY)
    assert shares(spinner, 120e-6, 80e-6, 10 * TRY) < 0.1
    shares(spinner, 40e-6, 80e-6, 10 * TRY)
    assert shares(spinner, 40e-6, 80e-6, 10 * TRY) > 0.9
    spinner.learn(True, 60.0)
    shares(spinner, 40e-6, 80e-6, 5 * TRY)
    assert shares(spinner, 40e-6, 80e-6, 10 * TRY) > 0.9


@pytest.fixture(params=[True, False], ids=["spinning", "sleeping"])
def spins(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Every wait is of one kind, whatever else runs in this process."""
    found: bool = request.param
    monkeypatch.setattr(spinning, "_is_alone", lambda: found)
    monkeypatch.setattr(Spinning, "spins", lambda _: True)
    return found


@pytest.mark.usefixtures("spins")
@pytest.mark.parametrize("owned", [True, False])
def test_a_reply_is_the_same_however_it_is_waited_for(canned: Canned, owned: bool) -> None:
    """At once or late, in pieces, an error, too late, or a connection that was closed."""

    def late() -> bytes:
        time.sleep(40 * SPIN_SECONDS)
        return b"+late\r\n"

    def too_late() -> bytes:
        time.sleep(1.0)
        return b"+too late\r\n"

    client = client_of(canned, socket_timeout=0.3)
    link = Link(lambda: client, "canned", owned=owned)
    canned.replies = [b"+soon\r\n", late, b"-OOM no room\r\n", None, too_late, b"+again\r\n"]
    found = [link.collect([("INCR", "a")], spin=True)[0] for _ in range(6)]
    assert [found[0], found[1], found[5]] == [b"soon", b"late", b"again"]
    assert isinstance(found[2], StoreRefused)
    assert [(type(each), each.sent) for each in found[3:5]] == [(StoreUnavailable, True)] * 2
    assert len(canned.heard) == 6
    client.close()


def test_looking_ends_after_a_moment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing comes; and where something else could run, the thread may sleep at once."""
    client: Any = redis.Redis(port=server.port)
    connection = client.connection_pool.get_connection()
    spinner, ended = Spinning(), threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    assert not spinner.begin(connection).spun
    ended.set()
    other.join()
    monkeypatch.setattr(spinning, "_is_alone", lambda: True)
    started = time.monotonic()
    assert spinner.begin(connection).spun
    assert time.monotonic() - started >= SPIN_SECONDS
    client.connection_pool.release(connection)
    client.close()


ALONE = """
import sys, threading
from redmeter import Meter
from redmeter.store.link import Link

waits = []
with Meter(sys.argv[1], sync=True) as meter:
    meter.count("hits")
    spinner = meter._store.parts[0].link._spinning
    learn = type(spinner).learn

    def noted(self, spun, seconds):
        waits.append(spun)
        learn(self, spun, seconds)

    type(spinner).learn = noted
    for _ in range(200):
        meter.count("hits")
    print(any(waits))
    waits.clear()
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    for _ in range(200):
        meter.count("hits")
    print(any(waits))
    ended.set()
    other.join()
    print(meter.total("hits"))
"""


def test_only_a_process_with_one_thread_spins(server: Server) -> None:
    """And what it counts is stored once."""
    run = [sys.executable, "-c", ALONE, server.url]
    found = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.split() == ["True", "False", "401"]
