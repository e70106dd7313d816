"""top: what happens most often, takes longest or fails most."""

import contextlib
import glob
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

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
from redmeter.cli.completion import complete_keys, complete_names
from redmeter.cli.failure import wrong_kind
from redmeter.cli.selectors import (
    LabelOption,
    Last,
    Since,
    Until,
    labels_option,
    length_of,
    window_options,
)
from redmeter.cli.suggestions import label_values, series_of_name, suggestion
from redmeter.errors import InvalidSetting, LimitExceeded, UnknownLabel, WrongKind
from redmeter.queries import Queries
from redmeter.reading.ranking import CANDIDATES, MAX_CANDIDATES, MAX_RANKED_HISTOGRAMS, Order
from redmeter.results.series import CoveredWindow, Ranked, Ranking
from redmeter.store import Store
from redmeter.types import RANKED_INTERVALS, RANKED_ROWS

#: Columns of a terminal that a ranking with bars needs.
_ROOM_FOR_BARS = 60
#: Omitted groups that are named.
_NAMED = 5


@command(
    name="top",
    epilog="Examples: redmeter top · redmeter top http_requests --by route -p 1h --last 24h · "
    "redmeter top http_seconds --by route --order p95 · redmeter top '*_seconds' --order total · "
    "redmeter top http_requests --by route --failing status=5xx · redmeter top 'sales*' -p 1d · "
    "redmeter top http_seconds --by route --order p95 --since 3h --until 2h",
)
def top_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="With --by LABEL: a name without labels. Otherwise a pattern; default: all.",
            autocompletion=complete_names,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="<label>",
            help="A label to group by.",
            autocompletion=complete_keys,
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            "--order",
            help="What to rank by: count; for histograms also total, mean, p50, p95, p99.9.",
        ),
    ] = None,
    failing: Annotated[
        list[str] | None,
        typer.Option(
            "--failing",
            metavar="<label=value>",
            help="Rank by failures: the label that marks them. Repeatable.",
        ),
    ] = None,
    where: LabelOption = None,
    precision: AnyPrecision = None,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    limit: Annotated[int, typer.Option("--limit", "-l", help="Number of rows.")] = RANKED_ROWS,
    best_effort: BestEffort = False,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Rank counters, histograms, or the values of a label.

    Sums the last hour, including the current interval, or a window; with a precision alone the
    newest 60 intervals, or all that are kept if fewer.
    For percentiles, it reads four candidates per row, chosen by mean and spread; a note warns if
    others may rank higher. With --failing, exits with 0 if nothing failed.
    """
    width = None if precision is None else precision_seconds(precision)
    wrong, only = labels_option(failing, "--failing", "status=5xx"), labels_option(where)
    if wrong and order is not None:
        raise InvalidSetting("--failing", f"ranks by failures; omit --order {order}")
    if by is not None and (not by or name is None):
        missing = "name a counter" if by else "name a label"
        raise InvalidSetting("--by", f"{missing}, e.g. redmeter top http_requests --by route")
    if order == "failing":
        raise InvalidSetting("--order", "name the failures instead, e.g. --failing status=5xx")
    order = "failing" if wrong else Order.parse((order or "count").lower()).word
    name = "*" if name is None else name
    length_of(last, since, until, width)
    with opened_store(url, prefix, reading=True, best_effort=best_effort) as store:
        options = window_options(last, since, until, width, store.clock.wall())
        try:
            rows = Queries(store).top(
                name,
                precision=width,
                by=by,
                limit=limit,
                order=order,
                labels=only,
                failing=wrong,
                **options,
            )
        except UnknownLabel:
            fail_where_left_out(store)  # a series there may have the label
            raise
        except WrongKind as error:
            if error.kind == "gauge":  # which is not ranked
                raise
            fix = f"redmeter top {shlex.quote(name)}" + (f" --by {shlex.quote(by)}" if by else "")
            fix += " --order p95" if error.kind == "histogram" else ""
            raise wrong_kind(error, fix) from None
        assert rows.window is not None, "it was read"
        shown, why, covered = list(rows), "", rows.window
        if not shown:
            why = _why_nothing(store, name, by, order, only, wrong)
        if json:
            output.print_json(_as_dict(rows, shown, store.skipped()))
        elif shown:
            if output.is_terminal():
                output.line(f"{name}{f' by {by}' if by else ''} · {output.window_text(covered)}")
                output.line()
            _show(rows, name, by, order, limit)
            output.note_missing([covered])
        if not shown:
            fail_where_left_out(store)
            if why:
                fail(why, NOT_FOUND)
            window = output.window_text(covered)
            observed = order not in ("count", "failing")
            farther = _farther(store, covered, observed=observed)
            if wrong:
                output.note(_nothing_failed(store, name, wrong, window, farther, rows.groups))
                return
            fixes = [*farther, suggestion(store, name, histograms=observed)]
            fail(f"nothing was recorded in the {window}", NOT_FOUND, "; ".join(fixes))


def _why_nothing(
    store: Store,
    name: str,
    label: str | None,
    order: str,
    where: Mapping[str, str],
    failing: Mapping[str, str],
) -> str:
    """Return why no window has anything to rank; "" if there is no such reason."""
    if glob.escape(name) != name:
        return _why_nothing_matches(store, name) if failing else ""
    try:
        available = series_of_name(store, name)
    except LimitExceeded:
        return ""
    observed = order not in ("count", "failing")
    candidates = available.observed if observed else available.counters
    if order == "count" and not (candidates and where.keys() <= label_values(candidates).keys()):
        candidates = available.observed or candidates
    quoted = shlex.quote(name)
    if not candidates:
        return f"nothing is stored under {name}; {suggestion(store, name, histograms=observed)}"
    labels = label_values([*available.counters, *available.observed])
    for key, value in where.items():
        values = labels.get(key, set())
        if value not in values:
            return f"no series of {name} has {key}={value}; values: {_few(values)}"
    if label is None and name not in candidates:
        words = f" --order {order}" if observed else ""
        for option, given in (("--failing", failing), ("--label", where)):
            words += "".join(f" {option} {shlex.quote(f'{k}={v}')}" for k, v in given.items())
        first = next(iter(label_values(candidates)))
        return (
            f"{name} has labels: redmeter top {quoted} --by {first}{words}, or "
            f"redmeter top {shlex.quote(name + '{*')}{words}"
        )
    return ""


def _why_nothing_matches(store: Store, pattern: str) -> str:
    """Return that no counter matches a pattern; "" if some do."""
    try:
        names = Queries(store).names(pattern)
    except LimitExceeded:
        return ""
    if names:
        return ""
    what = "nothing is recorded yet" if pattern == "*" else f"no counter matches {pattern}"
    return f"{what}; {suggestion(store, pattern)}"


def _nothing_failed(
    store: Store,
    name: str,
    failing: Mapping[str, str],
    window: str,
    farther: Sequence[str],
    groups: int,
) -> str:
    """Return that nothing failed, and the known values, because the given one may be mistyped."""
    text = [f"nothing failed in the {window}"]
    if not groups:
        text += ["nothing was counted in it at all", *farther]
    with contextlib.suppress(LimitExceeded):
        patterned = glob.escape(name) != name
        names = Queries(store).names(name) if patterned else series_of_name(store, name).counters
        labels = label_values(names)
        for key, value in failing.items():
            values = labels.get(key, set())
            if value not in values:
                text.append(f"no series has {key}={value} so far; values: {_few(values)}")
    return "; ".join(text)


def _few(values: Iterable[str]) -> str:
    listed = sorted(values)
    return ", ".join(listed[:_NAMED]) + (" …" if len(listed) > _NAMED else "")


def _farther(store: Store, window: CoveredWindow, *, observed: bool) -> list[str]:
    """Return which coarser precision reaches further back, if any."""
    width, intervals = window.precision, len(window.starts)
    view, _ = store.read()
    kept = view.histograms if observed else view.retention
    reach = {p: p * min(RANKED_INTERVALS, samples) for p, samples in kept.items()}
    farthest = max(reach, key=lambda precision: reach[precision])
    if farthest <= width or reach[farthest] <= intervals * width:
        return []
    return [f"-p {output.span(farthest)} looks further back"]


def _as_dict(rows: Ranking, shown: Sequence[Ranked], missing: list[str]) -> dict[str, object]:
    return {
        "rows": [asdict(row) for row in shown],
        "groups": rows.groups,
        "examined": rows.examined,
        "complete": rows.complete and not missing,
        "left_out": rows.left_out,
        "intervals": rows.intervals,
        "window": rows.window and asdict(rows.window),
        "missing": missing,
    }


def _show(rows: Ranking, name: str, by: str | None, order: str, limit: int) -> None:
    """Print a ranking, its order as the first column."""
    columns = [by.upper() if by else "NAME"]
    columns += {
        "count": ["COUNT", "SHARE"],
        "failing": ["FAILED", "COUNT", "SHARE"],
        "total": ["TOTAL", "COUNT", "SHARE"],
    }.get(order, [order.upper(), "COUNT"])
    lines = [_line(row, name, by, order)[: len(columns)] for row in rows]
    if output.is_terminal() and output.width() >= _ROOM_FOR_BARS:
        columns.append("")
        for line, row in zip(lines, rows, strict=True):
            line.append(chart.bar(row.value / rows[0].value if rows[0].value > 0 else 0.0))
    output.table(columns, lines, right=[at for at, text in enumerate(columns) if at and text])
    if rows.examined < rows.groups:
        output.note(_compared(rows, order, limit))
    if rows.left_out:
        names = ["(without)" if key is None else key for key in rows.left_out[:_NAMED]]
        more = len(rows.left_out) - _NAMED
        rest = f" … ({more:,} more)" if more > 0 else ""
        output.note(
            f"omitted: {', '.join(names)}{rest}: percentiles are computed for at most "
            f"{MAX_RANKED_HISTOGRAMS:,} series; add --label to select fewer"
        )


def _compared(rows: Ranking, order: str, limit: int) -> str:
    """Return the note for a ranking that compared a part of the groups."""
    text = f"compared the {order} of {rows.examined:,} of {rows.groups:,}"
    if order in ("total", "mean"):
        return f"{text}: the sums of the others may exceed 1.8e308, the largest number"
    if rows.complete:
        return f"{text}: by mean and spread, none of the others can rank above these"
    text += ", those that can be highest by mean and spread; others may be higher"
    if rows.examined + len(rows.left_out) < rows.groups and limit * CANDIDATES < MAX_CANDIDATES:
        text += "; a higher --limit compares more"
    return text


def _line(row: Ranked, name: str, by: str | None, order: str) -> list[output.Cell]:
    key = "(without)" if row.key is None else row.key
    share = f"{row.share:.1%}"
    if order == "count":
        return [key, row.count, share]
    if order == "failing":
        return [key, row.value, row.count, share]
    value: output.Cell = row.value
    if output.is_terminal():
        value = output.writer_for(name if by else key)(row.value)
    return [key, value, row.count, share]
