"""names, series, top: what was counted and measured."""

import contextlib
import dataclasses
import difflib
import glob
import time
from typing import Annotated

import typer

from redmeter.cli import chart, output
from redmeter.cli.app import (
    NOT_FOUND,
    AsJson,
    Precision,
    Prefix,
    Url,
    command,
    fail,
    opened,
    seconds,
)
from redmeter.errors import InvalidName, InvalidSetting, LimitExceeded
from redmeter.model import Ranked, Series
from redmeter.names import canonical, parse_name
from redmeter.reading import catalogue, rankings
from redmeter.reading.gauges import read_gauges
from redmeter.reading.series import read_series, read_totals
from redmeter.store import Store

#: Samples listed below a chart.
_LISTED = 10
#: Names suggested for one that is not there, and those that are compared with it.
_SUGGESTED, _COMPARED = 5, 1_000
#: Columns of a terminal from which on a ranking has bars.
_ROOM_FOR_BARS = 60
#: Slices that are ranked where nobody says how many, or all that are kept.
_SLICES = 60


@command(
    name="names",
    epilog="Examples: redmeter names · redmeter names 'http_*' --json",
)
def names(
    pattern: Annotated[str, typer.Argument(help="* any text, ? one character, [ab] a or b.")] = "*",
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """List the counters, with their grand totals, and the gauges."""
    if not pattern:
        raise InvalidSetting(
            "PATTERN", "is empty and matches nothing: leave it out for all, or give one as 'http_*'"
        )
    with opened(url, prefix) as store:
        found = catalogue.read_names(store, pattern)
        totals: dict[str, int] = {}
        for at in range(0, len(found), 5_000):
            totals |= read_totals(store, found[at : at + 5_000])
        gauges = catalogue.read_names(store, pattern, gauges=True)
    rows = sorted(
        [(name, "counter", totals[name]) for name in found]
        + [(name, "gauge", None) for name in gauges],
        key=lambda row: row[:2],
    )
    if json:
        output.as_json([{"name": name, "kind": kind, "total": n} for name, kind, n in rows])
    elif rows:
        lines = [(name, kind, "" if total is None else total) for name, kind, total in rows]
        output.table(["NAME", "KIND", "TOTAL"], lines, right=2)
    if not rows and pattern == "*":
        fail("nothing is counted yet; redmeter replay access.log --shift-to-now does", NOT_FOUND)
    if not rows:
        fail(f"no counter or gauge matches {pattern}; redmeter names lists all", NOT_FOUND)


@command(
    name="series",
    epilog="Examples: redmeter series hits -p 1min · redmeter series hits sales -p 1h --json · "
    'redmeter series \'http_requests{method="GET",route="/",status="2xx"}\' -p 1d',
)
def series(
    name: Annotated[
        list[str], typer.Argument(help="One or more counters or gauges, labels included.")
    ],
    precision: Precision = "60",
    url: Url = None,
    prefix: Prefix = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Draw again every second, until Ctrl-C.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show the kept samples of counters and gauges, oldest first.

    On a terminal they are drawn; elsewhere they are columns.
    """
    width = seconds(precision)
    wanted = [canonical(each) for each in name]
    if watch and (json or not output.is_terminal()):
        raise InvalidSetting("--watch", "draws on a terminal; leave it out here")
    with opened(url, prefix) as store:
        if watch:
            with contextlib.suppress(KeyboardInterrupt):  # how one ends it
                while True:
                    output.clear()
                    _show(store, wanted, width, json)
                    time.sleep(1.0)
            return
        missing = _show(store, wanted, width, json)
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            hint = _suggestion(store, missing[0])
            fail(f"nothing is counted under {missing[0]}{more}; {hint}", NOT_FOUND)


def _show(store: Store, names: list[str], precision: int, json: bool) -> list[str]:
    """Show series, and return the names of those under which there was never anything."""
    found = read_series(store, names, precision)
    totals = read_totals(store, names)
    gauges = _gauges(store, [n for n, one in found.items() if not one and not totals[n]], precision)
    missing = [n for n, one in found.items() if not one and not totals[n] and n not in gauges]
    if json:
        output.as_json(
            [
                _as_dict(gauges[name]) if name in gauges else _as_dict(one, totals[name])
                for name, one in found.items()
            ]
        )
    elif output.is_terminal():
        for name, one in found.items():
            if name in gauges:
                _draw_gauge(gauges[name])
            elif name not in missing:
                _draw(one, totals[name])
    elif len(missing) < len(found):
        all_of = [gauges.get(name, one) for name, one in found.items()]
        rows = [
            (one.name, s.start, "" if s.value is None else s.value) for one in all_of for s in one
        ]
        output.table(["NAME", "START", "VALUE" if gauges else "COUNT"], rows)
    return missing


def _gauges(store: Store, names: list[str], precision: int) -> dict[str, Series[float | None]]:
    """Return those names that are gauges; without samples where they have some elsewhere only."""
    if not names:
        return {}
    found = read_gauges(store, names, precision)
    return {
        name: one
        for name, one in found.items()
        if one or catalogue.read_names(store, glob.escape(name), gauges=True)
    }


@command(
    name="top",
    epilog="Examples: redmeter top · redmeter top http_requests --by route -p 1h --slices 24 · "
    "redmeter top 'sales*' -p 1d",
)
def top(
    name: Annotated[
        str | None,
        typer.Argument(help="With --by: a name without labels. Else a pattern of names, or all."),
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="Add up by this label.")] = None,
    precision: Precision = "60",
    slices: Annotated[
        int | None,
        typer.Option("--slices", "-n", help="How many newest slices; else 60, if so many are kept"),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-l", help="How many rows.")] = 10,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Rank counters, or the values of a label, by count.

    What is added up are the newest slices, the running one included.
    """
    width = seconds(precision)
    if by is not None and (not by or name is None):
        missing = "name a counter" if by else "name a label"
        raise InvalidSetting("--by", f"{missing}, e.g. redmeter top http_requests --by route")
    name = "*" if name is None else name
    with opened(url, prefix) as store:
        if slices is None:
            kept = store.read()[0].retention
            slices = min(_SLICES, kept[kept.check(width)])
        rows = rankings.rank(store, name, width, by=by, slices=slices, limit=limit)
        unknown = ""
        if by and all(row.key is None for row in rows):
            unknown = _unknown_label(store, name, by)
            rows = [] if unknown else rows
        if json:
            output.as_json([dataclasses.asdict(row) for row in rows])
        elif rows:
            _rank(rows, by)
        if unknown:
            fail(unknown, NOT_FOUND)
        if not rows:
            window = f"the newest {output.many(slices, 'slice')} of {output.span(width)}"
            hint = _farther(store, width, slices) + _suggestion(store, name)
            fail(f"nothing happened in {window}; {hint}", NOT_FOUND)


def _unknown_label(store: Store, name: str, by: str) -> str:
    """Return what to say where no label set of a name has a label; "" where one has, or none is."""
    literal = glob.escape(name)
    series = catalogue.read_names(store, literal) + catalogue.read_names(store, literal + "{*")
    labels: set[str] = set()
    for one in series:
        with contextlib.suppress(InvalidName):  # written by someone else
            labels.update(key for key, _ in parse_name(one).labels)
    if by in labels:
        return ""
    if labels:
        return f"no series of {name} has the label {by}; there are: {', '.join(sorted(labels))}"
    return f"{name} has no labels; leave --by out" if series else ""


def _farther(store: Store, width: int, slices: int) -> str:
    """Return which coarser precision looks further back; "" where none does."""
    reach = {p: p * min(_SLICES, kept) for p, kept in store.read()[0].retention.items()}
    farthest = max(reach, key=lambda precision: reach[precision])
    if farthest <= width or reach[farthest] <= slices * width:
        return ""
    return f"-p {output.span(farthest)} looks further back; "


def _rank(rows: list[Ranked], by: str | None) -> None:
    columns = [by.upper() if by else "NAME", "COUNT", "SHARE"]
    lines: list[list[output.Cell]] = [
        ["(without)" if row.key is None else row.key, row.count, f"{row.share:.1%}"] for row in rows
    ]
    if output.is_terminal() and output.width() >= _ROOM_FOR_BARS:
        columns.append("")
        for line, row in zip(lines, rows, strict=True):
            line.append(chart.bar(row.share / rows[0].share))
    output.table(columns, lines, right=2)


def _draw(one: Series[int], total: int) -> None:
    ever = f" · total {total:,}" if total else ""  # what other programs count has none
    title = f"{one.name} · every {output.span(one.precision)}"
    if not one:
        output.line(f"{title} · no samples are kept{ever}")
        output.line()
        return
    newest = f"newest {one.values[-1]:,}" + (" (running)" if one.partial else "")
    counted = f"{one.total:,} in {output.many(len(one), 'slice')}"
    output.line(f"{title} · {counted} · {newest}{ever}")
    output.block(chart.draw(one, output.width()))
    _list(one, "COUNT")


def _draw_gauge(one: Series[float | None]) -> None:
    title = f"{one.name} · gauge, every {output.span(one.precision)}"
    values = [value for value in one.values if value is not None]
    if not values:
        output.line(f"{title} · no samples are kept")
        output.line()
        return
    low, high, newest = map(output.number, (min(values), max(values), values[-1]))
    spread = f"lowest {low} · highest {high} · newest {newest}"
    output.line(f"{title} · {output.many(len(values), 'sample')} · {spread}")
    output.block(chart.draw_gauge(one, output.width()))
    _list(one, "VALUE")


def _list(one: Series[int] | Series[float | None], column: str) -> None:
    """List the newest samples."""
    output.line()
    cut = [(f"… ({len(one) - _LISTED} more)", "")] if len(one) > _LISTED else []
    rows = [
        (output.moment(s.start, one.precision), "" if s.value is None else output.number(s.value))
        for s in one[-_LISTED:]
    ]
    output.table(["START (UTC)", column], cut + rows, right=1)
    output.line()


def _as_dict(
    one: Series[int] | Series[float | None], total: int | None = None
) -> dict[str, object]:
    return {
        "name": one.name,
        "kind": "gauge" if total is None else "counter",
        "precision": one.precision,
        "total": total,
        "partial": one.partial,
        "samples": [[sample.start, sample.value] for sample in one],
    }


def _suggestion(store: Store, name: str) -> str:
    """Return what a user may have meant: other label sets, or names that look alike."""
    base = name.partition("{")[0].rstrip("*")
    alike: list[str] = []
    with contextlib.suppress(LimitExceeded):  # too many to look through
        alike = (
            catalogue.read_names(store, glob.escape(base) + "{*")
            or catalogue.read_names(store, glob.escape(base[:4]) + "*")
            or difflib.get_close_matches(base, catalogue.read_names(store)[:_COMPARED])
        )
    some = ", ".join(alike[:_SUGGESTED])
    return f"there is: {some}" if some else "redmeter names lists what there is"
