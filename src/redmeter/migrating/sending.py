"""Batches on their way to TO, what became of them, and whether it is there.

Before a batch is sent, TO is asked what it holds of the very same slices, and again afterwards: it
must have that much more. What others write meanwhile makes it more still, never less. What TO
answers decides what counts as stored; what is found is the second number, told beside it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from redmeter.errors import StoreError, StoreRefused, StoreUnavailable
from redmeter.keys import Kept, Keys, slice_start
from redmeter.migrating.families import Family, Item
from redmeter.migrating.journal import Journal, number_in
from redmeter.migrating.report import MigrationError, Report
from redmeter.model import Operations, Outcome
from redmeter.store import Store
from redmeter.store.parcel import Parcel
from redmeter.store.partition import WATERMARK_SECONDS
from redmeter.store.producers import Producer
from redmeter.store.replies import Command, Reply
from redmeter.store.steps import drive_all

#: How long TO may be away before a run ends, seconds; and the pause between two tries.
PATIENCE, _PAUSE = 15.0, 0.25
#: What passes by itself; nothing was written.
_PASSING = {"LOADING", "READONLY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "BUSY", "OOM"}
#: Slices that go out within so many seconds are not looked for, since they may be trimmed.
_LEAVING = 5.0

#: Partition of TO -> items of one batch.
Batches = dict[int, list[Item]]


class Sent(NamedTuple):
    """What became of some batches."""

    #: What TO should have and has not, or may not have: refused, or uncertain.
    missing: list[Item]
    #: What is not in TO although it was stored, in words.
    wrong: list[str]
    #: Whether any of it was applied now, and not by an earlier try.
    fresh: bool


class Sender:
    """Sends batches of one producer.

    Args:
        id: the producer's.
        report: takes what became of all.
    """

    def __init__(self, target: Store, journal: Journal, id: str, report: Report) -> None:  # noqa: A002
        self._target, self._journal = target, journal
        self._clock = target.clock
        self._id = id
        self._report = report
        self._producers: dict[int, Producer] = {}
        #: Partitions of TO that have ever answered to this producer.
        self.acknowledged: set[int] = set()
        #: Partition of TO -> highest number of which it has said that it has it.
        self.arrived: dict[int, int] = {}
        view, _ = target.read()
        self._began = min(view.now, self._clock.wall()), self._clock.monotonic()

    @property
    def now(self) -> float:
        """The earlier of TO's clock and this machine's, Unix seconds."""
        now, at = self._began
        return now + self._clock.monotonic() - at

    def send(self, family: Family, number: int, batches: Batches, *, since: float | None) -> Sent:
        """Send one batch to each of some partitions, and see what became of it.

        Args:
            number: of the batches.
            since: when they were sent first, where that may have been before, Unix seconds.
        """
        # A second for clocks: what is left out here has gone for TO too.
        gone = self._gone(family, self.now - 1.0)
        live = {at: _after(items, gone) for at, items in batches.items()}
        live = {at: items for at, items in live.items() if items}
        parts = self._target.parts
        looks = {at: family.look(parts[at].keys, items) for at, items in live.items()}
        before = self._look(looks) if since is None else {at: [] for at in live}
        outcomes = self._apply(family, number, live, since)
        after = self._look(looks)
        leaving = self._gone(family, self.now + _LEAVING)
        missing: list[Item] = []
        wrong: list[str] = []
        for at, items in batches.items():
            self._age(family, items, live.get(at, ()))
        for at, items in live.items():
            keys, outcome = parts[at].keys, outcomes[at]
            held = family.held(keys, items, before[at], after[at])
            if since is not None:
                held = [min(n, item.events) for n, item in zip(held, items, strict=False)]
            stored, lacking = self._note(family, keys, items, outcome)
            missing += lacking
            if held:
                wrong += self._compare(family, items, held, stored, leaving)
        fresh = any(each.applied and not each.uncertain for each in outcomes.values())
        return Sent(missing, wrong, fresh)

    # On its way

    def _apply(
        self, family: Family, number: int, batches: Batches, since: float | None
    ) -> dict[int, Outcome]:
        parts = self._target.parts
        parcels: dict[int, Parcel] = {}
        for at, items in batches.items():
            producer = self._producers.setdefault(at, Producer())
            producer.id, producer.number = self._id, number - 1
            parcel = Parcel(producer, _builder(family, parts[at].keys, items))
            if since is not None:
                old = self._clock.wall() - since > WATERMARK_SECONDS / 2
                producer.acknowledged = old or at in self.acknowledged
                parcel.may_be_applied(self._clock)
            parcels[at] = parcel
        outcomes: dict[int, Outcome] = {}
        until = self._clock.monotonic() + PATIENCE
        while left := [at for at in parcels if at not in outcomes]:
            # Before each try: a number above would hide what it has lost.
            if self.behind(left):
                raise MigrationError(
                    f"{self._target.location} has lost what it had said that it stored, by a "
                    "failover or a restart: the same command sends it again, and goes on"
                )
            many = {at: parts[at].sending(parcels[at], refuse=family.refuse) for at in left}
            for at, result in drive_all(parts[0].link, many).items():
                if isinstance(result, Outcome):
                    outcomes[at] = result
                    # Another one's where another program uses the watermark's key.
                    if not result.uncertain and parcels[at].producer.id == self._id:
                        self.arrived[at] = max(self.arrived.get(at, 0), number)
                else:
                    problem = result
            if len(outcomes) < len(parcels):
                self._wait(problem, until)
        self.acknowledged.update(outcomes)
        self._report.batches += len(outcomes)
        return outcomes

    def behind(self, parts: Iterable[int]) -> dict[int, int]:
        """Return partition -> its highest number, where TO has less than it had said.

        Args:
            parts: which ones are looked at.
        """
        asked = [at for at in parts if at in self.arrived]
        looks = {at: [("GET", self._target.parts[at].keys.batch(self._id))] for at in asked}
        has = {at: number_in(reply) for at, (reply,) in self._look(looks).items()}
        return {at: number for at, number in has.items() if number < self.arrived[at]}

    def _look(self, looks: Mapping[int, Sequence[Command]]) -> dict[int, list[Reply]]:
        """Ask TO what it holds."""
        asked = [command for commands in looks.values() for command in commands]
        until = self._clock.monotonic() + PATIENCE
        while True:
            replies = self._target.parts[0].link.collect(asked) if asked else []
            problem = next((r for r in replies if _is_trouble(r)), None)
            if problem is None:
                break
            self._wait(problem, until)
        them = iter(zip(asked, replies, strict=True))
        return {
            at: [_told(*next(them)) for _ in range(len(commands))] for at, commands in looks.items()
        }

    def _wait(self, error: StoreError, until: float) -> None:
        """Wait before another try, or raise the error."""
        passing = isinstance(error, StoreUnavailable) or (
            isinstance(error, StoreRefused) and error.code in _PASSING
        )
        if not passing or self._clock.monotonic() > until:
            raise error
        self._target.parts[0].link.recover()
        self._journal.hold()
        self._clock.sleep(_PAUSE)

    # What became of it

    def _gone(self, family: Family, now: float) -> dict[int, int] | None:
        """Return precision -> the newest start that TO keeps no more; None where nothing ages."""
        retention = family.kept(self._target.kept)
        if retention is None:
            return None
        return {p: slice_start(now, p) - samples * p for p, samples in retention.items()}

    def _age(self, family: Family, items: Sequence[Item], live: Sequence[Item]) -> None:
        """Note what was not sent."""
        if len(items) == len(live):
            return
        sent = set(map(id, live))
        for item in items:
            if id(item) not in sent:
                whole = self._report.sum_of(family.name, item.precision)
                whole.taken += item.events
                whole.aged += item.events

    def _note(
        self, family: Family, keys: Keys, items: Sequence[Item], outcome: Outcome
    ) -> tuple[set[int], list[Item]]:
        """Note what became of what was sent.

        Returns:
            The numbers of the items that were stored, and those that should be stored and are not.
        """
        reasons = {(r.key, r.field): r.reason for r in outcome.rejections if r.reason != "unkept"}
        stored: set[int] = set()
        missing: list[Item] = []
        for number, item in enumerate(items):
            whole = self._report.sum_of(family.name, item.precision)
            whole.taken += item.events
            reason = "uncertain" if outcome.uncertain else ""
            if reasons:
                told = family.told(keys, item)
                reason = next((reasons[one] for one in told if one in reasons), reason)
            if not reason:
                whole.stored += item.events
                stored.add(number)
            elif reason == "aged":
                whole.aged += item.events
            elif reason == "future":
                whole.future += item.events
            else:
                missing.append(item)
                if reason == "uncertain":
                    whole.uncertain += item.events
                else:
                    whole.refused += item.events
        return stored, missing

    def _compare(
        self,
        family: Family,
        items: Sequence[Item],
        held: Sequence[int],
        stored: set[int],
        leaving: Mapping[int, int] | None,
    ) -> list[str]:
        """Compare what TO holds more of with what it stored; return in words what is missing."""
        wrong = []
        for number in stored:
            item, more = items[number], held[number]
            if leaving is not None and item.start <= leaving.get(item.precision, item.start):
                continue
            whole = self._report.sum_of(family.name, item.precision)
            whole.looked_for += item.events
            whole.found += more
            if more < item.events:
                wrong.append(
                    f"{family.name} {item.name!a} at {item.precision} s, slice {item.start}: "
                    f"{item.events:,} stored, {more:,} found"
                )
        return wrong


def _after(items: Sequence[Item], gone: Mapping[int, int] | None) -> list[Item]:
    """Return the items that are kept."""
    if gone is None:
        return list(items)
    return [item for item in items if item.start > gone.get(item.precision, item.start)]


def _builder(family: Family, keys: Keys, items: Sequence[Item]) -> Callable[[Kept], Operations]:
    return lambda kept: family.operations(keys, kept, items)


def _is_trouble(reply: Reply) -> bool:
    return isinstance(reply, StoreError) and getattr(reply, "code", "") != "WRONGTYPE"


def _told(command: Command, reply: Reply) -> Reply:
    """Return what GET or HMGET answered; nothing where another type lies there."""
    if not isinstance(reply, StoreError):
        return reply
    return None if command[0] == "GET" else [None] * (len(command) - 2)
