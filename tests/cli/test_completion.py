"""Completion in a shell, by the protocol between Typer's scripts and the command."""

import socket
from typing import Any

import pytest

from redmeter import Meter
from support.commands import Done, Home
from support.servers import Server, free_port

Run = Any

#: The name of the program, of which the variable's name is made.
NAMED = "import sys; sys.argv[0] = 'redmeter'"


@pytest.fixture
def filled(meter: Meter) -> Meter:
    """A store with series of each kind and marks."""
    meter.count("orders", labels={"plan": "pro", "shop": "north"})
    meter.count("orders", labels={"plan": "free"})
    meter.gauge("open_orders").set(3)
    meter.observe("order_seconds", 0.2, labels={"queue": "a b"})
    meter.count("$(reboot)")
    meter.mark("v1.4.1")
    meter.mark("v1.4.2")
    return meter


def complete(redmeter: Run, line: str, **env: str) -> list[str]:
    """Return what a shell is offered for a line's last word, which may be empty."""
    words = line.split(" ")
    done = redmeter(
        COMP_WORDS=line,
        COMP_CWORD=str(len(words) - 1),
        _REDMETER_COMPLETE="complete_bash",
        **env,
    )
    assert (done.code, done.err) == (0, "")
    return [line for line in str(done.out).splitlines() if line]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("series o", {"orders", "open_orders", "order_seconds"}),
        ("series orders open", {"open_orders"}),
        ("summary order_", {"order_seconds"}),
        ("explain ord", {"orders", "order_seconds"}),
        ("forecast op", {"open_orders"}),
        ("top ord", {"orders", "order_seconds"}),
        ("names op", {"open_orders"}),
        ("export op", {"open_orders"}),
        ("count ord", {"orders", "order_seconds"}),
        ("set op", {"open_orders"}),
        ("observe order_s", {"order_seconds"}),
        ("series orders --by ", {"plan", "shop"}),
        ("top orders --by p", {"plan"}),
        ("series orders --label ", {"plan=pro", "plan=free", "shop=north"}),
        ("series --label plan=f orders --label plan=p", {"plan=pro"}),
        ("count orders --label s", {"shop=north"}),
        ("verdict ", {"v1.4.1", "v1.4.2"}),
        ("mark v1.4.2", {"v1.4.2"}),
        ("na", {"names"}),
        ("names --by", {"--by-size"}),
    ],
)
def test_names_labels_and_marks_are_offered(
    redmeter: Run, filled: Meter, line: str, offered: set[str]
) -> None:
    """Those of the store that begin with what is typed."""
    assert filled.total("orders") == 2
    found = complete(redmeter, f"redmeter {line}")
    assert set(found) == offered
    assert len(found) == len(offered)


def test_commands_are_offered_without_loading_them(redmeter: Run) -> None:
    """All that begin with what is typed."""
    assert complete(redmeter, "redmeter s") == ["stop", "set", "status", "series", "summary"]


@pytest.mark.usefixtures("filled")
def test_a_text_that_a_shell_would_run_is_not_offered(redmeter: Run) -> None:
    """Whoever writes to the store chooses names."""
    assert "$(reboot)" in redmeter("names").out
    assert complete(redmeter, "redmeter series ") != []
    assert complete(redmeter, "redmeter series $") == []
    assert complete(redmeter, "redmeter summary order_seconds --label ") == []


@pytest.mark.usefixtures("filled")
def test_the_store_of_the_command_line_is_asked(redmeter: Run, server: Server) -> None:
    """Of its options, or else of the environment."""
    nowhere = f"redis://127.0.0.1:{free_port()}"
    line = f"redmeter series --url {server.url} op"
    assert complete(redmeter, line, REDMETER_URL=nowhere) == ["open_orders"]
    assert complete(redmeter, "redmeter series --prefix other: op") == []


@pytest.mark.parametrize("url", ["", "redis://127.0.0.1:1", "nonsense", "off", "embedded://data"])
def test_without_a_store_nothing_is_offered_and_nothing_said(home: Home, url: str) -> None:
    """No error among the words that are typed; and an embedded server is not started."""
    env = {"COMP_WORDS": "redmeter series o", "COMP_CWORD": "2"}
    env |= {"_REDMETER_COMPLETE": "complete_bash", "REDMETER_URL": url}
    done = home.start(code=NAMED, **env).finish()
    assert (done.code, done.out.strip(), done.err) == (0, "", "")
    assert not (home.work / "data").exists()


def test_a_server_that_does_not_answer_is_not_waited_for(home: Home) -> None:
    """The command ends although it is still being asked."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        env = {"COMP_WORDS": "redmeter series o", "COMP_CWORD": "2"}
        env |= {"_REDMETER_COMPLETE": "complete_bash", "REDMETER_URL": url}
        done = home.start(code=NAMED, **env).finish()
        assert done == Done(0, "\n", "")
        silent.accept()[0].close()  # it was asked
