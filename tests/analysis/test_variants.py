"""Variants: patterns that differ in one word are merged when they are read."""

from collections import Counter

import pytest

from redmeter.analysis.text.patterns import pattern_of
from redmeter.analysis.text.variants import MIN_VARIANTS, merged_names

NAMES = [f"{a}{b}" for a in ("ama", "basti", "chi", "dori") for b in ("an", "elie", "ara")]


def groups_of(*texts: str) -> set[str]:
    """Return the groups of messages."""
    counts = Counter(map(pattern_of, texts))
    names = merged_names(counts)
    return {names.get(pattern, pattern) for pattern in counts}


@pytest.mark.parametrize(
    ("line", "group"),
    [
        ("order of {} failed", "order of <…> failed"),
        ("sync done user={}, plan=pro", "sync done user=<…>, plan=pro"),
        ("done [user={}]", "done [user=<…>]"),
        ("{} <{}", ""),
    ],
)
def test_patterns_that_differ_in_one_word_are_one_group(line: str, group: str) -> None:
    """If that word is a name; not where the rest has too few words."""
    texts = [line.replace("{}", name) for name in NAMES]
    assert groups_of(*texts) == ({group} if group else {*texts})


def test_some_variants_are_needed() -> None:
    """More words than values behind a name; two literals there are enough."""
    words = [f"order of {name} failed" for name in NAMES[: MIN_VARIANTS - 1]]
    assert groups_of(*words) == {*words}
    assert groups_of(*[f"done user={name}" for name in NAMES[:3]]) == {"done user=<…>"}
    two = [f"done user={name}" for name in NAMES[:2]]
    assert groups_of(*two) == {*two}
    assert groups_of("run done full=True", "run done full=False") == {"run done full=<…>"}


def test_a_value_of_most_messages_is_an_event_of_its_own() -> None:
    """As root is in a log of failed logins; but not if there are many values."""
    few = ["login failed user=root"] * 9 + [f"login failed user={name}" for name in NAMES[:3]]
    assert groups_of(*few) == {"login failed user=root", "login failed user=<…>"}
    many = few + [f"login failed user={name}" for name in NAMES]
    assert groups_of(*many) == {"login failed user=<…>"}


def test_a_pattern_is_in_the_largest_group() -> None:
    """And in one only."""
    counts = dict.fromkeys((f"order of {name} failed" for name in NAMES), 1)
    counts |= dict.fromkeys((f"order of {NAMES[0]} was{name}" for name in NAMES[:10]), 1)
    names = merged_names(counts)
    assert names[f"order of {NAMES[0]} failed"] == "order of <…> failed"
    assert set(names.values()) == {"order of <…> failed", f"order of {NAMES[0]} <…>"}
