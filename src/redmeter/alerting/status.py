"""The status of all alerts, as the page, the command and Prometheus' API show it.

It joins the stored data: the rules and readings that the evaluator published, the states of alerts,
silences, and the newest transitions. Pure, except for read_alerts().
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, cast

from redmeter.alerting.rules import (
    Rule,
    Rules,
    compared_limit,
    describe_condition,
    describe_query,
    expression_of,
    unit_of_values,
)
from redmeter.alerting.state import FIRING, OK, PENDING, AlertState, split_name
from redmeter.alerting.store import AlertSnapshot, AlertStore, Notice, Silence, Transition
from redmeter.errors import RedmeterError
from redmeter.names import parse_name
from redmeter.store import Store

_Status = Literal["firing", "pending", "ok"]
#: The order of statuses.
_ORDER = {FIRING: 0, PENDING: 1, OK: 2}
_NEVER = AlertState()


@dataclass(frozen=True, slots=True)
class AlertStatus:
    """One alert: a rule, or the rule for one value of its label."""

    name: str
    #: The rule's labels and the value's.
    labels: Mapping[str, str]
    #: The value of the rule's label; None for a rule without `by`.
    label_value: str | None
    status: _Status
    #: Since when, Unix seconds; None if it has never been anything but ok.
    since: float | None
    #: The number that was compared last, and a sentence about it.
    value: float | None
    detail: str
    #: Why the condition could not be evaluated last; "": it could.
    unknown: str
    #: The ID of a silence that applies; "" if none does.
    silence: str
    #: Whether a maintenance window applies.
    maintenance: bool


@dataclass(frozen=True, slots=True)
class RuleStatus:
    """A rule with its alerts."""

    name: str
    #: The condition in words, and as PromQL; "" if no evaluator has published the rule.
    condition: str
    query: str
    #: The value that is compared with the limit, as PromQL, or ""; the limit; the unit of both.
    expression: str
    limit: float | None
    unit: str
    #: The condition, a key of CONDITIONS in rules_file.py; "" if the rule is not published.
    when: str
    #: The metric without labels; "" if the condition is not about one.
    metric: str
    by: str
    severity: str
    message: str
    for_seconds: int
    keep: int
    notify: Sequence[str]
    labels: Mapping[str, str]
    #: The status of the alert that is worst off, and why nothing could be evaluated.
    status: _Status
    unknown: str
    #: The worst first. For a rule with `by`, only those that are not ok.
    alerts: Sequence[AlertStatus]
    #: With `by`: values that are ok, and values beyond the limit, which are not evaluated.
    ok: int
    left_out: int


@dataclass(frozen=True, slots=True)
class MaintenanceStatus:
    """A maintenance window: alerts fire, but nobody is notified."""

    #: Names of alerts, with * and ?.
    alerts: tuple[str, ...]
    #: Days of the week, 0 is Monday, and minutes of the day, UTC; the end may be on the next day.
    days: tuple[int, ...]
    begin: int
    end: int
    #: Whether it is now.
    active: bool


@dataclass(frozen=True, kw_only=True)
class AlertsStatus:
    """Everything about alerts."""

    #: Whether an evaluator holds the lease.
    running: bool
    #: When the rules were evaluated last, and seconds between two cycles; None if they never were.
    evaluated: float | None
    interval: float | None
    #: Alerts that fire.
    firing: int
    #: Those that fire first.
    rules: Sequence[RuleStatus]
    silences: Sequence[Silence]
    maintenance: Sequence[MaintenanceStatus]
    #: Changes, the newest first; notices that are not delivered yet.
    transitions: Sequence[Transition]
    undelivered: Sequence[Notice]
    #: Errors of the evaluator itself: "cycle", "rule", "message" or "notice" -> count, since it
    #: started; and the text of the last one, "" if there was none.
    troubles: Mapping[str, int]
    last_trouble: str


def read_alerts(store: Store, *, transitions: int = 50) -> tuple[float, AlertsStatus]:
    """Read the status of all alerts in one round trip; return the server's time with it.

    Args:
        transitions: number of the newest changes to return.

    Raises:
        StoreError: the store is unreachable or refuses.
    """
    snapshot = AlertStore(store).snapshot(transitions=transitions)
    return snapshot.now, make_status(snapshot)


def make_status(snapshot: AlertSnapshot) -> AlertsStatus:
    """Return the status that a snapshot shows."""
    published = snapshot.rules or Rules((), {})
    report, now = snapshot.report, snapshot.now
    rules = {rule.name: rule for rule in published.alerts}
    by_rule: dict[str, list[str]] = {name: [] for name in rules}
    for name in dict.fromkeys([*snapshot.states, *(report.readings if report else ())]):
        by_rule.setdefault(split_name(name)[0], []).append(name)

    def alert(rule: Rule, name: str) -> AlertStatus:
        _, label, value = split_name(name)
        state = snapshot.states.get(name, _NEVER)
        reading = report.readings.get(name) if report else None
        known = reading if reading and reading.holds is not None else None
        return AlertStatus(
            name=name,
            labels={**rule.labels, **({label: value} if value is not None else {})},
            label_value=value,
            status=cast("_Status", state.status),
            since=state.since or None,
            value=known.value if known else state.value,
            detail=known.detail if known else state.detail,
            unknown=reading.detail if reading and not known else "",
            silence=next((each.id for each in silences if each.covers(name, now)), ""),
            maintenance=published.muted(name, now),
        )

    def status(name: str) -> RuleStatus:
        rule = rules.get(name) or Rule(name, "")
        names = by_rule[name] if rule.by else by_rule[name] or [name]
        # The reading of a whole rule with `by` is stored under its name if it is unknown.
        alerts = [alert(rule, each) for each in names if not rule.by or each != name]
        alerts.sort(key=lambda each: (_ORDER.get(each.status, 3), each.name))
        whole = report.readings.get(name) if report and rule.by else None
        left_out = report.left_out.get(name, 0) if report else 0
        shown = [each for each in alerts if not rule.by or each.status != OK]
        return RuleStatus(
            name=name,
            condition=describe_condition(rule) if rule.when else "",
            query=describe_query(rule) if rule.when else "",
            expression=expression_of(rule),
            limit=compared_limit(rule),
            unit="ratio" if rule.when == "burn" else unit_of_values(rule),
            when=rule.when,
            metric=_base(rule.metric),
            by=rule.by,
            severity=rule.severity,
            message=rule.message,
            for_seconds=rule.for_seconds,
            keep=rule.keep,
            notify=rule.notify,
            labels=rule.labels,
            status=shown[0].status if shown else "ok",
            unknown=whole.detail if whole else "" if rule.by or not alerts else alerts[0].unknown,
            alerts=shown,
            ok=len(alerts) - len(shown),
            left_out=left_out,
        )

    silences = sorted(
        (each for each in snapshot.silences.values() if each.until > now),
        key=lambda each: each.until,
    )
    statuses = sorted(map(status, by_rule), key=lambda each: _ORDER.get(each.status, 3))
    return AlertsStatus(
        running=snapshot.leased_until > 0,
        evaluated=report.time if report else None,
        interval=report.interval if report else None,
        firing=sum(state.status == FIRING for state in snapshot.states.values()),
        rules=statuses,
        silences=silences,
        maintenance=[
            MaintenanceStatus(**asdict(window), active=window.applies(now))
            for window in published.maintenance
        ],
        transitions=snapshot.transitions,
        undelivered=snapshot.notices,
        troubles=report.troubles if report else {},
        last_trouble=report.last_trouble if report else "",
    )


def _base(metric: str) -> str:
    try:
        return parse_name(metric).base if metric else ""
    except RedmeterError:
        return ""
