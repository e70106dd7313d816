"""Reads of an index: its entries, and with a join also what their keys hold, in one round trip.

lua/join.lua has the script of a join; this module makes its arguments and parses its reply. Entries
without their keys are listed in pages, so the server is busy for a few milliseconds at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from redmeter.errors import InvalidName, StoreError
from redmeter.names import SeriesName, parse_name
from redmeter.reading.foreign_keys import there
from redmeter.reading.windows import Coverage
from redmeter.store import indexes
from redmeter.store.query import Query, Read
from redmeter.store.servers.replies import Reply, is_misplaced, raised, translate
from redmeter.stored.keys import Keys, slice_start

#: Entries that one exchange lists: a few milliseconds of the server's time.
ENTRY_PAGE = 20_000

#: Where a range of an index begins and ends, in the words of ZRANGEBYLEX.
Ends = tuple[str | bytes, str | bytes]


class Ask(NamedTuple):
    """A read of a key of each member."""

    command: str
    #: The parts of the key before the name, and after it.
    head: str
    tail: str = ""
    arguments: tuple[str, ...] = ()


def of_window(family: str, window: Coverage) -> Ask:
    """Ask the intervals of a window: [start, value, …].

    Args:
        family: the part of a key before the precision.
    """
    numbers = window.fine, window.count, *window.widths[1:]
    if window.until is not None:
        end, widths = window.until, window.widths
        return Ask("RANGE", family, arguments=_texts(end - window.length, end, *widths))
    return Ask("WINDOW", family, arguments=_texts(*numbers))


def of_counts(family: str, window: Coverage) -> Ask:
    """Ask the same of counters, whose starts other programs may have written as floats."""
    return Ask("COUNTS", family, arguments=of_window(family, window).arguments)


def of_before(family: str, window: Coverage) -> Ask:
    """Ask the intervals of the period that a window is compared with; the window must have one."""
    finest, *coarser = window.earlier
    if window.until is not None:
        end = slice_start(window.start(window.until) - window.gap, finest)
        return Ask("RANGE", family, arguments=_texts(end - window.before, end, *window.earlier))
    numbers = window.fine, window.count, finest, window.before, window.gap, *coarser
    return Ask("BEFORE", family, arguments=_texts(*numbers))


def _texts(*numbers: int) -> tuple[str, ...]:
    return tuple(map(str, numbers))


def of_field(key: str) -> Ask:
    """Ask what a hash has by the name of a member; None also where another program keeps something.

    Args:
        key: of the hash.
    """
    return Ask("FIELD", key)


def join(
    keys: Keys,
    index: str,
    ends: tuple[str | bytes, str | bytes],
    cut: int,
    asks: Sequence[Ask],
    *,
    count: int,
    offset: int = 0,
    limit_us: int = 0,
) -> Read:
    """Return the read of the members of an index in their order, with what their keys hold.

    Args:
        index: key of a sorted set.
        ends: the first and the last member, in the words of ZRANGEBYLEX.
        cut: bytes of a member that are no part of the name that keys are made of.
        count, offset: how many members to read, and to skip before.
        limit_us: microseconds of server time after which fewer members are read; 0 for none.
    """
    return indexes.join_members(
        keys,
        index,
        *ends,
        count=count,
        offset=offset,
        cut=cut,
        asks=_words(asks),
        limit_us=limit_us,
    )


def join_of_newest(keys: Keys, index: str, count: int, asks: Sequence[Ask]) -> Read:
    """Return the read of the members with the highest scores, with what their keys hold."""
    return indexes.join_newest(keys, index, count, cut=0, asks=_words(asks))


def _words(asks: Sequence[Ask]) -> list[str]:
    words = []
    for ask in asks:
        words += [ask.command, ask.head, ask.tail, str(len(ask.arguments)), *ask.arguments]
    return words


def entry_name(member: bytes) -> str:
    """Return the name of a member of an index, PRECISION:NAME."""
    return member.decode(errors="replace").partition(":")[2]


class Joined:
    """The answer to a join.

    Args:
        reply: what the server replied.
        asks: how many there were.
        needed: whether there has to be an index; else one that is another program's is empty.

    Raises:
        StoreError: the reply is an error, or the index is no index.
    """

    def __init__(self, reply: Reply, asks: int, *, needed: bool = True) -> None:
        seconds, microseconds, members, self._replies = raised(reply)
        if isinstance(members, Exception):
            problem = translate(members, "")
            members = raised(problem) if needed else there(problem, [])
        #: By the server's clock, Unix seconds.
        self.now = int(seconds) + int(microseconds) / 1e6
        self.members: list[bytes] = members
        #: Members that readable() left out, and the error of each.
        self.foreign: list[tuple[bytes, StoreError]] = []
        self._asks, self._needed = asks, needed

    def like(self, reply: Reply) -> "Joined":
        """Return the answer to another join that asked the same."""
        return type(self)(reply, self._asks, needed=self._needed)

    def by_name(self) -> Iterator[tuple[str, Sequence[Reply]]]:
        """Yield the name of each member with its replies, errors included."""
        size = self._asks
        for at, member in enumerate(self.members):
            yield entry_name(member), self._replies[at * size : (at + 1) * size]

    def readable(self) -> Iterator[tuple[bytes, Sequence[Reply]]]:
        """Yield each member with the replies of its keys.

        Those whose keys hold something else, another program's, are left out.

        Raises:
            StoreError: a reply is another error.
        """
        size = self._asks
        for at, member in enumerate(self.members):
            replies = self._replies[at * size : (at + 1) * size]
            errors = [translate(r, "") for r in replies if isinstance(r, Exception)]
            for error in errors:
                if not is_misplaced(error):
                    raise error
            if errors:
                self.foreign.append((member, errors[0]))
            else:
                yield member, replies


class Budget:
    """How far an index is read.

    Args:
        most: members that are read at most.
        page: members of a page, which takes a round trip.
    """

    def __init__(self, most: int, page: int) -> None:
        self._left, self.page = most, page

    def next_page(self, number: int) -> int:
        """Return how many members to read after a page that has so many; 0 if it is the last."""
        self._left -= number
        return min(self.page, self._left) if number == self.page else 0


def read_on(
    first: Joined,
    page: Callable[[int, bytes], Read],
    budget: Budget,
    take: Callable[[Joined], object],
) -> Query[None]:
    """Read the pages of a join after the first one, a round trip each.

    Args:
        page: returns the read of so many members after a member.
        budget: how far to read; the first page has as many members as its pages.
        take: called with each page that was read.
    """
    newest = first
    while (count := budget.next_page(len(newest.members))) > 0:
        _, (reply,) = yield [page(count, newest.members[-1])]
        newest = newest.like(reply)
        take(newest)


def series_in(joined: Iterable[Joined]) -> Iterator[tuple[str, SeriesName, Sequence[Reply]]]:
    """Yield the series of joins that can be read: as stored, taken apart, and its replies."""
    for one in joined:
        for member, replies in one.readable():
            try:
                stored = member.decode().partition(":")[2]
                yield stored, parse_name(stored), replies
            except (UnicodeDecodeError, InvalidName):
                continue  # written by someone else


# --- Entries without their keys ----------------------------------------------------------------


def first_entries(keys: Keys, index: str, ends: Ends, most: int) -> Read:
    """Return the read of the first page of list_entries()."""
    return indexes.members(keys, index, *ends, count=min(ENTRY_PAGE, most))


def list_entries(
    keys: Keys, index: str, ends: Ends, most: int, first: Reply = None
) -> Query[list[bytes]]:
    """List the entries of a range of an index in their order, a round trip for each ENTRY_PAGE.

    Args:
        index: key of a sorted set.
        most: how many entries at most.
        first: the reply to first_entries(), if that was read already.

    Raises:
        StoreError: the server refuses.
    """
    entries: list[bytes] = []
    while True:
        if first is None:
            _, (first,) = yield [first_entries(keys, index, ends, most - len(entries))]
        entries += raised(first)
        if len(first) < ENTRY_PAGE or len(entries) == most:
            return entries
        ends, first = (b"(" + entries[-1], ends[1]), None


def decoded(entries: Sequence[bytes]) -> list[str]:
    """Return the names in entries of an index; those of other programs are left out."""
    names = []
    for entry_ in entries:
        try:
            name = entry_.decode().partition(":")[2]
        except UnicodeDecodeError:
            continue  # not UTF-8, so no name of ours: doctor counts it
        if name:
            names.append(name)
    return names
