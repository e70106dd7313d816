"""The run: take, send, compare, note; unit by unit, group by group, round by round.

A group is some units of one kind that are taken together. Its items go to TO as batches, one for
each partition at a time, with the same number: what is more than a batch takes further rounds of
the same group. A killed run leaves one group under way at most; the next run reads what was taken
once more, makes the same batches of it, and sends those that are not known to have arrived, under
their numbers. What had arrived is not applied again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from redmeter.keys import Keys
from redmeter.kinds.message import parse_name
from redmeter.migrating import reading
from redmeter.migrating.families import Content, Family
from redmeter.migrating.journal import Asked, Journal, gone
from redmeter.migrating.lost import find
from redmeter.migrating.reading import Parts
from redmeter.migrating.report import MigrationError, Report, Sum
from redmeter.migrating.sending import Batches, Sender
from redmeter.migrating.state import Group, State, arrived_in, first_of
from redmeter.migrating.walk import FAMILIES, Passed, Unit, Walk
from redmeter.store import Store
from redmeter.store.replies import Command, Reply, raised, scored
from redmeter.store.scripts import TIDY

#: Pause after each group, seconds: whoever else waits for FROM shall have its turn.
REST = 0.0003
#: Units of a group at most, and partitions of TO that a group is large enough for.
_UNITS, _SPREAD = 100, 8
#: Rounds of a run, while something is still written to FROM.
ROUNDS = 5


class Run:
    """One run of a move.

    Args:
        state: what is written down; see journal.py.
        progress: called after each group and at the end of all, with how many units are done, and
            of about how many.
        quit: asked after each group; once it says True, the run ends.
    """

    def __init__(
        self,
        source: Store,
        target: Store,
        journal: Journal,
        state: State,
        *,
        progress: Callable[[int, int], None] | None,
        quit: Callable[[], bool],  # noqa: A002
    ) -> None:
        self._source, self._target = source, target
        self._journal, self._state = journal, state
        self._progress, self._quit = progress, quit
        self._clock = source.clock
        self._part = source.parts[0]
        self.report = Report(resumed=bool(state.sums) or state.group is not None)
        fill_in(self.report, state.sums)
        self.report.left |= state.left
        self._sender = Sender(target, journal, state.id, self.report)
        self._sender.acknowledged.update(state.sums.get("acknowledged", ()))
        self._sender.arrived.update(arrived_in(state))
        state.sums["first"] = first_of(state)
        #: Units of which nothing but other programs' fields is left, and how many these are.
        self._foreign: dict[tuple[str, str], int] = {}

    # Rounds

    def run(self) -> Report:
        """Move all there is; see __init__.migrate()."""
        # Of what was left, somebody may have seen to some.
        self.report.left = self._there(self.report.left)
        report, walk = self.report, Walk(self._source, self._target.kept)
        self._recover()
        if self._state.group is not None:
            self._go_on(self._state.group)
            self._state.group = None
        total, done = walk.total(), 0
        for number in range(ROUNDS):
            report.unkept.clear()
            took = False
            for family, units in self._groups(walk):
                took = self._move(family, units) or took
                report.stragglers += len(units) if number else 0
                done += sum(len(unit.fields) or 1 for unit in units if family.listed)
                self._show(total if number else done + report.passed_by(), total)
                if self._quit():
                    return report
                self._clock.sleep(REST)
            if not took and not self._recover():
                self._tidy()
                report.finished = True
                self._show(total, total)
                break
        return report

    def _show(self, done: int, total: int) -> None:
        # What comes up meanwhile is no part of it.
        if self._progress is not None:
            self._progress(min(done, total), total)

    def _groups(self, walk: Walk) -> Iterator[tuple[Family, list[Unit]]]:
        """Yield what is taken together."""
        waiting: dict[Family, list[Unit]] = {}
        spread = min(len(self._target.parts), _SPREAD)
        for page in walk.pages():
            self._journal.hold_on()
            for unit in page:
                if isinstance(unit, Passed):
                    self._pass(unit)
                elif unit.size > self._foreign.get((unit.family.name, unit.name), 0):
                    units = waiting.setdefault(unit.family, [])
                    size = sum(each.size for each in units) + unit.size
                    most = unit.family.limit * spread
                    if units and (size > most or len(units) == _UNITS or unit.fields):
                        yield unit.family, waiting.pop(unit.family)
                        units = waiting.setdefault(unit.family, [])
                    if unit not in units:
                        units.append(unit)
        yield from waiting.items()

    def _pass(self, passed: Passed) -> None:
        family = passed.family
        if passed.why:
            self.report.leave_unkept(family.name, family.precision(passed.name))
        else:
            self.report.leave(family.keys(self._part.keys, passed.name)[0])

    def _tidy(self) -> None:
        """Remove those entries from FROM's indexes of which nothing is left there.

        Loggers of which all was taken, and series that expired before any cleaner came by.
        """
        keys = self._part.keys
        for family in map(FAMILIES.__getitem__, ("counters", "gauges", "histograms")):
            self._tidy_index(family.index(keys), partial(_series_keys, keys, family))
        self._tidy_index(keys.messages, partial(_logger_keys, keys))

    def _tidy_index(self, index: str, keys_of: Callable[[bytes], Sequence[str]]) -> None:
        cursor = b"0"
        while True:
            cursor, page = raised(self._ask([("ZSCAN", index, cursor, "COUNT", "500")])[0])
            members = [member for member, _ in scored(page) if keys_of(member)]
            for some in _pages(members, 100):
                named = [index, *(key for member in some for key in keys_of(member))]
                raised(TIDY.run(Asked(self._source), named, some))
            if int(cursor) == 0:
                return

    # Groups

    def _move(self, family: Family, units: list[Unit]) -> bool:
        """Move units; tell whether there was anything to move."""
        named = [(unit.name, unit.size) for unit in units]
        group = Group(family.name, self._state.number, named, since=self._clock.wall())
        moved = self._journal.moved_keys(group)
        small = sum(unit.size for unit in units) <= reading.AT_ONCE
        reads = [c for keys in moved for c in reading.whole(family.shapes, keys)] if small else []
        replies = self._journal.take(group, units, reads)
        if small:
            each = _pages(replies, len(family.shapes))
            parts = [reading.parts_of(family.shapes, some) for some in each]
        else:
            parts = self._read(family, moved)
        return self._send_group(group, parts)

    def _go_on(self, group: Group) -> None:
        """Go on with what an earlier run had taken."""
        family = FAMILIES[group.family]
        self._send_group(group, self._read(family, self._journal.moved_keys(group)), again=True)

    # What TO has lost

    def _recover(self) -> bool:
        """Send again what TO has lost since it said that it stored it; tell whether it had."""
        had, state = self._sender.arrived, self._state
        has = self._sender.behind(had)
        lost = find(self._target, self._journal, state, had, has, self._clock.wall())
        for at in lost.forgotten:
            del had[at]
        report = Report()
        sender = Sender(self._target, self._journal, state.id, report)
        for group, last in lost.groups:
            self._send_again(sender, group, last, lost.has)
        # Less than it was where all of it is too old by now.
        had.update({at: max(n, sender.arrived.get(at, 0)) for at, (n, _) in lost.parts.items()})
        self.report.again += report.total().stored
        if has:
            self._journal.note(self._written())
        return bool(lost.parts)

    def _send_again(
        self, sender: Sender, group: Group, last: int, has: Callable[[int, int], bool]
    ) -> None:
        """Send those batches of a group that TO has lost."""
        numbers = range(group.number, last + 1)
        if all(has(at, number) for at in self._sender.arrived for number in numbers):
            return
        family, moved = FAMILIES[group.family], self._journal.moved_keys(group)
        contents = []
        for (name, size), keys, parts in zip(
            group.units, moved, self._read(family, moved), strict=True
        ):
            if size and not parts.strange and not any(parts.held):
                why = f"and its key {keys[0]} is gone from FROM"
                raise gone(self._target, self._journal.key, (group.number, last), why)
            contents.append(family.content(name, parts.held, sender.now))
        for number, batches in zip(numbers, self._rounds(family, contents), strict=False):
            some = {at: items for at, items in batches.items() if not has(at, number)}
            found = sender.send(family, number, some, since=None)
            self._keep(group, {family.unit(item) for item in found.missing})
            if self._left(group):
                self._journal.keep(group, self._left(group))
            self._raise(group, found.wrong)

    def _raise(self, group: Group, wrong: Sequence[str]) -> None:
        if wrong:
            raise MigrationError(
                f"{self._target.location} has not got what it said that it stored: "
                f"{'; '.join(wrong[:3])}. What was taken stays in FROM, see its keys "
                f"{self._journal.moved_keys(group)[0][0]} and following"
            )

    def _read(self, family: Family, moved: Sequence[Sequence[str]]) -> list[Parts]:
        return [reading.stepwise(self._ask, family.shapes, keys) for keys in moved]

    def _ask(self, commands: Sequence[Command]) -> list[Reply]:
        """Ask FROM one of many things, and hold the lock meanwhile."""
        self._journal.hold_on()
        return self._source.ask(commands)

    def _send_group(self, group: Group, parts: Sequence[Parts], *, again: bool = False) -> bool:
        """Send a group, from the round on that is not known to have arrived.

        Args:
            parts: what the keys of each unit hold.
            again: whether that round may have been sent.
        """
        family, report = FAMILIES[group.family], self.report
        contents = []
        for (name, _), (held, strange) in zip(group.units, parts, strict=True):
            content = family.content(name, held, self._sender.now)
            contents.append(content._replace(unread=content.unread + strange))
        # What had expired when it was taken is not missed later.
        group.units = [
            (name, size if strange or any(held) else 0)
            for (name, size), (held, strange) in zip(group.units, parts, strict=True)
        ]
        rounds = self._rounds(family, contents)
        wrong: list[str] = []
        for number in range(group.done, len(rounds)):
            since = group.since if again else None
            found = self._sender.send(family, group.number + number, rounds[number], since=since)
            if again and found.fresh:
                group.since = self._clock.wall()  # its watermark's day begins now
            again = False
            self._keep(group, {family.unit(item) for item in found.missing})
            wrong += found.wrong
            group.done = number + 1
            if group.done < len(rounds):
                self._journal.progress(group, self._written(), self._left(group))
        report.pieces += sum(bool(each.items or each.unread) for each in contents)
        for content in contents:
            if content.unread or content.aged:
                beside = Sum(taken=content.aged, aged=content.aged, unread=content.unread)
                report.sum_of(family.name, 0).add(beside)
        self._put_back(family, group, contents)
        if wrong:
            self._keep(group, {name for name, _ in group.units})
        self._state.number = group.number + max(len(rounds), 1)
        self._journal.settle(group, self._state.number, self._written(), self._left(group))
        self._raise(group, wrong)
        return any(content.items for content in contents)

    def _keep(self, group: Group, names: set[str]) -> None:
        """Note that what was taken of some units stays in FROM."""
        kept: dict[str, str] = {}
        for (name, _), keys in zip(group.units, self._journal.moved_keys(group), strict=True):
            if name in names:
                kept |= dict.fromkeys(keys, f"{group.family} {name}".strip())
        self.report.left |= self._there(kept)

    def _there(self, left: Mapping[str, str]) -> dict[str, str]:
        """Return those of some keys in FROM that are there."""
        told: dict[str, str] = {}
        for page in _pages([*left], reading.STEP):
            there = self._ask([("EXISTS", key) for key in page])
            told |= {key: left[key] for key, one in zip(page, there, strict=True) if raised(one)}
        return told

    def _left(self, group: Group) -> dict[str, str]:
        """Return what is left of a group."""
        left, keys = self.report.left, self._journal.moved_keys(group)
        return {key: left[key] for some in keys for key in some if key in left}

    def _rounds(self, family: Family, contents: Sequence[Content]) -> list[Batches]:
        """Divide items into batches. The same each time for the same content."""
        by_part: Batches = {}
        for content in contents:
            for item in content.items:
                text = family.place(item)
                at = self._target.number_of(text) if text else 0
                by_part.setdefault(at, []).append(item)
        rounds: list[Batches] = []
        for at, items in by_part.items():
            for number, some in enumerate(_pages(items, family.limit)):
                if number == len(rounds):
                    rounds.append({})
                rounds[number][at] = list(some)
        return rounds

    def _put_back(self, family: Family, group: Group, contents: Sequence[Content]) -> None:
        commands: list[Command] = []
        for (name, _), content in zip(group.units, contents, strict=True):
            keys = family.keys(self._part.keys, name)
            commands += [("HSETNX", keys[at], *field) for at, *field in content.foreign]
            if content.foreign:
                self._foreign[family.name, name] = len(content.foreign)
                self.report.leave(keys[0])
        for page in _pages(commands, reading.STEP):
            for reply in self._ask(page):
                raised(reply)

    def _written(self) -> dict[str, Any]:
        """Return what is written down of the report."""
        report = self.report
        sums = {
            kind: {str(precision): asdict(one) for precision, one in some.items()}
            for kind, some in report.sums.items()
        }
        numbers = {
            "pieces": report.pieces,
            "batches": report.batches,
            "first": first_of(self._state),
        }
        sender = self._sender
        told = {"acknowledged": sorted(sender.acknowledged), "arrived": sender.arrived}
        return {"sums": sums, **numbers, **told}


def _series_keys(keys: Keys, family: Family, member: bytes) -> Sequence[str]:
    """Return the keys that an entry of an index stands for; none where it is no entry."""
    name = family.parse(member.decode(errors="replace"))
    same = name is not None and name.encode() == member
    return family.keys(keys, name) if name is not None and same else ()


def _logger_keys(keys: Keys, member: bytes) -> Sequence[str]:
    source = parse_name(member.decode(errors="replace"))
    key, _, last, *_ = keys.common(*source)
    return key, last, keys.recent(*source), keys.patterns(*source)


def _pages(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]


def fill_in(report: Report, written: Mapping[str, Any]) -> None:
    """Take over what an earlier run had written down."""
    for kind, some in written.get("sums", {}).items():
        for precision, values in some.items():
            report.sum_of(kind, int(precision)).add(Sum(**values))
    report.earlier = report.total()
    report.pieces = report.earlier_pieces = written.get("pieces", 0)
    report.batches += written.get("batches", 0)
