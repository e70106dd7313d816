"""Outbox: delivers the notices that are due, to several receivers at once.

A receiver has one attempt at a time, so it gets its notices in order; a slow one delays no other.
After a failed attempt, a receiver gets no further one in the same cycle, and the notice's own pause
doubles. Receivers that have failed before come last, so that those that hang never take the places
of all attempts.

Exactly once: an attempt begins only with a lease that lasts until after its deadline, and sends
nothing after that (see attempt.py). What came of it is stored before the next attempt begins, or as
soon as the store is reachable again, unless another evaluator has the lease then.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, replace

from redmeter.alerting.notifiers import (
    ATTEMPT_GRACE,
    SEND_TIMEOUT,
    NotDelivered,
    begin_attempt,
    shown_reason,
)
from redmeter.alerting.rules import Notifier
from redmeter.alerting.store import AlertSnapshot, AlertStore, Notice

#: Seconds after which a notice that cannot be delivered is given up, and the longest pause.
GIVE_UP, _LONGEST_PAUSE = 86400.0, 600.0
#: Most attempts at a time. Each is a process of some 15 MB.
MOST_ATTEMPTS = 16
#: Seconds of the lease that are left when an attempt has ended at the latest.
_MARGIN = ATTEMPT_GRACE + 0.25
#: Seconds that an attempt gets at least.
_SHORTEST = 0.5

#: Begins an attempt of some seconds, which is iterated until it has ended: see begin_attempt().
Deliver = Callable[[Notifier, Notice, float], Iterable[None]]

logger = logging.getLogger("redmeter")


@dataclass(slots=True)
class _Attempt:
    notice: Notice
    steps: Generator[None, None, None]
    ended: bool = False
    #: Why it failed; "" if it did not.
    error: str = ""


class Outbox:
    """Delivers notices.

    Args:
        alerts: where notices are stored.
        notifiers: name -> notifier.
        lease: seconds that the lease lasts.
        deliver: begins an attempt.
        record_trouble: counts an error of ours: where, and the error.
    """

    def __init__(
        self,
        alerts: AlertStore,
        notifiers: Mapping[str, Notifier],
        lease: float,
        deliver: Deliver = begin_attempt,
        record_trouble: Callable[[str, Exception], None] = lambda *_: None,
    ) -> None:
        self._alerts = alerts
        self._notifiers = notifiers
        self._lease = lease
        self._deliver = deliver
        self._record_trouble = record_trouble
        #: Due, in order; without those of a receiver that has failed in this cycle.
        self._waiting: list[Notice] = []
        #: Receiver -> its attempt.
        self._attempts: dict[str, _Attempt] = {}
        #: The server's time when the notices were loaded.
        self._now = 0.0
        #: The epoch of the lease then: later, another evaluator may have sent them.
        self._epoch = 0
        self.delivered = self.failed = 0

    def load(self, snapshot: AlertSnapshot) -> None:
        """Take the notices that are due, and give up those that are too old.

        Raises:
            StoreError: the store is unreachable or refuses.
        """
        self._now, self._epoch = snapshot.now, self._alerts.epoch
        self._waiting = []
        attempted = {attempt.notice.number for attempt in self._attempts.values()}
        held: set[tuple[str, str]] = set()
        for notice in snapshot.notices:
            route = (notice.name, notice.notifier)
            if notice.number in attempted:
                continue
            if notice.notifier not in self._notifiers or snapshot.now - notice.time > GIVE_UP:
                logger.error(
                    "redmeter: a notice of the alert %r to %r is given up: %s",
                    notice.name,
                    notice.notifier,
                    notice.error or "there is no such notifier",
                )
                self._alerts.settle(notice, delivered=True)
            elif route in held or notice.due > snapshot.now:
                held.add(route)  # those behind it wait, too
            else:
                self._waiting.append(notice)

    def step(self) -> bool:
        """Store what came of attempts, and begin others; return whether one runs or may begin.

        Raises:
            StoreError: the store is unreachable or refuses; nothing is forgotten.
        """
        self.finish()
        first: dict[str, Notice] = {}
        for notice in self._waiting:
            first.setdefault(notice.notifier, notice)
        for notice in sorted(first.values(), key=lambda each: (each.attempts, each.number)):
            if len(self._attempts) >= MOST_ATTEMPTS:
                break
            if notice.notifier not in self._attempts and not self._begin(notice):
                return False
        return bool(self._attempts or self._waiting)

    def finish(self) -> None:
        """Store what came of the attempts that have ended.

        Raises:
            StoreError: the store is unreachable or refuses; nothing is forgotten.
        """
        self.look()
        for attempt in [*self._attempts.values()]:
            if attempt.ended:
                self._settle(attempt)

    def look(self) -> bool:
        """Look after the attempts, without the store; return whether one still runs."""
        for attempt in self._attempts.values():
            if not attempt.ended:
                self._advance(attempt)
        return not all(attempt.ended for attempt in self._attempts.values())

    def close(self) -> None:
        """End all attempts; their notices stay undelivered."""
        for attempt in self._attempts.values():
            attempt.steps.close()
        self._attempts.clear()

    def _begin(self, notice: Notice) -> bool:
        """Begin an attempt; return False if another evaluator has, or has had, the lease."""
        # Not by this machine's clock alone: the server's may have been set, or have failed over.
        if self._alerts.acquire(self._lease) is None or self._alerts.epoch != self._epoch:
            self._waiting = []
            return False
        seconds = min(SEND_TIMEOUT, max(self._alerts.remaining - _MARGIN, 0.0))
        if seconds < _SHORTEST:  # the server's reply took that long: not in this cycle
            self._waiting = []
            return True
        self._waiting.remove(notice)
        notifier = self._notifiers[notice.notifier]
        attempt = _Attempt(notice, self._steps(notifier, notice, seconds))
        self._attempts[notice.notifier] = attempt
        self._advance(attempt)
        if attempt.ended:
            self._settle(attempt)
        return True

    def _steps(
        self, notifier: Notifier, notice: Notice, seconds: float
    ) -> Generator[None, None, None]:
        yield from self._deliver(notifier, notice, seconds)

    def _advance(self, attempt: _Attempt) -> None:
        try:
            next(attempt.steps)
        except StopIteration:
            attempt.ended = True
        except NotDelivered as error:
            attempt.ended, attempt.error = True, str(error)
        except Exception as error:  # noqa: BLE001 - a bug of ours: the others go on
            attempt.ended, attempt.error = True, shown_reason(f"{type(error).__name__}: {error}")
            self._record_trouble("notice", error)

    def _settle(self, attempt: _Attempt) -> None:
        """Store what came of an attempt; nothing if another evaluator has the lease."""
        notice = attempt.notice
        if self._alerts.hold(self._lease, 0.0):
            after = self._postponed(notice, attempt.error) if attempt.error else notice
            self._alerts.settle(after, delivered=not attempt.error)
        del self._attempts[notice.notifier]
        if attempt.error:
            self.failed += 1
            if notice.attempts == 0:
                logger.warning(
                    "redmeter: a notice of the alert %r to %r is not delivered, and is tried "
                    "again: %s",
                    notice.name,
                    notice.notifier,
                    attempt.error,
                )
            self._waiting = [each for each in self._waiting if each.notifier != notice.notifier]
        else:
            self.delivered += 1

    def _postponed(self, notice: Notice, error: str) -> Notice:
        pause = min(5.0 * 2.0 ** min(notice.attempts, 10), _LONGEST_PAUSE)
        later = self._now + pause
        return replace(notice, attempts=notice.attempts + 1, due=later, error=error)
