"""names, series: names of series and their samples."""

import contextlib
import glob
import time
from typing import Annotated

import typer

from redmeter.cli import chart, output
from redmeter.cli.app import (
    NOT_FOUND,
    AsJson,
    Partly,
    Precision,
    Prefix,
    Url,
    command,
    fail,
    fail_where_left_out,
    opened,
    seconds,
)
from redmeter.cli.suggestions import suggestion
from redmeter.errors import InvalidSetting
from redmeter.reading import catalogue
from redmeter.reading.gauges import read_gauges
from redmeter.reading.marks import read_marks
from redmeter.reading.series import read_series, stored_totals
from redmeter.resolve import resolve_name
from redmeter.store import Store
from redmeter.types import Mark, Series

#: Samples listed below a chart.
_LISTED = 10
#: Kinds of series: plural as an option takes it, singular as it is shown.
_KINDS = {"counters": "counter", "gauges": "gauge", "histograms": "histogram"}


@command(
    name="names",
    epilog="Examples: redmeter names · redmeter names 'http_*' --json · "
    "redmeter names --kind histograms",
)
def names(
    pattern: Annotated[
        str, typer.Argument(help="*: any text, ?: one character, [ab]: a or b.")
    ] = "*",
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only counters, gauges or histograms.")
    ] = None,
    partly: Partly = False,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """List counters with their grand totals, gauges and histograms.

    A counter that only other programs or redmeter.book write has no grand total; in JSON, the
    total is null.
    """
    if kind is not None:
        kind = next((many for many, one in _KINDS.items() if one == kind), kind)
    if kind is not None and kind not in _KINDS:
        raise InvalidSetting("--kind", f"{kind!r:.40}: give one of {', '.join(_KINDS)}")
    if not pattern:
        raise InvalidSetting(
            "PATTERN", "is empty and matches nothing: omit it for all, or give one as 'http_*'"
        )
    with opened(url, prefix, reading=True, partly=partly) as store:
        rows: list[tuple[str, str, int | None]] = []
        for each in _KINDS if kind is None else [kind]:
            rows += _named(store, pattern, each)
    rows.sort(key=lambda row: row[:2])
    if json:
        listed = [{"name": name, "kind": kind, "total": n} for name, kind, n in rows]
        output.as_json({"names": listed, "missing": store.skipped()})
    elif rows:
        lines = [(name, kind, "" if total is None else total) for name, kind, total in rows]
        output.table(["NAME", "KIND", "TOTAL"], lines, right=[2])
    if not rows:
        fail_where_left_out(store)
    if not rows and pattern == "*" and kind:
        fail(f"there are no {kind} yet", NOT_FOUND)
    if not rows and pattern == "*":
        fix = "record metrics in your application, or read an access log: redmeter replay FILE"
        fail("nothing is recorded yet", NOT_FOUND, fix)
    if not rows:
        what = kind.removesuffix("s") if kind else "counter, gauge or histogram"
        fail(f"no {what} matches {_shortened(pattern)}", NOT_FOUND, "redmeter names lists all")


def _shortened(text: str) -> str:
    """Truncate a text for an error, as invalid names are truncated."""
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text) - 60} more)"


def _named(store: Store, pattern: str, kind: str) -> list[tuple[str, str, int | None]]:
    """Return name, kind and grand total of all series of a kind that match.

    Gauges and histograms have no grand total, and neither have counters that only other programs
    or redmeter.book write.
    """
    found = catalogue.read_names(
        store, pattern, gauges=kind == "gauges", histograms=kind == "histograms"
    )
    totals: dict[str, int] = {}
    for at in range(0, len(found) if kind == "counters" else 0, 5_000):
        totals |= stored_totals(store, found[at : at + 5_000])
    return [(name, _KINDS[kind], totals.get(name)) for name in found]


