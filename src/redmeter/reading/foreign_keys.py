"""Keys under which another program stores something else.

A reading of many keys leaves such keys out, with a warning of the logger "redmeter.reading", which
the commands print. If nothing else is there, the error is raised, as it is when a single key is
read. Errors other than a wrong type fail the whole reading.

A best-effort reading leaves out keys on unreachable servers, too; Store.skipped() lists them.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from redmeter.errors import StoreError, StoreRefused
from redmeter.store.servers.replies import Reply, is_misplaced, raised

#: Keys that a warning names.
_SHOWN = 3

K = TypeVar("K")
T = TypeVar("T")

logger = logging.getLogger("redmeter.reading")


def readable(
    replies_of: Mapping[K, Sequence[Reply]], *, needed: bool = True
) -> dict[K, Sequence[Reply]]:
    """Return the replies without those about foreign keys, and log a warning about these.

    Args:
        replies_of: the replies about each series.
        needed: raise if nothing else is left.

    Raises:
        StoreError: a reply is another error, or nothing is left.
    """
    left, problems = {}, []
    for key, replies in replies_of.items():
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
    """Return a reply; if it is about a foreign key, log a warning and return `empty`.

    Raises:
        StoreError: the reply is another error.
    """
    if is_misplaced(reply):
        warn_of([reply])
        return empty
    return raised(reply)


def warn_of(problems: Iterable[StoreError]) -> None:
    """Log a warning about keys that are left out."""
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
