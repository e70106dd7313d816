"""Errors of the command: one style for people, one form for programs."""

import inspect
import json
import re
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from typer.models import OptionInfo

from redmeter import Meter
from redmeter.cli import failure
from redmeter.cli.app import COMMAND_LIST, app, load_command
from support.commands import Done

Run = Any


@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        (["nams"], "no such command 'nams'; did you mean 'names'?", "see redmeter --help"),
        (["demo", "-m", "x"], "--minutes: give a number", "see redmeter demo --help"),
        (["top", "-l", "1.5"], "--limit: give a whole number", "see redmeter top --help"),
        (["logs", "-l", "0"], "--limit: give 1 or more", "see redmeter logs --help"),
        (["up", "--port", "70000"], "--port: give 65535 or less", "see redmeter up --help"),
        (["series"], "missing argument 'name'", "see redmeter series --help"),
    ],
)
def test_wrong_usage_looks_like_every_other_error(
    redmeter: Run, words: list[str], message: str, fix: str
) -> None:
    """One line, with the command whose help says more; with --json an object as well."""
    joined = f"{message} {fix.capitalize()}" if message.endswith("?") else f"{message}; {fix}"
    assert redmeter(*words) == Done(2, "", f"error: {joined}\n")
    done = redmeter(*words, "--json")
    if "no such option" not in done.err:  # demo and up have no --json
        assert json.loads(done.out) == {"error": {"code": "usage", "message": message, "fix": fix}}
        assert done.err == f"error: {joined}\n"


def test_an_option_without_its_value_points_at_the_help_of_its_command(redmeter: Run) -> None:
    """The parser finds it, before the command itself has begun."""
    for word in ("-p", "--failing"):
        text = f"option '{word}' requires an argument; see redmeter top --help"
        assert redmeter("top", word) == Done(2, "", f"error: {text}\n")


def options() -> Iterator[tuple[str, set[Any], str]]:
    """Yield command, types and name of all options."""
    for name in COMMAND_LIST:
        load_command(name)
    for command in app.registered_commands:
        assert command.callback
        for parameter in inspect.signature(command.callback, eval_str=True).parameters.values():
            kind, info = typing.get_args(parameter.annotation)
            if isinstance(info, OptionInfo):
                named = map(str, (info.default, *(info.param_decls or ())))
                name = next(n for n in named if n[:2] == "--")
                yield command.name or "", {kind, *typing.get_args(kind)}, name


def test_no_words_of_a_library_reach_the_user(redmeter: Run) -> None:
    """Whichever option is not a number."""
    numbers = [(command, option) for command, kinds, option in options() if {int, float} & kinds]
    assert len(numbers) >= 10
    for command, option in numbers:
        for text in ("x", "1x"):
            done = redmeter(command, f"{option}={text}")
            assert done.code == 2, (command, option)
            assert re.match("error: (missing argument|--[a-z-]+: give a )", done.err)
            assert len(done.err.splitlines()) == 1


def test_a_duration_that_cannot_be_read_is_named_by_its_option(redmeter: Run) -> None:
    """Whichever command has it."""
    durations = {"--precision", "--last", "--interval", "--for", "--step"}
    named = [(command, option) for command, _, option in options() if option in durations]
    assert len(named) >= 15
    for command, option in named:
        words = [] if command in ("alerts", "verdict") else ["hits"]
        done = redmeter(
            command, *words, *(["--last", "1h"] if option == "--step" else []), option, "5x"
        )
        assert (done.code, done.err.partition(": '")[0]) == (2, f"error: {option}"), command


@pytest.mark.parametrize(
    ("words", "code", "error", "others"),
    [
        (["series", "hist"], 1, "not-found", {"series"}),
        (["names", "zz"], 1, "not-found", {"names", "missing"}),
        (["mark", "--remove", "v1"], 1, "not-found", set()),
        (["series", "hits", "-p", "7"], 2, "unknown-precision", set()),
        (["top", "hits", "--limit", "1001"], 2, "too-many", set()),
        (["names", "--kind", "x"], 2, "bad-parameter", set()),
        (["replay", "nowhere.log"], 2, "bad-parameter", set()),
        (["names", "--url", "redis://127.0.0.1:1"], 3, "store-unavailable", set()),
        (["retention", "x=1"], 2, "bad-parameter", set()),
    ],
)
def test_a_failure_is_a_field_of_the_object(
    redmeter: Run, meter: Meter, words: list[str], code: int, error: str, others: set[str]
) -> None:
    """Beside the result, if there is one; people read the same on standard error."""
    meter.count("hits")
    done = redmeter(*words, "--json")
    found = json.loads(done.out)
    assert (done.code, set(found)) == (code, others | {"error"})
    assert set(found["error"]) == {"code", "message", "fix"}
    assert found["error"]["code"] == error
    assert done.err.startswith(f"error: {found['error']['message']}")
    assert error in failure.MEANINGS
    plain = redmeter(*words)
    assert (plain.code, plain.out, plain.err) == (code, "", done.err)


def test_json_after_two_dashes_is_an_argument(redmeter: Run) -> None:
    """Not an option, so the output stays for people."""
    done = redmeter("series", "--", "--json")
    assert (done.code, done.out) == (1, "")


@pytest.mark.parametrize(
    "words",
    [
        ["names"],
        ["series", "hits"],
        ["top"],
        ["summary", "took"],
        ["forecast", "hits", "-p", "5"],
        ["logs"],
        ["mark", "v2"],
        ["mark", "--list"],
        ["clean"],
        ["retention"],
        ["doctor"],
    ],
)
def test_every_result_is_an_object(redmeter: Run, meter: Meter, words: list[str]) -> None:
    """With fields that have names, and no error."""
    meter.count("hits")
    meter.observe("took", 1.0)
    meter.mark("v1")
    found = json.loads(redmeter(*words, "--json").out)
    assert isinstance(found, dict)
    assert words[0] == "forecast" or "error" not in found


def test_every_code_has_a_meaning() -> None:
    """Which the docs list."""
    used = {*failure._KINDS.values(), *failure._CODES.values(), "usage"}
    assert used == set(failure.MEANINGS)
