"""What may be said of how a web application is served and recorded: by its code or its settings.

The options of how requests are recorded have the names of the one table of settings, in code, in a
framework's settings and in the environment; two are functions, and given in code alone, or as the
framework has it.

Servers that load from_env() serve the application that REDMETER_APP names:

    REDMETER_APP=shop:app               the object `app` of the module `shop`
    REDMETER_APP=shop.web:site.app      attributes are followed
    REDMETER_APP=shop:create_app()      a function that returns the application

A deployment can set it, so the application's own code needs no change. Unlike with other settings,
an invalid value is an error: there would be nothing to serve.
"""

import functools
import importlib
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypedDict, cast

from redmeter import settings
from redmeter.errors import InvalidSetting
from redmeter.integrations.shared.meters import resolved

_TARGET = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*(?:\.[^\W\d]\w*)*)(\(\))?")

#: The arguments that a server calls an application with.
ASGI = ("scope", "receive", "send")
WSGI = ("environ", "start_response")
_FACTORIES = {
    ASGI: "redmeter.integrations.asgi:from_env",
    WSGI: "redmeter.integrations.wsgi:from_env()",
}
#: By the class of an application: its framework's own integration, a class that takes the
#: application, counts it by its routes, and has the meter as its attribute.
_INTEGRATIONS = {"flask.app.Flask": ("redmeter.integrations.flask", "Redmeter")}


class Arguments(TypedDict, total=False):
    """The keyword arguments of the web integrations. None counts as not given.

    Code wins over a framework's settings, those over the environment. Whatever Meter takes is
    allowed only where no meter is given. The texts of the settings come from the table in
    settings.py: `make format` writes them.
    """

    url: str | None
    """The server that stores the metrics: redis://, rediss://, redis+sentinel://, redis+cluster://,
    unix://, embedded://PATH, or off. Empty: the embedded server in the user's data directory.
    Default: empty."""
    prefix: str | None
    """The prefix of every key. Default: `redmeter:`."""
    retention: Mapping[int, int] | str | None
    """PRECISION=SAMPLES …, for a new store; afterwards the store's own retention applies (`redmeter
    retention` changes it). Default: `1=120 5=120 60=120 300=120 3600=240 18000=120 86400=120`."""
    histogram_retention: Mapping[int, int] | str | None
    """The retention of histograms, PRECISION=SAMPLES …, for a new store (`redmeter retention
    --histograms` changes it). Default: `5=24 60=120 3600=240`."""
    timeout: float | None
    """The timeout of connecting, and of each reply. Default, in seconds: `2`."""
    durability: str | None
    """What must confirm that events are durable after each flush: `replica`, that one replica has
    them; `disk`, that they are in the server's append-only file on its disk, which needs
    `appendonly yes` on Redis 7.2 or newer, or Valkey. Events without a confirmation are stored
    anyway, and counted as `unconfirmed`. The server waits three quarters of `timeout` at most.
    `none`: no confirmation. Default: `none`."""
    flush_interval: float | None
    """How long recorded events wait in memory before they are sent. Default, in seconds: `1`."""
    buffer_bytes: int | None
    """Approximate limit of the memory for events that are not stored yet; above it, texts of
    messages and old samples of fine precisions are dropped and counted. Default, in bytes:
    `16777216`."""
    repair_bytes: int | None
    """Approximate limit of the memory for events of the last minute that the server has
    acknowledged: a process sends them again if the server loses them. The default holds 30 seconds
    of 1,000 counters. 0: none; losses are reported all the same. Default, in bytes: `8388608`."""
    max_series: int | None
    """The most series of one process; further ones are recorded as (other). Default: `10000`."""
    max_label_sets: int | None
    """The most label sets of one name in one process; further ones are recorded as one series with
    the label overflow="true". For web requests only the values of the application's own labels
    become (other). Default: `2000`."""
    recent_messages: int | None
    """How many of the newest messages of each logger and severity are kept. Set it to the same
    value in all processes: if they differ, the smallest applies. Default: `100`."""
    release: str | None
    """The default label of `Meter.mark()`: a version, a commit. Default: empty."""
    embedded_idle: float | None
    """The embedded server exits after this time without a client; its data is kept. Default, in
    seconds: `3600`."""
    next_url: str | None
    """Where to send events once `redmeter migrate` has moved the store: a URL like `url`; the
    prefix is that of the move. Without it, a process keeps its events in memory then. Default:
    empty."""
    read_from: str | None
    """The server that reads and the page use: `primary` or `replica`. A replica may be slightly
    behind; if none is healthy, the primary is read. `replica` needs `redis+sentinel://` or
    `redis+cluster://`. Default: `primary`."""
    timezone: str | None
    """The time zone whose clock habits follow, an IANA name such as Europe/Berlin: for the time of
    day in forecasts and `expected` alerts, and for comparisons with yesterday or last week. Times
    are shown in UTC regardless. Default: `UTC`."""
    include_paths: str | Sequence[str] | None
    """Patterns of the paths to record, `/shop/* /api/*`; `*` matches any characters, `?` any one.
    Empty: all paths. Default: empty."""
    ignore_paths: str | Sequence[str] | None
    """Patterns of the paths to ignore, `/health`. Default: empty."""
    count_paths: str | Mapping[str, str] | None
    """PATTERN=COUNTER …; a request with such a path also increments the counter. Default: empty."""
    exact_status: bool | None
    """Whether the label `status` is exact, `404` instead of `4xx`. Default: `False`."""
    sample_durations: float | None
    """The share of requests whose duration is recorded; below 1, the series get a label `sampled`.
    Counts stay exact. Default: `1`."""
    slow_request: float | None
    """Requests that take at least this long are logged as slow. Default, in seconds: `1`."""
    cleaner: bool | None
    """Whether a thread of each serving process removes expired data once a minute. Default:
    `False`."""
    labels: Callable[[Any], Mapping[str, str] | None] | None
    """A function of the request (ASGI's scope, WSGI's environ, Django's request) that returns more
    labels for http_requests and http_request_seconds. Use labels that have few values."""
    route: Callable[[Any], str | None] | None
    """A function of the same that returns the route, a template and never a path, or None: for
    frameworks that Redmeter does not know."""


