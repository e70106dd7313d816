"""Names of series, chosen by the partition that they lie in."""

import itertools

from redmeter.partitions import PARTITIONS, partition_of


def one_in_each(pattern: str = "n{}") -> list[str]:
    """Return a name for each partition, in the order of partitions.

    Args:
        pattern: of the names; a number takes the place of "{}".
    """
    found: dict[int, str] = {}
    for number in itertools.count():
        name = pattern.format(number)
        found.setdefault(partition_of(name), name)
        if len(found) == PARTITIONS:
            break
    return [found[partition] for partition in range(PARTITIONS)]
