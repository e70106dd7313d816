"""Reading: what counts is the newest samples, on a grid without holes, whoever wrote them."""

import fnmatch
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter import (
    InvalidName,
    InvalidValue,
    LimitExceeded,
    Meter,
    StoreError,
    StoreRefused,
    UnknownLabel,
    UnknownPrecision,
)
from redmeter.names import canonical
from redmeter.reading import join, selection, top
from redmeter.reading import names as reading_names
from redmeter.reading.export.listing import ExportList
from redmeter.reading.names import read_names
from redmeter.reading.samples import Grid, covered, read_series, read_totals
from redmeter.results import Sample
from redmeter.results.series import Series
from redmeter.stored.keys import DEFAULT_RETENTION, Retention, slice_start
from redmeter.types import Window
from support import listings
from support.examples import scaled
from support.stores import OpenMeter, OpenStore, count_all, exchanges, rank, server_time

pytestmark = pytest.mark.servers

DAY = 86400

#: Names that are patterns, key syntax or escapes somewhere.
HOSTILE = ["*", "a*", "?", "[a-z]", "[", "]", "a:b", ":", "a\\", "\\*", "^$", "-", "點%d", " "]


def key(precision: int, name: str = "x") -> str:
    """Return the key of a counter's hash under the default prefix."""
    return f"redmeter:count:{precision}:{name}"


def put(client: Any, precision: int, slices: dict[Any, Any], name: str = "x") -> None:
    """Write a counter's hash as it is, with its index entry."""
    client.hset(key(precision, name), mapping={str(k): str(v) for k, v in slices.items()})
    client.zadd("redmeter:known:", {f"{precision}:{name}": 0})


# --- Series --------------------------------------------------------------------------------


def test_slices_in_which_nothing_happened_are_zeros(client: Any, open_meter: OpenMeter) -> None:
    """From the oldest sample to the running slice, oldest first, one after the other."""
    newest = slice_start(server_time(client), 3600)
    put(client, 3600, {newest - 4 * 3600: 7, newest - 3600: 2})
    series = open_meter().series("x", precision=3600)
    assert series.values == (7, 0, 0, 2, 0)
    assert series.start == newest - 4 * 3600
    assert series[-1] == Sample(newest, 0)
    assert series.total == 9


def test_the_newest_slice_is_partial_until_it_is_over(client: Any, open_meter: OpenMeter) -> None:
    """A series that ends before it, by `until`, is whole; so is one without samples."""
    meter = open_meter()
    newest = slice_start(server_time(client), 3600)
    put(client, 3600, {newest: 1, newest - 3600: 1})
    assert meter.series("x", precision=3600).partial
    assert not meter.series("x", precision=3600, until=newest - 1).partial
    assert not meter.series("none", precision=3600).partial


def test_a_start_that_is_spelled_as_a_float_is_the_same_slice(
    client: Any, open_meter: OpenMeter
) -> None:
    """Both spellings are added up."""
    newest = slice_start(server_time(client), 3600)
    put(client, 3600, {newest: 1, f"{newest}.0": 2, f"{newest - 3600}.0": 4, newest - 7200: 8})
    assert open_meter().series("x", precision=3600).values == (8, 4, 3)


def test_fields_that_are_no_slices_are_somebody_elses(client: Any, open_meter: OpenMeter) -> None:
    """Neither field nor value of them breaks the reading, in series and rankings."""
    meter = open_meter()
    newest = slice_start(server_time(client), 3600)
    put(client, 3600, {newest: 1, "note": 5, "": 5, "nan": 5, "inf": 5, newest - 3600: "many"})
    assert meter.series("x", precision=3600).values == (1,)
    put(client, 3600, {newest: 3, newest - 3600: "1.5"}, "y")
    assert meter.series("y", precision=3600).values == (3,)
    assert [(row.key, row.count) for row in meter.top(precision=3600)] == [("y", 3), ("x", 1)]


def test_only_the_newest_samples_count(client: Any, open_meter: OpenMeter) -> None:
    """Older ones that nobody trimmed, and those of a clock ahead, are not shown."""
    newest = slice_start(server_time(client), 3600)
    put(client, 3600, {newest + i * 3600: 1000 + i for i in range(-300, 50)})
    series = open_meter().series("x", precision=3600)
    assert len(series) == 240
    assert [sample.start for sample in series] == [newest - i * 3600 for i in range(239, -1, -1)]
    assert series.values == tuple(1000 - i for i in range(239, -1, -1))


