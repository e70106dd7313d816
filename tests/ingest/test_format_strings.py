"""Formats that a user gives: the parts of nginx's and Apache's strings, and their errors."""

import pytest

from redmeter.errors import InvalidSetting
from redmeter.ingest.access_log import OTHER_FORMAT, Hit, MalformedLine
from redmeter.ingest.format_strings import format_of
from redmeter.ingest.formats import FORMATS
from redmeter.ingest.log_reader import LogReader

#: 10 October 2026, 13:55:36 UTC
MOMENT = 1791640536.0
AT = "10/Oct/2026:13:55:36 +0000"
REST = '"GET /a?b HTTP/1.1" 200 5 "-" "x \\"y\\""'
HIT = Hit(MOMENT, "GET", "/a", 200, 5)
#: What nginx.conf and httpd.conf have.
NGINX = """log_format timed '$remote_addr - $remote_user [$time_local] "$request" '
                 '$status $body_bytes_sent "$http_referer" '
                 '"$http_user_agent" rt=$request_time uct="$upstream_connect_time"';"""
URI = (
    "$msec $upstream_response_time $request_method $scheme://$host$request_uri $status "
    "$body_bytes_sent"
)
OBJECT = (
    '{"at":"$time_iso8601","what":"$request","code":$status,"size":$body_bytes_sent,'
    '"took":$request_time}'
)
OBJECT_LINE = (
    '{"at":"2026-10-10T13:55:36+00:00","what":"GET /a HTTP/1.1","code":200,"size":5,"took":0.5}'
)
APACHE = (
    'LogFormat "%v:%p %h %l %u %t \\"%r\\" %>s %O \\"%{Referer}i\\" \\"%{User-Agent}i\\" %{ms}T" v'
)


@pytest.mark.parametrize(
    ("form", "line", "expected"),
    [
        (NGINX, f'192.0.2.1 - Ann X [{AT}] {REST} rt=0.015 uct="0.1, 0.2"', 0.015),
        (APACHE, f"shop:80 192.0.2.1 - - [{AT}] {REST} 15", 0.015),
        ('%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i" %D',
         f"192.0.2.1 - Ann X [{AT}] {REST} 15000", 0.015),
        # The finest of several durations counts.
        ('%t "%r" %>s %b "%{Referer}i" "%{User-agent}i" %T/%D', f"[{AT}] {REST} 1/1500000", 1.5),
        ("%t %m %U %s %b %T", f"[{AT}] GET /a 200 5 2", 2.0),
        ("%{%Y-%m-%d %H:%M:%S}t.%{msec_frac}t %{%z}t %m %U %>s %B %{us}T",
         "2026-10-10 15:55:36.123 +0200 GET /a 200 5 2000", 0.002),
        ("%{sec}t|%m|%U|%>s|%B", f"{MOMENT:.0f}|GET|/a|200|5", None),
        ("$time_local|$remote_addr|$request|$status|$http_referer|$body_bytes_sent|$request_time",
         f"{AT}|192.0.2.1|GET /a?b HTTP/1.1|200|-|5|0.062", 0.062),
        ("$time_local $request $status $body_bytes_sent ${request_time}",
         f"{AT} GET /a?b HTTP/1.1 200 5 0.062", 0.062),
        (URI, f"{MOMENT:.3f} 0.1, 0.2 GET https://shop/a?b 200 5", None),
        (OBJECT, OBJECT_LINE, 0.5),
        ("combined", f"192.0.2.1 - - [{AT}] {REST} 15000", None),
    ],
)  # fmt: skip
def test_lines_are_read_as_their_format_says(form: str, line: str, expected: float | None) -> None:
    """With the unit of its duration; other fields are skipped."""
    reader = LogReader(format_of(form))
    assert reader.parse_hit(line) == HIT._replace(seconds=expected)
    with pytest.raises(MalformedLine) as refused:
        reader.parse_hit("192.0.2.1 something else")
    assert refused.value.reason in (OTHER_FORMAT, "no time")


@pytest.mark.parametrize("name", FORMATS)
def test_names_of_the_table_are_formats(name: str) -> None:
    """In any case of letters."""
    assert format_of(name.upper()) == {name: FORMATS[name]}


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ("apache", "no format is called 'apache'; give nginx's log_format, Apache's LogFormat, or"),
        ("$status $request", "the format lacks $time_local, $time_iso8601 or $msec"),
        ('%h "%r"', "the format lacks %t, and %>s"),
        ("$time_local $request $status $http_a$http_b", "nothing is between $http_a and $http_b"),
        ('{"time":"$time_local",}', "the format is no JSON object"),
        ('{"time":"$time_local"}', "the format lacks $request, $request_uri or $uri, and $status"),
    ],
)
def test_a_format_that_cannot_be_read_says_why(form: str, problem: str) -> None:
    """With the option's name, before a line is read."""
    with pytest.raises(InvalidSetting, match="--format") as refused:
        format_of(form)
    assert problem in str(refused.value)
