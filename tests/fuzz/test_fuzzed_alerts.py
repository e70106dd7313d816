"""Fuzz: files of alerts, with wrong types at any key and with damaged text."""

import contextlib
import http.client
import json
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterator
from email.errors import ObsoleteHeaderDefect
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.alerting.addresses import is_mail_address, url_mistake
from redmeter.alerting.conditions import RuleReader
from redmeter.alerting.evaluator import sample_message
from redmeter.alerting.mistakes import InvalidRules, Mistake
from redmeter.alerting.rules import Rules, describe_condition, describe_query
from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.state import read_rules, rules_text
from redmeter.alerting.toml_lines import TomlPath
from redmeter.alerting.values import ALERT_READERS, NOTIFIER_READERS
from redmeter.testing import MemoryMeter
from support.alert_files import (
    BURN,
    HOOK,
    KEPT,
    LIMIT,
    MAIL,
    MISTAKES,
    NIGHT,
    PATTERN,
    RAISED,
    RIGHT,
    VERDICT,
)
from support.fuzzing import (
    HOSTILE,
    assert_work_is_linear,
    fuzzed,
    fuzzed_slowly,
    grown,
    mutated,
    mutated_bytes,
)
from support.invoking import invoking

#: A file with every kind of table, and most keys; lines are those of the keys.
FULL = "\n".join(
    [
        LIMIT + 'by = "route"\nclear = 0.5\nwindow = "5m"\nfor = "1m"\nkeep = "1m"\nremind = "1h"',
        'severity = "page"\nlabels = {team = "ops"}\nmessage = "{value:.1f}"\nnotify = ["a", "m"]',
        BURN.replace('"a"', '"b"') + 'windows = [\n{long = "1h", short = "5m", rate = 2},\n]',
        PATTERN.replace('"a"', '"c"') + 'severities = ["error"]\nlogger = "app"',
        RAISED.replace('"a"', '"d"') + 'types = ["ValueError"]',
        VERDICT.replace('"a"', '"e"') + 'against = "yesterday"',
        HOOK + 'secret_env = "SECRET"',
        MAIL.replace(".a]", ".m]") + 'port = 25\ntls = true\nuser = "me"\npassword_env = "P"',
        '[notify.c]\ntype = "command"\ncommand = ["true"]\n[notify.s]\ntype = "slack"',
        'url_env = "U"\n[notify.p]\ntype = "pagerduty"\nkey_env = "K"',
        NIGHT + 'days = ["sat"]\nalerts = ["a"]',
    ]
)
#: A value of each type, and some at the edge of one.
VALUES = (
    *('""', '" "', '"x"', '"5"', '"5m"', '"3650d"', '"{"', '"{value!x}"', '"a\\nb"', '"\\u0000"'),
    *("0", "-1", "5", "10000000000000000000", "0.5", "inf", "nan", "-inf", "true", "2026-01-01"),
    *("[]", "[[]]", "[1]", '["x"]', '["a", "a"]', "{}", "{a = 1}", "[{}]", "07:32:00"),
)
WORDS = (*ALERT_READERS, *NOTIFIER_READERS, "alert", "notify", "maintenance", "name", "type", "[[")

PARTS = (*WORDS, *VALUES, *HOSTILE, " = ", "\n", "[alert", "]", ", ", '"""', "{{value}}", "{value}")


