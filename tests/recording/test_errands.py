"""What is done for several servers at the same time, and what becomes of those that hang."""

import contextlib
import threading
from collections.abc import Iterator

import pytest

from redmeter.recording import errands as module
from redmeter.recording.errands import Errand, Errands
from support.waiting import eventually

#: Seconds after which nobody waits for an errand of these tests any more.
PATIENCE = 0.05


@pytest.fixture
def errands() -> Iterator[Errands]:
    """Errands whose threads end with the test."""
    errands = Errands(contextlib.nullcontext, PATIENCE)
    yield errands
    errands.dismiss()


def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no thread be started any more."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module, "start_new_thread", refuse)


def test_errands_are_done_at_the_same_time() -> None:
    """Each waits for all others, so one after the other none would ever be done."""
    errands = Errands(contextlib.nullcontext, 10.0)
    barrier = threading.Barrier(3)
    for _ in range(3):
        some = [Errand([number], lambda _: barrier.wait(10)) for number in range(3)]
        errands.run(some, alone=False)
        assert all(errand.done for errand in some)
        assert errands.busy == set()
    errands.dismiss()


def test_an_errand_that_hangs_is_left_alone_until_it_is_back(errands: Errands) -> None:
    """What the others did is done meanwhile, and again and again."""
    gate = threading.Event()
    hanging = Errand([4, 5], lambda _: gate.wait(30))
    quick = Errand([1], lambda _: None)
    errands.run([hanging, quick], alone=False)
    assert (hanging.done, quick.done, errands.busy) == (False, True, {4, 5})
    again = Errand([1], lambda _: None)
    errands.run([again], alone=False)
    assert (again.done, errands.busy) == (True, {4, 5})
    gate.set()
    eventually(lambda: hanging.done)
    assert errands.busy == set()


@pytest.mark.parametrize("waited", ["by someone", "alone", "not"])
def test_an_errand_that_takes_long_and_gets_on_is_waited_for(errands: Errands, waited: str) -> None:
    """Each of its exchanges is done soon. But not where others were done long ago."""
    until = threading.Event()

    def go_on(errand: Errand) -> None:
        while not until.wait(PATIENCE / 10):
            errand.go_on()

    some = [Errand([1], go_on)]
    if waited != "alone":
        some.append(Errand([2], lambda _: None))
    if waited != "not":
        threading.Timer(6 * PATIENCE, until.set).start()
    errands.run(some, alone=False, patient=waited == "by someone")
    assert some[0].done is (waited != "not")
    until.set()
    eventually(lambda: not errands.busy)


def test_a_thread_does_one_errand_after_the_other(errands: Errands) -> None:
    """It is not started for each, and ends where it is dismissed."""
    seen: list[int] = []
    for number in range(20):
        errand = Errand([number], lambda _: seen.append(threading.get_ident()))
        errands.run([errand], alone=False)
        eventually(lambda: len(errands._idle) == 1)
    assert len(set(seen)) == 1
    assert threading.get_ident() not in seen
    errands.dismiss()
    assert len(errands._idle) == 0


def test_a_thread_that_nobody_needs_ends(errands: Errands, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while; the next errand has another one."""
    monkeypatch.setattr(module, "IDLE", 0.01)
    threads = [threading.get_ident()]
    for _ in range(2):
        errand = Errand([1], lambda _: threads.append(threading.get_ident()))
        errands.run([errand], alone=False)
        assert errand.done
        eventually(lambda: not errands._idle)
    assert len(threads) == 3


def test_where_no_thread_can_be_started_they_are_done_one_after_the_other(
    errands: Errands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By who has them done; and so they are where there is only one server."""
    done: list[tuple[int, int]] = []
    some = [
        Errand([number], lambda errand: done.append((errand.numbers[0], threading.get_ident())))
        for number in range(3)
    ]
    errands.run(some[:1], alone=True)
    no_threads(monkeypatch)
    errands.run(some[1:], alone=False)
    assert done == [(number, threading.get_ident()) for number in range(3)]
    assert all(errand.done for errand in some)
    assert errands.busy == set()


def test_what_a_thread_is_in_is_around_each_errand() -> None:
    """But not around what is done by who has it done: that is in there already."""
    inside: list[int] = []

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        inside.append(threading.get_ident())
        try:
            yield
        finally:
            inside.remove(threading.get_ident())

    errands, seen = Errands(around), list[bool]()
    for alone in (False, True):
        errand = Errand([1], lambda _: seen.append(threading.get_ident() in inside))
        errands.run([errand], alone=alone)
    assert (seen, inside) == ([True, False], [])
    errands.dismiss()
