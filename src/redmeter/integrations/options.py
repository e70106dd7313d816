"""What may be said of how requests are recorded: the options of all integrations of the web.

Their names are those of the one table of settings, in code, in a framework's settings and in the
environment; two are functions, and given in code alone, or as the framework has it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypedDict

from redmeter import settings
from redmeter.integrations.meters import resolved


class Arguments(TypedDict, total=False):
    """What integrations take by name: the settings of Meter, and the options below."""

    url: str | None
    prefix: str | None
    retention: Mapping[int, int] | str | None
    histogram_retention: Mapping[int, int] | str | None
    timeout: float | None
    flush_interval: float | None
    buffer_bytes: int | None
    max_series: int | None
    max_label_sets: int | None
    recent_messages: int | None
    release: str | None
    embedded_idle: float | None
    read_from: str | None
    previous_url: str | None
    previous_prefix: str | None
    include_paths: str | Sequence[str] | None
    ignore_paths: str | Sequence[str] | None
    count_paths: str | Mapping[str, str] | None
    exact_status: bool | None
    sample_durations: float | None
    slow_request: float | None
    cleaner: bool | None
    labels: Callable[[Any], Mapping[str, str] | None] | None
    route: Callable[[Any], str | None] | None


@dataclass(frozen=True, slots=True)
class Options:
    """What is recorded of requests; see settings.py for those that are in the table.

    Patterns are compared with the path within the application, decoded, without the query and
    without what a server or a proxy has put before it. `*` stands for any characters, slashes
    included.
    """

    #: Patterns, separated by spaces: of these paths alone. Empty: of all.
    include_paths: str = ""
    #: Of these nothing at all.
    ignore_paths: str = ""
    #: PATTERN=COUNTER, separated by spaces.
    count_paths: str = ""
    exact_status: bool = False
    #: Of which part of the requests the duration is recorded.
    sample_durations: float = 1.0
    #: From how many seconds on a request is logged as slow.
    slow_request: float = 1.0
    #: Whether a thread of each process cleans the store, see cleaner.py.
    cleaner: bool = False
    #: Takes the request as its server has it (an ASGI scope, a WSGI environ, Django's request) and
    #: returns more labels for http_requests and http_request_seconds. Few values each!
    labels: Callable[[Any], Mapping[str, str] | None] | None = None
    #: Takes the same, and returns the route, or None where there is none: for applications whose
    #: routes cannot be found otherwise.
    route: Callable[[Any], str | None] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], framework: Mapping[str, Any] | None = None) -> Self:
        """Return the options that hold: as given in code, else by the framework, the environment.

        A value that cannot be used is logged and passed over, so that no setting keeps an
        application from starting.

        Args:
            given: name, as above -> value; None is as good as nothing.
            framework: the framework's own settings, by the names of the environment variables,
                e.g. {"REDMETER_IGNORE_PATHS": ["/health"]}.

        Raises:
            TypeError: there is no option of such a name.
        """
        names = {each.name for each in fields(cls)}
        if unknown := sorted(given.keys() - names):
            raise TypeError(f"no such option: {', '.join(unknown)}")
        found = {name: resolved(name, given, framework or {}) for name in settings.WEB}
        for name in ("labels", "route"):
            function = given.get(name)
            if function is not None and not callable(function):
                raise TypeError(f"{name} is a function, not {type(function).__name__}")
            found[name] = function
        return cls(**found)
