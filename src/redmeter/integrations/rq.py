"""Counts and times RQ's jobs, and stores all events of a work horse; installed in one line.

    from redmeter.integrations.rq import install
    install()

    task_runs{task,state}       success, failure, retry, stopped
    task_seconds{task}          duration of a run, regardless of its outcome
    task_db_seconds{task}       wait for databases within it, if a database integration is installed
    task_queue_seconds{task}    time from a job's arrival in its queue to the start of a run
    db_queries{task,statement}  its database statements, see shared/databases.py

    rq: error                   failures, with type and place: `shop.send failed [KeyError at …]`
    rq: warning                 runs that will be retried, with the reason; stopped ones

Problem: RQ's workers make a process for each job, its work horse. It ends by os._exit, so what the
job recorded since the last flush would be lost.

Idea: RQ has no signals, but its methods are the same for all kinds of workers, and it looks them
up for each call. These are wrapped:

    perform_job             around a run, in the process that does it. It is the work horse's last
                            call: at its end everything recorded there is stored, by all meters
    handle_job_success      RQ's own decision on the outcome. handle_job_failure is also called by
    handle_job_failure      the worker itself, about a work horse that was killed or stopped
    handle_job_retry
    fork_work_horse         lets the worker learn the names of tasks, so that they are bounded

`rq worker` imports the application in the work horse, as late as within perform_job. Called there,
install() covers the run that it is called in by the handle_ methods: they are called afterwards.

Bound: a few look-ups and an append at either end of a run; no lock, no I/O. The work horse's end
waits for the store, for EXIT_SECONDS at most. 500 tasks are counted by name, further ones as
`(other)`; a task whose name cannot be read is `(unknown)`. Nothing raises: errors of this module
are counted (`Meter.recorder_health()`).

The name is read out of a job's data without unpickling it: that would run code of the application,
and if it was that which has killed the work horse, it would kill the worker.

A run is one attempt: a job that is retried twice and then succeeds counts as three runs.

Source: RQ, "Workers", The Worker Lifecycle.
"""

import functools
import pickletools
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import rq
from rq.worker import SimpleWorker, Worker

from redmeter import Meter
from redmeter.integrations.shared.databases import Spent, collect, collect_if_enabled
from redmeter.integrations.shared.interface import record_error
from redmeter.integrations.shared.meters import meter_for
from redmeter.integrations.shared.tasks import UNKNOWN, TaskRecorder
from redmeter.recording.process import leave

if TYPE_CHECKING:
    from rq.job import Job

#: The logger of the messages.
_LOGGER = "rq"

#: Where a run that has begun is noted, on the job that the worker has made for it.
_RUN = "_redmeter_run"
#: Set on a job whose run began within the wrapped perform_job.
_WHOLE = "_redmeter_whole"
#: The run of a job that did not begin in this process.
_ELSEWHERE = object()
#: Before the first text of a pickled tuple.
_BEFORE = {"PROTO", "FRAME", "MARK"}

_installing = threading.Lock()
_wrapped = False


class _Watch:
    """Receives the runs of this process, for one meter."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._tasks = TaskRecorder(meter, _LOGGER)
        self._place = f"{_RUN}_{id(self):x}"

    def learn(self, job: "Job") -> str:
        """Return the label value of a job's task."""
        return self._tasks.name(_name_of(job) or UNKNOWN)

    def begin(self, job: "Job", started: float, spent: Spent | None) -> None:
        """Note that a run began.

        Args:
            job: whose run it is.
            started: when, Unix seconds.
            spent: collects its time at databases, or None.
        """
        setattr(job, self._place, (spent,))
        if job.enqueued_at is not None:
            self._tasks.waited(self.learn(job), started - _unix(job.enqueued_at))

    def end(self, job: "Job", state: str, within: bool, error: object, text: str) -> None:
        """Count a run that ended, unless it is counted already.

        Args:
            job: whose run it was.
            state: its outcome.
            within: whether this is the process of the run.
            error: what the job raised, or None.
            text: the failure as RQ puts it, or "".
        """
        run: Any = getattr(job, self._place, _ELSEWHERE)
        if run is None:
            return
        if run is _ELSEWHERE and within:  # installed before RQ called it, and after its beginning
            self.begin(job, _started(job), None)
            run = getattr(job, self._place)
        if run is _ELSEWHERE:
            error = None  # of whatever called the worker
        setattr(job, self._place, None)
        name = self.learn(job)
        self._tasks.count(name, state)
        ended = _unix(job.ended_at) if job.ended_at is not None else 0.0
        began = _started(job)
        seconds = max(0.0, (ended if ended >= began else time.time()) - began)
        self._tasks.finish(name, seconds, None if run is _ELSEWHERE else run[0])
        reason = "" if error is not None else f": {text}" if text else ""
        if state == "failure":
            self._tasks.log("error", f"{name} failed{reason}", error, name)
        elif state == "retry":
            self._tasks.log("warning", f"{name} will be tried again{reason}", error)
        elif state == "stopped":
            self._tasks.log("warning", f"{name} was stopped", None)

    def leave(self, job: "Job", error: BaseException | None, is_horse: bool) -> None:
        """Note that perform_job ended.

        Of a run without an outcome: it raised in RQ's own code. If that ends a work horse, its
        worker counts the run.
        """
        run = getattr(job, self._place, None)
        if run is not None and not is_horse:
            self.end(job, "failure", True, error, "")
        elif run is not None and run[0] is not None:
            run[0].end()


