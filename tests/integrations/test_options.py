"""The options of web integrations: where they come from, and what is no option."""

import ast
import inspect
import logging
from dataclasses import fields
from itertools import pairwise
from typing import Any

import pytest

from redmeter import settings
from redmeter.integrations.shared.meters import METER_SETTINGS
from redmeter.integrations.shared.options import Arguments, Options


def test_options_are_named_as_settings_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code wins over the framework's settings, those over the environment, that over defaults."""
    monkeypatch.setenv("REDMETER_IGNORE_PATHS", "/e")
    monkeypatch.setenv("REDMETER_EXACT_STATUS", "yes")
    monkeypatch.setenv("REDMETER_SLOW_REQUEST", "3")
    framework = {"REDMETER_IGNORE_PATHS": ["/f", "/g"], "REDMETER_EXACT_STATUS": False}
    found = Options.of({"slow_request": 5, "ignore_paths": None}, framework)
    assert (found.slow_request, found.ignore_paths, found.exact_status) == (5.0, "/f /g", False)
    found = Options.of({})
    assert (found.slow_request, found.ignore_paths, found.exact_status) == (3.0, "/e", True)
    assert found.sample_durations == 1.0


def test_integrations_take_all_settings_by_their_names() -> None:
    """What Arguments lists, for checkers of types, is what there is."""
    functions = {"labels", "route"}
    assert Arguments.__annotations__.keys() == {*METER_SETTINGS, *settings.WEB, *functions}
    assert {each.name for each in fields(Options)} == {*settings.WEB, *functions}
    known = {*METER_SETTINGS, *settings.WEB, *settings.ENVIRONMENT}
    assert {each.name for each in settings.SETTINGS} == known


def test_each_argument_has_a_text_where_editors_look_for_it() -> None:
    """A docstring below it."""
    (arguments,) = ast.parse(inspect.getsource(Arguments)).body
    assert isinstance(arguments, ast.ClassDef)
    texts = {
        ast.unparse(each.target): ast.literal_eval(below.value)
        for each, below in pairwise(arguments.body)
        if isinstance(each, ast.AnnAssign) and isinstance(below, ast.Expr)
    }
    assert texts.keys() == Arguments.__annotations__.keys()
    assert [name for name, text in texts.items() if not text.endswith(".")] == []


def test_a_setting_that_cannot_be_used_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With an error in the log that names where it came from; the next source holds."""
    monkeypatch.setenv("REDMETER_SLOW_REQUEST", "soon")
    framework = {"REDMETER_SLOW_REQUEST": [], "REDMETER_COUNT_PATHS": "/a=a"}
    found = Options.of({"slow_request": -1, "count_paths": "/a"}, framework)
    assert (found.slow_request, found.count_paths) == (1.0, "/a=a")
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 4
    assert "REDMETER_SLOW_REQUEST: 'soon'" in caplog.text


@pytest.mark.parametrize("given", [{"slow": 1}, {"labels": "plan"}, {"route": 7}])
def test_an_option_that_does_not_exist_is_a_mistake_in_code(given: dict[str, Any]) -> None:
    """As any wrong argument is."""
    with pytest.raises(TypeError):
        Options.of(given)