@dataclass(frozen=True, slots=True)
class Options:
    """The values of the options in Arguments that describe how requests are recorded.

    Patterns are separated by spaces, and matched against the decoded path within the application,
    without the query and without a server's or proxy's prefix. `*` matches any characters, slashes
    included.
    """

    include_paths: str = ""
    ignore_paths: str = ""
    count_paths: str = ""
    exact_status: bool = False
    sample_durations: float = 1.0
    slow_request: float = 1.0
    cleaner: bool = False
    labels: Callable[[Any], Mapping[str, str] | None] | None = None
    route: Callable[[Any], str | None] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], framework: Mapping[str, Any] | None = None) -> Self:
        """Return the options from the code, else the framework's settings, else the environment.

        An invalid value is logged and ignored, so that no setting keeps an application from
        starting.

        Args:
            given: name of an option -> value; None counts as missing.
            framework: the framework's own settings, by the names of the environment variables,
                e.g. {"REDMETER_IGNORE_PATHS": ["/health"]}.

        Raises:
            TypeError: there is no option of such a name.
        """
        names = {each.name for each in fields(cls)}
        if unknown := sorted(given.keys() - names):
            raise TypeError(f"no such option: {', '.join(unknown)}")
        values = {name: resolved(name, given, framework or {}) for name in settings.WEB}
        for name in ("labels", "route"):
            function = given.get(name)
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a function, not {type(function).__name__}")
            values[name] = function
        return cls(**values)


def load_application(arguments: tuple[str, ...]) -> Callable[..., Any]:
    """Return the application that REDMETER_APP names.

    Args:
        arguments: ASGI or WSGI.

    Raises:
        InvalidSetting: the variable is not set; the module does not exist, or importing it
            failed; the attribute is missing, or is no application of this kind. An exception of
            the module or the factory is the cause.
    """
    target = settings.resolve("app").strip()
    if not target:
        raise _invalid("not set; name the application to serve, e.g. REDMETER_APP=shop:app")
    parts = _TARGET.fullmatch(target)
    if parts is None:
        raise _invalid(f"{target!r} is not MODULE:NAME, e.g. shop:app, or shop:create_app()")
    value = _import(parts[1])
    path = parts[1]
    for name in parts[2].split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            raise _invalid(f"{path!r} has no attribute {name!r}") from None
        path += f".{name}"
    if parts[3]:
        if not callable(value):
            raise _invalid(f"{path!r} cannot be called, it is of type {type(value).__name__}")
        try:
            value = value()
        except Exception as error:
            raise _invalid(f"calling {path}() raised {type(error).__name__}: {error}") from error
    return _checked(target, value, arguments)


def own_integration(app: object) -> Callable[[Any], Any] | None:
    """Return the integration of an application's framework, if it counts more than any other's.

    Returns:
        A class that takes the application, has it counted, and has the attribute `meter`.
    """
    for kind in type(app).__mro__:
        if found := _INTEGRATIONS.get(f"{kind.__module__}.{kind.__qualname__}"):
            module, name = found
            return cast(Callable[[Any], Any], getattr(importlib.import_module(module), name))
    return None


def _import(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{module}.".startswith(f"{missing}."):
            reason = f"there is no module {missing!r} on sys.path; the working directory is"
            raise _invalid(f"{reason} {os.getcwd()}") from None  # noqa: PTH109 - as servers show it
        text = f"importing {module!r} raised {type(error).__name__}: {error}"
        raise _invalid(text) from error


def _checked(target: str, app: Any, arguments: tuple[str, ...]) -> Callable[..., Any]:
    """Return an application, if a server can call it with these arguments."""
    if not callable(app):
        raise _invalid(f"{target!r} is of type {type(app).__name__}, which is no application")
    if _takes(app, arguments):
        return app  # type: ignore[no-any-return]
    problem = f"{target!r} cannot be called with ({', '.join(arguments)})"
    for others, factory in _FACTORIES.items():
        if others != arguments and _takes(app, others):
            raise _invalid(f"{problem}, but with ({', '.join(others)}): serve {factory} instead")
    if not target.endswith(")") and _takes(app, ()):
        raise _invalid(f"{problem}; if it returns the application, write {target}()")
    raise _invalid(problem)


def _takes(app: Callable[..., Any], arguments: tuple[str, ...]) -> bool:
    """Return whether a callable takes these arguments; True if its signature is unknown."""
    try:
        inspect.signature(app).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # written in C
        return True
    return True


_invalid = functools.partial(InvalidSetting, settings.variable_of("app"))
