"""SQLAlchemy: statements are timed, whatever becomes of them, and nothing of them changes."""

import asyncio
import gc
import sqlite3
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import StaticPool
from sqlalchemy.util import greenlet_spawn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from redmeter.integrations.asgi import RedmeterMiddleware
from redmeter.integrations.shared import meters
from redmeter.integrations.shared.databases import GROUPS, TEXTS, StatementRecorder, collect
from redmeter.integrations.sqlalchemy import install, uninstall
from redmeter.testing import ManualClock, MemoryMeter

ORDERS = sa.Table(
    "orders",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("note", sa.String, unique=True),
)
#: Counts to a number, in the database.
LONG = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
SELECT count(*) FROM n
"""


def made() -> sa.Engine:
    """Return an engine on a database in memory, with a table."""
    engine = sa.create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )
    ORDERS.metadata.create_all(engine)
    return engine


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    """An engine that is not watched yet; no engine is afterwards."""
    engine = made()
    yield engine
    uninstall()
    engine.dispose()


def seconds(statement: str) -> str:
    """Return the name of the series of a statement."""
    return f'db_query_seconds{{statement="{statement}"}}'


#: What is waited for without a statement, by what it is called here.
WAITS = {seconds(name): name for name in ("(connect)", "COMMIT", "ROLLBACK")}


def recorded(memory: MemoryMeter) -> Counter[str]:
    """Return which series were recorded how often, those of statements alone."""
    return Counter(each.series for each in memory.events if each.series not in WAITS)


def waited(memory: MemoryMeter) -> Counter[str]:
    """Return how often what was waited for without a statement."""
    return Counter(WAITS[each.series] for each in memory.events if each.series in WAITS)


def test_statements_are_timed_by_what_groups_them(engine: sa.Engine, memory: MemoryMeter) -> None:
    """However many values are asked for."""
    install(engine, memory)
    with engine.connect() as connection:
        for values in (["a"], ["a", "b"]):
            connection.execute(sa.select(ORDERS).where(ORDERS.c.note.in_(values))).all()
        connection.execute(sa.text(LONG)).all()
    assert recorded(memory) == {
        seconds("SELECT orders WHERE note"): 2,
        seconds("WITH n SELECT SELECT n WHERE i SELECT n"): 1,
    }
    observed = {e.series: e.observed or 0.0 for e in memory.events if e.series not in WAITS}
    quick, long = observed.values()
    assert 0 < quick < long < 10
    assert memory.recorder_health().troubles == {}


def test_a_statement_for_many_rows_is_told_apart(engine: sa.Engine, memory: MemoryMeter) -> None:
    """Each batch that goes to the database is timed."""
    install(engine, memory)
    with engine.begin() as connection:
        connection.execute(ORDERS.insert(), [{"note": "a"}, {"note": "b"}])
        connection.execute(ORDERS.insert(), [{"note": "c"}])
        rows = [{"note": str(number)} for number in range(2500)]
        connection.execute(ORDERS.insert().returning(ORDERS.c.id), rows).all()
    found = recorded(memory)
    assert found.pop(seconds("INSERT orders")) == 1  # a list of one is for one
    assert found.pop(seconds("INSERT orders (many)")) >= 1 + 3
    assert not found


@pytest.mark.parametrize("values", [["QZ"], ["QZ 1", "QZ)]\n2"], [f"QZ{n}" for n in range(99)]])
def test_values_of_a_statement_that_fails_are_not_stored(
    engine: sa.Engine, memory: MemoryMeter, values: list[str]
) -> None:
    """The statement is, and what the database said; by log() as by logging the error's text."""
    many = [{"id": 1, "note": value} for value in values]
    with engine.begin() as connection:
        connection.execute(ORDERS.insert(), {"id": 1, "note": "a"})
        with pytest.raises(sa.exc.IntegrityError) as raised:
            connection.execute(ORDERS.insert(), many if len(many) > 1 else many[0])
    assert "QZ" in str(raised.value)
    memory.log("shop", "failed", exception=raised.value)
    memory.log("shop", f"failed: {raised.value}")
    memory.log("shop", "failed: %s", repr(str(raised.value)))
    for text in [each.message.text for each in memory.messages]:
        assert "UNIQUE constraint failed: orders.id" in text
        assert "[SQL: INSERT INTO orders (id, note) VALUES (?, ?)]" in text
        assert "[parameters: ***]" in text
        assert "(Background on this error at: " in text
    assert "QZ" not in repr(memory.messages)


