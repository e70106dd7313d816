"""replay: an access log into the store."""

import dataclasses
import os
import shutil
import sys
import tempfile
import time
from typing import Annotated

import typer

from redmeter.cli import output
from redmeter.cli.app import AsJson, Prefix, Url, command, opened
from redmeter.doors import lines
from redmeter.doors import replay as door
from redmeter.errors import InvalidSetting
from redmeter.store import Store


@command(
    name="replay",
    epilog="Examples: redmeter replay access.log --shift-to-now · "
    "zcat old/*.gz | redmeter replay - · redmeter replay /var/log/nginx/access.log --follow",
)
def replay(
    file: Annotated[str, typer.Argument(help="A log, also compressed by gzip; - standard input.")],
    shift_to_now: Annotated[
        bool, typer.Option("--shift-to-now", help="Move all times so that the newest is now.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new lines, through rotation.")
    ] = False,
    max_routes: Annotated[
        int, typer.Option("--max-routes", min=0, help="Distinct routes; the rest is (other).")
    ] = 500,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Count the hits of an access log.

    Apache or nginx, common or combined, or lines of JSON. Stored are `hits` and `http_requests`
    by method, route and class of status. Ids in paths are folded into a pattern; query strings are
    never stored.
    """
    if shift_to_now and follow:
        raise InvalidSetting("--follow", "new lines are of now already: leave --shift-to-now out")
    with opened(url, prefix) as store:
        report = _replay(store, file, shift_to_now, follow, max_routes)
    if json:
        content = dataclasses.asdict(report) | {"kept": report.kept}
        output.as_json(content)
    else:
        _tell(report, shift_to_now)
    if report.refused:
        raise typer.Exit(3)


def _replay(
    store: Store, file: str, shift_to_now: bool, follow: bool, max_routes: int
) -> door.Report:
    with tempfile.TemporaryDirectory(prefix="redmeter-") as folder:
        shift = 0
        if shift_to_now:
            if file == "-":  # read twice: first for the newest time
                file = os.path.join(folder, "stdin")  # noqa: PTH118
                with open(file, "wb") as copy:  # noqa: PTH123
                    shutil.copyfileobj(sys.stdin.buffer, copy)
            with lines.read(file) as source:
                newest = door.newest_time(source)
            shift = 0 if newest is None else int(time.time()) - int(newest)
        with lines.read(file, follow=follow) as source:
            show = output.progress(source.bytes_total, "replaying")
            if follow:
                show(-1)
                output.note(f"following {file}; Ctrl-C ends it")
            seen = door.Report()

            def progress(report: door.Report) -> None:
                nonlocal seen
                seen = report
                if not follow:
                    show(source.bytes_read)

            try:
                return door.replay(
                    store,
                    source,
                    shift=shift,
                    max_routes=max_routes,
                    follow=follow,
                    progress=progress,
                )
            except KeyboardInterrupt:
                if not follow:
                    raise
                return seen  # what was read is stored
            finally:
                if not follow:
                    show(-1)


def _tell(report: door.Report, shifted: bool) -> None:
    output.line(f"{report.lines:,} lines: {report.hits:,} hits, {report.kept:,} of them kept")
    if report.too_old:
        hint = "" if shifted else "; --shift-to-now moves the newest line to now"
        output.line(f"{report.too_old:,} are older than the retention holds{hint}")
    if report.too_new:
        output.line(f"{report.too_new:,} lie too far in the future: are the clocks right?")
    malformed = sum(report.malformed.values())
    if malformed:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.malformed.items())
        output.line(f"{malformed:,} lines are no hits ({reasons}):")
        for example in report.examples:
            output.line(f"    {example}")
        if malformed > len(report.examples):
            output.line(f"    … ({malformed - len(report.examples):,} more)")
    if report.other_routes:
        output.line(
            f"{report.other_routes:,} hits went to route (other): --max-routes tells more apart"
        )
    for reason, count in report.refused.items():
        output.line(f"{count:,} slices were refused by the server: {reason}")
    if report.uncertain:
        output.line(f"{report.uncertain:,} counts may or may not have been stored")
    if report.kept:
        output.note(
            "next: redmeter series hits -p 1h · redmeter top http_requests --by route -p 1d"
        )
