"""Application metrics at several time precisions at once, in the Redis you already run.

The public names, nothing else. Importing this starts nothing and connects to nothing. `Meter` and
what comes with it is loaded when it is first named: the command starts without the Redis client.
"""

from redmeter import interrupts as _interrupts  # noqa: F401  first, see there

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING

from redmeter.errors import (
    AccessDenied,
    ClockDisagreement,
    EmbeddedServerError,
    IncompatibleStore,
    InvalidName,
    InvalidSetting,
    InvalidValue,
    LimitExceeded,
    MissingExtra,
    QueryError,
    RedmeterError,
    StoreError,
    StoreMoving,
    StoreRefused,
    StoreUnavailable,
    Unconfirmed,
    UnknownLabel,
    UnknownPrecision,
    WrongKind,
)

if TYPE_CHECKING:
    from redmeter.meter import Meter
    from redmeter.recording.instruments import Counter, Gauge, Histogram
    from redmeter.recording.scopes import CountedExceptions, InProgress, Timer
    from redmeter.results.recorder import Loss, RecorderHealth
    from redmeter.types import Mark

__version__ = "0.1.0"

__all__ = [
    "AccessDenied",
    "ClockDisagreement",
    "CountedExceptions",
    "Counter",
    "EmbeddedServerError",
    "Gauge",
    "Histogram",
    "InProgress",
    "IncompatibleStore",
    "InvalidName",
    "InvalidSetting",
    "InvalidValue",
    "LimitExceeded",
    "Loss",
    "Mark",
    "Meter",
    "MissingExtra",
    "QueryError",
    "RecorderHealth",
    "RedmeterError",
    "StoreError",
    "StoreMoving",
    "StoreRefused",
    "StoreUnavailable",
    "Timer",
    "Unconfirmed",
    "UnknownLabel",
    "UnknownPrecision",
    "WrongKind",
    "__version__",
]

#: Module -> the names that are loaded from it when one of them is first used.
_LATE = {
    "meter": ("Meter",),
    "recording.instruments": ("Counter", "Gauge", "Histogram"),
    "recording.scopes": ("CountedExceptions", "InProgress", "Timer"),
    "results.recorder": ("Loss", "RecorderHealth"),
    "types": ("Mark",),
}


def __getattr__(name: str) -> object:
    for module, names in _LATE.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"redmeter.{module}"), name)
            return value
    raise AttributeError(f"module 'redmeter' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
