"""Access-log lines: what is read from them, and that nothing in them does harm."""

import json
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.errors import RedmeterError
from redmeter.ingest.access_log import LINE_LIMIT, METHODS, REASONS, Hit, MalformedLine
from redmeter.ingest.log_reader import LogReader
from support.realdata import OWN_LOG, real_log

#: 17 May 2015, 10:05:03 UTC
MOMENT = 1431857103.0
STAMP = "17/May/2015:10:05:03 +0000"


def line(request: str = "GET /a HTTP/1.1", status: str = "200", size: str = "12") -> str:
    """Write a line in the common format."""
    return f'192.0.2.1 - - [{STAMP}] "{request}" {status} {size}'


def parse_hit(text: str) -> Hit:
    """Read the only line of a log that is a request."""
    hit = LogReader().parse_hit(text)
    assert hit is not None
    return hit


def outcome(text: str) -> Hit | str:
    """Return the hit, or why the line is refused."""
    try:
        return parse_hit(text)
    except MalformedLine as exc:
        return exc.reason


@pytest.mark.parametrize(
    "text",
    [
        line(),
        line() + "\r\n",
        line() + ' "https://shop.example/" "Mozilla/5.0 (X11)"',
        line() + ' "-" "Mozilla/5.0" 0.003 "203.0.113.9" - more',
        line() + ' "-" "cut off in the mid',
        "shop.example:443 " + line(),
        line().replace("192.0.2.1 - -", "2001:db8::1 - ada lovelace"),
        line().replace("192.0.2.1 - -", '192.0.2.1 - a[b]\\"c'),
    ],
)
def test_common_and_combined_lines_are_read_whatever_stands_around(text: str) -> None:
    """Only time, request, status and size are looked at."""
    assert parse_hit(text) == Hit(MOMENT, "GET", "/a", 200, 12)


def test_a_field_of_a_stranger_cannot_forge_a_request() -> None:
    """A quote inside a field is escaped by the server, so it does not begin a request."""
    forged = f'[{STAMP}] \\"GET /forged HTTP/1.1\\" 500 1'
    assert parse_hit(line().replace(" - -", f" - {forged}", 1)).path == "/a"
    assert parse_hit(line() + f' "{forged}" "-"').path == "/a"


@pytest.mark.parametrize(
    ("request_line", "method", "path"),
    [
        ("GET / HTTP/1.1", "GET", "/"),
        ("get /a HTTP/1.1", "GET", "/a"),
        ("GET /a?b=c HTTP/1.1", "GET", "/a"),
        ("GET /a#b HTTP/1.1", "GET", "/a"),
        ("GET /a\\x3Fsecret HTTP/1.1", "GET", "/a"),
        ("GET ?secret=1 HTTP/1.1", "GET", "(invalid)"),
        ("GET http://host.example/p?q HTTP/1.1", "GET", "/p"),
        ("GET https://host.example HTTP/1.1", "GET", "/"),
        ("GET http://ada:secret@host.example?q HTTP/1.1", "GET", "/"),
        ("GET /to?u=http://host.example/p HTTP/1.1", "GET", "/to"),
        ("OPTIONS * HTTP/1.1", "OPTIONS", "*"),
        ("CONNECT host.example:443 HTTP/1.1", "CONNECT", "(invalid)"),
        ("PROPFIND /dav HTTP/1.1", "_OTHER", "/dav"),
        ("GET /a", "GET", "/a"),
        ("GET /a 1.1", "GET", "/a"),
        ("GET /a 11", "GET", "/a 11"),
        ("GET  /a  HTTP/1.1", "GET", "/a"),
        ("GET /a b HTTP/1.1", "GET", "/a b"),
        ("GET", "GET", "(invalid)"),
        ("/a", "_OTHER", "/a"),
        ("-", "_OTHER", "(invalid)"),
        ("", "_OTHER", "(invalid)"),
        ("\\x16\\x03\\x01", "_OTHER", "(invalid)"),
        ("\x16\x03\x00\udcff", "_OTHER", "(invalid)"),
        ('GET /\\"a\\"\\\\b HTTP/1.1', "GET", '/"a"\\b'),
        ("GET /th\\xc3\\xa9 HTTP/1.1", "GET", "/thé"),
        ("GET /th\\xe9\\t HTTP/1.1", "GET", "/th\ufffd\t"),
        ("GET /a\\q\\x HTTP/1.1", "GET", "/a\\q\\x"),
        ("GET /%7Eada HTTP/1.1", "GET", "/%7Eada"),
    ],
)
def test_every_request_is_a_hit(request_line: str, method: str, path: str) -> None:
    """However odd a request is, it was made and answered."""
    hit = parse_hit(line(request_line))
    assert (hit.method, hit.path) == (method, path)


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("17/May/2015:10:05:03 +0000", 0),
        ("17/May/2015:10:05:03 -0000", 0),
        ("17/May/2015:12:05:03 +0200", 0),
        ("17/May/2015:06:35:03 -0330", 0),
        ("18/May/2015:00:05:03 +1400", 0),
        ("17/May/2015:10:04:60 +0000", -3),  # a leap second is the next minute's first
    ],
)
def test_times_are_turned_into_utc(stamp: str, seconds: int) -> None:
    """The zone that the server wrote is taken off, in both directions."""
    assert parse_hit(line().replace(STAMP, stamp)).time == MOMENT + seconds


