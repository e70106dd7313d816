"""What docs/faults.md says of a writer that may not use one command: kept, or lost and counted.

Which commands it names is read from the page, and tried with the writer of docs/stored-format.md.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter import AccessDenied, Meter, StoreRefused
from redmeter.results import RecorderHealth
from redmeter.store.servers import retry
from support.rights import USERS
from support.servers import Server

pytestmark = pytest.mark.slow

DOC = Path(__file__).parents[2] / "docs" / "faults.md"
WRITER = USERS["writer"]
COMMANDS = {rule[1:] for rule in WRITER.commands}


def named(row: str) -> list[str]:
    """Return the commands of the writer that a cell of the page's names, as often as it does."""
    return [word for word in re.findall(r"`([a-z]+)`", row) if word in COMMANDS]


def rows() -> tuple[str, str]:
    """Return the cell that names which rights are missed at first, and the one of all others."""
    text = DOC.read_text(encoding="utf-8")
    first = re.search(r"^\| \*\*Wrong password, missing rights\*\*: (.*?) \|", text, re.MULTILINE)
    other = re.search(r"^\| \*\*A missing right to any other.*?\|(.*?)\|$", text, re.MULTILINE)
    assert first
    assert other
    return first[1], other[1]


FIRST, OTHERS = rows()
#: Those without which no batch is begun, and those that only a beginning needs.
ALWAYS = set(named(FIRST.partition("; where")[0]))
AT_FIRST = set(named(FIRST))


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush that follows a denied one is not put off for long."""
    monkeypatch.setattr(retry, "REFUSED_PAUSE", 0.02)


@pytest.fixture
def admin(any_server: Server) -> Iterator[Any]:
    """A client that may do everything."""
    with any_server.client(decode_responses=True) as client:
        yield client


def record(meter: Meter, amount: int) -> None:
    """Have something of each kind happen."""
    meter.count("hits", amount)
    meter.gauge("depth").set(amount)
    meter.observe("took", 1.5)
    meter.log("shop", "paid %s", amount)


def without(server: Server, admin: Any, command: str, *, new: bool) -> tuple[RecorderHealth, Meter]:
    """Have a writer miss a command, from its first batch on or after it; return how it is then."""
    admin.flushall()
    admin.script_flush()
    WRITER.let_in(admin)
    meter = Meter(WRITER.url(server), flush_interval=3600)
    if not new:
        record(meter, 1)
        assert meter.flush(60.0)
    WRITER.without(f"+{command}").let_in(admin)
    record(meter, 2)
    meter.flush(5.0)
    return meter.recorder_health(), meter


@pytest.mark.parametrize("new", [True, False])
def test_what_the_page_calls_kept_is_kept_and_nothing_else(
    any_server: Server, admin: Any, new: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Of all commands that a writer has; and it is all there once the right is."""
    caplog.set_level("CRITICAL")
    kept, others = set(), []
    for command in sorted(COMMANDS):
        health, meter = without(any_server, admin, command, new=new)
        if not health.buffered:
            others.append(meter)
            continue
        kept.add(command)
        assert (health.stored, health.lost()) == (0 if new else 4, {}), command
        WRITER.let_in(admin)
        meter.close()
        assert admin.hget("redmeter:total:", "hits") == ("2" if new else "3"), command
        assert (meter.recorder_health().buffered, meter.recorder_health().lost()) == (0, {}), (
            command
        )
    WRITER.let_in(admin)
    for meter in others:
        meter.close()
    assert kept == (AT_FIRST if new else ALWAYS)


#: What the page says of a command that is missed later -> the series that are lost.
LOST = {"hincrby": {"hits"}, "hset": {"depth", "took"}, "lpush": {"shop:info"}, "pexpireat": set()}


def test_what_the_page_calls_lost_is_lost_and_everything_else_is_stored(
    any_server: Server, admin: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """By the reason that the page gives; what is lost of each is what it names."""
    caplog.set_level("CRITICAL")
    assert set(named(OTHERS)) == LOST.keys()
    for command in named(OTHERS):
        health, meter = without(any_server, admin, command, new=False)
        assert health.buffered == 0, command
        assert {loss.reason for loss in health.losses} == ({"denied"} if LOST[command] else set())
        assert {loss.series for loss in health.losses} == LOST[command], command
        WRITER.let_in(admin)
        meter.close()


def test_who_stores_at_once_is_told_of_a_missing_right_as_the_page_says(
    any_server: Server, admin: Any
) -> None:
    """AccessDenied where nothing was stored; else StoreRefused, and the rest is stored."""
    calls: dict[str, Callable[[Meter], None]] = {
        "hincrby": lambda meter: meter.count("hits"),
        "hset": lambda meter: meter.gauge("depth").set(2),
        "lpush": lambda meter: meter.log("shop", "paid"),
        "pexpireat": lambda meter: meter.count("fresh"),
    }
    admin.flushall()
    WRITER.let_in(admin)
    with Meter(WRITER.url(any_server), sync=True) as meter:
        record(meter, 1)
        for command in ALWAYS:
            WRITER.without(f"+{command}").let_in(admin)
            with pytest.raises(AccessDenied) as denied:
                meter.count("hits")
            assert not denied.value.sent, command
        for command, call in calls.items():
            WRITER.without(f"+{command}").let_in(admin)
            with pytest.raises(StoreRefused) as refused:
                call(meter)
            assert refused.value.sent, command
            assert refused.value.code == ("denied" if LOST[command] else "unkept")
    with Meter(any_server.url) as meter:
        assert (meter.total("hits"), meter.total("fresh")) == (1, 1)
        assert sum(group.count for group in meter.log_frequencies("shop")) == 2
