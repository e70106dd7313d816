"""Tasks: what is done in threads of their own, so that a server that hangs holds up no other.

A task is about the shards of one server. Who has tasks done waits for all of them, but not
for those that hang: nothing came of their last exchange for a while; nor for those that take longer
than others, unless someone waits for all. They go on alone, and nothing else is done about their
shards until they are back.

Threads are kept for a few seconds for the next tasks. They are started as that of the flusher is,
and nobody waits for their end. Where none can be started, as in an interpreter that is ending, they
are done one after the other by who has them done.
"""

import contextlib
import math
import sys
import time
from _thread import allocate_lock, start_new_thread  # as they are on import: see flusher.py
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from redmeter.recording.flusher import LONGEST_WAIT, may_start_threads

#: How long an exchange may take before nobody waits for it any more, seconds.
PATIENCE = 0.25
#: How long a thread waits for another task, seconds.
IDLE = 5.0


class NodeTask:
    """Something to do about the shards of one server.

    Args:
        numbers: of the shards.
        do: is given the task.
    """

    __slots__ = ("_do", "ended", "numbers", "since")

    def __init__(self, numbers: Sequence[int], do: Callable[["NodeTask"], object]) -> None:
        self.numbers = numbers
        self._do = do
        #: When it was done, monotonic seconds; infinite before.
        self.ended = math.inf
        self.go_on()

    @property
    def done(self) -> bool:
        """Whether it is back."""
        return self.ended < math.inf

    def go_on(self) -> None:
        """Say that there will be another exchange now."""
        #: When the last exchange began, monotonic seconds.
        self.since = time.monotonic()

    def do(self) -> None:
        """Do it."""
        self._do(self)

    def end(self) -> None:
        """Say that it is done."""
        self.ended = time.monotonic()


class NodeWorkers:
    """Has tasks done.

    Args:
        around: what a thread is in while it does a task.
        patience: how long an exchange is waited for, seconds.
    """

    def __init__(
        self, around: Callable[[], AbstractContextManager[object]], patience: float = PATIENCE
    ) -> None:
        self._around = around
        self._patience = patience
        self._under_way: dict[NodeTask, None] = {}
        self._idle: deque[_Thread] = deque()
        self._bell = allocate_lock()
        self._bell.acquire()

    @property
    def busy(self) -> set[int]:
        """The shards of tasks that are not back."""
        return {number for task in list(self._under_way) for number in task.numbers}

    def run(self, tasks: Sequence[NodeTask], *, alone: bool, patient: bool = False) -> None:
        """Have tasks done, and wait for those that do not hang.

        Args:
            alone: there is only one server: nobody else would have to wait.
            patient: wait also for those that take longer than others.

        Raises:
            BaseException: what a task raised that was done by this thread.
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
        """Let the threads end that have nothing to do."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().give(None)

    def _start(self, task: NodeTask) -> bool:
        """Have a thread do a task; False where there is none."""
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
        """Do a task, in a thread."""
        try:
            with self._around():
                task.do()
        finally:
            del self._under_way[task]
            task.end()  # only now: whoever sees it shall find that it is back
            with contextlib.suppress(RuntimeError):  # it has been rung already
                self._bell.release()

    def wait_for_another(self, thread: "_Thread") -> bool:
        """Have a thread wait for a task; False where nobody has one."""
        self._idle.append(thread)
        if thread.bell.acquire(timeout=IDLE):
            return True
        try:
            self._idle.remove(thread)
        except ValueError:  # it was just chosen
            return thread.bell.acquire()
        return False


class _Thread:
    """Does one task after the other."""

    def __init__(self, tasks: NodeWorkers) -> None:
        self._workers = tasks
        self._next: NodeTask | None = None
        self.bell = allocate_lock()
        self.bell.acquire()

    def give(self, task: NodeTask | None) -> None:
        """Have it do another one, or end."""
        self._next = task
        self.bell.release()

    def run(self, task: NodeTask | None) -> None:
        """Do tasks until there are no more."""
        while task is not None:
            self._workers.do(task)
            task = self._next if self._workers.wait_for_another(self) else None
