"""Hooks: functions of the application that set gauges before each flush."""

import time
from _thread import allocate_lock  # as it is on import: see sending/flusher.py
from collections.abc import Callable

from redmeter.recording.instruments import Gauge
from redmeter.recording.sending.flusher import Replaced, in_background

#: After which a hook is given up until it returns, seconds.
HANGING = 1.0
#: Returns the value of a gauge; None: it has none now.
Callback = Callable[[], float | None]


class _Call:
    """A call of a hook, in progress: it either returns in time or is given up, never both."""

    __slots__ = ("_began", "_in_time", "_over", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._began = time.monotonic()
        # The first to acquire it decides; that is one step.
        self._over = allocate_lock()
        self._in_time = False

    @property
    def hangs(self) -> bool:
        return not self._over.locked() and time.monotonic() - self._began > HANGING

    def give_up(self) -> bool:
        """Give the hook up; return False if it has returned."""
        return self._over.acquire(blocking=False)

    def end(self) -> bool:
        """Return whether the hook, which has returned, was not given up."""
        self._in_time = self._in_time or self._over.acquire(blocking=False)
        return self._in_time


class FlushHooks:
    """The hooks of a recorder; a forked child keeps them.

    They are called in the flushing thread. One that does not return would hold up all events, and
    cannot be ended: other threads, which record or wait for a flush, notice it, and another flusher
    goes on. That hook is not called again until it has returned. The value that it returns then is
    not used: it is old, and would start the thread of a closed recorder again.

    Args:
        record_error: counts an error, by its kind and text.
    """

    def __init__(self, record_error: Callable[[str, str], None]) -> None:
        self._record_error = record_error
        self._before_flush: tuple[Callable[[], None], ...] = ()
        self._callbacks: dict[str, tuple[Gauge, Callback]] = {}
        self.after_fork()

    def after_fork(self) -> None:
        """Forget which hooks were being called, in a forked child."""
        #: The calls in progress, by the hook's name, also those that were given up.
        self._calls: dict[str, _Call] = {}

    def add(self, hook: Callable[[], None]) -> None:
        """Call a hook before each flush."""
        self._before_flush += (hook,)

    def set_callback(self, gauge: Gauge, callback: Callback) -> None:
        """Set a gauge to the value of a callback before each flush."""
        self._callbacks[gauge._series] = gauge, callback

    def hang(self) -> bool:
        """Return whether a hook takes so long that it is given up."""
        return any(call.hangs for call in list(self._calls.values()))

    def give_up(self) -> str:
        """Give up the hook that hangs; return its name, or "" if none does."""
        for call in list(self._calls.values()):
            if call.hangs and call.give_up():
                return call.name
        return ""

    def run(self) -> None:
        """Call all hooks; an exception of one counts as an error.

        Raises:
            Replaced: one was given up, and has returned now.
        """
        for number, hook in enumerate(self._before_flush):
            self._run("before-flush", f"hook {number}", hook)
        for series, (gauge, callback) in list(self._callbacks.items()):
            self._run("gauge-callback", series, callback, gauge)

    def _run(
        self, kind: str, name: str, hook: Callable[[], float | None], gauge: Gauge | None = None
    ) -> None:
        if name in self._calls:
            return
        calls, call = self._calls, _Call(name)  # a child forked during the call has other calls
        try:
            calls[name] = call
            value = hook()
            if call.end() and gauge is not None and value is not None:
                gauge.set(value)
        except BaseException as error:  # raised by the application's code: see redact.py
            if not isinstance(error, Exception) and not in_background():
                raise
            self._record_error(kind, f"before a flush: {type(error).__name__}: {error}")
        finally:
            calls.pop(name, None)
        if not call.end():
            raise Replaced
