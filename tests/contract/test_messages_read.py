"""Messages of many loggers: what is read of all of them, and what is told where it is not."""

import json
import time
from typing import Any

import pytest

from redmeter import Meter, book
from redmeter.reading.logs import recent as logs
from redmeter.reading.logs.recent import read_frequencies, read_recent
from redmeter.results import Message
from redmeter.stored.keys import HOUR, slice_start
from support.stores import OpenMeter, OpenStore, exchanges, server_time

pytestmark = pytest.mark.servers


def put(client: Any, names: list[str], *, last: float, pattern: str = "hello %s") -> None:
    """Let each LOGGER:SEVERITY have logged a pattern twice in this hour, a second apart."""
    pipe, hour = client.pipeline(transaction=False), slice_start(server_time(client), HOUR)
    for at, name in enumerate(names):
        pipe.zadd("redmeter:messages:", {name: last + at})
        pipe.zadd(f"redmeter:common:{name}", {pattern: 2})
        pipe.set(f"redmeter:common:{name}:start", hour)
        pipe.hset(f"redmeter:patterns:{name}", pattern, f"{last:.6f} {last + at:.6f} hello you")
        pipe.lpush(f"redmeter:recent:{name}", f"2023-11-14T22:13:{at % 60:02}.5Z from {name}")
    pipe.execute()


def test_what_changed_is_told_of_all_loggers(client: Any, open_meter: OpenMeter) -> None:
    """Not of those alone that logged last: who fails and falls silent is among them."""
    now = server_time(client)
    put(client, ["payment:error"], last=now - 5)
    put(client, [f"other{n}:info" for n in range(350)], last=now - 4)
    found = open_meter().log_changes()
    assert len(found) == 351
    assert {change.kind for change in found} == {"new"}
    assert (found.sources, found.compared) == (351, 351)
    (payment,) = (c for c in found if c.logger == "payment")
    assert (payment.count, payment.sample) == (2, "hello you")
    assert payment.first == pytest.approx(now - 5, abs=1e-3)


def test_a_severity_is_chosen_before_anything_is_cut(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many others logged since."""
    monkeypatch.setattr(logs, "MAX_COMPARED_LOGS", 20)
    monkeypatch.setattr(logs, "LOG_PAGE", 10)
    store, now = open_store(), server_time(client)
    put(client, ["payment:error"], last=now - 5)
    put(client, [f"other{n}:info" for n in range(30)], last=now - 4)
    found = read_frequencies(store, severity="error")
    assert [(f.logger, f.count) for f in found.frequencies] == [("payment", 2)]
    assert (found.sources, found.compared) == (1, 1)
    found = read_frequencies(store)
    assert (len(found.frequencies), found.sources, found.compared) == (20, 31, 20)
    assert {f.logger for f in found.frequencies} == {f"other{n}" for n in range(10, 30)}


def test_no_more_patterns_are_read_than_fit(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read is bounded by pages, and so is what is asked for at a time."""
    monkeypatch.setattr(logs, "LOG_PAGE", 10)
    monkeypatch.setattr(logs, "MAX_COMPARED_PATTERNS", 25)
    monkeypatch.setattr(logs, "SEEN_PAGE", 7)
    store = open_store()
    store.config()
    put(client, [f"other{n}:info" for n in range(60)], last=server_time(client))
    with exchanges(monkeypatch) as seen:
        found = read_frequencies(store)
    assert (found.sources, found.compared, len(found.frequencies)) == (60, 30, 30)
    assert len(seen) == 1 + 3 + 5
    assert all(f.sample == "hello you" for f in found.frequencies)
    found = read_frequencies(store, known=2)
    assert [f.sample != "" for f in found.frequencies] == [True, True] + [False] * 28


def test_the_newest_messages_of_all_are_the_newest(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read only until no other logger can have one of them."""
    monkeypatch.setattr(logs, "LOG_PAGE", 5)
    store, now = open_store(), 1_700_000_000.0
    names = [f"other{n}:info" for n in range(20)]
    put(client, names, last=now)  # 2023-11-14T22:13:20
    for at, name in enumerate(names):
        client.delete(f"redmeter:recent:{name}")
        text = f"2023-11-14T22:13:{20 + at}.000000Z text {at}"
        client.lpush(f"redmeter:recent:{name}", f"2023-11-14T22:13:{20 + at}.000000Z older", text)

    def texts(found: list[Message]) -> list[str]:
        return [one.text for one in found if one.text != "older"]

    with exchanges(monkeypatch) as seen:
        assert texts(read_recent(store, None, limit=4)) == ["text 19", "text 18"]
    assert len(seen) == 2
    assert texts(read_recent(store, None, limit=40)) == [f"text {n}" for n in range(19, -1, -1)]


def test_a_message_of_the_book_has_its_logger_in_the_index(
    client: Any, open_meter: OpenMeter
) -> None:
    """So that it is found without being named, alone and through a pipeline."""
    meter = open_meter(prefix="")
    book.log_common(client, "book", "text", "error")
    book.log_recent(client, "piped", "text", pipe=client.pipeline())
    found = {(s.logger, s.severity): s.last for s in meter.loggers()}
    assert set(found) == {("book", "error"), ("piped", "info")}
    assert all(abs(last - time.time()) < 60 for last in found.values())
    (frequency,) = read_frequencies(meter._store).frequencies  # type: ignore[arg-type]
    assert (frequency.logger, frequency.count) == ("book", 1)


@pytest.mark.parametrize("time", ["inf", "-inf", "nan"])
def test_times_of_others_that_are_none_are_left_out(
    client: Any, open_meter: OpenMeter, time: str
) -> None:
    """No reading tells of an infinite one."""
    meter: Meter = open_meter()
    meter.log("app", "ours")
    client.hset("redmeter:patterns:app:info", "ours", f"{time} {time} x")
    if time != "nan":
        client.zadd("redmeter:messages:", {"other:info": time})
    assert [s.logger for s in meter.loggers()] == ["app"]
    (found,) = meter.log_frequencies("app")
    assert (found.first, found.last) == (None, None)
    json.dumps([found.first, found.last], allow_nan=False)
