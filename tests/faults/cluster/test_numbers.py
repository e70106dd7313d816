"""Numbers of processes, which the first shard gives, while its primary is unreachable."""

from redmeter.clock import SystemClock
from redmeter.recording.status import LEASE_SECONDS
from redmeter.stored.shards import shard_of
from support.clusters import Cluster
from support.progress import shards_on, slot_of
from support.recorders import OpenBuffered, check_sums
from support.waiting import eventually

OWN = [f"own{number}" for number in range(40)]


class LaterClock(SystemClock):
    """The machine's clock, by which more time has passed."""

    def __init__(self) -> None:
        self.later = 0.0

    def monotonic(self) -> float:
        """Return the time."""
        return SystemClock.monotonic() + self.later


def test_a_process_goes_on_with_its_number_for_a_while(
    cluster: Cluster, open_buffered: OpenBuffered
) -> None:
    """What lies on other nodes is stored, until the number may be given to another process."""
    cluster.keep_masters()
    clock = LaterClock()
    meter = open_buffered(cluster.url, timeout=0.3, flush_interval=0.05, clock=clock)
    gauges = [meter.gauge(name, per_process=True) for name in OWN]

    def set_all() -> None:
        for gauge in gauges:
            gauge.set(1.0)

    set_all()
    assert meter.flush(10.0)
    assert meter.recorder_health().instance == 0
    node = cluster.node_of(slot_of(0))
    away = shards_on(cluster, node)
    waiting = sum(shard_of(f'{name}{{instance="0"}}') in away for name in OWN)
    assert 0 < waiting < len(OWN)
    cluster.pause(node)
    clock.later = LEASE_SECONDS - 30
    set_all()
    eventually(lambda: meter.recorder_health().buffered == waiting, 10.0)
    clock.later = LEASE_SECONDS + 30
    set_all()
    assert not meter.flush(1.0)
    assert meter.recorder_health().buffered == waiting + len(OWN)
    cluster.resume(node)
    assert meter.flush(20.0)
    assert (meter.recorder_health().instance, meter.recorder_health().buffered) == (0, 0)
    check_sums(meter.recorder_health())
