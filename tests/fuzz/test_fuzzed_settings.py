"""Fuzz: settings of the environment, URLs, users, and what the command line reads.

Next to tests/test_settings.py and tests/store/servers/test_urls.py, which try any text.
"""

import contextlib
import traceback

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redmeter.cli import selectors
from redmeter.cli.app import precision_seconds
from redmeter.dashboard.access import read_users
from redmeter.errors import InvalidSetting
from redmeter.settings import SETTINGS, named_patterns, resolve, variable_of
from redmeter.store.embedded import supervisor
from redmeter.store.servers import urls
from support.fuzzing import HOSTILE, assert_work_is_linear, fuzzed, fuzzed_slowly, grown, mutated

#: What is in each of them for a password.
SECRET = "hunter2hunter2"
URLS = (
    f"redis://ada:{SECRET}@db.example:6379/3?socket_timeout=1",
    f"rediss://:{SECRET}@[::1]:6380/0?ssl_cert_reqs=none&ssl_ca_certs=/a/b.pem",
    f"unix://ada:{SECRET}@/run/redis.sock?db=2",
    f"unix:///run/redis.sock?password={SECRET}",
    f"redis+cluster://ada:{SECRET}@a:6379,b:6380",
    f"redis+sentinel://ada:{SECRET}@a:26379,b/main/0?sentinel_password={SECRET}",
    *("off", "", "embedded:///tmp/x", "embedded://~nobody/x", "redis://h"),
)
VALUES = (
    *("1", "0.5", "on", "OFF", "-1", "1e3", "1=120 60=120", "redmeter:", "/shop/* /api/*"),
    *("/buy=sales", '/p/*=x{a="1, 2",b="}"} /q=y', '{"a', "{}{}{}"),
)


@fuzzed
@given(st.sampled_from([setting.name for setting in SETTINGS]), mutated((*VALUES, *URLS)))
def test_a_setting_of_the_environment_has_a_value_or_is_named(name: str, text: str) -> None:
    """Nothing else is raised, and what was read can be read again."""
    variable = variable_of(name)
    named, value = "", None
    try:
        value = resolve(name, environ={variable: text})
    except InvalidSetting as error:
        named = error.setting
    if value is None:
        assert named == variable
        return
    assert resolve(name, value) == value
    if name == "count_paths":
        assert len(named_patterns(value)) == len(named_patterns(value + " /x=y")) - 1


@fuzzed
@given(mutated(URLS))
@example("embedded:///tmp/x/ada:hunter2hunter2@db.example:6379/3")
def test_a_url_is_a_place_or_refused_and_shows_no_password(url: str) -> None:
    """Nor does a traceback, however damaged the URL is. A path of an embedded server has none."""
    try:
        target = urls.parse_target(url)
        if target.kind == "embedded":
            return
        shown = repr(target) + target.location
    except InvalidSetting as error:
        shown = "".join(traceback.format_exception(error)).partition("Error")[2] + repr(error)
    before, whole, _ = url.partition(SECRET)
    if whole and before.endswith((":", "=")) and "@" not in before:
        assert SECRET not in shown.replace(ascii(url), "").replace(url, "")


@fuzzed
@given(mutated(("ada:longenough\nbob:longenough2\n", "ada:short", ":nobody-1234")))
def test_users_are_names_and_passwords_or_refused(text: str) -> None:
    """And the refusal names the line, not what is in it."""
    said, users = "", {}
    try:
        users = read_users(text, "file")
    except InvalidSetting as error:
        said = str(error)
    assert bool(said) is not bool(users)
    assert "longenough" not in said
    assert all(name and len(password) >= 8 for name, password in users.items())


@fuzzed
@given(mutated(("2h", "1700000000.5", "2026-11-21T15:30", "2026-11-21T15:30+02:00", "5 min", "1d")))
def test_what_the_command_line_says_of_times_is_read_or_refused(text: str) -> None:
    """Widths and moments."""
    with contextlib.suppress(InvalidSetting):
        assert 0 <= precision_seconds(text) < 10**14
    with contextlib.suppress(InvalidSetting):
        found = selectors.time_option("--since", text, 1_700_000_000.0)
        assert found is not None
        assert abs(found) <= 2**40 or found < 10**12


@fuzzed
@given(
    mutated(("valkey 9.1.2", "redis 7.2.0", "", "valkey", "redis 7..4")), mutated(("redis 6.2",))
)
def test_any_two_versions_can_be_compared(one: str, other: str) -> None:
    """What lies next to the data may be anything."""
    assert supervisor.opens(one, other) in (True, False)
    assert supervisor.opens(one, one)


def test_braces_without_end_are_refused_at_once() -> None:
    """An expression that takes them apart again does so in 2^40 ways; so are too many of them."""
    with pytest.raises(InvalidSetting):
        resolve("count_paths", ["/a=x" + "{}" * 40 + " {}"])
    with pytest.raises(InvalidSetting, match="at most 20,000"):
        resolve("count_paths", '{"a' * 7_000)


@fuzzed_slowly
@given(grown((*URLS, *VALUES, *HOSTILE, "a", '{"\\"', "://", "@", "?a=b&")))
def test_settings_take_work_by_their_length(of_length: object) -> None:
    """Whatever is repeated in them."""

    def work(text: str) -> None:
        for setting in SETTINGS:
            with contextlib.suppress(InvalidSetting):
                resolve(setting.name, environ={setting.variable: text})
        with contextlib.suppress(InvalidSetting):
            urls.parse_target("redis://" + text)
        with contextlib.suppress(InvalidSetting):
            read_users(text, "file")
        with contextlib.suppress(InvalidSetting):
            precision_seconds(text)

    assert_work_is_linear(work, of_length)  # type: ignore[arg-type]
