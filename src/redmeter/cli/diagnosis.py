"""status, explain: whether all is as usual, and what accounts for a rise or a fall."""

from collections.abc import Sequence
from typing import Annotated

import typer

from redmeter.analysis.comparing.sentences import change_text, value_text
from redmeter.cli import output
from redmeter.cli.app import (
    NOT_FOUND,
    AsJson,
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
    LabelOption,
    Last,
    Since,
    Until,
    labels_option,
    length_of,
    selection_of,
    time_option,
    window_options,
)
from redmeter.cli.suggestions import suggestion
from redmeter.errors import InvalidSetting
from redmeter.queries import Queries
from redmeter.queries.arguments import explanation_of
from redmeter.reading.diagnosis.explain import read_explanation
from redmeter.reading.diagnosis.windows import BASELINES
from redmeter.results.explanation import ChangedGroup, Check, Explanation, LogPattern

#: Groups of a label that are listed on a terminal.
_LISTED = 6

_COLUMNS = ("LABEL", "VALUE", "BEFORE", "NOW", "CHANGE", "SHARE", "CAUSE")


@command(
    name="status",
    epilog="Exit codes: 0 as usual or unusual, 1 too little data to compare. "
    "Examples: redmeter status · redmeter status --json",
)
def status_command(url: Url = None, prefix: Prefix = None, json: AsJson = False) -> None:
    """Show whether the last five minutes were as usual.

    Compares requests, error rate and p95 response time of the last five complete minutes with their
    expected ranges, and names the route and the release that an unusual value began with.
    """
    with opened_store(url, prefix, reading=True) as store:
        result = Queries(store).status()
        if json:
            output.print_json(output.plain(result))
        elif output.is_terminal():
            output.line(result.sentence)
            output.line()
            output.table(
                ["", "NOW", "EXPECTED RANGE", ""], [_check_cells(check) for check in result.checks]
            )
        else:
            output.table(
                ["MEASURE", "STATE", "VALUE", "LOW", "HIGH"],
                [
                    [
                        _measure(check),
                        check.state,
                        *("" if v is None else v for v in (check.value, check.low, check.high)),
                    ]
                    for check in result.checks
                ],
            )
        if result.state == "unknown":
            fail(result.sentence.removesuffix("."), NOT_FOUND)


