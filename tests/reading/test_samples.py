"""A counter's hash laid on the slices that count: the same, however the fields come."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from redmeter.reading.samples import Grid
from redmeter.results.series import CoveredWindow

#: Newest and oldest slice, and the server's clock in the middle of the newest.
FIRST, LAST, NOW = 600, 900, 930.0
STARTS = range(FIRST, LAST + 1, 60)

#: What else may stand in a hash: slices that do not count, other spellings, what others wrote.
ODD = [b"540", b"960", b"660.0", b"601", b"x", b""]
VALUES = [b"0", b"7", b"123456789", b"-3", b"x", b"", b"1.5"]

ordered = st.tuples(*[st.sampled_from(VALUES)] * len(STARTS)).map(
    lambda values: list(zip([b"%d" % start for start in STARTS], values, strict=True))
)
fields = st.lists(
    st.tuples(st.sampled_from([b"%d" % start for start in STARTS] + ODD), st.sampled_from(VALUES)),
    unique_by=lambda pair: pair[0],
)


def one_by_one(pairs: list[tuple[bytes, bytes]]) -> dict[int, int]:
    """Return the counts by slice, read the plain way."""
    found: dict[int, int] = {}
    for field, value in pairs:
        try:
            start, count = int(float(field)), int(value)
        except ValueError:
            continue
        if start in STARTS:
            found[start] = found.get(start, 0) + count
    return found


@given(ordered | fields, st.randoms(use_true_random=False))
def test_a_series_is_what_the_hash_holds_in_any_order(
    pairs: list[tuple[bytes, bytes]], random: Any
) -> None:
    """From the oldest slice that counts on, with zeros between; by either protocol."""
    expected = one_by_one(pairs)
    oldest = min(expected, default=LAST + 60)
    values = tuple(expected.get(start, 0) for start in range(oldest, LAST + 1, 60))
    shuffled = random.sample(pairs, len(pairs))
    for some in (pairs, shuffled):
        for reply in ([part for pair in some for part in pair], dict(some)):
            series = Grid(CoveredWindow(60, FIRST, LAST + 60, running=True), NOW).counter(
                "hits", reply
            )
            assert (series.start, series.values) == (oldest, values)
            assert series.partial is bool(values)
