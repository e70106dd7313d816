"""What is recorded of a request, whatever serves it; and that recording never fails it."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import Meter
from redmeter.errors import StoreUnavailable
from redmeter.integrations.shared import web
from redmeter.integrations.shared.databases import collect, spend
from redmeter.integrations.shared.options import Options
from redmeter.integrations.shared.web import DISCONNECTED, Requests
from redmeter.names import parse_name
from redmeter.testing import MemoryMeter
from support.servers import Server


def series(meter: MemoryMeter, name: str) -> list[dict[str, str]]:
    """Return the labels of all series of a name."""
    parsed = map(parse_name, sorted({event.series for event in meter.events}))
    return [dict(each.labels) for each in parsed if each.base == name]


def requests_of(meter: Meter, **options: Any) -> Requests:
    """Return what records, with some options."""
    return Requests(meter, Options.of(options))


def ask(requests: Requests, path: str = "/a", route: str | None = "/a", **more: Any) -> None:
    """Record a request, if its path is watched."""
    if requests.watched(path):
        given: dict[str, Any] = {"method": "GET", "status": 200, "seconds": 0.25, **more}
        requests.record(path=path, route=route, **given)


# What is recorded


def test_a_request_is_a_hit_an_outcome_and_a_duration(memory: MemoryMeter) -> None:
    """By route, and in totals; nothing else, and no message."""
    ask(requests_of(memory))
    assert [event.series for event in memory.events] == [
        "hits",
        "hits_failed",
        'http_requests{method="GET",route="/a",status="2xx"}',
        'http_request_seconds{method="GET",route="/a"}',
        "hits_seconds",
    ]
    assert memory.observed('http_request_seconds{method="GET",route="/a"}') == [0.25]
    assert memory.observed("hits_seconds") == [0.25]
    assert memory.messages == []


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("labels", [None, lambda _: {"plan": "free"}])
def test_failed_are_server_errors(memory: MemoryMeter, exact: bool, labels: Any) -> None:
    """With a status of 5xx, or an exception; anything else adds nothing."""
    requests = requests_of(memory, exact_status=exact, labels=labels)
    for status in (200, 304, 404, 499, 500, 503, 599, 600, DISCONNECTED, None, "500"):
        ask(requests, status=status)
        ask(requests, status=status)
    ask(requests, status=200, error=ValueError())
    assert (memory.recorded("hits"), memory.recorded("hits_failed")) == (23, 7)


def test_an_interval_without_failures_has_a_zero(server: Server) -> None:
    """So that its readers know that failures were counted in it."""
    with Meter(server.url, flush_interval=3600) as meter:
        requests = requests_of(meter)
        ask(requests)
        assert meter.flush()
        hits, failed = (meter.series(name, precision=3600) for name in ("hits", "hits_failed"))
        assert [(sample.start, sample.value) for sample in hits] == [(hits.start, 1)]
        assert [(sample.start, sample.value) for sample in failed] == [(hits.start, 0)]
        ask(requests, status=500)
        assert meter.flush()
        assert (meter.total("hits"), meter.total("hits_failed")) == (2, 1)
        assert meter.summary("hits_seconds", precision=3600).count == 2


@pytest.mark.parametrize(
    ("status", "told", "exact"),
    [
        (200, "2xx", "200"),
        (100, "1xx", "100"),
        (404, "4xx", "404"),
        (599, "5xx", "599"),
        (DISCONNECTED, DISCONNECTED, DISCONNECTED),
        (600, "other", "600"),
        (999, "other", "999"),
        (99, "other", "other"),
        (1000, "other", "other"),
        (0, "other", "other"),
        (-200, "other", "other"),
        (None, "other", "other"),
        ("200 OK", "other", "other"),
    ],
)
def test_a_status_is_a_class_or_exact(
    memory: MemoryMeter, status: Any, told: str, exact: str
) -> None:
    """What is no status is `other`, so that no value of it is a series of its own."""
    for setting, wanted in ((False, told), (True, exact)):
        memory.forget()
        ask(requests_of(memory, exact_status=setting), status=status)
        assert [each["status"] for each in series(memory, "http_requests")] == [wanted]


@pytest.mark.parametrize(
    ("method", "told"),
    [("GET", "GET"), ("QUERY", "QUERY"), ("get", "_OTHER"), ("PROPFIND", "_OTHER"), ("", "_OTHER")],
)
def test_a_method_that_is_not_known_is_other(memory: MemoryMeter, method: str, told: str) -> None:
    """Whoever asks chooses the method."""
    ask(requests_of(memory), method=method)
    assert series(memory, "http_requests")[0]["method"] == told
    assert series(memory, "http_request_seconds")[0]["method"] == told


@pytest.mark.parametrize("route", [None, "", "\x00\u202e"])
def test_a_request_without_a_route_is_unmatched(memory: MemoryMeter, route: str | None) -> None:
    """Its path is no label."""
    ask(requests_of(memory), "/secret/7", route)
    assert series(memory, "http_requests")[0]["route"] == "(unmatched)"


@given(st.text(), st.text(max_size=8), st.integers() | st.text(max_size=5))
def test_any_request_has_names_that_are_allowed(route: str, method: str, status: Any) -> None:
    """However long the route is, and whatever it holds; nothing goes wrong on the way."""
    memory = MemoryMeter()
    ask(requests_of(memory, sample_durations=1), "/", route, method=method, status=status)
    assert len(series(memory, "http_requests")) == len(series(memory, "http_request_seconds")) == 1
    assert memory.recorder_health().troubles == {}


@pytest.mark.parametrize("route", ["/" + "x" * 500, "/" + "ü" * 100, "/" + '\\"' * 100])
def test_a_long_route_is_cut_visibly(memory: MemoryMeter, route: str) -> None:
    """By the bytes that it takes in a name, beside the longest of all other labels."""
    requests = requests_of(memory, sample_durations=0.0001)
    requests._share = 1.1  # always
    ask(requests, "/", route, method="WEBSOCKET", status=DISCONNECTED)
    (found,) = series(memory, "http_requests")
    assert found["route"].endswith("…")
    assert route.startswith(found["route"][:-1])
    assert series(memory, "websocket_seconds") == [{"route": found["route"]}]
    ask(requests, "/", route, method="OPTIONS", status=DISCONNECTED)
    assert len(series(memory, "http_request_seconds")) == 1


def test_an_exception_is_a_server_error_and_a_message(memory: MemoryMeter) -> None:
    """Its pattern is method, route and place; its text says what the error says, masked."""
    try:
        raise ValueError("password=hunter2 is wrong")
    except ValueError as error:
        ask(requests_of(memory), error=error, status=200)
        ask(requests_of(memory, exact_status=True), error=error, status=503)
    assert [each["status"] for each in series(memory, "http_requests")] == ["503", "5xx"]
    (found,) = memory.log_frequencies("http")
    assert found.pattern.startswith("GET /a [ValueError at test_web.py:")
    assert (found.count, memory.logged("http", "error")[0][:6]) == (2, "GET /a")
    assert "hunter2" not in memory.logged("http")[0]


def test_a_slow_request_is_a_message_with_its_route(memory: MemoryMeter) -> None:
    """From the threshold on; a failed one is told by its exception alone."""
    requests = requests_of(memory, slow_request=2)
    for seconds in (1.99, 2.0, 31.5):
        ask(requests, seconds=seconds)
    ask(requests, seconds=9.0, method="WEBSOCKET")
    ask(requests, seconds=9.0, error=ValueError())
    assert memory.logged("http", "warning") == [
        "slow request GET /a: 2.000 s, path /a",
        "slow request GET /a: 31.500 s, path /a",
    ]
    assert [each.pattern for each in memory.log_frequencies("http", severity="warning")] == [
        "slow request GET /a"
    ]


def test_a_slow_request_names_its_path_and_its_database_time_in_one_pattern(
    memory: MemoryMeter,
) -> None:
    """Whatever paths strangers ask for; secrets in them are masked."""
    requests = requests_of(memory, slow_request=2)
    with collect() as spent:
        spend(0.25)  # a connection
        spend(0.5, 1)
    paths = [*(f"/users/{number}" for number in range(50)), "/users/token=s3cret-value"]
    for path in paths:
        requests.record("GET", path, "/users/{id}", 200, 3.0, spent=spent)
        with collect() as nothing:
            pass
        requests.record("GET", path, "/users/{id}", 200, 3.0, spent=nothing)
    logged = memory.logged("http", "warning")
    what = "slow request GET /users/{id}"
    assert logged[0] == f"{what}: 3.000 s, database 0.750 s in 1 statement, path /users/0"
    assert logged[99] == f"{what}: 3.000 s, path /users/49"
    assert logged[-1] == f"{what}: 3.000 s, path /users/token=***"
    assert [each.pattern for each in memory.log_frequencies("http", severity="warning")] == [what]


def test_a_stream_is_slow_by_when_it_began(memory: MemoryMeter) -> None:
    """However long it lasts."""
    requests = requests_of(memory, slow_request=2)
    for began in (0.5, 2.0, None):
        requests.record("GET", "/a", "/a", 200, 60.0, began=began)
    assert memory.logged("http", "warning") == [
        "slow request GET /a: 2.000 s, path /a",
        "slow request GET /a: 60.000 s, path /a",
    ]


@pytest.mark.parametrize("labels", [None, lambda _: {"plan": "free"}])
def test_methods_that_strangers_make_up_are_remembered_as_one(
    memory: MemoryMeter, labels: Any
) -> None:
    """Else they would take the place of those that are asked for."""
    requests = requests_of(memory, labels=labels)
    for number in range(50):
        with collect() as spent:
            spend(0.5)
        requests.record(f"M{number}", "/a", None, 405, 1.0, spent=spent)
    assert (len(requests._handles), len(requests._waits)) == (1, 1)
    assert {each["method"] for each in series(memory, "http_requests")} == {"_OTHER"}


# Which requests, and what more of them


@pytest.mark.parametrize(
    ("options", "watched"),
    [
        ({}, ["/health", "/api/v1/a", "/api", "/a/health"]),
        ({"ignore_paths": "/health"}, ["/api/v1/a", "/api", "/a/health"]),
        ({"ignore_paths": ["*/health", "/api"]}, ["/api/v1/a"]),
        ({"include_paths": "/api/*"}, ["/api/v1/a"]),
        ({"include_paths": "/api*, /health", "ignore_paths": "*/v?/*"}, ["/health", "/api"]),
        ({"include_paths": "/[ah]*"}, ["/health", "/api/v1/a", "/api", "/a/health"]),
    ],
)
def test_patterns_of_paths_say_what_is_recorded(
    memory: MemoryMeter, options: dict[str, Any], watched: list[str]
) -> None:
    """The whole path has to match; nothing at all is recorded of any other."""
    requests = requests_of(memory, **options)
    paths = ["/health", "/api/v1/a", "/api", "/a/health"]
    assert [path for path in paths if requests.watched(path)] == watched
    for path in paths:
        ask(requests, path)
    assert memory.recorded("hits") == len(watched)


def test_a_pattern_may_have_a_counter_of_its_own(memory: MemoryMeter) -> None:
    """Beside `hits`; a path may match several."""
    requests = requests_of(memory, count_paths={"/shop/*": "shop_hits", "*/pay": "payments"})
    for path in ("/shop/pay", "/shop/a", "/other"):
        ask(requests, path)
    assert [memory.recorded(name) for name in ("hits", "shop_hits", "payments")] == [3, 2, 1]


def test_sampling_leaves_the_applications_random_numbers_alone(memory: MemoryMeter) -> None:
    """They may be seeded: for a simulation, or for tests."""
    requests = requests_of(memory, sample_durations=0.5)
    random.seed(17)
    before = random.getstate()
    for _ in range(20):
        ask(requests)
    assert random.getstate() == before


def test_a_sample_of_durations_says_that_it_is_one(memory: MemoryMeter) -> None:
    """By a label of the series; counts stay exact, and slow ones are all told."""
    requests = requests_of(memory, sample_durations=0.1)
    for _ in range(1000):
        ask(requests, seconds=2.0)
    assert memory.recorded('http_requests{method="GET",route="/a",status="2xx"}') == 1000
    name = 'http_request_seconds{method="GET",route="/a",sampled="0.1"}'
    assert 50 <= len(memory.observed(name)) <= 200
    assert len(series(memory, "http_request_seconds")) == 1
    assert series(memory, "hits_seconds") == [{"sampled": "0.1"}]
    assert memory.observed('hits_seconds{sampled="0.1"}') == memory.observed(name)
    assert len(memory.messages) == 1000


def test_a_function_may_add_labels(memory: MemoryMeter) -> None:
    """To the count and the duration; it is given what the server gave."""
    requests = requests_of(memory, labels=lambda request: {"plan": request["plan"]})
    for plan in ("pro", "free", "pro"):
        ask(requests, request={"plan": plan})
    for name in ("http_requests", "http_request_seconds"):
        assert sorted(each["plan"] for each in series(memory, name)) == ["free", "pro"]
    name = 'http_requests{method="GET",plan="pro",route="/a",status="2xx"}'
    assert memory.recorded(name) == 2


def test_too_many_labels_of_the_application_hide_no_failure(server: Server) -> None:
    """Method, route and status stay; only the function's labels become (other)."""
    with Meter(server.url, flush_interval=3600, max_label_sets=3) as meter:
        requests = requests_of(meter, labels=lambda user: {"user": str(user)} if user else {})
        for user in range(1, 9):
            ask(requests, "/b", "/b", request=user)
        ask(requests, request=9, status=503)
        ask(requests, "/c", "/c", request=None, status=503)
        assert meter.flush()
        failing = meter.top(
            "http_requests",
            precision=3600,
            by="route",
            order="failing",
            failing={"status": "5xx"},
        )
        assert {row.key: row.value for row in failing if row.value} == {"/a": 1, "/c": 1}
        lost = 'http_requests{method="GET",route="/b",status="2xx",user="(other)"}'
        assert meter.total(lost) == 5
        lost = 'http_request_seconds{method="GET",route="/a",user="(other)"}'
        assert meter.summary(lost, precision=3600).count == 1
        assert not any("overflow" in name for name in meter.names())
        assert meter.recorder_health().overflowed > 0


