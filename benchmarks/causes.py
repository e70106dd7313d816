"""Judge the causes and the sentences of explain() by injected causes, and print one table.

    python benchmarks/causes.py [--runs N] [--requests N] [--noise NAME] [--only WORD] [--show]

Two applications: 20 routes, three plans and three regions (`plans`), and 10 routes, two methods and
four statuses as the middleware records them (`web`). One value of one label, which has a share of
the traffic, changes by a factor in the window; or two values of two labels do (`two`), or all
(`alike`), or none (`nothing`). The window is the last 15 of 119 minutes, compared with the 15 before,
or, as status does, 4 to 90 minutes since the change began, compared with the half hour before.

Each run is judged by its own counts:

    first     the cause is named first; with two causes, both are named before all others.
              Counted are the runs in which the change of the value is significant at 0.001 by
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
from redmeter.results.explanation import Explanation

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
EDGES = [2 ** (index / 16) for index in range(-48, 96)]
GRID = np.linspace(-8, 8, 3_201)
NORMAL = np.vectorize(NormalDist().cdf)(GRID)
SIGNIFICANT = 1e-3
#: By how much a rounded share differs at most.
ROUNDED = 0.0051
#: A change of the total, on a logarithmic scale, that is more than the wave.
UNUSUAL = 0.25

Group = tuple[str, str]


class Case(NamedTuple):
    """The counts of one run, and what was done to them."""

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
    measure: str,
    shape: Mapping[str, int],
    effects: Sequence[tuple[str, float | None, float]],
    everywhere: float,
    requests: int,
    windows: Windows,
    sigma: float,
) -> Case:
    """Draw a run.

    Args:
        effects: labels, the shares of their first values, and the factors by which these change.
        everywhere: by which factor all change.
        sigma: of the log-normal factor of each value of the first label in each minute.
    """
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
    return Case(labels, causes, everywhere != 1.0, counted, failures, histograms, windows)


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


def explained(
    case: Case,
) -> tuple[Explanation, dict[Group, tuple[float, float]], float, list[Group]]:
    """Explain a run.

    Returns:
        The explanation; the values of each group before and after, of the counts that were drawn;
        the lowest significance of a cause by itself; and the causes without an effect on the p95.
    """
    window, baseline, _ = case.windows
    requests = events_of(case, case.requests)
    kind, rows = "count", requests
    if case.failures is not None:
        kind, rows = "error rate", events_of(case, case.failures, requests)
        found = explain_rate(rows, case.windows)
    elif case.histograms:
        kind = "p95"
        times = []
        for labels, row in zip(case.labels, case.histograms, strict=True):
            history = row[:-window]
            times.append(
                HistogramRow(
                    labels,
                    sum_counts(history[-baseline:]),
                    sum_counts(row[-window:]),
                    history[-max(60, window) :],
                )
            )
        found = explain_p95(times, case.windows)
    else:
        found = explain_count(rows, case.windows)
    figures: dict[Group, tuple[float, float]] = {}
    worst, hidden = 0.0, list[Group]()
    everything = ("", "")
    for group in [everything, *{item for labels in case.labels for item in labels.items()}]:
        at = [
            n
            for n, one in enumerate(case.labels)
            if group == everything or one[group[0]] == group[1]
        ]
        before, after = (
            sum(getattr(requests[n], side) for n in at) for side in ("before", "after")
        )
        share = window / (window + baseline)
        if kind == "count":
            figures[group] = before * window / baseline, after
        elif kind == "error rate":
            f0, f1 = (sum(getattr(rows[n], side) for n in at) for side in ("before", "after"))
            share = after / (before + after)
            figures[group] = f0 / before, f1 / after
            before, after = f0, f1
        else:
            first = sum_counts(times[n].before for n in at)
            second = sum_counts(times[n].after for n in at)
            figures[group] = quantile(first), quantile(second)
            share = after / (before + after)
            threshold = min(found.before, found.after)
            before, after = above(first, threshold), above(second, threshold)
        if kind == "p95" and group in case.causes:
            # A group that became faster is no cause of a rise.
            change = next(
                g.change for d in found.dimensions for g in d.groups if (g.label, g.value) == group
            )
            if abs(change) < 0.01 * found.before or change * (found.after - found.before) < 0:
                hidden.append(group)
                continue
        if group in case.causes or group == everything:
            p = split_probability(after, before, share)
            if group == everything:
                total = p
            else:
                worst = max(worst, p)
    explanation = Explanation(
        name="x_seconds" if kind == "p95" else "x",
        measure=kind,
        unit={"p95": "seconds", "error rate": "ratio"}.get(kind, ""),
        state="compared",
        before=found.before,
        after=found.after,
        change=found.after - found.before,
        judged=True,
        causes=tuple(found.causes),
        even=found.even,
        uneven=found.uneven,
        changed=found.changed,
        dimensions=tuple(found.dimensions),
        count_before=sum(one.before for one in requests),
        count=sum(one.after for one in requests),
    )
    sentence = joined(explanation_parts(explanation, "before", "1m"))
    return replace(explanation, sentence=sentence), figures, worst if case.causes else total, hidden


#: A group of a sentence, with its connection and figures.
NAMED = re.compile(
    r", (mainly|partly|then|despite) (\S+ )?(\S+) \(([^()]*) to ([^(),]*(?:,\d+)*)(?:, ([^()]*))?\)"
)


def mistakes(
    case: Case, found: Explanation, figures: Mapping[Group, tuple[float, float]]
) -> Iterator[str]:
    """Yield what is not true in a sentence."""
    before, after = figures["", ""]
    text = found.sentence
    whole = f"from {value_text(before, found.unit)} to {value_text(after, found.unit)}"
    if before != after and whole not in text:
        yield f"the total: {whole}"
    named = NAMED.findall(text)
    if len(named) != min(3, len(found.causes)):
        yield f"{len(named)} groups are read"
    for word, label, value, low, high, rest in named:
        group = (label.strip() or "route", value)
        if case.alike or group not in case.causes:
            yield f"{group} did not change otherwise"
        first, second = figures[group]
        if "of the requests" not in rest and (low, high) != (
            value_text(first, found.unit),
            value_text(second, found.unit),
        ):
            yield f"{group}: {low} to {high}"
        cause = next(one for one in found.causes if (one.label, one.value) == group)
        if found.measure == "count" and not math.isclose(
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
    unusual = abs(math.log((after + 1e-9) / (before + 1e-9))) > UNUSUAL
    if "usual variation" in text and unusual and (case.causes or case.alike):
        yield "usual"


def cases() -> Iterator[tuple[str, str, str, list[tuple[str, str, list, float, Windows]]]]:
    """Yield each measure, shape, row of the table and its runs: shape, effects and everywhere."""
    for measure, (name, shape) in product(("count", "error rate", "p95"), SHAPES.items()):
        dims = [one for one in shape if measure == "count" or one != "status"]
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
            effects, everywhere, windows = settings[seed * 7 % len(settings)]
            dims = {
                one: n for one, n in SHAPES[name].items() if measure == "count" or one != "status"
            }
            case = draw(
                rng, measure, dims, effects, everywhere, options.requests, windows, options.sigma
            )
            found, figures, p, hidden = explained(case)
            names = [(one.label, one.value) for one in found.causes]
            wrong = list(mistakes(case, found, figures))
            expected = set(case.causes) - set(hidden)
            number = len(expected)
            good = set(names[:number]) == expected if number else not names
            counted = p < SIGNIFICANT or not number
            seen["of"] += counted
            seen["good"] += counted and good
            seen["false"] += bool(wrong)
            if options.show and (wrong or (counted and not good)):
                print(
                    f"  {title} {seed}: {effects} {everywhere} {windows}: {found.sentence} {wrong}"
                )
        score = f"{seen['good']} of {seen['of']}"
        cells = ("", score) if row.endswith(("alike", "nothing")) else (score, "")
        print(f"| {title} | {cells[0]} | {cells[1]} | {seen['false']} of {runs} |", flush=True)


if __name__ == "__main__":
    main()
