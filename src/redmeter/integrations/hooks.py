"""What the hooks of libraries share: which meter, and that nothing of a hook ever raises."""

import contextlib
import logging
from collections.abc import Callable

from redmeter import Meter
from redmeter.errors import RedmeterError, StoreError
from redmeter.integrations.interface import Instrumentation
from redmeter.integrations.meters import shared_meter

_log = logging.getLogger("redmeter")
#: What hooks were given, which may hold no more of it than what it looks at.
_held: set[Meter] = set()


def meter_for(meter: Meter | None, what: str) -> Meter | None:
    """Return a meter, or where none is given the one that the environment says, see meters.py.

    Args:
        what: what comes of it where none can be made, for the log: "tasks are not measured".

    Returns:
        None where the environment says nothing that can be used, after an error in the log.
    """
    if meter is not None:
        return meter
    try:
        found = shared_meter({})
    except RedmeterError as error:
        _log.error("redmeter: %s: %s", what, error)
        return None
    _held.add(found)
    return found


def record_error(meter: Meter, kind: str, error: BaseException) -> None:
    """Count that a hook failed: see Meter.health(). Never raises.

    A store that cannot be reached is no trouble of a hook: a meter counts that by itself.
    """
    if not isinstance(error, StoreError):
        with contextlib.suppress(Exception):  # an error that has no text
            Instrumentation(meter).record_error(kind, f"{kind}: {type(error).__name__}: {error}")


class Names:
    """Texts for labels, so many of them: each further one is `(other)`.

    Args:
        make: makes a name of what it is of; called once for each.
        limit: how many different names there may be.
    """

    OTHER = "(other)"

    def __init__(self, make: Callable[[str], str], limit: int) -> None:
        self._make = make
        self._limit = limit
        self._names: set[str] = set()

    def __call__(self, of: str) -> str:
        """Return the name of something."""
        name = self._make(of)
        if name not in self._names:
            if len(self._names) >= self._limit:
                return self.OTHER
            self._names.add(name)
        return name
