"""The cleaner: remove intervals outside the retention, and index entries whose hash is gone.

Writers trim the hashes they write, and these expire. The cleaner handles the rest: counters of
other programs, index entries of series that are no longer written, and hashes that grew large.

A pass walks the index of counters, then those of gauges and histograms; on a cluster, those of each
shard in turn. An unreachable server delays only its own shards. Following the book's schedule, a
pass runs every minute and checks a precision of N minutes in every Nth pass. Work is split into
calls of one or two milliseconds with pauses between them, so that no other client waits; a time
budget ends a pass early, and the next one continues there. Each check and removal is one atomic
step: any number of cleaners can run alongside any number of writers, and one that is killed leaves
nothing half done.

At the end of a pass the store's memory is estimated (sizes.py). While it is above a limit, writers
are refused new series, so that a bad label cannot fill the server that the application lives on.

The time is the earlier of the server's clock and this machine's. If they differ by more than
MAX_CLOCK_DIFFERENCE, one of them is badly wrong, and nothing is removed.
"""

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.errors import (
    AccessDenied,
    ClockDisagreement,
    StoreError,
    StoreMoving,
    StoreRefused,
    StoreUnavailable,
)
from redmeter.maintenance.sizes import sizes_by_name
from redmeter.store import Store
from redmeter.store.query import scan
from redmeter.store.scripts import CLEAN, COMPACT, FULL
from redmeter.store.servers.replies import Reply, pairs, raised
from redmeter.stored.families import SERIES_INDEXES, listed_by
from redmeter.stored.keys import OTHER_SAMPLES

#: Largest difference between the server's clock and ours, seconds.
MAX_CLOCK_DIFFERENCE = 3600.0
#: Time budget of a pass, seconds.
BUDGET = 50.0
#: Pause between two calls, seconds, so that other clients of the server, and other processes on its
#: core, get their turn.
REST = 0.0003
#: Seconds from the start of one pass to the start of the next.
PASS_INTERVAL = 60.0
#: Entries of each index whose memory is measured in a pass.
MEASURED = 200
#: Most malformed index entries whose text a report contains.
STRANGE_SHOWN = 100

#: Most index entries handled by one call, and fields of a large hash.
_PAGE, _FIELDS = 400, 500
#: Largest hash that one call looks at.
_LARGE = 512

logger = logging.getLogger("redmeter")


@dataclass(slots=True)
class CleaningReport:
    """The result of a pass."""

    #: Index entries that were checked, and those that are due in a later pass.
    examined: int = 0
    not_due: int = 0
    samples_removed: int = 0
    hashes_removed: int = 0
    entries_removed: int = 0
    #: Hashes rewritten to the compact encoding.
    compacted: int = 0
    #: Malformed entries (`60*60:hits`) and keys of another type, which are left in place: their
    #: number, and the first STRANGE_SHOWN of them.
    strange_entries: int = 0
    strange: list[str] = field(default_factory=list)
    #: Seconds the pass took.
    seconds: float = 0.0
    #: Estimated memory of the store, bytes; None if it was not measured.
    bytes: int | None = None
    #: Where the next pass continues: 1 + rank within the index * number of indexes + number of the
    #: index; 0 if this pass reached the end.
    cursor: int = 0

    @property
    def complete(self) -> bool:
        """Whether the pass reached the end of all indexes."""
        return self.cursor == 0


def clean(
    store: Store,
    *,
    passes: int = 0,
    budget: float = BUDGET,
    cursor: int = 0,
    samples: Mapping[int, int] | None = None,
    other_samples: int = OTHER_SAMPLES,
    store_bytes: int = 0,
    progress: Callable[[CleaningReport, int], None] | None = None,
    quit: Callable[[], bool] = lambda: False,  # noqa: A002
) -> CleaningReport:
    """Run one pass.

    Args:
        passes: the number of passes before this one; 0 checks every precision.
        budget: seconds after which to stop; at least one page is processed.
        cursor: `CleaningReport.cursor` of an earlier pass that stopped early.
        samples: precision -> intervals to keep of counters, instead of the store's retention.
            Gauges and histograms, which no other program writes, always use the store's.
        other_samples: intervals to keep of counters with any other precision.
        store_bytes: the estimated memory above which new series are refused; 0: no limit.
        progress: called after each page, with the report so far and the size of all indexes.
        quit: called before each call of the server; when it returns True, the pass stops as it does
            for the budget.

    Raises:
        ClockDisagreement: the clocks differ by more than MAX_CLOCK_DIFFERENCE; nothing was removed.
        StoreMoving: the store is being moved, or was moved.
        StoreError: the server is unreachable or refuses the command. On a cluster the error is
            raised at the end of the pass, after the other servers were cleaned.
    """
    started = store.clock.monotonic()
    report = CleaningReport(cursor=cursor)
    indexes = [(part.keys, index) for part in store.shards for index in SERIES_INDEXES]
    view, sizes = store.best_effort().read(
        [("ZCARD", keys.key(index.name)) for keys, index in indexes]
    )
    _check_clock(view.now - store.clock.wall())
    walks = []
    for keys, index in indexes:
        families = listed_by(index)
        kept = view.retention_of(index.kind) if samples is None or not index.shared else samples
        walks.append(
            _Walk(
                index=keys.key(index.name),
                meta=keys.meta,
                heads=tuple(keys.key(family.name) for family in families),
                kept=kept,
                other_samples=other_samples if index.shared else OTHER_SAMPLES,
                passes=passes,
                quit=quit,
                compact=all(family.compact for family in families),
            )
        )
    left = _Left(store, sizes)
    rank, first = divmod(max(cursor - 1, 0), len(walks))
    at = left.next(first)
    while at is not None:
        try:
            rank, done = _clean_page(store, walks[at], rank, report)
        except StoreMoving:
            raise
        except (StoreUnavailable, StoreRefused) as error:
            left.give_up(at, error)
            done = True
        if done:
            rank, at = 0, left.next(at + 1)
        report.seconds = store.clock.monotonic() - started
        report.cursor = 0 if at is None else 1 + rank * len(walks) + at
        if progress:
            progress(report, left.entries)
        if at is None or report.seconds >= budget or quit():
            break
        store.clock.sleep(REST)
    if at is None:
        if left.problem is not None:
            raise left.problem
        store.ask([("HSET", store.keys.cleaned, store.keys.prefix, str(int(view.now)))])
        if store_bytes:
            _limit(store, store_bytes, report)
    return report


