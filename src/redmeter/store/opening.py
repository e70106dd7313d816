"""open(): from settings, or from a caller's client, to a Store. Connects to nothing."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from redmeter import settings
from redmeter.clock import SYSTEM, Clock
from redmeter.errors import InvalidSetting
from redmeter.keys import Retention
from redmeter.store import tls, urls
from redmeter.store.link import Link
from redmeter.store.store import Store

#: As many threads may use a store at once; by default redis-py refuses the hundred-and-first.
MAX_CONNECTIONS = 10_000

logger = logging.getLogger("redmeter")


def open(  # noqa: A001
    url: str | None = None,
    *,
    client: "redis.Redis | None" = None,
    prefix: str | None = None,
    retention: Retention | str | dict[int, int] | None = None,
    histogram_retention: Retention | str | dict[int, int] | None = None,
    timeout: float | None = None,
    embedded_idle: float | None = None,
    clock: Clock = SYSTEM,
) -> Store | None:
    """Prepare a store. Connects to nothing and starts nothing before its first use.

    Args:
        url, prefix, retention, histogram_retention, timeout, embedded_idle: see settings.py;
            None: from the environment, else the default.
        client: a redis-py client of the caller's, used instead of a URL and never closed.
        clock: where time comes from.

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
        "timeout": seconds,
        "clock": clock,
    }
    if client is not None:
        if url is not None:
            raise InvalidSetting("url", "give either a URL or a client, not both")
        check_client(client)
        return Store(Link(lambda: client, location_of(client), owned=False), **options)
    target = urls.parse(settings.resolve("url", url))
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
    }
    path = target.path
    if path is None:
        return Store(
            Link(partial(_connect, {**plain, **target.options}), target.location), **options
        )
    idle = settings.resolve("embedded_idle", embedded_idle)
    start = partial(_connect_embedded, path, idle, plain)
    return Store(Link(start, target.location), restarts=True, **options)


def check_client(client: object) -> None:
    """Check that a caller's client is one.

    Raises:
        InvalidSetting: it is something else, e.g. a pipeline or a cluster's client.
    """
    if not isinstance(client, redis.Redis) or isinstance(client, redis.client.Pipeline):
        raise InvalidSetting(
            "client", f"a redis-py client (redis.Redis), not {type(client).__name__}"
        )


def check_pipeline(pipe: object) -> None:
    """Check that a caller's pipeline is one.

    Raises:
        InvalidSetting: it is something else, e.g. a client.
    """
    if not isinstance(pipe, redis.client.Pipeline):
        raise InvalidSetting("pipe", f"a pipeline of redis-py, not {type(pipe).__name__}")


def location_of(client: "redis.Redis") -> str:
    """Return where a caller's client connects to, without credentials."""
    options = client.connection_pool.connection_kwargs
    place = options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    return f"{place} (database {options.get('db', 0)}, the caller's client)"


def _connect(options: dict[str, Any]) -> "redis.Redis":
    pool = redis.ConnectionPool(**tls.verified(options))
    pool.make_connection()  # no I/O: finds options that no connection knows
    return redis.Redis(connection_pool=pool)


def _connect_embedded(path: Path, idle: float, options: dict[str, Any]) -> "redis.Redis":
    # Who has a server elsewhere need not load what starts one.
    from redmeter.store import embedded

    socket = embedded.ensure(path, idle_timeout=idle)
    logger.info("using the embedded server in %s; REDMETER_URL chooses another store", path)
    return redis.Redis(unix_socket_path=str(socket), **options)
