"""The cause is the value that carries the change, however large it is; each sentence is true."""

import math
import re
from collections.abc import Iterator, Mapping
from itertools import product
from random import Random

import pytest

from redmeter.analysis.comparing.explain import (
    Causes,
    HistogramRow,
    explain_count,
    explain_p95,
    explain_rate,
)
from redmeter.analysis.comparing.noise import Windows
from redmeter.analysis.comparing.outliers import Events
from redmeter.analysis.comparing.sentences import explanation_parts, joined, value_text
from redmeter.results.explanation import Explanation, Measure

#: Minutes that a new store keeps, and events of all label sets in each.
MINUTES, EVENTS = 119, 6_000
QUARTER = Windows(15, 15)
#: Windows as status compares them: since the change, with the half hour before.
STATUS = [Windows(minutes, 30) for minutes in (4, 15, 89)]
ROUTES = {f"/{at}": 1 / (at + 1) ** 0.8 for at in range(20)}

Changes = Mapping[tuple[str, str], float]


def label_sets(share: float, label: str = "plan") -> Iterator[tuple[dict[str, str], float]]:
    """Yield the label sets of 20 routes, three plans and three regions, and their shares.

    Args:
        share: of the value `large` of a label.
    """
    parts = {"large": share, "small": 0.6 * (1 - share), "least": 0.4 * (1 - share)}
    thirds = {"large": 0.5, "small": 0.3, "least": 0.2}
    routes = {route: part / sum(ROUTES.values()) for route, part in ROUTES.items()}
    values = {"route": routes, "plan": thirds, "region": thirds} | {label: parts}
    for route, plan, region in product(*values.values()):
        labels = {"route": route, "plan": plan, "region": region}
        yield labels, math.prod(values[one][value] for one, value in labels.items())


def drawn(random: Random, mean: float) -> int:
    """Draw a random count, about as Poisson's."""
    if mean > 30:
        return max(0, round(random.gauss(mean, math.sqrt(mean))))
    limit, number, product_ = math.exp(-mean), 0, random.random()
    while product_ > limit:
        number, product_ = number + 1, product_ * random.random()
    return number


def counted(
    seed: str,
    changes: Changes,
    windows: Windows = QUARTER,
    *,
    share: float = 0.6,
    label: str = "plan",
    everywhere: float = 1.0,
    events: float = EVENTS,
) -> list[Events]:
    """Draw counts of label sets, of which some change in the window."""
    random, rows = Random(seed), []
    start = MINUTES - windows.window
    for labels, part in label_sets(share, label):
        factor = everywhere * math.prod(changes.get(item, 1.0) for item in labels.items())
        counts = [
            drawn(random, events * part * (factor if at >= start else 1.0)) for at in range(MINUTES)
        ]
        history = counts[:start]
        before = sum(history[-windows.baseline :])
        rows.append(Events(labels, before, sum(counts[start:]), history, counts[start:]))
    return rows


def failed(seed: str, changes: Changes) -> list[Events]:
    """Draw failures of label sets among requests that stay the same."""
    rows = counted(seed, changes, events=0.03 * EVENTS)
    for row, requests in zip(rows, counted(f"{seed} all", {}), strict=True):
        row.among = requests
    return rows


def timed(seed: str, changes: Changes, *, everywhere: float = 1.0) -> list[HistogramRow]:
    """Draw response times of label sets; the medians of routes differ."""
    random, rows = Random(seed), []
    medians = {route: Random(route).gauss(0, 0.2) for route in ROUTES}
    for labels, part in label_sets(0.6):
        if labels["region"] != "large":
            continue
        factor = everywhere * math.prod(changes.get(item, 1.0) for item in labels.items())

        def minute(
            shift: float, labels: dict[str, str] = labels, part: float = part
        ) -> dict[float, float]:
            buckets: dict[float, float] = {}
            for _ in range(drawn(random, 1_500 * part)):
                value = random.gauss(medians[labels["route"]] + shift, 0.5)
                edge = 2 ** (math.ceil(16 * value / math.log(2)) / 16)
                buckets[edge] = buckets.get(edge, 0.0) + 1.0
            return buckets

        history = [minute(0.0) for _ in range(40)]
        after = summed([minute(math.log(factor)) for _ in range(15)])
        rows.append(HistogramRow(labels, summed(history[-15:]), after, history))
    return rows


def summed(parts: list[dict[float, float]]) -> dict[float, float]:
    buckets: dict[float, float] = {}
    for part in parts:
        for edge, number in part.items():
            buckets[edge] = buckets.get(edge, 0.0) + number
    return buckets


def sentence(answer: Causes, measure: Measure = "count", counts: tuple[int, int] = (1, 1)) -> str:
    explanation = Explanation(
        name="x",
        measure=measure,
        unit={"error rate": "ratio", "p95": "seconds"}.get(measure, ""),
        state="compared",
        before=answer.before,
        after=answer.after,
        change=answer.after - answer.before,
        judged=True,
        causes=tuple(answer.causes),
        changed=answer.changed,
        even=answer.even,
        uneven=answer.uneven,
        count_before=counts[0],
        count=counts[1],
    )
    return joined(explanation_parts(explanation, "the 15 min before", "1m"))


