"""Shard: apply a batch exactly once.

A batch (producer, sequence number, operations) is sent until the shard has replied. The script
compares the number with the producer's watermark, so a batch whose reply was lost can be sent again
and counts once, no matter whether Redmeter, the client library or a proxy retries.

A store on one server is one shard. On a cluster it has 64, each in its own slot, with its own
producers, sequence numbers and configuration.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple

from redmeter.clock import Clock
from redmeter.errors import StoreError, StoreMoving, StoreRefused, StoreUnavailable
from redmeter.store import config as configs
from redmeter.store.config import StoreConfig, WantedConfig
from redmeter.store.durability import NONE, confirm_batches
from redmeter.store.producers import WATERMARK_SECONDS, InFlightBatch, Producer, Producers
from redmeter.store.scripts import Script, Steps, apply_script, run_steps
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import (
    SCRIPT,
    Command,
    Link,
    Reply,
    error_code,
    plain_text,
    raised,
)
from redmeter.store.servers.retry import WriteRetry, is_transient
from redmeter.stored.keys import Kept, Keys
from redmeter.types import Batch, Gap, LostEvents, Operations, Outcome, Rejection

_WATERMARK = str(WATERMARK_SECONDS)
_APPLIED = Outcome()
#: Replies of the script while the store is being moved.
_STATES = {-3: "frozen", -4: "receiving", -5: "moved"}
#: Its first item where the server has lost batches.
_GAP = -6


class RetentionChanged(StoreRefused):
    """A batch was made for another retention than the store's; nothing was written."""


class BatchConditions(NamedTuple):
    """How a batch is checked before it is applied: see lua/apply.lua."""

    #: It was sent before, and its producer had been acknowledged before that: without a watermark
    #: the outcome is unknown.
    must_exist: bool = False
    #: A watermark above the floor is a gap, too.
    exact: bool = False
    #: The number that the producer last had acknowledged, or 0, and the birth of that store; with a
    #: lower watermark, or another birth, there is a gap.
    floor: int = 0
    born: str = ""
    #: Skip intervals that are aged or far in the future; and remove samples outside the retention.
    refuse: bool = True
    trim: bool = True


