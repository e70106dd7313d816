"""The shutdown of the interpreter, in which Python 3.12 and newer start no threads any more."""

import pytest

from support.programs import Programs, Total
from support.proxy import Proxy
from support.pythons import PYTHONS, python

pytestmark = pytest.mark.parametrize("version", PYTHONS)

#: Prints why a thread could not be started, or that none was.
NO_NEW_THREAD = """
import _thread
start, started = _thread.start_new_thread, []
def counted(*arguments):
    started.append(arguments)
    return start(*arguments)
_thread.start_new_thread = counted
"""


def test_what_is_counted_at_last_in_an_exit_handler_is_stored(
    programs: Programs, total: Total, version: str
) -> None:
    """Nothing was counted before, and no thread could do it: the handler itself does."""
    done = programs.run(
        """
import atexit
meter = Meter(URL)
handle = meter.counter("y")

@atexit.register
def last():
    for _ in range(20):
        meter.count("x")
        handle.inc()
    print(len(os.listdir("/proc/self/task")))
""",
        python=python(version),
    )
    assert (done.code, done.err, done.out) == (0, "", "1\n")
    assert (total(), total("y")) == (20, 20)


def test_what_is_counted_after_the_last_flush_is_stored(
    programs: Programs, total: Total, version: str
) -> None:
    """In an exit handler that runs later, where the thread has ended already."""
    done = programs.run(
        """
import atexit

@atexit.register
def last():
    for _ in range(20):
        meter.count("x")
    patience = time.monotonic() + 10  # a joined thread is listed until the system has taken it away
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < patience:
        time.sleep(0.01)
    print(len(os.listdir("/proc/self/task")))

meter = Meter(URL, flush_interval=60)
meter.count("x", 100)
""",
        python=python(version),
    )
    assert (done.code, done.err, done.out) == (0, "", "1\n")
    assert total() == 120


@pytest.mark.parametrize("wait", ["at once", "later"])
def test_a_destructor_at_shutdown_may_count(
    programs: Programs, total: Total, version: str, wait: str
) -> None:
    """Modules are taken apart, threads stand still: there is no further occasion to store it."""
    done = programs.run(
        """
meter = Meter(URL)
meter.count("x")
if sys.argv[2] == "later":
    meter.flush()

class Last:
    def __init__(self):
        self.meter = meter
    def __del__(self):
        for _ in range(10):
            self.meter.count("x")
        self.meter.count("y")

one = Last()
""",
        wait,
        python=python(version),
    )
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (11, 1)


def test_a_destructor_that_counts_the_first_event_of_all_breaks_nothing(
    programs: Programs, version: str
) -> None:
    """Nothing can be imported any more, so perhaps it is lost; but nothing is raised."""
    done = programs.run(
        """
class Last:
    def __init__(self):
        self.meter = Meter(URL)
    def __del__(self, write=os.write):
        self.meter.count("x")
        write(1, b"counted")

one = Last()
print(time.monotonic())
""",
        python=python(version),
    )
    assert done.code == 0
    assert "Traceback" not in done.err
    assert done.out.endswith("counted")
    assert done.ended - float(done.out.split()[0]) < 3.9


def test_threads_that_outlive_the_main_thread_may_count(
    programs: Programs, total: Total, version: str
) -> None:
    """The interpreter waits for them, and starts no thread meanwhile."""
    done = programs.run(
        """
meter = Meter(URL, flush_interval=0.02)

def work():
    threading.main_thread().join()
    for _ in range(20):
        meter.count("x")
        time.sleep(0.005)
    meter.count("y")

for _ in range(3):
    threading.Thread(target=work).start()
""",
        python=python(version),
    )
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (60, 3)


@pytest.mark.slow
def test_a_shutdown_while_the_server_is_away_ends_in_time(
    programs: Programs, proxy: Proxy, version: str
) -> None:
    """However many events there are in exit handlers and destructors, without a thread."""
    proxy.black_hole()
    done = programs.run(
        """
import atexit

class Last:
    def __del__(self, count=Meter(URL, timeout=30).count):
        for _ in range(5):
            count("x")

meters = [Meter(URL, timeout=30) for _ in range(3)]
one = Last()

@atexit.register
def last():
    for _ in range(5):
        for meter in meters:
            meter.count("x")
            meter.count("y")

print(time.monotonic())
""",
        python=python(version),
        url=proxy.url,
    )
    assert done.code == 0
    assert "Traceback" not in done.err
    assert done.ended - float(done.out) < 3.9
