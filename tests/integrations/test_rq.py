"""RQ: jobs are counted and timed, and what they record is stored, whatever runs them."""

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from redmeter import Meter
from redmeter.testing import MemoryMeter
from support.programs import Done, Programs
from support.servers import Server

rq = pytest.importorskip("rq")

from redmeter.integrations import rq as integration  # noqa: E402
from redmeter.integrations.shared.tasks import MAX_TASKS  # noqa: E402

#: Whether RQ's jobs can ask to be tried again by their result.
RETURNS_RETRY = hasattr(rq.Worker, "handle_job_retry")
#: Older ones of this kind cannot start with the newest redis-py, whose settings they print as code.
VERSION = tuple(int(part) for part in rq.VERSION.split(".")[:2])
SPAWNS = VERSION >= (2, 12)

#: Jobs that fare differently.
SHOP = """
import os, signal, time
import sqlalchemy as sa
from redmeter import Meter
from redmeter.integrations.rq import install
from redmeter.integrations.sqlalchemy import install as watch

meter = Meter(os.environ["URL"], flush_interval=30)
other = Meter(os.environ["URL"], flush_interval=30)
install(meter)
install(meter)
engine = sa.create_engine("sqlite://", poolclass=sa.pool.StaticPool)
watch(engine, meter)

def send():
    meter.count("sent")
    other.count("sent_too")
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))

def charge():
    raise KeyError("card")

def ask():
    raise ConnectionError("no answer")

def ask_by_result():
    from rq import Retry
    return Retry(max=1)

def leave():
    raise SystemExit(3)

def slow():
    time.sleep(5)

def die():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)

def wait_to_be_stopped():
    time.sleep(30)
"""

#: A worker of a kind that does what is queued, and ends; the shop is imported before or not.
WORK = """
import redis, rq, rq.worker, sys
if sys.argv[3] == "before":
    import shop
connection = redis.Redis.from_url(URL)
kind = getattr(rq.worker, sys.argv[2])
worker = kind([rq.Queue("default", connection=connection)], connection=connection)
worker.work(burst=True, logging_level="ERROR")
"""


@pytest.fixture
def queue(server: Server) -> Iterator[Any]:
    """RQ's queue, on the server that stores the metrics too."""
    connection = server.client()
    connection.connection_pool.connection_kwargs["decode_responses"] = False
    yield rq.Queue("default", connection=connection)
    connection.close()


def work(programs: Programs, kind: str, imported: str = "before") -> Done:
    """Run a worker until the queue is empty."""
    programs.write("shop.py", SHOP)
    done = programs.start(WORK, kind, imported, env={"URL": programs.url}).finish(30.0)
    assert done.code == 0, done
    return done


def runs(meter: Any) -> dict[tuple[str, str], int]:
    """Return how often each task ended so."""
    counts = {}
    for name in meter.names("task_runs{*"):
        parts = name.partition("{")[2][:-1].replace('"', "").split(",")
        labels = dict(part.split("=") for part in parts)
        counts[labels["task"], labels["state"]] = int(meter.total(name))
    return counts


def summary(meter: Meter, name: str, task: str) -> Any:
    """Return the summary of a histogram of a task in the last minutes."""
    return meter.summary(name, precision=60, labels={"task": task})


