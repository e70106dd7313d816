"""Lines of text from a file, plain or compressed, or standard input, once or while it grows.

Problem: logs are rotated under the reader's feet, compressed, cut off, and now and then hold a
line of a gigabyte. A replay wants its lines fast, in batches, and to know how far it is.

Idea: read chunks of bytes, split them at line feeds, keep the unfinished end for the next chunk.
Compression is known by the first bytes, not by the name. Following works as `tail -F` does: when
another file has taken the path, it is opened at once, and read in addition to the old one until
that has been silent for a second, because servers go on writing to it until they notice the
rotation. A file that is suddenly shorter than the part that was read was truncated (copytruncate),
and is read from its start. After a stop, the existing data is read, up to LAST_BYTES of it.

A writer that does not append goes on at its old place after copytruncate, and the file begins with
NULs. Those at the beginning of a line are dropped.

Bytes that are no UTF-8 become U+FFFD ("replace"): lines end up in labels, terminals and JSON, all
of which want valid text, and nothing here needs the broken bytes back.

Bound: memory of one chunk, and of one line for each open file; a line is at most LINE_BYTES, the
rest of it is dropped and counted. While following: one open file per rotation not yet silent.

Not done: with copytruncate, lines written between our last look (0.2 s) and the truncation are
lost, as they are for tail; a truncated file that grows to its old length within one look is not
noticed. A compressed file, a pipe and standard input are read to their end, never followed beyond
it.
"""

import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Final, Self, cast

from redmeter.clock import SYSTEM, Clock
from redmeter.errors import InvalidSetting, RedmeterError
from redmeter.ingest.compression import Compression, Decoder, compression_of, may_be_compressed

#: Bytes that are read at once; a batch is the lines that end in them.
CHUNK_BYTES: Final = 262_144
#: Bytes of a line that are kept.
LINE_BYTES: Final = 65_536
#: Seconds between two looks at a file that is followed.
POLL_SECONDS: Final = 0.2
#: Seconds that a rotated file must be silent before it is closed.
CLOSED_AFTER: Final = 1.0
#: Bytes that are read at most after a stop: some tenths of a second's work.
LAST_BYTES: Final = 4 << 20

#: What standard input is called in messages.
STANDARD_INPUT: Final = "standard input"


class DamagedFile(RedmeterError, ValueError):
    """A compressed file is corrupt or cut off; the lines before the damage have been delivered.

    Attributes:
        filename: which.
        kind: its compression, such as gzip.
        reason: the problem.
    """

    def __init__(self, filename: str, kind: str, reason: str) -> None:
        self.filename = filename
        self.kind = kind
        self.reason = reason
        super().__init__(
            f"{filename}: damaged {kind} file: {reason}; "
            "the whole lines before the damage were read"
        )


def standard_input() -> BufferedReader:
    """Return standard input, as bytes.

    Raises:
        InvalidSetting: it is closed.
    """
    if sys.stdin is None:
        raise InvalidSetting("-", "standard input is closed")
    return cast(BufferedReader, sys.stdin.buffer)


