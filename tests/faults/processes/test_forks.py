"""Forked processes: each starts empty, and the sum of their counts is exact."""

import signal
from typing import Any

import pytest

from support.programs import Programs, Total

#: Forks a child that does something and leaves with what it says; returns its pid.
FORK = """
def fork(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
            code = 1
        os._exit(code)
    return pid

def wait(*pids):
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
"""


def test_a_child_forked_under_load_counts_what_is_its_own(
    programs: Programs, total: Total, conn: Any
) -> None:
    """Another thread counts all the while; the child keeps nothing of it."""
    done = programs.run(
        FORK
        + """
meter = Meter(URL, flush_interval=0.01)
handle, counted, go_on = meter.counter("x"), 0, True

def hammer():
    global counted
    while go_on:
        handle.inc()
        meter.count("x")
        meter.count("x", 3, labels={"a": "b"})
        counted += 1

thread = threading.Thread(target=hammer)
thread.start()
handle.inc()

def child():
    assert meter.recorder_health().recorded == 0, meter.recorder_health()
    for _ in range(10):
        handle.inc()
        meter.count("x")
    assert meter.recorder_health().recorded == 20
    meter.count("y")
    assert meter.flush(10)
    assert meter.recorder_health().stored == 21

for _ in range(8):
    children = [fork(child) for _ in range(5)]
    wait(*children)
go_on = False
thread.join()
meter.close()
print(counted)
"""
    )
    assert (done.code, done.err) == (0, "")
    (counted,) = done.numbers
    assert counted > 0
    assert total() == 2 * counted + 1 + 40 * 20
    assert total('x{a="b"}') == 3 * counted
    assert total("y") == 40
    assert conn.zcard("redmeter:writers:") <= 41
    assert len(list(conn.scan_iter("redmeter:batch:*"))) == 41


