"""The stored format: slices that tile time, retention that survives its text, keys that differ."""

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from redmeter.errors import InvalidSetting, InvalidValue, UnknownPrecision
from redmeter.stored.keys import (
    DEFAULT_HISTOGRAMS,
    DEFAULT_RETENTION,
    HOUR,
    MAX_PRECISION,
    MAX_PRECISIONS,
    MAX_PREFIX,
    MAX_SAMPLES,
    MAX_TIME,
    Keys,
    Retention,
    check_prefix,
    check_time,
    entry,
    parse_changes,
    parse_entry,
    slice_start,
)

precisions = st.integers(1, MAX_PRECISION)
times = st.integers(1 - MAX_TIME, MAX_TIME - 1) | st.floats(1 - MAX_TIME, MAX_TIME - 1)
retentions = st.dictionaries(
    precisions, st.integers(1, MAX_SAMPLES), min_size=1, max_size=MAX_PRECISIONS
).map(Retention)
prefixes = st.text(
    st.characters().filter(lambda c: c.isprintable() and c not in "{}"), max_size=MAX_PREFIX // 4
)
#: Names as they are stored, with much that looks like a part of a key.
names = st.lists(
    st.sampled_from(
        ["60", ":", "count:", "known:", "6", "0", "a", "{", "}", "*", "redmeter:", "点"]
    ),
    min_size=1,
    max_size=6,
).map("".join)


def of_type(value: object) -> str:
    """Return a test's id that does not write out numbers of 5,000 digits."""
    return type(value).__name__


# Slices


@pytest.mark.parametrize(
    ("time", "precision", "start"),
    [
        (0, 60, 0),
        (59.999, 60, 0),
        (60, 60, 60),
        (-1, 60, -60),
        (-60, 60, -60),
        (-60.000001, 60, -120),
        (-0.5, 1, -1),
        (-1e-9, 86400, -86400),
        (13, 7, 7),
        (-1, 7, -7),
        (-8, 7, -14),
        (1585900000.75, 3600, 1585897200),
        (1585900000, 18000, 1585890000),
        (2**40 - 0.0625, 1, 2**40 - 1),
    ],
)
def test_a_slice_starts_at_the_floor(time: float, precision: int, start: int) -> None:
    """Examples, of either sign, and of a width that divides no minute."""
    assert slice_start(time, precision) == start


@given(times, precisions)
def test_every_time_lies_in_exactly_one_slice(time: float, precision: int) -> None:
    """Slices start at whole multiples of their width, before 1970 as well."""
    start = slice_start(time, precision)
    assert type(start) is int
    assert start % precision == 0
    assert start <= Fraction(time) < start + precision


@given(st.integers(-(10**9), 10**9), st.integers(1, 1000))
def test_the_last_moment_before_a_slice_is_not_in_it(number: int, precision: int) -> None:
    """Not even where the quotient of the two would be rounded up to a whole number."""
    start = number * precision
    assert slice_start(float(start), precision) == start
    assert slice_start(math.nextafter(start, -math.inf), precision) == start - precision


@given(times, st.integers(1, 10_000), st.integers(1, 1000))
def test_fine_slices_lie_within_coarse_ones(time: float, fine: int, times_as_wide: int) -> None:
    """Where one width divides the other, going by way of the fine slice makes no difference."""
    coarse = fine * times_as_wide
    assert slice_start(slice_start(time, fine), coarse) == slice_start(time, coarse)


@given(times)
def test_a_time_in_reach_is_accepted_as_it_is(time: float) -> None:
    """Whole or not, before 1970 or after."""
    assert check_time(time) == time


@pytest.mark.parametrize(
    "time",
    [
        *(math.nan, math.inf, -math.inf, 2**40, -(2**40), 1.7e12, 10**400, -(10**5000)),
        *(True, None, "1700000000", b"1", 1j, Fraction(1), [1]),
    ],
    ids=of_type,
)
def test_a_time_out_of_reach_is_refused(time: Any) -> None:
    """Milliseconds, infinities and what is no number at all."""
    with pytest.raises(InvalidValue, match="Unix seconds"):
        check_time(time)


# Retention


