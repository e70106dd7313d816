"""Exceptions in processes that fork and that signals interrupt: each counts once, exactly."""

from faults.processes.test_forks import FORK
from redmeter import Meter
from support.programs import Programs
from support.servers import Server

RAISE = """
def fail(meter, name):
    try:
        raise LookupError(name)
    except LookupError as error:
        meter.record_exception(error, route=name)
"""


def counts(server: Server) -> dict[str, int]:
    """Return the stored exceptions by route."""
    with Meter(server.url) as meter:
        found: dict[str, int] = {}
        for group in meter.exceptions().groups:
            for route in group.routes:
                found[route.name] = found.get(route.name, 0) + route.count
        return found


def test_a_forked_child_records_its_own_exceptions(programs: Programs, server: Server) -> None:
    """Those that the parent has not sent stay the parent's; one it has recorded counts once."""
    programs.run(
        FORK
        + RAISE
        + """
meter = Meter(URL, flush_interval=60)
known = LookupError("known")
meter.record_exception(known, route="known")
fail(meter, "parent")

def child():
    meter.record_exception(known, route="known")
    for _ in range(3):
        fail(meter, "child")
    assert meter.recorder_health().recorded == 3, meter.recorder_health()
    assert meter.flush(10)
    assert meter.recorder_health().stored == 3

wait(*[fork(child) for _ in range(4)])
meter.close()
assert meter.recorder_health().dropped == 0
"""
    )
    assert counts(server) == {"known": 1, "parent": 1, "child": 12}


def test_a_signal_handler_records_exceptions_at_any_point(
    programs: Programs, server: Server
) -> None:
    """It interrupts recording and flushing themselves; none blocks, is lost or counts twice."""
    done = programs.run(
        RAISE
        + """
meter = Meter(URL, flush_interval=0.01)
handled, go_on = 0, True

def handler(*_):
    global handled
    handled += 1
    fail(meter, "handler")
    if go_on:
        signal.setitimer(signal.ITIMER_REAL, 0.001)

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001)
recorded = 0
while handled < 50:
    for _ in range(20):
        fail(meter, "main")
        recorded += 1
    meter.flush(10)
go_on = False
signal.setitimer(signal.ITIMER_REAL, 0)
meter.close()
health = meter.recorder_health()
assert health.dropped == health.uncertain == 0, health
print(recorded, handled)
"""
    )
    assert done.code == 0, done.err
    recorded, handled = map(int, done.out.split())
    assert counts(server) == {"main": recorded, "handler": handled}
