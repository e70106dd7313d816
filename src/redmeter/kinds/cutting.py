"""What all kinds share: which precisions events can be sorted into, and how they are cut.

Events come by series and by slice of some width, in seconds: 1 where each second is known apart,
more where they were put together before. Only precisions that are a multiple of that width can be
made of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

V = TypeVar("V")

#: Fields written by one call of the script: about 3 ms of the server's time.
FIELDS_PER_BATCH = 500


def multiples(retention: Mapping[int, int], width: int) -> Sequence[tuple[int, int]]:
    """Return the (precision, samples) pairs that can be made of slices of a width.

    Args:
        width: seconds; 0 stands for events of which no slice is known.
    """
    if width == 1:
        return list(retention.items())
    return [(p, samples) for p, samples in retention.items() if width and p % width == 0]


def portions(
    events: Mapping[str, Mapping[int, V]], retention: Mapping[int, int], *, width: int = 1
) -> Iterator[dict[str, Mapping[int, V]]]:
    """Cut events into parts that each make one batch of about FIELDS_PER_BATCH fields.

    The cut is by series and slice, not by field, so that a part can be turned into operations
    again when the store's retention turns out to have changed.

    Args:
        events, retention, width: as operations() is going to be given them.
    """
    precisions = [precision for precision, _ in multiples(retention, width)]
    part: dict[str, Mapping[int, V]] = {}
    weight = 0
    for name, slices in events.items():
        for run, run_weight in _runs(slices, precisions):
            if part and (weight + run_weight > FIELDS_PER_BATCH or name in part):
                yield part
                part, weight = {}, 0
            part[name] = run
            weight += run_weight
    if part:
        yield part


def _runs(
    slices: Mapping[int, V], precisions: Sequence[int]
) -> Iterator[tuple[Mapping[int, V], int]]:
    """Cut the slices of one series until each part fits a batch; give each part's fields too."""
    count = len(slices)
    if count < 2:
        if count:
            yield slices, len(precisions) or 1  # a grand total is a field too
        return
    span = max(slices) - min(slices)
    weight = sum(min(count, span // precision + 2) for precision in precisions) or 1
    if weight <= FIELDS_PER_BATCH:
        yield slices, weight
        return
    ordered = sorted(slices)
    for half in (ordered[: count // 2], ordered[count // 2 :]):
        yield from _runs({start: slices[start] for start in half}, precisions)
