"""Joins and questions that are asked together, on real servers."""

from collections.abc import Sequence
from typing import Any

import pytest

from redmeter import StoreRefused
from redmeter.reading.join import Ask, Joined, join, of_before, of_window
from redmeter.reading.windows import Coverage, whole_window
from redmeter.store.query import Query, run_query, together
from redmeter.store.servers.replies import Command, Reply
from redmeter.stored.keys import Keys, Retention, entry
from support.stores import OpenStore, exchanges, server_time

pytestmark = pytest.mark.servers

KEYS = Keys()


def put(client: Any, name: str, precision: int, now: float, slices: int) -> dict[int, int]:
    """Write slices of a counter, the newest first: 1, 2, 3 …; return them."""
    newest = int(now // precision * precision)
    values = {newest - n * precision: n + 1 for n in range(slices)}
    client.hset(KEYS.count(precision, name), mapping=values)
    client.zadd(KEYS.known, {entry(precision, name): 0})
    return values


def joined(store: Any, asks: Sequence[Ask], *, low: str = "-", high: str = "+") -> Joined:
    """Ask of all counters at 60 s."""
    read = join(KEYS, KEYS.known, (low, high), len("60:"), asks, count=100)
    return Joined(store.read([read])[1][0], len(asks))


@pytest.mark.parametrize("precision", [1, 5, 60, 300, 3600, 18000, 86400])
def test_the_script_reads_the_slices_that_a_window_says(
    client: Any, open_store: OpenStore, precision: int
) -> None:
    """Those of the window, and those before it; each slice has another value."""
    store = open_store()
    window = whole_window(store.seen.series, precision)
    now = server_time(client)
    written = {p: put(client, "x", p, now, 250) for p in store.seen.series}
    client.delete(KEYS.known)
    client.zadd(KEYS.known, {"60:x": 0})
    asks = [of_window(KEYS.key("count"), window)]
    if window.earlier:
        asks.append(of_before(KEYS.key("count"), window))
    answer = joined(store, asks)
    ((member, replies),) = answer.readable()
    assert member == b"60:x"
    found = [dict(zip(map(int, r[::2]), map(int, r[1::2]), strict=True)) for r in replies]
    for slices, some in zip(
        (window.slices(answer.now), window.slices_before(answer.now)), found, strict=False
    ):
        expected = {
            s: written[p][s] for p, starts in slices.items() for s in starts if s in written[p]
        }
        assert expected.keys() == some.keys()
        assert sum(expected.values()) == sum(some.values())


def test_members_come_with_what_was_asked_of_them(client: Any, open_store: OpenStore) -> None:
    """In the order of the index; what is not there is nothing."""
    now = server_time(client)
    put(client, "a", 60, now, 1)
    client.zadd(KEYS.known, {"60:b": 0})
    answer = joined(open_store(), [Ask("HLEN", "redmeter:count:60:"), Ask("GET", "no:", ":such")])
    assert list(answer.readable()) == [(b"60:a", [1, None]), (b"60:b", [0, None])]
    assert abs(answer.now - now) < 5


def test_a_join_ends_when_its_time_is_over(client: Any, open_store: OpenStore) -> None:
    """With whole members, of which there is at least one; without a limit all are read."""
    store, now = open_store(), server_time(client)
    for n in range(200):
        put(client, f"x{n:03}", 60, now, 100)
    asks = [of_window(KEYS.key("count"), whole_window(store.seen.series, 60))]
    for limit_us, least, most in ((0, 200, 200), (10**9, 200, 200), (1, 1, 20)):
        read = join(KEYS, KEYS.known, ("-", "+"), 3, asks, count=500, limit_us=limit_us)
        answer = Joined(store.read([read])[1][0], 1)
        assert least <= len(answer.members) <= most
        members = [member for member, _ in answer.readable()]
        assert members == [b"60:x%03d" % n for n in range(len(answer.members))]


def test_a_member_whose_key_holds_something_else_is_left_out(
    client: Any, open_store: OpenStore
) -> None:
    """The others are answered."""
    put(client, "a", 60, server_time(client), 1)
    client.zadd(KEYS.known, {"60:b": 0})
    for precision in (60, 300):
        client.set(KEYS.count(precision, "b"), "x")
    window = Coverage(60, 120, (60, 300))
    for one in (Ask("HGETALL", "redmeter:count:60:"), of_window(KEYS.key("count"), window)):
        assert [member for member, _ in joined(open_store(), [one]).readable()] == [b"60:a"]


def test_another_error_is_raised(client: Any, open_store: OpenStore) -> None:
    """Of a part, and of the whole."""
    put(client, "a", 60, server_time(client), 1)
    with pytest.raises(StoreRefused):
        list(joined(open_store(), [Ask("NOSUCHCOMMAND", "x:")]).readable())
    client.set(KEYS.known, "no index")
    with pytest.raises(StoreRefused):
        joined(open_store(), [Ask("HGETALL", "x:")])


def echo(*rounds: str) -> Query[list[bytes]]:
    """Ask the server to say some words, a round trip for each."""
    said: list[bytes] = []
    for word in rounds:
        _, (reply,) = yield [("ECHO", word)]
        said.append(reply)
    return said


def test_questions_share_their_round_trips(open_store: OpenStore, monkeypatch: Any) -> None:
    """As many as the longest has; the answers are in the order of the questions."""
    store = open_store()
    store.read()
    with exchanges(monkeypatch) as seen:
        _, answers = run_query(
            store, lambda _: together([echo("a"), echo("b", "c", "d"), echo(), echo("e", "f")])
        )
    assert answers == [[b"a"], [b"b", b"c", b"d"], [], [b"e", b"f"]]
    assert [number - 2 * (at == 0) for at, number in enumerate(seen)] == [3, 2, 1]


def test_a_question_that_fails_ends_the_others(open_store: OpenStore) -> None:
    """Each is closed."""
    closed: list[str] = []

    def failing() -> Query[None]:
        yield [("PING",)]
        raise ValueError

    def waiting() -> Query[None]:
        try:
            while True:
                yield [("PING",)]
        finally:
            closed.append("waiting")

    with pytest.raises(ValueError):
        run_query(open_store(), lambda _: together([waiting(), failing()]))
    assert closed == ["waiting"]


def test_a_question_is_made_again_where_the_store_keeps_something_else(
    open_store: OpenStore, monkeypatch: Any
) -> None:
    """Who only reads learns it from the first answer, at the price of one more round trip."""
    open_store(retention="60=10 3600=24").config()
    made: list[dict[int, int]] = []

    def make(kept: Any) -> Query[Reply]:
        made.append(dict(kept.series))

        def question() -> Query[Reply]:
            commands: list[Command] = [("PING",)]
            view, replies = yield commands
            return view.retention, replies[0]

        return question()

    reader = open_store()
    with exchanges(monkeypatch) as seen:
        _, (retention, _) = run_query(reader, make)
        assert retention == Retention({60: 10, 3600: 24}) == made[-1]
        assert len(made) == len(seen) == 2
        run_query(reader, make)
    assert len(made) == len(seen) == 3
