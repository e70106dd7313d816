"""The evaluator: evaluates rules every few seconds and delivers notices, while it has the lease.

A cycle evaluates each rule and stores what changed; the notices that are due are delivered until
the next one (see outbox.py). The lease is short, so that another evaluator takes over soon, and
is renewed between rules, while attempts run, and between cycles; the others try again when it ends.
If the store is unreachable, the state of all alerts is unknown: nothing fires, nothing resolves,
and the next cycle continues. An error of ours ends in the reading of its rule, or in the error of
its notice; it is logged once and counted.
"""

import contextlib
import logging
import math
import secrets
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from redmeter.alerting.conditions import RuleReader
from redmeter.alerting.notifiers import ATTEMPT_PAUSE, begin_attempt, shown_reason
from redmeter.alerting.outbox import Deliver, Outbox
from redmeter.alerting.rules import Rule, Rules, describe_condition, unit_of_values
from redmeter.alerting.state import (
    FIRED,
    FIRING,
    OK,
    RESOLVED,
    AlertState,
    CycleReport,
    Reading,
    Readings,
    Step,
    advance,
    alert_name,
    rules_text,
    split_name,
)
from redmeter.alerting.store import AlertSnapshot, AlertStore, Notice, Transition
from redmeter.analysis.comparing.sentences import value_text
from redmeter.errors import AccessDenied, StoreError, StoreMoving, StoreRefused
from redmeter.queries import Queries
from redmeter.store import Store

#: Seconds between two cycles.
CYCLE_SECONDS = 15.0
#: Seconds that the lease lasts: as long as an attempt to send, and a little longer.
ALERT_LEASE = 12.0
#: The part of the lease that is left when it is renewed, so that one slow reply does not end it.
_RENEWED_AT = 2 / 3
#: Seconds after another one's lease before this one tries, and after a signal until attempts that
#: still run are ended.
_LATER, _PATIENCE = 0.1, 0.5

logger = logging.getLogger("redmeter")


@dataclass(slots=True)
class Cycle:
    """What a cycle did."""

    #: Whether this evaluator has the lease; if not, another one does the work.
    leading: bool = False
    evaluated: int = 0
    firing: int = 0
    #: Alerts whose condition could not be evaluated, with the reason.
    unknown: dict[str, str] = field(default_factory=dict)
    transitions: int = 0
    delivered: int = 0
    failed: int = 0


