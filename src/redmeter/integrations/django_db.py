"""Times the statements that Django sends to its databases; installed in one line.

    from redmeter.integrations.django_db import install
    install()                           # in ready() of an AppConfig of yours

shared/databases.py describes the metrics. The wait is also added to the current request, so
`http_request_db_seconds` shows which routes are slow because of their queries.

Idea: Django runs each statement through the wrappers of its connection. New connections, one per
thread, get ours when they are created; existing connections of this thread get it at once. An
attribute of the connection times connecting, commit() and rollback(), which wrappers do not see.

Bound: one call per statement, no lock, no I/O. Only errors of the statement propagate; those of
this module are counted (`Meter.recorder_health()`).

Not done: a connection that another thread created before is not timed until it reconnects. Fetching
rows is not timed, which is where SQLite does its work.

Source: Django, "Database instrumentation"; BaseDatabaseWrapper, ConnectionHandler.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import connections  # type: ignore[import-untyped]
from django.db.backends.signals import connection_created  # type: ignore[import-untyped]
from django.db.transaction import TransactionManagementError  # type: ignore[import-untyped]

from redmeter import Meter
from redmeter.integrations.django import meter as project_meter
from redmeter.integrations.shared.databases import (
    Listener,
    StatementRecorder,
    enable,
    listen,
    stop_listening,
)
from redmeter.integrations.shared.interface import record_error

_installing = threading.Lock()


class _Wrapper:
    """Wraps the statements of connections, for one meter."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._queries = StatementRecorder(meter)
        #: The owner of this wrapper's listeners.
        self.place = f"django {id(meter):x}"
        #: Whether anything is recorded; connections of other threads keep a wrapper.
        self.on = True
        self._commit = _of_database(self._queries.commit)
        self._rollback = _of_database(self._queries.rollback)

    def __call__(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        """Execute a statement, and record it."""
        if not self.on:
            return execute(sql, params, many, context)
        began = time.perf_counter()
        try:
            result = execute(sql, params, many, context)
        except BaseException as error:
            self._took(sql, began, many=many, error=error)
            raise
        self._took(sql, began, many=many, error=None)
        return result

    def _took(self, sql: Any, began: float, *, many: bool, error: BaseException | None) -> None:
        # Some drivers accept objects that only a connection can convert to text.
        text = sql if isinstance(sql, str) else ""
        self._queries.took(text, time.perf_counter() - began, many=bool(many), error=error)

    def hang(self, connection: Any, **_: object) -> None:
        """Add this wrapper to a connection, unless it has it."""
        try:
            if not any(wrapper is self for wrapper in connection.execute_wrappers):
                connection.execute_wrappers.append(self)
            listen(connection, "connect", self.place, self._queries.connect, outer=True)
            listen(connection, "commit", self.place, self._commit)
            listen(connection, "rollback", self.place, self._rollback)
        except Exception as failure:  # noqa: BLE001 - connecting must not fail
            record_error(self.meter, "db", failure)


def _of_database(listener: Listener) -> Listener:
    """Return a listener that ignores calls which Django rejected without asking the database."""

    def heard(seconds: float, error: BaseException | None) -> None:
        if not isinstance(error, TransactionManagementError):
            listener(seconds, error)

    return heard


_wrappers: list[_Wrapper] = []


class _Making:
    """Replaces connections.create_connection(), to time the first connect() of each as well."""

    def __init__(self) -> None:
        self._create = connections.create_connection

    def __call__(self, alias: str) -> Any:
        connection = self._create(alias)
        for wrapper in _wrappers:
            wrapper.hang(connection)
        return connection


def install(meter: Meter | None = None) -> None:
    """Time the statements of all databases from now on.

    Called again for the same meter it does nothing.

    Args:
        meter: records the times. None: the project's meter.
    """
    chosen = project_meter() if meter is None else meter
    enable()
    with _installing:
        if any(wrapper.meter is chosen for wrapper in _wrappers):
            return
        wrapper = _Wrapper(chosen)
        _wrappers.append(wrapper)
        if not isinstance(vars(connections).get("create_connection"), _Making):
            connections.create_connection = _Making()
        connection_created.connect(wrapper.hang, weak=False)
        for connection in connections.all(initialized_only=True):
            wrapper.hang(connection)


def uninstall(meter: Meter | None = None) -> None:
    """Undo install(): nothing is recorded from now on.

    Args:
        meter: of which meter. None: of all.
    """
    with _installing:
        for wrapper in list(_wrappers):
            if meter is not None and wrapper.meter is not meter:
                continue
            _wrappers.remove(wrapper)
            wrapper.on = False
            connection_created.disconnect(wrapper.hang)
            stop_listening(wrapper.place)
            for connection in connections.all(initialized_only=True):
                if wrapper in connection.execute_wrappers:
                    connection.execute_wrappers.remove(wrapper)
        if not _wrappers and isinstance(vars(connections).get("create_connection"), _Making):
            del connections.create_connection
