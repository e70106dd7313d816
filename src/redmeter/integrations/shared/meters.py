"""The meter of an integration that is given none, by the settings.

Problem: an application must start even if its monitoring is misconfigured. And five integrations in
one process should share one meter, with its thread and connections.

Idea: each setting is resolved from the code, else the framework's settings, else the environment.
An invalid value is logged and ignored: the next source applies, and finally the default. Only a URL
and a prefix have no such fallback, since the default would be another store, with other data: if
one is invalid, nothing is recorded, and an error is logged.

Equal settings return the same meter, as long as anything holds a reference to it.

Bound: no lock, since a logging handler or a signal handler may call this. Two threads at the same
moment may create a meter each, which is harmless.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary

from redmeter import Meter, settings
from redmeter.errors import InvalidSetting, RedmeterError

#: The settings that Meter takes as arguments.
METER_SETTINGS = tuple(
    setting.name
    for setting in settings.SETTINGS
    if setting.name not in (*settings.WEB, *settings.ENVIRONMENT)
)
#: The settings that identify a store.
_PLACE = ("url", "prefix")

logger = logging.getLogger("redmeter")
_made: WeakValueDictionary[tuple[str, ...], Meter] = WeakValueDictionary()
#: Keeps the meters of meter_for() alive: an integration may hold only a bound method of one.
_held: set[Meter] = set()


def resolved(name: str, given: Mapping[str, Any], framework: Mapping[str, Any]) -> Any:
    """Return the value of a setting; an invalid one is logged and ignored.

    Args:
        name: see settings.SETTINGS.
        given: name -> value, in code; None counts as missing.
        framework: the framework's own settings, by the names of the environment variables, e.g.
            {"REDMETER_IGNORE_PATHS": ["/health"]}.
    """
    values = [given.get(name), framework.get(settings.variable_of(name))]
    for value in [*(value for value in values if value is not None), None]:  # None: environment
        try:
            return settings.resolve(name, value)
        except InvalidSetting as error:
            logger.error("redmeter ignores a setting: %s", error)
    return default(name)


def default(name: str) -> Any:
    """Return the default of a setting."""
    return settings.resolve(name, environ={})


def shared_meter(given: Mapping[str, Any], framework: Mapping[str, Any] | None = None) -> Meter:
    """Return the meter of these settings; equal settings share one.

    Args:
        given, framework: see resolved().

    Raises:
        InvalidSetting: the URL or the prefix is invalid.
    """
    framework = framework or {}
    values = {}
    for name in METER_SETTINGS:
        if name in _PLACE:
            value = given.get(name)
            if value is None:
                value = framework.get(settings.variable_of(name))
            values[name] = settings.resolve(name, value)
        else:
            values[name] = resolved(name, given, framework)
    key = tuple(map(str, values.values()))
    meter = _made.get(key)
    if meter is None:
        meter = _made.setdefault(key, _open_meter(values))
    return meter


def _open_meter(values: Mapping[str, Any]) -> Meter:
    """Open a meter; an invalid `next_url`, which matters only after a move, is logged."""
    try:
        return Meter(**values)
    except InvalidSetting as error:
        if error.setting != "next_url":
            raise
        logger.error("redmeter ignores a setting: %s", error)
        return Meter(**{**values, "next_url": ""})


def off_meter() -> Meter:
    """Return a meter that records nothing, regardless of the environment."""
    return Meter(**{name: default(name) for name in METER_SETTINGS} | {"url": "off"})


def meter_of(given: Mapping[str, Any], framework: Mapping[str, Any] | None = None) -> Meter:
    """Return the shared meter; if its URL or prefix is invalid, log that and return off_meter().

    Args:
        given, framework: see resolved().
    """
    try:
        return shared_meter(given, framework)
    except RedmeterError as error:
        logger.error("redmeter does not count requests: %s", error)
        return off_meter()


def meter_for(meter: Meter | None, what: str) -> Meter | None:
    """Return the given meter, or the shared one by the environment's settings.

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
        logger.error("redmeter: %s: %s", what, error)
        return None
    _held.add(shared)
    return shared


def setting_problems(framework: Mapping[str, Any], known: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the problems of a framework's settings, or of the environment's where it has none.

    Args:
        framework: see resolved().
        known: see unknown_settings().
    """
    for setting in settings.SETTINGS:
        try:
            value = settings.resolve(setting.name, framework.get(setting.variable))
            if setting.name == "url":
                Meter(**{name: default(name) for name in METER_SETTINGS} | {"url": value})
        except InvalidSetting as error:
            yield f"{setting.variable}: {error.reason}"
    yield from unknown_settings(framework, known)


def unknown_settings(framework: Mapping[str, Any], known: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a problem for each setting of a framework that begins like Redmeter's and is unknown.

    Args:
        framework: see resolved().
        known: valid names that are not in settings.SETTINGS.
    """
    names = {*known, *(setting.variable for setting in settings.SETTINGS)}
    for name in framework:
        if isinstance(name, str) and name.startswith(settings.VARIABLES) and name not in names:
            yield f"{name} is not a setting of Redmeter"