class Shard:
    """Applies batches: to a whole store on one server, or to one shard of it on a cluster.

    Args:
        link: exchanges commands with its server.
        keys: the names of its keys.
        wanted: the configuration for a new store.
        shards: how many the store has.
        timeout: seconds for which a synchronous write is tried.
        clock: the producer's time.
        sync_config: loads the configuration of all shards that are reachable.
    """

    def __init__(
        self,
        link: Link,
        keys: Keys,
        *,
        wanted: WantedConfig,
        shards: int,
        timeout: float,
        clock: Clock,
        sync_config: Callable[[], None] | None = None,
    ) -> None:
        self.link = link
        self.keys = keys
        self.clock = clock
        self.timeout = timeout
        self._wanted = wanted
        self._shards = shards
        self._sync_config = sync_config
        self._producers = Producers(clock)
        #: Its configuration, once loaded.
        self.config: StoreConfig | None = None
        #: The birth of its store, see config.bind(); "" until it is loaded.
        self.born = ""

    # Configuration

    @property
    def kept(self) -> Kept:
        """The retention, as far as known without an exchange."""
        return (self.config or self._wanted.config).kept

    def load_config(self, version: str = "") -> Steps[StoreConfig]:
        """Load the shard's configuration, which is created if the shard is new.

        Args:
            version: the version for a new store; "": a new one.

        Raises:
            IncompatibleStore: the store has another format.
            StoreError: the server is unreachable or refuses.
        """
        known = [config for config in (self.config, self._wanted.known) if config is not None]
        version = version or configs.new_version(self.clock.wall())
        new = self._wanted.config._replace(version=version)
        proposed = max(known, key=lambda config: config.epoch, default=new)
        stored, self.born = yield from configs.bind(self.keys, proposed, self._shards)
        self._wanted.compare(stored)
        self.config = stored
        return stored

    # Writing

    def write(
        self,
        build: Callable[[Kept], Operations],
        *,
        kept: Kept | None = None,
        refuse: bool = True,
        trim: bool = True,
        within: float | None = None,
        events: int = 1,
        durability: str = NONE,
    ) -> Outcome:
        """Write one batch synchronously.

        Args:
            build: makes the operations for a retention; called again if the retention changed.
            events: how many it has.
            kept: the caller's own retention; then `meta:` is neither read nor created.
            refuse: skip intervals that are aged or far in the future.
            trim: remove samples outside the retention.
            within: total seconds, whatever timeout a caller's client has; None: each attempt waits
                for its reply, and a batch that was sent is attempted at least twice.
            durability: ask for a confirmation by this once it is applied: see Outcome.unconfirmed.

        Raises:
            StoreUnavailable: no reply until the timeout. If `sent`, the batch may have been
                applied; it will not be sent again.
            StoreError: the server refused; nothing was written.
        """
        limit: AbstractContextManager[None] = nullcontext()
        if within is not None:
            assert isinstance(self.link, ServerLink), (
                "a caller's client, which is one of one server"
            )
            limit = self.link.within(within)
        with limit:
            producer = self._producers.borrow()
            try:
                in_flight = InFlightBatch(producer, build, kept=kept, refuse=refuse, trim=trim)
                retry = WriteRetry(self.clock, self.timeout, within)
                # A shard that lost its configuration must get that of the others, not this one's.
                if self.config is None and kept is None and self._sync_config is not None:
                    self._sync_config()
                outcome = self._written(in_flight, retry)
                lost = producer.take_lost()
                if not outcome.uncertain:
                    producer.kept.add(in_flight.number, events)
                    if durability != NONE:
                        batches = [(self.keys, producer)]
                        errors = confirm_batches(
                            self.link, batches, durability, timeout=self.timeout
                        )
                        outcome = outcome._replace(unconfirmed=next(iter(errors), None))
            finally:
                producer.lock.release()
            single = self._producers.single
            others = () if single else self.compare(kept, everyone=lost is not None)
        return outcome._replace(lost=(lost, *others) if lost else others)

    def _written(self, in_flight: InFlightBatch, retry: WriteRetry) -> Outcome:
        while True:
            try:
                outcome = self._attempt(in_flight)
                if outcome.gap is None:
                    return outcome
                if not in_flight.goes_on_after(outcome.gap):
                    return Outcome(applied=False, uncertain=True)
            except StoreUnavailable as error:
                # An attempt fails at once while the link is backing off from the server.
                pause = self.link.retry_after(self.keys.meta) if in_flight.sent else 0.0
                retry.wait(error, sent=in_flight.sent, at_least=pause)
            except StoreRefused as error:
                if not is_transient(error):
                    raise
                retry.wait(error)

    def compare(self, kept: Kept | None = None, *, everyone: bool) -> tuple[LostEvents, ...]:
        """Let idle producers of synchronous calls ask the server whether it has lost their batches.

        Args:
            kept: see write().
            everyone: also those that were not idle for long.

        Returns:
            The lost events. A shard that fails is queried again after a minute.
        """
        losses: list[LostEvents] = []
        with suppress(StoreError):
            for producer in self._producers.borrow_idle(everyone=everyone):
                empty = InFlightBatch(producer, lambda _: (), kept=kept)
                gap = self._attempt(empty).gap
                if gap is not None and empty.goes_on_after(gap):
                    gap = self._attempt(empty).gap
                lost = producer.take_lost() if gap is None else None
                losses += [lost] if lost else []
        return tuple(losses)

    @property
    def producers(self) -> list[Producer]:
        """The producers of synchronous writes."""
        return self._producers.all()

    def _attempt(self, in_flight: InFlightBatch) -> Outcome:
        return run_steps(self._collect, self.sending(in_flight))

    def _collect(self, commands: Sequence[Command]) -> list[Reply]:
        return self.link.collect(commands, spin=True)

    def sending(self, in_flight: InFlightBatch) -> Steps[Outcome]:
        """Send a batch in flight once more, whatever the outcome before.

        Args:
            in_flight: created after the producer's previous batch was acknowledged.

        Raises:
            StoreUnavailable: no reply. `sent`, as on every error, is whether the batch may have
                been applied now or earlier; then it must be sent again.
            StoreError: the server refused; nothing was written now.
        """
        producer = in_flight.producer
        while True:
            bound = False
            try:
                version = ""
                retention = in_flight.kept
                if retention is None:
                    config = self.config or (yield from self.load_config())
                    retention, version = config.kept, config.version
                batch, bound = in_flight.batch(retention, version), True
                must_exist = in_flight.sent and (
                    producer.acknowledged > 0 or in_flight.age(self.clock) > WATERMARK_SECONDS / 2
                )
                conditions = BatchConditions(
                    *(must_exist, producer.counts_lost, producer.floor, producer.born),
                    *(in_flight.refuse, in_flight.trim),
                )
                outcome = yield from self.applying(batch, version, conditions)
                if outcome.gap is None and not outcome.uncertain:
                    producer.acknowledge(in_flight.number, self.born)
                return outcome
            except RetentionChanged:
                try:
                    yield from self.load_config()
                except StoreError as error:
                    error.sent = in_flight.sent
                    raise
            except StoreUnavailable as error:
                if bound and error.sent:
                    in_flight.may_be_applied(self.clock)
                error.sent = in_flight.sent
                self.link.recover()
                raise
            except StoreMoving as error:
                # A moved store never applies a batch again, however late it arrives.
                error.sent = in_flight.sent and error.state != "moved"
                raise
            except StoreError as error:
                error.sent = in_flight.sent
                if getattr(error, "code", "") != "WRONGTYPE" or not bound or in_flight.renewed:
                    raise
                # Another program uses the watermark's key.
                if in_flight.sent:
                    return Outcome(applied=False, uncertain=True)
                in_flight.renew()

    def applying(self, batch: Batch, version: str, conditions: BatchConditions) -> Steps[Outcome]:
        """Send a batch once. Sending it again under the same number is always safe.

        Args:
            batch: made for the retention of this version.
            version: of `meta:`; "" skips the check.

        Raises:
            RetentionChanged: made for another retention; nothing was written.
            StoreMoving: the store is being moved, or was moved; nothing was written now.
            StoreUnavailable: no reply.
            StoreError: the server refused; nothing was written.
        """
        script, keys, args = self._request(batch, version, conditions)
        return outcome_of(batch, (yield script.command(keys, args)))

    def write_by(self, call: Callable[[Command], Reply], operations: Operations) -> Outcome:
        """Send one batch among a caller's own commands.

        The script is sent as text, so the command can be anywhere in a pipeline; a retry is applied
        once. `meta:` is neither read nor created.

        Args:
            call: sends a command and returns its reply, texts as bytes or decoded.

        Raises:
            StoreError: the server refused; nothing was written.
        """
        producer = self._producers.borrow()
        try:
            batch = Batch(producer.id, producer.next(), operations)
            script, keys, args = self._request(batch, "", BatchConditions())
            return outcome_of(batch, call(script.command(keys, args, whole=True)))
        finally:
            producer.lock.release()

    def _request(
        self, batch: Batch, version: str, conditions: BatchConditions
    ) -> tuple[Script, list[str], list[str]]:
        """Return the script that applies a batch, its keys and its arguments."""
        must_exist, exact, floor, born, refuse, trim = conditions
        keys = [self.keys.batch(batch.producer), self.keys.meta]
        args = [
            str(batch.number),
            _WATERMARK,
            f"{self.clock.wall():.6f}",
            version,
            "1" if must_exist else "2" if exact else "0",
            "1" if refuse else "0",
            "1" if trim else "0",
            str(floor),
            born,
        ]
        for operation in batch.operations:
            keys += operation.keys
            numbers = str(len(operation.keys)), str(len(operation.args))
            args += (operation.code, *numbers, *operation.args)
        return apply_script([operation.code for operation in batch.operations]), keys, args


