"""Rules of alerts, and a receiver that notes what it is sent."""

from redmeter.alerting.notifiers import NotDelivered
from redmeter.alerting.rules import Notifier
from redmeter.alerting.store import Notice

RULES = """
[[alert]]
name = "queue"
when = "threshold"
metric = "queue_length"
value = "last"
above = 100
window = "1m"
notify = ["ops", "log"]

[notify.ops]
type = "command"
command = ["true"]

[notify.log]
type = "command"
command = ["true"]
"""


class Receiver:
    """Notes the notices that are delivered; may be told to fail."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.failing: set[str] = set()

    def deliver(self, notifier: Notifier, notice: Notice) -> None:
        """Take a notice."""
        if notifier.name in self.failing:
            raise NotDelivered("HTTP status 503")
        self.notices.append(notice)

    def seen(self, notifier: str = "ops") -> list[tuple[str, str]]:
        """Return the alerts and statuses that a notifier was sent, in order."""
        return [(each.name, each.status) for each in self.notices if each.notifier == notifier]
