"""Distributions: buckets that are exactly where they are said to be, and what is told from them.

The reference is the sorted values themselves: nearest rank, and fractions for mean and spread.
"""

import itertools
import math
import random
import statistics
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from redmeter.errors import InvalidValue
from redmeter.stored.exponential_histogram import (
    HIGHEST,
    LOWEST,
    RELATIVE_ERROR,
    SCALE,
    Distribution,
    bucket_of,
    middle,
    upper_edge,
)
from redmeter.stored.moments import MAX_DOUBLE
from redmeter.stored.packed_text import (
    MAX_INTERVAL_VALUES,
    MAX_TEXT,
    buckets_text,
    merge_distributions,
    moments_text,
    parse_distribution,
)
from support.examples import scaled

LEAST = 2.0**-1074
finite = st.floats(allow_nan=False, allow_infinity=False)
usual = st.floats(1e-9, 1e9) | st.floats(-1e9, -1e-9) | st.just(0.0)
#: Many buckets, few buckets, and values that stand on edges.
values = (
    st.lists(finite, min_size=1, max_size=60)
    | st.lists(usual, min_size=1, max_size=60)
    | st.lists(st.integers(-40, 40).map(lambda e: 2.0**e), min_size=1, max_size=60)
    | st.lists(st.sampled_from([0.0, -0.0, 0.1, -3.0, LEAST, MAX_DOUBLE]), min_size=1, max_size=9)
)
RANDOM = random.Random(20)  # for data that only has to be of some shape
DATA = {
    "log-normal": [RANDOM.lognormvariate(-3, 1) for _ in range(3000)],
    "a heavy tail": [RANDOM.paretovariate(0.8) for _ in range(3000)],
    "two humps": [RANDOM.gauss(10, 1) for _ in range(900)]
    + [RANDOM.gauss(500, 9) for _ in range(300)],
    "a constant": [0.1] * 70,
    "zeros": [0.0] * 50 + [1.0],
    "negatives": [-RANDOM.lognormvariate(2, 2) for _ in range(1000)],
    "mixed signs": [RANDOM.gauss(0, 1) for _ in range(1000)] + [0.0] * 40,
    "1e-9 to 1e9": [10 ** RANDOM.uniform(-9, 9) for _ in range(2000)],
    "powers of two": [2.0**e for e in range(-1074, 1024)],
    "one value": [3.7],
    "two values": [-2.0, 5.0],
    "whole numbers": [float(RANDOM.randrange(1, 40)) for _ in range(1000)],
}
LARGE = {  # the digits of the spread -> values around 10^9
    digits: [1e9 + RANDOM.randrange(10**digits) for _ in range(500)] for digits in range(1, 7)
}


def of(*given_values: float) -> Distribution:
    """Return the distribution of some values."""
    found = Distribution()
    found.add_all(given_values)
    return found


def index_by_fractions(value: float) -> int:
    """Return the bucket by its definition, (2^(i/16), 2^((i+1)/16)], in whole numbers alone."""
    sixteenth = Fraction(value) ** 16  # 2^i < value^16 <= 2^(i+1)
    index = sixteenth.numerator.bit_length() - sixteenth.denominator.bit_length()
    while sixteenth <= Fraction(2) ** index:
        index -= 1
    while sixteenth > Fraction(2) ** (index + 1):
        index += 1
    return index


def nearest_rank(ordered: list[float], q: str) -> float:
    """Return the ceil(q n)-th lowest value."""
    return ordered[max(math.ceil(Fraction(q) * len(ordered)), 1) - 1]


def signed(distribution: Distribution) -> dict[int | None, int]:
    """Return buckets of both signs that are told apart, None for zeros."""
    found: dict[int | None, int] = {None: distribution.zeros}
    found.update({2 * i: n for i, n in distribution.positive.items()})
    found.update({2 * i + 1: n for i, n in distribution.negative.items()})
    return found


# Buckets


