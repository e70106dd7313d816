"""Node workers: a task per server in its own thread, so that a hanging server delays no other.

A task concerns the shards of one server. The caller waits for all tasks, but not for those that
hang, whose current exchange has taken long; nor, unless it asks for that, for tasks that take
longer than others. These continue alone, and their shards are skipped until they have ended.

Idle threads are kept for a few seconds for the next tasks. They are started as the flusher's is,
and nothing waits for their end. If no thread can be started, as in an interpreter that is exiting,
the caller runs the tasks one after the other.
"""

import contextlib
import math
import sys
import time
from _thread import allocate_lock, start_new_thread  # as they are on import: see flusher.py
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from redmeter.recording.sending.flusher import LONGEST_WAIT, may_start_threads

#: Seconds after which an exchange counts as hanging.
EXCHANGE_PATIENCE = 0.25
#: Seconds for which an idle thread waits for another task.
IDLE = 5.0


class NodeTask:
    """Work for the shards of one server.

    Args:
        numbers: the numbers of the shards.
        do: called with the task.
    """

    __slots__ = ("_do", "ended", "numbers", "since")

    def __init__(self, numbers: Sequence[int], do: Callable[["NodeTask"], object]) -> None:
        self.numbers = numbers
        self._do = do
        #: When it ended, monotonic seconds; infinite before.
        self.ended = math.inf
        self.go_on()

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.ended < math.inf

    def go_on(self) -> None:
        """Note that another exchange begins."""
        #: When the current exchange began, monotonic seconds.
        self.since = time.monotonic()

    def do(self) -> None:
        """Run the task."""
        self._do(self)

    def end(self) -> None:
        """Note that the task has ended."""
        self.ended = time.monotonic()


class NodeWorkers:
    """Runs tasks.

    Args:
        around: the context in which a thread runs a task.
        patience: how long to wait for an exchange, seconds.
    """

    def __init__(
        self,
        around: Callable[[], AbstractContextManager[object]],
        patience: float = EXCHANGE_PATIENCE,
    ) -> None:
        self._around = around
        self._patience = patience
        self._under_way: dict[NodeTask, None] = {}
        self._idle: deque[_Thread] = deque()
        self._bell = allocate_lock()
        self._bell.acquire()

    @property
    def busy(self) -> set[int]:
        """The shards of tasks that have not ended."""
        return {number for task in list(self._under_way) for number in task.numbers}

    def run(self, tasks: Sequence[NodeTask], *, alone: bool, patient: bool = False) -> None:
        """Run tasks, and wait for those that do not hang.

        Args:
            alone: there is only one server, so nothing else would have to wait.
            patient: also wait for tasks that take longer than others.

        Raises:
            BaseException: raised by a task that this thread ran.
        """
        ours = [task for task in tasks if alone or not self._start(task)]
        for task in ours:
            task.go_on()
            task.do()
            task.end()
        while under_way := [task for task in tasks if not task.done]:
            since = max(task.since for task in under_way)
            ended = [task.ended for task in tasks if task.done]
            if ended and not patient:
                since = min(since, max(ended))
            left = since + self._patience - time.monotonic()
            if left <= 0:
                return
            self._bell.acquire(timeout=min(left, LONGEST_WAIT))

    def dismiss(self) -> None:
        """End idle threads."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().give(None)

    def _start(self, task: NodeTask) -> bool:
        """Run a task in a thread; return False if there is none."""
        if sys.is_finalizing() or not may_start_threads():
            return False
        self._under_way[task] = None
        try:
            self._idle.pop().give(task)
        except IndexError:
            try:
                start_new_thread(_Thread(self).run, (task,))
            except RuntimeError:
                del self._under_way[task]
                return False
        return True

    def do(self, task: NodeTask) -> None:
        """Run a task, in a thread."""
        try:
            with self._around():
                task.do()
        finally:
            del self._under_way[task]
            task.end()  # only now: a caller that sees it must find that it is not busy
            with contextlib.suppress(RuntimeError):  # it was rung already
                self._bell.release()

    def wait_for_another(self, thread: "_Thread") -> bool:
        """Wait for a task, in an idle thread; return False if none came."""
        self._idle.append(thread)
        if thread.bell.acquire(timeout=IDLE):
            return True
        try:
            self._idle.remove(thread)
        except ValueError:  # it was chosen just now
            return thread.bell.acquire()
        return False


class _Thread:
    """Runs one task after the other."""

    def __init__(self, tasks: NodeWorkers) -> None:
        self._workers = tasks
        self._next: NodeTask | None = None
        self.bell = allocate_lock()
        self.bell.acquire()

    def give(self, task: NodeTask | None) -> None:
        """Hand it the next task, or None to end it."""
        self._next = task
        self.bell.release()

    def run(self, task: NodeTask | None) -> None:
        """Run tasks until there are no more."""
        while task is not None:
            self._workers.do(task)
            task = self._next if self._workers.wait_for_another(self) else None
