"""Tasks: what the integrations of task queues record about each run.

    task_runs{task,state}       runs by outcome
    task_seconds{task}          duration of a run, regardless of its outcome
    task_db_seconds{task}       wait for databases within it, if a database integration is installed
    task_queue_seconds{task}    wait before it; a negative one, of clocks that differ, counts as 0
    db_queries{task,statement}  its database statements, see databases.py

A run is one attempt: a task that is retried twice and then succeeds counts as three runs.

Bound: MAX_TASKS tasks are recorded by name, further ones as `(other)`. No lock, no I/O.
"""

from redmeter import Meter
from redmeter.integrations.shared.databases import Callers, Spent
from redmeter.integrations.shared.interface import Names
from redmeter.names import (
    TASK_DB_SECONDS,
    TASK_QUEUE_SECONDS,
    TASK_RUNS,
    TASK_SECONDS,
    label_value,
)

UNKNOWN = "(unknown)"
#: How many tasks are counted by name.
MAX_TASKS = 500


class TaskRecorder:
    """Records the runs of a queue's tasks.

    Args:
        meter: records them.
        logger: of the messages.
    """

    def __init__(self, meter: Meter, logger: str) -> None:
        self._meter = meter
        self._logger = logger
        self._callers = Callers(meter, "task")
        #: Task -> label value.
        self.name = Names(lambda name: label_value(name) or UNKNOWN, MAX_TASKS)

    def waited(self, name: str, seconds: float) -> None:
        """Record the wait before a run."""
        self._meter.observe(TASK_QUEUE_SECONDS, max(0.0, seconds), labels={"task": name})

    def count(self, name: str, state: str) -> None:
        """Count a run."""
        self._meter.count(TASK_RUNS, labels={"task": name, "state": state})

    def finish(self, name: str, seconds: float, spent: Spent | None) -> None:
        """Record a run's duration, and its time at databases if that was collected."""
        self._meter.observe(TASK_SECONDS, seconds, labels={"task": name})
        if spent is not None:
            spent.end()
            if spent:
                self._meter.observe(TASK_DB_SECONDS, spent.seconds, labels={"task": name})
                self._callers.record(name, spent)

    def log(self, severity: str, what: str, error: object, task: str = "") -> None:
        """Log what became of a run.

        Args:
            severity: of the message: "error" or "warning".
            what: the message.
            error: its cause; the message has its type and place if it is an exception.
            task: record the exception too, with this task as its route.
        """
        exception = error if isinstance(error, BaseException) else None
        if exception is not None and task:
            self._meter.record_exception(exception, route=task)
        self._meter.log(self._logger, what, severity=severity, exception=exception)
