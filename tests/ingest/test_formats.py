"""Formats of logs: each row of the table, which one a log has, and what a reader remembers."""

import json
from collections.abc import Sequence

import pytest

from redmeter.ingest.access_log import NEEDS_FOLLOW, OTHER_FORMAT, REASONS, Hit, MalformedLine
from redmeter.ingest.formats import FORMATS
from redmeter.ingest.log_reader import FIRST, MOST, TRIES, LogReader

FIELDS = "#Fields: date time cs-method cs-uri-stem cs-uri-query sc-status sc-bytes"
LINE = "2002-05-24 20:18:01 GET /a q=secret 404 1277"
HIT = Hit(1022271481.0, "GET", "/a", 404, 1277)
#: 10 October 2026, 13:55:36 UTC, the second of all examples of the table.
MOMENT = 1791640536
CLF = '192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET /a HTTP/1.1" 200 5'

#: Caddy's console.
CONSOLE = (
    "2026/10/10 13:55:36.123\tINFO\thttp.log.access\thandled request\t"
    '{"request":{"method":"GET","uri":"/a"},"duration":0.5,"status":200}'
)
#: Format -> size and seconds of its example, read by a person.
EXAMPLES: dict[str, tuple[int | None, float | None]] = {
    "alb": (57, 0.051),
    "elb": (29, 0.001178),
    "s3": (2662, 0.070),
    "haproxy": (2750, 0.109),
    "envoy": (154, 0.226),
    "traefik": (5, 0.002),
    "ingress-nginx": (5, 0.102),
    "rack": (5, 0.012),
    "squid": (507, 0.192),
    "gin": (None, 0.001204),
    "uvicorn": (None, None),
    "runserver": (5, None),
    "rails": (None, 0.015),
    "lograge": (None, 0.01553),
    "heroku": (13, 0.018),
    "iis": (None, 0.015),
    "cloudfront": (392, 0.001),
    "w3c": (5, 0.012),
    "traefik-json": (12, 0.0025),
    "caddy": (10900, 0.000929),
    "gcp": (57, 0.048),
    "api-gateway": (5, 0.048),
    "azure-app-service": (5, 0.015),
    "azure-front-door": (57, 0.048),
    "azure-gateway": (57, 0.048),
    "azure-gateway-v1": (57, 0.048),
    "cloudflare": (57, 0.048),
    "cloudfront-json": (392, 0.001),
    "envoy-json": (154, 0.226),
    "pino": (None, 0.012),
    "lograge-json": (None, 0.01553),
    "ecs": (5, 0.012),
    "json": (5, 0.012),
    "combined": (5, None),
    "common": (5, None),
}


def read(lines: Sequence[str], reader: LogReader | None = None) -> list[Hit | str | None]:
    """Read a log; a line that is refused becomes its reason."""
    reader = LogReader() if reader is None else reader
    hits: list[Hit | str | None] = []
    for line in lines:
        try:
            hits.append(reader.parse_hit(line))
        except MalformedLine as error:
            hits.append(REASONS[REASONS.index(error.reason)])
    return hits


def hit(text: str) -> Hit:
    """Read the only request of a log."""
    (request,) = [each for each in read(text.split("\n")) if each is not None]
    assert isinstance(request, Hit), request
    return request


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("alone", [False, True])
def test_the_example_of_each_format_is_recognized_and_read(name: str, alone: bool) -> None:
    """Also if the format is given, and its lines are wrapped by Docker or Kubernetes."""
    formats = {name: FORMATS[name]} if alone else FORMATS
    size, seconds = EXAMPLES[name]
    path = "/a.png" if name == "s3" else "/items/9"
    lines = FORMATS[name].example.split("\n")
    docker = [
        json.dumps({"log": line + "\n", "stream": "stdout", "time": "2026-10-10T13:55:36Z"})
        for line in lines
    ]
    kubernetes = [f"2026-10-10T13:55:36.000000000Z stdout F {line}" for line in lines]
    for wrapped in ("", docker, kubernetes):
        reader = LogReader(formats, lambda: MOMENT)
        *before, request = read(wrapped or lines, reader)
        assert before == [None] * (len(lines) - 1)
        assert isinstance(request, Hit), request
        assert int(request.time) == MOMENT
        assert request[1:4] == ("GET", path, 200)
        if name in reader.requests or wrapped == docker:
            assert (request.size, request.seconds) == (size, seconds)
        (recognized,) = reader.requests
        if wrapped is docker:
            assert recognized == f"{name} in docker"
        elif not wrapped:
            assert recognized == name


