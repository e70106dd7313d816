"""Keys under which another program keeps something else: what is read beside them."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from redmeter import AccessDenied, Meter, StoreRefused
from support.servers import Server
from support.stores import OpenMeter

pytestmark = pytest.mark.servers

#: What is read, the key that is broken, and what is there all the same.
Case = tuple[Callable[[Meter], Any], str, Any]

CASES: dict[str, Case] = {
    "series_many": (
        lambda m: set(m.series_many(["hits", "other"], precision=60)),
        "count:60:hits",
        {"other"},
    ),
    "summary_many": (
        lambda m: set(m.summary_many(["took", "size"], precision=60)),
        "hist:60:took",
        {"size"},
    ),
    "moments": (
        lambda m: set(m.summary_many(["took", "size"], precision=60)),
        "moments:60:took",
        {"size"},
    ),
    "all label sets": (
        lambda m: m.summary("lat", precision=60).count,
        'hist:60:lat{a="1"}',
        1,
    ),
    "top": (lambda m: [r.key for r in m.top(precision=60)], "count:60:hits", ["other"]),
    "top by total": (
        lambda m: [r.key for r in m.top("lat", by="a", precision=60, order="total")],
        'moments:60:lat{a="1"}',
        ["2"],
    ),
    "top by percentile": (
        lambda m: [r.key for r in m.top("lat", by="a", precision=60, order="p95")],
        'hist:60:lat{a="1"}',
        ["2"],
    ),
    "changes": (
        lambda m: {c.logger for c in m.log_changes()},
        "common:app:info",
        {"web"},
    ),
    "changes and patterns": (
        lambda m: {c.logger for c in m.log_changes()},
        "patterns:app:info",
        {"web"},  # nobody knows whether it is new
    ),
    "a logger": (lambda m: {x.text for x in m.log_messages("app")}, "recent:app:info", {"failed"}),
    "its patterns": (
        lambda m: {f.pattern for f in m.log_frequencies("app")},
        "common:app:info:last",
        {"failed"},
    ),
}


@pytest.fixture
def meter(client: Any, open_meter: OpenMeter) -> Meter:
    """A meter that has recorded a little of everything."""
    meter = open_meter()
    for name in ("hits", "other"):
        meter.count(name)
    for name in ("took", "size", 'lat{a="1"}', 'lat{a="2"}'):
        meter.observe(name, 1.5)
    meter.log("app", "text")
    meter.log("app", "failed", severity="error")
    meter.log("web", "started")
    if client:
        client.delete("redmeter:common:app:error", "redmeter:steps:app:error")
        meter.log("app", "failed", severity="error")
    return meter


@pytest.mark.parametrize("case", CASES)
def test_a_key_of_another_type_takes_nothing_else_away(
    client: Any, meter: Meter, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    """It is left out, and a warning names it."""
    read, key, left = CASES[case]
    # What was observed is read from hours, too, where the window begins with one.
    observed = key.startswith(("hist:60:", "moments:60:"))
    widths = (":60:", ":3600:") if observed else (":60:",)
    keys = [f"redmeter:{key}".replace(":60:", width) for width in widths]
    with caplog.at_level(logging.WARNING):
        read(meter)
        assert not caplog.records
        for each in keys:
            client.delete(each)
            client.set(each, "theirs")
        if case.startswith("changes"):
            client.delete("redmeter:common:app:error", "redmeter:steps:app:error")
        assert read(meter) == left
    (record,) = caplog.records
    assert record.name == "redmeter.reading"
    assert any(f"'{each}'" in record.getMessage() for each in keys)


def test_many_keys_of_another_type_are_one_warning(
    client: Any, meter: Meter, caplog: pytest.LogCaptureFixture
) -> None:
    """Which names three of them."""
    names = [f"broken{n}" for n in range(5)]
    for name in names:
        client.set(f"redmeter:count:60:{name}", "theirs")
    with caplog.at_level(logging.WARNING):
        assert set(meter.series_many(["hits", *names], precision=60)) == {"hits"}
    (record,) = caplog.records
    assert record.getMessage().endswith("'redmeter:count:60:broken2' … (2 more)")


@pytest.mark.parametrize(
    ("read", "key"),
    [
        (lambda m: m.series("hits", precision=60), "count:60:hits"),
        (lambda m: m.gauge_series("depth", precision=60), "gauge:60:depth"),
        (lambda m: m.summary("took", precision=60), "hist:60:took"),
        (lambda m: m.statistics("took"), "stats:took"),
        (lambda m: m.total("hits"), "total:"),
        (lambda m: m.log_messages("app", severity="info"), "recent:app:info"),
        (lambda m: m.log_frequencies("app", severity="info"), "common:app:info"),
        (lambda m: m.loggers(), "messages:"),
        (lambda m: m.marks(), "marks:"),
    ],
)
def test_what_is_of_one_key_is_an_error_that_names_it(
    client: Any, meter: Meter, read: Callable[[Meter], Any], key: str
) -> None:
    """There is nothing else to tell."""
    client.delete(f"redmeter:{key}")
    client.set(f"redmeter:{key}", "theirs")
    with pytest.raises(StoreRefused) as caught:
        read(meter)
    assert (caught.value.code, caught.value.key) == ("WRONGTYPE", f"redmeter:{key}")
    assert f"another program keeps something else under 'redmeter:{key}'" in str(caught.value)


def test_another_error_takes_the_reading_away(
    client: Any, any_server: Server, meter: Meter
) -> None:
    """Who may not read is not told of a part as if it were the whole."""
    client.execute_command("ACL", "SETUSER", "ada", "on", ">s", "~*", "+@all", "-lrange")
    client.set("redmeter:recent:app:error", "theirs")
    with Meter(any_server.url.replace("://", "://ada:s@")) as limited, pytest.raises(AccessDenied):
        limited.log_messages("app")
