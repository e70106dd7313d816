"""The crew: the processes that write, read and clean, each started, ended and followed."""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from soak.journal import ENDING, Book
from soak.writers import FINISH
from support.programs import SOURCES, Done, Program
from support.servers import ENDED_WITH_PARENT
from support.waiting import eventually

#: Slot -> kind of writer.
WRITERS = {
    "steady": "steady",
    "plain1": "plain",
    "plain2": "plain",
    "prefork": "prefork",
    "stepped": "stepped",
    "sync": "sync",
    "bulk": "bulk",
}
#: Slots of writers that are killed, or asked to end, and started again.
MORTAL = ("plain1", "plain2", "prefork", "stepped", "sync")
#: Slot -> kind of those who look.
WATCHING = {"reader": "reader", "page": "page", "cleaner1": "cleaner", "cleaner2": "cleaner"}

#: Seconds that a process may take to be gone.
PATIENCE = 30.0

TESTS = Path(__file__).parents[1]


class Seen(NamedTuple):
    """Something that one of those who look has told."""

    slot: str
    what: str
    start: float
    end: float
    text: str


class Crew:
    """The processes of a stage; a context manager that ends them all, whatever they do.

    Args:
        folder: where journals lie.
        url: of the store.
        seed: what chance goes by.

    Attributes:
        books: what each process that records has written down.
        wrong: what should not be.
    """

    def __init__(self, folder: Path, url: str, seed: str) -> None:
        self._folder = folder
        self._url = url
        self._seed = seed
        self._programs: dict[str, Program] = {}
        self._told: dict[str, int] = {}
        self.books: dict[str, Book] = {}
        self.seen: list[Seen] = []
        self.wrong: list[str] = []
        self.starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for slot in list(self._programs):
            self._programs.pop(slot).close()

    # --- Starting ---------------------------------------------------------------------------

    def start_all(self) -> None:
        """Start everybody."""
        for slot in WRITERS:
            self.start(slot)
        self.start("up")
        for slot in WATCHING:
            self.start(slot)

    def start(self, slot: str) -> None:
        """Start the process of a slot."""
        self.starts += 1
        if slot in WRITERS:
            seed = f"{self._seed} {slot} {self.starts}"
            words = ["-m", "soak.writers", WRITERS[slot], slot, str(self._folder), self._url, seed]
        elif slot == "up":
            words = ["-m", "redmeter", "up", "--url", self._url, "--port", "0"]
        else:
            file = str(self._folder / "page")
            kind = WATCHING[slot]
            words = ["-m", "soak.watching", kind, file if kind == "page" else self._url]
        env = {"PYTHONPATH": os.pathsep.join((str(SOURCES), str(TESTS)))}
        env |= {"HOME": str(self._folder), "XDG_DATA_HOME": str(self._folder)}
        env |= {"XDG_STATE_HOME": str(self._folder)}
        # Whatever becomes of us, none of them goes on.
        guard = [sys.executable, "-I", "-S", "-c", ENDED_WITH_PARENT, str(os.getpid())]
        program = Program([*guard, sys.executable, *words], self._folder, env)
        self._programs[slot], self._told[slot] = program, 0
        if slot == "up":
            eventually(lambda: self._page(program), PATIENCE, f"the page is up: {program.err}")

    def _page(self, program: Program) -> bool:
        lines = [line for line in program.out if line.startswith("page: ")]
        if not lines and not program.running:
            raise AssertionError(f"`redmeter up` ended: {program.err}")
        if lines:
            (self._folder / "page").write_text(lines[0].split()[1].rstrip("/"))
        return bool(lines)

    # --- Following --------------------------------------------------------------------------

    def follow(self) -> None:
        """Read on in all journals, and in what is told."""
        for path in self._folder.glob(f"*{ENDING}"):
            if path.name not in self.books:
                self.books[path.name] = Book(path)
        for book in self.books.values():
            if not book.ended:
                book.ended = not _is_there(book.pid)
                book.read()
        for slot in WATCHING:
            if slot in self._programs:
                self._hear(slot)

    def _hear(self, slot: str) -> None:
        out = self._programs[slot].out
        for line in out[self._told[slot] :]:
            with contextlib.suppress(ValueError):  # cut off as it was killed
                self.seen.append(Seen(slot, **json.loads(line)))
        self._told[slot] = len(out)

    def living(self) -> Iterator[Book]:
        """Yield the books of writers that run: each the newest of its slot."""
        newest: dict[str, Book] = {}
        for name in sorted(self.books, key=lambda name: self.books[name].began):
            newest[self.books[name].slot] = self.books[name]
        for slot in WRITERS:
            if slot in newest and slot in self._programs and self._programs[slot].running:
                yield newest[slot]

    # --- Ending -----------------------------------------------------------------------------

    def kill(self, slot: str) -> None:
        """End a process and its children by SIGKILL, and start it again."""
        self._programs[slot].close()
        self._collect(slot)
        self.start(slot)

    def terminate(self, slot: str, *, calm: bool) -> None:
        """Ask a writer to end by SIGTERM, and start it again.

        Args:
            calm: whether nothing is wrong, so that nothing may be lost.
        """
        books = [book for book in self.living() if book.slot == slot]
        self._programs[slot].send(signal.SIGTERM)
        self._finish(slot, {0, -signal.SIGTERM})
        for book in books:
            book.flushed = calm and not book.last
        self._programs[slot].close()
        self.start(slot)

    def stop(self, *slots: str) -> None:
        """Have processes end in good order, with all that they have and all that they started."""
        for slot in slots:
            eventually(partial(self._is_ready, slot), PATIENCE, f"{slot} has begun")
            self._programs[slot].send(signal.SIGINT)
        for slot in slots:
            self._finish(slot, {0, 130, -signal.SIGINT} if slot == "up" else {0})
            program = self._programs.pop(slot)
            if _has_members(program.pid):
                self.wrong.append(f"{slot} has left processes behind")
            program.close()

    def _is_ready(self, slot: str) -> bool:
        """Tell whether a process has come so far that it knows what to do with SIGINT."""
        program = self._programs[slot]
        begun = any(self._folder.glob(f"{slot}-{program.pid}-*{ENDING}"))
        return begun or bool(program.out) or not program.running

    def _finish(self, slot: str, codes: set[int]) -> None:
        program = self._programs[slot]
        try:
            done = program.finish(FINISH + PATIENCE)
        except AssertionError as error:
            self.wrong.append(f"{slot} does not end: {error}")
        else:
            if done.code not in codes:
                self.wrong.append(f"{slot} ended with {_end_of(done)}")
        self._collect(slot)

    def _collect(self, slot: str) -> None:
        """Take what a process has said for the last time."""
        self.follow()
        said = "".join(self._programs[slot].err)
        if "Traceback" in said or "Fatal Python error" in said:
            self.wrong.append(f"{slot} said: {said[-2000:]}")
        self._programs[slot].err.clear()

    def ended_by_itself(self) -> list[str]:
        """Return who has ended without being asked to, and start them again."""
        found = []
        for slot, program in list(self._programs.items()):
            if not program.running:
                found.append(f"{slot} ended by itself: {_end_of(program.finish())}")
                program.close()
                self.start(slot)
        return found


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _has_members(group: int) -> bool:
    return _is_there(-group)


def _end_of(done: Done) -> str:
    return f"{done.code} {done.err[-2000:]}"
