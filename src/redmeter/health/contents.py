"""What a store holds, and the findings about it, from a sample of each index.

First the size of each index, a sample of its entries and its memory; then the type and the memory
of the keys that the sample lists, and the number of counters by precision. An index that another
program uses counts as empty: upkeep.py reports it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from redmeter.errors import StoreError
from redmeter.health.check import DoctorCheck, Finding, Seen, listed
from redmeter.health.room import exception_findings
from redmeter.maintenance.sizes import typed_keys_of
from redmeter.store import Store, View, indexes
from redmeter.store.query import Query, Read, in_parts, together
from redmeter.store.servers.replies import Command, Reply, is_misplaced, raised
from redmeter.stored.families import INDEX_OF, Family
from redmeter.stored.keys import Keys, parse_entry

#: Counters whose memory is measured; the rest is estimated from them.
SAMPLED_COUNTERS = 200
#: The same for gauges, histograms and messages, each of which has several keys.
SAMPLED_OTHERS = 100


@dataclass(slots=True)
class IndexSample:
    """An index, and a sample of it, checked entry by entry."""

    #: Its entries.
    count: int = 0
    #: Bytes of the index itself; None if the server does not report them.
    index_bytes: int | None = None
    #: Why it counts as empty: another program's key, of another type.
    error: StoreError | None = None
    #: Entries in the sample.
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
    #: Entries by precision; of counters only.
    by_precision: dict[int, int] = field(default_factory=dict)

    def estimate(self) -> int | None:
        """Return the bytes of all keys it lists; None if the server reported none of them."""
        hashes = self.size - self.bare - len(self.strange) - len(self.wrong)
        if hashes > self.measured == 0:
            return None
        return self.bytes * self.count // self.size if self.size else 0

    def with_index(self) -> int | None:
        """Return the bytes of the index and of all keys it lists; None if one is unknown."""
        rest = self.estimate()
        return None if rest is None or self.index_bytes is None else rest + self.index_bytes

    def examples(self, texts: list[str], problem: str) -> str:
        """Return how many entries of the sample have a problem, with three of them as ASCII."""
        return f"{len(texts)} of {self.size} {problem}, e.g. {', '.join(map(ascii, texts[:3]))}"


def _sampled(keys: Keys, index: str, most: int) -> Query[tuple[View, IndexSample, list[bytes]]]:
    """Read the size of an index, its memory, and some of its entries."""
    view, (count, drawn, size) = yield [
        indexes.size(keys, index),
        indexes.sample(keys, index, most),
        indexes.memory_usage(keys, index),
    ]
    sample = IndexSample(index_bytes=key_bytes(size))
    if is_misplaced(count):
        sample.error = count
        return view, sample, []
    sample.count = raised(count)
    members = [member for member in raised(drawn) if isinstance(member, bytes)]
    sample.size = len(members)
    return view, sample, members


def key_bytes(reply: Reply) -> int | None:
    """Parse MEMORY USAGE, which is nil for a missing key and may be forbidden."""
    return reply if isinstance(reply, int) else 0 if reply is None else None


# --- Counters --------------------------------------------------------------------------------


def _read_counters(store: Store) -> Query[IndexSample]:
    keys = store.keys
    view, sample, members = yield from _sampled(keys, keys.known, SAMPLED_COUNTERS)
    if sample.error:
        sample.by_precision = dict.fromkeys(view.retention, 0)
        return sample
    counts: list[Read] = [
        indexes.size_between(keys, keys.known, f"[{width}:", f"({width};")
        for width in view.retention
    ]
    widest = max(view.retention)  # its hashes live longest
    commands = [_about_counter(keys, member, widest) for member in members]
    counted, *checked = yield from in_parts([counts, *commands])
    sample.by_precision = dict(zip(view.retention, map(raised, counted), strict=True))
    for member, (size, ttl, kind, lasting) in zip(members, checked, strict=True):
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


def _about_counter(keys: Keys, member: bytes, widest: int) -> list[Command]:
    """Return the commands about the hash of an entry, and about its series' at another precision.

    Args:
        widest: that precision, seconds.
    """
    text = member.decode(errors="surrogateescape")
    # A malformed member has no series; its own key will do.
    _, _, name = text.partition(":")
    key, lasting = (
        keys.key("count", each).encode(errors="surrogateescape")
        for each in (text, f"{widest}:{name}" if parse_entry(text) else text)
    )
    return [("MEMORY", "USAGE", key), ("TTL", key), ("TYPE", key), ("TYPE", lasting)]


def _counter_findings(sample: IndexSample, seen: Seen) -> Iterator[Finding]:
    if sample.error:
        return
    if sample.count or any(other.count for other in seen[OTHER_CONTENTS].values()):
        yield from counters(seen.keys.prefix, seen.view.version, sample)
    else:
        yield Finding(
            "ok",
            "counters",
            "none yet",
            "count in your application, or read an access log: redmeter replay FILE",
        )


def counters(prefix: str, version: str, sample: IndexSample) -> Iterator[Finding]:
    """Check the counters of a store that is not empty.

    Args:
        version: of `meta:`; "" if there is none.
    """
    if sample.count and not version and prefix:
        yield Finding("warn", "counters", "the meta: key is missing", "the next write restores it")
    yield from _malformed("counters", sample)
    if sample.wrong:
        text = sample.examples(sample.wrong, "counters are not hashes")
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


def _malformed(topic: str, sample: IndexSample) -> Iterator[Finding]:
    if sample.strange:
        text = sample.examples(sample.strange, "index entries are malformed")
        fix = "they are ignored; if no program of yours wrote them, remove them with ZREM"
        yield Finding("warn", topic, text, fix)


COUNTER_CONTENTS = DoctorCheck(_read_counters, _counter_findings)

# --- Gauges, histograms, messages, exceptions ------------------------------------------------


def _read_others(store: Store) -> Query[dict[str, IndexSample]]:
    others = {f"{kind}s": index for kind, index in INDEX_OF.items() if kind != "counter"}
    samples = yield from together([_read_index(store.keys, each) for each in others.values()])
    return dict(zip(others, samples, strict=True))


def _read_index(keys: Keys, index: Family) -> Query[IndexSample]:
    _, sample, members = yield from _sampled(keys, keys.key(index.name), SAMPLED_OTHERS)
    listed: list[list[tuple[str, bytes]]] = []  # the keys of each entry, with their types
    for member in members:
        entry = member.decode(errors="replace")
        typed = typed_keys_of(keys, index, entry)
        if typed:
            listed.append(typed)
        else:
            sample.strange.append(entry)
    parts = yield from in_parts(
        [
            [command for key, _ in typed for command in (("MEMORY", "USAGE", key), ("TYPE", key))]
            for typed in listed
        ]
    )
    for typed, replies in zip(listed, parts, strict=True):
        measured = False
        for (key, expected), size, kind in zip(typed, replies[::2], replies[1::2], strict=True):
            if not isinstance(kind, StoreError) and kind not in (expected, b"none"):
                sample.wrong.append(key)
            elif isinstance(size, int):
                sample.bytes += size
                measured = True
        sample.measured += measured
    return sample


def _other_findings(samples: Mapping[str, IndexSample], _: Seen) -> Iterator[Finding]:
    for topic, sample in samples.items():
        yield from _malformed(topic, sample)
        if sample.wrong:
            yield Finding(
                "fail",
                topic,
                f"keys that another program uses: {listed([*map(ascii, sample.wrong)])}; checked: "
                f"{sample.size} of {sample.count:,} index entries",
                "reads skip them: choose another prefix, or remove these keys",
            )
    yield from exception_findings(samples["exceptions"].count)


OTHER_CONTENTS = DoctorCheck(_read_others, _other_findings)
