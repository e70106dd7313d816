"""The Lua scripts of lua/, and how to call one.

What applies a batch is put together from lua/apply.lua and those files of lua/operations/ that the
batch needs, so that adding to a counter does not pay for what histograms need.

A script is called by its hash (EVALSHA) and sent whole only when the server does not know it:
after a restart, a failover or SCRIPT FLUSH. NOSCRIPT means that nothing ran, so sending again is
always safe.
"""

import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files

from redmeter.errors import StoreRefused
from redmeter.store.replies import Command, Reply
from redmeter.store.steps import Collects, Steps, drive

#: What stands in apply.lua where the operations go.
_PLACE = b"-- operations --\n"

#: Code of an operation -> the files that it is made of, in this order.
_OPERATIONS = {
    "slice": ("slices", "slice"),
    "last": ("slices", "last"),
    "add": ("add",),
    "hist": ("slices", "hist"),
    "moments": ("slices", "moments"),
    "stat": ("hourly", "stat"),
    "tally": ("hourly", "tally"),
    "push": ("push",),
    "seen": ("seen",),
    "steps": ("steps",),
    "touch": ("touch",),
    "mark": ("mark",),
}


#: What was read: "bind", "operations/slice" -> text.
_texts: dict[str, bytes] = {}


def read_all() -> None:
    """Read all scripts, so that none is read while the process forks: see fork_guard.py."""
    for script in (BIND, RETAIN, CLEAN, JOIN, COMPACT, PUBLISH):
        _text(script.name)
    _text("apply")
    for part in sorted({part for parts in _OPERATIONS.values() for part in parts}):
        _text(f"operations/{part}")


def _text(name: str) -> bytes:
    text = _texts.get(name)
    if text is None:
        *folders, file = name.split("/")
        text = (files("redmeter.store").joinpath("lua", *folders) / f"{file}.lua").read_bytes()
        _texts[name] = text
    return text


class Script:
    """One script.

    Args:
        name: its file in lua/.
        parts: files of lua/operations/ that are put into it.
    """

    def __init__(self, name: str, parts: Sequence[str] = ()) -> None:
        self.name = name
        self._parts = parts
        # Not by functools.cached_property: before Python 3.12 it holds a lock, which a process
        # that is forked meanwhile would find held for good.
        self._known: tuple[bytes, str] | None = None

    def _text_and_sha(self) -> tuple[bytes, str]:
        if self._known is None:
            text = _text(self.name)
            if self._parts:
                made = [_text(f"operations/{part}") for part in self._parts]
                text = text.replace(_PLACE, b"\n".join(made))
            self._known = text, hashlib.sha1(text, usedforsecurity=False).hexdigest()
        return self._known

    def command(
        self, keys: Sequence[str | bytes], args: Sequence[str | bytes], *, whole: bool = False
    ) -> Command:
        """Return the command that runs it."""
        text, sha = self._text_and_sha()
        if whole:
            return ("EVAL", text, str(len(keys)), *keys, *args)
        return ("EVALSHA", sha, str(len(keys)), *keys, *args)

    def with_text(self, command: Command) -> Command:
        """Return a command of this script, with the text in place of its hash."""
        return ("EVAL", self._text_and_sha()[0], *command[2:])

    def steps(self, keys: Sequence[str | bytes], args: Sequence[str | bytes]) -> Steps[Reply]:
        """Run it; an error, also that there is no answer, is a reply. See steps.py."""
        reply = yield self.command(keys, args)
        if isinstance(reply, StoreRefused) and reply.code == "NOSCRIPT":
            reply = yield self.command(keys, args, whole=True)
        return reply

    def run(
        self, link: Collects, keys: Sequence[str | bytes], args: Sequence[str | bytes]
    ) -> Reply:
        """Run it by itself; see steps()."""
        return drive(link.collect, self.steps(keys, args))


BIND = Script("bind")
RETAIN = Script("retain")
CLEAN = Script("clean")
JOIN = Script("join")
COMPACT = Script("compact")
PUBLISH = Script("publish")

# By the operations that it has: a handful of combinations occur.
_apply: dict[tuple[str, ...], Script] = {}


def apply_script(codes: Iterable[str]) -> Script:
    """Return the script that applies batches of some operations."""
    wanted = tuple(codes)
    script = _apply.get(wanted)
    if script is None:
        # Combinations that need the same files are one script to the server.
        parts = dict.fromkeys(part for code in sorted({*wanted}) for part in _OPERATIONS[code])
        script = _apply[wanted] = Script("apply", tuple(parts))
    return script