class Evaluator:
    """Evaluates the rules of a file.

    Args:
        store: the store.
        rules: the rules.
        interval: seconds from the start of one cycle to the start of the next.
        lease: seconds that the lease lasts; above 1.25, so that there is time to send.
        deliver: begins an attempt to send a notice.
    """

    def __init__(
        self,
        store: Store,
        rules: Rules,
        *,
        interval: float = CYCLE_SECONDS,
        lease: float = ALERT_LEASE,
        deliver: Deliver = begin_attempt,
    ) -> None:
        self._store = store
        self._rules = rules
        self._stored_rules = rules_text(rules)
        self._interval = interval
        self._lease = lease
        self._alerts = AlertStore(store, secrets.token_hex(8))
        self._outbox = Outbox(self._alerts, rules.notifiers, lease, deliver, self._record_trouble)
        #: When the next cycle begins, by the monotonic clock.
        self._next = 0.0
        #: The epoch of the lease in the last cycle.
        self._epoch = 0
        self._unreachable = False
        self._troubles: Counter[str] = Counter()
        self._last_trouble = ""
        self._logged: set[tuple[str, str]] = set()
        self._quit: Callable[[float], bool] = lambda _: False

    def run(self, quit: Callable[[float], bool]) -> None:  # noqa: A002
        """Run cycles until `quit` returns True.

        Attempts that still run then have half a second to end.

        Args:
            quit: waits for a number of seconds; returns True when it is time to stop.
        """
        pause, self._quit = 0.0, quit
        try:
            while not quit(pause):
                pause = self._turn()
            until = time.monotonic() + _PATIENCE
            while self._outbox.look() and time.monotonic() < until:
                time.sleep(ATTEMPT_PAUSE)
            with contextlib.suppress(StoreError):  # then they are sent again
                self._outbox.finish()
        finally:
            self._outbox.close()
            with contextlib.suppress(StoreError):  # then it expires
                self._alerts.release()

    def _turn(self) -> float:
        """Evaluate and deliver; return the seconds until there is more to do."""
        pause = self._lease * (1 - _RENEWED_AT)
        try:
            pause = min(pause, self._lead(pause))
            if self._unreachable:
                logger.warning("redmeter: alerts are evaluated again")
            self._unreachable = False
        except StoreError as error:
            if not self._unreachable:
                logger.error("redmeter: the state of all alerts is unknown: %s", error)
            self._unreachable = True
        except Exception as error:  # noqa: BLE001 - a bug of ours: the next cycle runs
            self._record_trouble("cycle", error)
            with contextlib.suppress(Exception):  # the next cycle tries again
                self._publish_troubles()
        return ATTEMPT_PAUSE if self._outbox.look() else pause

    def _lead(self, most: float) -> float:
        """Evaluate and deliver if this evaluator has the lease; return the same."""
        if not self._alerts.hold(self._lease, self._lease * _RENEWED_AT):
            return self._alerts.others_remaining + _LATER
        now = time.monotonic()
        if now >= self._next or self._alerts.epoch != self._epoch:
            self._epoch = self._alerts.epoch
            self._next = now + self._interval
            self._evaluate_rules(Cycle())
        busy = self._outbox.step()
        return ATTEMPT_PAUSE if busy else max(0.0, min(most, self._next - time.monotonic()))

    def cycle(self) -> Cycle:
        """Evaluate every rule once and deliver the notices that are due.

        Raises:
            StoreError: the store is unreachable or refuses; nothing else was changed.
        """
        result = Cycle()
        delivered, failed = self._outbox.delivered, self._outbox.failed
        if self._evaluate_rules(result):
            while self._outbox.step():
                time.sleep(ATTEMPT_PAUSE)
        result.delivered = self._outbox.delivered - delivered
        result.failed = self._outbox.failed - failed
        return result

    def _evaluate_rules(self, result: Cycle) -> bool:
        """Evaluate every rule and load the notices that are due; return whether it has the lease.

        Raises:
            StoreError: the store is unreachable or refuses.
        """
        now = self._alerts.acquire(self._lease)
        if now is None:
            return False
        result.leading = True
        snapshot = self._alerts.snapshot()
        kept = self._store.seen
        conditions = RuleReader(Queries(self._store), kept.series, kept.histograms)
        report = CycleReport(now, self._interval)
        for rule in self._rules.alerts:
            try:
                readings = _readings(conditions, rule, now)
                self._evaluate(rule, readings, snapshot, report, result)
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - a bug of ours: the others go on
                detail = shown_reason(f"cannot be evaluated: {type(error).__name__}: {error}")
                self._note(rule.name, Reading(None, detail=detail), report, result)
                self._record_trouble("rule", error)
            self._outbox.look()
            if not self._alerts.hold(self._lease, self._lease * _RENEWED_AT) or self._quit(0.0):
                return False
        self._publish(report, snapshot)
        self._drop_removed(snapshot, now)
        for silence in snapshot.silences.values():
            if silence.until <= now:
                self._alerts.unsilence(silence.id)
        self._outbox.load(self._alerts.snapshot())
        return True

    def _publish(self, report: CycleReport, snapshot: AlertSnapshot) -> None:
        shown = replace(report, troubles=dict(self._troubles), last_trouble=self._last_trouble)
        self._alerts.publish(self._stored_rules, shown, snapshot.rules_text)

    def _publish_troubles(self) -> None:
        """Publish the troubles with the readings that are stored."""
        snapshot = self._alerts.snapshot()
        self._publish(snapshot.report or CycleReport(snapshot.now, self._interval), snapshot)

    def _record_trouble(self, where: str, error: Exception) -> None:
        """Count an error of ours; log each kind once."""
        frame = traceback.extract_tb(error.__traceback__)[-1:]
        place = "".join(f" ({each.filename.rpartition('/')[2]}:{each.lineno})" for each in frame)
        kind = type(error).__name__
        self._last_trouble = shown_reason(f"{where}: {kind}: {error}{place}")
        self._troubles[where] += 1
        if (where, kind + place) not in self._logged:
            self._logged.add((where, kind + place))
            logger.error("redmeter: an error of the evaluator itself: %s", self._last_trouble)

    def _evaluate(
        self,
        rule: Rule,
        readings: Readings,
        snapshot: AlertSnapshot,
        report: CycleReport,
        result: Cycle,
    ) -> None:
        now = report.time
        result.evaluated += 1
        chosen, left_out = readings.chosen(_values(rule, snapshot))
        if left_out:
            report.left_out[rule.name] = left_out
        if not chosen and readings.others.holds is None:
            self._note(rule.name, readings.others, report, result)
        for value, reading in chosen.items():
            name = alert_name(rule, value)
            self._note(name, reading, report, result)
            before = snapshot.states.get(name, AlertState())
            step = advance(rule, before, reading, now, muted=self._muted(name, snapshot, now))
            result.firing += step.state.status == FIRING
            if step.changed and self._store_step(rule, name, before, step, reading, now):
                result.transitions += bool(step.transition)

    @staticmethod
    def _note(name: str, reading: Reading, report: CycleReport, result: Cycle) -> None:
        report.readings[name] = reading
        if reading.holds is None:
            result.unknown[name] = reading.detail

    def _muted(self, name: str, snapshot: AlertSnapshot, now: float) -> bool:
        silenced = any(silence.covers(name, now) for silence in snapshot.silences.values())
        return silenced or self._rules.muted(name, now)

    def _store_step(
        self,
        rule: Rule,
        name: str,
        before: AlertState,
        step: Step,
        reading: Reading,
        now: float,
    ) -> bool:
        transition = None
        if step.transition:
            value, detail = reading.value, reading.detail
            transition = Transition(name, step.transition, now, rule.severity, value, detail)
        notices = self._notices(rule, name, step.state, step.notice, now) if step.notice else []
        # The values of a label come and go: only pending and firing ones are kept.
        after = None if rule.by and step.state.status == OK else step.state
        return self._alerts.write(name, before, after, transition, notices)

    def _notices(
        self, rule: Rule, name: str, state: AlertState, status: str, now: float
    ) -> list[Notice]:
        incident = f"{self._alerts.prefix}{name}:{state.incident}"
        _, label, value = split_name(name)
        labels = dict(rule.labels) | ({label: value} if value is not None else {})
        try:
            message = message_of(rule, name, status, state, labels)
        except Exception as error:  # noqa: BLE001 - of a template: it is sent all the same
            reason = shown_reason(f"{type(error).__name__}: {error}")
            message = f"{name}: {state.detail} (the message cannot be written: {reason})"
            self._record_trouble("message", error)
        return [
            Notice(
                number=0,
                key=f"{incident}:{state.version}:{notifier}",
                incident=incident,
                name=name,
                notifier=notifier,
                status=status,
                severity=rule.severity,
                message=message,
                detail=state.detail,
                value=state.value,
                labels=labels,
                since=state.since,
                time=now,
            )
            for notifier in rule.notify
        ]

    def _drop_removed(self, snapshot: AlertSnapshot, now: float) -> None:
        """Resolve and remove alerts that are no longer in the file."""
        labels = {rule.name: rule.by for rule in self._rules.alerts}
        for name, state in snapshot.states.items():
            rule_name, label, _ = split_name(name)
            if labels.get(rule_name) == label:
                continue
            transition, notices = None, list[Notice]()
            gone = replace(
                state,
                version=state.version + 1,
                since=now,
                detail="removed from the file of alerts",
            )
            if state.status == FIRING:
                transition = Transition(name, RESOLVED, now, detail=gone.detail)
            if state.notified:
                rule = Rule(rule_name, "removed", notify=state.notifiers)
                notices = self._notices(rule, name, gone, RESOLVED, now)
            self._alerts.write(name, state, None, transition, notices)


