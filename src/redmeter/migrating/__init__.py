"""Moving a store to another server, database, prefix or to a cluster, while it is in use.

Writers move first, readers add both stores meanwhile, then what lies in FROM is taken out of there
and sent to TO, as numbered batches like all that is written: slices add, and a batch that is sent
twice counts once. What is late, since its writer has not moved yet, makes new keys in FROM, and is
taken by the next round or run.

A series under way is for a moment in neither store, and never counted in both.

    report.py     what is told             walk.py       which series there are
    families.py   what is kept by slices   others.py     statistics, messages, marks
    journal.py    what is written down     reading.py    what was taken is read
    state.py      how that reads           sending.py    batches on their way
    lost.py       what TO has lost since   running.py    take, send, compare, note
"""

from collections.abc import Callable
from contextlib import suppress

from redmeter.errors import InvalidSetting, StoreError
from redmeter.keys import Kept
from redmeter.migrating.journal import Journal, agreed, known, last_numbers, same_store
from redmeter.migrating.lost import find
from redmeter.migrating.report import MigrationError, Report, Sum, Survey, differences
from redmeter.migrating.running import Run
from redmeter.migrating.state import arrived_in
from redmeter.migrating.walk import Passed, Walk
from redmeter.store import Store

#: What FROM needs more for a key that was taken, about, bytes: a longer name, and a time to live.
GROWTH = 150

__all__ = ["MigrationError", "Report", "Sum", "Survey", "migrate", "survey"]


def survey(source: Store, target: Store) -> Survey:
    """Look what there is to move; nothing is changed.

    Raises:
        InvalidSetting, MigrationError, StoreError: see migrate().
    """
    kept = _check(source, target)
    state = Journal(source).state()
    found = Survey(room=_room(source))
    if found.room is not None and found.room <= 0:
        raise MigrationError(
            f"{source.location} is full, and needs some memory for what was taken: raise its "
            "maxmemory"
        )
    if known(source, target, state):  # raises what the move itself would
        had = arrived_in(state)
        numbers = last_numbers(target, state.id)
        has = {at: numbers[at] for at, number in had.items() if numbers[at] < number}
        lost = find(target, Journal(source), state, had, has, source.clock.wall())
        found.lost = min((least + 1 for least, _ in lost.parts.values()), default=0)
    if state.complete and state.sums and not found.lost:
        found.moved = state.target
    view, _ = source.read()
    theirs, _ = target.read()
    found.new = not theirs.version
    if view.version:
        found.told = True
        found.differences = differences(Kept(view.retention, view.histograms), kept)
    seen = set()
    for page in Walk(source, kept).pages():
        for unit in page:
            family, name = unit.family, unit.name
            if not (isinstance(unit, Passed) or unit.fields):
                if (family, name) in seen:
                    continue
                seen.add((family, name))
            precision = family.precision(name)
            if not isinstance(unit, Passed):
                _add(found.series, family.name, precision, len(unit.fields) or 1)
                _add(found.entries, family.name, precision, unit.size)
            elif unit.why:
                _add(found.unkept, family.name, precision, 1)
            else:
                found.strange.append(family.keys(source.keys, name)[0])
    number = sum(sum(counts.values()) for counts in found.series.values())
    found.short = max(0, number * GROWTH - found.room) if found.room is not None else 0
    return found


def migrate(
    source: Store,
    target: Store,
    *,
    progress: Callable[[int, int], None] | None = None,
    quit: Callable[[], bool] = lambda: False,  # noqa: A002
    waiting: Callable[[float], object] = lambda _: None,
) -> Report:
    """Move all that is stored from one store to another, or go on where an earlier run ended.

    Args:
        source: on one server, in any layout: FROM.
        target: on a server or a cluster: TO. Its retention holds; where it is new, it begins with
            the one that it was opened with.
        progress: called now and then, with how many series are done and about how many there are;
            at the end of all both are the same.
        quit: asked now and then; once it says True, the run ends after the series under way.
        waiting: called where another run is at work, or was when it was killed: with how long that
            is waited for at most, seconds.

    Raises:
        InvalidSetting: FROM is a cluster, or the same as TO.
        MigrationError: another run moves this store, it is on its way to another TO, or TO has not
            got what it said that it stored.
        StoreError: a server cannot be reached or refuses. The next run goes on.
    """
    _check(source, target)
    started = source.clock.monotonic()
    journal = Journal(source)
    found = journal.begin(waiting=waiting, quit=quit)
    if found is None:
        return Report(seconds=source.clock.monotonic() - started)
    try:
        state = agreed(source, target, found)
        target.binding()
        journal.start(state)
        report = Run(source, target, journal, state, progress=progress, quit=quit).run()
    except BaseException:
        with suppress(StoreError):
            journal.release()
        raise
    journal.end(state, complete=report.finished, left=len(report.left), unkept=report.unkept)
    report.seconds = source.clock.monotonic() - started
    return report


def _room(source: Store) -> int | None:
    """Return how many bytes FROM may grow by; None where that has no end, or it does not say."""
    (reply,) = source.ask([("INFO", "memory")])
    if not isinstance(reply, bytes):
        return None
    told = dict(line.split(":", 1) for line in reply.decode().splitlines() if ":" in line)
    most, used = told.get("maxmemory", "0"), told.get("used_memory", "0")
    if told.get("maxmemory_policy") != "noeviction" or most == "0":
        return None
    return int(most) - int(used) + int(told.get("mem_not_counted_for_evict", "0"))


def _check(source: Store, target: Store) -> Kept:
    """See that both can be read, and return what TO keeps.

    Raises:
        InvalidSetting: see migrate().
    """
    if len(source.parts) > 1:
        raise InvalidSetting("FROM", "is a cluster: what is moved lies on one server")
    if (source.location, source.keys.prefix) == (target.location, target.keys.prefix):
        raise same_store()
    own, _ = source.read()
    view, _ = target.read()
    if own.version and own.version == view.version:  # each store has one of its own
        raise same_store()
    return Kept(view.retention, view.histograms)


def _add(counts: dict[str, dict[int, int]], kind: str, precision: int, number: int) -> None:
    by_precision = counts.setdefault(kind, {})
    by_precision[precision] = by_precision.get(precision, 0) + number
