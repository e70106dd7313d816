"""A network on loopback that can be taken apart: forwarded ports, and who reaches whom.

Each member has an address of its own, 127.0.0.11 and so on, from which it also connects. The ports
that others know are ours, at 127.0.0.1: whoever connects there is told by its address, and what it
says is carried on. So a member can be cut off from some or from all, in both directions, without
rights on the machine (Linux: all of 127.0.0.0/8 is its own).

Nothing is understood of what is carried, unlike in `proxy.py`. What was under way when a member is
cut off is kept, as a network keeps on sending, and arrives once it is healed: late, and perhaps
when no one waits for it any more.

One thread runs an event loop that does everything; the methods return when they are in force.
"""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from support.servers import free_port

T = TypeVar("T")

#: Who connects from here is nobody's member: a client.
CLIENT = "127.0.0.1"


def member_address(number: int) -> str:
    """Return the address of a member, by its number from 0 on."""
    return f"127.0.0.{11 + number}"


@dataclass(eq=False)
class _Link:
    """Two ends of one connection."""

    source: str
    target: str
    near: "_End"
    far: "_End"
    held: bool = False


class _End(asyncio.Protocol):
    """One end of a connection, which hands on what it hears to the other."""

    def __init__(self, network: "Network") -> None:
        self._network = network
        self._clogged = False
        self._silent = False  # it has said all it had to say
        self.transport: asyncio.Transport | None = None
        self.other: _End | None = None
        self.link: _Link | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take in the transport, and wait until there are two ends."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._network.note(self)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.pause_reading()

    def listen_again(self) -> None:
        """Read, unless the connection is held or the other end takes no more."""
        assert self.transport is not None
        if self.transport.is_closing():
            return
        if self._clogged or self.link is None or self.link.held:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def join(self, link: _Link, other: "_End") -> None:
        """Know the other end, and begin."""
        self.link, self.other = link, other
        self.listen_again()

    def data_received(self, data: bytes) -> None:
        """Hand on."""
        assert self.other is not None
        assert self.other.transport is not None
        if self.link is not None and not self._network.carries(self.link, self):
            return
        self.other.transport.write(data)

    def pause_writing(self) -> None:
        """Have the other end wait."""
        self._clog(True)

    def resume_writing(self) -> None:
        """Have the other end go on."""
        self._clog(False)

    def _clog(self, clogged: bool) -> None:
        if self.other is not None:
            self.other._clogged = clogged
            self.other.listen_again()

    def eof_received(self) -> bool:
        """Hand on that there is no more; something may still come back."""
        self._silent = True
        if self.other is None or self.other.transport is None or self.other._silent:
            return False
        with contextlib.suppress(OSError):
            self.other.transport.write_eof()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """End the other end too, as this one ended."""
        if self.other is not None and self.other.transport is not None:
            (self.other.transport.abort if exc else self.other.transport.close)()
        self._network.forget(self)


class Network:
    """Forwarded ports, and who is cut off from whom."""

    def __init__(self) -> None:
        self._links: set[_Link] = set()
        self._ends: set[_End] = set()
        self._closing = False
        self._all_gone = asyncio.Event()
        self._waiting: list[tuple[str, str, asyncio.Event]] = []
        self._cut: set[frozenset[str]] = set()
        self._lossy: dict[str, int] = {}
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._owner = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()

    def forward(self, member: str, target: Callable[[], tuple[str, int]], port: int = 0) -> int:
        """Listen on a port for a member; return which.

        Args:
            member: its address.
            target: where it listens, asked with each connection.
            port: listen there; else on one that is free.
        """
        port = port or free_port()

        listener = socket.create_server((CLIENT, port))
        listener.setblocking(False)

        async def begin() -> None:
            self._listeners.append(listener)
            self._loop.add_reader(listener, self._accept, listener, member, target)

        self._run(begin())
        return port

    def cut(self, one: str, other: str) -> None:
        """Let nothing pass between two addresses any more."""
        self._switch(lambda: self._cut.add(frozenset((one, other))))

    def heal(self, one: str, other: str) -> None:
        """Let what was held between two addresses arrive, and all that follows."""
        self._switch(lambda: self._cut.discard(frozenset((one, other))))

    def lose_replies(self, member: str, times: int = 1) -> None:
        """Close a client's connection in place of a member's next answer, so many times."""
        self._switch(lambda: self._lossy.__setitem__(member, times))

    def losses_left(self, member: str) -> int:
        """Return how many answers are yet to be lost."""
        return self._lossy.get(member, 0)

    def close(self) -> None:
        """Close all connections, and end."""
        if os.getpid() != self._owner or self._loop.is_closed():
            return

        async def end() -> None:
            self._closing = True
            for listener in self._listeners:
                self._loop.remove_reader(listener)
                listener.close()
            await asyncio.sleep(0)  # who has just connected is told
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks)
            for one in self._ends:
                assert one.transport is not None
                one.transport.abort()
            while self._ends:
                self._all_gone.clear()
                await self._all_gone.wait()

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # Within the loop

    def carries(self, link: _Link, end: _End) -> bool:
        """Tell whether what an end said is handed on; where it is not, the connection ends."""
        if end is link.far and link.source == CLIENT and self._lossy.get(link.target, 0) > 0:
            self._lossy[link.target] -= 1
            assert link.near.transport is not None
            link.near.transport.close()
            return False
        return True

    def note(self, end: _End) -> None:
        """Take note of a connection."""
        self._ends.add(end)

    def forget(self, end: _End) -> None:
        """Take note that a connection is over."""
        self._ends.discard(end)
        if self._closing and not self._ends:
            self._all_gone.set()
        if end.link is not None:
            self._links.discard(end.link)

    def _is_cut(self, source: str, target: str) -> bool:
        return frozenset((source, target)) in self._cut

    def _accept(
        self, listener: socket.socket, member: str, target: Callable[[], tuple[str, int]]
    ) -> None:
        try:
            accepted, _ = listener.accept()
        except OSError:  # gone again
            return
        accepted.setblocking(False)
        task = self._loop.create_task(self._connect(accepted, member, target))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(
        self, accepted: socket.socket, member: str, target: Callable[[], tuple[str, int]]
    ) -> None:
        """Look for the other end, once whoever connects may reach the member."""
        if self._closing:
            accepted.close()
            return
        near = _End(self)
        try:
            source = accepted.getpeername()[0]
            await self._loop.connect_accepted_socket(lambda: near, accepted)
            if self._is_cut(source, member):
                healed = asyncio.Event()
                self._waiting.append((source, member, healed))
                await healed.wait()
            _, far = await self._loop.create_connection(lambda: _End(self), *target())
        except (OSError, asyncio.CancelledError):
            if near.transport is not None:
                near.transport.abort()
            else:
                accepted.close()
            return
        link = _Link(source, member, near, far)
        link.held = self._is_cut(source, member)
        self._links.add(link)
        near.join(link, far)
        far.join(link, near)

    def _switch(self, change: Callable[[], Any]) -> None:
        async def apply() -> None:
            change()
            for link in self._links:
                link.held = self._is_cut(link.source, link.target)
                link.near.listen_again()
                link.far.listen_again()
            for source, target, healed in self._waiting:
                if not self._is_cut(source, target):
                    healed.set()
            self._waiting = [one for one in self._waiting if not one[2].is_set()]

        self._run(apply())

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10.0)