def test_since_and_until_cut_by_whole_slices(client: Any, open_meter: OpenMeter) -> None:
    """A window is half-open, in whole intervals; its ends may be far outside of what is kept."""
    meter = open_meter()
    newest = slice_start(server_time(client), 3600)
    put(client, 3600, {newest - i * 3600: i + 1 for i in range(10)})

    def values(since: float | None = None, until: float | None = None) -> tuple[int, ...]:
        return meter.series("x", precision=3600, since=since, until=until).values

    assert values(newest - 7200, newest - 3600) == (3,)
    assert values(newest - 3601, newest - 3600.5) == (3,)
    assert values(newest - 1, newest - 1) == (2,)
    assert values(-(10**9), 10**11) == tuple(range(10, 0, -1))
    assert values(newest, newest - 7200) == ()
    assert values(until=newest - DAY) == ()
    with pytest.raises(InvalidValue):
        values(since=float("nan"))


@settings(max_examples=scaled(60))
@given(
    now=st.integers(-(10**6), 2 * 10**9),
    precision=st.sampled_from([1, 7, 60, 3600]),
    kept=st.integers(1, 20),
    fields=st.dictionaries(st.integers(-30, 8), st.integers(0, 2**62), max_size=20),
    since=st.none() | st.integers(-40, 10),
    until=st.none() | st.integers(-40, 10),
)
def test_a_series_is_what_a_plain_loop_makes_of_the_hash(
    now: int,
    precision: int,
    kept: int,
    fields: dict[int, int],
    since: int | None,
    until: int | None,
) -> None:
    """Window, zeros, sums and the mark of the running slice, against a model."""
    newest = now - now % precision
    stored = {newest + i * precision: n for i, n in fields.items()}
    reply = [part for s, n in stored.items() for part in (str(s).encode(), str(n).encode())]
    times = [None if bound is None else now + bound * precision for bound in (since, until)]
    window = Window(precision, *times)
    grid = Grid(covered(window, Retention({precision: kept}), now), now)
    series = grid.counter("x", reply)
    wanted = [
        start
        for start in range(newest - (kept - 1) * precision, newest + 1, precision)
        if (times[0] is None or start + precision > times[0])
        and (times[1] is None or start < times[1])
    ]
    while wanted and wanted[0] not in stored:
        wanted.pop(0)
    assert list(series) == [Sample(start, stored.get(start, 0)) for start in wanted]
    assert series.partial == (bool(wanted) and wanted[-1] == newest)


def test_a_precision_that_is_not_kept_is_an_error_that_lists_those_that_are(
    client: Any, open_meter: OpenMeter
) -> None:
    """By the store's own retention, not the one this process was configured for."""
    open_meter(retention={60: 5, 7: 5}).count("x")
    meter = open_meter()
    for precision in (1, 0, -60, 10**30, "61", 60.0, True):
        wrong: Any = precision
        for call in (
            lambda wrong=wrong: meter.series("x", precision=wrong),
            lambda wrong=wrong: meter.series_many(["x", "y"], precision=wrong),
            lambda wrong=wrong: meter.top(precision=wrong),
            lambda wrong=wrong: meter.top("x", by="route", precision=wrong),
        ):
            with pytest.raises(UnknownPrecision) as caught:
                call()
            assert caught.value.kept == (7, 60)
    assert "7, 60" in str(caught.value)


