"""A recorder through anything, in any order, next to a model of plain dictionaries.

Counting, clocks that step, networks that break in three ways, forks, ends without a flush,
cleaning, changes of the retention: whatever comes, the store holds what the model says, interval by
interval, and the recorder's own books are right.
"""

import json
import os
import signal
import traceback
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from redmeter import Meter
from redmeter import store as stores
from redmeter.clock import ManualClock
from redmeter.errors import ClockDisagreement
from redmeter.maintenance.cleaning import MAX_CLOCK_DIFFERENCE, clean
from redmeter.results import RecorderHealth
from redmeter.store import Store
from support.proxy import Proxy
from support.recorder_model import Event, Hash, Life, Retention, Stored, is_refused
from support.servers import Server
from support.stores import batch_keys, server_time

RETENTIONS: list[Retention] = [
    {1: 120, 5: 120, 60: 120, 3600: 48},
    {1: 120, 60: 30, 3600: 48},
    {1: 60, 7: 100, 60: 120, 86400: 10},
    {5: 120, 60: 120, 3600: 20},
]
#: Nobody flushes unless told to.
NEVER = 3600.0

counters = st.sampled_from(["a", 'b{x="1"}', "(点)"])
gauges = st.sampled_from(["g", 'h{x="1"}'])
amounts = st.sampled_from([1, 1, 1, 2, 50, 0])
steps = st.sampled_from([1, 2, 7, 60, 61, 130, 600, 3600, 7200, 86400])
ago = st.sampled_from(
    [0, 0, 1, 5, 59, 119, 121, 122, 600, 7000, 90_000, 10**6, -1, -60, -700, -9_000]
)


def try_once(meter: Meter) -> bool:
    """Try to flush in this thread, once; tell whether all was stored."""
    recorder: Any = meter._recorder
    return bool(recorder._flusher.flush_until(0.0, last=False))


