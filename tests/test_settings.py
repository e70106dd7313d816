"""Settings: one table, one order of precedence, and refusals that name where a value came from."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import settings
from redmeter.errors import InvalidSetting
from redmeter.settings import SETTINGS, Setting, named_patterns, resolve
from redmeter.stored.keys import Retention

NUMBERS = [setting for setting in SETTINGS if setting.unit == "seconds"]


def name_of(setting: Setting) -> str:
    """Return a test's id."""
    return setting.name


@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_each_setting_is_described_and_its_default_can_be_given(setting: Setting) -> None:
    """A sentence of help, a variable of its own, and a default that its reader accepts."""
    assert setting.help.endswith(".")
    assert setting.variable == "REDMETER_" + setting.name.upper()
    assert setting.unit in ("", "seconds", "share", "bytes", "series", "label sets", "messages")
    assert (setting.unit in ("seconds", "share")) is isinstance(setting.default, float)
    assert setting.read(setting.default) == setting.default
    assert setting.read(str(setting.default)) == setting.default
    assert resolve(setting.name, environ={}) == setting.default


def test_each_name_stands_in_the_table_once() -> None:
    """Names and variables differ; a name that is not there is a mistake in our code."""
    assert len({setting.variable for setting in SETTINGS}) == len(SETTINGS)
    with pytest.raises(KeyError):
        resolve("no_such_setting")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("url", "redis://h", "redis://h"),
        ("url", "", ""),
        ("prefix", "a:", "a:"),
        ("prefix", "", ""),
        ("retention", "60=5, 1=10", Retention({1: 10, 60: 5})),
        ("histogram_retention", "60=5", Retention({60: 5})),
        ("timeout", "0.5", 0.5),
        ("timeout", "3", 3.0),
        ("embedded_idle", "1e6", 1e6),
    ],
)
def test_what_is_given_in_code_wins_over_the_environment(name: str, text: str, value: Any) -> None:
    """Then the environment wins over the default; an empty text is a value."""
    others = {"url": "off", "prefix": "z", "retention": "7=7", "histogram_retention": "7=7"}
    other = others.get(name, "7")
    variable = f"REDMETER_{name.upper()}"
    assert resolve(name, environ={variable: text}) == value
    assert resolve(name, text, environ={variable: other}) == value
    assert resolve(name, value, environ={variable: other}) == value
    assert type(resolve(name, text, environ={})) is type(value)


def test_the_environment_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at each time, not once on import."""
    for text in ("7", "8"):
        monkeypatch.setenv("REDMETER_TIMEOUT", text)
        assert resolve("timeout") == float(text)
    monkeypatch.delenv("REDMETER_TIMEOUT")
    assert resolve("timeout") == 2.0
    assert settings.SETTINGS[4].name == "timeout"


@pytest.mark.parametrize("setting", NUMBERS, ids=name_of)
@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "x",
            "two",
            "1,5",
            "0x10",
            "nan",
            "inf",
            "-inf",
            "-1",
            "0",
            "1e99",
            None,
            True,
            False,
        ),
        *(math.nan, math.inf, -math.inf, -1, 0, 10**400, 10**5000, 1j, [], {}, object()),
    ],
    ids=lambda value: repr(value)[:9] if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_number_of_seconds_in_range_is_refused(setting: Setting, value: Any) -> None:
    """With the range, and without the value at full length."""
    with pytest.raises(InvalidSetting, match="is not a number of seconds, ") as caught:
        setting.read(value)
    assert caught.value.setting == setting.name
    assert len(str(caught.value)) < 200


@given(st.sampled_from(SETTINGS), st.text(max_size=20))
def test_any_text_is_a_value_or_an_invalid_setting_that_names_the_variable(
    setting: Setting, text: str
) -> None:
    """Nothing else is raised, wherever the text came from."""
    try:
        value = resolve(setting.name, environ={setting.variable: text})
    except InvalidSetting as error:
        refusal = error
    else:
        assert type(value) is type(setting.default)
        return
    assert refusal.setting == setting.variable
    assert str(refusal).startswith(f"{setting.variable}: ")
    with pytest.raises(InvalidSetting) as caught:
        resolve(setting.name, text, environ={})
    assert (caught.value.setting, caught.value.reason) == (setting.name, refusal.reason)


@given(st.floats(0.01, 300.0) | st.integers(1, 300))
def test_a_number_in_range_is_taken_as_it_is(seconds: float) -> None:
    """From its text as well."""
    assert resolve("timeout", seconds) == seconds
    assert resolve("timeout", environ={"REDMETER_TIMEOUT": repr(seconds)}) == seconds


@pytest.mark.parametrize("value", [5, 1.5, True, [60], [(60, 5)], {60}, b"60=5"])
def test_a_retention_is_a_mapping_or_text(value: Any) -> None:
    """Anything else is refused as any wrong setting is, not by a stray error of Python's."""
    with pytest.raises(InvalidSetting, match="retention: a mapping or text, not"):
        resolve("retention", value)
    assert resolve("retention", {60: 5}) == {60: 5}
    kept = Retention({60: 5})
    assert resolve("retention", kept) is kept