def test_a_statement_that_fails_is_timed_and_counted(
    engine: sa.Engine, memory: MemoryMeter
) -> None:
    """The error is what it was; the connection goes on."""
    install(engine, memory)
    with engine.connect() as connection:
        connection.execute(ORDERS.insert().values(note="a"))
        with pytest.raises(sa.exc.IntegrityError):
            connection.execute(ORDERS.insert().values(note="a"))
        with pytest.raises(sa.exc.OperationalError, match="no such table"):
            connection.execute(sa.text("SELECT * FROM nowhere"))
        connection.execute(sa.select(ORDERS)).all()
    assert recorded(memory) == {
        seconds("INSERT orders"): 2,
        'db_errors{error="IntegrityError",statement="INSERT orders"}': 1,
        seconds("SELECT nowhere"): 1,
        'db_errors{error="OperationalError",statement="SELECT nowhere"}': 1,
        seconds("SELECT orders"): 1,
    }


def test_an_engine_is_watched_once_however_often_it_is_asked_for(
    engine: sa.Engine, memory: MemoryMeter
) -> None:
    """Also by another name of it, and by an engine that shares its events."""
    optioned = engine.execution_options(isolation_level="AUTOCOMMIT")
    for each in (engine, engine, optioned):
        install(each, memory)
    for each in (engine, optioned):
        with each.connect() as connection:
            connection.execute(sa.select(ORDERS))
    assert recorded(memory) == {seconds("SELECT orders"): 2}


def test_several_engines_and_several_meters_do_not_meet(
    engine: sa.Engine, memory: MemoryMeter
) -> None:
    """Each meter has what its engines did."""
    other, second = made(), MemoryMeter()
    for each, meter in ((engine, memory), (other, memory), (other, second)):
        install(each, meter)
    for each in (engine, other):
        with each.connect() as connection:
            connection.execute(sa.select(ORDERS))
    assert (recorded(memory).total(), recorded(second).total()) == (2, 1)
    other.dispose()


def test_the_class_of_all_engines_can_be_watched(engine: sa.Engine, memory: MemoryMeter) -> None:
    """Then one of them is watched already; of one, all but what its first connection waits for."""
    install(sa.Engine, memory)
    install(engine, memory)
    for _ in range(2):
        with engine.connect() as connection:
            connection.execute(sa.select(ORDERS))
    assert recorded(memory) == {seconds("SELECT orders"): 2}
    assert waited(memory) == {"(connect)": 1, "ROLLBACK": 2}


async def _asynchronously(engine: sa.Engine) -> float:
    def work() -> None:
        with engine.connect() as connection:
            connection.execute(sa.text(LONG))

    with collect() as spent:
        await greenlet_spawn(work)
    return spent.seconds


def test_an_asynchronous_engine_is_watched_where_it_works(memory: MemoryMeter) -> None:
    """In a greenlet of SQLAlchemy's, which shares the context."""
    engine = made()
    engine.dialect.is_async = True  # there is no driver for it here
    install(AsyncEngine(engine), memory)
    assert asyncio.run(_asynchronously(engine)) > 0
    assert recorded(memory).total() == 1
    assert waited(memory) == {"(connect)": 1, "ROLLBACK": 1}
    engine.dialect.is_async = False
    engine.dispose()


class Slow(sqlite3.Connection):
    """A connection whose transactions take their time to end."""

    def commit(self) -> None:
        """Commit, after 20 ms."""
        time.sleep(0.02)
        super().commit()

    def rollback(self) -> None:
        """Roll back, after 20 ms."""
        time.sleep(0.02)
        super().rollback()


def pooled(folder: Path, **options: Any) -> sa.Engine:
    """Return an engine that has one slow connection."""
    options["connect_args"] = {"factory": Slow, "check_same_thread": False}
    return sa.create_engine(
        f"sqlite:///{folder}/shop.sqlite3", pool_size=1, max_overflow=0, **options
    )


