"""Load: requests over loopback, a few at a time, and what came back."""

import contextlib
import http.client
import itertools
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Self

from support.programs import Done, Program
from support.waiting import eventually

#: Seconds that a client waits between two requests: without it, clients take up as much of the
#: machine as the server, also while that starts and answers nothing.
PAUSE = 0.01


class Answered(NamedTuple):
    """A request that was answered to its last byte."""

    path: str
    status: int
    body: str
    #: When, by the monotonic clock.
    time: float


class Load:
    """Requests until told to stop; a context manager, which stops at its end.

    Args:
        port: of the server.
        paths: asked for in turn.
        clients: how many at a time.
    """

    def __init__(self, port: int, paths: Sequence[str] = ("/",), clients: int = 3) -> None:
        self._port = port
        self._paths = paths
        self._stopped = threading.Event()
        self.answered: list[Answered] = []
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        for path in itertools.cycle(self._paths):
            if self._stopped.wait(PAUSE):
                return
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("GET", path, headers={"Connection": "close"})
                answer = connection.getresponse()
                body = answer.read().decode()
                self.answered.append(Answered(path, answer.status, body, time.monotonic()))
            connection.close()

    def bodies(self, status: int = 200) -> Counter[str]:
        """Return body -> how often it came with a status."""
        return Counter(each.body for each in self.answered if each.status == status)

    def stop(self) -> list[Answered]:
        """Stop; return all that was answered."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        return self.answered

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def until(self, program: Program, requests: int, workers: int = 1) -> None:
        """Wait until so many requests are answered with 200, by so many processes.

        Args:
            program: the server; its answers are the number of the process.
        """

        def enough() -> bool:
            assert program.running, program.err
            bodies = self.bodies()
            return bodies.total() >= requests and len(bodies) >= workers

        eventually(enough, 30.0, "requests are answered")


def end(program: Program, load: Load) -> Done:
    """End a server in good order while requests come in, and then the load."""
    program.send(signal.SIGTERM)
    done = program.finish()
    load.stop()
    assert done.code in (0, -signal.SIGTERM), done
    assert "Traceback" not in done.err, done.err
    return done