@given(retentions, st.sampled_from([" ", ", ", ",", "  ", "\n"]))
def test_a_retention_is_parsed_back_from_its_text(retention: Retention, between: str) -> None:
    """In whatever way the pairs are set apart."""
    text = str(retention)
    assert Retention.parse(text) == retention
    assert str(Retention.parse(between.join(text.split()))) == text
    assert eval(repr(retention)) == retention  # noqa: S307


@given(retentions, st.randoms(use_true_random=False))
def test_a_retention_is_ascending_whatever_the_order_it_was_given_in(
    retention: Retention, random: Any
) -> None:
    """Two that keep the same are equal, and written the same."""
    pairs = list(retention.items())
    random.shuffle(pairs)
    other = Retention(dict(pairs))
    assert list(other) == sorted(other)
    assert (other, str(other)) == (retention, str(retention))
    assert [other[p] for p in other] == [count for _, count in sorted(pairs)]


def test_a_retention_does_not_change_with_what_it_was_made_of() -> None:
    """It is a copy, and has no means to be changed."""
    source = {60: 120}
    retention = Retention(source)
    source[60] = 5
    source[1] = 1
    assert dict(retention) == {60: 120}
    changeable: Any = retention
    with pytest.raises(TypeError):
        changeable[60] = 1
    with pytest.raises(AttributeError):
        changeable.other = 1


@pytest.mark.parametrize(
    "samples",
    [
        *({}, {0: 1}, {-1: 1}, {MAX_PRECISION + 1: 1}, {1.0: 1}, {"60": 1}, {True: 1}, {None: 1}),
        *({1: 0}, {1: -1}, {1: MAX_SAMPLES + 1}, {1: 1.0}, {1: "120"}, {1: True}, {1: None}),
        *({10**5000: 1}, {1: 10**5000}, dict.fromkeys(range(1, MAX_PRECISIONS + 2), 1)),
    ],
    ids=of_type,
)
def test_a_retention_out_of_range_is_refused(samples: Any) -> None:
    """Neither none nor too many precisions, each with a whole number of samples in range."""
    with pytest.raises(InvalidSetting, match=r"retention: .*1 to ") as caught:
        Retention(samples)
    assert caught.value.setting == "retention"


def test_as_many_samples_are_kept_as_fit_the_compact_encoding() -> None:
    """The past ones, as many of clocks that run ahead, and the two at the edges: 512 fields."""
    assert 2 * MAX_SAMPLES + 2 <= 512 < 2 * (MAX_SAMPLES + 2) + 2
    assert Retention({1: MAX_SAMPLES, MAX_PRECISION: 1})
    assert list(DEFAULT_RETENTION) == [1, 5, 60, 300, 3600, 18000, 86400]


@pytest.mark.parametrize("kept", [DEFAULT_RETENTION, DEFAULT_HISTOGRAMS], ids=["series", "hists"])
def test_a_new_store_keeps_the_hours_of_last_week(kept: dict[int, int]) -> None:
    """A whole day of a week ago is kept while today lasts."""
    week = 7 * 86400
    assert Retention(kept).oldest(3600, 0) <= -week - 86400
    assert {samples for precision, samples in kept.items() if precision >= 60} == {120, 240}


@given(
    st.text(max_size=30)
    | st.lists(
        st.sampled_from(["1", "60", "=", "=120", " ", ",", "-1", "0", "9" * 50, "１", "²", "x"]),
        max_size=8,
    ).map("".join)
)
def test_any_text_is_a_retention_or_an_invalid_setting(text: str) -> None:
    """Nothing else is raised, and what is accepted says the same again."""
    try:
        retention = Retention.parse(text)
    except InvalidSetting as error:
        refusal = error
    else:
        assert Retention.parse(str(retention)) == retention
        return
    assert refusal.setting == "retention"
    assert len(str(refusal)) < 300


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1 to 16 precisions, not 0"),
        ("60=120 60=240", "precision 60 is given twice"),
        ("60:120", "'60:120' is not PRECISION=SAMPLES, e.g. 60=240"),
        ("60=", "is not PRECISION=SAMPLES"),
        ("=60", "is not PRECISION=SAMPLES"),
        ("1m=120", "is not PRECISION=SAMPLES"),
        ("60=1=2", "is not PRECISION=SAMPLES"),
        ("60=255", "255 samples at precision 60: a whole number, 1 to 254"),
        ("0=120", "precision 0: a whole number of seconds, 1 to 31622400"),
        ("60=0", "0 samples at precision 60"),
    ],
)
def test_a_text_that_is_no_retention_is_told_what_one_is(text: str, told: str) -> None:
    """The word at fault, and the form."""
    with pytest.raises(InvalidSetting, match=told):
        Retention.parse(text)


