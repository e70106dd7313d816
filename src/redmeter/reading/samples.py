"""Samples of counters and gauges on a grid of intervals, and grand totals of counters.

Only the newest samples of the retention count. A hash can also have older intervals that nobody
has trimmed yet, and later ones if a writer's clock is ahead. The newest interval is the running one
by the server's clock, unless the window ends earlier.

A counter has no gaps: an interval that is missing after the first sample is a zero. A gauge has: it
is None. Distributions of histograms are in distributions.py.

The running interval of a gauge may have no sample yet. Its value is the current one then: the
newest within HELD_SECONDS, of a gauge that set() sets, and of the part of a live process. PromQL
and the text for Prometheus hold values that set() sets for Prometheus' five minutes, and the part
of a process that has ended for PART_SECONDS.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Final, TypeVar

from redmeter.analysis.comparing.significance import sum_counts
from redmeter.errors import LimitExceeded, StoreError, StoreRefused
from redmeter.names import INSTANCE, PART_SECONDS
from redmeter.reading.foreign_keys import readable, there, warn_of
from redmeter.reading.selection import check_kinds, label_of, parse_state
from redmeter.results.series import CoveredWindow, Series
from redmeter.store import Store, View, indexes
from redmeter.store.producers import INSTANCE_SECONDS
from redmeter.store.query import ParsedRead, Query, Read, run_query
from redmeter.store.servers.replies import Reply, is_misplaced, mapped, pairs, raised, scored
from redmeter.stored.counter import MAX_COUNT, count_of, parse_counter
from redmeter.stored.keys import Keys, Retention, slice_end, slice_start
from redmeter.types import Window

T = TypeVar("T", int, float | None)
V = TypeVar("V")

#: How long the last value is the current one, seconds.
HELD_SECONDS: Final = INSTANCE_SECONDS
#: Most series that one request can name.
MAX_SERIES = 5_000


def read_series(store: Store, names: Sequence[str], window: Window) -> dict[str, Series[int]]:
    """Read the samples of many counters: see read_gauges()."""
    return _read_many(store, "counter", names, window, Grid.counter)


def read_gauges(
    store: Store, names: Sequence[str], window: Window, kind: str = "gauge"
) -> dict[str, Series[float | None]]:
    """Read the samples of many gauges in one round trip; each reply is parsed on arrival.

    A second one follows if there is nothing under a name: see check_kinds().

    Args:
        names: in their stored spelling.
        kind: one of STATES.

    Returns:
        A series for every name; without samples if nothing is kept. Names under whose keys another
        program stores something else are left out: see foreign_keys.py.

    Raises:
        WrongKind: a name that has nothing is one of another kind.
        UnknownPrecision: it is not kept; the error lists those that are.
        LimitExceeded: over MAX_SERIES names.
        StoreError: the server is unreachable or refuses the command.
    """
    return _read_many(
        store, kind, names, window, lambda grid, name, reply: grid.state(kind, name, reply)
    )


def _read_many(
    store: Store,
    kind: str,
    names: Sequence[str],
    window: Window,
    align: Callable[["Grid", str, Reply], Series[T]],
) -> dict[str, Series[T]]:
    check_number(names)
    # The reply shows whether the precision is kept; until then it must only be a number.
    width = window.precision if isinstance(window.precision, int) else 0
    grids: dict[float, Grid] = {}
    nothing: list[str] = []

    def grid_of(view: View) -> Grid:
        grid = grids.get(view.now)
        if grid is None:
            grid = grids[view.now] = Grid(covered(window, view.retention, view.now), view.now)
        return grid

    def read_of(name: str) -> ParsedRead:
        def parse(view: View, reply: Reply) -> Series[T] | StoreError:
            if isinstance(reply, StoreError):
                return reply
            if not reply:
                nothing.append(name)
            return align(grid_of(view), name, reply)

        (key,) = store.keys.hashes(kind, width, name)
        return ParsedRead(("HGETALL", key), parse)

    view, replies = store.read([read_of(name) for name in names])
    grid_of(view)  # checks the precision, also without names
    if nothing:
        run_query(store, lambda _: check_kinds(store.keys, view, nothing, kind))
    series = readable({name: [one] for name, one in zip(names, replies, strict=True)})
    return {name: one for name, (one,) in series.items()}


def check_number(names: Sequence[str]) -> None:
    """Check the number of series of a request.

    Raises:
        LimitExceeded: over MAX_SERIES.
    """
    if len(names) > MAX_SERIES:
        raise LimitExceeded("series", len(names), MAX_SERIES, "ask for fewer at a time")


def read_totals(store: Store, names: Sequence[str]) -> dict[str, int]:
    """Read everything ever counted of each name.

    Returns:
        The names that have a grand total; counters of other programs have none. Totals that are not
        numbers are left out with a warning: see foreign_keys.py.

    Raises:
        LimitExceeded: over MAX_SERIES names.
        StoreError: the server is unreachable or refuses the command.
    """
    if len(names) > MAX_SERIES:
        raise LimitExceeded("totals", len(names), MAX_SERIES, "ask for fewer at a time")
    if not names:
        return {}
    _, (reply,) = store.read([indexes.grand_totals(store.keys, names)])
    texts = {name: value for name, value in zip(names, raised(reply), strict=True) if value}
    return counts_among(texts, store.keys.total, of=len(names))


def counts_among(texts: Mapping[str, bytes], key: str, *, of: int) -> dict[str, int]:
    """Read counts, and leave out with a warning those that are not numbers.

    Args:
        texts: the values by name.
        key: where they are stored.
        of: how many names were read; the others have no value.

    Raises:
        StoreRefused: none of these is a number, or is missing.
    """
    counts, problems = {}, []
    for name, value in texts.items():
        try:
            counts[name] = count_of(value)
        except ValueError:
            text = "another program has stored something that is not a number"
            problems.append(StoreRefused("not-a-number", text, f"{key} {name}"))
    if problems and len(problems) == of:
        raise problems[0]
    warn_of(problems)
    return counts


def counts_of(reply: Reply) -> dict[int, int]:
    """Parse a counter's hash: interval start -> count. See stored/counter.py.

    Raises:
        StoreError: the reply is an error, e.g. WRONGTYPE.
    """
    return parse_counter(pairs(raised(reply)))


def number_of(reply: Reply) -> int:
    """Parse a number; 0 if there is none, or another program's text."""
    try:
        number = int(reply or 0)
    except (TypeError, ValueError):
        return 0
    return number if -MAX_COUNT <= number <= MAX_COUNT else 0


