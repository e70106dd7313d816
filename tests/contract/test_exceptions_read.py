"""Exceptions: grouped by type and origin, counted exactly, bounded, and stored without secrets."""

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from redmeter import InvalidValue, LimitExceeded, Meter, UnknownPrecision
from redmeter.health.doctor import examine
from redmeter.maintenance.forgetting import forget_exception
from redmeter.store import Store
from redmeter.stored.exception import (
    EXCEPTION_LIFE,
    FINEST,
    INTERVALS,
    MAX_COARSE,
    MAX_GROUPS,
    MAX_RELEASES,
    MAX_ROUTES,
    Details,
    Occurrences,
    Share,
    exception_operations,
)
from redmeter.stored.keys import OTHER, slice_start
from redmeter.testing import MemoryMeter
from support.clusters import Cluster
from support.servers import Server
from support.stores import OpenMeter, OpenStore, SetTime, server_time
from support.waiting import eventually

pytestmark = pytest.mark.servers

INDEX, HEAD = "redmeter:exceptions:", "redmeter:exception:"
NOW = 1_700_000_400.0


@pytest.fixture
def memory() -> Iterator[MemoryMeter]:
    """A meter that keeps what it records in memory."""
    with MemoryMeter(release="v1") as meter:
        yield meter


def raised(error: BaseException) -> BaseException:
    """Return an exception that was raised here."""
    try:
        raise error
    except type(error) as caught:
        return caught


def one(client: Any) -> dict[str, str]:
    """Return the only group that is stored."""
    ((group, _),) = client.zrange(INDEX, 0, -1, withscores=True)
    return group_of(client, group.decode())


def group_of(client: Any, group: str) -> dict[str, str]:
    """Return what is stored of a group."""
    stored = client.hgetall(HEAD + group)
    return {field.decode(): text.decode() for field, text in stored.items()}


def seen(
    time: float,
    events: int = 1,
    *,
    route: str = "",
    release: str = "",
    details: Details | None = None,
    coarse: str = "",
) -> Occurrences:
    """Return exceptions of one moment."""
    share = Share(events, time, time)
    routes, releases = ({name: share} if name else {} for name in (route, release))
    return Occurrences(events, time, time, details, routes, releases, coarse)


def write(
    store: Store, group: str, found: Occurrences, *, width: int = FINEST, start: int | None = None
) -> None:
    """Write exceptions of one group in a batch."""
    begin = slice_start(found.last, FINEST) if start is None else start
    outcome = store.shard("").write(
        lambda _: exception_operations(store.shard("").keys, {begin: {group: found}}, width)
    )
    assert outcome.rejections == ()


def test_an_exception_is_stored_with_its_origin_and_traceback(
    client: Any, open_meter: OpenMeter
) -> None:
    """Once for each object, with the route that a later caller knows, and the release."""
    meter = open_meter(release="2.4.0")
    error = raised(KeyError("password=hunter2"))
    before = server_time(client)
    meter.log("shop", "order %s failed", 7, severity="error", exception=error)
    meter.record_exception(error, route="/buy")
    meter.record_exception(error, route="/buy")
    meter.record_exception(error)
    stored = one(client)
    assert stored["count"] == "1"
    assert stored["type"] == "KeyError"
    assert stored["function"] == f"{__name__}.raised"
    assert stored["place"].startswith("test_exceptions_read.py:")
    assert stored["log_place"] == f"[KeyError at {stored['place']}]"
    assert "hunter2" not in " ".join(stored.values())
    assert "password=***" in stored["message"]
    assert stored["traceback"].endswith(f"KeyError: {stored['message']}")
    ((route, on_route, first, last),) = json.loads(stored["routes"])
    ((release, of_release, _, _),) = json.loads(stored["releases"])
    assert (route, on_route, release, of_release) == ("/buy", 1, "2.4.0", 1)
    assert before - 1 <= first <= last
    for width in INTERVALS:
        start, count = stored[str(width)].split(" ")
        assert int(start) % width == 0
        assert count == "1"
    assert client.ttl(INDEX) > EXCEPTION_LIFE - 10
    assert client.ttl(client.keys(HEAD + "*")[0]) > EXCEPTION_LIFE - 10


