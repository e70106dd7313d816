"""Number: which of the processes this one is, as the store said last, and whether that still holds.

The store gives a number to another process once its holder was silent for INSTANCE_SECONDS by the
server's clock. It is asked for again long before; and where it cannot be asked, the number is used
until a little before. So a server that is away for a while keeps nobody from storing on others.
"""

import math

from redmeter.clock import Clock
from redmeter.recording.instance import NUMBER_SECONDS
from redmeter.store.publishing import INSTANCE_SECONDS

#: How long a number is used where it cannot be asked for again, seconds. The rest is for batches
#: that are on their way, and for a server's clock that is set forth a little.
USED_SECONDS = INSTANCE_SECONDS - 30.0


class Number:
    """The number of this process.

    Args:
        clock: by whose monotonic time it ages.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: int | None = None
        self._asked = -math.inf
        #: Whether there is a series that has a place for it.
        self.needed = False

    @property
    def usable(self) -> int | None:
        """The number, as long as it can be nobody else's; else None."""
        return self._told if self._age <= USED_SECONDS else None

    @property
    def is_due(self) -> bool:
        """Whether it is needed, and is to be asked for, or asked for again."""
        return self.needed and (self._told is None or self._age > NUMBER_SECONDS)

    @property
    def _age(self) -> float:
        return self._clock.monotonic() - self._asked

    def tell(self, number: int | None, asked: float) -> None:
        """Say what the store has told.

        Args:
            number: the one that this process holds; None: it holds none.
            asked: when it was asked, or before, monotonic seconds.
        """
        self._told, self._asked = number, asked
