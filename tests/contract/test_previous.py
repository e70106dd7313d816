"""Readings add what still lies in the store that is moved: as if all lay in one."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from redmeter import Meter, StoreUnavailable
from redmeter.errors import InvalidSetting
from redmeter.keys import HOUR, Kept, slice_start
from redmeter.migrating import migrate
from redmeter.reading.listing import Listing, listing
from redmeter.reading.talk import read_talk
from redmeter.reading.together import ask
from redmeter.reading.windows import window_of
from redmeter.store import Store, opening
from redmeter.store.binding import new_version
from redmeter.store.link import Link
from support.moving import write_log, write_series
from support.servers import Server
from support.stores import OpenMeter, OpenStore, count, measure
from support.waiting import eventually

Open = Callable[..., Store]


@pytest.fixture(params=["redmeter:", ""])
def prefix(request: pytest.FixtureRequest) -> str:
    """That of the store that is moved: as the other's, or none."""
    return str(request.param)


@pytest.fixture
def stores(any_server: Server, open_store: OpenStore, prefix: str) -> tuple[Store, Store, Store]:
    """The store that is moved, where it is moved to, and one that has all of both."""
    other = any_server.url.removesuffix("0")
    return open_store(prefix=prefix), open_store(f"{other}1"), open_store(f"{other}2")


@pytest.fixture
def meters(any_server: Server, open_meter: OpenMeter, prefix: str) -> tuple[Meter, Meter]:
    """One that reads both stores, and one that reads what has all."""
    other = any_server.url.removesuffix("0")
    both = open_meter(f"{other}1", previous_url=any_server.url, previous_prefix=prefix)
    return both, open_meter(f"{other}2")


def begin(store: Store) -> None:
    """Make a store; the next one is known from it by when it was made, in milliseconds."""
    version = store.binding().version
    eventually(lambda: new_version(store.clock.wall()) != version)


@pytest.fixture
def filled(stores: tuple[Store, Store, Store]) -> None:
    """The same is recorded by turns in either store, and all of it in the third."""
    before, after, whole = stores
    chance, now = random.Random(7), time.time()
    for store in stores:
        begin(store)
    for number in range(30):
        name = f'pages{{route="/{number % 10}",status="{200 + 300 * (number % 2)}"}}'
        for second in range(0, 110, 11):
            amount, moment = chance.randrange(1, 5), now - second
            for store in (chance.choice((before, after)), whole):
                count(store, name, slice_start(moment, 1), amount)
        for store in (chance.choice((before, after)), whole):
            write_series(store, f"spread{number % 4}", 2, number + 1, now)
        for store in (chance.choice((before, after)), whole):
            measure(store, {"queue": float(number)}, now - 30 + number)
        if number < 8:  # one that only one of the two has
            for store in (chance.choice((before, after)), whole):
                measure(store, {f"depth{number}": 1.0}, now)
        text = [(now - 300 + 10 * number, f"job {number} failed")]
        for store in (chance.choice((before, after)), whole):
            write_log(store, f"app{number % 3}", "error", text)
    for label in ("v1", "v2"):
        for store in (chance.choice((before, after)), whole):
            with Meter(store.location, prefix=store.keys.prefix, sync=True) as meter:
                meter.mark(label, at=now - 60)
    return


def listed(store: Store, *, kind: str, **options: Any) -> Listing:
    """Return what the page lists of a kind."""

    def make(kept: Kept) -> Any:
        of_kind = kept.histograms if kind == "histograms" else kept.series
        return listing(store.keys, window_of(of_kind, 60, 60), kind=kind, **options)

    found: Listing = ask(store, make)[1]
    return found


def everything(meter: Meter) -> dict[str, Any]:
    """Return what a meter is asked, but for times of now."""
    names = meter.names()
    found: dict[str, Any] = {"names": names, "gauges": meter.names(kind="gauges")}
    found["histograms"] = meter.names(kind="histograms")
    for name in names:
        found[f"total {name}"] = meter.total(name)
        for precision in (60, 300, 3600, 86400):
            found[f"{name} {precision}"] = meter.series(name, precision=precision)
    found["queue"] = meter.gauge_series("queue", precision=60)
    for name in found["histograms"]:
        found[f"summary {name}"] = meter.summary(name, precision=60)
        told = meter.statistics(name)
        assert told.this is not None
        found[f"statistics {name}"] = (told.this.count, told.this.low, told.this.high)
    found["top"] = meter.top("pages", precision=60, by="route", slices=120)
    found["slowest"] = meter.top("spread*", precision=60, order="p95", slices=60)
    found["marks"] = meter.marks()
    found["loggers"] = meter.loggers()
    for name in ("app0", "app1"):
        found[f"recent {name}"] = meter.recent(name)
        found[f"common {name}"] = meter.common(name)
    return found


