"""Hooks: functions of the application that set gauges before each flush."""

from collections.abc import Callable
from functools import partial

from redmeter.recording.flusher import in_background
from redmeter.recording.instruments import Gauge

#: Returns the value of a gauge; None: it has none now.
Callback = Callable[[], float | None]


class FlushHooks:
    """The hooks of a recorder; a forked child keeps them.

    Args:
        record_error: counts an error, by its kind and text.
    """

    def __init__(self, record_error: Callable[[str, str], None]) -> None:
        self._record_error = record_error
        self._before_flush: tuple[Callable[[], None], ...] = ()
        self._callbacks: dict[str, tuple[Gauge, Callback]] = {}

    def add(self, hook: Callable[[], None]) -> None:
        """Call a hook before each flush."""
        self._before_flush += (hook,)

    def set_callback(self, gauge: Gauge, callback: Callback) -> None:
        """Set a gauge to the value of a callback before each flush."""
        self._callbacks[gauge._series] = gauge, callback

    def run(self) -> None:
        """Call all hooks; an exception of one counts as an error."""
        for hook in self._before_flush:
            self._run("before-flush", hook)
        for gauge, callback in list(self._callbacks.values()):
            self._run("gauge-callback", partial(_set_gauge, gauge, callback))

    def _run(self, kind: str, hook: Callable[[], None]) -> None:
        try:
            hook()
        except BaseException as error:  # raised by the application's code: see redact.py
            if not isinstance(error, Exception) and not in_background():
                raise
            self._record_error(kind, f"before a flush: {type(error).__name__}: {error}")


def _set_gauge(gauge: Gauge, callback: Callback) -> None:
    value = callback()
    if value is not None:
        gauge.set(value)
