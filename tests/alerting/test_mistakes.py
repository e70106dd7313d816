"""Mistakes in a file of alerts: each is found with its line and key, and all of them at once."""

import contextlib
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter.alerting.mistakes import InvalidRules, Mistake
from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.toml_lines import TomlPath, toml_lines
from support.alert_files import KEPT, LIMIT, MAIL, MISTAKES, NIGHT, RATIO, RIGHT


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
        with contextlib.suppress(ValueError, RecursionError):
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


@pytest.mark.parametrize("text", RIGHT)
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
