"""Folding: messages that wait take little, however many they are."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.recording.logging.coalesce import Place, coalesce
from redmeter.recording.logging.messages import MessageEvents
from redmeter.recording.logging.redact import MessageRules
from redmeter.stored.keys import HOUR, OTHER
from redmeter.stored.message import MAX_HOURLY_PATTERNS, LogHour
from redmeter.stored.steps import COARSE_ROOM
from support.messages import NOON, a_cell, digest, sizes

logged = st.lists(
    st.tuples(
        st.integers(NOON - 2 * HOUR, NOON + HOUR).map(float) | st.floats(NOON, NOON + HOUR),
        st.sampled_from([None, "f %s", "g %s", Place("[E]")]),
        st.sampled_from(["a 1", "a 2", "b", "c token=1"]),
    ),
    max_size=60,
)


def content(hours: dict[int, LogHour], keep: int) -> Any:
    """What is stored of hours: counts, times, and when the newest texts were."""
    patterns = {
        start: {p: (g.events, g.first, g.last) for p, g in hour.patterns.items()}
        for start, hour in hours.items()
    }
    times = sorted(at for hour in hours.values() for at, _ in hour.texts)[-keep:]
    return patterns, times


@given(logged, st.lists(st.integers(0, 60), max_size=4), st.integers(1, 20))
def test_whatever_was_put_together_before_means_the_same(
    events: list[Any], cuts: list[int], keep: int
) -> None:
    """Folded, digested, or one after the other."""
    rules = MessageRules(keep)
    wanted = content(digest(*events, rules=rules), keep)
    parts, rest = [], events
    for cut in cuts:
        parts.append(rest[:cut])
        rest = rest[cut:]
    made: list[Any] = []
    for at, part in enumerate([*parts, rest]):
        made += part
        made = coalesce(made, keep) if at % 2 else list(digest(*made, rules=rules).items())
        assert MessageEvents.size(made) == sum(map(len, parts[: at + 1])) + (
            at == len(parts)
        ) * len(rest)
    assert content(digest(*made, rules=rules), keep) == wanted
    assert content(digest(*coalesce(events, keep), rules=rules), keep) == wanted


def test_folding_masks_nothing_and_leaves_little() -> None:
    """The newest as they are, all others by pattern or, where there is none, by text."""
    events = [(NOON + n, ("f %d", None)[n % 2], f"f {n % 10}") for n in range(2000)]
    made = coalesce(events, 100)
    assert made[-100:] == events[-100:]
    assert len(made) == 100 + (1 + 5) * 7  # of 1,900 s, in seven steps
    assert MessageEvents.size(made) == 2000


@pytest.mark.parametrize("texts", ["of one format", "all different", "long and different"])
def test_a_cell_stays_small_while_nobody_looks(texts: str) -> None:
    """Whatever is logged between two flushes, and none of it is lost."""
    cell = a_cell(shorten=500)
    tracemalloc.start()
    for n in range(8_000):
        text = f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676 % 26)} said so"
        if texts == "of one format":
            cell.put_message("%s said so", text, NOON + n / 100)
        else:
            cell.put_message(None, text * (30 if texts.startswith("long") else 1), NOON + n / 100)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert MessageEvents.size(cell._events) == 8_000
    assert most < 8e6
    assert len(cell._events) < 5_000
    hours = dict(cell._merge(cell._events))
    assert sum(hour.events for hour in hours.values()) == 8_000
    if texts == "all different":
        assert len(hours[NOON].patterns) == MAX_HOURLY_PATTERNS + COARSE_ROOM + 1
        assert hours[NOON].patterns[OTHER].events > 0


@pytest.mark.parametrize("pattern", [None, "of %s", "long"])
def test_texts_that_are_too_many_are_counted_and_not_kept(pattern: str | None) -> None:
    """Whoever logs masks nothing and makes no pattern, and the newest texts stay."""

    def never(text: str) -> str:
        raise AssertionError(text)

    cell = a_cell(MessageRules(keep=10, mask=never), shorten=500)
    most = 0
    for n in range(10_000):
        words = f"{n}{'p' * 300} %s" if pattern == "long" else pattern and f"{n} {pattern}"
        cell.put_message(words, f"{n} {'t' * 500}", NOON + n / 100)
        if n % 97 == 0:
            most = max(most, MessageEvents.size_in_memory(cell._events))
    assert most < 12e6
    assert MessageEvents.size(cell._events) == 10_000
    assert [event[2].split()[0] for event in cell._events[-10:]] == [
        str(n) for n in range(9_990, 10_000)
    ]
    cell.rules = MessageRules(keep=10)
    hours = dict(cell._merge(cell._events))
    assert sizes(hours).total() == 10_000
    assert sizes(hours)[OTHER] > 3_000


def test_many_texts_ask_for_the_thread_that_stores() -> None:
    """And few do not, however many messages they are of."""
    cell = a_cell()
    for n in range(3000):
        cell.put_message("of %s", f"of {n}", NOON)
    assert not cell._shorten()
    for n in range(3000):
        cell.put_message(None, f"of {n}", NOON)
    assert cell._shorten()
