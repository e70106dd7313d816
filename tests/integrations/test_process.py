"""Process gauges: each process tells how busy and how large it is, and nothing waits for that."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]
import pytest

from redmeter import InvalidSetting, Meter
from redmeter.integrations.process import CPU_GAUGE, MEMORY_GAUGE, install
from redmeter.testing import MemoryMeter
from support.programs import Programs
from support.servers import Server
from support.waiting import eventually


class Spent(NamedTuple):
    """Time of the processor, and time, seconds."""

    used: float
    at: float


def spent() -> Spent:
    """Return what this process has spent by now."""
    return Spent(time.process_time(), time.monotonic())


def busy() -> None:
    """Use 0.3 seconds of the processor, however long that takes."""
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass


def idle() -> None:
    """Use nothing for half a second."""
    time.sleep(0.5)


def gauge(meter: Meter, name: str, instance: int = 0) -> float | None:
    """Return what a gauge was set to last."""
    series = meter.gauge_series(name, precision=60, labels={"instance": str(instance)})
    return next((value for value in reversed(series.values) if value is not None), None)


def test_a_process_tells_how_busy_and_how_large_it_is(server: Server) -> None:
    """Time of the processor by time passed, from one look to the next: 1.0 is one core."""
    with Meter(server.url, flush_interval=3600) as meter:  # it looks when it is told to flush
        before = spent()
        install(meter, every=0.2)
        begun = spent()
        meter.count("started")
        for work in (busy, idle):
            work()
            ending = spent()
            assert meter.flush()
            ended, ratio = spent(), gauge(meter, CPU_GAUGE)
            assert ratio is not None
            # It looked between two readings of ours, when this began and when it ended.
            assert ratio >= (ending.used - begun.used) / (ended.at - before.at)
            assert ratio <= (ended.used - before.used) / (ending.at - begun.at)
            before, begun = ending, ended
        memory = gauge(meter, MEMORY_GAUGE)
        assert memory == pytest.approx(psutil.Process().memory_info().rss, rel=0.5)
        assert meter.recorder_health().troubles == {}


def test_a_process_is_looked_at_once_however_often_it_is_asked_for(
    meter: Meter, monkeypatch: Any
) -> None:
    """And not more often than wanted, however often the meter flushes."""
    looks = []
    monkeypatch.setattr(
        "redmeter.integrations.process._reader_of_memory",
        lambda _: lambda: looks.append(1) or 1.0,  # type: ignore[func-returns-value]
    )
    install(meter, every=3600)
    install(meter)
    for _ in range(3):
        meter.count("x")
        assert meter.flush()
    assert len(looks) == 1


def test_forked_children_report_their_own(programs: Programs, server: Server) -> None:
    """From the first thing on that they record; each under a number of its own."""
    done = programs.run(
        """
import warnings
from redmeter.integrations.process import install
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, since Python 3.12
meter = Meter(URL, flush_interval=0.05)
install(meter, every=0.1)
meter.count("x")
meter.flush()
ballast = b"x" * 60_000_000
if not (child := os.fork()):
    more = b"y" * 60_000_000
    meter.count("x")
    time.sleep(0.5)
    meter.close()
    os._exit(0)
meter.count("x")
os.waitpid(child, 0)
meter.close()
"""
    )
    assert (done.code, done.err) == (0, "")
    with Meter(server.url) as meter:
        assert meter.total("x") == 3
        sizes = [gauge(meter, MEMORY_GAUGE, number) or 0.0 for number in (0, 1)]
        assert sizes[0] > 60e6
        # The child shares what was there before, and that counts for both.
        assert sizes[1] > sizes[0] + 50e6
        assert all(gauge(meter, CPU_GAUGE, number) is not None for number in (0, 1))


def test_it_starts_nothing(meter: Meter) -> None:
    """A process that records nothing has no thread, and tells nothing."""
    install(meter)
    assert not meter._recorder._flusher.running  # type: ignore[union-attr]


def test_meters_that_never_flush_are_left_alone(memory: MemoryMeter, server: Server) -> None:
    """There is nobody to look."""
    install(memory)
    install(Meter("off"))
    with Meter(server.url, sync=True) as meter:
        install(meter)
        meter.count("x")
    assert memory.events == []


@pytest.mark.parametrize("every", [0, -1, 3601, float("nan")])
def test_an_interval_that_is_none_is_refused(memory: MemoryMeter, every: float) -> None:
    """With the range that there is."""
    with pytest.raises(InvalidSetting, match="up to 3600"):
        install(memory, every=every)


def test_a_missing_library_is_named_with_the_fix(memory: MemoryMeter, monkeypatch: Any) -> None:
    """As what is to be typed."""
    monkeypatch.setitem(__import__("sys").modules, "psutil", None)
    with pytest.raises(ImportError, match=r'needs psutil: pip install "redmeter\[process\]"$'):
        install(memory)


# What is called before each flush


def failing(calls: list[int]) -> Callable[[], None]:
    """Return what fails each time it is called."""

    def look() -> None:
        calls.append(1)
        raise ZeroDivisionError("of theirs")

    return look


def test_what_is_called_before_a_flush_may_record_and_may_fail(meter: Meter) -> None:
    """What it records is stored by that very flush; what it raises is counted."""
    calls: list[int] = []
    meter._recorder.before_flush(failing(calls))
    meter._recorder.before_flush(lambda: meter.count("looked"))
    for number in (1, 2):
        meter.count("x")
        assert meter.flush()
        assert (meter.total("looked"), len(calls)) == (number, number)
    health = meter.recorder_health()
    assert health.troubles == {"before-flush": 2}
    assert health.last_trouble == "before a flush: ZeroDivisionError: of theirs"
    assert health.buffered == 0


def test_it_is_called_while_nothing_else_happens(server: Server) -> None:
    """At each turn of the thread."""
    with Meter(server.url, flush_interval=0.02) as meter:
        calls: list[int] = []
        meter._recorder.before_flush(lambda: calls.append(1))
        meter.count("x")
        eventually(lambda: len(calls) >= 5)


def test_it_is_not_called_by_the_last_flush_and_holds_up_no_end(programs: Programs) -> None:
    """A process that records in there ends at once."""
    calls: list[int] = []
    with Meter(programs.url, flush_interval=3600) as meter:
        meter._recorder.before_flush(lambda: calls.append(1))
        meter.count("x")
    assert calls == []
    done = programs.run(
        """
meter = Meter(URL, flush_interval=0.05)
meter._recorder.before_flush(lambda: meter.gauge("looked").set(1.0))
meter.count("x")
time.sleep(0.3)
print(int(time.monotonic() * 1000))
"""
    )
    assert (done.code, done.err) == (0, "")
    assert done.ended - done.numbers[0] / 1000 < 1.9
