"""Which series there are, from the indexes: `known:` of counters, `gauges:` of gauges.

Their members are PRECISION:NAME, all with score 0 and therefore in the order of their bytes, so the
entries of one precision are a range that is read without touching the others, and so are the
label sets of one name, or the names that begin as a pattern does. Patterns are matched here, not
by the server: nothing in a name can widen the match.
"""

import fnmatch
import re
from collections.abc import Iterable, Sequence

from redmeter.errors import LimitExceeded, StoreError
from redmeter.keys import entry
from redmeter.store import Store, View
from redmeter.store.link import Command, Reply, raised

#: Most index entries of one precision that one request looks at.
MAX_NAMES = 100_000

#: What a pattern begins with literally. No name has surrogates, and the server takes none.
_HEAD = re.compile("[^*?\\[\ud800-\udfff]*")
_NARROW_PATTERN = "begin the pattern with more literal text"
_NARROW_LABELS = (
    "give labels fewer values, or rank without a label, by a pattern that begins with literal text"
)


def read_names(store: Store, pattern: str = "*", *, gauges: bool = False) -> list[str]:
    """Return the names of all counters, or of all gauges, that match, sorted.

    Args:
        pattern: `*` any text, `?` one character, `[abc]` one of these; the rest is literal. Only
            names that begin with what is literal at its beginning are looked at.
        gauges: of gauges, instead of counters.

    Raises:
        LimitExceeded: over MAX_NAMES have to be looked at.
        StoreError: the server cannot be reached or refuses.
    """
    view, _ = store.read()
    index = store.keys.gauges if gauges else store.keys.known
    commands = [_matching_range(index, precision, pattern) for precision in view.retention]
    found: set[str] = set()
    for precision, reply in zip(view.retention, store.ask(commands), strict=True):
        found.update(_names_of(reply, precision, _NARROW_PATTERN))
    return sorted(matching(found, pattern))


def candidates(
    store: Store, precision: int, *, base: str | None = None, pattern: str = "*"
) -> tuple[View, Sequence[str]]:
    """Return the names that have an entry at a precision, in one round trip.

    Args:
        base: only this name without labels and all its label sets.
        pattern: where there is no base: only names that match, see read_names.

    Raises:
        UnknownPrecision, LimitExceeded, StoreError: see read_names and Retention.check.
    """
    width = precision if isinstance(precision, int) else 0
    if base is None:
        view, replies = store.read([_matching_range(store.keys.known, width, pattern)])
        found = matching(_names_of(replies[0], width, _NARROW_PATTERN), pattern)
    else:
        whole = entry(width, base)
        known = store.keys.known
        view, replies = store.read([_range(known, whole + "{"), ("ZSCORE", known, whole)])
        found = _names_of(replies[0], width, _NARROW_LABELS)
        if replies[1] is not None and not isinstance(replies[1], StoreError):
            found = [*found, base]
    view.retention.check(precision)
    return view, found


def matching(names: Iterable[str], pattern: str) -> Sequence[str]:
    """Return the names that match a pattern, see read_names."""
    if pattern == "*":
        return list(names)
    matches = re.compile(fnmatch.translate(pattern)).match
    return [name for name in names if matches(name)]


def _matching_range(index: str, precision: int, pattern: str) -> Command:
    """All entries that can match: the one of that name, or those that begin as the pattern does."""
    found = _HEAD.match(pattern)
    head = found[0] if found else ""
    return _range(index, entry(precision, head), alone=head == pattern)


def _range(index: str, start: str, *, alone: bool = False) -> Command:
    """All entries that begin with a text: up to, and without, the next text of its length.

    Args:
        alone: no others than the text itself.
    """
    first = start.encode()
    end = b"[" + first if alone else b"(" + first[:-1] + bytes([first[-1] + 1])
    return "ZRANGEBYLEX", index, b"[" + first, end, "LIMIT", 0, MAX_NAMES + 1


def _names_of(reply: Reply, precision: int, fix: str) -> Sequence[str]:
    """Read entries; the fix is for where there are too many."""
    if len(raised(reply)) > MAX_NAMES:
        raise LimitExceeded("series", len(reply), MAX_NAMES, fix)
    cut = len(str(precision)) + 1
    names = []
    for member in reply:
        try:
            names.append(member[cut:].decode())
        except UnicodeDecodeError:
            continue  # not UTF-8, so no name of ours: doctor counts it
    return names
