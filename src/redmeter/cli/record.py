"""count, set, observe: record from shell scripts and cron, acknowledged by the store.

One event comes from the command line, or many from standard input: of `NAME [VALUE]` in each line,
those that were read together are sent together, in one pipeline. A bad line is reported by its
number, and loses no other. Nothing is printed on success, since cron mails what is printed.
"""

import contextlib
import math
import re
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import typer

from redmeter import settings
from redmeter.cli import output
from redmeter.cli.app import (
    NOT_FOUND,
    STORE,
    USAGE,
    AsJson,
    Prefix,
    Url,
    command,
    fail,
    opened_store,
)
from redmeter.cli.completion import complete_labels, complete_names
from redmeter.cli.failure import Failure
from redmeter.cli.selectors import TIMES, labels_option, time_option
from redmeter.errors import InvalidSetting, RedmeterError
from redmeter.names import recorded_name
from redmeter.recording.bulk_writer import BulkWriter
from redmeter.recording.pending import (
    PendingCounter,
    PendingGauge,
    PendingHistogram,
    PendingSeries,
    without_instance,
)
from redmeter.results.recorder import AGED, FUTURE, LOSS_REASONS, MEMORY, RETENTION
from redmeter.store import Store
from redmeter.stored.counter import check_amount
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import check_time

#: Bad lines that are listed; more are only counted.
_LISTED = 20

_Name = Annotated[
    str,
    typer.Argument(
        help="A name, with labels in braces or by --label; - for lines of standard input.",
        autocompletion=complete_names,
    ),
]
_Value = Annotated[str | None, typer.Argument(help="A finite number; with -, it is in the lines.")]
_Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="<label=value>",
        help="Add this label, to every line. Repeatable.",
        autocompletion=complete_labels,
    ),
]
_At = Annotated[
    str | None, typer.Option("--at", help=f"Time of the events: {TIMES}. Default: now.")
]


