"""No orphans: a process that ends when the one that started it is gone, however that ended.

Its standard input is a pipe that the starter holds open and never writes to. Where the starter
ends, even by SIGKILL, the pipe ends, and the process sends itself the signal by which it ends in
good order.
"""

import os
import signal
import sys
import threading


def end_with_starter() -> None:
    """From now on, end when standard input ends. Called in a process' main module."""

    def wait() -> None:
        try:
            while os.read(sys.stdin.fileno(), 1024):
                pass
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
