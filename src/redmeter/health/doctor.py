"""The checks of `redmeter doctor`.

Two bounded round trips: first the state of the server, the sizes of the indexes, which also show
counters of other stores on the server, and the reports of the writers; then a sample of counters,
gauges, histograms and messages, and the number of series by precision. Nothing needs CONFIG, which
managed services forbid; if it is allowed, there are more checks. On a cluster each primary is asked
before, and if one is unreachable, the rest is examined.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from redmeter import settings
from redmeter.errors import AccessDenied, StoreError, StoreUnavailable
from redmeter.health import findings
from redmeter.health import writers as writing
from redmeter.health.findings import Finding, Level, Sample
from redmeter.health.server import COMMANDS, Servers, ask_primaries
from redmeter.health.writers import Writer, unreadable_reports, writer_findings
from redmeter.sizes import typed_keys_of
from redmeter.store import Store, indexes
from redmeter.store.config import parse_state, read_meta, state_read
from redmeter.store.fan_out import STOPPED
from redmeter.store.query import Read
from redmeter.store.replies import Command, Reply, pairs, raised
from redmeter.stored.families import FAMILIES, INDEX_OF
from redmeter.stored.keys import DEFAULT_PREFIX, Keys, Retention, parse_entry
from redmeter.stored.shards import ShardedKeys

#: Counters whose memory is measured; the rest is estimated from them.
SAMPLE = 200
#: The same for gauges, histograms and messages, each of which has several keys.
OTHER_SAMPLE = 100
#: Keys scanned for producers' watermarks.
SCANNED = 10_000


@dataclass(slots=True)
class Health:
    """The state of a store, and the findings about it."""

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
    #: Entries of gauges and histograms, a series having one for each precision, and loggers.
    others: dict[str, int]
    #: Bytes by kind; None if the server does not report them; estimated if there are many keys.
    bytes: dict[str, int | None]
    estimated: bool
    #: When the cleaner's last pass ended, Unix seconds; None if there was none.
    cleaned: float | None
    #: Producers that wrote within the last day; None on a cluster, or with too many keys to scan.
    producers: int | None
    #: Writers that published a report within the last day, newest first.
    writers: list[Writer] = field(default_factory=list)
    #: The parts that could not be examined, as sentences such as "HOST:PORT does not answer".
    missing: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def level(self) -> Level:
        """The worst of the findings, apart from notes."""
        return findings.worst(self.findings)


def examine(store: Store) -> Health:
    """Examine a store.

    Raises:
        StoreError: the server is unreachable or denies access.
    """
    keys = store.keys
    reader, spread = store.reader is not store, len(store.shards) > 1
    since = store.clock.wall()
    primaries = ask_primaries(store) if spread else {}
    store = store.best_effort()
    server_commands = () if spread else COMMANDS
    contents = Contents(keys)
    # On a cluster a process has a producer for each shard.
    watermarks = [] if spread else [("SCAN", "0", "MATCH", keys.batch("*"), "COUNT", str(SCANNED))]
    view, replies = store.read(
        [
            *server_commands,
            *contents.commands,
            *(state_read(shard.keys) for shard in store.shards),
            indexes.size(keys, keys.known),
            indexes.sample(keys, keys.known, SAMPLE),
            ("HGET", keys.cleaned, keys.prefix),
            indexes.memory(keys, keys.known),
            *(indexes.memory(keys, key) for key in _totals(keys)),
            *_other_stores(keys),
            *watermarks,
            *_index_reads(keys),
            *writing.writer_commands(keys),
        ]
    )
    servers = Servers(store, primaries or {"": replies[: len(server_commands)]}, since)
    contents.read(replies[len(server_commands) :][: len(contents.commands)])
    rest = replies[len(server_commands) + len(contents.commands) :]
    shards, rest = rest[: len(store.shards)], rest[len(store.shards) :]
    number, drawn, cleaned, index, *others = rest
    totals, others = others[: len(_totals(keys))], others[len(_totals(keys)) :]
    bare_replies = others[: len(_other_stores(keys))]
    bare, prefixed, bare_cleaned = bare_replies or (0, 0, None)
    others = others[len(bare_replies) :]
    scanned, more = others[: len(watermarks)], others[len(watermarks) :]
    index_replies, published = more[: _EACH * len(_OTHERS)], more[_EACH * len(_OTHERS) :]
    ended = cleaned.decode() if _is_moment(cleaned) else ""
    usable = contents.usable(keys.known)
    count = raised(number) if usable else 0
    members = [m for m in raised(drawn) if isinstance(m, bytes)] if usable else []
    counters = _Counters(members, keys, max(view.retention))
    others_sample = _Others(index_replies, keys, contents)
    by_precision = _precisions_asked(keys, view.retention)
    answers = store.ask([*by_precision, *counters.commands, *others_sample.commands])
    precisions, answers = answers[: len(by_precision)], answers[len(by_precision) :]
    sample = counters.examined(answers[: len(counters.commands)])
    parts = others_sample.examined(answers[len(counters.commands) :])
    health = Health(
        location=store.location,
        prefix=keys.prefix,
        server=servers.first.product,
        version=servers.first.version,
        clock_difference=servers.first.difference,
        retention=view.retention,
        histogram_retention=view.histograms,
        series=_by_precision(view.retention, precisions, usable),
        others={name: part.count for name, part in parts.items()},
        bytes={
            "counters": sample.estimate(count),
            "index": _size(index),
            "totals": _sizes(totals),
            **{name: part.bytes() for name, part in parts.items()},
        },
        estimated=count > len(members) or any(p.count > p.sample.size for p in parts.values()),
        cleaned=int(ended) if ended else None,
        producers=_producers(scanned[0]) if scanned else None,
    )
    results = health.findings
    results += servers.findings(replicas=reader)
    health.missing = store.skipped()
    if any(text.endswith(STOPPED) for text in health.missing):
        results += findings.stopped()
        return health
    filled = count > 0 or any(part.count for part in parts.values())
    moving = [parse_state(reply) for reply in shards if not isinstance(reply, StoreError)]
    results += findings.migration(moving, view.now)
    results += contents.findings()
    if usable:
        if filled:
            results += findings.contents(keys.prefix, view.version, count, sample)
        else:
            results += findings.nothing()
        uncleaned = 0 if isinstance(bare_cleaned, bytes) or not keys.prefix else _number(bare)
        results += findings.cleaner(view.now, count, sample, ended, uncleaned)
    whole = sum(size or 0 for size in health.bytes.values())
    results += findings.store_size(whole, settings.resolve("store_bytes"))
    for name, part in parts.items():
        results += findings.others(name, part.count, part.sample)
    try:
        health.writers, unreadable = writing.parse_writers(view.now, published)
    except StoreError as error:  # another program's key, or an ACL that forbids the read
        results += unreadable_reports(keys.writers, error)
    else:
        results += writer_findings(view.now, health.writers, unreadable, servers.other_keys)
    if not writing.emptied_events(health.writers):
        results += findings.shared_database(servers.other_keys)
    results += findings.other_stores(keys.prefix, _number(bare), _number(prefixed))
    health.missing = store.skipped()  # the second round trip may have skipped more
    return health


class _Counters:
    """Checks a sample of the index of counters.

    Args:
        members: entries of the index.
        widest: the precision whose hashes live longest, seconds.
    """

    def __init__(self, members: list[bytes], keys: Keys, widest: int) -> None:
        self._members = members
        self.commands: list[Command] = []
        for member in members:
            text = member.decode(errors="surrogateescape")
            # A malformed member has no series; its own key will do.
            _, _, name = text.partition(":")
            key, lasting = (
                keys.key("count", each).encode(errors="surrogateescape")
                for each in (text, f"{widest}:{name}" if parse_entry(text) else text)
            )
            self.commands += [("MEMORY", "USAGE", key), ("TTL", key), ("TYPE", key)]
            self.commands.append(("TYPE", lasting))

    def examined(self, replies: list[Reply]) -> Sample:
        """Evaluate the replies to the commands."""
        sample = Sample(size=len(self._members))
        for at, member in enumerate(self._members):
            size, ttl, kind, lasting = replies[4 * at : 4 * at + 4]
            text = member.decode(errors="replace")
            if parse_entry(text) is None:
                sample.strange.append(text)
            elif kind == b"none":
                sample.bare += 1
                sample.gone += lasting == b"none"
            elif kind != b"hash" and not isinstance(kind, StoreError):  # an ACL may forbid TYPE
                sample.wrong.append(text)
            else:
                if isinstance(size, int):
                    sample.measured += 1
                    sample.bytes += size
                sample.endless += ttl == -1
        return sample


# --- The types of indexes and totals --------------------------------------------------------


class Contents:
    """Checks the types of the indexes and of `total:`, and `meta:`; on a cluster in each shard.

    Another program may use these keys for something else.
    """

    def __init__(self, keys: Keys) -> None:
        families = [family for family in FAMILIES.values() if family.members]
        #: Key -> its type, and the kind of its records.
        self._kinds = {
            keys.key(family.name): (family.type.encode(), f"{family.kind}s") for family in families
        }
        self._named = [(key, one) for key in self._kinds for one in keys.in_each(key)]
        # On a single server every read checks `meta:`.
        self._metas = keys.in_each(keys.meta) if isinstance(keys, ShardedKeys) else []
        self._wrong: dict[str, list[tuple[str, str]]] = {}
        self._strange: list[tuple[str, StoreError]] = []
        self.commands: list[Command] = [("TYPE", key) for _, key in self._named]
        self.commands += [("HGETALL", key) for key in self._metas]

    def read(self, replies: Sequence[Reply]) -> None:
        """Evaluate the replies to the commands; a key without a reply counts as correct."""
        kinds, metas = replies[: len(self._named)], replies[len(self._named) :]
        for (key, shard_key), kind in zip(self._named, kinds, strict=True):
            if not isinstance(kind, StoreError) and kind not in (self._kinds[key][0], b"none"):
                self._wrong.setdefault(key, []).append((shard_key, kind.decode()))
        for key, meta in zip(self._metas, metas, strict=True):
            if isinstance(meta, StoreUnavailable | AccessDenied):
                continue
            try:
                read_meta(dict(pairs(raised(meta))), len(self._metas))
            except StoreError as error:
                self._strange.append((key, error))

    def usable(self, key: str) -> bool:
        """Return whether a key has its type, in each shard."""
        return key not in self._wrong

    def findings(self) -> Iterator[Finding]:
        """Return a finding for each key that is something else."""
        for key, others in self._wrong.items():
            kind, topic = self._kinds[key]
            yield from findings.unusable(others, kind.decode(), topic)
        if self._strange:
            yield from findings.strange_shards(self._strange, len(self._metas))


# --- Gauges, histograms, messages, exceptions ----------------------------------------------


#: The indexes of other records than counters, by kind.
_OTHERS = {f"{kind}s": index for kind, index in INDEX_OF.items() if kind != "counter"}
#: Commands for each: its size, a sample of it, and its memory.
_EACH = 3


@dataclass(slots=True)
class _Part:
    """An index and a sample of it."""

    count: int
    #: Bytes of the index itself.
    size: int | None
    sample: Sample

    def bytes(self) -> int | None:
        rest = self.sample.estimate(self.count)
        return None if rest is None or self.size is None else rest + self.size


def _index_reads(keys: Keys) -> list[Read]:
    reads: list[Read] = []
    for key in (keys.key(index.name) for index in _OTHERS.values()):
        reads += [indexes.size(keys, key), indexes.sample(keys, key, OTHER_SAMPLE)]
        reads.append(indexes.memory(keys, key))
    return reads


class _Others:
    """Checks the indexes other than that of counters, and a sample of each.

    Args:
        replies: to _index_reads().
        contents: which of them have the right type.
    """

    def __init__(self, replies: list[Reply], keys: Keys, contents: Contents) -> None:
        self.commands: list[Command] = []
        self._parts: dict[str, _Part] = {}
        # The sample that each entry belongs to, and its keys with their types.
        self._named: list[tuple[Sample, list[tuple[str, bytes]]]] = []
        for at, (name, index) in enumerate(_OTHERS.items()):
            count, drawn, size = replies[_EACH * at : _EACH * (at + 1)]
            usable = contents.usable(keys.key(index.name))
            number = raised(count) if usable else 0
            sample = Sample()
            self._parts[name] = _Part(number, _size(size), sample)
            for member in raised(drawn) if usable else []:
                entry = member.decode(errors="replace")
                sample.size += 1
                of_it = typed_keys_of(keys, index, entry)
                if not of_it:
                    sample.strange.append(entry)
                    continue
                self._named.append((sample, of_it))
                for key, _ in of_it:
                    self.commands += [("MEMORY", "USAGE", key), ("TYPE", key)]

    def examined(self, replies: list[Reply]) -> dict[str, _Part]:
        """Evaluate the replies to the commands."""
        answers = iter(replies)
        for sample, of_it in self._named:
            measured = False
            for key, expected in of_it:
                size, kind = next(answers), next(answers)
                if not isinstance(kind, StoreError) and kind not in (expected, b"none"):
                    sample.wrong.append(key)
                elif isinstance(size, int):
                    sample.bytes += size
                    measured = True
            sample.measured += measured
        return self._parts


def _other_stores(keys: Keys) -> list[Command]:
    """Return reads of other stores on the same server; none on a cluster."""
    if isinstance(keys, ShardedKeys):
        return []
    return [
        ("ZCARD", "known:"),
        ("ZCARD", f"{DEFAULT_PREFIX}known:"),
        ("HGET", Keys("").cleaned, ""),
    ]


def _precisions_asked(keys: Keys, retention: Retention) -> list[Read]:
    return [
        indexes.size_between(keys, keys.known, f"[{width}:", f"({width};") for width in retention
    ]


def _by_precision(retention: Retention, replies: list[Reply], usable: bool) -> dict[int, int]:
    if not usable:
        return dict.fromkeys(retention, 0)
    return {width: raised(reply) for width, reply in zip(retention, replies, strict=True)}


def _producers(reply: Reply) -> int | None:
    if isinstance(reply, StoreError):
        return None
    cursor, keys = reply
    return len({key.rpartition(b":")[2] for key in keys}) if int(cursor) == 0 else None


def _is_moment(reply: Reply) -> bool:
    """Return whether a reply is a time, Unix seconds, as a cleaner writes it."""
    return isinstance(reply, bytes) and reply.isdigit() and len(reply) <= 12


def _number(reply: Reply) -> int:
    return reply if isinstance(reply, int) else 0


def _size(reply: Reply) -> int | None:
    """Parse MEMORY USAGE, which is nil for a missing key and may be forbidden."""
    return reply if isinstance(reply, int) else 0 if reply is None else None


def _sizes(replies: Sequence[Reply]) -> int | None:
    """Return the sum of sizes; None if one of them is unknown."""
    sizes = [size for size in map(_size, replies) if size is not None]
    return sum(sizes) if len(sizes) == len(replies) else None


def _totals(keys: Keys) -> tuple[str, ...]:
    """Return the keys of grand totals."""
    return keys.total, keys.sums, keys.spreads
