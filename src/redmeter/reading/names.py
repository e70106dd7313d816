"""Which series there are, from the indexes: `known:` of counters, `gauges:` and `hists:` of others.

Their members are PRECISION:NAME, all with score 0 and therefore in the order of their bytes, so the
entries of one precision are a range that is read without touching the others, and so are the
label sets of one name, or the names that begin as a pattern does. Patterns are matched here, not
by the server: nothing in a name can widen the match.
"""

import fnmatch
import re
from collections.abc import Iterable, Sequence

from redmeter.errors import LimitExceeded
from redmeter.families import INDEX_OF
from redmeter.keys import Keys, entry
from redmeter.store import Store, View, indexes
from redmeter.store.query import Read
from redmeter.store.replies import Reply, raised

#: Most index entries of one precision that one request looks at.
MAX_NAMES = 100_000

#: What a pattern begins with literally. No name has surrogates, and the server takes none.
_HEAD = re.compile("[^*?\\[\ud800-\udfff]*")
_NARROW_PATTERN = "begin the pattern with more literal text"


def read_names(
    store: Store, pattern: str = "*", *, gauges: bool = False, histograms: bool = False
) -> list[str]:
    """Return the names of all counters, or of all gauges or histograms, that match, sorted.

    Args:
        pattern: `*` any text, `?` one character, `[abc]` one of these; the rest is literal. Only
            names that begin with the literal start of the pattern are examined.
        gauges, histograms: of these, instead of counters.

    Raises:
        LimitExceeded: over MAX_NAMES have to be looked at.
        StoreError: the server cannot be reached or refuses.
    """
    kind = "histograms" if histograms else "gauges" if gauges else "counters"
    return read_names_now(store, pattern, kind)[1]


def read_names_now(store: Store, pattern: str, kind: str) -> tuple[View, list[str]]:
    """Return the view of the store, and names: see read_names().

    Args:
        kind: `counters`, `gauges` or `histograms`.
    """
    view, _ = store.read()
    keys = store.keys
    index = keys.key(INDEX_OF[kind].name)
    kept = view.retention_of(kind)
    reads = [_matching_range(keys, index, precision, pattern) for precision in kept]
    names: set[str] = set()
    for precision, reply in zip(kept, store.ask(reads), strict=True):
        names.update(names_in(reply, precision))
    return view, sorted(matching(names, pattern))


def matching(names: Iterable[str], pattern: str) -> Sequence[str]:
    """Return the names that match a pattern, see read_names."""
    if pattern == "*":
        return list(names)
    matches = re.compile(fnmatch.translate(pattern)).match
    return [name for name in names if matches(name)]


def _matching_range(keys: Keys, index: str, precision: int, pattern: str) -> Read:
    ends = matching_ends(precision, pattern)
    return indexes.members(keys, index, *ends, count=MAX_NAMES + 1)


def matching_ends(precision: int, pattern: str) -> tuple[bytes, bytes]:
    """Return where those entries of an index begin and end that can match, for ZRANGEBYLEX.

    The one of that name, or those that begin as the pattern does.
    """
    match = _HEAD.match(pattern)
    head = match[0] if match else ""
    return _ends(entry(precision, head), alone=head == pattern)


def _ends(start: str, *, alone: bool = False) -> tuple[bytes, bytes]:
    """All entries that begin with a text: up to, and without, the next text of its length.

    Args:
        alone: no others than the text itself.
    """
    first = start.encode()
    end = b"[" + first if alone else b"(" + first[:-1] + bytes([first[-1] + 1])
    return b"[" + first, end


def names_in(reply: Reply, precision: int) -> Sequence[str]:
    """Return the names in the entries of an index.

    Raises:
        LimitExceeded: more than MAX_NAMES.
        StoreError: the reply is an error.
    """
    if len(raised(reply)) > MAX_NAMES:
        raise LimitExceeded("series", len(reply), MAX_NAMES, _NARROW_PATTERN)
    cut = len(str(precision)) + 1
    names = []
    for member in reply:
        try:
            name = member[cut:].decode()
        except UnicodeDecodeError:
            continue  # not UTF-8, so no name of ours: doctor counts it
        if name:
            names.append(name)
    return names
