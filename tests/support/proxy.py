"""A TCP proxy between a client and a server that breaks connections in chosen ways.

It reads the protocol (RESP2 and RESP3) in both directions, far enough to tell one command and
one reply from the next and to know which reply answers which command. So a fault hits exactly
the reply it is meant for: the server has applied the command, the client never hears of it.

One thread runs an event loop that does everything; the methods hand their switch over to it and
return when it is in force. Faults add up until `heal`.
"""

import asyncio
import contextlib
import itertools
import os
import socket
import struct
import threading
import weakref
from collections import Counter, deque
from collections.abc import Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from support.servers import free_port

T = TypeVar("T")

#: The commands that carry a batch.
EVALS = frozenset({"EVAL", "EVALSHA"})

#: What clients send of their own accord when they connect. No fault counts these.
SETUP = frozenset({"HELLO", "AUTH", "CLIENT", "SELECT", "READONLY", "COMMAND"})

#: SO_LINGER on, 0 s: closing sends RST.
_RESET = struct.pack("ii", 1, 0)

#: Bytes of one read.
_CHUNK = 65536

Way = Literal["requests", "replies"]


class Proxy:
    """A proxy on a port of 127.0.0.1; a context manager.

    Args:
        target_port: where the server listens on 127.0.0.1.

    Attributes:
        commands: how often each command was sent on to the server, by name in capitals.
        dropped: how many replies were thrown away by `drop_replies` and `drop_pattern`.
        connections: how many connections were accepted.
    """

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.commands: Counter[str] = Counter()
        self.dropped = 0
        self.connections = 0
        self._port = 0
        self._listener: socket.socket | None = None
        self._links: set[_Link] = set()
        self._errors: list[BaseException] = []  # of our own: there should be none
        self._thread: threading.Thread | None = None
        self._healed = asyncio.Event()
        self._clear()
        _proxies.add(self)

    def _clear(self) -> None:
        self._hole = False
        self._drops: Iterator[bool] = iter(())
        self._droppable: frozenset[str] | None = EVALS
        self._delays: dict[Way, float] = {}
        self._budgets: dict[Way, tuple[int, int]] = {}  # bytes that pass, then again so often
        self._left: dict[Way, int] = {}

    @property
    def port(self) -> int:
        """Where clients connect to, the same for the proxy's whole life."""
        return self._port

    @property
    def url(self) -> str:
        """The address of database 0 through the proxy."""
        return f"redis://127.0.0.1:{self._port}/0"

    @property
    def open(self) -> int:
        """How many connections are open now."""
        return len(self._links)

    # --- Faults -----------------------------------------------------------------------------

    def drop_replies(
        self, n: int, *, skip: int = 0, commands: Iterable[str] | None = EVALS
    ) -> None:
        """Lose the next n replies: the server answers, the client's connection closes instead.

        Replies that tell of nothing applied (an error, such as NOSCRIPT, and QUEUED) pass and
        are not counted. Where several commands were sent at once, what came before is
        delivered, and what comes after is lost with the connection.

        Args:
            n: how many.
            skip: let so many through first.
            commands: whose replies; None for every command but a client's `SETUP`.
        """
        self._plan(itertools.chain([False] * skip, [True] * n), commands)

    def drop_pattern(self, pattern: str, *, commands: Iterable[str] | None = EVALS) -> None:
        """Lose replies by a pattern that repeats: "xx." loses two in three.

        Args:
            pattern: "x" for a reply that is lost, "." for one that passes.
            commands: as for `drop_replies`.
        """
        if not pattern or set(pattern) - set("x."):
            raise ValueError(f"a pattern is made of x and ., not {pattern!r}")
        self._plan(itertools.cycle(sign == "x" for sign in pattern), commands)

    def _plan(self, drops: Iterator[bool], commands: Iterable[str] | None) -> None:
        async def switch() -> None:
            self._drops = drops
            self._droppable = None if commands is None else frozenset(commands)

        self._run(switch())

    def delay(self, seconds: float, *, of: Way = "replies") -> None:
        """Hold back whatever comes by that long, but for a client's `SETUP`.

        Delayed requests reach the server even if the client has given up and gone by then.
        """

        async def switch() -> None:
            self._delays[of] = seconds

        self._run(switch())

    def reset_after(self, count: int, *, of: Way = "replies", times: int = 1) -> None:
        """Let so many more bytes through, then reset the connection (RST) in mid-sentence.

        Args:
            count: bytes, over all connections, without those of a client's `SETUP`.
            of: which direction's bytes. Half a request is never applied; with half a reply the
                command was.
            times: do it so often, counting afresh each time.
        """

        async def switch() -> None:
            self._budgets[of] = (count, times)
            self._left[of] = count

        self._run(switch())

    def reset(self) -> None:
        """Reset every open connection now (RST)."""
        self._run(self._end_links(set(self._links)))

    def black_hole(self) -> None:
        """Swallow everything from now on, both ways; accept new connections and never answer.

        What is swallowed is lost: `heal` resets the connections concerned.
        """

        async def switch() -> None:
            self._hole = True

        self._run(switch())

    def refuse(self) -> None:
        """Close the listening socket and reset every connection, as when a server is gone."""

        async def switch() -> None:
            self._close_listener()
            await self._end_links(set(self._links))

        self._run(switch())

    def heal(self) -> None:
        """Take every fault away."""

        async def switch() -> None:
            self._clear()
            self._healed.set()
            self._healed = asyncio.Event()
            await self._end_links({link for link in self._links if link.lossy})
            if self._listener is None:
                self._listen()

        self._run(switch())

    # --- Life -------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()

        async def begin() -> None:
            self._listen()

        try:
            self._run(begin())
        except BaseException:
            self._finish()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.refuse()
        self._finish()
        if self._errors and exc is None:
            raise BaseExceptionGroup("the proxy failed", self._errors)

    def _finish(self) -> None:
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        assert not self._thread.is_alive()
        self._loop.close()

    def close_copies(self) -> None:
        """Close the sockets without a word to the other side; for a forked child."""
        for link in self._links:
            link.client.close()
            link.server.close()
        if self._listener is not None:
            self._listener.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(5.0)

    def _listen(self) -> None:
        while True:
            port = self._port or free_port()
            listener = socket.socket()
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
                listener.listen(128)
            except OSError:
                listener.close()
                if self._port:
                    raise
                continue  # someone took the port since we looked
            break
        self._port, self._listener = port, listener
        self._loop.add_reader(listener, self._accept)

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            _close(self._listener)
            self._listener = None

    async def _end_links(self, links: "set[_Link]") -> None:
        for link in links:
            link.reset = True
        await _cancel(*(link.task for link in links))

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            sock, _ = self._listener.accept()
        except OSError:  # gone again before its turn came
            return
        sock.setblocking(False)
        self.connections += 1
        link = _Link(sock)
        self._links.add(link)
        link.task = self._loop.create_task(self._carry(link))
        link.task.add_done_callback(lambda task: self._end_link(link, task))

    def _end_link(self, link: "_Link", task: asyncio.Task[None]) -> None:
        """Close both sockets: here, as a task cancelled before its first step runs no finally."""
        for sock in (link.client, link.server):
            _close(sock, reset=link.reset)
        self._links.discard(link)
        if not task.cancelled() and (exc := task.exception()):
            self._errors.append(exc)

    # --- One connection ---------------------------------------------------------------------

    async def _carry(self, link: "_Link") -> None:
        """Carry both directions of a connection until it ends either way."""
        pumps: list[asyncio.Task[None]] = []
        try:
            link.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._hole:
                link.lossy = True
                pumps = [self._loop.create_task(self._swallow(link.client))]
            else:
                link.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._loop.sock_connect(link.server, ("127.0.0.1", self.target_port))
                pumps = [
                    self._loop.create_task(self._requests(link)),
                    self._loop.create_task(self._replies(link)),
                ]
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            if pumps[0] in done and len(pumps) > 1 and not pumps[0].exception():
                # The client has said all it had to say; let the server take it in.
                await asyncio.wait(pumps)
            for pump in pumps:
                if pump.done() and (exc := pump.exception()):
                    raise exc
        except _Cut as cut:
            link.reset = cut.reset
        except OSError:
            link.reset = True
        finally:
            await _cancel(*pumps)

    async def _swallow(self, sock: socket.socket) -> None:
        while await self._loop.sock_recv(sock, _CHUNK):
            pass

    async def _requests(self, link: "_Link") -> None:
        """Send on what the client says, command by command."""
        rest = b""
        while chunk := await self._hear(link.client):
            frames, rest = split(rest + chunk)
            named = [(command_name(frame), frame) for frame in frames]
            await self._wait("requests", (name for name, _ in named))
            link.lossy |= self._hole
            for name, frame in [] if link.lossy else named:
                link.asked.append(name)
                part = frame if name in SETUP else self._within_budget("requests", frame)
                if part is frame:
                    self.commands[name] += 1
                await self._loop.sock_sendall(link.server, part)
                if part is not frame:
                    raise _Cut(reset=True)
        link.client_gone = True
        with contextlib.suppress(OSError):
            link.server.shutdown(socket.SHUT_WR)

    async def _replies(self, link: "_Link") -> None:
        """Send on what the server says, reply by reply."""
        rest = b""
        while chunk := await self._loop.sock_recv(link.server, _CHUNK):
            frames, rest = split(rest + chunk)
            named = [(link.answered_by(frame), frame) for frame in frames]
            await self._wait("replies", (name for name, _ in named))
            link.lossy |= self._hole
            for name, frame in [] if link.lossy or link.client_gone else named:
                if self._drops_reply(name, frame):
                    self.dropped += 1
                    raise _Cut(reset=False)
                part = frame if name in SETUP else self._within_budget("replies", frame)
                try:
                    await self._loop.sock_sendall(link.client, part)
                except OSError:
                    link.client_gone = True
                    break
                if part is not frame:
                    raise _Cut(reset=True)

    async def _hear(self, client: socket.socket) -> bytes:
        try:
            return await self._loop.sock_recv(client, _CHUNK)
        except OSError:  # it left without reading all: gone as after an orderly end
            return b""

    async def _wait(self, way: Way, names: Iterable[str]) -> None:
        if (seconds := self._delays.get(way, 0.0)) and not SETUP.issuperset(names):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._healed.wait()

    def _drops_reply(self, name: str, frame: bytes) -> bool:
        if not name or frame[:1] in b"-!" or frame == b"+QUEUED\r\n":
            return False
        chosen = name not in SETUP if self._droppable is None else name in self._droppable
        return chosen and next(self._drops, False)

    def _within_budget(self, way: Way, frame: bytes) -> bytes:
        """Return the frame itself, or as much of it as passes before the reset."""
        if way not in self._budgets:
            return frame
        count, times = self._budgets[way]
        if len(frame) <= self._left[way]:
            self._left[way] -= len(frame)
            return frame
        part = frame[: self._left[way]]
        self._left[way] = count
        self._budgets[way] = (count, times - 1)
        if times <= 1:
            del self._budgets[way]
        return part


