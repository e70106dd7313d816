"""CPU and memory of each process; installed in one line, with the extra `process`.

    from redmeter.integrations.process import install
    install(meter)

    process_cpu_ratio{instance}         CPU time divided by elapsed time: 1.0 is one busy core
    process_memory_bytes{instance}      resident memory

Idea: these gauges must be read periodically. A meter's background thread wakes once a second to
store events and reads them first (Recorder.before_flush), so no other thread is started. The label
`instance`, a small number that the store assigns, distinguishes processes.

Bound: two system calls and a small file every five seconds, about 50 us. `process_cpu_ratio` covers
these five seconds. Nothing raises; errors of this module are counted (`Meter.recorder_health()`).

Not done: a process, or a forked child, that never records anything has no such thread and does not
report. With Meter(sync=True) nothing is measured. Resident memory includes memory that processes
share, so the sum over forked processes is too high.

Source: psutil, Process.memory_info(); Python, time.process_time().
"""

import os
import threading
import time
import weakref
from collections.abc import Callable

from redmeter import Meter
from redmeter.errors import InvalidSetting
from redmeter.extras import needs
from redmeter.integrations.shared.interface import Instrumentation
from redmeter.integrations.shared.meters import meter_for

CPU_GAUGE, MEMORY_GAUGE = "process_cpu_ratio", "process_memory_bytes"
#: Seconds between two measurements.
EVERY = 5.0

_installing = threading.Lock()


class _Process:
    """Measures the current process, also after a fork."""

    def __init__(self, meter: Meter, every: float) -> None:
        self._every = every
        self._cpu = meter.gauge(CPU_GAUGE, per_process=True)
        self._memory = meter.gauge(MEMORY_GAUGE, per_process=True)
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._resident = _reader_of_memory(self._pid)
        self._used, self._at = time.process_time(), time.monotonic()
        #: When to measure next; 0: now. CPU time needs an elapsed interval, memory does not.
        self._due = 0.0

    def look(self) -> None:
        """Set the gauges if they are due."""
        if self._pid != os.getpid():
            self._begin()
        now = time.monotonic()
        if now < self._due:
            return
        used, passed = time.process_time(), now - self._at
        if self._due or passed >= self._every:
            self._cpu.set((used - self._used) / passed if passed > 0 else 0.0)
            self._used, self._at = used, now
        # A little early: flushes are not evenly spaced.
        self._due = now + 0.9 * self._every
        self._memory.set(self._resident())


def _reader_of_memory(pid: int) -> Callable[[], float]:
    import psutil  # type: ignore[import-untyped]  # here, so that install() can name a missing extra

    process = psutil.Process(pid)
    return lambda: float(process.memory_info().rss)


_watched: "weakref.WeakSet[Meter]" = weakref.WeakSet()


def install(meter: Meter | None = None, *, every: float = EVERY) -> None:
    """Record CPU and memory of this process, and of processes forked from it.

    Called again for the same meter it does nothing.

    Args:
        meter: records the gauges. None: a Meter by the environment's settings.
        every: seconds between two readings; at most as often as the meter flushes.

    Raises:
        MissingExtra: psutil is not installed; the extra `process` brings it.
        InvalidSetting: every is not a positive number of seconds.
    """
    if not 0 < every <= 3600:
        raise InvalidSetting("every", f"{every!r} is not a number of seconds, up to 3600")
    with needs("process", "redmeter.integrations.process"):
        import psutil  # noqa: F401
    chosen = meter_for(meter, "processes are not measured")
    if chosen is None:
        return
    with _installing:
        if chosen not in _watched:
            _watched.add(chosen)
            Instrumentation(chosen).before_flush(_Process(chosen, every).look)
