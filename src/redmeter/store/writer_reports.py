"""What each producer tells of itself, in the store for everyone to see, and its small number.

`writers:` says who published when, by the server's clock; `reports:` what they said; `instances:`
which of the processes each is: 0, 1, 2 …, for what is kept per process. A number is unique among
those who hold one, and given again once its holder has ended, or been silent for INSTANCE_SECONDS.

A report is kept for a day after it was published, but among the newest KEPT ones only, unless its
producer is alive: programs that start every second must not fill the store.
"""

from redmeter.keys import Keys
from redmeter.store.link import Link
from redmeter.store.replies import raised
from redmeter.store.scripts import PUBLISH

#: A producer is alive while it has published within so many seconds.
INSTANCE_SECONDS = 180
#: A report is kept for so many seconds.
WRITER_SECONDS = 86400
#: Reports kept; those of producers that are alive are kept anyway.
KEPT = 1000


def publish(
    link: Link, keys: Keys, producer: str, report: str, *, instance: bool, ended: bool
) -> int | None:
    """Store a report; see Store.publish.

    Raises:
        StoreError: the server cannot be reached or refuses.
    """
    numbers = int(instance), int(ended), INSTANCE_SECONDS, WRITER_SECONDS, KEPT
    reply = PUBLISH.run(
        link,
        [keys.writers, keys.reports, keys.instances, keys.meta],
        [producer, report, *map(str, numbers)],
    )
    number = raised(reply)
    return None if number is None else int(number)
