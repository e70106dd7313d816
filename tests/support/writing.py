"""What is looked at after a batch was written."""

from typing import Any

from redmeter.types import Outcome

DAY = 86400


def key(precision: int, name: str = "x") -> str:
    """Return the key of a counter's hash under the default prefix."""
    return f"redmeter:count:{precision}:{name}"


def lives_a_retention(client: Any, found: str, precision: int, kept: int) -> bool:
    """Whether a hash lives as long as its newest sample counts, with at most an eighth to spare."""
    spare = client.ttl(found) - (kept + 1) * precision
    return bool(-5 <= spare <= kept * precision / 8 + 1)


def reasons(outcome: Outcome) -> list[tuple[str, str]]:
    """Return what was rejected, as (key, reason)."""
    return [(rejection.key, rejection.reason) for rejection in outcome.rejections]
