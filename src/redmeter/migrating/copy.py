"""Copy: all keys of a frozen source into the target.

Values are read and written by type (HGETALL, HSET …), not by DUMP and RESTORE, whose format differs
between versions of Redis and Valkey. Keys are read in pipelines of READ keys, and values of more
than ELEMENTS_PER_READ elements in chunks, so that neither server is busy for more than a few
milliseconds at a time. Indexes come first: without a prefix they show which keys are the store's.

The target is written by one script, which checks in every call that this mover still owns it. A
call is not repeated: if an answer is missing, the migration fails and starts again from the
beginning.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from redmeter.errors import StoreError, StoreRefused
from redmeter.migrating.contents import StoredKey, all_keys, batched, shard_of_member
from redmeter.migrating.layouts import Layouts, same_layout
from redmeter.migrating.report import MigrationError, MigrationReport, Survey
from redmeter.store import Store
from redmeter.store.config import read_states
from redmeter.store.query import scan
from redmeter.store.scripts import COPY, collect_scripts
from redmeter.store.servers.replies import Command, Reply, pairs, raised, scored
from redmeter.stored.families import FAMILIES

#: Keys that are read at once.
READ = 200
#: Largest value that is read, or written, as a whole: elements.
ELEMENTS_PER_READ = 500
#: Keys that are read to estimate the time.
KEYS_SAMPLED = 1_000
#: Values of one call of the script, about; and calls that are sent together.
VALUES_PER_CALL, CALLS = 1_000, 4

#: Type of a key to the command that returns its size.
SIZES = {"hash": "HLEN", "zset": "ZCARD", "list": "LLEN", "string": "STRLEN"}


class Write(NamedTuple):
    """Values that are written to one key."""

    key: bytes
    command: str
    #: Whether the key is removed before.
    replace: bool
    #: Milliseconds; 0: no limit.
    ttl: int
    values: Sequence[bytes]
    #: The size that the key has to have afterwards; None if that is not known yet.
    size: int | None


class FencedWriter:
    """Writes keys of a store, as long as it belongs to the caller.

    Args:
        field, value: the field of `meta:` that must have this value.
    """

    def __init__(self, store: Store, field: str, value: str) -> None:
        self._store = store
        self._fence = field, value
        self._waiting: dict[int, list[Write]] = defaultdict(list)
        self._values: Counter[int] = Counter()
        self._full: list[tuple[int, list[Write]]] = []

    def add(self, shard: int, write: Write) -> None:
        """Write something, soon."""
        self._waiting[shard].append(write)
        self._values[shard] += len(write.values) + 4
        if self._values[shard] >= VALUES_PER_CALL:
            self._full.append((shard, self._waiting.pop(shard)))
            del self._values[shard]
            if len(self._full) >= CALLS:
                self._send()

    def flush(self) -> None:
        """Write everything that was added."""
        self._full += self._waiting.items()
        self._waiting.clear()
        self._values.clear()
        self._send()

    def _send(self) -> None:
        calls, self._full = self._full, []
        for pipeline in batched(calls, CALLS):
            commands = []
            for shard, writes in pipeline:
                keys: list[str | bytes] = [self._store.shards[shard].keys.meta]
                keys += [write.key for write in writes]
                args: list[str | bytes] = [*self._fence]
                for write in writes:
                    args += [write.command, "1" if write.replace else "0", str(write.ttl)]
                    args += [str(len(write.values)), *write.values]
                commands.append(COPY.command(keys, args))
            replies = collect_scripts(self._store.shards[0].link.collect, commands)
            for (_, writes), reply in zip(pipeline, replies, strict=True):
                _check(writes, reply)


def _check(writes: Sequence[Write], reply: Reply) -> None:
    if isinstance(reply, StoreRefused) and "FENCED" in reply.detail:
        raise MigrationError("fenced", "another migration has taken over the target")
    for write, size in zip(writes, raised(reply), strict=True):
        if write.size not in (None, size):
            key = ascii(write.key.decode(errors="replace"))
            raise MigrationError(
                "differs",
                f"{key} has {size} values in the target, and should "
                f"have {write.size}: something else writes to one of the stores",
            )


class Copy:
    """Copies keys.

    Args:
        shards: numbers of the shards of the target that are written.
        writer: to the target.
        between: called between two steps; it may raise.
    """

    def __init__(
        self,
        source: Store,
        target: Store,
        shards: Collection[int],
        writer: FencedWriter,
        report: MigrationReport,
        between: Callable[[], None],
    ) -> None:
        self._source, self._target = source, target
        self._shards, self._writer, self._report = shards, writer, report
        self._between = between
        #: None: both have a prefix, or neither.
        self._layouts = None if same_layout(source, target) else Layouts(source, target)
        #: (shard, family) of an index of the target -> members that it must have.
        self.members: Counter[tuple[int, str]] = Counter()
        #: (shard, family) of totals of the target -> sum of the checksums of its fields.
        self.checksums: Counter[tuple[int, str]] = Counter()

    def run(self, progress: Callable[[int], None]) -> None:
        """Copy everything.

        Args:
            progress: called with the number of keys copied so far.

        Raises:
            MigrationError, StoreError: the copy is not complete.
        """
        self._copy_indexes()
        self._writer.flush()
        hours: dict[tuple[str, bytes], StoredKey] = {}
        for page in batched(self._data_keys(hours), READ):
            self._copy_keys(page)
            progress(self._report.total)
            self._between()
        for page in batched(hours.values(), READ):
            self._copy_dates(page)
            self._between()
        self._writer.flush()

    def _data_keys(self, hours: dict[tuple[str, bytes], StoredKey]) -> Iterator[StoredKey]:
        """Yield the keys of data, each once; of a new layout without dates, but note the hours."""
        seen: set[bytes] = set()
        for stored in all_keys(self._source, lambda one: self._report.note_foreign(one.key)):
            if stored.is_index or stored.key in seen:
                continue
            seen.add(stored.key)
            if stored.shard(len(self._target.shards)) not in self._shards:
                continue
            if self._layouts and stored.family.hourly:
                hours[stored.family.name, stored.stem] = stored
                if stored.is_date:
                    continue
            yield stored

    def _copy_keys(self, page: Sequence[StoredKey]) -> None:
        commands = ((("PTTL", each.key), (SIZES[each.type], each.key)) for each in page)
        sizes = self._source.ask(list(chain.from_iterable(commands)))
        whole: list[tuple[StoredKey, int, int]] = []
        for stored, ttl, size in zip(page, sizes[::2], sizes[1::2], strict=True):
            if _is_foreign(size):
                self._report.note_foreign(stored.key)
                continue
            raised(size)
            if not size or raised(ttl) == -2:
                continue  # it has just expired
            if stored.command != "SET" and size > ELEMENTS_PER_READ:
                self._copy_large(stored, ttl, size)
            else:
                whole.append((stored, ttl, size))
        replies = self._source.ask([_read_command(stored) for stored, _, _ in whole])
        for (stored, ttl, size), reply in zip(whole, replies, strict=True):
            values = _values(stored.command, raised(reply))
            if values:
                self._write(stored, ttl, size, values, replace=True, last=True)
                self._note(stored, size)

    def _copy_large(self, stored: StoredKey, ttl: int, size: int) -> None:
        first = True
        for values in _chunks(self._source, stored, size):
            self._write(stored, ttl, size, values, replace=first, last=False)
            first = False
            self._between()
        self._note(stored, size)
        self._writer.flush()
        shard = stored.shard(len(self._target.shards))
        key = stored.key_in(self._target.shards[shard].keys)
        (copied,) = self._target.ask([(SIZES[stored.type], key)])
        _check([Write(key, stored.command, False, 0, (), size)], [copied])

    def _write(
        self,
        stored: StoredKey,
        ttl: int,
        size: int,
        values: Sequence[bytes],
        *,
        replace: bool,
        last: bool,
    ) -> None:
        shard = stored.shard(len(self._target.shards))
        key = stored.key_in(self._target.shards[shard].keys)
        ttl = self._layouts.ttl(stored, ttl) if self._layouts else max(0, ttl)
        self._writer.add(
            shard,
            Write(key, stored.command, replace, ttl, values, size if last else None),
        )

    def _copy_dates(self, page: Sequence[StoredKey]) -> None:
        """Write the dates of hours in the target's form."""
        assert self._layouts, "the caller checks"
        reads = [self._layouts.date_reads(stored) for stored in page]
        view, replies = self._source.read([command for each in reads for command in each])
        at = 0
        for stored, commands in zip(page, reads, strict=True):
            asked = replies[at : at + len(commands)]
            at += len(commands)
            shard = stored.shard(len(self._target.shards))
            keys = self._target.shards[shard].keys
            for date in self._layouts.dates(stored, keys, asked, view.now):
                write = Write(date.key, "SET", True, date.ttl, (date.text,), len(date.text))
                self._writer.add(shard, write)

    def _note(self, stored: StoredKey, size: int) -> None:
        if stored.is_date:
            return  # it is a part of another key
        keys = self._report.keys
        keys[stored.family.name] = keys.get(stored.family.name, 0) + 1
        self._report.values += size

    def _copy_indexes(self) -> None:
        indexes = [
            StoredKey(shard.keys.key(one.name).encode(), one, b"", not one.shared)
            for shard in self._source.shards
            for one in FAMILIES.values()
            if one.members
        ]
        asked = ((("PTTL", index.key), (SIZES[index.type], index.key)) for index in indexes)
        replies = self._source.ask(list(chain.from_iterable(asked)))
        for index, ttl, size in zip(indexes, replies[::2], replies[1::2], strict=True):
            if _is_foreign(size):
                self._report.note_foreign(index.key)
            elif raised(size):
                self._copy_index(index, max(0, raised(ttl)), size)

    def _copy_index(self, index: StoredKey, ttl: int, size: int) -> None:
        """Copy the members of an index, each to the shard of its name."""
        shards = len(self._target.shards)
        for values in _chunks(self._source, index, size):
            by_shard: dict[int, list[bytes]] = defaultdict(list)
            for one, other in batched(values, 2):
                member = other if index.command == "ZADD" else one
                shard = shard_of_member(index.family, member, shards)
                if shard in self._shards:
                    by_shard[shard] += (one, other)
                    self.members[shard, index.family.name] += 1
                    if index.type == "hash":
                        self.checksums[shard, index.family.name] += checksum(one, other)
            for shard, members in by_shard.items():
                key = index.key_in(self._target.shards[shard].keys)
                self._writer.add(shard, Write(key, index.command, False, ttl, members, None))
                self._report.values += len(members) // 2
            self._between()


