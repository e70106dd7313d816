"""Mistakes in a file of alerts: each is found with its line and key, and all of them at once."""

import contextlib
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter.alerting.mistakes import InvalidRules, Mistake
from redmeter.alerting.rules_file import MAX_ALERTS, parse_rules
from redmeter.alerting.toml_lines import TomlPath, toml_lines
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, Kept

#: Five lines; more keys follow from line 6.
LIMIT = '[[alert]]\nname = "a"\nwhen = "threshold"\nmetric = "hits"\nabove = 1\n'
RATIO = '[[alert]]\nname = "a"\nwhen = "ratio"\nmetric = "errors"\nof = "hits"\n'
BURN = RATIO.replace("ratio", "burn") + "objective = 0.99\n"
#: Three lines.
VERDICT = '[[alert]]\nname = "a"\nwhen = "verdict"\n'
PATTERN, RAISED = (
    VERDICT.replace("verdict", "new_pattern"),
    VERDICT.replace("verdict", "new_exception"),
)
#: Three lines.
HOOK = '[notify.a]\ntype = "webhook"\nurl = "https://example.com/hook"\n'
#: Five lines.
MAIL = '[notify.a]\ntype = "smtp"\nhost = "mail"\nsender = "a@b.c"\nto = ["d@e.f"]\n'
#: Three lines.
NIGHT = '[[maintenance]]\nfrom = "02:00"\nto = "03:00"\n'
KEPT = Kept(DEFAULT_RETENTION, DEFAULT_HISTOGRAMS)

MANY = "".join(VERDICT.replace('"a"', f'"{number}"') for number in range(MAX_ALERTS + 1))