def test_many_series_are_one_round_trip(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time and the retention come with them."""
    store = open_store()
    now = int(server_time(client))
    names = [f"s{i}" for i in range(40)]
    count_all(store, {name: {now: i + 1} for i, name in enumerate(names)})
    with exchanges(monkeypatch) as seen:
        found = read_series(store, names, Window(DAY))
    assert len(seen) == 1
    assert [found[name].total for name in names] == list(range(1, 41))
    with exchanges(monkeypatch) as seen:
        assert read_series(store, [*names, "none"], Window(DAY)) == {
            **found,
            "none": Series("none", DAY, found["s0"].start + DAY, (), partial=False),
        }
    assert len(seen) == 2
    with exchanges(monkeypatch) as seen:
        assert sum(read_totals(store, names).values()) == sum(range(1, 41))
    assert seen == [3]


def test_a_total_that_is_no_number_takes_no_other_away(
    client: Any, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """It is another program's, which is told by a warning."""
    store = open_store()
    count_all(store, {name: {int(server_time(client)): 3} for name in ("a", "b", "c")})
    client.hset("redmeter:total:", "b", "theirs")
    assert read_totals(store, ["a", "b", "c", "none"]) == {"a": 3, "c": 3}
    (record,) = caplog.records
    assert record.getMessage().endswith("something else under: 'redmeter:total: b'")


def test_names_and_rankings_are_two_round_trips_at_most(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many series there are."""
    store = open_store()
    now = int(server_time(client))
    count_all(store, {f'x{{route="/{i}"}}': {now: 1} for i in range(40)})
    for call in (
        lambda: read_names(store),
        lambda: rank(store, "*", DAY),
        lambda: rank(store, "x", DAY, by="route"),
    ):
        with exchanges(monkeypatch) as seen:
            assert call()
        assert len(seen) <= 2


def test_one_request_has_its_limits(client: Any, open_meter: OpenMeter) -> None:
    """Over 5,000 series, over 1,000 rows: an error says the limit."""
    meter = open_meter()
    many = [f"s{i}" for i in range(5001)]
    assert len(meter.series_many(many[:5000], precision=60)) == 5000
    for call, limit in (
        (lambda: meter.series_many(many, precision=60), 5000),
        (lambda: meter.top(precision=60, limit=1001), 1000),
        (lambda: meter.top(precision=60, limit=0), 1000),
    ):
        with pytest.raises(LimitExceeded) as caught:
            call()
        assert caught.value.limit == limit


def test_more_candidates_than_a_ranking_may_count_are_an_error(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pattern has to be narrowed; within the limit it answers."""
    store = open_store()
    now = int(server_time(client))
    count_all(store, {f"s{i}": {now: 1} for i in range(12)})
    monkeypatch.setattr(top, "MAX_RANKED_SERIES", 10)
    with pytest.raises(LimitExceeded):
        rank(store, "*", 60)
    assert len(rank(store, "s1*", DAY)) == 3
    monkeypatch.setattr(reading_names, "MAX_NAMES", 11)
    with pytest.raises(LimitExceeded):
        read_names(store)


def test_nothing_is_read_from_an_empty_store(client: Any, open_meter: OpenMeter) -> None:
    """And asking writes nothing."""
    meter = open_meter()
    assert meter.names() == []
    assert list(meter.top(precision=60)) == []
    assert meter.total("x") == 0
    series = meter.series("x", precision=60)
    assert (len(series), series.total, list(series)) == (0, 0, [])
    assert client.dbsize() == 0


def test_a_key_of_another_type_is_an_error_of_ours(client: Any, open_meter: OpenMeter) -> None:
    """It names the reason, as all of them do."""
    client.rpush(key(60), "x")
    with pytest.raises(StoreRefused) as caught:
        open_meter().series("x", precision=60)
    assert caught.value.code == "WRONGTYPE"


def test_a_total_that_is_no_number_is_an_error_of_ours(client: Any, open_meter: OpenMeter) -> None:
    """Somebody wrote into the hash."""
    client.hset("redmeter:total:", "x", "many")
    with pytest.raises(StoreError, match="total"):
        open_meter().total("x")


def test_what_the_listings_write_is_read(client: Any, open_meter: OpenMeter) -> None:
    """Without our prefix, in both spellings of a start, with no `meta:` and no totals."""
    now = server_time(client) - 1
    listings.update(client, "点击量", 3, now)
    listings.update(client, "点击量", 4, now, listings.float_start)
    meter = open_meter(prefix="")
    assert meter.names() == ["点击量"]
    for precision in DEFAULT_RETENTION:
        assert meter.series("点击量", precision=precision, until=now).values == (7,)
    assert [tuple(row) for row in _rows(meter, precision=DAY)] == [("点击量", 7)]


# --- Names ---------------------------------------------------------------------------------


def test_names_are_listed_once_and_sorted(client: Any, open_store: OpenStore) -> None:
    """Whatever the precisions they are kept at; entries that are no names of ours are left out."""
    store = open_store()
    now = int(server_time(client))
    names = ["b", "a", "点击量", 'a{plan="pro"}', "a:b", "60:a"]
    count_all(store, {name: {now: 1} for name in names})
    client.zadd("redmeter:known:", {b"60:\xff\xfe": 0, "x:y": 0, "60*60:hits": 0, "7:other": 0})
    assert read_names(store) == sorted(names)


def test_an_entry_without_a_name_is_none(client: Any, open_meter: OpenMeter) -> None:
    """It is neither listed nor ranked."""
    meter = open_meter()
    meter.count("x")
    now = int(server_time(client)) // 60 * 60
    client.zadd("redmeter:known:", {"60:": 0})
    client.hset("redmeter:count:60:", str(now), 5)
    assert meter.names() == ["x"]
    assert _rows(meter, precision=60) == [("x", 1)]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a*", ["a", "a*", "ab", "abc"]),
        ("a?", ["a*", "ab"]),
        ("[ab]*", ["a", "a*", "ab", "abc", "b"]),
        ("a[*]", ["a*"]),
        ("[!a]*", ["A", "b", "点击量"]),
        ("点*", ["点击量"]),
        ("a", ["a"]),
        ("", []),
        ("*c", ["abc"]),
    ],
)
def test_names_match_a_pattern(
    client: Any, open_store: OpenStore, pattern: str, found: list[str]
) -> None:
    """As file names do, upper and lower case apart."""
    store = open_store()
    now = int(server_time(client))
    names = ["a", "ab", "abc", "b", "A", "a*", "点击量"]
    count_all(store, {name: {now: 1} for name in names})
    assert read_names(store, pattern) == found


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("n1*", ["n1", "n10", "n11", 'n1{a="1"}', "n1点"]),
        ("n1[01]", ["n10", "n11"]),
        ("n1?", ["n10", "n11", "n1点"]),
        ("n1", ["n1"]),
        ('n1{a="1"}', ['n1{a="1"}']),
        ("n1点*", ["n1点"]),
        ("m[", ["m["]),
        ("none*", []),
        ("n1\ud800*", []),
        ("\ud800", []),
    ],
)
def test_what_a_pattern_begins_with_narrows_what_is_looked_at(
    client: Any,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
    pattern: str,
    found: list[str],
) -> None:
    """However many other names there are; a ranking does the same."""
    store = open_store()
    now = int(server_time(client))
    names = ["n1", "n10", "n11", 'n1{a="1"}', "n1点", "m[", "n", "n2", *(f"o{i}" for i in range(9))]
    count_all(store, {name: {now: 1} for name in names})
    monkeypatch.setattr(reading_names, "MAX_NAMES", 5 if "\ud800" not in pattern else 50)
    assert read_names(store, pattern) == found
    assert sorted(str(row.key) for row in rank(store, pattern, DAY)) == found


