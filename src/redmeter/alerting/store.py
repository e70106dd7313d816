"""Alerts in the store: the lease of the evaluator, states, transitions, notices, silences.

Any number of evaluators may run; the one that holds the lease evaluates. Each write names the epoch
of its lease and the version of the state that it follows, and is one atomic step with the
transition and the notices: a repeated write changes nothing, nor does one of an evaluator whose
lease has passed to another. All times are the server's.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar

from redmeter.alerting.rules import Rules, matches_alert
from redmeter.alerting.state import AlertState, CycleReport, read_rules
from redmeter.store import Store
from redmeter.store.scripts import ALERTS
from redmeter.store.servers.replies import mapped, raised

#: Seconds that everything is kept after the last change.
ALERTS_KEPT_SECONDS = 90 * 86400
#: Transitions that are kept.
TRANSITIONS = 1000

_LEASE, _STATE, _SILENCE = "lease", "alert:", "silence:"
_RULES, _REPORT = "rules", "report"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Silence:
    """Alerts that notify nobody until a time."""

    id: str
    #: Names of alerts, with * and ?.
    alerts: str
    #: Unix seconds.
    until: float
    comment: str = ""

    def covers(self, name: str, now: float) -> bool:
        """Return whether it applies to an alert now."""
        return now < self.until and matches_alert(name, self.alerts)


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of an alert to "firing" or "resolved", recorded once."""

    name: str
    status: str
    #: Unix seconds, by the server's clock.
    time: float
    severity: str = ""
    value: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification that is not delivered yet."""

    #: Order in which notices were made.
    number: int
    #: The same on every attempt, so that receivers can recognize a repetition.
    key: str
    #: The same for all notices of one firing.
    incident: str
    name: str
    notifier: str
    #: "firing", "resolved" or "reminder".
    status: str
    severity: str
    message: str
    detail: str
    value: float | None
    labels: dict[str, str]
    #: When the alert began to fire, or was resolved; and when this notice was made.
    since: float
    time: float
    attempts: int = 0
    #: Not before this time.
    due: float = 0.0
    #: Why the last attempt failed.
    error: str = ""


@dataclass(frozen=True, slots=True)
class AlertSnapshot:
    """Everything stored about alerts."""

    states: dict[str, AlertState]
    silences: dict[str, Silence]
    notices: list[Notice]
    #: The server's clock, Unix seconds.
    now: float
    #: Until when an evaluator holds the lease; 0 if none does.
    leased_until: float = 0.0
    #: The rules as the last evaluator published them, and their text; None if none has.
    rules: Rules | None = None
    rules_text: str = ""
    #: The readings of the last cycle; None if there was none.
    report: CycleReport | None = None
    #: The newest transitions, if asked for, the newest first.
    transitions: tuple[Transition, ...] = ()


class AlertStore:
    """Reads and writes the keys of alerts.

    Args:
        store: the store.
        owner: who takes the lease; unique for each evaluator. "" for one that only reads.
    """

    def __init__(self, store: Store, owner: str = "") -> None:
        self._store = store
        self._part = store.shard("")
        self._owner = owner
        #: Grows each time the lease is taken by another one, or after it has expired.
        self.epoch = 0
        #: When the lease ends, by this machine's monotonic clock.
        self._ends = 0.0
        #: Seconds that another one's lease lasts, as of the last acquire().
        self.others_remaining = 0.0

    @property
    def prefix(self) -> str:
        """The prefix of the store's keys."""
        return self._part.keys.prefix

    def snapshot(self, *, transitions: int = 0) -> AlertSnapshot:
        """Return everything that is stored, in one round trip.

        Args:
            transitions: number of the newest transitions to return.

        Raises:
            StoreError: the store is unreachable or refuses.
        """
        keys = self._part.keys
        commands: list[tuple[str, ...]] = [
            ("HGETALL", keys.key("alerts")),
            ("HGETALL", keys.key("notices")),
        ]
        if transitions:
            commands.append(("LRANGE", keys.key("transitions"), "0", str(transitions - 1)))
        view, replies = self._store.read(commands)
        return _snapshot([*replies, []][:3], view.now)

    def transitions(self, limit: int = 100) -> list[Transition]:
        """Return the newest transitions, the newest first."""
        return list(self.snapshot(transitions=limit).transitions)

    def acquire(self, seconds: float) -> float | None:
        """Take the lease or renew it; return the server's time, or None if another one holds it."""
        begun = time.monotonic()
        done, now, epoch, deadline = self._run("lease", self._owner, f"{seconds:.3f}")
        if not done:
            self._ends = 0.0
            self.others_remaining = float(deadline) - float(now)
            return None
        self.epoch, self._ends = epoch, begun + seconds
        return float(now)

    def hold(self, seconds: float, least: float) -> bool:
        """Renew the lease if it lasts less than `least` seconds; return whether it is held."""
        return self.remaining > least or self.acquire(seconds) is not None

    @property
    def remaining(self) -> float:
        """Seconds that the lease certainly lasts."""
        return self._ends - time.monotonic()

    def release(self) -> None:
        """Give the lease back, so that another evaluator need not wait for its end."""
        self._ends = 0.0
        self._run("release", self._owner)

    def write(
        self,
        name: str,
        before: AlertState,
        after: AlertState | None,
        transition: Transition | None,
        notices: Sequence[Notice],
    ) -> bool:
        """Store the state of an alert with its transition and notices, all or nothing.

        Args:
            before: the state that it follows.
            after: None removes the alert.

        Returns:
            Whether it was stored; not if the lease or the state has changed.
        """
        done, *_ = self._run(
            *("write", self._owner, str(self.epoch), name, str(before.version)),
            after.to_json() if after else "",
            _json(asdict(transition)) if transition else "",
            str(TRANSITIONS),
            *(_notice_json(notice) for notice in notices),
        )
        return bool(done)

    def publish(self, rules: str, report: CycleReport, published: str) -> bool:
        """Store the readings of this cycle, and the rules if they have changed."""
        text = "" if rules == published else rules
        return bool(self._run("publish", self._owner, str(self.epoch), text, report.to_json())[0])

    def settle(self, notice: Notice, *, delivered: bool) -> bool:
        """Remove a notice that is delivered, or store its next attempt."""
        text = "" if delivered else _notice_json(notice)
        return bool(self._run("settle", self._owner, str(self.epoch), str(notice.number), text)[0])

    def silence(self, silence: Silence) -> None:
        """Store a silence."""
        self._run("silence", silence.id, _json(asdict(silence)))

    def unsilence(self, silence_id: str) -> bool:
        """Remove a silence; return whether there was one."""
        return bool(self._run("silence", silence_id, "")[0])

    def _run(self, action: str, *args: str) -> list[Any]:
        keys = self._part.keys
        reply = ALERTS.run(
            self._part.link,
            [*map(keys.key, ("alerts", "notices", "transitions", "meta"))],
            [action, str(ALERTS_KEPT_SECONDS), *args],
        )
        return list(raised(reply))


