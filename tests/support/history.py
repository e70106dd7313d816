"""History: what writers recorded, held against what a store has of it, interval by interval.

For each series, precision and shard

    recorded - lost - uncertain - missing  <=  stored  <=  recorded - lost

and no slice has more than was recorded in it, whatever happened. `missing` is what a failover may
cost: what was acknowledged by a primary whose replica did not have it yet. It is 0 unless a test
allows for it. What a coarse interval holds is the sum of the fine ones within it, since a batch is
stored, and replicated, whole or not at all.

Pure but for `Stored.read`. Who records is in writers.py.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

from redmeter.stored.shards import TAGS, shard_of

#: What the grand total is called among the precisions.
TOTAL = 0

#: What series of observed values begin with; all others are counted.
OBSERVED = "seen"

_KEY = re.compile(
    r"redmeter:(?:\{(?P<tag>\w+)\})?(?P<family>count|moments|total|meta):(?P<rest>.*)"
)

#: A series at a precision, which may be TOTAL.
Place = tuple[int, str]


class Event(NamedTuple):
    """Something that was recorded."""

    #: When, by the monotonic clock, which all processes of a machine share.
    noted: float
    #: In which second it happened, Unix.
    second: int
    series: str
    amount: int


class Ledger:
    """What writers say of what they recorded.

    Attributes:
        events: all that was recorded.
        lost: how many events each place lacks.
        uncertain: events of which nobody can know.
    """

    def __init__(
        self, events: Iterable[Event] = (), lost: Counter[Place] | None = None, uncertain: int = 0
    ) -> None:
        self.events = list(events)
        self.lost: Counter[Place] = Counter(lost or {})
        self.uncertain = uncertain

    def __add__(self, other: Self) -> "Ledger":
        return Ledger(
            [*self.events, *other.events],
            self.lost + other.lost,
            self.uncertain + other.uncertain,
        )

    def recorded(self) -> dict[str, Counter[int]]:
        """Return series -> second -> how much was recorded in it."""
        found: dict[str, Counter[int]] = defaultdict(Counter)
        for event in self.events:
            found[event.series][event.second] += event.amount
        return found

    def between(self, start: float, end: float) -> Counter[str]:
        """Return how much of each series was recorded between two monotonic times."""
        found: Counter[str] = Counter()
        for event in self.events:
            if start <= event.noted <= end:
                found[event.series] += event.amount
        return found


class Stored:
    """What is in a store.

    Attributes:
        slices: place -> start -> amount; of a grand total the only start is 0.
        tags: series -> the hash tags under which something of it lies.
        now: the server's clock as it was read.
    """

    def __init__(self) -> None:
        self.slices: dict[Place, Counter[int]] = defaultdict(Counter)
        self.tags: dict[str, set[str]] = defaultdict(set)
        self.counted: dict[int, int] = {}
        self.observed: dict[int, int] = {}
        self.now = 0

    @classmethod
    def read(cls, clients: Iterable[Any]) -> Self:
        """Read all that the primaries have, by clients that decode."""
        stored = cls()
        for client in clients:
            stored.now = max(stored.now, int(client.time()[0]))
            for key in client.scan_iter("redmeter:*", count=1000):
                if found := _KEY.fullmatch(key):
                    stored._take(client, key, found)
        return stored

    def _take(self, client: Any, key: str, found: re.Match[str]) -> None:
        family, fields = found["family"], client.hgetall(key)
        if family == "meta":
            self.counted = _retention(fields["retention"])
            self.observed = _retention(fields["histograms"])
            return
        if family == "total":
            places = [(TOTAL, series, 0, int(value)) for series, value in fields.items()]
        else:
            precision, _, series = found["rest"].partition(":")
            places = [
                (int(precision), series, int(start), int(text.split()[0]))
                for start, text in fields.items()
            ]
        for precision, series, start, amount in places:
            assert amount >= 0, (key, start, amount)
            self.slices[precision, series][start] += amount
            self.tags[series].add(found["tag"] or "")

    def amount(self, series: str) -> int:
        """Return how much is stored of a series in all."""
        if not series.startswith(OBSERVED):
            return self.slices[TOTAL, series].total()
        return self.slices[max(self.observed, default=TOTAL), series].total()

    def precisions(self, series: str) -> dict[int, int]:
        """Return what is kept of a series: precision -> samples; TOTAL for one interval of all."""
        return self.observed if series.startswith(OBSERVED) else {TOTAL: 1, **self.counted}

    def oldest(self, precision: int, samples: int) -> float:
        """Return the start from which on all intervals of a precision are still there."""
        if precision == TOTAL:
            return 0
        # One more than is kept, since time goes on between a trim and this look.
        return self.now // precision * precision - (samples - 2) * precision


def _retention(text: str) -> dict[int, int]:
    words = (word.partition("=") for word in text.split())
    return {int(precision): int(samples) for precision, _, samples in words}


def slices_of(seconds: Counter[int], precision: int, oldest: float) -> Counter[int]:
    """Return what intervals hold that is recorded by the second."""
    found: Counter[int] = Counter()
    for second, amount in seconds.items():
        start = second // precision * precision if precision else 0
        if start >= oldest:
            found[start] += amount
    return found


def nothing(series: str) -> int:
    """Say that nothing of a series may be missing."""
    return 0


def check(
    ledger: Ledger, stored: Stored, *, missing: Callable[[str], int] = nothing
) -> Counter[str]:
    """Check that what is stored lies within the bounds.

    Args:
        missing: returns what a failover may cost at most of a series.

    Returns:
        How much of the grand total is missing beyond what is lost, by series.
    """
    recorded, short = ledger.recorded(), Counter[str]()
    strangers = {series for _, series in stored.slices} - set(recorded)
    assert not strangers, f"nobody recorded {strangers}"
    sums: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for series, seconds in recorded.items():
        tags = stored.tags[series]
        assert tags <= {"", TAGS[shard_of(series)]}, (series, tags)
        for precision, samples in stored.precisions(series).items():
            oldest = stored.oldest(precision, samples)
            wanted = slices_of(seconds, precision, oldest)
            there = stored.slices[precision, series]
            for start, amount in there.items():
                assert start < oldest or amount <= wanted[start], (
                    f"{series} at {precision}, {start}: {amount} of {wanted[start]} recorded"
                )
            found = sum(amount for start, amount in there.items() if start >= oldest)
            lost = ledger.lost[precision, series]
            most = wanted.total() - (lost if oldest <= min(seconds) else 0)
            least = wanted.total() - lost - ledger.uncertain - missing(series)
            assert least <= found <= most, (
                f"{series} at {precision}: {found} stored of {wanted.total()}, {lost} lost, "
                f"{ledger.uncertain} uncertain, {missing(series)} may be missing"
            )
            if precision == max(stored.precisions(series)):
                short[series] += max(0, wanted.total() - lost - found)
            of_shard = sums[precision, shard_of(series)]
            for i, part in enumerate((least + ledger.uncertain, found, most)):
                of_shard[i] += part
        if not any(ledger.lost[precision, series] for precision in stored.precisions(series)):
            check_sums_of(stored, series)
    for place, (least, found, most) in sums.items():
        assert least - ledger.uncertain <= found <= most, (place, least, found, most)
    assert sum(short.values()) <= ledger.uncertain + sum(missing(series) for series in recorded)
    return short


def check_exact(ledger: Ledger, stored: Stored) -> None:
    """Check that each interval has what was recorded in it, and nothing was lost."""
    assert ledger.uncertain == 0, ledger.uncertain
    assert not +ledger.lost, ledger.lost
    assert sum(check(ledger, stored).values()) == 0
    for series, seconds in ledger.recorded().items():
        for precision, samples in stored.precisions(series).items():
            oldest = stored.oldest(precision, samples)
            there = stored.slices[precision, series]
            found = {start: amount for start, amount in there.items() if start >= oldest}
            assert found == dict(slices_of(seconds, precision, oldest)), (series, precision)


def check_sums_of(stored: Stored, series: str) -> None:
    """Check that coarse intervals of a series hold the sums of the fine ones."""
    kept = stored.precisions(series)
    for fine in kept:
        for coarse in kept:
            if fine == TOTAL or coarse <= fine or coarse % fine:
                continue
            sums: Counter[int] = Counter()
            for start, amount in stored.slices[fine, series].items():
                sums[start // coarse * coarse] += amount
            oldest = stored.oldest(fine, kept[fine])
            for start, amount in stored.slices[coarse, series].items():
                if start >= oldest:
                    assert sums[start] == amount, (series, fine, coarse, start)
