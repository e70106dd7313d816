"""What a user may have meant by a name that is not there."""

import contextlib
import difflib
import glob

from redmeter.errors import LimitExceeded
from redmeter.reading import catalogue
from redmeter.store import Store

#: Names suggested for one that is not there, and those that are compared with it.
_SUGGESTED, _COMPARED = 5, 1_000


def suggestion(store: Store, name: str, *, histograms: bool = False) -> str:
    """Return what a user may have meant: other label sets, or names that look alike.

    Args:
        histograms: he means observed values; else counters and, where none is alike, these.
    """
    some = _alike(store, name, histograms=histograms)
    if not some and not histograms:
        some = _alike(store, name, histograms=True)
    return f"there is: {', '.join(some)}" if some else "redmeter names lists what there is"


def _alike(store: Store, name: str, *, histograms: bool) -> list[str]:
    base = name.partition("{")[0].rstrip("*")

    def read(pattern: str) -> list[str]:
        return catalogue.read_names(store, pattern, histograms=histograms)

    found: list[str] = []
    with contextlib.suppress(LimitExceeded):  # too many to look through
        found = (
            read(glob.escape(base) + "{*")
            or read(glob.escape(base[:4]) + "*")
            or difflib.get_close_matches(base, read("*")[:_COMPARED])
        )
    return found[:_SUGGESTED]
