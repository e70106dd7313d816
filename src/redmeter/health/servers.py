"""The servers of a store: their replies to INFO and CONFIG, and the findings about them.

There is one server, or the primaries of a cluster. A check that passes on all primaries is reported
once; a problem is reported with the name of its primary.

How many keys of others are in a store's database is estimated from a sample of its keys, and the
number of keys that INFO has. One server: the first keys of a SCAN, which come in the order of a
hash; the number is exact if these are all. A cluster: keys drawn by RANDOMKEY, as a SCAN goes from
slot to slot, and the shards are in few slots. The store's own keys cannot be counted otherwise: an
index lists series whose keys may have expired, and another store's keys are not its own.
Not done: less than about one key in a thousand may go unnoticed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redmeter import settings
from redmeter.errors import StoreError, StoreRefused, StoreUnavailable
from redmeter.health.check import DoctorCheck, Finding, listed, size_text
from redmeter.lazy_regex import late
from redmeter.store import Store
from redmeter.store.query import Query
from redmeter.store.servers.cluster import ClusterLink
from redmeter.store.servers.replies import Command, Reply, pairs, raised
from redmeter.store.servers.retry import is_unanswered, unready_reason
from redmeter.store.servers.topology import SlotRange, host_port, slot_of
from redmeter.stored.keys import MAX_SAMPLES, Keys

_STATE = ("TIME",), ("INFO",), ("CONFIG", "GET", "*")
#: The commands for one server: its state, and a sample of its keys.
COMMANDS: Sequence[Command] = (*_STATE, ("SCAN", "0", "COUNT", "1000"))
#: The commands for each primary of a cluster.
CLUSTER_COMMANDS: Sequence[Command] = (*_STATE, *[("RANDOMKEY",)] * 500)
#: Slots of a cluster.
CLUSTER_SLOTS = 16384
#: A primary may have this many times its fair share of the shards, plus one.
UNEVEN = 1.5
#: Oldest supported servers: (major, minor).
MIN_REDIS, MIN_VALKEY = (6, 2), (7, 2)
#: The oldest Redis that can confirm that data is on its disk.
WITH_WAITAOF = (7, 2)
#: A Redis whose WAITAOF replies before the fsync of `appendfsync everysec`; so does Valkey's, as
#: measured up to 9.1. Source: https://github.com/redis/redis/pull/13793.
TOO_EARLY = (7, 4)
#: Clock difference that deserves a warning, and one that makes intervals wrong, seconds.
CLOCK_WARN, CLOCK_FAIL = 2.0, 60.0

#: A line of INFO about one replica, and about a database.
_REPLICA = late(r"slave\d+")
_KEYS = late(r"keys=(\d+)")

# --- One server ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OtherKeys:
    """Keys in the database of a store that are not its own.

    They may belong to a cache, to any other program, or to another store of Redmeter.
    """

    count: int
    #: Whether the number was estimated from a sample.
    estimated: bool = False
    #: The primaries of a cluster that have them; empty on one server.
    primaries: tuple[str, ...] = ()

    @property
    def fix(self) -> str:
        """How to separate them from the store."""
        if self.primaries:
            return "give Redmeter or the cache a server of its own: a cluster has only database 0"
        return "give Redmeter or the cache a database of its own, e.g. a URL that ends in /1"

    def text(self) -> str:
        """Return how many there are and where, e.g. "about 1,200 keys … share this database"."""
        about = "about " if self.estimated else ""
        keys, share = ("key", "shares") if self.count == 1 else ("keys", "share")
        place = f"this cluster, on {listed(self.primaries)}" if self.primaries else "this database"
        return f"{about}{self.count:,} {keys} of other programs or stores {share} {place}"


@dataclass(slots=True)
class ServerState:
    """The state of one server."""

    #: Host and port; "" if there is only one server.
    name: str
    #: Its clock minus this machine's, seconds; 0 if the duration of the request explains it.
    difference: float
    info: dict[str, str]
    #: Its settings; empty if it does not report them.
    config: dict[str, str] = field(default_factory=dict)
    #: The replies to SCAN or RANDOMKEY.
    drawn: Sequence[Reply] = ()

    def other_keys(self, keys: Keys, database: int) -> OtherKeys:
        """Return how many keys are not those of a store; none if the server may not be asked."""
        if any(isinstance(reply, StoreError) for reply in self.drawn):
            return OtherKeys(0)
        whole, drawn = False, list(self.drawn)
        if drawn and isinstance(drawn[0], list):  # of SCAN
            cursor, drawn = drawn[0]
            whole = int(cursor) == 0
        names = [name.decode(errors="replace") for name in drawn if name is not None]
        others = sum(not keys.owns(name) for name in names)
        if whole or not others:
            return OtherKeys(others)
        count = _KEYS.match(self.info.get(f"db{database}", ""))
        number = int(count[1]) * others / len(names) if count else others
        return OtherKeys(max(1, round(float(f"{number:.2g}"))), estimated=True)

    @property
    def product(self) -> str:
        """Valkey, or Redis."""
        return "Valkey" if "valkey_version" in self.info else "Redis"

    @property
    def version(self) -> str:
        """Its version; "?" if it does not report it."""
        return self.info.get("valkey_version") or self.info.get("redis_version", "?")

    def findings(self, *, clustered: bool) -> Iterator[Finding]:
        """Yield the findings about it."""
        yield from server_findings(self.product, self.version, self.info, clustered=clustered)
        yield from clock_findings(self.difference)
        yield from memory_findings(self.info, self.config)
        yield from persistence_findings(self.info, self.config)
        yield from listener_findings(self.info, self.config)
        setting, name = settings.resolve("durability"), f"{self.product} {self.version}"
        yield from durability_findings(setting, name, self.info, self.config)
        if clustered and self.config.get("cluster-require-full-coverage") == "yes":
            text = "the cluster stops if one primary without a replica is unreachable"
            fix = "set cluster-require-full-coverage no: then the others keep serving"
            yield Finding("warn", "coverage", text, fix)


def server_findings(
    product: str, version: str, info: Mapping[str, str], *, clustered: bool = False
) -> Iterator[Finding]:
    """Check the server, such as Valkey 9.1.2.

    Args:
        clustered: whether the store is on a cluster.
    """
    name = f"{product} {version}"
    numbers = version_of(version)
    oldest = MIN_VALKEY if product == "Valkey" else MIN_REDIS
    if numbers < oldest:
        supported = ".".join(map(str, oldest))
        yield Finding("fail", "server", f"{name} is too old", f"use {supported} or newer")
    elif info.get("role") == "slave":
        yield Finding("fail", "server", f"{name} is a replica", "connect to its primary")
    else:
        mode = info.get("server_mode") or info.get("redis_mode", "standalone")
        if mode == "cluster" and not clustered:
            fix = "use redis+cluster://HOST:PORT: a single node has only a part of the keys"
            yield Finding("warn", "server", f"{name} is a node of a cluster", fix)
        else:
            yield Finding("ok", "server", f"{name}, {mode}")


def version_of(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version; (0,) if it is unknown."""
    try:
        return tuple(int(part) for part in text.split(".")[:2])
    except ValueError:
        return (0,)


