"""A label that no series of a name has is an error that lists the labels, in every reader."""

import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from redmeter import Meter, UnknownLabel
from redmeter.cli.app import COMMAND_LIST, load_command
from redmeter.clock import ManualClock
from redmeter.dashboard.api.endpoints import API, ENDPOINTS
from redmeter.dashboard.api.parameters import parse_query
from redmeter.dashboard.errors import http_error_of
from redmeter.errors import RedmeterError
from redmeter.queries import Queries
from redmeter.testing import MemoryMeter
from support.invoking import invoking
from support.servers import Server
from support.stores import OpenMeter, OpenStore, exchanges

#: Kind -> a name that only it has, in each of LABEL_SETS and without labels.
NAMES = {"counter": "orders", "gauge": "temperature", "histogram": "took_seconds"}
LABEL_SETS: list[dict[str, str]] = [
    {},
    {"route": "/", "status": "2xx"},
    {"route": "/cart", "status": "4xx"},
]
#: The text about a misspelled label.
TEXT = "no series of {!r} has the label rout: labels: route, status"


class Reader(NamedTuple):
    """A way to read a name, with the arguments that name labels; "" or None: there is no such."""

    name: str
    #: Some of `by`, `labels` and `failing`.
    method: str
    options: Mapping[str, Any]
    #: The request, up to the label.
    path: str
    #: The words of the command, after its name.
    command: str
    arguments: tuple[str, ...] = ("by", "labels")


#: Each reader that takes labels; test_each_reader_is_here() finds one that is missing.
READERS = {
    "series": Reader(
        "orders", "series", {"precision": 60}, "/api/series?name=orders", "series orders"
    ),
    "gauge_series": Reader(
        "temperature",
        "gauge_series",
        {"precision": 60, "aggregate": "sum"},
        "/api/series?name=temperature&kind=gauge&aggregate=sum",
        "series temperature --aggregate sum",
    ),
    "summary": Reader(
        "took_seconds",
        "summary",
        {"precision": 60},
        "/api/summary?name=took_seconds",
        "summary took_seconds",
    ),
    "series, exactly": Reader(
        "orders",
        "series",
        {"precision": 60, "exact": True},
        "/api/series?name=orders&exact=1",
        "series orders --exact",
        ("labels",),
    ),
    "statistics": Reader("took_seconds", "statistics", {}, "", "", ("labels",)),
    "total": Reader("orders", "total", {}, "", ""),
    "forecast": Reader("orders", "forecast", {"precision": 60}, "", "forecast orders -p 60"),
    "forecast of a gauge": Reader(
        "temperature",
        "forecast",
        {"precision": 60, "aggregate": "sum"},
        "",
        "forecast temperature -p 60 --aggregate sum",
    ),
    "forecast of the page": Reader(
        "orders", "", {}, "/api/forecast?name=orders&precision=60", "", ("labels",)
    ),
    "top": Reader("orders", "top", {"precision": 60}, "/api/top?name=orders", "top orders"),
    "top by p95": Reader(
        "took_seconds",
        "top",
        {"precision": 60, "order": "p95"},
        "/api/top?name=took_seconds&order=p95",
        "top took_seconds --order p95",
    ),
    "top of failures": Reader(
        "orders",
        "top",
        {"precision": 60, "order": "failing"},
        "/api/top?name=orders&order=failing",
        "top orders",
        ("failing",),
    ),
    "top of failures by route": Reader(
        "orders",
        "top",
        {"precision": 60, "order": "failing", "by": "route"},
        "/api/top?name=orders&order=failing&by=route",
        "top orders --by route",
        ("failing",),
    ),
    "top of a pattern": Reader(
        "order*",
        "top",
        {"precision": 60},
        "/api/top?name=order*",
        "top order*",
        ("labels",),
    ),
    "top of a pattern's failures": Reader(
        "order*",
        "top",
        {"precision": 60, "order": "failing"},
        "/api/top?name=order*&order=failing",
        "top order*",
        ("failing",),
    ),
    "explain": Reader(
        "orders",
        "explain",
        {},
        "/api/explain?name=orders",
        "explain orders",
        ("labels", "failing"),
    ),
    "explain of a histogram": Reader(
        "took_seconds",
        "explain",
        {},
        "/api/explain?name=took_seconds",
        "explain took_seconds",
        ("labels",),
    ),
    "export": Reader("orders", "", {}, "", "export orders", ("labels",)),
}
CASES = [(reader, argument) for reader in READERS for argument in READERS[reader].arguments]
#: The parameter of the API, and the option of the command, by argument of a method.
PARAMETERS = {"by": "by", "labels": "label", "failing": "failing"}


