"""Lines from files, gzip and standard input; and following a log through its rotations."""

import gzip
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.clock import ManualClock
from redmeter.errors import RedmeterError
from redmeter.ingest import lines
from redmeter.ingest.lines import LINE_BYTES, DamagedFile, Lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A path for a log."""
    return tmp_path / "access.log"


def everything(source: Path | str) -> list[str]:
    """Read a source to its end."""
    with Lines(source) as batches:
        return [line for batch in batches for line in batch]


class Stdin:
    """A stand-in for sys.stdin."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


# ---------------------------------------------------------------- once


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\n\na\n", ["", "", "a"]),
        (b"a\x0bb\x0c\xc2\x85\xe2\x80\xa8c\rd\n", ["a\x0bb\x0c\x85\u2028c\rd"]),
        ("点击\n".encode(), ["点击"]),
        (b"\xff\xe7\x82\n\x00\n", ["\ufffd\ufffd", ""]),
        (b"\x1f", ["\x1f"]),
    ],
)
def test_lines_end_at_line_feeds_and_are_always_valid_text(
    log: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, expected: list[str]
) -> None:
    """From a file, from gzip and from standard input alike; a cut-off last line is delivered."""
    log.write_bytes(data)
    assert everything(log) == expected
    log.write_bytes(gzip.compress(data))
    assert everything(log) == expected
    for sent in (data, gzip.compress(data)):
        stdin = Stdin(sent)
        monkeypatch.setattr(sys, "stdin", stdin)
        assert everything("-") == expected
        assert not stdin.buffer.closed


@given(st.lists(st.binary(max_size=12)), st.integers(1, 9))
def test_chunks_may_end_anywhere(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], size: int
) -> None:
    """The lines do not depend on how the bytes came, gzip of several members included."""
    data = b"x" + b"".join(pieces)
    expected = [line.removesuffix(b"\r").decode("utf-8", "replace") for line in data.split(b"\n")]
    if not data.endswith(b"\n"):
        expected.append("")
    path = tmp_path_factory.getbasetemp() / "chunks"
    members = b"".join(gzip.compress(piece) for piece in [b"x", *pieces])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", size)
        for stored in (data, members, members + b"\0" * 20):
            path.write_bytes(stored)
            assert everything(path) == expected[:-1]


def test_progress_is_told_in_bytes_of_the_source(log: Path) -> None:
    """For gzip these are the compressed bytes."""
    data = b"".join(b"line %d\n" % number for number in range(100_000))
    for stored in (data, gzip.compress(data)):
        log.write_bytes(stored)
        with Lines(log) as batches:
            assert batches.bytes_read == 0
            assert batches.bytes_total == len(stored)
            count = len(next(batches))
            assert 0 < batches.bytes_read <= len(stored)
            assert count < 100_000
            count += sum(len(batch) for batch in batches)
            assert count == 100_000
            assert batches.bytes_read == len(stored)


def test_a_pipe_has_no_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input that is a pipe is read to its end, even when asked to follow."""
    reading, writing = os.pipe()
    os.write(writing, b"a\nb")
    os.close(writing)
    with os.fdopen(reading, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with Lines("-", follow=True) as batches:
            assert batches.bytes_total is None
            assert [line for batch in batches for line in batch] == ["a", "b"]


@pytest.mark.parametrize("chunk", [1000, lines.CHUNK_BYTES])
def test_a_line_that_is_too_long_is_cut_and_counted(
    log: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """Its neighbours are whole, also when it is the last one and never ends."""
    monkeypatch.setattr(lines, "CHUNK_BYTES", chunk)
    exact = b"e" * LINE_BYTES
    log.write_bytes(b"a\n" + b"x" * 100_000 + b"\nb\n" + exact + b"\n" + b"y" * 70_000)
    with Lines(log) as batches:
        result = [line for batch in batches for line in batch]
        assert result == ["a", "x" * LINE_BYTES, "b", exact.decode(), "y" * LINE_BYTES]
        assert batches.long_lines == 2
        assert batches.bytes_dropped == 170_000 - 2 * LINE_BYTES


def test_what_cannot_be_opened_is_an_os_error_with_its_name(tmp_path: Path) -> None:
    """At once, before any iteration."""
    for path, kind in ((tmp_path / "none", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(kind) as caught:
            Lines(path)
        assert str(caught.value.filename) == str(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission_is_an_os_error(log: Path) -> None:
    """As open() says it."""
    log.touch(mode=0o000)
    with pytest.raises(PermissionError):
        Lines(log)


def test_stop_ends_the_lines_before_the_next_chunk(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun is not delivered as if it were a line."""
    monkeypatch.setattr(lines, "CHUNK_BYTES", 4)
    for stored in (b"a\nb\nc\nd\n", gzip.compress(b"a\nb\nc\nd\n")):
        log.write_bytes(stored)
        with Lines(log, stop=lambda: True) as batches:
            assert list(batches) == []
    asked = iter([False, False, True])
    with Lines(log, stop=lambda: next(asked, True)) as batches:
        assert list(batches) == []  # and it is no damage that the rest of the gzip was not read
    asked = iter([False, False, True])
    log.write_bytes(b"a\nb\nc")
    with Lines(log, stop=lambda: next(asked, True)) as batches:
        assert list(batches) == [["a", "b"]]


