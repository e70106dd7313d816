"""replay: count the requests of an access log."""

import contextlib
import dataclasses
import math
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NamedTuple

import typer

from redmeter.cli import output
from redmeter.cli.app import (
    NOT_FOUND,
    STORE,
    AsJson,
    Prefix,
    Url,
    again,
    called,
    command,
    fail,
    opened_store,
)
from redmeter.errors import InvalidSetting, StoreError
from redmeter.ingest import lines
from redmeter.ingest import replay as door
from redmeter.ingest.dry_run import DryRun
from redmeter.ingest.dry_run import dry_run as dry_run_of
from redmeter.ingest.format_strings import format_of
from redmeter.ingest.formats import FORMATS, LogFormat
from redmeter.ingest.routes import fold
from redmeter.store import Store

#: What to do about a log without a request.
NO_REQUEST = "redmeter replay FILE --dry-run shows why, and --format takes a format of your own"
#: While following, lines are written after at most this many seconds.
FLUSH_SECONDS = 1.0


@command(
    name="replay",
    epilog="Examples: redmeter replay access.log --shift-to-now · "
    "redmeter replay access.log --dry-run · zcat old/*.gz | redmeter replay - · "
    "redmeter replay /var/log/nginx/access.log --follow",
)
def replay_command(
    file: Annotated[str, typer.Argument(help="A log, also compressed; - for standard input.")],
    shift_to_now: Annotated[
        bool, typer.Option("--shift-to-now", help="Shift all times so that the newest is now.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep reading new lines, across rotations.")
    ] = False,
    log_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Format of the lines: nginx's log_format, Apache's LogFormat, or a name, such as "
            "alb. Default: recognized from the first lines.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show how lines are understood; store nothing.")
    ] = False,
    max_routes: Annotated[
        int,
        typer.Option(
            "--max-routes", min=0, help="Distinct routes in the store; others become (other)."
        ),
    ] = 500,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Count the requests in an access log.

    Reads the logs of web servers, frameworks, proxies and load balancers, plain or compressed, and
    recognizes their format. Counts `hits`, `hits_failed`, and `http_requests` by method, route and
    status class, and observes durations, if the log has them. Ids in paths become a pattern; query
    strings are never stored.

    Each run counts the whole file: a file that is replayed twice counts twice.
    """
    if shift_to_now and follow:
        raise InvalidSetting("--follow", "new lines have the current time: omit --shift-to-now")
    name = lines.STANDARD_INPUT if file == "-" else file
    formats = FORMATS if log_format is None else format_of(log_format)
    if dry_run:
        _dry_run(file, name, formats, json=json)
        return
    report, brake, complete = door.ReplayReport(), _Brake(follow), False
    try:
        with opened_store(url, prefix, create=True) as store, _source(file, shift_to_now) as path:
            log = _Log(path, name, formats)
            until = _newest(log) if shift_to_now else math.inf
            complete = _replay(store, log, until, max_routes, brake, report)
            widths = tuple(store.kept.series)
    finally:
        if complete or report.lines:
            if json:
                extra = {"retained": report.retained, "complete": complete}
                output.print_json(dataclasses.asdict(report) | extra)
            else:
                _show_report(report, complete, shift_to_now)
    if not complete:
        raise KeyboardInterrupt
    if report.retained and not json:
        _print_next(again(url, prefix), widths)
    if report.refused:
        refused = output.many(sum(report.refused.values()), "count")
        fail(f"the server rejected {refused}", STORE, "redmeter doctor shows its state")
    if report.lines and not report.requests and not follow:
        fail(f"{name}: no line is a request", NOT_FOUND, NO_REQUEST)


class _Brake:
    """Ctrl-C ends the reading without losing a line: lines that were read are stored and counted.

    It interrupts at once while waiting for lines; otherwise, reading stops after the current batch.
    A second Ctrl-C ends the command. A followed log is read up to its current end.

    Args:
        follow: SIGTERM does the same, because a process that follows a log is ended by it.
    """

    def __init__(self, follow: bool) -> None:
        self.follow = follow
        self.pulled = False
        #: Whether the source checks `pulled` a few times a second.
        self.heeded = False
        self._waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM) if self.follow else (signal.SIGINT,):
            self._before[number] = signal.signal(number, self._pull)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def batches(self, source: lines.Lines) -> Iterator[list[str]]:
        """Yield the batches of a source until it ends, or Ctrl-C ends it."""
        while self.heeded or not self.pulled:
            try:
                self._waiting = not self.heeded
                batch = next(source, None)
                self._waiting = False
            except KeyboardInterrupt:
                if self.heeded:  # a second one
                    raise
                self.pulled, self._waiting = True, False
                return
            if batch is None:
                return
            yield batch

    def _pull(self, _signal: int, _frame: FrameType | None) -> None:
        if self._waiting or self.pulled:
            raise KeyboardInterrupt
        self.pulled = True


@contextlib.contextmanager
def _source(file: str, twice: bool) -> Iterator[str]:
    """Yield a path to read. A pipe that must be read twice is copied to a file first."""
    piped = file == "-" or not stat.S_ISREG(Path(file).stat().st_mode)
    if not (twice and piped) or Path(file).is_dir():
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="redmeter-") as folder:
        copy = Path(folder) / "log"
        with copy.open("wb") as to:
            if file == "-":
                shutil.copyfileobj(lines.standard_input(), to)
            else:
                with Path(file).open("rb") as pipe:
                    shutil.copyfileobj(pipe, to)
        yield os.fspath(copy)


class _Log(NamedTuple):
    """A log: where it is, its name in errors, and the formats that it may have."""

    path: str
    name: str
    formats: Mapping[str, LogFormat]


def _newest(log: _Log) -> float:
    """Return the newest time in a log, outliers left out; infinity where there is none."""
    with (
        lines.Lines(log.path, name=log.name) as source,
        output.progress("looking for the newest line") as show,
    ):
        newest = door.newest_time(_with_progress(source, show), log.formats)
    return math.inf if newest is None else newest


def _dry_run(file: str, name: str, formats: Mapping[str, LogFormat], *, json: bool) -> None:
    """Show how lines are understood."""
    report, complete = DryRun(), False
    try:
        with lines.Lines(file, name=name) as source, output.progress("reading") as show:
            dry_run_of(_with_progress(source, show), formats, report)
        complete = True
    finally:
        if json:
            document = dataclasses.asdict(report)
            document["sample"] = [
                {"line": number, "format": form, **hit._asdict(), "time": _known(hit.time)}
                for number, hit, form in report.sample
            ]
            document["refused"] = [
                {"reason": reason, "line": number, "text": text[: door.EXAMPLE_CHARACTERS]}
                for reason, (number, text) in report.refused.items()
            ]
            output.print_json({**document, "complete": complete})
        elif complete or report.lines:
            _show_dry_run(report)
    if report.lines and not report.requests:
        fail(f"{name}: no line is a request", NOT_FOUND, NO_REQUEST)


def _known(time: float) -> float | None:
    return None if math.isnan(time) else time


def _show_dry_run(report: DryRun) -> None:
    output.line(f"{output.many(report.lines, 'line')}: {output.many(report.requests, 'request')}")
    _show_formats(report.formats, report.notices)
    if report.untimed:
        untimed = output.many(report.untimed, "request")
        output.line(f"{untimed} without a time: only --follow counts them, when it reads them")
    rows = [
        (
            number,
            output.iso_time(hit.time) if _known(hit.time) is not None else "when read",
            hit.method,
            fold(hit.path),
            hit.status,
            "" if hit.size is None else hit.size,
            "" if hit.seconds is None else output.number_text(hit.seconds),
            form,
        )
        for number, hit, form in report.sample
    ]
    if rows:
        columns = ["LINE", "TIME (UTC)", "METHOD", "ROUTE", "STATUS", "BYTES", "SECONDS", "FORMAT"]
        output.table(columns, rows, whole=(1, 6))
    if report.refused:
        output.line("not understood, the first of each kind:")
        refused = [
            (number, reason, report.malformed[reason], door.shortened(text))
            for reason, (number, text) in report.refused.items()
        ]
        output.table(["LINE", "REASON", "LINES", "TEXT"], refused)


def _show_formats(formats: Mapping[str, int], notices: int) -> None:
    if len(formats) == 1:
        output.line(f"format: {next(iter(formats))}")
    elif formats:
        parts = ", ".join(f"{name} ({count:,})" for name, count in formats.items())
        output.line(f"formats, recognized line by line: {parts}")
    if notices:
        output.line(f"{output.many(notices, 'line')} about the log or the server, skipped")


def _with_progress(source: lines.Lines, show: output.Show) -> Iterator[list[str]]:
    for batch in source:
        show(source.bytes_read, source.bytes_total)
        yield batch


def _replay(
    store: Store,
    log: _Log,
    until: float,
    max_routes: int,
    brake: _Brake,
    report: door.ReplayReport,
) -> bool:
    """Replay with progress and handling of Ctrl-C and pipes.

    Args:
        until: the newest time of a log that is shifted, so that it becomes now; else infinite.

    Returns:
        Whether everything was read; of a followed log, everything up to its end at that time.
    """
    with (
        lines.Lines(
            log.path, follow=brake.follow, name=log.name, stop=lambda: brake.heeded and brake.pulled
        ) as source,
        contextlib.ExitStack() as stack,
    ):
        flush = math.inf
        if brake.follow:
            output.note(f"following {log.path}; Ctrl-C ends it")
            # Reading a pipe blocks, so nothing may be unwritten while it waits.
            brake.heeded = source.bytes_total is not None
            flush = FLUSH_SECONDS if brake.heeded else 0.0
        show = None if brake.follow else stack.enter_context(output.progress("replaying"))

        def progress() -> None:
            report.bytes_read, report.bytes_total = source.bytes_read, source.bytes_total
            if show:
                show(source.bytes_read, source.bytes_total)

        shift = 0 if until == math.inf else int(store.read()[0].now) - math.floor(until)
        stack.enter_context(brake)
        door.replay(
            store,
            brake.batches(source),
            formats=log.formats,
            shift=shift,
            until=until,
            max_routes=max_routes,
            flush=flush,
            report=report,
            progress=progress,
            away=_UnreachableNote() if brake.follow else None,
        )
        return source.complete and (brake.follow or not brake.pulled)


class _UnreachableNote:
    """Prints, at most once a minute, that Redis is unreachable."""

    def __init__(self) -> None:
        self._printed = -math.inf

    def __call__(self, error: StoreError) -> None:
        if time.monotonic() - self._printed >= 60.0:
            self._printed = time.monotonic()
            output.note(f"{error}; lines are kept in memory until it is back")


def _show_report(report: door.ReplayReport, complete: bool, shifted: bool) -> None:
    many = output.many
    output.line(
        f"{many(report.lines, 'line')}: {many(report.requests, 'request')}, "
        f"{report.retained:,} within the retention"
    )
    _show_formats(report.formats, report.notices)
    if not complete and report.bytes_total:
        part = report.bytes_read / report.bytes_total
        output.line(f"read: {report.bytes_read:,} of {report.bytes_total:,} bytes ({part:.0%})")
    if not complete or report.uncertain:
        counts = many(report.counts, "count")
        per_request = "two per request, three if it failed"
        if report.durations:
            per_request += ", two more if its duration is known"
        output.line(f"stored: {report.stored:,} of {counts}, {per_request}")
    if report.durations:
        output.line(f"{many(report.durations, 'duration')} observed")
    if report.uncertain:
        output.line(f"{many(report.uncertain, 'count')} may or may not be stored")
    if report.too_old:
        hint = "" if shifted else "; --shift-to-now moves the newest line to now"
        output.line(f"{many(report.too_old, 'request')} older than the retention{hint}")
    if report.too_new:
        too_new = many(report.too_new, "request")
        if shifted and report.newest is not None:
            newest = output.moment(report.newest)
            output.line(f"{too_new} far newer than all others, up to {newest} UTC: left out")
        else:
            output.line(f"{too_new} too far in the future: check the clocks")
    malformed = sum(report.malformed.values())
    if malformed:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.malformed.items())
        output.line(f"{many(malformed, 'line')} not counted ({reasons}):")
        for example in report.examples:
            output.line(f"    {example}")
        if malformed > len(report.examples):
            output.line(f"    … ({malformed - len(report.examples):,} more)")
    if report.other_routes:
        output.line(
            f"{many(report.other_routes, 'request')} in route (other): "
            "a higher --max-routes keeps more routes"
        )
    for reason, count in report.refused.items():
        output.line(f"{many(count, 'count')} rejected by the server ({reason}), at some precisions")


def _print_next(options: str, widths: Sequence[int]) -> None:
    """Print the next commands to try, at precisions that the store keeps."""
    call = called()
    first = f"{call} series hits -p {_near(3600, widths)}{options}"
    second = f"{call} top http_requests --by route -p {_near(86_400, widths)}{options}"
    if call == "redmeter" and not options:
        output.note(f"next: {first} · {second}")
    else:  # too long for two on a line
        output.note(f"next: {first}")
        output.note(f"      {second}")


def _near(wanted: int, widths: Sequence[int]) -> str:
    """Return the wanted one of ascending precisions, else the next finer, or coarser."""
    return output.span(max((width for width in widths if width <= wanted), default=widths[0]))
