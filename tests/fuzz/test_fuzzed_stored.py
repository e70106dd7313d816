"""Fuzz: values of hashes and members of sorted sets that other programs may have written.

The round trip of valid texts is tested in tests/stored. Texts of buckets are also fuzzed in
test_exponential_histogram.py, and a page that reads such values in test_fuzzed_store.py.
"""

import contextlib
import json
import math

from hypothesis import example, given
from hypothesis import strategies as st

from redmeter.errors import IncompatibleStore
from redmeter.health.writers import parse_writers
from redmeter.reading.logs.frequencies import (
    hourly,
    pattern_place,
    sliding,
    sources_of,
    times,
    with_times,
)
from redmeter.reading.samples import Grid, counts_of, number_of, value_of
from redmeter.results import Frequency
from redmeter.results.series import CoveredWindow
from redmeter.store.config import read_meta
from redmeter.stored import packed_text
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.histogram import STATISTICS, statistics_moments
from redmeter.stored.intervals import hour_of
from redmeter.stored.keys import MAX_TIME
from redmeter.stored.mark import parse_mark
from redmeter.stored.message import format_recent, parse_recent
from redmeter.stored.packed_text import (
    MAX_INTERVAL_VALUES,
    merge_distributions,
    parse_distribution,
    parse_moments,
)
from support.fuzzing import (
    HOSTILE,
    assert_work_is_linear,
    fuzzed,
    fuzzed_slowly,
    grown,
    mutated_bytes,
)

NOW = 1_700_000_000.0
MOST = 2**63 - 1

BUCKETS = ("-3.0|1000.0|1|-1=1,1/15=1/159=1|25=1", "0.1|9.0|0|-54=1,0,3/12=2|", "0.0|0.0|2||")
MOMENTS = ("6 1001.02 833008.20033333322", "6 27.5 59.208333333333336", "2 0 0")
GAUGES = ("17.0 1699999980.25", "-0.0 1e9", "nan 1700000000")
COUNTS = ("1", "0", "-5", " 7 ", "9223372036854775807", "9223372036854775808", "1_0", "1.5")
STARTS = ("1699999980", "1699999980.0", "1.69999998e9", "-60", "")
HOURS = ("1700000000", "14", "2019-06-23T06:00:00", "1e400", "-1", "23.9", " 7 ")
ENTRIES = (
    "2026-11-21T16:13:00.123456Z retrying a",
    "Sun Jun 23 11:57:38 2019 text",
    "0000-01-01T00:00:00Z x",
    "Sun Feb 31 11:57:38 2019 x",
)
MARKS = ("1700000000.125 v1.4.2", "1e400 x", "nan x", "1 ")
STEPS = ("1699999800" + " 0" * 24 + " 7", "1699999500 3 0 1", "1e9 1", "-1 2", " ")
SEEN = ("1700000000.000001 1700000001.5 a sample", "nan 1 x", "1 2", "1e308 -1e308 ")
REPORT = json.dumps(
    {"host": "web-1", "pid": "7", "lost": {"aged": {"1": 12}}, "buffered": 3, "last_flush": 1.5}
)


@fuzzed
@given(st.lists(st.tuples(mutated_bytes(BUCKETS), mutated_bytes(MOMENTS)), max_size=3))
def test_a_slice_of_a_histogram_is_sound_or_nothing(texts: list[tuple[bytes, bytes]]) -> None:
    """Its counts add up, its quantiles are finite; and it is written and read back."""
    for buckets, moments in texts:
        found = parse_distribution(buckets, moments)
        if found is not None:
            assert_is_sound(found)
            again = parse_distribution(
                packed_text.buckets_text(found), packed_text.moments_text(found)
            )
            assert again == found
    whole = merge_distributions(texts)
    if whole.count:
        assert_is_sound(whole)


def assert_is_sound(found: Distribution) -> None:
    """Assert that a distribution can be told of."""
    held = found.zeros + sum(found.positive.values()) + sum(found.negative.values())
    assert held == found.count > 0
    assert all(map(math.isfinite, [*found.quantiles([0, 0.5, 1]), found.moments.mean]))
    assert 0 <= found.share_above(1.0) <= 1


