"""Retries: what an error means, and when a read or a write is tried again."""

from collections.abc import Sequence

import pytest

from redmeter.clock import ManualClock
from redmeter.errors import AccessDenied, IncompatibleStore, StoreRefused, StoreUnavailable
from redmeter.store.scripts import JOIN, collect_scripts
from redmeter.store.servers import retry
from redmeter.store.servers.replies import Command, Reply
from redmeter.store.servers.retry import (
    WriteRetry,
    is_brief,
    is_moving,
    is_not_primary,
    is_recoverable,
    is_redirect,
    is_server_wide,
    is_transient,
    is_unanswered,
    is_unknown_script,
    retry_read,
    unready_reason,
)

AWAY = StoreUnavailable("there", "refused")


@pytest.mark.parametrize(
    ("classify", "codes"),
    [
        (is_transient, {"LOADING", "READONLY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "BUSY"}),
        (
            is_server_wide,
            {"LOADING", "READONLY", "MASTERDOWN", "BUSY", "OOM", "MISCONF", "NOREPLICAS"}
            | {"NOAUTH", "WRONGPASS"},
        ),
        (is_not_primary, {"LOADING", "READONLY", "MASTERDOWN"}),
        (is_moving, {"TRYAGAIN", "CLUSTERDOWN"}),
        (is_brief, {"TRYAGAIN"}),
        (is_redirect, {"MOVED", "ASK"}),
        (is_unknown_script, {"NOSCRIPT"}),
        (unready_reason, {"LOADING", "MASTERDOWN", "BUSY"}),
    ],
)
def test_each_code_means_the_same_everywhere(classify: object, codes: set[str]) -> None:
    """What is no error has no such meaning, nor has a code that is in no table."""
    assert callable(classify)
    known = (
        *("LOADING", "READONLY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "BUSY", "OOM"),
        *("MISCONF", "NOREPLICAS", "MOVED", "ASK", "NOSCRIPT", "WRONGTYPE", "ERR", "NEW"),
    )
    errors = [StoreRefused(code, "text") for code in known]
    errors += [AccessDenied(code, "text") for code in ("NOAUTH", "WRONGPASS", "NOPERM")]  # type: ignore[misc]
    assert {error.code for error in errors if classify(error)} == codes
    assert not any(map(classify, (None, 1, b"OK", [b"LOADING"])))


def test_a_script_that_reads_a_key_that_has_moved_is_moving() -> None:
    """Servers give that error no code."""
    text = "Script attempted to access a non local key in a cluster node"
    assert is_moving(StoreRefused("ERR", text))


def test_a_command_without_a_reply_concerns_all_shards_of_its_server() -> None:
    """And is no error of the server's own."""
    assert is_unanswered(AWAY)
    assert is_server_wide(AWAY)
    assert not is_transient(AWAY)
    assert not is_unanswered(StoreRefused("BUSY", "a script"))


@pytest.mark.parametrize(
    ("error", "recoverable"),
    [
        (AWAY, True),
        (StoreRefused("OOM", "no memory"), True),
        (ZeroDivisionError(), True),
        (AccessDenied("NOPERM", "no"), False),
        (IncompatibleStore("format version", "9", "1"), False),
    ],
)
def test_credentials_and_formats_do_not_change_by_themselves(
    error: Exception, recoverable: bool
) -> None:
    """All else may end without anyone."""
    assert is_recoverable(error) is recoverable


class Breaking:
    """A link whose first exchanges break."""

    def __init__(self, breaks: int) -> None:
        self.breaks, self.recovered = breaks, 0

    def recover(self) -> None:
        """Note it."""
        self.recovered += 1

    def exchange(self) -> str:
        """Break, or answer."""
        if self.breaks:
            self.breaks -= 1
            raise AWAY
        return "answer"


@pytest.mark.parametrize(("breaks", "recovered"), [(0, 0), (1, 1)])
def test_a_read_is_sent_once_more(breaks: int, recovered: int) -> None:
    """After the link has recovered."""
    link = Breaking(breaks)
    assert retry_read(link.recover, link.exchange) == "answer"
    assert link.recovered == recovered


def test_a_read_that_breaks_twice_is_an_error() -> None:
    """And is not sent a third time."""
    link = Breaking(3)
    with pytest.raises(StoreUnavailable):
        retry_read(link.recover, link.exchange)
    assert (link.breaks, link.recovered) == (1, 1)


def test_a_script_that_the_server_does_not_have_is_sent_with_its_text() -> None:
    """That one alone: nothing of it ran, and the others have their replies."""
    join, other = JOIN.command(["k"], ["a"]), ("TIME",)
    sent: list[Sequence[Command]] = []

    def collect(commands: Sequence[Command]) -> list[Reply]:
        sent.append(commands)
        return [StoreRefused("NOSCRIPT", "") if c[0] == "EVALSHA" else c[0] for c in commands]

    assert collect_scripts(collect, [other, join, other]) == ["TIME", "EVAL", "TIME"]
    assert sent[1:] == [[JOIN.command(["k"], ["a"], whole=True)]]


def tries(write: WriteRetry, clock: ManualClock, *, sent: bool = True) -> tuple[int, float]:
    """Return how often it waits before it gives up, and for how long in all."""
    began, count = clock.monotonic(), 0
    while True:
        try:
            write.wait(AWAY, sent=sent)
        except StoreUnavailable:
            return count, clock.monotonic() - began
        count += 1


def test_a_write_is_tried_several_times_however_short_the_timeout() -> None:
    """It may have been applied, which only another try can find out."""
    clock = ManualClock()
    assert tries(WriteRetry(clock, 0.0, None), clock)[0] == retry.ATTEMPTS - 1


def test_a_write_that_was_never_sent_is_given_up_with_the_timeout() -> None:
    """Nothing is in doubt."""
    clock = ManualClock()
    assert tries(WriteRetry(clock, 0.0, None), clock, sent=False) == (0, 0.0)
    count, passed = tries(WriteRetry(clock, 3.0, None), clock, sent=False)
    assert count > 1
    assert 3.0 <= passed <= 3.5


def test_a_write_with_a_limit_stays_within_it() -> None:
    """Each wait leaves some of it for the try."""
    clock = ManualClock()
    count, passed = tries(WriteRetry(clock, 60.0, 1.0), clock)
    assert count > 2
    assert passed <= 1.0


def test_a_server_that_is_left_alone_is_not_tried_before() -> None:
    """A try would fail at once, and count as one."""
    clock = ManualClock()
    began = clock.monotonic()
    WriteRetry(clock, 60.0, None).wait(AWAY, at_least=1.5)
    assert clock.monotonic() - began == 1.5
