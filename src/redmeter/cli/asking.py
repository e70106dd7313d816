"""names, series, top: what was counted."""

import dataclasses
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
from redmeter.errors import InvalidSetting
from redmeter.model import Series
from redmeter.names import canonical, parse_name
from redmeter.reading import catalogue, rankings
from redmeter.reading.series import read_series, read_totals
from redmeter.store import Store

#: Samples listed below a chart, and names suggested for one that is not there.
_LISTED, _SUGGESTED = 10, 5


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
    """List the counters, with their grand totals."""
    with opened(url, prefix) as store:
        found = catalogue.read_names(store, pattern)
        totals: dict[str, int] = {}
        for at in range(0, len(found), 5_000):
            totals |= read_totals(store, found[at : at + 5_000])
    if json:
        output.as_json([{"name": name, "total": totals[name]} for name in found])
    elif found:
        output.table(["NAME", "TOTAL"], [(name, totals[name]) for name in found])
    else:
        what = "nothing is counted yet" if pattern == "*" else f"no counter matches {pattern}"
        fail(f"{what}; try: redmeter names, or redmeter replay access.log", NOT_FOUND)


@command(
    name="series",
    epilog="Examples: redmeter series hits -p 1min · redmeter series hits sales -p 1h --json · "
    'redmeter series \'http_requests{method="GET",route="/",status="2xx"}\' -p 1d',
)
def series(
    name: Annotated[list[str], typer.Argument(help="One or more counters, labels included.")],
    precision: Precision = "60",
    url: Url = None,
    prefix: Prefix = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Draw again every second, until Ctrl-C.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show the kept samples of counters, oldest first.

    On a terminal they are drawn; elsewhere they are columns.
    """
    width = seconds(precision)
    wanted = [canonical(each) for each in name]
    if watch and (json or not output.is_terminal()):
        raise InvalidSetting("--watch", "draws on a terminal; leave it out here")
    with opened(url, prefix) as store:
        while True:
            found = read_series(store, wanted, width)
            totals = read_totals(store, wanted)
            if watch:
                output.clear()
            if json:
                output.as_json([_as_dict(one, totals[one.name]) for one in found.values()])
            elif output.is_terminal():
                for one in found.values():
                    _draw(one, totals[one.name])
            else:
                rows = [(one.name, s.start, s.value) for one in found.values() for s in one]
                output.table(["NAME", "START", "COUNT"], rows)
            if not watch:
                break
            time.sleep(1.0)
        missing = [one for one, samples in found.items() if not samples and not totals[one]]
        if missing:
            fail(
                f"nothing is counted under {missing[0]}{_suggestion(store, missing[0])}", NOT_FOUND
            )


@command(
    name="top",
    epilog="Examples: redmeter top · redmeter top http_requests --by route -p 1h --slices 24 · "
    "redmeter top 'sales*' -p 1d",
)
def top(
    name: Annotated[
        str, typer.Argument(help="With --by: a name without labels. Else a pattern of names.")
    ] = "*",
    by: Annotated[str | None, typer.Option("--by", help="Add up by this label.")] = None,
    precision: Precision = "60",
    slices: Annotated[int, typer.Option("--slices", "-n", help="How many newest slices.")] = 60,
    limit: Annotated[int, typer.Option("--limit", "-l", help="How many rows.")] = 10,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Rank counters, or the values of a label, by count.

    What is added up are the newest slices, the running one included.
    """
    width = seconds(precision)
    with opened(url, prefix) as store:
        rows = rankings.rank(store, name, width, by=by, slices=slices, limit=limit)
        if json:
            output.as_json([dataclasses.asdict(row) for row in rows])
        elif rows:
            heading = by.upper() if by else "NAME"
            last = [""] if output.is_terminal() else []
            output.table(
                [heading, "COUNT", "SHARE", *last],
                [
                    (
                        "(without)" if row.key is None else row.key,
                        row.count,
                        f"{row.share:.1%}",
                        *([chart.bar(row.share)] if last else []),
                    )
                    for row in rows
                ],
            )
        else:
            window = f"the newest {slices} slices of {output.span(width)}"
            fail(f"nothing happened in {window}{_suggestion(store, name)}", NOT_FOUND)


def _draw(one: Series, total: int) -> None:
    kept = f"every {output.span(one.precision)}"
    if not one:
        output.line(f"{one.name} · {kept} · no samples are kept · total {total:,}")
        return
    newest = f"newest {one.values[-1]:,}" + (" (running)" if one.partial else "")
    output.line(
        f"{one.name} · {kept} · {one.total:,} in {len(one)} slices · {newest} · total {total:,}"
    )
    output.block(chart.draw(one, output.width()))
    output.line()
    if len(one) > _LISTED:
        output.line(f"… ({len(one) - _LISTED} more)")
    output.table(
        ["START (UTC)", "COUNT"],
        [(output.moment(s.start, one.precision), s.value) for s in one[-_LISTED:]],
    )
    output.line()


def _as_dict(one: Series, total: int) -> dict[str, object]:
    return {
        "name": one.name,
        "precision": one.precision,
        "total": total,
        "partial": one.partial,
        "samples": [[sample.start, sample.value] for sample in one],
    }


def _suggestion(store: Store, name: str) -> str:
    """Return what a user may have meant: other label sets, or names that begin alike."""
    base = parse_name(name).base if "{" in name and "*" not in name else name.rstrip("*")
    alike = [found for found in catalogue.read_names(store) if found.startswith(base[:4])]
    labelled = [found for found in alike if found.startswith(base + "{")]
    some = (labelled or alike)[:_SUGGESTED]
    return "; there is: " + ", ".join(some) if some else "; redmeter names lists what there is"