def test_all_is_read_as_if_it_lay_in_one(filled: None, meters: tuple[Meter, Meter]) -> None:
    """Counters, gauges, histograms, rankings, statistics, messages, marks and names."""
    minute = 0
    while minute != slice_start(time.time(), 60):  # else one of them knows a newer slice
        minute = slice_start(time.time(), 60)
        both, whole = (everything(meter) for meter in meters)
    for what, expected in whole.items():
        if what.startswith("summary"):
            assert both[what].count == expected.count
            for q in (0.0, 0.5, 0.95, 1.0):
                assert both[what].quantile(q) == expected.quantile(q)
            assert both[what].mean == pytest.approx(expected.mean)
            assert both[what].stddev == pytest.approx(expected.stddev)
        else:
            assert both[what] == expected, what


def test_it_stays_the_same_while_it_is_moved(
    filled: None, stores: tuple[Store, Store, Store], meters: tuple[Meter, Meter]
) -> None:
    """After each step nothing is missing, and nothing twice."""
    before, after, _ = stores
    expected = everything(meters[1])
    steps = 0

    def look(_done: int, _all: int) -> None:
        nonlocal steps
        steps += 1
        if steps % 4 == 1:
            found = everything(meters[0])
            for what in ("names", "total " + expected["names"][0], "top", "marks", "recent app0"):
                assert found[what] == expected[what], what
            for what in expected:
                if what.endswith(" 86400"):
                    assert found[what] == expected[what], what

    migrate(before, after, progress=look)
    assert steps > 4
    assert everything(meters[0])["names"] == expected["names"]


def test_nothing_is_ever_counted_twice(
    filled: None, stores: tuple[Store, Store, Store], meters: tuple[Meter, Meter]
) -> None:
    """A reader at any moment of the move sees what there is, or what has just left is missing."""
    before, after, _ = stores
    name = meters[1].names()[0]
    expected = meters[1].total(name), meters[1].series(name, precision=86400).total
    ended = threading.Event()
    seen: list[tuple[int, int]] = []

    def read() -> None:
        while not ended.is_set():
            seen.append((meters[0].total(name), meters[0].series(name, precision=86400).total))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        migrate(before, after, progress=lambda *_: time.sleep(0.005))
    finally:
        ended.set()
        thread.join()
    assert len(seen) > 10
    assert all(total <= expected[0] and day <= expected[1] for total, day in seen)
    assert (meters[0].total(name), meters[0].series(name, precision=86400).total) == expected


def test_lists_are_cut_after_they_are_put_together(
    filled: None, meters: tuple[Meter, Meter]
) -> None:
    """The newest of both, whichever has them."""
    for limit in (1, 3, 7):
        both, whole = (meter.recent("app0", limit=limit) for meter in meters)
        assert both == whole
        assert len(both) == limit


def test_what_the_page_asks_is_the_same(
    filled: None, any_server: Server, open_store: OpenStore, prefix: str
) -> None:
    """Joins of an index and what its members' keys hold."""
    other = any_server.url.removesuffix("0")
    both = open_store(f"{other}1", previous_url=any_server.url, previous_prefix=prefix)
    whole = open_store(f"{other}2")
    for kind in ("counters", "gauges", "histograms"):
        for offset in (0, 5):
            listings = [
                listed(store, kind=kind, order="name", limit=5, offset=offset)
                for store in (both, whole)
            ]
            assert [row.name for row in listings[0].rows] == [row.name for row in listings[1].rows]
            assert listings[0].total == listings[1].total, kind
    one, other_talk = read_talk(both), read_talk(whole)
    assert one.errors == other_talk.errors
    assert [f.pattern for f in one.frequent] == [f.pattern for f in other_talk.frequent]
    assert [m.text for m in one.recent] == [m.text for m in other_talk.recent]