@pytest.mark.parametrize(
    ("line", "path", "status", "seconds"),
    [
        # A field between time and request; a virtual host first; two spaces; a time first.
        (CLF.replace('] "', '] "shop.example" "'), "/a", 200, None),
        (CLF.replace('] "', '] 0/799940 "'), "/a", 200, None),
        (CLF.replace('] "', ']  "'), "/a", 200, None),
        ("shop.example:80 " + CLF, "/a", 200, None),
        (CLF.replace('1.1" 200', '1.1" "shop.example" TLSv1.3 200'), "/a", 200, None),
        ('2026-10-10T15:55:36+02:00 192.0.2.1 "GET /a HTTP/3.0" 200 - 0.1', "/a", 200, None),
        ('2026-10-10 13:55:36,120 INFO 192.0.2.1 - "GET /a HTTP/1.1" 200', "/a", 200, None),
        ('192.0.2.1 "GET /a HTTP/1.1" 200 5 [10/Oct/2026:13:55:36 +0000]', "/a", 200, None),
        # The unit of a number after the combined format is unknown, however it looks.
        (CLF + ' "-" "curl" 0.012', "/a", 200, None),
        (CLF + ' "-" "curl" 15321', "/a", 200, None),
        # A load balancer that got no answer has no duration; an incomplete one of HAProxy has.
        (FORMATS["alb"].example.replace("0.048", "-1").replace("200 200", "504 -"), "", 504, None),
        (FORMATS["haproxy"].example.replace("/109", "/+109"), "/items/9", 200, 0.109),
        (FORMATS["haproxy"].example.replace("0/0 ", "0/0 {h} {} "), "/items/9", 200, 0.109),
        (
            FORMATS["envoy"].example.replace("200 - 0", '200 - via_upstream - "-" 0'),
            *("/items/9", 200, 0.226),
        ),
        (FORMATS["squid"].example.replace("TCP_MISS", "TCP_DENIED"), "/items/9", 200, 0.192),
        (
            FORMATS["runserver"].example.replace("[", "h - - [").replace("200 5", "404 -"),
            *("/items/9", 404, None),
        ),
        # Durations with a unit in their name, or in the text.
        ('{"ts":1791640536,"status":200,"path":"/a","latency_ms":12}', "/a", 200, 0.012),
        ('{"ts":1791640536,"status":200,"path":"/a","duration_us":"12"}', "/a", 200, 0.000012),
        ('{"ts":1791640536,"status":200,"path":"/a","duration":12}', "/a", 200, None),
        (FORMATS["caddy"].example.replace("0.000929", '"1m2.5s"'), "/items/9", 200, 62.5),
        (FORMATS["traefik-json"].example.replace("2500000", "-1"), "/items/9", 200, None),
        ('{"msec":"1791640536.123","request":"GET /a HTTP/1.1","status":"200"}', "/a", 200, None),
        (FORMATS["caddy"].example.replace("1791640536.5241024", '"2026/10/10 13:55:36"'),
         "/items/9", 200, 0.000929),
        (CONSOLE, "/a", 200, 0.5),
    ],
)  # fmt: skip
def test_variants_of_a_line_are_read(
    line: str, path: str, status: int, seconds: float | None
) -> None:
    """By their parts, with any fields between them."""
    request = hit(line)
    assert (int(request.time), request.status, request.seconds) == (MOMENT, status, seconds)
    assert request.path == (path or "/items/9")


def test_the_columns_of_a_w3c_log_are_those_of_the_fields_line_before() -> None:
    """Also after a restart of the server with other settings."""
    begun = read([" ", "\ufeff#Software: Microsoft IIS", FIELDS, LINE, "2 3", ""])
    assert begun == ["empty", None, None, HIT, "wrong columns", "empty"]
    again = ["#Date: 2002-05-25 00:00:00", "#Fields: time\tsc-status\tcs-uri-stem\tcs-method"]
    later = Hit(HIT.time + 86400, "POST", "/b", 500, None)
    assert read([FIELDS, LINE, *again, "20:18:01\t500\t/b\tPOST"])[1:] == [HIT, None, None, later]


def test_the_unit_of_time_taken_is_that_of_the_server() -> None:
    """IIS has milliseconds, CloudFront and the draft seconds; a number alone has none."""
    fields, line = FIELDS + " time-taken", LINE + " 15"
    for first, added, value, seconds in (
        ("#Software: Microsoft Internet Information Services 10.0", "", "", 0.015),
        ("#Version: 1.0", " sc-substatus", " 0", 0.015),
        ("#Version: 1.0", " x-edge-location", " LAX1", 15.0),
        ("#Version: 1.0", "", "", 15.0),
    ):
        *_, request = read([first, fields + added, line + value])
        assert request == HIT._replace(seconds=seconds)


def test_a_w3c_line_that_is_no_request_says_what_it_lacks() -> None:
    """As other lines do."""
    wrong = [LINE.replace(*each) for each in (("20:", "99:"), ("404", "-"), ("/a", "-"))]
    assert read([FIELDS, *wrong]) == [None, "bad time", "no status", "no request"]


