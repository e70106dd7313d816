"""Messages on their way: cells that take them, and how they are formatted."""

import logging

import pytest

from redmeter import InvalidName, InvalidSetting, Meter
from redmeter.recording.logging.messages import format_message
from redmeter.recording.registry import Registry
from redmeter.stored.keys import HOUR
from redmeter.testing import ManualClock, MemoryMeter
from support.messages import NOON, Nobody, Unspeakable, a_cell, failing


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_a_time_that_is_none_is_now(wrong: float) -> None:
    """A message is not lost by it, nor what comes after it."""
    cell = a_cell()
    cell.put_message(None, "text", wrong)
    assert list(dict(cell._merge(cell._events))) == [NOON]


def test_loggers_beyond_the_limit_are_one() -> None:
    """For each standard severity; what is known keeps its own."""
    registry = Registry(Nobody(), lambda: NOON, lambda: 0.0, max_series=3, max_label_sets=9)
    known = registry.messages("a", "info")
    registry.messages("b", "info")
    registry.messages("c", "odd")
    over = registry.messages("d", "error")
    assert (over.name, over._overflow) == ("(other):error", True)
    assert registry.messages("e", "error") is over
    assert registry.messages("e", "odd").name == "(other):info"
    assert registry.messages("a", "info") is known
    assert not known._overflow


def test_messages_are_formatted_as_logging_does() -> None:
    """A text without args stays as it is; a single mapping is looked into by names."""
    assert format_message("100 %", ()) == (None, "100 %", "")
    assert format_message("%s of %d", ("a", 3)) == ("%s of %d", "a of 3", "")
    assert format_message("%(a)s", ({"a": 1},)) == ("%(a)s", "1", "")
    assert format_message("%s", ({},)) == ("%s", "{}", "")
    assert format_message(5, ()) == (None, "5", "")


def test_what_cannot_be_formatted_is_told_and_still_a_message() -> None:
    """Arguments that do not fit, and those that have no text."""
    for args, problem in ((("a", "b"), "TypeError"), ((Unspeakable(),), "RuntimeError")):
        pattern, text, found = format_message("x %s", args)
        assert (pattern, found) == ("x %s", problem)
        assert text == f"x %s (its arguments do not fit: {problem})"
    note = "(Unspeakable without a text)"
    assert format_message(Unspeakable(), ()) == (note, note, "RuntimeError")


def test_a_memory_meter_has_what_would_be_stored() -> None:
    """Texts without secrets, patterns, severities; and it answers like a store."""
    clock = ManualClock(NOON)
    meter = MemoryMeter(clock=clock)
    meter.log("app", "login of %s", "ada password=x", severity=logging.WARNING)
    clock.advance(HOUR)
    meter.log("app", "login of %s", "bob", severity="warn")
    meter.log("app", "order 17 done")
    meter.log("other", "x", severity="critical", exception=failing(ValueError("no")))
    assert meter.logged("app", "warning") == ["login of ada password=***", "login of bob"]
    assert meter.logged("app") == [*meter.logged("app", 30), "order 17 done"]
    assert [each.pattern for each in meter.messages][:3] == [
        "login of %s",
        "login of %s",
        "order <n> done",
    ]
    assert meter.messages[3].pattern.startswith("x [ValueError at messages.py:")
    assert meter.log_messages("app")[0].text == "order 17 done"
    assert [m.text for m in meter.log_messages("app", severity=30, limit=1)] == ["login of bob"]
    assert [(f.pattern, f.count, f.before) for f in meter.log_frequencies("app")] == [
        ("login of %s", 1, 1),
        ("order <n> done", 1, 0),
    ]
    assert {s.logger for s in meter.loggers()} == {"app", "other"}
    assert [c.kind for c in meter.log_changes("app")] == ["new", "new"]
    meter.forget()
    assert meter.messages == []


def test_logging_refuses_what_the_caller_can_mend() -> None:
    """The name of a logger, a severity of another type, a masking function that is none."""
    for meter in (MemoryMeter(), Meter("off")):
        for name in ("", "a\nb", 5):
            with pytest.raises(InvalidName):
                meter.log(name, "text")  # type: ignore[arg-type]
        for severity in (None, True, 2.5):
            with pytest.raises(TypeError, match="severity"):
                meter.log("app", "text", severity=severity)  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="mask"):
        Meter("off", mask="x")  # type: ignore[arg-type]
    for number in (0, -1, 1_001, 1.5):
        with pytest.raises(InvalidSetting, match="recent_messages"):
            Meter("off", recent_messages=number)  # type: ignore[arg-type]


def test_switched_off_nothing_is_logged_and_nothing_found() -> None:
    """Arguments are checked all the same."""
    meter = Meter("off")
    meter.log("app", "%d", "x")
    assert [meter.log_messages("app"), meter.log_frequencies("app"), meter.loggers()] == [
        [],
        [],
        [],
    ]
    assert list(meter.log_changes()) == []
    assert meter.recorder_health().recorded == 0
    assert meter.recorder_health().troubles == {"format": 1}
