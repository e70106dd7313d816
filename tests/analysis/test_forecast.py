"""What must be expected of a series: honest, sensible, and never out of range."""

import math
import random
import statistics
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.forecasting.forecast import MIN_INTERVALS, MOST_AHEAD, forecast
from redmeter.demo import shape
from redmeter.results import Forecast, ForecastCheck, ForecastPoint, Series

HOUR, DAY = 3600, 86400
#: A Monday at midnight, Unix seconds.
MONDAY = 1_699_833_600
#: From 1 s to a week; some share a season of the day, some that of the week, some have none.
WIDTHS = st.sampled_from([1, 60, 300, HOUR, 2 * HOUR, 7000, 5 * HOUR, DAY // 2, DAY, 7 * DAY])


def counted(
    values: list[int], precision: int = HOUR, *, partial: bool = False, ahead: int | None = None
) -> Forecast:
    """Forecast a counter that begins on a Monday."""
    series = Series("x", precision, MONDAY, tuple(values), partial=partial)
    return forecast(series, counts=True, ahead=ahead)


def measured(
    values: list[float | None], precision: int = 60, *, ahead: int | None = None
) -> Forecast:
    """Forecast a gauge."""
    series = Series("x", precision, MONDAY, tuple(values), partial=False)
    return forecast(series, counts=False, ahead=ahead)


def wandering(seed: int = 5) -> list[float | None]:
    """Return a gauge that goes up and down without any aim."""
    chance, at, values = random.Random(seed), 0.0, list[float | None]()
    for _ in range(120):
        at += chance.gauss(0, 1)
        values.append(at)
    return values


def noisy(means: list[float], seed: int = 1) -> list[int]:
    """Draw counts around their means."""
    chance = random.Random(seed)
    return [shape.poisson(mean, chance) for mean in means]


def band(one: ForecastCheck | ForecastPoint) -> tuple[float, float, float]:
    """Return an expected range."""
    return one.low, one.mid, one.high


def outside(found: Forecast) -> list[int]:
    """Return which intervals of those judged fell outside, from 0 on."""
    return [(one.start - MONDAY) // found.precision for one in found.past if one.outside]


def widths(judged: tuple[ForecastCheck, ...]) -> list[float]:
    """Return how wide each band is."""
    return [one.high - one.low for one in judged]


# --- Of whatever is kept -------------------------------------------------------------------


@given(
    values=st.lists(st.integers(0, 30) | st.integers(-3, 2**63), max_size=254),
    precision=WIDTHS,
    partial=st.booleans(),
)
def test_the_bands_of_counts_are_whole_numbers_in_order_and_never_below_zero(
    values: list[int], precision: int, partial: bool
) -> None:
    """Whatever was counted, and wherever there is a band at all; nothing is NaN or infinite."""
    found = counted(values, precision, partial=partial)
    finished = len(values) - (partial and bool(values))
    assert bool(found.reason) == (finished < MIN_INTERVALS)
    assert bool(found.ahead) != bool(found.reason)
    for low, mid, high in (*map(band, found.past), *map(band, found.ahead)):
        assert 0 <= low <= mid <= high < math.inf
        assert low == int(low)
        assert high == int(high)


@given(
    values=st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=254),
    precision=WIDTHS,
)
def test_the_bands_of_gauges_are_finite_and_in_order(
    values: list[float | None], precision: int
) -> None:
    """Also where values are as large as floats get, of both signs, and between gaps."""
    found = measured(values, precision)
    assert bool(found.ahead) != bool(found.reason)
    for low, mid, high in (*map(band, found.past), *map(band, found.ahead)):
        assert -math.inf < low <= mid <= high < math.inf
    for one in found.past:
        assert values[(one.start - MONDAY) // precision] == one.value


@given(
    values=st.lists(st.integers(0, 500), min_size=MIN_INTERVALS, max_size=150),
    precision=WIDTHS,
    data=st.data(),
)
def test_what_was_expected_is_made_from_what_came_before_alone(
    values: list[int], precision: int, data: st.DataObject
) -> None:
    """Cut off anywhere, the bands before are the same, and the next one is the first ahead."""
    whole = counted(values, precision)
    at = data.draw(st.integers(MIN_INTERVALS, len(values)))
    cut = counted(values[:at], precision)
    assert whole.past[: len(cut.past)] == cut.past
    if at < len(values):
        next_one = whole.past[len(cut.past)]
        assert next_one.start == cut.ahead[0].start == MONDAY + at * precision
        assert band(next_one) == band(cut.ahead[0])


@given(
    values=st.lists(st.integers(-50, 50), min_size=MIN_INTERVALS, max_size=100),
    size=st.sampled_from([2.0**-900, 0.5, 2.0**900]),
)
def test_a_gauge_in_another_unit_has_the_same_bands_in_that_unit(
    values: list[int], size: float
) -> None:
    """Milliseconds or seconds, it is the same series."""
    one = measured([float(value) for value in values])
    other = measured([value * size for value in values])
    for here, there in zip(one.ahead, other.ahead, strict=True):
        for a, b in zip(band(here), band(there), strict=True):
            assert a * size == pytest.approx(b, rel=1e-6, abs=1e-6 * size)


# --- The running interval, and too little -----------------------------------------------------


def test_the_running_slice_is_neither_learned_from_nor_judged() -> None:
    """However little it holds yet: it is the first of those ahead."""
    values = noisy([100.0] * 60)
    whole, running = counted(values), counted([*values, 3], partial=True)
    assert running.past == whole.past
    assert running.ahead == whole.ahead
    assert running.ahead[0].start == MONDAY + 60 * HOUR
    assert (whole.running, running.running) == (None, 3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "no complete interval of 1h is stored"),
        ([5], "1 complete interval of 1h is stored, and a forecast needs 12"),
        ([5] * 11, "11 complete intervals of 1h are stored, and a forecast needs 12"),
    ],
)
def test_where_there_is_too_little_the_reason_is_said(values: list[int], words: str) -> None:
    """And there is no band; the running interval does not count."""
    for found in (counted(values), counted([*values, 7], partial=True)):
        assert (found.reason, found.past, found.ahead) == (words, (), ())


def test_a_gauge_that_nobody_sets_any_more_has_no_forecast() -> None:
    """A short gap makes the band wider, a long one ends it."""
    values: list[float | None] = [5.0 + at % 3 for at in range(60)]
    short = measured([*values, None, None, None])
    assert short.ahead[0].high - short.ahead[0].low > 0
    gone = measured([*values, *[None] * 24])
    assert gone.reason == "no values in the last 24 intervals of 1m"
    assert measured([None] * 30).reason.startswith("0 complete intervals")


@pytest.mark.parametrize(
    ("precision", "number"), [(60, 12), (HOUR, 24), (5 * HOUR, 24), (DAY, 14), (7 * DAY, 12)]
)
def test_it_looks_as_far_as_the_precision_makes_sense_of(precision: int, number: int) -> None:
    """A day of hours, two weeks of days; or as far as one says, up to a limit."""
    values = noisy([40.0] * 100)
    assert len(counted(values, precision).ahead) == number
    assert len(counted(values, precision, ahead=3).ahead) == 3
    assert len(counted(values, precision, ahead=10**6).ahead) == MOST_AHEAD


def test_the_method_is_said() -> None:
    """What it goes by depends on the precision and the kind."""
    values = [3] * 20
    assert counted(values, 60).method == (
        "level and trend, combined exponential smoothing of square roots"
    )
    assert counted(values, HOUR).method.startswith("level, trend and time of day, ")
    assert counted(values, DAY).method.startswith("level, trend and day of the week, ")
    assert measured([1.0] * 20).method == "level and trend, combined exponential smoothing"


# --- What series are like ------------------------------------------------------------------


def test_noise_stays_within_the_band_as_often_as_it_says() -> None:
    """Of counts that nothing but chance moves, some 95 of 100."""
    judged = [one for seed in range(20) for one in counted(noisy([30.0] * 120, seed)).past]
    share = sum(not one.outside for one in judged) / len(judged)
    assert 0.92 <= share <= 0.98


def test_a_day_is_learned() -> None:
    """Nights are expected to be quiet and noons to be busy, which a level alone does not know."""
    means = [200.0 + 150 * math.sin((at - 6) * math.tau / 24) for at in range(120)]
    found = counted(noisy(means))
    for step, one in enumerate(found.ahead):
        assert one.low <= means[step] <= one.high
        assert one.high - one.low < 200


def test_a_week_is_learned() -> None:
    """Of intervals of a day: no one comes at the weekend."""
    means = [40.0 if at % 7 in (5, 6) else 400.0 for at in range(119)]
    found = counted(noisy(means), DAY)
    assert all(one.low <= means[at] <= one.high for at, one in enumerate(found.ahead))
    assert found.ahead[5].high < found.ahead[4].low


def test_the_time_of_day_is_learned_of_slices_that_do_not_divide_it() -> None:
    """Five hours at a time come to the same time of day every five days."""
    means = [
        sum(500 + 400 * math.sin((at * 5 + hour - 6) * math.tau / 24) for hour in range(5))
        for at in range(144)
    ]
    found = counted(noisy(means[:120]), 5 * HOUR)
    misses = [not one.low <= means[120 + at] <= one.high for at, one in enumerate(found.ahead)]
    assert sum(misses) <= 2
    assert max(one.mid for one in found.ahead) > 3 * min(one.mid for one in found.ahead)


def test_nights_without_any_are_expected_to_be_empty() -> None:
    """And a visitor at night is out of the ordinary, which one more at noon is not."""
    means = [80.0 if 8 <= at % 24 < 20 else 0.0 for at in range(120)]
    values = noisy(means)
    found = counted(values)
    for at, one in enumerate(found.ahead):
        assert (one.high <= 5) == (means[at] == 0)
    values[98] = 60  # at two in the morning
    assert 98 in outside(counted(values))


def test_a_constant_is_expected_to_stay() -> None:
    """The band is about as narrow as whole numbers allow, and any other value is outside."""
    for value in (0, 1, 60, 10**15):
        values = [value] * 120
        found = counted([*values, value + 10 + value // 1000])
        assert outside(found) == [120]
        for one in found.past[60:]:
            assert (one.low, one.high) == (value, value)
    assert all(band(one) == (7.5, 7.5, 7.5) for one in measured([7.5] * 50).ahead)


def test_one_burst_is_marked_and_widens_nothing() -> None:
    """Neither what is expected right after it nor a day later, at the same hour."""
    values = noisy([100.0] * 120)
    burst = list(values)
    burst[60] = 5_000
    calm, found = counted(values), counted(burst)
    assert 60 in outside(found)
    first = found.past[0].start
    for at in range(62, 120):
        index = at - (first - MONDAY) // HOUR
        here, there = found.past[index], calm.past[index]
        assert here.high - here.low <= 1.6 * (there.high - there.low)
        assert here.mid == pytest.approx(there.mid, rel=0.25)


@pytest.mark.parametrize("times", [0.05, 1.9, 3.0, 10.0])
@pytest.mark.parametrize("at", [13, 14, 15, 16])
def test_an_outlier_of_the_first_day_is_no_season(at: int, times: float) -> None:
    """It is out of range, and neither the hour after it nor the same hour of the next day is."""
    for seed in range(3):
        calm = noisy([2_200 + 1_800 * math.sin((hour - 6) * math.tau / 24) for hour in range(120)])
        values = list(calm)
        values[at] = round(values[at] * times)
        found, usual = counted(values), counted(calm)
        first = (found.past[0].start - MONDAY) // HOUR
        if times >= 3:
            assert not found.past[at - first].low <= values[at] <= found.past[at - first].high, seed
        assert not {at + 1, at + 24} & set(outside(found))
        assert found.past[at + 24 - first].mid == pytest.approx(
            usual.past[at + 24 - first].mid, rel=0.25
        )


@given(at=st.integers(8, 17), times=st.integers(4, 1_000), height=st.sampled_from([300, 30_000]))
def test_what_only_the_first_day_has_is_never_expected_of_the_second(
    at: int, times: int, height: int
) -> None:
    """However high it is, and at whichever hour of the busy half of the day."""
    values = [round(height * (1.2 + math.sin((hour - 6) * math.tau / 24))) for hour in range(48)]
    usual = values[at]
    values[at] *= times
    found = counted(values)
    expected = next(one for one in found.past if one.start == MONDAY + (at + 24) * HOUR)
    assert expected.mid < 1.5 * usual


def test_what_stands_out_each_day_at_the_same_hour_is_learned() -> None:
    """A batch each night: one is an outlier, and from the fourth on it is usual."""
    means = [3_000.0 if at % 24 == 3 else 100.0 for at in range(144)]
    found = counted(noisy(means[:120]))
    assert not {75, 99} & set(outside(found))
    assert found.ahead[3].low > 1_000
    assert all(one.high < 400 for step, one in enumerate(found.ahead) if step != 3)


@given(
    every=st.integers(4, 20),
    phase=st.integers(0, 19),
    size=st.sampled_from([1, 2, 5, 40, 1_000, 10**9]),
)
def test_a_tick_now_and_then_is_usual_once_it_came_three_times(
    every: int, phase: int, size: int
) -> None:
    """And so is nothing in between; a tick many times as large is not."""
    ticks = [at for at in range(119) if (at + phase) % every == 0]
    values = [size if at in ticks else 0 for at in range(119)]
    found = counted([*values, 60 * size], 60)
    assert [at for at in outside(found) if at > ticks[2]] == [119]


def test_counts_that_are_rare_stay_within_the_band_as_often_as_it_says() -> None:
    """At least: whole numbers that small cannot do it exactly."""
    for mean in (0.05, 0.2, 0.5):
        judged = [one for seed in range(10) for one in counted(noisy([mean] * 120, seed), 60).past]
        assert sum(not one.outside for one in judged) / len(judged) >= 0.95
        assert max(one.high for one in judged[60:]) < 20


def test_a_step_is_followed_within_a_few_slices() -> None:
    """A deploy doubles the traffic: outside at first, then the new level is what is expected."""
    values = noisy([200.0] * 60 + [400.0] * 60)
    found = counted(values, 60)
    marked = outside(found)
    assert [at for at in marked if 60 <= at < 72] == [60, 61, 62]
    assert all(350 < one.mid < 450 for one in found.ahead)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("times", [0.1, 2, 10])
@pytest.mark.parametrize("counts", [True, False])
def test_a_burst_of_up_to_five_intervals_does_not_train_the_range(
    length: int, times: float, counts: bool
) -> None:
    """Its first intervals are marked, its end is not, and two intervals later nothing is left."""
    for seed in range(2):
        calm = noisy([100.0] * 100, seed)
        burst = [*calm]
        burst[60 : 60 + length] = [round(value * times) for value in calm[60 : 60 + length]]
        found, usual = (
            counted(values, 60) if counts else measured([float(value) for value in values])
            for values in (burst, calm)
        )
        after = set(range(60 + length, 75))
        assert {*range(60, 60 + min(length, 2))} <= set(outside(found))
        assert after & set(outside(found)) <= set(outside(usual))
        here, there = ({one.start: one for one in each.past} for each in (found, usual))
        for at in range(62 + length, 100):
            one, other = here[MONDAY + 60 * at], there[MONDAY + 60 * at]
            assert one.high - one.low < 2 * (other.high - other.low)
            assert one.mid == pytest.approx(other.mid, rel=0.2)


def test_the_shape_of_the_day_survives_a_burst() -> None:
    """The same hours of the next day are expected as if there had been none."""
    means = [220.0 + 180 * math.sin((at - 6) * math.tau / 24) for at in range(120)]
    calm = noisy(means)
    burst = [value * 10 if 80 <= at < 85 else value for at, value in enumerate(calm)]
    found, usual = counted(burst), counted(calm)
    first = (found.past[0].start - MONDAY) // HOUR
    for at in range(103, 111):
        here, there = found.past[at - first], usual.past[at - first]
        assert here.mid == pytest.approx(there.mid, rel=0.3)


@pytest.mark.parametrize("times", [0.1, 2, 10])
@pytest.mark.parametrize("counts", [True, False])
def test_a_lasting_step_is_learned_within_three_intervals(times: float, counts: bool) -> None:
    """From the fourth on it is expected; from the seventh on the old level is not."""
    for seed in range(3):
        values = noisy([300.0] * 60 + [300 * times] * 20, seed)
        found = counted(values, 60) if counts else measured([float(value) for value in values])
        judged = {(one.start - MONDAY) // 60: one for one in found.past}
        assert {60, 61, 62} <= set(outside(found))
        assert not {63, 64, 65} & set(outside(found))
        assert all(one.low <= 300 * times <= one.high for one in (judged[63], judged[66]))
        assert judged[64].low <= 300 <= judged[64].high
        assert not judged[68].low <= 300 <= judged[68].high


def test_nothing_is_marked_before_24_intervals_are_known() -> None:
    """So few do not show what is usual; gaps do not count."""
    values: list[float | None] = [float(value) for value in noisy([100.0] * 60)]
    values[5] = None
    early, late = [*values], [*values]
    early[24] = late[25] = 5_000.0
    assert min(outside(measured(early)), default=25) > 24
    assert measured(early).past[0].start < MONDAY + 24 * 60
    assert 25 in outside(measured(late))


def test_the_range_of_a_quiet_gauge_does_not_collapse() -> None:
    """It is at least a tenth of the standard deviation of the values wide."""
    values: list[float | None] = [float(at // 30 * 10) for at in range(120)]
    found = measured([*values, 30.2])
    assert 120 not in outside(found)
    assert 120 in outside(measured([*values, 33.0]))


def test_anomalies_are_ranked_by_their_distance_relative_to_the_spread() -> None:
    """The strongest first, whatever the unit; they are the intervals that are marked."""
    values: list[float | None] = [float(value) for value in noisy([100.0] * 120)]
    values[60], values[90], values[105] = 200.0, 2_000.0, -3_200.0
    found = measured(values)
    larger = measured([value and value * 2.0**900 for value in values])
    assert [(one.start - MONDAY) // 60 for one in found.anomalies[:3]] == [90, 105, 60]
    assert sorted((one.start - MONDAY) // 60 for one in found.anomalies) == outside(found)
    strengths = [one.strength for one in found.anomalies]
    assert strengths == sorted(strengths, reverse=True)
    assert [one.strength for one in larger.anomalies] == pytest.approx(strengths)
    before = [value for value in values[:60] if value is not None]
    expected = abs(200 - statistics.fmean(before)) / statistics.pstdev(before)
    assert found.anomalies[2].strength == pytest.approx(expected)


@pytest.mark.slow
def test_the_range_holds_of_most_kinds_of_series_at_any_distance() -> None:
    """Walks, autocorrelated, heavy-tailed and quiet gauges, and counts that vary."""
    inside: dict[int, list[bool]] = {1: [], 6: [], 12: [], 24: []}
    for make in (walk, correlated, heavy, quiet, overdispersed):
        for seed in range(30):
            values = make(random.Random(seed))
            known = Series("x", 60, MONDAY, tuple(values[:120]), partial=False)
            found = forecast(known, counts=make is overdispersed, ahead=24).ahead
            for distance, held in inside.items():
                one = found[distance - 1]
                held.append(one.low <= values[119 + distance] <= one.high)
    assert all(0.9 <= sum(held) / len(held) <= 0.99 for held in inside.values())


def walk(chance: random.Random) -> list[float]:
    """Return a gauge that wanders."""
    return list(accumulate(chance.gauss(0, 1) for _ in range(144)))


def correlated(chance: random.Random) -> list[float]:
    """Return a gauge that returns to its mean."""
    return list(accumulate((chance.gauss(0, 1) for _ in range(144)), lambda a, b: 0.8 * a + b))


def heavy(chance: random.Random) -> list[float]:
    """Return a gauge with many outliers: a t distribution with three degrees of freedom."""
    return [chance.gauss(0, 1) / math.sqrt(chance.gammavariate(1.5, 1 / 1.5)) for _ in range(144)]


def quiet(chance: random.Random) -> list[float]:
    """Return a gauge that hardly moves, of one decimal."""
    steps = (chance.choice((-0.1, 0.1)) * (chance.random() < 0.1) for _ in range(144))
    return [round(20 + value, 1) for value in accumulate(steps)]


def overdispersed(chance: random.Random) -> list[int]:
    """Return counts that vary more than by chance."""
    return [shape.poisson(100 * math.exp(chance.gauss(0, 0.2)), chance) for _ in range(144)]


def test_a_step_keeps_the_shape_of_the_day() -> None:
    """Twice the traffic, with the same nights."""
    means = [220.0 + 180 * math.sin((at - 6) * math.tau / 24) for at in range(144)]
    found = counted(noisy([mean * (1 + (at >= 84)) for at, mean in enumerate(means[:120])]))
    off = [abs(one.mid - 2 * means[120 + at]) for at, one in enumerate(found.ahead)]
    assert sum(off) / len(off) < 0.2 * 440


def test_now_and_then_something_is_never_less_than_nothing() -> None:
    """Where the band is wider than the level is high, it ends at 0."""
    chance = random.Random(2)
    found = counted([chance.choice((0, 9)) for _ in range(120)], 60)
    assert {one.low for one in found.past[20:]} == {0}


def test_a_trend_is_followed() -> None:
    """What grows steadily is expected to go on, for a while."""
    values: list[float | None] = [100.0 + 2 * at for at in range(120)]
    found = measured(values)
    assert [one.mid for one in found.ahead[:3]] == pytest.approx([340, 342, 344], abs=3)
    assert outside(found) == []


def test_gaps_are_left_out_and_change_nothing_else() -> None:
    """A gauge that is set now and then is expected where it was."""
    chance = random.Random(3)
    values: list[float | None] = [20 + chance.gauss(0, 1) for _ in range(120)]
    with_gaps = [None if at % 4 == 1 else value for at, value in enumerate(values)]
    found = measured(with_gaps)
    assert all(with_gaps[(one.start - MONDAY) // 60] == one.value for one in found.past)
    assert all(15 < one.low < 20 < one.high < 25 for one in found.ahead)


def test_huge_numbers_are_as_good_as_small_ones() -> None:
    """Bytes since a rocket left."""
    found = counted([10**15 + at % 7 * 10**12 for at in range(120)])
    assert all(0.95e15 < one.low <= one.high < 1.06e15 for one in found.ahead)
    extreme = measured([(-1.0) ** at * 1.7e308 for at in range(40)])
    assert all(math.isfinite(number) for one in extreme.ahead for number in band(one))


def test_the_band_grows_with_the_distance() -> None:
    """Nobody knows more of tomorrow than of the next hour, where there is no season."""
    found = measured(wandering(), ahead=48)
    wide = [one.high - one.low for one in found.ahead]
    assert all(a <= b + 1e-9 for a, b in pairwise(wide))
    assert wide[0] < wide[2] < wide[4] < wide[19] < wide[47]
    assert wide[11] > 2 * wide[0]


def test_after_a_gap_less_is_known() -> None:
    """The band is as wide as if so many intervals ahead were looked at."""
    values = wandering()
    there, gone = measured(values), measured([*values, *[None] * 10])
    assert gone.ahead[0].high - gone.ahead[0].low > 1.5 * (there.ahead[0].high - there.ahead[0].low)


def test_many_bursts_do_not_make_the_band_as_wide_as_they_are() -> None:
    """Where more than 5 of 100 are out of the ordinary, more than 5 of 100 fall outside."""
    values = noisy([100.0] * 120)
    for at in range(40, 120, 12):
        values[at] = 5_000
    found = counted(values, 60)
    assert max(one.high for one in found.ahead) < 300
    assert set(range(64, 120, 12)) <= set(outside(found))


def test_the_errors_of_the_first_day_are_forgotten_once_the_day_is_known() -> None:
    """They were made by those who did not know of nights."""
    means = [220.0 + 180 * math.sin((at - 6) * math.tau / 24) for at in range(60)]
    bands = [one for seed in range(5) for one in counted(noisy(means, seed)).ahead]
    assert sum(one.high - one.low for one in bands) / len(bands) < 380


def test_a_shop_is_expected_better_than_by_what_was() -> None:
    """The demo's visitors, hour by hour: better than as an hour and as a day ago."""
    hours = 16 * 24
    means = [shape.visits(MONDAY + at * HOUR + 1800, 1) * HOUR for at in range(hours)]
    values = noisy(means)
    off, hour_ago, day_ago = 0.0, 0.0, 0.0
    for end in range(120, hours - 24, 13):
        found = forecast(
            Series("x", HOUR, MONDAY, tuple(values[:end]), partial=False), counts=True, ahead=24
        )
        for step in (1, 6, 24):
            value = values[end + step - 1]
            off += abs(value - found.ahead[step - 1].mid)
            hour_ago += abs(value - values[end - 1])
            day_ago += abs(value - values[end + step - 25])
    assert off < 0.95 * min(hour_ago, day_ago)


@pytest.mark.parametrize("seed", range(6))
def test_the_rounding_of_a_constant_gauge_is_no_anomaly(seed: int) -> None:
    """It is 5 up to a billionth, however the digits behind vary; 5.1 is outside."""
    numbers = random.Random(seed)
    values: list[float | None] = [5.0 + numbers.choice((0, 0, 0, 1e-9, -1e-9)) for _ in range(84)]
    assert outside(measured(values)) == []
    values[70] = 5.1
    assert outside(measured(values)) == [70]
