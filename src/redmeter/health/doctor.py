"""The checks of `redmeter doctor`.

Two bounded round trips: first the state of the server, the sizes of the indexes, which also show
counters of other stores on the server, and the reports of the writers; then a sample of counters,
gauges, histograms and messages, and the number of series by precision. Nothing needs CONFIG, which
managed services forbid; if it is allowed, there are more checks. On a cluster each primary is asked
before, and if one is unreachable, the rest is examined.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from redmeter.health.check import DoctorCheck, Finding, Level, Seen, worst
from redmeter.health.contents import COUNTER_CONTENTS, OTHER_CONTENTS
from redmeter.health.servers import SERVERS
from redmeter.health.upkeep import (
    CLEANER,
    MIGRATION,
    OTHER_STORES,
    SHARED_DATABASE,
    SIZE,
    TYPES,
    bytes_by_kind,
)
from redmeter.health.writers import WRITERS, Writer
from redmeter.store import Store, View
from redmeter.store.fan_out import STOPPED
from redmeter.store.query import Query, together
from redmeter.stored.keys import Retention

#: All checks, in the order of their findings. An error of an earlier one is raised first.
CHECKS: Sequence[DoctorCheck[Any]] = (
    SERVERS,
    MIGRATION,
    TYPES,
    COUNTER_CONTENTS,
    CLEANER,
    SIZE,
    OTHER_CONTENTS,
    WRITERS,
    SHARED_DATABASE,
    OTHER_STORES,
)


@dataclass(slots=True)
class Health:
    """The state of a store, and the findings about it."""

    location: str
    prefix: str
    server: str
    version: str
    #: Server's clock minus this machine's, seconds.
    clock_difference: float
    retention: Retention
    histogram_retention: Retention
    #: Counters, by precision.
    series: dict[int, int]
    #: Entries of gauges and histograms, a series having one for each precision, and loggers.
    others: dict[str, int]
    #: Bytes by kind; None if the server does not report them; estimated if there are many keys.
    bytes: dict[str, int | None]
    estimated: bool
    #: When the cleaner's last pass ended, Unix seconds; None if there was none.
    cleaned: float | None
    #: Producers that wrote within the last day; None on a cluster, or with too many keys to scan.
    producers: int | None
    #: Writers that published a report within the last day, newest first.
    writers: list[Writer] = field(default_factory=list)
    #: The parts that could not be examined, as sentences such as "HOST:PORT does not answer".
    missing: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def level(self) -> Level:
        """The worst of the findings, apart from notes."""
        return worst(self.findings)


def examine(store: Store) -> Health:
    """Examine a store.

    Raises:
        StoreError: the server is unreachable or denies access.
    """
    replicas = store.reader is not store
    store = store.best_effort()
    view, answers = _ask(store, together([check.reads(store) for check in CHECKS]))
    seen = Seen(store, view, replicas, dict(zip(CHECKS, answers, strict=True)))
    server, counters, others = seen[SERVERS].first, seen[COUNTER_CONTENTS], seen[OTHER_CONTENTS]
    health = Health(
        location=store.location,
        prefix=store.keys.prefix,
        server=server.product,
        version=server.version,
        clock_difference=server.difference,
        retention=view.retention,
        histogram_retention=view.histograms,
        series=counters.by_precision,
        others={kind: sample.count for kind, sample in others.items()},
        bytes=bytes_by_kind(seen),
        estimated=any(each.count > each.size for each in (counters, *others.values())),
        cleaned=seen[CLEANER],
        producers=seen[WRITERS].producers,
        missing=store.skipped(),
    )
    if any(text.endswith(STOPPED) for text in health.missing):
        health.findings += [*SERVERS.findings(seen[SERVERS], seen), _STOPPED]
        return health
    health.writers = seen[WRITERS].writers
    for check in CHECKS:
        health.findings += check.findings(seen[check], seen)
    return health


_STOPPED = Finding(
    "fail",
    "cluster",
    "down: nothing can be stored or read until all slots are served again",
    "start the missing nodes; with cluster-require-full-coverage no, the others keep serving",
)


def _ask(store: Store, query: Query[list[Any]]) -> tuple[View, list[Any]]:
    """Run a query that any configuration of the store suits, so that it is not started anew."""
    view, replies = store.read(next(query))
    try:
        while True:
            replies = store.ask(query.send((view, replies)), view)
    except StopIteration as end:
        return view, end.value