@pytest.mark.slow
@pytest.mark.parametrize("imported", ["before", "by the job"])
@pytest.mark.parametrize(
    "kind",
    [
        "Worker",
        "SimpleWorker",
        pytest.param("SpawnWorker", marks=pytest.mark.skipif(not SPAWNS, reason="see SPAWNS")),
    ],
)
def test_what_became_of_each_job_is_stored(
    programs: Programs, server: Server, queue: Any, kind: str, imported: str
) -> None:
    """Also by work horses, which end at once, and if only the job imports what installs it."""
    sent = 10 if kind == "Worker" else 3
    for _ in range(sent):
        queue.enqueue("shop.send")
    time.sleep(0.2)
    queue.enqueue("shop.charge")
    queue.enqueue("shop.ask", retry=rq.Retry(max=2))
    queue.enqueue("shop.leave")
    queue.enqueue("shop.slow", job_timeout=3)
    queue.enqueue("shop.not_there")
    wanted = {
        ("shop.send", "success"): sent,
        ("shop.charge", "failure"): 1,
        ("shop.ask", "retry"): 2,
        ("shop.ask", "failure"): 1,
        ("shop.leave", "failure"): 1,
        ("shop.slow", "failure"): 1,
        ("shop.not_there", "failure"): 1,
    }
    if RETURNS_RETRY:
        queue.enqueue("shop.ask_by_result")
        wanted |= {("shop.ask_by_result", "retry"): 1, ("shop.ask_by_result", "failure"): 1}
    done = work(programs, kind, imported)
    assert "redmeter" not in done.err
    with Meter(server.url) as meter:
        assert meter.total("sent") == meter.total("sent_too") == sent
        assert runs(meter) == wanted
        for task in {task for task, _ in wanted}:
            count = sum(each for (name, _), each in wanted.items() if name == task)
            assert summary(meter, "task_seconds", task).count == count
            assert summary(meter, "task_queue_seconds", task).count == count
        assert 2.9 < summary(meter, "task_seconds", "shop.slow").high < 5
        assert 0.2 < summary(meter, "task_queue_seconds", "shop.send").high < 20
        assert summary(meter, "task_db_seconds", "shop.send").count == sent
        labels = {"task": "shop.send", "statement": "SELECT"}
        assert meter.total("db_queries", labels=labels) == sent
        place = {each.pattern: each.count for each in meter.log_frequencies("rq")}
        assert place.pop("shop.charge failed [KeyError at shop.py:22 in charge]") == 1
        assert place.pop("shop.ask failed [ConnectionError at shop.py:25 in ask]") == 1
        again = "shop.ask will be tried again [ConnectionError at shop.py:25 in ask]"
        assert place.pop(again) == 2
        assert place.pop("shop.leave failed [SystemExit at shop.py:32 in leave]") == 1
        slow = "shop.slow failed [JobTimeoutException at shop.py:35 in slow]"
        assert place.pop(slow) == 1
        rest = sorted(place)
        assert [each for each in rest if each.startswith("shop.not_there failed [")] == rest[-1:]
        if RETURNS_RETRY:
            assert rest[:-1][1:] == ["shop.ask_by_result will be tried again"]
            assert rest[0].startswith("shop.ask_by_result failed: ")
        routes = {each.type: each.routes[0].name for each in meter.exceptions().groups}
        assert routes["KeyError"] == "shop.charge"
        assert routes["SystemExit"] == "shop.leave"


@pytest.mark.slow
def test_a_work_horse_that_is_killed_is_a_run_that_failed(
    programs: Programs, server: Server, queue: Any
) -> None:
    """Its worker counts it; RQ may try the job again."""
    queue.enqueue("shop.die", retry=rq.Retry(max=1))
    if VERSION == (2, 0):  # its worker fails at the second attempt of the other one
        queue.enqueue("shop.die", at_front=True)
    work(programs, "Worker")
    with Meter(server.url) as meter:
        assert runs(meter) == {("shop.die", "failure"): 1, ("shop.die", "retry"): 1}
        took = summary(meter, "task_seconds", "shop.die")
        assert took.count == 2
        assert 0.2 < took.high < 5
        patterns = sorted(each.pattern for each in meter.log_frequencies("rq"))
        assert [each.partition(";")[0] for each in patterns] == [
            "shop.die failed: Work-horse terminated unexpectedly",
            "shop.die will be tried again: Work-horse terminated unexpectedly",
        ]


STOP = """
import redis, rq, rq.worker, threading
import shop
from rq.command import send_stop_job_command
connection = redis.Redis.from_url(URL)
queue = rq.Queue("default", connection=connection)
job = queue.enqueue("shop.wait_to_be_stopped")
def stop():
    while job.get_status() != "started":
        time.sleep(0.05)
    time.sleep(0.5)
    send_stop_job_command(connection, job.id)
threading.Thread(target=stop, daemon=True).start()
rq.Worker([queue], connection=connection).work(burst=True, logging_level="ERROR")
"""


@pytest.mark.slow
def test_a_job_that_is_stopped_is_no_failure(programs: Programs, server: Server) -> None:
    """On request, as by RQ's command."""
    programs.write("shop.py", SHOP)
    done = programs.start(STOP, env={"URL": programs.url}).finish(30.0)
    assert done.code == 0, done
    with Meter(server.url) as meter:
        assert runs(meter) == {("shop.wait_to_be_stopped", "stopped"): 1}
        (pattern,) = (each.pattern for each in meter.log_frequencies("rq"))
        assert pattern == "shop.wait_to_be_stopped was stopped"


@pytest.mark.slow
def test_the_command_needs_nothing_but_the_module_of_the_jobs(
    programs: Programs, server: Server, queue: Any
) -> None:
    """`rq worker` imports it within the first job of each work horse."""
    programs.write("shop.py", SHOP)
    for _ in range(3):
        queue.enqueue("shop.send")
    queue.enqueue("shop.charge")
    command = "from rq.cli import main; main()"
    worker = programs.command(
        *(sys.executable, "-c", command, "worker", "--burst", "--url", programs.url),
        *("--path", ".", "--quiet", "default"),
        env={"URL": programs.url},
    )
    assert worker.finish(30.0).code == 0
    with Meter(server.url) as meter:
        assert runs(meter) == {("shop.send", "success"): 3, ("shop.charge", "failure"): 1}
        assert meter.total("sent") == 3


