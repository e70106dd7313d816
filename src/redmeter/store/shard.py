"""Shard: apply a batch exactly once.

A batch (producer, sequence number, operations) is sent until the shard has replied. The script
compares the number with the producer's watermark. So a batch whose reply was lost can be sent again
and counts once, whether Redmeter, the client library or a proxy retries.

A store on one server is one shard. On a cluster it has 64, each in its own slot, with its own
producers, sequence numbers and configuration.
"""

from collections.abc import Callable, Sequence

from redmeter.clock import Clock
from redmeter.errors import StoreError, StoreMoving, StoreRefused, StoreUnavailable
from redmeter.keys import Kept, Keys
from redmeter.store import config as configs
from redmeter.store.config import StoreConfig, WantedConfig
from redmeter.store.connection import ServerLink
from redmeter.store.link import Link
from redmeter.store.outcome import RetentionChanged, outcome_of
from redmeter.store.producers import InFlightBatch, Producers
from redmeter.store.replies import Command, Reply
from redmeter.store.retry import WriteRetry, is_transient
from redmeter.store.scripts import Script, Steps, apply_script, run_steps
from redmeter.types import Batch, Operations, Outcome

#: Seconds for which a watermark outlives its producer's last batch: longer than fine samples, so a
#: server that evicts the keys that expire next evicts those first. A batch that was first sent half
#: as long ago is applied only if its watermark exists.
WATERMARK_SECONDS = 86400
_WATERMARK = str(WATERMARK_SECONDS)


