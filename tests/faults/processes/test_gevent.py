"""gevent: its greenlets in place of threads, before and after the meter has started."""

import pytest

from support.programs import Programs, Total

PATCH = """
import warnings
from gevent import monkey
warnings.simplefilter("ignore")  # it warns of being late
monkey.patch_all()
"""

#: What an application does, patched before or after.
WORK = """
import gevent
from gevent.pool import Pool

def work(number):
    for step in range(50):
        meter.count("x")
        handle.inc()
        if step % 10 == number % 10:
            gevent.sleep(0)
    if number % 10 == 0:
        assert meter.flush(10)
        meter.health()

pool = Pool(20)
for number in range(60):
    pool.spawn(work, number)
pool.join()
"""


MAKE = "meter = Meter(URL, flush_interval=0.02)\nhandle = meter.counter('y')\n"

BEGINNINGS = {
    "patched before everything": (PATCH, MAKE),
    "patched before the first event": ("", MAKE + PATCH),
    "patched after the meter has started": (
        "",
        MAKE + "meter.count('x', 0)\nassert meter.flush(10)\n" + PATCH,
    ),
    "patched after the meter was closed": (
        "",
        MAKE + "meter.count('x', 0)\nmeter.close()\n" + PATCH,
    ),
    "patched while it flushes": ("", MAKE + "meter.count('x', 0)\n" + PATCH),
}

ENDS = {
    "flush": "assert meter.flush(10)\nassert meter.health().buffered == 0\nos._exit(0)",
    "close": "meter.close()\nassert meter.health().buffered == 0\nos._exit(0)",
    "exit": "",
    "by itself": """
until = time.monotonic() + 10
while (meter.total("x"), meter.total("y")) != (3000, 3000):
    assert time.monotonic() < until, meter.health()
    gevent.sleep(0.01)
os._exit(0)
""",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_what_greenlets_count_is_stored(
    programs: Programs, total: Total, beginning: str, end: str
) -> None:
    """Sixty greenlets count and flush, and read while the flusher writes."""
    first, make = BEGINNINGS[beginning]
    done = programs.run(make + WORK + ENDS[end], first=first)
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (3000, 3000)


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
assert meter.flush(10), meter.health()
""",
        first=PATCH,
    )
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (600, 600)
