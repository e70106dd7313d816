"""The project's meter, as Django's settings say: one for each process, made when first asked for.

The settings are those of the one table (settings.py), as REDMETER_URL, REDMETER_IGNORE_PATHS and so
on; what they do not say, the environment does. REDMETER_LABELS and REDMETER_ROUTE are functions, or
where to import them from, see web.Options; they are given Django's request. REDMETER_METER is a
meter of yours, or where to import it from, in place of one that is made; for tests a MemoryMeter.

A setting that cannot be used is logged and passed over, and found by `manage.py check`, which looks
at the environment too.
"""

import logging
import threading
from collections.abc import Iterator
from typing import Any

from django.conf import settings as django_settings  # type: ignore[import-untyped]
from django.core.signals import setting_changed  # type: ignore[import-untyped]
from django.utils.module_loading import import_string  # type: ignore[import-untyped]

from redmeter import Meter
from redmeter.integrations import meters
from redmeter.integrations.cleaner import CleanerOfEachProcess
from redmeter.integrations.meters import meter_of, strangers
from redmeter.integrations.options import Options
from redmeter.integrations.web import Requests
from redmeter.settings import VARIABLES

#: Settings that are functions, by the names of the options.
FUNCTIONS = {"labels": "REDMETER_LABELS", "route": "REDMETER_ROUTE"}
METER = "REDMETER_METER"
#: Settings that are no rows of the table.
OBJECTS = (METER, *FUNCTIONS.values())

_log = logging.getLogger("redmeter")
_making = threading.Lock()
_made: list[Requests] = []


def meter() -> Meter:
    """Return the project's meter.

    Where its settings cannot be used, one that records nothing.
    """
    return requests().meter


def requests() -> Requests:
    """Return what records the project's requests."""
    with _making:
        if not _made:
            given = _given()
            for text in strangers(given, OBJECTS):
                _log.error("redmeter ignores a setting: %s", text)
            functions = {option: _passed_over(name) for option, name in FUNCTIONS.items()}
            own: Meter | None = _passed_over(METER)
            made = own or meter_of({}, given)
            _made.append(Requests(made, Options.of(functions, given)))
        return _made[0]


def cleaner() -> CleanerOfEachProcess | None:
    """Return the cleaner of the project's store; None where none is wanted."""
    return CleanerOfEachProcess(meter()) if requests().options.cleaner else None


def problems() -> Iterator[str]:
    """Yield what is wrong with the settings."""
    yield from meters.problems(_given(), OBJECTS)
    for name in OBJECTS:
        try:
            _object(name)
        except (ImportError, TypeError) as error:
            yield f"{name}: {error}"


def _given() -> dict[str, Any]:
    return {n: getattr(django_settings, n) for n in dir(django_settings) if n.startswith(VARIABLES)}


def _object(name: str) -> Any:
    """Return what a setting is, or names.

    Raises:
        ImportError, TypeError: it cannot be used.
    """
    value = getattr(django_settings, name, None)
    if isinstance(value, str):
        value = import_string(value)
    fits = isinstance(value, Meter) if name == METER else callable(value)
    if value is not None and not fits:
        wanted = "a Meter" if name == METER else "a function"
        raise TypeError(f"{wanted}, or where to import it from, not {type(value).__name__}")
    return value


def _passed_over(name: str) -> Any:
    """Return what a setting is, or names; None, and an error in the log, if it cannot be used."""
    try:
        return _object(name)
    except (ImportError, TypeError) as error:
        _log.error("redmeter ignores a setting: %s: %s", name, error)
        return None


def _changed(setting: str = "", **_: object) -> None:
    """Make everything anew where a test changes a setting."""
    if setting.startswith(VARIABLES):
        with _making:
            _made.clear()  # a meter that nobody holds any more stores what it has


setting_changed.connect(_changed, dispatch_uid="redmeter")
