"""The values of a scrape: grand totals of counters and histograms, and current values of gauges.

The only values that never fall are grand totals. Series of other programs have none, and neither
have histograms until the first value that a version with totals stores: they are counted as not
exported. One round trip lists the series, unless that was done a moment ago; another one reads all
values.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redmeter.export.exposition import Format, Template
from redmeter.export.prometheus_names import Catalog
from redmeter.names import PART_SECONDS
from redmeter.reading.export.listing import ExportList
from redmeter.reading.foreign_keys import there
from redmeter.reading.samples import (
    held_seconds,
    live_numbers,
    live_reads,
    part_number,
)
from redmeter.reading.selection import parse_state
from redmeter.store import Store, indexes
from redmeter.store.query import Query, Read, run_query
from redmeter.stored.counter import count_of
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import Kept, Keys, slice_start
from redmeter.stored.packed_text import parse_distribution

#: Fields that one command reads.
CHUNK = 5_000
#: How long the last value of a gauge is its current one, seconds.
LOOKBACK = 300
#: Templates that are kept: formats that scrapers ask for.
TEMPLATES = 4


class _Values(NamedTuple):
    """In the orders of a template."""

    counters: list[bytes | None]
    gauges: list[float | None]
    histograms: dict[str, Distribution]


class Scraper:
    """Makes the texts of scrapes. Safe to share between threads.

    Args:
        store: the store.
        partial: leave out the data of servers that do not answer, and report whether there are any.
    """

    def __init__(self, store: Store, *, partial: bool = False) -> None:
        self._store, self._partial = store, partial
        self._exports = ExportList(store, widest=True, best_effort=partial)
        self._lock = threading.Lock()
        self._templates: dict[Format, tuple[Catalog, Template]] = {}

    def scrape(self, form: Format) -> bytes:
        """Return the text of a scrape.

        Raises:
            LimitExceeded, StoreError: of the store; a server does not answer, unless it is partial.
        """
        listed = self._exports.read()
        store = self._store.best_effort() if self._partial else self._store
        template = self._template(listed.catalog, form)
        now, keys = listed.time(), self._store.keys
        _, values = run_query(store, lambda kept: _read(keys, kept, template, now))
        missing = [*listed.missing, *store.skipped()]
        without = values.counters.count(None)
        without += len(template.histograms) - len(values.histograms)
        # Some of these may have one on a server that does not answer.
        hidden = {**listed.catalog.hidden, "no-total": 0 if missing else without}
        shown = {reason: count for reason, count in hidden.items() if count}
        return template.filled(*values, shown, complete=not missing if self._partial else None)

    def _template(self, catalog: Catalog, form: Format) -> Template:
        with self._lock:
            of, template = self._templates.get(form, (None, None))
            if template is None or of is not catalog:
                template = Template(catalog, form)
                if len(self._templates) >= TEMPLATES:
                    self._templates.clear()
                self._templates[form] = catalog, template
            return template


def _read(keys: Keys, kept: Kept, template: Template, now: float) -> Query[_Values]:
    width = max((p for p in kept.series if p <= LOOKBACK), default=min(kept.series))
    newest = slice_start(now, width)
    longest = max(LOOKBACK, width)
    # The server's clock may be ahead.
    starts = range(newest + width, slice_start(now - longest, width) - 1, -width)
    fields = [str(start) for start in starts]
    hashes = [
        (keys.total, template.counters),
        (keys.sums, template.histograms),
        (keys.spreads, template.histograms),
    ]
    reads: list[Read] = [
        indexes.fields(keys, key, chunk) for key, names in hashes for chunk in _chunks(names)
    ]
    totals = len(reads)
    gauges = template.gauges
    reads += [("HMGET", *keys.hashes(one.kind, width, one.stored), *fields) for one in gauges]
    parts = {one.stored for one in gauges if part_number(one.stored) is not None}
    view, replies = yield [*reads, *(live_reads(keys) if parts else ())]
    live = live_numbers(view, replies[len(reads) :]) if parts else ()
    answers = iter(replies[:totals])
    counters, sums, spreads = (
        [text for chunk in _chunks(names) for text in there(next(answers), [None] * len(chunk))]
        for _, names in hashes
    )
    values: list[float | None] = []
    for one, reply in zip(gauges, replies[totals : len(reads)], strict=True):
        lookback: float = longest
        if one.stored in parts and width <= LOOKBACK:
            lookback = max(PART_SECONDS, held_seconds(one.stored, live))
        texts = there(reply, [None] * len(starts))
        read = zip(starts, texts, strict=True)
        measured = [
            parse_state(one.kind, text, start, width) for start, text in read if text is not None
        ]
        values.append(
            next((value for at, value in filter(None, measured) if at > now - lookback), None)
        )
    pairs = zip(template.histograms, spreads, sums, strict=True)
    histograms = {
        name: distribution
        for name, buckets, moments in pairs
        if (distribution := parse_distribution(buckets, moments)) is not None
    }
    return _Values([_count(text) for text in counters], values, histograms)


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[at : at + CHUNK] for at in range(0, len(names), CHUNK))


def _count(text: bytes | None) -> bytes | None:
    """Return a grand total; None if it is another program's."""
    if text is None or (text.isdigit() and len(text) < 19):
        return text
    try:
        return b"%d" % count_of(text)
    except ValueError:
        return None