def test_a_change_adds_replaces_and_removes() -> None:
    """0 samples: no longer kept; the old retention stays as it was."""
    retention = Retention.parse("1=120 60=120")
    changed = retention.changed(parse_changes(["60=240", "1=0", "300=12"]))
    assert str(changed) == "60=240 300=12"
    assert str(retention) == "1=120 60=120"
    with pytest.raises(InvalidSetting, match="1 to 16 precisions, not 0"):
        retention.changed([(1, 0), (60, 0)])


@pytest.mark.parametrize("words", [["60=1", "60=2"], ["60=1", "5=1", "060=1"], ["60=0", "60=0"]])
def test_a_change_that_names_a_precision_twice_is_refused(words: list[str]) -> None:
    """However it is spelled: which of them is meant, nobody knows."""
    with pytest.raises(InvalidSetting, match="retention: precision 60 is given twice"):
        parse_changes(words)


@pytest.mark.parametrize(
    "precision", [2, 0, -1, 60.0, "60", True, None, 10**5000, [60]], ids=of_type
)
def test_a_precision_that_is_not_kept_is_an_error_that_lists_those_that_are(precision: Any) -> None:
    """Also where it is not a whole number at all."""
    retention = Retention.parse("1=120 60=120")
    with pytest.raises(UnknownPrecision, match=r"kept are \(seconds\): 1, 60") as caught:
        retention.check(precision)
    assert caught.value.kept == (1, 60)
    assert retention.check(60) == 60
    own = Retention({5: 24}, of="histograms").changed([(5, 30)])
    with pytest.raises(UnknownPrecision, match=r"`redmeter retention --histograms 1=120` keeps it"):
        own.check(1)


@given(retentions, times)
def test_as_many_slices_count_as_samples_are_kept(retention: Retention, now: float) -> None:
    """From the oldest to the running one, at every precision."""
    for precision, samples in retention.items():
        oldest = retention.oldest(precision, now)
        count = len(range(oldest, slice_start(now, precision) + 1, precision))
        assert (count, oldest % precision) == (samples, 0)


# Keys


def test_keys_are_byte_for_byte_what_the_format_says() -> None:
    """With our prefix, with another, and with none, where nothing of ours lies bare."""
    keys = Keys()
    assert (keys.known, keys.count(60, "hits")) == ("redmeter:known:", "redmeter:count:60:hits")
    assert (keys.meta, keys.total) == ("redmeter:meta:", "redmeter:total:")
    assert keys.batch("ab") == "redmeter:batch:ab"
    keys = Keys("shop.")
    assert (keys.known, keys.count(1, "a:b")) == ("shop.known:", "shop.count:1:a:b")
    assert (keys.meta, keys.total, keys.batch("c")) == ("shop.meta:", "shop.total:", "shop.batch:c")
    keys = Keys("")
    assert (keys.known, keys.count(5, "hits")) == ("known:", "count:5:hits")
    assert (keys.meta, keys.total) == ("redmeter:bare:meta:", "redmeter:bare:total:")
    assert keys.batch("ab") == "redmeter:bare:batch:ab"
    assert (keys.gauges, keys.gauge(5, "q")) == ("redmeter:bare:gauges:", "redmeter:bare:gauge:5:q")
    keys = Keys()
    assert (keys.gauges, keys.gauge(60, "q")) == ("redmeter:gauges:", "redmeter:gauge:60:q")
    keys = Keys("")
    assert (keys.writers, keys.reports) == ("redmeter:bare:writers:", "redmeter:bare:reports:")
    assert (keys.instances, Keys("a:").instances) == ("redmeter:bare:instances:", "a:instances:")


@given(prefixes, precisions, names, precisions, names)
def test_different_series_have_different_keys(
    prefix: str, precision: int, name: str, other_precision: int, other: str
) -> None:
    """No name, however much it looks like a part of a key, leads to another's hash."""
    assume((precision, name) != (other_precision, other))
    keys = Keys(prefix)
    assert keys.count(precision, name) != keys.count(other_precision, other)
    assert entry(precision, name) != entry(other_precision, other)


