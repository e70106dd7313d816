"""Counts and times Celery's tasks; installed in one line, where the application is created.

    from redmeter.integrations.celery import install
    install()

    task_runs{task,state}       success, failure, retry, ignored, rejected, revoked, expired
    task_seconds{task}          duration of a run, regardless of its outcome
    task_db_seconds{task}       wait for databases within it, if a database integration is installed
    task_queue_seconds{task}    time from publishing, or from the task's ETA, to the start of a run
    db_queries{task,statement}  its database statements, see shared/databases.py

    celery: error               failures, with type and place: `shop.send failed [KeyError at …]`
    celery: warning             runs that will be retried, with the reason

Idea: Celery sends signals about a run in the process that executes it, alike for threads, prefork
and eager calls. If a run is lost with its process, or ended by a hard time limit (as newer versions
of Celery report), the worker's main process sends the signal. It did not see the run's start, so it
counts the end only.

Bound: two look-ups and an append at either end of a run; no lock, no I/O. 500 tasks are counted by
name, further ones as `(other)`. An unregistered task is `(unknown)`, since its name comes from the
sender. Nothing raises: errors of this module are counted (`Meter.recorder_health()`).

The wait in the queue requires this integration in the publishing process too: it adds a header with
the time, since brokers do not report it. The clocks of two machines differ; a negative wait counts
as 0.

A run is one attempt: a task that is retried twice and then succeeds counts as three runs. Celery
also logs failures: with redmeter.integrations.logging they appear under `celery.app.trace` as well.

Source: Celery, "Signals", task signals.
"""

import sys
import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from billiard import process as billiard_process  # type: ignore[import-untyped]
from celery import signals  # type: ignore[import-untyped]

from redmeter import Meter
from redmeter.integrations.shared.databases import collect_if_enabled
from redmeter.integrations.shared.interface import record_error
from redmeter.integrations.shared.meters import meter_for
from redmeter.integrations.shared.tasks import MAX_TASKS, UNKNOWN, TaskRecorder

if TYPE_CHECKING:
    from celery import Celery

#: The logger of the messages.
_LOGGER = "celery"

#: Two reports of a lost task within so many seconds are about the same loss.
DUPLICATE_SECONDS = 60.0

#: Where a run that has begun is noted, on the request that Celery makes for it.
_RUN = "_redmeter_run"
#: The header of a message with the time at which it was published, Unix seconds.
_SENT = "redmeter_sent"

_installing = threading.Lock()


class _Watch:
    """Receives Celery's signals, for one application or all, and one meter."""

    def __init__(self, app: "Celery | None", meter: Meter) -> None:
        self.app = app
        self.meter = meter
        self._tasks = TaskRecorder(meter, _LOGGER)
        self._name = self._tasks.name
        self._place = f"{_RUN}_{id(self):x}"
        #: Ids of tasks that were lost lately -> when, the oldest first.
        self._lost: dict[object, float] = {}

    def connect(self) -> None:
        """Receive the signals from now on."""
        for signal, heard in (
            (signals.before_task_publish, self._published),
            (signals.task_prerun, self._begins),
            (signals.task_postrun, self._ended),
            (signals.task_failure, self._failed),
            (signals.task_retry, self._again),
            (signals.task_revoked, self._revoked),
            (signals.task_unknown, self._unknown),
        ):
            signal.connect(self._guarded(heard), weak=False)

    def _guarded(self, heard: Any) -> Any:
        def receiver(sender: Any = None, **details: Any) -> None:
            try:
                if self.app is None or getattr(sender, "app", None) in (None, self.app):
                    heard(sender, details)
            except Exception as error:  # noqa: BLE001 - a task must not fail by being counted
                record_error(self.meter, "celery", error)

        return receiver

    def _published(self, _: Any, details: dict[str, Any]) -> None:
        details["headers"][_SENT] = time.time()

    def _begins(self, task: Any, details: dict[str, Any]) -> None:  # noqa: ARG002
        run = time.perf_counter(), collect_if_enabled()
        setattr(task.request, self._place, run)
        sent = getattr(task.request, _SENT, None)
        if isinstance(sent, int | float):
            eta = getattr(task.request, "eta", None)
            due = max(sent, datetime.fromisoformat(eta).timestamp()) if eta else sent
            self._tasks.waited(self._name(task.name), time.time() - due)

    def _ended(self, task: Any, details: dict[str, Any]) -> None:
        name, state = self._name(task.name), details.get("state")
        if state:
            self._tasks.count(name, str(state).lower())
        else:
            self._ended_without_state(task, name)
        run = getattr(task.request, self._place, None)
        if run is None:
            return
        began, spent = run
        seconds = time.perf_counter() - began
        delattr(task.request, self._place)
        self._tasks.finish(name, seconds, spent)

    def _ended_without_state(self, task: Any, name: str) -> None:
        """Count a run that SystemExit or another BaseException ended: Celery names no state then.

        In a process of the prefork pool it ends the process, and the main process counts the run.
        A greenlet that was killed was revoked, and is counted as that.
        """
        error = sys.exc_info()[1]
        in_pool = billiard_process.current_process()._parent_pid is not None
        if type(error).__name__ == "GreenletExit" or (in_pool and not task.request.is_eager):
            return
        self._tasks.count(name, "failure")
        self._tasks.log("error", f"{name} failed", error, name)

    def _failed(self, task: Any, details: dict[str, Any]) -> None:
        name, error = self._name(task.name), details.get("exception")
        if getattr(task.request, self._place, None) is None:
            if type(error).__name__ == "Reject":  # the process that ran it has counted it
                return
            if self._is_duplicate(details.get("task_id")):
                return
            self._tasks.count(name, "failure")
        self._tasks.log("error", f"{name} failed", error, name)

    def _is_duplicate(self, task: object) -> bool:
        """Return whether a task's loss is reported again: by the time limit, then the process."""
        now, before = time.monotonic(), self._lost.pop(task, -DUPLICATE_SECONDS)
        self._lost[task] = now
        if len(self._lost) > MAX_TASKS:
            self._lost.pop(next(iter(self._lost)), None)
        return now - before < DUPLICATE_SECONDS

    def _again(self, task: Any, details: dict[str, Any]) -> None:
        reason = details.get("reason")
        error = getattr(reason, "exc", None) or reason
        self._tasks.log("warning", f"{self._name(task.name)} will be tried again", error)

    def _revoked(self, task: Any, details: dict[str, Any]) -> None:
        self._tasks.count(self._name(task.name), "expired" if details.get("expired") else "revoked")

    def _unknown(self, _: Any, details: dict[str, Any]) -> None:  # noqa: ARG002
        self._tasks.count(UNKNOWN, "unknown")


_watches: list[_Watch] = []


def install(app: "Celery | None" = None, meter: Meter | None = None) -> None:
    """Count and time the tasks that this process runs, and those that are forked from it.

    Called again for the same application and meter it does nothing. Call it where the application
    is made, so that every worker process does.

    Args:
        app: the application whose tasks are counted. None: all applications.
        meter: records the runs. None: a Meter by the environment's settings.
    """
    chosen = meter_for(meter, "tasks are not measured")
    if chosen is None:
        return
    with _installing:
        if any(w.meter is chosen and w.app in (None, app) for w in _watches):
            return
        watch = _Watch(app, chosen)
        watch.connect()
        _watches.append(watch)
