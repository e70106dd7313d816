"""A model of recorders and of what they store: plain dictionaries, no server, no batches.

It says of every event where it is: not collected, in the buffer, sent but not answered, or in which
intervals of the store. So it repeats the rules in plain words, not the code: how finely an event is
remembered by its age, which intervals the server refuses, when nobody can know.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

#: Seconds of silence after which a producer becomes another one.
SILENCE = 3600.0
#: Seconds after which the first batch of a producer is not applied without a watermark: half of the
#: time for which one is kept.
IN_DOUBT = 43200.0
#: Seconds of silence after which a producer asks whether its watermark is there.
ASK = 60.0

Retention = dict[int, int]
#: Family, precision, series.
Hash = tuple[str, int, str]


@dataclass
class Event:
    """Something that was recorded."""

    family: str  # "count" or "gauge"
    series: str
    #: When it happened, Unix seconds.
    time: float
    #: How often, or the value of a gauge.
    value: float
    #: The interval by which it is remembered once it was collected; 0 for no interval at all.
    width: int = 1
    start: int = 0

    @property
    def events(self) -> int:
        """How many events it counts as."""
        return int(self.value) if self.family == "count" else 1


@dataclass
class Doubt:
    """A batch that was sent and not answered."""

    events: list[Event]
    #: Whether the server has applied it.
    applied: bool = False
    #: Which version of the retention it was made for.
    version: int = 0
    #: When it was first sent, by both clocks; None before.
    since: tuple[float, float] | None = None


class Stored:
    """What is in the store.

    Args:
        retention: what it keeps.
    """

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.version = 1
        #: Start -> how many, or time and the values that may have been set then.
        self.counts: dict[Hash, Counter[int]] = {}
        self.gauges: dict[Hash, dict[int, tuple[float, set[float]]]] = {}
        self.totals: Counter[str] = Counter()
        #: Intervals that were at an edge just as the server's clock went over it.
        self.unsure: set[tuple[Hash, int]] = set()
        #: Fewest samples that each precision was ever kept with.
        self.least = dict(retention)

    def change(self, retention: Retention) -> None:
        """Keep something else from now on."""
        if retention != self.retention:
            self.retention, self.version = retention, self.version + 1
            for precision, samples in retention.items():
                self.least[precision] = min(self.least.get(precision, samples), samples)

    def apply(
        self, event: Event, wall: float, server: tuple[float, float]
    ) -> dict[int, bool | None]:
        """Store an event; say of each precision whether it has it, None where it is unsure.

        Args:
            wall: the recorder's clock.
            server: the server's clock before and after.
        """
        took: dict[int, bool | None] = {}
        if event.family == "count":
            self.totals[event.series] += event.events
        for precision, samples in self.retention.items():
            if not event.width or precision % event.width:
                took[precision] = False
                continue
            start = event.start // precision * precision
            refused = {is_refused(start, precision, samples, now, wall) for now in server}
            took[precision] = None if len(refused) == 2 else not refused.pop()
            at = (event.family, precision, event.series)
            if took[precision] is None:
                self.unsure.add((at, start))
            elif took[precision]:
                self._add(at, start, event)
        return took

    def _add(self, at: Hash, start: int, event: Event) -> None:
        if event.family == "count":
            self.counts.setdefault(at, Counter())[start] += event.events
            return
        held = self.gauges.setdefault(at, {})
        time, values = held.get(start, (event.time, set()))
        if event.time > time:
            values = set()
        if event.time >= time:
            held[start] = event.time, values | {event.value}

    def first_live(self, precision: int, now: float) -> int:
        """Return the start of the first interval that nothing may have removed."""
        return math.floor(now) // precision * precision - (self.least[precision] - 1) * precision


def is_refused(start: int, precision: int, samples: int, server: float, wall: float) -> bool:
    """Tell whether the server leaves an interval out: aged, or too far in the future."""
    if start + precision < min(server, wall) - samples * precision:
        return True
    return start - server > samples * precision


def needed_width(retention: Retention, age: float) -> int:
    """Return by which width an event of an age has to be remembered; 0: by none."""
    return math.gcd(*(p for p, samples in retention.items() if (samples + 1) * p >= age))


class Life:
    """A recorder, from its start or its fork to its end.

    Args:
        stored: what it writes to.
        clocks: its wall clock and its monotonic one.
        known: the retention that it knows of, and its version; 0 where it has not asked yet.
    """

    def __init__(
        self,
        stored: Stored,
        clocks: Callable[[], tuple[float, float]],
        known: Retention,
        version: int = 0,
    ) -> None:
        self.stored = stored
        self.clocks = clocks
        self.known, self.version = known, version
        #: The retention by which the buffer goes: that of the last batch that was taken.
        self.buffered_by = known
        #: Precisions that were kept all the time.
        self.always = set(known) & set(stored.retention)
        self.anchor = clocks()
        #: Whether anything was ever recorded: there is no flush before.
        self.begun = False
        self.fresh: list[Event] = []
        self.buffer: list[Event] = []
        self.doubt: Doubt | None = None
        self.acknowledged = self.marked = False
        #: When a batch was last acknowledged, by both clocks.
        self.answered = (0.0, 0.0)
        #: Events that the store has acknowledged to the present producer.
        self.of_producer = 0
        self.recorded = self.sent = self.uncertain = self.dropped = 0
        #: Of counters alone: recorded, and by precision what the store has, and what may be there
        #: or not.
        self.counted = 0
        self.written: Counter[int] = Counter()
        self.unsure: Counter[int] = Counter()

    def fork(self) -> "Life":
        """Begin another one in a child: it knows what this one knows, and has no events."""
        return Life(self.stored, self.clocks, self.known, self.version)

    def record(self, event: Event) -> None:
        """Take something in."""
        self.begun = True
        self.fresh.append(event)
        self.recorded += event.events
        if event.family == "count":
            self.counted += event.events

    @property
    def waiting(self) -> int:
        """How many events are in memory."""
        in_doubt = self.doubt.events if self.doubt else []
        return sum(event.events for event in (*self.fresh, *self.buffer, *in_doubt))

    @property
    def asks(self) -> bool:
        """Whether it asks for its watermark if it has nothing to send."""
        return self.acknowledged and ASK < self.clocks()[1] - self.answered[1] < SILENCE

    # What a flush does

    def collect(self) -> None:
        """Move what is fresh to the buffer, and remember less of what got older."""
        wall, monotonic = self.clocks()
        now = min(wall, self.anchor[0] + monotonic - self.anchor[1])
        for event in self.fresh:
            second = math.floor(event.time)
            self._remember(event, needed_width(self.buffered_by, now - second), second)
        for event in self.buffer:
            needed = needed_width(self.buffered_by, now - (event.start + event.width))
            # Not where it is remembered finely enough already, nor by what cannot be made of it.
            if event.width and (not needed or (event.width % needed and not needed % event.width)):
                self._remember(event, needed, event.start)
        self.buffer = [event for event in self.buffer + self.fresh if not self._drop(event)]
        self.fresh = []

    def _remember(self, event: Event, width: int, second: int) -> None:
        event.width, event.start = width, second // width * width if width else 0

    def _drop(self, event: Event) -> bool:
        gone = event.family == "gauge" and not event.width
        self.dropped += gone
        return gone

    def fail_unsent(self) -> None:
        """Flush while nothing reaches the server."""
        self.collect()
        if not self.doubt:
            self._take()

    def fail_cut(self) -> None:
        """Flush while the server gets half of each request, so that it does nothing."""
        self.collect()
        if self.version:  # else it was the question for the retention that was cut
            if batch := self.doubt or self._next():
                self._send(batch)
        else:
            self._take()

    def fail_unanswered(self, server: tuple[float, float]) -> None:
        """Flush while the server does what it is reported, and its answer is lost."""
        self.collect()
        if self.version:
            if batch := self.doubt or self._next():
                self._serve(batch, server)
                self._send(batch)
        else:
            self._take()

    def flush(self, server: tuple[float, float]) -> None:
        """Flush with nothing in the way."""
        self.collect()
        while batch := self.doubt or self._next():
            if not self.version:
                self._learn()
                batch.version = self.version
            while (answer := self._serve(batch, server)) in ("other retention", "gap"):
                if answer == "gap":
                    self._begin_anew()
                    if batch.since:  # nobody can know
                        break
                else:
                    self._learn()
                    batch.version = self.version
            self.doubt = None
            events = sum(event.events for event in batch.events)
            if answer in ("unknown", "gap"):
                self.uncertain += events
            else:
                self.sent += events
                self.of_producer += events
                self.acknowledged, self.answered = True, self.clocks()
        self.anchor = self.clocks()

    def _begin_anew(self) -> None:
        """Become another producer: what the store had acknowledged to this one may be gone."""
        self.sent -= self.of_producer
        self.uncertain += self.of_producer
        self.of_producer, self.acknowledged = 0, False

    def _learn(self) -> None:
        self.known, self.version = self.stored.retention, self.stored.version

    def _take(self) -> None:
        self.buffered_by = self.known
        if self.acknowledged and self.clocks()[1] - self.answered[1] > SILENCE:
            self.acknowledged = self.marked = False
            self.of_producer = 0

    def _next(self) -> Doubt | None:
        self._take()
        if not self.buffer and not self.asks:
            return None
        batch, self.buffer = Doubt(self.buffer, version=self.version), []
        self.doubt = batch
        return batch

    def _send(self, batch: Doubt) -> None:
        if batch.since is None:
            batch.since = self.clocks()

    def _serve(self, batch: Doubt, server: tuple[float, float]) -> str:
        """Be the server; return its answer."""
        wall, monotonic = self.clocks()
        if self.marked and batch.applied:
            return "applied before"
        trusted = max(wall - self.answered[0], monotonic - self.answered[1]) < IN_DOUBT
        floor = self.acknowledged and trusted
        if batch.since and not self.marked and not floor:
            age = max(wall - batch.since[0], monotonic - batch.since[1])
            if self.acknowledged or age > IN_DOUBT:
                return "unknown"
        if batch.version != self.stored.version:
            return "other retention"
        if floor and not self.marked:
            return "gap"
        batch.applied = self.marked = True
        for event in batch.events:
            took = self.stored.apply(event, wall, server)
            if event.family == "gauge":
                continue
            for precision, has in took.items():
                if has:
                    self.written[precision] += event.events
                elif has is None:
                    self.unsure[precision] += event.events
        return "applied"
