"""Is the store well? What `redmeter doctor` says, and how it knows.

Asked in three round trips at most, each bounded: what the server says of itself, a sample of the
counters, and whether another program's counters lie beside ours. What writers tell of themselves
comes with the first. Nothing here needs CONFIG, which managed services forbid; where the server
allows it, more is said.
"""

from dataclasses import dataclass, field
from typing import Any

from redmeter.errors import StoreError
from redmeter.keys import DEFAULT_PREFIX, Keys, Retention, parse_entry
from redmeter.reading import findings, reports
from redmeter.reading import writers as writing
from redmeter.reading.findings import Finding, Level, Sample
from redmeter.reading.writers import Writer
from redmeter.store import Store
from redmeter.store.link import Command, Reply, pairs, raised

#: Counters whose memory is measured; the rest is estimated from them.
SAMPLE = 200
#: Keys looked at for producers' watermarks.
SCANNED = 10_000


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
    histogram_retention: Retention
    #: Counters, by precision.
    series: dict[int, int]
    #: Bytes by kind, None where the server does not tell; estimated where there are many counters.
    bytes: dict[str, int | None]
    estimated: bool
    #: Producers that wrote within the last day; None where there are too many keys to look.
    producers: int | None
    #: Those who told of themselves within the last day, the newest first.
    writers: list[Writer] = field(default_factory=list)
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
            ("TYPE", keys.known),
            ("ZCARD", keys.known),
            ("ZRANDMEMBER", keys.known, SAMPLE),
            ("HGET", keys.cleaned, keys.prefix),
            ("MEMORY", "USAGE", keys.known),
            ("MEMORY", "USAGE", keys.total),
            ("CONFIG", "GET", "*"),
            ("ZCARD", "known:"),
            ("ZCARD", f"{DEFAULT_PREFIX}known:"),
            ("HGET", Keys("").cleaned, ""),
            ("SCAN", 0, "MATCH", keys.batch("*"), "COUNT", SCANNED),
            *writing.questions(keys),
        ]
    )
    told, kind, number, drawn, cleaned, index, totals, settings, *others = replies
    bare, prefixed, bare_cleaned, scanned, *published = others
    difference = view.now - store.clock.wall()
    info = _info(raised(told))
    config = {} if isinstance(settings, StoreError) else _text_map(settings)
    usable = isinstance(kind, StoreError) or kind in (b"zset", b"none")
    count = raised(number) if usable else 0
    members = [m for m in raised(drawn) if isinstance(m, bytes)] if usable else []
    sample = _examine_sample(store, members)
    health = Health(
        location=store.location,
        prefix=keys.prefix,
        server="Valkey" if "valkey_version" in info else "Redis",
        version=info.get("valkey_version") or info.get("redis_version", "?"),
        clock_difference=difference,
        retention=view.retention,
        histogram_retention=view.histograms,
        series=_by_precision(store, view.retention, count),
        bytes={
            "counters": sample.estimate(count),
            "index": _size(index),
            "totals": _size(totals),
        },
        estimated=count > len(members),
        producers=_producers(scanned),
    )
    found = health.findings
    found += findings.server(health.server, health.version, info)
    found += findings.clock(difference)
    found += findings.memory(info, config)
    found += findings.persistence(info, config)
    if usable:
        ended = cleaned.decode(errors="replace") if isinstance(cleaned, bytes) else ""
        found += findings.contents(keys.prefix, view.version, count, sample)
        uncleaned = 0 if isinstance(bare_cleaned, bytes) or not keys.prefix else _number(bare)
        found += findings.cleaner(view.now, count, sample, ended, uncleaned)
    else:
        found += findings.unusable(keys.known, kind.decode())
    try:
        health.writers, unreadable = writing.answers(view.now, published)
    except StoreError as error:  # a key that is not ours, or an ACL that forbids to ask
        found += reports.unknown(keys.writers, error)
    else:
        found += reports.writers(view.now, health.writers, unreadable)
    found += findings.beside(keys.prefix, _number(bare), _number(prefixed))
    return health


def _examine_sample(store: Store, members: list[bytes]) -> Sample:
    before = store.keys.count_of("").encode()
    commands: list[Command] = []
    for member in members:
        key = before + member
        commands += [("MEMORY", "USAGE", key), ("TTL", key), ("TYPE", key)]
    replies = store.ask(commands) if commands else []
    sample = Sample(size=len(members))
    for at, member in enumerate(members):
        size, ttl, kind = replies[3 * at : 3 * at + 3]
        text = member.decode(errors="replace")
        if parse_entry(text) is None:
            sample.strange.append(text)
        elif kind == b"none":
            sample.bare += 1
        elif kind != b"hash" and not isinstance(kind, StoreError):  # an ACL may forbid to ask
            sample.wrong.append(text)
        else:
            if isinstance(size, int):
                sample.measured += 1
                sample.bytes += size
            sample.endless += ttl == -1
    return sample


def _by_precision(store: Store, retention: Retention, count: int) -> dict[int, int]:
    if not count:
        return dict.fromkeys(retention, 0)
    known = store.keys.known
    replies = store.ask(
        [("ZLEXCOUNT", known, f"[{precision}:", f"({precision};") for precision in retention]
    )
    return {p: raised(reply) for p, reply in zip(retention, replies, strict=True)}


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


def _size(reply: Reply) -> int | None:
    """Read MEMORY USAGE, which is nil for a key that is not there and may be forbidden."""
    return reply if isinstance(reply, int) else 0 if reply is None else None
