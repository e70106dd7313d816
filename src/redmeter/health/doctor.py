"""Is the store well? What `redmeter doctor` says, and how it knows.

Asked in two round trips, each bounded: what the server says of itself, how large the indexes are,
which also shows whether another program's counters lie beside ours, and what writers tell of
themselves; then a sample of counters, gauges, histograms and messages, and what there is by
precision. Nothing here needs CONFIG, which managed services forbid; where the server allows it,
more is said. Of a cluster each master is asked before, and where one is away the rest is examined.
"""

from dataclasses import dataclass, field

from redmeter.errors import StoreError
from redmeter.families import INDEX_OF, Family, listed_by, owner
from redmeter.format.exception import is_group
from redmeter.format.message import parse_name
from redmeter.health import findings, writer_findings
from redmeter.health import writers as writing
from redmeter.health.contents import Contents
from redmeter.health.findings import Finding, Level, Sample
from redmeter.health.server import QUESTIONS, Servers, ask_masters
from redmeter.health.writers import Writer
from redmeter.keys import DEFAULT_PREFIX, Keys, Retention, parse_entry
from redmeter.shards import ShardedKeys
from redmeter.store import Store, indexes
from redmeter.store.fan_out import STOPPED
from redmeter.store.migration_state import parse_state, state_read
from redmeter.store.query import Read
from redmeter.store.replies import Command, Reply, raised

#: Counters whose memory is measured; the rest is estimated from them.
SAMPLE = 200
#: The same of gauges, of histograms and of messages, each of which has several keys.
OTHER_SAMPLE = 100
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
    #: Entries of gauges and histograms, a series having one for each precision, and loggers.
    others: dict[str, int]
    #: Bytes by kind, None where the server does not tell; estimated where there are many of it.
    bytes: dict[str, int | None]
    estimated: bool
    #: When the cleaner's last pass ended, Unix seconds; None where none is known.
    cleaned: float | None
    #: Producers that wrote within the last day; None on a cluster, or with too many keys to look.
    producers: int | None
    #: Those who told of themselves within the last day, the newest first.
    writers: list[Writer] = field(default_factory=list)
    #: What it was examined without, as sentences: see Store.skipped().
    missing: list[str] = field(default_factory=list)
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
    reader, spread = store.reader is not store, len(store.shards) > 1
    since = store.clock.wall()
    masters = ask_masters(store) if spread else {}
    store = store.best_effort()
    own = () if spread else QUESTIONS
    contents = Contents(keys)
    # On a cluster a process is another producer in each shard.
    watermarks = [] if spread else [("SCAN", "0", "MATCH", keys.batch("*"), "COUNT", str(SCANNED))]
    view, replies = store.read(
        [
            *own,
            *contents.commands,
            *(state_read(shard.keys) for shard in store.shards),
            indexes.size(keys, keys.known),
            indexes.sample(keys, keys.known, SAMPLE),
            ("HGET", keys.cleaned, keys.prefix),
            indexes.memory(keys, keys.known),
            indexes.memory(keys, keys.total),
            *_beside(keys),
            *watermarks,
            *_other_questions(keys),
            *writing.writer_commands(keys),
        ]
    )
    servers = Servers(store, masters or {"": replies[: len(own)]}, since)
    contents.read(replies[len(own) :][: len(contents.commands)])
    told = replies[len(own) + len(contents.commands) :]
    shards, told = told[: len(store.shards)], told[len(store.shards) :]
    number, drawn, cleaned, index, totals, *others = told
    beside_us = others[: len(_beside(keys))]
    bare, prefixed, bare_cleaned = beside_us or (0, 0, None)
    others = others[len(beside_us) :]
    scanned, more = others[: len(watermarks)], others[len(watermarks) :]
    asked, published = more[: _EACH * len(_OTHERS)], more[_EACH * len(_OTHERS) :]
    ended = cleaned.decode() if _is_moment(cleaned) else ""
    usable = contents.usable(keys.known)
    count = raised(number) if usable else 0
    members = [m for m in raised(drawn) if isinstance(m, bytes)] if usable else []
    counters = _Counters(members, keys, max(view.retention))
    beside = _Others(asked, keys, contents)
    by_precision = _precisions_asked(keys, view.retention)
    answers = store.ask([*by_precision, *counters.commands, *beside.commands])
    precisions, answers = answers[: len(by_precision)], answers[len(by_precision) :]
    sample = counters.examined(answers[: len(counters.commands)])
    parts = beside.examined(answers[len(counters.commands) :])
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
            "totals": _size(totals),
            **{name: part.bytes() for name, part in parts.items()},
        },
        estimated=count > len(members) or any(p.count > p.sample.size for p in parts.values()),
        cleaned=int(ended) if ended else None,
        producers=_producers(scanned[0]) if scanned else None,
    )
    found = health.findings
    found += servers.findings(replicas=reader)
    health.missing = store.skipped()
    if any(text.endswith(STOPPED) for text in health.missing):
        found += findings.stopped()
        return health
    filled = count > 0 or any(part.count for part in parts.values())
    moving = [parse_state(reply) for reply in shards if not isinstance(reply, StoreError)]
    found += findings.migration(moving, view.now)
    found += contents.findings()
    if usable:
        if filled:
            found += findings.contents(keys.prefix, view.version, count, sample)
        else:
            found += findings.nothing()
        uncleaned = 0 if isinstance(bare_cleaned, bytes) or not keys.prefix else _number(bare)
        found += findings.cleaner(view.now, count, sample, ended, uncleaned)
    for name, part in parts.items():
        found += findings.others(name, part.count, part.sample)
    try:
        health.writers, unreadable = writing.parse_writers(view.now, published)
    except StoreError as error:  # a key that is not ours, or an ACL that forbids to ask
        found += writer_findings.unreadable_reports(keys.writers, error)
    else:
        found += writer_findings.writer_findings(view.now, health.writers, unreadable)
    found += findings.beside(keys.prefix, _number(bare), _number(prefixed))
    health.missing = store.skipped()  # what was asked since may be missing too
    return health


