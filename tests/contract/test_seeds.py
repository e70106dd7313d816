"""The listings as an article prints them, unmodified, and ours in one database."""

import datetime as dates
import logging
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from redmeter import book
from redmeter.stored.keys import HOUR
from support import realdata
from support.servers import Server
from support.stores import SetTime

pytestmark = pytest.mark.realdata

#: Chapter 5 of "Redis in Action", with the changes that its author made for Python 3.
ARTICLE = realdata.FOLDER.parent / "seeds" / "004_729a4b9703e47826.txt"
#: 00:00 UTC of a day, Unix seconds.
MIDNIGHT = 1_795_219_200
KEY, STATS = "common:app:info", "stats:page:ms"


class Now:
    """Stands for `datetime` in the listings: its present is set by the test."""

    def __init__(self) -> None:
        self.time = 0.0

    def utcnow(self) -> dates.datetime:
        """Return it."""
        return dates.datetime.fromtimestamp(self.time, dates.UTC)


class Both:
    """The listings' functions, and ours, at one time."""

    def __init__(self, conn: Any, set_time: SetTime, text: str) -> None:
        self.conn, self._set_time, self._now = conn, set_time, Now()
        found: dict[str, Any] = {"redis": redis, "time": time, "uuid": uuid, "datetime": self._now}
        found |= {"logging": logging, "SEVERITY": dict(book.SEVERITY)}
        for name in ("log_recent", "log_common", "update_stats"):
            listing = re.search(rf"^def {name}\(.*?\n(?=\S)", text, re.DOTALL | re.MULTILINE)
            assert listing, name
            exec(listing[0], found)  # noqa: S102
        self.listings = found

    def at(self, hour: int) -> None:
        """Make it five minutes past an hour, counted from MIDNIGHT."""
        self._now.time = MIDNIGHT + hour * HOUR + 300.0
        self._set_time(self._now.time)

    def log(self, ours: bool) -> None:
        """Log a message by ours, or by the listing."""
        (book.log_common if ours else self.listings["log_common"])(self.conn, "app", "hello")

    def observe(self, ours: bool) -> Any:
        """Take a value into the statistics, by ours or by the listing."""
        update = book.update_stats if ours else self.listings["update_stats"]
        return update(self.conn, "page", "ms", 2.0)


@pytest.fixture(params=[False, True], ids=["bytes", "text"])
def both(request: Any, any_server: Server, set_time: SetTime) -> Iterator[Both]:
    """Both on a connection that does not decode, and on one that does."""
    if not ARTICLE.exists():
        pytest.skip(f"missing: {ARTICLE}")
    text = Path(ARTICLE).read_text(encoding="utf-8")
    with any_server.client(decode_responses=request.param) as conn:
        yield Both(conn, set_time, text)


#: An hour's end, midnight, a day of silence, a month.
HOURS = (13, 14, 15, 23, 24, 25, 25 + 24, 26 + 24, 27 + 31 * 24, 28 + 31 * 24)


def test_both_move_hours_of_messages_on(both: Both) -> None:
    """Each hour holds its own messages, whoever logs first in it."""
    for number, hour in enumerate(HOURS):
        both.at(hour)
        # By the listing's comparison, no hour of the day is after an equal or greater one.
        first = number % 2 == 0 or hour % 24 <= HOURS[number - 1] % 24
        both.log(first)
        both.log(not first)
        both.log(True)
        assert int(both.conn.get(f"{KEY}:start")) == hour % 24
        assert both.conn.zscore(KEY, "hello") == 3
        assert both.conn.zscore(f"{KEY}:last", "hello") == (3 if number else None)


def test_both_take_values_of_an_hour(both: Both) -> None:
    """The listing never moves statistics on, and fails where `:start` exists."""
    both.at(HOURS[0])
    for _ in range(10):
        both.observe(False)
    before = 10
    for number, hour in enumerate(HOURS):
        both.at(hour)
        assert both.observe(True)[0] == (1 if number else 11)
        both.observe(False)
        assert not both.conn.exists(f"{STATS}:start", f"{STATS}:pstart")
        if number:
            assert both.conn.zscore(f"{STATS}:last", "count") == before
        before = int(both.conn.zscore(STATS, "count"))
        assert before == (2 if number else 12)
