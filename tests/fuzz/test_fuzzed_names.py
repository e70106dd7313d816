"""Fuzz: names with labels, entries of indexes, retention, prefixes, marks, loggers, orders.

Next to tests/test_names.py and tests/test_keys.py, which try any text and go there and back.
"""

import contextlib

from hypothesis import given

from redmeter.errors import InvalidName, InvalidSetting, InvalidValue
from redmeter.names import MAX_BYTES, MAX_SERIES_BYTES, canonical, cleaned, format_name
from redmeter.names import parse_name as parse_series
from redmeter.reading.names import matching, matching_ends
from redmeter.reading.ranking import RANKING_ORDERS, Order
from redmeter.stored.keys import (
    MAX_PRECISION,
    Keys,
    Retention,
    check_prefix,
    parse_changes,
    parse_entry,
)
from redmeter.stored.mark import MAX_LABEL, clean_label
from redmeter.stored.message import MAX_SEVERITY, logger_of, parse_source, severity_of, source_name
from support.fuzzing import HOSTILE, assert_work_is_linear, fuzzed, fuzzed_slowly, grown, mutated

NAMES = (
    *("signups", "点击量", "a:b*c?[d]", 'x{a="1"}', 'x{ b = "2" , a="1", }', "x{}"),
    'http_requests{method="GET",route="/a/{id}",status="2xx"}',
    'x{a="\\\\ \\" \\n \\q",b=""}',
    "n" * 200,
)
RETENTIONS = ("1=120 5=120 60=120", "60=240,3600=1", "31622400=254", "1=0", " 5=5\t7=7\n")


@fuzzed
@given(mutated(NAMES))
def test_a_name_has_one_spelling_or_none(name: str) -> None:
    """Which is read as the same labels, and is its own spelling."""
    try:
        series = parse_series(name)
        stored = canonical(name)
    except InvalidName:
        return
    assert parse_series(stored) == series
    assert canonical(stored) == stored == format_name(series.base, dict(series.labels))
    assert len(stored.encode()) <= (MAX_SERIES_BYTES if "{" in stored else MAX_BYTES)
    assert cleaned(stored) == stored


@fuzzed
@given(mutated(("60:hits", 'redmeter:count:60:x{a="1"}', "1:a", "0:a", "60*60:hits", ":x")))
def test_an_entry_is_a_precision_and_a_name_or_none(text: str) -> None:
    """And so is what stands behind the family of a key."""
    found = parse_entry(text)
    if found is not None:
        precision, name = found
        assert 1 <= precision <= MAX_PRECISION
        assert text.endswith(f":{name}")
        assert Keys().series_of(Keys().key("count", text)) == found
    Keys().series_of(text)


@fuzzed
@given(mutated(RETENTIONS))
def test_a_retention_is_read_back_or_refused(text: str) -> None:
    """Changes of one, too."""
    with contextlib.suppress(InvalidSetting):
        parse_changes(text.split())
    try:
        retention = Retention.parse(text)
    except InvalidSetting:
        return
    assert Retention.parse(str(retention)) == retention


@fuzzed
@given(mutated(("redmeter:", "", "app.", "redmeter:bare:")))
def test_a_prefix_makes_keys_or_is_refused(text: str) -> None:
    """Keys of which none has braces of its own."""
    try:
        check_prefix(text)
    except InvalidSetting:
        return
    assert "{" not in Keys(text).known


@fuzzed
@given(mutated(("v1.4.2", "rollback of v2 ", "\x1b[1mx\x1b[0m", "a\nb")))
def test_a_label_of_a_mark_is_one_line_or_refused(text: str) -> None:
    """And the same when it is noted again."""
    try:
        label = clean_label(text)
    except InvalidValue:
        return
    assert len(label) <= MAX_LABEL
    assert "\n" not in label
    assert clean_label(label) == label


@fuzzed
@given(mutated(("shop.worker", "a:b", "")), mutated(("error", "WARN", "start", "a:b", "")))
def test_loggers_and_severities_are_taken_apart_again(logger: str, severity: str) -> None:
    """Whatever a program calls them."""
    source = logger_of(logger), severity_of(severity)
    assert parse_source(source_name(*source)) == source
    assert len(source[1].encode()) <= MAX_SEVERITY + 1
    assert len(source[0].encode()) <= MAX_BYTES


@fuzzed
@given(mutated(("p95", "p99.9", "p100", "count", "p0")))
def test_an_order_is_one_that_there_is_or_refused(word: str) -> None:
    """A percentile lies within 0 and 1."""
    try:
        order = Order.parse(word)
    except InvalidValue:
        return
    assert order.word in RANKING_ORDERS or (order.q is not None and 0 <= order.q <= 1)


@fuzzed
@given(mutated(("*", "sal*", "[a-c]x", "[!a]", "a[", "?")), mutated(NAMES))
def test_a_pattern_finds_only_what_lies_between_its_ends(pattern: str, name: str) -> None:
    """The server is asked for a part of the index; what matches must lie within."""
    with contextlib.suppress(InvalidName):
        stored = canonical(name)
        first, end = matching_ends(60, pattern)
        if matching([stored], pattern):
            entry = f"60:{stored}".encode()
            assert entry >= first[1:]
            assert entry <= end[1:] if end[:1] == b"[" else entry < end[1:]


@fuzzed_slowly
@given(grown((*NAMES, *RETENTIONS, *HOSTILE, "a", "*", "*a", "[a", "\x1b[", "\x1b]")))
def test_names_take_work_by_their_length(of_length: object) -> None:
    """Whatever is repeated in them: as names, patterns, labels of marks, retention."""

    def work(text: str) -> None:
        for read in (canonical, Retention.parse, check_prefix, clean_label, parse_entry, cleaned):
            with contextlib.suppress(InvalidName, InvalidSetting, InvalidValue):
                read(text)
        severity_of(text[:1] + text)
        logger_of(text[:1] + text)
        matching(["n" * 200, 'x{a="1"}'], text[:MAX_BYTES])

    assert_work_is_linear(work, of_length)  # type: ignore[arg-type]
