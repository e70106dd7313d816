r"""Variants: patterns that differ in one word only, merged when they are read.

Problem: `f"order of {name} failed"` makes one pattern for each name. A rule that knows a message
alone cannot distinguish a name from a word that matters, and folding every word behind `name=`
merges events that differ (in the Linux set of logpai/loghub: grouping accuracy .877 to .692).

Idea: when patterns are read, all of a logger and severity are at hand. Patterns of equally many
words that differ in one position, the same for all, are one group if they are enough:

    order of amelie failed, order of bastian failed, …      order of <…> failed
    sync done user=amelie, sync done user=chiara, …         sync done user=<…>
    nightly run done full=True, … full=False                nightly run done full=<…>

    words       MIN_VARIANTS, and the words before and after that are not placeholders outnumber the
                one that varies by two
    values      MIN_VALUES behind the same name=, two if all of them are literals such as True. Of
                fewer than MIN_VARIANTS, one with more messages than all others together, as
                user=root in a log of failed logins, is an event of its own

Stored patterns stay, so counts are exact, and a merge that is wrong can be undone by a new version.

Bound: 1,000 patterns take 12 to 28 ms, those of ten words the most. A pattern is in one group, the
largest that it is part of.

Not done: groups that differ in two positions.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

#: Placeholder of the word that varies.
VARIES: Final = "<…>"
#: Variants that make a group: of a word; of a value behind a name; of a literal there.
MIN_VARIANTS, MIN_VALUES, MIN_LITERALS = 10, 3, 2
#: Words of a pattern, at least and at most.
_FEWEST, _MOST = 2, 60
#: Words of letters in a pattern of which one varies.
_PLAIN_WORDS: Final = 3
_PAIR: Final = re.compile(r"(\[?[A-Za-z_][\w.-]{0,39}=)([A-Za-z][\w.+-]*)([\],;]?)")
_LITERALS: Final = {"true", "false", "none", "null", "nil", "yes", "no"}
_WORD: Final = re.compile(r"[^\W\d_][\w.'’-]*[,:;.]?")


def merged_names(patterns: Mapping[str, int]) -> Mapping[str, str]:
    """Return the names of the groups of patterns that differ in one word: pattern -> group.

    Args:
        patterns: of one logger and severity, with their numbers of messages.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for pattern in patterns:
        words = pattern.split(" ")
        if not _FEWEST <= len(words) <= _MOST:
            continue
        plain = [bool(_WORD.fullmatch(word)) for word in words]
        is_text = sum(plain) >= _PLAIN_WORDS
        for at, word in enumerate(words):
            if is_text and at and plain[at]:
                kind, varies = "word", VARIES
            elif "=" in word and (pair := _PAIR.fullmatch(word)):
                kind, varies = "value", f"{pair[1]}{VARIES}{pair[3]}"
            else:
                continue
            name = " ".join([*words[:at], varies, *words[at + 1 :]])
            groups.setdefault((kind, name), []).append(pattern)
    names: dict[str, str] = {}
    for (kind, name), found in sorted(groups.items(), key=lambda each: (-len(each[1]), each[0])):
        variants = [pattern for pattern in found if pattern not in names]
        needed = MIN_VARIANTS if kind == "word" else _values_needed(name, variants)
        if needed == MIN_VALUES and len(variants) < MIN_VARIANTS:
            half = sum(patterns[one] for one in variants) / 2
            variants = [one for one in variants if patterns[one] <= half]
        if len(variants) >= needed:
            names |= dict.fromkeys(variants, name)
    return names


def _values_needed(name: str, variants: Collection[str]) -> int:
    before, _, after = name.partition(VARIES)
    values = {one[len(before) : len(one) - len(after)].lower() for one in variants}
    return MIN_LITERALS if values <= _LITERALS else MIN_VALUES