def _limit(store: Store, most: int, report: CleaningReport) -> None:
    """Estimate the store's memory; have new series refused while it is above a limit."""
    try:
        report.bytes = sum(size.bytes for size in sizes_by_name(store, MEASURED))
        full = str(report.bytes) if report.bytes > most else ""
        for shard in store.shards:
            raised(FULL.run(shard.link, [shard.keys.meta], [full]))
    except (AccessDenied, StoreRefused) as error:  # a right that is missing
        logger.warning("redmeter cannot limit the memory of its store: %s", error)
    if report.bytes is not None and report.bytes > most:
        logger.warning(
            "redmeter: the store takes %d MB of Redis, more than store_bytes allows (%d MB): new "
            "series are refused; `redmeter names --by-size` ranks names by memory",
            *(report.bytes >> 20, most >> 20),
        )


class _Left:
    """The indexes that a pass still has to walk: those that are not empty and can be read.

    Args:
        sizes: for each index its number of entries, or the error of reading it.

    Raises:
        StoreError: no index can be read, or an ACL forbids it.
    """

    def __init__(self, store: Store, sizes: Sequence[Reply]) -> None:
        self._store = store
        #: Why indexes were left out; raised once the others are cleaned.
        self.problem: StoreUnavailable | StoreRefused | None = None
        self._sizes: dict[int, int] = {}
        for number, reply in enumerate(sizes):
            if isinstance(reply, StoreUnavailable | StoreRefused):
                self.problem = self.problem or reply
            else:
                self._sizes[number] = raised(reply)
        if not self._sizes and self.problem is not None:
            raise self.problem

    @property
    def entries(self) -> int:
        """The number of entries of all indexes."""
        return sum(self._sizes.values())

    def next(self, number: int) -> int | None:
        """Return the first remaining index from a number on."""
        return next((n for n in sorted(self._sizes) if n >= number and self._sizes[n]), None)

    def give_up(self, number: int, error: StoreUnavailable | StoreRefused) -> None:
        """Leave out an index and, if its server is unreachable, all others on that server."""
        self.problem = self.problem or error
        if isinstance(error, StoreRefused):
            del self._sizes[number]
            return
        shard = number // len(SERIES_INDEXES)
        shards = next(shards for shards in self._store.by_server().values() if shard in shards)
        for other in list(self._sizes):
            if other // len(SERIES_INDEXES) in shards:
                del self._sizes[other]


def clean_every_minute(
    store: Store,
    *,
    quit: Callable[[], bool],  # noqa: A002
    on_pass: Callable[[CleaningReport], None] | None = None,
    samples: Callable[[], tuple[Mapping[int, int], int]] | None = None,
    store_bytes: int = 0,
) -> None:
    """Run a pass every minute until `quit` returns True.

    Temporary errors (server unreachable, out of memory) are logged, and the next pass tries again.

    Args:
        quit: called at least once a second.
        on_pass: called after each pass.
        samples: called before each pass; returns `samples` and `other_samples` of `clean()`. By
            default the store's retention applies.
        store_bytes: see `clean()`.

    Raises:
        ClockDisagreement, AccessDenied: errors that do not resolve without intervention.
    """
    clock = store.clock
    passes = cursor = 0

    def went_on(report: CleaningReport, _: int) -> None:
        nonlocal cursor
        cursor = report.cursor

    while not quit():
        started = clock.monotonic()
        try:
            kept, other = samples() if samples else (None, OTHER_SAMPLES)
            report = clean(
                store,
                passes=passes,
                cursor=cursor,
                samples=kept,
                other_samples=other,
                store_bytes=store_bytes,
                progress=went_on,
                quit=quit,
            )
            if on_pass:
                on_pass(report)
        except AccessDenied:
            raise
        except StoreError as error:
            logger.warning("redmeter could not clean, and tries again in a minute: %s", error)
        if cursor == 0:
            passes += 1
        # Pause for at least a second, even after a pass that took longer than its minute.
        until = max(started + PASS_INTERVAL, clock.monotonic() + 1.0)
        while not quit() and clock.monotonic() < until:
            clock.sleep(min(0.5, until - clock.monotonic()))


