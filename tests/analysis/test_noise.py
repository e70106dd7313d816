"""Noise of counts: what is fitted, and what is expected of a window."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from redmeter.analysis.comparing.explain import explain_count, explain_rate
from redmeter.analysis.comparing.noise import Noise, Track, Windows, fit, predict
from redmeter.analysis.comparing.outliers import Events

QUARTERS = Windows(15, 15)


def deviations(random: Random, intervals: int, brief: float, lasting: float) -> list[float]:
    """Return relative deviations of intervals; the lasting part is correlated by 0.8."""
    level, drawn = random.gauss(0, lasting), []
    for _ in range(intervals):
        drawn.append(level + random.gauss(0, brief))
        level = 0.8 * level + random.gauss(0, 0.6 * lasting)
    return drawn


def tracks(brief: float, lasting: float, mean: float, *, groups: int = 40) -> list[Track]:
    """Return the counts of groups in 60 intervals."""
    random, found = Random(3), []
    for _ in range(groups):
        counts = [
            max(0.0, mean * (1 + one) + random.gauss(0, math.sqrt(mean)))
            for one in deviations(random, 60, brief, lasting)
        ]
        found.append(Track(counts, [sum(counts) / 60] * 60))
    return found


def mean_of(noises: Sequence[Noise], name: str) -> float:
    return sum(float(getattr(one, name)) for one in noises) / len(noises)


def test_counts_that_are_random_have_no_noise() -> None:
    """Chance alone is no noise, however few events there are."""
    for mean in (3.0, 300.0):
        noises = fit(tracks(0, 0, mean))
        assert mean_of(noises, "brief") < 0.1 / mean
        assert mean_of(noises, "lasting") == 0


def test_brief_bursts_are_no_lasting_ones() -> None:
    """Their variance is found, without a correlation."""
    noises = fit(tracks(0.3, 0, 200.0))
    assert mean_of(noises, "brief") == pytest.approx(0.09, rel=0.15)
    assert mean_of(noises, "lasting") < 0.02


def test_bursts_that_last_are_found_beside_brief_ones() -> None:
    """With their correlation, though each group has 60 intervals only."""
    noises = fit(tracks(0.1, 0.2, 200.0))
    assert mean_of(noises, "lasting") == pytest.approx(0.04, rel=0.3)
    assert noises[0].correlation == pytest.approx(0.8, abs=0.1)


def test_a_group_with_few_events_varies_as_the_others_do() -> None:
    """And one with many as it does itself."""
    noisy = tracks(0.3, 0, 500.0)
    few = Track([1.0] * 60, [1.0] * 60)
    steady = Track([500.0] * 60, [500.0] * 60)
    noises = fit([*noisy, few, steady])
    assert noises[-2].brief > 0.05
    assert noises[-1].brief < 0.03


def test_a_prediction_of_random_counts_is_worth_all_events_of_the_history() -> None:
    """Sixty intervals of 5 events are worth 300."""
    level, variance = predict(Track([5.0] * 60, [5.0] * 60), Noise(), QUARTERS)
    assert level == pytest.approx(1.0)
    assert 1 / variance == pytest.approx(300, rel=0.01)


def test_traffic_that_has_been_high_for_minutes_comes_back_slowly() -> None:
    """The more it lasts usually, the more of it is expected in the window."""
    counts = [100.0] * 55 + [140.0] * 5
    track = Track(counts, [sum(counts) / 60] * 60)
    brief = predict(track, Noise(brief=0.04), QUARTERS)
    lasting = predict(track, Noise(lasting=0.04, correlation=0.8), QUARTERS)
    assert brief.level == pytest.approx(1.0, abs=0.01)
    assert 1.05 < lasting.level < 1.2


def test_the_variance_of_a_prediction_is_that_of_simulated_windows() -> None:
    """The mean of 15 intervals after 60, without chance."""
    noise, errors = Noise(brief=0.01, lasting=0.04, correlation=0.8), []
    random = Random(7)
    for _ in range(400):
        counts = [1e6 * (1 + one) for one in deviations(random, 75, 0.1, 0.2)]
        history = counts[:60]
        track = Track(history, [sum(history) / 60] * 60)
        level, variance = predict(track, noise, QUARTERS)
        errors.append((sum(counts[60:]) / 15 / (sum(history) / 60) - level) / level)
    expected = variance * level**2
    assert sum(error * error for error in errors) / 400 == pytest.approx(expected, rel=0.25)


# --- Causes that the baseline alone does not show -------------------------------------------


def poisson(random: Random, mean: float) -> int:
    limit, number, product = math.exp(-mean), 0, random.random()
    while product > limit:
        number, product = number + 1, product * random.random()
    return number


def failing(seed: int) -> list[Events]:
    """Twenty routes with four failures a minute; those of /7 double."""
    random, rows = Random(seed), []
    for route in range(20):
        means = [4.0] * 60 + [8.0 if route == 7 else 4.0] * 15
        failed = [poisson(random, mean) for mean in means]
        before, after = sum(failed[45:60]), sum(failed[60:])
        labels = {"route": f"/{route}"}
        requests = Events(labels, 1_950, 1_950, [130] * 60)
        rows.append(Events(labels, before, after, failed[:60], among=requests))
    return rows


def test_a_route_whose_few_failures_double_is_the_cause() -> None:
    """By all failures of the hour before; those of the baseline alone are too few."""
    found = [explain_rate(failing(seed), QUARTERS).causes for seed in range(20)]
    named = [[one.value for one in causes] for causes in found]
    assert named.count(["/7"]) >= 19


def test_a_step_before_the_baseline_is_no_cause() -> None:
    """Against the hour before it is unusual, against the baseline nothing changed."""
    random, rows = Random(1), []
    for route in range(10):
        size = 2 if route == 7 else 1
        counts = [poisson(random, 50) for _ in range(45)]
        counts += [poisson(random, 50 * size) for _ in range(30)]
        rows.append(
            Events({"route": f"/{route}"}, sum(counts[45:60]), sum(counts[60:]), counts[:60])
        )
    assert explain_count(rows, QUARTERS).causes == []


def test_a_baseline_of_another_day_is_compared_by_itself() -> None:
    """The hour before the window says how much counts vary, not how high they were."""
    random, rows = Random(2), []
    for route in range(10):
        now = [poisson(random, 100) for _ in range(75)]
        then = sum(poisson(random, 40 if route == 7 else 100) for _ in range(15))
        rows.append(Events({"route": f"/{route}"}, then, sum(now[60:]), now[:60]))
    another = Windows(15, 15, adjacent=False)
    assert [one.value for one in explain_count(rows, another).causes] == ["/7"]
    for row in rows:
        row.before = sum(row.history[45:])
    assert explain_count(rows, another).causes == []


# --- Changes within the window ---------------------------------------------------------------


def lasting(seed: int, factor: float, *, late: int = 0) -> list[Events]:
    """Twelve routes whose bursts last; those of /7 grow by a factor in the window, or later."""
    random, rows = Random(seed), []
    for route in range(12):
        counts = []
        for minute, one in enumerate(deviations(random, 90, 0.03, 0.2)):
            size = factor if route == 7 and minute >= 75 + late else 1.0
            counts.append(round(max(0.0, 300 * size * (1 + one))))
        before, after = sum(counts[60:75]), sum(counts[75:])
        rows.append(Events({"route": f"/{route}"}, before, after, counts[:75], counts[75:]))
    return rows


def causes(rows: list[Events]) -> list[str | None]:
    return [one.value for one in explain_count(rows, QUARTERS).causes]


def test_a_sudden_change_among_bursts_that_last_is_the_cause() -> None:
    """By the minutes of the window, of which the first ones tell most; their sum is not enough."""
    rows = [lasting(seed, 1.7) for seed in range(12)]
    assert [causes(one) for one in rows].count(["/7"]) >= 11
    sums = [[replace(row, within=()) for row in one] for one in rows]
    assert [causes(one) for one in sums].count(["/7"]) <= 9


def test_a_change_that_begins_within_the_window_is_the_cause() -> None:
    """The minutes before it belong to the history."""
    found = [causes(lasting(seed, 2.5, late=5)) for seed in range(12)]
    assert found.count(["/7"]) >= 11


def test_bursts_that_last_are_no_causes() -> None:
    """Wherever they begin."""
    assert [causes(lasting(seed, 1.0)) for seed in range(12)] == [[]] * 12


def test_a_change_that_all_groups_share_is_no_cause_in_any_minute() -> None:
    """A peak of all traffic in the middle of the window."""
    rows = lasting(1, 1.0)
    for row in rows:
        row.within = [3 * n if 4 <= at < 9 else n for at, n in enumerate(row.within)]
        row.after = sum(row.within)
    assert causes(rows) == []