@given(
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),  # noqa: DTZ001
    st.integers(-23 * 60, 23 * 60),
)
def test_any_time_is_what_the_standard_library_says(local: datetime, minutes: int) -> None:
    """Our conversion, with its cache, agrees with strptime."""
    sign = "-" if minutes < 0 else "+"
    zone = f"{sign}{abs(minutes) // 60:02d}{abs(minutes) % 60:02d}"
    text = f"{local:%d/%b}/{local.year:04d}:{local:%H:%M:%S} {zone}"
    expected = datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z")
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert parse_hit(line().replace(STAMP, text)).time == (expected - epoch).total_seconds()


@pytest.mark.parametrize("size", ["-", "", "x", "-1", "9" * 5000, "٣"])
def test_a_size_that_is_none_does_not_spoil_the_hit(size: str) -> None:
    """The size is what matters least."""
    assert parse_hit(line(size=size)).size is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        (" \t\r\n", "empty"),
        ("\x00\x00", "empty"),
        ("hello", "no time"),
        ("[error] something went wrong", "no time"),
        ("192.0.2.1 - - [17/May/2015:10", "no time"),
        (line().replace("May", "Mai"), "bad time"),
        (line().replace("17/", "32/"), "bad time"),
        (line().replace(":10:", ":25:"), "bad time"),
        (line().replace(":03 ", ":61 "), "bad time"),
        (line().replace("2015", "0000"), "bad time"),
        (line().replace("+0000", "+0060"), "bad time"),
        (line().replace("+0000", "UTC"), "bad time"),
        (f"192.0.2.1 - - [{STAMP}]", "no request"),
        (f'192.0.2.1 - - [{STAMP}] "GET /a HT', "no request"),
        (line(status="", size=""), "no status"),
        (line(status="-"), "no status"),
        (line(status="20", size=""), "bad status"),
        (line(status="000"), "bad status"),
        (line(status="600"), "bad status"),
        (line(status="2000"), "bad status"),
        (line(status="٢٠٠"), "bad status"),
        ("{", "bad JSON"),
        ("{}", "no time"),
        ('{"time": 1}', "no status"),
        ('{"time": 1, "status": 200}', "no request"),
        ('{"time": 1, "status": 200, "path": 7}', "no request"),
        ('{"time": "yesterday", "status": 200, "path": "/"}', "bad time"),
        ('{"time": -1, "status": 200, "path": "/"}', "bad time"),
        ('{"time": true, "status": 200, "path": "/"}', "bad time"),
        ('{"time": NaN, "status": 200, "path": "/"}', "bad time"),
        ('{"time": 1e999, "status": 200, "path": "/"}', "bad time"),
        ('{"time": 1, "status": true, "path": "/"}', "bad status"),
        ('{"time": 1, "status": "ok", "path": "/"}', "bad status"),
        ('{"a":' * 5000, "bad JSON"),
        ('{"time": ' + "9" * 5000 + "}", "bad JSON"),
        ('{"a": "' + "x" * LINE_LIMIT + '"}', "too long"),
    ],
)
def test_a_malformed_line_says_what_it_lacks(text: str, expected: str) -> None:
    """Reasons are few and fixed, so that they can be counted."""
    assert outcome(text) == expected
    assert expected in REASONS


