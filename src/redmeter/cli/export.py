"""export: stored samples as CSV, JSON lines or Parquet."""

import contextlib
import csv
import json as jsonlib
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from redmeter.cli import output
from redmeter.cli.app import (
    NOT_FOUND,
    Precision,
    Prefix,
    Url,
    command,
    fail,
    opened_store,
    precision_seconds,
)
from redmeter.cli.selectors import (
    LabelOption,
    Last,
    Since,
    Until,
    labels_option,
    length_of,
    time_option,
)
from redmeter.errors import InvalidSetting
from redmeter.extras import needs
from redmeter.reading.export.rows import KINDS, Export, Row, export_rows

#: Writes rows.
_WriteRows = Callable[[Sequence[Row]], None]
#: Rows that a row group of a Parquet file has at least.
_ROW_GROUP = 20_000
_FORMATS = ("csv", "jsonl", "parquet")


@command(
    name="export",
    epilog="Examples: redmeter export --to all.csv · "
    "redmeter export 'http_*' -p 1m --since 2h --to http.jsonl · "
    "redmeter export orders --label plan=pro -p 1h --to orders.parquet · "
    "redmeter export hits --to - | head",
)
def export(
    pattern: Annotated[
        str,
        typer.Argument(help="Names to export, with all label sets: orders, or 'http_*' in quotes."),
    ] = "*",
    to: Annotated[
        str, typer.Option("--to", help="FILE.csv, FILE.jsonl or FILE.parquet; - for the output.")
    ] = "-",
    precision: Precision = "60",
    since: Since = None,
    until: Until = None,
    last: Last = None,
    label: LabelOption = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="<kind>", help="counter, gauge or histogram. Repeatable."),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="csv, jsonl or parquet. Default: by extension.")
    ] = None,
    url: Url = None,
    prefix: Prefix = None,
) -> None:
    """Write complete intervals of series to a file, one row each.

    A row has the start of the interval, kind, name and labels; the value of a counter or gauge; and
    count, sum, min, max and percentiles of a histogram. Parquet needs the extra redmeter[parquet].
    The file appears only once it is complete.
    """
    format_name = _format(to, form)
    for one in kind or ():
        if one not in KINDS:
            raise InvalidSetting("--kind", f"{one!r:.40}: give {', '.join(KINDS)}")
    labels, width, rows = labels_option(label), precision_seconds(precision), 0
    length = length_of(last, since, until)
    with opened_store(url, prefix, reading=True) as store, output.progress("exporting") as show:
        view, _ = store.read()
        start, end = (
            time_option("--since", since, view.now),
            time_option("--until", until, view.now),
        )
        start = view.now - length if length is not None else start
        request = Export(pattern, labels, width, tuple(kind or KINDS), start, end)
        with _opened(to, format_name) as write:
            for batch in export_rows(store, request, show):
                write(batch)
                rows += len(batch)
            if not rows:  # before the file gets its name
                text = "nothing is stored for these names in this window"
                fail(text, NOT_FOUND, "redmeter names lists all series")
    if to != "-":
        output.note(f"{output.many(rows, 'row')} written to {to}")


def _format(to: str, form: str | None) -> str:
    """Return which of _FORMATS is written."""
    name = form or ("csv" if to == "-" else Path(to).suffix.removeprefix(".").lower())
    if name not in _FORMATS:
        option = "--format" if form else "--to"
        raise InvalidSetting(option, f"{form or to!r:.60}: the formats are csv, jsonl and parquet")
    if name == "parquet" and to == "-":
        raise InvalidSetting("--to", "Parquet is written to a file, e.g. --to metrics.parquet")
    return name


@contextlib.contextmanager
def _opened(to: str, form: str) -> Iterator[_WriteRows]:
    """Open the output; a file gets its name when it is complete."""
    if to == "-":
        yield _text_writer(sys.stdout, form)
        sys.stdout.flush()
        return
    part = Path(f"{to}.part")
    try:
        if form == "parquet":
            with _parquet(part) as write:
                yield write
        else:
            try:
                file = part.open("w", encoding="utf-8", newline="")
            except OSError as error:
                raise InvalidSetting("--to", f"{to}: {error.strerror}") from None
            with file:
                yield _text_writer(file, form)
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)


def _text_writer(file: TextIO, form: str) -> _WriteRows:
    if form == "jsonl":

        def write(rows: Sequence[Row]) -> None:
            for row in rows:
                fields = {key: value for key, value in row._asdict().items() if value is not None}
                file.write(jsonlib.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n")

        return write
    table = csv.writer(file, lineterminator="\n")
    head: list[Sequence[str]] = [Row._fields]

    def write_csv(rows: Sequence[Row]) -> None:
        if rows and head:  # not before the first row: an error may come instead
            table.writerow(head.pop())
        table.writerows(
            (
                datetime.fromtimestamp(row.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                *row[1:3],
                jsonlib.dumps(row.labels, ensure_ascii=False) if row.labels else "",
                *("" if value is None else value for value in row[4:]),
            )
            for row in rows
        )

    return write_csv


@contextlib.contextmanager
def _parquet(path: Path) -> Iterator[_WriteRows]:
    with needs("parquet", "an export to Parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    numbers = [(name, pa.int64() if name == "count" else pa.float64()) for name in Row._fields[4:]]
    schema = pa.schema(
        [
            ("time", pa.timestamp("s", tz="UTC")),
            ("kind", pa.dictionary(pa.int8(), pa.string())),
            ("name", pa.dictionary(pa.int32(), pa.string())),
            ("labels", pa.map_(pa.string(), pa.string())),
            *numbers,
        ]
    )
    waiting: list[Row] = []
    try:
        writer = pq.ParquetWriter(path, schema, compression="zstd")
    except OSError as error:
        raise InvalidSetting("--to", f"{path}: {error.strerror or error}") from None

    def flush() -> None:
        columns: list[Any] = [list(column) for column in zip(*waiting, strict=True)]
        columns[3] = [list(labels.items()) for labels in columns[3]]
        arrays = [pa.array(one, field.type) for one, field in zip(columns, schema, strict=True)]
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        waiting.clear()

    def write(rows: Sequence[Row]) -> None:
        waiting.extend(rows)
        if len(waiting) >= _ROW_GROUP:
            flush()

    with writer:
        yield write
        if waiting:
            flush()