class Shard:
    """Applies batches: to a whole store on one server, or to one shard of it on a cluster.

    Args:
        link: exchanges commands with its server.
        keys: the names of its keys.
        wanted: what to keep, should it be new.
        shards: how many the store has.
        timeout: seconds for which a synchronous write is tried.
        clock: the producer's time.
        sync_config: asks all shards what they keep, as far as they answer.
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
        self._producers = Producers()
        #: Its configuration, once loaded.
        self.config: StoreConfig | None = None

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
        wanted = max(known, key=lambda config: config.epoch, default=new)
        stored = yield from configs.bind(self.keys, wanted, self._shards)
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
    ) -> Outcome:
        """Write at once, as one batch, and return when the store has answered.

        Args:
            build: makes the operations for a retention; called again if that has changed.
            kept: the caller's own retention; then `meta:` is neither read nor created.
            refuse: leave out slices that are aged or far in the future.
            trim: remove what has left the retention.
            within: seconds in all, whatever a caller's client would wait for; None: each try
                waits for its answer, and what was sent is tried twice at least.

        Raises:
            StoreUnavailable: no answer until the timeout. With `sent`, the batch may have been
                applied; it will not be sent again.
            StoreError: the server refused; nothing was written.
        """
        if within is not None:
            assert isinstance(self.link, ServerLink), (
                "a caller's client, which is one of one server"
            )
            with self.link.within(within):
                return self._write(build, kept, refuse, trim, within)
        return self._write(build, kept, refuse, trim, None)

    def _write(
        self,
        build: Callable[[Kept], Operations],
        kept: Kept | None,
        refuse: bool,
        trim: bool,
        within: float | None,
    ) -> Outcome:
        producer = self._producers.borrow()
        try:
            in_flight = InFlightBatch(producer, build)
            retry = WriteRetry(self.clock, self.timeout, within)
            # Should it have forgotten what it kept, others know better than this process.
            if self.config is None and kept is None and self._sync_config is not None:
                self._sync_config()
            while True:
                try:
                    return self.attempt(in_flight, kept=kept, refuse=refuse, trim=trim)
                except StoreUnavailable as error:
                    # A try fails at once while the link leaves the server alone.
                    pause = self.link.retry_after(self.keys.meta) if in_flight.sent else 0.0
                    retry.wait(error, sent=in_flight.sent, at_least=pause)
                except StoreRefused as error:
                    if not is_transient(error):
                        raise
                    retry.wait(error)
        finally:
            producer.lock.release()

    def attempt(
        self,
        in_flight: InFlightBatch,
        *,
        kept: Kept | None = None,
        refuse: bool = True,
        trim: bool = True,
    ) -> Outcome:
        """Send a batch in flight once more, whatever became of it before: see sending()."""
        return run_steps(
            self._collect, self.sending(in_flight, kept=kept, refuse=refuse, trim=trim)
        )

    def _collect(self, commands: Sequence[Command]) -> list[Reply]:
        return self.link.collect(commands, spin=True)

    def sending(
        self,
        in_flight: InFlightBatch,
        *,
        kept: Kept | None = None,
        refuse: bool = True,
        trim: bool = True,
    ) -> Steps[Outcome]:
        """Send a batch in flight once more, whatever became of it before.

        Args:
            in_flight: made by one producer after the one before was answered.
            kept, refuse, trim: see write(); the same each time.

        Raises:
            StoreUnavailable: no answer. `sent` says, as of all others, whether the batch may have
                been applied now or earlier; it has then to come again.
            StoreError: the server refused; nothing was written now.
        """
        producer = in_flight.producer
        while True:
            bound = False
            try:
                version = ""
                own = kept
                if own is None:
                    config = self.config or (yield from self.load_config())
                    own, version = config.kept, config.version
                batch, bound = in_flight.batch(own, version), True
                must_exist = in_flight.sent and (
                    producer.acknowledged or in_flight.age(self.clock) > WATERMARK_SECONDS / 2
                )
                outcome = yield from self.applying(
                    batch, version, must_exist=must_exist, refuse=refuse, trim=trim
                )
                producer.acknowledged = True
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
                # Where it was moved, no batch is ever applied again, however late it arrives.
                error.sent = in_flight.sent and error.state != "moved"
                raise
            except StoreError as error:
                error.sent = in_flight.sent
                if getattr(error, "code", "") != "WRONGTYPE" or not bound or in_flight.renewed:
                    raise
                # Somebody else uses the watermark's key.
                if in_flight.sent:
                    return Outcome(applied=False, uncertain=True)
                in_flight.renew()

    def applying(
        self,
        batch: Batch,
        version: str,
        *,
        must_exist: bool,
        refuse: bool = True,
        trim: bool = True,
    ) -> Steps[Outcome]:
        """Send a batch once. Sending it again with the same number is always safe.

        Args:
            batch: made for the retention of this version.
            version: of meta:, or "" not to look.
            must_exist: the batch has been sent before, and its producer had been acknowledged
                before: without a watermark nobody can tell whether it was applied.
            refuse, trim: see write().

        Raises:
            RetentionChanged: made for another retention; nothing was written.
            StoreMoving: the store is being moved, or was moved; nothing was written now.
            StoreUnavailable: the answer is missing.
            StoreError: the server refused; nothing was written.
        """
        script, keys, args = self._request(
            batch, version, must_exist=must_exist, refuse=refuse, trim=trim
        )
        return outcome_of(batch, (yield script.command(keys, args)))

    def write_by(self, call: Callable[[Command], Reply], operations: Operations) -> Outcome:
        """Have one batch sent by somebody else, among commands of their own.

        It is sent whole, so that it may stand anywhere; and sent again, it is applied once. The
        store's `meta:` is neither asked nor made.

        Args:
            call: sends a command, and returns its reply, texts as bytes or decoded.

        Raises:
            StoreError: the server refused; nothing was written.
        """
        producer = self._producers.borrow()
        try:
            batch = Batch(producer.id, producer.next(), operations)
            script, keys, args = self._request(batch, "", must_exist=False, refuse=True, trim=True)
            return outcome_of(batch, call(script.command(keys, args, whole=True)))
        finally:
            producer.lock.release()

    def _request(
        self, batch: Batch, version: str, *, must_exist: bool, refuse: bool, trim: bool
    ) -> tuple[Script, list[str], list[str]]:
        """Return the script that applies a batch, its keys and its arguments."""
        keys = [self.keys.batch(batch.producer), self.keys.meta]
        args = [
            str(batch.number),
            _WATERMARK,
            f"{self.clock.wall():.6f}",
            version,
            "1" if must_exist else "0",
            "1" if refuse else "0",
            "1" if trim else "0",
        ]
        for operation in batch.operations:
            keys += operation.keys
            numbers = str(len(operation.keys)), str(len(operation.args))
            args += (operation.code, *numbers, *operation.args)
        return apply_script([operation.code for operation in batch.operations]), keys, args