def test_lines_and_values_do_not_group_but_types_and_functions_do(
    client: Any, open_meter: OpenMeter
) -> None:
    """Another type, function or text of the line is another group; its number and values not."""
    meter = open_meter()

    def first_line() -> None:
        raise KeyError(1)

    def either(which: int) -> None:
        if which:
            raise KeyError(which)
        raise KeyError(which)

    def of(call: Callable[[], None]) -> BaseException:
        try:
            call()
        except LookupError as error:
            return error
        raise AssertionError

    for error in (of(lambda: either(0)), of(lambda: either(1)), of(lambda: either(2))):
        meter.record_exception(error)
    assert client.zcard(INDEX) == 1
    assert one(client)["count"] == "3"
    assert one(client)["message"] == "2"
    meter.record_exception(of(first_line))
    meter.record_exception(raised(ValueError()))
    meter.record_exception(raised(KeyError()))
    assert client.zcard(INDEX) == 4


def test_below_error_a_logged_exception_is_no_record(client: Any, open_meter: OpenMeter) -> None:
    """A warning with a traceback is an exception that the application expects."""
    meter = open_meter()
    meter.log("shop", "again", severity="warning", exception=raised(OSError()))
    assert client.zcard(INDEX) == 0


def test_exceptions_wait_in_memory_and_are_counted_once(client: Any, any_server: Server) -> None:
    """The books balance; many exceptions of a group are one entry of a batch."""
    with Meter(any_server.url, flush_interval=60, release="v1") as meter:
        for number in range(700):
            meter.record_exception(raised(ValueError(number)), route=f"/{number % 3}")
        assert meter.recorder_health().buffered == 700
        assert not client.exists(INDEX)
        assert meter.flush()
        health = meter.recorder_health()
        assert (health.recorded, health.stored, health.losses) == (700, 700, ())
    stored = one(client)
    assert stored["count"] == "700"
    assert stored["message"] == "699"
    routes = {name: count for name, count, *_ in json.loads(stored["routes"])}
    assert routes == {"/0": 234, "/1": 233, "/2": 233}


def test_counts_are_kept_by_intervals(
    open_store: OpenStore, client: Any, set_time: SetTime
) -> None:
    """Of a day by five minutes, of ten days by the hour, of 90 days by the day; then they leave."""
    store = open_store()
    set_time(NOW)
    write(store, "a" * 16, seen(NOW - 301, 2))
    write(store, "a" * 16, seen(NOW, 3))
    write(store, "a" * 16, seen(NOW - 600, 1))
    stored = group_of(client, "a" * 16)
    begin = slice_start(NOW, 300)
    assert stored["300"] == f"{begin} 3 0 3"
    assert stored["count"] == "6"
    assert (stored["first"], stored["last"]) == (f"{NOW - 600:.3f}", f"{NOW:.3f}")
    write(store, "a" * 16, seen(NOW - 2 * 86400, 4))  # too old for five minutes
    write(store, "a" * 16, seen(NOW - 100 * 86400, 5), width=0, start=0)  # for all intervals
    later = group_of(client, "a" * 16)
    assert later["300"] == stored["300"]
    assert sum(map(int, later["3600"].split()[1:])) == 10
    assert sum(map(int, later["86400"].split()[1:])) == 10
    assert later["count"] == "15"
    set_time(NOW + 300 * 288 + 1)
    write(store, "a" * 16, seen(NOW + 300 * 288, 1))
    assert group_of(client, "a" * 16)["300"].split()[1:] == ["1"]


def test_the_newest_exception_describes_a_group(
    open_store: OpenStore, client: Any, set_time: SetTime
) -> None:
    """One that arrives late only counts; without a traceback, the last one stays."""
    store = open_store()
    set_time(NOW)
    new, old = (Details("E", word, word, word, word, word) for word in ("new", "old"))
    write(store, "a" * 16, seen(NOW, details=new))
    write(store, "a" * 16, seen(NOW - 5, details=old))
    write(store, "a" * 16, seen(NOW + 1, details=None))
    write(store, "a" * 16, seen(NOW + 2, details=new._replace(message="newer", traceback="")))
    stored = group_of(client, "a" * 16)
    assert (stored["message"], stored["traceback"], stored["count"]) == ("newer", "new", "4")
    assert stored["last"] == f"{NOW:.3f}"  # a clock that is ahead opens no future


