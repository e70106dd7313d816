"""Statements that an application sends to a database, whichever library sends them.

    db_query_seconds{statement}         durations, by group
    db_errors{statement,error}          failures, by type of the error
    db_queries{route,statement}         executions by route, or by task: see callers.py

analysis/text/statements.py groups statements; `(many)` marks those executed for many rows at once,
since the duration covers all rows. Waits without a statement are named `COMMIT`, `ROLLBACK` and
`(connect)`: for a new connection, or one of the pool.

Bound: a look-up by the hash of the text, 2,000 of which are cached, and two appends. 200 groups are
distinguished; further ones are `(other)`.
"""

from collections.abc import Callable

from redmeter import Meter
from redmeter.analysis.text.statements import statement_of
from redmeter.integrations.hooks import Names, record_error
from redmeter.integrations.spent import DATABASE, spend
from redmeter.integrations.waits import Listener, waiting
from redmeter.names import DB_ERRORS as ERRORS
from redmeter.names import DB_QUERY_SECONDS as SECONDS

#: Groups of statements that are distinguished.
GROUPS = 200
#: Texts of statements whose groups are cached, by their hashes.
TEXTS = 2000
#: Marks statements that were executed for many rows at once.
MANY = " (many)"
#: Waits without a statement.
CONNECT, COMMIT, ROLLBACK = "(connect)", "COMMIT", "ROLLBACK"


class Queries:
    """Records statements, whichever library sends them.

    Args:
        meter: records the durations and errors.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._group = Names(statement_of, GROUPS)
        #: (hash of a text, whether it was for many rows) -> group, histogram's observe().
        self._known: dict[tuple[int, bool], tuple[str, Callable[[float], None]]] = {}

    def took(self, sql: str, seconds: float, *, many: bool, error: BaseException | None) -> None:
        """Record that a statement was executed. Never raises.

        Args:
            sql: its text.
            seconds: how long it took.
            many: whether it was executed for many sets of parameters.
            error: why it failed; None: it succeeded.
        """
        try:
            name, observe = self._known.get((hash(sql), many)) or self._found(sql, many)
            if not waiting():
                spend(DATABASE, seconds, 1, name)
            observe(seconds)
            if error is not None:
                self._failed(name, error)
        except Exception as failure:  # noqa: BLE001 - timing a query must not make it fail
            record_error(self._meter, "db", failure)

    def waits(self, name: str) -> Listener:
        """Return a listener that records waits without a statement, e.g. COMMIT. Never raises."""
        observe: Callable[[float], None] | None = None

        def waited(seconds: float, error: BaseException | None) -> None:
            nonlocal observe
            try:
                if observe is None:
                    observe = self._meter.histogram(SECONDS, labels={"statement": name}).observe
                observe(seconds)
                if error is not None:
                    self._failed(name, error)
            except Exception as failure:  # noqa: BLE001 - see took()
                record_error(self._meter, "db", failure)

        return waited

    def _failed(self, name: str, error: BaseException) -> None:
        labels = {"statement": name, "error": type(error).__name__[:40]}
        self._meter.count(ERRORS, labels=labels)

    def _found(self, sql: str, many: bool) -> tuple[str, Callable[[float], None]]:
        name = self._group(sql) + MANY * many
        known = name, self._meter.histogram(SECONDS, labels={"statement": name}).observe
        if len(self._known) < TEXTS:
            self._known[hash(sql), many] = known
        return known