def summed(
    replies: Iterable[Reply],
    starts: range,
    parse: Callable[[Reply], Mapping[int, int]] = counts_of,
) -> list[float | None]:
    """Sum hashes by interval; None before the first count, 0 for later intervals without one.

    Args:
        replies: the hashes; errors about foreign keys are left out.
        starts: of the intervals.
        parse: parses a hash: interval start -> count.
    """
    return curve_values(
        sum_counts(parse(reply) for reply in replies if not is_misplaced(reply)), starts
    )


def curve_values(sums: Mapping[int, int], starts: range) -> list[float | None]:
    """Return counts as the values of intervals: see summed()."""
    values = [sums.get(start) for start in starts]
    first = first_sample(values)
    return [*values[:first], *(value or 0 for value in values[first:])]


def states_of(kind: str, reply: Reply, starts: range) -> list[float | None]:
    """Parse the hash of one of STATES: its values by interval; None for gaps and foreign keys."""
    texts = {} if is_misplaced(reply) else mapped(raised(reply))
    return [value_of(kind, texts.get(b"%d" % start), start, starts.step) for start in starts]


def current(
    kind: str,
    name: str,
    reply: Reply,
    starts: range,
    now: float,
    live: Collection[bytes] | None = None,
) -> list[float | None]:
    """Parse the same, with the current value in an interval that is still running.

    Args:
        now: Unix seconds, by the server's clock.
        live: the numbers of live processes; None: unknown.
    """
    values = states_of(kind, reply, starts)
    if values and values[-1] is None and starts[-1] + starts.step > now and not is_misplaced(reply):
        values[-1] = held_value(kind, name, reply, starts[-1], starts.step, now, live)
    return values


def value_of(kind: str, text: bytes | None, start: int, precision: int) -> float | None:
    """Parse the value of an interval without its time: see parse_state()."""
    parsed = None if text is None else parse_state(kind, text, start, precision)
    return parsed and parsed[1]


def first_sample(values: Sequence[object]) -> int:
    """Return the position of the first value that is not None; their number if all are."""
    return next((at for at, value in enumerate(values) if value is not None), len(values))


def covered(window: Window, retention: Retention, now: float) -> CoveredWindow:
    """Return the intervals of a window that are kept.

    Raises:
        UnknownPrecision: the precision is not kept.
    """
    precision = retention.check(window.precision)
    current = slice_start(now, precision) + precision
    oldest, wanted = retention.oldest(precision, now), start_of(window, now)
    end = current if window.until is None else min(current, slice_end(window.until, precision))
    since = oldest if wanted is None else max(oldest, wanted)
    until = max(since, end)
    kept = CoveredWindow(precision, since, until, running=since < until == current)
    if wanted is None or wanted >= oldest:
        return kept
    better = finest(window, retention, now)
    reaching = better.precision if _reaches(better, retention, now) else None
    return replace(kept, requested=wanted, reaching=reaching)


def finest(window: Window, retention: Retention, now: float) -> Window:
    """Return a window at the finest precision that keeps it, or that reaches back farthest."""
    windows = [window._replace(precision=precision) for precision in retention]
    able = [one for one in windows if _reaches(one, retention, now)]
    if able:
        return able[0]
    return min(windows, key=lambda one: retention.oldest(one.precision, now))


