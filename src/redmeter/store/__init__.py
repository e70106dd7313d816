"""The only code that talks to Redis: open(url) -> Store.

opening.py    open()                        urls.py       where the store is
store.py      Store: apply a batch exactly once, read in one round trip
link.py       commands out, replies back    scripts.py    lua/, one file per operation
binding.py    what the store says it is     producers.py  who writes, under which number
parcel.py     a batch under way             publishing.py what writers tell of themselves
embedded/     a server of our own
"""

from redmeter.store.opening import open
from redmeter.store.store import Store, View

__all__ = ["Store", "View", "open"]