@fuzzed
@given(mutated_bytes(MOMENTS))
def test_sums_are_finite_or_nothing(text: bytes) -> None:
    """Those of a histogram that is ranked."""
    found = parse_moments(text)
    if found is not None:
        assert 0 < found.count <= MAX_INTERVAL_VALUES
        assert math.isfinite(found.mean)
        assert 0 <= found.m2 < math.inf


@fuzzed
@given(st.lists(mutated_bytes(GAUGES) | st.none(), max_size=3))
def test_a_gauge_is_a_finite_number_of_its_slice_or_nothing(texts: list[bytes | None]) -> None:
    """A time that lies elsewhere is none."""
    for text in texts:
        value = value_of("gauge", text, 1_699_999_980, 60)
        assert value is None or math.isfinite(value)


@fuzzed
@given(st.dictionaries(mutated_bytes(STARTS), mutated_bytes(COUNTS), max_size=4))
@example({b"1699999980": b"9" * 400, b"1699999980.0": b"-1"})
@example({b"1699999980": b"9223372036854775807", b"1699999980.0": b"9223372036854775807"})
def test_a_counter_has_counts_that_fit_a_number_or_none(fields: dict[bytes, bytes]) -> None:
    """By each of the ways in which hashes are read: for curves, for sums, for series."""
    flat = [part for pair in fields.items() for part in pair]
    grid = Grid(CoveredWindow(60, 1_699_999_860, 1_700_000_040), NOW)
    series = grid.counter("x", flat)
    counts = [*counts_of(flat).values(), *map(number_of, fields.values())]
    for count in (*counts, *series.values):
        assert -MOST - 1 <= count <= MOST


@fuzzed
@given(st.none() | mutated_bytes(HOURS))
def test_an_hour_is_the_start_of_one_or_none(text: bytes | None) -> None:
    """Of what other programs write there."""
    hour = hour_of(text, NOW)
    assert hour is None or hour % 3600 == 0


@fuzzed
@given(mutated_bytes(ENTRIES))
def test_a_message_has_a_time_that_calendars_know_or_none(entry: bytes) -> None:
    """And is the same when it is written again, to the microsecond."""
    time, text = parse_recent(entry)
    if time is not None:
        again, same = parse_recent(format_recent(time, text).encode(errors="surrogatepass"))
        assert again is not None
        assert abs(again - time) < 1e-4
        assert same == text


@fuzzed
@given(mutated_bytes(MARKS))
def test_a_mark_has_a_time_in_reach_and_a_label_or_is_none(member: bytes) -> None:
    """It may be another program's."""
    found = parse_mark(member)
    assert found is None or (found.label and abs(found.time) < MAX_TIME)


@fuzzed
@given(mutated_bytes(SEEN))
def test_what_is_known_of_a_pattern_has_finite_times_or_none(value: bytes) -> None:
    """Both, or neither."""
    first, last, _ = times(value)
    assert (first is None) is (last is None)
    assert first is None or (math.isfinite(first) and math.isfinite(last or 0.0))


SCORES = st.floats(allow_nan=False).map(lambda score: repr(score).encode())


@fuzzed
@given(
    st.lists(st.tuples(mutated_bytes(("shop:error", "x")), SCORES), max_size=4),
    mutated_bytes(HOURS),
    mutated_bytes(HOURS),
    mutated_bytes(SEEN),
)
@example([(b"shop:error", b"1e308")], b"1700000000", b"14", b"1 2 x")
def test_frequencies_fit_a_number(
    scored: list[tuple[bytes, bytes]], start: bytes, before: bytes, seen: bytes
) -> None:
    """Whatever the scores are, and whichever hours they are said to be of."""
    flat = [part for pair in scored for part in pair]
    for one in hourly(("shop", "error"), [flat, flat, start, before], NOW):
        known = with_times([one], {pattern_place(one): seen})[0]
        assert 0 <= known.count <= MOST
        assert 0 <= known.before <= MOST
    for source in sources_of(flat):
        assert math.isfinite(source.last)


