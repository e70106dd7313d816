"""Groups of messages of public logs with labels, compared with the labels."""

import csv
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean

import pytest

from redmeter.analysis.text.patterns import pattern_of
from redmeter.analysis.text.secrets import mask
from redmeter.analysis.text.texts import clean_text
from redmeter.analysis.text.variants import merged_names
from support.realdata import FOLDER, NAMED

pytestmark = pytest.mark.realdata


def test_groups_of_labeled_logs_are_those_of_their_labels() -> None:
    """As means over the sets, and merging lowers none; masking changes hardly a line."""
    scores, changed, lines = [], 0, 0
    for path in sorted((FOLDER / "logs").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as rows:
            pairs = [(row["EventId"], row["Content"]) for row in csv.DictReader(rows)]
        labels, texts = zip(*pairs, strict=True)
        cleaned = [clean_text(text) for text in texts]
        masked = [mask(text) for text in cleaned]
        changed += sum(a != b for a, b in zip(cleaned, masked, strict=True))
        lines += len(texts)
        patterns = [pattern_of(text) for text in masked]
        scores.append(compared(labels, patterns))
        names = merged_names(Counter(patterns))
        merged = compared(labels, [names.get(pattern, pattern) for pattern in patterns])
        assert merged >= scores[-1], path.stem
    if not scores:
        assert not os.environ.get(NAMED), f"no labeled logs in {FOLDER}"
        pytest.skip(f"no labeled logs in {FOLDER}")
    accuracy, groups, alike = (fmean(column) for column in zip(*scores, strict=True))
    assert (accuracy >= 0.8, groups >= 0.8, alike >= 0.94) == (True,) * 3, (accuracy, groups, alike)
    assert changed <= 0.002 * lines


def compared(labels: Sequence[str], found: Sequence[str]) -> tuple[float, float, float]:
    """Return grouping accuracy, F1 of groups, and F1 of the pairs in one group."""
    truth, groups = defaultdict(set), defaultdict(set)
    for number, (label, pattern) in enumerate(zip(labels, found, strict=True)):
        truth[label].add(number)
        groups[pattern].add(number)
    right = [numbers for numbers in truth.values() if groups[found[min(numbers)]] == numbers]
    both, true, made = (
        sum(n * (n - 1) for n in Counter(each).values())
        for each in (zip(labels, found, strict=True), labels, found)
    )
    of_groups = 2 * len(right) / (len(truth) + len(groups))
    return sum(map(len, right)) / len(labels), of_groups, 2 * both / (true + made)
