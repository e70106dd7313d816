"""Where it is written that `up` runs."""

import fcntl
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from redmeter.cli import lock
from redmeter.cli.lock import State, UpLock
from redmeter.errors import InvalidSetting
from redmeter.store import embedded
from support.commands import Done

Run = Callable[..., Done]

URL = "redis://localhost:7000/0"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory, and little patience."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(lock, "LOCK_WAIT_SECONDS", 0.2)
    return tmp_path / "redmeter"


def release(taken: UpLock) -> None:
    """Give a place back as the end of a process does."""
    assert taken._held is not None
    os.close(taken._held)


def test_a_place_is_taken_by_one() -> None:
    """The second one hears of the first, once that is ready; after its end the place is free."""
    first, second = UpLock(URL, None), UpLock(URL, None)
    assert first.state() is None
    assert first.acquire()
    assert first.state() == State(os.getpid(), False, URL)
    first.ready()
    assert second.state() == State(os.getpid(), True, URL)
    assert not second.acquire()
    assert [state for _, state in UpLock(URL, None).running()] == [State(os.getpid(), True, URL)]
    release(first)
    assert second.state() is None
    assert UpLock(URL, None).running() == []
    assert second.acquire()
    release(second)


def test_one_that_does_not_become_ready_is_waited_for_in_vain() -> None:
    """take() says no after its patience, and the state says that nobody is ready."""
    first, second = UpLock(URL, None), UpLock(URL, None)
    assert first.acquire()
    assert not second.acquire()
    state = second.state()
    assert state is not None
    assert not state.ready
    release(first)


@pytest.mark.parametrize("ready", [True, False])
def test_one_that_starts_is_waited_for(monkeypatch: pytest.MonkeyPatch, ready: bool) -> None:
    """Once it is ready the place is not free; where it ends before, the next one has it."""
    monkeypatch.setattr(lock, "LOCK_WAIT_SECONDS", 10.0)
    first, second = UpLock(URL, None), UpLock(URL, None)
    assert first.acquire()
    taken: list[bool] = []
    waiting = threading.Thread(target=lambda: taken.append(second.acquire()))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    if ready:
        first.ready()
    else:
        release(first)
    waiting.join(10)
    assert taken == [not ready]
    release(first if ready else second)


def test_looking_never_looks_like_running() -> None:
    """Who looks holds the lock for an instant; who takes the place tries again."""
    mine = UpLock(URL, None)
    assert mine.acquire()
    release(mine)
    with mine.file.open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert mine.state() is None
        assert UpLock(URL, None).running() == []
    assert mine.acquire()
    release(mine)


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "5", "[]", '{"pid": 1}', '{"pid": "x", "ready": 1}', "[" * 100_000),
        *(f'{{"pid": {n}, "ready": 1, "location": "{URL}"}}' for n in ("-1", "0", "1e999")),
    ],
)
def test_a_file_that_says_nonsense_is_nobody(content: str) -> None:
    """Also while somebody holds its lock."""
    mine = UpLock(URL, None)
    assert mine.acquire()
    mine.file.write_text(content)
    assert mine.state() is None
    release(mine)


def test_places_are_told_apart_by_store_and_prefix(tmp_path: Path) -> None:
    """Not by the spelling of a URL, nor by the directory one happens to be in."""
    files = [
        UpLock(url, prefix).file
        for url, prefix in (
            ("redis://localhost:7000/0", None),
            ("redis://localhost:7000", "redmeter:"),
            ("redis://user:secret@localhost:7000/0", None),
            ("redis://localhost:7000/1", None),
            ("redis://localhost:7000/0", ""),
        )
    ]
    assert files[0] == files[1] == files[2]
    assert len(set(files)) == 3


@pytest.mark.parametrize(
    ("url", "same", "shown"),
    [
        (
            "redis+cluster://u:secret@c:7000,a:7001,b:7000",
            "redis+cluster://b:7000,c:7000,a:7001/0",
            "redis+cluster://a:7001,b:7000,c:7000",
        ),
        (
            "redis+sentinel://b:1,a:2/main/3",
            "redis+sentinel://a:2,b:1/main/3",
            "redis+sentinel://a:2,b:1/main/3",
        ),
    ],
)
def test_the_order_of_the_nodes_does_not_matter(url: str, same: str, shown: str) -> None:
    """What was started is found by whoever names them the other way round."""
    mine = UpLock(url, None)
    assert mine.acquire()
    mine.ready()
    assert UpLock(same, None).file == mine.file
    (found,) = UpLock(same, None).running()
    assert found[1].location == shown
    release(mine)


def test_a_relative_directory_is_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same words elsewhere are another embedded server."""
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        found.append(UpLock("embedded://data", None))
    assert found[0].file != found[1].file
    assert found[1].location == f"embedded://{tmp_path}/b/data"


def test_a_relative_state_directory_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its specification says; then it lies in the home directory."""
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert UpLock(URL, None).file.parent == tmp_path / "home" / ".local" / "state" / "redmeter"


def test_switched_off_has_no_place() -> None:
    """There is nothing to run."""
    with pytest.raises(InvalidSetting, match="switched off"):
        UpLock("off", None)


def test_what_is_written_is_read_by_the_shell() -> None:
    """One JSON document, without the password."""
    mine = UpLock("redis://:secret@localhost:7000/0", None)
    assert mine.acquire()
    mine.ready()
    said = json.loads(mine.file.read_text())
    assert said == {"pid": os.getpid(), "ready": 1, "location": URL, "page": ""}
    release(mine)


@pytest.mark.parametrize(
    "words",
    [
        ("names",),
        ("series", "hits"),
        ("summary", "seconds"),
        ("forecast", "hits"),
        ("top", "hits", "--by", "route"),
        ("logs",),
        ("mark", "--list"),
        ("mark", "--remove", "v1"),
        ("doctor",),
        ("retention",),
        ("clean",),
    ],
    ids=lambda words: " ".join(words),
)
def test_a_mistyped_path_is_an_error_of_commands_that_read(
    redmeter: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """It is named with what to do; no folder is made there, and an existing one is left alone."""
    for path in (tmp_path / "typo", tmp_path):
        before = sorted(tmp_path.iterdir())
        done = redmeter(*words, "--url", f"embedded://{path}")
        assert (done.code, done.out) == (3, "")
        assert f"embedded server in {path}: no server data found: check the path" in done.err
        assert "REDMETER_URL" in done.err
        assert sorted(tmp_path.iterdir()) == before


def test_commands_that_read_start_the_server_of_data_that_are_there(
    redmeter: Run, tmp_path: Path
) -> None:
    """Those of a program that recorded, or of a command that did."""
    url = f"embedded://{tmp_path / 'data'}"
    try:
        assert redmeter("mark", "v1", "--url", url).code == 0
        assert embedded.stop(tmp_path / "data")
        done = redmeter("mark", "--list", "--json", "--url", url)
        assert [mark["label"] for mark in json.loads(done.out)["marks"]] == ["v1"]
    finally:
        embedded.stop(tmp_path / "data")
