"""Name resolution: the stored series that a typed name refers to.

Meters store names in their one spelling, see names.py. redmeter.book and the listings store them
as they are: of theirs, `hits{b="1",a="2"}` and `hits{a="2",b="1"}` are two, and `x{y` is a name. A
move to a store with a prefix carries them there.
"""

from redmeter.errors import InvalidName
from redmeter.families import SERIES_INDEXES
from redmeter.keys import entry
from redmeter.names import canonical
from redmeter.store import Store, indexes
from redmeter.store.replies import is_misplaced, raised


def resolve_name(store: Store, name: str) -> str:
    """Return how the name is stored of the series that is meant by a name.

    As it stands, where a series is stored under it; else the one spelling. The store is asked only
    where the two differ.

    Raises:
        InvalidName: there is no such series, and the name is none: see redmeter.names.
        StoreError: the server cannot be reached or refuses.
    """
    try:
        wanted = canonical(name)
    except InvalidName:
        if _is_there(store, name):
            return name
        raise
    return name if wanted != name and _is_there(store, name) else wanted


def _is_there(store: Store, name: str) -> bool:
    """Whether one of the indexes has a name as it stands, at a precision that is kept."""
    try:
        if not name.encode():
            return False
    except (AttributeError, UnicodeEncodeError):  # no text, or no UTF-8
        return False
    view, _ = store.read()
    keys = store.keys
    replies = store.ask(
        [
            indexes.score(keys, keys.key(index.name), entry(precision, name))
            for index in SERIES_INDEXES
            for precision in view.retention_of(index.kind)
        ]
    )
    return any(not is_misplaced(reply) and raised(reply) is not None for reply in replies)
