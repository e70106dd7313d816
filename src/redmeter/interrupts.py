"""Ctrl-C while the command `redmeter` starts or ends: one line and exit code 130.

Problem: the imports take a few tenths of a second. An interrupt during that time is a traceback
from wherever Python happens to be, or an exception that an import swallows.

Idea: as long as no command runs, there is nothing to clean up, so an interrupt ends the process
at once. Only while a command runs does it raise KeyboardInterrupt.

`redmeter/__init__.py` imports this module before everything else. It does nothing in any process
other than that of the command, nor where interrupts are ignored or have a handler already.
Processes that a command starts do not inherit the handler.
"""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from types import FrameType


def is_command() -> bool:
    """Return whether this process is `redmeter` or `python -m redmeter`."""
    words = getattr(sys, "argv", None) or [""]
    if words[0] == "-m":  # until the module itself runs; its name precedes the arguments
        return re.fullmatch("(-[a-zA-Z]*m)?redmeter", sys.orig_argv[-len(words)]) is not None
    return bool(os.path.basename(words[0]) == "redmeter")  # noqa: PTH119  pathlib is not loaded yet


def end_at_once() -> None:
    """From now on, an interrupt ends the process with one line and exit code 130."""
    import signal  # not needed where the library is used

    # Elsewhere than in the main thread no handler can be set.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, _end)


@contextlib.contextmanager
def raising() -> Iterator[None]:
    """Within this block, an interrupt raises KeyboardInterrupt."""
    import signal

    ours = signal.getsignal(signal.SIGINT) is _end
    try:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, _end)


def _end(_signal: int, _frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):  # standard error is closed
        os.write(2, b"error: interrupted\n")
    os._exit(130)


if is_command():
    end_at_once()