def test_a_value_is_in_the_bucket_that_the_definition_says() -> None:
    """Each power of two that a double holds, on its upper edge, and its two neighbours."""
    for exponent in range(-1074, 1024):
        edge = math.ldexp(1.0, exponent)
        assert bucket_of(edge) == 16 * exponent - 1, exponent
        above = math.nextafter(edge, math.inf)
        assert bucket_of(above) == (
            16 * exponent if exponent > -1022 else index_by_fractions(above)
        )
        if edge > LEAST:
            below = math.nextafter(edge, 0)
            assert bucket_of(below) == index_by_fractions(below), exponent
    assert (bucket_of(LEAST), bucket_of(MAX_DOUBLE)) == (LOWEST, HIGHEST)
    assert SCALE == 4


@pytest.mark.parametrize("exponent", [-1074, -1060, -1023, -1022, -1021, -3, -1, 0, 1, 40, 1023])
def test_a_value_beside_any_edge_is_on_the_right_side_of_it(exponent: int) -> None:
    """The doubles around each of the sixteen edges between two powers of two."""
    for k in range(16):
        edge = upper_edge(16 * exponent + k)
        for value in (math.nextafter(edge, 0), edge, math.nextafter(edge, math.inf)):
            if 0 < value < math.inf:
                assert bucket_of(value) == index_by_fractions(value), (value, k)


@given(st.floats(LEAST, MAX_DOUBLE) | st.floats(1e-9, 1e9))
def test_any_value_is_in_the_bucket_that_the_definition_says(value: float) -> None:
    """Between its edges, and no farther from what stands for it than is promised."""
    index = bucket_of(value)
    assert index == index_by_fractions(value)
    assert upper_edge(index - 1) < value <= upper_edge(index)
    assert abs(middle(index) - value) <= RELATIVE_ERROR * value * (1 + 1e-14) + LEAST


def test_the_promised_error_is_two_percent() -> None:
    """(b - 1) / (b + 1) of b = 2^(1/16); both edges are that far from the middle."""
    assert 0.02165 < RELATIVE_ERROR < 0.0217
    for index in (-160, -1, 0, 5, 159):
        low, high, mid = upper_edge(index - 1), upper_edge(index), middle(index)
        assert mid / low - 1 == pytest.approx(RELATIVE_ERROR, rel=1e-9)
        assert 1 - mid / high == pytest.approx(RELATIVE_ERROR, rel=1e-9)


@given(values)
def test_many_values_at_once_are_counted_as_each_by_itself(given_values: list[float]) -> None:
    """By sign, zeros apart, whatever the order."""
    found = of(*given_values)
    expected: dict[int | None, int] = {None: 0}
    for value in given_values:
        at = None if not value else 2 * index_by_fractions(abs(value)) + (value < 0)
        expected[at] = expected.get(at, 0) + 1
    assert signed(found) == expected
    assert found.count == len(given_values) == sum(expected.values())
    assert (found.moments.low, found.moments.high) == (min(given_values), max(given_values))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_whole(bad: float) -> None:
    """Nothing of the batch is counted."""
    found = of(1.0)
    for batch in ([bad], [2.0, bad, 3.0], [MAX_DOUBLE, bad, MAX_DOUBLE], [math.inf, -math.inf]):
        with pytest.raises(ValueError):
            found.add_all(batch)
    assert found == of(1.0)


def test_nothing_is_nothing() -> None:
    """No values leave a distribution as it was; an empty one merges into any."""
    found = of(1.0, 2.0)
    found.add_all([])
    found.merge(Distribution())
    assert found == of(1.0, 2.0)
    empty = Distribution()
    assert (empty.count, empty.moments.mean, empty.moments.stddev(), empty.buckets()) == (
        0,
        0,
        0,
        [],
    )
    empty.merge(found)
    assert empty == found


