"""Cleaning: what has left the retention goes, and nothing that lives."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter import ClockDisagreement
from redmeter.clock import ManualClock
from redmeter.maintenance.cleaning import clean
from redmeter.store import Store
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from support import listings
from support.cleaning import DAY, HOUR, everything, fill
from support.examples import scaled
from support.stores import HastyClock, OpenMeter, OpenStore, samples, server_time

pytestmark = pytest.mark.servers

# --- What goes -----------------------------------------------------------------------------


@settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), passes=st.sampled_from([0, 1, 5, 59, 60, 300, 1440]))
def test_a_pass_leaves_what_the_listings_pass_leaves(
    client: Any, open_store: OpenStore, seed: int, passes: int
) -> None:
    """On the same random data, at the same second, in any pass; also to the very edge."""
    rng = random.Random(seed)
    now = int(server_time(client)) - rng.randrange(3000)
    client.flushall()
    for number in range(rng.randrange(1, 12)):
        precision = rng.choice([1, 5, 60, 300, HOUR, 5 * HOUR, DAY, 7, 59, 61, 119, 121])
        span = rng.choice([100, 130, 200, 300, 700])
        age = rng.choice([0, 50, 110, 119, 120, 121, 500])
        newest = now - now % precision - age * precision
        # Not on the grid: other programs may use another.
        edge = now - 120 * precision
        starts = {newest - rng.randrange(span) * precision for _ in range(span)}
        starts |= set(rng.sample([edge - 1, edge, edge + 1, -5, 0, 5, now + DAY], 2))
        if rng.random() < 0.3:
            starts = {start for start in starts if start <= edge} | {edge}
        fill(client, precision, sorted(starts), f"series{number}")
    before = {key: client.dump(key) for key in client.scan_iter("*", count=1000)}
    listings.clean(client, passes, now=now)
    expected = everything(client)
    client.flushall()
    for key, dump in before.items():
        client.restore(key, 0, dump)
    kept = dict.fromkeys(DEFAULT_RETENTION, 120)  # as the listings
    store = open_store(prefix="", retention=kept, clock=ManualClock(now + 0.9))
    report = clean(store, passes=passes)
    assert everything(client) == expected
    assert report.complete
    assert report.strange == []
    store.close()


@pytest.mark.parametrize("precision", [1, 60, 61])
def test_a_slice_goes_in_the_second_it_has_left_the_retention(
    client: Any, open_store: OpenStore, precision: int
) -> None:
    """In either spelling: started `samples` slices ago it goes, a second younger it stays."""
    now = int(server_time(client)) - 500
    edge = now - 120 * precision
    fields = [f"{edge + off}{tail}" for off in (-1, 0, 1) for tail in ("", ".0")]
    client.hset(f"count:{precision}:x", mapping=dict.fromkeys(fields, 1))
    client.zadd("known:", {f"{precision}:x": 0})
    report = clean(open_store(prefix="", clock=ManualClock(now)))
    left = {field.decode() for field in client.hkeys(f"count:{precision}:x")}
    assert left == {f"{edge + 1}", f"{edge + 1}.0"}
    assert (report.samples_removed, report.hashes_removed, report.entries_removed) == (4, 0, 0)


def test_starts_before_1970_and_float_spellings_go_too(client: Any, bare: Store) -> None:
    """And what lives stays, however it is spelled."""
    now = slice_start(server_time(client), 60)
    live = [str(now), f"{now - 60}.0", f"{now - 120}.5"]
    gone = ["-60", "0", "60", "1336376400", "1336376400.0", "-1336376400", "999999999"]
    client.hset("count:60:x", mapping=dict.fromkeys([*live, *gone], 1))
    client.zadd("known:", {"60:x": 0})
    assert clean(bare).samples_removed == len(gone)
    assert {field.decode() for field in client.hkeys("count:60:x")} == set(live)


def test_fields_that_are_no_times_stay(client: Any, bare: Store) -> None:
    """Whatever their length and the character they begin with."""
    theirs = ["note", "", "(metadata)", "#comment 1", "1585-00000", "!!!!!!!!!!", "nan"]
    client.hset("count:60:x", mapping=dict.fromkeys([*theirs, "1336376400"], 1))
    client.zadd("known:", {"60:x": 0})
    clean(bare)
    assert {field.decode() for field in client.hkeys("count:60:x")} == set(theirs)


def test_an_entry_without_a_hash_goes(client: Any, bare: Store) -> None:
    """Its hash expired, or somebody deleted it; live ones stay."""
    now = int(server_time(client))
    fill(client, 60, [now])
    client.zadd("known:", {"60:gone": 0, "1:x": 0, f"{DAY}:点击量": 0})
    report = clean(bare)
    assert client.zrange("known:", 0, -1) == [b"60:x"]
    assert (report.entries_removed, report.hashes_removed, report.examined) == (3, 0, 4)


def test_a_hash_of_which_nothing_is_left_goes_with_its_entry(client: Any, bare: Store) -> None:
    """And is counted."""
    fill(client, 60, [1336376400, 1336376460])
    report = clean(bare)
    assert client.dbsize() <= 1  # but for the note of when a pass was made
    assert not client.exists("known:", "count:60:x")
    assert (report.samples_removed, report.hashes_removed, report.entries_removed) == (2, 1, 1)


@pytest.mark.parametrize(
    "theirs", ["60*60:hits", ":x", "x:y", "60", "60:", "-60:x", "1e3:x", "99999999999:x", "²:x"]
)
def test_entries_that_do_not_parse_are_left_alone_and_reported(
    client: Any, bare: Store, theirs: str
) -> None:
    """With the hash that may belong to them; all others of the page are cleaned."""
    client.zadd("known:", {theirs: 0, "60:gone": 0, "1:gone": 0})
    client.hset("count:" + theirs, mapping={"1336376400": 1})
    report = clean(bare)
    assert client.zrange("known:", 0, -1) == [theirs.encode()]
    assert client.hlen("count:" + theirs) == 1
    assert report.strange == [theirs]
    assert report.entries_removed == 2


def test_names_that_end_in_a_colon_are_names(client: Any, bare: Store) -> None:
    """They neither stay uncleaned nor keep others from being cleaned."""
    for name in ("x", "zz:", ":", "a:b:"):
        fill(client, 60, [1336376400], name)
    report = clean(bare)
    assert not client.exists("known:")
    assert (report.hashes_removed, report.strange) == (4, [])


def test_names_that_are_no_text_are_cleaned_by_their_bytes(client: Any, bare: Store) -> None:
    """Another program may write what we cannot spell."""
    now = int(server_time(client))
    name = b"\xff\xfe*"
    client.hset(b"count:60:" + name, mapping={str(now): 1, "1336376400": 1})
    client.zadd("known:", {b"60:" + name: 0})
    assert clean(bare).samples_removed == 1
    assert client.hkeys(b"count:60:" + name) == [str(now).encode()]


def test_keys_of_another_type_are_left_alone_and_reported(client: Any, bare: Store) -> None:
    """The rest is cleaned."""
    client.rpush("count:60:list", "x")
    client.zadd("known:", {"60:list": 0})
    fill(client, 60, [1336376400])
    report = clean(bare)
    assert client.zrange("known:", 0, -1) == [b"60:list"]
    assert report.strange == ["60:list"]
    assert report.hashes_removed == 1


def test_of_very_many_that_are_none_a_report_names_the_first_few(client: Any, bare: Store) -> None:
    """And their number, of all pages."""
    client.zadd("known:", {f"x:{number:04}": 0 for number in range(1000)})
    report = clean(bare)
    assert report.strange_entries == 1000
    assert report.strange == [f"x:{number:04}" for number in range(999, 899, -1)]


def test_precisions_that_the_store_does_not_name_keep_as_many_as_told(
    client: Any, open_store: OpenStore
) -> None:
    """The store's retention holds for its own, `other_samples` for those of other programs."""
    now = int(server_time(client))
    store = open_store(retention={60: 10})
    store.config()
    for precision in (60, 7):
        key = f"redmeter:count:{precision}:x"
        client.hset(key, mapping={str(now - i * precision): 1 for i in range(50)})
        client.zadd("redmeter:known:", {f"{precision}:x": 0})
    clean(store, other_samples=20)
    assert client.hlen("redmeter:count:60:x") == 10
    assert client.hlen("redmeter:count:7:x") == 20
    clean(store, samples={60: 5, 7: 6})
    assert client.hlen("redmeter:count:60:x") == 5
    assert client.hlen("redmeter:count:7:x") == 6


