"""However a process ends: its events are stored, or its end is reported."""

import time
from typing import Any

import pytest

from redmeter import store as stores
from redmeter.health.writers import writer_findings
from support.programs import Programs, Total
from support.servers import Server
from support.stores import read_writers
from support.waiting import eventually

#: What a process does last, and whether its events are stored then.
ENDS = {
    "normal": ("", True),
    "sys.exit": ("sys.exit(3)", True),
    "exception": ("raise ValueError", True),
    "close": ("meter.close(); os._exit(0)", True),
    "SIGTERM, flushed": (
        "meter.flush_on_sigterm(); os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)",
        True,
    ),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", False),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", False),
    "os._exit": ("os._exit(0)", False),
}


def problems(server: Server, later: float = 0.0) -> list[str]:
    """Return what `redmeter doctor` says of the writers, some seconds later."""
    store = stores.open(server.url)
    assert store is not None
    now = time.time() + later
    found = writer_findings(now, read_writers(store), 0)
    store.close()
    return [finding.text for finding in found if finding.level != "ok"]


@pytest.mark.parametrize("end", ENDS)
def test_a_process_that_has_reported(
    programs: Programs, server: Server, total: Total, end: str
) -> None:
    """If its last events are missing, doctor reports it after three minutes of silence."""
    last, stored = ENDS[end]
    programs.run(f"meter = Meter(URL)\nmeter.count('x')\nmeter.flush()\nmeter.count('x')\n{last}")
    assert total() == 1 + stored
    assert problems(server) == []
    reported = problems(server, later=181)
    assert len(reported) == (0 if stored else 1)
    assert stored or "1 stopped reporting without a last report" in reported[0]
    assert stored or "up to 1 s of the events of each are missing" in reported[0]


@pytest.mark.parametrize("end", ENDS)
def test_a_forked_process_that_has_not(
    programs: Programs, server: Server, total: Total, end: str
) -> None:
    """Its parent reports it, also a parent that records nothing; in a with Pool() as well."""
    last, stored = ENDS[end]
    done = programs.run(
        f"""
meter = Meter(URL)
for _ in range(3):
    if os.fork() == 0:
        meter.count("x")
        {last}
        sys.exit()
    os.wait()
"""
    )
    assert total() == 3 * stored
    assert ("redmeter: forked processes ended before" in done.err) == (not stored)
    found = problems(server, later=181)
    assert len(found) == (0 if stored else 1)
    assert stored or found[0].startswith("3 writers of forked processes ended before")


def test_a_pool_in_a_with_statement(programs: Programs, server: Server, total: Total) -> None:
    """Its workers are ended by SIGTERM."""
    programs.run(
        """
meter = Meter(URL, flush_interval=60)

def work(number):
    meter.count("x")

import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    pool.map(work, range(20))
"""
    )
    assert total() == 0
    (found,) = problems(server)
    assert "of forked processes ended before they had stored their events" in found


def test_an_idle_process_is_not_a_dead_one(
    programs: Programs, server: Server, monkeypatch: pytest.MonkeyPatch, open_buffered: Any
) -> None:
    """It reports now and then, though nothing has changed."""
    monkeypatch.setattr("redmeter.recording.status.RENEW_SECONDS", 0.05)
    meter = open_buffered(server.url)
    meter.count("x")
    meter.flush()
    store = stores.open(server.url)
    assert store is not None
    (writer,) = read_writers(store)
    with server.client() as client:
        client.zadd("redmeter:writers:", {writer.producer: 1})
        eventually(lambda: client.zscore("redmeter:writers:", writer.producer) > 1)
    store.close()


def test_tornado_stores_before_it_reloads(programs: Programs, total: Total) -> None:
    """Its autoreload replaces the process by another program."""
    pytest.importorskip("tornado")
    programs.run(
        """
import asyncio
from tornado import autoreload
meter = Meter(URL, flush_interval=3600)
meter.count("x", 10)

async def main():
    if os.environ.get("AGAIN"):
        return
    os.environ["AGAIN"] = "1"
    autoreload.start(check_time=50)
    while True:
        os.utime(__file__)
        await asyncio.sleep(0.05)

asyncio.run(main())
"""
    )
    assert total() == 20