def test_the_buckets_are_told_from_the_lowest_to_the_highest() -> None:
    """With their edges; together they hold all values, each in its own."""
    data = DATA["mixed signs"]
    told = of(*data).buckets()
    assert sum(count for _, _, count in told) == len(data)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(told))
    for low, high, count in told:
        if low < 0:
            assert count == sum(low <= value < high for value in data)
        else:
            assert count == sum(low < value <= high or value == low == 0 == high for value in data)
    assert of(-2.0, 0.0, LEAST, MAX_DOUBLE).buckets() == [
        (-2.0, -upper_edge(14), 1),
        (0.0, 0.0, 1),
        (0.0, LEAST, 1),
        (upper_edge(HIGHEST - 1), MAX_DOUBLE, 1),
    ]


# Quantiles


@pytest.mark.parametrize("name", DATA)
def test_a_quantile_is_within_the_promised_error_of_the_exact_one(name: str) -> None:
    """Of nearest rank, for each thousandth; the ends are exact."""
    data = sorted(DATA[name])
    found = of(*DATA[name])
    told = found.quantiles([part / 1000 for part in range(1001)])
    for part, value in enumerate(told):
        exact = nearest_rank(data, f"{part / 1000}")
        assert abs(value - exact) <= RELATIVE_ERROR * abs(exact) * (1 + 1e-12) + 1e-12, part
    assert (told[0], told[-1]) == (data[0], data[-1])
    assert told == sorted(told)
    assert found.quantile(0.5) == told[500]


@given(values, st.integers(0, 100).map(lambda percent: f"{percent / 100}"))
def test_any_quantile_is_within_the_promised_error(given_values: list[float], q: str) -> None:
    """Of any values; and within the lowest and the highest."""
    exact = nearest_rank(sorted(given_values), q)
    found = of(*given_values).quantile(float(q))
    assert abs(found - exact) <= RELATIVE_ERROR * abs(exact) * (1 + 1e-12) + LEAST
    assert min(given_values) <= found <= max(given_values)


def test_a_rank_is_that_of_the_decimal_that_was_written() -> None:
    """0.07 * 100 is a little above 7 in doubles, and 0.55 * 100 above 55."""
    found = of(*[2.0**e for e in range(100)])
    for percent in range(1, 100):
        assert bucket_of(found.quantile(percent / 100)) == 16 * (percent - 1) - 1, percent


def test_a_quantile_of_nothing_or_outside_is_refused() -> None:
    """Instead of a number that means nothing."""
    with pytest.raises(ValueError, match="no values"):
        Distribution().quantile(0.5)
    for q in (-0.1, 1.1, math.nan, 99):
        with pytest.raises(InvalidValue):
            of(1.0).quantiles([0.5, q])


