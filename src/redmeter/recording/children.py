"""Children: a recorder notices forked processes that ended before they had stored anything.

Such a process is not among the writers of the store yet, so nobody else could notice. Parent and
children share memory with a slot for each child: a child writes its process id there with its first
event, and clears it once the store has its first report, or all of its events.

Bounds: a child forked by C code that runs no hooks has no slot, nor has one that is spawned, nor
one beyond SLOTS. A parent that is killed itself notices nothing.
"""

import contextlib
import mmap
import os
from pathlib import Path
from struct import Struct

_PID = Struct("=I")
#: Children that have events and no report at the same time.
SLOTS = 1024


class Children:
    """The slots of a process's children, and its own slot among those of its parent.

    Args:
        parents: the memory shared with the parent and its other children; None if there is none.
    """

    def __init__(self, parents: mmap.mmap | None = None) -> None:
        self._parents = parents
        self._slot: int | None = None
        self._shared: mmap.mmap | None = None

    def before_fork(self) -> None:
        """Share memory with the child that is about to be forked."""
        if self._shared is None:
            with contextlib.suppress(OSError):  # no memory, or too many mappings
                self._shared = mmap.mmap(-1, SLOTS * _PID.size)

    def in_child(self) -> "Children":
        """Return what the child has instead, in the child."""
        return Children(self._shared)

    def has_events(self) -> None:
        """Note that this process has events that are not stored, unless that is noted."""
        parents = self._parents
        if parents is None or self._slot is not None:
            return
        first = os.getpid()
        for number in range(first, first + SLOTS):
            offset = number % SLOTS * _PID.size
            if not _PID.unpack_from(parents, offset)[0]:
                _PID.pack_into(parents, offset, first)
                self._slot = offset
                return

    def settled(self) -> None:
        """Note that the store knows this process, or has all of its events."""
        parents, slot = self._parents, self._slot
        if parents is not None and slot is not None:
            self._slot = None
            _PID.pack_into(parents, slot, 0)

    def take_ended(self) -> list[int]:
        """Return the process ids of children that have ended with events, each of them once."""
        shared = self._shared
        if shared is None or not any(shared[:]):
            return []
        ended = []
        for offset in range(0, len(shared), _PID.size):
            (pid,) = _PID.unpack_from(shared, offset)
            # Read again: it may have cleared its slot and ended since.
            if pid and has_ended(pid) and _PID.unpack_from(shared, offset)[0] == pid:
                _PID.pack_into(shared, offset, 0)
                ended.append(pid)
        return ended


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, even if its parent has not waited for it yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] in (b"Z", b"X")
    return False  # no /proc: noticed once its parent has waited for it
