"""The Lua scripts of lua/, and the runners of exchanges with them.

The script that applies a batch consists of lua/apply.lua and those files of lua/operations/ that
the batch needs, so a counter does not pay for histograms.

A script is called by its hash (EVALSHA). Its text is sent only if the server does not have it:
after a restart, a failover or SCRIPT FLUSH. NOSCRIPT means that nothing ran, so a retry is safe.
"""

import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import TypeVar

from redmeter.errors import StoreError
from redmeter.store.servers.replies import Command, Link, Reply
from redmeter.store.servers.retry import collect_again, is_unknown_script

#: Exchanges commands; an error is a reply.
Collect = Callable[[Sequence[Command]], list[Reply]]

T = TypeVar("T")
K = TypeVar("K")

#: Several exchanges with one shard, one command at a time: a generator that yields a command, is
#: sent the reply to it, which may be an error, and returns its result. So the same code writes one
#: batch alone, or many batches in step, as one pipeline.
Steps = Generator[Command, Reply, T]

#: The placeholder for the operations in apply.lua.
_PLACE = b"-- operations --\n"

#: Code of an operation -> the files that it is made of, in this order.
_OPERATIONS = {
    **dict.fromkeys(("slice", "last", "add"), ("intervals",)),
    **dict.fromkeys(("hist", "moments", "sums"), ("intervals", "histograms")),
    **dict.fromkeys(("stat", "tally"), ("hourly",)),
    **dict.fromkeys(("push", "seen", "steps", "touch", "exception"), ("messages",)),
    "mark": ("mark",),
}


#: Cached texts by name, such as "bind" or "operations/add".
_texts: dict[str, bytes] = {}


def read_all() -> None:
    """Read all scripts, so that none is read while the process forks: see fork_guard.py."""
    for script in (BIND, RETAIN, CLEAN, FULL, JOIN, COMPACT, HASHES, PUBLISH):
        _text(script.name)
    _text("apply")
    for part in sorted({"states", *(part for parts in _OPERATIONS.values() for part in parts)}):
        _text(f"operations/{part}")


def _text(name: str) -> bytes:
    text = _texts.get(name)
    if text is None:
        *folders, file = name.split("/")
        text = (files("redmeter.store").joinpath("lua", *folders) / f"{file}.lua").read_bytes()
        _texts[name] = text
    return text


#: Hash -> text, of the scripts that commands were made of.
_by_sha: dict[str, bytes] = {}


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
            sha = hashlib.sha1(text, usedforsecurity=False).hexdigest()
            self._known = text, sha
        return self._known

    def command(
        self, keys: Sequence[str | bytes], args: Sequence[str | bytes], *, whole: bool = False
    ) -> Command:
        """Return the command that runs it."""
        text, sha = self._text_and_sha()
        if whole:
            return ("EVAL", text, str(len(keys)), *keys, *args)
        _by_sha[sha] = text
        return ("EVALSHA", sha, str(len(keys)), *keys, *args)

    def run(self, link: Link, keys: Sequence[str | bytes], args: Sequence[str | bytes]) -> Reply:
        """Run it in an exchange of its own; return its reply, which may be an error."""
        (reply,) = collect_scripts(link.collect, [self.command(keys, args)])
        return reply


def collect_scripts(collect: Collect, commands: Sequence[Command]) -> list[Reply]:
    """Exchange commands, and those whose script the server does not have again with its text.

    Args:
        collect: exchanges commands; an error is a reply.
    """
    replies = collect(commands)
    if any(map(is_unknown_script, replies)):
        whole = [_with_text(command) for command in commands]
        collect_again(collect, whole, replies, is_unknown_script)
    return replies


def _with_text(command: Command) -> Command:
    """Return a command with its script's text in place of the hash; others as they are."""
    text = _by_sha.get(str(command[1])) if command[0] == "EVALSHA" else None
    return command if text is None else ("EVAL", text, *command[2:])


BIND = Script("bind")
RETAIN = Script("retain", ("states",))
CLEAN = Script("clean", ("states",))
JOIN = Script("join")
COMPACT = Script("compact")
HASHES = Script("hashes")
PUBLISH = Script("publish")
ALERTS = Script("alerts", ("states",))
FULL = Script("full")
FREEZE = Script("freeze")
RECEIVE = Script("receive")
COPY = Script("copy")

# By the operations that it has: a handful of combinations occur.
_apply: dict[tuple[str, ...], Script] = {}


def apply_script(codes: Iterable[str]) -> Script:
    """Return the script that applies batches of some operations."""
    combination = tuple(codes)
    script = _apply.get(combination)
    if script is None:
        # Combinations that need the same files are one script to the server.
        parts = dict.fromkeys(part for code in sorted({*combination}) for part in _OPERATIONS[code])
        script = _apply[combination] = Script("apply", tuple(parts))
    return script


# --- Steps -----------------------------------------------------------------------------------


def run_steps(collect: Collect, steps: Steps[T]) -> T:
    """Run steps to their end, one exchange for each.

    Args:
        collect: exchanges commands; an error is a reply.

    Raises:
        StoreError: raised by the steps.
    """
    try:
        command = next(steps)
        while True:
            (reply,) = collect_scripts(collect, [command])
            command = steps.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


def run_pipelined(link: Link, many: Mapping[K, Steps[T]]) -> dict[K, T | StoreError]:
    """Run several to their ends, with their commands in common pipelines.

    Returns:
        The result of each, or the StoreError that it raised.
    """
    # No nested function: its annotations would be evaluated with each call, even in an interpreter
    # that is exiting and can import nothing any more.
    results: dict[K, T | StoreError] = {}
    replies: dict[K, Reply] = dict.fromkeys(many)
    try:
        while replies:
            commands: dict[K, Command] = {}
            for key, reply in replies.items():
                try:
                    commands[key] = many[key].send(reply)
                except StopIteration as end:
                    results[key] = end.value
                except StoreError as error:
                    results[key] = error
            answers = collect_scripts(link.collect, list(commands.values())) if commands else []
            replies = dict(zip(commands, answers, strict=True))
    finally:
        for steps in many.values():
            steps.close()
    return results
