"""The way out: plain functions from a store to values.

    series.py      samples and grand totals, many series in one round trip
    gauges.py      samples of gauges
    catalogue.py   which series there are
    rankings.py    which of them happen most often
    writers.py     who writes, and what each tells of itself
    health.py      is the store well? What that means is in findings.py and reports.py

Each takes the time and the retention from the store, in the same round trip as the data.
"""
