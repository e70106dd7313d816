"""Endpoints that answer one question each: series, names, rankings, summaries, messages, marks.

Each is asked in two round trips at most; what is here knows which parameters go together.
"""

from collections.abc import Callable, Mapping
from typing import Any

from redmeter import types
from redmeter.dashboard import answers, words
from redmeter.dashboard.refusals import Refusal
from redmeter.keys import Kept
from redmeter.reading import catalogue, gauges
from redmeter.reading.forecasts import expecting
from redmeter.reading.labelled import by_label, summaries_of
from redmeter.reading.marks import read_marks_now
from redmeter.reading.ranked import by_percentile
from redmeter.reading.rankings import Order
from redmeter.reading.series import Grid, read_hashes
from redmeter.reading.talk import talk
from redmeter.reading.tallied import by_sums
from redmeter.store import Store
from redmeter.store.query import Query, run
from redmeter.types import Ranking

#: Most values of a label that are told apart.
MAX_VALUES = 50
#: Quantiles where none are asked for.
QUANTILES = (0.5, 0.95)

Values = Mapping[str, Any]


def series(store: Store, values: Values) -> answers.SeriesAnswer:
    """Answer /api/series."""
    names, precision = values["name"], values["precision"]
    since, until = values["since"], values["until"]
    if values["by"] is not None or values["sum"]:
        return _labelled(store, values)
    gauge = values["kind"] == "gauge"
    key: Callable[[int, str], str] = store.keys.gauge if gauge else store.keys.count
    lay: Any = gauges.laid if gauge else Grid.series
    grid, read = read_hashes(store, key, names, precision, lay, since=since, until=until)
    now, first = grid.now, grid.starts.start
    end = max(first, grid.starts.stop - 1 + precision)
    # What cannot be read, since another program keeps something else there, is empty.
    found: list[answers.LabelledSeries] = [
        {
            **words.of_series(
                read.get(name, types.Series(name, precision, end, (), partial=False)),
                values["kind"],
            ),
            "label": None,
        }
        for name in names
    ]
    return {
        "now": now,
        "missing": store.skipped(),
        "precision": precision,
        "start": first,
        "end": end,
        "series": found,
        "of": len(found),
    }


def _labelled(store: Store, values: Values) -> answers.SeriesAnswer:
    names, label, precision = values["name"], values["by"], values["precision"]
    which = "by" if label is not None else "sum"
    if label is not None and values["sum"]:
        raise _together("by and sum exclude each other", "give one of them")
    if len(names) != 1 or "{" in names[0]:
        raise _together(f"{which} takes one name without labels", "give one name, as http_requests")
    if values["kind"] != "counter":
        raise _together(f"{which} is of counters", "leave kind out")
    options = {"since": values["since"], "until": values["until"], "limit": MAX_VALUES}
    view, found = run(store, lambda _: by_label(store.keys, names[0], label, precision, **options))
    return {
        "now": view.now,
        "missing": store.skipped(),
        "precision": precision,
        "start": found.start,
        "end": found.end,
        "series": [
            {**words.of_series(series, "counter"), "label": value}
            for value, series in found.series.items()
        ],
        "of": found.of,
    }


def names(store: Store, values: Values) -> answers.NamesAnswer:
    """Answer /api/names."""
    view, found = catalogue.read_names_now(store, values["pattern"], values["kind"])
    return {
        "now": view.now,
        "missing": store.skipped(),
        "names": found[: values["limit"]],
        "total": len(found),
    }


def top(store: Store, values: Values) -> answers.TopAnswer:
    """Answer /api/top."""
    order, by, slices = values["order"], values["by"], values["slices"]
    where, failing = _labels("where", values), _labels("failing", values)
    if by is not None and any(c in values["name"] for c in "{}"):
        raise _together("by takes a name without labels", "give labels as where=LABEL=VALUE")
    if (order == "failing") != bool(failing):
        raise _together(
            "order=failing and failing=LABEL=VALUE go together", "give both, as failing=status=5xx"
        )
    precision, wanted = values["precision"], Order.parse(order)
    options: dict[str, Any] = {"by": by, "slices": slices, "limit": values["limit"], "where": where}

    def make(kept: Kept) -> Query[Ranking]:
        asked = store.keys, kept, values["name"], precision, wanted
        if wanted.q is None:
            return by_sums(*asked, **options, failing=failing)
        return by_percentile(*asked, **options)

    view, rows = run(store, make)
    missing = store.skipped()
    return {
        "now": view.now,
        "missing": missing,
        "rows": [
            {"key": row.key, "count": row.count, "share": row.share, "value": row.value}
            for row in rows
        ],
        "groups": rows.groups,
        "looked_at": rows.looked_at,
        "complete": rows.complete and not missing,
        "left_out": list(rows.left_out),
        "slices": rows.slices,
    }


def _labels(name: str, values: Values) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for label, value in values[name]:
        if label in found:
            raise _together(f"{name} has {label} twice", "a series has one value of a label")
        found[label] = value
    return found or None


def summary(store: Store, values: Values) -> answers.SummaryAnswer:
    """Answer /api/summary."""
    names, precision = values["name"], values["precision"]
    where, merge = _labels("where", values), values["all_labels"]
    if where and not merge:
        raise _together(
            "where is for all_labels=1", "write labels within the name, or all_labels=1"
        )
    if merge and any("{" in name for name in names):
        raise _together("all_labels takes names without labels", "give labels as where=LABEL=VALUE")
    options = {"since": values["since"], "until": values["until"]}
    view, found = run(
        store,
        lambda _: summaries_of(store.keys, names, precision, merge=merge, where=where, **options),
    )
    wanted = values["q"] or QUANTILES
    summaries = [
        words.of_summary(one, wanted, values["threshold"], over_time=values["over_time"])
        for one in found
    ]
    return {
        "now": view.now,
        "missing": store.skipped(),
        "precision": precision,
        "start": found[0].start,
        "end": max(found[0].start, found[0].end),
        "summaries": summaries,
    }


def messages(store: Store, values: Values) -> answers.MessagesAnswer:
    """Answer /api/messages."""
    logger, severities, limit = values["logger"], values["severity"], values["limit"]
    view, found = run(store, lambda _: talk(store.keys, logger, severities, limit))
    return {
        "now": view.now,
        "missing": store.skipped(),
        "changes": [words.of_change(change, view.now) for change in found.changes],
        "frequent": [words.of_frequency(one, view.now) for one in found.frequent],
        "recent": [
            {"logger": m.logger, "severity": m.severity, "time": m.time, "text": m.text}
            for m in found.recent
        ],
        "loggers": [
            {"logger": s.logger, "severity": s.severity, "last": s.last} for s in found.loggers
        ],
        "sources": found.sources,
        "compared": found.compared,
        "clock_hours": found.clock_hours,
    }


def marks(store: Store, values: Values) -> answers.MarksAnswer:
    """Answer /api/marks."""
    now, found = read_marks_now(store, since=values["since"], until=values["until"])
    return {"now": now, "missing": store.skipped(), "marks": words.of_marks(found)}


def forecast(store: Store, values: Values) -> answers.ForecastAnswer:
    """Answer /api/forecast."""
    name, precision = values["name"], values["precision"]
    view, found = run(store, lambda _: expecting(store.keys, name, precision))
    return {"now": view.now, "missing": store.skipped(), "name": name, **words.of_forecast(found)}


def _together(message: str, fix: str) -> Refusal:
    return Refusal(400, "bad-combination", message, fix)
