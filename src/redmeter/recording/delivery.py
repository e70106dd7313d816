"""Delivery: sends the buffer to the store, each event exactly once.

A store on one server is one shard, with one sender; on a cluster there are 64. The batches of all
shards of one server are sent together, in pipelines that take a few milliseconds; different servers
are served concurrently, in threads.

A failing server or shard delays no other. Its senders keep their batches in flight and retry with
their own backoff; other events for it stay in the buffer and are merged. A server that hangs is
skipped until its exchange has ended.

Not thread-safe: the caller holds the recorder's `_sending` lock.
"""

import json
import math
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from redmeter.analysis.text import patterns
from redmeter.errors import AccessDenied, StoreError, StoreMoving, StoreRefused, Unconfirmed
from redmeter.losses import STORE_FULL
from redmeter.recording.buffer import FIELDS_PER_BATCH, Buffer
from redmeter.recording.instance import InstanceLease
from redmeter.recording.node_workers import PATIENCE, NodeTask, NodeWorkers
from redmeter.recording.shard_sender import ShardSender
from redmeter.recording.stats import RecorderStats
from redmeter.store import Store
from redmeter.store.durability import confirm
from redmeter.store.retry import is_brief, is_recoverable, is_server_wide
from redmeter.store.scripts import run_pipelined
from redmeter.stored.keys import Kept
from redmeter.types import Outcome


class DeliveryIncomplete(Exception):
    """Events are left, in memory. The errors: see Delivery.take_errors().

    Args:
        passing: whether a retry may succeed within moments.
        partly: whether other parts of the store work, are still in progress, or were not tried.
    """

    def __init__(self, *, passing: bool, partly: bool) -> None:
        super().__init__(passing, partly)
        self.passing = passing
        self.partly = partly


