"""The project's meter, as Django's settings say: one for each process, made when first asked for.

The settings are those of the one table (settings.py), as REDMETER_URL, REDMETER_IGNORE_PATHS and so
on; what they do not say, the environment does. REDMETER_LABELS and REDMETER_ROUTE are functions, or
where to import them from, see web.Options; they are given Django's request. REDMETER_METER is a
meter of yours, or where to import it from, in place of one that is made; for tests a MemoryMeter.
REDMETER_CLEANER says whether each process has a cleaner of the store.

A setting that cannot be used is logged and passed over, and found by `manage.py check`.
"""

import logging
import threading
from collections.abc import Iterator
from typing import Any

from django.conf import settings as django_settings  # type: ignore[import-untyped]
from django.core.signals import setting_changed  # type: ignore[import-untyped]
from django.utils.module_loading import import_string  # type: ignore[import-untyped]

from redmeter import Meter, settings
from redmeter.errors import InvalidSetting
from redmeter.integrations.web import Options, Requests, meter_of
from redmeter.integrations.wsgi import CleanerOfEachProcess

PREFIX = "REDMETER_"
#: Settings that are functions, by the names of the options.
FUNCTIONS = {"labels": "REDMETER_LABELS", "route": "REDMETER_ROUTE"}
#: Whether a thread of each process cleans the store, from its first request on.
CLEANER = "REDMETER_CLEANER"
METER, URL = "REDMETER_METER", "REDMETER_URL"

_log = logging.getLogger("redmeter")
_making = threading.Lock()
_made: list[Requests] = []


def meter() -> Meter:
    """Return the project's meter.

    Where its settings cannot be used, one that records nothing.
    """
    found = requests().meter
    assert found is not None, "requests() makes one"
    return found


def requests() -> Requests:
    """Return what records the project's requests."""
    with _making:
        if not _made:
            given = _given()
            functions = {option: _passed_over(name) for option, name in FUNCTIONS.items()}
            own: Meter | None = _passed_over(METER)
            made = own or meter_of({}, given)
            _made.append(Requests(made, Options.of(functions, given)))
        return _made[0]


def cleaner() -> CleanerOfEachProcess | None:
    """Return the cleaner of the project's store; None where none is wanted."""
    wanted = getattr(django_settings, CLEANER, False) is True
    return CleanerOfEachProcess(meter()) if wanted else None


def problems() -> Iterator[str]:
    """Yield what is wrong with the settings."""
    objects = (METER, *FUNCTIONS.values())
    names = {one.variable for one in settings.SETTINGS}
    for name, value in _given().items():
        try:
            if name in objects:
                _object(name)
            elif name == CLEANER:
                if not isinstance(value, bool):
                    yield f"{name} is True or False"
            elif name not in names:
                yield f"{name} is no setting of Redmeter"
            elif value is not None:
                settings.resolve(name.removeprefix(PREFIX).lower(), value)
                if name == URL:
                    Meter(value)  # which does nothing but look at it
        except InvalidSetting as error:
            yield str(error)
        except (ImportError, TypeError) as error:
            yield f"{name}: {error}"


def _given() -> dict[str, Any]:
    return {n: getattr(django_settings, n) for n in dir(django_settings) if n.startswith(PREFIX)}


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
        _log.error("passed over: %s: %s", name, error)
        return None


def _changed(setting: str = "", **_: object) -> None:
    """Make everything anew where a test changes a setting."""
    if setting.startswith(PREFIX):
        with _making:
            _made.clear()  # a meter that nobody holds any more stores what it has


setting_changed.connect(_changed, dispatch_uid="redmeter")
