"""Parcel: a batch under way, and what is known of it.

Nobody has had it while `sent` is false. Once it was sent without an answer it may have been
applied, so it keeps its number and what it does, until an answer comes.
"""

from collections.abc import Callable

from redmeter.clock import Clock
from redmeter.keys import Kept
from redmeter.store.producers import Producer
from redmeter.types import Batch, Operations


class Parcel:
    """One batch of a producer, from its making to its answer.

    Args:
        build: makes the operations for what is kept; called again should that have changed.
    """

    __slots__ = ("_batch", "_build", "_since", "_version", "number", "producer", "renewed", "sent")

    def __init__(self, producer: Producer, build: Callable[[Kept], Operations]) -> None:
        self.producer = producer
        self.number = producer.next()
        #: Whether it may have been applied.
        self.sent = False
        #: Whether its producer had to become another one.
        self.renewed = False
        self._build = build
        self._batch: Batch | None = None
        self._version = ""
        self._since = (0.0, 0.0)

    def batch(self, kept: Kept, version: str) -> Batch:
        """Return the batch for what is kept, the same each time for one version of it.

        Made anew for another version also when it was sent: the server looks at the number before
        it looks at the version, so a batch that it refuses for its version was not applied.
        """
        if self._batch is None or self._version != version:
            operations = self._build(kept)
            self._batch, self._version = Batch(self.producer.id, self.number, operations), version
        return self._batch

    def may_be_applied(self, clock: Clock) -> None:
        """Note that it was sent and not answered."""
        if not self.sent:
            self.sent, self._since = True, (clock.monotonic(), clock.wall())

    def age(self, clock: Clock) -> float:
        """Return how long ago it was first sent, seconds: by the clock that says longer."""
        monotonic, wall = self._since
        return max(clock.monotonic() - monotonic, clock.wall() - wall)

    def renew(self) -> None:
        """Send it as another producer; only while it was not sent."""
        self.producer.renew()
        self.number = self.producer.next()
        self.renewed, self._batch = True, None
