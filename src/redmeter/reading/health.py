"""Is the store well? What `redmeter doctor` says, and how it knows.

Asked in three round trips at most, each bounded: what the server says of itself, a sample of the
counters, and whether another program's counters lie beside ours. Nothing here needs CONFIG, which
managed services forbid; where the server allows it, more is said.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from redmeter.errors import StoreError
from redmeter.keys import DEFAULT_PREFIX, MAX_SAMPLES, Retention, parse_entry
from redmeter.store import Store
from redmeter.store.link import Command, Reply, pairs, raised

#: Counters whose memory is measured; the rest is estimated from them.
SAMPLE = 200
#: Keys looked at for producers' watermarks.
SCANNED = 10_000
#: Oldest supported servers: (major, minor).
MIN_REDIS, MIN_VALKEY = (6, 2), (7, 2)
#: A cleaner makes a pass a minute; so many seconds without one are worth a word.
CLEANER_LATE = 600.0
#: Clock difference worth a word, and one that makes slices wrong, seconds.
CLOCK_WARN, CLOCK_FAIL = 2.0, 60.0

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    topic: str
    text: str
    #: What to do about it; "" where nothing is to be done.
    fix: str = ""


@dataclass(slots=True)
class Health:
    """What was found out about a store."""

    location: str
    prefix: str
    server: str
    version: str
    #: Server's clock minus this machine's, seconds.
    clock_difference: float
    retention: Retention
    #: Counters, by precision.
    series: dict[int, int]
    #: Bytes by kind; estimated from a sample where there are many counters.
    bytes: dict[str, int]
    estimated: bool
    #: Producers that wrote within the last two hours; None where there are too many keys to look.
    producers: int | None
    findings: list[Finding] = field(default_factory=list)

    @property
    def level(self) -> Level:
        """The worst of the findings."""
        levels = {finding.level for finding in self.findings}
        return "fail" if "fail" in levels else "warn" if "warn" in levels else "ok"


def examine(store: Store) -> Health:
    """Find out how a store is.

    Raises:
        StoreError: the server cannot be reached, or does not let us in.
    """
    keys = store.keys
    view, replies = store.read(
        [
            ("INFO",),
            ("ZCARD", keys.known),
            ("ZRANDMEMBER", keys.known, SAMPLE),
            ("HGET", keys.cleaned, keys.prefix),
            ("MEMORY", "USAGE", keys.known),
            ("MEMORY", "USAGE", keys.total),
            ("EXISTS", keys.total),
            ("CONFIG", "GET", "*"),
            ("ZCARD", "known:"),
            ("ZCARD", f"{DEFAULT_PREFIX}known:"),
            ("SCAN", 0, "MATCH", keys.batch("*"), "COUNT", SCANNED),
        ]
    )
    difference = view.now - store.clock.wall()
    info = _info(raised(replies[0]))
    config = {} if isinstance(replies[7], StoreError) else _text_map(replies[7])
    count = raised(replies[1])
    members = [member for member in raised(replies[2]) if isinstance(member, bytes)]
    sample = _examine_sample(store, members)
    scale = count / len(members) if members else 0
    health = Health(
        location=store.location,
        prefix=keys.prefix,
        server="Valkey" if "valkey_version" in info else "Redis",
        version=info.get("valkey_version") or info.get("redis_version", "?"),
        clock_difference=difference,
        retention=view.retention,
        series=_by_precision(store, view.retention),
        bytes={
            "counters": int(sample.bytes * scale),
            "index": _number(replies[4]),
            "totals": _number(replies[5]),
        },
        estimated=count > len(members),
        producers=_producers(replies[10]),
    )
    health.findings += _server(health, info)
    health.findings += _clock(difference)
    health.findings += _memory(info, config)
    health.findings += _persistence(info, config)
    health.findings += _contents(store, view.version, count, sample, len(members))
    health.findings += _cleaner(view.now, count, sample, len(members), replies[3])
    health.findings += _beside(keys.prefix, replies[8], replies[9])
    return health


@dataclass(slots=True)
class _Sample:
    bytes: int = 0
    #: Entries without a hash, hashes without a time to live, entries that are none, other types.
    bare: int = 0
    endless: int = 0
    strange: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def _examine_sample(store: Store, members: list[bytes]) -> _Sample:
    before = store.keys.count_of("").encode()
    commands: list[Command] = []
    for member in members:
        key = before + member
        commands += [("MEMORY", "USAGE", key), ("TTL", key), ("TYPE", key)]
    replies = store.ask(commands) if commands else []
    sample = _Sample()
    for at, member in enumerate(members):
        size, ttl, kind = replies[3 * at : 3 * at + 3]
        text = member.decode(errors="replace")
        if parse_entry(text) is None:
            sample.strange.append(text)
        elif kind == b"none":
            sample.bare += 1
        elif kind != b"hash":
            sample.wrong.append(text)
        else:
            sample.bytes += _number(size)
            sample.endless += ttl == -1
    return sample


def _by_precision(store: Store, retention: Retention) -> dict[int, int]:
    known = store.keys.known
    replies = store.ask(
        [("ZLEXCOUNT", known, f"[{precision}:", f"({precision};") for precision in retention]
    )
    return {p: raised(reply) for p, reply in zip(retention, replies, strict=True)}


def _server(health: Health, info: dict[str, str]) -> Iterator[Finding]:
    name = f"{health.server} {health.version}"
    try:
        numbers = tuple(int(part) for part in health.version.split(".")[:2])
    except ValueError:
        numbers = (0,)
    oldest = MIN_VALKEY if health.server == "Valkey" else MIN_REDIS
    if numbers < oldest:
        wanted = ".".join(map(str, oldest))
        yield Finding("fail", "server", f"{name} is too old", f"use {wanted} or newer")
    elif info.get("role") == "slave":
        yield Finding("fail", "server", f"{name} is a replica", "connect to its master")
    else:
        mode = info.get("redis_mode", "standalone")
        if mode == "cluster":
            yield Finding(
                "warn",
                "server",
                f"{name} is a cluster's node",
                "use a server that is not clustered: a cluster spreads the keys of one batch",
            )
        else:
            yield Finding("ok", "server", f"{name}, {mode}")


def _clock(difference: float) -> Iterator[Finding]:
    text = f"{difference:+.3f} s (server's minus this machine's)"
    fix = "let NTP set both clocks"
    if abs(difference) > CLOCK_FAIL:
        yield Finding("fail", "clock", text, f"slices are wrong: {fix}")
    elif abs(difference) > CLOCK_WARN:
        yield Finding("warn", "clock", text, fix)
    else:
        yield Finding("ok", "clock", text)


def _memory(info: dict[str, str], config: dict[str, str]) -> Iterator[Finding]:
    policy = info.get("maxmemory_policy", "?")
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    text = f"eviction policy {policy}, {_bytes(used)} used"
    text += f" of {_bytes(limit)}" if limit else ", no limit"
    if policy in ("noeviction", "volatile-ttl"):
        yield Finding("ok", "memory", text)
    else:
        yield Finding(
            "fail" if limit else "warn",
            "memory",
            text,
            "counts may vanish or double: set maxmemory-policy noeviction, or give metrics an "
            "instance of their own" + ("" if limit else " (harmless while there is no maxmemory)"),
        )
    if limit and used > 0.9 * limit:
        yield Finding(
            "warn", "memory", f"{used / limit:.0%} of maxmemory is used", "raise maxmemory"
        )
    fields = int(
        config.get("hash-max-listpack-entries") or config.get("hash-max-ziplist-entries") or 512
    )
    if fields < 2 * MAX_SAMPLES:
        yield Finding(
            "warn",
            "memory",
            f"hashes are stored compactly only up to {fields} fields",
            "set hash-max-listpack-entries 512: counters take ten times the memory",
        )


def _persistence(info: dict[str, str], config: dict[str, str]) -> Iterator[Finding]:
    if info.get("loading") == "1":
        yield Finding("warn", "persistence", "the server is still loading its data")
    if info.get("aof_enabled") == "1":
        if info.get("aof_last_write_status", "ok") != "ok":
            yield Finding(
                "fail", "persistence", "the last AOF write failed", "see its log; free disk space"
            )
        else:
            yield Finding("ok", "persistence", "append-only file")
    elif info.get("rdb_last_bgsave_status", "ok") != "ok":
        yield Finding(
            "fail", "persistence", "the last snapshot failed", "see its log; free disk space"
        )
    elif "save" in config and not config["save"]:
        yield Finding(
            "warn", "persistence", "none: a restart loses all counts", "set appendonly yes"
        )
    else:
        yield Finding("ok", "persistence", "snapshots; a restart loses what came after the last")


def _contents(
    store: Store, version: str, count: int, sample: _Sample, size: int
) -> Iterator[Finding]:
    if not count:
        yield Finding("ok", "counters", "none yet", "count something: redmeter replay access.log")
    elif not version and store.keys.prefix:
        yield Finding("warn", "counters", "there is no meta: key", "the next write restores it")
    if sample.strange:
        shown = ", ".join(ascii(text) for text in sample.strange[:3])
        yield Finding(
            "warn",
            "counters",
            f"{len(sample.strange)} of {size} index entries are none, e.g. {shown}",
            "they are left alone; if no program of yours wrote them, ZREM them",
        )
    if sample.wrong:
        shown = ", ".join(ascii(text) for text in sample.wrong[:3])
        yield Finding(
            "fail",
            "counters",
            f"{len(sample.wrong)} of {size} counters are not hashes, e.g. {shown}",
            "another program uses these keys: choose another prefix",
        )
    if sample.endless and store.keys.prefix:
        yield Finding(
            "warn",
            "counters",
            f"{sample.endless} of {size} hashes have no time to live: another program writes them",
            "keep a cleaner running: redmeter up, or redmeter clean --daemon",
        )


def _cleaner(now: float, count: int, sample: _Sample, size: int, reply: Reply) -> Iterator[Finding]:
    lag = None if isinstance(reply, StoreError) or not reply else now - float(reply)
    fix = "run one: redmeter up, or redmeter clean from cron"
    text = "has never run" if lag is None else f"last complete pass {_age(lag)} ago"
    if sample.bare:
        text += f"; {sample.bare} of {size} index entries have no hash any more"
    late = lag is None or lag > CLEANER_LATE
    needed = sample.bare > 0 or sample.endless > 0
    yield Finding(
        "warn" if late and needed and count else "ok",
        "cleaner",
        text,
        fix if late and needed else "",
    )


def _beside(prefix: str, bare: Reply, prefixed: Reply) -> Iterator[Finding]:
    if prefix and not isinstance(bare, StoreError) and bare:
        yield Finding(
            "ok",
            "beside",
            f"{bare:,} counters without prefix: written by the listings of Redis in Action, or "
            "redmeter.book",
            'look at them with --prefix ""; clean them with redmeter clean --prefix ""',
        )
    if prefix != DEFAULT_PREFIX and not isinstance(prefixed, StoreError) and prefixed:
        yield Finding("ok", "beside", f"{prefixed:,} counters under {DEFAULT_PREFIX}")


def _producers(reply: Reply) -> int | None:
    if isinstance(reply, StoreError):
        return None
    cursor, keys = reply
    return len(keys) if int(cursor) == 0 else None


def _info(reply: bytes) -> dict[str, str]:
    lines = reply.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


def _text_map(reply: Any) -> dict[str, str]:
    return {key.decode(): value.decode(errors="replace") for key, value in pairs(reply)}


def _number(reply: Reply) -> int:
    return reply if isinstance(reply, int) else 0


def _bytes(count: float) -> str:
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
