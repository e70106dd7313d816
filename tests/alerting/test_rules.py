"""The file of alerts: everything it may contain, and what is refused."""

import pytest

from redmeter.alerting.rules import BURN_WINDOWS, Maintenance
from redmeter.alerting.rules_file import InvalidRules, parse_rules

ALERT = '[[alert]]\nname = "a"\nwhen = "threshold"\nmetric = "hits"\nabove = 1\n'


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
    ("text", "reason"),
    [
        ("[[alert]", "the file of alerts: not TOML"),
        ("alerts = 1", "unknown key 'alerts'; known: alert, maintenance, notify"),
        ("alert = 1", "write [[alert]], with two brackets"),
        ('[[alert]]\nwhen = "ratio"', "alert 1: name: text, not None"),
        ('[[alert]]\nname = "a"', 'alert "a": when: one of threshold'),
        ('[[alert]]\nname = "a"\nwhen = "ratio"\nmetric = "x"', "of is missing"),
        (ALERT + "abov = 2", "unknown key 'abov'; known: above"),
        (ALERT + "below = 2", "give either above or below"),
        (ALERT + "clear = 2", "clear is on the other side"),
        (ALERT.replace("1", '"1"'), "above: a number, not '1'"),
        (ALERT.replace("1", "nan"), "above: a number, not nan"),
        (ALERT + 'window = "5 weeks"', 'window: a duration such as "5m"'),
        (ALERT + 'window = "0s"', "window: a duration"),
        (ALERT + 'value = "p0"', "value: one of rate, count"),
        (ALERT.replace('"hits"', '"hits{"'), 'alert "a": metric: '),
        (ALERT + 'notify = ["ops"]', "there is no [notify.ops]"),
        (ALERT + 'message = "{valu}"', "{valu} is unknown; known: name, status"),
        (ALERT + 'message = "{value:>999999999}"', "only {value} has a format"),
        (ALERT + 'message = "{name:>1000}"', "only {value} has a format"),
        (ALERT + 'message = "{"', "message: "),
        (ALERT + ALERT, 'name: "a" is used twice'),
        ('[notify.a]\ntype = "mail"', "notify.a: type: one of webhook"),
        ('[notify.a]\ntype = "webhook"', "url is missing"),
        ('[notify.a]\ntype = "webhook"\nurl = "file:///etc/passwd"', "begins with https://"),
        ('[notify.a]\ntype = "slack"', "give either url or url_env"),
        ('[notify.a]\ntype = "command"\ncommand = "mail"', "command: a list of text"),
        ('[[maintenance]]\nfrom = "2"\nto = "03:00"', 'from: a time of day such as "02:00"'),
        ('[[maintenance]]\nfrom = "02:00"\nto = "02:00"', "from and to are the same"),
        (ALERT.replace('"a"', '"a{b}"'), "name: printable text of at most 100 bytes, without"),
        (ALERT + 'by = "a route"', "by: the name of a label, such as route"),
        (ALERT.replace('"hits"', "'hits{a=\"1\"}'") + 'by = "a"', "by: metric selects one value"),
        (
            '[[alert]]\nname = "a"\nwhen = "verdict"\nby = "type"',
            'by: when = "verdict" accepts only "route"',
        ),
        ('[[alert]]\nname = "a"\nwhen = "new_pattern"\nby = "severity"', 'accepts only "logger"'),
        ('[[alert]]\nname = "a"\nwhen = "new_exception"\nby = "route"', 'accepts only "type"'),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, reason: str) -> None:
    """With the alert, the field, and what would be right."""
    with pytest.raises(InvalidRules) as caught:
        parse_rules(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ALERT + ALERT.replace('"a"', '"b"') + "\nabov = 2", 12),
        (ALERT + "# abov = 2\n  labels.team = 7", 7),
        (ALERT + '[[ alert ]]  # another\nwhen = "ratio"', 6),
        ('[notify.a]\ntype = "slack"\n' + ALERT, 1),
        ("x = 1\n" + ALERT, 1),
        (ALERT + "[alerts]", 6),
        ('alert = [{name = "a", when = "ratio"}]', None),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, line: int | None) -> None:
    """The line of the key, or of its table; none if the table is written inline."""
    with pytest.raises(InvalidRules) as caught:
        parse_rules(text, "shop/alerts.toml")
    assert caught.value.line == line
    place = "shop/alerts.toml" + (f", line {line}: " if line else ": ")
    assert str(caught.value).startswith(place)


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
