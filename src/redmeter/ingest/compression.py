"""Compressed files: known by their first bytes, decompressed by the piece.

Bound: a piece of at most the requested length is held, however much a file expands. The decoders of
bzip2, xz and zstd are Python's; zlib's gets their interface here, and gives what precedes an error.
"""

import bz2
import importlib
import lzma
import re
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

#: Bytes by which each kind is known.
MAGIC_BYTES: Final = 10


class Decoder(Protocol):
    """Decompresses one member of a file."""

    @property
    def eof(self) -> bool:
        """Whether the member has ended."""

    @property
    def needs_input(self) -> bool:
        """Whether it can give nothing more without further data."""

    @property
    def unused_data(self) -> bytes:
        """The data after the end of the member."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Decompress; data that was not needed yet is kept."""


class Damage(Exception):
    """Compressed data is corrupt.

    Attributes:
        salvaged: text that precedes the damage.
    """

    def __init__(self, salvaged: bytes, reason: str) -> None:
        self.salvaged = salvaged
        super().__init__(reason)


class _Gzip:
    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)  # 31 makes it expect gzip's header and checksum
        self._full = False

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not (self._full or self._zlib.unconsumed_tail)

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        data = self._zlib.unconsumed_tail + data
        before = self._zlib.copy()
        try:
            text = self._zlib.decompress(data, max_length)
        except zlib.error as exc:
            raise Damage(_salvage(before, data), str(exc)) from exc
        self._full = len(text) == max_length
        return text


def _salvage(decoder: "zlib._Decompress", data: bytes) -> bytes:
    """Decompress byte by byte, as far as it goes: zlib gives nothing of a piece with an error."""
    text = bytearray()
    try:
        for place in range(len(data)):
            text += decoder.decompress(data[place : place + 1])
    except zlib.error:
        return bytes(text)
    return bytes(text)


def _zstd() -> Any:
    for module in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(module).ZstdDecompressor()
        except ImportError:
            continue
    raise ImportError("zstd needs Python 3.14, or pip install backports.zstd")


class Compression(NamedTuple):
    """A kind of compressed file."""

    name: str
    #: The program that writes such a file out.
    program: str
    #: Makes the decoder of a member. Raises ImportError: this Python lacks it.
    decoder: Callable[[], Decoder]
    #: Errors of its decoder.
    errors: tuple[type[Exception], ...]


_KINDS: Final = {
    rb"\x1f\x8b": Compression("gzip", "zcat", _Gzip, (Damage,)),
    rb"BZh[1-9]1AY&SY": Compression("bzip2", "bzcat", bz2.BZ2Decompressor, (OSError, ValueError)),
    rb"\xfd7zXZ\x00": Compression("xz", "xzcat", lzma.LZMADecompressor, (lzma.LZMAError,)),
    rb"\x28\xb5\x2f\xfd": Compression("zstd", "zstdcat", _zstd, (Exception,)),
}
_STARTS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")


def may_be_compressed(start: bytes) -> bool:
    """Return whether a file that begins so may be compressed, so that more bytes are needed."""
    return len(start) < MAGIC_BYTES and any(each.startswith(start[: len(each)]) for each in _STARTS)


def compression_of(start: bytes) -> Compression | None:
    """Return the kind of a file that begins so; None if it is not compressed."""
    return next((kind for magic, kind in _KINDS.items() if re.match(magic, start)), None)
