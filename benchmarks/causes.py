"""Judge the causes and the sentences of explain() by injected causes, and print one table.

    python benchmarks/causes.py [--runs N] [--requests N] [--noise NAME] [--only WORD] [--show]

Two applications: 20 routes, three plans and three regions (`plans`), and 10 routes, two methods and
four statuses as the middleware records them (`web`). One value of one label, which has a share of
the traffic, changes by a factor in the window; or two values of two labels do (`two`), or all
(`alike`), or none (`nothing`). The window is the last 15 of 119 minutes against the 15 before, or,
as status does, 4 to 89 minutes since the change began against the half hour before.

Each run is judged by its own counts:

    first     the cause is named first; with two causes, both are named before all others.
              Only runs count in which the change of the value is significant at 0.001 by
              itself: its count by the same of the baseline, failures and slow requests among its
              requests
    quiet     with `nothing` and `alike`, no group is named
    false     sentences that are not true: a group that was not changed is named; a figure is not
              that of its noun; "mainly" and less than half of the change, or against it; "alike"
              where one or two values changed; "usual" where one or more changed and the total by
              more than 25 %

Traffic of all groups varies together, by 5 % from minute to minute and 10 % in a wave. 3 % of
requests fail; response times are log-normal (sigma 0.5). Needs numpy.
"""

import argparse
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from redmeter.analysis.comparing.explain import (
    HistogramRow,
    above,
    explain_count,
    explain_p95,
    explain_rate,
    quantile,
)
from redmeter.analysis.comparing.noise import Windows
from redmeter.analysis.comparing.outliers import Events
from redmeter.analysis.comparing.sentences import explanation_parts, joined, value_text
from redmeter.analysis.comparing.significance import split_probability, sum_counts
from redmeter.results.explanation import Explanation, Measure

#: A new store keeps so many complete minutes.
MINUTES = 119
#: The shares of the traffic that a cause has, and its factors.
SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
FACTORS = (1.5, 2.0, 5.0, 0.5, 0.2, 0.0)
#: Labels, and how many values each has.
SHAPES: dict[str, dict[str, int]] = {
    "plans": {"route": 20, "plan": 3, "region": 3},
    "web": {"route": 10, "method": 2, "status": 4},
}
#: Lengths of the window and the baseline.
QUARTER = (Windows(15, 15),)
STATUS = tuple(Windows(minutes, 30) for minutes in (4, 8, 15, 30, 60, 89))
FAILING, SPREAD = 0.03, 0.5
MEASURES: tuple[Measure, ...] = ("count", "error rate", "p95")
#: Least effect on a p95, as a share of it.
LEAST_EFFECT = 0.01
EDGES = [2 ** (index / 16) for index in range(-48, 96)]
GRID = np.linspace(-8, 8, 3_201)
NORMAL = np.vectorize(NormalDist().cdf)(GRID)
SIGNIFICANT = 1e-3
#: By how much a rounded share differs at most.
ROUNDED = 0.0051
#: A change of the total, on a logarithmic scale, that is more than the wave.
UNUSUAL = 0.25

Group = tuple[str, str]
EVERYTHING: Group = ("", "")
#: A label, the share of its first value and the factor by which this changes; the factor of all.
Effect = tuple[str, float, float]
Setting = tuple[list[Effect], float, Windows]


class Case(NamedTuple):
    """The counts of one run, and the changes in them."""

    measure: Measure
    labels: list[dict[str, str]]
    #: Causes, and whether everything changed.
    causes: list[Group]
    alike: bool
    #: Events by label set and minute; failures or histograms among them.
    requests: np.ndarray
    failures: np.ndarray | None
    histograms: list[list[dict[float, float]]]
    windows: Windows


def shares_of(rng: random.Random, number: int, share: float | None) -> list[float]:
    """Draw the shares of a label's values; the first one has a share."""
    drawn = [1 / (at + 1) ** 0.8 for at in range(number)]
    rng.shuffle(drawn)
    if share is not None:
        rest = sum(drawn[1:])
        drawn = [share, *((1 - share) * one / rest for one in drawn[1:])]
    return [one / sum(drawn) for one in drawn]