@fuzzed
@given(
    st.dictionaries(st.sampled_from(("", "a", "b")), mutated_bytes(STEPS)),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
@example({"": b"1699999800" + b" 0" * 25, "b": b"1699999800 " + b"9" * 30}, (0, 0))
def test_sliding_frequencies_fit_a_number(steps: dict[str, bytes], counts: tuple[int, int]) -> None:
    """Whatever the counts by five minutes are."""
    hourly = [Frequency("shop", "error", "a", *counts, None, None, "")]
    for one in sliding(("shop", "error"), hourly, steps, NOW):
        assert 0 <= one.count <= MOST
        assert 0 <= one.before <= MOST


@fuzzed
@given(st.dictionaries(st.sampled_from(STATISTICS), st.floats(allow_nan=False), max_size=8))
def test_statistics_of_any_members_are_finite(members: dict[str, float]) -> None:
    """A sorted set has no NaN, but infinities."""
    found = statistics_moments(members)
    assert found.count >= 0
    if found.count:
        assert math.isfinite(found.total)
        assert math.isfinite(found.m2)
        assert math.isfinite(found.stddev())


META = ("1", "1=120 5=120", "1700000000000", "", "64")


@fuzzed
@given(
    st.dictionaries(
        st.sampled_from([b"format", b"partitions", b"retention", b"histograms", b"version"])
        | mutated_bytes(("format",)),
        mutated_bytes(META),
    )
)
@example({b"\xff": b"1"})
def test_what_a_store_says_of_itself_is_understood_or_refused(fields: dict[bytes, bytes]) -> None:
    """As a store of another version."""
    whole = {b"format": b"1", b"partitions": b"1", b"retention": b"1=1", b"version": b"1"}
    for given_fields in (fields, whole | fields):
        with contextlib.suppress(IncompatibleStore):
            found = read_meta(dict(given_fields), 1)
            assert found is None or found.retention


@fuzzed
@given(
    st.lists(
        st.tuples(
            st.binary(max_size=4),
            mutated_bytes((REPORT, "[" * 99, "{}")) | st.binary(),
            mutated_bytes(("3", "")),
        ),
        max_size=3,
        unique_by=lambda one: one[0],
    )
)
def test_a_report_is_a_writer_or_counted(rows: list[tuple[bytes, bytes, bytes]]) -> None:
    """And a writer can be told of."""
    seen = [part for name, _, _ in rows for part in (name, b"1699999999")]
    told = [part for name, report, _ in rows for part in (name, report)]
    numbers = [part for name, _, number in rows for part in (name, number)]
    writers, unreadable = parse_writers(NOW, [seen, told, numbers])
    assert len(writers) + unreadable == len(rows)
    for writer in writers:
        assert writer.number("buffered") >= 0
        assert writer.lost() is not None
        json.dumps(dict(writer.report), allow_nan=False)


def work_on_all(text: str) -> None:
    """Have each of them read a text."""
    data = text.encode(errors="surrogatepass")
    parse_distribution(data, b"6 27.5 59.2")
    parse_distribution(BUCKETS[0].encode(), data)
    parse_moments(data)
    value_of("gauge", data, 0, 60)
    number_of(data)
    hour_of(data, NOW)
    parse_recent(data)
    parse_mark(data)
    times(data)
    with contextlib.suppress(IncompatibleStore):
        read_meta({b"format": b"1", b"partitions": b"1", b"retention": data, b"version": data}, 1)
    parse_writers(NOW, [[b"a", b"1699999999"], [b"a", data], [b"a", data]])
    sources_of([data, b"1"])


def test_a_long_number_that_is_none_is_read_once() -> None:
    """As an hour: an expression that goes back would look at each digit for each other."""
    assert_work_is_linear(lambda text: hour_of(text, NOW), lambda length: "1" * length + "x")


@fuzzed_slowly
@given(
    grown(
        (
            *(*BUCKETS, *MOMENTS, *GAUGES, *COUNTS, *HOURS, *ENTRIES, *MARKS, *META, REPORT),
            *(*HOSTILE, "1", " ", "1=1 ", ",0", "/9=1", "{", '{"a":', "1e", "."),
        )
    )
)
def test_what_is_stored_takes_work_by_its_length(of_length: object) -> None:
    """Whatever is repeated in it: anybody who may write there could keep readers busy."""
    assert_work_is_linear(work_on_all, of_length)  # type: ignore[arg-type]