@pytest.mark.parametrize("value", [5, b"redis://:secret@h", ["redis://:secret@h"]])
def test_a_url_is_text(value: Any) -> None:
    """What was given instead is not repeated, since it may hold a password."""
    with pytest.raises(InvalidSetting, match="url: text, not") as caught:
        resolve("url", value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "patterns"),
    [
        ("", ""),
        (" /a ,\n/b,,/c* ", "/a /b /c*"),
        (["/a", "/b?c"], "/a /b?c"),
        (("/a",), "/a"),
        ([], ""),
    ],
)
def test_patterns_are_text_or_a_list(value: Any, patterns: str) -> None:
    """However they are separated, they are stored in one form."""
    assert resolve("ignore_paths", value) == resolve("include_paths", value) == patterns


@pytest.mark.parametrize("value", [7, True, b"/a", {"/a"}, ["/a", 7], [""], ["/a b"], ["/a,b"]])
def test_what_is_no_pattern_is_refused(value: Any) -> None:
    """Within a list, a pattern with a space would be two."""
    with pytest.raises(InvalidSetting, match="ignore_paths: "):
        resolve("ignore_paths", value)


@pytest.mark.parametrize("value", ["/a*=as /b=bs", ["/a*=as", "/b=bs"], {"/a*": "as", "/b": "bs"}])
def test_patterns_with_a_counter_are_text_a_list_or_a_mapping(value: Any) -> None:
    """All of them mean the same."""
    assert resolve("count_paths", value) == "/a*=as /b=bs"


LABELLED = '/a=x{kind="y, z",shop="tea"} /b?c=d*=b'


@pytest.mark.parametrize(
    "value",
    [
        LABELLED,
        '/a=x{shop="tea", kind="y, z"},/b?c=d*=b',
        ['/a=x{shop="tea",kind="y, z"}', "/b?c=d*=b"],
        {"/a": 'x{shop="tea",kind="y, z"}', "/b?c=d*": "b"},
    ],
)
def test_a_counter_of_a_pattern_may_have_labels(value: Any) -> None:
    """What stands within them, equals signs and commas too, separates nothing."""
    assert resolve("count_paths", value) == LABELLED
    assert named_patterns(LABELLED) == [("/a", 'x{kind="y, z",shop="tea"}'), ("/b?c=d*", "b")]


REFUSED = ["/a", "=a", "/a=", "/a=x{", {"/a": "no name"}, {"": "a"}, 7, [7], {"/a b": "c"}]


@pytest.mark.parametrize("value", REFUSED)
def test_a_pattern_without_a_counter_is_refused(value: Any) -> None:
    """And so is a counter whose name is not allowed."""
    with pytest.raises(InvalidSetting, match="count_paths: "):
        resolve("count_paths", value)


@pytest.mark.parametrize(
    ("value", "on"),
    [(True, True), (False, False), ("on", True), ("NO", False), (" 1 ", True), (0, False)],
)
def test_a_switch_is_on_or_off(value: Any, on: bool) -> None:
    """In the words that people use."""
    assert resolve("exact_status", value) is on


@pytest.mark.parametrize("value", ["", "2", "maybe", 2, [], 0.5])
def test_what_is_neither_on_nor_off_is_refused(value: Any) -> None:
    """A typing error shall not switch anything."""
    with pytest.raises(InvalidSetting, match="neither on nor off"):
        resolve("exact_status", value)


@pytest.mark.parametrize("value", [0, 1.01, -0.1, "nan", "half", True, None, []])
def test_a_share_is_a_part_of_all(value: Any) -> None:
    """From 1 in 10,000 to all; nothing at all is no sample."""
    reader = next(setting for setting in SETTINGS if setting.name == "sample_durations").read
    assert (reader("0.25"), reader(1)) == (0.25, 1.0)
    with pytest.raises(InvalidSetting, match="is not a share"):
        reader(value)
