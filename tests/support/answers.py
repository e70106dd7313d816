"""What the readers answer about a whole store, to compare it with another one."""

from collections.abc import Callable, Iterable
from typing import Any

from redmeter import Meter
from redmeter.errors import RedmeterError
from support.invoking import Run

#: Kind of series -> the methods of a meter that read one, with their options.
_READS: dict[str, dict[str, dict[str, Any]]] = {
    "counter": {"series": {"precision": 60}, "total": {}, "forecast": {"precision": 3600}},
    "gauge": {"gauge_series": {"precision": 60}},
    "histogram": {"summary": {"precision": 60}, "statistics": {}},
}
#: Commands that read, without `--url` and `--prefix`.
_COMMANDS = (
    *(("names", "--json"), ("exceptions", "--json"), ("mark", "--list", "--json")),
    *(("export", "--to", "-", "--format", "jsonl", "-p", width) for width in ("1m", "1h", "1d")),
    ("top", "--json"),
)
_QUERY = ("query", 'sum by (__name__) ({__name__=~".+"})', "--json", "--at")


def answers(
    redmeter: Run,
    url: str,
    prefix: str,
    *,
    at: int,
    loggers: Iterable[str],
    statistics: Iterable[str],
) -> dict[str, Any]:
    """Return what each reader answers: an object, or the text of an error.

    Args:
        at: the time of PromQL queries, Unix seconds.
        loggers, statistics: names that no index has, as the listings write none for them.
    """
    found: dict[str, Any] = {}

    def add(what: str, read: Callable[..., Any], *args: Any, **options: Any) -> None:
        try:
            found[what] = read(*args, **options)
        except RedmeterError as error:
            found[what] = f"{type(error).__name__}: {error}"

    with Meter(url, prefix=prefix, sync=True) as meter:
        for kind, reads in _READS.items():
            names = found[kind] = meter.names(kind=kind)
            for name in names:
                for method, options in reads.items():
                    add(f"{method} {name}", getattr(meter, method), name, **options)
        for name in statistics:
            add(f"statistics {name}", meter.statistics, name)
        logs = found["loggers"] = meter.loggers()
        for name in {*loggers, *(log.logger for log in logs)}:
            for severity in (None, "info", "warning", "error"):
                for method in ("log_messages", "log_frequencies"):
                    what = f"{method} {name} {severity}"
                    add(what, getattr(meter, method), name, severity=severity)
        found["changes"] = meter.log_changes()
        found["exceptions"] = meter.exceptions()
        found["marks"] = meter.marks()
    for command in (
        *_COMMANDS,
        (*_QUERY, str(at)),
        *(("logs", name, "--json") for name in loggers),
    ):
        done = redmeter(*command, "--url", url, "--prefix", prefix)
        found[" ".join(command)] = (done.code, done.out, done.err)
    return found