def followers(info: Mapping[str, str]) -> int:
    """Return the number of online replicas that a primary reports."""
    return sum("state=online" in text for name, text in info.items() if _REPLICA.fullmatch(name))


def replica_findings(info: Mapping[str, str]) -> Iterator[Finding]:
    """Report that reads use a replica, or that the primary reports none."""
    online = followers(info)
    text = f"reads use a replica ({online} online), which may be slightly behind"
    if online:
        yield Finding("ok", "replicas", text)
    else:
        text = "reads should use a replica, but there is none: they use the primary"
        yield Finding(
            "warn", "replicas", text, "start a replica, or set REDMETER_READ_FROM to primary"
        )


def durability_findings(
    wanted: str, name: str, info: Mapping[str, str], config: Mapping[str, str]
) -> Iterator[Finding]:
    """Check whether the server can confirm writes as the setting `durability` asks.

    Args:
        wanted: the setting.
        name: of the server, such as Redis 7.0.4.
    """
    product, _, version = name.partition(" ")
    by = {"replica": "a replica", "disk": "the disk"}.get(wanted)
    problem = fix = ""
    if wanted == "replica" and not followers(info):
        problem, fix = "none is online", "start a replica"
    elif wanted == "disk" and product == "Redis" and version_of(version) < WITH_WAITAOF:
        problem, fix = f"{name} has no WAITAOF", "use Redis 7.2 or newer, or Valkey"
    elif wanted == "disk" and info.get("aof_enabled") == "0":
        problem, fix = "there is no append-only file", "set appendonly yes"
    elif wanted == "disk" and config.get("appendfsync") == "no":
        problem, fix = "appendfsync is no", "set appendfsync everysec or always"
    early = product == "Valkey" or version_of(version) == TOO_EARLY
    if wanted == "disk" and early and config.get("appendfsync") == "everysec" and not problem:
        text = f"with appendfsync everysec, {name} confirms up to a second before the disk has it"
        yield Finding("warn", "durability", text, "set appendfsync always")
    elif problem:
        text = f"writes should be confirmed by {by}, but {problem}: each flush waits in vain"
        yield Finding("warn", "durability", text, f"{fix}, or set REDMETER_DURABILITY to none")
    elif by:
        yield Finding("ok", "durability", f"writes are confirmed by {by}")


