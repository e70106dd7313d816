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
import logging
import math
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from redmeter.analysis.text import patterns
from redmeter.errors import (
    AccessDenied,
    InvalidSetting,
    RedmeterError,
    StoreError,
    StoreMoving,
    StoreRefused,
    Unconfirmed,
)
from redmeter.recording.buffer import FIELDS_PER_BATCH, Buffer
from redmeter.recording.sending.flusher import FlushFailed
from redmeter.recording.sending.node_workers import EXCHANGE_PATIENCE, NodeTask, NodeWorkers
from redmeter.recording.sending.shard_sender import ShardSender
from redmeter.recording.status import InstanceLease, RecorderStats, kind_of
from redmeter.results.recorder import STORE_FULL
from redmeter.store import Store
from redmeter.store.config import is_target_of, moved_prefix
from redmeter.store.durability import confirm_batches
from redmeter.store.scripts import run_pipelined
from redmeter.store.servers.retry import is_brief, is_recoverable, is_server_wide
from redmeter.stored.keys import Kept
from redmeter.types import Outcome

logger = logging.getLogger("redmeter")


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
        patience: float = EXCHANGE_PATIENCE,
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
        self.writer = self._senders[0].producer.id
        self._report: Mapping[str, object] = {}
        #: Whether a report could not be sent yet because its server was busy.
        self._unpublished = False
        #: The lease on an instance number; needed once a series has a placeholder for it.
        self.lease = InstanceLease(store.clock)

    def _use(self, store: Store) -> None:
        self._store = store
        each = self._interval, self._keep // len(store.shards)
        self._senders = [ShardSender(at, shard, *each) for at, shard in enumerate(store.shards)]
        self._spread = len(self._senders) > 1
        #: The shards of each server.
        self._by_server: Sequence[Sequence[int]] = [range(len(self._senders))]
        #: Shard -> its server, as last known.
        self._servers: dict[int, str] = {}
        #: The shards that failed since run() was called.
        self._failed: set[int] = set()
        self._moved = False

    @property
    def may_follow(self) -> bool:
        """Whether the store was moved, and the outcome of every batch is known."""
        settled = not self._workers.busy and not any(sender.busy for sender in self._senders)
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
        return sum(sender.producer.kept.bytes for sender in self._senders)

    @property
    def unacknowledged(self) -> int:
        """Events in flight; while nothing is being sent: events whose outcome is unknown."""
        return sum(sender.events for sender in self._senders)

    def take_errors(self) -> list[Exception]:
        """Return the errors since the last call: one of each kind for each server."""
        errors: list[Exception] = []
        while self._errors:
            errors.append(self._errors.popleft())
        return errors

    def reset(self) -> None:
        """Retry everything with the next run."""
        for sender in self._senders:
            sender.backoff.reset()

    def dismiss(self) -> None:
        """End idle worker threads."""
        self._workers.dismiss()

    def run(self, *, requested: bool = False) -> None:
        """Send until nothing is left except what must wait.

        Args:
            requested: a flush was requested: shards that failed before are retried, too.

        Raises:
            FlushFailed: events are left, or an ACL denied some: see take_errors().
        """
        self._failed = set()
        if self._spread:
            if not self._left() and not any(sender.producer.must_ask for sender in self._senders):
                return
            self._group_by_server()
            self._sync_config(requested=requested)
        self._renew_instance(requested=requested)
        before = set(self._failed) if self._spread else set[int]()
        send = partial(self._send, requested=requested, instance=self.lease.number)
        self._send_to(self._by_server, send, patient=requested)
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
        store, shards = self._store, [(each.shard.keys, each.producer) for each in self._senders]
        timeout = min(timeout, store.timeout)
        return confirm_batches(store.link, shards, durability, timeout=timeout, again=again)

    def _left(self) -> set[int]:
        """Return the shards with events left."""
        with self._lock:
            under_way = {sender.number for sender in self._senders if sender.busy}
            return under_way | self._buffer.numbers

    def _incomplete(self, left: set[int]) -> FlushFailed:
        failed = set(self._failed)
        # A server that is slow or hangs has not failed yet: it is skipped anyway.
        partly = not all(failed.issuperset(shards) for shards in self._by_server)
        backoffs = [self._senders[number].backoff for number in failed | left if number >= 0]
        passing = not backoffs or any(backoff.passing for backoff in backoffs)
        if not partly:  # then the flusher backs off
            self.reset()
        return FlushFailed(passing=passing, partly=partly)

    # Servers

    def _group_by_server(self) -> None:
        """Group the shards by server; servers with the fewest failures come first.

        A shard that has moved to another server does not inherit the backoff of the one before. If
        an exchange with that one is still in progress, it fails later: its backoff ends then.
        """
        numbers = range(len(self._senders))
        try:
            by_server = self._store.by_server()
        except StoreError as error:
            self._by_server = [numbers]
            self._fail(numbers, error)
        else:
            backoffs = [sender.backoff for sender in self._senders]
            busy = self._workers.busy
            for server, shards in by_server.items():
                for number in shards:
                    if number not in busy and self._servers.get(number) != server:
                        self._servers[number] = server
                        backoffs[number].reset()
            self._by_server = sorted(
                by_server.values(), key=lambda shards: max(backoffs[n].failures for n in shards)
            )

    def _send_to(
        self,
        by_server: Sequence[Sequence[int]],
        do: Callable[[NodeTask], None],
        *,
        patient: bool = False,
    ) -> None:
        """Run a function for the shards of each server, concurrently.

        Args:
            patient: also wait for servers that take longer than others.
        """
        avoided = self._failed | self._workers.busy
        each = [[number for number in shards if number not in avoided] for shards in by_server]
        tasks = [NodeTask(numbers, partial(self._guarded, do)) for numbers in each if numbers]
        self._workers.run(tasks, alone=len(self._by_server) == 1, patient=patient)

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
        backoffs = [self._senders[number].backoff for number in numbers]
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

    def _sync_config(self, *, requested: bool) -> None:
        """Load the configuration of all shards first, and make them agree.

        Each would load it with its first batch. But a shard that has lost its configuration must
        get that of the others, not the one of this process.
        """
        for numbers, sync in (
            (self._store.unloaded, self._store.load_configs),
            (self._store.outdated, self._store.update_configs),
        ):
            if chosen := {n for n in numbers() if self._senders[n].is_due(requested=requested)}:
                each = [[n for n in shards if n in chosen] for shards in self._by_server]
                self._send_to(each, partial(self._sync_some, sync))

    def _sync_some(
        self, sync: Callable[[Sequence[int]], Mapping[int, StoreError]], task: NodeTask
    ) -> None:
        self._record_failures(task, len(task.numbers), sync(task.numbers), set())

    # Sending

    def _send(self, task: NodeTask, *, requested: bool, instance: int | None) -> None:
        """Send everything for the shards of one server."""
        waiting, recorded = deque(task.numbers), set[str]()
        while loaded := self._load(waiting, requested=requested, instance=instance):
            task.go_on()
            errors = self._exchange(loaded)
            waiting.extend(sender.number for sender in loaded if sender.number not in errors)
            if self._record_failures(task, len(loaded), errors, recorded):
                return

    def _load(
        self, waiting: deque[int], *, requested: bool, instance: int | None
    ) -> list[ShardSender]:
        """Load as many batches as one pipeline holds, so that other clients are served soon."""
        loaded: list[ShardSender] = []
        fields = 0
        with self._lock:
            if self._store.kept != self._kept:
                self._kept = self._store.kept
                self._buffer.retain(self._kept)
            while waiting and fields <= FIELDS_PER_BATCH:
                sender = self._senders[waiting.popleft()]
                if not sender.is_due(requested=requested):
                    continue
                added = sender.load(self._buffer, instance)
                if added:
                    fields += added
                    loaded.append(sender)
                    self._stats.retried += sender.is_retry
        return loaded

    def _exchange(self, loaded: Sequence[ShardSender]) -> dict[int, StoreError]:
        """Send the loaded batches as one pipeline, and record their outcomes.

        Returns:
            Number of the shard -> its error.
        """
        try:
            many = {sender.number: sender.sending() for sender in loaded}
            results = run_pipelined(loaded[0].shard.link, many)
            with self._lock:
                return self._settle(loaded, results)
        except BaseException:  # even while waiting for the lock: a reply may be lost
            for sender in loaded:
                sender.interrupted()
            raise

    def _settle(
        self, loaded: Sequence[ShardSender], results: Mapping[int, Outcome | StoreError]
    ) -> dict[int, StoreError]:
        errors: dict[int, StoreError] = {}
        for sender in loaded:
            result = results[sender.number]
            if isinstance(result, StoreError):
                sender.unload(self._buffer, result)
                self._moved |= isinstance(result, StoreMoving) and result.state == "moved"
                errors[sender.number] = result
                continue
            sender.backoff.succeeded()
            full = [each.key for each in result.rejections if each.reason == STORE_FULL]
            if full:  # new series of a bad label: the rest of the batch is stored
                self._errors.append(StoreRefused(STORE_FULL, f"the store is full: {full[0]}"))
            if denied := sender.settle(result, self._stats):
                errors[sender.number] = denied
        return errors

    # Reports

    def publish(self, health: Mapping[str, object], *, ended: bool = False) -> bool:
        """Publish the status of the recorder, and acquire an instance number if one is needed.

        The report names host and pid for people; the version of message patterns, since counts by
        different versions cannot be summed; and the interval of flushes, whose events are missing
        if no last report comes.

        Returns:
            False if the server of the reports is failing or busy: the next run publishes it.

        Raises:
            StoreError: see Store.publish.
        """
        process = {"host": socket.gethostname(), "pid": str(os.getpid())}
        about = {"patterns": patterns.PATTERN_VERSION, "interval": self._interval, **process}
        self._report, self._unpublished = {**health, **about}, True
        raised: list[StoreError | None] = []

        def publish(_: NodeTask) -> None:
            try:
                self._publish(ended=ended)
                raised.append(None)
            except StoreError as error:
                raised.append(error)

        self._send_to_first(publish, requested=ended)
        for error in raised:
            if error is not None:
                raise error
        return bool(raised)

    def _publish(self, *, ended: bool) -> None:
        self._unpublished = False
        requested, needed = self._store.clock.monotonic(), self.lease.needed
        report = json.dumps({**self._report, "ended": ended})
        number = self._store.publish(self.writer, report, instance=needed, ended=ended)
        self.lease.renew(number, requested)

    def _send_to_first(self, do: Callable[[NodeTask], None], *, requested: bool) -> None:
        """Run a function for the first shard, which has the keys that concern all shards."""
        avoided = self._failed | self._workers.busy
        if 0 not in avoided and self._senders[0].is_due(requested=requested):
            self._send_to([shards for shards in self._by_server if 0 in shards], do)

    def _renew_instance(self, *, requested: bool) -> None:
        """Renew the lease on the instance number before another process can get it."""
        if self._unpublished or self.lease.is_due:
            self._send_to_first(self._request_instance, requested=requested)

    def _request_instance(self, _: NodeTask) -> None:
        try:
            self._publish(ended=False)
        except (StoreRefused, AccessDenied) as error:  # series without a placeholder are sent
            with self._lock:
                self._stats.record_error(kind_of(error), str(error))


