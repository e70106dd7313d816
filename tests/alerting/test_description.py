"""Rules in words and as PromQL."""

import pytest

from redmeter.alerting.evaluator import sample_message
from redmeter.alerting.rules import describe_condition, describe_query
from redmeter.alerting.rules_file import parse_rules
from support.rights import ALL_CONDITIONS

RATIO = """
when = "ratio"
metric = 'http_requests{status="5xx"}'
of = "http_requests"
above = 0.05
"""
FAILED = 'http_requests_total{status="5xx"}'
BURN = """
when = "burn"
metric = "bad"
of = "all"
objective = 0.999
windows = [{long = "1h", short = "5m", rate = 14.4}]
"""


@pytest.mark.parametrize(
    ("text", "condition", "query"),
    [
        (
            'when = "threshold"\nmetric = "hits"\nabove = 20\nfor = "2m"',
            "rate of hits over 5 min is above 20 per second, for 2 min",
            "sum(rate(hits_total[5m])) > 20",
        ),
        (
            'when = "threshold"\nmetric = "buy.time"\nvalue = "p95"\nabove = 1.5\nby = "shop"',
            "p95 of buy.time over 5 min is above 1.5, by shop",
            "histogram_quantile(0.95, sum by (shop) (rate(buy_time[5m]))) > 1.5",
        ),
        (
            'when = "threshold"\nmetric = "wait_seconds"\nvalue = "p95"\nabove = 0.1255',
            "p95 of wait_seconds over 5 min is above 125.5 ms",
            "histogram_quantile(0.95, sum(rate(wait_seconds[5m]))) > 0.1255",
        ),
        (
            'when = "threshold"\nmetric = "queue"\nvalue = "last"\nbelow = 1\nwindow = "90s"',
            "last of queue over 90 s is below 1",
            "sum(last_over_time(queue[90s])) < 1",
        ),
        (
            RATIO,
            'http_requests{status="5xx"} / http_requests over 5 min is above 5 %',
            f"sum(increase({FAILED}[5m])) / sum(increase(http_requests_total[5m])) > 0.05",
        ),
        (
            'when = "absent"\nmetric = "orders"\nwindow = "2h"',
            "orders has no events in 2 h",
            "sum(increase(orders_total[2h])) == 0",
        ),
        (
            BURN,
            "bad / all burns the error budget of 99.9 % at 14.4 times its rate over 1 h and 5 min",
            " and ".join(
                f"sum(increase(bad_total[{window}])) / sum(increase(all_total[{window}]))"
                " > 14.4 * (1 - 0.999)"
                for window in ("1h", "5m")
            ),
        ),
        (
            'when = "expected"\nmetric = "hits"\ndirection = "below"',
            "hits is below its expected range (intervals of 5 min)",
            "",
        ),
        (
            'when = "new_pattern"\nlogger = "shop"',
            "a log pattern of shop is new, with severity error or critical",
            "",
        ),
        (
            'when = "new_exception"\ntypes = ["KeyError"]',
            "an exception of type KeyError is first seen within 5 min",
            "",
        ),
        (
            'when = "verdict"',
            "the verdict on the newest mark, against the time right before, is worse",
            "",
        ),
    ],
)
def test_a_condition_in_words_and_as_promql(text: str, condition: str, query: str) -> None:
    """Where PromQL cannot express it, the query is in words, too."""
    (rule,) = parse_rules(f'[[alert]]\nname = "a"\n{text}').alerts
    assert describe_condition(rule) == condition
    assert describe_query(rule) == (query or condition)


def test_a_sample_message_has_the_values_of_a_rule() -> None:
    """Of every condition: its limit, its labels, and the condition as the detail."""
    for rule in parse_rules(ALL_CONDITIONS).alerts:
        name, message = sample_message(rule)
        assert name.startswith(rule.name)
        assert describe_condition(rule) in message
    text = 'by = "route"\nlabels = {team = "shop"}\nmessage = "{name}: {value:.0%} of {labels}"'
    (rule,) = parse_rules(f'[[alert]]\nname = "a"\n{RATIO}{text}').alerts
    name = 'a{route="example"}'
    assert sample_message(rule) == (name, f"{name}: 5% of team=shop, route=example")


def test_queries_parse() -> None:
    """Those of all conditions that PromQL can express, by Prometheus' grammar."""
    promql_parser = pytest.importorskip("promql_parser")
    text = "".join(
        f'[[alert]]\nname = "{number}"\n{each}\nby = "route"\n'
        for number, each in enumerate((RATIO, BURN))
    )
    for rule in parse_rules(ALL_CONDITIONS + text).alerts:
        if describe_query(rule) != describe_condition(rule):
            promql_parser.parse(describe_query(rule))
