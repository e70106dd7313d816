"""The file of alerts: everything that it may contain."""

import pytest

from redmeter.alerting.rules import BURN_WINDOWS, Maintenance
from redmeter.alerting.rules_file import parse_rules


def test_a_whole_file_is_read() -> None:
    """Durations are seconds, and what is left out has its default."""
    rules = parse_rules("""
        [[alert]]
        name = "checkout"
        when = "ratio"
        metric = 'http_requests{status="5xx"}'
        of = "http_requests"
        above = 0.05
        clear = 0.01
        window = "10m"
        for = "5m"
        keep = "1h"
        remind = "4h"
        severity = "page"
        labels = {team = "shop"}
        message = "{value:.1%} of {name} fail"
        notify = ["ops"]

        [[alert]]
        name = "budget"
        when = "burn"
        metric = "failures"
        of = "requests"
        objective = 0.999
        windows = [{long = "2h", short = "10m", rate = 7}]

        [[alert]]
        name = "patterns"
        when = "new_pattern"

        [notify.ops]
        type = "webhook"
        url = "https://example.com/hook"
        secret_env = "SECRET"

        [[maintenance]]
        days = ["sat"]
        from = "23:00"
        to = "01:00"
    """)
    checkout, budget, patterns = rules.alerts
    assert (checkout.window, checkout.for_seconds, checkout.keep) == (600, 300, 3600)
    assert (checkout.clear, checkout.remind, checkout.labels) == (0.01, 14400, {"team": "shop"})
    assert budget.windows == ((7200, 600, 7.0),)
    assert patterns.severities == ("error", "critical")
    assert patterns.windows == BURN_WINDOWS
    assert rules.notifiers["ops"].options["url"] == "https://example.com/hook"
    assert rules.maintenance == (Maintenance(("*",), (5,), 23 * 60, 60),)


@pytest.mark.parametrize(
    ("now", "covered"),
    [
        (1_795_215_600, False),  # Friday 2026-11-20, 23:00
        (1_795_302_000, True),  # Saturday, 23:00
        (1_795_307_400, True),  # Sunday, 00:30
        (1_795_309_200, False),  # Sunday, 01:00
    ],
)
def test_maintenance_may_end_on_the_next_day(now: int, covered: bool) -> None:
    """A window of Saturday night ends on Sunday."""
    window = Maintenance(("check*",), (5,), 23 * 60, 60)
    assert window.covers("checkout", now) is covered
    assert not window.covers("orders", now)
