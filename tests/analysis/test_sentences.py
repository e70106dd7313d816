"""Values in sentences have their unit, and a minus sign rather than a hyphen."""

import pytest

from redmeter.analysis.comparing.sentences import change_text, value_text


@pytest.mark.parametrize(
    ("value", "unit", "text", "change"),
    [
        (-0.025, "ratio", "−2.5 %", "−2.5 %"),
        (-0.34, "seconds", "−340 ms", "−340 ms"),
        (1234.0, "", "1,234", "+1,234"),
        (0.0, "bytes", "0", "+0"),
    ],
)
def test_values_and_changes(value: float, unit: str, text: str, change: str) -> None:
    """A change has a sign, a value only below 0."""
    assert (value_text(value, unit), change_text(value, unit)) == (text, change)
