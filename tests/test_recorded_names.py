"""Label values are data: whatever they are, recording never raises; what is lost is visible."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import InvalidName, Meter
from redmeter.names import LABEL_BYTES, MAX_SERIES_BYTES, canonical, parse_name, recorded_name
from redmeter.testing import MemoryMeter

values = st.one_of(
    st.text(max_size=300), st.integers(), st.floats(), st.none(), st.lists(st.text(max_size=300))
)
label_sets = st.dictionaries(
    st.sampled_from(["a", "plan", "route", "user"]), values, min_size=1, max_size=4
)


class Broken:
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError


@given(label_sets, st.integers(0, 20))
def test_any_label_value_makes_a_name_that_can_be_stored(
    labels: dict[str, Any], reserve: int
) -> None:
    """Which is text as it is wherever there is room, and says so where it is not."""
    series, note = recorded_name("http_requests", labels, reserve=reserve)
    assert canonical(series) == series
    assert len(series.encode()) + reserve <= MAX_SERIES_BYTES
    texts = dict(parse_name(series).labels)
    assert texts.keys() == labels.keys()
    assert (texts == {key: str(value) for key, value in labels.items()}) == (note == "")


def test_values_are_converted_and_the_longest_are_cut() -> None:
    """Short ones stay whole; the cut is shown."""
    assert recorded_name("x", {"plan": 7, "new": True}) == ('x{new="True",plan="7"}', "")
    series, note = recorded_name("x", {"user": "u" * 300, "plan": "pro"})
    assert series.startswith('x{plan="pro",user="uuu')
    assert series.endswith('…"}')
    assert len(dict(parse_name(series).labels)["user"].encode()) == LABEL_BYTES
    assert note == "label user was cut, as a value has 120 bytes at most"
    assert recorded_name("x", {"a": "b\x00c"})[0] == 'x{a="b\ufffdc"}'
    assert recorded_name("x", {"a": Broken()})[0] == 'x{a="(Broken)"}'


@given(st.text(max_size=300), st.text(max_size=300))
def test_a_value_is_the_same_label_whatever_is_beside_it(route: str, statement: str) -> None:
    """So that series with one label in common can be joined by it."""
    alone = dict(parse_name(recorded_name("x", {"route": route})[0]).labels)
    both = dict(parse_name(recorded_name("y", {"route": route, "sql": statement})[0]).labels)
    assert both["route"] == alone["route"]


@pytest.mark.parametrize("labels", [{"a-b": "c"}, {7: "c"}, "plan", {"x": "twice"}])
def test_names_of_labels_are_code_and_raise(labels: Any) -> None:
    """As the name of a series does."""
    with pytest.raises(InvalidName):
        recorded_name('signups{x="1"}', labels)
    with pytest.raises(InvalidName):
        recorded_name("sign\nups", {"a": 7})


def meters() -> list[Meter]:
    """Return a meter that buffers, one that stores at once, and those of tests."""
    return [
        Meter("redis://127.0.0.1:1", flush_interval=3600),
        Meter("off"),
        MemoryMeter(strict=False),
    ]


def test_no_label_value_raises_in_a_request_and_what_is_cut_is_counted() -> None:
    """Of counters, gauges and histograms; also of parts of a process, whose names get longer."""
    labels: Any = {"user": "u" * 300}
    for meter in meters():
        meter.count("a", labels=labels)
        meter.count("a", labels={"id": 7})
        meter.count("a", labels={"id": [7]})
        meter.observe("b", 1.5, labels=labels)
        meter.gauge("c", labels=labels).inc()
        meter.gauge("c", labels=labels, per_process=True).set(1)
        assert meter.recorder_health().troubles["label-value"] >= 4
        assert meter.counter("a", labels=labels).name.endswith('…"}')


def test_values_that_are_equal_and_have_different_texts_stay_apart() -> None:
    """1 is equal to True."""
    meter = meters()[0]
    for value, text in ((1, "1"), (True, "True"), (1.0, "1.0")):
        name = meter.counter("a", labels={"b": value}).name
        assert name == f'a{{b="{text}"}}'


def test_the_meter_of_tests_is_strict_about_what_would_be_changed() -> None:
    """So that a test finds it; numbers are converted there as well."""
    meter = MemoryMeter()
    meter.count("a", labels={"id": 7})
    assert [event.series for event in meter.events] == ['a{id="7"}']
    for value in ("u" * 300, "\x00", Broken()):
        with pytest.raises(InvalidName, match="a Meter changes the value"):
            meter.count("a", labels={"id": value})
