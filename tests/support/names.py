"""Names of series, chosen by the shard that they lie in."""

import itertools

from redmeter.stored.shards import SHARDS, shard_of


def one_in_each(pattern: str = "n{}") -> list[str]:
    """Return a name for each shard, in the order of shards.

    Args:
        pattern: of the names; a number takes the place of "{}".
    """
    found: dict[int, str] = {}
    for number in itertools.count():
        name = pattern.format(number)
        found.setdefault(shard_of(name), name)
        if len(found) == SHARDS:
            break
    return [found[shard] for shard in range(SHARDS)]
