"""Callers: which routes and tasks send which statements to a database.

    db_queries{route,statement}         executions by the requests of a route
    db_queries{task,statement}          executions by the runs of a task

queries.py groups the statements. They are counted when their request or task ends, from its record
in spent.py.

Bound: one dictionary lookup and one append for each different statement of a request; PAIRS pairs
of a caller and a statement for each process. Further pairs are not counted, nor is a pair whose
series name would be too long; the statement's own duration still is.
"""

from collections.abc import Callable

from redmeter import Meter
from redmeter.errors import InvalidName
from redmeter.integrations.spent import Spent
from redmeter.names import DB_QUERIES

#: Pairs of a caller and a statement that are counted.
PAIRS = 500


class Callers:
    """Counts statements by caller.

    Args:
        meter: records the counts.
        label: the kind of caller: "route" or "task".
    """

    def __init__(self, meter: Meter, label: str) -> None:
        self._meter = meter
        self._label = label
        self._known: dict[tuple[str, str], Callable[[int], None] | None] = {}

    def record(self, caller: str, spent: Spent) -> None:
        """Count the statements that a request or a run of a task has sent."""
        for statement, count in spent.names().items():
            pair = caller, statement
            if pair not in self._known:
                if len(self._known) >= PAIRS:
                    continue
                self._known[pair] = self._inc_of(caller, statement)
            inc = self._known[pair]
            if inc is not None:
                inc(count)

    def _inc_of(self, caller: str, statement: str) -> Callable[[int], None] | None:
        labels = {self._label: caller, "statement": statement}
        try:
            return self._meter.counter(DB_QUERIES, labels=labels).inc
        except InvalidName:
            return None
