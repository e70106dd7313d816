"""The table that run.py prints, and how two sides are timed."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Row:
    """One line of the table."""

    what: str
    ours: str
    other: str
    ratio: float | None
    target: str
    floor: str = ""


def turns(
    ours: Callable[[], object], other: Callable[[], object], *, rounds: int, calls: int
) -> tuple[float, float, float]:
    """Time two functions in turn.

    Returns:
        Median seconds a call of each, and the median of the rounds' ratios.
    """
    pairs = [(seconds(ours, calls), seconds(other, calls)) for _ in range(rounds)]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    return mine, theirs, statistics.median(a / b for a, b in pairs)


def seconds(function: Callable[[], object], calls: int) -> float:
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
