"""Programs in processes of their own, as an application that uses the library would be.

Each has a session of its own, so that whatever it leaves behind is found by it and ended.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import redmeter
from support.waiting import eventually

SOURCES = Path(redmeter.__file__).parents[1]

#: Seconds that any program may take.
TIMEOUT = 60.0

_FOREIGN = ("REDMETER_", "PYTHON")

#: What stands before every program: the address is its first argument.
PRELUDE = """
import os, signal, sys, threading, time
from redmeter import Meter
URL = sys.argv[1]
"""

#: For programs that look how many threads there are; those that threading does not know as well.
THREADS = """
def threads():
    return len(os.listdir("/proc/self/task"))

def eventually(count):
    until = time.monotonic() + 5
    while threads() != count:
        assert time.monotonic() < until, threads()
        time.sleep(0.001)
"""


#: Returns what is stored of a series, of "x" by default.
Total = Callable[..., int]


@dataclass(frozen=True)
class Done:
    """What became of a program."""

    #: As of subprocess: negative for a signal.
    code: int
    out: str
    err: str
    #: When it had ended, by the monotonic clock, which all processes of a machine share.
    ended: float

    @property
    def numbers(self) -> list[int]:
        """The whole numbers that it printed."""
        return [int(word) for word in self.out.split()]


class Program:
    """A program that runs, its output read as it comes.

    Args:
        command: the program and its arguments.
        folder: where it runs.
        env: next to the plain environment.
    """

    def __init__(self, command: list[str], folder: Path, env: dict[str, str]) -> None:
        plain = {name: text for name, text in os.environ.items() if not name.startswith(_FOREIGN)}
        plain |= {"PYTHONPATH": str(SOURCES), "PYTHONDONTWRITEBYTECODE": "1"}
        plain |= {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
        self._child = subprocess.Popen(
            command,
            cwd=folder,
            env=plain | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._child.pid
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((self._child.stdout, self.out), (self._child.stderr, self.err))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Any, lines: list[str]) -> None:
        with contextlib.suppress(ValueError):  # closed by us
            lines.extend(stream)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    def line(self, number: int) -> str:
        """Return a line of its output, counted from 0, once it is there."""

        def there() -> bool:
            more = self.running or any(reader.is_alive() for reader in self._readers)
            assert len(self.out) > number or more, f"it ended: {self.err}"
            return len(self.out) > number

        eventually(there, TIMEOUT, f"line {number} of {self.out}, {self.err}")
        return self.out[number].strip()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._child.send_signal(number)

    def finish(self, timeout: float = TIMEOUT) -> Done:
        """Wait for its end."""
        try:
            code = self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            self._child.send_signal(signal.SIGABRT)  # by PYTHONFAULTHANDLER it says where it hangs
            self._child.wait()
            for reader in self._readers:
                reader.join(5.0)
            raise AssertionError(f"no end within {timeout} s: {self.out}{self.err}") from None
        ended = time.monotonic()
        for reader in self._readers:
            reader.join(5.0)
        return Done(code, "".join(self.out), "".join(self.err), ended)

    def close(self) -> None:
        """End it and what it left behind."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._child.wait()
        for reader in self._readers:
            reader.join(5.0)
        for stream in (self._child.stdout, self._child.stderr):
            assert stream is not None
            stream.close()


class Programs:
    """Starts programs in a folder, and ends them.

    Args:
        folder: where they run, and lie.
        url: of the store; their first argument.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self._started: list[Program] = []

    def write(self, name: str, code: str) -> None:
        """Write a file into the folder."""
        (self.folder / name).write_text(code)

    def command(self, *command: str, env: dict[str, str] | None = None) -> Program:
        """Start any command."""
        program = Program(list(command), self.folder, env or {})
        self._started.append(program)
        return program

    def start(
        self,
        code: str,
        *arguments: str,
        first: str = "",
        url: str = "",
        python: str = sys.executable,
        env: dict[str, str] | None = None,
    ) -> Program:
        """Start a program; PRELUDE is put before it.

        Args:
            arguments: after the address.
            first: what comes before even that.
            url: another address.
            python: another interpreter.
        """
        name = f"program{len(self._started)}.py"
        self.write(name, first + PRELUDE + code)
        return self.command(python, name, url or self.url, *arguments, env=env)

    def run(self, code: str, *arguments: str, **options: Any) -> Done:
        """Run a program to its end."""
        return self.start(code, *arguments, **options).finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._started:
            program.close()