def test_the_end_of_a_transaction_is_waited_for(tmp_path: Path, memory: MemoryMeter) -> None:
    """By the request that is going on, whether it commits or reads only."""
    engine = pooled(tmp_path)
    ORDERS.metadata.create_all(engine)
    install(engine, memory)
    with collect() as spent, engine.begin() as connection:
        connection.execute(ORDERS.insert().values(note="a"))
    assert spent.seconds >= 0.02
    with collect() as spent, engine.connect() as connection:
        connection.execute(sa.select(ORDERS)).all()
    assert spent.seconds >= 0.02
    # What comes back to a pool is rolled back, whatever it did.
    assert waited(memory) == {"(connect)": 2, "COMMIT": 1, "ROLLBACK": 2}
    engine.dispose()


def test_a_connection_of_the_pool_is_waited_for(tmp_path: Path, memory: MemoryMeter) -> None:
    """Until there is one, or the time is up: an error as any other."""
    engine = pooled(tmp_path, pool_timeout=0.05)
    install(engine, memory)
    with engine.connect(), collect() as spent:
        with pytest.raises(sa.exc.TimeoutError, match="QueuePool limit"):
            engine.connect()
        assert spent.seconds >= 0.05
    assert recorded(memory) == {'db_errors{error="TimeoutError",statement="(connect)"}': 1}
    assert waited(memory)["(connect)"] == 2
    engine.dispose()


def test_what_opening_a_connection_does_is_a_part_of_it(
    tmp_path: Path, memory: MemoryMeter
) -> None:
    """The first one of an engine rolls back after it has asked for the version."""
    engine = pooled(tmp_path)
    install(engine, memory)
    with engine.connect():
        assert waited(memory) == {"(connect)": 1}
    engine.dispose()


def test_a_commit_that_fails_is_counted(tmp_path: Path, memory: MemoryMeter) -> None:
    """The error is what it was."""
    engine = pooled(tmp_path)
    install(engine, memory)
    deferred = "CREATE TABLE b (a REFERENCES a(id) DEFERRABLE INITIALLY DEFERRED)"
    with engine.connect() as connection:
        for text in ("PRAGMA foreign_keys=on", "CREATE TABLE a (id INTEGER PRIMARY KEY)", deferred):
            connection.exec_driver_sql(text)
        connection.exec_driver_sql("INSERT INTO b VALUES (7)")
        with pytest.raises(sa.exc.IntegrityError, match="FOREIGN KEY"):
            connection.commit()
    assert 'db_errors{error="IntegrityError",statement="COMMIT"}' in recorded(memory)
    assert waited(memory)["COMMIT"] == 1
    engine.dispose()


def test_a_pool_in_place_of_another_one_is_watched(tmp_path: Path, memory: MemoryMeter) -> None:
    """As dispose() makes it."""
    engine = pooled(tmp_path)
    install(engine, memory)
    for _ in range(2):
        engine.connect().close()
        engine.dispose()
    assert waited(memory)["(connect)"] == 2


def test_engines_are_as_they_were_once_nobody_watches(engine: sa.Engine) -> None:
    """Whoever came first leaves first; the other one goes on."""
    first, second = MemoryMeter(), MemoryMeter()
    install(engine, first)
    install(engine, second)
    for leaving, counts in ((first, (0, 4)), (None, (0, 0))):
        uninstall(leaving)
        first.forget()
        second.forget()
        with engine.connect() as connection:
            connection.execute(sa.select(ORDERS))
            connection.commit()
        assert (len(first.events), len(second.events)) == counts
    assert {"connect", "do_commit", "do_rollback"}.isdisjoint(
        vars(engine.pool) | vars(engine.dialect)
    )


def test_what_somebody_else_put_there_stays(engine: sa.Engine, memory: MemoryMeter) -> None:
    """Before ours, and behind it."""
    called: list[str] = []

    def put(name: str) -> Any:
        inner = engine.dialect.do_commit

        def outer(connection: Any) -> None:
            called.append(name)
            inner(connection)

        engine.dialect.do_commit = outer  # type: ignore[method-assign, assignment]
        return outer

    behind = put("behind")
    install(engine, memory)
    before = put("before")
    engine.dispose()  # asks again
    for expected in (1, 1):
        with engine.begin() as connection:
            connection.execute(sa.text("SELECT 7"))
        assert waited(memory)["COMMIT"] == expected
        uninstall()
    assert called == ["before", "behind"] * 2
    assert engine.dialect.do_commit is before is not behind


