"""Which hour a text means, as ours and other programs write it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.stored.intervals import hour_of, hours_of
from redmeter.stored.keys import HOUR

#: 21 November 2026, 16:13:00 UTC, within the hour that starts at 16:00.
NOW = 1795277580.0
THIS = 1795276800


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        (str(THIS), THIS),
        (str(THIS + 3599), THIS),
        ("1795277580.5", THIS),
        ("-1", -HOUR),
        ("24", 0),
        ("16", THIS),
        ("0", THIS - 16 * HOUR),
        ("17", THIS - 23 * HOUR),
        ("23", THIS - 17 * HOUR),
        ("2026-11-21T16:00:00", THIS),
        ("2026-11-21 15", THIS - HOUR),
        ("1970-01-01T00:00:00", 0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("2026-11-21", None),
    ],
)
def test_texts_mean_hours(text: str, hour: int | None) -> None:
    """Unix seconds, hours of the day that have come, ISO; as bytes as well; else nothing."""
    assert hour_of(text, NOW) == hour
    assert hour_of(text.encode(), NOW) == hour


def test_no_text_means_no_hour() -> None:
    """Where a key is missing, and where it holds bytes that are no text."""
    assert hour_of(None, NOW) is None
    assert hour_of(b"\xff\xfe", NOW) is None


@given(st.integers(0, 23), st.floats(0, 4e9))
def test_an_hour_of_the_day_is_the_latest_that_has_come(hour: int, now: float) -> None:
    """At most a minute ahead, as another machine's clock may be, and less than a day ago."""
    found = hour_of(str(hour), now)
    assert found is not None
    assert found <= now + 60 < found + 86400
    assert found % 86400 == hour * HOUR


@pytest.mark.parametrize(
    ("texts", "hours"),
    [
        ((str(THIS), str(THIS - HOUR)), (THIS, THIS - HOUR)),
        ((None, None, "16", "15"), (THIS, THIS - HOUR)),
        # The same hours of the day: ours have the date.
        (
            (str(THIS - 2 * 86400), str(THIS - 3 * 86400), "16", "16"),
            (THIS - 172800, THIS - 259200),
        ),
        # The listings have moved on from our hour, or by two.
        ((str(THIS - HOUR), str(THIS - 9 * HOUR), "16", "15"), (THIS, THIS - HOUR)),
        ((str(THIS - 86400 - HOUR), None, "16", "15"), (THIS, THIS - 86400 - HOUR)),
        ((str(THIS - 5 * HOUR), None, "16", "14"), (THIS, THIS - 2 * HOUR)),
        # The listings' keys are gone: in `stats:` they never existed.
        ((str(THIS - 86400), str(THIS - 90000), None, None), (THIS - 86400, THIS - 90000)),
        ((None, None, None, None), (None, None)),
    ],
)
def test_another_hour_of_the_day_is_a_newer_one(
    texts: tuple[str | None, ...], hours: tuple[int | None, int | None]
) -> None:
    """Next to the listings, whose hour of the day has no date."""
    assert hours_of(texts, NOW) == hours


@given(st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9999, 12, 31)))  # noqa: DTZ001
def test_iso_texts_are_read_as_the_calendar_has_them(moment: datetime) -> None:
    """Leap years included."""
    hour = moment.replace(minute=0, second=0, microsecond=0, tzinfo=UTC)
    assert hour_of(moment.isoformat(), NOW) == int(hour.timestamp())