def draw(
    rng: random.Random,
    measure: Measure,
    shape: Mapping[str, int],
    setting: Setting,
    requests: int,
    sigma: float,
) -> Case:
    """Draw a run.

    Args:
        shape: labels, and how many values each has.
        setting: what changes, and when.
        requests: of all label sets in a minute.
        sigma: of the log-normal factor of each value of the first label in each minute.
    """
    effects, everywhere, windows = setting
    numbers = np.random.default_rng(rng.randrange(2**32))
    target = {label: share for label, share, _ in effects}
    shares = {label: shares_of(rng, n, target.get(label)) for label, n in shape.items()}
    labels = [
        dict(
            zip(
                shape,
                (
                    f"/{value}" if label == "route" else f"{label[0]}{value}"
                    for label, value in zip(shape, values, strict=True)
                ),
                strict=True,
            )
        )
        for values in product(*map(range, shape.values()))
    ]
    base = np.array([math.prod(one) for one in product(*shares.values())])
    growth = np.full(len(base), everywhere)
    causes = []
    for label, _, factor in effects:
        value = "/0" if label == "route" else f"{label[0]}0"
        causes.append((label, value))
        growth *= [factor if one[label] == value else 1.0 for one in labels]
    minutes = np.arange(MINUTES)
    after = minutes >= MINUTES - windows.window
    common = np.exp(numbers.normal(0, 0.05, MINUTES) + 0.1 * np.sin(minutes / 30))
    noise = np.exp(numbers.normal(0, sigma, (next(iter(shape.values())), MINUTES)))
    means = requests * base[:, None] * common * np.repeat(noise, len(base) // len(noise), axis=0)
    failures, histograms = None, []
    if measure == "count":
        counted = numbers.poisson(means * np.where(after, growth[:, None], 1.0))
    else:
        counted = numbers.poisson(means)
    if measure == "error rate":
        rate = np.minimum(FAILING * np.where(after, growth[:, None], 1.0), 1.0)
        failures = numbers.binomial(counted, np.broadcast_to(rate, counted.shape))
    if measure == "p95":
        middles = [rng.gauss(0, 0.2) for _ in range(next(iter(shape.values())))]
        edges = np.log(EDGES)
        for at, row in enumerate(counted):
            middle = middles[at * len(middles) // len(counted)]
            parts = []
            for shift in (0.0, math.log(max(growth[at], 0.02))):
                cdf = np.interp((edges - middle - shift) / SPREAD, GRID, NORMAL)
                parts.append(np.diff(cdf, prepend=0.0) / cdf[-1])
            drawn = [
                numbers.multinomial(n, parts[int(late)]) for n, late in zip(row, after, strict=True)
            ]
            histograms.append(
                [
                    {EDGES[index]: float(one[index]) for index in np.flatnonzero(one)}
                    for one in drawn
                ]
            )
    return Case(measure, labels, causes, everywhere != 1.0, counted, failures, histograms, windows)


def events_of(
    case: Case, counts: np.ndarray, among: Sequence[Events] | None = None
) -> list[Events]:
    """Return the events of each label set."""
    window, baseline, _ = case.windows
    rows = []
    for at, (labels, row) in enumerate(zip(case.labels, counts.tolist(), strict=True)):
        history = row[:-window]
        rows.append(
            Events(
                labels,
                sum(history[-baseline:]),
                sum(row[-window:]),
                history,
                row[-window:],
                among[at] if among else None,
            )
        )
    return rows


class Figures(NamedTuple):
    """Facts about a group, or about all of them."""

    #: Its value before and after, by the counts that were drawn.
    before: float
    after: float
    #: The probability of such a change of its events by chance.
    chance: float


def explained(case: Case) -> tuple[Explanation, dict[Group, Figures]]:
    """Explain a run; return also the figures of each group, of all by EVERYTHING."""
    window, baseline, _ = case.windows
    requests = events_of(case, case.requests)
    failures = [] if case.failures is None else events_of(case, case.failures, requests)
    times = [
        HistogramRow(
            labels,
            sum_counts(row[:-window][-baseline:]),
            sum_counts(row[-window:]),
            row[:-window][-max(60, window) :],
        )
        for labels, row in zip(case.labels, case.histograms, strict=False)  # none but for a p95
    ]
    if failures:
        answer = explain_rate(failures, case.windows)
    else:
        answer = (
            explain_p95(times, case.windows) if times else explain_count(requests, case.windows)
        )
    figures = {}
    for group in {EVERYTHING, *(item for labels in case.labels for item in labels.items())}:
        at = [n for n, one in enumerate(case.labels) if group in {EVERYTHING, *one.items()}]
        before, after = (sum(requests[n].before for n in at), sum(requests[n].after for n in at))
        share = (
            after / (before + after) if case.measure != "count" else window / (window + baseline)
        )
        values = before * window / baseline, after
        if failures:
            f0, f1 = sum(failures[n].before for n in at), sum(failures[n].after for n in at)
            values, before, after = (f0 / before, f1 / after), f0, f1
        elif times:
            sides = sum_counts(times[n].before for n in at), sum_counts(times[n].after for n in at)
            values = quantile(sides[0]), quantile(sides[1])
            before, after = (above(one, min(answer.before, answer.after)) for one in sides)
        figures[group] = Figures(*values, split_probability(after, before, share))
    explanation = Explanation(
        name="x_seconds" if times else "x",
        measure=case.measure,
        unit={"p95": "seconds", "error rate": "ratio"}.get(case.measure, ""),
        state="compared",
        before=answer.before,
        after=answer.after,
        change=answer.after - answer.before,
        judged=True,
        causes=tuple(answer.causes),
        changed=answer.changed,
        even=answer.even,
        uneven=answer.uneven,
        dimensions=tuple(answer.dimensions),
        count_before=round(sum(one.before for one in requests)),
        count=round(sum(one.after for one in requests)),
    )
    sentence = joined(explanation_parts(explanation, "before", "1m"))
    return replace(explanation, sentence=sentence), figures


def visible(case: Case, answer: Explanation) -> set[Group]:
    """Return the causes that explain() can name: of a p95, those with an effect in its direction.

    A group that became faster is no cause of a rise.
    """
    if case.measure != "p95":
        return set(case.causes)
    assert answer.before is not None
    assert answer.change is not None
    return {
        (group.label, group.value or "")
        for dimension in answer.dimensions
        for group in dimension.groups
        if (group.label, group.value) in case.causes
        and abs(group.change) >= LEAST_EFFECT * answer.before
        and group.change * answer.change > 0
    }


#: A group of a sentence, with its connection and figures.
NAMED = re.compile(
    r", (mainly|partly|then|despite) (\S+ )?(\S+) \(([^()]*) to ([^(),]*(?:,\d+)*)(?:, ([^()]*))?\)"
)


def mistakes(case: Case, answer: Explanation, figures: Mapping[Group, Figures]) -> Iterator[str]:
    """Yield the mistakes of a sentence."""
    before, after, chance = figures[EVERYTHING]
    text = answer.sentence
    whole = f"from {value_text(before, answer.unit)} to {value_text(after, answer.unit)}"
    if before != after and whole not in text:
        yield f"the total: {whole}"
    named = NAMED.findall(text)
    if len(named) != min(3, len(answer.causes)):
        yield f"{len(named)} groups are read"
    for word, label, value, low, high, rest in named:
        group = (label.strip() or "route", value)
        if case.alike or group not in case.causes:
            yield f"{group} did not change otherwise"
        first, second, _ = figures[group]
        if "of the requests" not in rest and (low, high) != (
            value_text(first, answer.unit),
            value_text(second, answer.unit),
        ):
            yield f"{group}: {low} to {high}"
        cause = next(one for one in answer.causes if (one.label, one.value) == group)
        if answer.measure == "count" and not math.isclose(
            cause.change, second - first, abs_tol=1e-6
        ):
            yield f"{group}: change {cause.change}"
        share = cause.change / (after - before) if after != before else 0.0
        if (word == "mainly") != (share >= 0.5 and word not in ("then", "despite")):
            yield f"{word} {group}: {share:.0%}"
        if (word == "despite") != (share <= 0):
            yield f"{word} {group}: {share:.0%}"
        written = re.search(r"(\d+) % of the change", rest)
        if written and abs(int(written[1]) / 100 - share) > ROUNDED:
            yield f"{group}: {written[0]} for {share:.1%}"
    if ", in all groups alike" in text and case.causes:
        yield "alike"
    is_null = not case.causes and not case.alike
    unusual = abs(math.log((after + 1e-9) / (before + 1e-9))) > UNUSUAL
    if "usual variation" in text and unusual and chance < SIGNIFICANT and not is_null:
        yield "usual"


def cases() -> Iterator[tuple[Measure, str, str, list[Setting]]]:
    """Yield each row of the table: the measure, the application, the row's name, its settings."""
    for measure, name in product(MEASURES, SHAPES):
        dims = list(labels_of(measure, name))
        runs: list[Setting]
        for lengths, windows in (("15 min", QUARTER), ("4 to 89 min", STATUS)):
            for share in SHARES:
                runs = [
                    ([(label, share, factor)], 1.0, one)
                    for label, factor, one in product(dims, FACTORS, windows)
                ]
                yield measure, name, f"{lengths}, {share:.0%}".replace("%", " %"), runs
            runs = [
                ([(a, sa, fa), (b, sb, fb)], 1.0, one)
                for (a, b), (sa, fa), (sb, fb), one in product(
                    [(a, b) for a, b in product(dims, dims) if a < b],
                    ((0.2, 5.0), (0.4, 0.2), (0.6, 2.0)),
                    ((0.1, 5.0), (0.3, 2.0)),
                    windows,
                )
            ]
            yield measure, name, f"{lengths}, two", runs
            runs = [([], factor, one) for factor, one in product(FACTORS[:-1], windows)]
            yield measure, name, f"{lengths}, alike", runs
            yield measure, name, f"{lengths}, nothing", [([], 1.0, one) for one in windows]


def labels_of(measure: Measure, name: str) -> dict[str, int]:
    """Return the labels of an application; failures and response times have no status."""
    shape = SHAPES[name]
    return {one: n for one, n in shape.items() if measure == "count" or one != "status"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100, help="of each row; a third for p95")
    parser.add_argument("--requests", type=int, default=6_000, help="in a minute")
    parser.add_argument("--sigma", type=float, default=0.0, help="of the routes' bursts")
    parser.add_argument("--only", default="", help="a word of the row")
    parser.add_argument("--show", action="store_true", help="print each failure")
    options = parser.parse_args(arguments)
    print(f"{options.requests:,} requests per minute, bursts of {options.sigma}")
    print("| measure | application | window, cause | first | quiet | false |")
    print("|---|---|---|---|---|---|")
    for measure, name, row, settings in cases():
        title = f"{measure} | {name} | {row}"
        if options.only not in title:
            continue
        runs = max(1, options.runs // 3) if measure == "p95" else options.runs
        seen: Counter[str] = Counter()
        for seed in range(runs):
            rng = random.Random(f"{title} {seed}")
            setting = settings[seed * 7 % len(settings)]
            case = draw(
                rng, measure, labels_of(measure, name), setting, options.requests, options.sigma
            )
            answer, figures = explained(case)
            causes = visible(case, answer)
            names = [(one.label, one.value) for one in answer.causes]
            wrong = list(mistakes(case, answer, figures))
            good = set(names[: len(causes)]) == causes if causes else not names
            counted = all(figures[group].chance < SIGNIFICANT for group in causes)
            seen["of"] += counted
            seen["good"] += counted and good
            seen["false"] += bool(wrong)
            if options.show and (wrong or (counted and not good)):
                print(f"  {title} {seed}: {setting}: {answer.sentence} {wrong}")
        score = f"{seen['good']} of {seen['of']}"
        cells = ("", score) if row.endswith(("alike", "nothing")) else (score, "")
        print(f"| {title} | {cells[0]} | {cells[1]} | {seen['false']} of {runs} |", flush=True)


if __name__ == "__main__":
    main()