def test_hours_that_differ_are_put_together(any_server: Server, open_meter: OpenMeter) -> None:
    """One store has not been written to since the hour before."""
    this = slice_start(time.time(), HOUR)
    with any_server.client() as client:
        client.zadd("redmeter:common:app:error", {"a": 3, "b": 1})
        client.set("redmeter:common:app:error:start", this - HOUR)
    with any_server.client(db=1) as client:
        client.zadd("redmeter:common:app:error", {"a": 2})
        client.set("redmeter:common:app:error:start", this)
        client.zadd("redmeter:common:app:error:last", {"a": 10})
        client.set("redmeter:common:app:error:pstart", this - HOUR)
    url = any_server.url.removesuffix("0") + "1"
    meter = open_meter(url, previous_url=any_server.url)
    found = {f.pattern: (f.count, f.before) for f in meter.common("app")}
    assert found == {"a": (2, 13), "b": (0, 1)}


def test_writing_goes_to_one_store_alone(any_server: Server, open_meter: OpenMeter) -> None:
    """The other one is only read."""
    url = any_server.url.removesuffix("0") + "1"
    meter = open_meter(url, previous_url=any_server.url)
    meter.count("hits")
    assert meter.total("hits") == 1
    with any_server.client() as client:
        assert client.keys("*") == []


def test_a_previous_store_that_is_away_is_told(any_server: Server, open_meter: OpenMeter) -> None:
    """Half of the figures would be worse than none; writing goes on."""
    meter = open_meter(any_server.url, previous_url="redis://127.0.0.1:1/3", timeout=0.1)
    meter.count("hits")
    told = r"127\.0\.0\.1:1/3, the store before \(REDMETER_PREVIOUS_URL\): .* do without it"
    with pytest.raises(StoreUnavailable, match=told):
        meter.series("hits", precision=60)


def test_a_cluster_is_no_previous_store() -> None:
    """What is moved lies on one server; told to who reads, since counting needs none."""
    store = opening.open("redis://127.0.0.1:1/0", previous_url="redis+cluster://127.0.0.1:1")
    assert store is not None
    with pytest.raises(InvalidSetting, match="previous_url: is a cluster"):
        _ = store.reader


@pytest.mark.parametrize("prefix", [None, "redmeter:"])
def test_a_store_is_not_its_own_previous_one(prefix: str | None) -> None:
    """All would be read twice."""
    own = "redis://127.0.0.1:1"
    store = opening.open(own, previous_url=f"{own}/0", previous_prefix=prefix)
    assert store is not None
    with pytest.raises(InvalidSetting, match="previous_url: is this store itself"):
        _ = store.reader
    other = opening.open(own, previous_url=own, previous_prefix="other:")
    assert other is not None
    assert other.reader is other


def test_a_previous_url_that_cannot_be_read_is_named_as_such() -> None:
    """As one that is right stands beside it."""
    store = opening.open("redis://127.0.0.1:1/0", previous_url="nonsense://127.0.0.1")
    assert store is not None
    with pytest.raises(InvalidSetting, match="previous_url: unknown scheme"):
        _ = store.reader


def test_a_store_by_another_name_is_not_its_own_previous_one(
    any_server: Server, open_meter: OpenMeter
) -> None:
    """It is found out once there is something that would be read twice."""
    other = any_server.url.replace("127.0.0.1", "localhost")
    meter = open_meter(any_server.url, previous_url=other)
    assert meter.names() == []
    open_meter(any_server.url).count("hits")
    for _ in range(2):
        with pytest.raises(InvalidSetting, match="is this store itself, by another name"):
            meter.total("hits")


def test_that_they_are_two_stores_is_asked_once(
    filled: None, meters: tuple[Meter, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the one before says nothing of itself, having no prefix."""
    both, _ = meters
    both.total("spread0")
    asked, whole = [], Link.exchange

    def counted(self: Link, *args: Any, **options: Any) -> Any:
        asked.append(self.location)
        return whole(self, *args, **options)

    monkeypatch.setattr(Link, "exchange", counted)
    both.total("spread0")
    assert len(asked) == 2
