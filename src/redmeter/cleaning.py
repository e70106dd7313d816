"""The cleaner: remove what has left the retention, and index entries whose hash is gone.

Writers trim what they write, and their hashes expire; left for the cleaner are the counters that
other programs write, the entries of those that nobody writes any more, and hashes that grew large.

A pass walks the index once. By the book's schedule a pass is made every minute, and a precision of
N minutes is looked at in every Nth. Work is cut into calls of some milliseconds, so that no other
client waits; a time budget ends a pass early, and the next goes on from there. Looking and
removing are one atomic step, so any number of cleaners may run beside any number of writers, and
one that is killed half way leaves nothing half done.

The time is the earlier of the server's clock and this machine's. Where they differ by more than
MAX_CLOCK_DIFFERENCE, one of them is badly wrong and nothing is touched.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from redmeter.errors import AccessDenied, ClockDisagreement, StoreError
from redmeter.keys import entry as entry_of
from redmeter.keys import parse_entry
from redmeter.names import canonical
from redmeter.store import Store
from redmeter.store.link import pairs, raised
from redmeter.store.scripts import CLEAN, COMPACT

#: Largest difference between the server's clock and ours, seconds.
MAX_CLOCK_DIFFERENCE = 3600.0
#: Time budget of a pass, seconds.
BUDGET = 50.0
#: Seconds from the start of one pass to the start of the next.
INTERVAL = 60.0
#: Samples kept of a precision that the store's retention does not name: other programs' counters.
OTHER_SAMPLES = 120

#: Index entries asked for at a time, and fields of a large hash.
_PAGE, _FIELDS = 1_000, 500
#: Hashes cleaned by the first call; as many later as fit into _STEP seconds.
_FIRST, _MOST, _STEP = 50, 400, 0.003
#: Largest hash that one call looks at.
_LARGE = 1_000

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
    #: Entries that are none (`60*60:hits`), and keys that are no hashes; left alone.
    strange: list[str] = field(default_factory=list)
    #: Seconds the pass took.
    seconds: float = 0.0
    #: Where the next pass goes on; 0 where this one came to the end.
    cursor: int = 0

    @property
    def complete(self) -> bool:
        """Whether the whole index was walked."""
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
) -> Report:
    """Make one pass.

    Args:
        passes: how many passes were made before; 0 looks at every precision.
        budget: seconds after which to stop; at least one page is done.
        cursor: where an earlier pass stopped.
        samples: precision -> samples, instead of the store's retention.
        other_samples: for precisions that are not in there.
        progress: called after each page, with the report so far and the size of the index.

    Raises:
        ClockDisagreement: the clocks differ wildly; nothing was touched.
        StoreError: the server cannot be reached or refuses.
    """
    started = store.clock.monotonic()
    report, portion = Report(), _FIRST
    while True:
        view, (size, page) = store.read(
            [
                ("ZCARD", store.keys.known),
                ("ZREVRANGE", store.keys.known, cursor, cursor + _PAGE - 1),
            ]
        )
        _check_clock(view.now - store.clock.wall())
        members, removed = raised(page), report.entries_removed
        for precision, entries in _by_precision(members, report).items():
            if passes % (precision // 60 or 1):
                report.not_due += len(entries)
                continue
            kept = (view.retention if samples is None else samples).get(precision, other_samples)
            report.looked_at += len(entries)
            portion = _clean_hashes(store, precision, kept, entries, portion, report)
        # From the end backwards, by rank: what is removed here moves up what comes next. What
        # others remove or add meanwhile may hide an entry until the next pass, or show one twice.
        cursor += len(members) - (report.entries_removed - removed)
        done = len(members) < _PAGE
        report.cursor = 0 if done else cursor
        report.seconds = store.clock.monotonic() - started
        if progress:
            progress(report, raised(size))
        if done or report.seconds >= budget:
            break
    if done:
        store.ask([("HSET", store.keys.cleaned, store.keys.prefix, int(view.now))])
    return report


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
    while not quit():
        started = clock.monotonic()
        try:
            kept, other = samples() if samples else (None, OTHER_SAMPLES)
            report = clean(store, passes=passes, cursor=cursor, samples=kept, other_samples=other)
            cursor = report.cursor
            if on_pass:
                on_pass(report)
        except AccessDenied:
            raise
        except StoreError as error:
            logger.warning("cleaning is tried again in a minute: %s", error)
        if cursor == 0:
            passes += 1
        # At least a second's rest, also after a pass that took longer than its minute.
        until = max(started + INTERVAL, clock.monotonic() + 1.0)
        while not quit() and clock.monotonic() < until:
            clock.sleep(min(0.5, until - clock.monotonic()))


def forget(store: Store, name: str) -> bool:
    """Remove a counter with all its samples and its grand total.

    Returns:
        Whether there was anything.

    Raises:
        InvalidName: see redmeter.names.
        StoreError: the server cannot be reached or refuses.
    """
    series = canonical(name)
    view, _ = store.read()
    keys = store.keys
    replies = store.ask(
        [
            ("UNLINK", *(keys.count(precision, series) for precision in view.retention)),
            ("ZREM", keys.known, *(entry_of(precision, series) for precision in view.retention)),
            ("HDEL", keys.total, series),
        ]
    )
    removed = [raised(reply) for reply in replies]
    return any(removed)


def _check_clock(difference: float) -> None:
    if abs(difference) > MAX_CLOCK_DIFFERENCE:
        raise ClockDisagreement(difference, MAX_CLOCK_DIFFERENCE)


def _by_precision(members: list[bytes], report: Report) -> dict[int, list[bytes]]:
    """Sort entries by precision; those that are none are reported."""
    found: dict[int, list[bytes]] = {}
    for member in members:
        parsed = parse_entry(member.decode(errors="replace"))
        if parsed is None:
            report.strange.append(ascii(member.decode(errors="replace")))
        else:
            found.setdefault(parsed[0], []).append(member)
    return found


def _clean_hashes(
    store: Store,
    precision: int,
    samples: int,
    entries: list[bytes],
    portion: int,
    report: Report,
) -> int:
    """Clean the hashes of some entries, portion by portion.

    Returns:
        How many hashes the next call should take to last about _STEP.
    """
    before = store.keys.count_of("").encode()
    at = 0
    while at < len(entries):
        some = entries[at : at + portion]
        at += portion
        started = store.clock.monotonic()
        reply = CLEAN.run(
            store.link,
            [store.keys.known, *[before + entry for entry in some]],
            [f"{store.clock.wall():.6f}", precision, samples, len(before), _LARGE],
        )
        slices, hashes, gone, *rest = raised(reply)
        took = store.clock.monotonic() - started
        if len(some) == portion:
            portion = max(1, min(_MOST, 2 * portion, int(portion * _STEP / max(took, 1e-6))))
        report.slices_removed += slices
        report.hashes_removed += hashes
        report.entries_removed += gone
        for index, what in zip(rest[::2], rest[1::2], strict=True):
            entry = some[index - 2]  # after known:; Lua counts from 1
            if what == b"large":
                _clean_large(store, precision, samples, entry, report)
            else:
                report.strange.append(ascii(entry.decode(errors="replace")))
    return portion


def _clean_large(store: Store, precision: int, samples: int, entry: bytes, report: Report) -> None:
    """Clean a hash of very many fields in steps, then bring it back to the compact form.

    Between two steps others may write; each step removes only fields that it has seen to be gone.
    """
    key = store.keys.count_of("").encode() + entry
    view, _ = store.read()
    last = int(min(view.now, store.clock.wall())) - samples * precision
    left = 0
    for fields in _scan(store, key):
        gone = [start for start in fields if _start(start, default=last + 1) <= last]
        left += len(fields) - len(gone)
        if gone:
            report.slices_removed += raised(store.ask([("HDEL", key, *gone)])[0])
    if left == 0:
        _clean_hashes(store, precision, samples, [entry], 1, report)
    elif left <= _FIELDS:
        report.compacted += raised(COMPACT.run(store.link, [key], [_FIELDS]))


def _scan(store: Store, key: bytes) -> Iterator[list[bytes]]:
    cursor = b"0"
    while True:
        cursor, reply = raised(store.ask([("HSCAN", key, cursor, "COUNT", _FIELDS)])[0])
        yield [start for start, _ in pairs(reply)]
        if int(cursor) == 0:
            return


def _start(text: bytes, default: int) -> float:
    try:
        return float(text)
    except ValueError:
        return default
