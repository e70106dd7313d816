"""Exceptions out of signal handlers, at each point at which Python lets one come.

Those points are where a function begins and where a call of a built-in one has returned, the lock
acquired for instance. A profile function is called at just these, so it is in for the handler.
"""

import pytest

from redmeter.store.producers import POOL
from support.programs import Programs, Total
from support.pythons import PYTHONS, python

#: Interrupts some work of the main thread at one point after the other, until it gets through.
INTERRUPTED = """
import itertools

def interrupted(work, *files):
    for wanted in itertools.count(1):
        passed = 0

        def profile(frame, event, argument):
            nonlocal passed
            if event not in ("call", "c_return") or not frame.f_code.co_filename.endswith(files):
                return
            passed += 1
            if passed == wanted:
                sys.setprofile(None)
                raise KeyboardInterrupt

        sys.setprofile(profile)
        try:
            work()
        except KeyboardInterrupt:
            pass
        else:
            if passed < wanted:
                return wanted - 1
        finally:
            sys.setprofile(None)
"""


@pytest.mark.parametrize("version", PYTHONS[:2])  # from 3.13 on threads are told apart otherwise
def test_an_exception_during_a_first_event_leaves_a_process_that_goes_on(
    programs: Programs, total: Total, version: str
) -> None:
    """It is not taken for one that ends, which stores each event at once; and a fork works."""
    done = programs.run(
        INTERRUPTED
        + """
import gc
import warnings
from redmeter.recording import process
gc.disable()  # Python ignores exceptions in callbacks of weak references, which it calls
meters = []

def begin():
    meters.append(Meter(URL, flush_interval=60))
    process._hooked.clear()  # as in a process that begins
    meters[-1].count("x")

points = interrupted(begin, "process.py", "flusher.py", "threading.py")
assert threading.main_thread().is_alive()
for meter in meters:
    meter.count("x")
    assert not meter._recorder._leaving
recorded = sum(meter.recorder_health().recorded for meter in meters)
assert sum(meter.recorder_health().stored for meter in meters) == 0
warnings.simplefilter("ignore")  # of forks in a process with threads
if (pid := os.fork()) == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
for meter in meters:
    assert meter.flush(10)
print(points, recorded)
os._exit(0)  # as often as points, the exit would be waited for
""",
        python=python(version),
    )
    assert (done.code, done.err) == (0, "")
    points, recorded = done.numbers
    assert points > 20
    assert total() == recorded > points


def test_an_exception_anywhere_in_a_flush_lets_the_next_one_store_everything_once(
    programs: Programs, total: Total
) -> None:
    """In the thread that asked for it, where no other can be started: nothing stays locked."""
    done = programs.run(
        INTERRUPTED
        + """
from redmeter.recording import process
from redmeter.recording.sending import flusher

def refused(*arguments):
    raise RuntimeError("can't start new thread")

flusher.start_new_thread = refused
process.EXIT_SECONDS = 0.1  # for how long a flush waits for another one
meter = Meter(URL)
meter.count("x")
assert meter.flush(10)

def flush():
    meter.count("x")
    assert meter.flush(10)

points = interrupted(flush, "recorder.py", "flusher.py", "process.py", "contextlib.py")
assert meter.flush(10)
assert not meter._recorder._flushing
health = meter.recorder_health()
print(points, health.recorded, health.stored, health.uncertain)
"""
    )
    assert (done.code, done.err) == (0, "")
    points, recorded, stored, uncertain = done.numbers
    assert points > 20
    assert (recorded, uncertain) == (stored, 0)
    assert total() == recorded


def test_an_exception_anywhere_in_a_synchronous_write_costs_the_next_ones_next_to_nothing(
    programs: Programs, total: Total
) -> None:
    """Each may cost a producer; another one takes the place of those that are all lost."""
    done = programs.run(
        INTERRUPTED
        + """
from redmeter.store import producers
waits = []
producers.time = type("Clock", (), {  # each look takes as long as on a machine that is busy
    "monotonic": [look * 0.02 for look in range(100_000, 0, -1)].pop,
    "sleep": waits.append,
})
meter = Meter(URL, sync=True)
meter.count("x")
begun = 0

def write():
    global begun
    begun += 1
    meter.count("x")

points = interrupted(write, "sync.py", "shard.py", "producers.py")
pool = meter._store.shards[0]._producers
for producer in pool._all:
    producer.lock.acquire(blocking=False)  # as if all were lost
waits.clear()
meter.count("x")
print(points, len(waits), len(pool._all), begun + 2)
"""
    )
    assert (done.code, done.err) == (0, "")
    points, waits, made, begun = done.numbers
    assert points > 20
    assert waits <= 4
    assert made <= 2 * POOL
    assert begun - points <= total() <= begun
