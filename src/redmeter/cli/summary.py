"""summary: the distribution of a histogram's values, as numbers and drawn."""

import math
from dataclasses import asdict
from typing import Annotated, Any

import typer

from redmeter.cli import chart, output
from redmeter.cli.app import (
    NOT_FOUND,
    AnyPrecision,
    AsJson,
    Prefix,
    Url,
    command,
    fail,
    opened_store,
    precision_seconds,
)
from redmeter.cli.completion import complete_names
from redmeter.cli.selectors import (
    By,
    Exact,
    LabelOption,
    Last,
    Since,
    Until,
    arguments_of,
    length_of,
    named,
    selection_of,
    window_options,
)
from redmeter.cli.suggestions import is_stored, suggestion
from redmeter.errors import InvalidSetting
from redmeter.queries import Queries
from redmeter.reading.selection import name_of
from redmeter.results.series import Series
from redmeter.results.summaries import Spread, Summary
from redmeter.store import Store
from redmeter.types import Mark, Selection

#: Intervals listed below a chart.
_LISTED = 10
#: Columns of each interval.
_OVER_TIME = ("count", "mean", "p50", "p95", "p99")
#: Columns on a narrow terminal, and the width from which a terminal has room for all.
_NARROW, _ROOMY = ("count", "p95"), 60


