"""Delivery: from the buffer into the store, each event exactly once.

A store on one server is one shard, and one channel leads there. On a cluster there are 64. The
batches of all shards of one server go out together, as pipelines that are done within moments;
what goes to different servers, at the same time, in threads.

A server or a shard in trouble holds up no other. Its channels keep what is under way, and are
tried again in their own time; what else is for them stays in the buffer, and adds up. A server that
hangs is left alone until it is back.

Not for two threads at once: whoever delivers holds the recorder's `sending` lock.
"""

import json
import math
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from redmeter.analysis import patterns
from redmeter.errors import AccessDenied, StoreError, StoreMoving, StoreRefused
from redmeter.keys import Kept
from redmeter.recording.buffer import FIELDS_PER_BATCH, Buffer
from redmeter.recording.instance import InstanceLease
from redmeter.recording.node_workers import PATIENCE, NodeTask, NodeWorkers
from redmeter.recording.shard_sender import ShardSender
from redmeter.recording.stats import RecorderStats
from redmeter.store import Store
from redmeter.store.retry import is_brief, is_recoverable, is_server_wide
from redmeter.store.scripts import run_pipelined
from redmeter.types import Outcome


class DeliveryIncomplete(Exception):
    """Something is left; the events are kept. What went wrong: see Delivery.take_errors().

    Args:
        passing: whether it may pass by itself within moments.
        partly: whether other parts of the store are all right, not back yet, or were not tried.
    """

    def __init__(self, *, passing: bool, partly: bool) -> None:
        super().__init__(passing, partly)
        self.passing = passing
        self.partly = partly


