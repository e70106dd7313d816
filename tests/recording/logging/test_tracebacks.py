"""What an exception adds to a message: the place in the application, frames, causes, members."""

import asyncio
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import django  # type: ignore[import-untyped]
import pytest
import sqlalchemy as sa
import structlog
from django.db import (  # type: ignore[import-untyped]
    IntegrityError,
    connection,
    connections,
    models,
)
from django.db.backends.base.base import (  # type: ignore[import-untyped]
    BaseDatabaseWrapper,
)

from redmeter.recording.logging.coalesce import LONGEST
from redmeter.recording.logging.tracebacks import (
    MAX_ERRORS,
    MAX_FRAMES,
    MAX_MEMBERS,
    describe_error,
    describe_parsed_error,
    in_library,
    origin_of,
    place_of,
)
from redmeter.testing import MemoryMeter
from support import django_project  # noqa: F401 - its settings
from support.messages import failing

django.setup()
HERE = Path(__file__).name


def raised(call: Callable[[], Any]) -> BaseException:
    """Return what a call raises."""
    try:
        call()
    except BaseException as error:  # noqa: BLE001
        return error
    raise AssertionError("nothing was raised")


def renderings(error: BaseException) -> list[tuple[str, str]]:
    """Return what is added of an error itself, and of what logging libraries make of it."""
    text = "".join(traceback.format_exception(error))
    transformed = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)(
        (type(error), error, error.__traceback__)
    )
    data = describe_parsed_error(transformed)
    assert data is not None
    return [describe_error(error), data, (place_of(text), text)]


