"""Formats of logs: which reader a log has, and what a reader remembers."""

from redmeter.ingest.access_log import REASONS, Hit, MalformedLine
from redmeter.ingest.formats import with_reader

FIELDS = "#Fields: date time cs-method cs-uri-stem cs-uri-query sc-status sc-bytes"
LINE = "2002-05-24 20:18:01 GET /a q=secret 404 1277"
HIT = Hit(1022271481.0, "GET", "/a", 404, 1277)


def read(*batches: list[str]) -> list[Hit | str | None]:
    """Read a log; a line that is refused becomes its reason."""
    found: list[Hit | str | None] = []
    for reader, batch in with_reader(batches):
        for line in batch:
            try:
                found.append(reader.parse_hit(line))
                assert reader.parse_hit_time(line) == (found[-1] and found[-1][0])
            except MalformedLine as error:
                found.append(REASONS[REASONS.index(error.reason)])
    return found


def test_the_columns_of_a_w3c_log_are_those_of_the_fields_line_before() -> None:
    """Also across batches, and after a restart of the server with other settings."""
    begun = read([], [" "], ["\ufeff#Software: Microsoft IIS", FIELDS], [LINE, "2 3", ""])
    assert begun == ["empty", None, None, HIT, "wrong columns", "empty"]
    again = ["#Date: 2002-05-25 00:00:00", "#Fields: time\tsc-status\tcs-uri-stem\tcs-method"]
    later = Hit(HIT.time + 86400, "POST", "/b", 500, None)
    assert read([FIELDS, LINE, *again, "20:18:01\t500\t/b\tPOST"])[1:] == [HIT, None, None, later]


def test_a_w3c_line_that_is_no_request_says_what_it_lacks() -> None:
    """As other lines do."""
    wrong = [LINE.replace(*each) for each in (("20:", "99:"), ("404", "-"), ("/a", "-"))]
    assert read([FIELDS, *wrong]) == [None, "bad time", "no status", "no request"]


def test_a_log_that_begins_otherwise_is_an_access_log() -> None:
    """A later line that looks like a directive changes nothing."""
    line = '::1 - - [24/May/2002:20:18:01 +0000] "GET /a HTTP/1.1" 404 1277'
    assert read([line, FIELDS], [line]) == [HIT, "no time", HIT]
