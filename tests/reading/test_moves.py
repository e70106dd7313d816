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
    migrate(one, other, quit=lambda: True)
    text = f"a move to {before} has begun: the rest is there, and a run may be at work"
    assert told(one) == [("warn", text, True)]
    assert migrate(one, other).complete
    assert told(one) == [("ok", f"all of it was moved to {before}", False)]
    text = f"nothing lies in {after} any more: readers may do without REDMETER_PREVIOUS_URL"
    assert (told(together.reader), told(other)) == ([("ok", text, False)], [])
    with Meter(urls[0], sync=True) as late:
        late.count("hits")
    text = f"was moved to {before}, and has been written to since"
    assert told(one) == [("warn", text, True)]


def test_a_store_before_that_is_away_hides_nothing_of_this_one(urls: tuple[str, str]) -> None:
    """What can be told is, and who does not answer."""
    with Meter(urls[1], sync=True) as meter:
        meter.count("hits")
    store = stores.open(urls[1], previous_url="redis://127.0.0.1:1/0")
    assert store is not None
    health = examine(store.reader)
    assert health.series[60] == 1
    ((level, text, fix),) = told(store.reader)
    assert (level, fix) == ("warn", True)
    assert text.startswith("the store before cannot be read: no answer from redis://127.0.0.1:1/0")
    store.close()
