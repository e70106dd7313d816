"""Which views of the dashboard have data: those that are only listed where there is any."""

from dataclasses import dataclass

from redmeter.names import DB_QUERY_SECONDS, TASK_RUNS, TASK_SECONDS
from redmeter.reading.foreign_keys import there
from redmeter.reading.samples import number_of
from redmeter.reading.selection import LabelSets
from redmeter.store import Store
from redmeter.store.query import Query, run_query
from redmeter.stored.keys import Kept, Keys


@dataclass(frozen=True, kw_only=True)
class Views:
    """Whether there is data for a view, at the longest retention."""

    database: bool
    jobs: bool
    exceptions: bool


def read_views(store: Store) -> tuple[float, Views]:
    """Read which views have data, in one round trip; return also the server's clock.

    Raises:
        StoreError: the server is unreachable or refuses.
    """
    view, found = run_query(store, lambda kept: _views(store.keys, kept))
    return view.now, found


def _views(keys: Keys, kept: Kept) -> Query[Views]:
    counters, histograms = max(kept.series), max(kept.histograms)
    _, replies = yield [
        LabelSets(keys, keys.hists, histograms, DB_QUERY_SECONDS).size(),
        LabelSets(keys, keys.known, counters, TASK_RUNS).size(),
        LabelSets(keys, keys.hists, histograms, TASK_SECONDS).size(),
        ("ZCARD", keys.exceptions),
    ]
    statements, runs, durations, groups = [number_of(there(reply, 0)) for reply in replies]
    return Views(database=statements > 0, jobs=runs + durations > 0, exceptions=groups > 0)