def test_closing_ends_the_iteration(log: Path) -> None:
    """Also in the middle, and twice."""
    log.write_bytes(b"a\n")
    batches = Lines(log)
    batches.close()
    batches.close()
    assert list(batches) == []


# ---------------------------------------------------------------- damage


def damaged(path: Path) -> tuple[list[str], DamagedFile]:
    """Read until the damage."""
    result: list[str] = []
    with Lines(path) as batches:
        try:
            for batch in batches:
                result += batch
        except DamagedFile as exc:
            return result, exc
    pytest.fail("no damage was found")


def test_of_a_cut_off_gzip_the_lines_before_the_cut_are_delivered(log: Path) -> None:
    """Then comes an error that names the file. Half a line is not delivered."""
    whole = [f"line {number} {number**7}" for number in range(20_000)]
    stored = gzip.compress("".join(line + "\n" for line in whole).encode())
    log.write_bytes(stored[: len(stored) // 2])
    result, error = damaged(log)
    assert len(result) > 5_000
    assert result == whole[: len(result)]
    assert str(log) in str(error)
    assert error.filename == str(log)
    assert isinstance(error, ValueError)
    assert isinstance(error, RedmeterError)


def test_of_a_gzip_cut_off_at_its_very_end_every_line_is_delivered(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what zlib still held back when its input ended."""
    monkeypatch.setattr(lines, "CHUNK_BYTES", 4)
    log.write_bytes(gzip.compress(b"a\n" * 100)[:-8])
    assert damaged(log)[0] == ["a"] * 100


def test_of_a_corrupt_gzip_the_lines_before_the_damage_are_delivered(log: Path) -> None:
    """Up to the very byte, although zlib gives nothing of a piece with an error in it."""
    whole = [f"line {number}" for number in range(50)]
    good = gzip.compress("".join(line + "\n" for line in whole).encode())
    for stored in (good[:-8] + b"\0" * 8, good + b"garbage", good + good[:3] + b"\xff" * 9):
        log.write_bytes(stored)
        assert damaged(log)[0] == whole
    log.write_bytes(b"\x1f\x8bnot really")
    assert damaged(log)[0] == []


# ---------------------------------------------------------------- following


class Script(ManualClock):
    """A clock on which each wait lets the next thing happen to the log.

    Args:
        steps: one is done at every wait; after the last, three idle seconds, then stopped() is
            true.
    """

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self._steps: Iterator[Callable[[], object]] = iter(steps)
        self._ends: float | None = None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        step = next(self._steps, None)
        if step is not None:
            step()
        elif self._ends is None:
            self._ends = self.monotonic() + 3

    def stopped(self) -> bool:
        return self._ends is not None and self.monotonic() >= self._ends


def followed(path: Path, *steps: Callable[[], object]) -> list[str]:
    """Follow a log while the steps happen to it."""
    script = Script(*steps)
    with Lines(path, follow=True, clock=script, stop=script.stopped) as batches:
        return [line for batch in batches for line in batch]


def append(path: Path, data: bytes) -> Callable[[], object]:
    """Return a step that appends to a file by its present name, making it if need be."""

    def step() -> None:
        with path.open("ab") as file:
            file.write(data)

    return step


def test_following_delivers_what_is_appended_when_its_line_end_comes(log: Path) -> None:
    """Half a line waits for its other half; one that never ends comes at the end."""
    log.write_bytes(b"a\nb")
    assert followed(log, append(log, b"b\nc\n"), append(log, b"d"), append(log, b"d\ne")) == [
        "a", "bb", "c", "dd", "e",
    ]  # fmt: skip


def test_following_survives_a_rotation_and_loses_no_line(log: Path) -> None:
    """Also lines that the server still writes to the old file, and half a line at its end."""
    old = log.with_suffix(".1")
    log.write_bytes(b"a\n")
    found = followed(
        log,
        lambda: log.rename(old),
        append(old, b"b\n"),  # a moment without the file
        append(log, b"d\n"),
        append(old, b"c\n"),
        append(old, b"cut"),
        append(log, b"e\n"),
    )
    assert sorted(found) == ["a", "b", "c", "cut", "d", "e"]
    assert found[:2] == ["a", "b"]


def test_a_log_that_was_silent_before_its_rotation_is_still_read_after_it(log: Path) -> None:
    """As of a site at night; an empty one too. The server goes on to write there for a moment."""
    old = log.with_suffix(".1")
    for begun in (b"", b"a\n"):
        log.write_bytes(begun)
        found = followed(
            log,
            *[lambda: None] * 20,
            lambda: log.rename(old),
            lambda: log.touch(),
            lambda: None,
            append(old, b"b\n"),
            append(log, b"c\n"),
        )
        assert sorted(found) == sorted([*begun.decode().split(), "b", "c"])
        old.unlink()


def test_following_reads_the_new_file_while_the_old_one_is_still_written_to(log: Path) -> None:
    """As some of a server's processes do for as long as they live."""
    old = log.with_suffix(".1")
    log.write_bytes(b"a\n")
    steps: list[Callable[[], object]] = [lambda: log.rename(old), append(log, b"new\n")]
    steps += [append(old, b"old %d\n" % number) for number in range(40)]  # every 0.2 s
    found = followed(log, *steps)
    assert found[:2] == ["a", "new"]
    assert found[2:] == [f"old {number}" for number in range(40)]


def test_following_survives_rotations_faster_than_each_falls_silent(log: Path) -> None:
    """Eight of them, one at each look."""
    log.write_bytes(b"a 0\n")
    steps: list[Callable[[], object]] = []
    for number in range(1, 9):
        steps.append(lambda number=number: log.rename(log.with_suffix(f".{number}")))  # type: ignore[misc]
        steps.append(append(log, b"a %d\nhalf %d" % (number, number)))
    found = followed(log, *steps)
    halves = {f"half {n}" for n in range(1, 9)}
    assert sorted(found) == sorted({f"a {n}" for n in range(9)} | halves)


def test_a_file_that_gets_its_name_back_is_read_on(log: Path) -> None:
    """Not from its start, and not twice."""
    old = log.with_suffix(".1")
    log.write_bytes(b"a\n")
    found = followed(
        log,
        lambda: log.rename(old),
        append(log, b"b\n"),
        lambda: old.replace(log),
        *[lambda: None] * 9,  # longer than a file that was rotated may be silent
        append(log, b"c\n"),
    )
    assert found == ["a", "b", "c"]


def test_who_is_told_to_stop_reads_what_is_there(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to a bound; and says where that was not all."""
    now = [False]

    def read_all() -> tuple[list[str], bool]:
        with Lines(log, follow=True, clock=ManualClock(), stop=lambda: now[0]) as batches:
            first = next(batches)
            log.rename(log.with_suffix(".1"))
            log.write_bytes(b"b\n" * 5_000 + b"half")
            now[0] = True
            rest = [line for batch in batches for line in batch]
            now[0] = False
            return first + rest, batches.complete

    log.write_bytes(b"a\n")
    assert read_all() == (["a", *["b"] * 5_000, "half"], True)
    log.write_bytes(b"a\n")
    monkeypatch.setattr(lines, "CHUNK_BYTES", 1_000)
    monkeypatch.setattr(lines, "LAST_BYTES", 2_000)
    found, complete = read_all()
    assert (found, complete) == (["a", *["b"] * 1_000], False)


def test_following_survives_two_rotations_between_two_looks_at_the_old_file(log: Path) -> None:
    """The file in between is read as well, although it has lost its name."""
    log.write_bytes(b"a\n")
    assert followed(
        log,
        lambda: log.rename(log.with_suffix(".1")),
        append(log, b"b\n"),
        lambda: log.unlink(),
        append(log, b"c\n"),
    ) == ["a", "b", "c"]


def test_following_survives_a_truncation(log: Path) -> None:
    """copytruncate: the same file starts from its beginning."""
    log.write_bytes(b"a\nhalf")
    assert followed(
        log, lambda: os.truncate(log, 0), append(log, b"b\n"), lambda: os.truncate(log, 0)
    ) == ["a", "half", "b"]


def test_following_waits_while_something_else_has_the_path(log: Path) -> None:
    """A directory or a pipe in its place is no log; the file that comes after it is."""
    log.write_bytes(b"a\n")
    assert followed(
        log, lambda: log.unlink(), lambda: log.mkdir(), lambda: log.rmdir(), append(log, b"b\n")
    ) == ["a", "b"]


def test_following_stops_at_once(log: Path) -> None:
    """Without another wait."""
    log.write_bytes(b"a\n")
    clock = ManualClock()
    asked = iter([False])
    with Lines(log, follow=True, clock=clock, stop=lambda: next(asked, True)) as batches:
        assert [batch for batch in batches if batch] == [["a"]]
    assert clock.monotonic() <= lines.POLL_SECONDS


@pytest.mark.parametrize("content", [b"", b"a", b"a\nb\nc\n"])
def test_following_that_is_stopped_before_it_begins_reads_what_is_there(
    log: Path, content: bytes
) -> None:
    """As with a stop at any other moment."""
    log.write_bytes(content)
    with Lines(log, follow=True, clock=ManualClock(), stop=lambda: True) as batches:
        assert [line for batch in batches for line in batch] == content.decode().split()
        assert batches.complete


def test_what_was_written_since_a_truncation_is_read_at_the_end(log: Path) -> None:
    """Though nobody looked at the file in between."""
    log.write_bytes(b"first\nhalf")
    with Lines(log, follow=True, clock=ManualClock(), stop=lambda: True) as batches:
        assert next(batches) == ["first"]
        log.write_bytes(b"new\n")
        assert [line for batch in batches for line in batch] == ["half", "new"]
        assert batches.complete


def test_a_gzip_file_is_not_followed(log: Path) -> None:
    """It is read to its end, and that is it."""
    log.write_bytes(gzip.compress(b"a\n"))
    with Lines(log, follow=True, clock=ManualClock()) as batches:
        assert list(batches) == [["a"]]
