"""A time zone whose clocks change when a test wants them to."""

import io
import struct
from zoneinfo import ZoneInfo

import pytest

from redmeter import clock

HOUR = 3600
#: The name under which install() makes it known.
NAME = "Test/Zone"


def install(monkeypatch: pytest.MonkeyPatch, change: int, before: int, after: int) -> None:
    """Make the zone known to this process.

    Args:
        change: when its offset from UTC changes, Unix seconds.
        before, after: the offsets, seconds.
    """
    sizes = struct.pack(">4s16x6l", b"TZif", 0, 0, 0, 1, 2, 4)
    kinds = struct.pack(">lbBlbB", before, 0, 0, after, 0, 0)
    file = sizes + struct.pack(">lB", change, 1) + kinds + b"LMT\0"
    rules = ZoneInfo.from_file(io.BytesIO(file), NAME)
    known = clock._rules
    monkeypatch.setattr(clock, "_rules", lambda name: rules if name == NAME else known(name))
