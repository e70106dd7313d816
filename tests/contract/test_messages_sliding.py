"""Counts by five minutes on real servers: what the script makes of them, and what is read."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter import book
from redmeter.clock import ManualClock
from redmeter.maintenance.cleaning import clean
from redmeter.maintenance.forgetting import forget_logger
from redmeter.reading.diagnosis.judged_status import read_status
from redmeter.reading.logs.recent import read_changes
from redmeter.store import Store
from redmeter.stored.keys import HOUR, OTHER, STEP, slice_start
from redmeter.stored.message import LogHour, PatternHour, message_operations
from redmeter.stored.shards import ShardedKeys
from redmeter.stored.steps import ALL, ROOM, STEPS, is_complete, parse_steps, windows
from redmeter.testing import MemoryMeter
from redmeter.types import Batch, Outcome
from support.fixed_time import FixedTime
from support.logs import read_log_overview
from support.servers import Server
from support.stores import OpenMeter, OpenStore, send, server_time

KEY = "redmeter:steps:app:info"
#: The start of an hour of the year 2100, so that nothing expires by the server's own clock.
NOON = 4_102_444_800

Event = tuple[float, str]


@pytest.fixture
def clock(any_server: Server) -> Iterator[FixedTime]:
    """The server's clock, set by hand."""
    with FixedTime(any_server.port, NOON) as clock:
        yield clock


@pytest.fixture
def store(open_store: OpenStore, clock: FixedTime) -> Store:
    """A store on a server with this clock."""
    return open_store(clock.url)


def hours_of(*events: Event) -> dict[int, LogHour]:
    """Messages as they come from a recorder, each its own pattern."""
    hours: dict[int, LogHour] = {}
    for at, text in events:
        hour = hours.setdefault(slice_start(at, HOUR), LogHour(100))
        hour.add(text, PatternHour(1, at, at, f"sample of {text}"))
    return hours


def write(store: Store, *events: Event, name: str = "app:info") -> Outcome:
    """Store messages in one batch."""
    operations = message_operations(store.keys, {name: hours_of(*events)})
    return store.shard("").write(lambda _: operations)


def stored(client: Any, key: str = KEY) -> dict[str, str]:
    """What the hash holds."""
    return {field.decode(): value.decode() for field, value in client.hgetall(key).items()}


def zeros(number: int) -> str:
    return " 0" * number


# --- What is written -----------------------------------------------------------------------


def test_messages_count_in_the_steps_of_their_own_times(
    store: Store, client: Any, clock: FixedTime
) -> None:
    """Late ones too, as long as their step is kept; what is of the future counts now."""
    clock.now = NOON + 299
    times = (NOON, NOON + 298, NOON - 1, NOON - 24 * STEP, NOON - 24 * STEP - 1, NOON + 9999)
    write(store, *((at, "a") for at in times), (NOON - STEP, "b"))
    assert stored(client) == {
        "": f"{NOON} 3 2{zeros(22)} 1",
        "a": f"{NOON} 3 1{zeros(22)} 1",
        "b": f"{NOON - STEP} 1",
    }
    clock.now = NOON + STEP
    write(store, (NOON + STEP, "a"), (NOON - STEP, "b"), (NOON + 1, "b"))
    assert stored(client) == {
        "": f"{NOON + STEP} 1 4 3{zeros(22)}",
        "a": f"{NOON + STEP} 1 3 1",
        "b": f"{NOON} 1 2",
    }
    clock.now = NOON + 30 * STEP
    write(store, (NOON + 30 * STEP, "b"))
    assert stored(client) == {
        "": f"{NOON + 30 * STEP} 1{zeros(24)}",
        "a": f"{NOON + STEP} 1 3 1",
        "b": f"{NOON + 30 * STEP} 1",
    }


