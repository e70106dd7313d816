"""Findings about a store: its state, and the fix for each problem.

Pure functions from the server's replies to findings. The replies are read by doctor.py. Names of
other programs' keys are shown as ASCII.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from redmeter.errors import StoreError
from redmeter.lazy_regex import late
from redmeter.store.config import ShardState
from redmeter.stored.keys import DEFAULT_PREFIX, MAX_SAMPLES

#: Oldest supported servers: (major, minor).
MIN_REDIS, MIN_VALKEY = (6, 2), (7, 2)
#: The oldest Redis that can confirm that data is on its disk.
WITH_WAITAOF = (7, 2)
#: A Redis whose WAITAOF replies before the fsync of `appendfsync everysec`; so does Valkey's, as
#: measured up to 9.1. Source: https://github.com/redis/redis/pull/13793.
TOO_EARLY = (7, 4)
#: A cleaner makes a pass a minute; seconds without one that deserve a warning.
CLEANER_LATE = 600.0
#: Clock difference that deserves a warning, and one that makes intervals wrong, seconds.
CLOCK_WARN, CLOCK_FAIL = 2.0, 60.0

#: Names of the types of keys.
_TYPES = {"zset": "sorted set", "hash": "hash"}
#: A line of INFO about one replica.
_REPLICA = late(r"slave\d+")

#: The state of a store, as findings make it.
Level = Literal["ok", "warn", "fail"]
#: The level of a finding. A note is a risk to know about: nothing is wrong, and the level of the
#: store is the same as without it.
FindingLevel = Literal["ok", "note", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    level: FindingLevel
    topic: str
    text: str
    #: What to do about it; "" if nothing.
    fix: str = ""

    @property
    def is_problem(self) -> bool:
        """Whether something is wrong: it is a warning or a failure."""
        return self.level in ("warn", "fail")


def worst(findings: Iterable[Finding]) -> Level:
    """Return the level of a store with some findings, which notes do not change."""
    levels = {finding.level for finding in findings}
    return "fail" if "fail" in levels else "warn" if "warn" in levels else "ok"


@dataclass(slots=True)
class Sample:
    """A sample of an index, checked entry by entry."""

    size: int = 0
    #: Hashes whose memory the server reported, and their total.
    measured: int = 0
    bytes: int = 0
    #: Entries without a hash.
    bare: int = 0
    #: Those whose series has no hash at the widest precision either.
    gone: int = 0
    #: Hashes without a time to live; malformed entries; keys of another type.
    endless: int = 0
    strange: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def estimate(self, count: int) -> int | None:
        """Return the bytes of all entries; None if the server reported none of them."""
        hashes = self.size - self.bare - len(self.strange) - len(self.wrong)
        if hashes > self.measured == 0:
            return None
        return self.bytes * count // self.size if self.size else 0


def server(
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


def migration(states: Sequence[ShardState], now: float) -> Iterator[Finding]:
    """Report that the store is being moved to another server, or was moved.

    Args:
        states: of all shards that answered.
        now: Unix seconds, by the server's clock.
    """
    names = [state.name(now) for state in states]
    share = f"{sum(map(bool, names)):,} of {len(names):,} shards" if len(names) > 1 else "the store"
    if "moved" in names:
        sealed = all(name == "moved" for name in names)
        text = "moved to another server" if sealed else "moved to another server in part"
        fix = "set REDMETER_URL to that server" if sealed else _AGAIN
        yield Finding("fail", "migration", f"{share}: {text}", fix)
    elif "receiving" in names:
        text = (
            "receives the data of another store by a migration that is running or was interrupted"
        )
        yield Finding("fail", "migration", f"{share}: {text}", _AGAIN)
    elif "frozen" in names:
        left = max(state.deadline for state in states) - now
        text = f"frozen while it is copied to another server, for {left:.0f} s unless it is renewed"
        yield Finding("warn", "migration", f"{share}: {text}")


_AGAIN = "run the same `redmeter migrate` again to continue"


def followers(info: Mapping[str, str]) -> int:
    """Return the number of online replicas that a primary reports."""
    return sum("state=online" in text for name, text in info.items() if _REPLICA.fullmatch(name))


def replicas(info: Mapping[str, str]) -> Iterator[Finding]:
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


def durability(
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


def listeners(info: Mapping[str, str], config: Mapping[str, str]) -> Iterator[Finding]:
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


def clock(difference: float) -> Iterator[Finding]:
    """Check the server's clock minus this machine's, seconds."""
    text = f"{difference:+.3f} s (server's minus this machine's)"
    fix = "synchronize both clocks with NTP"
    if abs(difference) > CLOCK_FAIL:
        yield Finding("fail", "clock", text, f"intervals are wrong: {fix}")
    elif abs(difference) > CLOCK_WARN:
        yield Finding("warn", "clock", text, fix)
    else:
        yield Finding("ok", "clock", text)


def memory(info: Mapping[str, str], config: Mapping[str, str]) -> Iterator[Finding]:
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


def persistence(info: Mapping[str, str], config: Mapping[str, str]) -> Iterator[Finding]:
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


def stopped() -> Iterator[Finding]:
    """Report a cluster that is down."""
    text = "down: nothing can be stored or read until all slots are served again"
    fix = "start the missing nodes; with cluster-require-full-coverage no, the others keep serving"
    yield Finding("fail", "cluster", text, fix)


def unusable(keys: Sequence[tuple[str, str]], expected: str, topic: str) -> Iterator[Finding]:
    """Report an index or totals whose key has another type.

    Args:
        keys: keys and their types; several on a cluster.
        expected: the type that they should have.
    """
    (key, kind), *more = keys
    shown = f" (and {len(more)} more shard{'s' * (len(more) > 1)})" if more else ""
    yield Finding(
        "fail",
        topic,
        f"{key} is a {_TYPES.get(kind, kind)}, not a {_TYPES[expected]}{shown}: another program "
        "uses it",
        "choose another prefix, or remove that key",
    )


def strange_shards(metas: Sequence[tuple[str, StoreError]], of: int) -> Iterator[Finding]:
    """Report shards of a cluster that cannot be written to because of their `meta:`.

    Args:
        metas: the keys and their errors.
        of: the number of shards.
    """
    (key, error), *_ = metas
    text = f"{len(metas)} of {of} shards store nothing, {key}: {error}"
    fix = "remove the data that another program wrote there; the next write restores the key"
    yield Finding("fail", "cluster", text, fix)


def nothing() -> Iterator[Finding]:
    """Report an empty store."""
    yield Finding(
        "ok",
        "counters",
        "none yet",
        "count in your application, or read an access log: redmeter replay FILE",
    )


def others(topic: str, count: int, sample: Sample) -> Iterator[Finding]:
    """Check gauges, histograms, messages or exceptions.

    Args:
        count: entries in the index.
    """
    if sample.strange:
        text = _examples(sample, sample.strange, "index entries are malformed")
        fix = "they are ignored; if no program of yours wrote them, remove them with ZREM"
        yield Finding("warn", topic, text, fix)
    if sample.wrong:
        shown = ", ".join(map(ascii, sample.wrong[:3]))
        more = f" … ({len(sample.wrong) - 3} more)" if len(sample.wrong) > 3 else ""
        yield Finding(
            "fail",
            topic,
            f"keys that another program uses: {shown}{more}; checked: {sample.size} of {count:,} "
            "index entries",
            "reads skip them: choose another prefix, or remove these keys",
        )


def contents(prefix: str, version: str, count: int, sample: Sample) -> Iterator[Finding]:
    """Check the counters of the store.

    Args:
        version: of `meta:`; "" if there is none.
        count: entries in the index.
    """
    if count and not version and prefix:
        yield Finding("warn", "counters", "the meta: key is missing", "the next write restores it")
    if sample.strange:
        text = _examples(sample, sample.strange, "index entries are malformed")
        fix = "they are ignored; if no program of yours wrote them, remove them with ZREM"
        yield Finding("warn", "counters", text, fix)
    if sample.wrong:
        text = _examples(sample, sample.wrong, "counters are not hashes")
        fix = "another program uses these keys: choose another prefix"
        yield Finding("fail", "counters", text, fix)
    if sample.endless and prefix:
        yield Finding(
            "warn",
            "counters",
            f"{sample.endless} of {sample.size} hashes have no time to live: another program "
            "writes them",
            "run a cleaner: redmeter up, or redmeter clean --daemon",
        )


def cleaner(
    now: float, count: int, sample: Sample, ended: str, uncleaned: int = 0
) -> Iterator[Finding]:
    """Check whether the cleaner keeps up.

    Args:
        ended: when its last complete pass ended, Unix seconds; "" if there was none.
        uncleaned: index entries of the store without prefix on the same server, if no cleaner
            has visited it: the listings write counters that do not expire.
    """
    lag = now - int(ended) if ended.isdecimal() else None
    fix = "run one: redmeter up, or redmeter clean from cron"
    text = "has never run" if lag is None else f"last complete pass {_age(lag)} ago"
    if sample.gone:
        text += f"; {sample.gone} of {sample.size} index entries belong to expired series"
    late = lag is None or lag > CLEANER_LATE
    # An idle series has entries without a hash at fine precisions, and uses them again later.
    needed = count > 0 and (sample.gone > 0 or sample.endless > 0)
    if lag is None and uncleaned:
        text += "; the counters without prefix on this server do not expire automatically"
        fix += '; for those without prefix, with --prefix ""'
    elif lag is None and not needed:
        text += " (not needed so far: hashes expire automatically)"
    warned = late and (needed or (lag is None and uncleaned > 0))
    yield Finding("warn" if warned else "ok", "cleaner", text, fix if warned else "")


def other_stores(prefix: str, bare: int, prefixed: int) -> Iterator[Finding]:
    """Report other stores on the same server.

    Args:
        bare: entries in the index without prefix.
        prefixed: entries in that of the default prefix.
    """
    if prefix and bare:
        yield Finding(
            "ok",
            "other store",
            f"{bare:,} index entries without prefix: counters of the listings of Redis in Action, "
            "or of redmeter.book",
            'redmeter names --prefix "" shows them; redmeter clean --prefix "" cleans them',
        )
    if prefix != DEFAULT_PREFIX and prefixed:
        yield Finding("ok", "other store", f"{prefixed:,} index entries under {DEFAULT_PREFIX}")


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
        shown = ", ".join(self.primaries[:3])
        more = f" … ({len(self.primaries) - 3} more)" if len(self.primaries) > 3 else ""
        place = f"this cluster, on {shown}{more}" if self.primaries else "this database"
        return f"{about}{self.count:,} {keys} of other programs or stores {share} {place}"


def shared_database(others: OtherKeys) -> Iterator[Finding]:
    """Note that another program may empty the database."""
    if others.count:
        text = f"{others.text()}; FLUSHDB, as Django's cache.clear() does, would empty the metrics"
        yield Finding("note", "database", text, others.fix)


def store_size(used: int, limit: int) -> Iterator[Finding]:
    """Report a store of half of its limit, or more.

    Args:
        used: an estimate, bytes.
        limit: `store_bytes`; 0: none.
    """
    if not limit or used < limit / 2:
        return
    text = f"about {size_text(used)} of the {size_text(limit)} that the store may take"
    if used > limit:
        text += ": the cleaner has new series refused"
    fix = (
        "redmeter names --by-size ranks names by memory; keep ids, addresses and raw "
        "paths out of labels, or raise REDMETER_STORE_BYTES"
    )
    yield Finding("warn", "size", text, fix)


def _examples(sample: Sample, texts: list[str], problem: str) -> str:
    """Return the number of entries in a sample, with three of them as ASCII."""
    return f"{len(texts)} of {sample.size} {problem}, e.g. {', '.join(map(ascii, texts[:3]))}"


def size_text(count: float) -> str:
    """Return a number of bytes for people, such as "1.5 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def _age(seconds: float) -> str:
    for width, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * width:
            return f"{seconds / width:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"
