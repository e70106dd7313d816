"""Batches as bytes: made by the kinds as the recorder makes them, and sent without a client.

What a client library needs for a batch would hide what the server needs. So commands are packed
before, sent over sockets of our own, and the server says by itself how much time it took.
"""

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Self

import hiredis
import redis

from redmeter.clock import SYSTEM, Clock
from redmeter.store import Store
from redmeter.store import open as open_store
from redmeter.store.scripts import apply_script
from redmeter.store.servers.replies import Command
from redmeter.store.servers.sockets import pack
from redmeter.store.shard import BatchConditions, Shard
from redmeter.stored.keys import Keys
from redmeter.types import Batch, Operations

#: What a batch of the kinds that are measured may have: the scripts that are loaded before.
_CODES = (("slice", "add"), ("last",), ("hist", "moments", "stat", "sums"))


class Packed(NamedTuple):
    """Commands of one client, sent in one piece."""

    data: bytes
    #: How many replies they get; and whether each has to say that a batch was applied.
    replies: int
    applied: bool = True


class Bench:
    """A server of our own with a store on it.

    Args:
        path: its unix socket.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.conn = redis.Redis(unix_socket_path=str(path))
        self._opened: list[Store] = []

    def close(self) -> None:
        """Close all connections."""
        self.empty()
        self.conn.close()

    def empty(self) -> None:
        """Empty the server, and load the scripts again."""
        while self._opened:
            self._opened.pop().close()
        self.conn.execute_command("FLUSHALL", "SYNC")  # type: ignore[no-untyped-call]
        for number in range(1 << len(_CODES)):
            chosen = [code for at, codes in enumerate(_CODES) if number >> at & 1 for code in codes]
            _, text, *_ = apply_script(chosen).command((), (), whole=True)
            assert isinstance(text, bytes), "it is sent whole"
            self.conn.script_load(text)

    def shard(self, tag: str = "", clock: Clock = SYSTEM) -> Shard:
        """Return a shard of a store, bound; with a tag one that a store on a cluster has."""
        store = open_store(f"unix://{self.path}", clock=clock)
        assert store is not None, "the URL is not off"
        self._opened.append(store)
        (part,) = store.shards
        if tag:
            part = Shard(
                part.link,
                Keys(part.keys.prefix, tag),
                wanted=part._wanted,
                shards=1,
                timeout=part.timeout,
                clock=part.clock,
            )
        part.write(lambda _: ())  # which asks what is kept
        return part

    def cpu(self) -> float:
        """Return the seconds of processor time that the server took so far."""
        info = self.conn.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])

    def used(self) -> int:
        """Return the bytes that all keys take but for watermarks and meta:, as the server says."""
        pipe = self.conn.pipeline(transaction=False)
        for key in list(self.conn.scan_iter(count=1000)):
            if b":batch:" not in key and not key.endswith(b":meta:"):
                pipe.memory_usage(key, samples=0)
        return sum(size or 0 for size in pipe.execute())

    @contextmanager
    def wires(self, count: int) -> "Iterator[list[Wire]]":
        """Connect so often."""
        with ExitStack() as stack:
            yield [stack.enter_context(Wire(self.path)) for _ in range(count)]


class Wire:
    """A connection for bytes; a context manager that closes it."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._reader = hiredis.Reader()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, packed: Packed) -> None:
        """Send commands; each of them has to be received() before the next."""
        self._socket.sendall(packed.data)

    def receive(self, packed: Packed) -> None:
        """Take the replies, none of which may be an error."""
        for _ in range(packed.replies):
            while (reply := self._reader.gets()) is False:
                self._reader.feed(self._socket.recv(65536))
            if isinstance(reply, Exception) or (packed.applied and reply != 1):
                raise AssertionError(f"not as it was meant: {reply!r}")


def exchange(wires: Sequence[Wire], all_packed: Iterable[Packed]) -> None:
    """Send what clients send, in turns: as many at a time as there are connections."""
    waiting: list[tuple[Wire, Packed]] = []
    for at, packed in enumerate(all_packed):
        wire = wires[at % len(wires)]
        wire.send(packed)
        waiting.append((wire, packed))
        if len(waiting) == len(wires):
            for sender, sent in waiting:
                sender.receive(sent)
            waiting.clear()
    for sender, sent in waiting:
        sender.receive(sent)


def command_of(part: Shard, producer: str, number: int, operations: Operations) -> bytes:
    """Return the command by which a batch is applied, as it goes over the wire."""
    assert part.config is not None, "see Bench.shard"
    steps = part.applying(
        Batch(producer, number, operations), part.config.version, BatchConditions()
    )
    command = next(steps)
    steps.close()
    return packed(command)


def packed(command: Command) -> bytes:
    """Return a command as it goes over the wire."""
    return pack(command)


def together(commands: Sequence[bytes]) -> Packed:
    """Put commands into one piece."""
    return Packed(b"".join(commands), len(commands))


def server_time(bench: Bench, run: Callable[[], object], batches: int) -> float:
    """Return the microseconds of processor time that the server takes for each of some batches."""
    before = bench.cpu()
    run()
    return (bench.cpu() - before) / batches * 1e6
