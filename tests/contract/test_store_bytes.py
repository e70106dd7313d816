"""A store that is full takes no new series, and goes on with those that it has."""

from typing import Any

import pytest

from redmeter import StoreRefused
from redmeter.health.doctor import examine
from redmeter.maintenance import cleaning
from redmeter.maintenance.sizes import sizes_by_name
from redmeter.store import Store
from support.stores import OpenMeter, OpenStore

RECORD: dict[str, Any] = {
    "counter": lambda meter, name: meter.count(name),
    "gauge": lambda meter, name: meter.gauge(name).set(1),
    "histogram": lambda meter, name: meter.observe(name, 0.5),
}


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    """A store of its own."""
    return open_store()


def series_keys(client: Any, name: str) -> set[str]:
    """Return the keys of a series, its entries in indexes, and its fields in grand totals."""
    found = {key.decode() for key in client.scan_iter() if f":{name}" in key.decode()}
    for index in ("known", "gauges", "hists"):
        members = client.zrange(f"redmeter:{index}:", 0, -1)
        found |= {f"{index} {m.decode()}" for m in members if m.decode().endswith(f":{name}")}
    for total in ("total", "sums", "spreads"):
        if client.hexists(f"redmeter:{total}:", name):
            found.add(total)
    return found


def fill(store: Store) -> None:
    """Have the cleaner find that the store is larger than it may be."""
    assert cleaning.clean(store, store_bytes=1).bytes > 1  # type: ignore[operator]


@pytest.mark.parametrize("kind", RECORD)
@pytest.mark.parametrize("sync", [False, True])
def test_new_series_are_refused(
    store: Store, open_meter: OpenMeter, client: Any, kind: str, sync: bool
) -> None:
    """A new process goes on with series that exist; nothing at all is written of a new one."""
    first = open_meter(sync=True)
    RECORD[kind](first, "known")
    before = series_keys(client, "known")
    fill(store)
    meter = open_meter(sync=sync)
    RECORD[kind](meter, "known")
    if sync:
        with pytest.raises(StoreRefused, match="store-full"):
            RECORD[kind](meter, "new")
    else:
        RECORD[kind](meter, "new")
        assert meter.flush()
        assert meter.recorder_health().troubles["store-full"] >= 1
    assert series_keys(client, "new") == set()
    assert series_keys(client, "known") >= before
    lost = {loss.series for loss in meter.recorder_health().losses if loss.reason == "store-full"}
    assert lost == {"new"}

    cleaning.clean(store, store_bytes=2**40)
    RECORD[kind](meter, "new")
    assert meter.flush()
    assert series_keys(client, "new")


def test_the_limit_is_known_everywhere(
    store: Store, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Doctor warns from half of it, and what is refused is a loss with its own reason."""
    meter = open_meter(sync=False)
    meter.count("known")
    meter.flush()
    used = sum(size.bytes for size in sizes_by_name(store))

    def texts() -> str:
        return "\n".join(f.text for f in examine(store).findings if f.level == "warn")

    assert "may take" not in texts()
    monkeypatch.setenv("REDMETER_STORE_BYTES", str(int(used * 1.5)))
    assert "that the store may take" in texts()
    assert "new series refused" not in texts()
    monkeypatch.setenv("REDMETER_STORE_BYTES", str(int(used / 1.5)))
    assert "the cleaner has new series refused" in texts()
    fill(store)
    meter.count("new")
    meter.close()
    assert "events of new series, in a store that is full (store-full) are missing" in texts()