@command(
    name="series",
    epilog="Examples: redmeter series hits -p 1min · redmeter series hits sales -p 1h --json · "
    'redmeter series \'http_requests{method="GET",route="/",status="2xx"}\' -p 1d',
)
def series(
    name: Annotated[list[str], typer.Argument(help="Counters or gauges, with their labels.")],
    precision: Precision = "60",
    url: Url = None,
    prefix: Prefix = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Redraw every second, until Ctrl-C.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show the samples of counters and gauges, oldest first.

    Draws charts on a terminal, and prints columns elsewhere.
    """
    width = seconds(precision)
    if watch and (json or not output.is_terminal()):
        raise InvalidSetting("--watch", "draws on a terminal; omit it here")
    with opened(url, prefix, reading=True) as store:
        wanted = [resolve_name(store, each) for each in name]
        if watch:
            with contextlib.suppress(KeyboardInterrupt):  # the usual end
                while True:
                    output.clear()
                    _show(store, wanted, width, json)
                    time.sleep(1.0)
            return
        missing = _show(store, wanted, width, json)
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            text = f"nothing is stored under {missing[0]}{more}"
            fail(text, NOT_FOUND, suggestion(store, missing[0]))


def _show(store: Store, names: list[str], precision: int, json: bool) -> list[str]:
    """Show series; return the names under which nothing was ever stored."""
    found = read_series(store, names, precision)
    totals = stored_totals(store, names)
    never = [n for n, one in found.items() if not one and not totals.get(n)]
    gauges = _gauges(store, never, precision)
    missing = [n for n in never if n not in gauges]
    if json:
        listed = [
            _as_dict(gauges[name], "gauge", None)
            if name in gauges
            else _as_dict(one, "counter", totals.get(name))
            for name, one in found.items()
        ]
        output.as_json({"series": listed})
    elif output.is_terminal():
        starts = [one.start for one in [*found.values(), *gauges.values()] if one]
        marks = read_marks(store, since=min(starts)) if starts else []
        for name, one in found.items():
            if name in gauges:
                _draw_gauge(gauges[name], marks)
            elif name not in missing:
                _draw(one, totals.get(name), marks)
    elif len(missing) < len(found):
        all_of = [gauges.get(name, one) for name, one in found.items()]
        rows = [
            (one.name, s.start, "" if s.value is None else s.value) for one in all_of for s in one
        ]
        output.table(["NAME", "START", "VALUE" if gauges else "COUNT"], rows)
    return missing


def _gauges(store: Store, names: list[str], precision: int) -> dict[str, Series[float | None]]:
    """Return the names that are gauges, also those without samples of this precision."""
    if not names:
        return {}
    found = read_gauges(store, names, precision)
    return {
        name: one
        for name, one in found.items()
        if one or catalogue.read_names(store, glob.escape(name), gauges=True)
    }


def _draw(one: Series[int], total: int | None, marks: list[Mark]) -> None:
    ever = f" · total {total:,}" if total else ""  # counters of other programs have none
    title = f"{one.name} · every {output.span(one.precision)}"
    if not one:
        output.line(f"{title} · no samples are kept{ever}")
        output.line()
        return
    newest = f"newest {one.values[-1]:,}" + (" (running)" if one.partial else "")
    counted = f"{one.total:,} in {output.many(len(one), 'interval')}"
    output.line(f"{title} · {counted} · {newest}{ever}")
    output.block(chart.draw(one, output.width(), marks))
    _list(one, "COUNT")


def _draw_gauge(one: Series[float | None], marks: list[Mark]) -> None:
    title = f"{one.name} · gauge, every {output.span(one.precision)}"
    values = [value for value in one.values if value is not None]
    if not values:
        output.line(f"{title} · no samples are kept")
        output.line()
        return
    low, high, newest = map(output.number, (min(values), max(values), values[-1]))
    spread = f"lowest {low} · highest {high} · newest {newest}"
    output.line(f"{title} · {output.many(len(values), 'sample')} · {spread}")
    output.block(chart.draw_gauge(one, output.width(), marks))
    _list(one, "VALUE")


def _list(one: Series[int] | Series[float | None], column: str) -> None:
    """List the newest samples."""
    output.line()
    cut = [(f"… ({len(one) - _LISTED} more)", "")] if len(one) > _LISTED else []
    rows = [
        (output.moment(s.start, one.precision), "" if s.value is None else output.number(s.value))
        for s in one[-_LISTED:]
    ]
    output.table(["START (UTC)", column], cut + rows, right=[1])
    output.line()


def _as_dict(
    one: Series[int] | Series[float | None], kind: str, total: int | None
) -> dict[str, object]:
    return {
        "name": one.name,
        "kind": kind,
        "precision": one.precision,
        "total": total,
        "partial": one.partial,
        "samples": [[sample.start, sample.value] for sample in one],
    }