class Lines(Iterator[list[str]]):
    """An iterator of batches of lines. Use it in a with statement, or close it.

    While following, a batch is empty where there was nothing to read.

    A line comes without its line end (LF or CR LF). A last line without one is delivered as it is;
    while following, only when its file was rotated or truncated, so that it cannot grow any more,
    and at the end.

    Args:
        source: a path, or - for standard input.
        follow: wait for more lines at the end of the file, also after its rotation.
        name: its name in errors, if that is not its path.
        clock: to wait by.
        stop: called before every chunk; the lines end as soon as it returns True. While following,
            called before every turn of all files; the lines end with the data that is there then,
            up to LAST_BYTES.

    Raises:
        OSError: of open(): the file cannot be opened.
        InvalidSetting: standard input is closed.

    Raises, while iterating:
        DamagedFile: after the last whole line before the damage.
        OSError: the file cannot be read any more.

    Attributes:
        bytes_read: how far we are: bytes of the source, compressed ones if it is.
        bytes_total: bytes that the source had when it was opened; None if it is a pipe.
        long_lines: lines that were cut at LINE_BYTES.
        bytes_dropped: the bytes that were cut from them.
        complete: False if it was stopped before the end of the data.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        follow: bool = False,
        name: str | None = None,
        clock: Clock = SYSTEM,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.bytes_read = 0
        self.long_lines = 0
        self.bytes_dropped = 0
        self.complete = True
        self._path = os.fspath(source)
        self._name = name or (STANDARD_INPUT if self._path == "-" else self._path)
        self._clock = clock
        self._stop = stop
        self._owned = self._path != "-"  # standard input is not ours to close
        file = _open(self._path) if self._owned else standard_input()
        # The newest file is the last one; more than one while rotated files are being read.
        self._files = [_File(file)]
        self.bytes_total = _size(file)
        follow = follow and self._owned and self.bytes_total is not None
        self._batches = self._read(follow=follow)

    def __next__(self) -> list[str]:
        return next(self._batches)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and end the iteration. Standard input stays open."""
        self._batches.close()
        self._close_files()

    def _close_files(self) -> None:
        while self._files:
            one = self._files.pop()
            if self._owned:
                one.file.close()

    # ------------------------------------------------------------ reading

    def _read(self, *, follow: bool) -> Generator[list[str], None, None]:
        (one,) = self._files
        try:
            start = b""
            while may_be_compressed(start) and (follow or not self._stop()):
                more = self._chunk(one)
                if not more:
                    break
                start += more
            if may_be_compressed(start) and not follow and self._stop():
                self.complete = False
                return
            if kind := compression_of(start):
                yield from self._read_compressed(one, start, kind)
                return
            yield from self._lines(one, start)
            yield from self._follow() if follow else self._read_plain(one)
        finally:
            self._close_files()

    def _chunk(self, one: "_File") -> bytes:
        """Read on in a file; nothing at its end."""
        data = one.file.read1(CHUNK_BYTES)
        self.bytes_read += len(data)
        return data

    def _read_plain(self, one: "_File") -> Iterator[list[str]]:
        while not self._stop():
            data = self._chunk(one)
            if not data:
                yield from self._last_line(one)
                return
            yield from self._lines(one, data)
        self.complete = False

    def _read_compressed(self, one: "_File", data: bytes, kind: Compression) -> Iterator[list[str]]:
        decoder = self._decoder(kind)
        while not self._stop():
            try:
                text = decoder.decompress(data, CHUNK_BYTES)
            except kind.errors as exc:
                yield from self._lines(one, getattr(exc, "salvaged", b""))
                raise DamagedFile(self._name, kind.name, str(exc)) from exc
            yield from self._lines(one, text)
            data = b""
            if decoder.eof:  # another member may follow, or the zeros that fill a tape's block
                data = decoder.unused_data.lstrip(b"\0")
                while not data:
                    more = self._chunk(one)
                    if not more:
                        yield from self._last_line(one)
                        return
                    data = more.lstrip(b"\0")
                decoder = self._decoder(kind)
            elif decoder.needs_input:
                data = self._chunk(one)
                if not data:
                    raise DamagedFile(self._name, kind.name, "it is cut off")
        self.complete = False

    def _decoder(self, kind: Compression) -> Decoder:
        try:
            return kind.decoder()
        except ImportError as missing:
            file = "" if self._path == "-" else f" {shlex.quote(self._name)}"
            fix = f"{kind.program}{file} | redmeter replay -"
            problem = f"compressed with {kind.name}: {missing}; or {fix}"
            raise InvalidSetting(self._name, problem) from None

    # ------------------------------------------------------------ following

    def _follow(self) -> Iterator[list[str]]:
        """Read all open files by turns until the stop, and then the rest of their data."""
        clock = self._clock
        while not self._stop():
            quiet = not self._open_successor()
            now = clock.monotonic()
            for one in tuple(self._files):
                if data := self._chunk(one):
                    yield from self._lines(one, data)
                elif self._rewind(one):
                    yield from self._last_line(one)
                else:
                    if one is not self._files[-1] and now - one.heard >= CLOSED_AFTER:
                        self._files.remove(one)
                        one.file.close()
                        yield from self._last_line(one)
                    continue
                one.heard, quiet = now, False
            if quiet:
                yield []  # so that the reader can see to other things meanwhile
                clock.sleep(POLL_SECONDS)
        yield from self._rest()

    def _rest(self) -> Iterator[list[str]]:
        """Read the existing data, once and no further than LAST_BYTES."""
        self._open_successor()
        room = LAST_BYTES
        for one in self._files:
            while room > 0:
                if data := self._chunk(one):
                    room -= len(data)
                    yield from self._lines(one, data)
                elif self._rewind(one):
                    yield from self._last_line(one)
                else:
                    break
            if room <= 0 and os.fstat(one.file.fileno()).st_size > one.file.tell():
                self.complete = False
            else:
                yield from self._last_line(one)

    def _rewind(self, one: "_File") -> bool:
        """Go to the start of a file if it was truncated."""
        if os.fstat(one.file.fileno()).st_size >= one.file.tell():
            return False
        one.file.seek(0)
        return True

    def _open_successor(self) -> bool:
        """Open the file at the path, unless it is open; return whether it became the newest one."""
        try:
            now = Path(self._path).stat()
            if not stat.S_ISREG(now.st_mode):
                return False
            same = [f for f in self._files if os.path.samestat(now, os.fstat(f.file.fileno()))]
            if same == self._files[-1:]:
                return False
            newest = same[0] if same else _File(_open(self._path))
        except (FileNotFoundError, PermissionError):
            return False  # in the middle of a rotation: not created, or not yet readable
        self._files = [one for one in self._files if one is not newest]
        for one in self._files:
            one.heard = self._clock.monotonic()  # it may be silent for so long from now on
        self._files.append(newest)
        return True

    # ------------------------------------------------------------ lines

    def _lines(self, one: "_File", data: bytes) -> Iterator[list[str]]:
        """Yield the lines that end in a chunk, and keep what follows the last line end."""
        if b"\0" in data:
            data = _NULS.sub(b"", data) if one.unfinished else _NULS_FIRST.sub(b"", data)
        first, *others = data.split(b"\n")
        self._keep(one, first)
        if not others:
            return
        begun = one.take()
        last = others.pop()
        if others and len(max(others, key=len)) > LINE_BYTES:
            others = [self._cut(line) for line in others]
        yield [_text(line) for line in [begun, *others]]
        self._keep(one, last)

    def _last_line(self, one: "_File") -> Iterator[list[str]]:
        """Yield the rest, which has no line end and will never get one."""
        if one.unfinished:
            yield [_text(one.take())]

    def _keep(self, one: "_File", data: bytes) -> None:
        """Add to the unfinished line of a file, up to its limit."""
        room = LINE_BYTES - len(one.unfinished)
        one.unfinished += data[:room]
        if len(data) > room:
            self.bytes_dropped += len(data) - room
            self.long_lines += not one.overflowing
            one.overflowing = True

    def _cut(self, line: bytes) -> bytes:
        """Return a whole line, cut at the limit."""
        dropped = max(len(line) - LINE_BYTES, 0)
        self.bytes_dropped += dropped
        self.long_lines += dropped > 0
        return line[:LINE_BYTES]


class _File:
    """An open file, and the line that has begun in it."""

    def __init__(self, file: BufferedReader) -> None:
        self.file = file
        self.unfinished = b""  # the end of the data so far, with no line end yet
        self.overflowing = False  # it is too long already, and counted
        self.heard = 0.0  # when something was read of it last, or it was rotated; while following

    def take(self) -> bytes:
        """Return the unfinished line, which is finished now."""
        line, self.unfinished, self.overflowing = self.unfinished, b"", False
        return line


#: NULs at the beginning of a line; the first also at that of a chunk.
_NULS, _NULS_FIRST = re.compile(rb"(?<=\n)\0+"), re.compile(rb"(?:^|(?<=\n))\0+")


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