def _readings(conditions: RuleReader, rule: Rule, now: float) -> Readings:
    """Return the readings of a rule: unknown if the server refuses a read of this rule alone."""
    try:
        return conditions.read(rule, now, now)
    except StoreMoving:
        raise
    except (AccessDenied, StoreRefused) as error:  # another key may be readable
        return Readings({}, Reading(None, detail=shown_reason(f"cannot be evaluated: {error}")))


def _values(rule: Rule, snapshot: AlertSnapshot) -> list[str | None]:
    """Return the label values whose alerts are stored; [None] for a rule without a label."""
    if not rule.by:
        return [None]
    split = map(split_name, snapshot.states)
    return [value for name, label, value in split if (name, label) == (rule.name, rule.by)]


@dataclass(frozen=True, slots=True)
class _Figure:
    """A value in a template: a number if it has a format, else as people write it in its unit."""

    value: float | None
    unit: str

    def __repr__(self) -> str:
        return value_text(self.value, self.unit)

    def __format__(self, form: str) -> str:
        return format(math.nan if self.value is None else self.value, form) if form else repr(self)


def message_of(
    rule: Rule, name: str, status: str, state: AlertState, labels: Mapping[str, str]
) -> str:
    """Return the message of a notice: the rule's template, or its name and the reading's detail."""
    if not rule.message:
        return f"{name}: {state.detail}"
    return rule.message.format(
        name=name,
        status=FIRED if status != RESOLVED else RESOLVED,
        severity=rule.severity,
        value=_Figure(state.value, unit_of_values(rule)),
        detail=state.detail,
        window=rule.window,
        labels=", ".join(f"{label}={text}" for label, text in labels.items()),
    )