def _name_of(job: "Job") -> str:
    """Return the name of a job's function; "" if it cannot be read."""
    try:
        operations = pickletools.genops(job.data)
        first = next(argument for code, argument, _ in operations if code.name not in _BEFORE)
        if isinstance(first, str):
            return first
    except Exception:  # noqa: BLE001, S110 - of another serializer
        pass
    try:
        return str(job.func_name or "")
    except Exception:  # noqa: BLE001 - whatever the serializer raises
        return ""


def _unix(when: datetime) -> float:
    """Return Unix seconds; RQ 1 has datetimes in UTC without saying so."""
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


def _started(job: "Job") -> float:
    """Return when a job's run began, Unix seconds; now if RQ has not got so far."""
    return time.time() if job.started_at is None else _unix(job.started_at)


_watches: list[_Watch] = []


def _notify(what: Callable[[_Watch], object]) -> None:
    """Call a function for each watch. Never raises: a job must not fail by being counted."""
    for watch in _watches:
        try:
            what(watch)
        except Exception as error:  # noqa: BLE001
            record_error(watch.meter, "rq", error)


def _store() -> None:
    """Store what this process has recorded, within EXIT_SECONDS. Never raises."""
    try:
        leave()
    except Exception as error:  # noqa: BLE001
        for watch in _watches:
            record_error(watch.meter, "rq", error)


def _job_of(args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return options["job"] if "job" in options else args[0]


def _around_run(perform_job: Any) -> Any:
    @functools.wraps(perform_job)
    def performing(worker: Any, *args: Any, **options: Any) -> Any:
        job = _job_of(args, options)
        if hasattr(job, _WHOLE):  # a subclass's method called this one, and both are wrapped
            return perform_job(worker, *args, **options)
        setattr(job, _WHOLE, True)
        _notify(lambda watch: watch.begin(job, time.time(), collect_if_enabled()))
        try:
            return perform_job(worker, *args, **options)
        finally:
            _notify(lambda watch: watch.leave(job, sys.exc_info()[1], worker.is_horse))
            delattr(job, _WHOLE)
            if worker.is_horse:
                _store()

    return performing


def _around_end(method: Any, state_of: Callable[[Any], str], always_within: bool) -> Any:
    """Wrap a method with which a worker decides on the outcome of a run.

    Args:
        state_of: returns the outcome, given the job's status afterwards.
        always_within: whether only the process of the run calls it.
    """

    @functools.wraps(method)
    def ending(worker: Any, *args: Any, **options: Any) -> Any:
        # Read before: RQ forgets that it has stopped the job, and the exception may change.
        job, error = _job_of(args, options), sys.exc_info()[1]
        stopped = getattr(worker, "_stopped_job_id", None) == job.id
        result = method(worker, *args, **options)

        def report(watch: _Watch) -> None:
            state = "stopped" if stopped else state_of(job.get_status(refresh=False))
            within = always_within or worker.is_horse
            text = str(options.get("exc_string") or "").strip(" ;\n").rpartition("\n")[2]
            if "retry" in options and state == "failure":
                text = "it has no tries left"
            watch.end(job, state, within, error, text)

        _notify(report)
        if worker.is_horse and not hasattr(job, _WHOLE):
            _store()
        return result

    return ending


def _failure(status: Any) -> str:
    return "failure" if status == "failed" else "retry"


def _around_fork(fork_work_horse: Any) -> Any:
    @functools.wraps(fork_work_horse)
    def forking(worker: Any, *args: Any, **options: Any) -> Any:
        _notify(lambda watch: watch.learn(_job_of(args, options)))
        return fork_work_horse(worker, *args, **options)

    return forking


def _wrap(name: str, wrapper: Callable[[Any], Any]) -> None:
    """Wrap a method where the workers inherit it from; older versions lack some."""
    for owner in {_owner(kind, name) for kind in (Worker, SimpleWorker)} - {None}:
        setattr(owner, name, wrapper(getattr(owner, name)))


def _owner(kind: type, name: str) -> type | None:
    return next((each for each in kind.__mro__ if name in vars(each)), None)


def _wrap_all() -> None:
    global _wrapped
    if _wrapped:
        return
    _wrapped = True
    _wrap("perform_job", _around_run)
    _wrap("handle_job_success", lambda method: _around_end(method, lambda _: "success", True))
    _wrap("handle_job_failure", lambda method: _around_end(method, _failure, False))
    _wrap("handle_job_retry", lambda method: _around_end(method, _failure, True))
    _wrap("fork_work_horse", _around_fork)


def install(meter: Meter | None = None) -> None:
    """Count and time the jobs of this process's workers; work horses store their events.

    Called again for the same meter it does nothing. Call it in the module that `rq worker -c`
    imports, in a program that runs workers, or in the module of the jobs. With SpawnWorker, whose
    work horses are new programs, call it in the module of the jobs.

    Args:
        meter: records the runs. None: a Meter by the environment's settings.
    """
    chosen = meter_for(meter, "jobs are not measured")
    if chosen is None:
        return
    with _installing:
        if any(watch.meter is chosen for watch in _watches):
            return
        _wrap_all()
        watch = _Watch(chosen)
        _watches.append(watch)
    try:
        job = rq.get_current_job()
        if job is not None and job.worker_name and not hasattr(job, _WHOLE):
            watch.begin(job, _started(job), collect())
    except Exception as error:  # noqa: BLE001
        record_error(chosen, "rq", error)
