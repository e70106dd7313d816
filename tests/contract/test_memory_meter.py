"""What a meter takes and refuses is the same of all three: in memory, at once and in background."""

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from redmeter import InvalidSetting, Meter
from redmeter.clock import ManualClock
from redmeter.testing import MemoryMeter
from support.servers import Server

Call = Callable[[Any], object]

PRECISIONS = (60, "1min", 60.0, True, None, 0, -60, 7, "60", 10**30)
LABELS: tuple[Any, ...] = (
    *({"a": 1}, {"a": None}, {"": "x"}, {"a b": "x"}, {1: "x"}, {"a": ""}, {"a": "x" * 300}),
    *({"a": "\n"}, {"a": "ä"}, [], "x"),
)
NAMES = ("hits", "", 5, None, "a{", "a\n", "x" * 300, 'a{b="c"}', b"a")
NUMBERS = ("x", float("nan"), 1e300, True, -1.0, 10**400, None, float("inf"), 0, 3)


def calling(method: str, *args: Any, **options: Any) -> Call:
    """Return what calls a method of a meter."""
    return lambda meter: getattr(meter, method)(*args, **options)


def through(kind: str, name: Any, method: str, *args: Any, **options: Any) -> Call:
    """Return what calls a method of a counter, gauge or histogram without options of its own."""
    labels = options.pop("labels", None)
    return lambda meter: getattr(getattr(meter, kind)(name, labels=labels), method)(
        *args, **options
    )


def asked() -> Iterator[Call]:
    """Yield calls that ask, with each argument in turn."""
    for precision in PRECISIONS:
        for method in ("series", "gauge_series", "summary", "top", "forecast"):
            yield calling(method, "hits", precision=precision)
        for method in ("series_many", "summary_many"):
            yield calling(method, ["hits"], precision=precision)
    for labels in LABELS:
        yield calling("total", "hits", labels=labels)
        yield calling("top", "hits", precision=60, labels=labels)
        for method in ("series", "gauge_series", "summary"):
            yield calling(method, "hits", precision=60, labels=labels)
    for name in NAMES:
        for method in (
            "total",
            "names",
            "statistics",
            "log_messages",
            "log_frequencies",
            "log_changes",
        ):
            yield calling(method, name)
        for method in ("series", "gauge_series", "summary", "top", "series_many", "summary_many"):
            yield calling(method, name, precision=60)
        for option in ("by", "order"):
            yield calling("top", "hits", precision=60, **{option: name})
        yield calling("names", "*", kind=name)
        yield calling("log_messages", "app", severity=name)
        yield calling("series_many", [name], precision=60)
    for number in NUMBERS:
        for option in ("since", "until"):
            for method in ("series", "gauge_series", "summary", "top"):
                yield calling(method, "hits", precision=60, **{option: number})
        for option in ("limit", "last"):
            yield calling("top", "hits", precision=60, **{option: number})
        yield calling("summary", "hits", precision=60, last=number)
        yield calling("forecast", "hits", precision=60, ahead=number)
        yield calling("log_messages", "app", limit=number)
        yield calling("marks", since=number)


def recorded() -> Iterator[Call]:
    """Yield calls that record, with each argument in turn."""
    for labels in LABELS:
        yield calling("count", "hits", labels=labels)
        yield calling("observe", "took", 1, labels=labels)
        yield through("counter", "hits", "inc", labels=labels)
        yield through("gauge", "depth", "set", 1, labels=labels)
        yield through("histogram", "took", "observe", 1, labels=labels)
    for name in NAMES:
        yield calling("count", name)
        yield calling("count", name, labels={"b": "d"})
        yield calling("observe", name, 1)
        yield through("counter", name, "inc")
        yield through("gauge", name, "set", 1)
        yield calling("log", name, "message")
        yield calling("log", "app", name)
        yield calling("log", "app", "message", severity=name)
        yield calling("mark", name)
    for number in NUMBERS:
        yield calling("count", "hits", at=number)
        yield calling("observe", "took", 1, at=number)
        yield through("gauge", "depth", "set", 1, at=number)
        yield calling("mark", "v1", at=number)
        yield calling("count", "hits", number)
        yield calling("observe", "took", number)
        yield through("counter", "hits", "inc", number)
        yield through("gauge", "depth", "set", number)


def outcome(call: Call, meter: Any) -> tuple[str, str]:
    """Return what a call returned, by its type, or raised, by its text."""
    try:
        return "returned", type(call(meter)).__name__
    except Exception as error:  # noqa: BLE001  whatever it is
        return type(error).__name__, str(error)


@pytest.mark.parametrize("calls", [asked, recorded])
def test_all_meters_take_and_refuse_the_same(
    calls: Callable[[], Iterator[Call]], server: Server
) -> None:
    """With the same error in the same words, whatever is given."""
    clock = ManualClock(time.time())
    with Meter(server.url, sync=True) as at_once, Meter(server.url, flush_interval=60) as later:
        meters = {
            "memory": MemoryMeter(clock=clock, strict=False),
            "at once": at_once,
            "later": later,
        }
        for meter in (at_once, meters["memory"]):
            meter.count("hits")
            meter.observe("took", 1)
        for call in calls():
            found = {kind: outcome(call, meter) for kind, meter in meters.items()}
            assert len({*found.values()}) == 1, found


@pytest.mark.parametrize("option", ["retention", "histogram_retention"])
@pytest.mark.parametrize("given", ["60", "60=0", "x=1", {}, {60: 0}, {60: "x"}, {"a": 1}, 5])
def test_a_retention_that_cannot_be_used_is_refused_alike(option: str, given: Any) -> None:
    """As a setting, with its name."""

    def refusal(make: Callable[..., Meter]) -> str:
        with pytest.raises(InvalidSetting) as caught:
            make(**{option: given})
        return str(caught.value)

    assert refusal(MemoryMeter) == refusal(functools.partial(Meter, "redis://127.0.0.1:1"))