#: A file, and the mistake's line, key and words.
MISTAKES: list[tuple[str, int, str, str]] = [
    # The file
    ("[[alert]", 1, "", "not TOML"),
    (LIMIT + "above = 2", 6, "", "not TOML: Cannot overwrite a value"),
    (LIMIT + 'window = "5m', 6, "", "not TOML"),
    ("alerts = 1", 1, "alerts", "unknown key; known: alert, maintenance, notify"),
    (LIMIT + "[alerts]", 6, "alerts", "unknown key"),
    ("alert = 1", 1, "alert", "write [[alert]], with two brackets"),
    ("[alert]\nname = 'a'", 1, "alert", "write [[alert]], with two brackets"),
    ("[maintenance]\nfrom = '02:00'", 1, "maintenance", "write [[maintenance]]"),
    ("\nalert = [1]", 2, "", "a table, not 1"),
    ("\nnotify = 1", 2, "notify", "a table such as [notify.ops], not 1"),
    ("[notify]\nops = 1", 2, "", "a table such as [notify.ops], not 1"),
    (MANY, 1, "alert", "at most 500 of [[alert]], not 501"),
    # Names and conditions
    ('[[alert]]\nwhen = "verdict"', 1, "name", "is missing"),
    (LIMIT.replace('"a"', "7"), 2, "name", "text, not 7"),
    (LIMIT.replace('"a"', '" "'), 2, "name", "text, not ' '"),
    (LIMIT.replace('"a"', '"a{b}"'), 2, "name", "without braces"),
    (LIMIT.replace('"a"', '"a\\nb"'), 2, "name", "text without line breaks"),
    (LIMIT + LIMIT, 7, "name", '"a" is used twice'),
    ('[[alert]]\nname = "a"', 1, "when", "is missing: one of threshold, ratio"),
    (LIMIT.replace('"threshold"', '"tresholt"'), 3, "when", "one of threshold, ratio"),
    (LIMIT.replace('"threshold"', '["ratio"]'), 3, "when", "one of threshold, ratio"),
    (LIMIT.replace('"threshold"', "{a = 1}"), 3, "when", "one of threshold, ratio"),
    (LIMIT + "abov = 2", 6, "abov", "unknown key; known: above"),
    (LIMIT + 'of = "hits"', 6, "of", "unknown key"),
    (RATIO.replace("of =", "above = 0.1 #"), 1, "of", 'is missing: when = "ratio" needs it'),
    # Metrics and labels
    (LIMIT.replace('"hits"', '"hits{"'), 4, "metric", "invalid series name"),
    (LIMIT.replace('"hits"', '["hits"]'), 4, "metric", "text, not a list"),
    (LIMIT.replace('"hits"', '"rate(hits[5m])"'), 4, "metric", "is PromQL: give the name"),
    (LIMIT.replace('"hits"', '"sum by (route) (hits)"'), 4, "metric", "is PromQL"),
    (LIMIT.replace('"hits"', '"hits[5m]"'), 4, "metric", "is PromQL"),
    (RATIO.replace('"hits"', '"sum(hits)"') + "above = 0.1", 5, "of", "is PromQL"),
    (RATIO.replace('"hits"', '"errors"') + "above = 0.1", 5, "of", "is the same as metric"),
    (LIMIT + 'by = "a route"', 6, "by", "the name of a label, such as route"),
    (LIMIT + 'by = ["route"]', 6, "by", "text, not a list"),
    (LIMIT.replace('"hits"', "'hits{a=\"1\"}'") + 'by = "a"', 6, "by", "metric selects one value"),
    (VERDICT + 'by = "type"', 4, "by", 'accepts only "route"'),
    (PATTERN + 'by = "severity"', 4, "by", 'accepts only "logger"'),
    (RAISED + 'by = "route"', 4, "by", 'accepts only "type"'),
    # Limits
    (LIMIT.replace("above = 1", ""), 1, "above", "give either above or below"),
    (LIMIT + "below = 2", 6, "below", "give either above or below"),
    (LIMIT.replace("1", '"1"'), 5, "above", "a number, not '1'"),
    (LIMIT.replace("1", "true"), 5, "above", "a number, not true"),
    (LIMIT.replace("1", "nan"), 5, "above", "a number, not nan"),
    (LIMIT.replace("1", "inf"), 5, "above", "a number, not inf"),
    (LIMIT.replace("1", "1" * 400), 5, "above", "a number, not 111"),
    (LIMIT + "clear = 2", 6, "clear", "is on the other side of above or below"),
    (LIMIT + 'value = "p0"', 6, "value", "one of rate, count"),
    (LIMIT + "value = 95", 6, "value", "or a percentile from p1 to p100, not 95"),
    (RATIO + "above = 5", 6, "above", "a share from 0 to 1, such as 0.05 for 5 %, not 5"),
    (RATIO + "below = -0.1", 6, "below", "a share from 0 to 1"),
    (RATIO + "above = 0.1\nat_least = 0", 7, "at_least", "a whole number of at least 1"),
    (BURN.replace("0.99", "99.9"), 6, "objective", "a share between 0 and 1, such as 0.999"),
    (BURN + "windows = 5", 7, "windows", 'a list such as [{long = "1h"'),
    (BURN + "windows = []", 7, "windows", 'a list such as [{long = "1h"'),
    (BURN + 'windows = ["1h"]', 7, "windows", "a table, not text"),
    (BURN + 'windows = [{long = "1h", rate = 1}]', 7, "windows.short", "is missing"),
    (
        BURN + 'windows = [\n{long = "1h", short = "5m", rate = 1},\n'
        '{long = "1h", short = "2h", rate = 1},\n]',
        *(9, "windows.short", "is not shorter than long"),
    ),
    (
        BURN + 'windows = [{long = "1h", short = "5m", rate = 0}]',
        *(7, "windows.rate", "a number above 0"),
    ),
    # Durations
    (LIMIT + 'window = "5"', 6, "window", "'5' has no unit"),
    (LIMIT + 'window = "5 weeks"', 6, "window", "a duration such as"),
    (LIMIT + 'window = "0s"', 6, "window", 'a duration of at least "1s"'),
    (LIMIT + "window = 2.5", 6, "window", "a duration such as"),
    (LIMIT + 'window = "3650d"', 6, "window", "at most 366d, not '3650d'"),
    (LIMIT + 'for = "2x"', 6, "for", "a duration"),
    (LIMIT + "keep = -1", 6, "keep", "a duration"),
    (LIMIT + "remind = true", 6, "remind", "a duration"),
    # The store's retention
    (VERDICT.replace("verdict", "expected") + 'metric = "x"\nprecision = "7m"', 5, "precision",
     "420s is not kept; kept are 1s, 5s, 60s, 300s"),
    (LIMIT + 'window = "200d"', 6, "window", "not kept: 200 d is kept for 120 d"),
    (LIMIT + 'value = "p95"\nwindow = "30d"', 7, "window", "not kept: 30 d is kept for 10 d"),
    (LIMIT + 'value = "p95"\nwindow = "7s"', 7, "window", "is no multiple of a precision"),
    (
        BURN + 'windows = [{long = "200d", short = "5m", rate = 2}]',
        *(7, "windows.long", "not kept: 200 d"),
    ),
    # Choices
    (PATTERN + 'severities = ["error", "eror"]', 4, "severities", "one of emergency"),
    (PATTERN + 'severities = [\n  "error",\n  "warn",\n]', 6, "severities", "one of emergency"),
    (PATTERN + 'severities = "error"', 4, "severities", 'a list such as ["error"]'),
    (PATTERN + "logger = 5", 4, "logger", "text, not 5"),
    (RAISED + "types = []", 4, "types", "a list such as"),
    (VERDICT + 'against = "tomorrow"', 4, "against", "one of previous, yesterday, last-week"),
    (VERDICT + "against = {}", 4, "against", "one of previous"),
    (LIMIT.replace("threshold", "expected").replace("above = 1", 'direction = "up"'), 5,
     "direction", "one of above, below, both, not 'up'"),
    # Messages and notifications
    (LIMIT + 'message = "{valu}"', 6, "message", "{valu} is unknown; known: name, status"),
    (LIMIT + 'message = "{}"', 6, "message", "{} is unknown"),
    (LIMIT + 'message = "{value.real}"', 6, "message", "{value.real} is unknown"),
    (LIMIT + 'message = "{value!x}"', 6, "message", "{value!x}: leave out !x"),
    (LIMIT + 'message = "{value!r:.1f}"', 6, "message", "{value!r}: leave out !r"),
    (LIMIT + 'message = "{value:>999999999}"', 6, "message", "no format of a number"),
    (LIMIT + 'message = "{name:>1000}"', 6, "message", "only {value} has a format"),
    (LIMIT + 'message = "{value:{window}}"', 6, "message", "no format of a number"),
    (LIMIT + 'message = "{"', 6, "message", "write {{ and }} for braces"),
    (LIMIT + 'message = "{a\\nb}"', 6, "message", "{a\\nb} is unknown"),
    (LIMIT + 'notify = ["ops"]', 6, "notify", "there is no [notify.ops]; known: none"),
    (LIMIT + 'notify = "ops"', 6, "notify", 'a list such as ["ops"], not text'),
    (LIMIT + "labels = 5", 6, "labels", "a table, not 5"),
    (LIMIT + "[alert.labels]\nteam = 7", 7, "labels.team", "text, not 7"),
    # Notifiers
    ('[notify.a]\nurl = "https://example.com"', 1, "type", "is missing: one of webhook"),
    ('[notify.a]\ntype = "mail"', 2, "type", "one of webhook, slack"),
    ('[notify.a]\ntype = ["webhook"]', 2, "type", "one of webhook, slack"),
    ('[notify.a]\ntype = "webhook"', 1, "url", 'is missing: type = "webhook" needs it'),
    (HOOK + "retries = 5", 4, "retries", "unknown key; known: secret_env, type, url"),
    (HOOK.replace("https://example.com", "file:///etc"), 3, "url", "must begin with https://"),
    (HOOK.replace("example.com", ""), 3, "url", "has no host"),
    (HOOK.replace("example.com", ":80"), 3, "url", "has no host"),
    (HOOK.replace("/hook", "/my hook"), 3, "url", "has a space"),
    (HOOK.replace("/hook", "/h\u00f6ok"), 3, "url", "write as %20"),
    (HOOK.replace(".com", ".com:99999"), 3, "url", "has no valid host or port"),
    (HOOK.replace(".com", ".com:http"), 3, "url", "has no valid host or port"),
    (HOOK.replace("https://", "https://me:secret@"), 3, "url", "has a user or password"),
    (HOOK + 'secret_env = "$SECRET"', 4, "secret_env", "the name of an environment variable"),
    ('[notify.a]\ntype = "slack"', 1, "url", "give either url or url_env"),
    ('[notify.a]\ntype = "command"\ncommand = "mail"', 3, "command", "a list such as"),
    ('[notify.a]\ntype = "command"\ncommand = ["mail", 5]', 3, "command", "text, not 5"),
    (MAIL + "port = 99999", 6, "port", "a port from 1 to 65535, not 99999"),
    (MAIL + 'port = "25"', 6, "port", "a port from 1 to 65535, not '25'"),
    (MAIL + 'tls = "yes"', 6, "tls", "true or false"),
    (MAIL + 'user = "me"', 1, "password_env", "is missing: user needs it"),
    (MAIL + 'password_env = "MAIL"', 1, "user", "is missing: password_env needs it"),
    (MAIL.replace("a@b.c", "a@b.c\\nBcc: x@y.z"), 4, "sender", "text without line breaks"),
    (MAIL.replace("d@e.f", "d@e.f\\r\\nX: y"), 5, "to", "text without line breaks"),
    (MAIL.replace('"mail"', '"mail:25"'), 3, "host", "a host name, such as"),
    # Maintenance
    (NIGHT.replace("02:00", "2"), 2, "from", 'a time of day such as "02:00"'),
    (NIGHT.replace('"03:00"', "03:00:00"), 3, "to", 'a time of day such as "02:00"'),
    (NIGHT.replace("to", "# to"), 1, "to", 'a time of day such as "02:00", UTC'),
    (NIGHT.replace("03:00", "02:00"), 3, "to", "from and to are the same"),
    (NIGHT + 'days = ["saturday"]', 4, "days", "one of mon, tue"),
    (NIGHT + 'day = ["sat"]', 4, "day", "unknown key; known: alerts, days, from, to"),
    (NIGHT + 'alerts = ["b"]\n' + LIMIT, 4, "alerts", "there is no alert 'b'; known: a"),
    (NIGHT + "alerts = ['a{x=\"1\"}']\n" + LIMIT, 4, "alerts", "there is no alert 'a{x="),
    (NIGHT + 'alerts = ["a",\n"b*"]\n' + LIMIT, 5, "alerts", "there is no alert 'b*'; known: a"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "key", "reason"), MISTAKES)
