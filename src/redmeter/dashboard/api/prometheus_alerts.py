"""Alerts in the form of Prometheus' HTTP API: /api/v1/rules and /api/v1/alerts.

All rules are in one group. Where a condition has no PromQL expression, its query is in words.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from redmeter.alerting.state import FIRING, PENDING
from redmeter.alerting.status import AlertsStatus, AlertStatus, RuleStatus

#: The group of all rules, and the file that it names.
GROUP = "redmeter"
_NEVER = "0001-01-01T00:00:00Z"


def rule_groups(
    status: AlertsStatus, *, names: Collection[str] = (), alerts: bool = True
) -> list[dict[str, Any]]:
    """Return the groups of rules; none if there is no rule.

    Args:
        names: only these rules; all if empty.
        alerts: whether rules have their alerts.
    """
    evaluated = _moment(status.evaluated)
    rules = [
        {
            "state": _state(rule.status),
            "name": rule.name,
            "query": rule.query or rule.name,
            "duration": rule.for_seconds,
            "keepFiringFor": rule.keep,
            "labels": {"severity": rule.severity, **rule.labels},
            "annotations": _annotations(rule),
            "alerts": _alerts(rule) if alerts else [],
            "health": "unknown" if rule.unknown or status.evaluated is None else "ok",
            **({"lastError": rule.unknown} if rule.unknown else {}),
            "evaluationTime": 0,
            "lastEvaluation": evaluated,
            "type": "alerting",
        }
        for rule in status.rules
        if not names or rule.name in names
    ]
    if not rules:
        return []
    return [
        {
            "name": GROUP,
            "file": GROUP,
            "rules": rules,
            "interval": status.interval or 0,
            "limit": 0,
            "evaluationTime": 0,
            "lastEvaluation": evaluated,
        }
    ]


def active_alerts(status: AlertsStatus) -> list[dict[str, Any]]:
    """Return the alerts that are pending or fire."""
    return [alert for rule in status.rules for alert in _alerts(rule)]


def _alerts(rule: RuleStatus) -> list[dict[str, Any]]:
    return [
        {
            "labels": {"alertname": rule.name, "severity": rule.severity, **alert.labels},
            "annotations": _annotations(rule, alert),
            "state": alert.status,
            "activeAt": _moment(alert.since),
            "value": "NaN" if alert.value is None else f"{alert.value:e}",
        }
        for alert in rule.alerts
        if alert.status in (PENDING, FIRING)
    ]


def _annotations(rule: RuleStatus, alert: AlertStatus | None = None) -> dict[str, str]:
    detail = {"description": alert.detail} if alert and alert.detail else {}
    return {**({"summary": rule.condition} if rule.condition else {}), **detail}


def _state(status: str) -> str:
    return status if status in (PENDING, FIRING) else "inactive"


def _moment(seconds: float | None) -> str:
    if seconds is None:
        return _NEVER
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