@command(
    name="summary",
    epilog="Examples: redmeter summary checkout_seconds -p 1m · "
    "redmeter summary checkout_seconds -p 1h --last 24h --above 0.5 · "
    "redmeter summary http_seconds --by route --label method=GET --json",
)
def summary_command(
    name: Annotated[
        str,
        typer.Argument(
            help="A histogram; labels in braces are a filter.", autocompletion=complete_names
        ),
    ],
    precision: AnyPrecision = None,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    above: Annotated[
        float | None,
        typer.Option("--above", help="Also show the share of values above this."),
    ] = None,
    label: LabelOption = None,
    by: By = None,
    exact: Exact = False,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Show the distribution of a histogram: mean and percentiles.

    Percentiles are within 2.17 % of the exact values. Draws charts on a terminal, and prints
    columns elsewhere.
    """
    width = None if precision is None else precision_seconds(precision)
    length_of(last, since, until, width)
    if above is not None and not math.isfinite(above):
        raise InvalidSetting("--above", "give a finite number, e.g. 0.5")
    with opened_store(url, prefix, reading=True) as store:
        selection = selection_of(store, name, label, by, exact=exact)
        options = window_options(last, since, until, width, store.clock.wall())
        found: Any = Queries(store).summary(**arguments_of(selection), precision=width, **options)
        groups = [(one.labels, one.summary) for one in found] if by else [({}, found)]
        groups = [(labels, one) for labels, one in groups if one.count or not by]
        rows = [(named(selection, tuple(labels.values())), one) for labels, one in groups]
        count = sum(one.count for _, one in rows)
        if json and by:
            listed = [{"labels": labels, **_as_dict(one, above)} for labels, one in groups]
            output.print_json({"groups": listed})
        elif json:
            output.print_json(_as_dict(rows[0][1], above))
        elif count and output.is_terminal():
            for title, one in rows:
                over_time = one.over_time()
                _draw(title, one, over_time, above, Queries(store).marks(since=over_time.start))
        elif count:
            output.table(*_columns(rows, above))
        if not json:
            output.note_missing(one.window for _, one in rows)
        if not count:
            shown = name_of(selection)
            text = f"no values under {shown} in this window"
            fail(text, NOT_FOUND, _hint(store, selection))


def _hint(store: Store, selection: Selection) -> str:
    if is_stored(store, selection, "histogram"):
        return "a coarser precision may reach further back, e.g. -p 1h"
    return suggestion(store, name_of(selection), histograms=True)


def _numbers(found: Spread, above: float | None) -> dict[str, float | None]:
    """Return the statistics of a window, in order."""
    numbers = {
        "count": found.count,
        "total": found.total,
        "mean": found.mean,
        "stddev": found.stddev,
        "low": found.low,
        "p50": found.p50,
        "p90": found.p90,
        "p95": found.p95,
        "p99": found.p99,
        "high": found.high,
    }
    return numbers if above is None else numbers | {"above": found.share_above(above)}


def _columns(
    rows: list[tuple[str, Summary]], above: float | None
) -> tuple[list[str], list[list[output.Cell]]]:
    lines: list[list[output.Cell]] = []
    for name, one in rows:
        numbers = _numbers(one, above)
        lines.append([name, *("" if number is None else number for number in numbers.values())])
    return ["NAME", *map(str.upper, _numbers(rows[0][1], above))], lines


def _draw(
    title: str,
    found: Summary,
    over_time: Series[Spread | None],
    above: float | None,
    marks: list[Mark],
) -> None:
    write = output.writer_for(found.name)
    every = f"every {output.span(found.precision)}"
    assert found.window is not None, "it was read"
    covered = output.window_text(found.window)
    output.line(f"{title} · {output.many(found.count, 'value')} in {covered}")
    output.line()
    numbers = _numbers(found, None)
    rows: list[list[output.Cell]] = [
        [key, f"{number:,}" if key == "count" else write(number)]
        for key, number in numbers.items()
        if number is not None
    ]
    if above is not None:
        rows.append([f"above {write(above)}", f"{found.share_above(above) or 0.0:.2%}"])
    output.table(["", "VALUE"], rows, right=[1])
    output.line()
    _draw_histogram(found, write)
    series = _p95(over_time)
    output.line(f"p95 over time · {every}")
    output.block(chart.draw_gauge(series, output.width(), marks, write=write, highest=True))
    output.line()
    _list(over_time, write)


def _draw_histogram(found: Summary, write: output.ValueWriter) -> None:
    drawn = chart.rows(found.buckets, write)
    most = max(count for _, count in drawn)
    lines: list[list[output.Cell]] = [
        [edges, count, f"{count / found.count:.1%}"] for edges, count in drawn
    ]
    columns = ["VALUES", "COUNT", "SHARE"]
    if output.width() >= _ROOMY:
        columns.append("")
        for line, (_, count) in zip(lines, drawn, strict=True):
            line.append(chart.bar(count / most))
    output.table(columns, lines, right=[0, 2])
    output.line()


def _p95(over_time: Series[Spread | None]) -> Series[float | None]:
    values = tuple(None if one is None else one.p95 for one in over_time.values)
    return Series(
        over_time.name, over_time.precision, over_time.start, values, partial=over_time.partial
    )


def _list(over_time: Series[Spread | None], write: output.ValueWriter) -> None:
    """List the newest intervals."""
    shown = _OVER_TIME if output.width() >= _ROOMY else _NARROW
    rows: list[list[output.Cell]] = []
    if len(over_time) > _LISTED:
        rows.append([f"… ({len(over_time) - _LISTED} more)", *[""] * len(shown)])
    for start, one in over_time[-_LISTED:]:
        cells = dict.fromkeys(shown, "")
        if one is not None:
            numbers = dict(zip(_OVER_TIME, _statistics(one), strict=True))
            cells = {key: write(numbers[key] or 0.0) for key in shown}
            cells["count"] = f"{one.count:,}"
        rows.append([output.moment(start, over_time.precision), *cells.values()])
    columns = ["START (UTC)", *map(str.upper, shown)]
    output.table(columns, rows, right=range(1, len(columns)))


def _statistics(one: Spread | None) -> list[float | None]:
    if one is None:
        return [0, *[None] * (len(_OVER_TIME) - 1)]
    return [one.count, one.mean, one.p50, one.p95, one.p99]


def _as_dict(found: Summary, above: float | None) -> dict[str, object]:
    over_time = found.over_time()
    numbers: dict[str, object] = {**_numbers(found, None)}
    if above is not None:
        numbers["above"] = {"threshold": above, "share": found.share_above(above)}
    return {
        "name": found.name,
        "window": found.window and asdict(found.window),
        **numbers,
        "buckets": [asdict(bucket) for bucket in found.buckets],
        "intervals": [
            {"start": start, **dict(zip(_OVER_TIME, _statistics(one), strict=True))}
            for start, one in over_time
        ],
    }