def outcome_of(batch: Batch, reply: Reply) -> Outcome:
    """Parse the script's reply to a batch.

    Raises:
        RetentionChanged, StoreError: see Shard.applying().
    """
    if reply == 1:
        return _APPLIED
    if reply == 0:
        return Outcome(applied=False)
    if reply == -1:
        raise RetentionChanged("ERR", "the store's retention has changed")
    if reply == -2:
        return Outcome(applied=False, uncertain=True)
    if isinstance(reply, int):
        raise StoreMoving(_STATES[reply])
    if raised(reply)[0] == _GAP:
        _, found, born = reply
        number = None if found < 0 else int(found)
        return Outcome(applied=False, gap=Gap(number, plain_text(born)))
    return _outcome(batch.operations, raised(reply)[1:])


def _outcome(operations: Operations, reply: Sequence[Any]) -> Outcome:
    """Parse the rest of the script's reply: number of a key, its error or answer, and so on."""
    keys = [key for operation in operations for key in operation.keys]
    at_stake: Sequence[tuple[str, int]] | None = None
    answers, rejections = [], []
    for number, item in zip(reply[::2], reply[1::2], strict=True):
        at = int(number) - 3  # after watermark and meta
        text = plain_text(item)
        if text.startswith("is "):
            answers.append((keys[at], text[3:]))
            continue
        if at_stake is None:
            at_stake = [each for operation in operations for each in operation.at_stake()]
        text = SCRIPT.sub("", text)
        rejections.append(Rejection(keys[at], _reason(text), text, *at_stake[at]))
    return Outcome(rejections=tuple(rejections), answers=tuple(answers))


def _reason(text: str) -> str:
    """Return the class of an error, a small fixed vocabulary that can be counted."""
    if text in ("aged", "future", "store-full"):
        return text
    if text.startswith("unkept"):
        return "unkept"
    if "overflow" in text or "ERR value is not an integer" in text:  # an amount past 2^63 - 1
        return "overflow"
    if "not an integer" in text:  # "hash value is not …": another program's value
        return "not-a-number"
    code = error_code(text)
    return "denied" if code == "NOPERM" else code
