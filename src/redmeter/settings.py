"""The one table of settings: name, environment variable, default, unit, help.

Code, environment, command line and documentation all read it, so a setting is called the same
everywhere. A value given in code wins over the environment, the environment over the default.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from redmeter.errors import InvalidSetting, shown
from redmeter.keys import DEFAULT_PREFIX, DEFAULT_RETENTION, Retention, check_prefix


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    name: str
    default: Any
    #: Turns text, or a value given in code, into the value; raises InvalidSetting.
    read: Callable[[Any], Any]
    #: seconds, or "" where there is none.
    unit: str
    help: str

    @property
    def variable(self) -> str:
        """The environment variable, e.g. REDMETER_URL."""
        return f"REDMETER_{self.name.upper()}"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidSetting("url", f"text, not {type(value).__name__}")
    return value


def _seconds(name: str, low: float, high: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = -1.0
        if isinstance(value, bool) or not low <= number <= high:
            raise InvalidSetting(
                name, f"{shown(value, 40)} is not a number of seconds, {low} to {high}"
            )
        return number

    return read


def _whole(name: str, low: int, high: int, unit: str) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError):
            number = -1
        if isinstance(value, bool | float) or not low <= number <= high:
            raise InvalidSetting(
                name, f"{shown(value, 40)} is not a whole number of {unit}, {low} to {high}"
            )
        return number

    return read


def _retention(value: Any) -> Retention:
    if isinstance(value, Retention):
        return value
    if isinstance(value, str):
        return Retention.parse(value)
    if not isinstance(value, Mapping):
        raise InvalidSetting("retention", f"a mapping or text, not {type(value).__name__}")
    return Retention(value)


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "url",
        "",
        _text,
        "",
        "Where the store is: redis://, rediss://, unix://, embedded://PATH, or off. "
        "Empty: the embedded server in the user's data directory.",
    ),
    Setting("prefix", DEFAULT_PREFIX, check_prefix, "", "What stands before every key."),
    Setting(
        "retention",
        Retention(DEFAULT_RETENTION),
        _retention,
        "",
        "PRECISION=SAMPLES …, for a store that is new; afterwards the store's own holds "
        "(`redmeter retention` changes it).",
    ),
    Setting(
        "timeout",
        2.0,
        _seconds("timeout", 0.01, 300.0),
        "seconds",
        "How long to wait for a connection, and for each answer.",
    ),
    Setting(
        "flush_interval",
        1.0,
        _seconds("flush_interval", 0.01, 3600.0),
        "seconds",
        "How long what was recorded waits in memory until it is sent.",
    ),
    Setting(
        "buffer_bytes",
        16 * 2**20,
        _whole("buffer_bytes", 2**16, 2**40, "bytes"),
        "bytes",
        "How much memory may hold what is not stored yet, about; above it, old fine slices are "
        "given up, and counted.",
    ),
    Setting(
        "max_series",
        10_000,
        _whole("max_series", 1, 10_000_000, "series"),
        "series",
        "How many series one process tells apart; all further ones become (other).",
    ),
    Setting(
        "max_label_sets",
        2_000,
        _whole("max_label_sets", 1, 10_000_000, "label sets"),
        "label sets",
        'How many of one name; all further ones become one series, labelled overflow="true".',
    ),
    Setting(
        "embedded_idle",
        3600.0,
        _seconds("embedded_idle", 1.0, 10_000_000.0),
        "seconds",
        "After how long without a client the embedded server ends by itself; its data stay.",
    ),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def resolve(name: str, given: Any = None, environ: Mapping[str, str] | None = None) -> Any:
    """Return the value of a setting.

    Args:
        name: as in the table.
        given: the value given in code or on the command line, None where none was.
        environ: instead of the process' environment.

    Raises:
        InvalidSetting: the value cannot be used; the message names the variable it came from.
    """
    setting = _BY_NAME[name]
    if given is not None:
        return setting.read(given)
    text = (os.environ if environ is None else environ).get(setting.variable)
    if text is None:
        return setting.default
    try:
        return setting.read(text)
    except InvalidSetting as error:
        raise InvalidSetting(setting.variable, error.reason) from None