class Delivery:
    """Sends the contents of a buffer.

    Args:
        lock: held while buffer or statistics are used, never during I/O.
        interval: seconds from one flush to the next.
        around: context in which worker threads send.
        patience: how long to wait for a server that hangs, seconds.
        keep: most bytes of acknowledged batches: see producers.py.
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
        keep: int = 0,
    ) -> None:
        self._buffer = buffer
        self._stats = stats
        self._lock = lock
        self._interval = interval
        self._keep = keep
        self._use(store)
        self._workers = NodeWorkers(around, patience)
        self._errors: deque[Exception] = deque()
        self._kept: Kept | None = None
        #: This recorder's ID in reports; it stays when the producer is renewed.
        self.writer = self._channels[0].producer.id
        self._report: Mapping[str, object] = {}
        #: Whether a report could not be sent yet because its server was busy.
        self._unpublished = False
        #: The lease on an instance number; needed once a series has a placeholder for it.
        self.lease = InstanceLease(store.clock)

    def _use(self, store: Store) -> None:
        self._store = store
        parts = enumerate(store.shards)
        keep = self._keep // len(store.shards)
        self._channels = [ShardSender(number, part, self._interval, keep) for number, part in parts]
        self._spread = len(self._channels) > 1
        #: The shards of each server.
        self._lanes: Sequence[Sequence[int]] = [range(len(self._channels))]
        #: Shard -> its server, as last known.
        self._servers: dict[int, str] = {}
        #: The shards that failed since run() was called.
        self._failed: set[int] = set()
        self._moved = False

    @property
    def may_follow(self) -> bool:
        """Whether the store was moved, and the outcome of every batch is known."""
        channels = self._channels
        settled = not self._workers.busy and not any(channel.busy for channel in channels)
        return self._moved and settled

    def follow(self, store: Store) -> None:
        """Send to another store from now on, with new producers. See may_follow."""
        with self._lock:
            self._use(store)
            self._buffer.reshard(store.shard_number if self._spread else None)
            # There, its number may belong to another process.
            self.lease.renew(None, -math.inf)
            self._unpublished = True

    @property
    def kept_bytes(self) -> int:
        """Estimated memory of acknowledged batches."""
        return sum(channel.kept_bytes for channel in self._channels)

    @property
    def unacknowledged(self) -> int:
        """Events in flight; while nothing is being sent: events whose outcome is unknown."""
        return sum(channel.events for channel in self._channels)

    def take_errors(self) -> list[Exception]:
        """Return the errors since the last call: one of each kind for each server."""
        errors: list[Exception] = []
        while self._errors:
            errors.append(self._errors.popleft())
        return errors

    def reset(self) -> None:
        """Retry everything with the next run."""
        for channel in self._channels:
            channel.backoff.reset()

    def dismiss(self) -> None:
        """End idle worker threads."""
        self._workers.dismiss()

    def run(self, *, asked: bool = False) -> None:
        """Send until nothing is left except what must wait.

        Args:
            asked: a flush was requested: shards that failed before are retried, too.

        Raises:
            DeliveryIncomplete: events are left, or an ACL denied some.
        """
        self._failed = set()
        if self._spread:
            if not self._left() and not any(channel.must_ask for channel in self._channels):
                return
            self._group_by_server()
            self._sync_config(asked=asked)
        self._renew_instance(asked=asked)
        before = set(self._failed) if self._spread else set[int]()
        send = partial(self._send, asked=asked, instance=self.lease.number)
        self._send_to(self._lanes, send, patient=asked)
        # On one server, events that are left without a failure wait for an instance number.
        left = self._left() if self._spread else set[int]()
        if left or self._failed - before:
            raise self._incomplete(left)

    def confirm(self, durability: str, timeout: float, *, again: bool) -> list[Unconfirmed]:
        """Ask whether acknowledged batches are durable: see store/durability.py.

        Can be called by any thread.

        Args:
            again: also for batches for which this was tried before.
        """
        store, parts = self._store, [(each.shard.keys, each.producer) for each in self._channels]
        timeout = min(timeout, store.timeout)
        return confirm(store.link, parts, durability, timeout=timeout, again=again)

    def _left(self) -> set[int]:
        """Return the shards with events left."""
        with self._lock:
            under_way = {channel.number for channel in self._channels if channel.busy}
            return under_way | self._buffer.numbers

    def _incomplete(self, left: set[int]) -> DeliveryIncomplete:
        failed = set(self._failed)
        # A server that is slow or hangs has not failed yet: it is skipped anyway.
        partly = not all(failed.issuperset(lane) for lane in self._lanes)
        backoffs = [self._channels[number].backoff for number in failed | left if number >= 0]
        passing = not backoffs or any(backoff.passing for backoff in backoffs)
        if not partly:  # then the flusher backs off
            self.reset()
        return DeliveryIncomplete(passing=passing, partly=partly)

    # Servers

    def _group_by_server(self) -> None:
        """Group the shards by server; servers with the fewest failures come first.

        A shard that has moved to another server does not inherit the backoff of the one before. If
        an exchange with that one is still in progress, it fails later: its backoff ends then.
        """
        numbers = range(len(self._channels))
        try:
            lanes = self._store.by_server()
        except StoreError as error:
            self._lanes = [numbers]
            self._fail(numbers, error)
        else:
            backoffs = [channel.backoff for channel in self._channels]
            busy = self._workers.busy
            for server, lane in lanes.items():
                for number in lane:
                    if number not in busy and self._servers.get(number) != server:
                        self._servers[number] = server
                        backoffs[number].reset()
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
        """Run a function for the shards of each server, concurrently.

        Args:
            patient: also wait for servers that take longer than others.
        """
        avoided = self._failed | self._workers.busy
        each = [[number for number in lane if number not in avoided] for lane in lanes]
        tasks = [NodeTask(numbers, partial(self._guarded, do)) for numbers in each if numbers]
        self._workers.run(tasks, alone=len(self._lanes) == 1, patient=patient)

    def _guarded(self, do: Callable[[NodeTask], None], task: NodeTask) -> None:
        try:
            do(task)
        except Exception as error:  # noqa: BLE001 - even a bug of ours: it is recorded
            self._fail(task.numbers, error)

    def _fail(self, numbers: Sequence[int], error: Exception, *, recorded: bool = False) -> None:
        """Back off from some shards, from all of them for the same time.

        Args:
            recorded: an error of this kind is already recorded.
        """
        backoffs = [self._channels[number].backoff for number in numbers]
        with self._lock:
            longest = max(backoffs, key=lambda backoff: backoff.failures)
            longest.failed(passing=is_recoverable(error), soon=is_brief(error))
            for backoff in backoffs:
                backoff.like(longest)
            self._failed.update(numbers)
        if not recorded:
            self._errors.append(error)

    def _record_failures(
        self, task: NodeTask, tried: int, errors: Mapping[int, StoreError], recorded: set[str]
    ) -> bool:
        """Back off from the shards that failed; return whether the whole server did.

        Args:
            tried: the number of shards that were tried.
            errors: number of the shard -> its error.
            recorded: kinds of errors that are already recorded.
        """
        of_all = next((error for error in errors.values() if is_server_wide(error)), None)
        if of_all is not None and len(errors) == tried:
            self._fail(task.numbers, of_all)
            return True
        for number, error in errors.items():
            kind = kind_of(error)
            self._fail([number], error, recorded=kind in recorded)
            recorded.add(kind)
        return False

    def _sync_config(self, *, asked: bool) -> None:
        """Load the configuration of all shards first, and make them agree.

        Each would load it with its first batch. But a shard that has lost its configuration must
        get that of the others, not the one of this process.
        """
        for numbers, sync in (
            (self._store.unloaded, self._store.load_configs),
            (self._store.outdated, self._store.update_configs),
        ):
            if chosen := {n for n in numbers() if self._channels[n].is_due(asked=asked)}:
                lanes = [[number for number in lane if number in chosen] for lane in self._lanes]
                self._send_to(lanes, partial(self._sync_some, sync))

    def _sync_some(
        self, sync: Callable[[Sequence[int]], Mapping[int, StoreError]], task: NodeTask
    ) -> None:
        self._record_failures(task, len(task.numbers), sync(task.numbers), set())

    # Sending

    def _send(self, task: NodeTask, *, asked: bool, instance: int | None) -> None:
        """Send everything for the shards of one server."""
        waiting, recorded = deque(task.numbers), set[str]()
        while loaded := self._load(waiting, asked=asked, instance=instance):
            task.go_on()
            errors = self._exchange(loaded)
            waiting.extend(channel.number for channel in loaded if channel.number not in errors)
            if self._record_failures(task, len(loaded), errors, recorded):
                return

    def _load(self, waiting: deque[int], *, asked: bool, instance: int | None) -> list[ShardSender]:
        """Load as many batches as one pipeline holds, so that other clients are served soon."""
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
                    self._stats.retried += channel.is_retry
        return loaded

    def _exchange(self, loaded: Sequence[ShardSender]) -> dict[int, StoreError]:
        """Send the loaded batches as one pipeline, and record their outcomes.

        Returns:
            Number of the shard -> its error.
        """
        try:
            many = {channel.number: channel.sending() for channel in loaded}
            results = run_pipelined(loaded[0].shard.link, many)
            with self._lock:
                return self._settle(loaded, results)
        except BaseException:  # even while waiting for the lock: a reply may be lost
            for channel in loaded:
                channel.interrupted()
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
            full = [each.key for each in result.rejections if each.reason == STORE_FULL]
            if full:  # new series of a bad label: the rest of the batch is stored
                self._errors.append(StoreRefused(STORE_FULL, f"the store is full: {full[0]}"))
            if denied := channel.settle(result, self._stats):
                errors[channel.number] = denied
        return errors

    # Reports

    def publish(self, report: Mapping[str, object], *, ended: bool = False) -> bool:
        """Publish the status of the recorder, and acquire an instance number if one is needed.

        Returns:
            False if the server of the reports is failing or busy: the next run publishes it.

        Raises:
            StoreError: see Store.publish.
        """
        self._report, self._unpublished = report, True
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
        self._unpublished = False
        asked, needed = self._store.clock.monotonic(), self.lease.needed
        report = json.dumps({**self._report, "ended": ended})
        number = self._store.publish(self.writer, report, instance=needed, ended=ended)
        self.lease.renew(number, asked)

    def _send_to_first(self, do: Callable[[NodeTask], None], *, asked: bool) -> None:
        """Run a function for the first shard, which has the keys that concern all shards."""
        avoided = self._failed | self._workers.busy
        if 0 not in avoided and self._channels[0].is_due(asked=asked):
            self._send_to([lane for lane in self._lanes if 0 in lane], do)

    def _renew_instance(self, *, asked: bool) -> None:
        """Renew the lease on the instance number before another process can get it."""
        if self._unpublished or self.lease.is_due:
            self._send_to_first(self._request_instance, asked=asked)

    def _request_instance(self, _: NodeTask) -> None:
        try:
            self._publish(ended=False)
        except (StoreRefused, AccessDenied) as error:  # series without a placeholder are sent
            with self._lock:
                self._stats.record_error(kind_of(error), str(error))

    def report(self, health: Mapping[str, object]) -> Mapping[str, object]:
        """Return a report for publish(), with host and pid for people.

        It includes the version of message patterns: counts by different versions cannot be summed;
        and the interval of flushes, whose events are missing if no last report comes.
        """
        process = {"host": socket.gethostname(), "pid": str(os.getpid())}
        return {**health, "patterns": patterns.VERSION, "interval": self._interval, **process}


def kind_of(error: Exception) -> str:
    """Return the kind under which an error is counted."""
    return error.code if isinstance(error, StoreRefused) else type(error).__name__
