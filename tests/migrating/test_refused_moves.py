"""A dry run refuses what the run refuses, in the same words and with the same exit code."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter import migrating
from support.invoking import Run, invoking
from support.migrating import fill
from support.servers import Server
from support.stores import server_time

META = "redmeter:meta:"


class Place:
    """A filled store in database 0 of a server, and an empty one in database 1."""

    def __init__(self, server: Server, redmeter: Run) -> None:
        self.source, self.target = (f"{server.url.removesuffix('0')}{db}" for db in (0, 1))
        self.client, self.other = server.client(), server.client(db=1)
        self.redmeter = redmeter
        #: The words after the two URLs.
        self.words: list[str] = []
        self._ended = threading.Event()
        self._helpers: list[threading.Thread] = []

    def often(self, call: Callable[[], object]) -> None:
        """Call something again and again, as another process would, until the test has ended."""

        def run() -> None:
            while not self._ended.wait(0.1):
                call()

        call()
        self._helpers.append(threading.Thread(target=run))
        self._helpers[-1].start()

    def stored(self) -> list[dict[bytes, Any]]:
        """Return everything that both databases hold."""
        return [
            {key: client.dump(key) for key in client.scan_iter(count=1000)}
            for client in (self.client, self.other)
        ]

    def close(self) -> None:
        """End the helpers."""
        self._ended.set()
        for helper in self._helpers:
            helper.join()
        self.client.close()
        self.other.close()


@pytest.fixture
def place(server: Server) -> Iterator[Place]:
    """Two databases, and the command."""
    fill(server.url, series=1)
    with invoking() as redmeter:
        place = Place(server, redmeter)
        yield place
        place.close()


def _same(place: Place) -> None:
    place.target = place.source.replace("127.0.0.1", "localhost")


def _busy(place: Place) -> None:
    client = place.client
    place.often(lambda: client.hset(META, "frozen", f"other {server_time(client) + 60}"))


def _target_busy(place: Place) -> None:
    place.other.hset(META, "frozen", f"other {server_time(place.other) + 60}")


def _source_unfinished(place: Place) -> None:
    place.client.hset(META, "receiving", "token move")


def _not_empty(place: Place) -> None:
    fill(place.target, series=1)


def _not_empty_bare(place: Place) -> None:
    place.other.zadd("stats:page:ms", {"count": 1, "sum": 2.0})
    place.words = ["--target-prefix", ""]


def _moved_elsewhere(place: Place) -> None:
    place.client.hset(META, "moved", "move")


def _taken(place: Place) -> None:
    place.other.set('count:60:hits{n="0"}', "x")
    place.words = ["--target-prefix", ""]


def _prefix(place: Place) -> None:
    place.words = ["--target-prefix", "redmeter:stats:"]


def _prefix_bare(place: Place) -> None:
    fill(place.source, series=1, prefix="")
    place.words = ["--prefix", "", "--target-prefix", "recent:"]


def _incompatible_source(place: Place) -> None:
    place.client.hset(META, "format", "2")


def _incompatible_target(place: Place) -> None:
    place.other.hset(META, mapping={"format": "2", "partitions": "1"})


def _off(place: Place) -> None:
    place.target = "off"


def _unreachable(place: Place) -> None:
    place.target = "redis://127.0.0.1:1"


def _nothing_to_move(place: Place) -> None:
    place.client.flushdb()


#: Reason of a MigrationError -> what leads to it.
REASONS: dict[str, tuple[Callable[[Place], None], ...]] = {
    "same": (_same,),
    "prefix": (_prefix, _prefix_bare),
    "busy": (_busy, _target_busy),
    "source-unfinished": (_source_unfinished,),
    "not-empty": (_not_empty, _not_empty_bare),
    "moved-elsewhere": (_moved_elsewhere,),
    "taken": (_taken,),
}
#: Reasons that only arise while a store is copied, by something that happens meanwhile.
MEANWHILE = {"expired", "unsealed", "fenced", "not-verified", "differs", "server-changed"}
#: Other errors.
ERRORS = (_incompatible_source, _incompatible_target, _off, _unreachable, _nothing_to_move)

refusals = [arrange for each in REASONS.values() for arrange in each]


@pytest.mark.parametrize("arrange", [*refusals, *ERRORS])
def test_a_dry_run_refuses_what_the_run_refuses(
    place: Place, arrange: Callable[[Place], None]
) -> None:
    """It changes nothing; nor does the run."""
    arrange(place)
    before = place.stored()
    done: list[Any] = []
    for options in (("--dry-run",), (), ("--dry-run", "--json"), ("--json",)):
        done.append(place.redmeter("migrate", place.source, place.target, *place.words, *options))
        if arrange is not _busy:
            assert place.stored() == before
    assert done[0] == done[1]
    assert done[2] == done[3]
    assert {one.code for one in done} <= {1, 2, 3}
    assert done[0].err


def test_all_reasons_are_in_the_table() -> None:
    """And each is that of the error."""
    folder = Path(migrating.__file__).parent
    text = "\n".join(file.read_text("utf-8") for file in folder.glob("*.py"))
    assert {*re.findall(r'MigrationError\(\s*"([\w-]+)"', text)} == {*REASONS} | MEANWHILE


@pytest.mark.parametrize(
    ("reason", "arrange"), [(reason, one) for reason, each in REASONS.items() for one in each]
)
def test_each_reason_arises(
    place: Place, reason: str, arrange: Callable[[Place], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a check and of a run, which makes the same one."""
    arrange(place)
    seen: list[str] = []
    first = migrating.MigrationError.__init__

    def note(error: migrating.MigrationError, reason: str, message: str) -> None:
        seen.append(reason)
        first(error, reason, message)

    monkeypatch.setattr(migrating.MigrationError, "__init__", note)
    for options in (("--dry-run",), ()):
        place.redmeter("migrate", place.source, place.target, *place.words, *options)
    assert seen == [reason, reason]


def test_a_dry_run_of_a_move_that_would_begin_changes_nothing(place: Place) -> None:
    """Also not in a target that does not exist, where a prefix changes, or where data go."""
    for words in ([], ["--target-prefix", ""], ["--target-prefix", "app:"]):
        before = place.stored()
        done = place.redmeter("migrate", place.source, place.target, *words, "--dry-run")
        assert (done.code, done.err) == (0, "")
        assert place.stored() == before
    fill(place.target, series=1)
    before = place.stored()
    words = ["migrate", place.source, place.target, "--replace", "--erase"]
    assert place.redmeter(*words, "--dry-run").code == 0
    assert place.stored() == before
    assert place.redmeter(*words).code == 0
    assert place.redmeter(*words, "--dry-run").code == place.redmeter(*words).code == 0
