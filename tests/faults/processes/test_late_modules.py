"""Modules that are needed late are loaded when a store is opened, while no fork can happen."""

import pytest

from support.programs import Programs, Total

#: Ways to open a store, each with a function that writes at once.
OPENED = {
    "sync": "meter = Meter(URL, sync=True)",
    "client": "import redis\nmeter = Meter(client=redis.Redis.from_url(URL), sync=True)",
    "buffered": "meter = Meter(URL)",
}


@pytest.mark.parametrize("opened", OPENED)
def test_nothing_is_imported_once_a_store_is_open(
    programs: Programs, total: Total, opened: str
) -> None:
    """Neither by the first write of each kind, nor by one that cannot reach the server."""
    done = programs.run(
        f"""
{OPENED[opened]}
before = set(sys.modules)
meter.count("x")
meter.observe("y_seconds", 1.5)
meter.gauge("z", per_process=True).set(1)
meter.log("app", "took %s s", 3)
meter.mark("v1")
assert meter.flush(10)
meter.close()
away = Meter("redis://localhost:1", sync=True, timeout=0.01)
try:
    away.count("x")
except Exception as error:
    assert type(error).__name__ == "StoreUnavailable"
"b\u00fccher".encode("idna")  # as the name of a host is
print(*(set(sys.modules) - before))
"""
    )
    assert (done.code, done.err, done.out) == (0, "", "\n")
    assert total() == 1


#: What the first write of a process may be.
FIRST = {
    "sync": "Meter(URL, sync=True).count('x')",
    "client": "Meter(client=redis.Redis.from_url(URL), sync=True).count('x')",
    "book": "book.update_counter(redis.Redis.from_url(URL), 'x')",
}


@pytest.mark.parametrize("first", FIRST)
def test_a_child_forked_during_another_threads_first_write_can_write(
    programs: Programs, first: str
) -> None:
    """The fork waits until no module is half imported: nobody would release it in the child."""
    done = programs.run(
        f"""
import importlib.abc, warnings
import redis
from redmeter import book
warnings.simplefilter("ignore")  # of forks in a process with threads
importing, forked = threading.Event(), threading.Event()

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "email.parser" and threading.current_thread() is writer:
            importing.set()
            forked.wait(0.3)  # in vain, where the fork waits for this import

sys.meta_path.insert(0, Slow())
writer = threading.Thread(target=lambda: {FIRST[first]})
writer.start()
assert importing.wait(10)
if (pid := os.fork()) == 0:
    signal.alarm(10)
    {FIRST[first]}
    os._exit(0)
forked.set()
writer.join()
print(os.waitpid(pid, 0)[1])
"""
    )
    assert (done.code, done.err, done.out) == (0, "", "0\n")
