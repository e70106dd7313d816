"""The way out: plain functions from a store to values.

    series.py      samples and grand totals, many series in one round trip
    catalogue.py   which series there are
    rankings.py    which of them happen most often

Each takes the time and the retention from the store, in the same round trip as the data.
"""
