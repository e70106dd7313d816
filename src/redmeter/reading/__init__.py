"""Queries: functions that read a store and return values.

    selection.py   the stored series that a name means: label sets; aggregates.py groups them
    samples.py     samples of counters and gauges on a grid of intervals, grand totals
    distributions.py  distributions of histograms
    statistics.py  histograms by hour
    marks.py       marks, such as deploys
    names.py       lists an index: the names of all series
    top.py         rankings; ranking.py makes the rows
    logs/          messages, patterns, and changes of logs
    diagnosis/     explain(), status and verdict: two windows of many series
    export/        rows for files, and for /metrics
    promql/        PromQL over stored samples
    page/          the page's own reads: overview, listings, charts, routes and jobs

Each reads the time and the retention from the store, in the same round trip as the data. A view of
the page is a query of several parts that takes two round trips; see store/query.py, join.py and
windows.py.
"""
