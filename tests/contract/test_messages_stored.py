"""Messages on real servers: what the script makes of them, hour by hour, and what is read of it."""

import threading
from typing import Any

import pytest

from redmeter import Meter, StoreRefused
from redmeter.store import Store
from redmeter.stored.intervals import hour_of
from redmeter.stored.keys import HOUR, OTHER
from redmeter.stored.message import (
    MAX_HOURLY_PATTERNS,
    LogHour,
    PatternHour,
    message_operations,
    parse_recent,
)
from redmeter.stored.steps import COARSE_ROOM, ROOM, URGENT_ROOM
from redmeter.types import Batch, Outcome
from support.stores import OpenMeter, OpenStore, SetTime, exchanges, send, server_time

KEY = "redmeter:common:app:info"
RECENT = "redmeter:recent:app:info"
PATTERNS = "redmeter:patterns:app:info"
DISTINCT = "redmeter:distinct:app"
STEPS = "redmeter:steps:app:info"
DAY = 86400
LIFE = 30 * DAY


@pytest.fixture
def hour(client: Any, set_time: SetTime) -> int:
    """The start of the server's hour, at whose middle the script's clock stands still."""
    start = int(server_time(client)) // HOUR * HOUR
    set_time(start + HOUR // 2)
    return start


def an_hour(*messages: tuple[float, str], keep: int = 100, count: int = 1) -> LogHour:
    """An hour with messages, each its own pattern and text."""
    made = LogHour(keep)
    for at, text in messages:
        made.add(text, PatternHour(count, at, at, f"sample of {text}"))
    made.add_texts(messages)
    return made


def write(store: Store, name: str, *messages: tuple[float, str], **options: Any) -> Outcome:
    """Store messages in one batch, as (time, text)."""
    hours: dict[int, list[tuple[float, str]]] = {}
    for at, text in messages:
        hours.setdefault(int(at // HOUR) * HOUR, []).append((at, text))
    made = {start: an_hour(*some, **options) for start, some in hours.items()}
    return store.shard("").write(lambda _: message_operations(store.keys, {name: made}))


def counted(client: Any, key: str = KEY) -> dict[str, int]:
    """A sorted set of frequencies."""
    return {m.decode(): int(score) for m, score in client.zrange(key, 0, -1, withscores=True)}


def hours_of(client: Any) -> tuple[int | None, int | None]:
    """Which hours `:start` and `:pstart` hold."""
    start, pstart = client.get(f"{KEY}:start"), client.get(f"{KEY}:pstart")
    return (start and int(start)), (pstart and int(pstart))


# --- tally: the turn of the hour -----------------------------------------------------------


def test_messages_are_counted_in_their_hour(open_store: OpenStore, client: Any, hour: int) -> None:
    """This one and the one before, in one batch or in two."""
    store = open_store()
    assert write(store, "app:info", (hour - 5, "a"), (hour - 4, "b"), (hour, "a")) == Outcome()
    assert write(store, "app:info", (hour + 1, "a"), (hour + 1, "c")) == Outcome()
    assert counted(client) == {"a": 2, "c": 1}
    assert counted(client, f"{KEY}:last") == {"a": 1, "b": 1}
    assert hours_of(client) == (hour, hour - HOUR)


@pytest.mark.parametrize("ago", [1, 2, 16, 24, 25, 100])
def test_an_hour_that_is_over_is_moved_on(
    open_store: OpenStore, client: Any, hour: int, ago: int
) -> None:
    """Also over midnight, and after days without a message; nothing is taken for this hour."""
    store = open_store()
    began = hour - ago * HOUR
    client.zadd(KEY, {"old": 7})
    client.set(f"{KEY}:start", began)
    client.zadd(f"{KEY}:last", {"older": 9})
    client.set(f"{KEY}:pstart", began - HOUR)
    assert write(store, "app:info", (hour, "new")) == Outcome()
    assert counted(client) == {"new": 1}
    assert counted(client, f"{KEY}:last") == {"old": 7}
    assert hours_of(client) == (hour, began)


def test_an_hour_without_a_key_leaves_none_for_the_one_before(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """What `:last` held is of an hour that `:pstart` does not mean."""
    client.set(f"{KEY}:start", hour - HOUR)
    client.zadd(f"{KEY}:last", {"older": 9})
    assert write(open_store(), "app:info", (hour, "new")) == Outcome()
    assert counted(client, f"{KEY}:last") == {}
    assert hours_of(client) == (hour, hour - HOUR)


def test_hours_of_the_day_are_the_latest_that_have_come(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """As the listings write them; one that is ahead was yesterday's."""
    store = open_store()
    this = hour % DAY // HOUR
    for of_day in range(24):
        client.delete(KEY, f"{KEY}:last", f"{KEY}:start", f"{KEY}:pstart")
        client.zadd(KEY, {"old": 7})
        client.set(f"{KEY}:start", of_day)
        assert write(store, "app:info", (hour, "new")) == Outcome()
        if of_day == this:
            assert counted(client) == {"old": 7, "new": 1}
            assert client.get(f"{KEY}:start") == b"%d" % of_day
        else:
            assert counted(client) == {"new": 1}
            assert counted(client, f"{KEY}:last") == {"old": 7}
            assert hours_of(client) == (hour, hour_of(str(of_day), hour))


def test_the_script_reads_hours_as_readers_do(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """Whatever lies in `:start`: what it moves on is the hour that hour_of() says."""
    store = open_store()
    texts = ["2020-02-29T23:00:00", "2021-01-01 00:59", "1999-12-31T07", "7", "23", " 7 ", "7.9"]
    texts += ["1e9", "1585900000.0", "-5", "24", "0", "soon", "", "nan", "2020-1-1T5", "1e999"]
    for text in texts:
        client.delete(KEY, f"{KEY}:last", f"{KEY}:start", f"{KEY}:pstart")
        client.zadd(KEY, {"old": 1})
        client.set(f"{KEY}:start", text)
        began = hour_of(text, hour + HOUR // 2)
        assert write(store, "app:info", (hour, "new")) == Outcome()
        if began is None or began >= hour:
            assert counted(client) == {"old": 1, "new": 1}, text
        else:
            assert hours_of(client) == (hour, began), text


def test_a_clock_that_steps_back_goes_on_with_what_was_begun(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """An hour that has not come is neither moved on nor mixed with the one before it."""
    client.zadd(KEY, {"ahead": 3})
    client.set(f"{KEY}:start", hour + HOUR)
    client.zadd(f"{KEY}:last", {"past": 4})
    client.set(f"{KEY}:pstart", hour)
    store = open_store()
    assert write(store, "app:info", (hour, "now")) == Outcome()
    assert counted(client) == {"ahead": 3, "now": 1}
    assert counted(client, f"{KEY}:last") == {"past": 4}
    assert hours_of(client) == (hour + HOUR, hour)


def test_a_writer_whose_clock_is_ahead_opens_no_hour_of_its_own(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """It counts for the hour that the server is in."""
    store = open_store()
    assert write(store, "app:info", (hour + 5 * HOUR, "early")) == Outcome()
    assert write(store, "app:info", (hour, "now")) == Outcome()
    assert counted(client) == {"early": 1, "now": 1}
    assert hours_of(client) == (hour, None)


def test_late_messages_go_to_the_hour_before(open_store: OpenStore, client: Any, hour: int) -> None:
    """To `:last`, whether it is there or not, and whatever older hour it held."""
    store = open_store()
    write(store, "app:info", (hour, "now"))
    assert write(store, "app:info", (hour - 9, "late")) == Outcome()
    assert write(store, "app:info", (hour - 8, "late"), (hour - 7, "later")) == Outcome()
    assert counted(client) == {"now": 1}
    assert counted(client, f"{KEY}:last") == {"late": 2, "later": 1}
    client.set(f"{KEY}:pstart", hour - 5 * HOUR)
    assert write(store, "app:info", (hour - 9, "late")) == Outcome()
    assert counted(client, f"{KEY}:last") == {"late": 1}
    assert hours_of(client) == (hour, hour - HOUR)


def test_messages_of_an_hour_that_is_gone_are_told_as_aged(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """They are among the newest all the same, and everything else of the batch is written."""
    store = open_store()
    write(store, "app:info", (hour - HOUR, "before"), (hour, "now"))
    outcome = write(store, "app:info", (hour - 2 * HOUR, "old"), (hour, "now"), count=5)
    assert [(r.key, r.reason, r.field, r.amount) for r in outcome.rejections] == [
        (KEY, "aged", str(hour - 2 * HOUR), 5)
    ]
    assert counted(client) == {"now": 6}
    assert len(client.lrange(RECENT, 0, -1)) == 4


def test_two_writers_at_the_turn_of_the_hour_lose_nothing(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """Whoever comes first moves the hour on, once."""
    client.zadd(KEY, {"old": 7})
    client.set(f"{KEY}:start", hour - HOUR)
    stores = [open_store() for _ in range(4)]
    begin = threading.Barrier(len(stores))

    def run(store: Store) -> None:
        begin.wait()
        for _ in range(25):
            write(store, "app:info", (hour - 1, "late"), (hour, "now"))

    threads = [threading.Thread(target=run, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted(client) == {"now": 100}
    assert counted(client, f"{KEY}:last") == {"old": 7, "late": 100}
    assert hours_of(client) == (hour, hour - HOUR)


def test_everything_expires(open_store: OpenStore, client: Any, hour: int) -> None:
    """A month after the last message, or after the hour began."""
    store = open_store()
    write(store, "app:info", (hour - 1, "late"), (hour, "now"))
    write(store, "app:info", (hour - 1, "late"), (hour, "now"))
    keys = [KEY, f"{KEY}:start", f"{KEY}:last", f"{KEY}:pstart", RECENT, PATTERNS]
    for key in [*keys, "redmeter:messages:"]:
        assert LIFE - 60 < client.ttl(key) <= LIFE, key
    assert DAY - 60 < client.ttl(DISTINCT) <= DAY


# --- tally: bounds -------------------------------------------------------------------------


def test_beyond_the_room_of_a_severity_messages_count_under_coarse_patterns(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """Of all writers together; what is known still counts under its own pattern."""
    store = open_store()
    write(store, "app:info", *((hour, f"a{n}") for n in range(ROOM - 10)))
    outcome = write(store, "app:info", *((hour, f"b{n} failed") for n in range(30)), count=2)
    assert outcome.answers == ((STEPS, "40 0"),)
    write(store, "app:info", (hour, "a0"), (hour, "database is down"))
    found = counted(client)
    assert len(found) == ROOM + 2
    assert (found["… (2 words)"], found["database is down (3 words)"], found["a0"]) == (40, 1, 2)
    assert sum(found.values()) == ROOM - 10 + 30 * 2 + 2
    assert {*found} == {field.decode() for field in client.hkeys(PATTERNS)}
    assert {*found, ""} == {field.decode() for field in client.hkeys(STEPS)}
    write(store, "app:info", (hour - 1, "late"))
    assert counted(client, f"{KEY}:last") == {"late (1 word)": 1}


def test_beyond_the_places_of_coarse_patterns_messages_are_other(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """The writer learns how many; no pattern that has a place loses it."""
    store = open_store()
    write(store, "app:error", *((hour, f"p{n} x") for n in range(URGENT_ROOM)))
    words = [f"{'ab'[n % 2]}{chr(97 + n // 26)}{chr(97 + n % 26)} failed" for n in range(120)]
    outcome = write(store, "app:error", *((hour, word) for word in words))
    assert outcome.answers == (("redmeter:steps:app:error", f"{COARSE_ROOM} 20"),)
    write(store, "app:error", (hour, words[0]), (hour, "p7 x"), (hour, OTHER))
    found = counted(client, "redmeter:common:app:error")
    assert len(found) == URGENT_ROOM + COARSE_ROOM + 1
    assert (found[f"{words[0]} (2 words)"], found["p7 x"], found[OTHER]) == (2, 2, 21)
    assert sum(found.values()) == URGENT_ROOM + 120 + 3


def patterns_of(client: Any, hour: str = "") -> dict[str, int]:
    """How many patterns each severity has, without (other)."""
    found = {}
    for severity in ("info", "error", "odd"):
        members = counted(client, f"redmeter:common:app:{severity}{hour}")
        found[severity] = len(members.keys() - {OTHER})
    return found


def test_each_severity_has_room_of_its_own(open_store: OpenStore, client: Any, hour: int) -> None:
    """Errors twice as much as others, also in one batch and in each of its hours."""
    store = open_store()
    starts = (hour - HOUR, hour)
    hours = {start: an_hour(*((start, f"p{n}") for n in range(700))) for start in starts}
    made = {f"app:{severity}": hours for severity in ("info", "error", "odd")}
    store.shard("").write(lambda _: message_operations(store.keys, made))
    for which in ("", ":last"):
        found = {"info": ROOM + 1, "error": 700, "odd": ROOM + 1}
        assert patterns_of(client, which) == found
        coarse = counted(client, f"redmeter:common:app:odd{which}")["… (1 word)"]
        assert coarse == 700 - ROOM
    both = {b"%d" % start: b"%d" % sum(found.values()) for start in starts}
    assert client.hgetall(DISTINCT) == both


def test_patterns_of_an_hour_that_is_over_do_not_count_for_the_next(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """Also where another severity has not been moved on; days of hours do not pile up."""
    client.zadd("redmeter:common:app:error", {f"old{n}": 1 for n in range(MAX_HOURLY_PATTERNS)})
    client.set("redmeter:common:app:error:start", hour - HOUR)
    client.hset(DISTINCT, mapping={hour - HOUR: MAX_HOURLY_PATTERNS, hour - 2 * DAY: 9, "soon": 9})
    store = open_store()
    assert write(store, "app:info", (hour, "new"), (hour - 1, "late")) == Outcome()
    assert counted(client) == {"new": 1}
    assert counted(client, f"{KEY}:last") == {"late": 1}
    assert client.hgetall(DISTINCT) == {b"%d" % (hour - HOUR): b"1001", b"%d" % hour: b"1"}
    write(store, "app:error", (hour, "new"), (hour - 1, "old1"))
    assert counted(client, "redmeter:common:app:error") == {"new": 1}
    assert counted(client, "redmeter:common:app:error:last")["old1"] == 2


def test_patterns_that_other_programs_count_take_no_places(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """Theirs stay, however many they are, and count toward the number of the hour."""
    client.zadd(KEY, {f"their{n}": 1 for n in range(MAX_HOURLY_PATTERNS)} | {OTHER: 5})
    client.set(f"{KEY}:start", hour)
    store = open_store()
    write(store, "app:info", (hour, "their1"), (hour, "a"))
    found = counted(client)
    assert (found["their1"], found["a"], found[OTHER]) == (2, 1, 5)
    assert client.hgetall(DISTINCT) == {b"%d" % hour: b"%d" % (MAX_HOURLY_PATTERNS + 1)}


def test_a_pattern_that_is_there_costs_no_look_at_the_others(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """Nor is what was looked at renewed: a new one finds what its own hour has."""
    store = open_store()
    write(store, "app:info", (hour, "a"), (hour, "b"))
    client.delete(DISTINCT)
    write(store, "app:info", (hour, "a"), (hour, OTHER))
    assert not client.exists(DISTINCT)
    write(store, "app:info", (hour, "c"))
    assert client.hgetall(DISTINCT) == {b"%d" % hour: b"3"}


def test_where_the_others_cannot_be_known_an_hour_has_its_own_bound(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """What another program put there stays; all messages are counted, and it is told."""
    client.set(DISTINCT, "theirs")
    outcome = write(open_store(), "app:info", *((hour, f"a{n}") for n in range(ROOM)))
    assert [(r.key, r.reason, r.amount) for r in outcome.rejections] == [(DISTINCT, "unkept", 0)]
    outcome = write(open_store(), "app:info", (hour, "a0"), (hour, "b"))
    assert (len(outcome.rejections), client.get(DISTINCT)) == (1, b"theirs")
    found = counted(client)
    assert (found["a0"], found["b (1 word)"], len(found)) == (2, 1, ROOM + 1)


# --- push, seen, touch ---------------------------------------------------------------------


def entries(client: Any, key: str = RECENT) -> list[str]:
    """The texts of a list."""
    return [parse_recent(entry)[1] for entry in client.lrange(key, 0, -1)]


@pytest.mark.slow
def test_lists_keep_the_newest_in_front(open_store: OpenStore, client: Any, hour: int) -> None:
    """So many of them, also where one batch brings more."""
    store = open_store()
    write(store, "app:info", (hour, "a"), (hour + 1, "b"), keep=3)
    assert entries(client) == ["b", "a"]
    write(store, "app:info", (hour + 2, "c"), (hour + 3, "d"), keep=3)
    assert entries(client) == ["d", "c", "b"]
    many = [(hour + n / 10_000, f"m{n}") for n in range(3000)]
    write(store, "app:info", *many, keep=2500)
    assert entries(client) == [f"m{n}" for n in range(2999, 499, -1)]


def test_texts_are_stored_as_they_are(open_store: OpenStore, client: Any, hour: int) -> None:
    """Newlines, spaces, percent signs, zeros and any script."""
    text = "a\n b % %s \x00 ü 点 🎉\n"
    store = open_store()
    write(store, "app:info", (hour, text))
    assert entries(client) == [text]
    assert counted(client) == {text: 1}
    assert client.hget(PATTERNS, text).decode() == f"{hour}.000000 {hour}.000000 sample of {text}"


def test_a_list_of_another_program_stays_without_an_end(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """Whoever writes to it renews nothing."""
    client.lpush(RECENT, "theirs")
    write(open_store(), "app:info", (hour, "ours"))
    assert client.ttl(RECENT) == -1
    assert entries(client) == ["ours", "theirs"]


def test_what_is_known_of_a_pattern_grows(open_store: OpenStore, client: Any, hour: int) -> None:
    """First is the earliest, last the latest; the sample is the last one's."""

    def see(first: float, last: float, sample: str) -> bytes:
        made = LogHour(1)
        made.add("p", PatternHour(1, first, last, sample))
        store.shard("").write(lambda _: message_operations(store.keys, {"app:info": {hour: made}}))
        return bytes(client.hget(PATTERNS, "p"))

    store = open_store()
    assert see(hour + 5.5, hour + 6, "one") == b"%d.500000 %d.000000 one" % (hour + 5, hour + 6)
    assert see(hour + 1, hour + 2, "two") == b"%d.000000 %d.000000 one" % (hour + 1, hour + 6)
    assert see(hour + 7, hour + 9, "x\ny") == b"%d.000000 %d.000000 x\ny" % (hour + 1, hour + 9)
    client.hset(PATTERNS, "p", "nonsense")
    assert see(hour + 3, hour + 4, "new") == b"%d.000000 %d.000000 new" % (hour + 3, hour + 4)


def test_of_patterns_those_seen_last_are_known(
    open_store: OpenStore, client: Any, hour: int, set_time: SetTime
) -> None:
    """When there are half as many again as may be, the others go."""
    store = open_store()
    for part in range(4):
        start = hour + 3 * HOUR * part
        set_time(start + HOUR // 2)
        some = range(part * 300, part * 300 + 300)
        write(store, "app:info", *((start + n / 1000, f"p{n}") for n in some))
    found = {field.decode() for field in client.hkeys(PATTERNS)}
    assert found == {f"p{n}" for n in range(1200 - ROOM - COARSE_ROOM, 1200)}


def test_the_index_has_the_last_time_of_each(open_store: OpenStore, client: Any, hour: int) -> None:
    """Never an earlier one; who said nothing for a month is forgotten."""
    store = open_store()
    client.zadd("redmeter:messages:", {"gone:info": hour - LIFE - HOUR, "old:info": hour - DAY})
    write(store, "app:info", (hour + 5.25, "a"))
    write(store, "app:info", (hour - 5, "late"))
    found = dict(client.zrange("redmeter:messages:", 0, -1, withscores=True))
    assert found == {b"old:info": hour - DAY, b"app:info": hour + 5.25}


# --- Rejected, repeated --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "reasons"),
    [
        (RECENT, {(RECENT, "WRONGTYPE", "app:info", 2)}),
        (KEY, {(KEY, "WRONGTYPE", None, 2)}),
        (f"{KEY}:start", {(KEY, "WRONGTYPE", None, 2)}),
        (PATTERNS, {(PATTERNS, "unkept", "", 0)}),
        (STEPS, {(STEPS, "unkept", "", 0)}),
        ("redmeter:messages:", {("redmeter:messages:", "unkept", "", 0)}),
    ],
)
def test_a_key_of_another_type_is_refused_alone(
    open_store: OpenStore,
    client: Any,
    hour: int,
    key: str,
    reasons: set[tuple[str, str, str | None, int]],
) -> None:
    """It stays as it is, what was to be written is told, and all else is written."""
    client.hset(key, "theirs", "1")
    if key in (PATTERNS, STEPS):
        client.delete(key)
        client.set(key, "theirs")
    before = client.dump(key)
    outcome = write(open_store(), "app:info", (hour, "a"), (hour, "b"))
    wanted = {(k, r, str(hour) if f is None else f, n) for k, r, f, n in reasons}
    assert {(r.key, r.reason, r.field, r.amount) for r in outcome.rejections} == wanted
    assert client.dump(key) == before
    written = {KEY, RECENT, PATTERNS, "redmeter:messages:"} - {key, key.removesuffix(":start")}
    assert client.exists(*written) == len(written)


def test_an_hour_of_another_type_is_not_moved_on(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """Neither it nor what lies where it would go to is lost."""
    client.set(f"{KEY}:start", hour - HOUR)
    client.set(KEY, "theirs")
    client.zadd(f"{KEY}:last", {"a": 1})
    assert write(open_store(), "app:info", (hour, "b")).rejections[0].reason == "WRONGTYPE"
    assert client.get(KEY) == b"theirs"
    assert counted(client, f"{KEY}:last") == {"a": 1}
    client.delete(KEY, f"{KEY}:last")
    client.zadd(KEY, {"a": 1})
    client.set(f"{KEY}:last", "theirs")
    assert write(open_store(), "app:info", (hour, "b")).rejections[0].reason == "WRONGTYPE"
    assert counted(client) == {"a": 1}
    assert client.get(f"{KEY}:last") == b"theirs"


def test_a_batch_that_is_sent_twice_counts_once(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """All of it: lists, counts, what is known; also at the turn of an hour."""
    store = open_store()
    client.zadd(KEY, {"old": 7})
    client.set(f"{KEY}:start", hour - HOUR)
    made = {hour: an_hour((hour, "a")), hour - HOUR: an_hour((hour - 1, "b"))}
    batch = Batch("p" * 32, 1, message_operations(store.keys, {"app:info": made}))
    version = store.config().version
    assert send(store, batch, version, must_exist=False).applied
    before = {key: client.dump(key) for key in client.keys("*")}
    assert not send(store, batch, version, must_exist=False).applied
    assert {key: client.dump(key) for key in client.keys("*")} == before
    assert counted(client, f"{KEY}:last") == {"old": 7, "b": 1}


@pytest.mark.parametrize("key", [KEY, "redmeter:recent:app:info", "redmeter:patterns:app:info"])
def test_what_was_refused_is_told_again_to_who_did_not_hear_it(
    open_store: OpenStore, client: Any, hour: int, key: str
) -> None:
    """The same, in the words of the server."""
    store = open_store()
    client.set(key, "theirs")
    operations = message_operations(store.keys, {"app:info": {hour: an_hour((hour, "a"))}})
    batch = Batch("p" * 32, 1, operations)
    version = store.config().version
    first, again = (send(store, batch, version, must_exist=False) for _ in range(2))
    assert first.rejections == again.rejections
    assert {(r.key, "WRONGTYPE" in r.detail) for r in first.rejections} == {(key, True)}


# --- From a Meter and back -----------------------------------------------------------------


def test_what_is_logged_is_read_back(open_meter: OpenMeter, client: Any, hour: int) -> None:
    """At once, and from the background; by severity, or all of them by time."""
    del client, hour
    meter = open_meter()
    meter.log("app", "retrying %s", "a", severity="warning")
    meter.log("app", "done")
    background = open_meter(sync=False)
    background.log("app", "retrying %s", "b", severity="warning")
    background.log("app", "odd", severity="notice")
    assert background.flush()
    for each in (meter, background):
        texts = [(m.severity, m.text) for m in each.log_messages("app")]
        assert texts == [
            ("notice", "odd"),
            ("warning", "retrying b"),
            ("info", "done"),
            ("warning", "retrying a"),
        ]
        assert [m.text for m in each.log_messages("app", severity=30, limit=1)] == ["retrying b"]
        (found,) = each.log_frequencies("app", severity="warning")
        assert (found.pattern, found.count, found.before) == ("retrying %s", 2, 0)
        assert found.sample == "retrying b"
        assert found.first is not None
        assert found.last is not None
        assert 0 < found.last - found.first < 60
        assert each.log_frequencies("app")[0].pattern == "retrying %s"
        assert {(s.logger, s.severity) for s in each.loggers()} == {
            ("app", s) for s in ("info", "notice", "warning")
        }
        assert {(c.kind, c.pattern) for c in each.log_changes("app")} == {
            ("new", p) for p in ("retrying %s", "done", "odd")
        }
        assert list(each.log_changes()) == list(each.log_changes("app"))
        for nothing in (
            each.log_messages("nobody"),
            each.log_frequencies("nobody"),
            each.log_changes("nobody"),
        ):
            assert not nothing


def test_readings_of_a_logger_take_two_round_trips_at_most(
    open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One where all severities are standard ones; of all loggers it is three."""
    meter = open_meter()
    meter.log("app", "a")
    for trips, severity in ((1, "error"), (2, "odd")):
        meter.log("app", "b", severity=severity)
        for ask in (
            lambda: meter.log_messages("app"),
            lambda: meter.log_frequencies("app"),
            meter.log_changes,
        ):
            with exchanges(monkeypatch) as seen:
                assert ask()
            assert len(seen) <= max(trips, 3 if ask == meter.log_changes else 1)
    with exchanges(monkeypatch) as seen:
        assert meter.log_messages("app", severity="odd")
        assert meter.log_frequencies("app", severity="odd")
        assert meter.loggers()
    assert len(seen) == 3


def test_what_is_of_an_earlier_hour_does_not_count_for_this_one(
    open_meter: OpenMeter, client: Any, hour: int
) -> None:
    """What nobody has moved on yet is of the hour that `:start` says."""
    meter = open_meter()

    def frequencies(start: Any, pstart: Any) -> list[tuple[str, int, int]]:
        for key, text in ((f"{KEY}:start", start), (f"{KEY}:pstart", pstart)):
            client.delete(key) if text is None else client.set(key, text)
        return [(f.pattern, f.count, f.before) for f in meter.log_frequencies("app")]

    client.zadd(KEY, {"a": 3, "b": 1})
    client.zadd(f"{KEY}:last", {"a": 5, "c": 2})
    assert frequencies(hour, hour - HOUR) == [("a", 3, 5), ("b", 1, 0), ("c", 0, 2)]
    assert frequencies(hour, hour - 2 * HOUR) == [("a", 3, 0), ("b", 1, 0)]
    assert frequencies(hour - HOUR, hour - 2 * HOUR) == [("a", 0, 3), ("b", 0, 1)]
    assert frequencies(hour - 2 * HOUR, hour - 3 * HOUR) == []
    assert frequencies(hour - 2 * HOUR, hour - HOUR) == [("a", 0, 5), ("c", 0, 2)]
    assert frequencies(hour + HOUR, hour) == [("a", 3, 0), ("b", 1, 0)]
    assert frequencies(None, None) == [("a", 3, 0), ("b", 1, 0)]
    of_day = hour % DAY // HOUR, (hour - HOUR) % DAY // HOUR
    assert frequencies(*of_day) == [("a", 3, 5), ("b", 1, 0), ("c", 0, 2)]


def test_what_others_wrote_is_read_as_far_as_it_goes(
    open_meter: OpenMeter, client: Any, hour: int
) -> None:
    """Bytes that are no text, scores that count nothing, entries without a time."""
    meter = open_meter()
    meter.log("app", "ours")
    client.zadd(KEY, {b"\xff": 4, "zero": 0, "inf": "inf"})
    client.hset(PATTERNS, "ours", b"\xff")
    client.hset(PATTERNS, b"\xfe\xfe", "1 2 x")
    client.zadd("redmeter:messages:", {b"\xff:info": hour, "nocolon": hour, "app:": hour})
    client.rpush(RECENT, b"no time \xff", b"Sun Jun 23 11:57:38 2019 test_msg")
    assert [(f.pattern, f.count, f.first) for f in meter.log_frequencies("app")] == [
        ("\ufffd", 4, None),
        ("ours", 1, None),
    ]
    found = meter.log_messages("app")
    assert [(m.text, m.time) for m in found[1:]] == [
        ("no time \ufffd", None),
        ("test_msg", 1561291058.0),
    ]
    assert [s.logger for s in meter.loggers()] == ["app", "\ufffd"]
    assert list(meter.log_changes("app")) == []


def test_a_key_of_another_type_is_told(open_meter: OpenMeter, client: Any) -> None:
    """To whoever logs at once, and to whoever reads."""
    client.set(RECENT, "theirs")
    meter: Meter = open_meter()
    with pytest.raises(StoreRefused, match="WRONGTYPE"):
        meter.log("app", "text")
    assert counted(client) == {"text": 1}
    with pytest.raises(StoreRefused, match="WRONGTYPE"):
        meter.log_messages("app")


def test_prefixes_keep_messages_apart(open_meter: OpenMeter, client: Any) -> None:
    """Without one, the keys are those of the listings, but for what is ours."""
    open_meter(prefix="").log("app", "bare")
    open_meter(prefix="x:").log("app", "mine")
    assert entries(client, "recent:app:info") == ["bare"]
    assert entries(client, "x:recent:app:info") == ["mine"]
    assert counted(client, "common:app:info") == {"bare": 1}
    assert client.exists("redmeter:bare:patterns:app:info", "redmeter:bare:messages:") == 2


def test_a_list_is_cut_to_what_its_last_writer_keeps(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """Whatever others keep: the smaller number holds where they differ."""
    store = open_store()
    write(store, "app:info", *((hour + n, f"{n}") for n in range(5)))
    assert len(entries(client)) == 5
    write(store, "app:info", (hour + 9, "last"), keep=3)
    assert len(entries(client)) == 3
    write(store, "app:info", (hour + 10, "more"))
    assert len(entries(client)) == 4


def test_a_sample_that_was_given_up_leaves_the_one_that_is_there(
    open_store: OpenStore, client: Any, hour: int
) -> None:
    """It is of an earlier message of the pattern."""
    store = open_store()
    write(store, "app:info", (hour, "a"))
    made = LogHour(9)
    made.add("a", PatternHour(1, hour + 5, hour + 5, ""))
    store.shard("").write(lambda _: message_operations(store.keys, {"app:info": {hour: made}}))
    assert client.hget(PATTERNS, "a").decode() == f"{hour}.000000 {hour + 5}.000000 sample of a"
