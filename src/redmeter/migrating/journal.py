"""What is written down in FROM while it is moved: who moves it, and how far that has come.

    OWN moving:        hash
        id             the producer of all batches that go to TO, 128 random bits
        target         where TO is, for people
        number         the number of the next batch
        group          what is taken and has not arrived yet, JSON; the only thing that may be in
                       doubt after a run was killed
        sums           what was told so far, JSON
        complete       1 once a round found nothing more
        left           how many keys of what was taken stay, since TO has not stored all of it
        left:ID:N      which these are of batch N, JSON: key, and kind and name
        unkept         series that the last round passed by, since TO does not keep them, JSON
    OWN moving:lock    string, the token of the run that is moving; for LOCK seconds at a time
    OWN moving:N:I:J   what was taken with batch N, under a new name: unit I, key J; once it has
                       arrived, for KEPT seconds
    OWN moving:N       what had arrived with batch N, the last of its group, for as long: id, group

All steps go through two scripts, take.lua and settle.lua, which do nothing for a run that has lost
the lock. So a run that stood still for a minute harms nothing when it wakes up.

In TO, `moved:` has the id, so that no other store is taken for it.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from redmeter.errors import InvalidSetting, StoreRefused
from redmeter.migrating.report import MigrationError
from redmeter.migrating.state import (
    ROUNDS,
    UNREADABLE,
    Group,
    State,
    arrived_in,
    first_of,
    state_of,
    unreadable,
)
from redmeter.migrating.walk import FAMILIES, Unit
from redmeter.store import Store
from redmeter.store.replies import Command, Reply, mapped, raised
from redmeter.store.scripts import SETTLE, TAKE

#: How long a run holds the lock after its last step, seconds.
LOCK = 15.0
#: How long what has arrived is kept in FROM all the same, seconds; and what is written down.
KEPT = 86400
#: How long TO knows who moved to it, seconds.
KNOWN = 90 * 86400
#: What is taken out of FROM in less than that is as good as gone, seconds.
_SOON = 60
#: Pause between two looks at somebody else's lock, seconds.
_LOOK = 0.5
#: Groups that are asked for at once.
_PAGE = 500


class Journal:
    """Reads and writes it, for one run.

    Args:
        source: the store that is moved.
    """

    def __init__(self, source: Store) -> None:
        self._store = source
        self._part = source.parts[0]
        self._token = os.urandom(16).hex()
        keys = self._part.keys
        self._moving = keys.moving
        self._lock = f"{keys.moving}lock"
        #: When it was renewed last, by the monotonic clock; and the move's id.
        self._renewed, self._id = 0.0, ""

    # The lock

    def begin(
        self,
        *,
        waiting: Callable[[float], object],
        quit: Callable[[], bool],  # noqa: A002
    ) -> State | None:
        """Take the lock, and return what is written down; None where it was not waited for.

        Args:
            waiting: called once where the lock is another's, with how long that may take, seconds.
            quit: asked while one waits for it; once it says True, one does not any more.

        Raises:
            MigrationError: another run moves this store.
            StoreError: the server cannot be reached or refuses.
        """
        left: float | None = None
        clock = self._store.clock
        while True:
            if self._get_lock():
                break
            found = int(raised(self._store.ask([("PTTL", self._lock)])[0]))
            # Who is at work renews it; that of a run that was killed runs out.
            if left is not None and found > left - _LOOK * 500:
                raise MigrationError(
                    f"{self._store.location} is being moved by another run of redmeter migrate: "
                    "let that one end"
                )
            if left is None:
                waiting(LOCK)
            left = found
            if quit():
                return None
            clock.sleep(_LOOK)
        return self.state()

    def _get_lock(self) -> bool:
        words = (self._lock, self._token, "NX", "PX", str(int(LOCK * 1000)))
        return bool(raised(self._store.link.exchange([("SET", *words)])[0]))

    def release(self) -> None:
        """Give the lock back, and note nothing."""
        self._settle([], {}, release=True)

    def end(
        self, state: State, *, complete: bool, left: int, unkept: Mapping[str, Mapping[int, int]]
    ) -> None:
        """Give the lock back, and note how far it has come.

        Args:
            state: as the last step left it.
            complete: whether the last round found nothing more.
            left: how many keys of what was taken stay; then what is written down stays too.
            unkept: kind -> precision -> series that were passed by, since TO does not keep them.

        Raises:
            MigrationError: another run has gone on meanwhile.
            StoreError: the server cannot be reached or refuses.
        """
        keys = [self._moving] if complete and not left else []
        fields = {"complete": str(int(complete)), "left": str(left)}
        fields["unkept"] = json.dumps(unkept)
        reply = self._try_settle(keys, fields, release=True)
        # Where it is nobody's, it had run out, or a first try gave it back, whose answer was lost.
        if reply == 0 and self._get_lock():
            found = self.state()
            if (found.id, found.number, found.group) == (state.id, state.number, None):
                reply = self._try_settle(keys, fields, release=True)
            else:
                self.release()
        self._check(reply)

    def state(self) -> State:
        """Return what is written down.

        Raises:
            MigrationError: another program has written there.
            StoreError: the server cannot be reached or refuses.
        """
        return state_of(mapped(raised(self._store.ask([("HGETALL", self._moving)])[0])))

    @property
    def key(self) -> str:
        """Where it is written down."""
        return self._moving

    # Steps

    def start(self, state: State) -> None:
        """Write down that a move begins or goes on."""
        raised(self._store.ask([("PERSIST", self._moving)])[0])
        fields = {"id": state.id, "target": state.target}
        fields |= {"number": str(state.number), "sums": json.dumps(state.sums), "complete": "0"}
        self._id = state.id
        self._settle([], fields)

    def moved_keys(self, group: Group) -> list[tuple[str, ...]]:
        """Return what the keys of each unit of a group are called since they were taken."""
        shapes = FAMILIES[group.family].shapes
        return [
            tuple(f"{self._moving}{group.number}:{i}:{j}" for j in range(len(shapes)))
            for i in range(len(group.units))
        ]

    def take(self, group: Group, units: Sequence[Unit], reads: Sequence[Command]) -> list[Reply]:
        """Take the units of a group, and ask something right behind that.

        Returns:
            The replies to what was asked.

        Raises:
            MigrationError: the lock is another's.
            StoreError: the server cannot be reached or refuses. Then it may have been taken.
        """
        family, keys = FAMILIES[group.family], self._part.keys
        moved = self.moved_keys(group)
        named: list[str] = []
        args: list[str | bytes] = [self._token, str(int(LOCK * 1000)), group.text()]
        args.append(str(group.number))
        if units[0].fields:
            named += [*family.keys(keys, ""), *moved[0]]
            args += ["fields", *units[0].fields]
        else:
            for unit, others in zip(units, moved, strict=True):
                # A unit may have fewer keys than its kind at most: see Keys.hourly_parts().
                for pair in zip(family.keys(keys, unit.name), others, strict=False):
                    named += pair
            args.append("keys")
            if family.index(keys):
                args += [unit.name for unit in units]
        whole = [self._lock, self._moving, family.index(keys) or self._moving, *named]
        replies = self._store.ask([TAKE.command(whole, args), *reads])
        if isinstance(replies[0], StoreRefused) and replies[0].code == "NOSCRIPT":
            replies = self._store.ask([TAKE.command(whole, args, whole=True), *reads])
        self._check(replies[0])
        self._renewed = self._store.clock.monotonic()
        return replies[1:]

    def progress(self, group: Group, sums: dict[str, Any], left: Mapping[str, str]) -> None:
        """Note that another round of a group has arrived; see settle()."""
        fields = {"group": group.text(), "sums": json.dumps(sums)}
        self._settle([], fields | self._left(group, left), numbers=(group.number, ""))

    def settle(
        self, group: Group, number: int, sums: dict[str, Any], left: Mapping[str, str]
    ) -> None:
        """Note that a group has arrived.

        Args:
            number: of the next batch.
            left: the keys of it that stay -> kind and name.
        """
        moved = [key for some in self.moved_keys(group) for key in some if key not in left]
        moved.insert(0, f"{self._moving}{number - 1}")
        fields = {"number": str(number), "sums": json.dumps(sums)}
        fields |= self._left(group, left) | {"group": group.text()}
        self._settle(moved, fields, removed=["group"], numbers=(group.number, number))

    def arrived(self, id: str, first: int, last: int) -> Iterator[tuple[Group, int]]:  # noqa: A002
        """Yield groups of a move that have arrived and are kept still, each with its last number.

        Args:
            first, last: numbers of batches; groups that end before or after are left out.
        """
        for at in range(first, last + 1, _PAGE):
            numbers = range(at, min(at + _PAGE, last + 1))
            keys = [f"{self._moving}{number}" for number in numbers]
            asked: list[Command] = [(word, key) for key in keys for word in ("GET", "PTTL")]
            replies = [raised(reply) for reply in self._store.ask(asked)]
            for number, text, lives in zip(numbers, replies[::2], replies[1::2], strict=True):
                whose, _, group = (text or b"").partition(b" ")
                if whose == id.encode() and lives > _SOON * 1000:
                    with suppress(*UNREADABLE):  # another program's
                        found = Group.read(group)
                        if number - ROUNDS < found.number <= number:
                            yield found, number

    def note(self, sums: dict[str, Any]) -> None:
        """Note what was told so far."""
        self._settle([], {"sums": json.dumps(sums)})

    def keep(self, group: Group, left: Mapping[str, str]) -> None:
        """Keep what had arrived, and TO has lost and not stored again.

        Args:
            left: the keys of it that stay -> kind and name.
        """
        for reply in self._store.ask([("PERSIST", key) for key in left]):
            raised(reply)
        self._settle([], self._left(group, left))

    def _left(self, group: Group, left: Mapping[str, str]) -> dict[str, str]:
        # In a field of its own: with all the others it would be written again by each group.
        return {f"left:{self._id}:{group.number}": json.dumps(left)} if left else {}

    def hold(self) -> None:
        """Renew the lock."""
        self._settle([], {})

    def hold_on(self) -> None:
        """Renew the lock where much of its time has passed, for who takes no other step."""
        if self._store.clock.monotonic() - self._renewed > LOCK / 3:
            self.hold()

    def _settle(
        self,
        keys: Sequence[str],
        fields: Mapping[str, str],
        *,
        removed: Sequence[str] = (),
        numbers: tuple[int | str, int | str] = ("", ""),
        release: bool = False,
    ) -> None:
        self._check(self._try_settle(keys, fields, removed, numbers, release=release))
        self._renewed = self._store.clock.monotonic()

    def _try_settle(
        self,
        keys: Sequence[str],
        fields: Mapping[str, str],
        removed: Sequence[str] = (),
        numbers: tuple[int | str, int | str] = ("", ""),
        *,
        release: bool = False,
    ) -> Reply:
        lock = 0 if release else int(LOCK * 1000)
        args = [self._token, *map(str, (lock, KEPT, *numbers, len(fields)))]
        for name, value in fields.items():
            args += (name, value)
        named = [self._lock, self._moving, *keys]
        return SETTLE.run(Asked(self._store), named, [*args, *removed])

    def _check(self, reply: Reply) -> None:
        if raised(reply) == -1:
            raise _gone_back(self._store)
        if not reply:
            raise MigrationError(
                f"another run of redmeter migrate has gone on with {self._store.location}, "
                f"since this one stood still for {LOCK:.0f} s: let that one end"
            )


class Asked:
    """Exchanges commands that may be repeated: see Store.ask()."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self, commands: Sequence[Command]) -> list[Reply]:
        return self._store.ask(commands)


