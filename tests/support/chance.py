"""The range of counts that vary by chance alone, computed exactly."""

import math
from itertools import count as whole_numbers


def exact_range(mean: float) -> tuple[int, int]:
    """Return Poisson's range: at most 2.5 % are lower, and at most 2.5 % are higher."""
    part, total, low = math.exp(-mean), math.exp(-mean), -1
    for count in whole_numbers():
        low = count if low < 0 and total > 0.025 else low
        if total >= 0.975:
            return low, count
        part *= mean / (count + 1)
        total += part
    raise AssertionError
