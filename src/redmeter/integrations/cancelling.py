"""Distinguishes a request that the server cancels from one that awaited a cancelled task.

Both raise CancelledError. A server cancels the task that serves a request when the client leaves or
the server shuts down. A view that awaits another task, which is cancelled, fails with the same
exception; but its own task goes on, and the client gets a 500.

Source: asyncio, `Task.cancelling()`. AnyIO's cancel scopes cancel tasks in the same way and
undo it where they end. Trio raises an exception of its own, which never leaves the scope that was
cancelled; if it gets here, the scope is the server's.
"""

import asyncio


def is_cancelled() -> bool:
    """Return whether the current task is being cancelled; True outside of asyncio."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # another event loop
        return True
    return task is None or task.cancelling() > 0
