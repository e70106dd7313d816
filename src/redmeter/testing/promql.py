"""PromQL over recorded events: they become the keys that a server would have.

Queries read these as they read a server's, so a meter in memory answers as a store does. An
interval outside of the retention is there, too; readers leave it out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any

from redmeter.export.prometheus_names import Namer
from redmeter.reading.export.listing import Exports, exported
from redmeter.store.query import ParsedRead, Read, View
from redmeter.store.servers.replies import Reply
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import Kept, Keys, Retention, slice_start
from redmeter.stored.packed_text import buckets_text, moments_text
from redmeter.testing.recorder import RECORDED, STATE_VALUES, Event

#: The producer, and the number, of this process.
_PRODUCER, _NUMBER = b"0" * 32, b"0"

#: The texts of one hash: field -> text.
_Hash = dict[bytes, bytes]


class EventStore:
    """Answers the reads of queries from events. See StoreReader.

    Args:
        events: the recorded events.
        now: the time in Unix seconds.
        retention, histograms: precision, seconds -> samples.
    """

    def __init__(
        self, events: Iterable[Event], now: float, retention: Retention, histograms: Retention
    ) -> None:
        self.keys = Keys("")
        self.seen = Kept(retention, histograms)
        self._view = View(now, retention, histograms, "")
        self._hashes: dict[str, _Hash] = defaultdict(dict)
        self._hashes[self.keys.instances][_PRODUCER] = _NUMBER
        self._names: dict[str, set[str]] = {kind: set() for kind in SERIES_KINDS}
        recorded = sorted(events, key=lambda event: event.time)
        for kind, value_of in RECORDED.items():
            values: dict[str, list[tuple[float, Any]]] = defaultdict(list)
            for event in recorded:
                if (value := value_of(event)) is not None:
                    values[event.series].append((event.time, value))
            for name, some in values.items():
                self._names[kind].add(name)
                self._store(kind, name, some)

    def exports(self) -> Exports:
        """Return the series under their names for Prometheus."""
        return exported(Namer().catalog(self._names), self._view.now, monotonic())

    def read(self, reads: Sequence[Read] = ()) -> tuple[View, list[Any]]:
        """Answer the reads of a query's first step."""
        return self._view, self.ask(reads)

    def ask(self, reads: Sequence[Read], view: View | None = None) -> list[Any]:  # noqa: ARG002
        """Answer the reads of a later step."""
        return [self._answer(read) for read in reads]

    def _answer(self, read: Read) -> Any:
        if isinstance(read, ParsedRead):
            return read.parse(self._view, self._answer(read.command))
        assert isinstance(read, tuple), "reads of sharded data are those of a cluster"
        name, key, *words = read
        return _COMMANDS[str(name)](self._hashes[str(key)], words, self._view)

    def _store(self, kind: str, name: str, values: Sequence[tuple[float, Any]]) -> None:
        families = [family.name for family in SERIES_KINDS[kind].hashes]
        texts_of = _TEXTS.get(kind) or partial(_states, kind)
        for precision in self.seen.of(kind):
            parts: dict[int, list[tuple[float, Any]]] = defaultdict(list)
            for at, value in values:
                parts[slice_start(at, precision)].append((at, value))
            for start, some in parts.items():
                for family, text in zip(families, texts_of(some), strict=True):
                    self._hashes[self.keys.key(family, f"{precision}:{name}")][b"%d" % start] = text
        for family, text in zip(_TOTALS.get(kind, ()), texts_of(values), strict=False):
            self._hashes[self.keys.key(family)][name.encode()] = text


def _all(fields: _Hash, _: Sequence[Any], __: View) -> Reply:
    return [text for field in fields.items() for text in field]


def _some(fields: _Hash, names: Sequence[Any], _: View) -> Reply:
    return [fields.get(name if isinstance(name, bytes) else str(name).encode()) for name in names]


def _writers(_: _Hash, __: Sequence[Any], view: View) -> Reply:
    return [_PRODUCER, b"%r" % view.now]


#: The commands that queries send.
_COMMANDS: Mapping[str, Callable[[_Hash, Sequence[Any], View], Reply]] = {
    "HGETALL": _all,
    "HMGET": _some,
    "ZREVRANGE": _writers,
}


def _counts(values: Sequence[tuple[float, int]]) -> Iterator[bytes]:
    yield b"%d" % sum(value for _, value in values)


def _distributions(values: Sequence[tuple[float, float]]) -> Iterator[bytes]:
    made = Distribution()
    made.add_all([value for _, value in values])
    yield buckets_text(made).encode()
    yield moments_text(made).encode()


def _states(kind: str, values: Sequence[tuple[float, Any]]) -> Iterator[bytes]:
    value = STATE_VALUES[kind]([value for _, value in values])
    yield f"{float(value)!r} {float(values[-1][0])!r}".encode()


#: Kind -> the texts of an interval, in the order of its families; of others, those of states.
_TEXTS: Mapping[str, Callable[[Sequence[tuple[float, Any]]], Iterator[bytes]]] = {
    "counter": _counts,
    "histogram": _distributions,
}
#: Kind -> the families of its grand totals, in the same order.
_TOTALS: Mapping[str, Sequence[str]] = {"counter": ("total",), "histogram": ("spreads", "sums")}
