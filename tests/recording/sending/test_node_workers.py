"""What is done for several servers at the same time, and what becomes of those that hang."""

import contextlib
import threading
from collections.abc import Iterator

import pytest

from redmeter.recording.sending import node_workers as module
from redmeter.recording.sending.node_workers import NodeTask, NodeWorkers
from support.waiting import eventually

#: Seconds after which nobody waits for an task of these tests any more.
PATIENCE = 0.4


@pytest.fixture
def tasks() -> Iterator[NodeWorkers]:
    """Tasks whose threads end with the test."""
    tasks = NodeWorkers(contextlib.nullcontext, PATIENCE)
    yield tasks
    tasks.dismiss()


def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no thread be started any more."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module, "start_new_thread", refuse)


def test_workers_are_done_at_the_same_time() -> None:
    """Each waits for all others, so one after the other none would ever be done."""
    tasks = NodeWorkers(contextlib.nullcontext, 10.0)
    barrier = threading.Barrier(3)
    for _ in range(3):
        some = [NodeTask([number], lambda _: barrier.wait(10)) for number in range(3)]
        tasks.run(some, alone=False)
        assert all(task.done for task in some)
        assert tasks.busy == set()
    tasks.dismiss()


def test_an_errand_that_hangs_is_left_alone_until_it_is_back(tasks: NodeWorkers) -> None:
    """What the others did is done meanwhile, and again and again."""
    gate = threading.Event()
    hanging = NodeTask([4, 5], lambda _: gate.wait(30))
    quick = NodeTask([1], lambda _: None)
    tasks.run([hanging, quick], alone=False)
    assert (hanging.done, quick.done, tasks.busy) == (False, True, {4, 5})
    again = NodeTask([1], lambda _: None)
    tasks.run([again], alone=False)
    assert (again.done, tasks.busy) == (True, {4, 5})
    gate.set()
    eventually(lambda: hanging.done)
    assert tasks.busy == set()


@pytest.mark.parametrize("waited", ["by someone", "alone", "not"])
def test_an_errand_that_takes_long_and_gets_on_is_waited_for(
    tasks: NodeWorkers, waited: str
) -> None:
    """Each of its exchanges is done soon. But not where others were done long ago."""
    until = threading.Event()

    def go_on(task: NodeTask) -> None:
        while not until.wait(PATIENCE / 10):
            task.go_on()

    some = [NodeTask([1], go_on)]
    if waited != "alone":
        some.append(NodeTask([2], lambda _: None))
    if waited != "not":
        threading.Timer(6 * PATIENCE, until.set).start()
    tasks.run(some, alone=False, patient=waited == "by someone")
    assert some[0].done is (waited != "not")
    until.set()
    eventually(lambda: not tasks.busy)


def test_a_thread_does_one_errand_after_the_other(tasks: NodeWorkers) -> None:
    """It is not started for each, and ends where it is dismissed."""
    seen: list[int] = []
    for number in range(20):
        task = NodeTask([number], lambda _: seen.append(threading.get_ident()))
        tasks.run([task], alone=False)
        eventually(lambda: len(tasks._idle) == 1)
    assert len(set(seen)) == 1
    assert threading.get_ident() not in seen
    tasks.dismiss()
    assert len(tasks._idle) == 0


def test_a_thread_that_nobody_needs_ends(
    tasks: NodeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while; the next task has another one."""
    monkeypatch.setattr(module, "IDLE", 0.01)
    threads = [threading.get_ident()]
    for _ in range(2):
        task = NodeTask([1], lambda _: threads.append(threading.get_ident()))
        tasks.run([task], alone=False)
        assert task.done
        eventually(lambda: not tasks._idle)
    assert len(threads) == 3


def test_where_no_thread_can_be_started_they_are_done_one_after_the_other(
    tasks: NodeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By who has them done; and so they are where there is only one server."""
    done: list[tuple[int, int]] = []
    some = [
        NodeTask([number], lambda task: done.append((task.numbers[0], threading.get_ident())))
        for number in range(3)
    ]
    tasks.run(some[:1], alone=True)
    no_threads(monkeypatch)
    tasks.run(some[1:], alone=False)
    assert done == [(number, threading.get_ident()) for number in range(3)]
    assert all(task.done for task in some)
    assert tasks.busy == set()


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

    tasks, seen = NodeWorkers(around), list[bool]()
    for alone in (False, True):
        task = NodeTask([1], lambda _: seen.append(threading.get_ident() in inside))
        tasks.run([task], alone=alone)
    assert (seen, inside) == ([True, False], [])
    tasks.dismiss()
