"""clean, retention, doctor: keeping the store in order."""

import dataclasses
from typing import Annotated

import typer
from rich.text import Text

from redmeter import cleaning
from redmeter.cli import output
from redmeter.cli.app import NOT_FOUND, AsJson, Prefix, Url, command, fail, opened
from redmeter.keys import Retention, parse_changes
from redmeter.reading import health as reading
from redmeter.store import Store


@command(
    name="clean",
    epilog="Examples: redmeter clean · redmeter clean --daemon · "
    "redmeter clean --forget old_counter · redmeter clean --prefix ''",
)
def clean(
    daemon: Annotated[
        bool, typer.Option("--daemon", help="A pass every minute, until Ctrl-C.")
    ] = False,
    forget: Annotated[
        str | None, typer.Option("--forget", help="Remove one counter with its grand total.")
    ] = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Remove what has left the retention.

    Index entries without data go too. Nothing live is ever lost.
    """
    with opened(url, prefix) as store:
        if forget is not None:
            if not cleaning.forget(store, forget):
                fail(f"there is no counter {forget}", NOT_FOUND)
            output.note(f"forgotten: {forget}")
        elif daemon:
            output.note(f"cleaning {store.location} every minute; Ctrl-C ends it")
            cleaning.run(store, quit=lambda: False, on_pass=lambda done: _tell(done, json))
        else:
            _tell(_pass(store), json)


def _pass(store: Store) -> cleaning.Report:
    """Make a whole pass, however long it takes."""
    bar = None
    report = cleaning.Report()

    def show(done: cleaning.Report, size: int) -> None:
        nonlocal bar
        bar = bar or output.progress(size, "cleaning")
        bar(done.looked_at)

    try:
        report = cleaning.clean(store, budget=float("inf"), progress=show)
    finally:
        if bar:
            bar(-1)
    return report


def _tell(report: cleaning.Report, json: bool) -> None:
    if json:
        output.as_json(dataclasses.asdict(report) | {"complete": report.complete})
        return
    output.line(
        f"{report.looked_at:,} counters looked at: {report.slices_removed:,} slices, "
        f"{report.hashes_removed:,} whole counters and {report.entries_removed:,} index entries "
        f"removed, {report.compacted:,} compacted ({report.seconds:.2f} s)"
    )
    if report.strange:
        shown = ", ".join(report.strange[:3])
        more = len(report.strange) - 3
        rest = f" … ({more} more)" if more > 0 else ""
        output.line(f"left alone, since they are no counters: {shown}{rest}")


@command(
    name="retention",
    epilog="Examples: redmeter retention · redmeter retention 60=240 · "
    "redmeter retention 10=120 1=0 (1=0: no longer keep 1 s)",
)
def retention(
    changes: Annotated[
        list[str] | None, typer.Argument(help="PRECISION=SAMPLES …; 0 samples: no longer kept.")
    ] = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Show or change how much is kept, for all processes at once."""
    wanted = parse_changes(changes or [])
    with opened(url, prefix) as store:
        if wanted:
            kept = store.change_retention(wanted)
            output.note("changed; every writer goes by it from its next write on")
        else:
            kept = store.read()[0].retention
    if json:
        output.as_json({str(precision): samples for precision, samples in kept.items()})
        return
    output.table(["PRECISION", "SECONDS", "SAMPLES", "REACHES BACK"], _rows(kept))


def _rows(kept: Retention) -> list[tuple[str, int, int, str]]:
    return [
        (output.span(precision), precision, samples, output.span(precision * samples))
        for precision, samples in kept.items()
    ]


_MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}


@command(
    name="doctor",
    epilog="Exit code: 0 well or only warnings, 1 something fails, 3 the store cannot be used. "
    "Examples: redmeter doctor · redmeter doctor --json | jq .level",
)
def doctor(url: Url = None, prefix: Prefix = None, json: AsJson = False) -> None:
    """Look at the store and say what to do about it.

    Looked at are server, clocks, memory, persistence, contents and cleaner.
    """
    with opened(url, prefix) as store:
        health = reading.examine(store)
    if json:
        content = dataclasses.asdict(health) | {"level": health.level}
        output.as_json(content | {"retention": dict(health.retention.items())})
    else:
        _tell_health(health)
    if health.level == "fail":
        raise typer.Exit(NOT_FOUND)


def _tell_health(health: reading.Health) -> None:
    output.line(f"{health.location}  prefix {health.prefix or '(none)'}")
    for finding in health.findings:
        mark, style = _MARKS[finding.level]
        output.line(
            Text(mark, style=style) + Text(f"  {finding.topic:<12}{output.safe(finding.text)}")
        )
        if finding.fix:
            output.line(f"{'':18}-> {finding.fix}")
    output.line()
    about = {"counters": "~"} if health.estimated else {}
    sizes = ", ".join(f"{kind} {about.get(kind, '')}{n:,} B" for kind, n in health.bytes.items())
    counts = ", ".join(f"{output.span(p)} {n:,}" for p, n in health.series.items())
    output.line(f"counters   {counts}")
    output.line(f"memory     {sizes}")
    if health.producers is not None:
        output.line(f"producers  {health.producers:,} wrote within the last two hours")
