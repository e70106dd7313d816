"""The only code that talks to Redis: open(url) -> Store.

opening.py    open()                        urls.py       where the store is
store.py      Store: read in one round trip  partition.py  apply a batch exactly once
link.py       commands out, replies back    cluster.py    the same of a cluster's nodes
sentinel.py   a link to the server that sentinels name
replies.py    what a reply says
slots.py      which node has a key          scatter.py    runs reads on all shards of a cluster
query.py      queries: reads in steps       indexes.py    reads of indexes, merged from all shards
scripts.py    lua/, one file per operation  steps.py      several exchanges, one or many in step
binding.py    what the store says it is     producers.py  who writes, under which number
parcel.py     a batch under way             publishing.py what writers tell of themselves
embedded/     a server of our own
"""

from redmeter.store.opening import open
from redmeter.store.store import Store, View

__all__ = ["Store", "View", "open"]
