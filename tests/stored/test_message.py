"""Messages: severities, entries, and what is written of them."""

import logging
import time
from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import InvalidName
from redmeter.stored.intervals import THIS_HOUR
from redmeter.stored.keys import HOUR, OTHER, Keys
from redmeter.stored.message import (
    MAX_HOURLY_PATTERNS,
    LogHour,
    PatternHour,
    book_operations,
    check_logger,
    format_recent,
    logger_of,
    message_operations,
    parse_recent,
    parse_source,
    severity_of,
    source_name,
)
from redmeter.types import Operation

KEYS = Keys("p:")
NOON = 1700000000 - 1700000000 % HOUR


# --- Severities and loggers ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "severity"),
    [
        (logging.DEBUG, "debug"),
        (logging.INFO, "info"),
        (logging.WARNING, "warning"),
        (logging.ERROR, "error"),
        (logging.CRITICAL, "critical"),
        (0, "debug"),
        (-5, "debug"),
        (35, "warning"),
        (10**30, "critical"),
        ("INFO", "info"),
        ("WARN", "warning"),
        ("fatal", "critical"),
        ("No:tice\x1b\n", "no-tice"),
        ("\x1b[31mAlert\x1b[0m", "alert"),
        ("x" * 50, "x" * 20),
        ("ü" * 50, "ü" * 10),
        ("\ud800", "unknown"),
        ("", "unknown"),
        ("last", "last-"),
        ("START", "start-"),
    ],
)
def test_levels_and_names_become_severities(level: int | str, severity: str) -> None:
    """Of at most 20 bytes, without colons and control characters; none is the ending of a key."""
    assert severity_of(level) == severity


def test_a_level_with_a_name_of_its_own_has_that_name() -> None:
    """But the standard ones keep theirs: programs give them colours."""
    logging.addLevelName(27, "Notice")
    logging.addLevelName(logging.INFO, "\x1b[32mINFO")
    try:
        assert severity_of(27) == "notice"
        assert severity_of(logging.INFO) == "info"
    finally:
        logging.addLevelName(logging.INFO, "INFO")


def test_names_of_loggers_are_checked_where_somebody_can_be_told() -> None:
    """And cleaned where nobody can."""
    assert check_logger("app.worker:1{x}") == "app.worker:1{x}"
    for bad in ("", "a\nb", "\ud800", "x" * 201, None):
        with pytest.raises(InvalidName):
            check_logger(bad)
    assert logger_of("a\nb\x1b\ud800") == "ab"
    assert logger_of("\x1b[31mapp\x1b[0m.x") == "app.x"
    assert logger_of("") == "root"
    assert len(logger_of("ü" * 300).encode()) == 200


@given(st.text(min_size=1), st.text(min_size=1))
def test_whatever_comes_has_a_name_that_can_be_taken_apart(logger: str, severity: str) -> None:
    """And that a key may have."""
    logger, severity = logger_of(logger), severity_of(severity)
    assert check_logger(logger) == logger
    assert parse_source(source_name(logger, severity)) == (logger, severity)
    assert len(severity.encode()) <= 21
    assert not any(KEYS.common(logger, severity)[0].endswith(e) for e in (":start", ":last"))


# --- Entries -------------------------------------------------------------------------------


def test_an_entry_is_time_and_text() -> None:
    """To the microsecond, in UTC; newlines stay."""
    assert format_recent(1795277580.123456, "a\nb") == "2026-11-21T16:13:00.123456Z a\nb"
    assert parse_recent(b"2026-11-21T16:13:00.123456Z a\nb") == (1795277580.123456, "a\nb")


@given(st.floats(-(2**40), 2**40), st.text(st.characters(exclude_categories=["Cs"])))
def test_entries_are_read_back(moment: float, text: str) -> None:
    """Within a microsecond, wherever a calendar reaches."""
    found, read = parse_recent(format_recent(moment, text).encode())
    assert read == text
    assert found is not None
    if -62e9 < moment < 253e9:
        assert abs(found - moment) < 1e-4


