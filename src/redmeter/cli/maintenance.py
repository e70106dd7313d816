"""clean, retention, doctor: maintenance of a store."""

import contextlib
import dataclasses
import signal
from typing import Annotated

import typer
from rich.text import Text

from redmeter import settings
from redmeter.cli import output
from redmeter.cli.app import (
    NOT_FOUND,
    AsJson,
    Prefix,
    Url,
    command,
    duration_option,
    fail,
    opened_store,
)
from redmeter.errors import InvalidSetting, StoreError
from redmeter.health import doctor as examination
from redmeter.maintenance import cleaning, forgetting
from redmeter.store import Store
from redmeter.stored.keys import Retention, parse_changes


@command(
    name="clean",
    epilog="Examples: redmeter clean · redmeter clean --daemon · "
    "redmeter clean --forget old_counter · redmeter clean --forget-logger worker · "
    "redmeter clean --prefix ''",
)
def clean_command(
    daemon: Annotated[
        bool, typer.Option("--daemon", help="Clean every minute, until Ctrl-C.")
    ] = False,
    forget: Annotated[
        str | None,
        typer.Option("--forget", help="Remove all data of one name, including its grand total."),
    ] = None,
    forget_logger: Annotated[
        str | None,
        typer.Option(
            "--forget-logger",
            help="Remove all messages of a logger, including patterns and counts.",
        ),
    ] = None,
    forget_exception: Annotated[
        str | None,
        typer.Option(
            "--forget-exception",
            help="Remove a group of exceptions, by its ID; redmeter exceptions lists them.",
        ),
    ] = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Remove samples that are older than the retention.

    Index entries without data are removed as well.
    """
    if daemon and forget is not None:
        raise InvalidSetting("--forget", "runs once: omit --daemon")
    if forget_logger is not None and (daemon or forget is not None):
        raise InvalidSetting("--forget-logger", "runs once: omit --daemon and --forget")
    if forget_exception is not None and (daemon or forget is not None or forget_logger is not None):
        raise InvalidSetting(
            "--forget-exception", "runs once: omit --daemon, --forget and --forget-logger"
        )
    with opened_store(url, prefix) as store:
        if forget is not None:
            named = forgetting.meant(store, forget)
            if not forgetting.forget(store, named):
                fail(f"there is no series {forget}", NOT_FOUND, "redmeter names lists all")
            _show_forgotten(named, json)
        elif forget_logger is not None:
            if not forgetting.forget_logger(store, forget_logger):
                text = f"nothing is logged under {forget_logger}"
                fail(text, NOT_FOUND, "redmeter logs lists all loggers")
            _show_forgotten(forget_logger, json)
        elif forget_exception is not None:
            if not forgetting.forget_exception(store, forget_exception):
                text = f"there is no group of exceptions {forget_exception}"
                fail(text, NOT_FOUND, "redmeter exceptions lists all")
            _show_forgotten(forget_exception, json)
        elif daemon:
            output.log_warnings()
            output.note(f"cleaning {store.location} every minute; Ctrl-C ends it")
            with contextlib.suppress(KeyboardInterrupt):
                signal.signal(signal.SIGTERM, signal.default_int_handler)
                cleaning.clean_every_minute(
                    store,
                    quit=lambda: False,
                    store_bytes=settings.resolve("store_bytes"),
                    on_pass=lambda done: _print_report(done, json, now=True),
                )
            output.note("ended")
        else:
            seen: list[cleaning.CleaningReport] = []
            with output.progress("cleaning") as show:

                def on_progress(done: cleaning.CleaningReport, size: int) -> None:
                    show(done.examined, size)
                    seen[:] = [done]

                try:
                    report = cleaning.clean(
                        store,
                        budget=float("inf"),
                        store_bytes=settings.resolve("store_bytes"),
                        progress=on_progress,
                    )
                except StoreError:
                    if seen:  # a node was unreachable; the others are cleaned
                        _print_report(seen[0], json, complete=False)
                    raise
            _print_report(report, json)


def _show_forgotten(name: str, json: bool) -> None:
    if json:
        output.print_json({"forgotten": name})
    else:
        output.line(f"forgotten: {name}")


def _print_report(
    report: cleaning.CleaningReport, json: bool, *, complete: bool = True, now: bool = False
) -> None:
    if json:
        complete = complete and report.complete
        output.print_json(dataclasses.asdict(report) | {"complete": complete}, now=now)
        return
    many = output.many
    removed = (
        f"{many(report.samples_removed, 'interval')}, "
        f"{many(report.hashes_removed, 'whole counter')}, "
        f"{many(report.entries_removed, 'index entry', 'index entries')}"
    )
    output.line(
        f"{many(report.examined, 'index entry', 'index entries')} checked; removed: {removed}; "
        f"compacted: {report.compacted:,} ({report.seconds:.2f} s)"
    )
    if report.strange:
        shown = ", ".join(map(ascii, report.strange[:3]))
        more = report.strange_entries - 3
        rest = f" … ({more} more)" if more > 0 else ""
        output.line(f"not counters, left unchanged: {shown}{rest}")


@command(
    name="retention",
    epilog="Examples: redmeter retention · redmeter retention 60=240 · "
    "redmeter retention 10=120 1=0 (no longer keep 1 s) · "
    "redmeter retention --histograms 60=240",
)
def retention(
    changes: Annotated[
        list[str] | None,
        typer.Argument(help="PRECISION=SAMPLES …, e.g. 60=240 or 1m=240; 0 drops the precision."),
    ] = None,
    histograms: Annotated[
        bool,
        typer.Option("--histograms", help="Change the retention of histograms."),
    ] = False,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Show the retention, or change it for all processes at once."""
    new = parse_changes([_in_seconds(change) for change in changes or []])
    with opened_store(url, prefix, create=bool(new)) as store:
        if new:
            before, _ = store.read()
            changed = store.change_retention(new, histograms=histograms)
            if changed == (before.histograms if histograms else before.retention):
                output.note("no change: this is the current retention")
            else:
                output.note(f"changed: {_effect(store, histograms)}")
        view, _ = store.read()
    if json:
        kept = {"retention": view.retention, "histogram_retention": view.histograms}
        output.print_json({name: dict(each.items()) for name, each in kept.items()})
        return
    rows = _rows(view.retention, "counters, gauges") + _rows(view.histograms, "histograms")
    output.table(["PRECISION", "SECONDS", "SAMPLES", "REACHES BACK", "OF"], rows)


def _effect(store: Store, histograms: bool) -> str:
    """Describe the effect of a change of the retention.

    Without a prefix, other programs write counters and know nothing of the retention, so counters
    do not expire; gauges and histograms do.
    """
    if store.keys.prefix or histograms:
        return "every writer applies it from its next write; older samples expire"
    return (
        "queries, redmeter clean and a Meter without a prefix apply it; redmeter.book and the "
        "listings have their own, and no counter expires: redmeter clean removes old samples"
    )


def _in_seconds(change: str) -> str:
    """Return 60=240 for 1m=240; other texts stay, and are rejected when they are parsed."""
    precision, equals, samples = change.partition("=")
    if not equals or not precision[:1].isdigit() or precision.isdigit():
        return change
    return f"{duration_option('retention', precision)}={samples}"


def _rows(kept: Retention, of: str) -> list[tuple[str, int, int, str, str]]:
    return [
        (output.span(precision), precision, samples, output.span(precision * samples), of)
        for precision, samples in kept.items()
    ]


_MARKS = {
    "ok": ("ok  ", "green"),
    "note": ("note", "cyan"),
    "warn": ("warn", "yellow"),
    "fail": ("FAIL", "bold red"),
}


@command(
    name="doctor",
    epilog="Exit code: 0 healthy, or notes and warnings only, 1 a check fails, 3 the store cannot "
    "be used. Examples: redmeter doctor · redmeter doctor --json | jq .level",
)
def doctor_command(url: Url = None, prefix: Prefix = None, json: AsJson = False) -> None:
    """Check the store, and suggest fixes for problems.

    Checks the server, clocks, memory, persistence, contents, cleaner and writers.
    """
    with opened_store(url, prefix) as store:
        health = examination.examine(store)
    if json:
        content = dataclasses.asdict(health) | {"level": health.level}
        kept = {"retention": health.retention, "histogram_retention": health.histogram_retention}
        output.print_json(content | {name: dict(each.items()) for name, each in kept.items()})
    else:
        _show_health(health)
    if health.level == "fail":
        raise typer.Exit(NOT_FOUND)


def _show_health(health: examination.Health) -> None:
    output.line(f"{health.location}  prefix {health.prefix or '(none)'}")
    rows = []
    for finding in health.findings:
        mark, style = _MARKS[finding.level]
        first = Text(mark, style=style), Text(finding.topic)
        rows.append((*first, Text(output.safe(finding.text))))
        if finding.fix:
            rows.append((Text(), Text(), Text(f"-> {output.safe(finding.fix)}")))
    output.print_grid(rows)
    output.line()
    estimated = dict.fromkeys(("counters", *health.others), "~") if health.estimated else {}
    counts = ", ".join(f"{output.span(p)} {n:,}" for p, n in health.series.items())
    sizes = ", ".join(
        f"{kind} "
        + ("unknown" if size is None else f"{estimated.get(kind, '') if size else ''}{size:,} B")
        for kind, size in health.bytes.items()
    )
    others = ", ".join(f"{kind} {number:,}" for kind, number in health.others.items())
    contents = {"counters": counts, "others": f"{others} (index entries)", "memory": sizes}
    if health.producers is not None:
        contents["producers"] = f"{health.producers:,} wrote in the last 24 h"
    output.print_grid([(Text(name), Text(text)) for name, text in contents.items()])