def _snapshot(replies: Sequence[Any], now: float) -> AlertSnapshot:
    fields = {
        key.decode(errors="replace"): value for key, value in mapped(raised(replies[0])).items()
    }
    states = _entries(fields, _STATE, AlertState.from_json)
    silences = _entries(fields, _SILENCE, lambda text: Silence(**json.loads(text)))
    notices = [
        notice
        for number, value in mapped(raised(replies[1])).items()
        if (notice := _loaded(partial(_notice, number), value)) is not None
    ]
    notices.sort(key=lambda notice: notice.number)
    changes = [
        _loaded(lambda text: Transition(**json.loads(text)), each) for each in raised(replies[2])
    ]
    leased = _loaded(lambda lease: float(lease.split()[1]), fields.get(_LEASE, b"0 0"))
    text = fields.get(_RULES, b"")
    return AlertSnapshot(
        states,
        silences,
        notices,
        now,
        leased if leased is not None and leased > now else 0.0,
        _loaded(read_rules, text),
        text.decode(errors="replace"),
        _loaded(CycleReport.from_json, fields.get(_REPORT, b"")),
        tuple(each for each in changes if each is not None),
    )


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _notice_json(notice: Notice) -> str:
    fields = asdict(notice)
    del fields["number"]
    return _json(fields)


def _notice(number: bytes, text: bytes) -> Notice:
    return Notice(number=int(number), **json.loads(text))


def _entries(fields: dict[str, bytes], start: str, read: Callable[[bytes], T]) -> dict[str, T]:
    """Return the fields that begin with a text, without it; damaged ones are left out."""
    entries = {
        field.removeprefix(start): _loaded(read, value)
        for field, value in fields.items()
        if field.startswith(start)
    }
    return {name: value for name, value in entries.items() if value is not None}


def _loaded(read: Callable[[bytes], T], text: bytes) -> T | None:
    """Return a value that was stored, or None if another release or program wrote it."""
    try:
        return read(text)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