def test_a_batch_that_is_sent_again_counts_once(
    store: Store, client: Any, clock: FixedTime
) -> None:
    """As all that a batch writes."""
    operations = message_operations(store.keys, {"app:info": hours_of((NOON, "a"), (NOON, "a"))})
    batch = Batch("p" * 32, 1, operations)
    version = store.config().version
    assert send(store, batch, version, must_exist=False).applied
    for _ in range(2):
        assert not send(store, batch, version, must_exist=False).applied
    assert stored(client) == {"": f"{NOON} 2{zeros(24)}", "a": f"{NOON} 2"}


@pytest.mark.parametrize("seed", range(3))
def test_sliding_hours_are_those_of_a_naive_count(
    store: Store, client: Any, clock: FixedTime, seed: int
) -> None:
    """Whatever comes late or not at all, at any minute of the hour, over a day."""
    numbers = random.Random(seed)
    naive: dict[str, Counter[int]] = {"a": Counter(), "b": Counter(), "rare": Counter()}
    now = NOON + numbers.randrange(HOUR)
    for _ in range(120):
        now += numbers.choice((1, 20, 100, 400, 700, 3000))
        clock.now = now
        names = numbers.choices(("a", "b", "rare"), (20, 10, 1), k=numbers.randint(1, 6))
        events = [(now - numbers.choice((0, 0, 10, 400, 4000, 7000)), name) for name in names]
        write(store, *events)
        running = slice_start(now, STEP)
        for at, name in events:
            naive[name][slice_start(at, STEP)] += 1
        fields = client.hgetall(KEY)
        wanted = {
            name: (
                sum(n for at, n in counts.items() if running - HOUR <= at <= running),
                sum(n for at, n in counts.items() if running - 2 * HOUR <= at < running - HOUR),
            )
            for name, counts in naive.items()
        }
        for name, both in wanted.items():
            steps = parse_steps(fields.get(name.encode()))
            assert (windows(steps, now) if steps else (0, 0)) == both
        whole = parse_steps(fields[ALL.encode()])
        assert whole is not None
        assert is_complete(whole, now)
        assert windows(whole, now) == tuple(map(sum, zip(*wanted.values(), strict=True)))


def test_a_hash_is_complete_at_once_after_a_silence_alone(
    store: Store, client: Any, clock: FixedTime
) -> None:
    """One that begins while its log is there, as after an upgrade, needs two hours."""
    index = "redmeter:messages:"
    client.zadd(index, {"app:info": NOON - 24 * STEP, "db:info": NOON - 25 * STEP})
    write(store, (NOON, "a"), (NOON - STEP, "a"))
    write(store, (NOON, "a"), (NOON - STEP, "a"), name="db:info")
    assert stored(client)[ALL] == f"{NOON} 1"  # of what was before, not all was counted
    assert stored(client, "redmeter:steps:db:info")[ALL] == f"{NOON} 1 1{zeros(23)}"
    for step in range(1, STEPS - 1):
        clock.now = NOON + step * STEP
        write(store, (clock.now, "a"))
        assert not is_complete(parse_steps(client.hget(KEY, ALL)), clock.now)
    clock.now = NOON + (STEPS - 1) * STEP
    assert is_complete(parse_steps(client.hget(KEY, ALL)), clock.now)


def test_a_clock_that_is_set_back_begins_anew(store: Store, client: Any, clock: FixedTime) -> None:
    """What was counted in steps that have not come is given up, and the hash is incomplete."""
    write(store, (NOON, "a"), (NOON - STEP, "b"))
    clock.now = NOON - STEP
    write(store, (NOON - STEP, "a"), (NOON - STEP, "b"))
    assert stored(client) == {
        ALL: f"{NOON - STEP} 2",
        "a": f"{NOON - STEP} 1",
        "b": f"{NOON - STEP} 2",
    }