# What goes wrong


def broken(request: object) -> Mapping[str, str]:
    """Fail."""
    raise LookupError("no plan")


@pytest.mark.parametrize(
    "labels",
    [
        broken,
        lambda _: 7,
        lambda _: "plan",
        lambda _: {"not a key": "a"},
        lambda _: {"plan": "x" * 300},
        lambda _: {"plan": "\x00"},
        lambda _: {"route": "/raw"},
        lambda _: {"status": "fine"},
        lambda _: {7: "a"},
    ],
)
def test_labels_that_cannot_be_used_are_left_out_and_counted(
    memory: MemoryMeter, caplog: pytest.LogCaptureFixture, labels: Any
) -> None:
    """The request is recorded without them, and the log says so once a minute."""
    requests = requests_of(memory, labels=labels)
    for _ in range(5):
        ask(requests)
    assert memory.recorded('http_requests{method="GET",route="/a",status="2xx"}') == 5
    assert memory.recorder_health().troubles == {"web": 5}
    assert len(caplog.records) == 1
    assert "labels" in caplog.text


def test_a_label_that_requests_have_anyway_is_named(
    memory: MemoryMeter, caplog: pytest.LogCaptureFixture
) -> None:
    """As a label, not as a series."""
    ask(requests_of(memory, labels=lambda _: {"route": "/raw", "method": "a"}))
    assert "invalid label 'method, route': requests already have this label" in caplog.text


