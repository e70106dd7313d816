"""The project's meter, by Django's settings: one for each process, created on first use.

The settings are those of settings.py, named REDMETER_URL, REDMETER_IGNORE_PATHS and so on; missing
ones come from the environment. REDMETER_LABELS and REDMETER_ROUTE are functions of Django's
request, or their import paths: see shared/options.py. REDMETER_METER is a meter to use instead, or
its import path; in tests, a MemoryMeter.

An invalid setting is logged and ignored. `manage.py check` reports it, also for the environment.
"""

import logging
import threading
from collections.abc import Iterator
from typing import Any

from django.conf import settings as django_settings  # type: ignore[import-untyped]
from django.core.signals import setting_changed  # type: ignore[import-untyped]
from django.utils.module_loading import import_string  # type: ignore[import-untyped]

from redmeter import Meter
from redmeter.integrations.shared.meters import meter_of, setting_problems, unknown_settings
from redmeter.integrations.shared.options import Options
from redmeter.integrations.shared.web import Requests
from redmeter.settings import VARIABLES

#: Settings that are functions, by the names of the options.
_FUNCTIONS = {"labels": "REDMETER_LABELS", "route": "REDMETER_ROUTE"}
_METER = "REDMETER_METER"
#: Settings that are not in settings.py.
_OBJECTS = (_METER, *_FUNCTIONS.values())

_log = logging.getLogger("redmeter")
_making = threading.Lock()
_made: list[Requests] = []


def meter() -> Meter:
    """Return the project's meter; if its URL or prefix is invalid, a meter that records nothing."""
    return project_requests().meter


def project_requests() -> Requests:
    """Return the recorder of the project's requests."""
    with _making:
        if not _made:
            values = _given()
            for text in unknown_settings(values, _OBJECTS):
                _log.error("redmeter ignores a setting: %s", text)
            functions = {option: _passed_over(name) for option, name in _FUNCTIONS.items()}
            configured: Meter | None = _passed_over(_METER)
            made = configured or meter_of({}, values)
            _made.append(Requests(made, Options.of(functions, values)))
        return _made[0]


def problems() -> Iterator[str]:
    """Yield a description of each invalid setting."""
    yield from setting_problems(_given(), _OBJECTS)
    for name in _OBJECTS:
        try:
            _object(name)
        except (ImportError, TypeError) as error:
            yield f"{name}: {error}"


def _given() -> dict[str, Any]:
    return {n: getattr(django_settings, n) for n in dir(django_settings) if n.startswith(VARIABLES)}


def _object(name: str) -> Any:
    """Return the object that a setting is, or the one at its import path.

    Raises:
        ImportError: nothing can be imported from the path.
        TypeError: the object is neither a Meter nor a function, whichever the setting needs.
    """
    value = getattr(django_settings, name, None)
    if isinstance(value, str):
        value = import_string(value)
    fits = isinstance(value, Meter) if name == _METER else callable(value)
    if value is not None and not fits:
        expected = "a Meter" if name == _METER else "a function"
        raise TypeError(f"must be {expected} or its import path, not {type(value).__name__}")
    return value


def _passed_over(name: str) -> Any:
    """Return the object of a setting; if it is invalid, log an error and return None."""
    try:
        return _object(name)
    except (ImportError, TypeError) as error:
        _log.error("redmeter ignores a setting: %s: %s", name, error)
        return None


def _changed(setting: str = "", **_: object) -> None:
    """Discard the meter when a test changes a setting."""
    if setting.startswith(VARIABLES):
        with _making:
            _made.clear()  # a meter stores its pending events when it is garbage-collected


setting_changed.connect(_changed, dispatch_uid="redmeter")