@pytest.mark.parametrize("name", DATA)
def test_a_share_above_is_off_by_one_bucket_at_most(name: str) -> None:
    """The one that the threshold is in."""
    data = DATA[name]
    found, ordered = of(*data), sorted(data)
    held = signed(found)
    for threshold in [*ordered[:: len(ordered) // 30 + 1], 0.05, 0.5, 3.3, -1.5, 0.0, 1e5]:
        exact = sum(value > threshold for value in data) / len(data)
        at = 2 * bucket_of(abs(threshold)) + (threshold < 0) if threshold else None
        bound = held.get(at, 0) / len(data) if threshold else 0
        assert abs(found.share_above(threshold) - exact) <= bound + 1e-12, threshold


@given(values, st.integers(-1074, 1023))
def test_a_share_above_is_exact_at_edges(given_values: list[float], exponent: int) -> None:
    """At powers of two, zero and the ends of what there was."""
    found = of(*given_values)
    low, high = min(given_values), max(given_values)
    for threshold in (2.0**exponent, 0.0, high, math.nextafter(low, -math.inf), math.inf):
        exact = sum(value > threshold for value in given_values) / len(given_values)
        assert found.share_above(threshold) == pytest.approx(exact, abs=1e-15)
    assert found.share_above(-math.inf) == 1


@given(values, finite, finite)
def test_a_share_above_never_grows_with_the_threshold(
    given_values: list[float], one: float, other: float
) -> None:
    """Nor does it leave 0 to 1."""
    found = of(*given_values)
    low, high = sorted((one, other))
    assert 1 >= found.share_above(low) >= found.share_above(high) - 1e-15 >= -1e-15


def test_within_a_bucket_values_count_as_evenly_spread() -> None:
    """Between its edges, or from the lowest value or to the highest where these are within it."""
    found = of(*[1 + n / 40_000 for n in range(1, 1001)])  # bucket 0 is (1, 1.044]
    assert found.share_above(1.0125) == pytest.approx(0.5, abs=0.002)
    assert of(*[-v for v in (1.0001, 1.02, 1.03)]).share_above(-1.02) == pytest.approx(
        2 / 3, abs=0.01
    )


def test_a_share_of_nothing_is_refused() -> None:
    """And one above what is no number."""
    for found, threshold in ((Distribution(), 1.0), (of(1.0), math.nan)):
        with pytest.raises(ValueError):
            found.share_above(threshold)


# Moments


@pytest.mark.parametrize("name", DATA)
def test_mean_and_spread_are_those_of_exact_arithmetic(name: str) -> None:
    """Count, ends, sum, sum of squares, mean, sample standard deviation."""
    data = DATA[name]
    exact = [Fraction(value) for value in data]
    moments = of(*data).moments
    total, squares = sum(exact), sum(value * value for value in exact)
    assert moments.total == float(min(total, Fraction(MAX_DOUBLE)))
    assert moments.mean == pytest.approx(float(total / len(data)), rel=1e-15)
    if squares < MAX_DOUBLE:
        assert moments.sumsq == pytest.approx(float(squares), rel=1e-14)
        expected = statistics.stdev(data) if len(data) > 1 else 0.0
        assert moments.stddev() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("digits", LARGE)
def test_the_spread_of_large_values_is_right(digits: int) -> None:
    """Where squares minus squares leave nothing: 10^9 with a spread of 1 to 6 digits."""
    data = LARGE[digits]
    expected = statistics.stdev(data)
    found = of(*data)
    assert found.moments.stddev() == pytest.approx(expected, rel=1e-13)
    parts = Distribution()
    for at in range(0, len(data), 7):
        parts.merge(of(*data[at : at + 7]))
    bound = 1e9 / expected * 2**-52  # |mean| / stddev of the smallest step
    assert parts.moments.stddev() == pytest.approx(expected, rel=1e-13 + bound)
    if digits < 3:
        textbook = (found.moments.sumsq - found.moments.total**2 / len(data)) / (len(data) - 1)
        assert textbook != pytest.approx(expected**2, rel=0.01)


@given(finite, st.integers(1, 50), st.integers(1, 50))
def test_a_constant_has_no_spread(value: float, some: int, more: int) -> None:
    """Not even the least, whole or merged, and its mean is the value."""
    found = of(*[value] * some)
    found.merge(of(*[value] * more))
    assert found.moments.stddev() == 0
    assert found.moments.mean == value


@given(st.lists(finite, min_size=1, max_size=20))
def test_sums_stop_at_the_largest_double(given_values: list[float]) -> None:
    """No infinity and no NaN, whole or merged; what fits is exact."""
    found = of(*given_values)
    for value in given_values:
        found.merge(of(value, MAX_DOUBLE, -value))
    moments = found.moments
    for number in (moments.total, moments.m2, moments.sumsq, moments.mean, moments.stddev()):
        assert abs(number) <= MAX_DOUBLE
    total = sum(map(Fraction, given_values))
    assert of(*given_values).moments.total == float(
        min(max(total, Fraction(-MAX_DOUBLE)), Fraction(MAX_DOUBLE))
    )


def test_saturation_has_the_sign_of_the_sum() -> None:
    """And the mean stays between the ends."""
    for sign in (1, -1):
        moments = of(sign * MAX_DOUBLE, sign * MAX_DOUBLE, sign * 1.0).moments
        assert moments.total == sign * MAX_DOUBLE
        assert moments.m2 == moments.sumsq == MAX_DOUBLE
    assert of(MAX_DOUBLE, MAX_DOUBLE, -MAX_DOUBLE, -MAX_DOUBLE, 1.0).moments.total == 1


def test_sums_and_spreads_that_were_cut_are_none() -> None:
    """Whole or merged, also where a cut sum came back; equal values have a mean and no spread."""
    pair = of(1.5e308, 1.7e308).moments
    assert (pair.exact_total, pair.exact_mean, pair.exact_stddev) == (None, None, None)
    back = of(1.5e308, 1.7e308)
    back.merge(of(-1.7e308))
    assert (back.moments.exact_total, back.moments.exact_mean) == (None, None)
    far = of(-1e200, 1e200).moments
    assert (far.exact_total, far.exact_mean, far.exact_stddev) == (0.0, 0.0, None)
    same = of(1.5e308, 1.5e308, 1.5e308).moments
    assert (same.exact_total, same.exact_mean, same.exact_stddev) == (None, 1.5e308, 0.0)
    one = of(MAX_DOUBLE).moments
    assert (one.exact_total, one.exact_mean, one.exact_stddev) == (MAX_DOUBLE, MAX_DOUBLE, 0.0)
    none = Distribution().moments
    assert (none.exact_total, none.exact_mean, none.exact_stddev) == (0.0, None, None)


# Merging


def assert_alike(one: Distribution, other: Distribution) -> None:
    """Buckets, count and ends are the same, sums to what doubles allow."""
    assert signed(one) == signed(other)
    a, b = one.moments, other.moments
    assert (a.count, a.low, a.high) == (b.count, b.low, b.high)
    largest = max(abs(a.low), abs(a.high))
    assert abs(a.total - b.total) <= 1e-15 * a.count * largest
    assert a.stddev() == pytest.approx(b.stddev(), rel=1e-12, abs=1e-14 * largest)


@given(st.lists(values, min_size=1, max_size=6))
def test_parts_merge_to_the_whole(parts: list[list[float]]) -> None:
    """In memory, and from their texts."""
    every = [value for part in parts for value in part]
    assume(sum(map(abs, every)) < 1e150)  # so that no square is past a double
    whole, found = of(*every), Distribution()
    for part in parts:
        found.merge(of(*part))
    assert_alike(found, whole)
    texts = [(buckets_text(of(*part)), moments_text(of(*part))) for part in parts]
    assert merge_distributions(texts) == found


@given(values, values)
def test_merging_does_not_depend_on_the_order(one: list[float], other: list[float]) -> None:
    """To the last bit."""
    first, second = of(*one), of(*other)
    first.merge(of(*other))
    second.merge(of(*one))
    assert first == second
    assert signed(first) == signed(of(*one, *other))


@pytest.mark.parametrize("name", ["log-normal", "two humps", "negatives", "1e-9 to 1e9"])
def test_moments_of_parts_merge_to_those_of_the_whole(name: str) -> None:
    """To 1e-12 of them."""
    data, found = DATA[name], Distribution()
    for at in range(0, len(data), 13):
        found.merge(of(*data[at : at + 13]))
    a, b = found.moments, of(*data).moments
    for one, other in ((a.total, b.total), (a.m2, b.m2), (a.sumsq, b.sumsq), (a.mean, b.mean)):
        assert one == pytest.approx(other, rel=1e-12)


# Text


@given(values)
def test_text_and_back_is_the_same(given_values: list[float]) -> None:
    """As text and as bytes, to the last bit; nothing in it that runs are divided by."""
    found = of(*given_values)
    buckets, moments = buckets_text(found), moments_text(found)
    assert not set(buckets) & set(" :;")
    assert (
        parse_distribution(buckets, moments)
        == found
        == parse_distribution(buckets.encode(), moments.encode())
    )
    assert merge_distributions([(buckets, moments)]) == found


def test_the_text_is_short_and_fixed() -> None:
    """Two empty buckets are written as zeros, three end the run; it is a stored format."""
    found = of(0.1, 0.1 * 2 ** (2 / 16), 0.1 * 2 ** (5 / 16), 0.1 * 2 ** (9 / 16), 2.0, 0.0, -1.0)
    assert buckets_text(found).split("|")[2:] == ["1", "-54=1,0,1,0,0,1/-45=1/15=1", "-1=1"]
    assert buckets_text(of(1.0)) == "1.0|1.0|0|-1=1|"
    assert buckets_text(of(-0.0)) == "0.0|0.0|1||"
    assert moments_text(of(1.0, 1.0, 3.0, 3.0)) == "4 8 4"
    with pytest.raises(ValueError, match="no values"):
        buckets_text(Distribution())


GOOD = "0.1|9.0|1|-54=1,0,3/12=2|", "7 12.5 3"


def test_what_others_may_write_is_read() -> None:
    """Longer gaps, runs that touch, zeros before numbers."""
    found = parse_distribution(*GOOD)
    assert found is not None
    assert (found.zeros, found.positive, found.negative) == (1, {-54: 1, -52: 3, 12: 2}, {})
    assert parse_distribution("0.1|9|1|-54=1/-53=0,3,0,0,0,0/12=02|", "7 1.25e1 3") == found


def test_values_that_were_all_the_same_have_no_spread() -> None:
    """Though the script, which knows sums alone, may find the mean of 0.1, 0.1 and 0.1 above it."""
    found = parse_distribution("0.1|0.1|0|-54=3|", "3 0.30000000000000004 1e-33")
    assert found == parse_distribution("0.1|0.1|0|-54=3|", "3 0.30000000000000004 0")
    assert found is not None
    assert (found.moments.mean, found.moments.stddev()) == (0.1, 0)


@pytest.mark.parametrize(
    "buckets",
    [
        None,
        "",
        "|" * 4,
        "0.1|9.0|1|-54=1,0,3/12=2",
        "0.1|9.0|1|-54=1,0,3/12=2||",
        "0.1|9.0|1|-54=1,0,3/12=3|",
        "0.1|9.0|1|-54=1,0,3/-53=2|",
        "0.1|9.0|1|12=2/-54=1,0,3|",
        "0.1|9.0|1|-54=1,0,-3/12=8|",
        "0.1|9.0|1|-54=1,0,3/=2|",
        "0.1|9.0|1|-54=1,0,3/|",
        "0.1|9.0|1|-54=1,,3/12=2|",
        "0.1|9.0|1|-54=1,0,3/12=|",
        "0.1|9.0|1|-54=1,0,3/1=2=2|",
        "0.1|9.0|1|-54=1,0,3/99999=2|",
        "0.1|9.0|1|-99999=1,0,3/12=2|",
        "0.1|9.0|1|-54=1,0,3|16383=1,1",
        f"0.1|9.0|1|{'9' * 5000}=6|",
        f"0.1|9.0|1|0={'9' * 5000}|",
        f"0.1|9.0|1|0={'9' * 4000}|",
        "9.0|0.1|1|-54=1,0,3/12=2|",
        "nan|9.0|1|-54=1,0,3/12=2|",
        "-inf|9.0|1|-54=1,0,3/12=2|",
        "0.1|1e999|1|-54=1,0,3/12=2|",
        "0.1|9.0|-1|-54=1,0,3/12=4|",
        " 0.1|9.0|1|-54=1,0,3/12=2|",
        "0.1|9.0|1|-54=1,0,3/12=2|\n",
        "0.1|9.0|1|-54=1,0,3/12=٢|",
        "0.1|9.0|1|-54=1, 0,3/12=2|",
        "0.1|9.0|1|-54=1,0,3/12=+2|",
        "0.1|9.0|1|-5_4=1,0,3/12=2|",
        b"0.1|9.0|1|-54=1,0,3/12=2|\xff",
        "1" * MAX_TEXT + "|9.0|1|-54=1,0,3/12=2|",
        "0.1|9.0|1|" + "0=" * (MAX_TEXT // 2) + "|",
        "0.1|9.0|1|-54=1,0,3/12=2/14=" + "0," * (MAX_TEXT // 2 - 50) + "0|",
        "0.1|9.0|1|-54=1,0,3/12=2/16=0" + f",{'0' * 4000}" * 300 + "|",
        "0.1|9.0|1|" + "," * (MAX_TEXT - 50) + "|",
        "0.1|9.0|1|" + "/" * (MAX_TEXT - 50) + "|",
        "0.1|9.0|1|" + "-" * (MAX_TEXT - 50) + "|",
    ],
)
def test_buckets_of_another_form_are_nobodys(buckets: str | bytes | None) -> None:
    """None, at once, however long, whatever is in it."""
    assert parse_distribution(buckets, GOOD[1]) is None
    assert merge_distributions(
        [(buckets, GOOD[1]), GOOD, (buckets, GOOD[1])]
    ) == parse_distribution(*GOOD)


@pytest.mark.parametrize(
    "moments",
    [
        None,
        "",
        "7 12.5",
        "7 12.5 3 ",
        "7 12.5 3 4",
        "6 12.5 3",
        "0 0 0",
        "7 nan 3",
        "7 inf 3",
        "7 12.5 1e999",
        "7 12.5 -3",
        "7 12,5 3",
        "7.0 12.5 3",
        "7 1_2.5 3",
        b"\xff",
        "7" * MAX_TEXT,
        "7 " + "1" * MAX_TEXT + " 3",
    ],
)
def test_moments_of_another_form_are_nobodys(moments: str | bytes | None) -> None:
    """They must tell as many values as the buckets."""
    assert parse_distribution(GOOD[0], moments) is None


def test_counts_that_lua_cannot_count_are_nobodys() -> None:
    """Past 2^53 its numbers skip."""
    for count, read in ((MAX_INTERVAL_VALUES, True), (MAX_INTERVAL_VALUES + 1, False)):
        assert (
            parse_distribution(f"1.0|1.0|0|-1={count}|", f"{count} {count} 0") is not None
        ) is read


@settings(max_examples=scaled(300))
@given(
    st.text("0123456789|=,/-.e ", max_size=40) | st.text(max_size=20) | st.binary(max_size=20),
    st.just(GOOD[1]) | st.text("0123456789 .e-", max_size=20),
    st.integers(0, len(GOOD[0])),
    st.integers(0, len(GOOD[0])),
)
def test_reading_never_fails(junk: str | bytes, moments: str, cut: int, end: int) -> None:
    """Junk, and junk within what was good, is a distribution that holds together or None."""
    texts = [junk]
    if isinstance(junk, str):
        texts.append(GOOD[0][:cut] + junk + GOOD[0][end:])
    for text in texts:
        found = parse_distribution(text, moments)
        assert merge_distributions([(text, moments)]) == (found or Distribution())
        if found is not None:
            assert sum(signed(found).values()) == found.count > 0
            assert math.isfinite(found.quantile(0.5))
            assert parse_distribution(buckets_text(found), moments_text(found)) == found


# Values


@pytest.mark.parametrize("distance", [1e-160, 1e-170, 5e-324])
def test_a_spread_whose_squares_are_lost_is_unknown(distance: float) -> None:
    """It is not 0, as that of equal values is."""
    assert of(0.0, distance).moments.exact_stddev is None
    assert of(distance, distance).moments.exact_stddev == 0.0
    far = of(0.0, 1e-150).moments
    assert far.exact_stddev == pytest.approx(1e-150 / 2**0.5, rel=1e-9)
