"""Queries: functions that read a store and return values.

    selection.py   the stored series that a name means; aggregates.py merges or groups them
    samples.py     samples of counters and gauges on a grid of intervals, grand totals
    distributions.py  distributions of histograms, as a Spread (spread.py)
    statistics.py  histograms by hour
    logs.py        the newest messages, patterns, and changes of logs (log_counts.py)
    marks.py       marks, such as deploys
    names.py       lists an index: the names of all series
    top.py         rankings; ranking.py makes the rows

Each reads the time and the retention from the store, in the same round trip as the data.

A view of the page is a query of several parts that takes two round trips; see store/query.py,
join.py and windows.py.

    overview.py    the first page: http.py, listing.py and log_overview.py together
    http.py        requests and response times by route, with the totals of all requests (totals.py)
    listing.py     series of one kind as rows (rows.py), each with a small curve (rowcurves.py);
                   very many are ranked in the background (rowrankings.py)
    detail.py      one series, at every precision, and its label sets
    log_overview.py  logs at a glance
    curves.py      the series of a chart
    label_sets.py  the label sets of a name
"""
