"""exceptions: recorded exceptions, grouped by type and origin."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from redmeter.cli import chart, output
from redmeter.cli.app import (
    NOT_FOUND,
    AsJson,
    Prefix,
    Url,
    command,
    fail,
    opened_store,
    precision_seconds,
)
from redmeter.cli.selectors import Last, Since, Until, window_options
from redmeter.errors import InvalidSetting
from redmeter.queries import Queries
from redmeter.reading.exceptions import (
    DEFAULT_LIMIT,
    EXCEPTION_ORDERS,
    MAX_LIMIT,
)
from redmeter.results.exceptions import ExceptionShare, ExceptionSummaries, ExceptionSummary
from redmeter.stored.exception import INTERVALS

#: Characters of an ID in a list, and of a message on a terminal.
_ID, _MESSAGE = 8, 100
#: What stands for a line break in a list.
_BREAK = " ⏎ "
_WIDEST = max(INTERVALS)


@command(
    name="exceptions",
    epilog="Examples: redmeter exceptions · redmeter exceptions --since 1h --order first · "
    "redmeter exceptions --route /checkout · redmeter exceptions 9f86d081 · "
    "redmeter exceptions --since 7d --json",
)
def exceptions_command(
    group: Annotated[
        str | None, typer.Argument(help="ID of a group, or its beginning; default: list groups.")
    ] = None,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    precision: Annotated[
        str | None,
        typer.Option("--precision", "-p", help="Interval width: 5m, 1h, 1d; default: by window."),
    ] = None,
    route: Annotated[
        str | None, typer.Option("--route", help="Only groups seen on this route, or in this task.")
    ] = None,
    order: Annotated[
        str,
        typer.Option("--order", help="By number, last or first occurrence: count, last, first."),
    ] = "count",
    limit: Annotated[
        int, typer.Option("--limit", "-l", min=1, max=MAX_LIMIT, help="Number of groups.")
    ] = DEFAULT_LIMIT,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Show recorded exceptions, grouped by type and place.

    A group has the exceptions of one type that came through the same functions and line of the
    application.
    With an ID, shows the routes, releases and the traceback of the newest exception of that group.
    The window is the last 24 hours by default; intervals of five minutes are kept for a day, hours
    for 254 hours, days for 90 days. Exits with 0 if there are none.
    """
    if order not in EXCEPTION_ORDERS:
        raise InvalidSetting("--order", f"{order!r:.40}: give one of {', '.join(EXCEPTION_ORDERS)}")
    width = None if precision is None else precision_seconds(precision)
    window = window_options(last, since, until, width, time.time()) | {"precision": width}
    with opened_store(url, prefix, reading=True) as store:
        queries = Queries(store)
        if group is None:
            result = queries.exceptions(**window, route=route, order=order, limit=limit)
            if json:
                output.print_json(dataclasses.asdict(result))
            else:
                _list(result)
        else:
            one = queries.exception(_whole(queries, group), **window)
            if one is None:
                fail(f"there is no group {group}", NOT_FOUND, "redmeter exceptions lists all")
            elif json:
                output.print_json(dataclasses.asdict(one))
            else:
                _show(one)


def _whole(queries: Queries, group: str) -> str:
    """Return the ID that begins with a text; the text itself if there is none."""
    if len(group) >= 16:
        return group
    groups = queries.exceptions(since=0.0, precision=_WIDEST, limit=MAX_LIMIT).groups
    matching = [one.id for one in groups if group and one.id.startswith(group.lower())]
    if len(matching) > 1:
        raise InvalidSetting("GROUP", f"several groups begin with {group}: {', '.join(matching)}")
    if not matching:
        fail(
            f"there is no group {group!r:.40}",
            NOT_FOUND,
            "redmeter exceptions --since 90d lists all",
        )
    return matching[0]


def _list(result: ExceptionSummaries) -> None:
    if not result.groups:
        start = output.moment(result.start, result.precision)
        output.note(
            f"no exceptions since {start} UTC; redmeter exceptions --since 7d looks further"
        )
        return
    columns = ["ID", "COUNT", "FIRST (UTC)", "LAST (UTC)"]
    if output.is_terminal():
        output.table([*columns, "EXCEPTION"], map(_terminal_row, result.groups), whole=(0, 2, 3))
    else:
        output.table([*columns, "NEW", "TYPE", "PLACE", "MESSAGE"], map(_row, result.groups))
    more = result.found - len(result.groups)
    if more:
        output.note(f"… ({output.many(more, 'more group')}; --limit {result.found} shows all)")
    if result.other:
        output.note(f"{output.many(result.other, 'exception')} beyond the limit of groups")
    if result.coarse:
        text = f"{output.many(result.coarse, 'exception')} grouped only by type and function"
        output.note(f"{text}: there was no room for more groups; see redmeter doctor")


def _row(one: ExceptionSummary) -> Sequence[Any]:
    ends = output.time_text(one.first, 60), output.time_text(one.last, 60)
    new, message = "new" if one.is_new else "", one.message.replace("\n", _BREAK)
    return (one.id, one.count, *ends, new, one.type, one.place, message)


def _terminal_row(one: ExceptionSummary) -> Sequence[Any]:
    """Return the cells of a row in 80 columns: three parts of a group share the last one."""
    first = Text(output.moment(one.first, 60), style="bold red" if one.is_new else "")
    name = one.type.rpartition(".")[2] + (f" at {one.place}" if one.place else "")
    message = one.message.partition("\n")[0][:_MESSAGE]
    return (
        one.id[:_ID],
        one.count,
        first,
        output.moment(one.last, 60),
        f"{name}: {message}" if message else name,
    )


def _show(one: ExceptionSummary) -> None:
    output.line(f"{one.type}: {one.message}" if one.message else one.type)
    if one.place:
        output.line(f"{one.place} ({one.function})")
    if one.coarse:
        output.line("there was no room for more groups: all of this type and function")
    output.line(
        f"{output.many(one.count, 'exception')} in the window, {one.total:,} ever; "
        f"first {output.time_text(one.first, zone=True)}, "
        f"last {output.time_text(one.last, zone=True)}; ID {one.id}"
    )
    if output.is_terminal() and one.count:
        output.line()
        output.block(chart.draw(one.series, output.width()))
    for title, shares in (("ROUTE OR TASK", one.routes), ("RELEASE", one.releases)):
        if shares:
            output.line()
            output.table([title, "COUNT", "FIRST (UTC)", "LAST (UTC)"], map(_share, shares))
    if one.traceback:
        output.line()
        for line in one.traceback.splitlines():
            output.line(line)


def _share(share: ExceptionShare) -> Sequence[Any]:
    ends = (output.time_text(share.first, 60), output.time_text(share.last, 60))
    return (share.name, share.count, *ends)
