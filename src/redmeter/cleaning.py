"""The cleaner: remove what has left the retention, and index entries whose hash is gone.

Writers trim what they write, and their hashes expire; left for the cleaner are the counters that
other programs write, the entries of those that nobody writes any more, and hashes that grew large.

A pass walks the index of counters once, then those of gauges and of histograms; on a cluster those
of each shard in turn, and a server that is away holds up only what lies there. By the book's
schedule a pass is made every minute, and a precision of N minutes is looked at in every Nth. Work
is cut into calls of a millisecond or two with pauses between them, so that no other client waits; a
time budget ends a pass early, and the next goes on from there. Looking and removing are one atomic
step, so any number of cleaners may run beside any number of writers, and one that is killed half
way leaves nothing half done.

The time is the earlier of the server's clock and this machine's. Where they differ by more than
MAX_CLOCK_DIFFERENCE, one of them is badly wrong and nothing is touched.
"""

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.errors import (
    AccessDenied,
    ClockDisagreement,
    StoreError,
    StoreMoving,
    StoreRefused,
    StoreUnavailable,
)
from redmeter.store import Store
from redmeter.store.replies import Reply, pairs, raised
from redmeter.store.scripts import CLEAN, COMPACT

#: Largest difference between the server's clock and ours, seconds.
MAX_CLOCK_DIFFERENCE = 3600.0
#: Time budget of a pass, seconds.
BUDGET = 50.0
#: Pause between two calls, seconds: whoever else waits for the server, or for the core that it runs
#: on, shall have its turn.
REST = 0.0003
#: Seconds from the start of one pass to the start of the next.
INTERVAL = 60.0
#: Samples kept of a precision that the store's retention does not name: other programs' counters.
OTHER_SAMPLES = 120
#: Entries that are none of which a report has the text.
STRANGE_SHOWN = 100

#: Indexes of hashes that a shard has.
_INDEXES = 3
#: Most index entries handled by one call, and fields of a large hash.
_PAGE, _FIELDS = 400, 500
#: Largest hash that one call looks at.
_LARGE = 512

logger = logging.getLogger("redmeter")


@dataclass(slots=True)
class Report:
    """What a pass did."""

    #: Index entries that were due and looked at, and those whose turn comes in a later pass.
    looked_at: int = 0
    not_due: int = 0
    slices_removed: int = 0
    hashes_removed: int = 0
    entries_removed: int = 0
    #: Hashes brought back to the compact encoding.
    compacted: int = 0
    #: Entries that are none (`60*60:hits`), and keys that are no hashes; left alone: how many, and
    #: the first few of them.
    strange_entries: int = 0
    strange: list[str] = field(default_factory=list)
    #: Seconds the pass took.
    seconds: float = 0.0
    #: Where the next pass goes on: 1 + the rank within an index * how many indexes the store has +
    #: which of them; 0 where this one came to the end.
    cursor: int = 0

    @property
    def complete(self) -> bool:
        """Whether all was walked."""
        return self.cursor == 0


def clean(
    store: Store,
    *,
    passes: int = 0,
    budget: float = BUDGET,
    cursor: int = 0,
    samples: Mapping[int, int] | None = None,
    other_samples: int = OTHER_SAMPLES,
    progress: Callable[[Report, int], None] | None = None,
    quit: Callable[[], bool] = lambda: False,  # noqa: A002
) -> Report:
    """Make one pass.

    Args:
        passes: how many passes were made before; 0 looks at every precision.
        budget: seconds after which to stop; at least one page is done.
        cursor: where an earlier pass stopped.
        samples: precision -> samples of counters, instead of the store's retention. Gauges and
            histograms, which no other program writes, always go by that.
        other_samples: for precisions that are not in there.
        progress: called after each page, with the report so far and the size of all indexes.
        quit: asked before each call; once it says True, the pass stops as for the budget.

    Raises:
        ClockDisagreement: the clocks differ wildly; nothing was touched.
        StoreMoving: the store is being moved, or was moved.
        StoreError: the server cannot be reached or refuses. Of several servers: the others are
            cleaned before it is raised, at the end of the pass.
    """
    started = store.clock.monotonic()
    report = Report(cursor=cursor)
    indexes = [
        index
        for part in store.shards
        for index in (part.keys.known, part.keys.gauges, part.keys.hists)
    ]
    view, sizes = store.best_effort().read([("ZCARD", index) for index in indexes])
    _check_clock(view.now - store.clock.wall())
    kept = view.retention if samples is None else samples
    walks = []
    for part in store.shards:
        keys = part.keys
        heads = (keys.count_of(""),), (keys.gauge_of(""),), (keys.hist_of(""), keys.moments_of(""))
        walks += [
            _Walk(keys.known, keys.meta, heads[0], kept, other_samples, passes, quit),
            _Walk(keys.gauges, keys.meta, heads[1], view.retention, OTHER_SAMPLES, passes, quit),
            # Their texts are too long to be stored compactly.
            _Walk(
                *(keys.hists, keys.meta, heads[2], view.histograms, OTHER_SAMPLES, passes, quit),
                compact=False,
            ),
        ]
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
    return report