class NextStore:
    """The store that a recorder goes on with once `redmeter migrate` has moved its own.

    Its URL is a setting: a URL that is read from Redis would be no safe redirect. It is used only
    if its `meta:` names the same move, so that a mistyped URL leads nowhere. Its prefix is read
    from the store that was moved.

    Args:
        open: opens it, with a prefix or, if that is None, with the same; connects to nothing.
        followed: called with the store once it is used.
    """

    def __init__(
        self,
        open: Callable[[str | None], Store],  # noqa: A002
        followed: Callable[[Store], None],
    ) -> None:
        self._open = open
        self._followed = followed
        self._store: Store | None = None

    def follow(
        self,
        before: Store,
        switch: Callable[[Store], None],
        record_error: Callable[[str, str], None],
    ) -> Store | None:
        """Go on with the next store; return it, or None if it cannot be used.

        Args:
            before: the store that was moved.
            switch: called with the next store, to which all later events go.
            record_error: called with the reason if it cannot be used.
        """
        try:
            store = self._checked(before)
        except RedmeterError as error:
            record_error("next-url", str(error))
            return None
        switch(store)
        logger.warning(
            "redmeter follows the store that was moved: events are now stored in %s", store.location
        )
        self._followed(store)
        before.close()
        return store

    def _checked(self, before: Store) -> Store:
        """Return the next store if the one before was moved there.

        Raises:
            InvalidSetting: it was moved elsewhere.
            StoreError: one of the two cannot be reached or refuses.
        """
        prefix = moved_prefix(before)
        if self._store is not None and prefix not in (None, self._store.keys.prefix):
            self._store.close()  # it was moved once more, to another prefix
            self._store = None
        if self._store is None:
            self._store = self._open(prefix)
        if not is_target_of(self._store, before):
            reason = f"{before.location} was moved to another store than {self._store.location}"
            raise InvalidSetting("next_url", reason)
        self._store.config()
        return self._store