def checksum(name: bytes, value: bytes) -> int:
    """Return the checksum of a field of totals."""
    return crc32(name + b"\0" + value)


def _is_foreign(reply: Reply) -> bool:
    return isinstance(reply, StoreRefused) and reply.code == "WRONGTYPE"


def _read_command(stored: StoredKey, first: int = 0, last: int = -1) -> Command:
    """Return the command that reads a key; of a list or sorted set, the elements of these ranks."""
    ranks = str(first), str(last)
    return {
        "HSET": ("HGETALL", stored.key),
        "ZADD": ("ZRANGE", stored.key, *ranks, "WITHSCORES"),
        "RPUSH": ("LRANGE", stored.key, *ranks),
        "SET": ("GET", stored.key),
    }[stored.command]


def _values(command: str, reply: Reply) -> list[bytes]:
    """Return a reply to _read_command() as arguments of the command that writes it."""
    if command == "SET":
        return [] if reply is None else [reply]
    if command == "RPUSH":
        return list(reply)
    if command == "ZADD":
        return [part for member, score in _pairs(reply) for part in (score, member)]
    return [part for pair in pairs(reply) for part in pair]


def _pairs(reply: Reply) -> Iterable[tuple[bytes, bytes]]:
    """Return members with the text of their scores."""
    if reply and isinstance(reply[0], list):  # protocol 3
        return [(member, repr(score).encode()) for member, score in scored(reply)]
    return pairs(reply)


