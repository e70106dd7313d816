"""Arguments of queries: names, labels, times and widths, checked and converted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from redmeter.clock import seconds_of
from redmeter.errors import InvalidValue
from redmeter.names import canonical, check_text, parse_name, recorded_name
from redmeter.stored.keys import MAX_TIME, check_times
from redmeter.stored.message import check_severity, severity_of
from redmeter.types import Selection, Window

#: Unix seconds, or a datetime with a time zone.
Time = float | datetime


def select(
    name: str,
    labels: Mapping[str, object] | None = None,
    by: str | Sequence[str] | None = None,
    *,
    exact: bool = False,
) -> Selection:
    """Return the selection of a name and its options, which are those of Meter.series().

    Label values are converted, cleaned and truncated as they are when events are recorded.

    Raises:
        InvalidName: the name or a label is not allowed.
        InvalidValue: `exact` and `by` together.
    """
    split = (by,) if isinstance(by, str) else tuple(by or ())
    for label in split:
        canonical("x", {label: ""})
    if exact:
        if by is not None:
            raise InvalidValue(by, "exact=True reads one series, which has no groups: leave out by")
        if labels is None:
            return Selection(check_text(name), exact=True)
        return Selection(recorded_name(name, labels)[0], exact=True)
    parsed = parse_name(recorded_name(name, labels)[0])
    return Selection(parsed.base, dict(parsed.labels), split)


def group_labels(selection: Selection, key: Sequence[str | None]) -> dict[str, str | None]:
    """Return the labels of a group: those that the selection splits by, with their values."""
    return dict(zip(selection.by, key, strict=True))


def spellings(names: Iterable[str]) -> list[str]:
    """Return the stored spellings of names.

    Raises:
        InvalidName: a name is not allowed.
        TypeError: a single str, which would be one name for each of its characters.
    """
    if isinstance(names, str | bytes):
        raise TypeError(f"a list of names is needed, not {type(names).__name__}: [name]")
    return [canonical(name) for name in names]


def filter_of(argument: str, labels: Mapping[str, object] | None) -> Mapping[str, str] | None:
    """Return a filter of labels, with its values converted to str.

    Raises:
        InvalidName: a label is not allowed.
        TypeError: not a mapping.
    """
    if labels is None:
        return None
    if not isinstance(labels, Mapping):
        kind = type(labels).__name__
        raise TypeError(
            f'{argument} takes labels and their values, e.g. {{"plan": "pro"}}, not {kind}'
        )
    for label in labels:
        canonical("x", {label: ""})
    return {label: str(value) for label, value in labels.items()}


def precision_of(precision: int | str) -> int:
    """Return an interval width in seconds; reading checks whether it is kept.

    Raises:
        InvalidValue: a text that is no duration.
    """
    if not isinstance(precision, str):
        return precision
    seconds = seconds_of(precision)
    if seconds is None:
        raise InvalidValue(precision, 'a precision is in seconds, or text: "5s", "1m", "1h"')
    return seconds


def time_of(moment: Time | None) -> float | None:
    """Return a time as Unix seconds.

    Raises:
        InvalidValue: a datetime without a time zone.
    """
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is None:
        raise InvalidValue(moment, "a datetime needs a time zone, e.g. datetime.now(UTC)")
    return moment.timestamp()


def window_of(
    precision: int | str,
    since: Time | None,
    until: Time | None,
    last: float | str | None = None,
) -> Window:
    """Return the intervals that a query reads.

    Raises:
        InvalidValue: a time or a combination of arguments cannot be used.
    """
    start, end = time_of(since), time_of(until)
    check_times(start, end)
    length = None if last is None else window_length(last, since, until)
    return Window(precision_of(precision), start, end, length)


def range_of(
    since: float | None,
    until: float | None,
    last: float | str | None,
    step: float | str | None,
    at: float | None,
) -> tuple[float, float | None, float | None] | None:
    """Return the start of a range query, or minus its length; its end; and its step.

    Raises:
        InvalidValue: a combination of arguments cannot be used.
    """
    width = None if step is None else _duration("step", step)
    if last is not None:
        return -window_length(last, since, until, at), None, width
    if since is not None:
        if at is not None:
            raise InvalidValue(at, "at is one time: leave out since and until")
        return since, until, width
    if until is not None or step is not None:
        raise InvalidValue(until or step, "a query over time needs since or last")
    return None


def against_of(against: str | tuple[Time, Time] | None) -> str | tuple[float, float]:
    """Return a baseline: a name, which request_of() checks, or its start and end.

    Raises:
        InvalidValue: neither.
    """
    if against is None or isinstance(against, str):
        return against or "previous"
    if not isinstance(against, tuple | list) or len(against) != 2:
        raise InvalidValue(
            against, 'compare against "previous", "yesterday", "last-week" or (since, until)'
        )
    start, end = (time_of(moment) for moment in against)
    check_times(start, end)
    if start is None or end is None:
        raise InvalidValue(against, "a baseline has a start and an end")
    return start, end


def window_length(last: float | str, *others: object) -> float:
    """Return the length of a window that ends now, seconds.

    Args:
        others: the arguments that exclude `last`.

    Raises:
        InvalidValue: not a duration, or combined with another argument.
    """
    if any(other is not None for other in others):
        raise InvalidValue(last, "last is the whole window: leave out since and until")
    return _duration("last", last)


def stored_severity(severity: int | str | None) -> str | None:
    """Return a severity as it is stored: a name or a level of logging; None for all."""
    return None if severity is None else severity_of(check_severity(severity))


def check_is_text(argument: str, value: object) -> None:
    """Check an argument that must be a str.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, str):
        raise TypeError(f"{argument} is text (str), not {type(value).__name__}")


def _duration(argument: str, length: float | str) -> float:
    seconds = seconds_of(length) if isinstance(length, str) else length
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is None or not number or not 0 < seconds < MAX_TIME:
        raise InvalidValue(length, f'{argument} is a number of seconds above 0, or text as "2h"')
    return seconds