class Delivery:
    """Sends what is in a buffer.

    Args:
        lock: held while buffer or stats are used, never while the store is.
        interval: seconds from one flush to the next.
        around: what other threads are in while they send.
        patience: how long a server is waited for that hangs, seconds.
    """

    def __init__(
        self,
        store: Store,
        buffer: Buffer,
        stats: RecorderStats,
        lock: AbstractContextManager[object],
        *,
        interval: float = 1.0,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
        patience: float = PATIENCE,
    ) -> None:
        self._buffer = buffer
        self._stats = stats
        self._lock = lock
        self._interval = interval
        self._use(store)
        self._workers = NodeWorkers(around, patience)
        self._errors: deque[Exception] = deque()
        self._kept: Kept | None = None
        #: Who this is to those who read reports; stays when the producer becomes another one.
        self.writer = self._channels[0].producer.id
        self._told = "{}"
        #: Whether there is a report that had to wait, its server being busy.
        self._untold = False
        #: The number of this process; needed from the first series on that has a place for it.
        self.lease = InstanceLease(store.clock)

    def _use(self, store: Store) -> None:
        self._store = store
        parts = enumerate(store.shards)
        self._channels = [ShardSender(number, part, self._interval) for number, part in parts]
        self._spread = len(self._channels) > 1
        #: The shards of each server.
        self._lanes: Sequence[Sequence[int]] = [range(len(self._channels))]
        #: Which server has each, as last known.
        self._servers: dict[int, str] = {}
        #: The shards that failed since run() was called.
        self._failed: set[int] = set()
        self._moved = False

    @property
    def may_follow(self) -> bool:
        """Whether the store was moved, and it is known of every batch whether it was applied."""
        channels = self._channels
        settled = not self._workers.busy and not any(channel.in_flight for channel in channels)
        return self._moved and settled

    def follow(self, store: Store) -> None:
        """Send to another store from now on, by other producers. See may_follow."""
        with self._lock:
            self._use(store)
            self._buffer.reshard(store.shard_number if self._spread else None)
            # Its number may be another process' there.
            self.lease.renew(None, -math.inf)
            self._untold = True

    @property
    def in_doubt(self) -> int:
        """Events that are on their way; where nobody sends just now: sent and not answered."""
        return sum(channel.events for channel in self._channels)

    def take_errors(self) -> list[Exception]:
        """Return what went wrong since this was last asked: one of each kind for each server."""
        errors: list[Exception] = []
        while self._errors:
            errors.append(self._errors.popleft())
        return errors

    def waive(self) -> None:
        """Try everything again with the next run."""
        for channel in self._channels:
            channel.backoff.waive()

    def dismiss(self) -> None:
        """Let the threads end that have nothing to do."""
        self._workers.dismiss()

    def run(self, *, asked: bool = False) -> None:
        """Send until nothing is left but for what has to wait.

        Args:
            asked: someone waits for it: what failed before is tried again as well.

        Raises:
            Incomplete: something is left, or was not allowed.
        """
        self._failed = set()
        if self._spread:
            if not self._left():
                return
            self._look_for_lanes()
            self._bind(asked=asked)
        self._renumber(asked=asked)
        before = set(self._failed) if self._spread else set[int]()
        send = partial(self._send, asked=asked, instance=self.lease.number)
        self._send_to(self._lanes, send, patient=asked)
        # On one server what stays without a failure waits for a number.
        left = self._left() if self._spread else set[int]()
        if left or self._failed - before:
            raise self._incomplete(left)

    def _left(self) -> set[int]:
        """Return the shards that something is left for."""
        with self._lock:
            under_way = {channel.number for channel in self._channels if channel.in_flight}
            return under_way | self._buffer.numbers

    def _incomplete(self, left: set[int]) -> DeliveryIncomplete:
        failed = set(self._failed)
        # A server that is slow or hangs has not failed yet: it is left alone for as long anyway.
        partly = not all(failed.issuperset(lane) for lane in self._lanes)
        backoffs = [self._channels[number].backoff for number in failed | left if number >= 0]
        passing = not backoffs or any(backoff.passing for backoff in backoffs)
        if not partly:  # then it is the flusher that waits
            self.waive()
        return DeliveryIncomplete(passing=passing, partly=partly)

    # Servers

    def _look_for_lanes(self) -> None:
        """See which shards each server has; those come first that failed least.

        A shard that is on another server now is not left alone for what the one before did.
        """
        numbers = range(len(self._channels))
        try:
            lanes = self._store.by_server()
        except StoreError as error:
            self._lanes = [numbers]
            self._fail(numbers, error)
        else:
            backoffs = [channel.backoff for channel in self._channels]
            for server, lane in lanes.items():
                for number in lane:
                    if self._servers.get(number) != server:
                        self._servers[number] = server
                        backoffs[number].waive()
            self._lanes = sorted(
                lanes.values(), key=lambda lane: max(backoffs[n].failures for n in lane)
            )

    def _send_to(
        self,
        lanes: Sequence[Sequence[int]],
        do: Callable[[NodeTask], None],
        *,
        patient: bool = False,
    ) -> None:
        """Do something about shards of each server, at the same time.

        Args:
            patient: wait also for what takes longer than others.
        """
        avoided = self._failed | self._workers.busy
        each = [[number for number in lane if number not in avoided] for lane in lanes]
        tasks = [NodeTask(numbers, partial(self._guarded, do)) for numbers in each if numbers]
        self._workers.run(tasks, alone=len(self._lanes) == 1, patient=patient)

    def _guarded(self, do: Callable[[NodeTask], None], task: NodeTask) -> None:
        try:
            do(task)
        except Exception as error:  # noqa: BLE001 - also a fault of ours: it is written down
            self._fail(task.numbers, error)

    def _fail(self, numbers: Sequence[int], error: Exception, *, told: bool = False) -> None:
        """Leave some shards alone for a while, all of them for the same time.

        Args:
            told: the same is known of others.
        """
        backoffs = [self._channels[number].backoff for number in numbers]
        with self._lock:
            longest = max(backoffs, key=lambda backoff: backoff.failures)
            longest.failed(passing=is_recoverable(error), soon=is_brief(error))
            for backoff in backoffs:
                backoff.like(longest)
            self._failed.update(numbers)
        if not told:
            self._errors.append(error)

    def _blame(
        self, task: NodeTask, tried: int, errors: Mapping[int, StoreError], told: set[str]
    ) -> bool:
        """Leave alone for a while what failed; tell whether that is all of the server.

        Args:
            tried: how many shards were.
            errors: number of the shard -> what is wrong.
            told: kinds of errors that were told before.
        """
        of_all = next((error for error in errors.values() if is_server_wide(error)), None)
        if of_all is not None and len(errors) == tried:
            self._fail(task.numbers, of_all)
            return True
        for number, error in errors.items():
            kind = kind_of(error)
            self._fail([number], error, told=kind in told)
            told.add(kind)
        return False

    def _bind(self, *, asked: bool) -> None:
        """Ask all shards at first what they keep, and see that they agree.

        Each would be asked when something is sent to it. But one that has forgotten what it kept
        shall not be told what this process would keep, where others know better.
        """
        for numbers, bind in (
            (self._store.unloaded, self._store.load_configs),
            (self._store.outdated, self._store.update_configs),
        ):
            if chosen := {n for n in numbers() if self._channels[n].is_due(asked=asked)}:
                lanes = [[number for number in lane if number in chosen] for lane in self._lanes]
                self._send_to(lanes, partial(self._bind_some, bind))

    def _bind_some(
        self, bind: Callable[[Sequence[int]], Mapping[int, StoreError]], task: NodeTask
    ) -> None:
        self._blame(task, len(task.numbers), bind(task.numbers), set())

    # Sending

    def _send(self, task: NodeTask, *, asked: bool, instance: int | None) -> None:
        """Send all there is for the shards of one server."""
        waiting, told = deque(task.numbers), set[str]()
        while loaded := self._load(waiting, asked=asked, instance=instance):
            task.go_on()
            errors = self._exchange(loaded)
            waiting.extend(channel.number for channel in loaded if channel.number not in errors)
            if self._blame(task, len(loaded), errors, told):
                return

    def _load(self, waiting: deque[int], *, asked: bool, instance: int | None) -> list[ShardSender]:
        """Have as many batches ready as one pipeline holds, so that others are served soon."""
        loaded: list[ShardSender] = []
        fields = 0
        with self._lock:
            if self._store.kept != self._kept:
                self._kept = self._store.kept
                self._buffer.retain(self._kept)
            while waiting and fields <= FIELDS_PER_BATCH:
                channel = self._channels[waiting.popleft()]
                if not channel.is_due(asked=asked):
                    continue
                added = channel.load(self._buffer, instance)
                if added:
                    fields += added
                    loaded.append(channel)
                    self._stats.retried += channel.is_repeated
        return loaded

    def _exchange(self, loaded: Sequence[ShardSender]) -> dict[int, StoreError]:
        """Send what is loaded, as one pipeline, and write down what became of it.

        Returns:
            Number of the shard -> what is wrong with it.
        """
        try:
            many = {channel.number: channel.sending() for channel in loaded}
            results = run_pipelined(loaded[0].shard.link, many)
            with self._lock:
                return self._settle(loaded, results)
        except BaseException:  # also while waiting for the lock: an answer may be forgotten
            for channel in loaded:
                channel.broken_off()
            raise

    def _settle(
        self, loaded: Sequence[ShardSender], results: Mapping[int, Outcome | StoreError]
    ) -> dict[int, StoreError]:
        errors: dict[int, StoreError] = {}
        for channel in loaded:
            result = results[channel.number]
            if isinstance(result, StoreError):
                channel.unload(self._buffer, result)
                self._moved |= isinstance(result, StoreMoving) and result.state == "moved"
                errors[channel.number] = result
                continue
            channel.backoff.succeeded()
            if denied := channel.settle(result, self._stats):
                errors[channel.number] = denied
        return errors

    # Reports

    def publish(self, report: str, *, ended: bool = False) -> bool:
        """Store what the recorder knows of itself, and get a number where one is needed.

        Returns:
            False where the server that it is for is in trouble, or not back: then the next run
            begins with it.

        Raises:
            StoreError: see Store.publish.
        """
        self._told, self._untold = report, True
        raised: list[StoreError | None] = []

        def publish(_: NodeTask) -> None:
            try:
                self._publish(ended=ended)
                raised.append(None)
            except StoreError as error:
                raised.append(error)

        self._send_to_first(publish, asked=ended)
        for error in raised:
            if error is not None:
                raise error
        return bool(raised)

    def _publish(self, *, ended: bool) -> None:
        self._untold = False
        asked, needed = self._store.clock.monotonic(), self.lease.needed
        found = self._store.publish(self.writer, self._told, instance=needed, ended=ended)
        self.lease.renew(found, asked)

    def _send_to_first(self, do: Callable[[NodeTask], None], *, asked: bool) -> None:
        """Do something about the first shard, where what concerns all of them lies."""
        avoided = self._failed | self._workers.busy
        if 0 not in avoided and self._channels[0].is_due(asked=asked):
            self._send_to([lane for lane in self._lanes if 0 in lane], do)

    def _renumber(self, *, asked: bool) -> None:
        """Ask for the number of this process again, before it may be another's."""
        if self._untold or self.lease.is_due:
            self._send_to_first(self._ask_number, asked=asked)

    def _ask_number(self, _: NodeTask) -> None:
        try:
            self._publish(ended=False)
        except (StoreRefused, AccessDenied) as error:  # what needs none is sent
            with self._lock:
                self._stats.record_error(kind_of(error), str(error))

    def report(self, health: Mapping[str, object]) -> str:
        """Write a report for publish(), with what helps a human to find the process.

        And by which version it groups messages: counts by patterns of two do not add up.
        """
        who = {"host": socket.gethostname(), "pid": str(os.getpid())}
        return json.dumps({**health, "patterns": patterns.VERSION, **who})


def kind_of(error: Exception) -> str:
    """Return what an error is counted as."""
    return error.code if isinstance(error, StoreRefused) else type(error).__name__
