"""export: stored samples as CSV, JSON lines or Parquet."""

import contextlib
import csv
import json as jsonlib
import os
import secrets
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TextIO

import typer

from redmeter.cli import output
from redmeter.cli.app import (
    NOT_FOUND,
    AnyPrecision,
    Prefix,
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
    window_options,
)
from redmeter.errors import InvalidSetting
from redmeter.extras import needs
from redmeter.queries.source import FromStore, window_kept
from redmeter.reading.export.rows import Export, Row, export_rows
from redmeter.reading.samples import covered
from redmeter.stored.families import SERIES_KINDS

#: Writes rows.
_WriteRows = Callable[[Sequence[Row]], None]
#: Rows that a row group of a Parquet file has at least.
_ROW_GROUP = 20_000
_FORMATS = ("csv", "jsonl", "parquet")
#: What a spreadsheet takes for the beginning of a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


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
        typer.Argument(
            help="Names to export, with all label sets: orders, or 'http_*' in quotes.",
            autocompletion=complete_names,
        ),
    ] = "*",
    to: Annotated[
        str, typer.Option("--to", help="FILE.csv, FILE.jsonl or FILE.parquet; - for the output.")
    ] = "-",
    precision: AnyPrecision = None,
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
    excel: Annotated[
        bool,
        typer.Option(
            "--excel", help="CSV for spreadsheets: names that begin as a formula get a '."
        ),
    ] = False,
    url: Url = None,
    prefix: Prefix = None,
) -> None:
    """Write complete intervals of series to a file, one row each.

    A row has the start of the interval, kind, name and labels; the value of a counter or gauge; the
    count of a counter or histogram; and sum, min, max and percentiles of a histogram. Parquet needs
    the extra redmeter[parquet]. The file appears only once it is complete.
    """
    format_name = _format(to, form)
    if excel and format_name != "csv":
        raise InvalidSetting("--excel", f"is for CSV, not {format_name}")
    for one in kind or ():
        if one not in SERIES_KINDS:
            raise InvalidSetting("--kind", f"{one!r:.40}: give {', '.join(SERIES_KINDS)}")
    labels, rows = labels_option(label), 0
    named = (last, since, until) != (None, None, None)
    width = precision_seconds(precision or "60") if precision or not named else None
    length_of(last, since, until, width)
    kinds = tuple(kind or SERIES_KINDS)
    with opened_store(url, prefix, reading=True) as store, output.progress("exporting") as show:
        view, _ = store.read()
        options = window_options(last, since, until, width, view.now)
        window = window_kept(FromStore(store), kinds[0], width, **options)
        request = Export(pattern, labels, window, kinds)
        with _opened(to, format_name, excel=excel) as write:
            for batch in export_rows(store, request, show):
                write(batch)
                rows += len(batch)
            if not rows:  # before the file gets its name
                text = "nothing is stored for these names in this window"
                fail(text, NOT_FOUND, "redmeter names lists all series")
        output.note_missing(
            covered(window, kept, view.now)
            for kept in map(view.retention_of, kinds)
            if window.precision in kept
        )
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
def _opened(to: str, form: str, *, excel: bool) -> Iterator[_WriteRows]:
    """Open the output; a regular file gets its name, and its rows, when it is complete."""
    if to == "-":
        yield _text_writer(sys.stdout, form, excel=excel)
        sys.stdout.flush()
        return
    try:
        with _written(to, form) as raw:
            if form == "parquet":
                with _parquet(raw) as write:
                    yield write
            else:
                with open(raw.fileno(), "w", encoding="utf-8", newline="", closefd=False) as file:
                    yield _text_writer(file, form, excel=excel)
    except OSError as error:
        raise InvalidSetting("--to", f"{to}: {error.strerror or error}") from None


@contextlib.contextmanager
def _written(to: str, form: str) -> Iterator[BinaryIO]:
    """Open a file for writing.

    A regular file is written under no name, or under a random one, and replaces an older one when
    it is complete, with its permissions. Links are followed. Anything else is written to directly:
    a device, a named pipe, and what /dev and /proc name, such as /dev/stdout.
    """
    try:
        old = Path(to).stat()
    except FileNotFoundError:
        old = None
    if to.startswith(("/dev/", "/proc/")) or (old is not None and not stat.S_ISREG(old.st_mode)):
        if form == "parquet":
            raise InvalidSetting("--to", f"{to}: Parquet is written to a regular file")
        with Path(to).open("wb", buffering=0) as special:
            yield special
        return
    path = Path(to).resolve()
    temporary = path.parent / f".{path.name[:100]}.{secrets.token_hex(8)}"
    number, nameless = _begun(temporary)
    try:
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            if old is not None:
                with contextlib.suppress(PermissionError):  # another user's file
                    os.fchown(number, old.st_uid, old.st_gid)
                os.fchmod(number, stat.S_IMODE(old.st_mode))
            if nameless:
                _name(number, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


_OPEN_FILES = Path("/proc/self/fd")


def _begun(path: Path) -> tuple[int, bool]:
    """Create a file, if possible without a name: then nothing is left behind by any signal.

    Returns:
        The file, and whether it has no name.
    """
    if hasattr(os, "O_TMPFILE") and _OPEN_FILES.is_dir():
        with contextlib.suppress(OSError):  # a file system without these
            return os.open(path.parent, os.O_WRONLY | os.O_TMPFILE, 0o666), True
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), False


def _name(number: int, path: Path) -> None:
    """Give a file a name."""
    folder = os.open(_OPEN_FILES, os.O_RDONLY)
    try:
        os.link(str(number), path, src_dir_fd=folder)  # with a folder, Python follows the link
    finally:
        os.close(folder)


def _text_writer(file: TextIO, form: str, *, excel: bool) -> _WriteRows:
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
                output.iso_time(row.time),
                row.kind,
                f"'{row.name}" if excel and row.name.startswith(_FORMULAS) else row.name,
                jsonlib.dumps(row.labels, ensure_ascii=False) if row.labels else "",
                *("" if value is None else value for value in row[4:]),
            )
            for row in rows
        )

    return write_csv


@contextlib.contextmanager
def _parquet(file: BinaryIO) -> Iterator[_WriteRows]:
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

    def flush() -> None:
        columns: list[Any] = [list(column) for column in zip(*waiting, strict=True)]
        columns[3] = [list(labels.items()) for labels in columns[3]]
        columns[4] = [None if value is None else float(value) for value in columns[4]]
        arrays = [pa.array(one, field.type) for one, field in zip(columns, schema, strict=True)]
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        waiting.clear()

    def write(rows: Sequence[Row]) -> None:
        waiting.extend(rows)
        if len(waiting) >= _ROW_GROUP:
            flush()

    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        yield write
        if waiting:
            flush()
