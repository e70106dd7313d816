"""Shared by all kinds: downsamples intervals to each precision, in the form the scripts take.

Events arrive by series and by interval of some width, in seconds: 1, or more if they were
aggregated before. Only precisions that are multiples of the width can be made.

In a flush most series have the same intervals, so these are written once for many hashes: a run is

    PRECISION, SAMPLES, ["START", "START", …], ["VALUE", "VALUE", …]

with the values of the first hash for each start, then those of the second, and so on; the keys of
the hashes are passed separately, one for each interval. A batch has one list of runs for each kind,
as JSON.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

#: The value of an interval.
V = TypeVar("V")

#: Separates the texts of a list, none of which needs escaping.
_BETWEEN = '","'


def multiples(retention: Mapping[int, int], width: int) -> tuple[tuple[int, int], ...]:
    """Return the (precision, samples) pairs that can be made from intervals of a width.

    Args:
        width: seconds; 0: the intervals of the events are unknown.
    """
    if width == 1:
        return tuple(retention.items())
    return tuple([(p, samples) for p, samples in retention.items() if width and p % width == 0])


def by_interval(
    values_at: Mapping[int, V], precision: int, merged: Callable[[Sequence[V]], V]
) -> dict[int, V]:
    """Downsample to the intervals of a precision.

    Args:
        values_at: start, Unix seconds -> value.
        merged: merges several values, in their order, without changing them.
    """
    groups: dict[int, list[V]] = {}
    for at, value in values_at.items():
        start = at // precision * precision
        if start in groups:
            groups[start].append(value)
        else:
            groups[start] = [value]
    return {
        start: merged(values) if len(values) > 1 else values[0] for start, values in groups.items()
    }


def by_precision(
    given: Mapping[int, V],
    width: int,
    precisions: Iterable[tuple[int, int]],
    merged: Callable[[Sequence[V]], V],
) -> Iterator[tuple[int, int, Mapping[int, V]]]:
    """Yield precision, samples and intervals, for each precision.

    Args:
        given: interval start, Unix seconds -> value.
        width: of these intervals, seconds.
        merged: see by_interval().
        precisions: see multiples().
    """
    intervals, last = given, width
    for precision, samples in precisions:
        if precision != last:
            # If it is a multiple of the last precision, there are fewer intervals to merge.
            intervals = by_interval(given if precision % last else intervals, precision, merged)
            last = precision
        yield precision, samples, intervals


def stems(before: str, precisions: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return the keys of hashes up to the name, one for each precision.

    Args:
        before: the key up to `PRECISION:NAME`.
        precisions: see multiples().
    """
    return tuple([f"{before}{width}:" for width, _ in precisions])


def heads(precisions: Iterable[tuple[int, int]], at: int) -> tuple[str, ...]:
    """Return runs of one interval up to the value, one for each precision, all at one second.

    Args:
        precisions: see multiples().
        at: Unix seconds.
    """
    return tuple([_head(width, samples, str(at - at % width)) for width, samples in precisions])


def _head(precision: int, samples: int, starts: str) -> str:
    return f'{precision},{samples},["{starts}"],["'


def single(heads: Sequence[str], value: object) -> str:
    """Return the runs of one event of one series, from the heads, which must not be empty."""
    end = f'{value}"]'
    return f"[{f'{end},'.join(heads)}{end}]"


class Runs:
    """Collects intervals of many hashes, and writes them as runs."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        # Text up to the values -> keys and values.
        self._runs: dict[str, tuple[list[str], list[str]]] = {}

    def add_one(self, head: str, key: str, value: str) -> None:
        """Add one interval of a hash; heads() returns the text up to its value."""
        run = self._runs.get(head)
        if run is None:
            self._runs[head] = ([key], [value])
        else:
            run[0].append(key)
            run[1].append(value)

    def add(
        self,
        precision: int,
        samples: int,
        key: str,
        starts: Sequence[int],
        values: Sequence[str | int],
    ) -> None:
        """Add intervals of a hash, with their values in the order of `starts`."""
        if not starts:
            return
        head = _head(precision, samples, _BETWEEN.join(map(str, starts)))
        keys, texts = self._runs.setdefault(head, ([], []))
        keys += [key] * len(starts)
        texts += map(str, values)

    def __bool__(self) -> bool:
        return bool(self._runs)

    def keys(self) -> list[str]:
        """Return the keys, one for each interval, in the order of text()."""
        return [key for keys, _ in self._runs.values() for key in keys]

    def text(self) -> str:
        """Return the runs."""
        runs = [f'{head}{_BETWEEN.join(values)}"]' for head, (_, values) in self._runs.items()]
        return f"[{','.join(runs)}]"


def parse(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Read runs: yield precision, samples, start and value of each interval."""
    for precision, samples, starts, values in zip(*[iter(json.loads(text))] * 4, strict=True):
        for at, value in enumerate(values):
            yield precision, samples, starts[at % len(starts)], value


def events_at_stake(text: str, events: Callable[[str], int]) -> list[tuple[str, int]]:
    """Return the start and the events of each key of an operation: see Operation.at_stake.

    Args:
        text: the runs.
        events: returns the number of events that a value stands for.
    """
    return [("", 0), *((start, events(value)) for _, _, start, value in parse(text))]
