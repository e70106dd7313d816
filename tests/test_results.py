"""Results: a series is a sequence of samples; results are frozen, and serialize by their fields."""

import copy
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pydantic
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

import redmeter
from redmeter import results
from redmeter.clock import ManualClock
from redmeter.results import Ranked, Sample, Series, Spread, Summary
from redmeter.testing import MemoryMeter
from support.asgi import ask

series = st.builds(
    lambda precision, first, values: Series(
        "hits", precision, first * precision, tuple(values), partial=True
    ),
    st.integers(1, 86400),
    st.integers(-100, 100),
    st.lists(st.integers(0, 2**63 - 1), max_size=12),
)
bounds = st.none() | st.integers(-15, 15)


@given(series, bounds, bounds, bounds.filter(lambda step: step != 0))
def test_a_series_is_the_sequence_of_its_samples(
    some: Series[int], start: int | None, stop: int | None, step: int | None
) -> None:
    """Its length, order, members, slices and ends are those of a list of samples."""
    samples = [
        Sample(some.start + index * some.precision, value)
        for index, value in enumerate(some.values)
    ]
    assert list(some) == samples
    assert len(some) == len(samples)
    assert bool(some) is bool(samples)
    assert some[start:stop:step] == samples[start:stop:step]
    assert list(reversed(some)) == samples[::-1]
    assert [some[i] for i in range(-len(samples), len(samples))] == samples * 2
    assert all(sample in some for sample in samples)
    assert Sample(some.start - some.precision, 0) not in some
    assert some.total == sum(value for _, value in samples)


@given(series)
def test_a_series_ends_where_its_samples_end(some: Series[int]) -> None:
    """An index past either end is an IndexError, not a sample at a time made up."""
    for index in (len(some), -len(some) - 1, 10**6, -(10**6)):
        with pytest.raises(IndexError):
            some[index]


