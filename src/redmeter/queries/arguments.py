"""Arguments of queries: names, labels, times, widths and orders, checked and converted.

The only place for that: reading/ takes what these functions return. They are called by the methods
of queries/ and by the handlers of the page. What comes from reading/ is imported with the first
query, because a process that only records does not load the readings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

from redmeter.clock import seconds_of
from redmeter.errors import InvalidName, InvalidValue, LimitExceeded, UnknownPrecision
from redmeter.names import canonical, check_text, parse_name, recorded_name
from redmeter.stored.exception import INTERVALS
from redmeter.stored.keys import HOUR, MAX_TIME, check_times, check_whole
from redmeter.stored.message import check_severity, severity_of
from redmeter.types import EXCEPTION_GROUPS, MAX_RANKED_ROWS, Selection, Top, Window

if TYPE_CHECKING:
    from redmeter.reading.diagnosis.verdict import VerdictQuestion
    from redmeter.reading.diagnosis.windows import ExplainRequest
    from redmeter.reading.exceptions import ExceptionQuery
    from redmeter.results.verdict import Against

#: Unix seconds, or a datetime with a time zone.
Time = float | datetime

T = TypeVar("T")
G = TypeVar("G")


class FilterOptions(TypedDict, total=False):
    """Which label sets: see Meter.series()."""

    labels: Mapping[str, object] | None


class WindowOptions(FilterOptions, total=False):
    """Which label sets, and which window: see Meter.series()."""

    since: Time | None
    until: Time | None
    last: int | str | None


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
            return Selection(_stored_name(name), exact=True)
        return Selection(recorded_name(name, labels)[0], exact=True)
    parsed = parse_name(recorded_name(name, labels)[0])
    return Selection(parsed.base, dict(parsed.labels), split)


def _stored_name(name: str) -> str:
    """Check a name that is read exactly: another program may have stored what we would not."""
    try:
        return check_text(name)
    except InvalidName:
        if not isinstance(name, str) or not name or re.search("[\ud800-\udfff]", name):
            raise
        return name


def one_or_groups(
    selection: Selection,
    by: str | Sequence[str] | None,
    found: Sequence[tuple[Sequence[str | None], T]],
    group: Callable[[dict[str, str | None], T], G],
) -> T | list[G]:
    """Return the one result of a query without `by`, else a group for each of its values.

    Args:
        found: the values of the labels that the selection splits by, with the result.
        group: makes a group of labels and a result.
    """
    if by is None:
        return found[0][1]
    return [group(dict(zip(selection.by, key, strict=True)), one) for key, one in found]


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


def unix_time(moment: Time | None) -> float | None:
    """Return a time as Unix seconds.

    Raises:
        InvalidValue: a datetime without a time zone.
    """
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is None:
        raise InvalidValue(moment, "a datetime needs a time zone, e.g. datetime.now(UTC)")
    return moment.timestamp()


def query_window(
    precision: int | str | None,
    since: Time | None,
    until: Time | None,
    last: int | str | None = None,
) -> Window:
    """Return the intervals that a query reads; without a precision, its width is 0.

    Without a precision and a time, it is the last hour.

    Raises:
        InvalidValue: a time or a combination of arguments cannot be used.
    """
    start, end = unix_time(since), unix_time(until)
    check_times(start, end)
    if precision is None and since is until is last is None:
        return Window(0, last=HOUR)
    width = 0 if precision is None else precision_of(precision)
    length = None if last is None else window_length(last, width, since, until)
    return Window(width, start, end, length)


def range_of(
    since: float | None,
    until: float | None,
    last: int | str | None,
    step: float | str | None,
    at: float | None,
) -> tuple[float, float | None, float | None] | None:
    """Return the start of a range query, or minus its length; its end; and its step.

    Raises:
        InvalidValue: a combination of arguments cannot be used.
    """
    width = None if step is None else _duration("step", step)
    if last is not None:
        return -window_length(last, width, since, until, at), None, width
    if since is not None:
        if at is not None:
            raise InvalidValue(at, "at is one time: leave out since and until")
        return since, until, width
    if until is not None or step is not None:
        raise InvalidValue(until or step, "a query over time needs since or last")
    return None


def window_length(last: int | str, width: float | None, *others: object) -> float:
    """Return the length of a window that ends now, seconds.

    Args:
        last: a number of intervals, or a duration as text.
        width: of an interval, seconds; 0 or None: unknown.
        others: the arguments that exclude `last`.

    Raises:
        InvalidValue: neither, or combined with another argument.
    """
    if any(other is not None for other in others):
        raise InvalidValue(last, "last is the whole window: leave out since and until")
    text = str(last).strip() if isinstance(last, int | str) and not isinstance(last, bool) else ""
    length = seconds_of(text)  # a bare number is itself
    if not length:
        raise InvalidValue(last, 'last is a duration as text, "2h", or a number of intervals')
    if not text.isdecimal():
        return length
    if not isinstance(width, int | float) or not width:
        raise InvalidValue(last, f'{last} intervals of which width? Name one, or a unit: "{last}m"')
    return length * width


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


def check_aggregate(aggregate: str | None) -> None:
    """Check the aggregation of gauges.

    Raises:
        InvalidValue: there is no such aggregation.
    """
    from redmeter.reading.aggregates import AGGREGATES

    if aggregate is not None and aggregate not in AGGREGATES:
        raise InvalidValue(aggregate, f"aggregate gauges by one of {', '.join(AGGREGATES)}")


def check_ahead(ahead: int | None) -> None:
    """Check the number of intervals of a forecast.

    Raises:
        LimitExceeded: none, or more than there may be.
        TypeError: not a whole number.
    """
    if ahead is None:
        return
    from redmeter.analysis.forecasting.forecast import MOST_AHEAD

    check_whole("ahead", ahead)
    if not 1 <= ahead <= MOST_AHEAD:
        fix = "ask for 1 or more, up to the limit; a coarser precision looks further"
        raise LimitExceeded("intervals ahead", ahead, MOST_AHEAD, fix)


def check_limit(limit: object, most: int, unit: str) -> None:
    """Check a number of messages or of groups.

    Raises:
        InvalidValue: not a whole number above 0.
        LimitExceeded: too many.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidValue(limit, f"a limit is a whole number of {unit}, 1 or more")
    if limit > most:
        raise LimitExceeded(unit, limit, most, "ask for fewer")


