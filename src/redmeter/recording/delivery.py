"""Delivery: from the buffer into the store, batch by batch, each exactly once.

One producer, one batch at a time: a later one would make an earlier one look applied. A batch that
was sent and not answered stays as it is and comes again under its number, until there is an answer;
one that was never sent goes back into the buffer, to merge with what comes meanwhile. So an
outage leaves one batch waiting, and everything else keeps on adding up.

Not for two threads at once: whoever delivers holds the recorder's `sending` lock.
"""

import json
import math
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial

from redmeter.analysis import patterns
from redmeter.errors import AccessDenied, StoreError, StoreRefused
from redmeter.keys import Kept
from redmeter.model import Operations, Outcome
from redmeter.recording.buffer import NOTHING, Buffer, Part
from redmeter.recording.instance import NUMBER_SECONDS
from redmeter.recording.tally import RETENTION, Tally
from redmeter.store import Store
from redmeter.store.parcel import Parcel
from redmeter.store.producers import Producer

#: A producer that was silent for so long becomes another one, seconds: its watermark may be gone
#: by the time that a lost reply makes one ask for it, and then nobody could tell.
SILENCE = 3600.0


class Delivery:
    """Sends what is in a buffer.

    Args:
        lock: held while buffer or tally are used, never while the store is.
    """

    def __init__(
        self, store: Store, buffer: Buffer, tally: Tally, lock: AbstractContextManager[object]
    ) -> None:
        self._store = store
        self._buffer = buffer
        self._tally = tally
        self._lock = lock
        self._producer = Producer()
        self._parcel: Parcel | None = None
        self._part = Part(NOTHING)
        self._answered = 0.0
        self._kept: Kept | None = None
        #: Who this is to those who read reports; stays when the producer becomes another one.
        self.writer = self._producer.id
        self._told = "{}"
        self._published = -math.inf
        #: The number of this process; needed from the first series on that has a place for it.
        self.instance: int | None = None
        self.needs_instance = False

    @property
    def in_doubt(self) -> int:
        """Events that were sent and not answered."""
        return self._part.events if self._parcel else 0

    def send(self) -> bool:
        """Send one batch: the one that is waiting for an answer, or else the next.

        Returns:
            False where there is nothing to send.

        Raises:
            StoreError: no answer, or it was refused; the events stay. Or it was stored but for
                what the server does not allow: AccessDenied.
        """
        parcel = self._parcel or self._next()
        if parcel is None:
            return False
        if parcel.sent:
            self._tally.retried += 1
        try:
            outcome = self._store.attempt(parcel)
        except BaseException as error:
            if not isinstance(error, StoreError):  # broken off, nobody knows where
                parcel.may_be_applied(self._store.clock)
            if parcel.sent:
                self._parcel = parcel
            else:
                self._parcel = None
                with self._lock:
                    self._buffer.put_back(self._part)
            raise
        self._parcel = None
        self._settle(outcome)
        return True

    def _next(self) -> Parcel | None:
        clock = self._store.clock
        if self._producer.acknowledged and clock.monotonic() - self._answered > SILENCE:
            self._producer.renew()
        if self.needs_instance and clock.monotonic() - self._published > NUMBER_SECONDS:
            # Before anything is sent under a number that may be another's by now.
            try:
                self.publish(self._told)
            except StoreRefused as error:
                self.instance = None  # what needs none is sent
                with self._lock:
                    self._tally.trouble(error.code, str(error))
        with self._lock:
            if self._store.kept != self._kept:
                self._kept = self._store.kept
                self._buffer.retain(self._kept)
            part = self._buffer.take(numbered=self.instance is not None)
        if part is None:
            return None
        self._part = part
        return Parcel(self._producer, partial(self._operations, part))

    def _operations(self, part: Part, kept: Kept) -> Operations:
        return part.operations(self._store.keys, kept, self.instance)

    def _settle(self, outcome: Outcome) -> None:
        """Write down what became of the batch."""
        tally, keys, denied = self._tally, self._store.keys, ""
        self._answered = self._store.clock.monotonic()
        with self._lock:
            tally.batches += 1
            if outcome.uncertain:
                tally.uncertain += self._part.events
                tally.trouble("uncertain", "what tells whether a batch was stored is gone")
                return
            tally.stored += self._part.events
            tally.last_flush = self._store.clock.wall()
            for series, lacking, events in self._part.lacking(self._store.kept):
                tally.lose(RETENTION, series, lacking, events)
            refused = []
            for rejection in outcome.rejections:
                if rejection.reason == "unkept":  # stored, but its time to live was not renewed
                    tally.trouble(rejection.reason, rejection.detail)
                    continue
                if rejection.reason == "denied":
                    denied = f"{rejection.key}: {rejection.detail}"
                refused.append(rejection)
            tally.refuse(keys, refused)
        if denied:
            raise AccessDenied("NOPERM", denied)

    def run(self, wait: Callable[[StoreError], bool]) -> None:
        """Send until nothing is left.

        Args:
            wait: called after a failure; False gives up.

        Raises:
            StoreError: see send(); the last one, where it was given up.
        """
        while True:
            try:
                while self.send():
                    pass
                return
            except StoreError as error:
                if not wait(error):
                    raise

    def publish(self, report: str, *, ended: bool = False) -> None:
        """Store what the recorder knows of itself, and get a number where one is needed.

        Raises:
            StoreError: see Store.publish.
        """
        self._told = report
        self.instance = self._store.publish(
            self.writer, report, instance=self.needs_instance, ended=ended
        )
        self._published = -math.inf if ended else self._store.clock.monotonic()

    def report(self, health: Mapping[str, object]) -> str:
        """Write a report for publish(), with what helps a human to find the process.

        And by which version it groups messages: counts by patterns of two do not add up.
        """
        who = {"host": socket.gethostname(), "pid": str(os.getpid())}
        return json.dumps({**health, "patterns": patterns.VERSION, **who})
