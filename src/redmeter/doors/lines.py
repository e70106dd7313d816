"""Lines of text from a file, a gzip file or standard input, once or for as long as it grows.

Problem: logs are rotated under the reader's feet, compressed, cut off, and now and then hold a
line of a gigabyte. A replay wants its lines fast, in batches, and to know how far it is.

Idea: read chunks of bytes, split them at line feeds, keep the unfinished end for the next chunk.
Gzip is known by its first two bytes, not by its name. Following works as `tail -F` does: when
another file has taken the path, it is opened at once, but the old one is read until it has been
silent for a second, because servers go on writing to it until they are told of the rotation.
A file that is suddenly shorter than what was read of it was truncated (copytruncate), and is read
from its start.

Bytes that are no UTF-8 become U+FFFD ("replace"): lines end up in labels, terminals and JSON, all
of which want valid text, and nothing here needs the broken bytes back.

Bound: memory of one chunk and one line; a line is at most LINE_BYTES, the rest of it is dropped
and counted. While following: one open file per rotation not yet read to its end.

Not done: with copytruncate, lines written between our last look (0.2 s) and the truncation are
lost, as they are for tail; a truncated file that grows past its old length within one look is not
noticed. A gzip file, a pipe and standard input are read to their end, never followed beyond it.
"""

import os
import stat
import sys
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

from redmeter.clock import SYSTEM, Clock
from redmeter.errors import InvalidSetting, RedmeterError

#: Bytes that are read at once; a batch is the lines that end in them.
CHUNK_BYTES: Final = 262_144
#: Bytes of a line that are kept.
LINE_BYTES: Final = 65_536
#: Seconds between two looks at a file that is followed.
POLL: Final = 0.2
#: Seconds that a rotated file must be silent before the next one is read.
SILENCE: Final = 1.0

#: What standard input is called in messages.
STANDARD_INPUT: Final = "standard input"

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31  # how zlib is told to expect gzip's header and checksum


class DamagedGzip(RedmeterError, ValueError):
    """A gzip file is corrupt or cut off; the lines before the damage have been delivered.

    Attributes:
        filename: which.
        reason: what is wrong with it.
    """

    def __init__(self, filename: str, reason: str) -> None:
        self.filename = filename
        self.reason = reason
        super().__init__(
            f"{filename}: damaged gzip file: {reason}; the whole lines before the damage were read"
        )


def read(
    source: str | os.PathLike[str],
    *,
    follow: bool = False,
    name: str | None = None,
    clock: Clock = SYSTEM,
    stop: Callable[[], bool] = lambda: False,
) -> "Lines":
    """Open a source of lines.

    Args:
        source: a path, or - for standard input.
        follow: wait for more lines at the end of the file, also after its rotation.
        name: what it is called in errors, where that is not its path.
        clock: to wait by.
        stop: asked before every chunk and every wait; the lines end as soon as it says True.

    Returns:
        An iterator of batches.

    Raises:
        OSError: the file cannot be opened, as open() says it.
        InvalidSetting: standard input is closed.
    """
    return Lines(source, follow=follow, name=name, clock=clock, stop=stop)


def standard_input() -> BufferedReader:
    """Return standard input, as bytes.

    Raises:
        InvalidSetting: it is closed.
    """
    if sys.stdin is None:
        raise InvalidSetting("-", "standard input is closed")
    return cast(BufferedReader, sys.stdin.buffer)