def test_requests_of_rails_belong_together_by_their_tags() -> None:
    """Lines of other requests are in between; without its first line, a request is none."""
    at = "for 192.0.2.1 at 2026-10-10 15:55:36 +0200"
    texts = (
        f'[aa-1] Started GET "/a?x" {at}',
        f'[aa-2] Started POST "/b" {at}',
        "[aa-1] Processing by A#show as HTML",
        "[aa-2] Completed 500 Internal Server Error in 7ms",
        "[aa-1] Completed 200 OK in 15ms (Views: 1ms)",
        "[aa-3] Completed 200 OK in 15ms (Views: 1ms)",
    )
    log = [f"I, [2026-10-10T13:55:36.1 #7]  INFO -- : {text}" for text in texts]
    first, second = Hit(MOMENT, "GET", "/a", 200, None, 0.015), Hit(MOMENT, "POST", "/b", 500, None)
    assert read(log) == [None, None, None, second._replace(seconds=0.007), first, "no request"]


def test_a_log_of_several_formats_is_read_line_by_line() -> None:
    """As the console of a container: notices are neither requests nor malformed."""
    log = [
        'INFO:     192.0.2.1:51234 - "GET /a HTTP/1.1" 200 OK',
        "INFO:     Started server process [1]",
        "[2026-10-10 13:55:36 +0000] [7] [INFO] Booting worker with pid: 7",
        CLF + ' "-" "curl"',
        '[10/Oct/2026 13:55:36] "GET /a HTTP/1.1" 200 5',
    ]
    reader = LogReader(now=lambda: 1.0)
    timed = Hit(MOMENT, "GET", "/a", 200, 5)
    untimed = timed._replace(time=1.0, size=None)
    assert read(log, reader) == [untimed, None, None, timed, timed]
    assert reader.requests == {"uvicorn": 1, "combined": 1, "runserver": 1}
    assert read(log) == [NEEDS_FOLLOW, None, None, timed, timed]


def test_a_log_has_a_few_formats_at_most() -> None:
    """Those that were recognized first; a later one is refused, and nothing is invented."""
    names = ["alb", "haproxy", "envoy", "squid", "gin"]
    reader = LogReader()
    hits = read([FORMATS[name].example for name in names] * 2, reader)
    assert list(reader.requests) == names[:MOST]
    assert [each for each in hits if not isinstance(each, Hit)] == [OTHER_FORMAT] * 2


def test_the_narrower_format_of_two_is_tried_first() -> None:
    """Or the durations would be lost of lines that are also in the combined format."""
    lines = [CLF + ' "-" "curl"', FORMATS["ingress-nginx"].example] * FIRST
    hits = read(lines)
    assert {each.seconds for each in hits if isinstance(each, Hit)} == {None, 0.102}
    assert [each for each in hits if isinstance(each, Hit) and each.seconds] == hits[1::2]


def test_the_one_format_of_a_log_is_read_without_detours() -> None:
    """After the first requests; a line in another format is read all the same."""
    reader = LogReader()
    line = CLF + ' "-" "curl"'
    assert reader.main is None
    read([line] * FIRST, reader)
    assert reader.main is not None
    assert reader.main[0] == "combined"
    read([FORMATS["alb"].example], reader)
    assert reader.main is None
    assert reader.requests == {"combined": FIRST, "alb": 1}


def test_a_format_that_is_given_is_the_only_one() -> None:
    """A line that another format could read is refused."""
    reader = LogReader({"alb": FORMATS["alb"]})
    assert read([FORMATS["alb"].example, CLF], reader)[1] == OTHER_FORMAT


def test_wrapped_lines_have_the_time_of_their_wrapper_if_they_have_none() -> None:
    """uvicorn's console in Docker."""
    line = 'INFO:     192.0.2.1:51234 - "GET /a HTTP/1.1" 200 OK'
    wrapped = {"log": line + "\n", "stream": "stdout", "time": "2026-10-10T13:55:36.123456789Z"}
    hits = read([json.dumps(wrapped), f"web-1  | {line}"])
    assert hits == [Hit(MOMENT + 0.123456, "GET", "/a", 200, None), NEEDS_FOLLOW]


def test_lines_without_a_request_cost_little_and_hide_none() -> None:
    """After many of them, only a line that may be a request is tried in every format."""
    reader = LogReader()
    noise = "2026-10-10 13:55:36,123 ERROR worker failed"
    assert set(read([noise] * 2 * TRIES, reader)) == {"no request"}
    (request,) = read([FORMATS["haproxy"].example], reader)
    assert isinstance(request, Hit)
    assert reader.requests == {"haproxy": 1}
    assert set(read([noise] * 2, reader)) == {"no request"}


def test_a_refused_line_keeps_the_reason_of_the_logs_format() -> None:
    """As replay reads it: first by the log's own reader, then in the others."""
    reader = LogReader()
    line = CLF + ' "-" "curl"'
    read([line] * FIRST, reader)
    with pytest.raises(MalformedLine) as refused:
        reader.parse_refused("noise", "bad time")
    assert refused.value.reason == "bad time"
    assert reader.parse_refused(FORMATS["alb"].example, OTHER_FORMAT) is not None


def test_a_comment_is_about_the_log_only_if_the_log_has_columns() -> None:
    """Else it is a line in no format."""
    assert read(["# a comment", FIELDS, "# a comment", LINE]) == ["no time", None, None, HIT]
