"""A server with a fixed clock: a proxy that rewrites what depends on the time.

It rewrites requests only. `TIME` becomes a script that returns the fixed time. A script gets a
`redis` whose `call` and `pcall` return the fixed time for `TIME`, and count times to live from it;
because its hash is then another one, `EVALSHA` of a known script is sent as `EVAL`. All other
requests pass unchanged, so the library under test needs no hook, and any server will do.

Bound: the server itself does not expire keys by this time; `advance()` removes them.
"""

import contextlib
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

from support.proxy import split

#: What a script begins with: a `redis` of its own. Without line breaks, so that errors name the
#: script's own lines.
_SHIM = """
    local redis = (function(real)
      local seconds, microseconds = '%d', '%d'
      local now = seconds * 1000 + microseconds / 1000
      local function at(life) return string.format('%%.0f', now + life) end
      local function left(f, key)
        local found, time = f('PTTL', key), real.call('TIME')
        if type(found) ~= 'number' or found < 0 then return found end
        return found + time[1] * 1000 + time[2] / 1000 - now
      end
      local function timed(f)
        return function(name, ...)
          local upper, words = string.upper(name), {...}
          if upper == 'TIME' then return {seconds, microseconds} end
          if upper == 'EXPIRE' then return f('PEXPIREAT', words[1], at(words[2] * 1000)) end
          if upper == 'PEXPIRE' then return f('PEXPIREAT', words[1], at(words[2])) end
          if upper == 'PTTL' then return math.floor(left(f, words[1])) end
          if upper == 'TTL' then
            local found = left(f, words[1])
            return found < 0 and found or math.floor(found / 1000 + 0.5)
          end
          if upper == 'SET' and string.upper(words[3] or '') == 'EX' then
            words[3], words[4] = 'PXAT', at(words[4] * 1000)
          end
          return f(name, unpack(words))
        end
      end
      return setmetatable({call = timed(real.call), pcall = timed(real.pcall)}, {__index = real})
    end)(redis)
    """.replace("\n", " ")


class FixedTime:
    """A server with a fixed clock; a context manager.

    Args:
        port: where the real server listens on 127.0.0.1.
        now: the time, Unix seconds.

    Attributes:
        now: the same; may be set at any time.
        port: where clients connect to.
    """

    def __init__(self, port: int, now: float) -> None:
        self.now = now
        self._target = port
        self._scripts: dict[bytes, bytes] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []

    def advance(self, seconds: float, client: Any) -> None:
        """Let time pass, and remove the keys whose time has come.

        Args:
            client: of the real server, and of the database in which keys expire.
        """
        self.now += seconds
        for key in client.scan_iter():
            if (left := self.left(client, key)) is not None and left <= 0:
                client.delete(key)

    def left(self, client: Any, key: bytes) -> float | None:
        """Return how long a key lives from now on, seconds; None if it does not expire."""
        with client.pipeline() as pipe:
            (seconds, microseconds), left = pipe.time().pttl(key).execute()
        return None if left < 0 else seconds + microseconds / 1e6 + left / 1e3 - self.now

    @property
    def url(self) -> str:
        """The address of database 0."""
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5.0)
        for each in (self._listener, *self._sockets):
            each.close()

    def _start(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets |= {client, server}
                self._start(self._requests, client, server)
                self._start(self._replies, client, server)

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while chunk := client.recv(65536):
                frames, rest = split(rest + chunk)
                server.sendall(b"".join(map(self._rewritten, frames)))
            server.shutdown(socket.SHUT_WR)

    def _replies(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := server.recv(65536):
                client.sendall(chunk)
            client.shutdown(socket.SHUT_WR)

    def _rewritten(self, frame: bytes) -> bytes:
        name, *arguments = parts = list(_parts(frame))
        match name.upper():
            case b"TIME":
                seconds, microseconds = self._time()
                parts = [b"EVAL", b"return {'%d', '%d'}" % (seconds, microseconds), b"0"]
            case b"EVAL":
                sha = hashlib.sha1(arguments[0], usedforsecurity=False).hexdigest().encode()
                self._scripts[sha] = arguments[0]
                parts = [b"EVAL", self._shim() + arguments[0], *arguments[1:]]
            case b"EVALSHA" if arguments[0] in self._scripts:
                parts = [b"EVAL", self._shim() + self._scripts[arguments[0]], *arguments[1:]]
            case _:
                return frame
        return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)

    def _shim(self) -> bytes:
        return (_SHIM % self._time()).encode() + b" "

    def _time(self) -> tuple[int, int]:
        return divmod(round(self.now * 1_000_000), 1_000_000)


def _parts(frame: bytes) -> Iterator[bytes]:
    """Yield the words of a command, which clients send as an array of bulk strings."""
    count, at = int(frame[1 : frame.index(b"\r\n")]), frame.index(b"\r\n") + 2
    for _ in range(count):
        end = frame.index(b"\r\n", at)
        size = int(frame[at + 1 : end])
        yield frame[end + 2 : end + 2 + size]
        at = end + 2 + size + 2