@pytest.mark.parametrize("pattern", ["*", "n*", "?1", "[n]1*"])
def test_a_pattern_that_begins_with_too_little_text_is_told_to_begin_with_more(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """Of names and of rankings; where a label is ranked there is no pattern to begin."""
    store = open_store()
    now = int(server_time(client))
    count_all(store, {f'n1{{a="{i}"}}': {now: 1} for i in range(6)})
    monkeypatch.setattr(reading_names, "MAX_NAMES", 5)
    with pytest.raises(LimitExceeded, match="begin the pattern with more literal text"):
        read_names(store, pattern)
    monkeypatch.setattr(top, "MAX_RANKED_SERIES", 5)
    with pytest.raises(LimitExceeded, match="narrow the pattern down"):
        rank(store, pattern, DAY)
    with pytest.raises(LimitExceeded, match="narrow the pattern down"):
        rank(store, "n1", DAY, by="a")


@pytest.mark.parametrize("page", [1, 2, 5, 6, 7])
def test_names_are_listed_page_by_page(
    client: Any, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """No exchange lists more entries than a page; the names are the same, and so is the limit."""
    meter = open_meter()
    names = [f'n{{a="{i}"}}' for i in range(6)]
    for name in names:
        meter.count(name)
    store = meter._store
    assert store is not None
    monkeypatch.setattr(selection, "JOINED", 2)
    assert meter.series("n", precision=DAY).total == 6
    monkeypatch.setattr(join, "ENTRY_PAGE", page)
    with exchanges(monkeypatch) as seen:
        assert read_names(store) == names
    assert len(seen) == 6 // page + 1
    assert meter.series("n", precision=DAY).total == 6
    assert meter.series("n", precision=DAY, labels={"a": "3"}).total == 1
    assert [one.stored for one in ExportList(store).read().catalog.by_name["n_total"]] == names
    monkeypatch.setattr(reading_names, "MAX_NAMES", 5)
    with pytest.raises(LimitExceeded):
        read_names(store)


def test_hostile_names_stay_themselves(client: Any, open_meter: OpenMeter) -> None:
    """Each is its own counter: none reads, ranks or totals another's, none widens a match."""
    meter = open_meter()
    for weight, name in enumerate(HOSTILE, 1):
        meter.count(name, weight)
    assert meter.names() == sorted(HOSTILE)
    for weight, name in enumerate(HOSTILE, 1):
        assert meter.series(name, precision=DAY).total == weight
        assert meter.total(name) == weight
        with pytest.raises(UnknownLabel):
            meter.top(name, by="route", precision=DAY)
        literal = "".join(f"[{c}]" if c in "*?[" else c for c in name)
        assert meter.names(literal) == [name]


@settings(max_examples=scaled(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.sets(st.text("ab*?[]!-\\:{", min_size=1, max_size=5), min_size=1, max_size=8),
    pattern=st.text("ab*?[]!-\\:", max_size=6),
)
def test_a_pattern_finds_what_it_means_and_nothing_else(
    client: Any, open_store: OpenStore, names: set[str], pattern: str
) -> None:
    """Against the standard library, for names and patterns of nothing but special characters."""
    client.flushall()
    client.zadd("redmeter:known:", {f"60:{name}": 0 for name in names})
    store = open_store()
    assert read_names(store, pattern) == sorted(
        name for name in names if fnmatch.fnmatchcase(name, pattern)
    )
    store.close()


@pytest.mark.parametrize("label", ["*", "?", "[a]", "}", "{", '"', "\\", ",", "=", "\n", ":"])
def test_hostile_label_values_stay_themselves(
    client: Any, open_meter: OpenMeter, label: str
) -> None:
    """Read back by the label's own value, in a ranking too."""
    meter = open_meter()
    meter.count("x", 3, labels={"route": label})
    meter.count("x", 1, labels={"route": "other"})
    meter.count("xy", 9, labels={"route": label})
    assert meter.series("x", labels={"route": label}, precision=DAY).total == 3
    assert _rows(meter, "x", by="route", precision=DAY) == [(label, 3), ("other", 1)]
    assert canonical("x", {"route": label}) in meter.names()


@pytest.mark.parametrize("name", ["", "x" * 201, "a\n", "\x00", "a{", "a}", "\u202eabc", "a\u200f"])
def test_names_that_are_refused_are_refused_on_reading_too(
    client: Any, open_meter: OpenMeter, name: str
) -> None:
    """With the reason; the server is not asked."""
    meter = open_meter()
    for call in (
        lambda: meter.count(name),
        lambda: meter.series(name, precision=60),
        lambda: meter.total(name),
    ):
        with pytest.raises(InvalidName):
            call()
    assert client.dbsize() == 0


# --- Rankings ------------------------------------------------------------------------------


def _rows(meter: Meter, *args: Any, **options: Any) -> list[tuple[str | None, int]]:
    return [(row.key, row.count) for row in meter.top(*args, **options)]


def test_a_ranking_by_label_adds_up_the_label_sets(client: Any, open_meter: OpenMeter) -> None:
    """All label sets of exactly that name; those without the label are one row, None."""
    meter = open_meter()
    for route, status, hits in (("/a", "2xx", 5), ("/a", "5xx", 2), ("/b", "2xx", 3)):
        meter.count("http", hits, labels={"route": route, "status": status})
    meter.count("http", 4)
    meter.count("http", 1, labels={"status": "2xx"})
    meter.count("http2", 99, labels={"route": "/a"})
    meter.count("htt", 99, labels={"route": "/a"})
    assert _rows(meter, "http", by="route", precision=DAY) == [("/a", 7), (None, 5), ("/b", 3)]
    assert _rows(meter, "http", by="status", precision=DAY) == [("2xx", 9), (None, 4), ("5xx", 2)]
    shares = [row.share for row in meter.top("http", by="route", precision=DAY)]
    assert shares == [7 / 15, 5 / 15, 3 / 15]


def test_a_ranking_by_name_takes_a_pattern(client: Any, open_meter: OpenMeter) -> None:
    """Highest first, equal ones by name; the share is of all that matched, not of the rows."""
    meter = open_meter()
    for name, hits in (("b", 2), ("a", 2), ("点击量", 6), ("other", 10)):
        meter.count(name, hits)
    meter.count("none", 0)
    assert _rows(meter, precision=DAY) == [("other", 10), ("点击量", 6), ("a", 2), ("b", 2)]
    assert _rows(meter, "?", precision=DAY) == [("a", 2), ("b", 2)]
    (row,) = meter.top("[!o]*", precision=DAY, limit=1)
    assert row.share == 0.6


def test_a_ranking_counts_the_newest_slices_alone(client: Any, open_meter: OpenMeter) -> None:
    """The running one included, in either spelling of a start."""
    newest = slice_start(server_time(client), DAY)
    slices = {newest: 1, f"{newest - DAY}.0": 10, newest - 2 * DAY: 100, newest + DAY: 1000}
    put(client, DAY, slices)
    meter = open_meter()
    assert [_rows(meter, precision=DAY, last=n)[0][1] for n in (1, 2, 3)] == [1, 11, 111]
    assert _rows(meter, precision=DAY, last=120) == [("x", 111)]
