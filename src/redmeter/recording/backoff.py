"""Backoff: when to try again what failed.

Less and less often, at random moments within a range, so that many processes do not come back at
once; where a store does not let us in, or is not what it should be, every 30 s. Where a server is
well and a slot of its own is moving, about as often as if nothing failed.
"""

import time
from random import SystemRandom

# Not the generator of the application, which may have seeded it, and counts on what comes next.
chance = SystemRandom()

#: Longest time between two tries while the store is away, seconds.
LONGEST_BACKOFF = 15.0
#: Time between two tries where the store does not let us in, or is not what it should be.
REFUSED_BACKOFF = 30.0
#: The same where someone asks for a flush.
REFUSED_PAUSE = 1.0


class Backoff:
    """When to try again. Times are monotonic seconds.

    Args:
        interval: from one try to the next where nothing fails, seconds.
    """

    __slots__ = ("_interval", "_not_asked_before", "_not_before", "failures", "passing")

    def __init__(self, interval: float) -> None:
        self._interval = interval
        #: How often it failed in a row.
        self.failures = 0
        #: Whether what failed last may pass by itself within moments.
        self.passing = True
        self._not_before = self._not_asked_before = 0.0

    def failed(self, *, passing: bool, soon: bool = False) -> None:
        """Wait, longer each time.

        Args:
            passing: it may end without a change of credentials or of the store.
            soon: it is over within moments: wait for an interval only, and forget former failures.
        """
        now = time.monotonic()
        self.failures, self.passing = 1 if soon else self.failures + 1, passing
        if soon:
            wait = self._interval * chance.uniform(0.75, 1.0)
        elif passing:
            wait = min(LONGEST_BACKOFF, self._interval * 2 ** min(self.failures, 10))
            wait *= chance.uniform(0.75, 1.0)
        else:
            self._not_asked_before = now + REFUSED_PAUSE
            wait = REFUSED_BACKOFF * chance.uniform(1.0, 1.25)
        self._not_before = now + wait

    def failed_partly(self, *, passing: bool) -> None:
        """Go on as usual: what failed has a backoff of its own."""
        self.failures, self.passing = 1, passing
        self.reset()

    def reset(self) -> None:
        """Try with the next occasion."""
        self._not_before = self._not_asked_before = 0.0

    def succeeded(self) -> None:
        """Begin anew."""
        self.failures, self.passing = 0, True
        self.reset()

    def like(self, other: "Backoff") -> None:
        """Try at the same moment as another."""
        self.failures, self.passing = other.failures, other.passing
        self._not_before, self._not_asked_before = other._not_before, other._not_asked_before

    @property
    def over(self) -> bool:
        """Whether it is time to try."""
        return time.monotonic() >= self._not_before

    @property
    def pause(self) -> float:
        """How long to wait where someone asks for it, seconds."""
        return max(0.0, self._not_asked_before - time.monotonic())
