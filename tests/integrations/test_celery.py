"""Celery: tasks are counted and timed, whatever runs them and whatever becomes of them."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter
from redmeter.integrations.celery import install
from redmeter.integrations.shared.tasks import MAX_TASKS
from redmeter.testing import MemoryMeter
from support.programs import SOURCES, Programs
from support.servers import Server
from support.waiting import eventually

celery = pytest.importorskip("celery")
signals = pytest.importorskip("celery.signals")

#: An application with a queue in the store's database, and tasks that fare differently.
SHOP = """
import os, sqlite3, time
import sqlalchemy as sa
from celery import Celery, signals
from celery.exceptions import Ignore, Reject
from redmeter import Meter
from redmeter.integrations.celery import install
from redmeter.integrations.sqlalchemy import install as watch

app = Celery("shop", broker=os.environ["URL"])
app.conf.update(
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
)
meter = Meter(os.environ["URL"], flush_interval=0.2)
install(app, meter)
install(app, meter)
engine = sa.create_engine("sqlite://")
watch(engine, meter)

@app.task(name="shop.send")
def send():
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))

@app.task(name="shop.charge")
def charge():
    raise KeyError("card")

@app.task(name="shop.ask", bind=True, max_retries=2, default_retry_delay=0)
def ask(self):
    try:
        raise ConnectionError("no answer")
    except ConnectionError as error:
        raise self.retry(exc=error)

@app.task(name="shop.skip")
def skip():
    raise Ignore()

@app.task(name="shop.refuse", acks_late=True)
def refuse():
    raise Reject("no", requeue=False)

@app.task(name="shop.crash")
def crash():
    time.sleep(0.5)
    os._exit(9)

@app.task(name="shop.hang", time_limit=1)
def hang():
    time.sleep(30)

@app.task(name="shop.leave")
def leave():
    raise SystemExit(3)

@app.task(name="shop.late")
def late():
    pass

@app.task(name="shop.last")
def last():
    open("done", "w").close()

@signals.worker_ready.connect(weak=False)
def begin(**_):
    for _ in range(3):
        send.delay()
    charge.delay()
    ask.delay()
    skip.delay()
    refuse.delay()
    leave.delay()
    late.apply_async(expires=-1)
    app.send_task("shop.of_another")
