"""Fuzz: lines of logs, files of lines, routes.

Next to tests/ingest/test_access_log.py and test_routes.py, which try any text and any cut, and
tests/ingest/test_lines.py, which cuts chunks anywhere.
"""

import contextlib
import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redmeter.errors import InvalidSetting
from redmeter.ingest import access_log, lines
from redmeter.ingest.format_strings import format_of
from redmeter.ingest.formats import FORMATS
from redmeter.ingest.log_reader import LogReader
from redmeter.ingest.replay import series_name
from redmeter.ingest.routes import ROUTE_BYTES, Routes, fold
from redmeter.names import OTHER_METHOD, canonical, parse_name
from support.fuzzing import (
    HOSTILE,
    assert_work_is_linear,
    fuzzed,
    fuzzed_slowly,
    grown,
    mutated,
    mutated_bytes,
)

COMBINED = (
    '83.149.9.216 - - [17/May/2015:10:05:03 +0000] "GET /a/7?q=tea HTTP/1.1" 200 203023 "-" "x"',
    'shop:80 ::1 - ada [31/Dec/2023:23:59:60 -0330] "POST /o/\\"x\\x22 HTTP/2.0" 503 - 0.012',
    'h - - [01/Jan/2024:00:00:00 +1400] "-" 408 0',
    'h - - [01/Jan/2024:00:00:00 +1400] "GET http://shop/a#b" 301 0',
)
JSON = (
    '{"ts":1700000000.5,"request":{"method":"GET","uri":"/a?b"},"status":200,"size":12}',
    '{"time":"2015-05-17T10:05:03+02:00","request":"PUT /a HTTP/1.1","status":"404"}',
    '{"@timestamp":"17/May/2015:10:05:03 +0000","path":"/a","status_code":500,"bytes":"7"}',
    '{"timestamp":1700000000000,"request_method":"GET","request_uri":"\\ud800","status":200}',
)
PATHS = (
    *("/", "*", "/users/4711/orders/9", "/blog/2015/05/17/tea", "/static/app.3f2a9c1b7d.js"),
    *("/u/ada@example.org", "/a%20b;x=1/c", "/{id}/{uuid}", "/%7Bid%7D", "//a//b/?c#d"),
    "/x/123e4567-e89b-12d3-a456-426614174000/9f8e7d6c5b4a39281706f5e4d3c2b1a0-x_y",
)


FORMAT_STRINGS = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent $request_time',
    "$msec|$request_method|$scheme://$host$request_uri|$status|$upstream_response_time",
    '{"time":"$time_iso8601","request":"$request","status":$status,"took":"$request_time"}',
    '%h %l %u %t "%r" %>s %b "%{Referer}i" %D',
    "%{%Y-%m-%d %H:%M:%S}t.%{msec_frac}t %m %U %>s %{ms}T",
)
EXAMPLES = tuple(row.example for row in FORMATS.values())
W3C = (
    "#Fields: date time cs-method cs-uri-stem sc-status sc-bytes",
    "#Date: 2002-05-24 20:18:01",
    "2002-05-24 20:18:01 GET /a 404 1277",
    "2002-05-24 20:18:01 POST /a%20b 200 -",
)


@fuzzed
@given(st.lists(mutated(W3C), max_size=6))
def test_a_line_of_a_w3c_log_is_a_hit_or_malformed_whatever_came_before(lines: list[str]) -> None:
    """Directives are input, too."""
    reader = LogReader()
    for line in (W3C[0], *lines):
        with contextlib.suppress(access_log.MalformedLine):
            hit = reader.parse_hit(line)
            assert hit is None or 100 <= hit.status <= 599


@fuzzed
@given(st.sampled_from(sorted(FORMATS)), st.data())
def test_a_line_of_any_format_is_a_hit_or_malformed(name: str, data: st.DataObject) -> None:
    """Each reader alone, and all of them together; a duration is a number that can be stored."""
    *before, last = FORMATS[name].example.split("\n")
    docker = json.dumps({"log": last, "stream": "stdout", "time": "2026-10-10T13:55:36Z"})
    lines = data.draw(st.lists(mutated((last, docker)), max_size=4))
    for reader in (LogReader({name: FORMATS[name]}), LogReader(now=lambda: 1.0)):
        for line in (*before, *lines):
            with contextlib.suppress(access_log.MalformedLine):
                hit = reader.parse_hit(line)
                assert hit is None or (100 <= hit.status <= 599 and abs(hit.time) < 1e12)
                assert hit is None or hit.seconds is None or 0 <= hit.seconds < 1e19


@fuzzed
@given(mutated(FORMAT_STRINGS), st.lists(mutated(COMBINED), max_size=2))
def test_a_format_string_is_a_format_or_an_error(text: str, lines: list[str]) -> None:
    """And a line that it reads is a hit or malformed."""
    try:
        formats = format_of(text)
    except InvalidSetting:
        return
    reader = LogReader(formats)
    for line in lines:
        with contextlib.suppress(access_log.MalformedLine):
            hit = reader.parse_hit(line)
            assert hit is None or 100 <= hit.status <= 599


