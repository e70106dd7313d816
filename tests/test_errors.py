"""Errors: one tree, drawn as it is; each carries its data; none carries a password."""

import ast
import copy
import inspect
import pickle
import re
import socket
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import redmeter
from redmeter import errors
from redmeter.clock import ManualClock
from redmeter.errors import (
    AccessDenied,
    ClockDisagreement,
    EmbeddedServerError,
    IncompatibleStore,
    InvalidName,
    InvalidSetting,
    InvalidValue,
    LimitExceeded,
    MissingExtra,
    QueryError,
    RedmeterError,
    StoreError,
    StoreMoving,
    StoreRefused,
    StoreUnavailable,
    Unconfirmed,
    UnknownLabel,
    UnknownPrecision,
    WrongKind,
    shown,
)
from redmeter.store.shard import RetentionChanged
from support.examples import scaled

SRC = Path(errors.__file__).parent

#: One of each, and what of it must be an attribute.
SAMPLES: list[tuple[RedmeterError, dict[str, object]]] = [
    (InvalidName("a\n", "why"), {"name": r"'a\n'", "reason": "why"}),
    (InvalidValue(-1, "why"), {"value": -1, "reason": "why"}),
    (InvalidSetting("url", "why"), {"setting": "url", "reason": "why"}),
    (UnknownPrecision(7, [1, 60]), {"precision": 7, "kept": (1, 60)}),
    (UnknownPrecision(1, [5], of="histograms"), {"of": "histograms", "kept": (5,)}),
    (
        UnknownLabel("x", "rout", ["route"]),
        {"name": "x", "label": "rout", "labels": ("route",), "fix": "labels: route"},
    ),
    (WrongKind("x", "gauge", "use y()"), {"name": "x", "kind": "gauge", "fix": "use y()"}),
    (LimitExceeded("rows", 5000, 1000, "ask for fewer"), {"asked": 5000, "limit": 1000}),
    (MissingExtra("the page", "rich", "pip"), {"package": "rich", "fix": "pip"}),
    (QueryError("no such function"), {"kind": "execution"}),
    (ClockDisagreement(7200.0, 3600.0), {"difference": 7200.0, "allowed": 3600.0}),
    (StoreUnavailable("unix:///s", "refused", sent=True), {"location": "unix:///s", "sent": True}),
    (StoreRefused("OOM", "no memory"), {"code": "OOM", "detail": "no memory"}),
    (StoreMoving("frozen"), {"state": "frozen", "code": "frozen"}),
    (Unconfirmed("h:1", "disk", "slow", 2), {"durability": "disk", "batches": 2, "sent": True}),
    (AccessDenied("NOPERM", "no"), {"code": "NOPERM", "detail": "no"}),
    (IncompatibleStore("format version", "2", "1"), {"found": "2", "supported": "1"}),
    (EmbeddedServerError(Path("/data"), "why"), {"path": "/data", "reason": "why"}),
    (RetentionChanged("ERR", "changed"), {"code": "ERR"}),
]  # fmt: skip


def drawn() -> Iterator[tuple[str, str | None, bool]]:
    """Yield (class, parent, whether it is a ValueError too) from the tree in the docstring."""
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    ([│ ├└─]*)([A-Z]\w+)(\s+\(ValueError\))?(\s{2,}\S.*)?$", line)
        if found:
            depth = len(found[1]) // 4
            yield found[2], above[depth - 1] if depth else None, bool(found[3])
            above[depth:] = [found[2]]


def defined() -> dict[str, type[BaseException]]:
    """Return the exception classes of errors.py."""
    return {
        name: thing
        for name, thing in inspect.getmembers(errors, inspect.isclass)
        if issubclass(thing, BaseException)
    }


def test_the_tree_is_drawn_as_it_is() -> None:
    """Every class once, below its parent, marked where it is a ValueError as well."""
    tree = list(drawn())
    assert sorted(name for name, _, _ in tree) == sorted(defined())
    for name, parent, is_value_error in tree:
        kind = defined()[name]
        assert kind.__bases__[0].__name__ == (parent or "Exception")
        assert issubclass(kind, ValueError) is is_value_error
        assert issubclass(kind, RedmeterError)


def test_every_error_can_be_caught_by_the_name_that_the_package_gives_it() -> None:
    """`from redmeter import …` has them all."""
    assert defined().keys() <= set(redmeter.__all__)
    for name, kind in defined().items():
        assert getattr(redmeter, name) is kind


def test_errors_defined_elsewhere_are_of_the_tree_or_told_beside_it() -> None:
    """A class right below the root is named in the docstring, wherever it lies."""
    elsewhere = {
        node.name: [ast.unparse(base) for base in node.bases]
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and path.name != "errors.py"
    }
    below = {name for name, bases in elsewhere.items() if "RedmeterError" in bases}
    told = set(re.findall(r"\w+", errors.__doc__ or ""))
    assert below <= told
    assert below  # or the search finds nothing any more


