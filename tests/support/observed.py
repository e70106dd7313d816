"""Observed values written straight into the hashes, and what they sum up to, computed apart."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from redmeter.stored.exponential_histogram import RELATIVE_ERROR, Distribution
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, Keys, entry, slice_start
from redmeter.stored.packed_text import buckets_text, moments_text

#: (time, value).
Observed = Sequence[tuple[float, float]]


def put_observed(
    client: Any,
    given: Mapping[str, Observed],
    *,
    prefix: str = "redmeter:",
    histograms: Mapping[int, int] = DEFAULT_HISTOGRAMS,
) -> None:
    """Write observed values of series, each slice that they lie in, whether it is kept or not."""
    keys, pipe = Keys(prefix), client.pipeline(transaction=False)
    for name, observed in given.items():
        for precision in histograms:
            slices: dict[int, list[float]] = {}
            for time, value in observed:
                slices.setdefault(slice_start(time, precision), []).append(value)
            for start, values in slices.items():
                one = Distribution()
                one.add_all(values)
                pipe.hset(keys.hist(precision, name), str(start), buckets_text(one))
                pipe.hset(keys.moments(precision, name), str(start), moments_text(one))
            if slices:
                pipe.zadd(keys.hists, {entry(precision, name): 0})
    pipe.execute()


def exact_quantile(values: Sequence[float], q: float) -> float:
    """Return a quantile by nearest rank, of all values."""
    return sorted(values)[max(math.ceil(round(q * len(values), 9)), 1) - 1]


def near(found: float | None, exact: float) -> bool:
    """Whether a quantile is within the bound."""
    return found is not None and abs(found - exact) <= RELATIVE_ERROR * abs(exact) * (1 + 1e-12)
