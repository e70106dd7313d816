"""The table that run.py prints, and how two sides are timed.

`make bench SMOKE=1` runs every row once, at tiny sizes: it shows that a row still runs, and its
figures mean nothing.
"""

import operator
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

#: Whether this is the smoke run. An environment variable, for the processes that rows start.
SMOKE = os.environ.get("REDMETER_BENCH_SMOKE", "") == "1"
#: Rounds, and calls of a round, that the smoke run makes at most.
SMOKE_ROUNDS, SMOKE_CALLS = 1, 5


def sized(full: T, tiny: T) -> T:
    """Return the size of what is measured: the first, or the second in the smoke run."""
    return tiny if SMOKE else full


@dataclass
class Row:
    """One line of the table.

    Attributes:
        target: the bound of the ratio, such as "<= 0.4" or ">= 300"; or "none".
    """

    what: str
    ours: str
    other: str
    ratio: float | None
    target: str
    floor: str = ""

    def is_missed(self) -> bool:
        """Return whether the ratio is outside of its target."""
        if self.target == "none":
            return False
        relation, bound = self.target.split()
        assert self.ratio is not None, f"{self.what}: a target without a ratio"
        holds = {"<=": operator.le, ">=": operator.ge}[relation]
        return not holds(self.ratio, float(bound))


def turns(
    ours: Callable[[], object], other: Callable[[], object], *, rounds: int, calls: int
) -> tuple[float, float, float]:
    """Time two functions in turn.

    Returns:
        Median seconds a call of each, and the median of the rounds' ratios.
    """
    rounds = sized(rounds, SMOKE_ROUNDS)
    pairs = [(seconds(ours, calls), seconds(other, calls)) for _ in range(rounds)]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    return mine, theirs, statistics.median(a / b for a, b in pairs)


def seconds(function: Callable[[], object], calls: int) -> float:
    calls = sized(calls, min(calls, SMOKE_CALLS))
    started = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - started) / calls


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us"


def nano(seconds: float) -> str:
    return f"{seconds * 1e9:.0f} ns"


def milli(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"
