"""Counts by five minutes, and the hours that slide over them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.comparing.changes import KNOWN_SEVERITIES, severity_rank
from redmeter.stored.keys import HOUR, STEP, Keys
from redmeter.stored.steps import (
    COARSE_ROOM,
    STEPS,
    URGENT,
    StepCounts,
    coarse_of,
    is_coarse,
    is_complete,
    parse_steps,
    step_operations,
    windows,
)

#: The start of an hour.
NOON = 1700000000 - 1700000000 % HOUR


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (b"1699999200 3", StepCounts(1699999200, (3,))),
        (b"1699999200 3 0 1", StepCounts(1699999200, (3, 0, 1))),
        (b"1699999200", StepCounts(1699999200, ())),
        (b"", None),
        (None, None),
        (b"1699999200 x", None),
        (b"1699999200 -1", None),
        (b"1699999200 9007199254740992", None),
        (b"inf 1", None),
        (b"\xff 1", None),
    ],
)
def test_a_field_is_read_or_is_none(text: bytes | None, steps: StepCounts | None) -> None:
    """Nothing that another program may have put there is taken for counts."""
    assert parse_steps(text) == steps


@given(
    st.lists(st.integers(0, 9), max_size=STEPS),
    st.integers(-3, 30),
    st.integers(-30, 30),
    st.integers(-30, 30),
)
def test_steps_are_summed_by_their_starts(
    counts: list[int], ago: int, first: int, last: int
) -> None:
    """Those that begin within a window, wherever the window is."""
    newest = NOON - ago * STEP
    naive = {newest - n * STEP: count for n, count in enumerate(counts)}
    start, end = NOON + first * STEP, NOON + last * STEP
    wanted = sum(count for at, count in naive.items() if start <= at < end)
    assert StepCounts(newest, tuple(counts)).between(start, end) == wanted


def test_the_windows_meet_and_the_earlier_one_is_an_hour() -> None:
    """The last hour has the step that is running and twelve whole ones."""
    steps = StepCounts(NOON, tuple(1 << n for n in range(STEPS)))
    for seconds in (0, STEP - 0.001):
        count, before = windows(steps, NOON + seconds)
        assert count == (1 << 13) - 1
        assert before == (1 << STEPS) - (1 << 13)
    count, before = windows(steps, NOON + STEP)
    assert count == (1 << 12) - 1
    assert count + before == (1 << 24) - 1  # the oldest has left


def test_steps_are_complete_once_all_are_known() -> None:
    """Those of a hash that was created just now are not, two hours later they are."""
    assert not is_complete(None, NOON)
    assert not is_complete(StepCounts(NOON, (5,)), NOON)
    assert not is_complete(StepCounts(NOON, (0,) * (STEPS - 1)), NOON)
    assert is_complete(StepCounts(NOON, (0,) * STEPS), NOON)
    assert is_complete(StepCounts(NOON - 9 * STEP, (0,) * (STEPS - 9)), NOON)
    assert not is_complete(StepCounts(NOON - 9 * STEP, (0,) * (STEPS - 10)), NOON)
    assert is_complete(StepCounts(NOON + STEP, (0,) * STEPS), NOON)


def test_one_operation_counts_the_steps_of_several_logs() -> None:
    """The older ones first, in the keys of the logs, with the index that they are in."""
    counts = {
        "app:info": {NOON: [("a", 2), ("b", 1)], NOON - STEP: [("a", 3)]},
        "db:error": {NOON: [("c", 1)]},
    }
    (made,) = step_operations(Keys("p:"), counts)
    assert made.keys == ("p:messages:", *["p:steps:app:info"] * 2, "p:steps:db:error")
    head = (str(STEP), str(STEPS), str(COARSE_ROOM))
    older = "app:info", "500", str(NOON - STEP), "1", "a", "a (1 word)", "3"
    newer = "app:info", "500", str(NOON), "2", "a", "a (1 word)", "2", "b", "b (1 word)", "1"
    other = "db:error", "1000", str(NOON), "1", "c", "c (1 word)", "1"
    assert made.args == (*head, *older, *newer, *other)
    assert list(made.at_stake()) == [("", 0)] * 4
    assert step_operations(Keys("p:"), {}) == []


@pytest.mark.parametrize(
    ("pattern", "coarse"),
    [
        ("payment failed for cus_x8Kd", "payment failed for … (4 words)"),
        ("order of amelie failed", "order of … (4 words)"),
        ("database is down", "database is down (3 words)"),
        ("Could not connect to <host>: refused", "Could not connect … (6 words)"),
        ("x8Kd failed", "… (2 words)"),
        ("<n> of <n> done", "… (4 words)"),
        ("(empty)", "… (1 word)"),
        (
            '{"level": "error", "msg": "payment failed for cus_x", "user": <str>}',
            "payment failed for … (4 words)",
        ),
        ('level=error msg="payment failed for cus_x" user=<str>', "payment failed for … (4 words)"),
    ],
)
def test_a_coarse_pattern_has_the_first_words_and_their_number(pattern: str, coarse: str) -> None:
    """It is made of the pattern alone, and that of a coarse pattern is itself."""
    assert coarse_of(pattern) == coarse
    assert coarse_of(coarse) == coarse
    assert is_coarse(coarse)
    assert not is_coarse(pattern)


def test_severities_with_more_room_are_errors_and_above() -> None:
    """As they are ranked where changes are sorted."""
    assert {name for name in KNOWN_SEVERITIES if severity_rank(name) <= severity_rank("error")} == {
        *URGENT
    }
