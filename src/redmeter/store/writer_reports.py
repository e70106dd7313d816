"""Reports of writers, and their instance numbers.

`writers:` has the time of each producer's last report, by the server's clock; `reports:` the
reports; `instances:` a small number for each process, 0, 1, 2 …, which labels its own series. No
two live processes have the same number. It is assigned again once its process has ended, or
published nothing for INSTANCE_SECONDS.

A report is kept for a day, but only among the newest KEPT ones unless its producer is alive, so
programs that start every second do not fill the store.
"""

from redmeter.keys import Keys
from redmeter.store.link import Link
from redmeter.store.replies import raised
from redmeter.store.scripts import PUBLISH

#: A producer is alive if it has published within so many seconds.
INSTANCE_SECONDS = 180
#: Seconds for which a report is kept.
WRITER_SECONDS = 86400
#: Reports kept, in addition to those of live producers.
KEPT = 1000


def publish(
    link: Link, keys: Keys, producer: str, report: str, *, instance: bool, ended: bool
) -> int | None:
    """Store a report, and return the producer's instance number; None if it has none.

    Args:
        instance: the producer needs a number; one that has a number keeps it.
        ended: this is its last report, and its number may be assigned again.

    Raises:
        StoreError: the server is unreachable or refuses.
    """
    numbers = int(instance), int(ended), INSTANCE_SECONDS, WRITER_SECONDS, KEPT
    reply = PUBLISH.run(
        link,
        [keys.writers, keys.reports, keys.instances, keys.meta],
        [producer, report, *map(str, numbers)],
    )
    number = raised(reply)
    return None if number is None else int(number)