def known(source: Store, target: Store, found: State) -> bool:
    """Tell whether TO knows of the move that is written down; nothing is changed.

    Raises:
        MigrationError: FROM is on its way to another store than TO, or has lost what it wrote last.
        StoreError: a server cannot be reached or refuses.
    """
    part = target.parts[0]
    if found.id and _on(target, [("HEXISTS", part.keys.moved, found.id)])[0]:
        if any(at >= len(target.parts) for at in arrived_in(found)):
            raise unreadable()
        last = max(last_numbers(target, found.id))
        # Read again: where one only looks, a run may be at work.
        if last > _last_sent(found) and last > _last_sent(Journal(source).state()):
            raise _gone_back(source)
        return True
    begun = found.id and (found.group is not None or found.number > 1) and not found.complete
    if found.target == _place(target):
        journal, first, last = Journal(source), first_of(found), _last_arrived(found)
        if found.sums and (begun or any(journal.arrived(found.id, last, last))):
            raise gone(target, journal.key, (first, last), "with the note of what it had")
        if found.id and not found.complete:
            return True  # nothing had arrived; or somebody was told so, and goes on without
    if begun:
        raise MigrationError(
            f"{source.location} is on its way to {found.target}, and {target.location} has nothing "
            "of that: go on with the same TO"
        )
    return False