@fuzzed
@given(mutated((*COMBINED, *JSON)))
def test_a_line_is_a_hit_or_malformed(line: str) -> None:
    """And a hit is one that can be stored: with a name, a time and a status."""
    with contextlib.suppress(access_log.MalformedLine):
        access_log.parse_hit_time(line)
    reason, hit = "", None
    try:
        hit = LogReader().parse_hit(line)
    except access_log.MalformedLine as error:
        reason = error.reason
    if hit is None:
        assert reason in access_log.REASONS or line.startswith("#")
        return
    assert hit.method in access_log.METHODS or hit.method == OTHER_METHOD
    assert hit.path.startswith("/") or hit.path in ("*", access_log.INVALID_PATH)
    assert 100 <= hit.status <= 599
    assert hit.size is None or 0 <= hit.size < 10**18
    if line.count("[") == 1 and "{" not in line:
        assert access_log.parse_hit_time(line) == hit.time
    name = series_name(hit.method, Routes().route(hit.path), hit.status // 100)
    assert canonical(name) == name


@fuzzed
@given(
    st.dictionaries(
        st.sampled_from(["time", "ts", "request", "status", "size", "method", "path", "uri"]),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.sampled_from(HOSTILE)
            | st.sampled_from(["2015-05-17T10:05:03Z", "GET /a HTTP/1.1", "200", "9999-12-31"]),
            lambda one: (
                st.lists(one, max_size=2)
                | st.dictionaries(st.sampled_from(["method", "uri", "path", "x"]), one, max_size=3)
            ),
            max_leaves=4,
        ),
    )
)
def test_a_json_line_of_any_types_is_a_hit_or_malformed(entry: dict[str, object]) -> None:
    """Where a number, a text or an object is expected there may be any other."""
    with contextlib.suppress(access_log.MalformedLine):
        hit = LogReader().parse_hit(json.dumps(entry))
        assert hit is None or 100 <= hit.status <= 599


@fuzzed
@given(mutated(PATHS))
@example("/a\u202eb\x1b[2J%1b%e2%80%ae")
def test_a_route_is_a_label_value_that_folds_to_itself(path: str) -> None:
    """Of a path that was changed anywhere."""
    route = fold(path)
    assert len(route.encode()) <= ROUTE_BYTES
    assert route.isprintable()
    assert fold(route) == route or not route.startswith("/")
    assert dict(parse_name(canonical("x", {"route": route})).labels) == {"route": route}


@fuzzed_slowly
@given(
    grown(
        (
            *COMBINED,
            *EXAMPLES,
            *JSON,
            *PATHS,
            *HOSTILE,
            "\\x22",
            '\\"',
            "a",
            "1",
            "[17/May/2015:10:05:",
        )
    )
)
@example(lambda length: '\\"{/users/4711/orders/9' * (length // 23))
def test_lines_and_paths_take_work_by_their_length(of_length: object) -> None:
    """Whatever is repeated in them."""

    def work(text: str) -> None:
        for line in (text, "{" + text, f'[01/Jan/2024:00:00:00 +0000] "GET /{text} HTTP/1.1" 200'):
            with contextlib.suppress(access_log.MalformedLine):
                if (hit := LogReader().parse_hit(line)) is not None:
                    fold(hit.path)
        fold("/" + text)

    assert_work_is_linear(work, of_length)  # type: ignore[arg-type]


@fuzzed
@given(
    st.lists(mutated_bytes((*COMBINED, "", "\r", "a\r\n")), max_size=4),
    st.booleans(),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=3),
    st.floats(0, 1),
)
def test_a_file_is_lines_or_damaged(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[bytes],
    packed: bool,
    flips: list[tuple[float, int]],
    kept: float,
) -> None:
    """Also one that is compressed, of which bytes are wrong or missing; no line is too long."""
    data = bytearray(b"\n".join(texts))
    if packed:
        data = bytearray(gzip.compress(bytes(data), mtime=0) + gzip.compress(b"x\n", mtime=0))
    for place, byte in flips:
        if data:
            data[min(int(place * len(data)), len(data) - 1)] = byte
    del data[int(kept * len(data)) + 1 :]
    file = tmp_path_factory.getbasetemp() / "fuzzed.log"
    file.write_bytes(data)
    damaged, found = False, []
    with lines.Lines(file) as source:
        try:
            for batch in source:
                found += batch
        except lines.DamagedFile:
            damaged = True
    assert all(len(line) <= lines.LINE_BYTES and "\n" not in line for line in found)
    if damaged:
        assert bytes(data).startswith(b"\x1f\x8b")
    elif not bytes(data).startswith(b"\x1f\x8b"):
        last = bytes(data).rpartition(b"\n")[2].lstrip(b"\0")
        assert len(found) == bytes(data).count(b"\n") + bool(last)


def test_a_compressed_file_of_one_endless_line_takes_little_memory(tmp_path: Path) -> None:
    """A thousand times as large as it is on disk: it is read by the piece."""
    size = 40_000_000
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"a" * size))
    tracemalloc.start()
    try:
        with lines.Lines(tmp_path / "bomb.gz") as source:
            (line,) = [line for batch in source for line in batch]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(line), source.bytes_dropped) == (lines.LINE_BYTES, size - lines.LINE_BYTES)
    assert most < size / 8