@command(
    name="explain",
    epilog="Exit codes: 0 compared, 1 no data or not kept. "
    "Examples: redmeter explain http_requests --last 15m · "
    "redmeter explain http_requests --failing status=5xx --since 30m · "
    "redmeter explain http_request_seconds --last 1h --against yesterday --json",
)
def explain_command(
    name: Annotated[
        str,
        typer.Argument(
            help="A counter or a histogram; labels filter.", autocompletion=complete_names
        ),
    ],
    since: Since = None,
    until: Until = None,
    last: Last = None,
    against: Annotated[
        str,
        typer.Option(
            "--against",
            help="Compare with: previous (the window before), yesterday, last-week; or START/END.",
        ),
    ] = "previous",
    precision: Annotated[
        str | None,
        typer.Option("--precision", "-p", help="Interval width. Default: the finest that is kept."),
    ] = None,
    label: LabelOption = None,
    failing: Annotated[
        list[str] | None,
        typer.Option(
            "--failing",
            metavar="<label=value>",
            help="Explain the share of events with this label. Repeatable.",
        ),
    ] = None,
    timezone: Timezone = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Show which routes, labels or messages account for a change.

    Lists routes and label values, log patterns, exceptions, marks and time in the database. A
    counter is explained by its count, with --failing by its error rate, a histogram by its p95.
    Without a window, the last 15 minutes.
    """
    width = None if precision is None else precision_seconds(precision)
    length_of(last, since, until, width)
    with opened_store(url, prefix, reading=True, timezone=timezone) as store:
        now = store.clock.wall()
        options = window_options(last, since, until, width, now)
        request = explanation_of(
            selection_of(store, name, label),
            **options,
            against=_against(against, now),
            precision=width,
            failing=labels_option(failing, "--failing", "status=5xx"),
        )
        _, explanation = read_explanation(store, request)
        if json:
            output.print_json(output.plain(explanation))
        elif output.is_terminal():
            _show(explanation)
        elif explanation.state == "compared":
            output.table(_COLUMNS, _rows(explanation))
            if explanation.measure == "error rate" and not explanation.after:
                output.note(explanation.sentence)  # which may say that nothing can have failed
        if explanation.state == "not kept":
            others = [output.span(one.precision) for one in explanation.alternatives]
            hint = f"other windows are kept: try -p {' or '.join(others)}" if others else ""
            fail(explanation.reason, NOT_FOUND, hint)
        if explanation.state == "no data":
            hint = suggestion(store, name) if not explanation.count_before else ""
            fail(f"nothing to compare: {explanation.reason}", NOT_FOUND, hint)


def _against(text: str, now: float) -> str | tuple[float, float]:
    if text in BASELINES:
        return text
    start, slash, end = text.partition("/")
    if not slash:
        known = ", ".join(BASELINES)
        raise InvalidSetting("--against", f"{text!r:.40}: give {known}, or START/END")
    first, last = time_option("--against", start, now), time_option("--against", end, now)
    assert first is not None, "a text"
    assert last is not None, "a text"
    if first >= last:
        raise InvalidSetting("--against", f"{text!r:.40}: START is not before END")
    return first, last


def _rows(explanation: Explanation) -> list[list[output.Cell]]:
    """Return the columns of a pipe: bare numbers."""
    return [
        [
            group.label,
            "" if group.value is None else group.value,
            "" if group.before is None else group.before,
            "" if group.after is None else group.after,
            group.change,
            "" if group.share is None else group.share,
            int(group.named),
        ]
        for dimension in explanation.dimensions
        for group in dimension.groups
    ]


# --- On a terminal -------------------------------------------------------------------------


def _show(explanation: Explanation) -> None:
    if explanation.state != "compared":
        return
    output.line(explanation.sentence)
    window = f"{output.moment(explanation.since)} to {output.moment(explanation.until)} UTC"
    baseline = f"{output.moment(explanation.against_since)} to "
    baseline += f"{output.moment(explanation.against_until)} UTC"
    output.note(f"{window}, compared with {baseline}")
    for dimension in explanation.dimensions:
        output.line()
        columns = ["", dimension.label.upper(), "BEFORE", "NOW", "CHANGE"]
        shares = explanation.measure != "p95"
        listed = dimension.groups[:_LISTED]
        output.table(
            [*columns, "SHARE"] if shares else columns,
            [_cells(explanation, group, shares=shares) for group in listed],
            right=(2, 3, 4, 5) if shares else (2, 3, 4),
        )
        if dimension.of > len(listed):
            output.note(f"… {dimension.of - len(listed):,} more")
    _list_patterns("New log patterns", explanation.messages.new)
    _list_patterns("Vanished log patterns", explanation.messages.vanished)
    if explanation.exceptions.groups:
        output.line()
        output.table(
            ["EXCEPTION", "CHANGE", "BEFORE", "NOW", "PLACE"],
            [
                (one.type, one.kind, value_text(one.before), value_text(one.count), one.place)
                for one in explanation.exceptions.groups
            ],
            right=(2, 3),
        )
    if explanation.marks:
        output.line()
        output.table(
            ["MARK", "TIME (UTC)"],
            [(mark.label, output.moment(mark.time)) for mark in explanation.marks],
        )
    if (database := explanation.database) is not None:
        output.line()
        before, after = (value_text(v, "seconds") for v in (database.before, database.after))
        output.line(f"Database time per request: {before} before, {after} now")
    if explanation.not_compared:
        output.line()
        output.note("Not compared: " + "; ".join(explanation.not_compared))


def _cells(explanation: Explanation, group: ChangedGroup, *, shares: bool) -> list[output.Cell]:
    unit = explanation.unit
    cells: list[output.Cell] = [
        output.signs("▲" if group.change >= 0 else "▼") if group.named else " ",
        "(none)" if group.value is None else group.value,
        value_text(group.before, unit),
        value_text(group.after, unit),
        change_text(group.change, unit),
    ]
    if shares:
        share = "" if group.share is None else f"{group.share:.0%}"
        cells.append(share.replace("%", " %").replace("-", "−"))
    return cells


def _list_patterns(title: str, patterns: Sequence[LogPattern]) -> None:
    if not patterns:
        return
    output.line()
    output.table(
        [title.upper(), "SEVERITY", "LOGGER"],
        [(pattern.pattern, pattern.severity, pattern.logger) for pattern in patterns],
    )


def _measure(check: Check) -> str:
    return " of ".join([check.measure, *check.labels.values()])


def _check_cells(check: Check) -> list[output.Cell]:
    expected = check.reason
    if check.low is not None:
        low, high = (value_text(value, check.unit) for value in (check.low, check.high))
        expected = f"{low} to {high}"
    value = "" if check.value is None else value_text(check.value, check.unit)
    return [_measure(check), value, expected, "" if check.state == "unknown" else check.state]
