"""Conditions: the reading of a rule at a time, from the query API of a meter.

A window consists of complete intervals of the finest precision that is kept that far back; the
reading's detail names it. If none is kept that far back, or the window is no multiple of any, the
reading is unknown: with other intervals it would be another window.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from redmeter.alerting.rules import (
    BASELINE_NAMES,
    Rule,
    describe_duration,
    per_second,
    percentile_of,
    times_its_rate,
    unit_of_values,
)
from redmeter.alerting.state import Reading, Readings
from redmeter.analysis.comparing.sentences import value_text
from redmeter.errors import (
    InvalidValue,
    LimitExceeded,
    UnknownLabel,
    UnknownPrecision,
    WrongKind,
    shown,
)
from redmeter.stored.keys import Kept

if TYPE_CHECKING:
    from redmeter.queries import Queries
    from redmeter.results.forecasts import Forecast

#: How the detail of a reading begins if its metric has no series with a label of the rule.
NO_DATA = "no data"
#: Kind of a metric -> the values that a threshold compares of it.
_KIND_VALUES = {
    "counter": 'value = "rate" or "count"',
    "gauge": 'value = "last", "min", "max", "mean" or "sum"',
    "histogram": 'value = "p95", or another percentile',
}
#: Groups of exceptions that are read, the newest first.
_GROUPS = 100
#: Seconds after the end of an interval before it counts as complete: writers flush every second.
DELAY = 5.0

#: For `absent` with `by`: seconds after its last event until a value is no longer missed.
SEEN = 86400


def window_precision(
    retention: Mapping[int, int], window: int, at: float, now: float
) -> int | None:
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


class Period(NamedTuple):
    """The complete intervals of a window, Unix seconds."""

    precision: int
    since: float
    until: float


class WindowNotKept(Exception):
    """Data of a window are not kept."""


def kept_period(retention: Mapping[int, int], window: int, at: float, now: float) -> Period:
    """Return the intervals of a window that ends before a time.

    Args:
        retention: precision -> number of intervals that are kept.
        window: seconds.
        at: the time to evaluate for.
        now: the server's clock.

    Raises:
        WindowNotKept: no precision is kept that far back, or the window is no multiple of any.
    """
    precision = window_precision(retention, window, at, now)
    if precision is not None:
        until = end_of(at, precision)
        return Period(precision, until - window, until)
    fitting = [each for each in retention if window % each == 0]
    if not fitting:
        widths = ", ".join(f"{each} s" for each in retention)
        raise WindowNotKept(
            f"{describe_duration(window)} is no multiple of a precision that is kept: {widths}"
        )
    reach = max(each * retention[each] for each in fitting)
    raise WindowNotKept(
        f"not kept: {describe_duration(window)} is kept for {describe_duration(reach)}"
    )


def retention_of(rule: Rule, kept: Kept) -> Mapping[int, int]:
    """Return the retention of the intervals that a rule reads."""
    percentile = rule.when == "threshold" and percentile_of(rule.value) is not None
    return kept.histograms if percentile else kept.series


class RuleReader:
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

    def read(self, rule: Rule, at: float, now: float) -> Readings:
        """Return the readings of a rule: one, or with `by` one for each value of the label.

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
                case _ if now - at > 60:
                    return Readings({}, Reading(None, detail=f"{rule.when} is only known for now"))
                case "new_pattern":
                    return self._new_patterns(rule)
                case "new_exception":
                    return self._new_exceptions(rule, now)
                case _:
                    return self._verdict(rule)
        except WindowNotKept as error:
            return Readings({}, Reading(None, detail=str(error)))
        except UnknownLabel as error:
            detail = f"{NO_DATA}: {error}"
            if rule.when == "absent" and not rule.by:
                return Readings({None: Reading(True, 0, detail)})
            return Readings({}, Reading(None, detail=detail))
        except WrongKind as error:
            fix = f'when = "{rule.when}" reads no {error.kind}s'
            fix = _KIND_VALUES[error.kind] if rule.when == "threshold" else fix
            detail = (
                f"cannot be evaluated: {shown(error.name)} is recorded as a {error.kind}: {fix}"
            )
            return Readings({}, Reading(None, detail=detail))
        except (UnknownPrecision, LimitExceeded, InvalidValue) as error:
            return Readings({}, Reading(None, detail=f"cannot be evaluated: {error}"))

    def _threshold(self, rule: Rule, at: float, now: float) -> Readings:
        percentile = percentile_of(rule.value)
        values: Mapping[str | None, float | None]
        if rule.value in ("rate", "count"):
            counts, precision = self._counts(rule, rule.metric, rule.window, at, now)
            per = rule.window if rule.value == "rate" else 1
            values = {key: count / per for key, count in counts.items()}
        elif percentile is not None:
            values, precision = self._percentiles(rule, percentile, at, now)
        else:
            values, precision = self._gauges(rule, at, now)
        window, unit = describe_duration(rule.window), unit_of_values(rule)

        def reading(value: float | None) -> Reading:
            if value is None:
                return Reading(False, detail=f"no values in {window}")
            figure = f"{value_text(value, unit)}{per_second(rule)}"
            detail = f"{rule.value} of {rule.metric} over {window} is {figure}"
            return _compared(rule, value, f"{detail} ({_intervals(precision)})")

        return Readings({key: reading(value) for key, value in values.items()})

    def _ratio(self, rule: Rule, at: float, now: float) -> Readings:
        parts, precision = self._counts(rule, rule.metric, rule.window, at, now)
        wholes, _ = self._counts(rule, rule.of, rule.window, at, now)
        over = describe_duration(rule.window)

        def reading(part: int, whole: int) -> Reading:
            if whole < rule.at_least:
                detail = f"{_events(whole)} in {over}, fewer than at_least = {rule.at_least}"
                return Reading(False, None, detail)
            share = value_text(part / whole, "ratio")
            detail = f"{share}: {part:,} of {whole:,} in {over} ({_intervals(precision)})"
            return _compared(rule, part / whole, detail)

        return Readings({key: reading(parts.get(key, 0), each) for key, each in wholes.items()})

    def _absent(self, rule: Rule, at: float, now: float) -> Readings:
        counts, precision = self._counts(rule, rule.metric, rule.window, at, now)
        if rule.by:
            counts = {key: counts.get(key, 0) for key in self._seen(rule, at, now)}
        over = f"in {describe_duration(rule.window)} ({_intervals(precision)})"
        return Readings(
            {key: Reading(n == 0, n, f"{_events(n)} {over}") for key, n in counts.items()},
            Reading(False, detail=f"no events in {describe_duration(SEEN)}"),
        )

    def _seen(self, rule: Rule, at: float, now: float) -> list[str | None]:
        """Return the values of the rule's label that had events within SEEN before a time.

        Fine intervals are forgotten within minutes, and so are the values that only they name.
        """
        period = kept_period(self._series, SEEN, at, now)._replace(since=at - SEEN, until=at)
        series = _by_value(rule, self._queries.series, rule.metric, period)
        return [value for value, each in series.items() if any(each.values)]

    def _burn(self, rule: Rule, at: float, now: float) -> Readings:
        unknown: list[str] = []
        #: The pairs of windows that are kept, each with its burn rates by value.
        burns: list[tuple[tuple[int, int, float], dict[str | None, float | None]]] = []
        for pair in rule.windows:
            try:
                long, short = (self._burn_rates(rule, window, at, now) for window in pair[:2])
            except WindowNotKept as error:
                unknown.append(str(error))
            else:
                burns.append(
                    (pair, {key: _least(each, short.get(key)) for key, each in long.items()})
                )
        if not burns:
            return Readings({}, Reading(None, detail="; ".join(unknown)))
        readings = {
            key: _burning([(pair, rates.get(key)) for pair, rates in burns], unknown)
            for key in dict.fromkeys(key for _, rates in burns for key in rates)
        }
        return Readings(dict(sorted(readings.items(), key=lambda item: -(item[1].value or 0))))

    def _burn_rates(
        self, rule: Rule, window: int, at: float, now: float
    ) -> dict[str | None, float | None]:
        wholes, _ = self._counts(rule, rule.of, window, at, now)
        parts, _ = self._counts(rule, rule.metric, window, at, now)
        budget = 1 - rule.objective
        return {
            key: parts.get(key, 0) / whole / budget if whole >= rule.at_least else None
            for key, whole in wholes.items()
        }

    def _expected(self, rule: Rule, at: float) -> Readings:
        forecast = partial(self._queries.forecast, precision=rule.precision)
        forecasts = _by_value(rule, forecast, rule.metric, attribute="forecast")
        return Readings({key: _outside(rule, each, at) for key, each in forecasts.items()})

    def _new_patterns(self, rule: Rule) -> Readings:
        changes = [
            (change.logger, change.pattern)
            for change in self._queries.log_changes(rule.logger or None)
            if change.kind == "new" and change.severity in rule.severities
        ]
        return _news(rule, "patterns", changes)

    def _new_exceptions(self, rule: Rule, now: float) -> Readings:
        groups = self._queries.exceptions(
            since=now - rule.window, order="first", limit=_GROUPS
        ).groups
        new = [
            (group.type, f"{group.type} at {group.place or 'an unknown place'}")
            for group in groups
            if group.first >= now - rule.window and (not rule.types or group.type in rule.types)
        ]
        return _news(rule, "exceptions", new)

    def _verdict(self, rule: Rule) -> Readings:
        verdict = self._queries.verdict(against=rule.against)

        def reading(judgment: str) -> Reading:
            detail = f"{judgment}, against {BASELINE_NAMES[rule.against]}"
            return Reading(judgment == "worse", detail=detail)

        whole = reading(verdict.verdict)
        if not rule.by:
            return Readings({None: whole})
        rows = {row.route: reading(row.verdict) for row in verdict.routes}
        return Readings(rows, Reading(False, detail=whole.detail))

    def _counts(
        self, rule: Rule, metric: str, window: int, at: float, now: float
    ) -> tuple[dict[str | None, int], int]:
        """Return the events in a window by value of the rule's label, the most first."""
        period = kept_period(self._series, window, at, now)
        series = _by_value(rule, self._queries.series, metric, period)
        counts = {key: sum(_within(each, period)) for key, each in series.items()}
        return dict(sorted(counts.items(), key=lambda item: -item[1])), period.precision

    def _gauges(
        self, rule: Rule, at: float, now: float
    ) -> tuple[dict[str | None, float | None], int]:
        period = kept_period(self._series, rule.window, at, now)
        series = _by_value(rule, self._queries.gauge_series, rule.metric, period)
        values = {key: _gauge(rule.value, _within(each, period)) for key, each in series.items()}
        return values, period.precision

    def _percentiles(
        self, rule: Rule, percentile: float, at: float, now: float
    ) -> tuple[dict[str | None, float | None], int]:
        period = kept_period(self._histograms, rule.window, at, now)
        summaries = _by_value(rule, self._queries.summary, rule.metric, period, "summary")
        values = {key: each.quantile(percentile / 100) for key, each in summaries.items()}
        return values, period.precision


