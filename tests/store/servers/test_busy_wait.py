"""Whoever waits for one reply looks for it where that is quicker, and sleeps where it is not."""

import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter.errors import StoreRefused, StoreUnavailable
from redmeter.store.servers import sockets
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.sockets import SPIN_SECONDS, TRY, BusyWait
from support.canned import Canned, Last, client_of
from support.certificates import POSSIBLE, Authority
from support.servers import Server


def shares(spinner: BusyWait, spun: float, slept: float, waits: int) -> float:
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
    share = shares(BusyWait(), spun, slept, 100 * TRY)
    assert share == pytest.approx(1 - 1 / TRY if expected else 1 / TRY, abs=0.001)


def test_a_mind_is_changed_soon_and_not_by_a_single_wait() -> None:
    """A few tries of the other way are enough; one long wait is forgotten as soon."""
    spinner = BusyWait()
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
    monkeypatch.setattr(sockets, "_is_alone", lambda: found)
    monkeypatch.setattr(BusyWait, "spins", lambda _: True)
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("spins")
@pytest.mark.parametrize(
    ("spins", "how"),
    [
        *((True, how) for how in ("owned", "a caller's", "within a time", "RESP3")),
        (False, "owned"),
        *(
            pytest.param(False, how, marks=pytest.mark.nightly)
            for how in ("a caller's", "within a time", "RESP3")
        ),
    ],
    indirect=["spins"],
)
def test_a_reply_is_the_same_however_it_is_waited_for(canned: Canned, how: str) -> None:
    """At once or late, in pieces, an error, too late, or a connection that was closed."""

    def late() -> bytes:
        time.sleep(40 * SPIN_SECONDS)
        return b"+late\r\n"

    given_up = threading.Event()

    def too_late() -> bytes:
        given_up.wait(30.0)
        return b"+too late\r\n"

    client = client_of(canned, socket_timeout=1.0, protocol=3 if how == "RESP3" else 2)
    link = ServerLink(lambda: client, "canned", owned=how == "owned")
    hello = [b"%1\r\n+proto\r\n:3\r\n"] if how == "RESP3" else []
    canned.replies = [*hello, b"+soon\r\n", late, b"-OOM no room\r\n", None]
    canned.replies += [*hello, too_late, *hello, b"+again\r\n"]

    def asked() -> Any:
        if how != "within a time":
            return link.collect([("INCR", "a")], spin=True)[0]
        with link.within(1.0):
            return link.collect([("INCR", "a")], spin=True)[0]

    found = [asked() for _ in range(6)]
    assert [found[0], found[1], found[5]] == [b"soon", b"late", b"again"]
    assert isinstance(found[2], StoreRefused)
    assert [(type(each), each.sent) for each in found[3:5]] == [(StoreUnavailable, True)] * 2
    assert [command for command in canned.heard if command[0] == b"INCR"] == [[b"INCR", b"a"]] * 6
    given_up.set()
    link.close()
    client.close()


@pytest.fixture
def speaking(tmp_path: Path) -> Iterator[tuple[Canned, Path]]:
    """A server with prepared answers that speaks TLS, and the file of who vouches for it."""
    if not POSSIBLE:
        pytest.skip("there is no openssl to make certificates")
    authority = Authority(tmp_path / "ca")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue("good"))
    server = Canned(context)
    yield server, authority.file
    server.close()


@pytest.mark.slow
@pytest.mark.usefixtures("spins")
def test_what_a_server_says_before_it_closes_is_heard_over_tls(
    speaking: tuple[Canned, Path],
) -> None:
    """Where one cannot look into the socket without reading it."""
    canned, trusted = speaking
    client = client_of(canned, host="127.0.0.1", ssl=True, ssl_ca_certs=str(trusted))
    link = ServerLink(lambda: client, "canned")
    canned.replies = [Last(b"-ERR go away\r\n") for _ in range(20)]
    found = []
    for _ in canned.replies.copy():
        found += link.collect([("INCR", "a")], spin=True)
        link.close()  # or the next might be sent before the connection is known to be closed
    assert [type(each) for each in found] == [StoreRefused] * 20


class Silent:
    """A connection on which nothing ever comes."""

    def __init__(self) -> None:
        self.looks = 0

    def can_read(self) -> bool:
        """Say whether something is there."""
        self.looks += 1
        return False


@pytest.mark.usefixtures("spins")
def test_looking_ends_after_a_moment(spins: bool) -> None:
    """Where nothing comes; and where something else could run, there is none."""
    connection = Silent()
    assert BusyWait().begin(connection).spun is spins
    assert bool(connection.looks) is spins


ALONE = """
import _thread, sys
from redmeter import Meter

waits = []
with Meter(sys.argv[1], sync=True) as meter:
    meter.count("hits")
    spinner = meter._store.shards[0].link._busy_wait
    learn = type(spinner).learn

    def noted(self, spun, seconds):
        waits.append(spun)
        learn(self, spun, seconds)

    type(spinner).learn = noted
    for _ in range(200):
        meter.count("hits")
    print(any(waits))
    waits.clear()
    begun, end, ended = (_thread.allocate_lock() for _ in range(3))
    for lock in (begun, end, ended):
        lock.acquire()

    def other():
        begun.release()
        end.acquire()
        ended.release()

    _thread.start_new_thread(other, ())
    begun.acquire()
    for _ in range(200):
        meter.count("hits")
    print(any(waits))
    end.release()
    ended.acquire()
    while _thread._count():
        pass
    for _ in range(200):
        meter.count("hits")
    print(any(waits))
    import gevent

    waits.clear()
    for _ in range(200):
        meter.count("hits")
    print(any(waits))
    print(meter.total("hits"))
"""


def test_only_a_process_with_one_thread_spins(server: Server) -> None:
    """Whoever started the others, and where greenlets could run. What it counts is stored once."""
    run = [sys.executable, "-c", ALONE, server.url]
    found = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.split() == ["True", "False", "True", "False", "801"]
