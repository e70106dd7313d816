"""Expected ranges of the status, over data in memory."""

import math
import random

from redmeter.analysis.comparing.status import check_of, check_requests
from redmeter.results import Series


def test_a_range_of_traffic_that_varies_by_factors_reaches_as_many_times_down_as_up() -> None:
    """A fall by half is found in noise in which a rise by half is usual."""
    rng = random.Random(0)
    values = tuple(round(1000 * math.exp(rng.gauss(0, 0.2))) for _ in range(120))
    blocks = Series("hits", 300, 0, values, partial=False)
    states = [
        check_requests(check_of("requests", "hits"), n, blocks).state for n in (460, 480, 1500)
    ]
    assert states == ["low", "usual", "usual"]
