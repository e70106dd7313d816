"""open(): from settings, or from a caller's client, to a Store. Connects to nothing."""

import contextlib
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from redmeter import settings
from redmeter.clock import SYSTEM, Clock, Zone
from redmeter.errors import InvalidSetting, StoreError
from redmeter.extras import install
from redmeter.store.servers import urls
from redmeter.store.servers.client_options import (
    check_client,
    client_target,
    connection_options,
    is_clusters,
    node_pool,
)
from redmeter.store.servers.cluster import ClusterLink
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import Link
from redmeter.store.servers.sockets import Packer
from redmeter.store.servers.topology import as_announced
from redmeter.store.store import Store
from redmeter.stored.keys import Retention

#: As many threads may use a store at once; by default redis-py refuses the hundred-and-first.
MAX_CONNECTIONS = 10_000

logger = logging.getLogger("redmeter")


def open(  # noqa: A001
    url: str | None = None,
    *,
    client: "redis.Redis | RedisCluster | Any | None" = None,
    prefix: str | None = None,
    retention: Retention | str | dict[int, int] | None = None,
    histogram_retention: Retention | str | dict[int, int] | None = None,
    timeout: float | None = None,
    embedded_idle: float | None = None,
    read_from: str | None = None,
    timezone: str | None = None,
    clock: Clock = SYSTEM,
    announce: bool = False,
) -> Store | None:
    """Prepare a store. Connects to nothing and starts nothing before its first use.

    Args:
        url, prefix, retention, histogram_retention, timeout, embedded_idle, read_from, timezone:
            the settings of the same name; None: from the environment, else the default.
        client: a client of the caller's, of redis-py or of a fork such as valkey-py, used instead
            of a URL and never closed.
        clock: where time comes from.
        announce: log an error if no program can serve the embedded server that would be used.

    Returns:
        The store, or None where the URL is `off`.

    Raises:
        InvalidSetting: a setting cannot be used.
    """
    seconds = settings.resolve("timeout", timeout)
    options: dict[str, Any] = {
        "prefix": settings.resolve("prefix", prefix),
        "retention": settings.resolve("retention", retention),
        "histograms": settings.resolve("histogram_retention", histogram_retention),
        "configured": (
            settings.is_configured("retention", retention),
            settings.is_configured("histogram_retention", histogram_retention),
        ),
        "timeout": seconds,
        "clock": clock,
        "zone": Zone(settings.resolve("timezone", timezone)),
    }
    replica = settings.resolve("read_from", read_from) == "replica"
    if client is not None:
        if url is not None:
            raise InvalidSetting("url", "give either a URL or a client, not both")
        check_client(client, "redis.Redis or redis.RedisCluster", forks=True)
        if is_clusters(client):
            check_cluster_prefix(options["prefix"])
            return _replicated(partial(clients_cluster, client, seconds), options, replica=replica)
        if isinstance(client, redis.Redis):
            if replica:
                options["reader"] = partial(_no_replicas, "a client of yours")
            return Store(ServerLink(lambda: client, location_of(client), owned=False), **options)
        target = client_target(client, location_of(client))
    else:
        if hasattr(url, "execute_command"):
            kind = type(url).__name__
            raise InvalidSetting("url", f"text, not {kind}: a client goes in as Meter(client=…)")
        target = urls.parse_target(settings.resolve("url", url))
    if target.kind == "off":
        return None
    # No retries inside the client: it would send again what may have been carried out. And the
    # plain protocol 2, which every supported server speaks without a handshake.
    plain: dict[str, Any] = {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "max_connections": MAX_CONNECTIONS,
        "command_packer": Packer(),
    }
    path = target.path
    settled = {**plain, **target.options}
    if target.kind == "sentinel":
        # Imported only if sentinels are used.
        from redmeter.store.servers import sentinel

        named = partial(sentinel.link_to, target, settled, _connect_node)
        return _replicated(named, options, replica=replica)
    if target.kind == "cluster":
        check_cluster_prefix(options["prefix"])
        connect = partial(_connect_node, settled)
        spread = partial(ClusterLink, connect, target.nodes, target.location)
        return _replicated(spread, options, replica=replica)
    if replica:
        options["reader"] = partial(_no_replicas, target.location)
    if path is None:
        return Store(ServerLink(partial(_connect, settled), target.location), **options)
    idle = settings.resolve("embedded_idle", embedded_idle)
    start = partial(_connect_embedded, path, idle, plain)
    if announce:
        _announce(path)
    return Store(ServerLink(start, target.location, restarts=True), **options)


