"""Local time: habits follow the clock on the wall, and not UTC.

Every reader that compares hours or days with earlier ones asks the zone of its store how long ago
it was the same time of day. In UTC, and in any zone whose clocks are never changed, a day ago is 24
hours ago; on the day of a change it is 23 hours ago in spring and 25 in autumn. Both passes of the
hour that a clock repeats are compared with the same hour before. Where the hour before was skipped,
the next one is compared.
"""

from datetime import UTC as _UTC
from datetime import datetime, timedelta, tzinfo
from typing import Final

from redmeter.errors import InvalidSetting, shown

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=_UTC)
#: The last moment whose offset is looked up: the end of 9998. Later ones have the same.
_LAST: Final = 253_370_764_799


class Zone:
    """A time zone.

    Args:
        name: an IANA name, such as Europe/Berlin. UTC needs no time zone database.

    Raises:
        InvalidSetting: there is no such zone.
    """

    def __init__(self, name: str = "UTC") -> None:
        self.name = name
        self._rules = None if name == "UTC" else _rules(name)

    def offset(self, moment: float) -> int:
        """Return by how many seconds local time is ahead of UTC at a Unix time."""
        if self._rules is None:
            return 0
        at = _EPOCH + timedelta(seconds=max(0.0, min(moment, _LAST)))
        offset = at.astimezone(self._rules).utcoffset()
        assert offset is not None, "a zone has an offset at any time"
        return round(offset.total_seconds())

    def back(self, moment: float, seconds: int, step: int = 1) -> int:
        """Return how long ago it was the same local time of an earlier day.

        Args:
            moment: Unix seconds.
            seconds: the length of the days in between, without changes of the clock.
            step: width of an interval: a change counts as the nearest number of these.
        """
        change = self.offset(moment) - self.offset(moment - seconds)
        return seconds - round(change / step) * step


#: The default.
UTC: Final = Zone()


def _rules(name: str) -> tzinfo:
    # Imported only if it is used.
    from zoneinfo import ZoneInfo, available_timezones

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    if available_timezones():
        reason = f"{shown(name, 40)} is no time zone: give an IANA name such as Europe/Berlin"
    else:
        reason = f"{shown(name, 40)}: there is no time zone database here: pip install tzdata"
    raise InvalidSetting("timezone", reason)
