"""The command `redmeter` as its users run it: in a process, on a terminal, with a home of its own.

Every process that runs there is known: by its HOME, or by the embedded server's data directory
as its working directory. close() fails where one is left.
"""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import redmeter
from support.waiting import eventually

SOURCES = Path(redmeter.__file__).parents[1]

#: What must not be inherited: it changes what the command does or how it looks.
_FOREIGN = re.compile(
    r"REDMETER_|XDG_|NO_COLOR|FORCE_COLOR|TTY_|COLUMNS|LINES|PYTHON|LC_|LANG|TERM"
)
#: Colours, cursor movements and other sequences of a terminal.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")

#: Seconds that any command may take.
TIMEOUT = 90.0


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str


class Home:
    """A temporary home directory in which commands run.

    Args:
        root: everything is below it.
        url: REDMETER_URL of the commands; None leaves it out.
    """

    def __init__(self, root: Path, url: str | None = None) -> None:
        self.root = root
        self.work = root / "work"
        self.work.mkdir()
        self.data = root / "share" / "redmeter" / "default"
        self.state = root / "state" / "redmeter"
        # Short, since a socket's path is.
        self.runtime = Path(tempfile.mkdtemp(prefix="rm-", dir="/tmp"))
        self.env = {name: text for name, text in os.environ.items() if not _FOREIGN.match(name)}
        self.env |= {
            "HOME": str(root),
            "XDG_DATA_HOME": str(root / "share"),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PYTHONPATH": str(SOURCES),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "error",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        if url is not None:
            self.env["REDMETER_URL"] = url
        self._children: list[subprocess.Popen[Any]] = []

    def command(self, *arguments: str, code: str = "") -> list[str]:
        """Return the command line; with `code`, that is run in the same process before."""
        if code:
            run = f"{code}\nfrom redmeter.cli import main\nmain()"
            return [sys.executable, "-P", "-c", run, *arguments]
        return [sys.executable, "-P", "-m", "redmeter", *arguments]

    def run(
        self,
        *arguments: str,
        text: bytes | str = b"",
        env: dict[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> Done:
        """Run a command to its end, with a text as its standard input."""
        done = subprocess.run(
            self.command(*arguments),
            input=text.encode() if isinstance(text, str) else text,
            capture_output=True,
            cwd=self.work,
            env=self.env | (env or {}),
            timeout=timeout,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def invoke(self, *arguments: str, **env: str) -> Done:
        """Run a command in this process, where a process of its own is not what is tested."""
        from support.invoking import invoking  # imports this module

        with contextlib.chdir(self.work), invoking() as run:
            return run(*arguments, **self.env | env)

    def of_up(self, kind: str) -> list[Path]:
        """Return the files of that kind (`lock` or `log`) of all processes of `up`."""
        return [f for folder in (self.state, self.data) for f in folder.glob(f"up-*.{kind}")]

    def shell(self, line: str, **env: str) -> Done:
        """Run a line of a shell, in which `redmeter` is the command."""
        script = (
            f'set -o pipefail; redmeter() {{ "{sys.executable}" -P -m redmeter "$@"; }}; {line}'
        )
        done = subprocess.run(
            ["bash", "-c", script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.work,
            env=self.env | env,
            timeout=TIMEOUT,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, code: str = "", **env: str) -> "Running":
        """Start a command that stays; `code` is run before it in the same process."""
        child = subprocess.Popen(
            self.command(*arguments, code=code),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.work,
            env=self.env | env,
        )
        self._children.append(child)
        return Running(child)

    def terminal(self, *arguments: str, columns: int = 80, **env: str) -> "Terminal":
        """Run a command on a terminal of so many columns."""
        terminal = Terminal(self.command(*arguments), columns, self.work, self.env | env)
        self._children.append(terminal.child)
        return terminal

    def processes(self) -> dict[int, str]:
        """Return the processes of this home: pid and command line."""
        found = {}
        mine = f"HOME={self.root}".encode()
        for process in Path("/proc").iterdir():
            if not process.name.isdecimal() or int(process.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):  # it has ended, or is none of ours
                here = (process / "cwd").readlink().is_relative_to(self.root)
                if here or mine in (process / "environ").read_bytes().split(b"\0"):
                    line = (process / "cmdline").read_text().replace("\0", " ").strip()
                    if line:  # else it is ending
                        found[int(process.name)] = line
        return found

    def close(self) -> None:
        """End what was started here; fail if anything else is left."""
        for child in self._children:
            if child.poll() is None:
                child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout, child.stderr):
                if pipe:
                    pipe.close()
        for url in {self.env.get("REDMETER_URL", ""), ""} if self.processes() else ():
            self.invoke("stop", REDMETER_URL=url)
        try:
            eventually(lambda: not self.processes(), 5.0, "no process is left")
        finally:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.runtime)


class Running:
    """A command that runs, its outputs pipes that are read as it writes."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self.child = child
        self.pid = child.pid
        self._out: list[str] = []
        self._err: list[str] = []
        assert child.stdout
        assert child.stderr
        self._readers = [
            threading.Thread(target=lines.extend, args=(stream,), daemon=True)
            for lines, stream in ((self._out, child.stdout), (self._err, child.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def out(self, number: int) -> str:
        """Return a line of its output, counted from 0, once it is there."""
        eventually(lambda: len(self._out) > number, TIMEOUT, f"line {number} of {self._out}")
        return self._out[number]

    def err(self, number: int) -> str:
        """Return a line of its errors, counted from 0, once it is there."""
        eventually(lambda: len(self._err) > number, TIMEOUT, f"line {number} of {self._err}")
        return self._err[number]

    def so_far(self) -> list[str]:
        """Return the lines of its output so far."""
        return list(self._out)

    def type(self, text: str) -> None:
        """Write to its standard input."""
        assert self.child.stdin
        self.child.stdin.write(text)
        self.child.stdin.flush()

    def rests(self) -> bool:
        """Whether it has read all that was typed, and sleeps."""
        assert self.child.stdin
        left = fcntl.ioctl(self.child.stdin, termios.FIONREAD, b"\0" * 4)
        status = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return not any(left) and status == "S"

    def finish(self, how: signal.Signals | None = None) -> Done:
        """End its input, or send it a signal, and wait for its end; return all that it wrote."""
        assert self.child.stdin
        if how is None:
            self.child.stdin.close()
        else:
            self.child.send_signal(how)
        code = self.child.wait(TIMEOUT)
        for reader in self._readers:
            reader.join(TIMEOUT)
        return Done(code, "".join(self._out), "".join(self._err))


class Terminal:
    """A command on a terminal: a pseudo-terminal whose other end is read here."""

    def __init__(
        self, command: Sequence[str], columns: int, folder: Path, env: dict[str, str]
    ) -> None:
        self._end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.child = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=env,
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = b""

    def until(self, text: str) -> str:
        """Read until a text is there; return all that was there so far."""
        deadline = time.monotonic() + TIMEOUT
        while text.encode() not in self._seen:
            assert self._more(deadline), f"{text!r} is not in {self._seen!r}"
        return self._seen.decode()

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.child.send_signal(signal.SIGINT)

    def finish(self) -> Done:
        """Read to the end; everything is in `out`, as a terminal gets it, with plain line ends."""
        deadline = time.monotonic() + TIMEOUT
        while self._more(deadline):
            pass
        os.close(self._end)
        code = self.child.wait(TIMEOUT)
        return Done(code, self._seen.decode().replace("\r\n", "\n"), "")

    def _more(self, deadline: float) -> bool:
        left = deadline - time.monotonic()
        assert left > 0, f"no end within {TIMEOUT} s: {self._seen!r}"
        if not select.select([self._end], [], [], left)[0]:
            return True
        try:
            data = os.read(self._end, 65536)
        except OSError:  # nobody has the other end any more
            return False
        self._seen += data
        return bool(data)


def plain(text: str) -> str:
    """Return a terminal's text without colours and other sequences."""
    return _ESCAPES.sub("", text)


def unix_seconds(text: str) -> float:
    """Read a time as commands print it in a pipe: ISO 8601, in UTC."""
    assert text.endswith("Z")
    return datetime.fromisoformat(text).timestamp()


def is_clean(text: str) -> bool:
    """Whether a text holds nothing that moves a cursor, changes colours or turns text around."""
    return all(char.isprintable() or char in "\n\t" for char in text)
