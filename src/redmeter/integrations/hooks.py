"""Shared by the integrations of libraries: their meter, error accounting and bounded names."""

import contextlib
import logging
from collections.abc import Callable

from redmeter import Meter
from redmeter.errors import RedmeterError, StoreError
from redmeter.integrations.interface import Instrumentation
from redmeter.integrations.meters import shared_meter

_log = logging.getLogger("redmeter")
#: Keeps the meters alive: an integration may hold only a bound method of one.
_held: set[Meter] = set()


def meter_for(meter: Meter | None, what: str) -> Meter | None:
    """Return the given meter, or the shared one by the environment's settings, see meters.py.

    Args:
        what: the consequence of having no meter, for the log: "tasks are not measured".

    Returns:
        None if the environment's settings are invalid, after an error in the log.
    """
    if meter is not None:
        return meter
    try:
        shared = shared_meter({})
    except RedmeterError as error:
        _log.error("redmeter: %s: %s", what, error)
        return None
    _held.add(shared)
    return shared


def record_error(meter: Meter, kind: str, error: BaseException) -> None:
    """Count a failure of an integration, for Meter.recorder_health(). Never raises.

    A StoreError is ignored: the meter counts it already.
    """
    if not isinstance(error, StoreError):
        with contextlib.suppress(Exception):  # str(error) may raise
            Instrumentation(meter).record_error(kind, f"{kind}: {type(error).__name__}: {error}")


class Names:
    """Label values of limited cardinality: above the limit, new ones are `(other)`.

    Args:
        make: converts a text to a label value.
        limit: how many different values there may be.
    """

    OTHER = "(other)"

    def __init__(self, make: Callable[[str], str], limit: int) -> None:
        self._make = make
        self._limit = limit
        self._names: set[str] = set()

    def __call__(self, text: str) -> str:
        """Return the label value of a text."""
        name = self._make(text)
        if name not in self._names:
            if len(self._names) >= self._limit:
                return self.OTHER
            self._names.add(name)
        return name
