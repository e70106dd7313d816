"""replay: count the requests of an access log."""

import contextlib
import dataclasses
import math
import os
import re
import shlex
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

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
from redmeter.store import Store

#: First bytes of compressed files other than gzip: the format, and the program that decompresses.
_COMPRESSED = {
    b"BZh[1-9]1AY&SY": ("bzip2", "bzcat"),
    rb"\xfd7zXZ\x00": ("xz", "xzcat"),
    rb"\x28\xb5\x2f\xfd": ("zstd", "zstdcat"),
}
#: While following, lines are written after at most this many seconds.
FLUSH_SECONDS = 1.0


@command(
    name="replay",
    epilog="Examples: redmeter replay access.log --shift-to-now · "
    "zcat old/*.gz | redmeter replay - · redmeter replay /var/log/nginx/access.log --follow",
)
def replay_command(
    file: Annotated[str, typer.Argument(help="A log, plain or gzip; - for standard input.")],
    shift_to_now: Annotated[
        bool, typer.Option("--shift-to-now", help="Shift all times so that the newest is now.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep reading new lines, across rotations.")
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

    Reads the common and combined formats of Apache and nginx, JSON lines, and W3C extended logs of
    IIS and CloudFront. Counts `hits`, `hits_failed`, and `http_requests` by method, route and
    status class. Ids in paths become a pattern; query strings are never stored.

    Each run counts the whole file: a file that is replayed twice counts twice.
    """
    if shift_to_now and follow:
        raise InvalidSetting("--follow", "new lines have the current time: omit --shift-to-now")
    report, brake, complete = door.ReplayReport(), _Brake(follow), False
    name = lines.STANDARD_INPUT if file == "-" else file
    try:
        with opened_store(url, prefix, create=True) as store, _source(file, shift_to_now) as path:
            _check_kind(path, file)
            shift = _shift(store, path) if shift_to_now else 0
            complete = _replay(store, path, name, shift, max_routes, brake, report)
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
        fix = "give an access log of Apache, nginx or IIS, or JSON lines, in ASCII or UTF-8"
        fail(f"{name}: no line is a request", NOT_FOUND, fix)


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


def _check_kind(path: str, file: str) -> None:
    """Fail if a file is compressed, but not with gzip.

    A pipe cannot be read twice: there, the error at the end is that no line is a request.
    """
    if path == "-" or not Path(path).is_file():
        return
    with Path(path).open("rb") as log:
        start = log.read(16)
    for magic, (kind, program) in _COMPRESSED.items():
        if re.match(magic, start):
            command = program if file == "-" else f"{program} {shlex.quote(file)}"
            problem = f"compressed with {kind}; only gzip is supported"
            raise InvalidSetting(file, f"{problem}: {command} | {called()} replay -")


def _shift(store: Store, path: str) -> int:
    """Return the seconds from the newest time in a log to the server's now."""
    with lines.Lines(path) as source, output.progress("looking for the newest line") as show:
        newest = door.newest_time(_with_progress(source, show))
    return 0 if newest is None else int(store.read()[0].now) - math.floor(newest)


def _with_progress(source: lines.Lines, show: output.Show) -> Iterator[list[str]]:
    for batch in source:
        show(source.bytes_read, source.bytes_total)
        yield batch


def _replay(
    store: Store,
    path: str,
    name: str,
    shift: int,
    max_routes: int,
    brake: _Brake,
    report: door.ReplayReport,
) -> bool:
    """Replay with progress and handling of Ctrl-C and pipes.

    Returns:
        Whether everything was read; of a followed log, everything up to its end at that time.
    """
    with (
        lines.Lines(
            path, follow=brake.follow, name=name, stop=lambda: brake.heeded and brake.pulled
        ) as source,
        contextlib.ExitStack() as stack,
    ):
        flush = math.inf
        if brake.follow:
            output.note(f"following {path}; Ctrl-C ends it")
            # Reading a pipe blocks, so nothing may be unwritten while it waits.
            brake.heeded = source.bytes_total is not None
            flush = FLUSH_SECONDS if brake.heeded else 0.0
            progress = None
        else:
            show = stack.enter_context(output.progress("replaying"))

            def progress() -> None:
                show(source.bytes_read, source.bytes_total)

        stack.enter_context(brake)
        door.replay(
            store,
            brake.batches(source),
            shift=shift,
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
    if not complete or report.uncertain:
        counts = many(report.counts, "count")
        per_request = "two per request, three if it failed"
        output.line(f"stored: {report.stored:,} of {counts}, {per_request}")
    if report.uncertain:
        output.line(f"{many(report.uncertain, 'count')} may or may not be stored")
    if report.too_old:
        hint = "" if shifted else "; --shift-to-now moves the newest line to now"
        if shifted and report.newest is not None and 2 * report.too_old > report.requests:
            hint = f"; the newest line, {output.moment(report.newest)} UTC, became now"
        output.line(f"{many(report.too_old, 'request')} older than the retention{hint}")
    if report.too_new:
        output.line(f"{many(report.too_new, 'request')} too far in the future: check the clocks")
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