def _chunks(source: Store, stored: StoredKey, size: int) -> Iterator[list[bytes]]:
    """Yield the values of a large key, in pieces; each element once."""
    if stored.command != "HSET":  # by rank: nothing is written meanwhile
        for start in range(0, size, ELEMENTS_PER_READ):
            command = _read_command(stored, start, start + ELEMENTS_PER_READ - 1)
            yield _values(stored.command, raised(source.ask([command])[0]))
        return
    seen: set[bytes] = set()
    for page in scan(
        source.ask, lambda at: ("HSCAN", stored.key, at, "COUNT", str(ELEMENTS_PER_READ))
    ):
        fresh = [(name, value) for name, value in pairs(page) if name not in seen]
        seen.update(name for name, _ in fresh)
        for chunk in batched(fresh, ELEMENTS_PER_READ):
            yield [part for pair in chunk for part in pair]


def remove_all(
    store: Store, shards: Collection[int], writer: FencedWriter, between: Callable[[], None]
) -> int:
    """Remove all keys that are copied from some shards of a store; return how many there were."""
    found: list[StoredKey] = []
    for page in batched(all_keys(store), READ):
        found += page
        between()
    # Those that show which others are the store's come last: this may be killed, and run again.
    found.sort(key=lambda one: (one.is_index, one.family.name == "recent", not one.is_date))
    removed = 0
    tags = {part.keys.head.encode(): number for number, part in enumerate(store.shards)}
    for page in batched(found, READ):
        for stored in page:
            tag = stored.key[: stored.key.find(b"}") + 1]  # of a cluster
            shard = 0 if len(tags) == 1 else tags.get(tag)
            if shard is not None and shard in shards:
                writer.add(shard, Write(stored.key, "UNLINK", False, 0, (), None))
                removed += 1
        between()
    writer.flush()
    return removed