def sample_message(rule: Rule) -> tuple[str, str]:
    """Return the name of an alert of a rule, and its message with sample values."""
    name = alert_name(rule, "example" if rule.by else None)
    labels = dict(rule.labels) | ({rule.by: "example"} if rule.by else {})
    number = 1.0 if rule.limit is None else rule.limit
    value = None if rule.when == "verdict" else 0.0 if rule.when == "absent" else number
    state = AlertState(value=value, detail=f"sample: {describe_condition(rule)}")
    return name, message_of(rule, name, FIRED, state, labels)


# --- Replay: when the rules of a file would have fired, over the data that are kept -------------

#: Most evaluations of a rule.
MAX_STEPS = 1440


@dataclass(frozen=True, slots=True)
class Firing:
    """A time in which an alert would have fired."""

    #: The alert: the rule's name, with `by` also the label's value.
    name: str
    #: Unix seconds.
    since: float
    #: None if it would still fire.
    until: float | None
    value: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The result for one rule."""

    name: str
    firings: tuple[Firing, ...]
    #: Evaluations, and those of which the data are not kept or the condition is only known for now.
    evaluated: int
    unknown: int
    #: Why, of the last of these.
    reason: str
    #: The first time that could be evaluated; None if none could.
    since: float | None


def replay_rule(rule: Rule, conditions: RuleReader, since: float, now: float) -> Replay:
    """Evaluate a rule at regular times from `since` until now.

    Args:
        since: Unix seconds.
        now: the server's clock.

    Raises:
        StoreError: the store is unreachable or refuses.
    """
    states: dict[str | None, AlertState] = {} if rule.by else {None: AlertState()}
    opened: dict[str | None, Firing] = {}
    firings: list[Firing] = []
    evaluated = unknown = 0
    reason, first = "", None
    for at in _times(since, now):
        readings = conditions.read(rule, at, now)
        evaluated += 1
        chosen, _ = readings.chosen(states)
        newest = [*chosen.values()] or [readings.others]
        if all(each.holds is None for each in newest):
            unknown, reason = unknown + 1, newest[-1].detail
            continue
        first = at if first is None else first
        for value, reading in chosen.items():
            step = advance(rule, states.get(value, AlertState()), reading, at)
            states[value] = step.state
            if step.transition == FIRED:
                name = alert_name(rule, value)
                opened[value] = Firing(name, at, None, reading.value, reading.detail)
            elif step.transition == RESOLVED and value in opened:
                firings.append(replace(opened.pop(value), until=at))
            if rule.by and step.state.status == OK:
                del states[value]
    firings += opened.values()
    firings.sort(key=lambda firing: firing.since)
    return Replay(rule.name, tuple(firings), evaluated, unknown, reason, first)


def _times(since: float, now: float) -> Iterator[float]:
    step = max(60, math.ceil((now - since) / MAX_STEPS / 60) * 60)
    count = int((now - since) // step)
    return (now - number * step for number in range(count, -1, -1))
