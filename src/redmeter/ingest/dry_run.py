"""A dry run: the lines of a log as they would be read, without a store."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from redmeter.ingest.access_log import Hit, MalformedLine
from redmeter.ingest.formats import FORMATS, LogFormat
from redmeter.ingest.log_reader import LogReader

#: Requests in the report.
SAMPLES = 5


@dataclass(slots=True)
class DryRun:
    """How the lines of a log were understood."""

    lines: int = 0
    requests: int = 0
    #: Lines about the log or the server.
    notices: int = 0
    #: Format -> requests.
    formats: dict[str, int] = field(default_factory=dict)
    #: Requests in a format without times, which count at the time of reading.
    untimed: int = 0
    #: Reason -> malformed lines.
    malformed: dict[str, int] = field(default_factory=dict)
    #: The first SAMPLES requests, each with the number of its line and its format.
    sample: list[tuple[int, Hit, str]] = field(default_factory=list)
    #: Reason -> number and text of the first line that was refused for it.
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)


def dry_run(
    source: Iterable[list[str]],
    formats: Mapping[str, LogFormat] = FORMATS,
    report: DryRun | None = None,
) -> DryRun:
    """Read a log to its end and store nothing.

    Args:
        source: batches of lines, see ingest.lines.Lines.
        formats: those that the log may have, by name.
        report: filled as the work goes on.

    Raises:
        DamagedFile, OSError: the source cannot be read further.
    """
    report = DryRun() if report is None else report
    reader = LogReader(formats, lambda: math.nan)
    for batch in source:
        for number, line in enumerate(batch, report.lines + 1):
            before = reader.requests.copy() if len(report.sample) < SAMPLES else None
            try:
                hit = reader.parse_hit(line)
            except MalformedLine as error:
                report.malformed[error.reason] = report.malformed.get(error.reason, 0) + 1
                report.refused.setdefault(error.reason, (number, line))
                continue
            if hit is None:
                report.notices += 1
                continue
            report.requests += 1
            report.untimed += math.isnan(hit.time)
            if before is not None:
                (name,) = reader.requests - before
                report.sample.append((number, hit, name))
        report.lines += len(batch)
        report.formats = dict(reader.requests)
    return report
