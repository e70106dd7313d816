"""Which series there are, from the indexes: `known:` of counters, `gauges:` and `hists:` of others.

Their members are PRECISION:NAME, all with score 0 and therefore in the order of their bytes, so the
entries of one precision are a range that is read without touching the others, and so are the
label sets of one name, or the names that begin as a pattern does. Patterns are matched here, not
by the server: nothing in a name can widen the match.

join.py lists the entries, in pages.
"""

import fnmatch
import re
from collections.abc import Iterable, Sequence

from redmeter.errors import LimitExceeded
from redmeter.reading.join import decoded, list_entries
from redmeter.store import Store
from redmeter.store.query import Query, run_query, together
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import Kept, Keys, entry

#: Most index entries of one precision that one request looks at.
MAX_NAMES = 100_000

#: What a pattern begins with literally. No name has surrogates, and the server takes none.
_HEAD = re.compile("[^*?\\[\ud800-\udfff]*")
_NARROW_PATTERN = "begin the pattern with more literal text"


def read_names(store: Store, pattern: str = "*", kind: str = "counter") -> list[str]:
    """Return the names of all series of a kind that match, sorted.

    Args:
        pattern: `*` any text, `?` one character, `[abc]` one of these; the rest is literal. Only
            names that begin with the literal start of the pattern are examined.
        kind: a key of SERIES_KINDS.

    Raises:
        LimitExceeded: over MAX_NAMES have to be looked at.
        StoreError: the server cannot be reached or refuses.
    """
    return run_query(store, lambda kept: find_names(store.keys, kept, pattern, kind))[1]


def find_names(keys: Keys, kept: Kept, pattern: str, kind: str) -> Query[list[str]]:
    """Read the names that match a pattern: see read_names()."""
    index = keys.key(SERIES_KINDS[kind].index.name)
    listed = yield from together(
        [
            list_entries(keys, index, matching_ends(width, pattern), MAX_NAMES + 1)
            for width in kept.of(kind)
        ]
    )
    return sorted(matching({name for entries in listed for name in names_in(entries)}, pattern))


def matching(names: Iterable[str], pattern: str) -> Sequence[str]:
    """Return the names that match a pattern, see read_names."""
    if pattern == "*":
        return list(names)
    matches = re.compile(fnmatch.translate(pattern)).match
    return [name for name in names if matches(name)]


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


def names_in(entries: Sequence[bytes]) -> list[str]:
    """Return the names in the entries of an index.

    Raises:
        LimitExceeded: more than MAX_NAMES.
    """
    if len(entries) > MAX_NAMES:
        raise LimitExceeded("series", len(entries), MAX_NAMES, _NARROW_PATTERN, at_least=True)
    return decoded(entries)