def test_a_malformed_line_is_a_value_error_and_one_of_ours() -> None:
    """Both ways of catching it work."""
    assert issubclass(MalformedLine, ValueError)
    assert issubclass(MalformedLine, RedmeterError)


@pytest.mark.parametrize(
    "entry",
    [
        {"time": "2015-05-17T10:05:03Z", "request": "GET /a?b HTTP/1.1", "status": 200, "size": 12},
        {"time": "2015-05-17T12:05:03+02:00", "method": "get", "path": "/a", "status": "200"},
        {"timestamp": "2015-05-17 10:05:03", "method": "GET", "url": "/a?b", "status": 200},
        {"@timestamp": "2015-05-17T10:05:03.000Z", "method": "GET", "uri": "/a", "status": 200},
        {"time_iso8601": "2015-05-17T10:05:03+00:00", "request": "GET /a HTTP/2.0", "status": 200},
        {"time_local": STAMP, "request_method": "GET", "request_uri": "/a?b", "status": "200"},
        {"ts": MOMENT, "request": {"method": "GET", "uri": "/a?b"}, "status": 200, "size": 12},
        {"ts": MOMENT * 1e3, "method": "GET", "url": "https://h.example/a", "status": 200},
        {"ts": int(MOMENT * 1e6), "method": "GET", "path": "/a", "status": 200},
        {"ts": int(MOMENT) * 10**9, "method": "GET", "path": "/a", "status": 200},
        {"ts": "1431857103.000", "method": "GET", "path": "/a", "status": 200},
        {"time": None, "ts": MOMENT, "method": "GET", "path": "/a", "status": 200, "size": "12"},
    ],
)
def test_json_lines_are_read_by_their_usual_keys(entry: dict[str, object]) -> None:
    """Times, request and status under the names that servers give them."""
    size = 12 if "size" in entry else None
    for text in (json.dumps(entry), " " + json.dumps(entry) + "\n", "\ufeff" + json.dumps(entry)):
        assert parse_hit(text) == Hit(MOMENT, "GET", "/a", 200, size)


def test_json_without_a_method_is_another_method() -> None:
    """A missing method does not hide the hit."""
    assert parse_hit('{"ts": 1, "status": 200, "path": "/a"}').method == "_OTHER"


@given(st.text(st.characters(), max_size=300))
def test_no_text_raises_anything_but_malformed_line(text: str) -> None:
    """Lone surrogates, NUL and line ends included, alone and within a line."""
    for trial in (text, line(text), line() + text, text + line(), "{" + text, line(status=text)):
        hit = outcome(trial)
        if isinstance(hit, str):
            assert hit in REASONS
        else:
            assert hit.method in METHODS | {"_OTHER"}
            assert hit.path.startswith("/") or hit.path in ("*", "(invalid)")
            assert "?" not in hit.path
            assert 100 <= hit.status <= 599


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=4,
    ),
    st.sampled_from(["time", "ts", "request", "path", "method", "status", "size"]),
)
def test_no_json_value_raises_anything_but_malformed_line(value: object, key: str) -> None:
    """Any value may stand under any key."""
    entry = {"time": 1, "request": "GET / HTTP/1.1", "status": 200, key: value}
    hit = outcome(json.dumps(entry))
    assert isinstance(hit, Hit) or hit in REASONS


