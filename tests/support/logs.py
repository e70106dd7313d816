"""What a meter has of a log, and a value that cannot be logged."""

from redmeter import Meter


class Raising:
    """A value of which no text can be made."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


def patterns(meter: Meter, logger: str = "app.jobs") -> dict[str, int]:
    """Return how often each pattern of a logger came within these two hours."""
    meter.flush()
    return {f.pattern: f.count + f.before for f in meter.common(logger)}


def texts(meter: Meter, logger: str = "app.jobs") -> list[str]:
    """Return the newest messages of a logger, the newest first."""
    meter.flush()
    return [message.text for message in meter.recent(logger)]
