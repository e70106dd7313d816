"""The only code that talks to Redis: open(url) -> Store.

opening.py         open()
store.py           Store: reads in one round trip, and its shards
shard.py           Shard: applies a batch exactly once
producers.py       producers, their numbers, and the batch that each has in flight
config.py          the store's configuration in `meta:`, and its epoch
query.py           queries: reads in steps
indexes.py         reads of indexes, merged from all shards
fan_out.py         runs reads on all shards of a cluster
link.py            the protocol of what follows
connection.py      one server: commands out, replies back
deadlines.py       sockets that stop receiving at a deadline
busy_wait.py       waits that spin for a moment before they sleep
cluster.py         the same for a cluster's nodes
topology.py        which node has a key; redirects; a single cluster node
sentinel.py        the server that sentinels name
replies.py         reading replies and errors
scripts.py         lua/, one file per operation, and how to run a script
writer_reports.py  what each writer publishes about itself
urls.py, tls.py    where the store is
embedded/          a server of our own
"""

from redmeter.store.opening import open
from redmeter.store.query import View
from redmeter.store.store import Store

__all__ = ["Store", "View", "open"]