def test_there_is_a_sample_of_each_error() -> None:
    """For the tests below; the two that are never raised themselves aside."""
    kinds = {type(error) for error, _ in SAMPLES} - {RetentionChanged}
    assert kinds == set(defined().values()) - {RedmeterError, StoreError}


@pytest.mark.parametrize(("error", "data"), SAMPLES, ids=lambda value: type(value).__name__)
def test_an_error_carries_its_data_and_says_it(
    error: RedmeterError, data: dict[str, object]
) -> None:
    """As attributes, and within one line of text."""
    for name, value in data.items():
        assert getattr(error, name) == value
    assert str(error).count(" ") >= 1
    assert "\n" not in str(error)


@pytest.mark.parametrize(("error", "data"), SAMPLES, ids=lambda value: type(value).__name__)
def test_an_error_survives_the_way_between_processes(
    error: RedmeterError, data: dict[str, object]
) -> None:
    """Pools of worker processes pickle what a task raises; some hang if that fails."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        other = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301
        assert type(other) is type(error)
        assert (str(other), vars(other)) == (str(error), vars(error))
    assert str(copy.copy(error)) == str(error)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreRefused("OOM", "x"), "raise maxmemory"),
        (StoreRefused("TRYAGAIN", "x"), "try again when that is finished"),
        (StoreRefused("READONLY", "x"), "connect to the primary"),
        (StoreRefused("ERR", "x"), "the server refused: x"),
        (AccessDenied("NOPERM", "x"), "ACL SETUSER grants it"),
        (AccessDenied("WRONGPASS", "x"), "user and password in the URL"),
        (AccessDenied("NOAUTH", "x"), "user and password in the URL"),
        (LimitExceeded("rows", 12345, 1000, "fix"), "12,345 rows asked for, at most 1,000"),
        (LimitExceeded("rows", -1, 1000, "fix"), "-1 rows asked for"),
        (ClockDisagreement(-7200.4, 3600), "-7200 s off"),
        (StoreUnavailable("h", "refused."), "no answer from h: refused. Is the server running"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_says_what_mends_it(error: RedmeterError, told: str) -> None:
    """Or at least what is allowed."""
    assert told in str(error)


@example("x" * 5000)
@example(b"x" * 5000)
@example(["x"] * 5000)
@given(st.text(max_size=500) | st.binary(max_size=500) | st.integers() | st.lists(st.floats()))
def test_a_message_is_cut_to_size_whatever_it_is_about(thing: object) -> None:
    """What was given is shown in part; the rest of the message stays readable."""
    for error in (
        InvalidName(thing, "why"),
        InvalidValue(thing, "why"),
        UnknownPrecision(thing, [1]),
        IncompatibleStore("format", thing, "1"),
    ):
        assert len(str(error)) < 300
        assert "why" in str(error) or "kept" in str(error) or "works with" in str(error)


def test_a_number_too_long_to_write_out_is_still_reported() -> None:
    """Python refuses to write whole numbers of over 4,300 digits; that must not hide the error."""
    huge = 10**5000
    assert shown(huge) == "<int of too many digits>"
    assert shown("a" * 100, 10) == "'aaaaaaaaa"
    errors_with_it: list[Exception] = [
        InvalidName(huge, "why"),
        InvalidValue(huge, "why"),
        UnknownPrecision(huge, [1]),
        LimitExceeded("rows", huge, 10, "why"),
        IncompatibleStore("format", huge, "1"),
    ]
    for error in errors_with_it:
        assert "<int of too many digits>" in str(error)


@settings(max_examples=scaled(25))
@given(st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF), min_size=4, max_size=12))
def test_no_message_and_no_traceback_holds_a_password(secret: str) -> None:
    """Neither of a meter, nor of what goes wrong with its store, nor of what caused that."""
    secret += "§pw"  # no part of a message by accident
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # does not listen: refuses
        port = nobody.getsockname()[1]
        url = f"redis://user:{quote(secret, safe='')}@127.0.0.1:{port}/3"
        with redmeter.Meter(url, timeout=0.5, sync=True, clock=ManualClock()) as meter:
            texts = [repr(meter), repr(meter._store)]
            for use in (lambda: meter.count("hits"), lambda: meter.total("hits")):
                with pytest.raises(StoreUnavailable) as caught:
                    use()
                assert not caught.value.sent
                texts += [str(caught.value), repr(caught.value), repr(vars(caught.value))]
                texts += traceback.format_exception(caught.value)
    for text in texts:
        assert secret not in text
        assert quote(secret, safe="") not in text
    assert f"127.0.0.1:{port}/3" in texts[0]