def test_look_alike_names_and_precisions_have_different_keys() -> None:
    """Every short name over the digits and colons that keys are made of."""
    texts = ["".join(t) for n in (1, 2, 3, 4) for t in itertools.product("06:", repeat=n)]
    for prefix in ("", "redmeter:", "count:", "60:"):
        keys = Keys(prefix)
        found = {keys.count(precision, name) for precision in (6, 60, 600) for name in texts}
        assert len(found) == 3 * len(texts)


@given(prefixes, precisions, names)
def test_no_counter_has_the_key_of_anything_else(prefix: str, precision: int, name: str) -> None:
    """The families do not overlap."""
    keys = Keys(prefix)
    others = {keys.known, keys.meta, keys.total, keys.batch(name), keys.batch("0" * 32)}
    others |= {keys.gauges, keys.gauge(precision, name)}
    assert len(others) == 7
    assert keys.count(precision, name) not in others


@given(prefixes, precisions, names)
def test_an_entry_of_the_index_leads_to_its_hash(prefix: str, precision: int, name: str) -> None:
    """The key is a head of so many bytes and then the entry; and the entry is read back."""
    keys, text = Keys(prefix), entry(precision, name)
    key = keys.count(precision, name)
    assert keys.key("count", text) == key
    assert key.encode()[len(keys.key("count").encode()) :] == text.encode()
    assert keys.key("gauge", text) == keys.gauge(precision, name)
    assert keys.gauge(precision, name).encode()[len(keys.key("gauge").encode()) :] == text.encode()
    assert parse_entry(text) == (precision, name)


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "hits", ":hits", "60", "60:", "60*60:hits", "-60:hits", "0:hits", "60.0:hits"),
        *(
            " 60:hits",
            "+60:x",
            "6_0:x",
            "²:x",
            "６０:x",
            "9" * 5000 + ":x",
            f"{MAX_PRECISION + 1}:x",
        ),
    ],
)
def test_what_is_no_entry_is_read_as_none(text: str) -> None:
    """Other programs' members, which are left alone."""
    assert parse_entry(text) is None


@given(st.text(max_size=70))
def test_any_text_is_a_prefix_or_an_invalid_setting(prefix: str) -> None:
    """An accepted one makes no hash tag, breaks no line and is at most 64 bytes."""
    try:
        assert check_prefix(prefix) == prefix
    except InvalidSetting as error:
        refusal = error
    else:
        assert "{" not in Keys(prefix).known
        assert "}" not in Keys(prefix).known
        assert prefix.isprintable()
        assert len(prefix.encode()) <= MAX_PREFIX
        return
    assert refusal.setting == "prefix"


@pytest.mark.parametrize("prefix", ["{a}", "a{", "}", "a\n", "\x00", "\u202e", "\ud800"])
@pytest.mark.parametrize("at", ["", "ab:"])
def test_a_prefix_with_braces_or_control_characters_is_refused(prefix: str, at: str) -> None:
    """Wherever they stand."""
    with pytest.raises(InvalidSetting, match="prefix: no braces"):
        Keys(at + prefix)


@pytest.mark.parametrize("prefix", [None, 1, b"a:", ["a"], "a" * 65, "点" * 22])
def test_a_prefix_is_text_of_64_bytes_at_most(prefix: Any) -> None:
    """Bytes of UTF-8 are counted."""
    with pytest.raises(InvalidSetting, match="prefix: text of at most 64 bytes"):
        Keys(prefix)
    assert Keys("a" * 64).known.startswith("a" * 64)


@given(
    st.text("abc:~", min_size=1, max_size=4), st.sampled_from(["", ":start", ":last", ":pstart"])
)
def test_the_statistics_of_a_name_lead_back_to_it_and_meet_no_others(name: str, end: str) -> None:
    """A name that ends as a key of the hours does is marked; that of another program is not."""
    keys, name = Keys("x:"), name + end
    first, *others = keys.stats(name)
    assert keys.series_of(first) == (HOUR, name)
    assert not {first}.intersection(*[keys.stats(name.rpartition(":")[0])[1:]])
    for other in others:
        assert keys.stats(other.removeprefix("x:stats:"))[0] != other
    assert keys.stats(name, as_is=True)[0] == f"x:stats:{name}"
