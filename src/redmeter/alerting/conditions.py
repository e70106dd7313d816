"""Conditions: the reading of a rule at a time, from the query API of a meter.

A window consists of complete intervals of the finest precision that is kept that far back; the
reading's detail names it. If none is kept that far back, or the window is no multiple of any, the
reading is unknown: with other intervals it would be another window.
"""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from redmeter.alerting.rules import Rule, percentile_of
from redmeter.alerting.state import Reading
from redmeter.errors import InvalidValue, LimitExceeded, UnknownPrecision

if TYPE_CHECKING:
    from redmeter.queries import Queries

#: Groups of exceptions that are read, the newest first.
_GROUPS = 100
#: Seconds after the end of an interval before it counts as complete: writers flush every second.
DELAY = 5.0


def precision_of(retention: Mapping[int, int], window: int, at: float, now: float) -> int | None:
    """Return the precision to read a window with; None if none is kept that far back.

    Args:
        retention: precision -> number of intervals that are kept.
        window: seconds.
        at: the time to evaluate for.
        now: the server's clock.
    """
    for precision, kept in sorted(retention.items()):
        since = end_of(at, precision) - window
        oldest = (now // precision - kept + 1) * precision
        if window % precision == 0 and since >= oldest:
            return precision
    return None


def end_of(at: float, precision: int) -> int:
    """Return the end of the last interval that is complete at a time."""
    return math.floor((at - DELAY) / precision) * precision


class Conditions:
    """Evaluates rules.

    Args:
        queries: a meter, or a MemoryMeter.
        series: the retention of counters and gauges: precision -> number of intervals.
        histograms: the retention of histograms.
    """

    def __init__(
        self, queries: "Queries", series: Mapping[int, int], histograms: Mapping[int, int]
    ) -> None:
        self._queries = queries
        self._series = series
        self._histograms = histograms

    def read(self, rule: Rule, at: float, now: float) -> Reading:
        """Return the reading of a rule.

        Args:
            at: the time to evaluate it for; earlier than `now` when rules are replayed.
            now: the server's clock.

        Raises:
            StoreError: the store is unreachable or refuses.
        """
        try:
            match rule.when:
                case "threshold":
                    return self._threshold(rule, at, now)
                case "ratio":
                    return self._ratio(rule, at, now)
                case "absent":
                    return self._absent(rule, at, now)
                case "burn":
                    return self._burn(rule, at, now)
                case "expected":
                    return self._expected(rule, at)
                case "new_pattern":
                    return self._new_patterns(rule, at, now)
                case "new_exception":
                    return self._new_exceptions(rule, at, now)
                case _:
                    return self._verdict(rule, at, now)
        except _NotKept as error:
            return Reading(None, detail=str(error))
        except (UnknownPrecision, LimitExceeded, InvalidValue) as error:
            return Reading(None, detail=f"cannot be evaluated: {error}")

    def _threshold(self, rule: Rule, at: float, now: float) -> Reading:
        percentile = percentile_of(rule.value)
        if rule.value in ("rate", "count"):
            count, precision = self._count(rule.metric, rule.window, at, now)
            value: float | None = count / rule.window if rule.value == "rate" else count
        elif percentile is not None:
            value, precision = self._percentile(rule, percentile, at, now)
        else:
            value, precision = self._gauge(rule, at, now)
        if value is None:
            return Reading(False, detail=f"no values in {_duration(rule.window)}")
        detail = f"{rule.value} of {rule.metric} over {_duration(rule.window)} is {value:g}"
        return _compared(rule, value, f"{detail} ({_intervals(precision)})")

    def _ratio(self, rule: Rule, at: float, now: float) -> Reading:
        part, precision = self._count(rule.metric, rule.window, at, now)
        whole, _ = self._count(rule.of, rule.window, at, now)
        over = _duration(rule.window)
        if whole < rule.at_least:
            detail = f"{whole} events in {over}, fewer than at_least = {rule.at_least}"
            return Reading(False, None, detail)
        detail = f"{part} of {whole} in {over} ({_intervals(precision)})"
        return _compared(rule, part / whole, detail)

    def _absent(self, rule: Rule, at: float, now: float) -> Reading:
        count, precision = self._count(rule.metric, rule.window, at, now)
        detail = f"{count} events in {_duration(rule.window)} ({_intervals(precision)})"
        return Reading(count == 0, count, detail)

    def _burn(self, rule: Rule, at: float, now: float) -> Reading:
        budget = 1 - rule.objective
        worst, details, unknown = 0.0, [], []
        for long, short, rate in rule.windows:
            try:
                burns = [self._burn_rate(rule, window, at, now) for window in (long, short)]
            except _NotKept as error:
                unknown.append(str(error))
                continue
            known = [burn / budget for burn in burns if burn is not None]
            if len(known) < len(burns):
                continue  # too few events
            worst = max(worst, min(known))
            if min(known) > rate:
                names = f"{_duration(long)} and {_duration(short)}"
                details.append(f"burns the budget at {min(known):.1f} times its rate over {names}")
        if details:
            return Reading(True, worst, "; ".join(details))
        if len(unknown) == len(rule.windows):
            return Reading(None, detail="; ".join(unknown))
        return Reading(False, worst, "; ".join([f"burns at {worst:.1f} times its rate", *unknown]))

    def _burn_rate(self, rule: Rule, window: int, at: float, now: float) -> float | None:
        whole, _ = self._count(rule.of, window, at, now)
        part, _ = self._count(rule.metric, window, at, now)
        return part / whole if whole >= rule.at_least else None

    def _expected(self, rule: Rule, at: float) -> Reading:
        forecast = self._queries.forecast(rule.metric, precision=rule.precision)
        end = end_of(at, rule.precision)
        for point in reversed(forecast.past):
            if point.start + rule.precision > end:
                continue
            if point.start + rule.precision < end:
                break
            if point.value is None or point.low is None or point.high is None:
                return Reading(False, detail="no value or no range for the last interval")
            above = rule.direction != "below" and point.value > point.high
            below = rule.direction != "above" and point.value < point.low
            detail = f"{point.value:g}, expected {point.low:g} to {point.high:g}"
            return Reading(above or below, point.value, f"{detail} ({_intervals(rule.precision)})")
        return Reading(None, detail=forecast.reason or "no complete interval is stored")

    def _new_patterns(self, rule: Rule, at: float, now: float) -> Reading:
        if (past := _past("new patterns", at, now)) is not None:
            return past
        changes = self._queries.changes(rule.logger or None)
        names = [
            change.pattern
            for change in changes
            if change.kind == "new" and change.severity in rule.severities
        ]
        detail = f"{len(names)} new: {names[0]}" if names else "no new patterns"
        return Reading(bool(names), len(names), detail)

    def _new_exceptions(self, rule: Rule, at: float, now: float) -> Reading:
        if (past := _past("new exceptions", at, now)) is not None:
            return past
        groups = self._queries.exceptions(
            since=now - rule.window, sort="first", limit=_GROUPS
        ).groups
        new = [
            group
            for group in groups
            if group.first >= now - rule.window and (not rule.types or group.type in rule.types)
        ]
        names = [f"{group.type} at {group.place or 'an unknown place'}" for group in new]
        detail = f"{len(new)} new: {names[0]}" if new else "no new exceptions"
        return Reading(bool(new), len(new), detail)

    def _verdict(self, rule: Rule, at: float, now: float) -> Reading:
        if (past := _past("verdicts", at, now)) is not None:
            return past
        verdict = self._queries.verdict(against=rule.against)
        return Reading(verdict.verdict == "worse", detail=f"{verdict.verdict} than {rule.against}")

    def _window(
        self, retention: Mapping[int, int], window: int, at: float, now: float
    ) -> tuple[int, float, float]:
        """Return the precision, start and end of a window that ends before a time."""
        precision = precision_of(retention, window, at, now)
        if precision is not None:
            until = end_of(at, precision)
            return precision, until - window, until
        fitting = [each for each in retention if window % each == 0]
        if not fitting:
            widths = ", ".join(f"{each} s" for each in retention)
            raise _NotKept(
                f"{_duration(window)} is no multiple of a precision that is kept: {widths}"
            )
        reach = max(each * retention[each] for each in fitting)
        raise _NotKept(f"not kept: {_duration(window)} is kept for {_duration(reach)}")

    def _count(self, metric: str, window: int, at: float, now: float) -> tuple[int, int]:
        precision, since, until = self._window(self._series, window, at, now)
        series = self._queries.series(
            metric, precision=precision, since=since, until=until - precision
        )
        return sum(_within(series, since, until)), precision

    def _gauge(self, rule: Rule, at: float, now: float) -> tuple[float | None, int]:
        precision, since, until = self._window(self._series, rule.window, at, now)
        series = self._queries.gauge_series(
            rule.metric, precision=precision, since=since, until=until - precision
        )
        values = [value for value in _within(series, since, until) if value is not None]
        if not values:
            return None, precision
        match rule.value:
            case "last":
                return values[-1], precision
            case "mean":
                return math.fsum(values) / len(values), precision
            case "sum":
                return math.fsum(values), precision
            case name:
                return (min if name == "min" else max)(values), precision

    def _percentile(
        self, rule: Rule, percentile: float, at: float, now: float
    ) -> tuple[float | None, int]:
        precision, since, until = self._window(self._histograms, rule.window, at, now)
        summary = self._queries.summary(
            rule.metric, precision=precision, since=since, until=until - precision
        )
        return summary.quantile(percentile / 100), precision


class _NotKept(Exception):
    """Data of a window are not kept."""


def _past(subject: str, at: float, now: float) -> Reading | None:
    """Return the reading of a condition that is only known for now, if it is for another time."""
    return Reading(None, detail=f"{subject} are only known for now") if now - at > 60 else None


def _within(series: Iterable, since: float, until: float) -> list:  # type: ignore[type-arg]
    return [value for start, value in series if since <= start < until]


def _compared(rule: Rule, value: float, detail: str) -> Reading:
    above = rule.above is not None
    limit = rule.above if rule.above is not None else rule.below
    assert limit is not None
    clear = limit if rule.clear is None else rule.clear
    holds = value > limit if above else value < limit
    clears = value <= clear if above else value >= clear
    return Reading(holds, value, detail, clears)


def _duration(seconds: float) -> str:
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds // unit:g} {name}"
    return f"{seconds:g} s"


def _intervals(precision: int) -> str:
    return f"intervals of {_duration(precision)}"
