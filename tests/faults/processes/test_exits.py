"""The end of a process: what was counted is stored, and nothing is held up for long."""

import re
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from support.programs import Programs, Total
from support.proxy import Proxy

#: A process may be so much late that cannot reach the server, and the machine's own time.
LATE, MACHINE = 2.0, 1.9

#: How programs end by themselves: what they do last, their return code, the end of their errors.
ENDS = {
    "the last line": ("", 0, ""),
    "sys.exit": ("sys.exit(3)", 3, ""),
    "an exception that nobody catches": ("raise ValueError('so')", 1, "ValueError: so\n"),
    "an interrupt": ("signal.raise_signal(signal.SIGINT)", -2, "KeyboardInterrupt\n"),
    "a thread that goes on": (
        """
def work():
    time.sleep(0.1)
    meter.count("x", 1000)
    handle.inc()

meter.count("x", -1000 + 1000)
handle.inc(0)
threading.Thread(target=work).start()
""",
        0,
        "",
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_end_in_good_order_loses_nothing(programs: Programs, total: Total, end: str) -> None:
    """However it comes about, with nothing said to the meter."""
    code, returned, said = ENDS[end]
    done = programs.run(
        f"""
meter = Meter(URL, flush_interval=60)
handle = meter.counter("y")
for _ in range(100):
    meter.count("x")
    handle.inc()
{code}
"""
    )
    assert done.code == returned
    assert done.err.endswith(said)
    assert "redmeter" not in done.err
    more = 1000 if "thread" in end else 0
    assert (total(), total("y")) == (100 + more, 100 + more // 1000)


def test_several_meters_all_store_at_the_end(programs: Programs, total: Total) -> None:
    """Also one that nobody holds any more, and one that was closed and used again."""
    done = programs.run(
        """
meters = [Meter(URL, flush_interval=60) for _ in range(3)]
for meter in meters:
    meter.count("x", 10)
meters[0].close()
meters[0].count("x", 100)
handle = Meter(URL, flush_interval=60).counter("x")
handle.inc(1000)
Meter(URL, flush_interval=60).count("x", 10000)
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 11130


@pytest.mark.parametrize("first", ["before", "after", "only there"])
def test_exit_handlers_may_count(programs: Programs, total: Total, first: str) -> None:
    """Those registered before the meter's first use are called after its own."""
    done = programs.run(
        """
import atexit
meter = Meter(URL, flush_interval=60)
handle = meter.counter("y")
first = sys.argv[2]
if first == "after":
    meter.count("x", 1000)

@atexit.register
def last():
    for _ in range(10):
        meter.count("x")
        handle.inc()
    meter.count("z")

if first == "before":
    meter.count("x", 1000)
""",
        first,
    )
    assert (done.code, done.err) == (0, "")
    assert total() == (10 if first == "only there" else 1010)
    assert (total("y"), total("z")) == (10, 1)


def test_finalizers_of_multiprocessing_may_count(programs: Programs, total: Total) -> None:
    """They run earlier or later than ours, by their priority."""
    done = programs.run(
        """
import atexit
from multiprocessing import util
meter = Meter(URL, flush_interval=60)
meter.count("x", 1000)
for priority in (0, 50, 100, 200):
    util.Finalize(None, meter.count, args=("x",), exitpriority=priority)
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 1004


# --- While the server is unreachable --------------------------------------------------------------

ENDINGS = {
    "at once": 'meter.count("x")',
    "with much in memory": """
for number in range(2000):
    meter.count("x", labels={"n": str(number % 500)})
""",
    "with multiprocessing": """
import multiprocessing.util, concurrent.futures.process
meter.count("x")
""",
    "with events in exit handlers": """
meter.count("x")
atexit.unregister(said)
atexit.register(said)
""",
    "with events in exit handlers alone": "",
    "with several meters": """
meters = [Meter(URL) for _ in range(5)]
for each in meters:
    each.count("x")
""",
    "with a long timeout": """
meter = Meter(URL, timeout=60)
meter.count("x")
""",
    "after close": """
meter.count("x")
meter.close()
meter.count("x")
""",
    "with all of it": """
import multiprocessing.util, concurrent.futures.process
for number in range(2000):
    meter.count("x", labels={"n": str(number % 500)})
meters = [Meter(URL, timeout=60) for _ in range(4)]
for each in meters:
    each.count("x")
""",
}

#: What hangs day by day: "with all of it" has what the others have one by one.
DAILY = ("with all of it", "after close", "with events in exit handlers alone")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "ending"),
    [
        pytest.param(
            *(Proxy.black_hole, ending), marks=() if ending in DAILY else pytest.mark.nightly
        )
        for ending in ENDINGS
    ]
    + [(Proxy.refuse, "with much in memory"), (Proxy.refuse, "with events in exit handlers")],
)
def test_an_exit_while_the_server_is_away_is_two_seconds_late_at_most(
    programs: Programs, proxy: Proxy, fault: Callable[[Proxy], None], ending: str
) -> None:
    """Whatever there is to store, and whoever counts meanwhile."""
    fault(proxy)
    events = "5" if "handlers" in ending else "0"
    done = programs.run(
        f"""
import atexit
meter = Meter(URL)

@atexit.register
def said():
    for _ in range({events}):
        meter.count("x")

{ENDINGS[ending]}
print(time.monotonic())
""",
        url=proxy.url,
    )
    assert done.code == 0
    assert "Traceback" not in done.err
    assert done.ended - float(done.out) < LATE + MACHINE
    if "handlers" not in ending:
        lost = {"with much in memory": [2000], "with several meters": [1] * 5, "after close": [2]}
        lost["with all of it"] = [2000, 1, 1, 1, 1]
        said = re.findall(
            r"redmeter: (\d+) events are not stored, and are lost if the process ends", done.err
        )
        assert [int(number) for number in said] == lost.get(ending, [1])


@pytest.mark.slow
def test_close_while_the_server_is_away_takes_two_seconds(programs: Programs, proxy: Proxy) -> None:
    """And the exit after it takes up no more than its own."""
    proxy.black_hole()
    done = programs.run(
        """
meter = Meter(URL)
meter.count("x")
began = time.monotonic()
meter.close()
print(time.monotonic() - began, meter.recorder_health().buffered)
""",
        url=proxy.url,
    )
    assert (done.code, "Traceback" in done.err) == (0, False)
    seconds, buffered = done.out.split()
    assert float(seconds) < LATE + MACHINE
    assert buffered == "1"


# --- Ends that nothing can be done about ---------------------------------------------------

#: Says how many events there were every interval and a half, and in a file at any time.
COUNTS = """
import mmap
meter = Meter(URL, flush_interval=0.1)
handle = meter.counter("x")
with open("recorded", "w+b") as file:
    file.write(bytes(8))
    file.flush()
    shared = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")
recorded = 0
until = time.monotonic()
for _ in range(5 if sys.argv[2] == "os._exit" else 10**6):
    until += 0.15
    while time.monotonic() < until:
        recorded += 1
        shared[0] = recorded  # in one step, and before it happens: never too few
        handle.inc()
    print(recorded)
os._exit(7)
"""


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL", "os._exit"])
def test_a_sudden_death_loses_one_interval_at_most(
    programs: Programs, total: Total, conn: Any, end: str
) -> None:
    """What was counted before is stored, and nothing is that was not counted, or twice."""
    program = programs.start(COUNTS, end)
    program.line(4)
    if end != "os._exit":
        program.send(signal.Signals[end])
    done = program.finish()
    assert done.code == (7 if end == "os._exit" else -signal.Signals[end])
    recorded = int.from_bytes((programs.folder / "recorded").read_bytes(), sys.byteorder)
    # Two lines back: an interval, and how long a flush may take on a busy machine.
    assert 0 < done.numbers[-3] <= total() <= recorded
    seconds = conn.hgetall("redmeter:count:1:x")
    assert sum(map(int, seconds.values())) == total()


@pytest.mark.parametrize("before", ["default", "ignored", "handler", "handler that exits"])
def test_with_flush_on_sigterm_nothing_is_lost(
    programs: Programs, total: Total, before: str
) -> None:
    """What would have been done is done then: to die of it, nothing, or what a handler does."""
    program = programs.start(
        """
meter = Meter(URL, flush_interval=60)
before, called = sys.argv[2], []
if before == "ignored":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif before != "default":
    def handler(number, frame):
        called.append((number, frame is not None))
        if before == "handler that exits":
            sys.exit(5)
    signal.signal(signal.SIGTERM, handler)
meter.flush_on_sigterm()
meter.count("x")
meter.count("y", 5)
assert meter.flush()
meter.count("x", 41)
print("ready")
if before in ("default", "handler that exits"):
    threading.Event().wait()
while not (called or before == "ignored") or meter.recorder_health().buffered:
    time.sleep(0.01)
print("alive", called)
os._exit(9)
""",
        before,
    )
    program.line(0)
    program.send(signal.SIGTERM)
    done = program.finish()
    assert done.err == ""
    ends = {"default": -15, "ignored": 9, "handler": 9, "handler that exits": 5}
    assert done.code == ends[before]
    assert ("alive [(15, True)]" in done.out) == (before == "handler")
    assert (total(), total("y")) == (42, 5)


def test_a_busy_process_dies_of_sigterm_with_everything_stored(
    programs: Programs, total: Total
) -> None:
    """What it counted before the signal; and it stops to count soon after."""
    program = programs.start(
        """
meter = Meter(URL, flush_interval=60)
meter.flush_on_sigterm()
meter.count("y")
assert meter.flush(20)  # connected, as a process is that has run for a while
handle = meter.counter("x")
recorded = 0
print("ready")
while True:
    recorded += 1
    handle.inc()
    if not recorded % 1000:
        print(recorded)
"""
    )
    program.line(100)
    program.send(signal.SIGTERM)
    seen = int(program.out[-1])
    done = program.finish()
    assert (done.code, done.err) == (-signal.SIGTERM, "")
    assert seen <= total() <= int(done.out.split()[-1]) + 1000


def test_sigterm_while_the_server_is_away_still_ends_the_process(
    programs: Programs, proxy: Proxy
) -> None:
    """Two seconds later at most."""
    proxy.black_hole()
    program = programs.start(
        """
meter = Meter(URL)
meter.flush_on_sigterm()
meter.count("x")
print("ready")
print(time.monotonic())
os.kill(os.getpid(), signal.SIGTERM)
threading.Event().wait()
""",
        url=proxy.url,
    )
    done = program.finish()
    assert done.code == -signal.SIGTERM
    assert done.ended - float(done.out.split()[-1]) < LATE + MACHINE


def test_sigterm_waits_for_the_slowest_of_several_meters(
    programs: Programs, total: Total, proxy: Proxy
) -> None:
    """Each stores what it has before the process dies."""
    proxy.delay(0.1)
    program = programs.start(
        """
meters = [Meter(URL, flush_interval=60), Meter(sys.argv[2], flush_interval=60)]
for name, meter in zip("xy", meters):
    meter.flush_on_sigterm()
    meter.count("z")
    assert meter.flush(20)
for name, meter in zip("xy", meters):
    meter.count(name)
print("ready")
os.kill(os.getpid(), signal.SIGTERM)
threading.Event().wait()
""",
        proxy.url,
    )
    assert program.finish().code == -signal.SIGTERM
    assert (total(), total("y")) == (1, 1)


@pytest.mark.slow
def test_an_exit_after_a_close_in_vain_does_not_wait_once_more(
    programs: Programs, proxy: Proxy
) -> None:
    """Two seconds for both of them."""
    proxy.black_hole()
    done = programs.run(
        """
began = time.monotonic()
with Meter(URL) as meter:
    meter.count("x")
print(began)
""",
        url=proxy.url,
    )
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert done.ended - float(done.out) < LATE + MACHINE


@pytest.mark.slow
def test_at_the_end_a_store_that_hangs_costs_the_others_nothing(
    programs: Programs, total: Total, proxy: Proxy
) -> None:
    """Those before and after it are stored, and the end is delayed by two seconds at most."""
    program = programs.start(
        """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
urls = [URL, sys.argv[2], URL]
meters = [Meter(url, flush_interval=60) for url in urls]
for meter in meters:
    meter.count("z")
    assert meter.flush(20)
print("ready")
signal.sigwait([signal.SIGUSR1])
for meter in meters:
    meter.count("x")
print(time.monotonic())
""",
        proxy.url,
    )
    assert program.line(0) == "ready"
    proxy.black_hole()
    program.send(signal.SIGUSR1)
    done = program.finish()
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert (total(), total("z")) == (2, 3)
    assert done.ended - float(done.out.split()[1]) < LATE + MACHINE