def _by_value(
    rule: Rule,
    query: Callable[..., Any],
    metric: str,
    period: Period | None = None,
    attribute: str = "series",
) -> dict[str | None, Any]:
    """Return the results of a query by value of the rule's label; None is the key without one.

    Args:
        attribute: of a group, that has its result.
    """
    window = period._asdict() if period else {}
    if not rule.by:
        return {None: query(metric, **window)}
    groups = query(metric, by=rule.by, **window)
    return {
        value: getattr(group, attribute)
        for group in groups
        if (value := group.labels[rule.by]) is not None
    }


def _outside(rule: Rule, forecast: "Forecast", at: float) -> Reading:
    end = end_of(at, rule.precision)
    for point in reversed(forecast.past):
        if point.start + rule.precision > end:
            continue
        if point.start + rule.precision < end:
            break
        above = rule.direction != "below" and point.value > point.high
        below = rule.direction != "above" and point.value < point.low
        unit = unit_of_values(rule)
        value, low, high = (value_text(v, unit) for v in (point.value, point.low, point.high))
        detail = f"{value}, expected {low} to {high}"
        return Reading(above or below, point.value, f"{detail} ({_intervals(rule.precision)})")
    return Reading(None, detail=forecast.reason or "no complete interval is stored")


def _news(rule: Rule, subject: str, new: list[tuple[str, str]]) -> Readings:
    """Return the readings of new patterns or exceptions: pairs of a label's value and a name."""
    nothing = Reading(False, 0, f"no new {subject}")
    names: dict[str | None, list[str]] = {}
    for value, name in new:
        names.setdefault(value if rule.by else None, []).append(name)
    readings: dict[str | None, Reading] = {
        key: Reading(True, len(each), f"{len(each)} new: {each[0]}") for key, each in names.items()
    }
    return Readings(readings if rule.by else {None: nothing, **readings}, nothing)


