"""The folder of a run of the demo: one run for each place where figures go, nothing left behind.

Idea: a run locks a file in its folder. The lock ends with the process, however that ends, so a
folder whose lock nobody holds is what a run left behind that was killed, and the next one removes
it. The folder's name identifies the store: a process that finds it locked would
remove what the other run has stored, and does not begin.

Bound: folders of this user on this machine. A run elsewhere that stores in the same place is not
seen.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from redmeter.store.embedded.files import held

_NAME = "redmeter-demo-"
_LOCK = "lock"


@contextlib.contextmanager
def claimed(place: str) -> Iterator[Path | None]:
    """Make the folder of a run, and remove it at the end.

    Args:
        place: identifies the store and prefix that the run writes to.

    Returns:
        The folder; None where another run stores there.
    """
    digest = hashlib.sha256(place.encode()).hexdigest()[:16]
    with (
        tempfile.TemporaryDirectory(prefix=f"{_NAME}{digest}-") as made,
        (Path(made) / _LOCK).open("w") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        taken = False
        for each in _folders():
            if each == Path(made) or not (each / _LOCK).exists():
                continue
            if not held(each / _LOCK):
                shutil.rmtree(each, ignore_errors=True)
            elif each.name.startswith(f"{_NAME}{digest}-"):
                taken = True
        yield None if taken else Path(made)


def _folders() -> list[Path]:
    """Return the folders of all runs of this user."""
    unlocked = []
    for each in Path(tempfile.gettempdir()).glob(f"{_NAME}*"):
        with contextlib.suppress(OSError):
            if each.lstat().st_uid == os.getuid() and each.is_dir() and not each.is_symlink():
                unlocked.append(each)
    return unlocked