def test_routes_and_releases_are_bounded(
    open_store: OpenStore, client: Any, set_time: SetTime
) -> None:
    """Those that were seen last are kept, the others merged; no count is lost."""
    store = open_store()
    set_time(NOW)
    for number in range(MAX_ROUTES + 5):
        moment = NOW - 1000 + number
        write(store, "a" * 16, seen(moment, 2, route=f"/{number}", release=f"v{number}"))
    stored = group_of(client, "a" * 16)
    routes = [(name, count) for name, count, *_ in json.loads(stored["routes"])]
    assert routes[0] == (f"/{MAX_ROUTES + 4}", 2)
    assert routes[-1] == (OTHER, 10)
    assert len(routes) == MAX_ROUTES + 1
    releases = json.loads(stored["releases"])
    assert len(releases) == MAX_RELEASES + 1
    assert sum(release[1] for release in releases) == int(stored["count"])


def test_groups_are_bounded(open_store: OpenStore, client: Any, set_time: SetTime) -> None:
    """Known groups keep counting, new ones get coarse ones, then (other); none is removed."""
    store = open_store()
    set_time(NOW)
    groups = {f"{number:016x}": seen(NOW - number) for number in range(MAX_GROUPS)}
    keys = store.shard("").keys
    start = slice_start(NOW, FINEST)
    store.shard("").write(lambda _: exception_operations(keys, {start: groups}, FINEST))
    assert client.zcard(INDEX) == MAX_GROUPS
    write(store, "f" * 16, seen(NOW, 3, route="/x", coarse="c" * 16))
    write(store, "e" * 16, seen(NOW, 4, route="/x", coarse="c" * 16))
    assert client.exists(HEAD + "f" * 16, HEAD + "e" * 16, HEAD + OTHER) == 0
    stored = group_of(client, "c" * 16)
    assert (stored["count"], stored["coarse"]) == ("7", "1")
    assert json.loads(stored["routes"]) == [["/x", 7, NOW, NOW]]
    write(store, f"{5:016x}", seen(NOW, 1, coarse="c" * 16))
    assert group_of(client, f"{5:016x}")["count"] == "2"
    for number in range(MAX_COARSE - 1):
        write(store, f"f{number:015x}", seen(NOW, coarse=f"c{number:015x}"))
    assert client.zcard(INDEX) == MAX_GROUPS + MAX_COARSE
    write(store, "f" * 16, seen(NOW, 5, route="/x", coarse="d" * 16))
    write(store, "f" * 16, seen(NOW, 6))
    assert group_of(client, OTHER)["count"] == "11"
    assert "routes" not in group_of(client, OTHER)
    write(store, "f" * 16, seen(NOW, coarse="c" * 16))
    assert group_of(client, "c" * 16)["count"] == "8"
    later = NOW + EXCEPTION_LIFE - 1
    set_time(later)
    write(store, "f" * 16, seen(later, coarse="d" * 16))
    assert group_of(client, "f" * 16)["count"] == "1"  # those of before have expired
    assert client.zcard(INDEX) < MAX_GROUPS


def test_a_flood_of_groups_hides_no_other_one(any_server: Server, open_store: OpenStore) -> None:
    """Known groups keep counting, new types are seen, and the limit is reported."""
    with Meter(any_server.url, flush_interval=60) as real, MemoryMeter() as memory:
        for meter in (real, memory):
            for _ in range(100):
                meter.record_exception(raised(KeyError()), group="known")
            meter.flush()
            for _ in range(50):
                meter.record_exception(raised(KeyError()), group="known")
            for number in range(1_200):
                meter.record_exception(raised(ValueError()), group=f"flood {number}")
            meter.flush()
            for _ in range(500):
                meter.record_exception(raised(MemoryError()))
            for _ in range(7):
                meter.record_exception(raised(KeyError()), group="known")
            meter.flush()
            answer = meter.exceptions(limit=MAX_GROUPS + MAX_COARSE)
            assert (answer.count, answer.other, answer.found) == (1_857, 0, MAX_GROUPS + 2)
            assert answer.coarse == 701
            big, flood, known = answer.groups[:3]
            assert (big.type, big.count, big.coarse) == ("MemoryError", 500, True)
            assert (flood.type, flood.count, flood.coarse) == ("ValueError", 201, True)
            assert flood.function == f"{__name__}.raised"
            assert (known.count, known.coarse) == (157, False)
        assert real.recorder_health().dropped == 0
    (finding,) = [one for one in examine(open_store()).findings if one.topic == "exceptions"]
    assert finding.level == "warn"
    assert f"there are {MAX_GROUPS:,} groups" in finding.text