@given(st.integers(-62_000_000_000, 253_000_000_000), st.text(st.characters(codec="utf-8")))
def test_entries_of_the_listings_are_read(second: int, text: str) -> None:
    """The text of time.asctime(), taken for UTC."""
    moment = datetime.fromtimestamp(second, UTC)
    entry = f"{time.asctime(moment.timetuple())} {text}"
    if moment.year >= 1000:
        assert parse_recent(entry.encode()) == (second, text)


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"plain",
        b"Sun Feb 31 11:57:38 2019 no such day",
        b"Sun Jun 23 11:57:38 2019test",
        b"2026-13-21T16:13:00Z no such month",
        b"2026-11-21T16:13:00 no zone",
    ],
)
def test_an_entry_of_another_form_is_all_text(entry: bytes) -> None:
    """Its time is not known."""
    assert parse_recent(entry) == (None, entry.decode())


def test_the_entry_of_the_book_is_read() -> None:
    """With a day that is padded by a space, too."""
    assert parse_recent(b"Sun Jun 23 11:57:38 2019 test_msg") == (1561291058.0, "test_msg")
    assert parse_recent(b"Mon Jun  3 11:57:38 2019 \xff") == (1559563058.0, "\ufffd")


# --- Hours ---------------------------------------------------------------------------------


def test_a_group_grows_by_its_events() -> None:
    """The sample is that of the last one, whatever comes when."""
    hour = LogHour(10)
    hour.add("p", PatternHour(2, 5.0, 9.0, "late"))
    hour.add("p", PatternHour(1, 3.0, 4.0, "early"))
    assert hour.patterns == {"p": PatternHour(3, 3.0, 9.0, "late")}
    assert hour.events == 3


def test_only_so_many_patterns_are_told_apart() -> None:
    """What comes after them is counted by coarse patterns; what is known still counts."""
    hour = LogHour(10)
    for n in range(MAX_HOURLY_PATTERNS + 5):
        hour.add(f"p{n}", PatternHour(2, 1.0, 1.0, ""))
    hour.add("p0", PatternHour(1, 1.0, 1.0, ""))
    assert len(hour.patterns) == MAX_HOURLY_PATTERNS + 1
    assert hour.patterns["… (1 word)"].events == 10
    assert hour.patterns["p0"].events == 3
    assert hour.events == 2 * (MAX_HOURLY_PATTERNS + 5) + 1


messages = st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.text("xy", max_size=3))


@given(st.lists(messages), st.integers(0, 60), st.integers(1, 5))
def test_hours_merge_to_what_one_would_hold(
    some: list[tuple[str, int, str]], cut: int, keep: int
) -> None:
    """Counts, first and last, and the newest texts by time."""

    def hour_with(part: list[tuple[str, int, str]]) -> LogHour:
        hour = LogHour(keep)
        for pattern, at, text in part:
            hour.add(pattern, PatternHour(1, at, at, text))
            hour.add_texts([(at, text)])
        return hour

    whole, parts = hour_with(some), hour_with(some[:cut])
    parts.merge(hour_with(some[cut:]))
    assert parts.patterns == whole.patterns
    assert [t for t, _ in parts.texts] == sorted(t for _, t, _ in some)[-keep:]
    assert parts.events == whole.events == len(some)


# --- Operations ----------------------------------------------------------------------------


def an_hour(*texts: tuple[float, str, str], keep: int = 100) -> LogHour:
    """An hour with messages: time, pattern, text."""
    hour = LogHour(keep)
    for at, pattern, text in texts:
        hour.add(pattern, PatternHour(1, at, at, text))
        hour.add_texts([(at, text)])
    return hour


def by_code(made: tuple[Operation, ...]) -> dict[str, Operation]:
    """The operations of a batch, of which there is one of each kind."""
    assert max(Counter(operation.code for operation in made).values()) == 1
    return {operation.code: operation for operation in made}