class _Counters:
    """Looks at some entries of the index of counters.

    Args:
        members: of the index.
        widest: the precision whose hashes live longest, seconds.
    """

    def __init__(self, members: list[bytes], keys: Keys, widest: int) -> None:
        self._members = members
        self.commands: list[Command] = []
        for member in members:
            text = member.decode(errors="surrogateescape")
            # A member that is no entry has no series; its own key will do.
            _, _, name = text.partition(":")
            key, lasting = (
                keys.key("count", each).encode(errors="surrogateescape")
                for each in (text, f"{widest}:{name}" if parse_entry(text) else text)
            )
            self.commands += [("MEMORY", "USAGE", key), ("TTL", key), ("TYPE", key)]
            self.commands.append(("TYPE", lasting))

    def examined(self, replies: list[Reply]) -> Sample:
        """Sum up what the server replied to the commands."""
        sample = Sample(size=len(self._members))
        for at, member in enumerate(self._members):
            size, ttl, kind, lasting = replies[4 * at : 4 * at + 4]
            text = member.decode(errors="replace")
            if parse_entry(text) is None:
                sample.strange.append(text)
            elif kind == b"none":
                sample.bare += 1
                sample.gone += lasting == b"none"
            elif kind != b"hash" and not isinstance(kind, StoreError):  # an ACL may forbid to ask
                sample.wrong.append(text)
            else:
                if isinstance(size, int):
                    sample.measured += 1
                    sample.bytes += size
                sample.endless += ttl == -1
        return sample


# --- Gauges, histograms, messages, exceptions ----------------------------------------------


#: The indexes besides that of counters, by the kind of their records.
_OTHERS = {kind: index for kind, index in INDEX_OF.items() if kind != "counters"}
#: Questions about each: how many entries, some of them, and how large it is.
_EACH = 3


@dataclass(slots=True)
class _Part:
    """An index, and some of what it names."""

    count: int
    #: What the index itself takes.
    size: int | None
    sample: Sample

    def bytes(self) -> int | None:
        rest = self.sample.estimate(self.count)
        return None if rest is None or self.size is None else rest + self.size


def _other_questions(keys: Keys) -> list[Read]:
    reads: list[Read] = []
    for key in (keys.key(index.name) for index in _OTHERS.values()):
        reads += [indexes.size(keys, key), indexes.sample(keys, key, OTHER_SAMPLE)]
        reads.append(indexes.memory(keys, key))
    return reads


class _Others:
    """Looks at the indexes other than that of counters, and at some entries of each.

    Args:
        replies: to _other_questions().
        contents: which of them are indexes.
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
                of_it = _keys_of(keys, index, entry)
                if not of_it:
                    sample.strange.append(entry)
                    continue
                self._named.append((sample, of_it))
                for key, _ in of_it:
                    self.commands += [("MEMORY", "USAGE", key), ("TYPE", key)]

    def examined(self, replies: list[Reply]) -> dict[str, _Part]:
        """Sum up what the server replied to the commands."""
        answers = iter(replies)
        for sample, of_it in self._named:
            measured = False
            for key, wanted in of_it:
                size, kind = next(answers), next(answers)
                if not isinstance(kind, StoreError) and kind not in (wanted, b"none"):
                    sample.wrong.append(key)
                elif isinstance(size, int):
                    sample.bytes += size
                    measured = True
            sample.measured += measured
        return self._parts


def _keys_of(keys: Keys, index: Family, entry: str) -> list[tuple[str, bytes]]:
    """Return the keys that an entry of an index lists, with their types; none if malformed."""
    if index.members == "LOGGER:SEVERITY":
        if not all(parse_name(entry)):
            return []
    elif not is_group(entry) if index.members == "GROUP" else parse_entry(entry) is None:
        return []
    typed: list[tuple[str, bytes]] = []
    for family in listed_by(index):
        rest = owner(index.members, entry) if family.rest == "LOGGER" else entry
        family_keys = keys.keys_of(family, rest)
        # The hourly keys alternate: two that have data, and their dates.
        checked = family_keys[:3:2] if family.hourly else family_keys
        typed += [(key, family.type.encode()) for key in checked]
    return typed


def _beside(keys: Keys) -> list[Command]:
    """Ask what other stores lie beside: on a cluster there may be none."""
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
    """Tell whether a reply is a time, Unix seconds, as a cleaner notes it."""
    return isinstance(reply, bytes) and reply.isdigit() and len(reply) <= 12


def _number(reply: Reply) -> int:
    return reply if isinstance(reply, int) else 0


def _size(reply: Reply) -> int | None:
    """Read MEMORY USAGE, which is nil for a key that is not there and may be forbidden."""
    return reply if isinstance(reply, int) else 0 if reply is None else None