@pytest.mark.parametrize("text", ["x", "[[1]]", '{"a":1}', '[["/a","b",1,1]]', "[" * 300, "17"])
def test_fields_of_another_form_are_replaced(
    open_store: OpenStore, client: Any, set_time: SetTime, text: str
) -> None:
    """Whatever another program wrote there: counting goes on."""
    store = open_store()
    set_time(NOW)
    write(store, "a" * 16, seen(NOW, details=Details("E", "", "", "", "", "t")))
    for field in ("routes", "300", "first", "last", "count"):
        client.hset(HEAD + "a" * 16, field, text)
    write(store, "a" * 16, seen(NOW, 2, route="/b"))
    stored = group_of(client, "a" * 16)
    assert json.loads(stored["routes"]) == [["/b", 2, NOW, NOW]]
    assert stored["300"] == f"{slice_start(NOW, 300)} 2"


def test_another_type_under_a_key_is_reported(client: Any, any_server: Server) -> None:
    """The exceptions of that group are counted as lost; all others are stored."""
    with Meter(any_server.url, flush_interval=60) as meter:
        error, other = raised(KeyError(1)), raised(ValueError(2))
        meter.record_exception(error)
        meter.flush()
        (key,) = client.keys(HEAD + "*")
        client.delete(key)
        client.set(key, "x")
        meter.record_exception(raised(KeyError(1)))
        meter.record_exception(other)
        meter.flush()
        (drop,) = meter.recorder_health().losses
        assert (drop.reason, drop.series, drop.events) == ("WRONGTYPE", "exceptions", 1)
    assert client.zcard(INDEX) == 2


# --- Reading -------------------------------------------------------------------------------


def _is_later(moment: float) -> bool:
    return f"{time.time():.3f}" > f"{moment:.3f}"


def failing(meter: Meter, kind: type[Exception], route: str = "") -> None:
    """Record an exception that was raised."""
    if isinstance(meter, MemoryMeter):
        meter.clock.advance(0.1)
    else:
        eventually(partial(_is_later, time.time()), 1.0)  # times are stored by the millisecond
    meter.record_exception(raised(kind(f"in {route or 'no route'}")), route=route)


def test_groups_of_a_window_are_read(open_meter: OpenMeter, memory: MemoryMeter) -> None:
    """The most frequent first, or the newest; of one route; a meter in memory gives the same."""
    results = []
    for meter in (open_meter(release="v1"), memory):
        for route in ("/a", "/a", "/b"):
            failing(meter, KeyError, route)
        failing(meter, ValueError)
        result = meter.exceptions()
        assert (result.count, result.found, result.new, result.other) == (4, 2, 2, 0)
        assert [(one.type, one.count, one.total) for one in result.groups] == [
            ("KeyError", 3, 3),
            ("ValueError", 1, 1),
        ]
        first = result.groups[0]
        assert [(share.name, share.count) for share in first.routes] == [("/a", 2), ("/b", 1)]
        assert [(share.name, share.count) for share in first.releases] == [("v1", 3)]
        assert (first.is_new, first.traceback) == (True, "")
        assert sum(first.series.values) == 3
        assert first.series.partial
        assert result.end - result.start == len(first.series.values) * result.precision
        assert [one.type for one in meter.exceptions(order="last").groups] == [
            "ValueError",
            "KeyError",
        ]
        assert meter.exceptions(route="/b").count == 3
        assert meter.exceptions(limit=1).found == 2
        whole = meter.exception(first.id, last="2d")
        assert whole is not None
        assert whole.series.precision == 3600
        assert whole.traceback.endswith("KeyError: 'in /b'")
        assert meter.exception("0" * 16) is None
        assert json.dumps(dataclasses.asdict(result))
        results.append([(one.id, one.message, one.place, one.function) for one in result.groups])
    assert results[0] == results[1]