def test_a_watched_engine_can_be_forgotten(memory: MemoryMeter) -> None:
    """Nothing of ours holds it."""
    engine = made()
    install(engine, memory)
    gone = weakref.ref(engine)
    engine.dispose()
    del engine
    gc.collect()
    assert gone() is None


def test_nothing_that_goes_wrong_here_reaches_the_application(
    engine: sa.Engine, memory: MemoryMeter, monkeypatch: Any
) -> None:
    """It is counted."""
    install(engine, memory)

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of ours")

    with monkeypatch.context() as patch, engine.connect() as connection:
        patch.setattr(StatementRecorder, "_found", fail)
        assert connection.execute(sa.text("SELECT 7")).scalar() == 7
    assert memory.recorder_health().troubles == {"db": 1}
    assert memory.recorder_health().last_trouble == "db: ZeroDivisionError: of ours"


def test_a_meter_is_made_where_none_is_given(engine: sa.Engine, monkeypatch: Any) -> None:
    """One for all hooks of the process; where it cannot be made, the log says so."""
    monkeypatch.setattr(meters, "_held", set())
    monkeypatch.setenv("REDMETER_URL", "http://nowhere")
    install(engine)
    assert meters._held == set()
    monkeypatch.setenv("REDMETER_URL", "off")
    install(engine)
    (meter,) = meters._held
    assert meters.meter_for(None, "") is meter
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT 7")).scalar() == 7


def test_groups_and_texts_are_bounded(memory: MemoryMeter) -> None:
    """Whoever writes values into names of tables gets one group for all further ones."""
    queries = StatementRecorder(memory)
    for number in range(TEXTS + 100):
        queries.took(f"UPDATE table_{number}", 0.1, many=False, error=None)
    found = recorded(memory)
    assert len(found) == GROUPS + 1
    assert found[seconds("(other)")] == TEXTS + 100 - GROUPS
    assert len(queries._known) == TEXTS
    assert memory.recorder_health().troubles == {}


def _client_of(app: Any) -> Any:
    """Return what asks an application."""
    import httpx

    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop")


def test_a_request_that_waits_for_the_database_is_seen_as_such(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """End to end: a page that is slow by its query, one that is slow by itself, one without."""
    clock = ManualClock()
    for module in ("sqlalchemy", "shared.databases"):
        monkeypatch.setattr(f"redmeter.integrations.{module}.perf_counter", clock.monotonic)
    meter = MemoryMeter(clock=clock)
    install(engine, meter)
    with engine.connect() as connection:
        connection.connection.create_function("pass_time", 1, clock.advance)

    def report(request: Request) -> Response:  # in a thread
        with engine.connect() as connection:
            connection.execute(sa.text("SELECT pass_time(3)"))
        clock.advance(1)
        return PlainTextResponse("report")

    def page(request: Request) -> Response:
        with engine.connect() as connection:
            connection.execute(sa.text("SELECT pass_time(1)"))
        clock.advance(3)
        return PlainTextResponse("page")

    async def plain(request: Request) -> Response:
        return PlainTextResponse("plain")

    shop = Starlette(
        routes=[Route("/report/{day}", report), Route("/page", page), Route("/plain", plain)]
    )
    app = RedmeterMiddleware(shop, meter)

    async def ask() -> None:
        async with _client_of(app) as client:
            for path in ("/report/today", "/page", "/plain", "/report/never"):
                assert (await client.get(path)).status_code == 200

    asyncio.run(ask())
    labels = {"method": "GET", "route": "/report/{day}"}
    took = meter.observed("http_request_seconds", labels=labels)
    waited = meter.observed("http_request_db_seconds", labels=labels)
    ratios = meter.observed("http_request_db_ratio", labels=labels)
    assert len(waited) == 2
    assert meter.total("db_queries", labels={"route": "/report/{day}"}) == 2
    assert took == pytest.approx([4, 4])
    assert waited == pytest.approx([3, 3])
    assert ratios == pytest.approx([0.75, 0.75])
    (ratio,) = meter.observed("http_request_db_ratio", labels={"method": "GET", "route": "/page"})
    assert ratio == pytest.approx(0.25)
    assert not any("db" in e.series and "/plain" in e.series for e in meter.events)
    assert meter.recorder_health().troubles == {}
