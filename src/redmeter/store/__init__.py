"""The only code that talks to Redis: open(url) -> Store.

opening.py         open()
store.py           Store: reads in one round trip, and its shards
shard.py           Shard: applies a batch exactly once
producers.py       producers, their numbers, batches in flight and kept, and reports
durability.py      whether a replica or the disk has the batches
config.py          the store's configuration in `meta:`, its epoch and its migration
query.py           queries: reads in steps; scans of large keys, in parts
indexes.py         reads of indexes, merged from all shards
fan_out.py         runs reads on all shards of a cluster
scripts.py         lua/, and how to run a script
fork_guard.py      loads everything that the first exchange needs
servers/           which server, and the exchange with it:
    urls.py        where the store is; TLS
    replies.py     commands, replies, errors, and the protocol of links
    retry.py       what errors mean, and the loops that try again
    connection.py  one server: commands out, replies back
    sockets.py     how connections wait, stop receiving at a deadline, and pack commands
    topology.py    which node has a key; redirects; a single cluster node
    cluster.py     the nodes of a cluster
    sentinel.py    the server that sentinels name
embedded/          a server of our own
"""

from redmeter.store.opening import open
from redmeter.store.query import View
from redmeter.store.store import Store

__all__ = ["Store", "View", "open"]
