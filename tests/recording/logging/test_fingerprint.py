"""What groups a message: its format, what was said, and where an exception came from."""

import pytest

from redmeter.recording.logging.coalesce import (
    Phrase,
    Place,
    Placed,
    message_event,
    shorten_fingerprint,
    size_of,
    with_place,
)
from redmeter.recording.logging.tracebacks import MAX_FRAMES, describe_error
from redmeter.testing import MemoryMeter
from support.messages import NOON, Unspeakable, digest, failing


def test_an_exception_tells_where_it_came_from() -> None:
    """Type, file, line and function of the innermost frame; and the frames on the way."""
    place, text = describe_error(failing(ValueError("no\nway")))
    assert type(place) is Place
    assert place.startswith("[ValueError at messages.py:")
    assert place.endswith(" in handler]")
    lines = text.splitlines()
    assert lines[-2:] == ["ValueError: no", "way"]
    assert lines[-4].endswith(" in handler")
    assert lines[-3] == "    raise error"


def test_an_exception_without_a_traceback_has_its_type() -> None:
    """And its text, where it has one that can be made."""
    assert describe_error(ValueError("no")) == ("[ValueError]", "ValueError: no")
    assert describe_error(ValueError()) == ("[ValueError]", "ValueError")
    assert describe_error(Unspeakable()) == (
        "[Unspeakable]",
        "Unspeakable: (its text cannot be made)",
    )


def test_what_an_exception_tells_is_bounded() -> None:
    """The innermost frames, and names of a length that can be read."""
    place, text = describe_error(failing(ValueError("x"), depth=500))
    assert text.startswith("  (application: 494 frames)\n")
    assert len(text.splitlines()) == 2 * MAX_FRAMES + 2
    assert len(describe_error(type("E" * 500, (Exception,), {})())[0]) < 60
    assert len(place) < 130


def test_a_place_is_never_cut_off() -> None:
    """However long the format is."""
    place, _ = describe_error(failing(ValueError("x")))
    (hour,) = digest((NOON, with_place("word " * 100 + "%s", place), "text")).values()
    (pattern,) = hour.patterns
    assert pattern.endswith(f"more) {place}")
    made = with_place(None, place)
    assert type(made) is Place
    assert made == place


@pytest.mark.parametrize("template", ["%s", "%s: %s", "%(a)s -> %-10.3f", "[%d] %%"])
def test_a_format_without_a_word_groups_nothing(template: str) -> None:
    """So a pattern is made of the text, also where the place of an error is added."""
    assert shorten_fingerprint(template) is None
    assert shorten_fingerprint(Placed(template, "[E]")) == Place("[E]")
    (hour,) = digest(message_event(NOON, template, "order 17 is lost")).values()
    assert list(hour.patterns) == ["order <n> is lost"]


@pytest.mark.parametrize("template", ["%s é", "retrying %s", "---", "s", "%s" * 40])
def test_a_format_with_a_word_is_a_pattern(template: str) -> None:
    """So is a text that is no format, and one that is too long to be looked at."""
    assert shorten_fingerprint(template) == template


def test_a_meter_groups_by_the_text_where_the_format_says_nothing() -> None:
    """Unless its arguments do not fit: then there is only the format."""
    meter = MemoryMeter()
    meter.log("app", "%s", "order 17 is lost")
    meter.log("app", "%s", "order 18 is lost", exception=ValueError("no"))
    meter.log("app", "%s", "a", "b")
    assert [each.pattern for each in meter.messages] == [
        "order <n> is lost",
        "order <n> is lost [ValueError]",
        "%s",
    ]


def test_what_was_said_beside_values_is_read_for_a_pattern() -> None:
    """Masked before; the values are in the text, and not in the pattern."""
    said = Phrase("job 17 of token=abc")
    (hour,) = digest(
        (NOON, said, "job 17 of token=abc x=1"),
        (NOON, with_place(said, Place("[E]")), "job 17 x=2"),
    ).values()
    assert list(hour.patterns) == ["job <n> of token=***", "job <n> of token=*** [E]"]


@pytest.mark.parametrize(
    "secret", ["postgres://bob:HUNTER2HUNTER2HUNTER2HUNTER2@db", "eyJhbGciOiJI.eyJzdWIi.HUNTERHUN"]
)
def test_a_secret_at_the_cut_of_a_format_does_not_show_beside_a_place(secret: str) -> None:
    """Wherever the cut is."""
    place, _ = describe_error(failing(ValueError("x")))
    for before in range(100, 200):
        words = f"{'c' * before} {secret} %s {'t' * 90}"
        (hour,) = digest(message_event(NOON, with_place(words, place), "text")).values()
        (pattern,) = hour.patterns
        assert "HUNT" not in pattern
        assert "eyJh" not in pattern
        assert pattern.endswith(f" {place}")


def test_a_long_format_is_cut_at_once() -> None:
    """It does not wait in memory, with a place or without."""
    words = "x" * 1_000_000
    for grouping in (
        words,
        Phrase(words),
        with_place(words, "[E]"),
        with_place(Phrase(words), "[E]"),
    ):
        _, waiting, _ = message_event(NOON, grouping, "text")
        assert size_of(waiting) <= 2010
        (hour,) = digest((NOON, waiting, "text")).values()
        assert len(next(iter(hour.patterns))) <= 340