def test_a_child_is_not_held_up_by_locks_that_were_held_in_its_parent(
    programs: Programs, total: Total
) -> None:
    """At the moment of the fork another thread holds both locks of the recorder, for good."""
    done = programs.run(
        FORK
        + """
meter = Meter(URL)
meter.count("x")
recorder, held, over = meter._recorder, threading.Event(), threading.Event()

def hold():
    ticket = object()
    with recorder._lock:
        assert recorder._sending.wait(ticket, 0)
        held.set()
        over.wait()
        recorder._sending.tickets.pop(ticket)

thread = threading.Thread(target=hold)
thread.start()
held.wait()

def child():
    for _ in range(3000):  # so many that the list is shortened
        meter.count("x")
    meter.recorder_health()
    assert meter.flush(10)
    meter.close()

wait(fork(child))
over.set()
thread.join()
meter.close()
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 3001


def test_a_flush_that_hangs_in_the_parent_does_not_hang_the_child(
    programs: Programs, total: Total, server: Any
) -> None:
    """The parent waits for an answer when it forks; both count once, when there is one."""
    program = programs.start(
        FORK
        + """
meter = Meter(URL, timeout=20)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
meter.count("x")
assert meter.flush(10)
print("stored")
signal.sigwait({signal.SIGUSR1})
meter.count("x", 10)
assert not meter.flush(0.05)

def child():
    assert meter.recorder_health().buffered == 0
    meter.count("x", 100)
    print("child")
    assert meter.flush(20)

wait(fork(child))
assert meter.flush(20)
"""
    )
    assert program.line(0) == "stored"
    server.pause()
    program.send(signal.SIGUSR1)
    assert program.line(1) == "child"
    server.resume()
    done = program.finish()
    assert (done.code, done.err) == (0, "")
    assert total() == 111


def test_children_of_children_count(programs: Programs, total: Total, conn: Any) -> None:
    """Each process is a producer of its own, also where all three count before and after."""
    done = programs.run(
        FORK
        + """
meter = Meter(URL)

def grandchild():
    meter.count("x", 100)
    meter.count("y")
    meter.close()

def child():
    meter.count("x", 10)
    wait(fork(grandchild))
    meter.count("x", 10)
    meter.count("y")
    meter.close()

meter.count("x")
wait(fork(child))
meter.count("x")
meter.count("y")
meter.close()
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 122
    assert total("y") == 3
    assert len(list(conn.scan_iter("redmeter:batch:*"))) == 3


def test_a_fork_before_the_first_use_is_like_any_other(programs: Programs, total: Total) -> None:
    """Handles were made, nothing was counted yet; both leave by the usual end of a program."""
    done = programs.run(
        """
meter = Meter(URL, flush_interval=60)
handle = meter.counter("x")
pid = os.fork()
for _ in range(5):
    handle.inc()
    meter.count("y")
if pid:
    assert os.waitpid(pid, 0)[1] == 0
"""
    )
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (10, 10)


def test_a_child_that_ends_as_programs_do_stores_what_it_counted(
    programs: Programs, total: Total
) -> None:
    """It was forked from a process that had counted before; what that had not sent stays its."""
    done = programs.run(
        """
meter = Meter(URL, flush_interval=60)
meter.count("x", 7)
if (pid := os.fork()):
    assert os.waitpid(pid, 0)[1] == 3 << 8
else:
    meter.count("x", 100)
    sys.exit(3)
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 107


def test_a_child_that_never_counts_stores_nothing(programs: Programs, total: Total) -> None:
    """Whatever its parent had in memory is the parent's to store."""
    done = programs.run(
        """
meter = Meter(URL, flush_interval=60)
meter.count("x", 7)
if (pid := os.fork()):
    assert os.waitpid(pid, 0)[1] == 0
else:
    assert meter.flush()
    assert len(os.listdir("/proc/self/task")) == 1
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 7


def test_a_fork_that_runs_no_hooks_is_noticed(programs: Programs, total: Total) -> None:
    """Some extension called fork() itself: the first event tells, and nothing counts twice."""
    done = programs.run(
        """
import ctypes
meter = Meter(URL, flush_interval=60)
meter.count("x", 7)
meter.count("y", 7)
libc = ctypes.PyDLL(None)  # holds the lock of the interpreter
time.sleep(0.06)  # until the counters are to be attended to once more
if (pid := libc.fork()):
    assert os.waitpid(pid, 0)[1] == 0
else:
    meter.count("x", 100)
    assert meter.flush()
    os._exit(0)
"""
    )
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (107, 7)


@pytest.mark.slow
def test_many_forks_under_load_lose_and_double_nothing(programs: Programs, total: Total) -> None:
    """Four threads count through two meters while 40 children are forked, four at a time."""
    done = programs.run(
        FORK
        + """
meters = [Meter(URL, flush_interval=0.01), Meter(URL, flush_interval=0.02)]
go_on, counts = True, [0] * 4

def hammer(number):
    meter = meters[number % 2]
    handle = meter.counter(f"x{number}")
    while go_on:
        handle.inc()
        meter.count("x")
        counts[number] += 1
        if number == 3:
            meter.flush()

threads = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()

def child():
    for meter in meters:
        meter.count("x", 2)
        meter.count("child")
    for meter in meters:
        assert meter.flush(20)

for _ in range(10):
    wait(*[fork(child) for _ in range(4)])
go_on = False
for thread in threads:
    thread.join()
print(*counts)
"""
    )
    assert (done.code, done.err) == (0, "")
    counts = done.numbers
    assert total() == sum(counts) + 10 * 4 * 4
    assert total("child") == 10 * 4 * 2
    assert [total(f"x{number}") for number in range(4)] == counts


def test_a_child_forked_while_its_parent_waits_for_threads_is_not_ending(
    programs: Programs, total: Total
) -> None:
    """Its main thread is the one that forked; its events wait in memory for a flush as usual."""
    done = programs.run(
        FORK
        + """
meter = Meter(URL, flush_interval=3600)
meter.count("x")

def child():
    meter.count("x")
    assert meter.recorder_health().stored == 0, meter.recorder_health()
    assert meter.flush(10)

def serve():
    threading.main_thread().join()
    print(os.waitpid(fork(child), 0)[1])

threading.Thread(target=serve).start()
"""
    )
    assert (done.code, done.out) == (0, "0\n"), done.err
    assert total() == 2


@pytest.mark.parametrize("lock", ["_lock", "_fork_lock"])
def test_a_child_uses_a_callers_pool_that_another_thread_used_during_the_fork(
    programs: Programs, total: Total, lock: str
) -> None:
    """By a meter and by the book: the pool's locks are never released in the child."""
    done = programs.run(
        FORK
        + """
import redis
from redmeter import book

client = redis.Redis.from_url(URL)
buffered, sync = Meter(client=client), Meter(client=client, sync=True)
sync.count("x")
buffered.count("x")
assert buffered.flush(10)
book.update_counter(client, "y")
held, over = threading.Event(), threading.Event()

def hold():
    with getattr(client.connection_pool, sys.argv[2]):
        held.set()
        over.wait(60)

thread = threading.Thread(target=hold)
thread.start()
held.wait()

def by_meter():
    signal.alarm(20)
    sync.count("x", 10)

def by_book():
    signal.alarm(20)
    book.update_counter(client, "y")

def by_flush():
    signal.alarm(20)
    buffered.count("x", 100)
    assert buffered.flush(10)

children = [fork(work) for work in (by_meter, by_book, by_flush)]
wait(*children)
over.set()
thread.join()
""",
        lock,
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 112