def _within(series: Iterable, period: Period) -> list:  # type: ignore[type-arg]
    return [value for start, value in series if period.since <= start < period.until]


def _gauge(value: str, samples: list[float | None]) -> float | None:
    known = [each for each in samples if each is not None]
    if not known:
        return None
    match value:
        case "last":
            return known[-1]
        case "mean":
            return math.fsum(known) / len(known)
        case "sum":
            return math.fsum(known)
        case _:
            return (min if value == "min" else max)(known)


def _least(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else min(first, second)


def _burning(
    burns: list[tuple[tuple[int, int, float], float | None]], unknown: list[str]
) -> Reading:
    """Return the reading of burn rates, each of a long and a short window; None: few events."""
    details = [
        f"burns the budget at {times_its_rate(burn)} over {describe_duration(long)} and "
        f"{describe_duration(short)}"
        for (long, short, rate), burn in burns
        if burn is not None and burn > rate
    ]
    worst = max((burn for _, burn in burns if burn is not None), default=0.0)
    if details:
        return Reading(True, worst, "; ".join(details))
    return Reading(False, worst, "; ".join([f"burns at {times_its_rate(worst)}", *unknown]))


def _compared(rule: Rule, value: float, detail: str) -> Reading:
    above, limit = rule.above is not None, rule.limit
    assert limit is not None
    clear = limit if rule.clear is None else rule.clear
    holds = value > limit if above else value < limit
    clears = value <= clear if above else value >= clear
    return Reading(holds, value, detail, clears)


def _events(count: int) -> str:
    return f"{count:,} {'event' if count == 1 else 'events'}"


def _intervals(precision: int) -> str:
    return f"intervals of {describe_duration(precision)}"
