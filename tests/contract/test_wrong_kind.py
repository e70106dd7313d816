"""A query of the wrong kind is an error that names the right call, in every reader."""

from collections.abc import Callable
from typing import Any

import pytest

from redmeter import Meter, WrongKind
from redmeter.cli.failure import failure_of
from redmeter.dashboard.api.endpoints import API, ENDPOINTS
from redmeter.dashboard.api.parameters import parse_query
from redmeter.dashboard.errors import http_error_of
from redmeter.errors import RedmeterError
from redmeter.names import canonical
from redmeter.testing import MemoryMeter
from support.stores import OpenMeter, OpenStore, exchanges

#: Kind -> a name that only it has.
NAMES = {"counter": "orders", "gauge": "temperature", "histogram": "took_seconds"}
#: The call that reads a kind.
FIXES = {
    "counter": "use series() or total()",
    "gauge": "use gauge_series()",
    "histogram": "use summary()",
}
#: Query -> the kinds that it reads, and the call.
QUERIES: dict[str, tuple[set[str], Callable[..., Any]]] = {
    "series": ({"counter"}, lambda meter, name, **o: meter.series(name, precision=60, **o)),
    "total": ({"counter"}, lambda meter, name, **o: meter.total(name, **o)),
    "gauge_series": (
        {"gauge"},
        lambda meter, name, **o: meter.gauge_series(name, precision=60, aggregate="sum", **o),
    ),
    "summary": ({"histogram"}, lambda meter, name, **o: meter.summary(name, precision=60, **o)),
    "forecast": (
        {"counter", "gauge"},
        lambda meter, name, **o: meter.forecast(name, precision=60, aggregate="sum", **o),
    ),
}
#: The same of queries that take no options: exact ones, and rankings of a name.
EXACT: dict[str, tuple[set[str], Callable[..., Any]]] = {
    "series_many": ({"counter"}, lambda meter, name: meter.series_many([name], precision=60)),
    "gauge_series_many": (
        {"gauge"},
        lambda meter, name: meter.gauge_series_many([name], precision=60),
    ),
    "summary_many": ({"histogram"}, lambda meter, name: meter.summary_many([name], precision=60)),
    "statistics": ({"histogram"}, lambda meter, name: meter.statistics(name)),
    "top": ({"counter", "histogram"}, lambda meter, name: meter.top(name, precision=60)),
    "top by": (
        {"counter", "histogram"},
        lambda meter, name: meter.top(name.partition("{")[0], by="place", precision=60),
    ),
    "top of failures": (
        {"counter"},
        lambda meter, name: meter.top(
            name, precision=60, order="failing", failing={"place": "cellar"}
        ),
    ),
    "top by p95": ({"histogram"}, lambda meter, name: meter.top(name, precision=60, order="p95")),
}


def record(meter: Meter, **labels: str) -> None:
    """Record each name as its kind, in a label set."""
    meter.count(NAMES["counter"], labels=labels)
    meter.gauge(NAMES["gauge"], labels=labels).set(21.5)
    meter.observe(NAMES["histogram"], 0.2, labels=labels)
    assert meter.flush(10.0)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("labels", [{}, {"place": "attic"}])
def test_a_meter_names_the_right_call(
    query: str, labels: dict[str, str], open_meter: OpenMeter
) -> None:
    """A Meter and a MemoryMeter, with the same text: also of a filter, of groups, and exactly."""
    kinds, call = QUERIES[query]
    meters = [open_meter(), MemoryMeter()]
    for meter in meters:
        record(meter, place="attic")
        record(meter, **labels)
    options: list[dict[str, Any]] = [{}, {"labels": {"place": "cellar"}}, {"by": "place"}]
    options += [{"exact": True, "labels": labels}]
    for kind, name in NAMES.items():
        for more in options if kind not in kinds else ({}, {"by": "place"}):
            for meter in meters:
                if kind in kinds:
                    assert call(meter, name, **more)
                    continue
                with pytest.raises(WrongKind) as caught:
                    call(meter, name, **more)
                assert (caught.value.kind, caught.value.fix) == (kind, FIXES[kind])
                assert str(caught.value) == f"{name!r} is recorded as a {kind}: {FIXES[kind]}"


