"""Which meter an integration records with, where it is given none: as the settings say.

Problem: an application that does not start because of how it is watched has lost more than a
figure. And each of five integrations in one process shall not have a meter, a thread's turn and
connections of its own.

Idea: the settings are resolved one by one: given in code, else by the framework, else by the
environment. What cannot be used is logged and passed over; the next source holds, in the end the
default. Only a URL and a prefix are not passed over, since the default is another store, with other
figures in it: where these cannot be used, nothing is recorded, and the log says so.

Settings that come to the same make the same meter, as long as anybody holds it.

Bound: no lock, as a handler of logging may come here, and a signal handler. Two threads that come
at the same moment may make a meter each, which harms nothing.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary

from redmeter import Meter, settings
from redmeter.errors import InvalidSetting, RedmeterError

#: What of the table Meter takes.
METER_SETTINGS = tuple(
    setting.name
    for setting in settings.SETTINGS
    if setting.name not in (*settings.WEB, *settings.ENVIRONMENT)
)
#: What says whose figures they are.
_PLACE = ("url", "prefix")

logger = logging.getLogger("redmeter")
_made: WeakValueDictionary[tuple[str, ...], Meter] = WeakValueDictionary()


def resolved(name: str, given: Mapping[str, Any], framework: Mapping[str, Any]) -> Any:
    """Return the value of a setting; what cannot be used is logged and passed over.

    Args:
        name: as in the table.
        given: name -> value, in code; None is as good as nothing.
        framework: the framework's own settings, by the names of the environment variables, e.g.
            {"REDMETER_IGNORE_PATHS": ["/health"]}.
    """
    for value in (given.get(name), framework.get(settings.variable_of(name))):
        if value is not None:
            try:
                return settings.resolve(name, value)
            except InvalidSetting as error:
                logger.error("redmeter ignores a setting: %s", error)
    try:
        return settings.resolve(name)
    except InvalidSetting as error:
        logger.error("redmeter ignores a setting: %s", error)
        return default(name)


def default(name: str) -> Any:
    """Return the value that a setting has where nobody says anything."""
    return settings.resolve(name, environ={})


def shared_meter(given: Mapping[str, Any], framework: Mapping[str, Any] | None = None) -> Meter:
    """Return the meter that settings make, the same one for the same settings.

    Args:
        given, framework: see resolved().

    Raises:
        InvalidSetting: a URL or a prefix that cannot be used.
    """
    framework = framework or {}
    found = {}
    for name in METER_SETTINGS:
        if name in _PLACE:
            value = given.get(name)
            if value is None:
                value = framework.get(settings.variable_of(name))
            found[name] = settings.resolve(name, value)
        else:
            found[name] = resolved(name, given, framework)
    key = tuple(map(str, found.values()))
    meter = _made.get(key)
    if meter is None:
        meter = _made.setdefault(key, _open_meter(found))
    return meter


def _open_meter(found: Mapping[str, Any]) -> Meter:
    """Open a meter; an invalid `next_url`, which matters only after a move, is logged."""
    try:
        return Meter(**found)
    except InvalidSetting as error:
        if error.setting != "next_url":
            raise
        logger.error("redmeter ignores a setting: %s", error)
        return Meter(**{**found, "next_url": ""})


def off_meter() -> Meter:
    """Return a meter that records nothing, whatever the environment says."""
    return Meter(**{name: default(name) for name in METER_SETTINGS} | {"url": "off"})


def meter_of(given: Mapping[str, Any], framework: Mapping[str, Any] | None = None) -> Meter:
    """Return what shared_meter() does; where there is none, the log says so, and it is off.

    Args:
        given, framework: see resolved().
    """
    try:
        return shared_meter(given, framework)
    except RedmeterError as error:
        logger.error("redmeter does not count requests: %s", error)
        return off_meter()


def problems(framework: Mapping[str, Any], known: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield what is wrong with the settings of a framework and, where it has none, the environment.

    Args:
        framework: see resolved().
        known: see strangers().
    """
    for setting in settings.SETTINGS:
        try:
            value = settings.resolve(setting.name, framework.get(setting.variable))
            if setting.name == "url":
                Meter(**{name: default(name) for name in METER_SETTINGS} | {"url": value})
        except InvalidSetting as error:
            yield f"{setting.variable}: {error.reason}"
    yield from strangers(framework, known)


def strangers(framework: Mapping[str, Any], known: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the settings of a framework that look like Redmeter's and are none.

    Args:
        framework: see resolved().
        known: what there is beside the table.
    """
    names = {*known, *(setting.variable for setting in settings.SETTINGS)}
    for name in framework:
        if isinstance(name, str) and name.startswith(settings.VARIABLES) and name not in names:
            yield f"{name} is no setting of Redmeter"
