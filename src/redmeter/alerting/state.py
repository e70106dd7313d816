"""The state of an alert, and the step from one evaluation to the next. Pure: no I/O, no clock.

    ok ── holds ──> pending ── for `for` ──> firing ── does not hold for `keep` ──> ok
                      └── does not hold ──> ok

Only ok to firing and firing to ok are transitions, which are recorded and notified. `notified` is
the last status that was sent: an alert that fires during maintenance or a silence is sent when that
ends, if it still fires, and a resolution is sent only if the alert was.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any, cast

from redmeter.alerting.rules import Maintenance, Rule, Rules

OK, PENDING, FIRING = "ok", "pending", "firing"
#: Statuses of notices.
FIRED, RESOLVED, REMINDER = "firing", "resolved", "reminder"


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of evaluating a rule once."""

    #: Whether the condition holds; None if it is unknown, and then nothing changes.
    holds: bool | None
    #: The number that was compared; None if there is none.
    value: float | None = None
    #: One sentence about the value, the precision, and the reason if it is unknown.
    detail: str = ""
    #: Whether a firing alert may resolve: beyond `clear`. As a rule, when it does not hold.
    clears: bool = True


#: Most alerts of a rule with `by`.
MAX_RULE_ALERTS = 100


@dataclass(frozen=True, slots=True)
class Readings:
    """The result of evaluating a rule once, by value of its label."""

    #: Value -> its reading, the most important first. None is the key of a rule without `by`.
    values: Mapping[str | None, Reading]
    #: The reading of all other values: unknown if the rule could not be evaluated at all.
    others: Reading = Reading(False, detail="no longer stored")

    def chosen(self, known: Iterable[str | None]) -> tuple[dict[str | None, Reading], int]:
        """Return the readings of at most MAX_RULE_ALERTS alerts, and the number of values left out.

        Args:
            known: values with an alert that is pending or fires; they come first. Values that have
                no reading any more get `others`.
        """
        chosen = {value: self.values.get(value, self.others) for value in known}
        for value, reading in self.values.items():
            if len(chosen) >= MAX_RULE_ALERTS:
                break
            chosen.setdefault(value, reading)
        return chosen, len(self.values.keys() - chosen.keys())


def alert_name(rule: Rule, value: str | None) -> str:
    """Return the name of the alert of a value: `errors`, or `errors{route="/buy"}`."""
    if value is None:
        return rule.name
    return f"{rule.name}{{{rule.by}={json.dumps(value, ensure_ascii=False)}}}"


def split_name(name: str) -> tuple[str, str, str | None]:
    """Return the rule of an alert, its label and its value: the inverse of alert_name()."""
    rule, brace, rest = name.partition("{")
    label, _, text = rest.removesuffix("}").partition("=")
    try:
        value = json.loads(text) if brace else None
    except ValueError:
        value = None
    return (rule, label, value) if isinstance(value, str) else (rule, "", None)


