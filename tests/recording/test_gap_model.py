"""A writer through failovers, old primaries that return, flushes and evictions: nothing doubles.

The real sender beside a model of two servers: what the script compares, in a few lines. Events are
counted by the batch that brought them, so a batch that is applied twice shows.
"""

from collections import Counter
from collections.abc import Generator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from redmeter.clock import ManualClock
from redmeter.errors import StoreUnavailable
from redmeter.recording.buffer import Buffer
from redmeter.recording.pending import PendingCounter
from redmeter.recording.sending.shard_sender import ShardSender
from redmeter.recording.status import RecorderStats
from redmeter.store.producers import InFlightBatch
from redmeter.stored.keys import DEFAULT_RETENTION, UNNAMED_HISTOGRAMS, Kept, Keys
from redmeter.types import Gap, Outcome

KEPT = Kept(DEFAULT_RETENTION, UNNAMED_HISTOGRAMS)


@dataclass
class Server:
    """What a server has."""

    born: str = "0"
    #: Producer -> its last number.
    watermarks: dict[str, int] = field(default_factory=dict)
    #: (producer or event, …) -> how often it was counted.
    counted: Counter[str] = field(default_factory=Counter)


class Shard:
    """What a sender needs of a shard, with a server of the model behind it."""

    def __init__(self, machine: "Gaps") -> None:
        self._machine = machine
        self.clock: Any = machine.clock
        self.kept = KEPT
        self.keys = Keys()
        self.born = ""

    def sending(self, batch: InFlightBatch) -> Generator[None, None, Outcome]:
        """Send a batch, as Shard.sending() does."""
        yield
        machine, producer = self._machine, batch.producer
        fate, machine.fate = machine.fate, "answered"
        if fate == "not sent":
            raise StoreUnavailable("x", "refused", sent=False)
        floor = producer.floor
        outcome = self._applied(machine.servers[machine.primary], batch, floor)
        if fate == "lost":
            batch.may_be_applied(machine.clock)
            raise StoreUnavailable("x", "broken", sent=True)
        self.born = machine.servers[machine.primary].born
        if outcome.gap is None and not outcome.uncertain:
            producer.acknowledge(batch.number, self.born)
        return outcome

    def _applied(self, server: Server, batch: InFlightBatch, floor: int) -> Outcome:
        watermark = server.watermarks.get(batch.producer.id)
        if watermark is not None and watermark >= batch.number:
            return Outcome(applied=False)
        if watermark is None and floor == 0 and batch.sent and batch.producer.acknowledged:
            return Outcome(applied=False, uncertain=True)
        born = batch.producer.born
        exact = batch.producer.counts_lost and not (batch.sent and batch.producer.acknowledged)
        if (
            floor > (watermark or 0)
            or (exact and floor != (watermark or 0))
            or (born and born != server.born)
        ):
            return Outcome(applied=False, gap=Gap(watermark, server.born))
        server.watermarks[batch.producer.id] = batch.number
        for _, _, name, _ in self._machine.sender._batch.pending():
            server.counted[name] += 1
        return Outcome()


