"""Descriptions of rules: the condition in words, and as a PromQL expression. Pure."""

from redmeter.alerting.rules import BASELINES, Rule, describe_duration, percentile_of
from redmeter.formats.prometheus_names import counter_name, label_name, metric_name
from redmeter.names import parse_name

#: Value of a threshold on a gauge -> function over time.
_OVER_TIME = {
    "last": "last_over_time",
    "min": "min_over_time",
    "max": "max_over_time",
    "mean": "avg_over_time",
    "sum": "sum_over_time",
}


def describe_condition(rule: Rule) -> str:
    """Return the condition in words: "p95 of checkout_seconds over 5 min is above 1.5"."""
    match rule.when:
        case "threshold":
            per = " per second" if rule.value == "rate" else ""
            over = describe_duration(rule.window)
            text = f"{rule.value} of {rule.metric} over {over} is {_limit(rule)}{per}"
        case "ratio":
            over = describe_duration(rule.window)
            text = f"{rule.metric} / {rule.of} over {over} is {_limit(rule)}"
        case "absent":
            text = f"{rule.metric} has no events in {describe_duration(rule.window)}"
        case "expected":
            side = {"both": "outside", "above": "above", "below": "below"}[rule.direction]
            width = describe_duration(rule.precision)
            text = f"{rule.metric} is {side} its expected range (intervals of {width})"
        case "burn":
            rates = ", or ".join(
                f"{rate:g} times its rate over {describe_duration(long)} and "
                f"{describe_duration(short)}"
                for long, short, rate in rule.windows
            )
            share = f"{100 * rule.objective:.10g} %"
            text = f"{rule.metric} / {rule.of} burns the error budget of {share} at {rates}"
        case "new_pattern":
            source = f" of {rule.logger}" if rule.logger else ""
            text = f"a log pattern{source} is new, with severity {' or '.join(rule.severities)}"
        case "new_exception":
            types = f" of type {' or '.join(rule.types)}" if rule.types else ""
            text = f"an exception{types} is first seen within {describe_duration(rule.window)}"
        case "verdict":
            baseline = BASELINES.get(rule.against, rule.against)
            text = f"the verdict on the newest mark, against {baseline}, is worse"
        case _:
            text = rule.when
    text += f", by {rule.by}" if rule.by else ""
    return f"{text}, for {describe_duration(rule.for_seconds)}" if rule.for_seconds else text


def describe_query(rule: Rule) -> str:
    """Return the condition as PromQL; in words where there is no such expression."""
    match rule.when:
        case "threshold":
            percentile = percentile_of(rule.value)
            if rule.value in ("rate", "count"):
                function = "rate" if rule.value == "rate" else "increase"
                expression = _events(rule, rule.metric, rule.window, function)
            elif percentile is not None:
                inner = f"rate({_selector(rule.metric, 'histogram')}[{_promql(rule.window)}])"
                expression = f"histogram_quantile({percentile / 100:g}, {_sum(rule)}({inner}))"
            else:
                inner = f"{_selector(rule.metric, 'gauge')}[{_promql(rule.window)}]"
                expression = f"{_sum(rule)}({_OVER_TIME[rule.value]}({inner}))"
            return f"{expression} {_comparison(rule)}"
        case "ratio":
            return f"{_share(rule, rule.window)} {_comparison(rule)}"
        case "absent":
            return f"{_events(rule, rule.metric, rule.window)} == 0"
        case "burn":
            budget = f"(1 - {rule.objective:g})"
            pairs = [
                " and ".join(
                    f"{_share(rule, window)} > {rate:g} * {budget}" for window in (long, short)
                )
                for long, short, rate in rule.windows
            ]
            return pairs[0] if len(pairs) == 1 else " or ".join(f"({pair})" for pair in pairs)
        case _:
            return describe_condition(rule)


def _limit(rule: Rule) -> str:
    word, limit = ("above", rule.above) if rule.above is not None else ("below", rule.below)
    if limit is None:
        return "?"
    return f"{word} {100 * limit:.10g} %" if rule.when == "ratio" else f"{word} {limit:.10g}"


def _comparison(rule: Rule) -> str:
    above = rule.above is not None
    limit = rule.above if above else rule.below
    return "" if limit is None else f"{'>' if above else '<'} {limit:.15g}"


def _share(rule: Rule, window: int) -> str:
    return f"{_events(rule, rule.metric, window)} / {_events(rule, rule.of, window)}"


def _events(rule: Rule, metric: str, window: int, function: str = "increase") -> str:
    return f"{_sum(rule)}({function}({_selector(metric, 'counter')}[{_promql(window)}]))"


def _sum(rule: Rule) -> str:
    return f"sum by ({rule.by}) " if rule.by else "sum"


def _selector(metric: str, kind: str) -> str:
    base, labels = parse_name(metric)
    name = counter_name(base) if kind == "counter" else metric_name(base)
    matchers = ",".join(f"{label_name(key, kind)}={_quoted(value)}" for key, value in labels)
    return f"{name}{{{matchers}}}" if matchers else name


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _promql(seconds: int) -> str:
    for unit, name in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds % unit == 0:
            return f"{seconds // unit}{name}"
    return f"{seconds}s"
