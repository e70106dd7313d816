"""The `instance` label, which distinguishes an application's processes, and this process's lease.

The value is a small number that Redis assigns, never a process id: process ids do not come back, so
each of them would leave a series behind. Until the number is known, the series name has an empty
value in its place: `instance=""`.

Redis gives a number to another process once its holder has been silent for INSTANCE_SECONDS by the
server's clock. A process renews its lease long before that, and stops using the number shortly
before it could be reassigned, so that a server outage does not keep it from storing on other nodes.
"""

import math

from redmeter.clock import Clock
from redmeter.names import INSTANCE, canonical, format_name, parse_name
from redmeter.store.producers import INSTANCE_SECONDS

_PLACEHOLDER = f'{INSTANCE}=""'
#: Bytes that the label takes in a name, with a number of five digits.
INSTANCE_BYTES = len(f",{_PLACEHOLDER}") + 5

#: Age at which a lease is renewed, seconds; see store/producers.py.
RENEW_SECONDS = 60.0
#: How long a number is used when the lease cannot be renewed, seconds. The rest is a margin for
#: batches in flight and for a server clock that is set forward a little.
LEASE_SECONDS = INSTANCE_SECONDS - 30.0


def per_process_series(series: str) -> str:
    """Return the name of a series with a placeholder for the instance number.

    Raises:
        InvalidName: it already has an `instance` label, or becomes too long.
    """
    return canonical(series, {INSTANCE: ""})


def needs_instance(series: str) -> bool:
    """Return whether a name may have a placeholder for the instance number."""
    return _PLACEHOLDER in series


def with_instance(series: str, number: int | None) -> str:
    """Fill in the instance number if the name has a placeholder for it."""
    if number is None or not needs_instance(series):
        return series
    base, pairs = parse_name(series)
    labels = dict(pairs)
    if labels.get(INSTANCE) == "":
        labels[INSTANCE] = str(number)
    return format_name(base, labels)


def without_instance(series: str) -> str:
    """Remove the label if it has a placeholder."""
    if not needs_instance(series):
        return series
    base, pairs = parse_name(series)
    return format_name(base, {key: value for key, value in pairs if (key, value) != (INSTANCE, "")})


class InstanceLease:
    """The lease of this process on an instance number.

    Args:
        clock: its monotonic time determines the lease's age.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._number: int | None = None
        self._renewed = -math.inf
        #: Whether any series has a placeholder for the number.
        self.needed = False

    @property
    def number(self) -> int | None:
        """The number while no other process can have it; else None."""
        return self._number if self._age <= LEASE_SECONDS else None

    @property
    def is_due(self) -> bool:
        """Whether a number is needed, and the lease has to be acquired or renewed."""
        return self.needed and (self._number is None or self._age > RENEW_SECONDS)

    @property
    def _age(self) -> float:
        return self._clock.monotonic() - self._renewed

    def renew(self, number: int | None, requested: float) -> None:
        """Record the reply of the store.

        Args:
            number: the number that this process holds; None if it holds none.
            requested: when the request was sent, or earlier, monotonic seconds.
        """
        self._number, self._renewed = number, requested
