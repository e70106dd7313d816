"""Convert the results of readings to the schemas of the API."""

from collections.abc import Mapping, Sequence
from typing import Any

from redmeter import types
from redmeter.analysis.changes import passed_of
from redmeter.dashboard import schemas
from redmeter.keys import HOUR
from redmeter.reading import curves
from redmeter.reading import overview as reading_overview
from redmeter.reading import spread as spreads
from redmeter.reading.requested import Page
from redmeter.reading.rows import Row

#: What a name ends in -> what its values are in.
_UNITS = {"_seconds": "seconds", "_bytes": "bytes", "_ratio": "ratio"}


def of_series(series: types.Series[Any], kind: Any) -> schemas.Series:
    """Word samples."""
    return {
        "name": series.name,
        "kind": kind,
        "precision": series.precision,
        "start": series.start,
        "values": list(series.values),
        "partial": series.partial,
    }


def of_curve(curve: curves.Curve) -> schemas.Curve:
    """Word a curve."""
    return {
        "name": curve.name,
        "kind": curve.kind,  # type: ignore[typeddict-item]  # one of the three
        "precision": curve.precision,
        "start": curve.start,
        "values": curve.values,
        "partial": curve.partial,
        "looked_at": curve.looked_at,
        "of": curve.of,
    }


def of_summary(
    summary: spreads.Summary,
    wanted: Sequence[float],
    threshold: float | None = None,
    *,
    over_time: bool,
) -> schemas.Summary:
    """Word a summary."""
    slices = summary.over_time() if over_time else None
    return {
        "name": summary.name,
        "count": summary.count,
        "total": summary.total,
        "mean": summary.mean,
        "stddev": summary.stddev,
        "low": summary.low,
        "high": summary.high,
        "quantiles": _quantiles(wanted, summary.quantiles(wanted)),
        "share_above": None if threshold is None else summary.share_above(threshold),
        "buckets": summary.buckets(),
        "over_time": None if slices is None else _over_time(slices, wanted),
    }


def _over_time(
    slices: types.Series[spreads.Spread | None], wanted: Sequence[float]
) -> schemas.OverTime:
    columns = [
        [None] * len(wanted) if one is None else one.quantiles(wanted) for one in slices.values
    ]
    return {
        "start": slices.start,
        "partial": slices.partial,
        "count": [0 if one is None else one.count for one in slices.values],
        "mean": [None if one is None else one.mean for one in slices.values],
        "quantiles": {
            f"{q:.15g}": [column[at] for column in columns] for at, q in enumerate(wanted)
        },
    }


def _quantiles(wanted: Sequence[float], found: Sequence[float | None]) -> dict[str, float | None]:
    return {f"{q:.15g}": value for q, value in zip(wanted, found, strict=True)}


def of_frequency(one: types.Frequency, now: float) -> schemas.Frequency:
    """Word how often messages come."""
    return {
        "logger": one.logger,
        "severity": one.severity,
        "pattern": one.pattern,
        "count": one.count,
        "before": one.before,
        "expected": one.before * passed_of(one, now) / HOUR,
        "sliding": one.sliding,
        "first": one.first,
        "last": one.last,
        "sample": one.sample,
    }


def of_change(change: types.Change, now: float) -> schemas.Change:
    """Word a change."""
    what: Any = change.what
    return {"what": what, **of_frequency(change.frequency, now)}


def of_marks(marks: Sequence[types.Mark]) -> list[schemas.Mark]:
    """Word marks."""
    return [{"time": mark.time, "label": mark.label} for mark in marks]


def of_span(window: reading_overview.Span) -> schemas.Window:
    """Word a window."""
    return {
        "precision": window.precision,
        "start": window.start,
        "end": window.end,
        "before": window.before,
        "histograms": window.histograms,
        "histograms_start": window.histograms_start,
    }


def of_page(page: Page) -> schemas.Page:
    """Word a page."""
    return {
        "route": page.route,
        "count": page.count,
        "before": page.before,
        "per_second": page.per_second,
        "share": page.share,
        "failed": page.failed,
        "failing": page.failing,
        "mean": page.mean,
        "p95": page.p95,
        "total": page.total,
        "total_share": page.total_share,
        "values": page.values,
    }


def of_row(row: Row) -> schemas.CounterRow:
    """Word a row of a list."""
    kind: Any = row.kind
    return {
        "name": row.name,
        "kind": kind,
        "series": row.series,
        "count": row.count,
        "before": row.before,
        "value": row.value,
        "p95": row.p95,
        "p95_before": row.p95_before,
        "complete": row.complete,
        "values": row.values,
        "start": row.start,
        "precision": row.precision,
        "partial": bool(row.values),
    }


def of_forecast(found: types.Forecast) -> schemas.Forecast:
    """Word a forecast."""
    return {
        "precision": found.precision,
        "method": found.method,
        "level": found.level,
        "running": found.running,
        "past": [
            {
                "start": one.start,
                "value": one.value,
                "low": one.low,
                "mid": one.mid,
                "high": one.high,
                "outside": one.outside,
            }
            for one in found.past
        ],
        "ahead": [
            {"start": one.start, "low": one.low, "mid": one.mid, "high": one.high}
            for one in found.ahead
        ],
        "reason": found.reason,
    }


def by_precision(found: Mapping[int, int]) -> dict[str, int]:
    """Return a mapping as JSON has it."""
    return {str(precision): number for precision, number in found.items()}


def of_finding(finding: Any) -> schemas.Finding:
    """Word a finding."""
    return {
        "level": finding.level,
        "topic": finding.topic,
        "text": finding.text,
        "fix": finding.fix,
    }


def of_numbers(found: reading_overview.Numbers) -> schemas.Numbers:
    """Word the five numbers."""
    hits, errors, p95, slowest, logged = (
        found.hits,
        found.errors,
        found.p95,
        found.slowest,
        found.logged,
    )
    return {
        "hits": {
            "value": hits.value,
            "before": hits.before,
            "count": hits.count,
            "count_before": hits.count_before,
            "name": hits.name or None,
            "sampled": hits.sampled,
        },
        "errors": {
            "value": errors.value,
            "before": errors.before,
            "count": errors.count,
            "count_before": errors.count_before,
            "since": errors.since,
        },
        "p95": {
            "value": p95.value,
            "before": p95.before,
            "since": p95.since,
            "sampled": p95.sampled,
        },
        "slowest": {
            "value": slowest.value,
            "before": slowest.before,
            "route": None if slowest.value is None else slowest.name,
        },
        "logged": {
            "value": None if logged.value is None else int(logged.value),
            "before": logged.count_before,
            "expected": logged.before,
            "sliding": logged.sliding,
            "looked_at": logged.looked_at,
            "of": logged.of,
        },
    }


def unit_of(name: str) -> str:
    """Return what the values of a series are in, by the end of its name without labels."""
    base = name.partition("{")[0]
    return next((unit for end, unit in _UNITS.items() if base.endswith(end)), "")
