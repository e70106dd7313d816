"""The stores behind a caller's clients and pipelines."""

import weakref

import redis

from redmeter.recording.sync import check_written
from redmeter.store import Store
from redmeter.store.opening import check_pipeline, location_of
from redmeter.store.servers.client_options import check_client
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import Command, Reply
from redmeter.stored.keys import Kept, Retention
from redmeter.types import Operations, Outcome

#: How long an update is tried, seconds; each try lasts as long as the client's own timeouts allow.
TIMEOUT = 2.0

_NOTHING = Kept({}, {})

pools: "weakref.WeakKeyDictionary[redis.ConnectionPool, Store]" = weakref.WeakKeyDictionary()
stores: "weakref.WeakKeyDictionary[redis.Redis, Store]" = weakref.WeakKeyDictionary()


def apply_operations(store: Store, operations: Operations, within: float | None = None) -> Outcome:
    """Write operations immediately, with the retention of the listings.

    Raises:
        StoreError: the server rejected a part of them, or all.
    """
    outcome = store.shard("").write(lambda _: operations, kept=_NOTHING, within=within)
    check_written(outcome, store.location)
    return outcome


def queue(pipe: "redis.client.Pipeline", operations: Operations) -> None:
    """Queue operations on a caller's pipeline, and execute it."""
    check_pipeline(pipe)
    pool = pipe.connection_pool
    store = pools.get(pool)
    if store is None:
        link = ServerLink(lambda: None, "the caller's pipeline", owned=False)
        store = pools.setdefault(pool, opened(link))

    def call(command: Command) -> Reply:
        reply = pipe.execute_command(*command)  # type: ignore[no-untyped-call]
        replies = pipe.execute()
        return replies[-1] if reply is pipe else reply  # what watches carries out at once

    check_written(store.shard("").write_by(call, operations), store.location)


def opened(link: ServerLink) -> Store:
    """Return a store without a prefix."""
    return Store(link, prefix="", retention=Retention({1: 1}), timeout=TIMEOUT)


def store_of(conn: "redis.Redis") -> Store:
    """Return the store of a client, with the pool of producers that its updates share."""
    try:
        store = stores.get(conn)
    except TypeError:  # nothing that could be a client
        store = None
    if store is None:
        check_client(conn)
        # The reference is weak, or the entry would keep its own key alive.
        link = ServerLink(weakref.ref(conn), location_of(conn), owned=False)
        store = stores.setdefault(conn, opened(link))
        # Connections for calls with a timeout are not in the client's own pool.
        weakref.finalize(conn, link.close).atexit = False
    return store
