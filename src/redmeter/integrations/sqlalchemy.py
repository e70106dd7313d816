"""Times the statements that SQLAlchemy sends to a database; installed in one line.

    from redmeter.integrations.sqlalchemy import install
    install(engine)

    db_query_seconds{statement}         durations of statements, by group
    db_errors{statement,error}          failed statements, by the driver's error

analysis/text/statements.py groups statements: `SELECT orders JOIN users WHERE status`. Those with
many rows of parameters are marked `(many)`. The wait is also added to the current request or task,
so `http_request_db_seconds` shows which routes are slow because of their queries.

Problem: a request may wait longer for a connection of the pool, or for COMMIT, than for all of its
statements, and SQLAlchemy's events do not report how long. Two methods of each engine's
dialect and one of its pool are therefore timed, also of a pool that dispose() puts in its place.

Bound: two calls per statement, one per connection and end of a transaction; no lock, no I/O.
Nothing raises: errors of this module are counted (`Meter.recorder_health()`).

Not done: fetching rows is not timed, since that would slow each row. A driver that computes rows as
they are fetched, such as sqlite3, is timed up to its first row. Two-phase transactions are timed by
their statements only. If the class Engine is given, the first connection of each engine is not
timed, nor is a commit before it, because the engine is not known earlier.

Source: SQLAlchemy, "Core Events", ConnectionEvents; Pool.connect(), Dialect.do_commit().
"""

import threading
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import event

from redmeter import Meter
from redmeter.integrations.shared.databases import StatementRecorder, enable, listen, stop_listening
from redmeter.integrations.shared.interface import record_error
from redmeter.integrations.shared.meters import meter_for

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

_installing = threading.Lock()


class _Watch:
    """The listeners of one meter on an engine."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._queries = StatementRecorder(meter)
        #: The owner of these listeners. Also the attribute of an execution context that holds the
        #: time at which its statement began. The listener that removes the attribute records, so
        #: that two engines that share events record once.
        self.place = f"_redmeter_{id(meter):x}"

    def hang(self, engine: Any) -> None:
        """Time the engine's waits without a statement, unless they are timed already."""
        queries = self._queries
        try:
            listen(engine.pool, "connect", self.place, queries.connect, outer=True)
            listen(engine.dialect, "do_commit", self.place, queries.commit)
            listen(engine.dialect, "do_rollback", self.place, queries.rollback)
        except Exception as failure:  # noqa: BLE001 - a pool or dialect of an unknown class
            record_error(self.meter, "db", failure)

    def connected(self, conn: Any) -> None:
        """Time the engine of a new connection, see hang()."""
        self.hang(conn.engine)

    def events(self, target: Any) -> list[tuple[str, Callable[..., Any], bool]]:
        """Return the listeners of an engine or the class: event, function, whether it returns."""
        listeners: list[tuple[str, Callable[..., Any], bool]] = [
            ("before_cursor_execute", self.before, True),
            ("after_cursor_execute", self.after, False),
            ("handle_error", self.failed, False),
            ("engine_disposed", self.hang, False),
        ]
        if isinstance(target, type):
            listeners.append(("engine_connect", self.connected, False))
        return listeners

    def before(
        self, conn: Any, _cursor: Any, statement: Any, parameters: Any, context: Any, _many: Any
    ) -> tuple[Any, Any]:
        """Note the time at which a statement begins; return it unchanged."""
        try:
            place = conn.info if context is None else context.__dict__
            place[self.place] = perf_counter()
        except Exception as failure:  # noqa: BLE001 - timing a query must not make it fail
            record_error(self.meter, "db", failure)
        return statement, parameters

    def after(
        self, conn: Any, _cursor: Any, statement: Any, _parameters: Any, context: Any, many: Any
    ) -> None:
        """Record a statement that was executed."""
        self._ended(conn, context, statement, many=bool(many), error=None)

    def failed(self, context: Any) -> None:
        """Record a statement that failed; the error propagates."""
        if context.connection is not None and context.statement is not None:
            execution, error = context.execution_context, context.original_exception
            many = bool(getattr(execution, "executemany", False))
            self._ended(context.connection, execution, context.statement, many=many, error=error)

    def _ended(
        self, conn: Any, execution: Any, sql: Any, *, many: bool, error: BaseException | None
    ) -> None:
        now = perf_counter()
        try:
            place = conn.info if execution is None else execution.__dict__
            began = place.pop(self.place, None)
        except Exception:  # noqa: BLE001 - the connection was lost, and is closed
            began = None
        if began is not None:
            text = sql if type(sql) is str else ""
            self._queries.took(text, now - began, many=many, error=error)


#: Engines, or the class Engine, and their listeners.
_watches: list[tuple["weakref.ref[Any]", _Watch]] = []


def install(engine: "Engine | AsyncEngine | type[Engine]", meter: Meter | None = None) -> None:
    """Time the statements of an engine from now on.

    Called again for the same engine and meter it does nothing.

    Args:
        engine: the result of create_engine() or create_async_engine(); or the class
            sqlalchemy.Engine, for all present and future engines.
        meter: records the times. None: a Meter by the environment's settings.
    """
    chosen = meter_for(meter, "statements are not measured")
    if chosen is None:
        return
    target = getattr(engine, "sync_engine", engine)
    enable()
    with _installing:
        _watches[:] = [(ref, watch) for ref, watch in _watches if ref() is not None]
        if any(watch.meter is chosen and _covers(ref(), target) for ref, watch in _watches):
            return
        watch = _Watch(chosen)
        for name, function, returns in watch.events(target):
            event.listen(target, name, function, **({"retval": True} if returns else {}))
        if not isinstance(target, type):
            watch.hang(target)
        _watches.append((weakref.ref(target), watch))


def uninstall(meter: Meter | None = None) -> None:
    """Undo install(): restore the engines.

    Args:
        meter: of which meter. None: of all.
    """
    with _installing:
        kept = []
        for ref, watch in _watches:
            target = ref()
            if meter is not None and watch.meter is not meter:
                kept.append((ref, watch))
                continue
            stop_listening(watch.place)
            if target is not None:
                for name, function, _ in watch.events(target):
                    event.remove(target, name, function)
        _watches[:] = kept


def _covers(other: Any, target: Any) -> bool:
    return other is target or (isinstance(other, type) and isinstance(target, other))
