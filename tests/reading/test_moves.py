"""What examine() says of a store that is moved, and of one that is read with the one before."""

from collections.abc import Iterator

import pytest

from redmeter import Meter
from redmeter import store as stores
from redmeter.migrating import migrate
from redmeter.reading.health import examine
from redmeter.store import Store
from support.servers import Server


@pytest.fixture
def urls(server: Server) -> tuple[str, str]:
    """FROM and TO."""
    return server.url, server.url.removesuffix("0") + "1"


@pytest.fixture
def opened(urls: tuple[str, str]) -> Iterator[tuple[Store, Store, Store]]:
    """FROM, TO, and TO as it is read with FROM."""
    with Meter(urls[0], sync=True) as meter:
        meter.count("hits")
    both = [stores.open(urls[0]), stores.open(urls[1])]
    found = [*both, stores.open(urls[1], previous_url=urls[0])]
    assert all(found)
    one, other, together = (store for store in found if store is not None)
    yield one, other, together
    for store in (one, other, together):
        store.close()


def told(store: Store) -> list[tuple[str, str, bool]]:
    """Return the findings about moves: level, text, and whether there is something to do."""
    findings = examine(store).findings
    return [(f.level, f.text, bool(f.fix)) for f in findings if f.topic == "move"]


def test_a_move_is_told_where_it_began_and_where_it_goes(
    opened: tuple[Store, Store, Store], urls: tuple[str, str]
) -> None:
    """From its first step on until all is over, and what is written there afterwards."""
    one, other, together = opened
    before, after = f"{other.location}, prefix 'redmeter:'", one.location
    assert (told(one), told(other)) == ([], [])
    both = f"{after} is read as well: 7 entries lie there still"
    assert told(together.reader) == [("warn", both, True)]
    during: list[tuple[str, str, bool]] = []

    def look_and_quit() -> bool:
        during.extend(told(one))
        return True

    migrate(one, other, quit=look_and_quit)
    text = f"it is being moved to {before}: a run is at work, or was some seconds ago"
    assert during == [("warn", text, True)]
    text = f"a move to {before} has begun, and no run is at work: the rest is there"
    assert told(one) == [("warn", text, True)]
    assert migrate(one, other).complete
    assert told(one) == [("ok", f"all of it was moved to {before}", False)]
    text = f"nothing lies in {after} any more: readers may do without REDMETER_PREVIOUS_URL"
    assert (told(together.reader), told(other)) == ([("ok", text, False)], [])
    with Meter(urls[0], sync=True) as late:
        late.count("hits")
    text = f"was moved to {before}, and has been written to since"
    assert told(one) == [("warn", text, True)]


def test_where_nothing_was_there_to_move_none_is_told(
    opened: tuple[Store, Store, Store], server: Server, urls: tuple[str, str]
) -> None:
    """A prefix may have been wrong: all of it would be all of nothing."""
    _, other, _ = opened
    wrong = stores.open(urls[0], prefix="wrong:")
    assert wrong is not None
    assert migrate(wrong, other).nothing
    assert told(wrong) == []
    wrong.close()


def test_what_was_refused_is_told_until_it_is_gone(
    opened: tuple[Store, Store, Store], server: Server
) -> None:
    """Not all of it was moved then."""
    one, other, _ = opened
    with server.client(db=1) as client:
        client.set("redmeter:count:60:hits", "theirs")
        (key,) = migrate(one, other).left
        text = f"was moved to {other.location}, prefix 'redmeter:', but for 1 key whose contents "
        assert told(one) == [("warn", text + "it could not store", True)]
        client.delete("redmeter:count:60:hits")
    with server.client() as client:
        client.renamenx(key, "redmeter:count:60:hits")
    assert migrate(one, other).complete
    text = f"all of it was moved to {other.location}, prefix 'redmeter:'"
    assert told(one) == [("ok", text, False)]


