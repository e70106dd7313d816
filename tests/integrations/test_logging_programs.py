"""RedmeterHandler in threads, queues and tasks, and in programs that fork, end and get signals."""

import asyncio
import logging
import logging.config
import logging.handlers
import queue
import threading
import time
from typing import Any

from redmeter import Meter
from redmeter.integrations.logging import RedmeterHandler, install
from redmeter.results import Frequency
from redmeter.testing import MemoryMeter
from support.logs import patterns, texts
from support.programs import Programs
from support.servers import Server

# --- Threads, queues, tasks ----------------------------------------------------------------


def test_threads_log_side_by_side(meter: Meter, log: logging.Logger) -> None:
    """Each record counts once."""
    install(meter, logger=log)

    def run(number: int) -> None:
        for turn in range(500):
            log.info("turn %d of %d", turn, number)
            log.info(f"thread {number} at {turn}")

    threads = [threading.Thread(target=run, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert patterns(meter) == {"turn %d of %d": 2000, "thread <n> at <n>": 2000}
    assert meter.recorder_health().stored == 4000


def test_behind_a_queue_the_text_is_what_is_left(memory: MemoryMeter, log: logging.Logger) -> None:
    """QueueHandler makes text of its records; they are counted by that."""
    records: queue.SimpleQueue[Any] = queue.SimpleQueue()
    listener = logging.handlers.QueueListener(records, RedmeterHandler(memory))
    log.addHandler(logging.handlers.QueueHandler(records))
    listener.start()
    log.info("retrying order %s", 17)
    log.info("retrying order %s", 18)
    listener.stop()
    assert patterns(memory) == {"retrying order <n>": 2}


def test_asyncio_debug_logs_are_counted(memory: MemoryMeter, app_log: logging.Logger) -> None:
    """Its slow-callback warning, for instance, from within the loop."""
    install(memory)

    async def main() -> None:
        asyncio.get_running_loop().slow_callback_duration = 0.001
        asyncio.get_running_loop().call_soon(time.sleep, 0.01)
        await asyncio.sleep(0.02)

    asyncio.run(main(), debug=True)
    assert "Executing %s took %.3f seconds" in patterns(memory, "asyncio")


# --- Whole applications --------------------------------------------------------------------


APPLICATION = """
import logging
from concurrent.futures import ThreadPoolExecutor
from redmeter.integrations.logging import install

logging.basicConfig(level=logging.INFO, stream=sys.stderr)
install(Meter(URL))
log = logging.getLogger("shop.jobs")

def bill(order):
    if order % 5 == 0:
        raise ValueError(f"order {order} has no address")
    log.info("billed order %d", order)

def job(order):
    try:
        bill(order)
    except ValueError:
        log.exception("billing failed for customer %s", f"c{order}")

with ThreadPoolExecutor(4) as pool:
    list(pool.map(job, range(100)))
log.warning(f"{100} orders done, token=s3cr3t")
"""


def test_what_a_program_logs_is_there_when_it_has_ended(programs: Programs, server: Server) -> None:
    """A failing background job: how often, since when, where it came from, and the last of it."""
    began = time.time()
    done = programs.run(APPLICATION)
    assert done.code == 0, done.err
    with Meter(server.url) as meter:
        found = {f.pattern: f for f in meter.log_frequencies("shop.jobs")}
        (place,) = (p for p in found if p.startswith("billing failed for customer %s [ValueError"))
        assert place.endswith(" in bill]")
        failed: Frequency = found[place]
        assert failed.severity == "error"
        assert failed.count + failed.before == 20
        assert failed.first is not None
        assert began - 1 < failed.first < time.time() + 1
        assert "has no address" in failed.sample
        billed = found["billed order %d"]
        assert billed.count + billed.before == 80
        assert "<n> orders done, token=***" in found
        assert len(meter.log_messages("shop.jobs", severity="error")) == 20
        new = {c.pattern for c in meter.log_changes() if c.kind == "new"}
        assert place in new
        assert meter.log_messages("shop.jobs", severity="warning")[0].text.endswith("token=***")


NO_SOCKETS = """
import logging
from redmeter.integrations.logging import install

meter = Meter(URL, flush_interval=3600)
handler = install(meter)
log = logging.getLogger("app.jobs")
log.setLevel(logging.DEBUG)
log.info("the first one starts the thread")
seen = []
here = threading.get_ident()

def audit(event, arguments):
    if threading.get_ident() == here and event.startswith(("socket.", "open", "subprocess.")):
        seen.append(event)

sys.addaudithook(audit)
try:
    1 / 0
except ZeroDivisionError:
    for number in range(3000):
        log.info("by format %s", number)
        log.info(f"by text {number}")
        log.error("failed %s", number, exc_info=number % 100 == 0)
found = list(seen)
assert meter.flush(), meter.recorder_health()
print(len(found), *found)
"""


def test_nothing_is_sent_where_one_logs(programs: Programs) -> None:
    """No socket; and no file but the source of an exception, once, for the line that failed."""
    done = programs.run(NO_SOCKETS)
    assert done.code == 0, done.err
    assert done.out == "1 open\n"


FORKED = """
import logging
from redmeter.integrations.logging import install

meter = Meter(URL)
install(meter)
log = logging.getLogger("app.jobs")
log.warning("in %s", "parent")
child = os.fork()
log.warning("in %s", "child" if child == 0 else "parent")
if child == 0:
    logging.shutdown()
    sys.exit()
os.waitpid(child, 0)
"""


def test_a_forked_child_logs_on(programs: Programs, server: Server) -> None:
    """Nothing twice, nothing lost."""
    done = programs.run(FORKED)
    assert done.code == 0, done.err
    with Meter(server.url) as meter:
        assert patterns(meter) == {"in %s": 3}
        assert sorted(texts(meter)) == ["in child", "in parent", "in parent"]


SIGNALLED = """
import logging
from redmeter.integrations.logging import install

meter = Meter(URL)
install(meter)
log = logging.getLogger("app.jobs")
count = depth = 0

def on_alarm(number, frame):
    global count, depth
    count += 1
    depth += 1
    # Interrupted itself, twice at most: on a busy machine a call may take longer than that time.
    if depth < 3:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
    log.warning("in a signal handler")
    depth -= 1
    signal.setitimer(signal.ITIMER_REAL, 0.001)

signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.001)
until = time.monotonic() + 1.0
calls = 0
while time.monotonic() < until:
    log.warning("turn %d", calls)
    calls += 1
signal.signal(signal.SIGALRM, signal.SIG_IGN)
meter.flush()
found = {f.pattern: f.count + f.before for f in meter.log_frequencies("app.jobs")}
print(calls, found["turn %d"], count, found["in a signal handler"])
"""


def test_signal_handlers_may_log(programs: Programs) -> None:
    """All that was interrupted is counted; of what interrupts the handler itself, a part is not."""
    done = programs.run(SIGNALLED)
    assert done.code == 0, done.err
    calls, counted, signals, told = done.numbers
    assert counted == calls
    assert 0 < told <= signals