class _Link:
    """One connection: the client's socket, the one to the server, what awaits an answer."""

    task: asyncio.Task[None]

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.server = socket.socket()
        self.server.setblocking(False)
        self.asked: deque[str] = deque()
        self.client_gone = False
        self.lossy = False  # something was swallowed: the rest makes no sense any more
        self.reset = False

    def answered_by(self, reply: bytes) -> str:
        """Return the name of the command that a reply answers; "" for a message unasked for."""
        return "" if reply[:1] == b">" or not self.asked else self.asked.popleft()


class _Cut(Exception):
    """A fault ends the connection."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__()
        self.reset = reset


_proxies: weakref.WeakSet[Proxy] = weakref.WeakSet()


def _forget() -> None:
    """Close the copies that a forked child has: they would keep a closed connection open."""
    for proxy in _proxies:
        proxy.close_copies()


os.register_at_fork(after_in_child=_forget)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _close(sock: socket.socket, *, reset: bool = False) -> None:
    with contextlib.suppress(OSError):
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        else:
            sock.shutdown(socket.SHUT_RDWR)
    sock.close()


# --- The protocol --------------------------------------------------------------------------


def split(data: bytes) -> tuple[list[bytes], bytes]:
    """Split bytes into whole commands or replies and the rest.

    Example: b"+OK\\r\\n$3\\r\\nab" gives ([b"+OK\\r\\n"], b"$3\\r\\nab").
    """
    frames = []
    start = 0
    while (end := _frame_end(data, start)) is not None:
        frames.append(data[start:end])
        start = end
    return frames, data[start:]


def _frame_end(data: bytes, start: int) -> int | None:
    """Return where the frame that begins at `start` ends, None if it is not all there."""
    line = data.find(b"\r\n", start)
    if line < 0:
        return None
    kind, end = data[start : start + 1], line + 2
    if kind in b"$=!":  # a length, then so many bytes; -1 is a null
        length = int(data[start + 1 : line])
        end += max(length + 2, 0) if length >= 0 else 0
        return end if end <= len(data) else None
    if kind in b"*~>%|":  # so many frames follow; a map's are pairs
        count = int(data[start + 1 : line]) * (2 if kind in b"%|" else 1)
        count += kind == b"|"  # attributes stand before the reply they belong to
        for _ in range(count):
            inner = _frame_end(data, end)
            if inner is None:
                return None
            end = inner
    return end


def command_name(frame: bytes) -> str:
    """Return a command's name in capitals, "EVALSHA" of b"*2\\r\\n$7\\r\\nevalsha\\r\\n..."."""
    word = frame.split(b"\r\n", 3)[2] if frame[:1] == b"*" else frame.split(None, 1)[0]
    return word.decode("latin-1").upper()