class Gaps(RuleBasedStateMachine):
    """One writer and two servers, of which one is the primary."""

    #: Bytes that are kept: of nothing, of few batches, of all.
    KEEP = (0, 1_200, 10**6)

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(1_795_000_000.0)
        self.servers = [Server(), Server()]
        self.primary = 0
        self.fate = "answered"
        self.stats = RecorderStats(self.clock.wall())
        self.buffer = Buffer(KEPT, self.stats, 10**9)
        self.sender = ShardSender(0, Shard(self), 1.0, 10**6)  # type: ignore[arg-type]
        self.events = 0

    @rule(keep=st.sampled_from(KEEP))
    def keep_less(self, keep: int) -> None:
        """From now on."""
        self.sender.producer.kept._limit = keep

    @rule(many=st.integers(1, 3))
    def record(self, many: int) -> None:
        """Events, each of a series of its own."""
        for _ in range(many):
            self.events += 1
            self.stats.recorded += 1
            now = self.clock.wall()
            self.buffer.add(PendingCounter, f"event{self.events}", now, 1, now)

    @rule(fate=st.sampled_from(["answered", "answered", "answered", "lost", "not sent"]))
    def flush(self, fate: str) -> None:
        """Send one batch, or what waits before it."""
        self.clock.advance(1.0)
        if not self.sender.load(self.buffer, None):
            return
        self.fate = fate
        steps = self.sender.sending()
        next(steps)
        try:
            steps.send(None)
        except StoreUnavailable as error:
            self.sender.unload(self.buffer, error)
        except StopIteration as end:
            self.sender.settle(end.value, self.stats)
        self.fate = "answered"

    @rule()
    def replicate(self) -> None:
        """The replica has all that the primary has."""
        self.servers[1 - self.primary] = deepcopy(self.servers[self.primary])

    @rule()
    def fail_over(self) -> None:
        """To a replica that may lack the newest; or an old primary returns."""
        self.primary = 1 - self.primary

    @rule()
    def empty(self) -> None:
        """FLUSHDB; the next exchange recreates the store."""
        born = str(int(self.servers[self.primary].born) + 1 + self.events * 1000)
        self.servers[self.primary] = Server(born)

    @precondition(lambda self: self.sender.in_flight is None or self.sender.producer.acknowledged)
    @rule()
    def evict_watermarks(self) -> None:
        """The data stays. Not of a first batch without a reply: nobody could know."""
        self.servers[self.primary].watermarks.clear()

    @rule(seconds=st.sampled_from([5.0, 70.0, 3_700.0, 50_000.0]))
    def wait(self, seconds: float) -> None:
        """For longer than batches are kept, producers live, watermarks are trusted."""
        while seconds > 0 and not self.sender.busy:  # an idle writer asks now and then
            self.clock.advance(min(seconds, 61.0))
            self.flush("answered")
            seconds = 0 if seconds < 3600 else seconds - 3000.0
        self.clock.advance(min(seconds, 5.0))

    @invariant()
    def nothing_is_doubled(self) -> None:
        """On either server."""
        for server in self.servers:
            assert not server.counted or max(server.counted.values()) == 1

    @invariant()
    def sums_are_right(self) -> None:
        """Each event is in exactly one place."""
        stats = self.stats
        assert stats.buffered >= 0
        assert min(stats.stored, stats.uncertain, stats.dropped) >= 0

    def teardown(self) -> None:
        """Whoever has written again knows what is missing."""
        self.record(1)
        for _ in range(50):
            self.flush("answered")
        assert not self.sender.busy
        assert self.stats.buffered == 0
        present = len(self.servers[self.primary].counted)
        stored, uncertain = self.stats.stored, self.stats.uncertain
        assert stored <= present <= stored + uncertain, "a loss that is none, or one in silence"
        self.nothing_is_doubled()


TestGaps = Gaps.TestCase
TestGaps.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)


def test_an_old_primary_returns_while_batches_are_sent_again() -> None:
    """It has them under the same numbers, so counts them once; and nothing is reported as lost."""
    gaps = Gaps()
    for _ in range(2):
        gaps.record(1)
        gaps.flush("answered")
        gaps.replicate()
    gaps.record(1)
    gaps.flush("answered")
    gaps.fail_over()
    gaps.record(1)
    gaps.flush("answered")  # the replica lacks the third
    gaps.fail_over()
    gaps.flush("answered")
    gaps.nothing_is_doubled()
    gaps.teardown()
    assert (gaps.stats.dropped, gaps.stats.uncertain) == (0, 0)


def test_a_demoted_primary_makes_no_loss() -> None:
    """What it lacks and nobody keeps is counted only if the next primary lacks it too."""
    gaps = Gaps()
    gaps.record(1)
    gaps.flush("answered")
    gaps.replicate()
    for _ in range(3):
        gaps.record(1)
        gaps.flush("answered")
    gaps.keep_less(1)
    gaps.record(1)
    gaps.flush("answered")  # none is kept any more
    gaps.fail_over()
    gaps.record(1)
    gaps.flush("answered")
    gaps.fail_over()
    gaps.teardown()
    assert gaps.stats.stored == len(gaps.servers[gaps.primary].counted) == gaps.stats.recorded
