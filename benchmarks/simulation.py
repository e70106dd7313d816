"""The flushes of thousands of processes against one server: a check of what capacity.py computes.

Each process is a recorder's buffer and a producer of its own; nothing else of a process is needed
to make its batches. All of them flush once, at one of five seconds in a row of a time that we set,
so that as many flushes lie in two slices of 5 s as it would be all the time. What they send is made
before, so that the server alone is measured: it gets the batches over a few connections, as fast as
it answers, while another process asks PING.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from batches import Bench, Packed, Wire, command_of, exchange, together
from capacity import Workload, own_names, shared_names
from costs import KEPT, VALUES
from filling import copy, fill, observed
from redmeter.clock import ManualClock
from redmeter.recording.buffer import Buffer
from redmeter.recording.pending import GaugeSample, PendingCounter, PendingGauge, PendingHistogram
from redmeter.recording.status import RecorderStats
from redmeter.stored.shards import TAGS, shard_of

#: Connections over which batches come, and seconds by which the time that is set is late.
CONNECTIONS, LATE = 16, 60


class Simulated(NamedTuple):
    """What was measured while all processes flushed once."""

    flushes: int
    batches: int
    #: Seconds that passed, and seconds of processor time that the server took.
    passed: float
    cpu: float
    #: Bytes that came in.
    sent: int
    #: How long a PING of another process took: half of them, 99 of a hundred, the longest; seconds.
    pings: tuple[float, float, float]


class Processes:
    """Processes of services, and the store that they flush to.

    Args:
        count: how many processes; SHARING of them are a service.
        spread: whether the store has the shards of a cluster.
    """

    def __init__(self, bench: Bench, work: Workload, count: int, *, spread: bool) -> None:
        self.bench = bench
        self.work = work
        self.count = count
        self.spread = spread
        bench.empty()
        # Away from where a minute begins: that is seldom.
        self._clock = ManualClock((int(time.time()) - LATE) // 60 * 60 + 20)
        self._begun = int(self._clock.wall())
        self.parts = [bench.shard(tag, self._clock) for tag in (TAGS if spread else ("",))]
        self.names = [shared_names(number, work) for number in range(-(-count // work.sharing))]
        self._fill()
        self._number = [0] * count

    def _part_of(self, name: str) -> int:
        return shard_of(name) if self.spread else 0

    def _fill(self) -> None:
        """Have all series with their retention full."""
        now = int(self._clock.wall())
        own = [name for process in range(self.count) for name in own_names(process, self.work)]
        for kind in ("counter", "gauge", "histogram"):
            names = [name for service in self.names for name in service[kind]]
            first, *others = [*names, *own] if kind == "gauge" else names
            home = self.parts[self._part_of(first)]
            fill(home, KEPT, kind, [first], now)
            targets = [(self.parts[self._part_of(name)].keys, name) for name in others]
            copy(self.bench.conn, home.keys, KEPT, kind, first, targets)

    def flush(self, process: int) -> list[bytes]:
        """Return the batches by which a process stores what happened in a second."""
        now = self._begun + process % 5
        self._clock.set_wall(now)
        buffer = Buffer(KEPT, RecorderStats(0.0), 1e9, shard_of if self.spread else None)
        shared = self.names[process // self.work.sharing]
        # A flush comes at some moment within a second.
        for at in (now - 1, now):
            for name in shared["counter"]:
                buffer.add(PendingCounter, name, at, 2, now)
            for name in shared["gauge"]:
                buffer.add(PendingGauge, name, at, GaugeSample(at + 0.123456, process / 3), now)
            for name in shared["histogram"]:
                # Nothing is added to it: there is one for each second.
                buffer.add(PendingHistogram, name, at, observed(VALUES // 2, process % 100), now)
        if (process + int(now)) % self.work.own_every == 0:
            for name in own_names(process, self.work):
                buffer.add(PendingGauge, name, now, GaugeSample(now + 0.123456, process / 3), now)
        made = []
        for number, part in enumerate(self.parts):
            while (taken := buffer.take(number)) is not None:
                self._number[process] += 1
                operations = taken.operations(part.keys, KEPT)
                made.append(command_of(part, f"{process:032x}", self._number[process], operations))
        return made

    def flush_all(self, *, paced: bool = False) -> Simulated:
        """Let time pass, and all processes flush once.

        Args:
            paced: leave the server as much time between as it takes.
        """
        self._begun += 5
        flushes = [self.flush(process) for process in range(self.count)]
        if self.spread:  # to one primary all in one piece
            pieces = [together(batches) for batches in flushes]
        else:
            # One of a process at a time: first all first ones, then the others.
            rounds = zip_longest(*flushes)
            pieces = [together([batch]) for some in rounds for batch in some if batch]
        with self.bench.wires(CONNECTIONS) as wires, pinging(self.bench.path) as pings:
            cpu, began = self.bench.cpu(), time.perf_counter()
            if paced:
                _paced(wires, pieces)
            else:
                exchange(wires, pieces)
            passed = time.perf_counter() - began
            cpu = self.bench.cpu() - cpu
        return Simulated(
            flushes=self.count,
            batches=sum(piece.replies for piece in pieces),
            passed=passed,
            cpu=cpu,
            sent=sum(len(piece.data) for piece in pieces),
            pings=pings[0],
        )


def _paced(wires: Sequence[Wire], pieces: Sequence[Packed]) -> None:
    for at in range(0, len(pieces), len(wires)):
        began = time.perf_counter()
        exchange(wires, pieces[at : at + len(wires)])
        time.sleep(time.perf_counter() - began)


#: Pings every 2 ms until its input ends, then prints what half of them took, 99 of a hundred, and
#: the longest, seconds.
_PINGER = """
import json, sys, threading, time, redis
client, ended, waits = redis.Redis(unix_socket_path=sys.argv[1]), threading.Event(), []
client.ping()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set())).start()
print("ready", flush=True)
while not ended.wait(0.002):
    started = time.perf_counter()
    client.ping()
    waits.append(time.perf_counter() - started)
waits.sort()
print(json.dumps([waits[len(waits) // 2], waits[len(waits) * 99 // 100], waits[-1]]))
"""


@contextmanager
def pinging(path: Path) -> Iterator[list[tuple[float, float, float]]]:
    """Let another process ping meanwhile; yields a list that holds what it found at the end."""
    found: list[tuple[float, float, float]] = []
    with subprocess.Popen(
        [sys.executable, "-c", _PINGER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "it is a pipe"
        process.stdout.readline()
        try:
            yield found
        finally:
            process.stdin.close()
            half, most, longest = json.loads(process.stdout.read())
            found.append((half, most, longest))
