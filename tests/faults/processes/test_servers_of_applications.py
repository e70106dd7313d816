"""Servers that run an application in processes of their own: every worker's counts are stored.

Flush intervals are long, so what is stored was stored because a process ended, in good order.
"""

import signal
import sys
from collections import Counter
from typing import Any

import pytest

from support.load import Load, end
from support.programs import Program, Programs, Total
from support.servers import free_port
from support.waiting import eventually

pytestmark = pytest.mark.slow

WSGI = """
import os
from redmeter import Meter
meter = Meter(os.environ["URL"], flush_interval=60)
handle = meter.counter("x")
meter.count("imported")

def app(environ, start_response):
    pid = str(os.getpid())
    handle.inc()
    meter.count("by", labels={"pid": pid})
    start_response("200 OK", [("Content-Length", str(len(pid)))])
    return [pid.encode()]
"""

ASGI = """
import os
from redmeter import Meter
meter = Meter(os.environ["URL"], flush_interval=60)

async def app(scope, receive, send):
    assert scope["type"] == "http"
    pid = str(os.getpid())
    meter.count("x")
    meter.count("by", labels={"pid": pid})
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": pid.encode()})
"""


def under_load(program: Program, port: int, requests: int, workers: int) -> Counter[str]:
    """Ask until so many requests are answered by so many workers, then end it while asking."""
    with Load(port) as load:
        load.until(program, requests, workers)
        end(program, load)
    return load.bodies()


def by_process(conn: Any) -> Counter[str]:
    """Return what is stored: process id -> how many."""
    found: Counter[str] = Counter()
    for name, count in conn.hgetall("redmeter:total:").items():
        if name.startswith(b"by{"):
            found[name.decode().split('"')[1]] = int(count)
    return found


@pytest.mark.parametrize(("kind", "preload"), [("gthread", True), ("sync", False)])
def test_gunicorn_stores_every_request_that_it_answered(
    programs: Programs, total: Total, conn: Any, kind: str, preload: bool
) -> None:
    """Workers come and go by max_requests, and end with the server while requests come in."""
    programs.write("application.py", WSGI)
    port = free_port()
    options = ["--preload"] if preload else []
    options += ["--threads", "4"] if kind == "gthread" else []
    program = programs.command(
        *(sys.executable, "-m", "gunicorn", "application:app", "--worker-class", kind),
        *("--workers", "2", "--max-requests", "40", "--bind", f"127.0.0.1:{port}"),
        *("--worker-tmp-dir", str(programs.folder), "--log-level", "warning", *options),
        env={"URL": programs.url},
    )
    answers = under_load(program, port, 120, 4)
    assert total() == answers.total()
    assert by_process(conn) == answers
    # The primary's own, or one of each worker.
    assert total("imported") == 1 if preload else total("imported") >= len(answers)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_uvicorn_stores_every_request_that_it_answered(
    programs: Programs, total: Total, conn: Any, workers: int
) -> None:
    """Though each of its processes ends itself by the signal, after it ended in good order."""
    programs.write("application.py", ASGI)
    port = free_port()
    program = programs.command(
        *(sys.executable, "-m", "uvicorn", "application:app", "--port", str(port)),
        *("--workers", str(workers), "--log-level", "warning"),
        env={"URL": programs.url},
    )
    answers = under_load(program, port, 100, workers)
    assert total() == answers.total()
    assert by_process(conn) == answers


CELERY = """
import os
from celery import Celery
from celery.signals import worker_ready
from redmeter import Meter

app = Celery("application", broker="filesystem://")
app.conf.update(
    broker_transport_options={"data_folder_in": "queue", "data_folder_out": "queue"},
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
)
meter = Meter(os.environ["URL"])
meter.count("imported")

@app.task
def work():
    meter.count("x")
    meter.count("by", labels={"pid": str(os.getpid())})
    file = os.open("done", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{os.getpid()}\\n".encode())
    os.close(file)

@worker_ready.connect(weak=False)
def begin(**_):
    for _ in range(14):
        work.delay()
"""


def test_celery_stores_every_task_that_it_did(programs: Programs, total: Total, conn: Any) -> None:
    """Pool processes are replaced after three tasks each, and end with a warm shutdown."""
    programs.write("application.py", CELERY)
    (programs.folder / "queue").mkdir()
    program = programs.command(
        *(sys.executable, "-m", "celery", "-A", "application", "worker", "--concurrency", "2"),
        *("--pool", "prefork", "--max-tasks-per-child", "3", "--loglevel", "error"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        env={"URL": programs.url, "C_FORCE_ROOT": "1"},
    )
    file = programs.folder / "done"

    def all_done() -> bool:
        assert program.running, program.err
        return file.exists() and len(file.read_text().split()) == 14

    eventually(all_done, 30.0, "all tasks are done")
    program.send(signal.SIGTERM)
    done = program.finish()
    assert done.code == 0, done
    assert "Traceback" not in done.err
    answers = Counter(file.read_text().split())
    assert len(answers) >= 5
    assert total() == 14
    assert by_process(conn) == answers
    assert total("imported") == 1  # the worker's own