def _reaches(window: Window, retention: Retention, now: float) -> bool:
    start = start_of(window, now)
    return start is None or start >= retention.oldest(window.precision, now)


def start_of(window: Window, now: float) -> int | None:
    """Return the start that a window names, at its precision; None if it names none."""
    precision, since, _, last = window
    if since is not None:
        return slice_start(since, precision)
    if last is None:
        return None
    return slice_start(now, precision) + precision - newest_intervals(last, precision) * precision


def newest_intervals(last: float, precision: int) -> int:
    """Return how many of the newest intervals a time that ends now takes; at least one."""
    return max(1, ceil(last / precision))


# --- Current values of gauges ------------------------------------------------------------------


def live_reads(keys: Keys) -> list[Read]:
    """Return the reads of the numbers of live processes: see live_numbers()."""
    return [("ZREVRANGE", keys.writers, "0", "-1", "WITHSCORES"), ("HGETALL", keys.instances)]


def live_numbers(view: View, replies: Sequence[Reply]) -> set[bytes]:
    """Return the instance numbers of live processes."""
    seen, numbers = replies
    since = view.now - INSTANCE_SECONDS
    live = {producer for producer, last in scored(there(seen, [])) if last >= since}
    return {number for producer, number in pairs(there(numbers, [])) if producer in live}


def read_live_numbers(keys: Keys) -> Query[set[bytes]]:
    """Read the same."""
    view, replies = yield live_reads(keys)
    return live_numbers(view, replies)


def part_number(name: str) -> bytes | None:
    """Return the number of the process that a gauge is the part of; None if it is no part."""
    number = (INSTANCE in name and label_of(name, INSTANCE)) or ""
    return number.encode() if number.isdigit() else None


def held_seconds(name: str, live: Collection[bytes] | None) -> float:
    """Return how long the last value of a gauge is its current one, seconds.

    Args:
        live: the numbers of live processes; None: unknown.
    """
    number = part_number(name)
    if number is None or (live is not None and number in live):
        return HELD_SECONDS
    return PART_SECONDS if live is None else 0.0


def held_value(
    kind: str,
    name: str,
    reply: Reply,
    running: int,
    precision: int,
    now: float,
    live: Collection[bytes] | None,
) -> float | None:
    """Return the value of a running interval that has no sample yet; None if there is none.

    Args:
        reply: the gauge's hash.
        running: the start of the running interval, Unix seconds.
        now: by the server's clock.
        live: see held_seconds().
    """
    since, texts = now - held_seconds(name, live), mapped(reply)
    for start in range(running - precision, int(since // precision) * precision - 1, -precision):
        measured = parse_state(kind, texts.get(b"%d" % start, b""), start, precision)
        if measured is not None:
            time, value = measured
            return value if time >= since else None
    return None


# --- Series on a grid ----------------------------------------------------------------------------


def series_of(name: str, window: CoveredWindow, values: Sequence[V]) -> Series[V]:
    """Return the series of the newest values of a window."""
    start = window.until - len(values) * window.precision
    partial = bool(values) and window.running
    return Series(name, window.precision, start, tuple(values), partial=partial, window=window)


class Grid:
    """The intervals of a window, from the oldest to the newest that counts."""

    def __init__(self, window: CoveredWindow, now: float) -> None:
        self.window, self.starts, self.now = window, window.starts, now
        # As they are spelled in a hash, so that most replies need no field parsed.
        self._fields = [b"%d" % start for start in self.starts]

    def counter(self, name: str, reply: Reply) -> Series[int]:
        """Align a counter's hash, from its oldest sample on the grid to the end.

        Raises:
            StoreError: the reply is an error, e.g. WRONGTYPE.
        """
        raised(reply)
        counts: list[bytes | None]
        if isinstance(reply, list) and reply[::2] == self._fields:
            counts = reply[1::2]  # in order of time and without gaps, as a busy counter's are
            number = len(counts)
        else:
            texts = mapped(reply)
            counts = list(map(texts.get, self._fields))
            number = len(texts)
        if len(counts) - counts.count(None) == number:
            first = first_sample(counts)
            with contextlib.suppress(ValueError):  # a value that is not a number
                return series_of(name, self.window, list(map(count_of, counts[first:])))
        # Also other intervals, or other spellings: parse every field.
        parsed = counts_of(reply)
        values = [parsed.get(start) for start in self.starts]
        first = first_sample(values)
        return series_of(name, self.window, [value or 0 for value in values[first:]])

    def state(
        self, kind: str, name: str, reply: Reply, live: Collection[bytes] | None = None
    ) -> Series[float | None]:
        """Align the hash of one of STATES, from its oldest sample on the grid to the end.

        A running interval has the current value: see held_value().

        Args:
            live: the numbers of live processes; None: unknown.

        Raises:
            StoreError: the reply is an error, e.g. WRONGTYPE.
        """
        values = current(kind, name, raised(reply), self.starts, self.now, live)
        first = first_sample(values)
        return series_of(name, self.window, values[first:])
