"""The table of all settings: name, environment variable, default, unit, help.

Code, environment, command line and documentation read it, so a setting has the same name
everywhere. A value given in code overrides the environment, which overrides the default.
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from redmeter.clock import Zone
from redmeter.errors import InvalidName, InvalidSetting, shown
from redmeter.lazy_regex import late
from redmeter.names import canonical
from redmeter.stored.keys import (
    DEFAULT_HISTOGRAMS,
    DEFAULT_PREFIX,
    DEFAULT_RETENTION,
    MAX_RECENT,
    Retention,
    check_prefix,
)

#: The prefix of all environment variables.
VARIABLES = "REDMETER_"


class Setting(NamedTuple):
    """One row of the table."""

    name: str
    default: Any
    #: Turns text, or a value given in code, into the value; raises InvalidSetting.
    read: Callable[[Any], Any]
    #: "seconds" for example, or "" if there is no unit.
    unit: str
    help: str

    @property
    def variable(self) -> str:
        """The environment variable, e.g. REDMETER_URL."""
        return f"{VARIABLES}{self.name.upper()}"


def _text(name: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise InvalidSetting(name, f"text, not {type(value).__name__}")
        return value

    return read


def _seconds(name: str, low: float, high: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = -1.0
        if isinstance(value, bool) or not low <= number <= high:
            raise InvalidSetting(
                name, f"{shown(value, 40)} is not a number of seconds, {low} to {high}"
            )
        return number

    return read


def _whole(name: str, low: int, high: int, unit: str) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError):
            number = -1
        if isinstance(value, bool | float) or not low <= number <= high:
            raise InvalidSetting(
                name, f"{shown(value, 40)} is not a whole number of {unit}, {low} to {high}"
            )
        return number

    return read


def _retention(name: str) -> Callable[[Any], Retention]:
    def read(value: Any) -> Retention:
        if isinstance(value, Retention):
            return value
        try:
            if isinstance(value, str):
                return Retention.parse(value)
            if isinstance(value, Mapping):
                return Retention(value)
        except InvalidSetting as error:
            raise InvalidSetting(name, error.reason) from None
        raise InvalidSetting(name, f"a mapping or text, not {type(value).__name__}")

    return read


def _share(name: str) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = -1.0
        if isinstance(value, bool) or not 0.0001 <= number <= 1:
            raise InvalidSetting(name, f"{shown(value, 40)} is not a share, 0.0001 to 1")
        return number

    return read


def _switch(name: str) -> Callable[[Any], bool]:
    def read(value: Any) -> bool:
        switch = value if isinstance(value, bool) else _SWITCHES.get(str(value).strip().lower())
        if switch is None:
            raise InvalidSetting(name, f"{shown(value, 40)} is neither on nor off")
        return switch

    return read


_SWITCHES = {"on": True, "true": True, "yes": True, "1": True}
_SWITCHES |= {"off": False, "false": False, "no": False, "0": False}


def _choice(name: str, words: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise InvalidSetting(name, f"{shown(value, 40)} is none of {', '.join(words)}")
        return str(value)

    return read


def _timezone(name: str) -> Callable[[Any], str]:
    read_text = _text(name)

    def read(value: Any) -> str:
        return Zone(read_text(value)).name

    return read


def _patterns(name: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if isinstance(value, str):
            return " ".join(value.replace(",", " ").split())
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise InvalidSetting(name, f"text, or a list of it, not {type(value).__name__}")
        for one in value:
            if not one or re.search(r"[\s,]", one):
                reason = f"in {shown(one, 40)}, write ? for a space or a comma"
                raise InvalidSetting(name, reason if one else "a pattern is empty")
        return " ".join(value)

    return read


def _named_patterns(name: str) -> Callable[[Any], str]:
    read_patterns = _patterns(name)

    def read(value: Any) -> str:
        if isinstance(value, Mapping):
            value = [f"{pattern}={counter}" for pattern, counter in value.items()]
        if isinstance(value, str) and len(value) > MAX_COUNT_PATHS:
            reason = f"a text of {len(value):,} characters: at most {MAX_COUNT_PATHS:,}"
            raise InvalidSetting(name, reason)
        words = _WORD.findall(value) if isinstance(value, str) else value
        if not isinstance(words, list | tuple) or not all(isinstance(one, str) for one in words):
            raise InvalidSetting(
                name, f"a mapping, text, or a list of it, not {type(words).__name__}"
            )
        made = []
        for one in words:
            match = _NAMED.fullmatch(one)
            if match is None:
                raise InvalidSetting(name, f"{shown(one, 40)} is not PATTERN=COUNTER")
            pattern = read_patterns([match[1]])
            if _WORD.fullmatch(one) is None:
                reason = f"in {shown(one, 40)}, the counter has a space or a comma"
                raise InvalidSetting(name, reason)
            try:
                made.append(f"{pattern}={canonical(match[2])}")
            except InvalidName as error:
                raise InvalidSetting(name, str(error)) from None
        return " ".join(made)

    return read


#: Most characters of the setting count_paths: unclosed braces take quadratic time.
MAX_COUNT_PATHS = 20_000
#: A word of the setting count_paths. Spaces and commas separate words, except within the labels of
#: a counter. Possessive, so that a match of labels is not split again.
_WORD = late(r'(?:\{(?:[^"{}]++|"(?:\\.|[^"\\]++)*+")*+\}|[^\s,])++')
#: A pattern and a counter, which may have labels.
_NAMED = late(r"(.+)=([^={}]+(?:\{.*+(?<=\}))?)", re.DOTALL)


def named_patterns(text: str) -> list[tuple[str, str]]:
    """Return the (pattern, counter) pairs of a value of the setting count_paths."""
    matches = map(_NAMED.fullmatch, _WORD.findall(text))
    return [(each[1], each[2]) for each in matches if each]


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "url",
        "",
        _text("url"),
        "",
        "The server that stores the metrics: redis://, rediss://, redis+sentinel://, "
        "redis+cluster://, unix://, embedded://PATH, or off. Empty: the embedded server in the "
        "user's data directory.",
    ),
    Setting("prefix", DEFAULT_PREFIX, check_prefix, "", "The prefix of every key."),
    Setting(
        "retention",
        Retention(DEFAULT_RETENTION),
        _retention("retention"),
        "",
        "PRECISION=SAMPLES …, for a new store; afterwards the store's own retention applies "
        "(`redmeter retention` changes it).",
    ),
    Setting(
        "histogram_retention",
        Retention(DEFAULT_HISTOGRAMS),
        _retention("histogram_retention"),
        "",
        "The retention of histograms, PRECISION=SAMPLES …, for a new store (`redmeter "
        "retention --histograms` changes it).",
    ),
    Setting(
        "timeout",
        2.0,
        _seconds("timeout", 0.01, 300.0),
        "seconds",
        "The timeout of connecting, and of each reply.",
    ),
    Setting(
        "read_from",
        "primary",
        _choice("read_from", ("primary", "replica")),
        "",
        "The server that reads and the page use: `primary` or `replica`. A replica "
        "may be slightly behind; if none is healthy, the primary is read. `replica` needs "
        "`redis+sentinel://` or `redis+cluster://`.",
    ),
    Setting(
        "durability",
        "none",
        _choice("durability", ("none", "replica", "disk")),
        "",
        "What must confirm that events are durable after each flush: `replica`, that one replica "
        "has them; `disk`, that they are in the server's append-only file on its disk, which needs "
        "`appendonly yes` on Redis 7.2 or newer, or Valkey. Events without a confirmation are "
        "stored anyway, and counted as `unconfirmed`. The server waits three quarters of `timeout` "
        "at most. `none`: no confirmation.",
    ),
    Setting(
        "flush_interval",
        1.0,
        _seconds("flush_interval", 0.01, 3600.0),
        "seconds",
        "How long recorded events wait in memory before they are sent.",
    ),
    Setting(
        "buffer_bytes",
        16 * 2**20,
        _whole("buffer_bytes", 2**16, 2**40, "bytes"),
        "bytes",
        "Approximate limit of the memory for events that are not stored yet; above it, texts of "
        "messages and old samples of fine precisions are dropped and counted.",
    ),
    Setting(
        "repair_bytes",
        8 * 2**20,
        _whole("repair_bytes", 0, 2**40, "bytes"),
        "bytes",
        "Approximate limit of the memory for events of the last minute that the server has "
        "acknowledged: a process sends them again if the server loses them. The default holds "
        "30 seconds of 1,000 counters. 0: none; losses are reported all the same.",
    ),
    Setting(
        "store_bytes",
        512 * 2**20,
        _whole("store_bytes", 0, 2**50, "bytes"),
        "bytes",
        "The most memory of the store in Redis, as the cleaner estimates it once a minute. Above "
        "it, new series are refused and counted, and those that exist go on; `redmeter doctor` "
        "warns from half of it. Set it for the process that cleans. 0: no limit.",
    ),
    Setting(
        "max_series",
        10_000,
        _whole("max_series", 1, 10_000_000, "series"),
        "series",
        "The most series of one process; further ones are recorded as (other).",
    ),
    Setting(
        "max_label_sets",
        2_000,
        _whole("max_label_sets", 1, 10_000_000, "label sets"),
        "label sets",
        "The most label sets of one name in one process; further ones are recorded as one "
        'series with the label overflow="true". For '
        "web requests only the values of the application's own labels become (other).",
    ),
    Setting(
        "recent_messages",
        100,
        _whole("recent_messages", 1, MAX_RECENT, "messages"),
        "messages",
        "How many of the newest messages of each logger and severity are kept. Set it to the same "
        "value in all processes: if they differ, the smallest applies.",
    ),
    Setting(
        "source_lines",
        True,
        _switch("source_lines"),
        "",
        "Whether tracebacks show the source lines of the application's frames, masked like "
        "messages.",
    ),
    Setting(
        "release",
        "",
        _text("release"),
        "",
        "The default label of `Meter.mark()`: a version, a commit.",
    ),
    Setting(
        "embedded_idle",
        3600.0,
        _seconds("embedded_idle", 1.0, 10_000_000.0),
        "seconds",
        "The embedded server exits after this time without a client; its data is kept.",
    ),
    Setting(
        "next_url",
        "",
        _text("next_url"),
        "",
        "Where to send events once `redmeter migrate` has moved the store: a URL like `url`; the "
        "prefix is that of the move. Without it, a process keeps its events in memory then.",
    ),
    Setting(
        "timezone",
        "UTC",
        _timezone("timezone"),
        "",
        "The time zone whose clock habits follow, an IANA name such as Europe/Berlin: for the time "
        "of day in forecasts and `expected` alerts, and for comparisons with yesterday or last "
        "week. Times are shown in UTC regardless.",
    ),
    Setting(
        "include_paths",
        "",
        _patterns("include_paths"),
        "",
        "Web requests: patterns of the paths to record, `/shop/* /api/*`; `*` matches any "
        "characters, `?` any one. Empty: all paths.",
    ),
    Setting(
        "ignore_paths",
        "",
        _patterns("ignore_paths"),
        "",
        "Web requests: patterns of the paths to ignore, `/health`.",
    ),
    Setting(
        "count_paths",
        "",
        _named_patterns("count_paths"),
        "",
        "Web requests: PATTERN=COUNTER …; a request with such a path also increments the counter.",
    ),
    Setting(
        "exact_status",
        False,
        _switch("exact_status"),
        "",
        "Web requests: whether the label `status` is exact, `404` instead of `4xx`.",
    ),
    Setting(
        "sample_durations",
        1.0,
        _share("sample_durations"),
        "share",
        "Web requests: the share of requests whose duration is recorded; below 1, the series get a "
        "label `sampled`. Counts stay exact.",
    ),
    Setting(
        "slow_request",
        1.0,
        _seconds("slow_request", 0.001, 1_000_000.0),
        "seconds",
        "Web requests: requests that take at least this long are logged as slow.",
    ),
    Setting(
        "cleaner",
        False,
        _switch("cleaner"),
        "",
        "Web requests: whether a thread of each serving process removes expired data once "
        "a minute.",
    ),
    Setting(
        "app",
        "",
        _text("app"),
        "",
        "The application that `redmeter.integrations.asgi:from_env` and "
        "`redmeter.integrations.wsgi:from_env` serve: `shop:app`, or `shop:create_app()`.",
    ),
)

#: Settings of web requests, which are not parameters of Meter.
WEB = (
    *("include_paths", "ignore_paths", "count_paths", "exact_status"),
    *("sample_durations", "slow_request", "cleaner"),
)

#: Settings that can only be set in the environment.
ENVIRONMENT = ("app", "source_lines", "store_bytes")

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return _BY_NAME[name].variable


def is_configured(name: str, given: Any = None) -> bool:
    """Return whether a value was given in code, on the command line or in the environment."""
    return given is not None or variable_of(name) in os.environ


def resolve(name: str, given: Any = None, environ: Mapping[str, str] | None = None) -> Any:
    """Return the value of a setting.

    Args:
        name: its name in the table.
        given: the value given in code or on the command line; None if there is none.
        environ: replaces the environment of the process.

    Raises:
        InvalidSetting: the value is invalid; the message names the environment variable if it came
            from there.
    """
    setting = _BY_NAME[name]
    if given is not None:
        return setting.read(given)
    text = (os.environ if environ is None else environ).get(setting.variable)
    if text is None:
        return setting.default
    try:
        return setting.read(text)
    except InvalidSetting as error:
        raise InvalidSetting(setting.variable, error.reason) from None
