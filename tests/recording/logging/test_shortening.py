"""A text with a traceback that is cut: what matters is still there, and no secret."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redmeter.recording.logging.coalesce import LONGEST
from redmeter.recording.logging.shortening import has_frames, redact_lines, shorten_traceback
from redmeter.recording.logging.tracebacks import MAX_FRAMES, describe_error, shown_path
from redmeter.testing import MemoryMeter

HERE = Path(__file__).name


def fail(text: str = "no card", password: str = "") -> None:
    """Raise."""
    raise LookupError(text + password)


def deep(depth: int) -> None:
    """Raise below so many frames."""
    if depth:
        deep(depth - 1)
    fail(password="hunter22")


def raised(call: Callable[..., object], *args: Any) -> Exception:
    """Return what a call raises."""
    try:
        call(*args)
    except Exception as error:  # noqa: BLE001 - of any kind
        return error
    raise AssertionError("it did not raise")


def wrapped(cause: str) -> None:
    """Raise from an error."""
    try:
        fail(cause)
    except LookupError as error:
        raise ValueError("outer") from error


def texts() -> list[str]:
    """Return messages with a traceback, in both forms, with long parts."""
    errors = [raised(deep, 12), raised(wrapped, "inner " * 2_000), raised(fail, "x\n" * 3_000)]
    errors[1].args = ("outer",)
    made = [f"{'long message ' * 300}\n{describe_error(error)[1]}" for error in errors]
    return [*made, f"failed\n{''.join(traceback.format_exception(errors[0]))}".rstrip()]


@pytest.mark.parametrize("limit", [300, 2_000, 6_000])
@pytest.mark.parametrize("number", range(4))
def test_the_line_of_the_error_and_the_innermost_frame_survive(number: int, limit: int) -> None:
    """In any length, with the first line of the message."""
    text = texts()[number]
    short = shorten_traceback(text, limit)
    lines = short.split("\n")
    assert len(short) <= limit
    assert lines[0][:6] == text[:6]
    kind = ("LookupError: ", "ValueError: outer", "LookupError: x", "LookupError: ")[number]
    assert any(line.startswith(kind) for line in lines)
    innermost = ("in fail", "in wrapped", "in fail", "in fail")[number]
    assert any(line.endswith(innermost) and HERE in line for line in lines)
    assert shorten_traceback(text, len(text)) == text


def test_the_frames_of_the_application_go_before_those_of_causes() -> None:
    """Where there is room for some only."""
    short = shorten_traceback(describe_error(raised(deep, 20))[1], 400)
    frames = [line for line in short.split("\n") if has_frames(f"\n{line}")]
    assert frames[-1].endswith("in fail")
    assert len(frames) >= 3
    full = describe_error(raised(deep, 20))[1]
    assert sum(has_frames(f"\n{line}") for line in full.split("\n")) == MAX_FRAMES


def test_a_line_of_the_source_is_masked_and_hides_no_other() -> None:
    """Also one that ends within a string or a call."""
    text = (
        'failed\n  shop/pay.py:7 in pay\n    connect(password="hunter22\n  shop/pay.py:8 in run\n'
    )
    text += "    secret = call(\nKeyError: token=abc"
    with MemoryMeter() as meter:
        meter.log("shop", text, severity="error")
        shown = meter.messages[0].message.text
    assert "hunter22" not in shown
    assert shown.split("\n")[0::5] == ["failed", "KeyError: token=***"]
    assert "  shop/pay.py:8 in run" in shown.split("\n")


def test_source_lines_are_off_by_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frames stay."""
    with MemoryMeter() as meter:
        meter.record_exception(raised(fail))
        (group,) = meter.exceptions().groups
        newest = meter.exception(group.id)
        assert newest is not None
        assert "    raise LookupError(text + password)" in newest.traceback.split("\n")
    monkeypatch.setenv("REDMETER_SOURCE_LINES", "off")
    with MemoryMeter() as meter:
        meter.record_exception(raised(fail))
        meter.log("shop", "failed", severity="error", exception=raised(fail))
        (group,) = meter.exceptions().groups
        newest = meter.exception(group.id)
        assert newest is not None
        for text in (newest.traceback, meter.messages[0].message.text):
            assert "raise LookupError" not in text
            assert " in fail\nLookupError: no card" in text


def test_a_traceback_survives_a_message_of_any_length() -> None:
    """The secret at the cut of the message does not show."""
    for length in (LONGEST - 100, LONGEST, 10 * LONGEST):
        with MemoryMeter() as meter:
            words = "word " * (length // 5)
            meter.log("shop", f"{words}password=hunter22", severity="error", exception=raised(fail))
            text = meter.messages[0].message.text
        assert "hunter" not in text
        assert text.endswith("LookupError: no card")
        assert " in fail\n" in text
        assert len(text) <= 2_000


def test_a_path_begins_where_python_imports_from(tmp_path: Path, monkeypatch: Any) -> None:
    """A package of the application or of a library; other files have their whole path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    assert shown_path(f"{tmp_path}/shop/views.py") == "shop/views.py"
    assert shown_path("/srv/.venv/lib/python3.12/site-packages/flask/app.py") == "flask/app.py"
    assert shown_path("C:\\venv\\Lib\\site-packages\\flask\\app.py") == "flask/app.py"
    assert shown_path("/elsewhere/views.py") == "/elsewhere/views.py"
    assert shown_path("<string>") == "<string>"


def test_text_without_frames_is_redacted_whole() -> None:
    """Nothing is parsed."""
    assert redact_lines("a\n    b", str.upper, keep=True) == "A\n    B"
    assert not has_frames("a\n  b\n    c")
