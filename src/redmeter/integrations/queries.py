"""Statements that an application sends to a database, whichever library sends them.

    db_query_seconds{statement}         how long they took, by what groups them
    db_errors{statement,error}          those that failed, by the type of the error
    db_queries{route,statement}         executions by route, or by task: see callers.py

Groups are those of analysis/statements.py; `(many)` is added where a statement was executed for
many rows at once, since its time is that of all of them. What is waited for without a statement has
names of its own: `COMMIT`, `ROLLBACK`, and `(connect)`, for a connection, of a pool or a new one.

Bound: a look-up by the hash of the text, of which 2,000 are remembered, and two appends. 200 groups
are told apart, all others are `(other)`.
"""

from collections.abc import Callable

from redmeter import Meter
from redmeter.analysis.statements import statement_of
from redmeter.integrations.hooks import Names, record_error
from redmeter.integrations.spent import DATABASE, spend
from redmeter.integrations.waits import Listener, waiting
from redmeter.names import DB_ERRORS as ERRORS
from redmeter.names import DB_QUERY_SECONDS as SECONDS

#: Groups of statements that are told apart.
GROUPS = 200
#: Texts of statements that are remembered, by their hash.
TEXTS = 2000
#: What is added to the statements that were executed for many rows at once.
MANY = " (many)"
#: What is waited for without a statement.
CONNECT, COMMIT, ROLLBACK = "(connect)", "COMMIT", "ROLLBACK"


class Queries:
    """Records statements, whichever library sends them.

    Args:
        meter: where to.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._group = Names(statement_of, GROUPS)
        #: Hash of a text, and whether it was for many -> what takes its duration.
        self._known: dict[tuple[int, bool], tuple[str, Callable[[float], None]]] = {}

    def took(self, sql: str, seconds: float, *, many: bool, error: BaseException | None) -> None:
        """Record that a statement was executed. Never raises.

        Args:
            sql: its text.
            seconds: how long it took.
            many: whether it was executed for many sets of parameters.
            error: why it failed, where it did.
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
        """Return what records that something was waited for without a statement. Never raises.

        Args:
            name: what, e.g. COMMIT.
        """
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
        found = name, self._meter.histogram(SECONDS, labels={"statement": name}).observe
        if len(self._known) < TEXTS:
            self._known[hash(sql), many] = found
        return found
