"""Tests of a share: closed forms, properties, and clusters that are no evidence."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.comparing import significance
from redmeter.analysis.comparing.significance import (
    Counts,
    Dispersion,
    Usual,
    binomial_tail,
    excess_of,
    holm,
    incomplete_beta,
    normal_quantile,
    rise,
    student_quantile,
    student_tail,
    total_counts,
)

#: No dispersion, and as much data as none needs more.
PLAIN = Dispersion(1.0, 1.0, 1e9, 1)


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.01, 0.99))
def test_the_binomial_tail_is_a_sum(of: int, count: int, share: float) -> None:
    """Of the probabilities of that many and more."""
    some = range(count, of + 1)
    terms = [math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in some]
    if count <= of:
        assert binomial_tail(count, of, share) == pytest.approx(math.fsum(terms), rel=1e-9)


@pytest.mark.parametrize(
    ("tail", "freedom", "t"),
    [(0.025, 10, 2.228139), (0.05, 1, 6.313752), (0.005, 5, 4.032143), (0.0005, 30, 3.645959)],
)
def test_quantiles_of_student_are_those_of_the_tables(tail: float, freedom: int, t: float) -> None:
    """And the tail leads back."""
    assert student_quantile(tail, freedom) == pytest.approx(t, abs=1e-5)
    assert student_tail(t, freedom) == pytest.approx(tail, rel=1e-4)
    assert student_tail(-t, freedom) == pytest.approx(1 - tail)


@pytest.mark.parametrize("z", [-3.0, 0.0, 1.5, 6.0, 7.9, 8.5, 20.0, 36.0])
def test_normal_quantiles_lead_back(z: float) -> None:
    """Also far out, where the tail is a tiny number."""
    assert normal_quantile(math.erfc(z / math.sqrt(2)) / 2) == pytest.approx(z, abs=1e-3)


def test_tails_have_ends() -> None:
    """No error of arithmetic at the edges."""
    assert binomial_tail(0, 5, 0.5) == 1.0
    assert binomial_tail(1e6, 1e6, 1e-9) == 0.0
    assert (incomplete_beta(0.0, 1, 1), incomplete_beta(1.0, 1, 1)) == (0.0, 1.0)
    assert normal_quantile(0.0) > 36
    assert (normal_quantile(1.0), student_tail(-math.inf, 3)) == (-math.inf, 1.0)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(20, 10_000), st.integers(20, 10_000))
def test_without_dispersion_the_test_is_the_conditional_binomial_one(
    after: int, before: int, of_after: int, of_before: int
) -> None:
    """Given all failures, those after the deploy are binomial."""
    found = rise(Counts(after, of_after), Counts(before, of_before), [PLAIN]).p
    share = of_after / (of_after + of_before)
    wanted = binomial_tail(after, after + before, share) if after + before else 1.0
    assert found == pytest.approx(wanted, rel=1e-4)


@given(st.integers(1, 40), st.integers(0, 40), st.floats(1, 3), st.floats(1, 9))
def test_a_margin_and_a_dispersion_only_weaken_evidence(
    after: int, before: int, margin: float, spread: float
) -> None:
    """For a rise beyond what chance alone explains."""
    counts = Counts(after + before, 1000), Counts(before, 1000)
    plain = rise(*counts, [PLAIN]).p
    assert rise(*counts, [PLAIN], margin).p >= plain * (1 - 1e-9)
    wider = Dispersion(spread, spread, 1e9, 1)
    assert rise(*counts, [wider]).p >= min(plain, 0.5) * (1 - 1e-9)
    few = PLAIN._replace(freedom=4.0)
    assert rise(*counts, [few, PLAIN]).p >= min(plain, 0.5) * (1 - 1e-9)


def test_the_dispersion_of_equal_shares_is_that_of_chance() -> None:
    """At 1, however many requests a block has."""
    blocks = [Counts(n // 10, n) for n in (100, 200, 50, 1000)]
    dispersion = excess_of(blocks, blocks, 1).dispersion(Usual())
    assert dispersion == Dispersion(1.0, 1.0, math.inf, 1)


def test_the_dispersion_of_two_blocks_is_that_by_hand() -> None:
    """Moments of Williams: (X² - 1) / (n - 1) within a block of n, times n more of a window."""
    blocks = [Counts(10, 100), Counts(30, 100)]
    dispersion = excess_of(blocks, [Counts(20, 100)] * 2, 1).dispersion(Usual())
    squares = 2 * (10**2 / (100 * 0.2 * 0.8))
    within = (squares - 1 - 1) / (4 * 99 * 0.5)
    assert dispersion.after == dispersion.before == pytest.approx(1 + within * 99)
    assert dispersion.freedom == 2


def test_blocks_begin_at_the_deploy_and_find_longer_clusters() -> None:
    """Five bad minutes in a row are one cluster, not five."""
    quiet, bad = Counts(0, 100), Counts(10, 100)
    before = [quiet] * 20 + [bad] * 5 + [quiet] * 20
    single, of_five = (excess_of([quiet] * 5, before, n).dispersion(Usual()) for n in (1, 5))
    assert of_five.after > 2 * single.after > 2
    assert of_five.freedom == 8


def test_pairs_learn_how_much_days_differ() -> None:
    """Days of equal shares do not differ; others count as dispersion."""
    same = [(Counts(10, 1000), Counts(20, 2000))] * 8
    after, before = Counts(30, 1000), Counts(20, 2000)
    assert significance.paired_dispersion(same, after, before).after == 1.0
    other = [(Counts(10, 1000), Counts(60, 2000)), (Counts(30, 1000), Counts(20, 2000))] * 4
    found = significance.paired_dispersion(other, after, before)
    assert found.after > 2
    assert found.freedom == 8
    assert rise(after, before, [found]).p > 0.05 > rise(after, before, [PLAIN]).p


def test_holm_is_that_by_hand() -> None:
    """The least times their number, the next times one less, never falling."""
    assert holm([0.01, None, 0.04, 0.03]) == [0.03, None, 0.06, 0.06]
    assert holm([None]) == [None]


@given(st.lists(st.floats(0, 1), max_size=30))
def test_holm_never_lowers_a_probability(tails: list[float]) -> None:
    """It keeps their order, and is at most Bonferroni's."""
    found = holm(tails)
    for p, adjusted in zip(tails, found, strict=True):
        assert adjusted is not None
        assert p <= adjusted <= min(1.0, p * len(tails)) + 1e-12
    order = sorted(range(len(tails)), key=lambda at: tails[at])
    assert [found[at] for at in order] == sorted(one for one in found if one is not None)