def test_hashes_that_their_writers_keep_in_order_are_not_touched(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """A pass over what a Meter writes changes nothing."""
    meter = open_meter()
    now = server_time(client)
    for ago in (0, 1, 61, 3700, DAY + 1):
        meter.count("x", at=now - ago)
    before = {key: client.dump(key) for key in client.scan_iter("redmeter:count:*")}
    report = clean(open_store())
    assert {key: client.dump(key) for key in client.scan_iter("redmeter:count:*")} == before
    assert report.examined == len(DEFAULT_RETENTION)
    assert (report.samples_removed, report.hashes_removed, report.entries_removed) == (0, 0, 0)


def test_a_hash_that_others_go_on_with_lives_as_long_as_its_newest_sample(
    client: Any, open_store: OpenStore
) -> None:
    """We gave it a time to live, they do not renew it: the cleaner does, and never shortens it."""
    store, key = open_store(), "redmeter:count:60:x"
    now = int(server_time(client))
    client.hset(key, mapping={str(now - 60 * i): 1 for i in range(100)})
    client.zadd("redmeter:known:", {"60:x": 0})
    client.expire(key, 300)
    clean(store)
    assert client.ttl(key) >= 119 * 60
    client.expire(key, 10**6)
    clean(store)
    assert client.ttl(key) > 10**6 - 10
    client.persist(key)
    clean(store)
    assert client.ttl(key) == -1


def test_a_hash_that_may_expire_before_the_pass_after_next_is_looked_at(
    client: Any, open_store: OpenStore
) -> None:
    """More than half of a short retention is left, and still less than two minutes."""
    key, now = "redmeter:count:1:x", int(server_time(client))
    client.hset(key, mapping={str(now - i): 1 for i in range(30)})
    client.zadd("redmeter:known:", {"1:x": 0})
    client.expire(key, 90)
    clean(open_store())
    assert client.ttl(key) >= 115


# --- Clocks --------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [3650 * DAY, -3650 * DAY, HOUR + 60, -HOUR - 60])
def test_a_cleaner_whose_clock_is_wildly_off_refuses(
    client: Any, open_store: OpenStore, off: int
) -> None:
    """Nothing is touched, and the error says by how much."""
    now = server_time(client)
    fill(client, 60, [int(now) - 60 * i for i in range(300)])
    before = everything(client)
    with pytest.raises(ClockDisagreement) as caught:
        clean(open_store(prefix="", clock=ManualClock(now + off)))
    assert abs(caught.value.difference + off) < 60
    assert everything(client) == before


@pytest.mark.parametrize("off", [HOUR - 60, -HOUR + 60])
def test_within_the_hour_the_earlier_clock_decides(
    client: Any, open_store: OpenStore, off: int
) -> None:
    """No sample is removed that lives by either clock."""
    now = server_time(client)
    starts = [int(now) + 3 - i for i in range(400)]
    fill(client, 1, starts)
    clean(open_store(prefix="", clock=ManualClock(now + off)))
    left = set(samples(client, "count:1:x"))
    expected = {start for start in starts if start > min(now, now + off) - 120}
    assert expected - left <= set(range(int(now) - 122, int(now) - 110))  # time has gone on
    assert len(left - expected) <= 1


def test_cleaning_an_empty_store_makes_no_store(client: Any, open_store: OpenStore) -> None:
    """It asks, and finds nothing to do."""
    report = clean(open_store(clock=HastyClock()))
    assert (report.examined, report.complete) == (0, True)
    assert not client.exists("redmeter:meta:", "redmeter:known:")


@pytest.mark.parametrize("field", ["inf", "-inf", "nan", "1e17", "1e400", "1795334959035540300"])
def test_a_field_that_is_no_start_keeps_nothing_from_being_cleaned(
    client: Any, open_store: OpenStore, field: str
) -> None:
    """Another program's, in a hash with a time to live: the field stays, and all else goes on."""
    now = int(server_time(client)) // 60 * 60
    for name in ("a", "odd", "z"):
        client.hset(
            f"redmeter:count:60:{name}", mapping={str(now - 60 * age): 1 for age in (0, 200)}
        )
        client.zadd("redmeter:known:", {f"60:{name}": 0})
    client.hset("redmeter:count:60:odd", field, 1)
    client.expire("redmeter:count:60:odd", 1000)
    report = clean(open_store())
    assert report.complete
    gone = field == "-inf"
    assert samples_left(client) == {"a": 1, "odd": 1 if gone else 2, "z": 1}
    assert 120 * 60 <= client.ttl("redmeter:count:60:odd") <= 122 * 60


def samples_left(client: Any) -> dict[str, int]:
    """Return how many fields the hashes of the minute have, by name."""
    keys = client.scan_iter("redmeter:count:60:*", count=1000)
    return {key.decode().rpartition(":")[2]: client.hlen(key) for key in keys}


def test_entries_wider_than_a_slice_may_be_are_left_alone(
    client: Any, open_store: OpenStore
) -> None:
    """A store with a prefix has none; without one they are the listings', and go."""
    wide = ["31622400:ghost", "31622401:ghost", "9999999999:ghost"]
    for index in ("redmeter:known:", "known:"):
        client.zadd(index, dict.fromkeys(wide, 0))
    assert clean(open_store()).strange == wide[:0:-1]
    assert clean(open_store(prefix="")).strange == []
    assert client.zrange("redmeter:known:", 0, -1) == [name.encode() for name in wide[1:]]
    assert client.zcard("known:") == 0
