"""Runs the commands of a test script and compares answers with expectations."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from promql.engine_tests import notation
from promql.engine_tests.notation import CUSTOM_BUCKETS, Sample
from promql.engine_tests.samples import Samples
from promql.engine_tests.script import Clear, Eval, Load, parse_script
from redmeter.promql.errors import QueryError, UnsupportedQuery
from redmeter.promql.evaluator import Answer, Engine
from redmeter.promql.histogram import Buckets, Hint, NativeHistogram
from redmeter.promql.nodes import Matcher
from redmeter.promql.semantics import SampledSeries, matches
from redmeter.promql.values import METRIC_NAME, LabelSet, Vector, format_float, label, without

#: Relative difference of numbers that count as equal.
TOLERANCE = 1e-6
#: The smallest normal float: differences from zero are relative to it.
_SMALLEST = 2.2250738585072014e-308

#: Functions of which Prometheus reads only counts and sums.
_COUNTS = re.compile(r"histogram_(count|sum|avg)\(")

Row = tuple[LabelSet, list[Sample]]


@dataclass(frozen=True)
class Outcome:
    """What became of one `eval`.

    Attributes:
        line: of the command.
        query: that was evaluated.
        status: "passed", "failed" or "unsupported".
        histograms: native histograms are read or expected.
        problem: why it failed; if it is unsupported, the feature that it needs.
    """

    line: int
    query: str
    status: str
    histograms: bool
    problem: str = ""


class Store:
    """The series that a script has loaded."""

    def __init__(self) -> None:
        self._samples: dict[LabelSet, dict[int, float | NativeHistogram]] = {}
        self._unsupported: dict[LabelSet, str] = {}
        self.read_histograms = False
        self.finds_resets = False

    def load(self, command: Load) -> None:
        """Add the series of a `load` command; a time that has a sample keeps it."""
        loaded: dict[LabelSet, list[Sample]] = {}
        for line in command.series:
            labels, text = notation.split_series(line)
            try:
                loaded[labels] = notation.samples(text)
            except UnsupportedQuery as error:
                self._unsupported[labels] = error.feature
            name = label(labels, METRIC_NAME)
            if command.custom and name.endswith("_bucket"):
                base = without(labels, ("le", METRIC_NAME))
                native = tuple(sorted([*base, (METRIC_NAME, name.removesuffix("_bucket"))]))
                self._unsupported[native] = CUSTOM_BUCKETS
        for labels, samples in loaded.items():
            known = self._samples.setdefault(labels, {})
            for number, sample in enumerate(samples):
                if sample is not None:
                    known.setdefault(number * command.step, sample)

    def clear(self) -> None:
        """Forget all series."""
        self._samples.clear()
        self._unsupported.clear()

    def read(self, matchers: Sequence[Matcher], after: int, until: int) -> list[SampledSeries]:
        """Return the series that fulfill all matchers; the range does not matter here."""
        del after, until
        for labels, feature in self._unsupported.items():
            if matches(labels, matchers):
                raise UnsupportedQuery(f"{feature} are not supported", feature)
        selected = []
        for labels, samples in self._samples.items():
            if not samples or not matches(labels, matchers):
                continue
            times = np.array(sorted(samples), np.int64)
            ordered = [samples[int(time)] for time in times]
            values = np.array([0.0 if isinstance(s, NativeHistogram) else s for s in ordered])
            histograms = None
            if any(isinstance(sample, NativeHistogram) for sample in ordered):
                self.read_histograms = True
                histograms = np.full(len(ordered), None, dtype=object)
                for place, sample in enumerate(ordered):
                    if isinstance(sample, NativeHistogram):
                        before = ordered[place - 1] if place else None
                        reset: Hint = "reset" if self.finds_resets else "unknown"
                        histograms[place] = _hinted(before, sample, reset)
            selected.append(SampledSeries(labels, times, values, histograms))
        return sorted(selected, key=lambda series: series.labels)


def _hinted(
    before: float | NativeHistogram | None, sample: NativeHistogram, reset: Hint
) -> NativeHistogram:
    """Return a stored histogram with what Prometheus' storage knows of counter resets.

    Args:
        before: the sample before it.
        reset: the hint of one after a reset.
    """
    if (
        sample.hint != "unknown"
        or not isinstance(before, NativeHistogram)
        or before.hint == "gauge"
    ):
        return sample
    return replace(sample, hint=reset if sample.is_reset_after(before) else "not_reset")


def run_script(text: str, *, delayed_name_removal: bool = True) -> list[Outcome]:
    """Run a script; return an outcome for each `eval`."""
    store = Store()
    engine = Engine(Samples(store), delayed_name_removal=delayed_name_removal)
    outcomes = []
    for command in parse_script(text):
        if isinstance(command, Clear):
            store.clear()
        elif isinstance(command, Load):
            store.load(command)
        else:
            outcomes.append(_run(command, engine, store))
    return outcomes


def _run(command: Eval, engine: Engine, store: Store) -> Outcome:
    store.read_histograms = False
    # Where only counts and sums are read, Prometheus looks for resets itself.
    store.finds_resets = bool(_COUNTS.search(command.query))
    status, problem = "passed", ""
    try:
        problem = _problem(command, engine)
        status = "failed" if problem else "passed"
    except UnsupportedQuery as error:
        status, problem = "unsupported", error.feature
    native = store.read_histograms or any("{{" in line for line in command.results)
    return Outcome(command.line, command.query, status, native, problem)


def _problem(command: Eval, engine: Engine) -> str:
    """Return the difference between an answer and the expectations, or ""."""
    start, end, step = command.times
    failing = command.expected("fail")
    try:
        if step:
            answer = engine.range(command.query, start, end, step)
        else:
            answer = engine.instant(command.query, start)
    except UnsupportedQuery:
        raise
    except QueryError as error:
        if not failing:
            return f"expected an answer, got the error: {error}"
        wrong = [each.text for each in failing if not each.fits(str(error))]
        return f"expected the error {wrong[0]!r}, got: {error}" if wrong else ""
    if failing:
        return "expected an error, got an answer"
    for kind, notes in (("warn", answer.warnings), ("info", answer.infos)):
        problem = _notes_problem(command, kind, notes)
        if problem:
            return problem
    return _answer_problem(command, answer)


def _notes_problem(command: Eval, kind: str, notes: list[str]) -> str:
    expected = command.expected(kind)
    if command.expected(f"no_{kind}") and notes:
        return f"expected no {kind}, got: {notes}"
    for each in expected:
        if not any(each.fits(note) for note in notes):
            return f"expected {kind} {each.text!r}, got: {notes}"
    for note in notes:
        if expected and not any(each.fits(note) for each in expected):
            return f"unexpected {kind}: {note}"
    return ""


def _answer_problem(command: Eval, answer: Answer) -> str:
    texts = command.expected("string")
    if texts or isinstance(answer.value, str):
        text = notation.unquoted(texts[0].text) if texts else None
        same = answer.value == text
        return "" if same else f"expected the string {text!r}, got {answer.value!r}"
    if isinstance(answer.value, np.ndarray) and not command.times[2]:
        expected = [notation.number(line.split("#")[0]) for line in command.results]
        same = len(expected) == 1 and close(expected[0], float(answer.value[0]))
        return "" if same else f"expected {expected}, got {answer.value[0]}"
    got = _rows(answer, command.samples)
    wanted_rows = [_expected_row(line) for line in command.results]
    if command.expected("ordered") and [r[0] for r in got] != [r[0] for r in wanted_rows]:
        return f"expected the order {_written(wanted_rows)}, got {_written(got)}"
    by_labels = dict(got)
    for labels, samples in wanted_rows:
        actual = by_labels.pop(labels, None)
        width = max(len(samples), len(actual or ()))
        padded = samples + [None] * (width - len(samples))
        actual_samples = [] if actual is None else actual + [None] * (width - len(actual))
        if actual is None and any(sample is not None for sample in samples):
            return f"expected {_written([(labels, samples)])}, got {_written(got)}"
        if not all(
            same_sample(a, b) for a, b in zip(padded, actual_samples, strict=actual is not None)
        ):
            got_row = _written([(labels, actual_samples)])
            return f"expected {_written([(labels, samples)])}, got {got_row}"
    return f"unexpected: {_written(list(by_labels.items()))}" if by_labels else ""


def _expected_row(line: str) -> Row:
    labels, text = notation.split_series(line)
    return labels, notation.samples(text)


def _rows(answer: Answer, samples: tuple[int, int] | None) -> list[Row]:
    """Return an answer as labels and samples at each step."""
    value = answer.value
    if isinstance(value, Vector):
        native = value.is_histogram
        rows: list[Row] = []
        for row, labels in enumerate(value.labels):
            cells: list[Sample] = []
            for column in range(value.columns):
                if native[row, column] and value.histograms is not None:
                    cells.append(value.histograms[row, column])
                else:
                    present = value.present[row, column]
                    cells.append(float(value.values[row, column]) if present else None)
            rows.append((labels, cells))
        return rows
    if isinstance(value, np.ndarray):
        return [((), [float(each) for each in value])]
    assert not isinstance(value, str)
    start, step = samples or (0, 1)
    rows = []
    for series in value:
        cells = [None] * (int(series.times[-1] - start) // step + 1)
        for place, time in enumerate(series.times):
            histogram = None if series.histograms is None else series.histograms[place]
            number = float(series.values[place])
            cells[int(time - start) // step] = number if histogram is None else histogram
        rows.append((series.labels, cells))
    return rows


def close(expected: float, got: float) -> bool:
    """Return whether two numbers are equal but for rounding."""
    if math.isnan(expected) or math.isnan(got):
        return math.isnan(expected) and math.isnan(got)
    if expected == got:
        return True
    difference = abs(expected - got)
    if math.isinf(difference):
        return False
    magnitude = abs(expected) + abs(got)
    if not expected or not got or magnitude < _SMALLEST:
        return difference < TOLERANCE * _SMALLEST
    return difference / min(magnitude, 1.7976931348623157e308) < TOLERANCE


def same_sample(expected: Sample, got: Sample) -> bool:
    """Return whether two samples are equal but for rounding."""
    if expected is None or got is None:
        return expected is got
    if isinstance(expected, NativeHistogram) and isinstance(got, NativeHistogram):
        return _same_histogram(expected.compacted(), got.compacted())
    if isinstance(expected, float) and isinstance(got, float):
        return close(expected, got)
    return False


def _same_histogram(expected: NativeHistogram, got: NativeHistogram) -> bool:
    numbers = ("count", "sum", "zero_count", "zero_threshold")
    if expected.hint != "unknown" and expected.hint != got.hint:
        return False
    return (
        expected.schema == got.schema
        and all(close(getattr(expected, name), getattr(got, name)) for name in numbers)
        and _same_buckets(expected.positive, got.positive)
        and _same_buckets(expected.negative, got.negative)
    )


def _same_buckets(expected: Buckets, got: Buckets) -> bool:
    return expected.keys() == got.keys() and all(close(expected[i], got[i]) for i in expected)


def _written(rows: list[Row]) -> str:
    """Return rows as they are shown in a message, shortened."""
    shown = []
    for labels, samples in rows[:20]:
        cells = " ".join(
            "_" if s is None else format_float(s) if isinstance(s, float) else f"{{{s}}}"
            for s in samples[:40]
        )
        pairs = ", ".join(f'{name}="{value}"' for name, value in labels)
        shown.append(f"{{{pairs}}} {cells}")
    return "; ".join(shown) or "nothing"