def check_cluster_prefix(prefix: str) -> None:
    """Check that a store on a cluster has a prefix.

    Raises:
        InvalidSetting: it has none.
    """
    if not prefix:
        raise InvalidSetting(
            "prefix", "is needed on a cluster: the layout without one is for one server"
        )


def clients_cluster(
    client: "RedisCluster | Any", timeout: float, *, replicas: bool = False
) -> ClusterLink:
    """Return a link to the cluster of a caller's client, with connections of our own made as its.

    Its own would be blocked by one node that hangs: see ClusterLink.
    """
    pool, known = node_pool(client), client.get_nodes()
    nodes = [(node.host, int(node.port)) for node in known]
    shown = ",".join(f"{host}:{port}" for host, port in nodes[:3])
    more = f" … ({len(nodes) - 3} more)" if len(nodes) > 3 else ""
    # The startup nodes, to which the client returns when all known nodes are gone.
    first = client.nodes_manager.startup_nodes.values()
    nodes += [(node.host, int(node.port)) for node in first]
    options = connection_options(pool)
    options |= {"retry": Retry(NoBackoff(), 0), "max_connections": MAX_CONNECTIONS}
    for name in ("socket_timeout", "socket_connect_timeout"):
        options[name] = options.get(name) or timeout
    location = f"the cluster at {shown}{more} (the caller's client)"
    remap = client.nodes_manager.address_remap or as_announced
    connect = partial(_connect_node, options)
    return ClusterLink(connect, nodes, location, replicas=replicas, remap=remap)


def check_pipeline(pipe: object) -> None:
    """Check that a caller's pipeline is one.

    Raises:
        InvalidSetting: it is something else, e.g. a client.
    """
    if not isinstance(pipe, redis.client.Pipeline):
        raise InvalidSetting("pipe", f"a pipeline of redis-py, not {type(pipe).__name__}")


def location_of(client: "redis.Redis | Any") -> str:
    """Return where a caller's client connects to, without credentials."""
    pool: Any = client.connection_pool
    options = pool.connection_kwargs
    place = options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    if hasattr(pool, "sentinel_manager"):
        place = f"{pool.service_name} of the sentinels"
    return f"{place} (database {options.get('db', 0)}, the caller's client)"


def _replicated(link: Callable[..., Link], options: dict[str, Any], *, replica: bool) -> Store:
    """Return a store whose reads go to replicas if `replica` is set."""
    reader = (lambda: Store(link(replicas=True), **options)) if replica else None
    return Store(link(), **options, reader=reader)


def _no_replicas(what: str) -> Store:
    fix = "use a URL redis+sentinel:// or redis+cluster://, or read_from primary"
    raise InvalidSetting("read_from", f"of {what} no replicas are known: {fix}")


def _connect(options: dict[str, Any]) -> "redis.Redis":
    pool = redis.ConnectionPool(**urls.verified(options))
    pool.make_connection()  # no I/O: finds options that no connection knows
    return redis.Redis(connection_pool=pool)


def _connect_node(options: dict[str, Any], address: tuple[str, int]) -> "redis.Redis":
    host, port = address
    return _connect({**options, "host": host, "port": port})


def _announce(path: Path) -> None:
    """Log an error if no program can run the embedded server, and a program that is on PATH."""
    candidate, runs = None, False
    # Errors are those of the first use, which reports them. Windows has no embedded server.
    with contextlib.suppress(ImportError, StoreError):
        from redmeter.store import embedded

        candidate = embedded.candidate()
        runs = candidate is None and embedded.running(path) is not None
    if candidate is None and not runs:
        logger.error(
            "redmeter cannot store metrics: no Redis URL is set, and no installed program can run "
            "the embedded server in %s; set REDMETER_URL, e.g. redis://localhost:6379/0, or run: "
            "%s",
            path,
            install("embedded"),
        )
    elif candidate is not None and not candidate[1]:
        logger.info(
            "redmeter runs the embedded server in %s with %s, found on PATH", path, candidate[0]
        )


def _connect_embedded(path: Path, idle: float, options: dict[str, Any]) -> "redis.Redis":
    # Imported only if the embedded server is used.
    from redmeter.store import embedded

    socket = embedded.ensure(path, idle_timeout=idle)
    logger.info("using the embedded server in %s; REDMETER_URL chooses another store", path)
    place = {"connection_class": redis.UnixDomainSocketConnection, "path": str(socket)}
    return _connect({**options, **place})