class Lines(Iterator[list[str]]):
    """An iterator of batches of lines; made by read(). Use it in a with statement, or close it.

    While following, a batch is empty where there was nothing to read.

    A line comes without its line end (LF or CR LF). A last line without one is delivered as it is;
    while following, only when its file was rotated or truncated, so that it cannot grow any more.

    Raises, while iterating:
        DamagedGzip: after the last whole line before the damage.
        OSError: the file cannot be read any more.

    Attributes:
        bytes_read: how far we are: bytes of the source, compressed ones if it is.
        bytes_total: bytes that the source had when it was opened; None if it is a pipe.
        long_lines: lines that were cut at LINE_BYTES.
        bytes_dropped: what was cut from them.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        follow: bool,
        name: str | None,
        clock: Clock,
        stop: Callable[[], bool],
    ) -> None:
        self.bytes_read = 0
        self.long_lines = 0
        self.bytes_dropped = 0
        self._path = os.fspath(source)
        self._name = name or (STANDARD_INPUT if self._path == "-" else self._path)
        self._clock = clock
        self._stop = stop
        self._unfinished = b""  # the end of what was read, with no line end yet
        self._overflowing = False  # it is too long already, and counted
        self._owned = self._path != "-"  # standard input is not ours to close
        file = _open(self._path) if self._owned else standard_input()
        # The newest file is the last one; more than one while rotated files are being read.
        self._files = deque([file])
        self.bytes_total = _size(file)
        follow = follow and self._owned and self.bytes_total is not None
        self._batches = self._read(follow=follow)

    def __next__(self) -> list[str]:
        return next(self._batches)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and end the iteration. Standard input stays open."""
        self._batches.close()
        self._close_files()

    def _close_files(self) -> None:
        while self._files:
            file = self._files.popleft()
            if self._owned:
                file.close()

    # ------------------------------------------------------------ reading

    def _read(self, *, follow: bool) -> Generator[list[str], None, None]:
        try:
            start = b""
            while len(start) < len(_GZIP_MAGIC) and not self._stop():
                more = self._chunk()
                if not more:
                    break
                start += more
            if start.startswith(_GZIP_MAGIC):
                yield from self._read_gzip(start)
                return
            yield from self._lines(start)
            yield from self._follow() if follow else self._read_plain()
        finally:
            self._close_files()

    def _chunk(self) -> bytes:
        """Read on in the current file; nothing at its end."""
        data = self._files[0].read1(CHUNK_BYTES)
        self.bytes_read += len(data)
        return data

    def _read_plain(self) -> Iterator[list[str]]:
        while not self._stop():
            data = self._chunk()
            if not data:
                yield from self._last_line()
                return
            yield from self._lines(data)

    def _read_gzip(self, data: bytes) -> Iterator[list[str]]:
        decoder = zlib.decompressobj(wbits=_GZIP)
        while data and not self._stop():
            if decoder.eof:  # another member may follow, or the zeros that fill a tape's block
                data = data.lstrip(b"\0")
                if not data:
                    data = self._chunk()
                    continue
                decoder = zlib.decompressobj(wbits=_GZIP)
            before = decoder.copy()
            try:
                text = decoder.decompress(data, CHUNK_BYTES)
            except zlib.error as exc:
                yield from self._lines(_salvage(before, data))
                raise DamagedGzip(self._name, str(exc)) from exc
            yield from self._lines(text)
            data = decoder.unconsumed_tail or decoder.unused_data or self._chunk()
        if data:
            return  # stopped
        if not decoder.eof:
            yield from self._lines(decoder.flush())
            raise DamagedGzip(self._name, "it is cut off")
        yield from self._last_line()

    # ------------------------------------------------------------ following

    def _follow(self) -> Iterator[list[str]]:
        clock = self._clock
        silent_since = clock.monotonic()
        while not self._stop():
            if data := self._chunk():
                yield from self._lines(data)
                silent_since = clock.monotonic()
            elif self._rewind():
                yield from self._last_line()
            elif self._open_successor():
                silent_since = clock.monotonic()
            elif len(self._files) > 1 and clock.monotonic() - silent_since >= SILENCE:
                self._files.popleft().close()
                yield from self._last_line()
                silent_since = clock.monotonic()
            else:
                yield []  # so that the reader can see to other things meanwhile
                clock.sleep(POLL)

    def _rewind(self) -> bool:
        """Go to the start of the file if it was truncated."""
        file = self._files[0]
        if os.fstat(file.fileno()).st_size >= file.tell():
            return False
        file.seek(0)
        return True

    def _open_successor(self) -> bool:
        """Open the file at the path if it is another one than the newest we have."""
        newest = os.fstat(self._files[-1].fileno())
        try:
            now = Path(self._path).stat()
            if not stat.S_ISREG(now.st_mode) or os.path.samestat(now, newest):
                return False
            self._files.append(_open(self._path))
        except (FileNotFoundError, PermissionError):
            return False  # in the middle of a rotation: not created, or not yet readable
        return True

    # ------------------------------------------------------------ lines

    def _lines(self, data: bytes) -> Iterator[list[str]]:
        """Yield the lines that end in a chunk, and keep what follows the last line end."""
        first, *others = data.split(b"\n")
        self._keep(first)
        if not others:
            return
        begun = self._take()
        last = others.pop()
        if others and len(max(others, key=len)) > LINE_BYTES:
            others = [self._cut(line) for line in others]
        yield [_text(line) for line in [begun, *others]]
        self._keep(last)

    def _last_line(self) -> Iterator[list[str]]:
        """Yield what has no line end and will never get one."""
        if self._unfinished:
            yield [_text(self._take())]

    def _keep(self, data: bytes) -> None:
        """Add to the unfinished line what it can still hold."""
        room = LINE_BYTES - len(self._unfinished)
        self._unfinished += data[:room]
        if len(data) > room:
            self.bytes_dropped += len(data) - room
            self.long_lines += not self._overflowing
            self._overflowing = True

    def _take(self) -> bytes:
        """Return the unfinished line, which is finished now."""
        line, self._unfinished, self._overflowing = self._unfinished, b"", False
        return line

    def _cut(self, line: bytes) -> bytes:
        self._keep(line)
        return self._take()


def _open(path: str) -> BufferedReader:
    return Path(path).open("rb")


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")


def _size(file: BufferedReader) -> int | None:
    """Return the bytes of a regular file, None for a pipe or a stand-in without a descriptor."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _salvage(decoder: "zlib._Decompress", data: bytes) -> bytes:
    """Decompress byte by byte, as far as it goes: zlib gives nothing of a piece with an error."""
    text = bytearray()
    try:
        for place in range(len(data)):
            text += decoder.decompress(data[place : place + 1])
    except zlib.error:
        return bytes(text)
    return bytes(text)
