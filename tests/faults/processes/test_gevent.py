"""gevent: its greenlets in place of threads, before and after the meter has started."""

import pytest

from support.programs import Programs, Total

PATCH = """
import warnings
from gevent import monkey
warnings.simplefilter("ignore")  # it warns of being late
monkey.patch_all()
"""

#: What an application does, patched before or after, with one meter for each way to end.
WORK = """
import gevent
from gevent.pool import Pool

def work(meter, handle, number):
    for step in range(50):
        meter.count("x")
        handle.inc()
        if step % 10 == number % 10:
            gevent.sleep(0)
    if number % 10 == 0:
        assert meter.flush(10)
        meter.recorder_health()

def used(meter, handle):
    pool = Pool(20)
    for number in range(60):
        pool.spawn(work, meter, handle, number)
    pool.join()

def check(meter):
    assert (meter.total("x"), meter.total("y")) == (3000, 3000), meter.recorder_health()

flushed, closed, waiting, last = zip(meters, handles)
used(*flushed)
assert flushed[0].flush(10)
assert flushed[0].recorder_health().buffered == 0
check(flushed[0])
used(*closed)
closed[0].close()
assert closed[0].recorder_health().buffered == 0
check(closed[0])
used(*waiting)
until = time.monotonic() + 10
while (waiting[0].total("x"), waiting[0].total("y")) != (3000, 3000):
    assert time.monotonic() < until, waiting[0].recorder_health()
    gevent.sleep(0.01)
used(*last)  # and so the program ends
"""

#: The meters are of several prefixes; the last one is of the tests' own.
MAKE_FOUR = """
prefixes = ("flushed:", "closed:", "waiting:", "redmeter:")
meters = [Meter(URL, prefix=prefix, flush_interval=0.02) for prefix in prefixes]
handles = [meter.counter("y") for meter in meters]
"""

BEGIN = "for meter in meters: meter.count('x', 0)\n"

BEGINNINGS = {
    "patched before everything": (PATCH, ""),
    "patched before the first event": ("", PATCH),
    "patched after the meters have started": (
        "",
        BEGIN + "for meter in meters: assert meter.flush(10)\n" + PATCH,
    ),
    "patched after the meters were closed": (
        "",
        BEGIN + "for meter in meters: meter.close()\n" + PATCH,
    ),
    "patched while they flush": ("", BEGIN + PATCH),
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_what_greenlets_count_is_stored(programs: Programs, total: Total, beginning: str) -> None:
    """Sixty greenlets count and flush, and read while the flusher writes.

    All is stored after a flush, after close(), by itself, and at the end of the program.
    """
    first, before = BEGINNINGS[beginning]
    done = programs.run(MAKE_FOUR + before + WORK, first=first)
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (3000, 3000)


MAKE = "meter = Meter(URL, flush_interval=0.02)\nhandle = meter.counter('y')\n"


def test_a_greenlet_that_is_given_up_in_a_flush_doubles_nothing(
    programs: Programs, total: Total
) -> None:
    """gevent.Timeout breaks waiting off wherever it is."""
    done = programs.run(
        MAKE
        + """
import gevent
given_up = 0
for _ in range(200):
    meter.count("x")
    handle.inc()
    try:
        with gevent.Timeout(0.0005):
            meter.flush(5)
            meter.total("x")
    except gevent.Timeout:
        given_up += 1
assert given_up
assert meter.flush(10)
""",
        first=PATCH,
    )
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (200, 200)


def test_native_threads_beside_greenlets_count(programs: Programs, total: Total) -> None:
    """Those of gevent's thread pool: one of them counts the first event of all."""
    done = programs.run(
        MAKE
        + """
import gevent
pool = gevent.get_hub().threadpool

def work():
    for _ in range(100):
        meter.count("x")
        handle.inc()

pool.apply(work)
for _ in range(4):
    pool.spawn(work)
work()
pool.join()
assert meter.flush(10), meter.recorder_health()
""",
        first=PATCH,
    )
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (600, 600)
