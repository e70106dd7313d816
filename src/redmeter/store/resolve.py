"""Name resolution: the stored series that a typed name refers to.

Meters store names in their one spelling, see names.py. redmeter.book and the listings store them
as they are: of theirs, `hits{b="1",a="2"}` and `hits{a="2",b="1"}` are two, and `x{y` is a name. A
move to a store with a prefix carries them there.
"""

from redmeter.errors import InvalidName
from redmeter.names import canonical
from redmeter.store import Store, indexes
from redmeter.store.servers.replies import is_misplaced, raised
from redmeter.stored.families import SERIES_INDEXES
from redmeter.stored.keys import entry


def resolve_name(store: Store, name: str) -> str:
    """Return the stored name of the series that a name means.

    It is the name itself if a series is stored under it, else the canonical form. The store is read
    only if the two differ.

    Raises:
        InvalidName: the name is invalid, see redmeter.names, and no such series is stored.
        StoreError: the server cannot be reached or refuses.
    """
    try:
        stored_name = canonical(name)
    except InvalidName:
        if _is_there(store, name):
            return name
        raise
    return name if stored_name != name and _is_there(store, name) else stored_name


def _is_there(store: Store, name: str) -> bool:
    """Return whether an index has exactly this name, at a retained precision."""
    try:
        if not name.encode():
            return False
    except (AttributeError, UnicodeEncodeError):  # not a str, or not UTF-8
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
