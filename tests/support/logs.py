"""What a meter has of a log, and a value that cannot be logged."""

from typing import Any

from redmeter import Meter
from redmeter.reading.logs.overview import LogOverview, log_overview
from redmeter.store import Store
from redmeter.store.query import run_query


class Raising:
    """A value of which no text can be made."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


def patterns(meter: Meter, logger: str = "app.jobs") -> dict[str, int]:
    """Return how often each pattern of a logger came within these two hours."""
    meter.flush()
    return {f.pattern: f.count + f.before for f in meter.log_frequencies(logger)}


def texts(meter: Meter, logger: str = "app.jobs") -> list[str]:
    """Return the newest messages of a logger, the newest first."""
    meter.flush()
    return [message.text for message in meter.log_messages(logger)]


def read_log_overview(store: Store, **options: Any) -> LogOverview:
    """Return the log at a glance, as the page reads it."""
    return run_query(store, lambda _: log_overview(store.keys, **options))[1]
