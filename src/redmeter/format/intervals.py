"""What kinds share: from slices of some width to those of each precision, as the script takes them.

Events come by series and by slice of some width, in seconds: 1 where each second is known apart,
more where they were put together before. Only precisions that are a multiple of it can be made.

In a flush most series have the same slices, so these are written once for many hashes: a run is

    PRECISION, SAMPLES, ["START", "START", …], ["VALUE", "VALUE", …]

with the values of the first hash for each start, then those of the second, and so on; the keys of
the hashes travel beside, one for each slice. A batch has one list of runs for each kind, as JSON.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

#: What a slice holds.
V = TypeVar("V")

#: What stands between texts of a list; nothing in them has to be escaped.
_BETWEEN = '","'


def multiples(retention: Mapping[int, int], width: int) -> tuple[tuple[int, int], ...]:
    """Return the (precision, samples) pairs that can be made of slices of a width.

    Args:
        width: seconds; 0 stands for events of which no slice is known.
    """
    if width == 1:
        return tuple(retention.items())
    return tuple([(p, samples) for p, samples in retention.items() if width and p % width == 0])


def by_slice(
    given: Mapping[int, V], precision: int, merged: Callable[[Sequence[V]], V]
) -> dict[int, V]:
    """Put together what lies in one slice of a precision.

    Args:
        given: start, Unix seconds -> what happened from there on.
        merged: makes one of several, which stay as they are; in their order.
    """
    slices: dict[int, list[V]] = {}
    for at, value in given.items():
        start = at // precision * precision
        if start in slices:
            slices[start].append(value)
        else:
            slices[start] = [value]
    return {
        start: merged(values) if len(values) > 1 else values[0] for start, values in slices.items()
    }


def by_precision(
    given: Mapping[int, V],
    width: int,
    precisions: Iterable[tuple[int, int]],
    merged: Callable[[Sequence[V]], V],
) -> Iterator[tuple[int, int, Mapping[int, V]]]:
    """Yield precision, samples and slices, for each of some precisions.

    Args:
        given: start of a slice, Unix seconds -> what is in it.
        width: of these slices, seconds.
        merged: see by_slice().
        precisions: see multiples().
    """
    slices, last = given, width
    for precision, samples in precisions:
        if precision != last:
            # A width that is a multiple of the last one puts fewer, wider slices together.
            slices = by_slice(given if precision % last else slices, precision, merged)
            last = precision
        yield precision, samples, slices


def stems(before: str, precisions: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return what stands before the name in keys.

    Args:
        before: what stands before `PRECISION:NAME`.
        precisions: see multiples().
    """
    return tuple([f"{before}{width}:" for width, _ in precisions])


def heads(precisions: Iterable[tuple[int, int]], at: int) -> tuple[str, ...]:
    """Return what stands before the value in runs of one slice each, those that hold a second.

    Args:
        precisions: see multiples().
        at: Unix seconds.
    """
    return tuple([_head(width, samples, str(at - at % width)) for width, samples in precisions])


def _head(precision: int, samples: int, starts: str) -> str:
    return f'{precision},{samples},["{starts}"],["'


def single(heads: Sequence[str], value: object) -> str:
    """Return the runs of one event of one series: see heads(), which may not be empty."""
    end = f'{value}"]'
    return f"[{f'{end},'.join(heads)}{end}]"


class Runs:
    """Collects slices of many hashes, and writes them as runs."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        # What stands before the values -> keys and values.
        self._runs: dict[str, tuple[list[str], list[str]]] = {}

    def add_one(self, head: str, key: str, value: str) -> None:
        """Add one slice of a hash, given what stands before its value: see heads()."""
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
        """Add slices of a hash.

        Args:
            values: what is written of each slice, in the order of their starts.
        """
        if not starts:
            return
        head = _head(precision, samples, _BETWEEN.join(map(str, starts)))
        keys, texts = self._runs.setdefault(head, ([], []))
        keys += [key] * len(starts)
        texts += map(str, values)

    def __bool__(self) -> bool:
        return bool(self._runs)

    def keys(self) -> list[str]:
        """Return the keys, one for each slice, in the order of text()."""
        return [key for keys, _ in self._runs.values() for key in keys]

    def text(self) -> str:
        """Return the runs."""
        runs = [f'{head}{_BETWEEN.join(values)}"]' for head, (_, values) in self._runs.items()]
        return f"[{','.join(runs)}]"


def parse(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Read runs: yield precision, samples, start and value of each slice."""
    for precision, samples, starts, values in zip(*[iter(json.loads(text))] * 4, strict=True):
        for at, value in enumerate(values):
            yield precision, samples, starts[at % len(starts)], value


def told(text: str, events: Callable[[str], int]) -> list[tuple[str, int]]:
    """Return for each key of an operation on slices its start and events: see types.Operation.

    Args:
        text: the runs.
        events: how many events a value stands for.
    """
    return [("", 0), *((start, events(value)) for _, _, start, value in parse(text))]