def test_what_no_run_takes_was_not_written_since(
    opened: tuple[Store, Store, Store], server: Server
) -> None:
    """Entries that are none, or of nothing, another program's keys, what TO does not keep."""
    one, other, together = opened
    other.binding()
    other.change_retention([(1, 0), (5, 0)])
    with server.client() as client:
        for index in ("known:", "gauges:", "hists:"):
            client.zadd(f"redmeter:{index}", {"junk": 0, "3600:gone": 0})
        client.set("redmeter:count:3600:theirs", "x")
        client.zadd("redmeter:known:", {"3600:theirs": 0})
    assert migrate(one, other).unkept == {"counters": {1: 1, 5: 1}}
    text = f"all of it that is kept there was moved to {other.location}, prefix 'redmeter:'"
    assert told(one) == [("ok", text, False)]
    with server.client() as client:
        for index in ("known:", "gauges:", "hists:"):
            client.zrem(f"redmeter:{index}", "3600:gone", "3600:theirs")
    ((level, text, _),) = told(together.reader)
    assert (level, text[:10]) == ("ok", "nothing li")
    with Meter(one.location, sync=True) as late:
        late.gauge("level").set(1.0)
        late.flush()
    ((level, text, _),) = told(one)
    assert (level, text.rpartition(", and ")[2]) == ("warn", "has been written to since")


def test_what_had_expired_before_the_move_does_not_lie_there_still(
    opened: tuple[Store, Store, Store], server: Server
) -> None:
    """Its entries go, also where no cleaner came by; those of what is written meanwhile stay."""
    one, other, together = opened
    with server.client() as client:
        for index in ("known:", "gauges:", "hists:"):
            many = {f"60:gone{number}": 0 for number in range(700)}
            client.zadd(f"redmeter:{index}", many)
            client.zadd(f"redmeter:{index}", {b"junk": 0, b"60:\xff": 0})
        client.zadd("redmeter:known:", {"60:theirs": 0})
        client.set("redmeter:count:60:theirs", "x")
        client.hset("redmeter:moments:60:gone7", "0", "1 1 1")
        assert migrate(one, other).finished
        client.delete("redmeter:moments:60:gone7")
        assert set(client.zrange("redmeter:known:", 0, -1)) == {b"junk", b"60:\xff", b"60:theirs"}
        assert set(client.zrange("redmeter:gauges:", 0, -1)) == {b"junk", b"60:\xff"}
        client.delete("redmeter:count:60:theirs")
        for index in ("known:", "gauges:", "hists:"):
            client.zrem(f"redmeter:{index}", b"60:\xff")
    assert migrate(one, other).complete
    text = f"nothing lies in {one.location} any more: readers may do without REDMETER_PREVIOUS_URL"
    ((level, told_text, _),) = told(together.reader)
    assert (level, told_text) == ("ok", text)


def test_a_store_before_that_is_away_hides_nothing_of_this_one(urls: tuple[str, str]) -> None:
    """What can be told is, and who does not answer."""
    with Meter(urls[1], sync=True) as meter:
        meter.count("hits")
    store = stores.open(urls[1], previous_url="redis://127.0.0.1:1/0")
    assert store is not None
    health = examine(store.reader)
    assert health.series[60] == 1
    ((level, text, fix),) = told(store.reader)
    assert (level, fix, health.level) == ("fail", True, "fail")
    assert text.startswith("redis://127.0.0.1:1/0 cannot be read: no answer from redis://127.0.0.1")
    store.close()


def test_what_the_store_before_denies_is_a_finding(server: Server, urls: tuple[str, str]) -> None:
    """Else the numbers would be of this store alone, and nobody be told."""
    for url in urls:
        with Meter(url, sync=True) as meter:
            meter.count("hits")
    with server.client() as admin:
        rules = "on", ">s", "~*", "+@all", "-zrangebylex"
        admin.execute_command("ACL", "SETUSER", "ada", *rules)
    store = stores.open(urls[1], previous_url=urls[0].replace("://", "://ada:s@"))
    assert store is not None
    health = examine(store.reader)
    ((level, text, fix),) = told(store.reader)
    assert (level, fix, health.level) == ("fail", True, "fail")
    assert "denies access" in text
    assert text.endswith("what lies there is missing")
    store.close()