def listener_findings(info: Mapping[str, str], config: Mapping[str, str]) -> Iterator[Finding]:
    """Report a primary that refuses writes because too few replicas keep up.

    The server reports their number only if it requires some.
    """
    good = info.get("min_slaves_good_slaves")
    needed = config.get("min-replicas-to-write")  # the server may not report it
    if good is None or int(good) >= int(needed or 1):
        return
    more = needed or "more"
    text = f"nothing can be stored: {good} replicas keep up, min-replicas-to-write is {more}"
    yield Finding("fail", "replicas", text, "start the missing replicas; see their logs")


def clock_findings(difference: float) -> Iterator[Finding]:
    """Check the server's clock minus this machine's, seconds."""
    text = f"{difference:+.3f} s (server's minus this machine's)"
    fix = "synchronize both clocks with NTP"
    if abs(difference) > CLOCK_FAIL:
        yield Finding("fail", "clock", text, f"intervals are wrong: {fix}")
    elif abs(difference) > CLOCK_WARN:
        yield Finding("warn", "clock", text, fix)
    else:
        yield Finding("ok", "clock", text)


def memory_findings(info: Mapping[str, str], config: Mapping[str, str]) -> Iterator[Finding]:
    """Check eviction, free memory, and the encoding of hashes."""
    policy = info.get("maxmemory_policy", "?")
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    text = f"eviction policy {policy}, {size_text(used)} used"
    text += f" of {size_text(limit)}" if limit else ", no limit"
    if policy in ("noeviction", "volatile-ttl"):
        yield Finding("ok", "memory", text)
    elif policy == "?":
        yield Finding(
            "warn", "memory", "the server does not report its eviction policy", "use noeviction"
        )
    else:
        yield Finding(
            "fail" if limit else "warn",
            "memory",
            text,
            "counts may vanish or double: set maxmemory-policy noeviction, or give metrics an "
            "instance of their own" + ("" if limit else " (harmless while there is no maxmemory)"),
        )
    counted = used - int(info.get("mem_not_counted_for_evict", 0))
    if limit and counted >= limit and policy == "noeviction":
        text = f"{counted / limit:.0%} of maxmemory is used: nothing can be stored"
        yield Finding("fail", "memory", text, "raise maxmemory, or remove other data")
    elif limit and used > 0.9 * limit:
        yield Finding(
            "warn", "memory", f"{used / limit:.0%} of maxmemory is used", "raise maxmemory"
        )
    for setting in ("hash-max-listpack-entries", "hash-max-ziplist-entries"):  # the second: 6.2
        fields = int(config.get(setting) or 512)
        if fields < 2 * MAX_SAMPLES:
            yield Finding(
                "warn",
                "memory",
                f"hashes have the compact encoding only up to {fields} fields",
                f"set {setting} 512: otherwise counters take ten times the memory",
            )
            return


