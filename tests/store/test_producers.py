"""Producers: random, numbered, few, lent to one call at a time, and never shared with a fork."""

import random
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redmeter
from redmeter.clock import SYSTEM as CLOCK
from redmeter.store import producers
from redmeter.store.producers import POOL, Producer, Producers


def test_a_producer_is_128_random_bits() -> None:
    """In hexadecimal; each bit takes both values, whatever the others do; no seed repeats them."""
    ids = []
    for _ in range(400):
        random.seed(1)
        ids.append(Producer(CLOCK).id)
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)
    assert len(set(ids)) == len(ids)
    numbers = [int(each, 16) for each in ids]
    columns = [
        sum((number >> bit & 1) << row for row, number in enumerate(numbers)) for bit in range(128)
    ]
    for bit, column in enumerate(columns):
        assert 100 < column.bit_count() < 300, f"bit {bit} is nearly always the same"
        for other in columns[:bit]:
            assert 100 < (column ^ other).bit_count() < 300, f"bit {bit} follows another"


def test_batches_are_numbered_from_one() -> None:
    """Upwards, by one; another producer starts at 1, without any acknowledgement."""
    producer = Producer(CLOCK)
    assert not producer.acknowledged
    assert [producer.next() for _ in range(3)] == [1, 2, 3]
    before, producer.acknowledged = producer.id, True
    producer.renew()
    assert producer.id != before
    assert not producer.acknowledged
    assert producer.next() == 1


@given(st.lists(st.booleans(), max_size=60), st.randoms(use_true_random=False))
def test_no_producer_is_lent_twice_at_once(steps: list[bool], order: random.Random) -> None:
    """Whatever the order of borrowing and giving back; there are as many as were out at once."""
    pool = Producers(CLOCK)
    out: list[Producer] = []
    seen: set[str] = set()
    most = 0
    for borrow in steps:
        if borrow and len(out) < POOL:
            producer = pool.borrow()
            assert producer not in out
            out.append(producer)
            seen.add(producer.id)
            most = max(most, len(out))
        elif out:
            out.pop(order.randrange(len(out))).lock.release()
    assert len(seen) == most


def test_a_producer_keeps_its_number_and_what_it_was_told() -> None:
    """A batch whose call was broken off is followed by one of a higher number."""
    pool = Producers(CLOCK)
    producer = pool.borrow()
    producer.next()
    producer.acknowledged = True
    producer.lock.release()
    again = pool.borrow()
    assert again is producer
    assert (again.next(), again.acknowledged) == (2, True)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, nobody makes another producer."""
    monkeypatch.setattr(producers, "POOL_PATIENCE", 60.0)


@pytest.mark.usefixtures("patient")
def test_one_call_too_many_waits_for_a_producer() -> None:
    """It gets the one that is given back, not a new one."""
    pool = Producers(CLOCK)
    lent = [pool.borrow() for _ in range(POOL)]
    got: list[Producer] = []
    asked, done = threading.Event(), threading.Event()

    def borrow() -> None:
        asked.set()
        got.append(pool.borrow())
        done.set()

    thread = threading.Thread(target=borrow, daemon=True)
    thread.start()
    assert asked.wait(5)
    assert not done.wait(0.05)
    lent[3].lock.release()
    assert done.wait(5)
    thread.join(5)
    assert got == [lent[3]]


def test_where_none_comes_back_a_call_gets_another_producer_within_moments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the monotonic clock, also where each wait takes longer than it should; and only once."""
    now, waits = 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal now, waits
        now, waits = now + 20 * seconds, waits + 1

    pool = Producers(CLOCK)
    lost = {pool.borrow() for _ in range(POOL)}
    monkeypatch.setattr(producers, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    producer = pool.borrow()
    assert producer not in lost
    assert 1 <= waits <= 3
    producer.lock.release()
    before = waits
    assert pool.borrow() is producer
    assert waits == before


@pytest.mark.usefixtures("patient")
def test_many_threads_share_few_producers() -> None:
    """Each number of each producer is used once, however many threads there are."""
    pool = Producers(CLOCK)
    used: list[tuple[str, int]] = []

    def write() -> None:
        for _ in range(50):
            producer = pool.borrow()
            used.append((producer.id, producer.next()))
            producer.lock.release()

    threads = [threading.Thread(target=write) for _ in range(4 * POOL)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(used) == len(set(used)) == 4 * POOL * 50
    assert len({producer for producer, _ in used}) <= POOL


FORK = """
import os
from redmeter.clock import SYSTEM
from redmeter.store.producers import POOL, Producers
pool = Producers(SYSTEM)
pool.borrow().lock.release()
lent = [pool.borrow() for _ in range(POOL)]   # none is left: a copy of the pool would block
lent.pop().lock.release()                     # and one lies idle
mine = {each.id for each in pool._all}
read, write = os.pipe()
if os.fork() == 0:
    theirs = [pool.borrow() for _ in range(POOL)]
    os.write(write, " ".join(each.id for each in theirs).encode())
    os._exit(0)
os.close(write)
os.wait()
theirs = set(os.read(read, 10000).decode().split())
assert len(theirs) == len(mine) == POOL, (mine, theirs)
assert not theirs & mine, "shared with the parent"
assert pool.borrow().id in mine
print("done")
"""


def test_a_fork_mints_producers_of_its_own() -> None:
    """None of its parent's, idle or lent, and it does not wait for those its parent has lent."""
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        env={"PYTHONPATH": str(Path(redmeter.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.stdout == "done\n", done.stderr