def test_a_window_is_by_intervals_that_are_kept(
    open_store: OpenStore, open_meter: OpenMeter, client: Any
) -> None:
    """The finest that reaches back; nothing that happened outside of it is counted."""
    store, now = open_store(), server_time(client)
    write(store, "a" * 16, seen(now - 30 * 86400, 7))
    write(store, "a" * 16, seen(now - 3 * 86400, 5))
    write(store, "a" * 16, seen(now, 2))
    meter = open_meter()
    assert [meter.exceptions(last=last).count for last in ("1h", "4d", "40d")] == [2, 7, 14]
    precisions = [meter.exceptions(last=last).precision for last in ("1h", "4d", "40d", "400d")]
    assert precisions == [300, 3600, 86400, 86400]
    result = meter.exceptions(last="400d")
    assert result.start == result.kept_since > now - 91 * 86400
    assert not meter.exceptions(last="1h").groups[0].is_new
    assert meter.exceptions(since=now - 4 * 86400, until=now - 2 * 86400).count == 5
    assert meter.exceptions(since=now + 60).groups == ()


def test_foreign_values_are_left_out(
    open_store: OpenStore, open_meter: OpenMeter, client: Any
) -> None:
    """Members that are no group, keys of another type, texts that cannot be parsed."""
    store, now = open_store(), server_time(client)
    for group in ("a" * 16, "b" * 16, "c" * 16):
        write(store, group, seen(now, route="/x"))
    client.zadd(INDEX, {b"\xff": now, "gone": now})
    client.delete(HEAD + "b" * 16)
    client.set(HEAD + "b" * 16, "x")
    client.hset(HEAD + "c" * 16, mapping={"count": "many"})
    client.hset(HEAD + "a" * 16, mapping={"routes": '{"a":', "releases": "[[1]]", "type": b"\xff"})
    (left,) = open_meter().exceptions().groups
    assert (left.id, left.type, left.routes, left.releases) == ("a" * 16, "\ufffd", (), ())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"precision": 60}, UnknownPrecision),
        ({"order": "age"}, InvalidValue),
        ({"limit": 0}, InvalidValue),
        ({"limit": 1101}, LimitExceeded),
        ({"last": "2h", "since": 1}, InvalidValue),
    ],
)
def test_arguments_that_cannot_be_used_are_errors(
    memory: MemoryMeter, options: dict[str, Any], error: type[Exception]
) -> None:
    """Before anything is asked."""
    with pytest.raises(error):
        memory.exceptions(**options)
    with pytest.raises(InvalidValue):
        memory.exception("x")
    with pytest.raises(TypeError):
        memory.record_exception("x")  # type: ignore[arg-type]


def test_a_meter_that_is_off_records_and_reads_nothing() -> None:
    """With the URL `off`."""
    with Meter("off") as meter:
        failing(meter, KeyError)
        assert (meter.exceptions().count, meter.exception("0" * 16)) == (0, None)


def test_a_forgotten_group_is_gone_and_no_other_is(
    open_store: OpenStore, open_meter: OpenMeter
) -> None:
    """The next exception of its kind starts a new group."""
    store, meter = open_store(), open_meter()
    failing(meter, KeyError)
    failing(meter, ValueError)
    first, second = meter.exceptions(order="first").groups
    assert forget_exception(store, first.id)
    assert not forget_exception(store, first.id)
    assert [one.id for one in meter.exceptions().groups] == [second.id]
    with pytest.raises(InvalidValue):
        forget_exception(store, "x")


def test_on_a_cluster_all_exceptions_are_in_the_first_shard(any_cluster: Cluster) -> None:
    """So that a list is two round trips there as well; books balance."""
    with Meter(any_cluster.url, flush_interval=60) as meter:
        for kind in (KeyError, ValueError, OSError):
            failing(meter, kind, "/a")
        assert meter.flush()
        health = meter.recorder_health()
        assert (health.recorded, health.stored, health.losses) == (3, 3, ())
        assert meter.exceptions().count == 3
        assert len({key.partition("}")[0] for _, key in any_cluster.keys("*exception*")}) == 1