class _Left:
    """Which indexes are still to be walked: none that is empty, or whose server does not let us.

    Args:
        sizes: how many entries each has, or why that is not told.

    Raises:
        StoreError: there is nothing that can be walked; or an ACL forbids it.
    """

    def __init__(self, store: Store, sizes: Sequence[Reply]) -> None:
        self._store = store
        #: Why some were left out; told once the others are cleaned.
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
        """How many entries they all have."""
        return sum(self._sizes.values())

    def next(self, number: int) -> int | None:
        """Return the first from a number on."""
        return next((n for n in sorted(self._sizes) if n >= number and self._sizes[n]), None)

    def give_up(self, number: int, error: StoreUnavailable | StoreRefused) -> None:
        """Leave out an index, and all that lies on a server that is away."""
        self.problem = self.problem or error
        if isinstance(error, StoreRefused):
            del self._sizes[number]
            return
        lane = next(lane for lane in self._store.by_server().values() if number // _INDEXES in lane)
        for other in list(self._sizes):
            if other // _INDEXES in lane:
                del self._sizes[other]


def run(
    store: Store,
    *,
    quit: Callable[[], bool],  # noqa: A002
    on_pass: Callable[[Report], None] | None = None,
    samples: Callable[[], tuple[Mapping[int, int], int]] | None = None,
) -> None:
    """Make a pass every minute until told to stop.

    Trouble that passes (no answer, memory full) is logged and tried again with the next pass.

    Args:
        quit: asked at least once a second.
        on_pass: called after each pass.
        samples: what to keep, asked before each pass; else the store's retention.

    Raises:
        ClockDisagreement, AccessDenied: trouble that does not pass by itself.
    """
    clock = store.clock
    passes = cursor = 0

    def went_on(report: Report, _: int) -> None:
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
                progress=went_on,
                quit=quit,
            )
            if on_pass:
                on_pass(report)
        except AccessDenied:
            raise
        except StoreError as error:
            logger.warning("redmeter tries again to clean in a minute: %s", error)
        if cursor == 0:
            passes += 1
        # At least a second's rest, also after a pass that took longer than its minute.
        until = max(started + INTERVAL, clock.monotonic() + 1.0)
        while not quit() and clock.monotonic() < until:
            clock.sleep(min(0.5, until - clock.monotonic()))


def _check_clock(difference: float) -> None:
    if abs(difference) > MAX_CLOCK_DIFFERENCE:
        raise ClockDisagreement(difference, MAX_CLOCK_DIFFERENCE)


@dataclass(slots=True)
class _Walk:
    """One index, what to keep of what it names, what is due, and when to stop."""

    index: str
    meta: str
    #: What stands before an entry in the keys of its one or two hashes.
    heads: tuple[str, ...]
    kept: Mapping[int, int]
    other_samples: int
    passes: int
    quit: Callable[[], bool]
    #: Whether hashes that were large are written anew; no more once that did not help, as on a
    #: server that stores only shorter ones compactly.
    compact: bool = True

    def samples(self, precision: int) -> int:
        return self.kept.get(precision, self.other_samples)


def _clean_page(store: Store, walk: _Walk, start: int, report: Report) -> tuple[int, bool]:
    """Clean what the next stretch of the index names.

    Returns:
        The rank of the next one, and whether there is none.

    The index is walked from its end, by rank: what is removed there moves nothing that comes later.
    What others add or remove meanwhile may hide an entry until the next pass, or show one twice.
    """
    seen, removed, large = _clean_stretch(store, start, _PAGE, walk, report)
    for entry in dict.fromkeys(large):
        if walk.quit():
            break
        if _clean_large(store, walk, entry, report):
            (rank,) = store.ask([("ZREVRANK", walk.index, entry)])
            if isinstance(rank, int):  # its entry goes the way of all that have no hash
                _clean_stretch(store, rank, 1, walk, report)
                report.looked_at -= 1
    return start + seen - removed, seen == 0


def _clean_stretch(
    store: Store, rank: int, count: int, walk: _Walk, report: Report
) -> tuple[int, int, list[bytes]]:
    """Run the script; return how many entries it saw and removed, and whose hashes are large."""
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
    seen, not_due, slices, hashes, removed, large, strange = raised(reply)
    report.looked_at += seen - not_due - len(strange)
    report.not_due += not_due
    report.slices_removed += slices
    report.hashes_removed += hashes
    report.entries_removed += removed
    report.strange_entries += len(strange)
    some = strange[: STRANGE_SHOWN - len(report.strange)]
    report.strange += [entry.decode(errors="replace") for entry in some]
    return seen, removed, large


def _clean_large(store: Store, walk: _Walk, entry: bytes, report: Report) -> bool:
    """Clean the hashes of an entry in steps; tell whether nothing was left of them."""
    left = [not _clean_large_hash(store, walk, head, entry, report) for head in walk.heads]
    return not any(left)


def _clean_large_hash(store: Store, walk: _Walk, head: str, entry: bytes, report: Report) -> bool:
    """Clean a hash of very many fields in steps, then bring it back to the compact form.

    Between two steps others may write; each step removes only fields that it has seen to be gone.

    Returns:
        Whether nothing was left of it.
    """
    key = head.encode() + entry
    precision = int(entry.partition(b":")[0])
    view, _ = store.read()
    last = int(min(view.now, store.clock.wall())) - walk.samples(precision) * precision
    left = 0
    for fields in _scan(store, key):
        gone = [start for start in fields if _start(start, default=last + 1) <= last]
        left += len(fields) - len(gone)
        if gone:
            report.slices_removed += raised(store.ask([("HDEL", key, *gone)])[0])
        if walk.quit():
            return False
    if 0 < left <= _FIELDS and walk.compact:
        walk.compact = bool(raised(COMPACT.run(store.link, [key], [str(_FIELDS)])))
        report.compacted += walk.compact
    return left == 0


def _scan(store: Store, key: bytes) -> Iterator[list[bytes]]:
    cursor = b"0"
    while True:
        cursor, reply = raised(store.ask([("HSCAN", key, cursor, "COUNT", str(_FIELDS))])[0])
        yield [start for start, _ in pairs(reply)]
        if int(cursor) == 0:
            return


def _start(text: bytes, default: int) -> float:
    try:
        return float(text)
    except ValueError:
        return default
