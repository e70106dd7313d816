"""series: the samples of counters and gauges."""

import contextlib
import time
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import Annotated, Any, NamedTuple

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
    Aggregate,
    By,
    Exact,
    LabelOption,
    Last,
    Since,
    Until,
    length_of,
    named,
    selection_of,
    window_options,
)
from redmeter.cli.suggestions import is_stored, suggestion
from redmeter.errors import InvalidSetting
from redmeter.queries import Queries
from redmeter.queries.arguments import check_aggregate
from redmeter.queries.source import FromStore, window_kept
from redmeter.reading.aggregates import read_counter, read_gauge, read_total
from redmeter.reading.selection import GroupKey, name_of
from redmeter.results.series import Series
from redmeter.store import Store
from redmeter.store.query import Query, run_query, together
from redmeter.stored.families import STATES
from redmeter.stored.keys import Kept
from redmeter.types import Mark, Selection, Window

#: Samples listed below a chart.
_LISTED = 10


@command(
    name="series",
    epilog="Examples: redmeter series hits -p 1m · redmeter series hits sales -p 1h --json · "
    "redmeter series http_requests --by route --label method=GET · "
    "redmeter series queue_length --aggregate max -p 1d",
)
def series_command(
    name: Annotated[
        list[str],
        typer.Argument(
            help="Counters or gauges; labels in braces are a filter.", autocompletion=complete_names
        ),
    ],
    precision: AnyPrecision = None,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    label: LabelOption = None,
    by: By = None,
    aggregate: Aggregate = None,
    exact: Exact = False,
    url: Url = None,
    prefix: Prefix = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Redraw every second, until Ctrl-C.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show the samples of counters and gauges, oldest first.

    Counters are summed over all label sets of a name, gauges over their label `instance`; other
    labels of a gauge need --by, --label or --aggregate. Draws charts on a terminal, and prints
    columns elsewhere.
    """
    width = None if precision is None else precision_seconds(precision)
    length_of(last, since, until, width)
    if watch and (json or not output.is_terminal()):
        raise InvalidSetting("--watch", "draws on a terminal; omit it here")
    check_aggregate(aggregate)
    with opened_store(url, prefix, reading=True) as store:
        selections = [selection_of(store, each, label, by, exact=exact) for each in name]
        options = window_options(last, since, until, width, store.clock.wall())
        window = window_kept(FromStore(store), "counter", width, **options)
        if watch:
            with contextlib.suppress(KeyboardInterrupt):  # the usual end
                while True:
                    output.clear()
                    _show(store, selections, window, aggregate, json)
                    time.sleep(1.0)
            return
        missing = _show(store, selections, window, aggregate, json)
        if missing:
            first = name_of(missing[0])
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            text = f"nothing is stored under {first}{more}"
            fail(text, NOT_FOUND, suggestion(store, first))


class _Row(NamedTuple):
    """A series that is shown: of one name, and of one group of it."""

    selection: Selection
    key: GroupKey
    kind: str
    series: Series[Any]
    #: Everything ever counted; None if there is no total.
    total: int | None

    @property
    def name(self) -> str:
        """The name, with the labels that it was split by."""
        return named(self.selection, self.key)


def _show(
    store: Store, selections: list[Selection], window: Window, aggregate: str | None, json: bool
) -> list[Selection]:
    """Show series, and return those selections under which there was never anything."""
    rows, missing = _rows(store, selections, window, aggregate)
    if json:
        output.print_json({"series": [_as_dict(row) for row in rows]})
    elif output.is_terminal():
        starts = [row.series.start for row in rows if row.series]
        marks = Queries(store).marks(since=min(starts)) if starts else []
        for row in rows:
            if row.kind in STATES:
                _draw_gauge(row, marks)
            elif row.selection not in missing:
                _draw(row, marks)
    elif len(missing) < len(selections):
        gauges = any(row.kind in STATES for row in rows)
        cells = [
            (row.name, output.time_text(sample.start), "" if sample.value is None else sample.value)
            for row in rows
            for sample in row.series
        ]
        output.table(["NAME", "START", "VALUE" if gauges else "COUNT"], cells)
    if not json:
        output.note_missing(row.series.window for row in rows)
    return missing


def _rows(
    store: Store, selections: list[Selection], window: Window, aggregate: str | None
) -> tuple[list[_Row], list[Selection]]:
    """Read series, and return those selections under which there was never anything."""
    keys = store.keys
    needed = len(selections) == 1

    def queries(_: Kept) -> Query[list[Any]]:
        samples: list[Query[Any]] = [
            read_counter(keys, one, window, needed=needed, kinds=("counter", *STATES))
            for one in selections
        ]
        return together([*samples, *(read_total(keys, one, checked=False) for one in selections)])

    _, found = run_query(store, queries)
    counters, totals = found[: len(selections)], found[len(selections) :]
    never = [
        at
        for at in range(len(selections))
        if (counters[at] or selections[at].by)
        and not any(one for _, one in counters[at])
        and not any(totals[at].values())
    ]
    others = list(product(never, STATES))
    states: dict[int, tuple[str, Any]] = {}
    if others:
        read = partial(read_gauge, keys, needed=needed, kinds=("counter", *STATES))
        _, found = run_query(
            store,
            lambda _: together(
                [read(selections[at], window, aggregate, kind=kind) for at, kind in others]
            ),
        )
        for (at, kind), groups in zip(others, found, strict=True):
            stored = any(one for _, one in groups) or is_stored(store, selections[at], kind)
            if stored and at not in states:
                states[at] = kind, groups
    rows: list[_Row] = []
    for at, selection in enumerate(selections):
        if at in states:
            kind, groups = states[at]
            rows += [_Row(selection, key, kind, one, None) for key, one in groups]
        else:
            rows += [
                _Row(selection, key, "counter", one, totals[at].get(key))
                for key, one in counters[at]
            ]
    return rows, [selections[at] for at in never if at not in states]


def _draw(row: _Row, marks: list[Mark]) -> None:
    one, total = row.series, row.total
    ever = f" · total {total:,}" if total else ""  # counters of other programs have none
    title = f"{row.name} · every {output.span(one.precision)}"
    if not one:
        output.line(f"{title} · no samples are kept{ever}")
        output.line()
        return
    newest = f"newest {one.values[-1]:,}" + (" (running)" if one.partial else "")
    counted = f"{one.total:,} in {output.many(len(one), 'interval')}"
    output.line(f"{title} · {counted} · {newest}{ever}")
    output.block(chart.draw(one, output.width(), marks))
    _list(one, "COUNT")


def _draw_gauge(row: _Row, marks: list[Mark]) -> None:
    one = row.series
    title = f"{row.name} · {row.kind}, every {output.span(one.precision)}"
    values = [value for value in one.values if value is not None]
    if not values:
        output.line(f"{title} · no samples are kept")
        output.line()
        return
    low, high, newest = map(output.number_text, (min(values), max(values), values[-1]))
    spread = f"lowest {low} · highest {high} · newest {newest}"
    output.line(f"{title} · {output.many(len(values), 'sample')} · {spread}")
    output.block(chart.draw_gauge(one, output.width(), marks))
    _list(one, "VALUE")


def _list(one: Series[int] | Series[float | None], column: str) -> None:
    """List the newest samples."""
    output.line()
    cut = [(f"… ({len(one) - _LISTED} more)", "")] if len(one) > _LISTED else []
    rows = [
        (
            output.moment(s.start, one.precision),
            "" if s.value is None else output.number_text(s.value),
        )
        for s in one[-_LISTED:]
    ]
    output.table(["START (UTC)", column], cut + rows, right=[1])
    output.line()


def _as_dict(row: _Row) -> dict[str, object]:
    one = row.series
    return {
        "name": one.name,
        "labels": dict(zip(row.selection.by, row.key, strict=True)),
        "kind": row.kind,
        "window": one.window and asdict(one.window),
        "total": row.total,
        "samples": [[sample.start, sample.value] for sample in one],
    }
