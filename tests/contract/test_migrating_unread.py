"""What a move cannot read in FROM is not lost: it stays under way, or is told."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redmeter import AccessDenied, StoreError
from redmeter.errors import StoreRefused
from redmeter.migrating import Report, journal, migrate, reading
from redmeter.store import Store
from support.moving import Databases, fill, held
from support.servers import Server
from support.stores import OpenStore

_LINE = re.compile(r"^ACL SETUSER metrics-from on >\w+ (.*)$", re.MULTILINE)
_HOW_TO = Path(__file__).parents[2] / "docs" / "how-to.md"
RULES = _LINE.findall(_HOW_TO.read_text(encoding="utf-8"))[0].split()

#: Rights to read that each move needs; the last where something is large, and read in steps.
READS = (
    *("+hgetall", "+hget", "+hexists", "+hlen", "+hscan", "+zcard", "+zmscore", "+zrange"),
    *("+llen", "+lrange", "+get", "+exists", "+scan", "+zscan"),
)
#: Those that one needs without a prefix alone, or where another run has the lock.
SELDOM = ("+zscore", "+pttl")
#: By which what was taken is read at once.
AT_ONCE = ("+hgetall", "+zrange", "+lrange", "+get")


@pytest.fixture
def mover(any_server: Server, clients: Databases, open_store: OpenStore) -> Store:
    """FROM as the user of the docs sees it."""
    let_in(clients[0])
    return open_store(f"redis://metrics-from:s3cret@127.0.0.1:{any_server.port}/0")


def let_in(admin: Any, *, without: str = "") -> None:
    """Give that user its rights, but for one of them."""
    made = ("ACL", "SETUSER", "metrics-from", "reset", "on", ">s3cret")
    admin.execute_command(*made, *(rule for rule in RULES if rule != without))


def assert_moved(report: Report, before: dict[str, Any], clients: Databases) -> None:
    """All that lay in FROM is in TO, once."""
    assert report.complete
    whole = report.total()
    assert (whole.stored, whole.unread, whole.uncertain) == (whole.taken, 0, 0)
    assert held(clients[1]) == before
    assert held(clients[0]) == {}


@pytest.fixture
def before(source: Store, clients: Databases) -> dict[str, Any]:
    """What FROM, which has something of each kind, holds at first."""
    fill(source, series=2)
    return held(clients[0])


def test_these_are_all_rights_to_read(clients: Databases) -> None:
    """Of those that the docs give."""
    reads = {f"+{name.decode()}" for name in clients[0].execute_command("ACL", "CAT", "read")}
    assert {*READS, *SELDOM} == reads & {*RULES}


@pytest.mark.parametrize("right", READS)
def test_each_right_to_read_that_is_missed_loses_nothing(
    before: dict[str, Any],
    mover: Store,
    target: Store,
    clients: Databases,
    monkeypatch: pytest.MonkeyPatch,
    right: str,
) -> None:
    """The run fails and says why; once the right is there, the same command moves everything."""
    if right == "+zscan":
        monkeypatch.setattr(reading, "AT_ONCE", 0)
    let_in(clients[0], without=right)
    with pytest.raises(AccessDenied, match="access denied"):
        migrate(mover, target)
    let_in(clients[0])
    clients[0].delete("redmeter:moving:lock")  # as time passes, where it could not be given back
    assert_moved(migrate(mover, target), before, clients)


@pytest.mark.parametrize("right", AT_ONCE)
def test_a_right_that_is_lost_under_way_loses_nothing(
    before: dict[str, Any],
    mover: Store,
    target: Store,
    clients: Databases,
    monkeypatch: pytest.MonkeyPatch,
    right: str,
) -> None:
    """What was taken stays under way until it can be read."""
    take: Callable[..., Any] = journal.Journal.take

    def taking(*args: Any) -> Any:
        if right != "+get":
            let_in(clients[0], without=right)
            return take(*args)
        replies = take(*args)  # which needs it itself
        let_in(clients[0], without=right)
        return replies

    with monkeypatch.context() as patch:
        if right == "+get":
            patch.setattr(reading, "AT_ONCE", 0)
        patch.setattr(journal.Journal, "take", taking)
        with pytest.raises(AccessDenied):
            migrate(mover, target)
    let_in(clients[0])
    clients[0].delete("redmeter:moving:lock")  # as time passes
    report = migrate(mover, target)
    assert report.resumed
    assert_moved(report, before, clients)


@pytest.mark.parametrize("at_once", [reading.AT_ONCE, 0])
def test_a_key_of_another_type_is_told(
    source: Store,
    target: Store,
    clients: Databases,
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
) -> None:
    """Beside keys of ours that say what they are: the others of the four move all the same."""
    monkeypatch.setattr(reading, "AT_ONCE", at_once)
    clients[0].zadd("redmeter:common:app:info", {"job failed": 3})
    clients[0].rpush("redmeter:common:app:info:start", "theirs")
    report = migrate(source, target)
    assert report.complete
    whole = report.total()
    assert (whole.taken, whole.stored, whole.unread) == (3, 3, 1)
    (kept,) = (key for key in clients[0].scan_iter("*moving:*") if clients[0].type(key) == b"list")
    assert 0 < clients[0].ttl(kept) <= journal.KEPT


def test_only_another_type_counts_as_empty() -> None:
    """Any other error may hide something: of one key, and of one step."""
    shapes = "zset", "string", "hash"
    other = StoreRefused("WRONGTYPE", "Operation against a key holding the wrong kind of value")
    assert reading.parts_of(shapes, [other, other, []]) == ([[], None, []], 2)
    assert reading.stepwise(lambda _: [other], shapes, "abc") == ([[], None, []], 3)
    for error in (StoreRefused("BUSY", "BUSY running"), StoreRefused("ERR", "ERR else")):
        for at in range(3):
            replies: list[Any] = [[], b"1", []]
            replies[at] = error
            with pytest.raises(StoreError, match=error.code):
                reading.parts_of(shapes, replies)
        with pytest.raises(StoreError, match=error.code):
            reading.stepwise(lambda _, error=error: [error], shapes, "abc")  # type: ignore[misc]