def assigned(value: Any, path: TomlPath = ()) -> Iterator[TomlPath]:
    """Yield the path of each key of a document."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from assigned(each, (*path, key))


PATHS = [*assigned(tomllib.loads(FULL))]


def written(value: Any, path: TomlPath, changes: dict[TomlPath, str]) -> str:
    """Return a value as inline TOML, but with other ones at some paths."""
    if path in changes:
        return changes[path]
    if isinstance(value, dict):
        pairs = (f"{key} = {written(each, (*path, key), changes)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        parts = (written(each, (*path, number), changes) for number, each in enumerate(value))
        return f"[{', '.join(parts)}]"
    return str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')


def document(changes: dict[TomlPath, str]) -> str:
    """Return FULL, one key of the top on a line, but with other values at some paths."""
    top = tomllib.loads(FULL)
    return "\n".join(f"{key} = {written(top[key], (key,), changes)}" for key in top)


def read(text: str) -> Rules | tuple[Mistake, ...]:
    """Read a file: rules that can be evaluated, or mistakes that each have a place."""
    rules: Rules | None = None
    mistakes: tuple[Mistake, ...] = ()
    try:
        rules = parse_rules(text, "alerts.toml", kept=KEPT)
    except InvalidRules as error:
        mistakes = error.mistakes
    for mistake in mistakes:
        assert mistake.line is not None
        assert 1 <= mistake.line <= text.count("\n") + 1
        assert str(mistake).startswith(f"alerts.toml, line {mistake.line}: ")
        assert mistake.reason
        assert str(mistake).isprintable()
    if rules is None:
        assert mistakes
        return mistakes
    assert parse_rules(text) == rules  # as the evaluator reads it
    assert read_rules(rules_text(rules)).alerts == rules.alerts
    with MemoryMeter() as meter:
        conditions = RuleReader(meter, KEPT.series, KEPT.histograms)
        for rule in rules.alerts:
            assert sample_message(rule)[1]
            assert describe_condition(rule)
            assert describe_query(rule)
            conditions.read(rule, 1_700_000_000, 1_700_000_000)
    return rules


def test_the_unchanged_file_is_right() -> None:
    """Or the tests below would test nothing."""
    assert isinstance(read(FULL), Rules)
    assert isinstance(read(document({})), Rules)
    for text in RIGHT:
        assert isinstance(read(text), Rules)


@pytest.mark.parametrize("value", VALUES)
def test_a_wrong_value_at_any_key_is_a_mistake_with_a_place(value: str) -> None:
    """Each type, at each key; accepted rules can be evaluated."""
    for path in PATHS:
        read(document({path: value}))


@fuzzed
@given(st.dictionaries(st.sampled_from(PATHS), st.sampled_from(VALUES), min_size=2, max_size=5))
def test_several_wrong_values_are_mistakes_with_places(changes: dict[TomlPath, str]) -> None:
    """Also within one table, and of one that is gone."""
    read(document(changes))


@fuzzed
@given(mutated((FULL, document({}), *RIGHT, *(text for text, *_ in MISTAKES if len(text) < 900))))
def test_a_damaged_file_is_read_or_has_mistakes_with_places(text: str) -> None:
    """Parts were cut, doubled or put in; nothing else is raised."""
    read(text)


@fuzzed
@given(mutated_bytes((FULL, document({}), *RIGHT)))
def test_the_command_ends_with_a_documented_exit_code(content: bytes) -> None:
    """0 for a valid file, and 2 with the mistakes of another one, for people and for programs."""
    with tempfile.TemporaryDirectory() as folder, invoking() as run:
        file = Path(folder) / "alerts.toml"
        file.write_bytes(content)
        done = run("alerts", "check", "-f", str(file), "--test", "--json", REDMETER_URL="off")
        report = json.loads(done.out)
        assert done.code == (0 if report["valid"] else 2)
        assert "Traceback" not in done.err
        for mistake in report.get("mistakes", ())[:100]:
            assert f"{file}, line {mistake['line']}: " in done.err


ADDRESSES = ("a@b.c", "\u00d6 p s <o.p+s@example.com>", '"Ops, x" <ops@mail.example.com>', "a@::1")
URLS = ("https://example.com:8443/a%20b?c=[d]#e", "http://[::1]:80/", "HTTP://a_b.c-d./x")


@fuzzed
@given(mutated(ADDRESSES))
def test_an_accepted_mail_address_can_be_sent_to(address: str) -> None:
    """The standard library reads one address in it, the same, and without defects."""
    if is_mail_address(address) and address.isprintable():
        message = EmailMessage()
        message["To"] = address
        defects = message["To"].defects
        assert all(isinstance(each, ObsoleteHeaderDefect) for each in defects)  # as in J. Doe
        (one,) = message["To"].addresses
        assert one.addr_spec == address.rpartition("<")[2].removesuffix(">").strip()


@fuzzed
@given(mutated(URLS))
def test_an_accepted_url_can_be_sent_to(url: str) -> None:
    """The client makes a request and a connection for it, without an error."""
    if not url_mistake(url):
        request = urllib.request.Request(url)  # noqa: S310 - nothing is opened
        connection = http.client.HTTPConnection(request.host)
        assert connection.host.encode("idna")
        assert 0 < connection.port < 65536
        assert request.selector.isascii()


@fuzzed_slowly
@given(grown([each for each in PARTS if "." not in each]))
def test_a_file_takes_work_by_its_length(of_length: object) -> None:
    """However many mistakes it has; without dotted keys, which take tomllib longer."""

    def work(text: str) -> None:
        for each in (text, LIMIT + f"message = '{text.replace(chr(39), '')}'"):
            with contextlib.suppress(InvalidRules):
                parse_rules(each)

    assert_work_is_linear(work, of_length)  # type: ignore[arg-type]
