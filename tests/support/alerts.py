"""Rules of alerts, and a receiver that notes what it is sent."""

import time
from collections.abc import Iterable

from redmeter import Meter
from redmeter.alerting.notifiers import NotDelivered
from redmeter.alerting.rules import Notifier
from redmeter.alerting.store import Notice

#: A rule without a notifier.
QUEUE = """
[[alert]]
name = "queue"
when = "threshold"
metric = "queue_length"
value = "last"
above = 100
window = "1m"
"""

RULES = f"""{QUEUE}notify = ["ops", "log"]

[notify.ops]
type = "command"
command = ["true"]

[notify.log]
type = "command"
command = ["true"]
"""


#: A notice, for a notifier that is tried alone.
NOTICE = Notice(
    number=7,
    key="redmeter:queue:1700000000000:3:ops",
    incident="redmeter:queue:1700000000000",
    name="queue",
    notifier="ops",
    status="firing",
    severity="page",
    message="the queue is long",
    detail="last of queue_length over 1 min is 500",
    value=500.0,
    labels={"team": "shop"},
    since=1_700_000_000.0,
    time=1_700_000_001.0,
)


def rise(meter: Meter) -> None:
    """Make the alert's condition hold."""
    meter.gauge("queue_length").set(500, at=time.time() - 30)


def fall(meter: Meter) -> None:
    """End that."""
    meter.gauge("queue_length").set(5, at=time.time() - 12)


class Receiver:
    """Notes the notices that are delivered; may be told to fail."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.failing: set[str] = set()

    def deliver(self, notifier: Notifier, notice: Notice, _: float = 10.0) -> Iterable[None]:
        """Take a notice, at once."""
        if notifier.name in self.failing:
            raise NotDelivered("HTTP status 503")
        self.notices.append(notice)
        return ()

    def seen(self, notifier: str = "ops") -> list[tuple[str, str]]:
        """Return the alerts and statuses that a notifier was sent, in order."""
        return [(each.name, each.status) for each in self.notices if each.notifier == notifier]
