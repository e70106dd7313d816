"""The values of a scrape: grand totals of counters, and current values of gauges.

The only values that never fall are grand totals, so these are the counters. Counters that only
other programs write have none, and neither have histograms: they are counted as not exported.
"""

from collections.abc import Mapping, Sequence

from redmeter.format import gauge
from redmeter.format.counter import count_of
from redmeter.formats.exposition import Format, exposition
from redmeter.formats.prometheus_names import COUNTER, GAUGE, HISTOGRAM, Exported
from redmeter.keys import Kept, Keys, slice_start
from redmeter.reading.exports import ExportList
from redmeter.reading.foreign_keys import there
from redmeter.store import indexes
from redmeter.store.query import Query, run

#: Series that one round trip reads.
CHUNK = 5_000
#: How long the last value of a gauge is its current one, seconds.
LOOKBACK = 300

Values = dict[str, dict[str, float]]


def scrape(exports: ExportList, form: Format) -> str:
    """Return the text of a scrape.

    Raises:
        LimitExceeded, StoreError: of the store.
    """
    listed = exports.read()
    by_kind: dict[str, list[Exported]] = {COUNTER: [], GAUGE: [], HISTOGRAM: []}
    for one in listed.catalog:
        by_kind[one.kind].append(one)
    now, keys = listed.time(), exports.store.keys
    _, values = run(exports.store, lambda kept: _values(keys, kept, by_kind, now))
    hidden = {
        **listed.catalog.hidden,
        "no-total": len(by_kind[COUNTER]) - len(values[COUNTER]),
        "histogram": len(by_kind[HISTOGRAM]),
    }
    shown = {reason: count for reason, count in hidden.items() if count}
    return exposition(listed.catalog, values, form, shown)


def _values(
    keys: Keys, kept: Kept, by_kind: Mapping[str, Sequence[Exported]], now: float
) -> Query[Values]:
    values: Values = {COUNTER: {}, GAUGE: {}}
    counters = [one.stored for one in by_kind[COUNTER]]
    for at in range(0, len(counters), CHUNK):
        names = counters[at : at + CHUNK]
        _, (reply,) = yield [indexes.totals(keys, names)]
        for name, text in zip(names, there(reply, [None] * len(names)), strict=True):
            try:
                if text is not None:
                    values[COUNTER][name] = count_of(text)
            except ValueError:
                continue  # another program's
    width = max((p for p in kept.series if p <= LOOKBACK), default=min(kept.series))
    newest = slice_start(now, width)
    starts = [newest + width, newest, newest - width]  # the server's clock may be ahead
    fields = [str(start) for start in starts]
    gauges = [one.stored for one in by_kind[GAUGE]]
    for at in range(0, len(gauges), CHUNK):
        names = gauges[at : at + CHUNK]
        _, replies = yield [("HMGET", keys.gauge(width, name), *fields) for name in names]
        for name, reply in zip(names, replies, strict=True):
            for start, text in zip(starts, there(reply, [None] * len(starts)), strict=True):
                measured = None if text is None else gauge.parse(text, start, width)
                if measured is not None and measured[0] > now - max(LOOKBACK, width):
                    values[GAUGE][name] = measured[1]
                    break
    return values