def test_patterns_are_bounded_and_leave_with_their_steps(
    store: Store, client: Any, clock: FixedTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What exceeds the room is coarse, then (other); those whose steps have left make room."""
    monkeypatch.setattr("redmeter.stored.steps.ROOM", 3)
    monkeypatch.setattr("redmeter.stored.steps.COARSE_ROOM", 1)
    write(store, *((NOON, name) for name in "abcdde"))
    write(store, (NOON, "d"), (NOON, "a"), (NOON, OTHER))
    assert stored(client) == {
        ALL: f"{NOON} 9{zeros(24)}",
        "a": f"{NOON} 2",
        "b": f"{NOON} 1",
        "c": f"{NOON} 1",
        "d (1 word)": f"{NOON} 3",
        OTHER: f"{NOON} 2",
    }
    for step, patterns in (
        (24, {"a", "b", "c", "d (1 word)", OTHER}),
        (25, {"e", "f"}),
    ):
        clock.now = NOON + step * STEP
        write(store, (clock.now, "e"), (clock.now, "f"))
        assert set(stored(client)) == {ALL, *patterns} | ({OTHER} if step == 25 else set())


def test_a_hash_has_at_most_the_room_of_its_severity(
    store: Store, client: Any, clock: FixedTime
) -> None:
    """However many come in an hour, and of however many hours."""
    for hour in range(3):
        clock.now = NOON + hour * HOUR
        write(store, *((clock.now, f"{hour} {n}") for n in range(700)))
    assert client.hlen(KEY) == ROOM + len((ALL, "… (2 words)"))
    whole = parse_steps(client.hget(KEY, ALL))
    assert whole is not None
    assert windows(whole, clock.now) == (1400, 700)


def test_patterns_that_differ_in_a_name_are_read_as_one(
    open_meter: OpenMeter, open_store: OpenStore, clock: FixedTime, client: Any
) -> None:
    """By each reader, with their counts summed and their patterns listed; each is stored."""
    meters = open_meter(), MemoryMeter(clock=ManualClock(clock.now))
    names = [f"{a}{b}" for a in ("ama", "basti", "chi", "dori") for b in ("an", "elie", "ara")]
    for meter in meters:
        for name in [*names, names[0]]:
            meter.log("shop", f"order of {name} failed", severity="error")
    meters[0].flush()
    variants = {f"order of {name} failed" for name in names}
    stored = {member.decode() for member in client.zrange("redmeter:common:shop:error", 0, -1)}
    assert stored == variants
    overview = read_log_overview(open_store())
    rows = [(*meter.log_frequencies("shop"), *meter.log_changes("shop")) for meter in meters]
    for one in (*rows[0], *rows[1], *overview.frequent, *overview.changes):
        assert (one.pattern, one.count, one.before) == ("order of <…> failed", 13, 0)
        assert (one.variants[0], {*one.variants}) == (f"order of {names[0]} failed", variants)
    assert [len(each) for each in (*rows, overview.frequent, overview.changes)] == [2, 2, 1, 1]


def test_a_flood_hides_no_new_error(open_meter: OpenMeter, clock: FixedTime) -> None:
    """An error of the same severity is counted and new, and the process reports the crowd."""
    meters = open_meter(recent_messages=10), MemoryMeter(clock=ManualClock(clock.now))
    for meter in meters:
        for n in range(1200):
            name = "".join(chr(97 + n // 26**power % 26) for power in range(3))
            meter.log("pay", f"payment failed for cus_{name}", severity="error")
        for _ in range(50):
            meter.log("pay", "database is down", severity="error")
        meter.log("pay", "card declined", severity="info")
    meters[0].flush()
    for meter in meters:
        counts = {one.pattern: one.count for one in meter.log_frequencies("pay")}
        assert sum(counts.values()) == 1251
        assert (counts["database is down (3 words)"], counts["card declined"]) == (50, 1)
        assert OTHER not in counts
        changes = {one.pattern: one.kind for one in meter.log_changes("pay")}
        assert changes["database is down (3 words)"] == "new"
        health = meter.recorder_health()
        assert health.coarse_messages["pay:error"] >= 250
        assert health.other_messages == {}


@pytest.mark.parametrize("prefix", ["redmeter:", ""])
def test_a_hash_expires_with_its_steps(open_store: OpenStore, client: Any, prefix: str) -> None:
    """So that a log that ends leaves nothing, also where no cleaner runs."""
    store = open_store(prefix=prefix)
    write(store, (server_time(client), "a"))
    key = KEY if prefix else "redmeter:bare:steps:app:info"
    assert STEPS * STEP < client.ttl(key) <= (STEPS + 1) * STEP


def test_who_counts_as_the_book_does_counts_by_the_hour_alone(client: Any) -> None:
    """Its keys are those of the listings."""
    book.log_common(client, "app", "text")
    assert not client.keys("*steps:*")


def test_a_hash_is_forgotten_with_its_logger_and_left_by_cleaners(
    open_store: OpenStore, client: Any
) -> None:
    """It expires by itself."""
    store = open_store()
    write(store, (server_time(client), "a"))
    before = client.dump(KEY)
    assert clean(store).complete
    assert client.dump(KEY) == before
    assert forget_logger(store, "app")
    assert not client.exists(KEY)


def test_a_hash_is_in_the_shard_of_its_logger() -> None:
    """With all that the same batch writes; of no entry it is what all begin with."""
    keys = ShardedKeys()
    part = keys.of("web:shop")
    assert keys.key("steps", "web:shop:info") == part.key("steps", "web:shop:info")
    assert part.key("steps", "web:shop:info") == f"{part.head}steps:web:shop:info"
    assert keys.key("steps") == "redmeter:steps:"


# --- What is read --------------------------------------------------------------------------


def changes_of(changes: Any) -> dict[str, tuple[str, int, int, bool]]:
    """What is found: pattern -> kind, counts, and whether these are of sliding hours."""
    return {c.pattern: (c.kind, c.count, c.before, c.sliding) for c in changes}


@pytest.mark.parametrize("minute", [0, 3, 30, 59])
def test_the_minute_of_the_hour_makes_no_difference(
    store: Store, client: Any, clock: FixedTime, minute: int
) -> None:
    """What spikes, is gone or goes on as before does so three minutes past the hour, too."""
    clock.now = now = NOON + 60 * minute
    for pattern in ("spiking", "steady"):
        client.hset("redmeter:patterns:app:error", pattern, f"{now - 9e5} {now - 9e5} x")
    events = [
        *[(now - 110 * 60, "gone"), (now - 70 * 60, "gone")] * 30,
        *[(now - 70 * 60, "spiking")] * 3,
        *[(now - 40 * 60, "spiking")] * 30,
        *[(now - 60 * n, "steady") for n in range(121)],
    ]
    for event in sorted(events):
        clock.now = event[0]
        write(store, event, name="app:error")
    clock.now = now
    found = read_log_overview(store)
    wanted = {"gone": ("gone", 0, 60, True), "spiking": ("spiking", 30, 3, True)}
    assert changes_of(found.changes) == changes_of(read_changes(store)) == wanted
    passed = minute % 5
    (steady,) = (f for f in found.frequent if f.pattern == "steady")
    assert (steady.count, steady.before) == (61 + passed, 60 - passed)
    assert (found.errors, found.errors_before) == (91 + passed, 123 - passed)
    assert found.errors_expected == pytest.approx((123 - passed) * (60 + passed) / 60)


def test_a_meter_in_memory_compares_the_same_hours(store: Store, clock: FixedTime) -> None:
    """Three minutes past the hour."""
    now = NOON + 180
    events = [(now - 70 * 60, "gone")] * 16 + [(now - 60 * n, "steady") for n in range(120)]
    memory = MemoryMeter(clock=ManualClock(min(events)[0]))
    for at, pattern in sorted(events):
        clock.now = at
        write(store, (at, pattern), name="app:error")
        memory.clock.advance(at - memory.clock.wall())
        memory.log("app", pattern, severity="error")
    clock.now = now
    memory.clock.advance(now - memory.clock.wall())
    assert changes_of(memory.log_changes()) == changes_of(read_changes(store))
    assert changes_of(memory.log_changes())["gone"] == ("gone", 0, 16, True)
    assert memory.log_changes().clock_hours == read_changes(store).clock_hours == 0


@pytest.mark.parametrize("more", [0, 400])
def test_changes_are_those_of_sliding_hours(
    store: Store, client: Any, clock: FixedTime, more: int
) -> None:
    """Of one logger, of all, and on the page, also of logs with many patterns.

    Half past the hour: the page reads the steps of 100 patterns, and of those in its clock hours.
    """
    clock.now = now = NOON + 1800
    write(store, (now, "x"), name="web:info")
    client.hset("redmeter:patterns:app:info", "spiking", f"{now - 9e5} {now - 9e5} x")
    write(
        store,
        *((now - 110 * 60, "gone"), (now - 70 * 60, "gone")) * 30,
        *[(now - 40 * 60, "spiking")] * 30,
        *[(now - 70 * 60, "spiking")] * 3,
        *[(now - n * 60.0, "steady") for n in range(1, 120)],
        *[(now - 60.0, f"often {n} {'long ' * 20}") for n in range(more)] * 99,
    )
    page = read_log_overview(store)
    for found in (read_changes(store, "app"), read_changes(store), page.changes):
        by_pattern = changes_of(found)
        assert by_pattern["gone"] == ("gone", 0, 60, True)
        assert by_pattern["spiking"] == ("spiking", 30, 3, True)
    assert read_changes(store).clock_hours == page.clock_hours == 0


def test_what_other_programs_count_is_compared_by_clock_hours(
    open_meter: OpenMeter, client: Any
) -> None:
    """And it is stated of how many loggers."""
    meter = open_meter(prefix="")
    meter.log("ours", "a")
    book.log_common(client, "theirs", "b")
    meter.log("both", "c")
    book.log_common(client, "both", "c")
    for found in (meter.log_changes(), read_log_overview(meter._store)):  # type: ignore[arg-type]
        assert found.clock_hours == 2
    sliding = {
        f.pattern: (f.count, f.sliding)
        for f in read_log_overview(meter._store).frequent  # type: ignore[arg-type]
    }
    assert sliding == {"a": (1, True), "b": (1, False), "c": (2, False)}
    assert [f.sliding for f in meter.log_frequencies("ours")] == [False]  # which is of clock hours


def test_by_clock_hours_a_pattern_is_gone_only_if_all_patterns_of_the_hour_are_read(
    store: Store, client: Any, clock: FixedTime
) -> None:
    """The page reads the 100 most frequent ones, and 'steady' has less than these so far."""
    clock.now = now = NOON + 540
    few = [(now, "steady"), *[(now - 600, text) for text in ("steady", "gone")] * 90]
    often = [(now, f"often {n}") for n in range(100)] * 5
    for events in (sorted(few), sorted([*few, *often])):
        write(store, *events, name="app:error")
        client.delete("redmeter:steps:app:error")
        page = read_log_overview(store)
        assert page.clock_hours == 1
        gone = {one.pattern for one in page.changes if one.kind == "gone"}
        assert gone == ({"gone"} if len(events) < 200 else set())
        assert changes_of(read_changes(store))["gone"][0] == "gone"


def test_errors_are_counted_by_sliding_hours_where_all_are(
    open_meter: OpenMeter, client: Any
) -> None:
    """Else by clock hours, since both together would mean nothing."""
    meter = open_meter()
    meter.log("web", "x")
    store: Any = meter._store
    now = server_time(client)
    events = [*[(now - 30 * 60, "a")] * 3, *[(now - 70 * 60, "b")] * 12]
    write(store, *events, name="app:error")
    found = read_log_overview(store)
    assert (found.errors, found.errors_before, found.errors_sliding) == (3, 12, True)
    assert 12 <= found.errors_expected <= 13
    client.zadd("redmeter:messages:", {"db:error": now})
    client.zadd("redmeter:common:db:error", {"x": 5})
    found = read_log_overview(store)
    assert not found.errors_sliding
    assert found.errors >= 5


def test_the_status_counts_a_new_error_from_its_first_message(
    store: Store, clock: FixedTime
) -> None:
    """Also where the half hour of news begins within a step."""
    since = NOON + 180
    for minute in range(29):
        clock.now = since + 60 * minute + 1
        write(store, (clock.now, "refused"), name="app:error")
        (error,) = read_status(store)[1].messages
        assert (error.pattern, error.count) == ("refused", minute + 1)
