"""forecast: the expected range of a series, and its anomalies."""

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich.text import Text

from redmeter.cli import output
from redmeter.cli.app import (
    NOT_FOUND,
    AsJson,
    Precision,
    Prefix,
    Timezone,
    Url,
    command,
    fail,
    opened_store,
    precision_seconds,
)
from redmeter.cli.completion import complete_names
from redmeter.cli.selectors import (
    Aggregate,
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
from redmeter.errors import WrongKind
from redmeter.queries import Queries
from redmeter.reading.selection import name_of
from redmeter.results.forecasts import Anomaly, Forecast, ForecastCheck, ForecastPoint
from redmeter.store import Store
from redmeter.types import Selection

#: Lines that the chart takes.
_HEIGHT = 12
#: Columns that are drawn at least, however narrow the terminal.
_NARROWEST = 10
#: Forecast intervals, and anomalies, listed below the chart.
_LISTED = 10


@command(
    name="forecast",
    epilog="Examples: redmeter forecast hits -p 1h · redmeter forecast hits -p 1d --ahead 7 · "
    "redmeter forecast hits --json · redmeter forecast http_requests --by method",
)
def forecast_command(
    name: Annotated[
        str,
        typer.Argument(
            help="A counter or a gauge; labels in braces are a filter.",
            autocompletion=complete_names,
        ),
    ],
    precision: Precision = "3600",
    ahead: Annotated[
        int | None,
        typer.Option(
            "--ahead", help="Number of intervals, up to 48. Default: 24 hours, 14 days, else 12."
        ),
    ] = None,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    label: LabelOption = None,
    by: By = None,
    aggregate: Aggregate = None,
    exact: Exact = False,
    timezone: Timezone = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Show the expected range ahead, and past anomalies.

    The forecast uses level and trend; for hours also the time of day, for days the day of the
    week. Each past interval is compared with the forecast made before it began; about 5 in 100
    fall outside the expected range by chance, and the first 24 are never anomalies. Anomalies are
    listed by strength: the distance from the mean of the earlier values, in standard deviations.
    The current interval is not compared. A window limits the past intervals that are shown; the
    forecast is made of all that is kept.
    """
    width = precision_seconds(precision)
    length_of(last, since, until, width)
    with opened_store(url, prefix, reading=True, timezone=timezone) as store:
        selection = selection_of(store, name, label, by, exact=exact)
        found = Queries(store).forecast(
            **arguments_of(selection),
            precision=width,
            aggregate=aggregate,
            ahead=ahead,
            **window_options(last, since, until, width, store.clock.wall()),
        )
        groups = [(one.labels, one.forecast) for one in found] if by else [({}, found)]
        forecasts = [
            replace(one, name=named(selection, tuple(labels.values()))) if by else one
            for labels, one in groups
        ]
        drawn = [one for one in forecasts if not one.reason]
        if json and by:
            rows = [{"labels": labels, **asdict(one)} for labels, one in groups]
            output.print_json({"groups": rows})
        elif json:
            output.print_json(asdict(forecasts[0]))
        elif output.is_terminal():
            for one in drawn:
                _draw(one)
        elif drawn:
            output.table(*_columns(drawn, split=bool(by)))
        if not drawn:
            fail(*_why(store, forecasts[0].reason if forecasts else "", selection))
        if not json:
            for one in forecasts:
                if one.reason:
                    output.note(f"no forecast of {one.name}: {one.reason}")


def _why(store: Store, reason: str, selection: Selection) -> tuple[str, int, str]:
    """Return why there is no forecast, no such series or too little of it, as fail() takes it."""
    name = name_of(selection)
    known = any(is_stored(store, selection, kind) for kind in ("counter", "gauge"))
    if not known:  # or expired, but counted
        with contextlib.suppress(WrongKind):
            known = bool(Queries(store).total(**arguments_of(selection._replace(by=()))))
    if known:
        return f"no forecast of {name}: {reason}", NOT_FOUND, ""
    return f"nothing is stored under {name}", NOT_FOUND, suggestion(store, name)


def _columns(
    forecasts: Sequence[Forecast], *, split: bool
) -> tuple[list[str], list[list[output.Cell]]]:
    rows: list[list[output.Cell]] = []
    for each in forecasts:
        name = [each.name] if split else []
        rows += [
            [*name, output.time_text(one.start), one.value, *_range(one), int(one.outside)]
            for one in each.past
        ]
        rows += [[*name, output.time_text(one.start), "", *_range(one), ""] for one in each.ahead]
    names = ["START", "VALUE", "LOW", "MID", "HIGH", "OUTSIDE"]
    return ["NAME", *names] if split else names, rows


def _range(one: ForecastCheck | ForecastPoint | Anomaly) -> tuple[float, float, float]:
    return one.low, one.mid, one.high


def _draw(found: Forecast) -> None:
    write = _writer(found)
    title = f"{found.name} · every {output.span(found.precision)}"
    output.line(f"{title} · {output.many(len(found.ahead), 'interval')} ahead")
    output.block(_chart(found, write, output.width()))
    output.line()
    rows: list[list[output.Cell]] = [
        [output.moment(one.start, found.precision), *map(write, _range(one))] for one in found.ahead
    ]
    _list(["EXPECTED (UTC)", "LOW", "MID", "HIGH"], rows)
    if found.anomalies:
        rows = [
            [
                output.moment(one.start, found.precision),
                *map(write, (one.value, *_range(one))),
                f"{one.strength:.1f}",
            ]
            for one in found.anomalies
        ]
        _list(["OUTSIDE (UTC)", "VALUE", "LOW", "MID", "HIGH", "STRENGTH"], rows)
    output.line(f"{_coverage(found, len(found.anomalies))} · by {found.method}")


def _coverage(found: Forecast, outside: int) -> str:
    """Return the level of the expected range, and how many past intervals were outside."""
    expected, checked = f"expected range ({found.level * 100:.0f} %)", len(found.past)
    if not checked:
        return expected
    share = outside / checked * 100
    return f"{expected}; {outside} of {checked} intervals ({share:.0f} %) outside"


def _list(columns: list[str], rows: list[list[output.Cell]]) -> None:
    more = len(rows) - _LISTED
    if more > 0:
        rows = [*rows[:_LISTED], [f"… ({more} more)", *[""] * (len(columns) - 1)]]
    output.table(columns, rows, right=range(1, len(columns)))
    output.line()


def _writer(found: Forecast) -> output.ValueWriter:
    if found.kind == "gauge":
        return output.writer_for(found.name)
    return lambda value: f"{value:,.0f}" if value >= 10 else output.number_text(round(value, 1))


def _chart(found: Forecast, write: output.ValueWriter, columns: int) -> Text:
    """Draw the expected range as shade, past values as points in it or as signs outside of it.

    Draws as many of the newest intervals as fit, and the next ones on the right.
    """
    low, high = _ends(found.past, found)
    room = max(_NARROWEST, columns - max(len(write(low)), len(write(high))) - 2)
    ahead = found.ahead[:room]
    turn, width = ahead[0].start, found.precision
    oldest = found.past[0].start if found.past else turn
    first = max(turn - (room - len(ahead)) * width, oldest)
    past = {one.start: one for one in found.past if one.start >= first}
    low, high = _ends(tuple(past.values()), found)
    # A gap of a gauge is an empty column.
    shown = [past.get(start) for start in range(first, turn, width)]
    cells = [_column(one, low, high) for one in shown]
    cells += [_column(one, low, high) for one in ahead]
    if found.running is not None:
        cells[len(shown)][_row(found.running, low, high)] = "◦", "dim cyan"
    axis = _axis(output.moment(first, width), len(shown), len(ahead))
    return _framed(cells, (write(high), write(low)), axis)


def _ends(past: Sequence[ForecastCheck], found: Forecast) -> tuple[float, float]:
    """Return the lowest and the highest value of a chart; 0 is always in it."""
    ends = [0.0, found.running or 0.0]
    for one in past:
        ends += [one.value, one.low, one.high]
    for point in found.ahead:
        ends += [point.low, point.high]
    return min(ends), max(ends)


def _column(
    one: ForecastCheck | ForecastPoint | None, low: float, high: float
) -> list[tuple[str, str]]:
    """Return the cells of an interval with their styles, the lowest first."""
    if one is None:
        return [(" ", "")] * _HEIGHT
    bottom, top = _row(one.low, low, high), _row(one.high, low, high)
    cells = [("░" if bottom <= row <= top else " ", "dim") for row in range(_HEIGHT)]
    if isinstance(one, ForecastCheck):
        sign = "•" if not one.outside else "▲" if one.value > one.high else "▼"
        cells[_row(one.value, low, high)] = sign, "bold red" if one.outside else "cyan"
    else:
        cells[_row(one.mid, low, high)] = "─", "cyan"
    return cells


def _row(value: float, low: float, high: float) -> int:
    """Return the row of a value. Halved, so that no difference of large numbers is infinite."""
    span = high / 2 - low / 2
    if not span:
        return 0
    return min(_HEIGHT - 1, int((value / 2 - low / 2) / span * _HEIGHT))


def _framed(cells: Sequence[Sequence[tuple[str, str]]], labels: tuple[str, str], axis: str) -> Text:
    width = max(map(len, labels))
    drawn = Text(no_wrap=True)
    for row in range(_HEIGHT - 1, -1, -1):
        label = labels[0] if row == _HEIGHT - 1 else labels[1] if row == 0 else ""
        drawn.append(f"{label:>{width}} {output.signs('┤')}", style="dim")
        for column in cells:
            sign, style = column[row]
            drawn.append(output.signs(sign), style)
        drawn.append("\n")
    drawn.append(" " * (width + 1) + output.signs("└" + "─" * len(cells)) + "\n", style="dim")
    drawn.append(" " * (width + 2) + output.signs(axis), style="dim")
    return drawn


def _axis(first: str, past: int, ahead: int) -> str:
    """Label the first interval, and the start of the forecast, as far as they fit."""
    turn = "│ ahead" if ahead >= len("│ ahead") else "│"
    return f"{first if len(first) < past else '':<{past}}{turn}"
