"""The label sets of a name: which ones an index lists, with a filter and with limits."""

from typing import Any

import pytest

from redmeter import Meter
from redmeter.errors import LimitExceeded
from redmeter.reading import selection
from redmeter.reading.join import Joined, of_window
from redmeter.reading.samples import counts_of
from redmeter.reading.selection import LabelSets
from redmeter.reading.windows import whole_window
from redmeter.store.query import run_query
from support.stores import OpenMeter, exchanges

PRO, FREE, TEAM = (
    f'orders{{plan="{plan}",shop="{shop}"}}'
    for plan, shop in (("pro", "a"), ("free", "a"), ("team", "b"))
)


@pytest.fixture
def meter(open_meter: OpenMeter) -> Meter:
    """A counter with three label sets, and others whose names begin like its name."""
    meter = open_meter()
    for name in ("orders", FREE, PRO, TEAM, "orders2", 'orders2{plan="pro"}', "order"):
        meter.count(name, 3)
    return meter


def find(meter: Meter, base: str, limit: int = 10, **labels: str) -> list[str]:
    """Return the label sets of a counter."""
    assert meter._store is not None
    listed = LabelSets(meter._store.keys, meter._store.keys.known, 60, base)
    return run_query(meter._store, lambda _: listed.names(limit, labels))[1]


def test_the_label_sets_of_a_name_are_its_own(meter: Meter) -> None:
    """Names that begin alike are others; the series without labels is left out."""
    assert find(meter, "orders") == [FREE, PRO, TEAM]
    assert find(meter, "order") == []
    assert find(meter, "orde") == []
    assert find(meter, "orders2") == ['orders2{plan="pro"}']


def test_a_filter_leaves_those_that_have_its_labels(meter: Meter) -> None:
    """Whatever labels they have besides; a series without labels has none of them."""
    assert find(meter, "orders", shop="a") == [FREE, PRO]
    assert find(meter, "orders", shop="a", plan="pro") == [PRO]
    assert find(meter, "orders", shop="c") == []


def test_more_label_sets_than_the_limit_are_an_error(
    meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a filter those count that match, and those that have to be read for it."""
    assert len(find(meter, "orders", 3)) == 3
    with pytest.raises(LimitExceeded, match=r"more than 2 label sets .*at most 2"):
        find(meter, "orders", 2)
    assert find(meter, "orders", 2, shop="a") == [FREE, PRO]
    with pytest.raises(LimitExceeded, match=r"2 label sets .*at most 1"):
        find(meter, "orders", 1, shop="a")
    monkeypatch.setattr(selection, "MAX_SCANNED", 2)
    with pytest.raises(LimitExceeded, match="at most 2"):
        find(meter, "orders", 5, shop="a")


def test_an_entry_that_is_not_utf_8_is_left_out(meter: Meter, client: Any) -> None:
    """Another program wrote it."""
    client.zadd("redmeter:known:", {b'60:orders{x="\xff"}': 0})
    assert find(meter, "orders") == [FREE, PRO, TEAM]


def test_label_sets_are_read_with_their_values_page_by_page(
    meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one round trip with how many there are, and with the series without labels."""
    store = meter._store
    assert store is not None
    view, _ = store.read()
    listed = LabelSets(store.keys, store.keys.known, 60, "orders")
    asks = [of_window(store.keys.key("count"), whole_window(view.retention, 60))]
    with exchanges(monkeypatch) as seen:
        replies = store.ask([listed.join(asks, 2), listed.size(), listed.join_base(asks)])
    assert len(seen) == 1
    page, base = Joined(replies[0], 1), Joined(replies[2], 1)
    assert page.members == [f"60:{name}".encode() for name in (FREE, PRO)]
    assert replies[1] == 3
    assert base.members == [b"60:orders"]
    for joined in (page, base):
        for _, (counts,) in joined.readable():
            assert sum(counts_of(counts).values()) == 3
    (reply,) = store.ask([listed.join(asks, 2, after=page.members[-1])])
    assert Joined(reply, 1).members == [f"60:{TEAM}".encode()]