def ask(meter: Meter, reader: Reader, name: str, argument: str, label: str, value: str) -> Any:
    """Call a method with a label."""
    given: Any = label if argument == "by" else {label: value}
    return getattr(meter, reader.method)(name, **{**reader.options, argument: given})


def record(meter: Meter) -> None:
    """Record each name."""
    for labels in LABEL_SETS:
        meter.count(NAMES["counter"], labels=labels)
        meter.gauge(NAMES["gauge"], labels=labels).set(21.5)
        meter.observe(NAMES["histogram"], 0.2, labels=labels)
    assert meter.flush(10.0)


def failure(call: Callable[[], object]) -> UnknownLabel | None:
    """Return the error about a label that a call raises."""
    try:
        call()
    except UnknownLabel as error:
        return error
    return None


@pytest.mark.parametrize(("reader", "argument"), CASES)
def test_every_reader_lists_the_labels(
    reader: str, argument: str, open_meter: OpenMeter, open_store: OpenStore, any_server: Server
) -> None:
    """A Meter, a MemoryMeter, a request and a command, with one text."""
    one = READERS[reader]
    meters = [open_meter(), MemoryMeter()]
    for meter in meters:
        record(meter)
    for meter in meters if one.method else ():
        error = failure(lambda m=meter: ask(m, one, one.name, argument, "rout", "/"))  # type: ignore[misc]
        assert error is not None
        assert str(error) == TEXT.format(one.name)
        assert (error.label, error.labels) == ("rout", ("route", "status"))
    word, value = PARAMETERS[argument], "rout" if argument == "by" else "rout=/"
    message, _, fix = TEXT.format(one.name).partition(": ")
    if one.path:
        path, _, query = f"{one.path}&{word}={value}".partition("?")
        (endpoint,) = (each for each in ENDPOINTS if each.path == path)
        with pytest.raises(RedmeterError) as caught:
            API(open_store()).answer(endpoint, parse_query(endpoint, query.encode()))
        problem = http_error_of(caught.value)
        assert (problem.status, problem.code) == (400, "unknown-label")
        assert (problem.message, problem.fix) == (message, fix)
    if one.command:
        with invoking() as run:
            done = run(*one.command.split(), f"--{word}", value, REDMETER_URL=any_server.url)
        assert (done.code, done.out, done.err) == (1, "", f"error: {message}; {fix}\n")


@pytest.mark.parametrize(("reader", "argument"), CASES)
def test_a_value_or_a_name_that_nothing_has_is_no_error(
    reader: str, argument: str, open_meter: OpenMeter
) -> None:
    """A filter may match nothing yet, and nothing may be recorded yet."""
    one = READERS[reader]
    for meter in (open_meter(), MemoryMeter(), open_meter(url="off")) if one.method else ():
        record(meter)
        ask(meter, one, one.name, argument, "status", "5xx")
        ask(meter, one, "nothing", argument, "rout", "/")


def test_each_reader_is_here() -> None:
    """A new reader is listed above, and so it is covered."""
    methods = {
        name
        for name, method in inspect.getmembers(Queries, inspect.isfunction)
        if not name.startswith("_") and PARAMETERS.keys() & inspect.signature(method).parameters
    }
    assert methods == {one.method for one in READERS.values() if one.method}
    paths = {
        each.path
        for each in ENDPOINTS
        if {"by", "label", "failing"} & {parameter.name for parameter in each.parameters}
    }
    assert paths == {one.path.partition("?")[0] for one in READERS.values() if one.path}
    commands = {
        name
        for name, (module, _) in COMMAND_LIST.items()
        if module != "record"  # which writes
        if {"--by", "--label", "--failing"}
        & {option for each in load_command(name).params for option in each.opts}
    }
    assert commands == {one.command.split()[0] for one in READERS.values() if one.command}