def survey(source: Store) -> Survey:
    """Return what there is to copy, and how long the source would be frozen. Changes nothing."""
    started = source.clock.monotonic()
    counts: Counter[str] = Counter()
    samples: list[StoredKey] = []
    for stored in all_keys(source):
        if not stored.is_index and not stored.is_date:
            counts[stored.family.name] += 1
            if len(samples) < KEYS_SAMPLED:
                samples.append(stored)
    scanned = source.clock.monotonic() - started
    started = source.clock.monotonic()
    for page in batched(samples, READ):
        for reply in source.ask([_read_command(stored) for stored in page]):
            if isinstance(reply, StoreError) and not _is_foreign(reply):
                raise reply
    each = (source.clock.monotonic() - started) / max(1, len(samples))
    # Reading, sizes, writing: four times as long as reading the values alone.
    seconds = 2 * scanned + 4 * each * counts.total() + 0.5
    return Survey(dict(counts), seconds, any(state.moved for state in read_states(source)))


# --- Verification --------------------------------------------------------------------------------

# Verify: the target has everything, and neither store was replaced under the copy.
#
# The size of every key is compared as it is written: see copy.py. Here the indexes and totals of
# the target are compared with those of the source, and both stores must still be served by the
# same processes: a server that restarted or failed over may have lost the last writes, or the
# freeze.


class ServerIds(NamedTuple):
    """The processes that serve a store."""

    #: Address -> ID of the process.
    runs: dict[str, str]
    #: Address -> the shards it has.
    shards: dict[str, list[int]]


def servers_of(store: Store) -> ServerIds:
    """Ask which processes serve a store."""
    runs = {}
    for name, (reply,) in store.link.ask_servers([("INFO", "server")]).items():
        text = raised(reply).decode(errors="replace")
        runs[name] = next((line for line in text.split() if line.startswith("run_id:")), "run_id:")
    return ServerIds(runs, {name: list(numbers) for name, numbers in store.by_server().items()})


def check_servers(store: Store, before: ServerIds, what: str) -> None:
    """Check that the same processes serve a store as before.

    Raises:
        MigrationError: a server restarted, failed over, or a slot moved.
    """
    if servers_of(store) != before:
        raise MigrationError(
            "server-changed", f"a server of the {what} restarted, failed over or gave slots away"
        )


def check_contents(target: Store, copy: Copy, shards: Collection[int]) -> None:
    """Check the indexes and totals of the target.

    Raises:
        MigrationError: they differ from those of the source.
    """
    for number in shards:
        keys = target.shards[number].keys
        families = [family for family in FAMILIES.values() if family.members]
        sizes = target.ask([(SIZES[one.type], keys.key(one.name)) for one in families])
        for family, size in zip(families, sizes, strict=True):
            copied = copy.members[number, family.name]
            _compare(f"{family.name} in shard {number}", copied, raised(size))
            if family.type == "hash":
                what = f"checksum of {family.name} in shard {number}"
                copied = copy.checksums[number, family.name]
                _compare(what, copied, _checksum(target, keys.key(family.name)))


def _checksum(target: Store, key: str) -> int:
    checksums: dict[bytes, int] = {}
    for page in scan(target.ask, lambda at: ("HSCAN", key, at, "COUNT", str(ELEMENTS_PER_READ))):
        checksums.update((name, checksum(name, value)) for name, value in pairs(page))
    return sum(checksums.values())


def _compare(what: str, wanted: int, found: int) -> None:
    if wanted != found:
        raise MigrationError(
            "differs",
            f"{what}: {found:,} in the target, {wanted:,} were copied; something else writes to "
            "one of the stores, or a server has lost data",
        )
