"""Endpoints that answer what a view shows: overview, pages, counters, one series, health."""

from collections.abc import Mapping
from typing import Any, Literal

from redmeter import types
from redmeter.analysis.forecast import forecast
from redmeter.dashboard import answers, words
from redmeter.reading import curves, listing
from redmeter.reading import detail as reading_detail
from redmeter.reading import health as reading_health
from redmeter.reading import overview as reading_overview
from redmeter.reading import pages as reading_pages
from redmeter.reading.findings import Finding
from redmeter.reading.rowrankings import RankingKey, RowRankings
from redmeter.reading.windows import histogram_window, whole_window
from redmeter.store import Store
from redmeter.store.query import run

#: Quantiles of the page of one series.
DETAIL_QUANTILES = (0.5, 0.9, 0.95, 0.99)

Values = Mapping[str, Any]


def pages(store: Store, values: Values) -> answers.PagesAnswer:
    """Answer /api/pages."""
    now, found = reading_pages.read_pages_now(
        store,
        values["precision"],
        order=values["order"],
        limit=values["limit"],
        offset=values["offset"],
        containing=values["filter"],
    )
    return {
        "now": now,
        "missing": store.skipped(),
        "window": words.of_span(found.window),
        "rows": [words.of_page(page) for page in found.rows],
        "found": found.found,
        "of": found.of,
        "looked_at": found.looked_at,
        "timed": found.timed,
        "timed_read": found.timed_read,
        "sampled": found.sampled,
        "values_start": found.values_start,
        "values_precision": found.values_precision,
    }


def counters(store: Store, rankings: RowRankings, values: Values) -> answers.CountersAnswer:
    """Answer /api/counters.

    Args:
        rankings: of lists that are not ordered by name.
    """
    precision, kind, order = values["precision"], values["kind"], values["order"]
    options = {name: values[name] for name in ("pattern", "order", "limit", "offset", "grouped")}
    key = RankingKey(precision, kind, values["pattern"], values["grouped"], order)
    ranks = order != "name" and kind != "gauges"
    ranked = rankings.last(key) if ranks else None

    def make(kept: Any) -> Any:
        window = listing.window_for(kept, kind, precision)
        return listing.listing(store.keys, window, kind=kind, **options, ranked=ranked)

    view, found = run(store, make)
    if ranks:
        rankings.refresh(key, found)
    window = whole_window(view.retention, precision)
    observed = histogram_window(view.histograms, window)
    return {
        "now": view.now,
        "missing": store.skipped(),
        "window": words.of_span(reading_overview.span_of(window, observed, view.now)),
        "rows": [words.of_row(row) for row in found.rows],
        "total": found.total,
        "looked_at": found.looked_at,
        "found": found.found,
        "ranked_at": found.ranked_at,
    }


def detail(store: Store, values: Values) -> answers.DetailAnswer:
    """Answer /api/detail."""
    name, precision = values["name"], values["precision"]
    view, found = run(store, lambda kept: reading_detail.detail(store.keys, kept, name, precision))
    kind: Any = found.kind
    own = [curve for curve in found.curves if curve.precision == precision]
    hours = [curve for curve in found.curves if curve.precision == 3600]
    return {
        "now": view.now,
        "missing": store.skipped(),
        "name": name,
        "kind": kind,
        "unit": words.unit_of(name),
        "total": found.total,
        "window": words.of_span(found.window),
        "precisions": [words.of_curve(curve) for curve in found.curves],
        "labels": [
            {
                "label": label.label,
                "values": [
                    {"value": part.name, "count": part.count, "share": part.share}
                    for part in label.values
                ],
                "of": label.of,
            }
            for label in found.labels
        ],
        "siblings": [
            {"name": part.name, "count": part.count, "share": part.share} for part in found.sets
        ],
        "siblings_of": found.sets_of,
        "siblings_looked_at": found.sets_looked_at,
        "added": found.sets_added,
        "summary": None
        if found.summary is None
        else words.of_summary(found.summary, DETAIL_QUANTILES, over_time=True),
        "marks": words.of_marks(found.marks),
        "forecast": _expected(own[0]) if own and kind != "histogram" else None,
        "hours": words.of_curve(hours[0]) if hours else None,
    }