def ranking_of(
    name: str,
    window: Window,
    by: str | None,
    limit: int,
    order: str,
    labels: Mapping[str, object] | None,
    failing: Mapping[str, object] | None,
) -> Top:
    """Return the ranking that top() reads.

    Raises:
        InvalidName: a label is not allowed.
        InvalidValue: there is no such order; or `failing` lacks labels, or labels lack `failing`.
        LimitExceeded: too many rows, or none.
        TypeError: a number is not an int, or labels are no mapping.
    """
    from redmeter.reading.ranking import Order

    order = Order.parse(order).word
    where, failed = filter_of("labels", labels), filter_of("failing", failing)
    if (order == "failing") != bool(failed):
        raise InvalidValue(
            failed or order,
            "order='failing' and the labels of what failed go together: "
            'top(…, order="failing", failing={"status": "5xx"})',
        )
    check_whole("limit", limit)
    if not 1 <= limit <= MAX_RANKED_ROWS:
        raise LimitExceeded("rows", limit, MAX_RANKED_ROWS, "ask for 1 or more, up to the limit")
    return Top(name, window, by, limit, order, where, failed)


def exceptions_of(
    window: Window,
    route: str | None = None,
    order: str = "count",
    limit: int = EXCEPTION_GROUPS,
) -> ExceptionQuery:
    """Return which groups exceptions() reads.

    Args:
        window: its precision is 0 for the finest that reaches back to its start.

    Raises:
        UnknownPrecision, InvalidValue, LimitExceeded: an argument cannot be used.
    """
    from redmeter.reading.exceptions import EXCEPTION_ORDERS, MAX_LIMIT, ExceptionQuery

    if window.precision and window.precision not in INTERVALS:
        raise UnknownPrecision(window.precision, INTERVALS)
    if order not in EXCEPTION_ORDERS:
        raise InvalidValue(order, f"the order is one of {', '.join(EXCEPTION_ORDERS)}")
    check_limit(limit, MAX_LIMIT, "groups")
    return ExceptionQuery(window, route, order, limit)


