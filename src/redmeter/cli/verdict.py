"""verdict: whether a deploy made things worse, as an exit code."""

import contextlib
import difflib
import time
import traceback
from collections.abc import Iterator
from typing import Annotated

import typer

from redmeter.cli import output
from redmeter.cli.app import (
    AsJson,
    Prefix,
    Timezone,
    Url,
    command,
    fail,
    opened_store,
    precision_seconds,
)
from redmeter.cli.completion import complete_marks
from redmeter.cli.failure import NOT_FOUND, STORE, USAGE, Failure, failure_of
from redmeter.cli.selectors import TIMES, time_option
from redmeter.errors import InvalidValue
from redmeter.queries import Queries
from redmeter.results.logs import Frequency
from redmeter.results.verdict import (
    NOT_KEPT,
    TOO_LITTLE,
    WATCHING,
    WORSE,
    Verdict,
    VerdictMetric,
    VerdictPatterns,
    VerdictRow,
)
from redmeter.stored.keys import HOUR

#: Exit codes of this command. 1 means worse and nothing else, because pipelines roll back then.
_WORSE, _UNDECIDED, _STORE, _BUG = 1, 3, 4, 70
#: Exit codes of other commands -> of this one.
_CODES = {NOT_FOUND: USAGE, STORE: _STORE}
#: Routes, and log patterns of each kind, that are listed.
_ROUTES, _PATTERNS = 10, 5
#: Marks that are compared with an unknown label, and those that are named if none resembles it.
_COMPARED, _NEWEST = 1000, 3


@command(
    name="verdict",
    epilog="Examples: redmeter verdict v1.4.2 · redmeter verdict (the newest mark) · "
    "redmeter verdict v1.4.2 --against last-week · redmeter verdict --since 2h --json",
)
def verdict_command(
    label: Annotated[
        str | None,
        typer.Argument(
            help="Label of a mark. Default: the newest mark.", autocompletion=complete_marks
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help=f"The time of a deploy without a mark: {TIMES}.")
    ] = None,
    against: Annotated[
        str, typer.Option("--against", help="previous, yesterday or last-week.")
    ] = "previous",
    precision: Annotated[
        str | None,
        typer.Option(
            "--precision",
            "-p",
            help="Interval width: seconds, or 1m, 1h. Default: 1m; 1h for another day.",
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on", help="mix: exit code 1 also if only the mix of routes made it worse."
        ),
    ] = None,
    timezone: Timezone = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Judge a deploy by the error rate and p95 of each route.

    The time after the deploy is compared with the time before. The verdict is worse, watching
    (worse so far, but it could be a storm of some minutes), better, same, too little data or not
    kept. Exit codes: 0 not worse, 1 worse, 3 watching, too little data or not kept, 2 wrong usage
    or no such mark, 4 the store cannot be used, 70 a bug. So 1 always means worse: an unreachable
    store never causes a rollback. Verdicts are made 5, 15 and 60 minutes after the deploy; at any
    other time, the newest of these looks is printed.
    """
    with _own_codes():
        if fail_on not in (None, "mix"):
            fail(
                f"--fail-on {fail_on!r:.40} is unknown",
                USAGE,
                "give --fail-on mix, or leave it out",
            )
        width = None if precision is None else precision_seconds(precision)
        deployed = time_option("--since", since, time.time())
        with opened_store(url, prefix, reading=True, timezone=timezone) as store:
            queries = Queries(store)
            try:
                answer = queries.verdict(label, since=deployed, against=against, precision=width)
            except InvalidValue:
                if label is not None and deployed is None:
                    _check_mark(queries, label)
                raise
        if json:
            output.print_json(output.plain(answer))
        else:
            _print(answer)
    if answer.verdict == WORSE or (fail_on == "mix" and answer.mix.verdict == WORSE):
        raise typer.Exit(_WORSE)
    if answer.verdict in (WATCHING, TOO_LITTLE, NOT_KEPT):
        raise typer.Exit(_UNDECIDED)


def _check_mark(queries: Queries, label: str) -> None:
    """Fail if there is no mark with a label, and suggest those that resemble it."""
    labels = list(dict.fromkeys(mark.label for mark in reversed(queries.marks())))
    if label in labels:
        return
    near = difflib.get_close_matches(label, labels[:_COMPARED])
    names = f"{'the nearest' if near else 'the newest'}: {', '.join(near or labels[:_NEWEST])}; "
    fix = f"{names if labels else ''}redmeter mark --list lists all"
    fail(f"there is no mark {label!r:.100}", NOT_FOUND, fix)


@contextlib.contextmanager
def _own_codes() -> Iterator[None]:
    """Give every error an exit code of this command, also a bug."""
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


def _print(answer: Verdict) -> None:
    name = answer.mark.label if answer.mark else output.time_text(answer.since, zone=True)
    output.line(f"{answer.verdict}: {answer.reason}")
    if answer.look is not None:
        times = f"{output.span(answer.look)} after {name}, against {answer.against}"
        output.line(f"{times} · by {output.span(answer.precision)}")
    if answer.noise is not None:
        hours = (answer.noise.until - answer.noise.since) / HOUR
        output.line(f"noise of error rates: that of {hours:.1f} hours of 5-minute sums before")
    if answer.mix.reason and answer.mix.reason not in answer.reason:
        output.line(f"mix of routes: {answer.mix.reason}")
    if answer.not_kept is not None and answer.not_kept.command:
        output.note(f"to keep it from now on: {answer.not_kept.command}")
    if answer.overall is not None:
        output.line()
        rows = [answer.overall, *answer.routes[:_ROUTES]]
        output.table(
            ["ROUTE", "VERDICT", "REQUESTS/s", "BEFORE", "ERRORS", "BEFORE", "P95", "BEFORE"],
            [_row(row) for row in rows],
            right=range(2, 8),
        )
        if len(answer.routes) > _ROUTES:
            output.line(f"… ({answer.routes_of - _ROUTES} more; --json has them)")
    _print_patterns(answer.patterns)
    for mark in answer.marks:
        output.line(
            f"also within these windows: {mark.label}, {output.time_text(mark.time, zone=True)}"
        )


def _row(row: VerdictRow) -> list[output.Cell]:
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


def _print_patterns(patterns: VerdictPatterns) -> None:
    def listed(what: str, some: tuple[Frequency, ...]) -> None:
        for one in some[:_PATTERNS]:
            output.line(f"{what}: {one.severity} {one.logger}: {one.pattern}")
        if len(some) > _PATTERNS:
            output.line(f"… ({len(some) - _PATTERNS} more {what})")

    listed("new pattern", patterns.new)
    listed("vanished pattern", patterns.vanished)