def _amount(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise InvalidSetting("AMOUNT", f"{text!r:.40}: give a whole number, not negative")
    return check_amount(int(text))


def _number(text: str) -> float:
    with contextlib.suppress(ValueError):
        number = float(text)
        if math.isfinite(number) and "_" not in text:
            return number
    raise InvalidSetting("VALUE", f"{text!r:.40}: give a finite number, e.g. 0.25")


def _observe(bulk: BulkWriter, series: str, time: float, value: float, now: float) -> None:
    distribution = Distribution()
    distribution.add_all([value])
    bulk.observe(series, math.floor(time), distribution, now)


class _Kind(NamedTuple):
    """What is recorded by a command."""

    name: str
    pending: type[PendingSeries]
    #: Reads a value.
    read: Callable[[str], Any]
    #: Adds it: writer, series, time, value, now.
    add: Callable[[BulkWriter, str, float, Any, float], None]
    #: The value of a line without one.
    default: str | None = None


_COUNTER = _Kind(
    "counter",
    PendingCounter,
    _amount,
    lambda bulk, series, time, value, now: bulk.add(series, math.floor(time), value, now),
    default="1",
)
_GAUGE = _Kind("gauge", PendingGauge, _number, BulkWriter.set)
_HISTOGRAM = _Kind("histogram", PendingHistogram, _number, _observe)


@command(
    name="count",
    numbers=True,
    epilog="Examples: redmeter count backups · redmeter count mails 12 --label queue=news · "
    "redmeter count orders --at 2026-11-21T15:30 · "
    "cut -f1 events.tsv | redmeter count - --label host=web1",
)
def count_command(
    name: _Name,
    amount: Annotated[
        str | None, typer.Argument(help="How many, a whole number; default: 1.")
    ] = None,
    label: _Labels = None,
    at: _At = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Count events, from a shell script.

    Ends when the store has acknowledged the events, and prints nothing: the exit code is 0 if they
    are stored. With - instead of a name, reads lines of standard input: a name, and an amount if
    it is not 1; labels are in braces: orders{plan="pro"} 3. A bad line is reported with its number
    and loses no other; then the exit code is 1.
    """
    _record(_COUNTER, name, amount, label, at, url, prefix, json)


@command(
    name="set",
    numbers=True,
    epilog="Examples: redmeter set queue_length 17 · redmeter set temperature 21.5 --at 5m · "
    'redmeter set users "$(who | wc -l)" --label host=web1 · '
    "./collect-gauges | redmeter set -",
)
def set_command(
    name: _Name,
    value: _Value = None,
    label: _Labels = None,
    at: _At = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Set a gauge, from a shell script.

    Ends when the store has acknowledged the value, and prints nothing: the exit code is 0 if it is
    stored. With - instead of a name, reads lines of standard input: a name and a value; labels are
    in braces: queue_length{queue="mail"} 17. A bad line is reported with its number and loses no
    other; then the exit code is 1.
    """
    _record(_GAUGE, name, value, label, at, url, prefix, json)


@command(
    name="observe",
    numbers=True,
    epilog="Examples: redmeter observe backup_seconds 81.4 · "
    "redmeter observe import_seconds 3.2 --label source=csv --at 10m · "
    "awk '{print \"job_seconds\", $3}' jobs.log | redmeter observe -",
)
def observe_command(
    name: _Name,
    value: _Value = None,
    label: _Labels = None,
    at: _At = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Record a value of a histogram, from a shell script.

    Ends when the store has acknowledged the value, and prints nothing: the exit code is 0 if it is
    stored. With - instead of a name, reads lines of standard input: a name and a value; labels are
    in braces: backup_seconds{disk="a"} 81.4. A bad line is reported with its number and loses no
    other; then the exit code is 1.
    """
    _record(_HISTOGRAM, name, value, label, at, url, prefix, json)


def _record(
    kind: _Kind,
    name: str,
    value: str | None,
    label: list[str] | None,
    at: str | None,
    url: str | None,
    prefix: str | None,
    json: bool,
) -> None:
    if name.startswith("-") and name != "-":
        fail(f"no such option: {name}", USAGE, "see redmeter --help")
    if name == "-" and value is not None:
        raise InvalidSetting("-", f"the values are in the lines: leave out {value!r:.40}")
    labels = labels_option(label)
    if name != "-":  # before anything is opened
        value = kind.default if value is None else value
        if value is None:
            raise InvalidSetting("VALUE", "is missing: give a finite number, e.g. 0.25")
        kind.read(value)
        recorded_name(name, labels)
    with opened_store(url, prefix, create=True) as store:
        session = _Session(store, kind, labels, at)
        if name == "-":
            _record_lines(session, json=json)
            return
        assert value is not None
        series, number = session.add(name, value)
        session.write()
        if json:
            moment = round(session.time(), 3)
            output.print_json({"name": series, "kind": kind.name, "value": number, "time": moment})
        session.check()


class _Session:
    """Events of one command, on their way to the store.

    Args:
        labels: of all of them.
        at: their time, as it is given; None for now.

    Raises:
        InvalidSetting: no time, or the store keeps nothing of that time.
        StoreError: the store is unreachable or refuses.
    """

    def __init__(self, store: Store, kind: _Kind, labels: dict[str, str], at: str | None) -> None:
        self.kind = kind
        self._store, self._labels = store, labels
        store.config()  # the retention
        self._at = time_option("--at", at, store.clock.wall())
        if self._at is not None:
            self._check_kept(check_time(self._at))
        self._bulk = BulkWriter(store)
        self._durability: str = settings.resolve("durability")

    def _check_kept(self, time: float) -> None:
        now, kept = self._store.clock.wall(), self.kind.pending.retention(self._store.kept)
        longest = max(precision * samples for precision, samples in kept.items())
        if not now - longest <= time <= now + longest:
            raise InvalidSetting("--at", f"{output.moment(time)} UTC is outside the retention")

    def time(self) -> float:
        """Return the time of an event that is added now, Unix seconds."""
        return self._store.clock.wall() if self._at is None else self._at

    def add(self, name: str, text: str) -> tuple[str, Any]:
        """Add an event; return the stored name of its series, and its value.

        Raises:
            InvalidName, InvalidSetting, InvalidValue: it cannot be recorded.
        """
        value = self.kind.read(text)
        series, note = recorded_name(name, self._labels)
        if note:
            output.note(f"warning: {series}: {note}")
        series = without_instance(series)
        self.kind.add(self._bulk, series, self.time(), value, self._store.clock.wall())
        return series, value

    def write(self) -> None:
        """Send what was added, and wait for the acknowledgment.

        Raises:
            StoreError: the store is unreachable or refuses.
        """
        self._bulk.write(self._store.timeout, self._store.clock.wall())
        if self._durability != "none":
            self._bulk.confirm(self._durability, self._store.timeout)

    def check(self) -> None:
        """Fail if the server rejected a part of what was written."""
        health = self._bulk.health()
        if health.uncertain:
            fail("the outcome is unknown: the events may be stored or not", STORE)
        for loss in health.losses:
            if loss.reason not in (AGED, FUTURE, MEMORY, RETENTION):
                reason = LOSS_REASONS.get(loss.reason)
                fix = reason.fix if reason else "redmeter doctor shows its state"
                fail(f"the server rejected {loss.series} ({loss.reason})", STORE, fix)


def _record_lines(session: _Session, *, json: bool) -> None:
    """Record the lines of standard input, those that come together in one pipeline."""
    from redmeter.ingest import lines

    number = recorded = refused = 0
    errors: list[dict[str, Any]] = []
    complete = False
    try:
        with lines.Lines("-") as source:
            for batch in source:
                added = 0
                for line in batch:
                    number += 1
                    try:
                        added += _add_line(session, line)
                    except RedmeterError as error:
                        refused += 1
                        if refused <= _LISTED:
                            errors.append({"line": number, "message": str(error)})
                            output.note(f"line {number}: {error}")
                if added:
                    session.write()
                    recorded += added
        complete = True
    finally:
        counts = {"lines": number, "recorded": recorded, "refused": refused}
        if json:
            output.print_json(counts | {"errors": errors})
        if refused > _LISTED:
            output.note(f"… ({refused - _LISTED:,} more)")
        summary = f"{output.many(recorded, 'line')} recorded, {refused:,} refused"
        if not (complete and refused):  # else the error below has it
            output.note(summary)
    session.check()
    if refused:
        raise Failure(summary, NOT_FOUND, code="bad-parameter")


def _add_line(session: _Session, line: str) -> bool:
    """Add `NAME [VALUE]`; return whether the line has an event, which an empty one has not."""
    text = line.strip()
    if not text:
        return False
    head, brace, rest = text.rpartition("}")
    if brace:
        name, value = head + brace, rest.strip()
    else:
        name, *words = text.rsplit(None, 1)
        value = "".join(words)
    value = value or session.kind.default or ""
    if not value:
        raise InvalidSetting("VALUE", f"{text!r:.40}: give a name and a finite number")
    session.add(name.strip(), value)
    return True
