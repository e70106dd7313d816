"""Signal handlers and destructors that count wherever they come: no deadlock, nothing lost."""

from support.programs import Programs, Total

#: A handler that is called a millisecond after it was called last, until told to stop.
EVERY_MILLISECOND = """
handled, go_on = 0, True

def handler(number, frame):
    global handled
    handled += 1
    meter.count("handled")
    handle.inc()
    if handled % 10 == 0:
        meter.count("handled", 0, labels={"n": str(handled)})
    if go_on:
        signal.setitimer(signal.ITIMER_REAL, 0.001)

def begin():
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001)

def end():
    global go_on
    go_on = False
    signal.setitimer(signal.ITIMER_REAL, 0)
"""

#: What the main thread is just doing, again and again.
CALLS = {
    "count": """
        for _ in range(100):
            meter.count("x")
            recorded += 1
    """,
    "count for the first time": """
        meter.count("x", labels={"n": str(recorded)})
        meter.count("x")
        recorded += 1
    """,
    "flush": """
        meter.count("x")
        recorded += 1
        assert meter.flush(10)
    """,
    "health": """
        meter.count("x")
        recorded += 1
        meter.recorder_health()
    """,
    "close": """
        meter.count("x")
        recorded += 1
        meter.close()
    """,
    "shorten": """
        for _ in range(1000):
            other.inc()
        meter._recorder._collector.shorten(other)
        meter.count("x")
        recorded += 1
        shortened += 1
    """,
}


def test_a_signal_handler_counts_while_the_main_thread_is_at_it(
    programs: Programs, total: Total
) -> None:
    """It interrupts the very thread that may hold a lock, in each of the calls."""
    loops = "".join(
        f"""
least, go_on = handled + 200, True
begin()
while handled < least:
    if True:
{call}
end()
"""
        for call in CALLS.values()
    )
    done = programs.run(
        f"""
meter = Meter(URL, flush_interval=0.01)
handle, other = meter.counter("handle"), meter.counter("other")
{EVERY_MILLISECOND}
recorded = shortened = 0
{loops}
meter.close()
print(handled, recorded, shortened)
"""
    )
    assert (done.code, done.err) == (0, "")
    handled, recorded, shortened = done.numbers
    assert handled >= 200 * len(CALLS)
    assert (total("handled"), total("handle"), total()) == (handled, handled, recorded)
    assert total("other") == 1000 * shortened


def test_a_signal_handler_may_flush_while_the_main_thread_flushes(
    programs: Programs, total: Total
) -> None:
    """Also health() and close(), within each other."""
    done = programs.run(
        """
meter = Meter(URL, flush_interval=0.01)
handled = recorded = 0

def handler(number, frame):
    global handled
    handled += 1
    meter.count("handled")
    (meter.flush, meter.recorder_health, meter.close)[handled % 3]()
    if go_on:
        signal.setitimer(signal.ITIMER_REAL, 0.002)

go_on = True
meter.count("x", 0)
assert meter.flush(10)  # a handler that waits while its thread imports something would wait long
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.002)
until = time.monotonic() + 1
while time.monotonic() < until:
    recorded += 1
    meter.count("x")
    (meter.flush, meter.recorder_health, meter.close)[recorded % 3]()
go_on = False
signal.setitimer(signal.ITIMER_REAL, 0)
assert meter.flush(10)
print(handled, recorded)
"""
    )
    assert (done.code, done.err) == (0, "")
    handled, recorded = done.numbers
    assert handled > 20
    assert (total("handled"), total()) == (handled, recorded)


def test_a_signal_handler_counts_while_the_process_ends(programs: Programs, total: Total) -> None:
    """Until the end of the last exit handler, and holds nothing up."""
    done = programs.run(
        f"""
import atexit
from redmeter.recording import process
meter = Meter(URL, flush_interval=60)
handle = meter.counter("handle")
{EVERY_MILLISECOND}
@atexit.register
def last():
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        meter.count("x", 0)  # stored at once, in this thread
    end()
    if not process._left[os.getpid()]:
        # The machine is so slow that the time for exits is used up: each call stores what it
        # finds, and does not go on for the signals that arrive meanwhile.
        meter.count("x", 0)
    print(handled, time.monotonic())

meter.count("x")
begin()
"""
    )
    assert (done.code, done.err) == (0, "")
    handled, said = done.out.split()
    assert int(handled) > 20
    assert (total("handled"), total("handle"), total()) == (int(handled), int(handled), 1)
    assert done.ended - float(said) < 1.9