@given(st.integers(0, len(line())))
def test_a_line_cut_off_anywhere_is_a_hit_or_malformed(length: int) -> None:
    """It is a hit exactly if the whole status is there."""
    whole = line(size="").rstrip()
    assert isinstance(outcome(line()[:length]), Hit) is (length >= len(whole))


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "[" * 1_000_000,
        f'[{STAMP}] "' * 30_000,
        f'[{STAMP}] "\\"' * 30_000,
        f'[{STAMP}] "' + "\\" * 1_000_000,
        "[" + "1:1:1:" * 200_000,
        "{" + '"a":' * 250_000,
    ],
)
def test_a_line_of_a_megabyte_is_refused_in_bounded_time(text: str) -> None:
    """No input makes the pattern go back and forth: 0.1 s of processor time is 30 times enough."""
    before = time.process_time()
    with pytest.raises(MalformedLine):
        parse_hit(text)
    assert time.process_time() - before < 0.1


def test_of_a_long_line_the_beginning_counts() -> None:
    """A browser that sends a megabyte of referrer is still a hit."""
    assert parse_hit(line() + ' "' + "x" * 1_000_000).path == "/a"
    assert outcome(line("GET /" + "x" * 1_000_000)) == "no request"


def test_a_hit_cannot_be_changed() -> None:
    """Hits are values."""
    with pytest.raises(AttributeError):
        parse_hit(line()).status = 500  # type: ignore[misc]


def test_the_small_log_is_read_as_its_author_counted() -> None:
    """62 lines: 60 hits, one line of noise, and the last one, cut off in its request."""
    hits, refused = read_all(OWN_LOG)
    assert refused == {42: "no time", 62: "no request"}
    assert len(hits) == 60
    assert Counter(hit.status for hit in hits) == {
        200: 38, 204: 3, 302: 4, 304: 3, 400: 2, 403: 2, 404: 3, 405: 2, 408: 1, 500: 2,
    }  # fmt: skip
    by_hour = Counter(datetime.fromtimestamp(hit.time, UTC).hour for hit in hits)
    assert by_hour == {8: 1, 9: 12, 10: 20, 11: 27}
    assert Counter(hit.method for hit in hits)["_OTHER"] == 3
    assert not any("secret" in hit.path or "FAKE" in hit.path for hit in hits)


@pytest.mark.realdata
def test_every_line_of_the_real_log_is_a_hit_and_the_totals_are_right() -> None:
    """Also line 8899, the one that is cut off: it ends within the name of the browser.

    The other side counts by splitting at blanks, as awk does; it shares nothing with the parser.
    """
    path = real_log()
    statuses: Counter[int] = Counter()
    hours: Counter[str] = Counter()
    paths: Counter[str] = Counter()
    cut_off = []
    for number, text in enumerate(path.read_text("ascii").split("\n")[:-1], 1):
        fields = text.split(" ")
        statuses[int(fields[8])] += 1
        hours[fields[3][1:15]] += 1  # 17/May/2015:10, and all zones are +0000
        paths[fields[6].split("?")[0].split("#")[0]] += 1
        if not text.endswith('"'):
            cut_off.append(number)

    hits, refused = read_all(path)
    assert refused == {}
    assert len(hits) == 10_000
    assert Counter(hit.status for hit in hits) == statuses
    assert Counter(f"{datetime.fromtimestamp(h.time, UTC):%d/%b/%Y:%H}" for h in hits) == hours
    assert Counter(hit.path for hit in hits) == paths
    assert cut_off == [8899]
    assert hits[8898].path == "/scripts/grok-py-test/configlib.py"


def read_all(path: Path) -> tuple[list[Hit], dict[int, str]]:
    """Parse a file: its hits, and the reason for every line number that is none."""
    hits, refused = [], {}
    for number, text in enumerate(path.read_text("utf-8").removesuffix("\n").split("\n"), 1):
        hit = outcome(text)
        if isinstance(hit, Hit):
            hits.append(hit)
        else:
            refused[number] = hit
    return hits, refused