@pytest.mark.parametrize("none", [{}, None])
def test_no_labels_are_no_trouble(memory: MemoryMeter, none: Any) -> None:
    """The request is counted as without the function."""
    requests = requests_of(memory, labels=lambda _: none)
    ask(requests)
    ask(requests)
    assert memory.recorded('http_requests{method="GET",route="/a",status="2xx"}') == 2
    assert memory.recorder_health().troubles == {}


class Unwell(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("odd", [{"seconds": "long"}, {"method": []}, {"route": 7}, {"status": []}])
def test_recording_never_raises(
    memory: MemoryMeter, caplog: pytest.LogCaptureFixture, odd: dict[str, Any]
) -> None:
    """Whatever an integration hands over; it is counted, and said once a minute."""
    requests = requests_of(memory)
    for _ in range(3):
        ask(requests, **odd)
    assert memory.recorder_health().troubles == {"web": 3}
    assert len(caplog.records) == 1


def test_an_error_without_a_text_is_told_all_the_same(memory: MemoryMeter) -> None:
    """Of the application, and of a function of it."""

    def labels(request: object) -> dict[str, str]:
        raise Unwell

    ask(requests_of(memory, labels=labels), error=Unwell())
    assert memory.recorded("hits") == 1
    assert [each.pattern for each in memory.log_frequencies("http")] == ["GET /a [Unwell]"]


def test_a_store_that_is_away_is_no_trouble_of_a_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A meter that stores at once raises; the request does not."""
    meter = Meter("redis://127.0.0.1:1", sync=True, timeout=0.1)
    ask(requests_of(meter))
    health = meter.recorder_health()
    assert (health.dropped, "web" in health.troubles) == (1, False)
    assert StoreUnavailable.__name__ in caplog.text


def test_handles_are_remembered_within_a_limit(
    memory: MemoryMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit is recorded all the same."""
    monkeypatch.setattr(web, "HANDLES", 3)
    requests = requests_of(memory)
    for number in range(10):
        ask(requests, route=f"/{number}")
    assert len(requests._handles) == 3
    assert len(series(memory, "http_requests")) == 10
