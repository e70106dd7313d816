"""Options that select label sets (--label, --by, --exact, --aggregate) and times (--since …).

A time is an age, a time of UTC, or Unix seconds.
"""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from redmeter.cli.completion import complete_keys, complete_labels
from redmeter.clock import UNITS
from redmeter.errors import InvalidName, InvalidSetting, InvalidValue
from redmeter.queries import select
from redmeter.queries.arguments import window_length
from redmeter.reading.selection import name_of
from redmeter.store import Store
from redmeter.store.resolve import resolve_name
from redmeter.stored.keys import MAX_TIME
from redmeter.types import Selection

LabelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="<label=value>",
        help="Only label sets with this label. Repeatable.",
        autocompletion=complete_labels,
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="<label>",
        help="Split by the values of this label. Repeatable.",
        autocompletion=complete_keys,
    ),
]
Exact = Annotated[
    bool, typer.Option("--exact", help="Read the one series that is stored under this name.")
]
Aggregate = Annotated[
    str | None,
    typer.Option("--aggregate", help="Label sets of a gauge: sum, min, max or mean."),
]

#: Forms of a time, for help and errors.
TIMES = "an age, e.g. 2h; a time in UTC, e.g. 2026-11-21T15:30; or Unix seconds"

Since = Annotated[str | None, typer.Option("--since", help=f"Start of the window: {TIMES}.")]
Until = Annotated[str | None, typer.Option("--until", help="End of the window.")]
Last = Annotated[
    str | None,
    typer.Option("--last", help="A window up to now: 15m, 2h, or a number of intervals."),
]


def labels_option(
    texts: Sequence[str] | None, option: str = "--label", example: str = "plan=pro"
) -> dict[str, str]:
    """Return the labels of an option that may be repeated, as LABEL=VALUE.

    Args:
        texts: its values.
        option, example: for the error.

    Raises:
        InvalidSetting: one is not LABEL=VALUE, or a label is given twice.
    """
    labels: dict[str, str] = {}
    for text in texts or ():
        label, equals, value = text.partition("=")
        if not label or not equals or label in labels:
            problem = f"give each label once, as LABEL=VALUE, e.g. {example}"
            raise InvalidSetting(option, f"{text!r:.40}: {problem}")
        labels[label] = value
    return labels


def selection_of(
    store: Store,
    name: str,
    labels: Sequence[str] | None = None,
    by: Sequence[str] | None = None,
    *,
    exact: bool = False,
) -> Selection:
    """Return what a name and its options select.

    Raises:
        InvalidSetting: an option is not LABEL=VALUE, or a label is given twice; `--by` with
            `--exact`.
        InvalidName: the name or a label is not allowed.
    """
    where = labels_option(labels)
    if exact and by:
        raise InvalidSetting("--exact", "reads one series, which has no groups: leave out --by")
    if exact and not where:
        return Selection(resolve_name(store, name), exact=True)
    try:
        return select(name, where, by or None, exact=exact)
    except InvalidName:
        if where or by:
            raise
        # A name of another program may not parse; it is a series of its own.
        return Selection(resolve_name(store, name), exact=True)


def arguments_of(selection: Selection) -> dict[str, Any]:
    """Return a selection as arguments of a method of Queries."""
    labels, by = selection.labels or None, selection.by or None
    return {"name": selection.name, "labels": labels, "by": by, "exact": selection.exact}


def named(selection: Selection, key: Sequence[str | None]) -> str:
    """Return the displayed name of a group: with the labels it was split by."""
    known = {label: value for label, value in zip(selection.by, key, strict=True) if value}
    if not known:
        return name_of(selection)
    pairs = sorted((dict(selection.labels) | known).items())
    return f"{selection.name}{{{','.join(f'{label}={json.dumps(v)}' for label, v in pairs)}}}"


def length_of(
    last: str | None, since: str | None, until: str | None, width: int | None = None
) -> float | None:
    """Read --last, seconds.

    Args:
        width: of an interval, seconds, of which a bare number is so many; None: it needs a unit.

    Raises:
        InvalidSetting: it is no duration, or --since or --until is given too.
    """
    if last is None:
        return None
    if since is not None or until is not None:
        raise InvalidSetting("--last", "is the whole window: leave out --since and --until")
    try:
        return window_length(last, width)
    except InvalidValue:
        if last.strip().isdecimal() and int(last):
            text = f"{last} intervals of which width? Give --precision, or a unit: {last}m"
            raise InvalidSetting("--last", text) from None
        raise InvalidSetting("--last", f"{last!r:.40}: give 15m, 2h, or a number") from None


def window_options(
    last: str | None, since: str | None, until: str | None, width: int | None, now: float
) -> dict[str, Any]:
    """Return a window as arguments of a method of Queries.

    Args:
        width: of an interval, seconds, if --precision is given.
        now: what ages count from.

    Raises:
        InvalidSetting: an option cannot be read, or the window ends before it starts.
    """
    length = length_of(last, since, until, width)
    start, end = time_option("--since", since, now), time_option("--until", until, now)
    if start is not None and end is not None and start >= end:
        fix = "an age is longer for the earlier time, e.g. --since 2h --until 1h"
        raise InvalidSetting("--until", f"is not after --since: {fix}")
    return {"since": start, "until": end, "last": None if length is None else f"{length:.0f}s"}


def time_option(option: str, text: str | None, now: float) -> float | None:
    """Read a time, Unix seconds.

    Args:
        option: for the message.
        now: what ages count from.

    Raises:
        InvalidSetting: it is none.
    """
    if text is None:
        return None
    word = text.strip()
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", word):
        return float(word)
    age = re.fullmatch(r"([0-9]{1,9})\s*([a-z]+)", word)
    if age is not None and age[2] in UNITS:
        return max(now - int(age[1]) * UNITS[age[2]], -MAX_TIME)
    try:
        time = datetime.fromisoformat(word)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidSetting(option, f"{text!r:.40}: give {TIMES}") from None
