"""Threads and tasks: nothing is lost between them; and when there is a thread of ours."""

import signal

import pytest

from support.programs import THREADS, Programs, Total
from support.proxy import Proxy
from support.pythons import python


def test_eight_threads_count_the_same_series_and_their_own(
    programs: Programs, total: Total
) -> None:
    """By name and by handle, from the first event on, and while some thread closes the meter."""
    done = programs.run(
        """
sys.setswitchinterval(1e-5)
meter = Meter(URL, flush_interval=0.01)
barrier = threading.Barrier(9)

def work(number):
    barrier.wait()
    own = meter.counter("own", labels={"n": str(number)})
    same = meter.counter("same")
    for step in range(3000):
        same.inc()
        meter.count("same", 2)
        own.inc()
        meter.count("own", labels={"n": str(number)})
        meter.count("named")

threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
barrier.wait()
while any(thread.is_alive() for thread in threads):
    meter.close()
    meter.recorder_health()
for thread in threads:
    thread.join()
assert meter.flush(10)
health = meter.recorder_health()
assert health.recorded == health.stored == 8 * 3000 * 6, health
"""
    )
    assert (done.code, done.err) == (0, "")
    assert (total("same"), total("named")) == (8 * 3000 * 3, 8 * 3000)
    assert [total(f'own{{n="{number}"}}') for number in range(8)] == [6000] * 8


def test_a_thousand_tasks_count(programs: Programs, total: Total) -> None:
    """None of them is held up by what the flusher does."""
    done = programs.run(
        """
import asyncio
meter = Meter(URL, flush_interval=0.01)
handle = meter.counter("y")

async def task(number):
    for _ in range(5):
        meter.count("x")
        handle.inc()
        await asyncio.sleep(0)
    meter.count("z", labels={"n": str(number % 10)})

async def main():
    await asyncio.gather(*[task(number) for number in range(1000)])
    assert await asyncio.to_thread(meter.flush, 10)

asyncio.run(main())
"""
    )
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (5000, 5000)
    assert [total(f'z{{n="{number}"}}') for number in range(10)] == [100] * 10


def test_a_meter_that_counts_nothing_has_no_thread(programs: Programs) -> None:
    """Nor do its handles, and nothing that only asks or says how it is."""
    done = programs.run(
        THREADS
        + """
meters = [Meter(URL) for _ in range(100)]
for meter in meters:
    meter.counter("x")
    meter.gauge("y")
    meter.recorder_health()
    assert meter.flush()
    meter.total("x")
    meter.close()
assert threads() == 1
meters[0].count("x")
eventually(2)
"""
    )
    assert (done.code, done.err) == (0, "")


def test_all_meters_of_a_process_share_a_thread(programs: Programs, total: Total) -> None:
    """Each flushes at its own interval; the thread ends with the last of them."""
    done = programs.run(
        THREADS
        + """
meters = [Meter(URL, flush_interval=0.01 * (1 + number)) for number in range(20)]
for meter in meters:
    meter.count("x")
eventually(2)
until = time.monotonic() + 5
while any(meter.recorder_health().stored != 1 for meter in meters):
    assert threads() == 2
    assert time.monotonic() < until
for meter in meters[1:]:
    meter.close()
    assert threads() == 2
meters[0].close()
eventually(1)
os._exit(0)
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 20


def test_a_store_that_hangs_holds_up_no_other_meter(
    programs: Programs, total: Total, proxy: Proxy
) -> None:
    """Another thread goes on with them; once the store answers again, there is one thread."""
    program = programs.start(
        THREADS
        + """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
hanging = Meter(sys.argv[2], flush_interval=0.01, timeout=3)
others = [Meter(URL, flush_interval=0.01) for _ in range(3)]
for meter in [hanging, *others]:
    meter.count("z")
    assert meter.flush(5)
print("ready")
signal.sigwait([signal.SIGUSR1])
began = time.monotonic()
hanging.count("x")
time.sleep(0.1)
for meter in others:
    meter.count("w")  # two of them say nothing more
for _ in range(3):
    others[0].count("y")
    assert others[0].flush(5)
while any(meter.recorder_health().buffered for meter in others):
    time.sleep(0.01)
assert time.monotonic() - began < 2, "they waited for the one that hangs"
assert hanging.recorder_health().buffered == 1
print("stored", flush=True)
signal.sigwait([signal.SIGUSR1])
until = time.monotonic() + 10
while hanging.recorder_health().buffered:
    assert time.monotonic() < until
for meter in others:
    meter.count("y")
    assert meter.flush(5)
eventually(2)
""",
        proxy.url,
    )
    assert program.line(0) == "ready"
    proxy.black_hole()
    program.send(signal.SIGUSR1)
    assert program.line(1) == "stored"
    assert (total("w"), total("y")) == (3, 3)
    proxy.heal()
    program.send(signal.SIGUSR1)
    done = program.finish()
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert (total(), total("y"), total("z")) == (1, 6, 4)


def test_close_ends_the_thread_and_counting_starts_it_again(
    programs: Programs, total: Total
) -> None:
    """Also an event alone that comes right after, of which nobody says anything more."""
    done = programs.run(
        THREADS
        + """
meter = Meter(URL, flush_interval=0.01)
for number in range(1, 51):
    meter.count("x")
    meter.close()
    assert not meter._recorder._flusher.running
    meter.count("x")
    until = time.monotonic() + 5
    while meter.total("x") != 2 * number:
        assert time.monotonic() < until, meter.recorder_health()
meter.close()
eventually(1)
os._exit(0)
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 100


def test_an_event_that_comes_during_close_is_stored_soon(programs: Programs, total: Total) -> None:
    """Nobody counts any more after it, and nobody flushes."""
    done = programs.run(
        """
sys.setswitchinterval(1e-6)
meter = Meter(URL, flush_interval=0.01)
handle = meter.counter("x")
for number in range(1, 151):
    barrier = threading.Barrier(2)
    def work():
        barrier.wait()
        for _ in range(5):
            handle.inc()
    thread = threading.Thread(target=work)
    thread.start()
    handle.inc()
    barrier.wait()
    meter.close()
    thread.join()
    until = time.monotonic() + 20
    while meter.recorder_health().stored != 6 * number:
        assert time.monotonic() < until, (number, meter.recorder_health())
        time.sleep(0.0005)
os._exit(0)
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 900


@pytest.mark.parametrize("interval", ["0.05", "60"])
def test_a_meter_that_nobody_holds_stores_what_it_had(
    programs: Programs, total: Total, interval: str
) -> None:
    """And its thread ends."""
    done = programs.run(
        THREADS
        + f"""
def use():
    meter = Meter(URL, flush_interval={interval})
    meter.count("x")
    meter.count("x", 10)

for _ in range(10):
    use()
eventually(1)
os._exit(0)
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 110


@pytest.mark.parametrize(
    "version", ["this", "3.12", "3.13", pytest.param("3.14", marks=pytest.mark.nightly)]
)
def test_a_flush_imports_nothing(programs: Programs, total: Total, version: str) -> None:
    """Or a process that is forked meanwhile would have modules that are half made, for good."""
    done = programs.run(
        """
meter = Meter(URL)
meter.count("x")
before = set(sys.modules)
assert meter.flush(10)
meter.gauge("y", per_process=True).set(1)
meter.close()
for down in ("redis://127.0.0.1:1", "redis://localhost:1"):
    away = Meter(down, timeout=0.1)
    away.count("x")
    assert not away.flush(0.1)
print(*(set(sys.modules) - before))
""",
        python=python(version),
    )
    assert (done.code, done.out) == (0, "\n")
    assert total() == 1
