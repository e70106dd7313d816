"""Django's databases: statements are timed for all connections, in a project of their own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.programs import Programs
from support.servers import Server

PROJECT = """
import json, threading
import django
from django.conf import settings
settings.configure(
    SECRET_KEY="x",
    ALLOWED_HOSTS=["testserver"],
    ROOT_URLCONF="__main__",
    MIDDLEWARE=["redmeter.integrations.django.RedmeterMiddleware"],
    DATABASES={
        name: {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{name}.sqlite3"}
        for name in ("default", "archive")
    },
    REDMETER_URL=URL,
    USE_TZ=True,
)
django.setup()
from django.db import connection, connections
from django.http import HttpResponse
from django.test import Client
from django.urls import path
from redmeter.integrations.django import meter
from redmeter.integrations.django_db import install

LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<200000) "

def report(request, day):
    with connection.cursor() as cursor:
        cursor.execute(LONG + "SELECT count(*) FROM n")
        return HttpResponse(str(cursor.fetchone()[0]))

def plain(request):
    return HttpResponse("plain")

urlpatterns = [path("report/<int:day>/", report), path("plain/", plain)]

def ask(sql, using="default", many=None):
    with connections[using].cursor() as cursor:
        cursor.executemany(sql, many) if many else cursor.execute(sql)
        return cursor.fetchall() if sql.startswith("SELECT") else None

def end():
    meter().flush()
    print(json.dumps({
        "counts": {
            name: meter().summary(name, precision=60).count
            for name in meter()._store and names()
        },
        "errors": {name: meter().total(name) for name in meter().names("db_errors*")},
        "troubles": meter().health().troubles,
    }))

def names():
    from redmeter.reading.catalogue import read_names
    return read_names(meter()._store, "*", histograms=True)
"""


@pytest.fixture
def programs(server: Server, tmp_path: Path) -> Iterator[Programs]:
    """Starts programs that are given the address of `server`."""
    with Programs(tmp_path, server.url) as programs:
        yield programs


def run(programs: Programs, code: str) -> Any:
    """Run a project; return what it recorded."""
    done = programs.run(PROJECT + code + "\nend()\n")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["troubles"] == {}
    return found


def seconds(statement: str) -> str:
    """Return the name of the series of a statement."""
    return f'db_query_seconds{{statement="{statement}"}}'


def test_statements_of_all_connections_are_timed(programs: Programs) -> None:
    """Of several databases, in threads, and of connections that were there before."""
    found = run(
        programs,
        """
ask("CREATE TABLE orders (id INT PRIMARY KEY)")
install()
install()
install(meter())
ask("INSERT INTO orders VALUES (%s)", many=[[1], [2]])
connection.close()  # and made anew with what comes next
assert ask("SELECT id FROM orders WHERE id IN (1, 2, 3)") == [(1,), (2,)]
ask("SELECT 1", using="archive")
thread = threading.Thread(target=lambda: (ask("SELECT 2"), connections.close_all()))
thread.start()
thread.join()
""",
    )
    assert found["counts"] == {
        seconds("INSERT orders (many)"): 1,
        seconds("SELECT orders WHERE id"): 1,
        seconds("SELECT"): 2,
    }


def test_a_statement_that_fails_is_timed_and_counted(programs: Programs) -> None:
    """The error is Django's, as ever."""
    found = run(
        programs,
        """
from django.db import OperationalError
install()
try:
    ask("SELECT * FROM nowhere")
except OperationalError as error:
    assert "no such table" in str(error)
else:
    raise AssertionError
""",
    )
    assert found["counts"] == {seconds("SELECT nowhere"): 1}
    error = 'db_errors{error="OperationalError",statement="SELECT nowhere"}'
    assert found["errors"] == {error: 1}


def test_a_request_that_waits_for_the_database_is_seen_as_such(programs: Programs) -> None:
    """By its route; a request without a database has nothing of the kind."""
    found = run(
        programs,
        """
install()
client = Client()
for path in ("/report/1/", "/report/2/", "/plain/"):
    assert client.get(path).status_code == 200
meter().flush()
labels = {"method": "GET", "route": "/report/{day}/"}
ratio = meter().summary("http_request_db_ratio", precision=60, labels=labels)
assert ratio.low > 0.5, ratio
""",
    )
    counts = {name: count for name, count in found["counts"].items() if "http_request_db" in name}
    assert counts == {
        f'http_request_db_{kind}{{method="GET",route="/report/{{day}}/"}}': 2
        for kind in ("seconds", "ratio")
    }