def test_the_labels_are_asked_for_only_if_none_is_found(
    open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that finds the label takes as many round trips as before."""
    meter = open_meter()
    record(meter)
    meter.series("orders", precision=60)  # connects
    for reader in ("series", "gauge_series", "summary", "top"):
        for argument in ("by", "labels") if reader != "top" else ("by",):
            one = READERS[reader]
            with exchanges(monkeypatch) as seen:
                ask(meter, one, one.name, argument, "status", "2xx")
            assert len(seen) == 1, reader
    with exchanges(monkeypatch) as seen:
        error = failure(lambda: meter.series("orders", by="rout", precision=60))
    assert error is not None
    assert len(seen) == 3  # for the samples, the names and the grand totals


@pytest.mark.parametrize("by", [["rout"], ["route", "rout"]])
def test_one_misspelled_label_among_many_label_sets_is_found(
    by: list[str], open_meter: OpenMeter
) -> None:
    """Also beyond those that the first round trip reads, and beside one that is there."""
    meter = open_meter()
    for number in range(60):
        meter.count("orders", labels={"route": f"/{number}"})
    error = failure(lambda: meter.series("orders", by=by, precision=60))
    assert error is not None
    assert (error.label, error.labels) == ("rout", ("route",))


def test_a_label_counts_as_long_as_a_total_or_an_interval_has_it(
    open_meter: OpenMeter, open_store: OpenStore, any_server: Server
) -> None:
    """Of coarser intervals that reach further back; and a grand total, which never expires."""
    meter, keys = open_meter(), open_store().keys
    meter.count("orders", labels={"plan": "pro"}, at=time.time() - 30 * 86400)
    meter.count("orders", labels={"route": "/"})
    with any_server.client() as client:
        assert meter.total("orders", labels={"plan": "free"}) == 0
        assert not meter.series("orders", labels={"plan": "pro"}, precision=60)
        for entry in client.zrange(keys.known, 0, -1):
            if b"plan" in entry:
                client.zrem(keys.known, entry)
    assert meter.total("orders", labels={"plan": "pro"}) == 1
    assert not meter.series("orders", labels={"plan": "pro"}, precision=60)
    assert failure(lambda: meter.series("orders", labels={"rout": "/"}, precision=60))


def test_series_beyond_the_limit_may_have_any_label(open_meter: OpenMeter) -> None:
    """They have lost their labels, so no one knows."""
    meter = open_meter()
    meter.count("orders", labels={"route": "/"})
    meter.count("orders", labels={"overflow": "true"})
    groups = meter.series("orders", by="plan", precision=60)
    assert {group.labels["plan"] for group in groups} == {None, "(other)"}
    assert not meter.series("orders", labels={"plan": "pro"}, precision=60)
    meter.top("orders", by="route", order="failing", failing={"plan": "pro"}, precision=60)


def test_a_rate_without_any_failure_ever_is_no_all_clear(open_meter: OpenMeter) -> None:
    """The sentence names the values there are; it does not if some failed before the windows."""
    end = int(time.time()) // 60 * 60
    for meter in (open_meter(), MemoryMeter(clock=ManualClock(end + 30))):
        for minute in range(1, 40):
            for status in ("2xx", "4xx"):
                meter.count("orders", 100, labels={"status": status}, at=end - 60 * minute)
        meter.count("orders", labels={"status": "3xx"}, at=end - 86400 * 10)
        said = {
            status: meter.explain("orders", last="15m", failing={"status": status}).sentence
            for status in ("5xx", "3xx", "4xx")
        }
        news = "No series of orders has status=5xx so far; status is 2xx, 3xx, 4xx."
        assert said["5xx"].startswith("Error rate of orders is unchanged at 0 %")
        assert said["5xx"].endswith(f" {news}")
        assert "so far" not in said["3xx"] + said["4xx"]


def test_promql_answers_as_prometheus_does_with_a_notice(
    open_meter: OpenMeter, any_server: Server
) -> None:
    """An empty result; matchers that are meant to fit series without a label have no notice."""
    meter = open_meter()
    record(meter)
    text = (
        'PromQL info: no series of metric name "{}" has the label "rout"; labels: route, status'
    ).format
    for query, infos in (
        ('orders_total{rout="/"}', [text("orders_total")]),
        ('orders_total{rout!="/"}', [text("orders_total")]),
        (
            'sum(orders_total{rout=~"/.*"}) + sum(temperature{rout="/"})',
            [text("orders_total"), text("temperature")],
        ),
        ('took_seconds_bucket{le="0.5", rout="/"}', [text("took_seconds_bucket")]),
        ('took_seconds_bucket{le="0.5"}', []),
        ('orders_total{rout=""}', []),
        ('orders_total{rout=~".*"}', []),
        ('orders_total{route="/other"}', []),
        ('nothing_total{rout="/"}', []),
    ):
        result = meter.query(query)
        assert list(result.infos) == infos, query
        assert result.warnings == ()
        assert not result.series or 'rout="/"' not in query
    with invoking() as run:
        done = run("query", 'orders_total{rout="/"}', REDMETER_URL=any_server.url)
    assert text("orders_total") in done.err
