"""errors: groups of exceptions as a list, and one of them with its traceback."""

import json
from typing import Any

import pytest

from redmeter import Meter
from support.commands import is_clean, plain

Run = Any


def failing(meter: Meter, kind: type[Exception], text: str, route: str = "") -> None:
    """Record an exception that was raised."""
    try:
        raise kind(text)
    except kind as error:
        meter.record_exception(error, route=route)


@pytest.fixture
def filled(meter: Meter) -> Meter:
    """Two groups, one of them seen on a route; one message is hostile."""
    failing(meter, KeyError, "token=s3cr3t", "/buy")
    failing(meter, KeyError, "token=s3cr3t", "/buy")
    failing(meter, ValueError, "\x1b[31mred\nsecond line")
    return meter


def test_groups_are_listed_the_most_frequent_first(redmeter: Run, filled: Meter) -> None:
    """As columns, and as JSON with everything a program needs."""
    done = redmeter("exceptions")
    header, first, second = done.out.splitlines()
    assert header.split("\t")[:2] == ["ID", "COUNT"]
    assert first.split("\t")[1] == "2"
    assert "KeyError" in first
    assert "ValueError" in second
    assert "red ⏎ second line" in second
    found = json.loads(redmeter("exceptions", "--json").out)
    assert (found["count"], found["found"]) == (3, 2)
    assert found["groups"][0]["routes"][0]["name"] == "/buy"
    assert json.loads(redmeter("exceptions", "--route", "/buy", "--json").out)["count"] == 2
    assert "s3cr3t" not in done.out


def test_a_group_is_shown_by_the_beginning_of_its_id(redmeter: Run, filled: Meter) -> None:
    """With routes and the traceback of its newest exception."""
    group = filled.exceptions().groups[0].id
    done = redmeter("exceptions", group[:6])
    assert done.code == 0
    assert "2 exceptions in the window, 2 ever" in done.out
    assert "/buy\t2\t" in done.out
    assert done.out.rstrip().endswith("KeyError: 'token=***'")
    assert json.loads(redmeter("exceptions", group, "--json").out)["id"] == group


def test_on_a_terminal_it_fits_and_is_clean(screen: Run, filled: Meter) -> None:
    """Colors are the command's own; nothing of a message gets through."""
    assert is_clean(plain(screen("exceptions").out))
    assert is_clean(plain(screen("exceptions", filled.exceptions().groups[1].id).out))


def test_nothing_is_exit_code_0_and_no_such_group_1(redmeter: Run) -> None:
    """A pipeline can tell them apart from errors."""
    assert redmeter("exceptions").code == 0
    assert json.loads(redmeter("exceptions", "--json").out)["groups"] == []
    assert redmeter("exceptions", "abcdef").code == 1
    assert redmeter("exceptions", "0" * 16).code == 1
    for wrong in (("--order", "age"), ("--precision", "60"), ("--limit", "0")):
        assert redmeter("exceptions", *wrong).code == 2, wrong


def test_a_group_can_be_forgotten(redmeter: Run, filled: Meter) -> None:
    """By its ID; again, it is not there."""
    group = filled.exceptions().groups[0].id
    assert redmeter("clean", "--forget-exception", group).out == f"forgotten: {group}\n"
    assert redmeter("clean", "--forget-exception", group).code == 1
    assert redmeter("clean", "--forget-exception", group, "--daemon").code == 2
    assert filled.exceptions().found == 1
