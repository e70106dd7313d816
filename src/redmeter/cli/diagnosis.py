"""status: whether the last five minutes are as usual. explain: what accounts for a change.

verdict: whether a deploy made things worse, as an exit code.
"""

import contextlib
import traceback
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from redmeter.analysis.comparing.sentences import change_text, value_text
from redmeter.analysis.explanation import ChangedGroup, Check, Explanation, LogPattern
from redmeter.cli import output
from redmeter.cli.app import (
    AsJson,
    Prefix,
    Timezone,
    Url,
    command,
    fail,
    opened,
    seconds,
)
from redmeter.cli.failure import NOT_FOUND, STORE, USAGE, Failure, failure_of
from redmeter.cli.selectors import Labels, Since, Until, labels_of, selection_of, time_of
from redmeter.cli.suggestions import suggestion
from redmeter.errors import InvalidSetting
from redmeter.reading.diagnosis.explain import read_explanation
from redmeter.reading.diagnosis.status import read_status
from redmeter.reading.diagnosis.verdict import question, read_verdict
from redmeter.reading.diagnosis.windows import BASELINES, request_of
from redmeter.results import Frequency
from redmeter.verdicts import (
    NOT_KEPT,
    TOO_LITTLE,
    WORSE,
    Verdict,
    VerdictMetric,
    VerdictPatterns,
    VerdictRow,
)

#: explain: groups of a label that are listed on a terminal.
_LISTED = 6

_COLUMNS = ("LABEL", "VALUE", "BEFORE", "NOW", "CHANGE", "SHARE", "CAUSE")
#: Exit codes of verdict. 1 means worse and nothing else, because pipelines roll back then.
_WORSE, _TOO_LITTLE, _STORE, _BUG = 1, 3, 4, 70
#: Exit codes of other commands -> of verdict.
_CODES = {NOT_FOUND: USAGE, STORE: _STORE}
#: verdict: routes, and log patterns of each kind, that are listed.
_ROUTES, _PATTERNS = 10, 5


@command(
    name="status",
    epilog="Exit codes: 0 as usual or unusual, 1 too little data to compare. "
    "Examples: redmeter status · redmeter status --json",
)
def status(url: Url = None, prefix: Prefix = None, json: AsJson = False) -> None:
    """Show whether the last five minutes were as usual.

    Compares requests, error rate and p95 response time of the last five complete minutes with their
    expected ranges, and names the route and the release that an unusual value began with.
    """
    with opened(url, prefix, reading=True) as store:
        _, result = read_status(store)
        if json:
            output.as_json(_plain(result))
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
                        check.measure,
                        check.state,
                        *("" if v is None else v for v in (check.value, check.low, check.high)),
                    ]
                    for check in result.checks
                ],
            )
        if result.state == "unknown":
            fail(result.sentence.removesuffix("."), NOT_FOUND)


def _check_cells(check: Check) -> list[output.Cell]:
    expected = check.reason
    if check.low is not None:
        low, high = (value_text(value, check.unit) for value in (check.low, check.high))
        expected = f"{low} to {high}"
    value = "" if check.value is None else value_text(check.value, check.unit)
    return [check.measure, value, expected, "" if check.state == "unknown" else check.state]