def _expected(curve: curves.Curve) -> answers.Forecast:
    """Return what is expected of a curve of a counter or a gauge, which is read already."""
    values: Any = tuple(curve.values)
    series: Any = types.Series(
        curve.name, curve.precision, curve.start, values, partial=curve.partial
    )
    return words.of_forecast(forecast(series, counts=curve.kind == "counter"))


def health(store: Store, _: Values) -> answers.HealthAnswer:
    """Answer /api/health."""
    found = reading_health.examine(store)
    now = store.clock.wall() + found.clock_difference
    return {
        "now": now,
        "missing": found.missing,
        "level": found.level,
        "location": found.location,
        "read_from": _read_from(replica=store.reader is not store),
        "prefix": found.prefix,
        "server": found.server,
        "version": found.version,
        "clock_difference": found.clock_difference,
        "retention": words.by_precision(found.retention),
        "histogram_retention": words.by_precision(found.histogram_retention),
        "series": words.by_precision(found.series),
        "others": found.others,
        "bytes": found.bytes,
        "estimated": found.estimated,
        "writers": [
            {
                "host": writer.text("host"),
                "pid": int(pid) if (pid := writer.text("pid")).isdecimal() and len(pid) < 10 else 0,
                "seen": writer.seen,
                "alive": writer.alive(now),
                "instance": writer.instance,
                "last_flush": writer.moment("last_flush"),
                "stored": writer.number("stored"),
                "buffered": writer.number("buffered"),
                "dropped": writer.number("dropped"),
                "lost": {why: words.by_precision(some) for why, some in writer.lost().items()},
                "troubles": writer.counts("troubles"),
                "last_trouble": writer.text("last_trouble"),
            }
            for writer in found.writers
        ],
        "findings": [words.of_finding(finding) for finding in found.findings],
        "cleaner": {"ended": found.cleaned},
    }


def _read_from(*, replica: bool) -> Literal["master", "replica"]:
    return "replica" if replica else "master"


def overview(
    store: Store, watch: reading_overview.Watch, values: Values, *, replica: bool
) -> answers.OverviewAnswer:
    """Answer /api/overview.

    Args:
        replica: whether the store is a replica.
    """
    view, found = watch.look(values["precision"], series=values["series"], store=store)
    start, width = found.values_start, found.values_precision
    counters, missing = found.counters, store.skipped()
    lacking = [
        Finding("fail", "cluster", f"{told}: what lies there is missing") for told in missing
    ]
    level: Any = "fail" if lacking else found.health.level
    return {
        "now": view.now,
        "missing": missing,
        "store": {
            "location": store.location,
            "read_from": _read_from(replica=replica),
            "prefix": store.keys.prefix,
            "version": view.version,
            "retention": words.by_precision(view.retention),
            "histograms": words.by_precision(view.histograms),
        },
        "window": words.of_span(found.window),
        "numbers": words.of_numbers(found.numbers),
        "chart": [words.of_curve(curve) for curve in found.chart],
        "expected": _expected(found.chart[0])
        if found.chart and found.chart[0].kind == "counter"
        else None,
        "marks": words.of_marks(found.marks),
        "pages": {
            "rows": [words.of_page(page) for page in found.pages.rows],
            "found": found.pages.found,
            "of": found.pages.of,
            "looked_at": found.pages.looked_at,
            "sampled": found.pages.sampled,
            "values_start": start,
            "values_precision": width,
        },
        "messages": {
            "changes": [words.of_change(change, view.now) for change in found.messages.changes],
            "frequent": [words.of_frequency(one, view.now) for one in found.messages.frequent],
            "sources": found.messages.sources,
            "compared": found.messages.compared,
            "clock_hours": found.messages.clock_hours,
        },
        "counters": {
            "rows": [words.of_row(row) for row in counters.rows],
            "found": counters.found,
            "total": counters.total,
            "looked_at": counters.looked_at,
            "ranked_at": counters.ranked_at,
        },
        "health": {
            "level": level,
            "findings": [
                words.of_finding(finding)
                for finding in [*lacking, *found.health.findings][: reading_overview.FINDINGS]
            ],
            "writers": found.health.writers,
        },
    }