def test_an_hour_is_pushed_counted_seen_and_noted() -> None:
    """Entries with the oldest first; a count for each pattern; the last time in the index."""
    hours = {NOON: an_hour((NOON + 2, "b", "b2"), (NOON + 1, "a", "a1"), (NOON + 3, "b", "b3"))}
    made = by_code(message_operations(KEYS, {"app:1:info": hours}))
    stamp = datetime.fromtimestamp(NOON, UTC).isoformat()[:17]
    assert made["push"].keys == ("p:recent:app:1:info",)
    entries = (f"{stamp}01.000000Z a1", f"{stamp}02.000000Z b2", f"{stamp}03.000000Z b3")
    assert made["push"].args == ("2592000", "100", "3", *entries)
    assert made["push"].at_stake() == [("app:1:info", 3)]
    key = "p:common:app:1:info"
    hourly = key, f"{key}:start", f"{key}:last", f"{key}:pstart"
    assert made["tally"].keys == ("p:distinct:app:1", *hourly)
    assert made["tally"].args == (
        "2592000",
        "1000",
        "5",
        "app:1:info",
        str(NOON),
        "2",
        "b",
        "2",
        "a",
        "1",
    )
    assert list(made["tally"].at_stake())[1] == (str(NOON), 3)
    assert made["seen"].keys == ("p:patterns:app:1:info",)
    times = f"{NOON + 2}.000000", f"{NOON + 3}.000000", "b3"
    assert made["seen"].args[:8] == ("2592000", "app:1:info", "600", "2", "b", *times)
    assert made["touch"].keys == ("p:messages:",)
    assert made["touch"].args == ("2592000", "app:1:info", f"{NOON + 3}.000000")
    for operation in made.values():
        assert len(operation.at_stake()) == len(operation.keys)


def test_hours_are_counted_in_order_and_pushed_together() -> None:
    """Or there would be no place for the older one; only the newest entries are sent."""
    hours = {
        NOON + HOUR: an_hour((NOON + HOUR + 1, "b", "new"), keep=2),
        NOON: an_hour((NOON + 1, "a", "old"), (NOON + 2, "a", "older"), keep=2),
    }
    made = by_code(message_operations(KEYS, {"app:info": hours}))
    both = [str(NOON), str(NOON + HOUR)]
    assert [arg for arg in made["tally"].args if arg in both] == both
    assert [entry[28:] for entry in made["push"].args[3:]] == ["older", "new"]


def test_messages_of_which_no_hour_is_kept_are_only_among_the_newest() -> None:
    """And their logger is in the index."""
    hours = {0: an_hour((NOON, "a", "text"))}
    assert set(by_code(message_operations(KEYS, {"app:info": hours}, tallied=False))) == {
        "push",
        "touch",
    }


def test_what_is_counted_as_other_has_no_sample() -> None:
    """It stands for messages that have nothing in common."""
    made = by_code(message_operations(KEYS, {"app:info": {NOON: an_hour((NOON, OTHER, "text"))}}))
    assert "seen" not in made


def test_the_book_counts_the_message_itself() -> None:
    """In the hour that the server is in."""
    made = by_code(book_operations(Keys(""), "test", "info", NOON, "msg", keep=100, tallied=True))
    assert set(made) == {"push", "tally", "touch"}
    assert made["push"].keys == ("recent:test:info",)
    assert made["touch"].keys == ("redmeter:bare:messages:",)
    assert made["touch"].args[1:] == ("test:info", f"{NOON:.6f}")
    assert made["tally"].keys == (
        "redmeter:bare:distinct:test",
        "common:test:info",
        "redmeter:bare:common:test:info:start",
        "common:test:info:last",
        "redmeter:bare:common:test:info:pstart",
        "common:test:info:start",
        "common:test:info:pstart",
    )
    assert made["tally"].args[2:] == ("7", "test:info", str(THIS_HOUR), "1", "msg", "1")
    made = by_code(book_operations(Keys(""), "test", "info", NOON, "msg", keep=100, tallied=False))
    assert set(made) == {"push", "touch"}