@given(st.integers(0, 500), st.integers(0, 500), st.floats(1, 9), st.floats(2, 100))
def test_intervals_contain_the_estimate(
    after: int, before: int, spread: float, freedom: float
) -> None:
    """And the upper end of a share is above the share."""
    counts = Counts(after, 1000), Counts(before, 1000)
    interval = significance.ratio_interval(*counts, Dispersion(spread, spread, freedom, 1))
    assert interval is not None
    assert interval[0] <= (after + 0.5) / (before + 0.5) * 1.000001
    assert interval[1] >= (after + 0.5) / (before + 0.5) * 0.999999
    assert after / 1000 < significance.upper_share(counts[0], spread, freedom) <= 1 or after == 1000


def test_the_upper_end_of_no_failure_is_the_rule_of_three() -> None:
    """Two-sided: 3.7 of as many."""
    assert significance.upper_share(Counts(0, 1000), 1.0, 1e6) == pytest.approx(0.0039, abs=0.0003)


def test_clustered_failures_raise_few_alarms_where_a_binomial_test_raises_many() -> None:
    """Both windows have the same clusters of failures."""
    rng, ours, plain = random.Random(3), 0, 0
    for _ in range(150):
        minutes = [Counts(20 if rng.random() < 0.1 else rng.randrange(3), 200) for _ in range(75)]
        before, after = minutes[:60], minutes[60:]
        counts = total_counts(after), total_counts(before)
        ours += (
            rise(*counts, [excess_of(after, before, n).dispersion(Usual()) for n in (1, 8)]).p
            < 0.05
        )
        plain += rise(*counts, [PLAIN]).p < 0.05
    assert ours <= 12
    assert plain >= 25