def _check_clock(difference: float) -> None:
    if abs(difference) > MAX_CLOCK_DIFFERENCE:
        raise ClockDisagreement(difference, MAX_CLOCK_DIFFERENCE)


@dataclass(slots=True)
class _Walk:
    """One index to walk, with the retention of its hashes."""

    index: str
    meta: str
    #: The prefixes of the keys of an entry's one or two hashes.
    heads: tuple[str, ...]
    kept: Mapping[int, int]
    other_samples: int
    passes: int
    quit: Callable[[], bool]
    #: Whether large hashes are rewritten to the compact encoding. False once that had no effect, as
    #: on a server whose limit for compact hashes is lower.
    compact: bool = True

    def samples(self, precision: int) -> int:
        return self.kept.get(precision, self.other_samples)


def _clean_page(store: Store, walk: _Walk, start: int, report: CleaningReport) -> tuple[int, bool]:
    """Clean the hashes named by the next page of the index.

    The index is walked by rank from its end, so removals do not shift the entries still to come.
    Concurrent changes by other clients can hide an entry until the next pass, or repeat one.

    Returns:
        The rank of the next page, and whether the index is finished.
    """
    seen, removed, large = _clean_stretch(store, start, _PAGE, walk, report)
    for entry in dict.fromkeys(large):
        if walk.quit():
            break
        if _clean_large(store, walk, entry, report):
            (rank,) = store.ask([("ZREVRANK", walk.index, entry)])
            if isinstance(rank, int):  # the entry is removed as any other without a hash
                _clean_stretch(store, rank, 1, walk, report)
                report.examined -= 1
    return start + seen - removed, seen == 0


def _clean_stretch(
    store: Store, rank: int, count: int, walk: _Walk, report: CleaningReport
) -> tuple[int, int, list[bytes]]:
    """Run the script; return the entries seen and removed, and the entries with large hashes."""
    reply = CLEAN.run(
        store.link,
        [walk.index, walk.meta],
        [
            *map(str, (rank, count, walk.passes)),
            f"{store.clock.wall():.6f}",
            walk.heads[0],
            walk.heads[1] if len(walk.heads) > 1 else "",
            *map(str, (_LARGE, int(walk.compact), walk.other_samples)),
            *map(str, itertools.chain.from_iterable(walk.kept.items())),
        ],
    )
    seen, not_due, samples, hashes, removed, large, strange = raised(reply)
    report.examined += seen - not_due - len(strange)
    report.not_due += not_due
    report.samples_removed += samples
    report.hashes_removed += hashes
    report.entries_removed += removed
    report.strange_entries += len(strange)
    shown = strange[: STRANGE_SHOWN - len(report.strange)]
    report.strange += [entry.decode(errors="replace") for entry in shown]
    return seen, removed, large


def _clean_large(store: Store, walk: _Walk, entry: bytes, report: CleaningReport) -> bool:
    """Clean the hashes of an entry in steps; return whether all of them are gone."""
    left = [not _clean_large_hash(store, walk, head, entry, report) for head in walk.heads]
    return not any(left)


def _clean_large_hash(
    store: Store, walk: _Walk, head: str, entry: bytes, report: CleaningReport
) -> bool:
    """Clean a hash of very many fields in steps, then rewrite it to the compact encoding.

    Other clients may write between two steps; each step removes only fields that it found expired.

    Returns:
        Whether the hash is gone.
    """
    key = head.encode() + entry
    precision = int(entry.partition(b":")[0])
    view, _ = store.read()
    last = int(min(view.now, store.clock.wall())) - walk.samples(precision) * precision
    left = 0
    pages = scan(store.ask, lambda cursor: ("HSCAN", key, cursor, "COUNT", str(_FIELDS)))
    for fields in ([start for start, _ in pairs(page)] for page in pages):
        gone = [start for start in fields if _start(start, default=last + 1) <= last]
        left += len(fields) - len(gone)
        if gone:
            report.samples_removed += raised(store.ask([("HDEL", key, *gone)])[0])
        if walk.quit():
            return False
    if 0 < left <= _FIELDS and walk.compact:
        walk.compact = bool(raised(COMPACT.run(store.link, [key], [str(_FIELDS)])))
        report.compacted += walk.compact
    return left == 0


def _start(text: bytes, default: int) -> float:
    try:
        return float(text)
    except ValueError:
        return default
