"""Applications under uvicorn, gunicorn and waitress: what is stored is what was answered.

Flush intervals are long, so what is stored was stored because a process ended, in good order.
"""

import http.client
import os
import signal
import time
from typing import Any

import pytest

from support.applications import DJANGO, FLASK, ROUTES
from support.load import Load, end
from support.programs import Programs
from support.servers import free_port
from support.serving import (
    Served,
    django_in_uvicorn,
    gunicorn,
    stored,
    uvicorn,
    waitress,
    waitress_from_env,
)
from support.waiting import eventually

pytestmark = pytest.mark.slow

#: Workers come and go.
REPLACED = ("--max-requests", "40")


@pytest.mark.parametrize(
    ("served", "requests", "workers"),
    [
        # The nightly ones differ from others, and from tests/faults/processes, in one thing alone.
        pytest.param(uvicorn(1), 60, 1, id="uvicorn, 1 worker", marks=pytest.mark.nightly),
        pytest.param(uvicorn(2), 60, 2, id="uvicorn, 2 workers"),
        pytest.param(django_in_uvicorn(), 60, 2, id="uvicorn, django"),
        pytest.param(gunicorn(*REPLACED), 60, 3, id="gunicorn", marks=pytest.mark.nightly),
        pytest.param(gunicorn("--preload", *REPLACED), 60, 3, id="gunicorn, preload"),
        pytest.param(gunicorn("--threads", "4", *REPLACED), 60, 3, id="gunicorn, threads"),
        pytest.param(gunicorn("--worker-class", "gevent", *REPLACED), 60, 3, id="gunicorn, gevent"),
        pytest.param(
            gunicorn("--threads", "4", *REPLACED, code=DJANGO),
            *(60, 3),
            id="gunicorn, django",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_server_stores_every_request_that_it_answered(
    programs: Programs, conn: Any, served: Served, requests: int, workers: int
) -> None:
    """By route and status, over all workers, though it is ended while requests come in."""
    port = free_port()
    program = served.start(programs, port)
    with Load(port, list(served.routes)) as load:
        load.until(program, requests, workers)
        end(program, load)
    assert stored(conn) == served.answered(load)
    assert int(conn.hget("redmeter:total:", "hits")) == len(load.answered)
    assert len(stored(conn)) == len(served.routes)


@pytest.mark.parametrize("code", [FLASK, DJANGO], ids=["flask", "django"])
def test_no_header_of_a_client_becomes_a_route(programs: Programs, conn: Any, code: str) -> None:
    """gunicorn takes from one where the application is mounted; version 22 where it is told to."""
    port = free_port()
    program = gunicorn("--header-map", "dangerous", code=code).start(programs, port)

    def asked(mount: str) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", f"{mount}/users/7", headers={"SCRIPT_NAME": mount})
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    eventually(lambda: asked("/first"), 20.0, "it answers")
    assert all(asked(f"/secret{number}") for number in range(3))
    program.send(signal.SIGTERM)
    assert program.finish(20.0).code == 0
    assert stored(conn) == {(ROUTES["/users/7"], "2xx"): 4}


@pytest.mark.parametrize(
    "served", [waitress(), waitress_from_env()], ids=["by the application", "from_env"]
)
def test_waitress_stores_every_request_that_it_answered(
    programs: Programs, conn: Any, served: Served
) -> None:
    """It does not handle SIGTERM; the meter flushes then."""
    port = free_port()
    program = served.start(programs, port)
    with Load(port, list(served.routes)) as load:
        load.until(program, 60)
        load.stop()
        time.sleep(0.2)  # a response is recorded when it is closed, which is after it was sent
        end(program, load)
    assert stored(conn) == served.answered(load)


@pytest.mark.parametrize(
    ("served", "requests"),
    [
        pytest.param(uvicorn(2), 60, id="uvicorn"),
        pytest.param(gunicorn(), 30, id="gunicorn"),
        pytest.param(
            gunicorn("--worker-class", "gevent", "--preload"),
            30,
            id="gunicorn, gevent",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_workers_that_are_replaced_store_what_they_answered(
    programs: Programs, conn: Any, served: Served, requests: int
) -> None:
    """By SIGHUP, one after the other or all at once, while requests come in."""
    port = free_port()
    program = served.start(programs, port)
    with Load(port, list(served.routes)) as load:
        load.until(program, requests, 2)
        program.send(signal.SIGHUP)
        load.until(program, 60, 4)
        end(program, load)
    assert len(load.bodies()) == 4
    assert stored(conn) == served.answered(load)


@pytest.mark.parametrize("served", [uvicorn(2), gunicorn()], ids=["uvicorn", "gunicorn"])
def test_a_worker_that_is_killed_loses_an_interval_of_its_own(
    programs: Programs, conn: Any, served: Served
) -> None:
    """All that it had answered before is stored, and all of the other worker."""
    port, interval = free_port(), 0.3
    program = served.start(programs, port, REDMETER_FLUSH_INTERVAL=str(interval))
    with Load(port, ["/users/7"]) as load:
        load.until(program, 100, 2)
        eventually(lambda: stored(conn).total() > 0, 5.0, "a flush")
        victim = load.answered[-1].body
        os.kill(int(victim), signal.SIGKILL)
        load.until(program, len(load.answered) + 50)
        end(program, load)
    own = [each.time for each in load.answered if each.body == victim]
    # A flush takes a moment, and the machine may be busy.
    risked = sum(time > own[-1] - interval - 0.5 for time in own)
    lost = len(load.answered) - stored(conn).total()
    # Three at most were counted whose answers never came.
    assert -3 <= lost <= risked