def test_each_kind_of_mistake_has_its_line_and_key(
    text: str, line: int, key: str, reason: str
) -> None:
    """It is the only one of its file, and its text fits on a line."""
    (mistake,) = mistakes_of(text)
    assert (mistake.file, mistake.line, mistake.key) == ("shop/alerts.toml", line, key)
    assert reason in mistake.reason
    assert str(mistake).startswith(f"shop/alerts.toml, line {line}: ")
    assert str(mistake).isprintable()


def test_all_mistakes_of_a_file_are_found_at_once() -> None:
    """Of several tables, and several of one table, in the order of the file."""
    text = (
        LIMIT.replace('"hits"', '"rate(hits)"').replace("1", "inf")
        + 'window = "5"\nmessage = "{a} and {b!r}"\nlabels = {x = 1, y = 2}\n'
        + RATIO.replace('"a"', '"b"')
        + "above = 5\n"
        + MAIL
        + 'port = 99999\nuser = "me"\n'
        + NIGHT
        + 'alerts = ["c", "d"]\n'
    )
    found = [(each.line, each.where, each.key) for each in mistakes_of(text)]
    assert found == [
        (4, 'alert "a"', "metric"),
        (5, 'alert "a"', "above"),
        (6, 'alert "a"', "window"),
        (7, 'alert "a"', "message"),
        (7, 'alert "a"', "message"),
        (8, 'alert "a"', "labels.x"),
        (8, 'alert "a"', "labels.y"),
        (14, 'alert "b"', "above"),
        (15, "notify.a", "password_env"),
        (20, "notify.a", "port"),
        (25, "maintenance 1", "alerts"),
        (25, "maintenance 1", "alerts"),
    ]