def inserting() -> None:
    """Break a unique key, by SQLAlchemy."""
    engine = sa.create_engine("sqlite://")
    orders = sa.Table("orders", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
    try:
        with engine.begin() as conn:
            orders.create(conn)
            for _ in range(2):
                conn.execute(orders.insert().values(id=1))
    finally:
        engine.dispose()


class Plate(models.Model):  # type: ignore[misc]
    """A row."""

    number = models.IntegerField(unique=True)

    class Meta:
        """Where it belongs."""

        app_label = "shop"


def saving() -> None:
    """Break a unique key, by Django."""
    try:
        with connection.schema_editor() as editor:
            editor.create_model(Plate)
        for _ in range(2):
            Plate.objects.create(number=7)
    finally:
        BaseDatabaseWrapper.close(connections["default"])  # its own close() spares those in memory


def decoding() -> None:
    """Read what is no JSON."""
    json.loads("{")


@pytest.mark.parametrize(
    ("call", "kind"),
    [(inserting, "IntegrityError"), (saving, "IntegrityError"), (decoding, "JSONDecodeError")],
)
def test_the_place_of_an_error_that_a_library_raised_is_in_the_application(
    call: Callable[[], Any], kind: str
) -> None:
    """The innermost frame outside of the libraries, however the error was rendered."""
    for place, text in renderings(raised(call)):
        assert place.startswith(f"[{kind} at {HERE}:")
        assert place.endswith(f" in {call.__name__}]")
        assert f"{kind}: " in text


def test_the_text_shows_the_application_and_where_it_was_raised() -> None:
    """The frames of libraries between both are counted."""
    _, text = describe_error(raised(inserting))
    lines = text.splitlines()
    assert f"{HERE}:" in lines[0]
    assert lines[0].endswith(" in raised")
    assert lines[1] == "    call()"
    assert f"{HERE}:" in lines[2]
    assert lines[2].endswith(" in inserting")
    assert lines[3] == "    conn.execute(orders.insert().values(id=1))"
    assert lines[4].startswith("  (sqlalchemy: ")
    assert " frames, the last: sqlalchemy/engine/default.py:" in lines[4]
    assert lines[5].startswith("IntegrityError: (sqlite3.IntegrityError) UNIQUE constraint failed")
    cause = lines.index("caused by:")
    assert "the last: sqlalchemy/engine/default.py:" in lines[cause + 1]
    assert lines[-1] == "IntegrityError: UNIQUE constraint failed: orders.id"


def test_an_error_of_django_names_the_line_that_saved() -> None:
    """It is an IntegrityError of Django, caused by that of the driver."""
    error = raised(saving)
    assert type(error) is IntegrityError
    place, text = describe_error(error)
    line = saving.__code__.co_firstlineno + 6
    assert place == f"[IntegrityError at {HERE}:{line} in saving]"
    assert "\ncaused by:\n" in text


def test_where_all_frames_are_of_libraries_the_place_is_the_innermost() -> None:
    """As in an application that is itself installed into site-packages."""
    error = raised(decoding)
    frames = error.__traceback__
    while frames is not None and not in_library(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    place, text = describe_error(error.with_traceback(frames))
    assert place.startswith("[JSONDecodeError at decoder.py:")
    assert text.splitlines()[0].startswith("  (json: 3 frames, the last: json/decoder.py:")


def test_a_place_is_that_of_the_cause_where_only_libraries_raised() -> None:
    """As where a framework raises because of an exception that came too late."""
    error = json.JSONDecodeError("too late", "", 0)
    error.__cause__ = raised(chained)
    place, text = describe_error(error)
    assert place == describe_error(error.__cause__)[0].replace("ValueError", "JSONDecodeError")
    assert text.startswith("JSONDecodeError: too late")
    assert origin_of(error).function == origin_of(error.__cause__).function
    error.__cause__.__cause__ = error
    assert describe_error(error.with_traceback(None))[0] == place


def chained() -> None:
    """Raise from an error that was raised while another one was handled."""
    try:
        try:
            failing_at("first")
        except KeyError:
            failing_at("second")
    except KeyError as error:
        raise ValueError("third") from error


def failing_at(what: str) -> None:
    """Raise."""
    raise KeyError(what)


def test_causes_and_what_was_being_handled_are_told() -> None:
    """Behind the error itself, the newest first, in one error or many."""
    error = raised(chained)
    for place, text in renderings(error)[:2]:
        assert place.endswith(" in chained]")
        said = [line for line in text.splitlines() if not line.startswith(("  ", "… ("))]
        assert said == [
            "ValueError: third",
            "caused by:",
            "KeyError: 'second'",
            "while handling:",
            "KeyError: 'first'",
        ]
    assert renderings(error)[2][0].endswith(" in chained]")


def test_what_was_being_handled_is_left_out_where_it_is_suppressed() -> None:
    """raise … from None."""

    def quiet() -> None:
        try:
            failing_at("first")
        except KeyError:
            raise ValueError("second") from None

    assert "first" not in describe_error(raised(quiet))[1]


def test_the_members_of_a_group_are_told() -> None:
    """Each with the frames that it came by, and its cause."""

    async def task(number: int) -> None:
        try:
            failing_at(f"task {number}")
        except KeyError as error:
            raise ValueError(number) from error

    async def grouping() -> None:
        async with asyncio.TaskGroup() as group:
            for number in (1, 2):
                group.create_task(task(number))

    error = raised(lambda: asyncio.run(grouping()))
    for place, text in (renderings(error)[0], renderings(error)[2]):
        assert place.startswith(f"[ExceptionGroup at {HERE}:")
        assert place.endswith(" in grouping]")
        assert "KeyError: 'task 2'" in text
    said = [
        line for line in describe_error(error)[1].splitlines() if not line.startswith(("  ", "… ("))
    ]
    assert said == [
        "ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)",
        *("member 1 of 2:", "ValueError: 1", "caused by:", "KeyError: 'task 1'"),
        *("member 2 of 2:", "ValueError: 2", "caused by:", "KeyError: 'task 2'"),
    ]


def test_a_circle_of_causes_is_told_once() -> None:
    """Each error of it."""
    first, second = failing(ValueError("error 1")), failing(ValueError("error 2"))
    first.__cause__, second.__cause__ = second, first
    _, text = describe_error(first)
    assert [text.count("error 1"), text.count("error 2")] == [1, 1]


def test_huge_groups_and_chains_are_cut() -> None:
    """Whatever there is, so many errors are told, and frames of each."""
    group: Exception = ExceptionGroup("many", [ValueError(n) for n in range(10_000)])
    _, text = describe_error(group)
    assert text.count("ValueError: ") == MAX_MEMBERS
    assert "member 1 of 10000:" in text

    error: BaseException = ValueError("innermost")
    for n in range(10_000):
        above = ValueError(n)
        above.__context__ = error
        error = above
    _, text = describe_error(error)
    assert text.count("ValueError: ") == MAX_ERRORS
    assert text.endswith("\n…")
    for _ in range(500):
        group = ExceptionGroup("inner", [group, group])
    assert describe_error(group)[1].count("ExceptionGroup: ") == MAX_ERRORS


def test_long_texts_of_causes_are_left_out_whole() -> None:
    """A cut in the middle of a text could go through a secret that is not recognized then."""
    error = ValueError("x" * 2 * LONGEST)
    error.__cause__ = ValueError("y" * 100)
    assert describe_error(error)[1].endswith("xxx\n…")


def test_a_deep_recursion_is_looked_at_so_far() -> None:
    """The frames that are shown are the innermost of those."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(30_000)
    try:
        place, text = describe_error(failing(ValueError("x"), depth=20_000))
    finally:
        sys.setrecursionlimit(before)
    assert place.endswith(" in handler]")
    assert len(text.splitlines()) == 2 * MAX_FRAMES + 2


def test_an_error_whose_attributes_raise_is_told_without_them() -> None:
    """A class may compute what it was caused by."""

    class Odd(Exception):
        @property
        def __cause__(self) -> BaseException:  # type: ignore[override]
            raise RuntimeError("no")

    assert describe_error(failing(Odd("odd")))[1].endswith("Odd: odd")


FOLDER = str(Path(json.__file__).parents[1])


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/srv/shop/.venv/lib/python3.12/site-packages/flask/app.py", True),
        (r"C:\shop\venv\Lib\site-packages\flask\app.py", True),
        ("/usr/lib/python3/dist-packages/requests/api.py", True),
        (f"{FOLDER}/json/decoder.py", True),
        (f"{FOLDER}/lib-dynload/x.py", True),
        ("<frozen runpy>", True),
        (describe_error.__code__.co_filename, True),
        (MemoryMeter.observed.__code__.co_filename, True),
        ("", True),
        ("/srv/shop/views.py", False),
        ("/srv/shop/.venv/../views.py", False),
        ("/srv/shop.pyz/shop/views.py", False),
        ("/srv/python3.12/views.py", False),
        (__file__, False),
        ("views.py", False),
        ("<string>", False),
        ("<template>", False),
    ],
)
def test_the_path_of_a_file_says_whose_it_is(file: str, library: bool) -> None:
    """A virtual environment may be within the project."""
    assert in_library(file) is library
    assert in_library(file) is library


def test_code_that_is_made_from_text_belongs_to_its_module() -> None:
    """As the methods of dataclasses do; what has no module is the application's."""

    def compiled() -> CodeType:
        return compile("def made(): raise ValueError('x')", "<string>", "exec")

    for file, name in ((json.__file__, "calling"), (__file__, "made"), (None, "made")):
        scope: dict[str, Any] = {} if file is None else {"__file__": file}
        exec(compiled(), scope)  # noqa: S102

        def calling(made: Callable[[], None] = scope["made"]) -> None:
            made()

        assert describe_error(raised(calling))[0].endswith(f" in {name}]")


def test_the_place_of_a_text_is_that_of_its_last_traceback() -> None:
    """Also where the error says more than one line, or its causes came by files of their own."""
    text = (
        'Traceback (most recent call last):\n  File "/srv/deeper.py", line 1, in a\n'
        "KeyError: 'x'\n\nThe above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "/srv/jobs.py", line 12, in run\n    f()\n'
        '  File "/srv/lib/site-packages/sa/default.py", line 9, in do\n    g()\n    ^^^\n'
        "sa.exc.DBAPIError: no\n[SQL: SELECT\n1]\n(Background on this error at: https://a.b)"
    )
    assert place_of(text) == "[DBAPIError at jobs.py:12 in run]"
