"""Where and how a caller's client connects, if it is of a fork of redis-py such as valkey-py.

Such a client has redis-py's interface, but its connections raise exceptions of their own. So none
of them is used: Redmeter opens connections of redis-py with the options of the client, as it does
for the nodes of a caller's cluster. A client is recognized by its interface; no fork is imported.
"""

import inspect
import re
import ssl
from typing import Any

import redis

from redmeter.errors import InvalidSetting
from redmeter.store.servers.urls import Target

#: Options that mean the same in every fork; and all those of TLS.
_SAME = re.compile(
    "host|port|path|db|username|password|credential_provider|client_name|health_check_interval"
    "|socket_(timeout|connect_timeout|keepalive|keepalive_options)|ssl_.*"
)
_CLASSES = {
    one.__name__: one
    for one in (redis.UnixDomainSocketConnection, redis.SSLConnection, redis.Connection)
}
_LEVELS = {None: "none", ssl.CERT_NONE: "none", ssl.CERT_OPTIONAL: "optional"}


def check_client(client: Any, allowed: str = "redis.Redis", *, forks: bool = False) -> None:
    """Check that a caller's client is one.

    Args:
        allowed: what may be given, in words.
        forks: whether a client of a fork is one.

    Raises:
        InvalidSetting: it is something else, e.g. a pipeline, a cluster's client, or of asyncio.
    """
    # A pipeline has the methods of its client, and a stack of commands.
    usable = hasattr(client, "get_encoder") and not hasattr(client, "command_stack")
    kind = type(client)
    named = f"{kind.__module__}.{kind.__qualname__}"
    if usable and inspect.iscoroutinefunction(client.execute_command):
        raise InvalidSetting(
            "client",
            f"is of asyncio ({named}): give one that is not ({allowed}), or the URL instead of a "
            "client; recording never waits for the server, so it suits asyncio applications",
        )
    if not usable or not (forks or isinstance(client, redis.Redis)):
        raise InvalidSetting("client", f"a redis-py client ({allowed}), not {named}")


def is_clusters(client: Any) -> bool:
    """Return whether a client that was checked is a cluster's."""
    return hasattr(client, "nodes_manager")


def node_pool(client: Any) -> Any:
    """Return the connection pool of any node of a cluster's client."""
    # A closed client has no default node, and can still be used.
    node = client.get_nodes()[0]
    of_fork = (name for name in dir(client) if re.fullmatch(r"get_[a-z]+_connection", name))
    return getattr(client, next(of_fork))(node).connection_pool


def connection_options(pool: Any) -> dict[str, Any]:
    """Return the options that make connections of redis-py as a pool makes its own.

    Raises:
        InvalidSetting: the pool has connections of another kind.
    """
    kind = pool.connection_class
    if issubclass(kind, redis.connection.AbstractConnection):
        return {**pool.connection_kwargs, "connection_class": kind}
    classes = (_CLASSES[each.__name__] for each in kind.__mro__ if each.__name__ in _CLASSES)
    options = {
        name: value
        for name, value in pool.connection_kwargs.items()
        if _SAME.fullmatch(name) and value is not None
    }
    options["connection_class"] = connection_class = next(classes, None)
    if connection_class is None:
        raise InvalidSetting(
            "client", f"has connections of {kind.__qualname__}: give a URL instead"
        )
    if connection_class is redis.SSLConnection:
        level = pool.connection_kwargs.get("ssl_cert_reqs", "required")
        options["ssl_cert_reqs"] = _LEVELS.get(level, level)
    return options


def client_target(client: Any, location: str) -> Target:
    """Return where a fork's client of one server, or of sentinels, connects to.

    Args:
        location: for messages, without credentials.

    Raises:
        InvalidSetting: see connection_options().
    """
    pool = client.connection_pool
    options = connection_options(pool)
    if not hasattr(pool, "sentinel_manager"):
        return Target("server", location, options)
    sentinels = [each.connection_pool.connection_kwargs for each in pool.sentinel_manager.sentinels]
    credentials = {
        name: sentinels[0][name] for name in ("username", "password") if sentinels[0].get(name)
    }
    nodes = tuple((each["host"], int(each["port"])) for each in sentinels)
    scheme = "rediss" if options["connection_class"] is redis.SSLConnection else "redis"
    return Target(
        "sentinel",
        f"{scheme}+sentinel://{location}",
        options,
        nodes=nodes,
        service=pool.service_name,
        of_sentinels=credentials,
    )