@command(
    name="explain",
    epilog="Exit codes: 0 compared, 1 no data or not kept. "
    "Examples: redmeter explain http_requests --last 15min · "
    "redmeter explain http_requests --failing status=5xx --since 30min · "
    "redmeter explain http_request_seconds --last 1h --against yesterday --json",
)
def explain(
    name: Annotated[str, typer.Argument(help="A counter or a histogram; labels filter.")],
    since: Since = None,
    until: Until = None,
    last: Annotated[
        str | None,
        typer.Option("--last", help="Length of a window up to now: seconds, or 15min, 2h."),
    ] = None,
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
    label: Labels = None,
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
    if last is not None and (since is not None or until is not None):
        raise InvalidSetting("--last", "is the whole window: leave out --since and --until")
    with opened(url, prefix, reading=True, timezone=timezone) as store:
        now = store.clock.wall()
        request = request_of(
            selection_of(store, name, label),
            since=time_of("--since", since, now),
            until=time_of("--until", until, now),
            last=None if last is None else seconds(last),
            against=_against(against, now),
            precision=None if precision is None else seconds(precision),
            failing=labels_of(failing, "--failing", "status=5xx"),
        )
        _, explanation = read_explanation(store, request)
        if json:
            output.as_json(_plain(explanation))
        elif output.is_terminal():
            _show_explanation(explanation)
        elif explanation.state == "compared":
            output.table(_COLUMNS, _group_rows(explanation))
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
    first, last = time_of("--against", start, now), time_of("--against", end, now)
    assert first is not None, "a text"
    assert last is not None, "a text"
    return first, last


def _group_rows(explanation: Explanation) -> list[list[output.Cell]]:
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


def _show_explanation(explanation: Explanation) -> None:
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
            [_group_cells(explanation, group, shares=shares) for group in listed],
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


def _group_cells(
    explanation: Explanation, group: ChangedGroup, *, shares: bool
) -> list[output.Cell]:
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


@command(
    name="verdict",
    epilog="Examples: redmeter verdict v1.4.2 · redmeter verdict (the newest mark) · "
    "redmeter verdict v1.4.2 --against last-week · redmeter verdict --since 1700000000 --json",
)
def verdict(
    label: Annotated[
        str | None, typer.Argument(help="Label of a mark. Default: the newest mark.")
    ] = None,
    since: Annotated[
        float | None, typer.Option("--since", help="A deploy without a mark: Unix seconds.")
    ] = None,
    against: Annotated[
        str, typer.Option("--against", help="previous, yesterday or last-week.")
    ] = "previous",
    precision: Annotated[
        str | None,
        typer.Option(
            "--precision",
            "-p",
            help="Interval width: seconds, or 1min, 1h. Default: 1min; 1h for another day.",
        ),
    ] = None,
    timezone: Timezone = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Judge a deploy by the error rate and p95 of each route.

    The time after the deploy is compared with the time before. The verdict is worse, better, same,
    too little data or not kept. Exit codes: 0 not worse, 1 worse, 3 too little data, 2 wrong usage
    or no such mark, 4 the store cannot be used, 70 a bug. So 1 always means worse: an unreachable
    store never causes a rollback. Verdicts are made 5, 15 and 60 minutes after the deploy; at any
    other time, the newest of these looks is printed.
    """
    with _own_codes():
        width = None if precision is None else seconds(precision)
        query = question(label, since, against, width)
        with opened(url, prefix, reading=True, timezone=timezone) as store:
            _, answer = read_verdict(store, query)
        if json:
            output.as_json(_plain(answer))
        else:
            _show_verdict(answer)
    if answer.verdict == WORSE:
        raise typer.Exit(_WORSE)
    if answer.verdict in (TOO_LITTLE, NOT_KEPT):
        raise typer.Exit(_TOO_LITTLE)


@contextlib.contextmanager
def _own_codes() -> Iterator[None]:
    """Give every error an exit code of verdict, also a bug."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        failure = failure_of(error)
        if failure is not None:
            failure.exit_code = _CODES.get(failure.exit_code, failure.exit_code)
            raise failure from None
        if isinstance(error, OSError):  # the output: see app.py
            raise
        traceback.print_exc()
        raise Failure(f"a bug: {error!r}", _BUG) from None


def _show_verdict(answer: Verdict) -> None:
    name = answer.mark.label if answer.mark else output.moment(answer.since)
    output.line(f"{answer.verdict}: {answer.reason}")
    if answer.look is not None:
        times = f"{output.span(answer.look)} after {name}, against {answer.against}"
        output.line(f"{times} · by {output.span(answer.precision)}")
    if answer.not_kept is not None and answer.not_kept.command:
        output.note(f"to keep it from now on: {answer.not_kept.command}")
    if answer.overall is not None:
        output.line()
        rows = [answer.overall, *answer.routes[:_ROUTES]]
        output.table(
            ["ROUTE", "VERDICT", "REQUESTS/s", "BEFORE", "ERRORS", "BEFORE", "P95", "BEFORE"],
            [_verdict_cells(row) for row in rows],
            right=range(2, 8),
        )
        if len(answer.routes) > _ROUTES:
            output.line(f"… ({answer.routes_of - _ROUTES} more; --json has them)")
    _list_verdict_patterns(answer.patterns)
    for mark in answer.marks:
        output.line(f"also within these windows: {mark.label}, {output.moment(mark.time)}")


def _verdict_cells(row: VerdictRow) -> list[output.Cell]:
    requests = row.requests
    return [
        "(all)" if row.route is None else row.route,
        row.verdict,
        f"{requests.after_per_second:.3g}",
        f"{requests.before_per_second:.3g}",
        *_rate(row.error_rate),
        *_time(row.p95),
    ]


def _rate(metric: VerdictMetric) -> list[output.Cell]:
    return [
        "-" if value is None else f"{value * 100:.3g} %" for value in (metric.after, metric.before)
    ]


def _time(metric: VerdictMetric) -> list[output.Cell]:
    return [
        "-" if value is None else f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
        for value in (metric.after, metric.before)
    ]


def _list_verdict_patterns(patterns: VerdictPatterns) -> None:
    def listed(what: str, some: tuple[Frequency, ...]) -> None:
        for one in some[:_PATTERNS]:
            output.line(f"{what}: {one.severity} {one.logger}: {one.pattern}")
        if len(some) > _PATTERNS:
            output.line(f"… ({len(some) - _PATTERNS} more {what})")

    listed("new pattern", patterns.new)
    listed("vanished pattern", patterns.vanished)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: named tuples and dataclasses are mappings."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif hasattr(value, "__dataclass_fields__"):
        value = {name: getattr(value, name) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
