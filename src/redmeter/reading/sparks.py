"""Small curves: counts by the slices of a window, added up over series."""

from collections.abc import Callable, Iterable, Mapping

from redmeter.reading.series import slices_of
from redmeter.store.replies import Reply, is_misplaced


def drawn(
    replies: Iterable[Reply],
    slots: range,
    read: Callable[[Reply], Mapping[int, int]] | None = None,
) -> list[float | None]:
    """Add hashes up to a small curve; None before the first count.

    Args:
        replies: the hashes; those that are none are left out.
        slots: starts of the slices.
        read: reads a hash: start -> count; None: that of a counter.
    """
    values: list[float | None] = [None] * len(slots)
    for reply in replies:
        if is_misplaced(reply):
            continue
        for start, count in (read or slices_of)(reply).items():
            if start in slots:
                place = slots.index(start)
                values[place] = (values[place] or 0) + count
    oldest = next((at for at, value in enumerate(values) if value is not None), len(values))
    return [*values[:oldest], *(value or 0 for value in values[oldest:])]
