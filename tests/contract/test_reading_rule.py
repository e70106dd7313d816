"""The reading rule, for a Meter, a MemoryMeter, the command and the HTTP API alike.

A name means all its label sets, aggregated; labels= filters, by= splits, exact= reads one series.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import pytest

from redmeter import InvalidValue, LimitExceeded, Meter, UnknownPrecision
from redmeter.clock import ManualClock
from redmeter.dashboard import Dashboard
from redmeter.testing import MemoryMeter
from support.asking import asking
from support.invoking import invoking
from support.servers import Server
from support.stores import OpenMeter, server_time

DAY = 86400
#: A value that no name has room for.
LONG = "/reports/" + "x" * 300


@pytest.fixture(params=["store", "memory"])
def meter(request: pytest.FixtureRequest, open_meter: OpenMeter, client: Any) -> Meter:
    """Return a meter of each kind, with the same events, at the same time."""
    at = server_time(client)
    if request.param == "store":
        return filled(open_meter(), at)
    return filled(MemoryMeter(clock=ManualClock(at), strict=False), at)


def filled(made: Meter, at: float | None = None) -> Meter:
    """Record the events of the rule."""
    for amount, labels in (
        (1, None),
        (2, {"plan": "free", "shop": 1}),
        (4, {"plan": "pro", "shop": 1}),
        (8, {"plan": "pro", "shop": 2}),
        (16, {"path": LONG}),
    ):
        made.count("orders", amount, labels=labels, at=at)
    for value, shop in ((1.0, "a"), (3.0, "a"), (10.0, "b")):
        made.observe("seconds", value, labels={"shop": shop}, at=at)
    made.gauge("jobs", per_process=True).set(3)
    made.gauge("heat", labels={"room": "a"}).set(20)
    made.gauge("heat", labels={"room": "b"}).set(30)
    made.flush()
    return made


#: What is read, the options, and the values by the values of the labels of `by`; None: refused.
RULE: list[tuple[str, str, dict[str, Any], dict[tuple[str | None, ...], float] | None]] = [
    ("series", "orders", {}, {(): 31}),
    ("series", "orders", {"labels": {"plan": "pro"}}, {(): 12}),
    ("series", 'orders{plan="pro"}', {"labels": {"shop": "2"}}, {(): 8}),
    ("series", "orders", {"by": ["plan"]}, {(None,): 17, ("pro",): 12, ("free",): 2}),
    (
        "series",
        "orders",
        {"by": ["plan", "shop"], "labels": {"plan": "pro"}},
        {("pro", "2"): 8, ("pro", "1"): 4},
    ),
    ("series", "orders", {"exact": True}, {(): 1}),
    ("series", "orders", {"exact": True, "labels": {"plan": "pro", "shop": "1"}}, {(): 4}),
    ("series", "orders", {"exact": True, "by": ["plan"]}, None),
    ("gauge_series", "jobs", {}, {(): 3}),
    ("gauge_series", "heat", {}, None),
    ("gauge_series", "heat", {"aggregate": "mean"}, {(): 25}),
    ("gauge_series", "heat", {"labels": {"room": "a"}}, {(): 20}),
    ("gauge_series", "heat", {"by": ["room"]}, {("a",): 20, ("b",): 30}),
    ("summary", "seconds", {}, {(): 3}),
    ("summary", "seconds", {"labels": {"shop": "b"}}, {(): 1}),
    ("summary", "seconds", {"by": ["shop"]}, {("a",): 2, ("b",): 1}),
    ("top", "orders", {"by": ["plan"]}, {(None,): 17, ("pro",): 12, ("free",): 2}),
    ("top", "orders", {"by": ["shop"], "labels": {"plan": "pro"}}, {("2",): 8, ("1",): 4}),
]

#: Answers a query with the values of its groups; None: refused.
Ask = Callable[..., Any]


def of_meter(meter: Meter) -> Ask:
    """Return what asks a Meter."""

    def ask(kind: str, name: str, **options: Any) -> Any:
        by, width = options.get("by"), 3600 if kind == "summary" else DAY
        if kind == "top":
            options["by"] = by[0] if by else None
        try:
            found = getattr(meter, kind)(name, precision=width, **options)
        except InvalidValue:
            return None
        if kind == "top":
            return {(row.key,): row.count for row in found}
        groups = {tuple(one.labels.values()): one for one in found} if by else {(): found}
        if kind == "summary":
            return {key: getattr(one, "summary", one).count for key, one in groups.items()}
        series = {key: getattr(one, "series", one) for key, one in groups.items()}
        return {key: one.total if kind == "series" else last(one) for key, one in series.items()}

    return ask


def of_json(run: Callable[[str, list[tuple[str, str]]], Any]) -> Ask:
    """Return what asks for JSON.

    Args:
        run: given a kind and options, returns the document; None: refused.
    """

    def ask(kind: str, name: str, **options: Any) -> Any:
        given = [("name", name), ("precision", "3600" if kind == "summary" else str(DAY))]
        given += [("label", f"{key}={value}") for key, value in options.get("labels", {}).items()]
        given += [("by", label) for label in options.get("by", ())]
        given += [("exact", "1")] * ("exact" in options)
        given += [("aggregate", word) for word in (options.get("aggregate"),) if word]
        found = run(kind, given)
        if found is None:
            return None
        if kind == "top":
            return {(row["key"],): row["count"] for row in found["rows"]}
        parts = next(
            (found[key] for key in ("series", "summaries", "groups") if key in found), found
        )
        parts = parts if isinstance(parts, list) else [parts]
        rows = {tuple(part.get("labels", {}).values()): part for part in parts}
        if kind == "summary":
            return {key: part["count"] for key, part in rows.items()}
        values = {
            key: [v for _, v in part["samples"]] if "samples" in part else part["values"]
            for key, part in rows.items()
        }
        return {k: sum(v) if kind == "series" else v[-1] for k, v in values.items()}

    return ask


@pytest.fixture(params=["store", "memory", "command", "api"])
def ask(
    request: pytest.FixtureRequest, any_server: Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ask]:
    """Ask each of them about the same events."""
    door = request.param
    request.getfixturevalue("client")
    meter = filled(
        MemoryMeter(clock=ManualClock(1_700_000_000.0), strict=False)
        if door == "memory"
        else request.getfixturevalue("open_meter")()
    )
    if door in ("store", "memory"):
        yield of_meter(meter)
    elif door == "command":
        monkeypatch.setenv("REDMETER_URL", any_server.url)
        with invoking() as run:

            def command(kind: str, options: list[tuple[str, str]]) -> Any:
                words = [kind.removeprefix("gauge_"), "--json"]
                for key, value in options:
                    words += [value] if key == "name" else [f"--{key}"]
                    words += [value] if key not in ("name", "exact") else []
                done = run(*words)
                return json.loads(done.out) if done.code == 0 else None

            yield of_json(command)
    else:
        dashboard = Dashboard(any_server.url, access="open")
        with asking(dashboard) as client:

            def get(kind: str, options: list[tuple[str, str]]) -> Any:
                path = kind.removeprefix("gauge_")
                extra = [("kind", "gauge")] if path != kind else []
                answer = client.get(f"/api/{path}", params=[*options, *extra])
                assert answer.status_code in (200, 400)
                return answer.json() if answer.status_code == 200 else None

            yield of_json(get)
        dashboard.close()


def test_the_rule_holds_wherever_one_asks(ask: Ask) -> None:
    """The largest group first; None for series without the label; gauges by their labels."""
    for kind, name, options, expected in RULE:
        found = ask(kind, name, **options)
        assert found == expected, (kind, name, options)
        assert found is None or list(found) == list(expected or {}), (kind, name, options)


def last(series: Any) -> Any:
    """Return the newest value of a series."""
    return series.values[-1] if series.values else None


def test_a_name_means_all_its_label_sets(meter: Meter) -> None:
    """Counters are summed, histograms merged."""
    assert meter.total("orders") == 31
    assert meter.series("orders", precision="1d").total == 31
    assert meter.series("orders", precision=DAY, last="2d").total == 31
    summary = meter.summary("seconds", precision=3600)
    assert (summary.count, summary.total, summary.low, summary.high) == (3, 14.0, 1.0, 10.0)


def test_labels_filter(meter: Meter) -> None:
    """In labels= or in braces; values are converted, cleaned and cut as when they were recorded."""
    assert meter.total("orders", labels={"plan": "pro"}) == 12
    assert meter.total('orders{plan="pro"}', labels={"shop": 2}) == 8
    assert meter.series("orders", precision=DAY, labels={"shop": 1}).total == 6
    assert meter.total("orders", labels={"path": LONG}) == 16
    assert meter.total("orders", labels={"path": LONG}, exact=True) == 16
    assert meter.series("orders", precision=DAY, labels={"path": LONG}).total == 16
    assert meter.series("orders", precision=DAY, labels={"plan": "none"}).total == 0


def test_totals_are_split_too(meter: Meter) -> None:
    """The largest group first; None for series without the label."""
    totals = [(group.labels, group.total) for group in meter.total("orders", by="plan")]
    assert totals == [({"plan": None}, 17), ({"plan": "pro"}, 12), ({"plan": "free"}, 2)]


def test_forecasts_follow_the_same_rule(meter: Meter) -> None:
    """Of the sum, or of each group, the busiest first; of gauges by their labels."""
    whole = meter.forecast("orders", precision=DAY)
    assert (whole.kind, whole.running) == ("counter", 31)
    groups = meter.forecast("orders", precision=DAY, by="plan")
    assert [(group.labels, group.forecast.running) for group in groups] == [
        ({"plan": None}, 17),
        ({"plan": "pro"}, 12),
        ({"plan": "free"}, 2),
    ]
    rooms = meter.forecast("heat", precision=DAY, by="room", labels={"room": "b"})
    assert [(one.labels, one.forecast.kind, one.forecast.running) for one in rooms] == [
        ({"room": "b"}, "gauge", 30)
    ]
    assert meter.forecast("nothing", precision=DAY, by="plan") == []
    with pytest.raises(InvalidValue):
        meter.forecast("heat", precision=DAY)
    with pytest.raises(InvalidValue):
        meter.forecast("orders", precision=DAY, by="plan", exact=True)  # type: ignore[call-overload]
    for number in range(60):
        meter.count("many", labels={"user": number})
    meter.flush()
    with pytest.raises(LimitExceeded):
        meter.forecast("many", precision=DAY, by="user")


def test_exact_reads_one_stored_series(meter: Meter) -> None:
    """Without the label sets of its name."""
    assert meter.total("orders", exact=True) == 1
    assert meter.total("orders", labels={"plan": "pro", "shop": 1}, exact=True) == 4
    assert meter.summary("seconds", precision=3600, exact=True).count == 0


def test_rankings_follow_the_same_rule(meter: Meter) -> None:
    """Rows, and how many groups were compared."""
    ranking = meter.top("orders", by="plan", precision=DAY)
    assert asdict(ranking)["rows"] == (
        {"key": None, "count": 17, "share": 17 / 31, "value": 17},
        {"key": "pro", "count": 12, "share": 12 / 31, "value": 12},
        {"key": "free", "count": 2, "share": 2 / 31, "value": 2},
    )
    assert (ranking.groups, ranking.examined, ranking.complete) == (3, 3, True)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (lambda m: m.series("orders", precision=7), UnknownPrecision),
        (lambda m: m.series("orders", precision="soon"), InvalidValue),
        (lambda m: m.series("orders", precision=DAY, last="2h", since=1), InvalidValue),
        (lambda m: m.summary("seconds", precision=3600, last=0), InvalidValue),
        (lambda m: m.top("orders", precision=DAY, limit=0), LimitExceeded),
    ],
)
def test_the_same_arguments_are_refused(
    meter: Meter, query: Callable[[Meter], Any], error: type[Exception]
) -> None:
    """With the same errors."""
    with pytest.raises(error):
        query(meter)


def test_the_value_of_a_gauge_in_memory_follows_the_rule() -> None:
    """Processes are summed; another label has to be named."""
    meter = MemoryMeter()
    assert meter.value("jobs") is None
    meter.gauge("jobs", per_process=True).set(3)
    meter.gauge("jobs").set(4)
    assert meter.value("jobs") == 7
    meter.gauge("heat", labels={"room": "a"}).set(20)
    meter.gauge("heat", labels={"room": "a"}).set(21)
    assert meter.value("heat", labels={"room": "a"}) == 21
    with pytest.raises(InvalidValue):
        meter.value("heat")