def test_destructors_count_wherever_the_collector_runs(programs: Programs, total: Total) -> None:
    """It may run at any allocation: within the lock too, in each thread."""
    done = programs.run(
        """
import gc, itertools
meter = Meter(URL, flush_interval=0.01)
handle = meter.counter("handle")
made, died = itertools.count(), itertools.count()

class Cycle:
    def __init__(self):
        next(made)
        self.itself = self
    def __del__(self):
        next(died)
        handle.inc()
        meter.count("x")
        meter.count("y", 2)

gc.set_threshold(1)
inner = type(meter._recorder._buffer).add

def add(self, *arguments):  # what the flusher does while it holds the lock
    Cycle()
    gc.collect(0)
    return inner(self, *arguments)

type(meter._recorder._buffer).add = add

def work():
    for number in range(150):
        Cycle()
        meter.count("z", labels={"n": str(number % 5)})
        if number % 10 == 0:
            meter.recorder_health()
        if number % 50 == 0:
            assert meter.flush(10)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
type(meter._recorder._buffer).add = inner
gc.collect()
assert meter.flush(10)
print(next(made), next(died))
"""
    )
    assert (done.code, done.err) == (0, "")
    made, died = done.numbers
    assert made == died > 450
    assert (total("handle"), total(), total("y")) == (died, died, 2 * died)


def test_interrupts_break_off_one_call_and_lose_or_double_nothing_else(
    programs: Programs, total: Total
) -> None:
    """KeyboardInterrupt comes out of any call of the main thread, while eight threads count."""
    done = programs.run(
        """
meter = Meter(URL, flush_interval=0.01)
handle = meter.counter("same")
own, go_on = [0] * 8, True

def work(number):
    mine = meter.counter("own", labels={"n": str(number)})
    while go_on:
        handle.inc()
        meter.count("same")
        meter.count("same", 2)
        mine.inc()
        meter.count("own", labels={"n": str(number)})
        own[number] += 1

threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
begun = ended = interrupts = 0
armed, since = False, time.monotonic()

def is_on():
    # Longer on a machine so slow that there would be hardly any interrupts.
    passed = time.monotonic() - since
    return passed < 1.2 or (interrupts <= 20 and passed < 60)

def handler(number, frame):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt

def interrupt():
    while go_on:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.002)

def main():
    global armed, begun, ended
    armed = True
    while is_on():
        begun += 1
        meter.count("main")
        ended += 1
        if begun % 40 == 0:
            meter.flush()
        if begun % 41 == 0:
            meter.recorder_health()
        if begun % 500 == 0:
            meter.close()
    armed = False

signal.signal(signal.SIGINT, handler)
interrupter = threading.Thread(target=interrupt)
interrupter.start()
while is_on():
    try:
        main()
    except KeyboardInterrupt:
        interrupts += 1
go_on = False
for thread in [*threads, interrupter]:
    thread.join()
assert meter.flush(10)
print(begun, ended, interrupts, *own)
"""
    )
    assert (done.code, done.err) == (0, "")
    begun, ended, interrupts, *own = done.numbers
    assert interrupts > 20
    assert ended <= total("main") <= begun
    assert total("same") == 4 * sum(own)
    assert [total(f'own{{n="{number}"}}') for number in range(8)] == [2 * each for each in own]


def test_a_flush_that_is_broken_off_after_it_was_sent_doubles_nothing(
    programs: Programs, total: Total
) -> None:
    """An exception comes out of it in the main thread, where no thread could be started."""
    done = programs.run(
        """
from redmeter.recording.sending import flusher
from redmeter.store.servers.connection import ServerLink

def refused(*arguments):
    raise RuntimeError("can't start new thread")

flusher.start_new_thread = refused
read, interrupted = ServerLink._read, 0

def read_and_interrupt(self, *rest):
    global interrupted
    reply = read(self, *rest)
    if reply == 1 and interrupted < 3:  # a batch that was applied
        interrupted += 1
        raise KeyboardInterrupt
    return reply

ServerLink._read = read_and_interrupt
meter = Meter(URL)
for _ in range(10):
    meter.count("x")
    try:
        meter.flush(10)
    except KeyboardInterrupt:
        pass
assert interrupted == 3
assert meter.flush(10)
"""
    )
    assert (done.code, done.err) == (0, "")
    assert total() == 10
