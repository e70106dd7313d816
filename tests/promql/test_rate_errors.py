"""How far rates are from the truth, by the tool that measures it."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HOUR = 3_600


@pytest.fixture(scope="module")
def tool() -> Iterator[Any]:
    """benchmarks/rate_errors.py, as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module("rate_errors")


@pytest.mark.parametrize("kind", ["bursts", "rare", "new"])
def test_rates_are_exact_where_windows_end_at_edges(tool: Any, kind: str) -> None:
    """Within two hours, by steps of a minute; of samples they are not."""
    (ours, our_sum), _, (theirs, _) = tool.errors(getattr(tool, kind), HOUR, 60, 300)
    assert ours == pytest.approx(0, abs=1e-9)
    assert our_sum == pytest.approx(0, abs=1e-9)
    assert theirs > 0.01


def test_bursts_beyond_the_kept_intervals_are_averages(tool: Any) -> None:
    """Their sum stays right; samples draw them, and more intervals help."""
    (ours, our_sum), _, (theirs, _) = tool.errors(tool.bursts, 6 * HOUR, 60, 300)
    assert ours > 2 * theirs
    (short, _), (longer, _), _ = tool.errors(tool.bursts, 20 * HOUR, 300, 300)
    assert longer < 0.5 * short
    assert abs(our_sum) < 0.05
