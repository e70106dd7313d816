"""Which series is meant by a name: the one that is stored so, else its one spelling."""

from typing import Any

import pytest

from redmeter import InvalidName, book
from redmeter.maintenance.forgetting import forget
from redmeter.reading.names import read_names
from redmeter.store.resolve import resolve_name
from support.stores import OpenMeter, OpenStore, exchanges

#: Two counters of the listings, and one of a meter: a name and its one spelling.
THEIRS, OURS = 'hits{b="1",a="2"}', 'hits{a="2",b="1"}'


def test_without_a_prefix_names_are_as_they_stand(client: Any, open_store: OpenStore) -> None:
    """What is forgotten is what was named: once it is gone, nothing else goes in its place."""
    for name in (THEIRS, OURS, "x{y"):
        book.update_counter(client, name)
    store = open_store(prefix="")
    assert [resolve_name(store, name) for name in (THEIRS, OURS, "x{y")] == [THEIRS, OURS, "x{y"]
    assert forget(store, THEIRS)
    assert resolve_name(store, THEIRS) == OURS
    assert read_names(store) == [OURS, "x{y"]
    assert not forget(store, THEIRS)
    assert forget(store, "x{y")
    assert read_names(store) == [OURS]


def test_with_a_prefix_a_name_that_is_stored_so_comes_first(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """As one that was moved there is; any other is a spelling of its labels."""
    meter, store = open_meter(), open_store()
    meter.count(OURS)
    assert resolve_name(store, THEIRS) == resolve_name(store, 'hits{ b = "1", a = "2", }') == OURS
    with pytest.raises(InvalidName):
        resolve_name(store, "x{y")
    client.zadd("redmeter:known:", {f"60:{THEIRS}": 0})
    client.zadd("redmeter:gauges:", {"60:x{y": 0})
    client.zadd("redmeter:hists:", {"3600:a}": 0})
    for name in (THEIRS, OURS, "x{y", "a}"):
        assert resolve_name(store, name) == name
    assert forget(store, THEIRS)
    assert read_names(store) == [OURS]


@pytest.mark.parametrize("prefix", ["redmeter:", ""])
@pytest.mark.parametrize("name", ["", "\ud800", "a\nb", b"x", None])
def test_what_is_no_name_is_refused(
    client: Any, open_store: OpenStore, prefix: str, name: Any
) -> None:
    """Unless it is stored: others may call a counter as we would not."""
    client.zadd(f"{prefix}known:", {"60:": 0})
    store = open_store(prefix=prefix)
    with pytest.raises(InvalidName):
        resolve_name(store, name)
    if name == "a\nb":
        client.zadd(f"{prefix}known:", {f"60:{name}": 0})
        assert resolve_name(store, name) == name


def test_the_store_is_asked_only_where_the_spellings_differ(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most names have one."""
    store = open_store()
    with exchanges(monkeypatch) as seen:
        assert [resolve_name(store, name) for name in ("hits", OURS)] == ["hits", OURS]
    assert not seen