class Recording(RuleBasedStateMachine):
    """One recorder after another, and children of theirs."""

    server: Server
    proxy: Proxy
    conn: Any

    def __init__(self) -> None:
        super().__init__()
        self.conn.flushall()
        self.clock = ManualClock(int(server_time(self.conn)) + 0.5)
        self.admin = self._store()
        self.keeper = self._store(clock=self.clock)
        self.stored = Stored(dict(self.admin.config().retention))
        self.value = 0.0
        self._start(self.stored.retention)

    def _store(self, **options: Any) -> Store:
        store = stores.open(self.server.url, retention=RETENTIONS[0], **options)
        assert store is not None
        return store

    def _start(self, configured: Retention) -> None:
        self.meter = Meter(
            self.proxy.url,
            retention=configured,
            flush_interval=NEVER,
            clock=self.clock,
            timeout=10.0,
        )
        self.life = Life(self.stored, self._clocks, configured)

    def _clocks(self) -> tuple[float, float]:
        return self.clock.wall(), self.clock.monotonic()

    def _now(self) -> float:
        return server_time(self.conn)

    def teardown(self) -> None:
        """Flush what is left, look at everything, and end."""
        try:
            self._flush()
            self._check_stored()
            self._check_promise()
        finally:
            self.proxy.heal()
            self._abandon()
            for store in (self.admin, self.keeper):
                store.close()

    # Recording

    @rule(name=counters, amount=amounts, ago=ago)
    def count(self, name: str, amount: int, ago: int) -> None:
        """At some time, mostly the present."""
        at = self.clock.wall() - ago
        self.meter.count(name, amount, at=at)
        self.life.record(Event("count", name, at, amount))

    @rule(name=counters, times=st.integers(1, 5))
    def count_often(self, name: str, times: int) -> None:
        """By the shortest way."""
        for _ in range(times):
            self.meter.count(name)
            self.life.record(Event("count", name, self.clock.wall(), 1))

    @rule(x=st.sampled_from("12"), amount=amounts)
    def count_with_labels(self, x: str, amount: int) -> None:
        """A series with a label that is handed in."""
        self.meter.count("b", amount, labels={"x": x})
        self.life.record(Event("count", f'b{{x="{x}"}}', self.clock.wall(), amount))

    @rule(name=counters, amount=amounts)
    def count_by_handle(self, name: str, amount: int) -> None:
        """By a bound counter."""
        self.meter.counter(name).inc(amount)
        self.life.record(Event("count", name, self.clock.wall(), amount))

    @rule(name=gauges)
    def set_gauge(self, name: str) -> None:
        """To a value that it never had."""
        self.value += 0.25
        self.meter.gauge(name).set(self.value)
        self.life.record(Event("gauge", name, self.clock.wall(), self.value))

    # Time

    @rule(seconds=steps)
    def pass_time(self, seconds: int) -> None:
        """By both clocks."""
        self.clock.advance(seconds)

    @rule(seconds=steps, ahead=st.booleans())
    def step_clock(self, seconds: int, ahead: bool) -> None:
        """Someone sets the clock."""
        self.clock.set_wall(self.clock.wall() + (seconds if ahead else -seconds))

    @rule()
    def set_clock_right(self) -> None:
        """As it is on the server."""
        self.clock.set_wall(int(self._now()) + 0.5)

    # Flushing

    @rule()
    def flush(self) -> None:
        """With nothing in the way."""
        self._flush()
        self._check_promise()

    def _flush(self) -> None:
        before = self._now()
        assert self.meter.flush(20.0)
        if self.life.begun:
            self.life.flush((before, self._now()))

    @rule(times=st.integers(1, 2))
    def flush_while_refused(self, times: int) -> None:
        """Nothing reaches the server."""
        self.proxy.refuse()
        done = [try_once(self.meter) for _ in range(times)]
        self.proxy.heal()
        for all_stored in done:
            self._fail(all_stored, self.life.fail_unsent)

    @rule(times=st.integers(1, 3), early=st.booleans())
    def flush_while_replies_are_lost(self, times: int, early: bool) -> None:
        """The server applies what it is sent, once; what it refuses of that, it tells again."""
        if early:
            self.count("a", 1, -9_000)
        before = self._now()
        self.proxy.drop_replies(times)
        done = [try_once(self.meter) for _ in range(times)]
        self.proxy.heal()
        server = (before, self._now())
        for all_stored in done:
            self._fail(all_stored, lambda: self.life.fail_unanswered(server))

    @rule()
    def flush_while_requests_are_cut(self) -> None:
        """Sent, and never applied: nobody here can tell that from the case above."""
        self.proxy.reset_after(20, of="requests")
        all_stored = try_once(self.meter)
        self.proxy.heal()
        self._fail(all_stored, self.life.fail_cut)

    def _pending(self) -> bool:
        life = self.life
        return bool(life.fresh or life.buffer or life.doubt)

    def _fail(self, all_stored: bool, fail: Any) -> None:
        """Have the model fail as the recorder did; it cannot where there is nothing to send."""
        if all_stored:
            self.life.flush((0.0, 0.0))
            assert not self._pending()
        else:
            asks = self.life.asks
            fail()
            assert self._pending() or asks

    @rule(sent=st.sampled_from(["lost", "cut", "no"]))
    def lose_watermarks(self, sent: str) -> None:
        """As where the server evicts keys: what is in doubt then, nobody can ever know.

        But for the very first batch of a producer, which may then count twice.
        """
        if sent != "no":
            self._flush()
            self.count("a", 1, 0)
            if sent == "lost":
                self.flush_while_replies_are_lost(1, False)
            else:
                self.flush_while_requests_are_cut()
        if self.life.doubt and self.life.doubt.applied and not self.life.acknowledged:
            return
        if marks := batch_keys(self.conn):
            self.conn.delete(*marks)
        self.life.marked = False

    # Processes

    @rule(
        events=st.lists(st.tuples(counters, amounts), max_size=3),
        end=st.sampled_from(["flushes", "flushes late", "is killed"]),
    )
    def fork(self, events: list[tuple[str, int]], end: str) -> None:
        """A child counts, and flushes, or flushes twice as a reply is lost, or is killed."""
        before = self._now()
        child = self.life.fork()
        for name, amount in events:
            child.record(Event("count", name, self.clock.wall(), amount))
        if end == "flushes late":
            self.proxy.drop_replies(1)
        health = self._in_child(events, end)
        self.proxy.heal()
        server = (before, self._now())
        if end == "is killed":
            assert health is None
            return
        assert health is not None
        if end == "flushes late":
            child.fail_unanswered(server)
        child.flush(server)
        assert child.waiting == health["buffered"] == 0
        assert health["recorded"] == child.recorded
        assert health["stored"] == child.sent
        assert health["producer"] != self.meter.recorder_health().producer

    def _in_child(self, events: list[tuple[str, int]], end: str) -> dict[str, Any] | None:
        """Fork; return the child's health, or None where it was killed."""
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # there are threads; that is the point
            pid = os.fork()
        if pid == 0:
            try:
                os.write(writing, self._be_child(events, end).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            said = pipe.read()
        os.waitpid(pid, 0)
        if not said:
            return None
        found: dict[str, Any] = json.loads(said)
        assert "error" not in found, found["error"]
        return found

    def _be_child(self, events: list[tuple[str, int]], end: str) -> str:
        try:
            for name, amount in events:
                self.meter.count(name, amount)
            if end == "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if end == "flushes late":
                try_once(self.meter)
            assert self.meter.flush(20.0)
            return json.dumps(self.meter.recorder_health().as_dict())
        except BaseException:  # noqa: BLE001  # told to the parent
            return json.dumps({"error": traceback.format_exc()})

    @rule(configured=st.sampled_from(RETENTIONS))
    def kill(self, configured: Retention) -> None:
        """End without a flush: what was in memory is gone. The next may be configured otherwise."""
        self._abandon()
        self._start(configured)

    def _abandon(self) -> None:
        recorder: Any = self.meter._recorder
        flusher = recorder._flusher
        recorder.after_fork()  # forgets everything, as a new process does
        if self.life.begun:
            flusher.request(20.0, last=True).wait()
        self.meter.close()

    # The store

    @rule(own_clock=st.booleans(), passes=st.integers(0, 3))
    def clean(self, own_clock: bool, passes: int) -> None:
        """Nothing that lives is removed; by clocks that differ wildly, nothing at all."""
        off = abs(self._now() - self.clock.wall()) if own_clock else 0.0
        try:
            clean(self.keeper if own_clock else self.admin, passes=passes)
        except ClockDisagreement:
            assert off > MAX_CLOCK_DIFFERENCE - 60
        else:
            assert off < MAX_CLOCK_DIFFERENCE + 60

    @rule(retention=st.sampled_from(RETENTIONS))
    def change_retention(self, retention: Retention) -> None:
        """By someone else: the recorder finds out with its next batch."""
        removed = [(precision, 0) for precision in self.stored.retention.keys() - retention.keys()]
        self.admin.change_retention([*retention.items(), *removed])
        self.stored.change(dict(retention))
        self.life.always &= retention.keys()

    # What is looked at

    @invariant()
    def every_event_is_in_one_place(self) -> None:
        """The recorder's books are those of the model."""
        health, life = self.meter.recorder_health(), self.life
        assert health.recorded == (
            health.stored + health.buffered + health.uncertain + health.dropped
        )
        books = (health.recorded, health.stored, health.buffered, health.uncertain, health.dropped)
        assert books == (life.recorded, life.sent, life.waiting, life.uncertain, life.dropped)

    @rule(name=counters, at=st.integers(0, 3))
    def read(self, name: str, at: int) -> None:
        """Whatever is in memory or in doubt, the store holds what it should."""
        self._check_stored()
        precisions = list(self.stored.retention)
        precision = precisions[at % len(precisions)]
        before = self._now()
        series = self.meter.series(name, precision=precision)
        hash_: Hash = ("count", precision, name)
        first, last = self.stored.first_live(precision, self._now()), int(before) // precision
        found = {start: n for start, n in series if first <= start <= last * precision and n}
        expected = self._live(self.stored.counts.get(hash_, {}), hash_, first)
        assert self._sure(found, hash_) == {
            start: n for start, n in expected.items() if start <= last * precision and n
        }
        assert self.meter.total(name) == self.stored.totals[name]

    def _check_stored(self) -> None:
        """Compare all intervals within the retention, and all totals."""
        keys = self.admin.keys
        now = self._now()
        totals = {n.decode(): int(v) for n, v in self.conn.hgetall(keys.total).items()}
        assert {n: v for n, v in totals.items() if v} == +self.stored.totals
        for precision in self.stored.retention:
            first = self.stored.first_live(precision, now)
            for name in ("a", 'b{x="1"}', 'b{x="2"}', "(点)"):
                at: Hash = ("count", precision, name)
                counts = self.conn.hgetall(keys.count(precision, name))
                found = {int(start): int(n) for start, n in counts.items()}
                expected = self._live(self.stored.counts.get(at, {}), at, first)
                live = self._live(found, at, first)
                assert {s: n for s, n in live.items() if n} == {
                    s: n for s, n in expected.items() if n
                }, at
            for name in ("g", 'h{x="1"}'):
                self._check_gauge(("gauge", precision, name), first)

    def _check_gauge(self, at: Hash, first: int) -> None:
        texts = self.conn.hgetall(self.admin.keys.gauge(at[1], at[2]))
        live = self._live({int(start): text for start, text in texts.items()}, at, first)
        expected = self._live(self.stored.gauges.get(at, {}), at, first)
        assert live.keys() == expected.keys()
        for start, text in live.items():
            value, time = map(float, text.split())
            assert time == expected[start][0]
            assert value in expected[start][1]

    def _live(self, slices: Any, at: Hash, first: int) -> dict[int, Any]:
        return self._sure({start: v for start, v in slices.items() if start >= first}, at)

    def _sure(self, slices: dict[int, Any], at: Hash) -> dict[int, Any]:
        return {start: v for start, v in slices.items() if (at, start) not in self.stored.unsure}

    def _check_promise(self) -> None:
        """Check recorded - lost - uncertain <= stored <= recorded - lost, for each precision."""
        assert not self._pending()
        life, health = self.life, self.meter.recorder_health()
        lost = losses_of_counters(health)
        for precision in life.always:
            least = life.counted - lost.get(precision, 0) - life.uncertain - life.unsure[precision]
            assert least <= life.written[precision] + life.unsure[precision]
            most = life.counted - lost.get(precision, 0) + life.unsure[precision]
            assert life.written[precision] <= most


def losses_of_counters(health: RecorderHealth) -> dict[int, int]:
    """Return what each precision of the counters lacks."""
    found: dict[int, int] = {}
    for loss in health.losses:
        if loss.series not in ("g", 'h{x="1"}'):
            found[loss.precision] = found.get(loss.precision, 0) + loss.events
    return found


@pytest.mark.servers
@pytest.mark.parametrize(
    "examples",
    [
        pytest.param(10, marks=pytest.mark.timeout(300)),
        pytest.param(300, marks=[pytest.mark.nightly, pytest.mark.timeout(900)]),
    ],
)
def test_whatever_happens_the_store_holds_what_the_model_says(
    server: Server, proxy: Proxy, conn: Any, examples: int
) -> None:
    """And the recorder's books are right at any moment."""
    where = {"server": server, "proxy": proxy, "conn": conn}
    machine = type("Recording", (Recording,), where)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize(
    ("start", "server", "wall", "refused"),
    [(0, 60 * 121, 10**9, False), (0, 60 * 121 + 1, 10**9, True), (60 * 121, 0, 0, True)],
)
def test_the_model_refuses_what_the_server_refuses(
    start: int, server: float, wall: float, refused: bool
) -> None:
    """Minutes, 120 of them: an interval that ended longer ago, or starts further ahead."""
    assert is_refused(start, 60, 120, server, wall) == refused


@pytest.mark.servers
@pytest.mark.parametrize("early", [True, False])
def test_a_lost_reply_counts_once(server: Server, proxy: Proxy, conn: Any, early: bool) -> None:
    """A short history that random ones may not have."""
    state = type("Recording", (Recording,), {"server": server, "proxy": proxy, "conn": conn})()
    for _ in range(2):
        state.count_by_handle(name="a", amount=1)
        state.flush_while_replies_are_lost(early=early, times=2)
        state.flush()
        state.every_event_is_in_one_place()
    state.teardown()
