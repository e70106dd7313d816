"""names: the series that are recorded."""

from typing import Annotated

import typer

from redmeter.cli import output
from redmeter.cli.app import (
    NOT_FOUND,
    AsJson,
    BestEffort,
    Prefix,
    Url,
    command,
    fail,
    fail_where_left_out,
    opened_store,
)
from redmeter.cli.completion import complete_names
from redmeter.errors import InvalidSetting
from redmeter.queries import Queries
from redmeter.reading.names import matching
from redmeter.reading.samples import read_totals
from redmeter.store import Store
from redmeter.stored.families import SERIES_KINDS


@command(
    name="names",
    epilog="Examples: redmeter names · redmeter names 'http_*' --json · "
    "redmeter names --kind histogram · redmeter names --by-size",
)
def names_command(
    pattern: Annotated[
        str,
        typer.Argument(
            help="*: any text, ?: one character, [ab]: a or b.", autocompletion=complete_names
        ),
    ] = "*",
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only this kind: counter, gauge or histogram.")
    ] = None,
    by_size: Annotated[
        bool,
        typer.Option("--by-size", help="Names without labels, the most memory in Redis first."),
    ] = False,
    best_effort: BestEffort = False,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """List counters with their grand totals, gauges and histograms.

    A counter that only other programs or redmeter.book write has no grand total; in JSON, the
    total is null.

    With --by-size, also loggers and exceptions, and an estimate of the memory of all series of a
    name, from a sample of 1,000 entries of each index.
    """
    if kind is not None and kind not in SERIES_KINDS:
        raise InvalidSetting("--kind", f"{kind!r:.40}: give one of {', '.join(SERIES_KINDS)}")
    if not pattern:
        raise InvalidSetting(
            "PATTERN", "is empty and matches nothing: omit it for all, or give one as 'http_*'"
        )
    if by_size:
        _show_by_size(pattern, kind, best_effort, url, prefix, json)
        return
    with opened_store(url, prefix, reading=True, best_effort=best_effort) as store:
        rows: list[tuple[str, str, int | None]] = []
        for each in SERIES_KINDS if kind is None else [kind]:
            rows += _named(store, pattern, each)
    rows.sort(key=lambda row: row[:2])
    if json:
        listed = [{"name": name, "kind": kind, "total": n} for name, kind, n in rows]
        output.print_json({"names": listed, "missing": store.skipped()})
    elif rows:
        lines = [(name, kind, "" if total is None else total) for name, kind, total in rows]
        output.table(["NAME", "KIND", "TOTAL"], lines, right=[2])
    if not rows:
        fail_where_left_out(store)
    if not rows and pattern == "*" and kind:
        fail(f"there are no {kind}s yet", NOT_FOUND)
    if not rows and pattern == "*":
        fix = "record metrics in your application, or read an access log: redmeter replay FILE"
        fail("nothing is recorded yet", NOT_FOUND, fix)
    if not rows:
        *others, last = SERIES_KINDS
        what = kind or f"{', '.join(others)} or {last}"
        fail(f"no {what} matches {_shortened(pattern)}", NOT_FOUND, "redmeter names lists all")


def _show_by_size(
    pattern: str,
    kind: str | None,
    best_effort: bool,
    url: str | None,
    prefix: str | None,
    json: bool,
) -> None:
    from redmeter.health.check import size_text
    from redmeter.maintenance.sizes import sizes_by_name

    with opened_store(url, prefix, reading=True, best_effort=best_effort) as store:
        sizes = sizes_by_name(store)
        missing = store.skipped()
    whole = sum(each.bytes for each in sizes)
    named = set(matching((each.name for each in sizes), pattern))
    chosen = [each for each in sizes if kind in (None, each.kind) and each.name in named]
    if json:
        listed = [each._asdict() for each in chosen]
        output.print_json({"names": listed, "bytes": whole, "missing": missing})
    elif chosen:
        rows = [
            (
                each.name,
                each.kind,
                f"{each.series:,}",
                size_text(each.bytes),
                f"{each.bytes / whole:.0%}",
            )
            for each in chosen
        ]
        output.table(["NAME", "KIND", "SERIES", "MEMORY", "SHARE"], rows, right=[2, 3, 4])
    else:
        fail("nothing is recorded yet" if not sizes else "no name matches", NOT_FOUND)


def _shortened(text: str) -> str:
    """Truncate a text for an error, as invalid names are truncated."""
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text) - 60} more)"


def _named(store: Store, pattern: str, kind: str) -> list[tuple[str, str, int | None]]:
    """Return name, kind and grand total of all series of a kind that match.

    Gauges and histograms have no grand total, and neither have counters that only other programs
    or redmeter.book write.
    """
    names = Queries(store).names(pattern, kind=kind)
    totals: dict[str, int] = {}
    for at in range(0, len(names) if SERIES_KINDS[kind].has_total else 0, 5_000):
        totals |= read_totals(store, names[at : at + 5_000])
    return [(name, kind, totals.get(name)) for name in names]
