"""Answers are made once for all who ask at the same time, and never wait for each other's end."""

import os
import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from redmeter.dashboard.api.serialize import as_json
from redmeter.dashboard.cache import THREADS, WAITING, AnswerCache, Body
from redmeter.dashboard.errors import HTTPError
from support.waiting import eventually


class Maker:
    """Makes bodies, once it may."""

    def __init__(self, text: bytes = b"{}") -> None:
        self.made = 0
        self.may = threading.Event()
        self._text = text

    def __call__(self) -> Body:
        """Make one."""
        self.made += 1
        assert self.may.wait(10)
        return Body(self._text, "application/json")


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def asker(method: str = "GET", **headers: str) -> Any:
    """Return what a body has to know of a request."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return SimpleNamespace(method=method, headers=named)


def done(futures: list["Future[Body]"]) -> list[Body]:
    """Wait for answers."""
    return [future.result(10) for future in futures]


def test_ten_who_ask_at_once_cost_one() -> None:
    """They wait for the same answer; and so does who comes within a moment after it."""
    clock, maker = Clock(), Maker()
    shared = AnswerCache(clock)
    waiting = [shared.get("key", maker, 1.0) for _ in range(10)]
    maker.may.set()
    assert len(set(map(id, done(waiting)))) == 1
    clock.now += 0.9
    assert shared.get("key", maker, 1.0).result(10) is waiting[0].result()
    assert maker.made == 1
    clock.now += 0.2
    assert shared.get("key", maker, 1.0).result(10) is not waiting[0].result()
    assert shared.get("other", maker, 1.0).result(10)
    assert maker.made == 3


def test_who_no_longer_waits_takes_nothing_from_the_others() -> None:
    """An answer under way cannot be cancelled."""
    maker = Maker()
    shared = AnswerCache()
    one = shared.get("key", maker, 1.0)
    assert not one.cancel()
    maker.may.set()
    assert one.result(10)


def test_what_failed_is_told_to_all_and_tried_again_after_a_moment() -> None:
    """Not for each of them."""
    clock, tries = Clock(), []
    shared = AnswerCache(clock)

    def fail() -> Body:
        tries.append(1)
        raise RuntimeError("away")

    for _ in range(3):
        assert isinstance(shared.get("key", fail, 1.0).exception(10), RuntimeError)
    assert len(tries) == 1
    clock.now += 1.1
    assert isinstance(shared.get("key", fail, 1.0).exception(10), RuntimeError)
    assert len(tries) == 2


def test_threads_are_few_and_so_is_what_waits() -> None:
    """A store that hangs holds no more; beyond that we are too busy, and then again not."""
    maker = Maker()
    shared = AnswerCache()
    futures = [shared.get(number, maker, 1.0) for number in range(THREADS)]
    more = (shared.get(("more", number), maker, 1.0) for number in range(1000))
    with pytest.raises(HTTPError) as raised:
        futures.extend(more)
    assert (raised.value.status, raised.value.code) == (503, "busy")
    assert WAITING <= len(futures) <= WAITING + THREADS
    assert maker.made <= THREADS
    assert sum(t.name == "redmeter-page" for t in threading.enumerate()) <= THREADS
    maker.may.set()
    done(futures)
    assert shared.get("again", maker, 1.0).result(10)


def test_a_fork_has_threads_of_its_own() -> None:
    """Though those of its parent were busy, and a lock perhaps held."""
    maker = Maker()
    shared = AnswerCache()
    futures = [shared.get(number, maker, 1.0) for number in range(THREADS)]
    with shared._lock:
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            fresh = Maker()
            fresh.may.set()
            code = 0 if shared.get("key", fresh, 1.0).result(5) else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    maker.may.set()
    done(futures)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest goes first; what is over goes in any case."""
    monkeypatch.setattr("redmeter.dashboard.cache.MAX_KEPT_ANSWERS", 3)
    clock = Clock()
    shared, maker = AnswerCache(clock), Maker()
    maker.may.set()
    for number in range(5):
        done([shared.get(number, maker, 10.0)])
    assert list(shared._kept) == [2, 3, 4]
    clock.now += 11
    done([shared.get("new", maker, 10.0)])
    assert list(shared._kept) == ["new"]
    monkeypatch.setattr("redmeter.dashboard.cache.MAX_KEPT_BYTES", 10)
    done([shared.get("large", maker_of(b"x" * 100), 10.0)])
    assert shared._bytes <= 10


def maker_of(text: bytes) -> Maker:
    """Return a maker that may."""
    maker = Maker(text)
    maker.may.set()
    return maker


def test_json_has_no_number_that_is_none() -> None:
    """null instead, wherever it stands; and all of it is ASCII."""
    value = {"a": [float("nan"), 1.5, (float("inf"),)], "b": {"c": -float("inf")}, "d": "é<\u202e"}
    assert as_json(value) == b'{"a":[null,1.5,[null]],"b":{"c":null},"d":"\\u00e9<\\u202e"}'


@pytest.mark.parametrize(
    ("header", "status"),
    [("", 200), ('"other"', 200), ("*", 304), ("{tag}", 304), ('"x", {tag}', 304), ("{bare}", 304)],
)
def test_a_body_that_somebody_has_is_not_sent(header: str, status: int) -> None:
    """Tags are compared weakly."""
    body = Body(b"{}", "application/json")
    given = header.format(tag=body.etag, bare=body.etag.removeprefix("W/"))
    answer = body.response(asker(if_none_match=given))
    assert answer.status_code == status
    assert answer.headers["etag"] == body.etag
    assert (answer.body == b"{}") is (status == 200)


def test_a_tag_is_of_what_matters() -> None:
    """Not of the time at which it was made."""
    one = Body(b'{"now":1,"a":2}', "application/json", tag=b'"a":2}')
    two = Body(b'{"now":2,"a":2}', "application/json", tag=b'"a":2}')
    assert one.etag == two.etag != Body(b"{}", "application/json", tag=b"x").etag


@pytest.mark.parametrize(
    ("header", "packed"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.1", True),
        ("*", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0.0, *", False),
        ("*;q=0, gzip", True),
        ("*, gzip;q=0", False),
        ("identity, *;q=0.5", True),
        ("gzip;q=x", False),
    ],
)
def test_gzip_is_sent_to_those_who_take_it(header: str, packed: bool) -> None:
    """As they say."""
    body = Body(b"a" * 5000, "application/json")
    answer = body.response(asker(accept_encoding=header))
    assert (answer.headers.get("content-encoding") == "gzip") is packed
    assert (len(answer.body) < 5000) is packed


def test_what_does_not_become_smaller_goes_as_it_is() -> None:
    """Small bodies, and pictures."""
    for content, kind in ((b"a" * 500, "text/css"), (b"a" * 5000, "image/png")):
        answer = Body(content, kind).response(asker(accept_encoding="gzip"))
        assert "content-encoding" not in answer.headers
        assert "vary" not in answer.headers


def test_work_is_done_once_at_a_time() -> None:
    """What fails is no trouble for what comes after it."""
    shared, may, done_of = AnswerCache(), threading.Event(), list[int]()

    def work() -> None:
        done_of.append(1)
        assert may.wait(10)
        raise ValueError

    for _ in range(5):
        shared.run("work", work)
    eventually(lambda: done_of)
    shared.run("work", work)
    may.set()
    eventually(lambda: shared._threads == 0)
    assert done_of == [1]
    shared.run("work", work)
    eventually(lambda: len(done_of) == 2)
