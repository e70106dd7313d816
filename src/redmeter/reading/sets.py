"""Label sets: which a name has, and how often each came within a window."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from redmeter.errors import InvalidName
from redmeter.keys import Keys
from redmeter.names import parse_name
from redmeter.reading.join import Joined, counts_of, family, of_window
from redmeter.reading.observed import sum_of
from redmeter.reading.partly import there
from redmeter.reading.windows import Window
from redmeter.store.query import Read
from redmeter.store.replies import Reply

#: Label sets that are looked at, and that are added up to one curve.
MAX_SETS, MAX_ADDED = 500, 50


class Sets(NamedTuple):
    """The label sets of a name: how often each came within a window, and how many there are."""

    counts: dict[str, int]
    of: int

    def busiest(self, most: int = MAX_ADDED) -> list[str]:
        """Return those that came most often."""
        return sorted(self.counts, key=lambda one: (-self.counts[one], one))[:most]


def base_of(name: str) -> str:
    """Return a name without its labels; as it is, where somebody else wrote it."""
    try:
        return parse_name(name).base
    except InvalidName:
        return name


def counters_asked(keys: Keys, base: str, window: Window, most: int = MAX_SETS) -> list[Read]:
    """Return the two reads whose replies counters_of() takes."""
    return _asked(keys, keys.known, keys.count_of(""), base, window, most)


def counters_of(replies: Sequence[Reply]) -> Sets:
    """Read the label sets of a counter."""
    return _sets(replies, lambda reply: sum(counts_of(reply).values()))


def histograms_asked(keys: Keys, base: str, window: Window, most: int = MAX_SETS) -> list[Read]:
    """Return the two reads whose replies histograms_of() takes."""
    return _asked(keys, keys.hists, keys.moments_of(""), base, window, most)


def histograms_of(replies: Sequence[Reply]) -> Sets:
    """Read the label sets of observed values."""
    return _sets(replies, _values)


def _asked(
    keys: Keys, index: str, keys_of: str, base: str, window: Window, most: int
) -> list[Read]:
    return [*family(keys, index, window.fine, base, most, [of_window(keys_of, window)])]


def _sets(replies: Sequence[Reply], number: Callable[[Sequence[bytes]], int]) -> Sets:
    reply, of = replies
    counts = {
        member.decode(errors="replace").partition(":")[2]: number(answers[0])
        for member, answers in Joined(reply, 1, needed=False).readable()
    }
    return Sets(counts, there(of, 0))


def _values(reply: Sequence[bytes]) -> int:
    parts = map(sum_of, reply[1::2])
    return sum(part.count for part in parts if part is not None)