def agreed(source: Store, target: Store, found: State) -> State:
    """Return what a run goes by, given what is written down; TO knows of it from now on.

    Raises:
        InvalidSetting: TO is FROM itself; nothing was changed.
        MigrationError, StoreError: see known().
    """
    if known(source, target, found):
        _introduce(source, target, found)
        return found
    part = target.parts[0]
    # Numbers go on, since what was taken under earlier ones may be there still.
    state = State(id=os.urandom(16).hex(), target=_place(target), number=found.number)
    _introduce(source, target, state)
    (same,) = source.ask([("HEXISTS", source.parts[0].keys.moved, state.id)])
    if raised(same):
        _on(target, [("HDEL", part.keys.moved, state.id)])
        raise same_store()
    return state


def _introduce(source: Store, target: Store, state: State) -> None:
    """Have TO know of a move."""
    key = target.parts[0].keys.moved
    said = json.dumps({"from": _place(source), "since": int(source.clock.wall())})
    _on(target, [("HSET", key, state.id, said), ("EXPIRE", key, str(KNOWN))])


def same_store() -> InvalidSetting:
    """Return the error that two names stand for one store."""
    return InvalidSetting("TO", "is the same as FROM: name another server or prefix")


def _last_arrived(found: State) -> int:
    """Return the highest number that has arrived, by what is written down."""
    return found.number - 1 + (found.group.done if found.group else 0)


