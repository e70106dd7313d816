"""Readings of a store.

    series.py      samples and grand totals, many series in one round trip
    gauges.py      samples of gauges
    summaries.py   how observed values were spread: a value of spread.py
    statistics.py  observed values by the hour
    messages.py    what was logged: the newest, how often, and what changed
    marks.py       what was noted beside the series
    forecasts.py   what is to be expected of a series, and what was
    catalogue.py   which series there are
    top.py         which of them are the highest; ranking.py makes the rows

Each takes the time and the retention from the store, in the same round trip as the data.

What a page shows is a query of many parts that takes two round trips: see store/query.py, join.py
and windows.py.

    overview.py    the first page: http.py, listing.py and talk.py together
    http.py        requests and response times by route (routes.py), with their totals (totals.py)
    listing.py     series of one kind as rows (rows.py), each with a small curve (rowcurves.py);
                   very many are ranked in the background (rowrankings.py)
    detail.py      one series, at every precision, and its label sets
    talk.py        what is logged, at a glance
    curves.py      what a chart draws
    label_sets.py  which label sets a name has
    labelled.py    the samples of label sets, merged, or by a label
"""
