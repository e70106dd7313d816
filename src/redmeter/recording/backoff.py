"""Backoff: when to retry after a failure.

The pause doubles with each failure, with jitter so that many processes do not return at once. If
the store denies access or has an unknown format, it is 30 s. If only a slot of a healthy server is
moving, it is about one interval.
"""

import time
from random import SystemRandom

# Not the application's generator, which may be seeded for reproducible results.
chance = SystemRandom()

#: Longest pause while the store is unreachable, seconds.
LONGEST_BACKOFF = 15.0
#: Pause if the store denies access or has an unknown format, seconds.
REFUSED_BACKOFF = 30.0
#: The same if a flush is requested.
REFUSED_PAUSE = 1.0


class Backoff:
    """Decides when to retry. Times are monotonic seconds.

    Args:
        interval: seconds between two attempts while nothing fails.
    """

    __slots__ = ("_interval", "_not_asked_before", "_not_before", "failures", "passing")

    def __init__(self, interval: float) -> None:
        self._interval = interval
        #: Failures in a row.
        self.failures = 0
        #: Whether a retry may succeed within moments.
        self.passing = True
        self._not_before = self._not_asked_before = 0.0

    def failed(self, *, passing: bool, soon: bool = False) -> None:
        """Back off, longer each time.

        Args:
            passing: it may succeed without a change of credentials or of the store.
            soon: it takes only moments: pause for one interval, and forget former failures.
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
        """Continue as usual: the part that failed has its own backoff."""
        self.failures, self.passing = 1, passing
        self.reset()

    def reset(self) -> None:
        """Allow an attempt at once."""
        self._not_before = self._not_asked_before = 0.0

    def succeeded(self) -> None:
        """Forget all failures."""
        self.failures, self.passing = 0, True
        self.reset()

    def like(self, other: "Backoff") -> None:
        """Retry at the same moment as another one."""
        self.failures, self.passing = other.failures, other.passing
        self._not_before, self._not_asked_before = other._not_before, other._not_asked_before

    @property
    def over(self) -> bool:
        """Whether a retry is allowed now."""
        return time.monotonic() >= self._not_before

    @property
    def pause(self) -> float:
        """How long a requested flush must wait, seconds."""
        return max(0.0, self._not_asked_before - time.monotonic())