def persistence_findings(info: Mapping[str, str], config: Mapping[str, str]) -> Iterator[Finding]:
    """Check persistence."""
    if info.get("loading") == "1":
        yield Finding("warn", "persistence", "the server is still loading its data")
    appends = info.get("aof_enabled") == "1"
    if info.get("aof_last_write_status" if appends else "rdb_last_bgsave_status", "ok") != "ok":
        kind = "AOF write" if appends else "snapshot"
        fix = "see its log; free disk space"
        yield Finding("fail", "persistence", f"the last {kind} failed", fix)
    elif appends:
        yield Finding("ok", "persistence", "append-only file")
    elif "save" not in config:
        yield Finding(
            "ok",
            "persistence",
            "no append-only file; this server does not report whether there are snapshots",
        )
    elif not config["save"]:
        yield Finding(
            "warn", "persistence", "none: a restart loses all counts", "set appendonly yes"
        )
    else:
        yield Finding("ok", "persistence", "snapshots; a restart loses the data since the last one")


# --- All servers ---------------------------------------------------------------------------------


class StoreServers:
    """All servers of a store.

    Args:
        replies: the replies of each server to COMMANDS or CLUSTER_COMMANDS, by name.
        since: when they were sent, by this machine's clock.

    Raises:
        StoreError: none is reachable, or all deny access.
    """

    def __init__(self, store: Store, replies: Mapping[str, Sequence[Reply]], since: float) -> None:
        until = store.clock.wall()
        self._servers: list[ServerState] = []
        #: The errors of unreachable servers.
        self._unreachable: dict[str, StoreUnavailable | StoreRefused] = {}
        for name, (time, info, config, *drawn) in replies.items():
            if is_unanswered(info) or unready_reason(info):
                self._unreachable[name] = info
                continue
            seconds, microseconds = raised(time)
            time_there = int(seconds) + int(microseconds) / 1e6
            # It replied at some time in between: the request may have waited for another server.
            difference = time_there - min(max(time_there, since), until)
            self._servers.append(
                ServerState(name, difference, _info(raised(info)), _map(config), drawn)
            )
        if not self._servers:
            raise next(iter(self._unreachable.values()))
        link = store.shards[0].link
        self._ranges = link.ranges() if isinstance(link, ClusterLink) else None
        self._keys = [shard.keys for shard in store.shards]
        others = {each.name: each.other_keys(store.keys, link.database) for each in self._servers}
        #: The keys in their databases that are not the store's.
        self.other_keys = OtherKeys(
            sum(each.count for each in others.values()),
            any(each.estimated for each in others.values()),
            tuple(name for name, each in others.items() if name and each.count),
        )

    @property
    def first(self) -> ServerState:
        """The server whose version is reported."""
        return self._servers[0]

    def findings(self, *, from_replicas: bool) -> Iterator[Finding]:
        """Yield the findings about them.

        Args:
            from_replicas: whether reads use replicas.
        """
        if self._ranges is None:
            yield from self.first.findings(clustered=False)
            if from_replicas:
                yield from replica_findings(self.first.info)
            return
        yield from self._of_primaries()
        for name, error in self._unreachable.items():
            yield Finding(
                "fail",
                "cluster",
                f"{name} {_why(error)}: its data is missing here, and writers buffer its events",
                error.fix or "restart it, or promote a replica",
            )
        yield from _of_shards(self._ranges, self._keys)
        yield from self._detached_replicas()
        if from_replicas and any(one.replicas for one in self._ranges):
            text = "reads use a replica of each primary, which may be slightly behind"
            yield Finding("ok", "replicas", text)

    def _detached_replicas(self) -> Iterator[Finding]:
        """Report replicas that the cluster knows and their primary does not."""
        listed = {host_port(s.primary): len(s.replicas) for s in self._ranges or ()}
        for server in self._servers:
            if "connected_slaves" not in server.info:  # it reports none
                continue
            missing = listed.get(server.name, 0) - followers(server.info)
            if missing > 0:
                text = f"{missing} of the replicas of {server.name} do not follow it: data that "
                text += "they lack is lost with their primary"
                fix = "see their logs: perhaps masterauth is wrong, or they are still synchronizing"
                yield Finding("warn", "cluster", text, fix)

    def _of_primaries(self) -> Iterator[Finding]:
        """Yield each passed check once, and each problem with the name of its primary."""
        named = [
            (server.name, finding)
            for server in self._servers
            for finding in server.findings(clustered=True)
        ]
        passed = Counter(finding.topic for _, finding in named if finding.level == "ok")
        for name, finding in named:
            if finding.level != "ok":
                yield replace(finding, text=f"{name}: {finding.text}")
            elif finding.topic in passed:
                others = passed.pop(finding.topic) - 1
                primaries = "primaries" if others > 1 else "primary"
                more = f" (and {others} more {primaries})" if others else ""
                yield replace(finding, text=f"{name}: {finding.text}{more}")