def explanation_of(
    selection: Selection,
    *,
    since: Time | None = None,
    until: Time | None = None,
    last: int | str | None = None,
    against: str | tuple[Time | None, Time | None] | None = None,
    precision: int | str | None = None,
    failing: Mapping[str, object] | None = None,
) -> ExplainRequest:
    """Return what explain() reads; the arguments are its own.

    Raises:
        InvalidName: a label is not allowed.
        InvalidValue: a time or a combination of arguments cannot be used; there is no such
            baseline, or a window ends before it starts.
    """
    from redmeter.reading.diagnosis.windows import BASELINES, ExplainRequest

    start, end = unix_time(since), unix_time(until)
    check_times(start, end)
    width = None if precision is None else precision_of(precision)
    length = None if last is None else window_length(last, width, since, until)
    if start is not None and end is not None and start >= end:
        raise InvalidValue(start, "a window starts before it ends")
    request = ExplainRequest(
        selection.name,
        start,
        end,
        last=length,
        precision=width,
        labels=selection.labels,
        failing=filter_of("failing", failing) or {},
    )
    if isinstance(against, str | None):
        named = BASELINES.get(against or "previous")
        if named is not None:
            return replace(request, against=named)
    elif isinstance(against, tuple | list) and len(against) == 2:
        first, stop = (unix_time(moment) for moment in against)
        check_times(first, stop)
        if first is None or stop is None:
            raise InvalidValue(against, "a baseline has a start and an end")
        if first >= stop:
            raise InvalidValue(first, "a baseline starts before it ends")
        return replace(request, against="custom", against_since=first, against_until=stop)
    raise InvalidValue(
        against, 'compare against "previous", "yesterday", "last-week" or (since, until)'
    )


def verdict_of(
    mark: str | None, since: Time | None, against: str, precision: int | str | None
) -> VerdictQuestion:
    """Return which verdict is read; without a precision by minutes, or hours for another day.

    Raises:
        InvalidValue: a mark and a time together, no such baseline, or no usable precision.
        TypeError: the mark is not text.
    """
    from redmeter.reading.diagnosis.verdict import VerdictQuestion
    from redmeter.reading.diagnosis.verdict_data import AGAINST

    if mark is not None:
        check_is_text("the label of a mark", mark)
    moment = unix_time(since)
    check_times(moment)
    if mark is not None and since is not None:
        raise InvalidValue(mark, "give a mark or since, not both")
    if not isinstance(against, str) or against not in AGAINST:
        raise InvalidValue(against, f"compare against one of {', '.join(AGAINST)}")
    if precision is None:
        width = HOUR if AGAINST[against] else 60
    else:
        width = precision_of(precision)
        if isinstance(width, int) and width > 0 and AGAINST[against] % width:
            raise InvalidValue(width, f"{against} is no multiple of this precision")
    return VerdictQuestion(mark, moment, cast("Against", against), width)


def _duration(argument: str, length: float | str) -> float:
    seconds = seconds_of(length) if isinstance(length, str) else length
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is None or not number or not 0 < seconds < MAX_TIME:
        raise InvalidValue(length, f'{argument} is a number of seconds above 0, or text as "2h"')
    return seconds
