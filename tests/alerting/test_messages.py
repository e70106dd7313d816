"""Messages of notices: templates with values in the unit of what the rule compares."""

import pytest

from redmeter.alerting.evaluator import message_of
from redmeter.alerting.rules import Rule
from redmeter.alerting.state import AlertState


def message(rule: Rule, value: float | None) -> str:
    """Return the message of a firing alert."""
    return message_of(rule, rule.name, "firing", AlertState(value=value), {})


@pytest.mark.parametrize(
    ("when", "metric", "compared", "value", "text"),
    [
        ("threshold", "checkouts_failed", "count", 6.0, "6 failures"),
        ("threshold", "checkouts_failed", "count", 1234.0, "1,234 failures"),
        ("threshold", "queue_length", "mean", 2.25, "2.2 failures"),
        ("threshold", "process_memory_bytes", "last", 12_500_000.0, "12.5 MB failures"),
        ("threshold", 'process_memory_bytes{app="a"}', "max", 2e9, "2 GB failures"),
        ("threshold", "sent_bytes", "rate", 6e6, "6 MB failures"),
        ("threshold", "checkout_seconds", "p95", 0.34, "340 ms failures"),
        ("expected", "sent_bytes", "rate", 5e3, "5 kB failures"),
        ("ratio", "sent_bytes", "rate", 0.077, "7.7 % failures"),
        ("burn", "wait_seconds", "rate", 14.4, "14.4 failures"),
        ("absent", "wait_seconds", "rate", 0.0, "0 failures"),
        ("new_exception", "", "rate", 3.0, "3 failures"),
        ("threshold", "checkouts_failed", "count", None, "unknown failures"),
    ],
)
def test_a_value_is_written_in_its_unit(
    when: str, metric: str, compared: str, value: float | None, text: str
) -> None:
    """That of the metric's name, of a share, or none; whole numbers have no decimals."""
    rule = Rule("a", when, metric, value=compared, message="{value} failures")
    assert message(rule, value) == text
    rule = Rule("a", when, metric, value=compared, message="{value!s} failures")
    assert message(rule, value) == text


def test_a_format_writes_the_number() -> None:
    """Whatever its unit is."""
    rule = Rule("a", "threshold", "sent_bytes", value="last", message="{value:.1f} of {value:.0%}")
    assert message(rule, 0.25) == "0.2 of 25%"
    assert message(rule, None) == "nan of nan%"