def _of_shards(ranges: list[SlotRange], keys: list[Keys]) -> Iterator[Finding]:
    primaries = {one.primary: one for one in ranges}
    served = sum(one.last - one.first + 1 for one in ranges)
    if served < CLUSTER_SLOTS:
        free = f"{CLUSTER_SLOTS - served:,} of {CLUSTER_SLOTS:,} slots are not served"
        fix = "valkey-cli --cluster fix, or start the primaries that had them"
        yield Finding("fail", "cluster", f"{free}: writers buffer their events", fix)
    held = Counter(_primary(ranges, slot_of(each.meta)) for each in keys)
    least, most = min(held[one] for one in primaries), max(held[one] for one in primaries)
    each = f"{least}" if least == most else f"{least} to {most}"
    many = "primary" if len(primaries) == 1 else "primaries"
    text = f"{len(primaries)} {many}, {each} of {len(keys)} shards each"
    if most > UNEVEN * len(keys) / len(primaries) + 1:
        fix = "move slots: valkey-cli --cluster rebalance"
        yield Finding("warn", "cluster", f"{text}: the largest has far more than its share", fix)
    else:
        yield Finding("ok", "cluster", text)
    alone = [host_port(primary) for primary, one in primaries.items() if not one.replicas]
    if alone:
        text = f"{listed(alone)} has no replica: its data is lost with it"
        yield Finding("warn", "cluster", text, "add one: valkey-cli --cluster add-node")


def _primary(ranges: list[SlotRange], slot: int) -> tuple[str, int] | None:
    return next((s.primary for s in ranges if s.first <= slot <= s.last), None)


def _why(error: StoreUnavailable | StoreRefused) -> str:
    """Return why a server is unreachable, as the predicate of a sentence."""
    if isinstance(error, StoreUnavailable):
        return f"does not answer ({error.reason})"
    return unready_reason(error)


def _info(reply: bytes) -> dict[str, str]:
    lines = reply.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


def _map(reply: Reply) -> dict[str, str]:
    """Parse the settings, which a server may refuse to report."""
    if isinstance(reply, StoreError):
        return {}
    listed_settings: list[tuple[Any, Any]] = pairs(reply)
    return {key.decode(): value.decode(errors="replace") for key, value in listed_settings}


def _read_servers(store: Store) -> Query[StoreServers]:
    """Read the state of each server; on a cluster in a round trip of its own."""
    since = store.clock.wall()
    if len(store.shards) > 1:
        store.link.recover()  # slots may have moved since
        replies: Mapping[str, Sequence[Reply]] = store.link.ask_servers(CLUSTER_COMMANDS)
    else:
        _, found = yield COMMANDS
        replies = {"": found}
    return StoreServers(store, replies, since)


SERVERS = DoctorCheck(
    _read_servers, lambda servers, seen: servers.findings(from_replicas=seen.replicas)
)