@pytest.mark.parametrize("query", EXACT)
@pytest.mark.parametrize("labels", [{}, {"place": "attic"}])
def test_exact_queries_and_rankings_name_the_right_call(
    query: str, labels: dict[str, str], open_meter: OpenMeter
) -> None:
    """With the same text; a list is refused for one of its names."""
    kinds, call = EXACT[query]
    for meter in (open_meter(), MemoryMeter()):
        record(meter, place="attic")
        record(meter, **labels)
        for kind, name in NAMES.items():
            if kind in kinds:
                call(meter, canonical(name, labels))
                continue
            with pytest.raises(WrongKind) as caught:
                call(meter, canonical(name, labels))
            assert str(caught.value) == f"{name!r} is recorded as a {kind}: {FIXES[kind]}"
        with pytest.raises(WrongKind, match="'temperature' is recorded as a gauge"):
            meter.series_many(
                [canonical(NAMES[kind], labels) for kind in ("counter", "gauge")], precision=60
            )
        assert not meter.top("temp*", precision=60)


@pytest.mark.parametrize("query", QUERIES | EXACT)
def test_a_name_that_nothing_has_is_no_error(query: str, open_meter: OpenMeter) -> None:
    """Nothing is recorded yet; nor is it one if two kinds share the name."""
    _, call = (QUERIES | EXACT)[query]
    for meter in (open_meter(), MemoryMeter(), open_meter(url="off")):
        record(meter)
        call(meter, "nothing")
        labels = {"place": "attic"}
        meter.count("shared", labels=labels)
        meter.gauge("shared", labels=labels).set(1)
        meter.observe("shared", 1.0, labels=labels)
        meter.flush(10.0)
        call(meter, "shared")


def test_the_kind_is_asked_for_only_if_nothing_is_found(
    open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that finds something takes one round trip, as before."""
    meter = open_meter()
    record(meter)
    meter.series("orders", precision=60)  # connects
    with exchanges(monkeypatch) as seen:
        for query, name in (
            ("series", "orders"),
            ("gauge_series", "temperature"),
            ("summary", "took_seconds"),
            ("forecast", "temperature"),
        ):
            QUERIES[query][1](meter, name)
        assert len(seen) == 4
        with pytest.raises(WrongKind):
            meter.series("temperature", precision=60)
        assert len(seen) == 6
        for query, name in (
            ("series_many", "orders"),
            ("gauge_series_many", "temperature"),
            ("summary_many", "took_seconds"),
            ("statistics", "took_seconds"),
            ("top", "orders"),
        ):
            EXACT[query][1](meter, name)
        assert len(seen) == 11
        for number in (50, 100):  # of which 50 are checked
            meter.series_many([f"other{n}" for n in range(number)], precision=60)
        assert (len(seen), seen[-1]) == (15, seen[-3])


@pytest.mark.parametrize(
    ("path", "query", "fix"),
    [
        ("/api/series", "name=temperature", "ask /api/series with kind=gauge"),
        ("/api/series", "name=took_seconds", "ask /api/summary for it"),
        ("/api/series", "name=orders&kind=gauge", "ask /api/series for it"),
        ("/api/summary", "name=orders", "ask /api/series for it"),
        ("/api/forecast", "name=took_seconds", "ask /api/summary for it"),
        ("/api/top", "name=temperature", "ask /api/series with kind=gauge"),
        ("/api/top", "name=orders&order=p95", "ask /api/series for it"),
    ],
)
def test_the_api_and_the_command_name_their_own_calls(
    path: str, query: str, fix: str, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """Of the same error: a request, and a command."""
    record(open_meter())
    (endpoint,) = (one for one in ENDPOINTS if one.path == path)
    with pytest.raises(RedmeterError) as caught:
        API(open_store()).answer(endpoint, parse_query(endpoint, query.encode()))
    error = http_error_of(caught.value)
    assert (error.status, error.code, error.fix) == (400, "wrong-kind", fix)
    failure = failure_of(caught.value)
    assert failure is not None
    assert (failure.exit_code, failure.code) == (1, "wrong-kind")
    command = "summary" if "summary" in fix else "series"
    assert failure.fix == f"redmeter {command} {query.partition('=')[2].partition('&')[0]}"
