"""Store: apply a batch exactly once, read in one round trip.

Writing. A batch (producer, number, operations) is sent until the store has answered. The script
compares its number with the producer's watermark, so a batch whose answer was lost is sent again
and counts once, whoever sends it again: we, the client library, a proxy.

Reading. Commands go out together with the two questions that every reading needs answered by the
store itself: what time is it, and what is kept.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from random import SystemRandom
from typing import Generic, NamedTuple, TypeVar

from redmeter.clock import SYSTEM, Clock
from redmeter.errors import RedmeterError, StoreError, StoreRefused, StoreUnavailable
from redmeter.keys import DEFAULT_HISTOGRAMS, HISTOGRAMS, Kept, Keys, Retention
from redmeter.model import Batch, Operations, Outcome
from redmeter.store import binding as bindings
from redmeter.store import publishing
from redmeter.store.answers import RetentionChanged, outcome_of
from redmeter.store.binding import Binding
from redmeter.store.link import Command, Link, Reply, pairs, raised
from redmeter.store.parcel import Parcel
from redmeter.store.producers import Producers
from redmeter.store.scripts import Script, apply_script

#: A watermark outlives its producer's last batch by this, seconds: longer than fine slices do, so
#: that a server that evicts what expires next takes those first. A batch that was first sent half
#: as long ago is not applied any more unless its watermark is there.
WATERMARK_SECONDS = 86400

#: A synchronous write is tried until the timeout has passed, and this often at least where
#: something was sent: it may have been applied, which only another try can find out.
ATTEMPTS = 5
#: First wait between two tries, seconds; doubled each time, with jitter.
BACKOFF_SECONDS = 0.02

#: Answers that pass by themselves within a moment; nothing was written.
_PASSING = {"LOADING", "READONLY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "BUSY"}

# Not the generator of the application, which may have seeded it.
_chance = SystemRandom()

T = TypeVar("T")

logger = logging.getLogger("redmeter")


class View(NamedTuple):
    """What a reading is to be understood by."""

    #: The server's clock, Unix seconds.
    now: float
    #: What the store keeps of counters and gauges.
    retention: Retention
    histograms: Retention
    #: Version of meta:, "" where nothing has been written yet.
    version: str


class _Arrival(Generic[T]):
    """Takes the replies of a reading one by one: first what makes the view, then all others.

    An error of ours waits until all replies are there, so that the connection stays in order.
    """

    def __init__(
        self, view: Callable[[Reply, Reply], View], make: Callable[[View], Callable[[Reply], T]]
    ) -> None:
        self._make_view, self._make = view, make
        self._first: list[Reply] = []
        self._view: View | None = None
        self._take: Callable[[Reply], T] | None = None
        self._error: RedmeterError | None = None

    def take(self, reply: Reply) -> T | None:
        """Take a reply; return what is made of it."""
        try:
            if self._take is not None:
                return self._take(reply)
            if self._error is None:
                self._first.append(reply)
                if len(self._first) == 2:
                    self._view = self._make_view(*self._first)
                    self._take = self._make(self._view)
        except RedmeterError as error:
            self._take, self._error = None, self._error or error
        return None

    def view(self) -> View:
        """Return the view, once all is there.

        Raises:
            RedmeterError: what was raised on the way.
        """
        if self._error is not None:
            raise self._error
        assert self._view is not None, "two replies come first"
        return self._view


class Store:
    """One store on one server.

    Args:
        link: how to reach it.
        prefix: what stands before its keys.
        retention: what to keep of counters and gauges, should the store be new.
        histograms: what to keep of histograms, the same way.
        timeout: how long a synchronous write is tried, seconds.
        clock: where the producer's time comes from.
    """

    def __init__(
        self,
        link: Link,
        *,
        prefix: str,
        retention: Retention,
        histograms: Retention | None = None,
        timeout: float,
        clock: Clock = SYSTEM,
        restarts: bool = False,
    ) -> None:
        self.link = link
        self.keys = Keys(prefix)
        self.clock = clock
        of_histograms = Retention(histograms or DEFAULT_HISTOGRAMS, of=HISTOGRAMS)
        self._configured = Binding(retention, of_histograms, "")
        #: How long a synchronous write is tried, seconds.
        self.timeout = timeout
        self._restarts = restarts
        self._binding: Binding | None = None
        self._seen: Kept | None = None
        self._producers = Producers()

    def __repr__(self) -> str:
        return f"<Store {self.location} prefix={self.keys.prefix!r}>"

    @property
    def location(self) -> str:
        """Where it is, without credentials."""
        return self.link.location

    def close(self) -> None:
        """Close the connections, unless they are the caller's."""
        self.link.close()

    # Reading

    def read(self, commands: Sequence[Command] = ()) -> tuple[View, list[Reply]]:
        """Ask the commands, the server's time and what is kept, in one round trip.

        Returns:
            The view, and a reply for each command; a server's error is a reply.

        Raises:
            StoreError: the server cannot be reached, refuses, or holds another format.
        """
        time, meta, *replies = self.ask([*self._asked_first(), *commands])
        return self._view(time, meta), replies

    def read_each(
        self, commands: Sequence[Command], make: Callable[[View], Callable[[Reply], T]]
    ) -> tuple[View, list[T]]:
        """Ask the same; of each reply something is made as soon as it is there.

        So the server goes on while we do, and no more than one reply is in memory: what makes a
        third of the time of a large reading.

        Args:
            make: returns what makes something of a reply; an error is a reply.

        Raises:
            StoreError: see read(); and what either function raises.
        """
        whole = [*self._asked_first(), *commands]
        try:
            arrival = _Arrival(self._view, make)
            replies = self.link.exchange(whole, arrival.take)
        except StoreUnavailable:
            self._reconnect()
            arrival = _Arrival(self._view, make)
            replies = self.link.exchange(whole, arrival.take)
        return arrival.view(), replies[2:]

    def ask(self, commands: Sequence[Command]) -> list[Reply]:
        """Exchange commands that may be repeated: once more where the first exchange broke."""
        try:
            return self.link.exchange(commands)
        except StoreUnavailable:
            self._reconnect()
            return self.link.exchange(commands)

    def _asked_first(self) -> tuple[Command, Command]:
        return ("TIME",), ("HGETALL", self.keys.meta)

    def _view(self, time: Reply, meta: Reply) -> View:
        seconds, microseconds = raised(time)
        found = bindings.read_meta(dict(pairs(raised(meta))))
        kept = found or self._configured
        self._seen = kept.kept
        now = int(seconds) + int(microseconds) / 1e6
        return View(now, kept.retention, kept.histograms, kept.version)

    # Retention

    @property
    def kept(self) -> Kept:
        """What is kept, as far as it is known without asking."""
        return (self._binding or self._configured).kept

    @property
    def seen(self) -> Kept:
        """What is kept by the last reading; before the first, as far as it is known."""
        return self._seen or self.kept

    def binding(self) -> Binding:
        """Return what the store keeps, writing it down where the store is new."""
        if self._binding is None:
            self._bind()
        assert self._binding is not None
        return self._binding

    def _bind(self) -> None:
        known = self._binding
        found = bindings.bind(self.link, self.keys, known or self._configured)
        if known is None:
            bindings.say_difference(self._configured, found)
        self._binding = found

    def change_retention(
        self, changes: Sequence[tuple[int, int]], *, histograms: bool = False
    ) -> Retention:
        """Change what is kept, for every process that uses this store.

        Args:
            changes: (precision, samples) pairs; 0 samples: no longer kept.
            histograms: of histograms, instead of counters and gauges.

        Returns:
            The retention from now on.

        Raises:
            InvalidSetting: out of range; nothing was changed.
            StoreError: the server cannot be reached or refuses.
        """
        while True:
            self._bind()
            seen = self.binding()
            changed = (seen.histograms if histograms else seen.retention).changed(changes)
            if histograms:
                wanted = seen._replace(histograms=changed)
            else:
                wanted = seen._replace(retention=changed)
            if wanted == seen or bindings.retain(self.link, self.keys, seen, wanted):
                self._bind()
                return changed

    # Writers

    def publish(self, producer: str, report: str, *, instance: bool, ended: bool) -> int | None:
        """Store what a producer tells of itself, and give it a number where it needs one.

        Safe to repeat, and repeated once where the first exchange broke.

        Args:
            producer: 128 random bits, in hexadecimal.
            report: JSON, see docs/stored-format.md.
            instance: it needs a number; it keeps the one that it has.
            ended: this is its last report, and its number may go to another one.

        Returns:
            The number it holds: 0, 1, 2 …; None where it holds none.

        Raises:
            StoreError: the server cannot be reached, refuses, or holds another format.
        """
        self.binding()
        options = {"instance": instance, "ended": ended}
        try:
            return publishing.publish(self.link, self.keys, producer, report, **options)
        except StoreUnavailable:
            self._reconnect()
            return publishing.publish(self.link, self.keys, producer, report, **options)

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
            build: makes the operations for what is kept; called again should it have changed.
            kept: the caller's own; the store's `meta:` is then neither asked nor made.
            refuse: leave out slices that are aged or far in the future.
            trim: remove what has left the retention.
            within: seconds in all, whatever a caller's client would wait for; None: each try
                waits for its answer, and what was sent is tried ATTEMPTS times at least.

        Raises:
            StoreUnavailable: no answer until the timeout. With `sent`, the batch may have been
                applied; it will not be sent again.
            StoreError: the server refused; nothing was written.
        """
        producer = self._producers.borrow()
        try:
            parcel = Parcel(producer, build)
            started, attempt = self.clock.monotonic(), 0
            limit = nullcontext() if within is None else self.link.within(within)
            with limit:
                while True:
                    try:
                        return self.attempt(parcel, kept=kept, refuse=refuse, trim=trim)
                    except StoreUnavailable as error:
                        self._wait(attempt if parcel.sent else ATTEMPTS, started, error, within)
                    except StoreRefused as error:
                        if error.code not in _PASSING:
                            raise
                        self._wait(attempt, started, error, within)
                    attempt += 1
        finally:
            self._producers.give_back(producer)

    def attempt(
        self,
        parcel: Parcel,
        *,
        kept: Kept | None = None,
        refuse: bool = True,
        trim: bool = True,
    ) -> Outcome:
        """Send a parcel once more, whatever became of it before.

        Args:
            parcel: made by one producer after the one before was answered.
            kept, refuse, trim: see write(); the same each time.

        Raises:
            StoreUnavailable: no answer. `sent` says, as of all others, whether the parcel may have
                been applied now or earlier; it has then to come again.
            StoreError: the server refused; nothing was written now.
        """
        producer = parcel.producer
        while True:
            bound = False
            try:
                version = ""
                own = kept
                if own is None:
                    binding = self.binding()
                    own, version = binding.kept, binding.version
                batch, bound = parcel.batch(own, version), True
                must_exist = parcel.sent and (
                    producer.acknowledged or parcel.age(self.clock) > WATERMARK_SECONDS / 2
                )
                outcome = self.send(batch, version, must_exist=must_exist, refuse=refuse, trim=trim)
                producer.acknowledged = True
                return outcome
            except RetentionChanged:
                self._bind_again(parcel)
            except StoreUnavailable as error:
                if bound and error.sent:
                    parcel.may_be_applied(self.clock)
                error.sent = parcel.sent
                self._reconnect()
                raise
            except StoreError as error:
                error.sent = parcel.sent
                if getattr(error, "code", "") != "WRONGTYPE" or not bound or parcel.renewed:
                    raise
                # Somebody else uses the watermark's key.
                if parcel.sent:
                    return Outcome(applied=False, uncertain=True)
                parcel.renew()

    def _bind_again(self, parcel: Parcel) -> None:
        try:
            self._bind()
        except StoreError as error:
            error.sent = parcel.sent
            raise

    def send(
        self,
        batch: Batch,
        version: str,
        *,
        must_exist: bool,
        refuse: bool = True,
        trim: bool = True,
    ) -> Outcome:
        """Send a batch once. Sending it again with the same number is always safe.

        Args:
            batch: made for the retention of this version.
            version: of meta:, or "" not to look.
            must_exist: the batch has been sent before, and its producer had been acknowledged
                before: without a watermark nobody can tell whether it was applied.
            refuse, trim: see write().

        Raises:
            RetentionChanged: made for another retention; nothing was written.
            StoreUnavailable: the answer is missing.
            StoreError: the server refused; nothing was written.
        """
        script, keys, args = self._request(
            batch, version, must_exist=must_exist, refuse=refuse, trim=trim
        )
        return outcome_of(batch, script.run(self.link, keys, args))

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
            self._producers.give_back(producer)

    def _request(
        self, batch: Batch, version: str, *, must_exist: bool, refuse: bool, trim: bool
    ) -> tuple[Script, list[str], list[str | int]]:
        """Return the script that applies a batch, its keys and its arguments."""
        keys = [self.keys.batch(batch.producer), self.keys.meta]
        args: list[str | int] = [
            batch.number,
            WATERMARK_SECONDS,
            f"{self.clock.wall():.6f}",
            version,
            int(must_exist),
            int(refuse),
            int(trim),
        ]
        for operation in batch.operations:
            keys += operation.keys
            args += (operation.code, len(operation.keys), len(operation.args), *operation.args)
        return apply_script(operation.code for operation in batch.operations), keys, args

    def _wait(self, attempt: int, started: float, error: Exception, within: float | None) -> None:
        """Wait before another attempt, or raise the error where there is no time left."""
        passed = self.clock.monotonic() - started
        pause = min(0.5, BACKOFF_SECONDS * 2 ** min(attempt, 10)) * _chance.uniform(0.5, 1.0)
        if within is not None:
            left = within - passed
            over, pause = left < BACKOFF_SECONDS, min(pause, left / 2)  # leaves some for the try
        else:
            over = attempt + 1 >= ATTEMPTS and passed >= self.timeout
        if over:
            raise error
        self.clock.sleep(pause)

    def _reconnect(self) -> None:
        if self._restarts:  # an embedded server that ended is started again
            self.link.close()
