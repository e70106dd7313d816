"""Times on the command line: an age, a time of UTC, or Unix seconds."""

import re
from datetime import UTC, datetime
from typing import Annotated

import typer

from redmeter.clock import UNITS, seconds_of
from redmeter.errors import InvalidSetting
from redmeter.stored.keys import MAX_TIME

#: Forms of a time, for help and errors.
FORMS = "an age, e.g. 2h; a time in UTC, e.g. 2026-11-21T15:30; or Unix seconds"

Since = Annotated[str | None, typer.Option("--since", help=f"Start of the window: {FORMS}.")]
Until = Annotated[str | None, typer.Option("--until", help="End of the window.")]
Last = Annotated[
    str | None,
    typer.Option("--last", help="Length of a window up to now: seconds, or 15m, 2h."),
]


def length_of(last: str | None, since: str | None, until: str | None) -> float | None:
    """Read --last, seconds.

    Raises:
        InvalidSetting: it is no duration, or --since or --until is given too.
    """
    if last is None:
        return None
    if since is not None or until is not None:
        raise InvalidSetting("--last", "is the whole window: leave out --since and --until")
    length = seconds_of(last)
    if not length:
        raise InvalidSetting("--last", f"{last!r:.40}: give seconds, or 15m, 2h")
    return float(length)


def moment(option: str, text: str | None, now: float) -> float | None:
    """Read a time, Unix seconds.

    Args:
        option: for the message.
        now: what ages count from.

    Raises:
        InvalidSetting: it is none.
    """
    if text is None:
        return None
    word = text.strip()
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", word):
        return float(word)
    age = re.fullmatch(r"([0-9]{1,9})\s*([a-z]+)", word)
    if age is not None and age[2] in UNITS:
        return max(now - int(age[1]) * UNITS[age[2]], -MAX_TIME)
    try:
        time = datetime.fromisoformat(word)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidSetting(option, f"{text!r:.40}: give {FORMS}") from None
