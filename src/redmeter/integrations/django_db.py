"""Times the statements that Django sends to its databases: installed in one line.

    from redmeter.integrations.django_db import install
    install()                           # in ready() of an AppConfig of yours

What is recorded is told in queries.py. The request that is going on is told how long it waited
(see spent.py), so `http_request_db_seconds` says which pages are slow by their queries.

Idea: Django runs each statement through the wrappers of its connection. A connection gets ours when
it is made, each thread having its own, and those that this thread has already get it at once.

Bound: one call of this file for a statement, no lock, no I/O. Nothing raises but what the statement
raises: what goes wrong here is counted (`Meter.health()`).

Not done: a connection that another thread has made before is left alone until it is made anew. Time
in fetching rows and in COMMIT is not seen by wrappers.

Source: Django, "Database instrumentation".
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import connections  # type: ignore[import-untyped]
from django.db.backends.signals import connection_created  # type: ignore[import-untyped]

from redmeter import Meter
from redmeter.integrations.django import meter as project_meter
from redmeter.integrations.hooks import trouble
from redmeter.integrations.queries import Queries
from redmeter.integrations.spent import tell

_installing = threading.Lock()


class _Wrapper:
    """Stands around the statements of connections, for one meter."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._queries = Queries(meter)

    def __call__(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        """Execute a statement, and record it."""
        began = time.perf_counter()
        try:
            result = execute(sql, params, many, context)
        except BaseException as error:
            self._took(sql, began, many=many, error=error)
            raise
        self._took(sql, began, many=many, error=None)
        return result

    def _took(self, sql: Any, began: float, *, many: bool, error: BaseException | None) -> None:
        # Some drivers take objects in place of texts, which only a connection makes one of.
        text = sql if isinstance(sql, str) else ""
        self._queries.took(text, time.perf_counter() - began, many=bool(many), error=error)

    def hang(self, connection: Any, **_: object) -> None:
        """Hang it into a connection, unless it hangs there."""
        try:
            if not any(wrapper is self for wrapper in connection.execute_wrappers):
                connection.execute_wrappers.append(self)
        except Exception as failure:  # noqa: BLE001 - a connection must come to be all the same
            trouble(self.meter, "db", failure)


_wrappers: list[_Wrapper] = []


def install(meter: Meter | None = None) -> None:
    """Time the statements of all databases from now on; once more it does nothing.

    Args:
        meter: where to. None: the project's, as its settings say.
    """
    chosen = project_meter() if meter is None else meter
    tell()
    with _installing:
        if any(wrapper.meter is chosen for wrapper in _wrappers):
            return
        wrapper = _Wrapper(chosen)
        _wrappers.append(wrapper)
        connection_created.connect(wrapper.hang, weak=False)
        for connection in connections.all(initialized_only=True):
            wrapper.hang(connection)