"""


@pytest.fixture
def app(memory: MemoryMeter) -> Iterator[Any]:
    """An application that runs its tasks at once, watched by a meter in memory."""
    before = {
        name: list(each.receivers)
        for name, each in vars(signals).items()
        if isinstance(each, type(signals.task_prerun))
    }
    app = celery.Celery("here", broker="memory://", set_as_current=False)
    app.conf.task_always_eager = True
    install(app, memory)
    yield app
    for name, receivers in before.items():
        getattr(signals, name).receivers[:] = receivers
    install.__globals__["_watches"].clear()


def nothing() -> None:
    """Do nothing."""


def seven() -> int:
    """Return seven."""
    return 7


def runs(meter: Any, task: str, state: str) -> int:
    """Return how often a task ended so."""
    return int(meter.total("task_runs", labels={"task": task, "state": state}))


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_worker_counts_what_became_of_each_task(
    programs: Programs, server: Server, pool: str
) -> None:
    """Real tasks out of a queue, also those that end with their process or never begin."""
    programs.write("shop.py", SHOP)
    env = {"URL": programs.url, "C_FORCE_ROOT": "1"}
    worker = programs.command(
        *(sys.executable, "-m", "celery", "-A", "shop", "worker", "--concurrency", "2"),
        *("--pool", pool, "--loglevel", "critical"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        env=env,
    )
    wanted = {
        ("shop.send", "success"): 3,
        ("shop.charge", "failure"): 1,
        ("shop.ask", "retry"): 2,
        ("shop.ask", "failure"): 1,
        ("shop.skip", "ignored"): 1,
        ("shop.refuse", "rejected"): 1,
        ("shop.leave", "failure"): 1,
        ("shop.late", "expired"): 1,
        ("(unknown)", "unknown"): 1,
    }
    with Meter(server.url) as meter:

        def counted() -> dict[tuple[str, str], int]:
            assert worker.running, worker.err
            return {key: count for key in wanted if (count := runs(meter, *key))}

        eventually(lambda: counted() == wanted, 25.0, f"{wanted}")
        if pool == "prefork":
            crash = "import shop; shop.crash.delay(); shop.hang.delay()"
            assert programs.command(sys.executable, "-c", crash, env=env).finish().code == 0
            for task in ("shop.crash", "shop.hang"):
                eventually(lambda t=task: runs(meter, t, "failure"), 20.0, task)  # type: ignore[misc]
        worker.send(signal.SIGTERM)
        assert worker.finish().code == 0
        assert "Traceback" not in "".join(worker.err)
        assert counted_all(meter) == sum(wanted.values()) + 2 * (pool == "prefork")
        assert meter.summary("task_seconds", precision=60, labels={"task": "shop.ask"}).count == 3
        waited = meter.summary("task_db_seconds", precision=60)
        assert waited.count == 3
        queued = meter.summary("task_queue_seconds", precision=60, labels={"task": "shop.send"})
        assert queued.count == 3
        sent = {"task": "shop.send", "statement": "SELECT"}
        assert meter.total("db_queries", labels=sent) == 3
        place = {each.pattern: each.count for each in meter.log_frequencies("celery")}
        assert place.pop("shop.charge failed [KeyError at shop.py:28 in charge]") == 1
        assert place.pop("shop.ask failed [ConnectionError at shop.py:33 in ask]") == 1
        again = "shop.ask will be tried again [ConnectionError at shop.py:33 in ask]"
        assert place.pop(again) == 2
        (left,) = (each for each in place if each.startswith("shop.leave failed ["))
        assert place.pop(left) == 1
        took = meter.summary("task_seconds", precision=60, labels={"task": "shop.leave"})
        assert took.count == runs(meter, "shop.leave", "failure")
        lost = "shop.crash failed [WorkerLostError", "shop.hang failed [TimeLimitExceeded"
        assert sum(each.startswith(lost) for each in place) == len(place)
        assert len(place) == 2 * (pool == "prefork")


#: Tasks are stored at the end alone; each process notes that it is ready.
RELOADED = """
import os
from celery import Celery, signals
from redmeter import Meter
from redmeter.integrations.celery import install

app = Celery("shop", broker=os.environ["URL"])
meter = Meter(os.environ["URL"], flush_interval=3600)
install(app, meter)

@app.task(name="shop.send")
def send():
    open(f"sent{len(os.listdir())}", "w").close()

@signals.worker_ready.connect(weak=False)
def begin(**_):
    for _ in range(5):
        send.delay()
    meter.count("starts")