def test_a_value_that_cannot_be_read_is_one_mistake() -> None:
    """What depends on it is not judged, such as on which side of a limit another one is."""
    assert [each.key for each in mistakes_of(LIMIT.replace("1", "inf") + "clear = 2")] == ["above"]
    text = LIMIT.replace('"hits"', "5") + 'by = "route"\nof = 7'
    assert [each.key for each in mistakes_of(text)] == ["metric", "of"]


def test_a_message_has_at_most_a_hundred_mistakes() -> None:
    """The others are counted."""
    with pytest.raises(InvalidRules) as caught:
        parse_rules("".join(f"key{number} = 1\n" for number in range(150)))
    lines = str(caught.value).split("\n")
    assert len(caught.value.mistakes) == 150
    assert len(lines) == 101
    assert lines[-1] == "… (50 more)"


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 5000])
def test_a_text_that_the_parser_gives_up_is_no_crash(text: str) -> None:
    """Nested too deeply, or a number of too many digits."""
    assert len(mistakes_of(text)) == 1


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('x = """\n[[alert]]\nname = 1\n"""\n' + LIMIT + "abov = 2", 10, "abov"),
        ("x = '''\nabov = 1\n'''\n" + LIMIT + "abov = 2", 9, "abov"),
        (LIMIT + 'message = """\n{value}\n\\"""" \nabov = 2', 9, "abov"),
        (LIMIT + 'message = """a""""" # abov = 1\nabov = 2', 7, "abov"),
        (LIMIT + "# abov = 2\n  labels.team = 7", 7, "labels.team"),
        (LIMIT + '"abov" = 2', 6, "abov"),
        (LIMIT + "'abov' = 2", 6, "abov"),
        (LIMIT + '"\\u0061bov" = 2', 6, "abov"),
        (LIMIT + 'labels = {\t"a b" = 7}', 6, "labels.'a b'"),
        ('alert = [{name = "a", when = "verdict", against = 7}]', 1, "against"),
        ('alert = [\n{name = "a", when = "verdict"},\n\n {name = "a"}]', 4, "name"),
        ('["notify" . "my ops"]\ntype = "slack"\nurl = "x"', 3, "url"),
        ('[notify]\n"my ops" = {type = "slack",\turl = "x"}', 2, "url"),
        ('notify.ops.type = "slack"\nnotify.ops.url = "x"', 2, "url"),
        ("\r\n\r\n" + LIMIT.replace("\n", "\r\n") + "abov = 2", 8, "abov"),
        (LIMIT + '[[ alert ]]  # another\nname = "b"\nwhen = "verdict"\nabov = 2', 9, "abov"),
        (LIMIT + "abov = [[1, 2], [\n3], {a = [']']}, 1979-05-27 07:32:00, '#']", 6, "abov"),
        (LIMIT + "abov = 1979-05-27 07:32:00\nby = 5", 6, "abov"),
    ],
)  # fmt: skip
def test_the_line_is_right_however_the_file_is_written(text: str, line: int, key: str) -> None:
    """After strings of several lines, in inline tables and lists, and for quoted keys."""
    found = [(each.line, each.key) for each in mistakes_of(text) if each.key != "x"]
    assert (line, key) in found