@dataclass(frozen=True, slots=True)
class AlertState:
    """The stored state of an alert."""

    #: Number of writes, so that each is made once.
    version: int = 0
    status: str = OK
    #: When the status began, Unix seconds by the server's clock.
    since: float = 0.0
    #: Since when the condition of a firing alert has not held; 0: it holds.
    fine_since: float = 0.0
    #: The last notification: "" or "firing", and when it was sent.
    notified: str = ""
    notified_at: float = 0.0
    #: When it began to fire, milliseconds: names the incident.
    incident: int = 0
    #: The notifiers of the last notification, for alerts that are removed from the file.
    notifiers: tuple[str, ...] = ()
    value: float | None = None
    detail: str = ""

    def to_json(self) -> str:
        """Return it as JSON."""
        return _json(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> "AlertState":
        """Read it; unknown fields of a newer release are ignored.

        Raises:
            ValueError: not JSON, or not an object.
        """
        document: Any = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError("not an object")
        return cast("AlertState", _made(cls, document))


@dataclass(frozen=True, slots=True)
class Step:
    """What follows from an evaluation."""

    state: AlertState
    #: Whether the state has to be written.
    changed: bool = False
    #: "firing" or "resolved" if the status changed between these, or "".
    transition: str = ""
    #: "firing", "resolved" or "reminder" if a notification is due, or "".
    notice: str = ""


def advance(
    rule: Rule, state: AlertState, reading: Reading, now: float, *, muted: bool = False
) -> Step:
    """Return the step that follows from an evaluation.

    Args:
        now: Unix seconds by the server's clock.
        muted: maintenance or a silence applies.
    """
    if reading.holds is None:
        return Step(state)
    status, since, fine_since = state.status, state.since, state.fine_since
    if status == FIRING:
        if reading.holds or not reading.clears:
            fine_since = 0.0
        else:
            fine_since = fine_since or now
            if now - fine_since >= rule.keep:
                status, since, fine_since = OK, now, 0.0
    elif reading.holds:
        if status == OK:
            status, since = PENDING, now
        if now - since >= rule.for_seconds:
            status, since = FIRING, now
    elif status == PENDING:
        status, since = OK, now
    transition = ""
    if (status == FIRING) != (state.status == FIRING):
        transition = FIRED if status == FIRING else RESOLVED
    notice = _notice(rule, state, status, now, muted=muted)
    incident = round(now * 1000) if transition == FIRED else state.incident
    after = replace(
        state,
        status=status,
        since=since,
        fine_since=fine_since,
        incident=incident,
        notifiers=rule.notify if notice else state.notifiers,
        **_notified(state, notice, now),
    )
    if after == state:
        return Step(state)
    value = None if reading.value is None else round(reading.value, 9)
    written = replace(after, version=state.version + 1, value=value, detail=reading.detail)
    return Step(written, True, transition, notice)


def _notice(rule: Rule, state: AlertState, status: str, now: float, *, muted: bool) -> str:
    if status != FIRING:
        return RESOLVED if state.notified else ""
    if muted:
        return ""
    if not state.notified:
        return FIRED
    if rule.remind and now - state.notified_at >= rule.remind:
        return REMINDER
    return ""


def _notified(state: AlertState, notice: str, now: float) -> dict[str, Any]:
    if not notice:
        return {"notified": state.notified, "notified_at": state.notified_at}
    return {"notified": "" if notice == RESOLVED else FIRED, "notified_at": now}


# --- Reports -------------------------------------------------------------------------------------

# The rules that an evaluator evaluates, and its newest readings, as it publishes them.
#
# The rules are in a file on the evaluator's host. It stores them in a field of `alerts:`, and its
# readings after each cycle, so that the page, `redmeter alerts` and Prometheus' API show every
# rule without the file. Both are informative: no decision of an evaluator depends on them.

#: Longest detail of a reading, characters.
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class CycleReport:
    """The readings of an evaluator's last cycle."""

    #: When, Unix seconds by the server's clock.
    time: float
    #: Seconds from one cycle to the next.
    interval: float
    #: Alert -> its reading.
    readings: dict[str, Reading] = field(default_factory=dict)
    #: Rule with `by` -> values beyond the limit, which are not evaluated.
    left_out: dict[str, int] = field(default_factory=dict)
    #: Errors of the evaluator itself: where -> count, since it started; and the last one's text.
    troubles: dict[str, int] = field(default_factory=dict)
    last_trouble: str = ""

    def to_json(self) -> str:
        """Return it as JSON."""
        readings = {
            name: [each.holds, _finite(each.value), each.detail[:_LONGEST]]
            for name, each in self.readings.items()
        }
        return _json({**asdict(self), "readings": readings})

    @classmethod
    def from_json(cls, text: str | bytes) -> "CycleReport":
        """Read it.

        Raises:
            ValueError, TypeError, LookupError, AttributeError: another program wrote it.
        """
        document: Any = json.loads(text)
        readings = {
            str(name): Reading(holds, value, str(detail))
            for name, (holds, value, detail) in document["readings"].items()
        }
        left_out = {str(name): int(count) for name, count in document["left_out"].items()}
        counts = document.get("troubles", {})  # an earlier release's has none
        troubles = {str(where): int(count) for where, count in counts.items()}
        last = str(document.get("last_trouble", ""))
        times = float(document["time"]), float(document["interval"])
        return cls(*times, readings, left_out, troubles, last)


def rules_text(rules: Rules) -> str:
    """Return rules and maintenance windows as JSON; notifiers stay on the evaluator's host."""
    return _json(
        {
            "rules": [_changed(rule) for rule in rules.alerts],
            "maintenance": [asdict(window) for window in rules.maintenance],
        }
    )


def read_rules(text: str | bytes) -> Rules:
    """Return the rules that an evaluator published; fields of a later release are ignored.

    Raises:
        ValueError, TypeError, LookupError, AttributeError: another program wrote it.
    """
    document: Any = json.loads(text)
    rules = tuple(_made(Rule, each) for each in document["rules"])
    return Rules(rules, {}, tuple(_made(Maintenance, each) for each in document["maintenance"]))


def _made(cls: Any, given: Mapping[str, Any]) -> Any:
    known = {each.name for each in fields(cls)}
    return cls(**{name: _tuples(value) for name, value in given.items() if name in known})


def _changed(rule: Rule) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    defaults = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(rule)
    }
    return {name: value for name, value in asdict(rule).items() if value != defaults[name]}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
