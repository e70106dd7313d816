"""The only code that talks to Redis: open(url) -> Store.

urls.py       where the store is            link.py       commands out, replies back
embedded/     a server of our own           scripts.py    lua/, one file per operation
binding.py    what the store says it is     producers.py  who writes, under which number
store.py      Store: apply a batch exactly once, read in one round trip
"""

from redmeter.store.store import Store, View, open

__all__ = ["Store", "View", "open"]