def test_every_key_has_a_line() -> None:
    """Each path of what tomllib reads, and no other, in all of the texts above that it reads."""
    compared = 0
    for text, *_ in MISTAKES:
        with contextlib.suppress(tomllib.TOMLDecodeError):
            assert set(paths_of(tomllib.loads(text))) == toml_lines(text).keys()
            compared += 1
    assert compared > 100


def paths_of(value: Any, path: TomlPath = ()) -> Iterator[TomlPath]:
    """Return the paths of all keys and elements of a document."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths_of(each, (*path, key))


@pytest.mark.parametrize(
    "text",
    [
        LIMIT.replace('"hits"', '"rate of hits (all)"'),
        LIMIT.replace('"hits"', "'hits{route=\"/a[5]\"}'"),
        LIMIT + 'message = "{{x}} {value:,.1f} {value:.1%} {value:g} {labels}"',
        LIMIT + "window = 300\nlabels = {}",
        RATIO + "below = 0.1\nclear = 1",
        BURN,
        HOOK.replace("example.com", "[::1]:8443"),
        MAIL + 'port = 65535\nuser = "me"\npassword_env = "MAIL"',
        MAIL.replace('"mail"', '"::1"'),
        NIGHT,
        NIGHT + "alerts = ['a{route=\"/\"}', '?', 'a{*']\n" + LIMIT + 'by = "route"',
        VERDICT.replace("verdict", "expected") + 'metric = "x"\nprecision = "5h"',
    ],
)
def test_what_is_right_is_accepted(text: str) -> None:
    """Also what resembles a mistake."""
    parse_rules(text, kept=KEPT)


def test_without_a_store_its_retention_is_not_checked() -> None:
    """A file can be checked where the store is out of reach."""
    parse_rules(LIMIT + 'window = "200d"')


def mistakes_of(text: str) -> tuple[Mistake, ...]:
    """Return the mistakes of a file that has some."""
    with pytest.raises(InvalidRules) as caught:
        parse_rules(text, "shop/alerts.toml", kept=KEPT)
    assert str(caught.value).split("\n")[0] == str(caught.value.mistakes[0])
    return caught.value.mistakes
