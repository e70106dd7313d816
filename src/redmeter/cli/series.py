"""names, series: names of series and their samples."""

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
    BestEffort,
    Prefix,
    Url,
    command,
    fail,
    fail_where_left_out,
    opened_store,
    precision_seconds,
)
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
from redmeter.health.check import size_text
from redmeter.maintenance.sizes import sizes_by_name
from redmeter.queries import Queries
from redmeter.queries.arguments import check_aggregate
from redmeter.queries.source import FromStore, window_kept
from redmeter.reading.aggregates import read_counter, read_gauge, read_total
from redmeter.reading.names import matching
from redmeter.reading.samples import read_totals
from redmeter.reading.selection import GroupKey, name_of
from redmeter.results.series import Series
from redmeter.store import Store
from redmeter.store.query import Query, run_query, together
from redmeter.stored.families import SERIES_KINDS, STATES
from redmeter.stored.keys import Kept
from redmeter.types import Mark, Selection, Window

#: Samples listed below a chart.
_LISTED = 10


@command(
    name="names",
    epilog="Examples: redmeter names · redmeter names 'http_*' --json · "
    "redmeter names --kind histogram · redmeter names --by-size",
)
def names_command(
    pattern: Annotated[
        str, typer.Argument(help="*: any text, ?: one character, [ab]: a or b.")
    ] = "*",
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only this kind: counter, gauge or histogram.")
    ] = None,
    by_size: Annotated[
        bool,
        typer.Option("--by-size", help="Names without labels, the most memory in Redis first."),
    ] = False,
    best_effort: BestEffort = False,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """List counters with their grand totals, gauges and histograms.

    A counter that only other programs or redmeter.book write has no grand total; in JSON, the
    total is null.

    With --by-size, also loggers and exceptions, and an estimate of the memory of all series of a
    name, from a sample of 1,000 entries of each index.
    """
    if kind is not None and kind not in SERIES_KINDS:
        raise InvalidSetting("--kind", f"{kind!r:.40}: give one of {', '.join(SERIES_KINDS)}")
    if not pattern:
        raise InvalidSetting(
            "PATTERN", "is empty and matches nothing: omit it for all, or give one as 'http_*'"
        )
    if by_size:
        _show_by_size(pattern, kind, best_effort, url, prefix, json)
        return
    with opened_store(url, prefix, reading=True, best_effort=best_effort) as store:
        rows: list[tuple[str, str, int | None]] = []
        for each in SERIES_KINDS if kind is None else [kind]:
            rows += _named(store, pattern, each)
    rows.sort(key=lambda row: row[:2])
    if json:
        listed = [{"name": name, "kind": kind, "total": n} for name, kind, n in rows]
        output.print_json({"names": listed, "missing": store.skipped()})
    elif rows:
        lines = [(name, kind, "" if total is None else total) for name, kind, total in rows]
        output.table(["NAME", "KIND", "TOTAL"], lines, right=[2])
    if not rows:
        fail_where_left_out(store)
    if not rows and pattern == "*" and kind:
        fail(f"there are no {kind}s yet", NOT_FOUND)
    if not rows and pattern == "*":
        fix = "record metrics in your application, or read an access log: redmeter replay FILE"
        fail("nothing is recorded yet", NOT_FOUND, fix)
    if not rows:
        *others, last = SERIES_KINDS
        what = kind or f"{', '.join(others)} or {last}"
        fail(f"no {what} matches {_shortened(pattern)}", NOT_FOUND, "redmeter names lists all")


def _show_by_size(
    pattern: str,
    kind: str | None,
    best_effort: bool,
    url: str | None,
    prefix: str | None,
    json: bool,
) -> None:
    with opened_store(url, prefix, reading=True, best_effort=best_effort) as store:
        sizes = sizes_by_name(store)
        missing = store.skipped()
    whole = sum(each.bytes for each in sizes)
    named = set(matching((each.name for each in sizes), pattern))
    chosen = [each for each in sizes if kind in (None, each.kind) and each.name in named]
    if json:
        listed = [each._asdict() for each in chosen]
        output.print_json({"names": listed, "bytes": whole, "missing": missing})
    elif chosen:
        rows = [
            (
                each.name,
                each.kind,
                f"{each.series:,}",
                size_text(each.bytes),
                f"{each.bytes / whole:.0%}",
            )
            for each in chosen
        ]
        output.table(["NAME", "KIND", "SERIES", "MEMORY", "SHARE"], rows, right=[2, 3, 4])
    else:
        fail("nothing is recorded yet" if not sizes else "no name matches", NOT_FOUND)


def _shortened(text: str) -> str:
    """Truncate a text for an error, as invalid names are truncated."""
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text) - 60} more)"


def _named(store: Store, pattern: str, kind: str) -> list[tuple[str, str, int | None]]:
    """Return name, kind and grand total of all series of a kind that match.

    Gauges and histograms have no grand total, and neither have counters that only other programs
    or redmeter.book write.
    """
    names = Queries(store).names(pattern, kind=kind)
    totals: dict[str, int] = {}
    for at in range(0, len(names) if SERIES_KINDS[kind].has_total else 0, 5_000):
        totals |= read_totals(store, names[at : at + 5_000])
    return [(name, kind, totals.get(name)) for name in names]


@command(
    name="series",
    epilog="Examples: redmeter series hits -p 1m · redmeter series hits sales -p 1h --json · "
    "redmeter series http_requests --by route --label method=GET · "
    "redmeter series queue_length --aggregate max -p 1d",
)
def series_command(
    name: Annotated[
        list[str], typer.Argument(help="Counters or gauges; labels in braces are a filter.")
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
            (row.name, sample.start, "" if sample.value is None else sample.value)
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
