"""Digesting: what is kept of messages is cleaned, masked and counted by pattern."""

from collections.abc import Callable
from typing import Any

import pytest

from redmeter.analysis.text.patterns import pattern_of
from redmeter.analysis.text.secrets import mask
from redmeter.analysis.text.texts import EMPTY
from redmeter.recording.logging.coalesce import LONGEST, TEXT_LIMIT, Place
from redmeter.recording.logging.redact import MASKING_FAILED, MessageRules
from redmeter.stored.keys import HOUR
from support.messages import NOON, Trouble, a_cell, digest, sizes

# --- Patterns and secrets ------------------------------------------------------------------


def test_a_format_is_its_pattern_and_a_text_has_one_made_of_it() -> None:
    """A place is added to the pattern that the text has."""
    place = Place("[ValueError at app.py:12 in handler]")
    hours = digest(
        (NOON, "retrying %s", "retrying a"),
        (NOON, None, "order 17 done"),
        (NOON, place, "order 18 failed\n  frames"),
    )
    assert set(hours) == {NOON}
    assert sizes(hours) == {
        "retrying %s": 1,
        "order <n> done": 1,
        f"order <n> failed {place}": 1,
    }


def test_secrets_are_masked_before_anything_is_made_of_a_text() -> None:
    """In texts, samples and patterns, and in formats."""
    secret = "hunter2-abc"
    (hour,) = digest(
        (NOON, None, f"login password={secret} ok"),
        (NOON + 1, f"GET redis://bob:{secret}@db/%d", f"GET redis://bob:{secret}@db/0"),
        (NOON + 2, Place("[ValueError]"), f"token: {secret}\nValueError: password='{secret}'"),
    ).values()
    shown = [
        *hour.patterns,
        *(g.sample for g in hour.patterns.values()),
        *(t for _, t in hour.texts),
    ]
    assert not any(secret in text for text in shown)
    assert "login password=*** ok" in hour.patterns
    assert "GET redis://bob:***@db/%d" in hour.patterns


def test_a_secret_that_is_hidden_by_control_characters_is_found() -> None:
    """What can be seen is masked, so texts are cleaned first."""
    (hour,) = digest((NOON, None, "pass\x1b[31mword=hun\x00ter2")).values()
    assert hour.texts == [(NOON, "password=***")]


def test_a_function_of_ones_own_masks_instead() -> None:
    """It may call ours; what it returns is cleaned."""

    def own(text: str) -> str:
        return mask(text).replace("Ada", "\x1b[1m<name>\ud800")

    (hour,) = digest(
        (NOON, "hello Ada %s", "hello Ada token=abc"), rules=MessageRules(mask=own)
    ).values()
    assert hour.texts == [(NOON, "hello <name>\ufffd token=***")]
    assert list(hour.patterns) == ["hello <name>\ufffd %s"]


class Angry(Exception):
    """Says what it must not say."""


def raising(text: str) -> str:
    """A masking function that breaks, with the secret in its error."""
    raise Angry(text)


@pytest.mark.parametrize(
    "broken", [raising, lambda _: None, lambda _: b"hunter2", lambda _: 5], ids=lambda f: f.__name__
)
def test_where_masking_fails_nothing_leaks(broken: Callable[[str], Any]) -> None:
    """Neither as a text nor as a pattern, nor by what is told of it; the message still counts."""
    troubles: Trouble = []

    def record_error(kind: str, text: str) -> None:
        troubles.append((kind, text))

    (hour,) = digest(
        (NOON, None, "password=hunter2"),
        (NOON, "password=hunter2 %s", "password=hunter2 x"),
        rules=MessageRules(mask=broken),
        trouble=record_error,
    ).values()
    assert hour.patterns.keys() == {MASKING_FAILED}
    assert hour.events == 2
    assert {text for _, text in hour.texts} == {MASKING_FAILED}
    assert {kind for kind, _ in troubles} == {"mask"}
    assert "hunter2" not in str(troubles)


def test_a_function_that_masks_is_asked_for_what_stays_and_no_more() -> None:
    """Of ten thousand messages of one format: for the newest hundred, a sample and the format."""
    asked: list[str] = []

    def count(text: str) -> str:
        asked.append(text)
        return text

    events = [(NOON + n / 10, "message %d", f"message {n}") for n in range(10_000)]
    (hour,) = digest(*events, rules=MessageRules(mask=count)).values()
    assert hour.patterns["message %d"].events == 10_000
    assert [text for _, text in hour.texts] == [f"message {n}" for n in range(9900, 10_000)]
    assert len(asked) == len(set(asked)) == 101


def test_a_pattern_is_made_once_for_each_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it comes."""
    made: list[str] = []

    def counted(text: str) -> str:
        made.append(text)
        return pattern_of(text)

    monkeypatch.setattr("redmeter.recording.logging.redact.pattern_of", counted)
    events = [(NOON + n / 10, None, f"order {n % 7} done") for n in range(10_000)]
    (hour,) = digest(*events).values()
    assert hour.patterns["order <n> done"].events == 10_000
    assert len(made) == 7


# --- Bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", EMPTY),
        ("  \n ", EMPTY),
        ("a\x00b\x1b[31mc\x1b[0m\x07", "abc"),
        ("user \u202egnp.exe", "user gnp.exe"),
        ("half \ud83d", "half \ufffd"),
        ("a\r\nb\u2028c\td", "a\nb\nc\td"),
    ],
)
def test_texts_are_cleaned(text: str, shown: str) -> None:
    """What is stored can be seen, can be encoded, and is no command to a terminal."""
    (hour,) = digest((NOON, None, text), (NOON, f"{text} %s", f"{text} x")).values()
    assert hour.texts[0] == (NOON, shown)
    for stored in [*hour.patterns, *(text for _, text in hour.texts)]:
        stored.encode()
        assert not set(stored) & {"\x00", "\x1b", "\x07", "\u202e"}


def test_a_megabyte_is_cut_at_once() -> None:
    """And says how much is missing; it does not wait in memory."""
    cell = a_cell()
    cell.put_message(None, "x" * 1_000_000, NOON)
    assert len(cell._events[0][2]) <= TEXT_LIMIT
    cell.put_message(None, "y" * LONGEST, NOON)
    (_, hour), *_ = cell._merge(cell._events)
    assert max(len(text) for _, text in hour.texts) <= TEXT_LIMIT
    assert hour.texts[0][1].endswith(" more)")
    assert "998," in hour.texts[0][1][-30:]
    for pattern, group in hour.patterns.items():
        assert len(pattern) <= 200
        assert len(group.sample) <= 300


def test_a_secret_at_a_cut_does_not_show() -> None:
    """Where a text was cut within one, what is left of it is masked."""
    cell = a_cell()
    cell.put_message(None, "x" * 1950 + " redis://bob:" + "hunter2" * 20_000 + "@db", NOON)
    (_, hour), *_ = cell._merge(cell._events)
    assert "hunter2" not in hour.texts[0][1]


def test_times_far_away_lie_in_hours_of_their_own() -> None:
    """Before 1970 as well."""
    hours = digest((-1, None, "a"), (-HOUR - 1, None, "b"), (2**40, None, "c"))
    assert set(hours) == {-HOUR, -2 * HOUR, 2**40 // HOUR * HOUR}