"""


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_worker_that_is_reloaded_stores_before(
    programs: Programs, server: Server, pool: str
) -> None:
    """SIGHUP replaces its process by another program, without an end."""
    programs.write("shop.py", RELOADED)
    folder = programs.folder / "work"
    folder.mkdir()
    worker = programs.command(
        *(str(Path(sys.executable).parent / "celery"), "-A", "shop", "--workdir", str(folder)),
        *("worker", "--concurrency", "1", "--pool", pool, "--loglevel", "critical"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        env={
            "URL": programs.url,
            "C_FORCE_ROOT": "1",
            "PYTHONPATH": f"{SOURCES}:{programs.folder}",
        },
    )
    with Meter(server.url) as meter:
        eventually(lambda: len(list(folder.iterdir())) == 5, 25.0, "five tasks")
        worker.send(signal.SIGHUP)
        # A task that was not acknowledged yet is delivered once more.
        eventually(lambda: len(list(folder.iterdir())) >= 10, 25.0, "five tasks more")
        assert runs(meter, "shop.send", "success") >= 5
        worker.send(signal.SIGTERM)
        assert worker.finish().code == 0
        assert runs(meter, "shop.send", "success") == len(list(folder.iterdir()))
        assert meter.total("starts") == 2


def counted_all(meter: Meter) -> int:
    """Return how many runs were counted of all tasks."""
    return sum(meter.total(name) for name in meter.names("task_runs{*"))


def test_tasks_that_run_at_once_are_counted_too(app: Any, memory: MemoryMeter) -> None:
    """Eagerly, in the process that asks for them; what they return and raise is as it was."""

    @app.task(name="shop.add")  # type: ignore[untyped-decorator]
    def add(one: int, two: int) -> int:
        return one + two

    @app.task(name="shop.fail")  # type: ignore[untyped-decorator]
    def fail() -> None:
        raise KeyError("x")

    assert add.delay(1, 2).get() == 3
    assert isinstance(fail.delay().result, KeyError)
    assert (runs(memory, "shop.add", "success"), runs(memory, "shop.fail", "failure")) == (1, 1)
    assert len(memory.observed("task_seconds", labels={"task": "shop.add"})) == 1
    (text,) = memory.logged("celery", "error")
    assert text.startswith("shop.fail failed\n")
    assert text.endswith("KeyError: 'x'")


def test_a_task_that_ends_its_thread_is_a_run_that_failed(app: Any, memory: MemoryMeter) -> None:
    """By SystemExit, which passes on; there are as many runs as durations."""

    @app.task(name="shop.leave")  # type: ignore[untyped-decorator]
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        leave.delay()
    assert runs(memory, "shop.leave", "failure") == 1
    assert len(memory.observed("task_seconds", labels={"task": "shop.leave"})) == 1
    (pattern,) = (each.pattern for each in memory.log_frequencies("celery"))
    assert pattern.startswith("shop.leave failed [SystemExit at test_celery.py:")


def test_tasks_of_other_applications_are_left_alone(app: Any, memory: MemoryMeter) -> None:
    """Unless all are asked for; then each run counts once for a meter."""
    other = celery.Celery("there", broker="memory://", set_as_current=False)
    other.conf.task_always_eager = True
    work = other.task(name="there.work")(nothing)
    work.delay()
    assert memory.events == []
    second = MemoryMeter()
    install(meter=second)
    install(other, second)
    install(meter=second)
    work.delay()
    assert runs(second, "there.work", "success") == 1
    assert memory.events == []


def test_tasks_within_tasks_are_timed_each(app: Any, memory: MemoryMeter) -> None:
    """Also of one name, as a task that calls itself."""

    @app.task(name="shop.count")  # type: ignore[untyped-decorator]
    def count(down: int) -> None:
        if down:
            count.delay(down - 1)

    count.delay(3)
    took = memory.observed("task_seconds", labels={"task": "shop.count"})
    assert took == sorted(took)
    assert len(took) == 4


def test_names_of_tasks_are_bounded(app: Any, memory: MemoryMeter) -> None:
    """A name that is too long is cut, and too many become one."""
    for number in range(MAX_TASKS + 10):
        app.task(name=f"shop.task{number}." + "x" * 300)(nothing).delay()
    names = {each.series for each in memory.events if each.amount}
    assert len(names) == MAX_TASKS + 1
    assert runs(memory, "(other)", "success") == 10
    assert memory.recorder_health().troubles == {}


def test_nothing_that_goes_wrong_here_reaches_a_task(
    app: Any, memory: MemoryMeter, monkeypatch: Any
) -> None:
    """It is counted, and the task's result is as it was."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(memory, "count", fail)
    monkeypatch.setattr(memory, "log", fail)
    assert app.task(name="shop.seven")(seven).delay().get() == 7
    assert memory.recorder_health().troubles == {"celery": 1}
