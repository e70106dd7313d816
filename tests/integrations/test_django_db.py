"""Django's databases: statements are timed for all connections, in a project of their own."""

import json
from typing import Any

from support.programs import Programs

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
        "troubles": meter().recorder_health().troubles,
    }))

def names():
    from redmeter.reading.names import read_names
    return read_names(meter()._store, "*", "histogram")
"""


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


#: What is waited for without a statement.
WAITS = tuple(seconds(name) for name in ("(connect)", "COMMIT", "ROLLBACK"))


def statements(found: Any) -> dict[str, int]:
    """Return how often which statements were recorded."""
    return {name: count for name, count in found["counts"].items() if name not in WAITS}


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
connection.close()  # and reopened by the next query
assert ask("SELECT id FROM orders WHERE id IN (1, 2, 3)") == [(1,), (2,)]
ask("SELECT 1", using="archive")
thread = threading.Thread(target=lambda: (ask("SELECT 2"), connections.close_all()))
thread.start()
thread.join()
""",
    )
    assert statements(found) == {
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
    assert statements(found) == {seconds("SELECT nowhere"): 1}
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


SLOW = """
import sqlite3, time
from django.db import transaction
from redmeter.integrations.shared.databases import collect

class Slow(sqlite3.Connection):
    def commit(self):
        time.sleep(0.02)
        super().commit()
    def rollback(self):
        time.sleep(0.02)
        super().rollback()

def opened(*args, **kwargs):
    time.sleep(0.02)
    return sqlite3.connect(*args, factory=Slow, **kwargs)

class Database:
    def __getattr__(self, name):
        return opened if name == "connect" else getattr(sqlite3, name)

from django.db.backends.sqlite3 import base
base.Database = Database()

def spend(work):
    with collect() as spent:
        work()
    assert spent.seconds >= 0.02, spent.seconds

def create():
    ask("CREATE TABLE orders (id INT)")

def written():
    return ask("SELECT id FROM orders")

def write(fail=False):
    with transaction.atomic():
        ask("INSERT INTO orders VALUES (7)")
        if fail:
            raise LookupError

def fail():
    try:
        write(fail=True)
    except LookupError:
        pass
"""


def test_connecting_and_the_end_of_a_transaction_are_waited_for(programs: Programs) -> None:
    """By a thread that has no connection yet, and by one that has."""
    found = run(
        programs,
        SLOW
        + """
install()
spend(connection.ensure_connection)
create()
spend(write)
spend(fail)
thread = threading.Thread(target=lambda: (written(), connections.close_all()))
thread.start()
thread.join()
try:
    with transaction.atomic():
        connection.commit()
except transaction.TransactionManagementError:
    pass
assert len(written()) == 1
""",
    )
    waits = {name: found["counts"].get(name) for name in WAITS}
    assert waits == dict(zip(WAITS, (2, 1, 2), strict=True))
    assert found["errors"] == {}


def test_connections_are_as_they_were_once_nobody_watches(programs: Programs) -> None:
    """In this thread; in others, they pass through, and record nothing."""
    found = run(
        programs,
        """
ready, go = threading.Event(), threading.Event()

def elsewhere():
    ask("SELECT 2")
    ready.set()
    go.wait(10)
    ask("SELECT 3")
    connections.close_all()

from redmeter.integrations.django_db import uninstall
install()
thread = threading.Thread(target=elsewhere)
thread.start()
ready.wait(10)
uninstall(meter())
ask("CREATE TABLE orders (id INT)")
go.set()
thread.join()
assert {"connect", "commit", "rollback"}.isdisjoint(vars(connections["default"]))
assert connections["default"].execute_wrappers == []
assert "create_connection" not in vars(connections)
""",
    )
    assert found["counts"] == {seconds("SELECT"): 1, seconds("(connect)"): 1}
