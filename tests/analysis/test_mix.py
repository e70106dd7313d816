"""All requests at the same mix of routes: effects within the routes, and of the mix."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.comparing.explain import decompose
from redmeter.analysis.comparing.mix import same_mix
from redmeter.analysis.comparing.significance import Counts, total_counts
from redmeter.analysis.comparing.verdict import judge
from redmeter.analysis.comparing.verdict_metrics import Traffic
from redmeter.results.verdict import VerdictRow

numbers = st.tuples(*[st.integers(20, 1000)] * 2, st.floats(0, 1), st.floats(0, 1))


@given(st.lists(numbers, min_size=1, max_size=6))
def test_the_difference_at_the_same_mix_is_the_rate_effect_of_an_explanation(
    groups: list[tuple[int, int, float, float]],
) -> None:
    """Midpoint decomposition, as explain() does it."""
    after = [Counts(int(n * share), n) for n, _, share, _ in groups]
    before = [Counts(int(n * share), n) for _, n, _, share in groups]
    whole = total_counts(after), total_counts(before)
    routes = [(a.of, b.of) for a, b in zip(after, before, strict=True)]
    mix = same_mix((whole[0].of, whole[1].of), routes, 20)
    assert mix is not None
    (first,) = mix.counts([whole[0]], [[one] for one in after], 0)
    (second,) = mix.counts([whole[1]], [[one] for one in before], 1)
    assert (first.of, second.of) == pytest.approx((whole[0].of, whole[1].of))
    pairs = zip(before, after, strict=True)
    effects = decompose([(int(b.of), int(b.events), int(a.of), int(a.events)) for b, a in pairs])
    within = first.events / whole[0].of - second.events / whole[1].of
    assert within == pytest.approx(float(sum(effect.rate for effect in effects)), abs=1e-9)


def minutes(
    name: str | None, rng: random.Random, after: int, before: int, rate: float, bucket: int
) -> Traffic:
    """Return 15 minutes after a deploy and 60 before it, with so many requests by the minute."""

    def side(number: int, size: int) -> tuple[list[Counts], list[dict[int, float]]]:
        counts, times = [], []
        for _ in range(number):
            counts.append(Counts(sum(rng.random() < rate for _ in range(size)), size))
            spread: dict[int, float] = {}
            for _ in range(size):
                at = bucket + round(rng.gauss(0, 8))
                spread[at] = spread.get(at, 0) + 1
            times.append(spread)
        return counts, times

    one, two = side(15, after), side(60, before)
    seconds = 2.0 ** ((bucket + 13) / 16)
    return Traffic(name, one[0], two[0], one[1], two[1], seconds, seconds)


def together(routes: Sequence[Traffic], p95: tuple[float, float]) -> Traffic:
    """Return all requests."""
    whole = Traffic(None, p95_after=p95[0], p95_before=p95[1])
    for name in ("after", "before"):
        columns = zip(*(getattr(each, name) for each in routes), strict=True)
        setattr(whole, name, [total_counts(column) for column in columns])
        merged = []
        for parts in zip(*(getattr(each, f"times_{name}") for each in routes), strict=True):
            spread: dict[int, float] = {}
            for bucket, number in (item for part in parts for item in part.items()):
                spread[bucket] = spread.get(bucket, 0) + number
            merged.append(spread)
        setattr(whole, f"times_{name}", merged)
    return whole


def judged(routes: Sequence[Traffic], p95: tuple[float, float]) -> list[VerdictRow]:
    """Return the rows of a look after 15 minutes, all requests first."""
    traffic = [together(routes, p95), *routes]
    return judge(traffic, lengths=(1, 8), seconds=(900.0, 3600.0), level=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_more_traffic_on_slow_and_failing_routes_is_not_worse(seed: int) -> None:
    """None of 20 routes changed; the mix is measured, and made it worse."""
    rng = random.Random(seed)
    routes = [
        minutes(f"/{at}", rng, 40 if slow else 10, 10, 0.2 if slow else 0.01, 24 if slow else 0)
        for at, slow in enumerate([False] * 15 + [True] * 5)
    ]
    whole, *rows = judged(routes, (4.1, 3.0))
    assert "worse" not in [row.verdict for row in (whole, *rows)]
    assert whole.error_rate.mix_verdict == whole.p95.mix_verdict == "worse"
    assert whole.error_rate.mix == pytest.approx(whole.error_rate.difference, rel=0.25)
    assert (rows[0].error_rate.mix, rows[0].p95.mix_verdict) == (None, None)


def test_a_rise_within_routes_is_worse_though_the_mix_hides_it() -> None:
    """All routes fail three times as often, but the failing ones have lost their traffic."""
    rng = random.Random(1)
    before = [minutes(f"/{at}", rng, 1, 30, 0.2 if at > 3 else 0.02, 0) for at in range(8)]
    after = [
        minutes(f"/{at}", rng, 3 if at > 3 else 60, 1, 0.5 if at > 3 else 0.06, 0)
        for at in range(8)
    ]
    for one, other in zip(before, after, strict=True):
        one.after, one.times_after = other.after, other.times_after
    whole, *_ = judged(before, (1.0, 1.0))
    assert whole.error_rate.difference is not None
    assert whole.error_rate.difference < 0
    assert (whole.error_rate.verdict, whole.error_rate.mix_verdict) == ("worse", "better")


def test_a_new_route_is_a_part_of_the_mix_unless_most_routes_are_new() -> None:
    """There is nothing to compare it with; after a deploy that renames all, all is compared."""
    for share, left, verdict, mix in (
        (10, 40, "same", "worse"),
        (50, 40, "worse", None),
        (100, 0, "worse", None),
    ):
        rng = random.Random(2)
        old = [minutes(f"/{at}", rng, left, 40, 0.01, 0) for at in range(3)]
        new = [minutes(f"/new{at}", rng, share, 0, 0.3, 0) for at in range(3)]
        whole, *_ = judged([*old, *new], (1.0, 1.0))
        assert (whole.error_rate.verdict, whole.error_rate.mix_verdict) == (verdict, mix)