def named(answer: Causes) -> list[tuple[str, str | None]]:
    return [(one.label, one.value) for one in answer.causes]


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4, 0.6, 0.8])
@pytest.mark.parametrize("factor", [0.0, 0.2, 0.5, 1.5, 2.0, 5.0])
def test_the_value_that_carries_the_change_is_the_cause_however_large(
    share: float, factor: float
) -> None:
    """For a count and an error rate; the sentence names it alone, with its own figures."""
    label = Random(f"{share} {factor}").choice(["plan", "region"])
    changes = {(label, "large"): factor}
    rows = counted(f"{share} {factor}", changes, share=share, label=label)
    answer = explain_count(rows, QUARTER)
    assert named(answer) == [(label, "large")]
    before, after = (
        sum(getattr(row, side) for row in rows if row.labels[label] == "large")
        for side in ("before", "after")
    )
    total = sum(row.after - row.before for row in rows)
    extent = f"{label} large ({value_text(before)} to {value_text(after)}"
    assert extent in sentence(answer)
    assert (", mainly " in sentence(answer)) is (2 * abs(after - before) >= abs(total))
    if share > 0.05:
        assert ", mainly " in sentence(answer)
        assert re.search(r"\d+ % of the change\)", sentence(answer))
        rates = explain_rate(failed(f"{share} {factor}", changes), QUARTER)
        assert named(rates) == [(label, "large")]


@pytest.mark.parametrize("windows", STATUS, ids=str)
@pytest.mark.parametrize(("label", "share"), [("plan", 0.6), ("region", 0.5), ("plan", 0.1)])
def test_windows_since_a_change_began_name_its_cause(
    windows: Windows, label: str, share: float
) -> None:
    """Against the half hour before, as status compares them; also with few intervals before."""
    for factor in (1.5, 2.0, 0.5):
        rows = counted(
            f"{label} {factor}", {(label, "large"): factor}, windows, share=share, label=label
        )
        assert named(explain_count(rows, windows)) == [(label, "large")]


def test_two_causes_are_both_named_and_no_other() -> None:
    """Also where they overlap, and where one falls while the other one rises."""
    for factors in ((2.0, 5.0), (2.0, 0.2), (0.2, 3.0)):
        changes = {("plan", "large"): factors[0], ("route", "/0"): factors[1]}
        answer = explain_count(counted(str(factors), changes), QUARTER)
        assert set(named(answer)) == set(changes)


def test_two_of_three_values_that_double_are_the_causes() -> None:
    """The third one stayed: it is not named, and not all are alike."""
    changes = {("plan", "large"): 2.0, ("plan", "small"): 2.0}
    answer = explain_count(counted("two of three", changes), QUARTER)
    assert named(answer) == list(changes)


def test_a_group_with_a_small_share_of_the_change_is_named_in_part() -> None:
    """All doubled, and one route more; "mainly" would be false."""
    rows = counted("in part", {("route", "/3"): 3.0}, everywhere=2.0)
    answer = explain_count(rows, QUARTER)
    assert named(answer) == [("route", "/3")]
    assert ", partly /3 (" in sentence(answer)
    assert 0 < (answer.causes[0].share or 0.0) < 0.5


@pytest.mark.parametrize("everywhere", [0.5, 1.0, 1.5, 5.0])
def test_all_groups_are_alike_only_where_the_total_changed(everywhere: float) -> None:
    """And without any one of them as well."""
    answer = explain_count(counted("alike", {}, everywhere=everywhere), QUARTER)
    assert answer.causes == []
    assert (", in all groups alike" in sentence(answer)) is (everywhere != 1.0)
    assert ("within the usual variation" in sentence(answer)) is (everywhere == 1.0)


def test_a_total_that_one_unnamed_group_changed_is_not_alike() -> None:
    """Its own rest did not change, but there are too few events to know."""
    rows = counted("one", {("plan", "large"): 3.0}, share=0.5, events=1.0)
    answer = explain_count(rows, QUARTER)
    assert ", in all groups alike" not in sentence(answer)


def test_all_groups_but_one_changed_and_it_is_not_blamed() -> None:
    """It differs from all others, and its share of the change is none."""
    rows = counted("all but one", {("route", "/2"): 0.5}, everywhere=2.0)
    answer = explain_count(rows, QUARTER)
    assert answer.causes == []
    assert ", but not in all groups alike. " in sentence(answer)


@pytest.mark.parametrize("everywhere", [0.3, 2.0])
def test_all_response_times_that_change_by_a_factor_are_alike(everywhere: float) -> None:
    """Though more slow requests come from some routes: those that were slower before."""
    answer = explain_p95(timed("alike", {}, everywhere=everywhere), QUARTER)
    assert answer.causes == []
    assert answer.even


def test_a_majority_that_became_slower_is_the_cause() -> None:
    """For a p95, with 60 % of the requests."""
    answer = explain_p95(timed("slower", {("plan", "large"): 2.0}), QUARTER)
    assert named(answer) == [("plan", "large")]
    assert ", mainly plan large (" in sentence(answer, "p95")


def test_a_cause_by_the_mix_has_its_share_of_the_requests_in_the_sentence() -> None:
    """Its error rate did not change, so those figures would explain nothing."""
    rows = failed("mix", {})
    for row in rows:
        assert row.among is not None
        if row.labels["route"] == "/0":
            row.before, row.history = row.before * 5, [5 * n for n in row.history]
            row.after, row.within = row.after * 20, [20 * n for n in row.within]
            among = row.among
            among.after, among.within = among.after * 4, [4 * n for n in among.within]
    answer = explain_rate(rows, QUARTER)
    requests = [row.among for row in rows if row.among]
    whole = tuple(
        round(sum(getattr(one, side) for one in requests)) for side in ("before", "after")
    )
    (cause,) = answer.causes
    shares = [cause.count_before / whole[0], cause.count / whole[1]]
    written = " to ".join(value_text(share, "ratio") for share in shares)
    assert f"mainly /0 ({written} of the requests, " in sentence(
        answer, "error rate", (whole[0], whole[1])
    )