def test_a_series_says_when_and_how_often() -> None:
    """An example in plain numbers."""
    some = Series("hits", 60, 1585900020, (3, 0, 2), partial=True)
    assert some[0] == (1585900020, 3)
    assert some[-1] == Sample(start=1585900140, value=2)
    assert some[1:] == [(1585900080, 0), (1585900140, 2)]
    assert (some.total, some.index(Sample(1585900080, 0))) == (5, 1)
    assert not Series("hits", 60, 0, (), partial=False)


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        (Sample(0, 1), "value"),
        (Series("hits", 60, 0, (1,), partial=False), "values"),
        (Ranked("a", 1, 1.0), "count"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_result_cannot_be_changed(value: Any, attribute: str) -> None:
    """Equal results are one key of a dict."""
    with pytest.raises(AttributeError):
        setattr(value, attribute, 2)
    twin = copy.deepcopy(value)
    assert {value: "found"}[twin] == "found"


# --- Serialization -------------------------------------------------------------------------

START = 1_700_000_040.0
#: A query of each result type; `by` and lists included.
QUERIES: Mapping[str, Callable[[MemoryMeter], Any]] = {
    "series": lambda m: m.series("orders", precision=60),
    "series_by": lambda m: m.series("orders", precision=60, by="plan"),
    "series_many": lambda m: m.series_many(['orders{plan="pro"}'], precision=60),
    "gauge": lambda m: m.gauge_series("queue", precision=60),
    "gauge_by": lambda m: m.gauge_series("heat", precision=60, by="room"),
    "forecast": lambda m: m.forecast("orders", precision=60),
    "no_forecast": lambda m: m.forecast("nothing", precision=60),
    "summary": lambda m: m.summary("checkout_seconds", precision=60),
    "summary_by": lambda m: m.summary("checkout_seconds", precision=60, by="shop"),
    "no_summary": lambda m: m.summary("nothing", precision=60),
    "summary_many": lambda m: m.summary_many(["checkout_seconds"], precision=60),
    "over_time": lambda m: m.summary("checkout_seconds", precision=60).over_time(),
    "statistics": lambda m: m.statistics('checkout_seconds{shop="a"}'),
    "total": lambda m: m.total("orders"),
    "total_by": lambda m: m.total("orders", by="plan"),
    "top": lambda m: m.top("orders", by="plan", precision=60),
    "marks": lambda m: m.marks(),
    "recent": lambda m: m.log_messages("shop"),
    "common": lambda m: m.log_frequencies("shop"),
    "loggers": lambda m: m.loggers(),
    "changes": lambda m: m.log_changes(),
    "health": lambda m: m.recorder_health(),
    "names": lambda m: m.names(),
    "events": lambda m: m.events,
    "messages": lambda m: m.messages,
}


@pytest.fixture
def meter() -> MemoryMeter:
    """Return a meter with an event of each kind, and half an hour of orders."""
    clock = ManualClock(START - 1800)
    meter = MemoryMeter(clock=clock)
    for minute in range(30):
        meter.count("orders", 5 + minute % 3, labels={"plan": "pro" if minute % 2 else "free"})
        clock.advance(60)
    meter.gauge("queue").set(3)
    meter.gauge("heat", labels={"room": "attic"}).set(21.5)
    clock.advance(120)
    meter.gauge("queue").set(2.5)
    for value in (-1.5, 0.0, 0.2, 0.25, 3.0):
        meter.observe("checkout_seconds", value, labels={"shop": "a"})
    meter.log("shop", "payment failed", severity="error")
    meter.mark("v1")
    return meter


def plain(value: object) -> Any:
    """Return a result as `dataclasses.asdict` does, within lists and mappings too."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value


def fetched(app: FastAPI, path: str) -> Any:
    """Return the JSON of an endpoint."""
    answer = ask(app, path)
    assert (answer.status, answer.error) == (200, None)
    return json.loads(answer.body)


def results_in(value: object) -> Iterator[object]:
    """Yield every part of a result: fields, members of lists and of mappings."""
    yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts: Any = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, Mapping):
        parts = value.values()
    else:
        parts = value if isinstance(value, list | tuple) else ()
    for part in parts:
        yield from results_in(part)


def test_fastapi_returns_the_fields_of_a_result(meter: MemoryMeter) -> None:
    """An endpoint that returns a result responds with the JSON of `dataclasses.asdict`."""
    app = FastAPI()
    for name, query in QUERIES.items():
        app.get(f"/{name}")(partial(query, meter))
    for name, query in QUERIES.items():
        result = query(meter)
        expected = json.loads(json.dumps(plain(result), allow_nan=False))
        assert fetched(app, f"/{name}") == expected, name
        assert json.loads(pydantic.TypeAdapter(Any).dump_json(result)) == expected, name


def test_results_have_neither_named_tuples_nor_properties_that_raise(meter: MemoryMeter) -> None:
    """Their parts are dataclasses, containers and plain values."""
    for query in QUERIES.values():
        for part in results_in(query(meter)):
            assert not hasattr(part, "_fields"), part
            for name in dir(type(part)) if dataclasses.is_dataclass(part) else ():
                if isinstance(getattr(type(part), name), property):
                    getattr(part, name)


def test_annotated_endpoints_have_a_schema_and_the_same_json(meter: MemoryMeter) -> None:
    """FastAPI and pydantic read the fields of the types, generic ones included."""
    app = FastAPI()

    @app.get("/series")
    def series() -> results.Series[int]:
        return meter.series("orders", precision=60)

    @app.get("/groups")
    def groups() -> list[results.Group[int]]:
        return meter.series("orders", precision=60, by="plan")

    @app.get("/gauge")
    def gauge() -> results.Series[float | None]:
        return meter.gauge_series("queue", precision=60)

    @app.get("/summary")
    def summary() -> results.Summary:
        return meter.summary("checkout_seconds", precision=60)

    @app.get("/top")
    def top() -> results.Ranking:
        return meter.top("orders", by="plan", precision=60)

    @app.get("/changes")
    def changes() -> results.Changes:
        return meter.log_changes()

    @app.get("/forecast")
    def forecast() -> results.Forecast:
        return meter.forecast("orders", precision=60)

    @app.get("/health")
    def health() -> redmeter.RecorderHealth:
        return meter.recorder_health()

    for endpoint in (series, groups, gauge, summary, top, changes, forecast, health):
        expected = json.loads(json.dumps(plain(endpoint())))
        assert fetched(app, f"/{endpoint.__name__}") == expected, endpoint
    schemas = fetched(app, "/openapi.json")["components"]["schemas"]
    assert {"Summary", "Ranked", "Change", "ForecastPoint"} <= schemas.keys()
    assert schemas["Bucket"]["required"] == ["low", "high", "count"]


def test_a_series_names_its_fields(meter: MemoryMeter) -> None:
    """The start and the width locate every value; a gap is null."""
    assert plain(meter.gauge_series("queue", precision=60)) == {
        "name": "queue",
        "precision": 60,
        "start": START // 60 * 60,
        "values": (3, None, 2.5),
        "partial": True,
        "window": {
            "precision": 60,
            "since": START // 60 * 60 - 117 * 60,
            "until": START // 60 * 60 + 180,
            "running": True,
            "requested": None,
            "reaching": None,
        },
    }


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=50))
def test_a_summary_made_of_its_fields_has_the_same_quantiles(values: list[float]) -> None:
    """All that it computes, it computes of its fields."""
    meter = MemoryMeter()
    for value in values:
        meter.observe("x", value)
    summary = meter.summary("x", precision=60)
    fields = {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)}
    again = Summary(**fields)
    assert again == summary
    qs = (0, 0.1, 0.5, 0.9, 0.95, 0.99, 1)
    assert again.quantiles(qs) == summary.quantiles(qs)
    assert (summary.p50, summary.p90, summary.p95, summary.p99) == tuple(summary.quantiles(qs[2:6]))
    assert list(again.over_time()) == []
    ((_, spread),) = summary.over_time() if values else ((0, summary),)
    assert isinstance(spread, Spread)
    assert spread.buckets == summary.buckets