@pytest.mark.slow
def test_a_store_that_is_gone_delays_a_job_for_a_limited_time(
    programs: Programs, queue: Any
) -> None:
    """And fails none."""
    jobs = [queue.enqueue("shop.send") for _ in range(2)]
    programs.write("shop.py", SHOP)
    began = time.monotonic()
    silent = "redis://127.0.0.1:1/0"
    done = programs.start(WORK, "Worker", "before", env={"URL": silent}).finish(30.0)
    assert done.code == 0, done
    assert time.monotonic() - began < 15
    assert [job.get_status() for job in jobs] == ["finished"] * 2


@pytest.fixture
def worker(queue: Any, memory: MemoryMeter) -> Iterator[Any]:
    """A worker in this process, watched by a meter in memory."""
    from rq.timeouts import TimerDeathPenalty

    class Here(rq.SimpleWorker):  # type: ignore[misc,name-defined]
        death_penalty_class = TimerDeathPenalty  # pytest-timeout has SIGALRM

    integration.install(memory)
    yield Here([queue], connection=queue.connection)
    integration._watches.clear()


def perform(worker: Any, job: Any) -> str:
    """Run a job; return what became of it."""
    queue = worker.queues[0]
    worker.execute_job(queue.fetch_job(job.id), queue)
    status = job.get_status(refresh=True)
    return str(getattr(status, "value", status))


def nothing() -> int:
    """Return seven."""
    return 7


def test_each_meter_counts_a_run_once(worker: Any, queue: Any, memory: MemoryMeter) -> None:
    """However often it is installed."""
    second = MemoryMeter()
    for each in (memory, second, second):
        integration.install(each)
    assert perform(worker, queue.enqueue(nothing)) == "finished"
    for each in (memory, second):
        assert [event.series for event in each.events if event.series.startswith("task_runs")] == [
            f'task_runs{{state="success",task="{nothing.__module__}.nothing"}}'
        ]


def test_names_of_tasks_are_bounded(worker: Any, queue: Any, memory: MemoryMeter) -> None:
    """A name that is too long is cut, and too many become one."""
    (watch,) = integration._watches
    for number in range(MAX_TASKS):
        watch.learn(rq.job.Job.create(f"shop.task{number}", connection=queue.connection))
    assert perform(worker, queue.enqueue("shop.one_more")) == "failed"
    assert memory.total("task_runs", labels={"task": "(other)", "state": "failure"}) == 1
    assert memory.recorder_health().troubles == {}


def test_a_task_without_a_readable_name_is_unknown(
    worker: Any, queue: Any, memory: MemoryMeter
) -> None:
    """It fails, and is counted."""
    job = queue.enqueue(nothing)
    queue.connection.hset(job.key, "data", b"damaged")
    assert perform(worker, job) == "failed"
    assert memory.total("task_runs", labels={"task": "(unknown)", "state": "failure"}) == 1
    assert memory.recorder_health().troubles == {}


@pytest.mark.parametrize("serializer", ["default", "json"])
def test_names_are_read_without_unpickling(queue: Any, serializer: str) -> None:
    """That would run code of the application in the worker; JSON does not."""
    options = {} if serializer == "default" else {"serializer": rq.serializers.JSONSerializer}
    made = rq.job.Job.create(
        "shop.send", args=(["a", {"b": 1}],), connection=queue.connection, **options
    )
    job = rq.job.Job(made.id, connection=queue.connection, **options)
    job.data = made.data
    assert integration._name_of(job) == "shop.send"
    if serializer == "default":
        job.data = job.data.replace(b"shop.send", b"shop.sent")[:25]  # cut: cannot be unpickled
        assert integration._name_of(job) == "shop.sent"


def test_the_wait_begins_when_a_job_was_queued(
    worker: Any, queue: Any, memory: MemoryMeter
) -> None:
    """Not before; a queue's time in the future, of a clock that is ahead, is no wait."""
    job = queue.enqueue(nothing)
    early = datetime.fromtimestamp(time.time() - 100, UTC)
    late = datetime.fromtimestamp(time.time() + 100, UTC)
    for when in (early, late):
        queue.connection.hset(job.key, "enqueued_at", when.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        perform(worker, job)
    labels = {"task": f"{nothing.__module__}.nothing"}
    first, second = memory.observed("task_queue_seconds", labels=labels)
    assert 100 <= first < 110
    assert second == 0


def test_nothing_that_goes_wrong_here_reaches_a_job(
    worker: Any, queue: Any, memory: MemoryMeter, monkeypatch: Any
) -> None:
    """It is counted, and the job's outcome is as it was."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(memory, "count", fail)
    monkeypatch.setattr(memory, "observe", fail)
    assert perform(worker, queue.enqueue(nothing)) == "finished"
    assert memory.recorder_health().troubles == {"rq": 2}