def _last_sent(found: State) -> int:
    """Return the highest number that may have been sent, by what is written down."""
    return _last_arrived(found) + (found.group is not None)


def last_numbers(target: Store, producer: str) -> list[int]:
    """Return the highest number that each partition of TO has stored of a producer."""
    asked: list[Command] = [("GET", part.keys.batch(producer)) for part in target.parts]
    replies = target.parts[0].link.collect(asked)
    return [number_in(raised(reply)) for reply in replies]


def number_in(watermark: bytes | None) -> int:
    """Return the number that a watermark says; 0 where there is none, or another program's."""
    number = (watermark or b"").split(b" ")[0]
    return int(number) if number.isdigit() and len(number) < 20 else 0


def _gone_back(source: Store) -> MigrationError:
    return MigrationError(
        f"{source.location} has lost what it wrote last, by a failover or a restart: what was "
        "moved then lies in both stores now, and would be counted twice. To go on all the same, "
        f"delete its key {source.parts[0].keys.moving}"
    )


def gone(target: Store, key: str, numbers: tuple[int, int], why: str) -> MigrationError:
    """Return the error that TO has lost what cannot be sent again.

    Args:
        key: where it is written down.
        numbers: of its batches, from and to.
        why: in words.
    """
    first, last = numbers
    what = f"batch {first:,}" if first == last else f"batches {first:,} to {last:,}"
    return MigrationError(
        f"{target.location} has lost {what} of this move, which it had said that it stored, {why}. "
        "Bring back what it had then, from a file or a replica that has it, and run it again; to "
        f"go on without that, delete the field sums of FROM's key {key}"
    )


def _place(store: Store) -> str:
    return f"{store.location}, prefix {store.keys.prefix!r}"


def _on(target: Store, commands: Sequence[Command]) -> list[Reply]:
    """Exchange commands on keys of the first partition."""
    return [raised(reply) for reply in target.parts[0].link.collect(commands)]
