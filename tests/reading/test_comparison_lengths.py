"""Lengths of time in sentences: at most two units, none of them a fraction."""

import pytest

from redmeter.reading.diagnosis.windows import length


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (15, "15 s"),
        (60, "1 min"),
        (90, "90 s"),
        (900, "15 min"),
        (3_600, "1 h"),
        (5_400, "90 min"),
        (7_200, "2 h"),
        (35_700, "9 h 55 min"),
        (86_400, "1 d"),
        (93_600, "26 h"),
        (190_000, "2 d 5 h"),
    ],
)
def test_a_length_has_at_most_two_units(seconds: float, text: str) -> None:
    """No "9.92 h"."""
    assert length(seconds) == text
