"""Serves the shop by two workers: `python -m redmeter.demo.server PORT`.

Apart from shop.py, as a worker imports this file before it answers its supervisor: that kills one
which does not within five seconds, as on a busy machine.
"""

import os
import signal
import sys
import threading

WORKERS = 2


def serve_shop(port: int) -> None:
    """Serve until SIGTERM; SIGHUP replaces the workers, one after the other."""
    import uvicorn

    end_with_starter()
    uvicorn.run(
        "redmeter.demo.shop:create",
        factory=True,
        port=port,
        workers=WORKERS,
        log_level="warning",
        timeout_graceful_shutdown=3,
    )


def end_with_starter() -> None:
    """From now on, end when the process that started this one is gone, however that ended.

    Standard input is a pipe that the starter holds open and never writes to. Where the starter
    ends, even by SIGKILL, the pipe ends, and this process sends itself the signal by which it ends
    in good order.
    """

    def wait() -> None:
        try:
            while os.read(sys.stdin.fileno(), 1024):
                pass
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    serve_shop(int(sys.argv[1]))
