"""The query API of a Meter: every query once, with the checks of its names and times.

Each module has the queries of one concept; arguments.py checks their arguments. Backends execute
the queries: of a store, in backends.py; in memory, in testing/. A new query is a method here and in
each backend. The recording half of a Meter is in meter/.
"""

from redmeter.queries.arguments import select as select
from redmeter.queries.diagnosis import DiagnosisQueries
from redmeter.queries.histograms import HistogramQueries
from redmeter.queries.logs import LogQueries
from redmeter.queries.promql import PromQLQueries
from redmeter.queries.rankings import RankingQueries
from redmeter.queries.series import SeriesQueries


class Queries(
    SeriesQueries,
    HistogramQueries,
    RankingQueries,
    LogQueries,
    DiagnosisQueries,
    PromQLQueries,
):
    """The query methods of a Meter.

    Args:
        store: the store to read; None: every query returns an empty result.
    """
