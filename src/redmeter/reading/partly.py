"""Readings of many keys: where another program keeps something else under one, the others count.

What cannot be read is left out, and told: by a warning of the logger "redmeter.reading", which the
commands show. Where nothing else is there, the error is raised: so it is of a single key.
Any other error than that of a wrong type takes the whole reading away.

What lies on servers that are away is left out the same way by who goes on without them, and told
by Store.skipped().
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from redmeter.errors import StoreError, StoreRefused
from redmeter.store.replies import Reply, is_misplaced, raised

#: Keys that a warning names.
_SHOWN = 3

K = TypeVar("K")
T = TypeVar("T")

logger = logging.getLogger("redmeter.reading")


def readable(
    found: Mapping[K, Sequence[Reply]], *, needed: bool = True
) -> dict[K, Sequence[Reply]]:
    """Return what can be read, and warn of the rest.

    Args:
        found: replies by what they are about.
        needed: whether there must be something left that is not empty.

    Raises:
        StoreError: a reply is another error; or nothing is left.
    """
    left, problems = {}, []
    for key, replies in found.items():
        wrong = next(filter(is_misplaced, replies), None)
        if wrong is not None:
            problems.append(wrong)
            continue
        for reply in replies:
            raised(reply)
        left[key] = replies
    if problems:
        if needed and not any(any(replies) for replies in left.values()):
            raise problems[0]
        warn_of(problems)
    return left


def there(reply: Reply, empty: T) -> Reply | T:
    """Return a reply; `empty`, and a warning, where another program keeps something else there.

    Raises:
        StoreError: the reply is another error.
    """
    if is_misplaced(reply):
        warn_of([reply])
        return empty
    return raised(reply)


def warn_of(problems: Iterable[StoreError]) -> None:
    """Warn of keys that are left out."""
    wrong = (problem for problem in problems if isinstance(problem, StoreRefused))
    keys = list(dict.fromkeys(ascii(problem.key) for problem in wrong))
    if not keys:
        return
    more = f" … ({len(keys) - _SHOWN:,} more)" if len(keys) > _SHOWN else ""
    logger.warning(
        "left out, since another program keeps something else under: %s%s",
        ", ".join(keys[:_SHOWN]),
        more,
    )
