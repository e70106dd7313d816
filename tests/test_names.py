"""Names: one stored spelling each, whatever a caller writes; a clear refusal, or a name."""

import enum
import itertools
import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redmeter.errors import InvalidName
from redmeter.names import (
    MAX_BYTES,
    MAX_SERIES_BYTES,
    SeriesName,
    canonical,
    check_text,
    format_name,
    parse_name,
)

#: Marks that turn the direction of text without being of a class that says so, and the one that
#: nobody sees at all.
MARKS = "\u061c\u200e\u200f\ufeff"
TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def is_forbidden(char: str) -> bool:
    """Say by Unicode's own tables whether a character may not stand in a name."""
    return (
        unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(char) in TURNING
        or char in MARKS
    )


allowed = st.characters().filter(lambda char: not is_forbidden(char))
#: At most 40 bytes each, so that a name with three labels stays within MAX_BYTES.
bases = st.text(allowed.filter(lambda char: char not in "{}"), min_size=1, max_size=10)
keys = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,7}", fullmatch=True)
tricky = st.sampled_from(['"', "\\", "\n", "{", "}", ",", "=", " ", "n", "点", ":", "*"])
values = st.text(tricky | allowed, max_size=6)
labels = st.dictionaries(keys, values, max_size=3)

#: Whatever somebody might send: single characters of every kind and pieces of the grammar.
hostile = st.lists(
    st.text(st.characters(exclude_categories=[]), max_size=3)
    | st.sampled_from(
        ["{", "}", '{a="1"}', ',b="', '"}', "\\", "\\n", "a", " ", "\u202e", "\udc80"]
    ),
    max_size=12,
).map("".join)


def spelled(base: str, pairs: list[tuple[str, str]], space: str, comma: bool) -> str:
    """Write a name by hand, as a caller might."""
    escaped = [
        (k, v.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for k, v in pairs
    ]
    inner = ",".join(f'{space}{k}{space}={space}"{v}"{space}' for k, v in escaped)
    return base + "{" + inner + ("," if comma and pairs else "") + "}"


@given(bases, labels)
def test_what_was_formatted_is_parsed_back(base: str, pairs: dict[str, str]) -> None:
    """format_name and parse_name are inverse, and labels come back sorted by key."""
    name = format_name(base, pairs)
    assert parse_name(name) == SeriesName(base, tuple(sorted(pairs.items())))
    assert str(parse_name(name)) == name
    assert canonical(name) == name


@given(
    bases,
    labels,
    st.randoms(use_true_random=False),
    st.sampled_from(["", " ", "  "]),
    st.booleans(),
)
def test_labels_in_any_order_and_spacing_are_one_series(
    base: str, pairs: dict[str, str], random: Any, space: str, comma: bool
) -> None:
    """However the same labels are written, within the name or beside it, it is one spelling."""
    shuffled = list(pairs.items())
    random.shuffle(shuffled)
    cut = random.randint(0, len(shuffled))
    one = format_name(base, pairs)
    if len(spelled(base, shuffled, space, comma).encode()) <= MAX_BYTES:
        assert canonical(spelled(base, shuffled, space, comma)) == one
        inside = spelled(base, shuffled[:cut], space, comma)
        assert canonical(inside, dict(shuffled[cut:])) == one
    assert canonical(base, dict(shuffled)) == one


def test_different_label_values_never_meet_in_one_spelling() -> None:
    """Backslashes, quotes, newlines and the letter n are told apart, however they are combined."""
    texts = ["".join(t) for n in range(4) for t in itertools.product('\\"\nn', repeat=n)]
    pairs = list(itertools.product(texts, texts))
    assert len({format_name("x", {"a": a, "b": b}) for a, b in pairs}) == len(pairs)


@given(bases, labels, bases, labels)
@example("a", {"b": '1",c="2'}, "a", {"b": "1", "c": "2"})
@example("a", {}, "a", {"b": ""})
@example("a", {"b": r"\n"}, "a", {"b": "\n"})
def test_only_equal_names_have_equal_spellings(
    base: str, pairs: dict[str, str], other: str, others: dict[str, str]
) -> None:
    """Names that differ in anything differ in their stored spelling."""
    same = (base, pairs) == (other, others)
    assert (canonical(base, pairs) == canonical(other, others)) is same


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("signups", "signups"),
        ("点击量", "点击量"),
        ("a:b*c?[d] \\ \"e\" 'f'", "a:b*c?[d] \\ \"e\" 'f'"),
        ("🎈" * 50, "🎈" * 50),
        ("e\u0301", "e\u0301"),
        ("é", "é"),
        (" ", " "),
        ("hits{}", "hits"),
        ("hits{ }", "hits"),
        ('hits{b="2",a="1"}', 'hits{a="1",b="2"}'),
        ('hits{ b = "2" , a = "1", }', 'hits{a="1",b="2"}'),
        ('hits{a="}{,="}', 'hits{a="}{,="}'),
        (r'hits{a="\x\"\\\n"}', r'hits{a="\\x\"\\\n"}'),
        ('hits{B="1",a="2",_="3"}', 'hits{B="1",_="3",a="2"}'),
        ('点击量{页="1"}', None),
        ('点击量{p="首页"}', '点击量{p="首页"}'),
        ('hits{a="1"', None),
        ('hits{a="1"}}', None),
        ('hits{a="1"} ', None),
        ('hits{a="1"}x', None),
        ('hits{a="1"}{b="2"}', None),
        ("hits{a=1}", None),
        ("hits{a='1'}", None),
        ('hits{a="1" b="2"}', None),
        ('hits{a="1",,b="2"}', None),
        ("hits{,}", None),
        ('hits{1a="1"}', None),
        ('hits{a-b="1"}', None),
        ('hits{="1"}', None),
        ('hits{a="1",a="1"}', None),
        ('hits{a="1\\"}', None),
        ('{a="1"}', None),
        ("hits}", None),
        ("}hits{", None),
        ("hi}ts{}", None),
        ("", None),
        ("a\nb", None),
        ("a\x00b", None),
        ("a\x7f", None),
        ("a\x85", None),
        ("\u202etxt.stih", None),
        ("a\u2028b", None),
        ("\ud83d", None),
    ],
)
def test_a_name_is_stored_in_one_spelling_or_refused(given: str, stored: str | None) -> None:
    """Examples of the grammar; None stands for InvalidName."""
    if stored is not None:
        assert canonical(given) == stored
        assert parse_name(given) == parse_name(stored)
        return
    for read in (canonical, parse_name):
        with pytest.raises(InvalidName):
            read(given)


@pytest.mark.slow
def test_exactly_control_separating_and_turning_characters_are_refused() -> None:
    """Every single character of Unicode, by the tables of Unicode; all others are names."""
    wrong = []
    for char in map(chr, range(sys.maxunicode + 1)):
        try:
            check_text(char)
        except InvalidName as error:
            if not is_forbidden(char) or f"U+{ord(char):04X} at character 0 " not in error.reason:
                wrong.append(hex(ord(char)))
        else:
            if is_forbidden(char):
                wrong.append(hex(ord(char)))
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "size"),
    [("a" * 200, 200), ("点" * 66 + "ab", 200), ("🎈" * 50, 200), ("é" * 100, 200)],
)
def test_a_name_has_200_bytes_at_most(name: str, size: int) -> None:
    """Bytes of UTF-8 are counted, not characters."""
    assert len(name.encode()) == size
    assert canonical(name) == name
    for longer in ("a" + name, name + "a", "点" + name):
        with pytest.raises(InvalidName, match="over 200 bytes of UTF-8"):
            canonical(longer)


def test_labels_count_towards_the_length_as_they_are_stored() -> None:
    """Backslashes that escape take room as well."""
    fits = {"k": '"' * 246 + "a"}
    assert len(canonical("x", fits).encode()) == MAX_SERIES_BYTES
    with pytest.raises(InvalidName, match="over 500 bytes"):
        canonical("xy", fits)


@pytest.mark.parametrize("size", [501, 10_000, 2**20])
@pytest.mark.parametrize("piece", ["a", "点", "\n", "{", "\\", '{a="'])
def test_a_name_of_any_size_is_refused_in_few_words(piece: str, size: int) -> None:
    """As a name, as a label's key and as a value; the message does not repeat it."""
    long = piece * size
    for arguments in ((long, None), ("x", {"k": long}), ("x", {long: "v"}), (long, {"k": "v"})):
        with pytest.raises(InvalidName) as caught:
            canonical(*arguments)
        assert len(str(caught.value)) < 400
        assert len(caught.value.name) < 100


@given(hostile, st.none() | st.dictionaries(hostile, hostile, max_size=2))
def test_any_text_is_either_a_name_or_an_invalid_name(
    name: str, pairs: dict[str, str] | None
) -> None:
    """Nothing else is ever raised, and what is accepted is safe to store and to print."""
    try:
        stored = canonical(name, pairs)
    except InvalidName as error:
        refusal = error
    else:
        assert 1 <= len(stored.encode()) <= (MAX_SERIES_BYTES if "{" in stored else MAX_BYTES)
        assert not any(map(is_forbidden, stored))
        assert canonical(stored) == stored
        return
    assert refusal.reason
    assert refusal.reason in str(refusal)
    assert str(refusal).isprintable()
    assert len(str(refusal)) < 400


@pytest.mark.parametrize(
    ("name", "pairs", "told"),
    [
        ("", None, "1 to 200 bytes"),
        (b"hits", None, r"text \(str\), not bytes"),
        (None, None, r"text \(str\), not NoneType"),
        (["hits"], None, "not list"),
        ({}, None, "not dict"),
        (10**5000, None, "not int"),
        (b"hits", {"a": "1"}, "not bytes"),
        ("a\nb", None, "U.000A at character 1 .* any other character is allowed"),
        ("a{b}", None, 'name{key="value",…}'),
        ("a}", {"b": "1"}, 'name{key="value",…}'),
        ("a", {"b": 1}, r"label b has a value of type int; use text: str\(…\)"),
        ("a", {"b": None}, "NoneType"),
        ("a", {1: "b"}, r"label key 1 does not match \[A-Za-z_\]"),
        ("a", {10**5000: "b"}, "label key"),
        ("a", {None: "b", "c": "d"}, "label key None"),
        ("a", {"é": "b"}, "label key 'é' does not match"),
        ("a", {"b\n": "c"}, r"label key 'b\\n' does not match"),
        ("a", {"": "c"}, "label key ''"),
        ('a{b="1"}', {"b": "1"}, "the label 'b' is given twice"),
        ('a{b="1",b="2"}', None, "the label 'b' is given twice"),
        ("a", {"b": "\u202e"}, "U.202E at character 5"),
        ("a", ["b"], r'a mapping, e.g. \{"a": "1"\}, not list'),
        ("a", "b", "not str"),
        ("a", {"b"}, "not set"),
        ("a", 7, "not int"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_refusal_says_what_is_allowed(name: Any, pairs: Any, told: str) -> None:
    """The error names the rule and the way out, for every rule."""
    with pytest.raises(InvalidName, match=told) as caught:
        canonical(name, pairs)
    assert isinstance(caught.value, ValueError)


def test_members_of_text_enumerations_are_the_text_they_are() -> None:
    """`class Event(str, Enum)` formats as Event.SIGNUP; the series is signups all the same."""

    class Event(str, enum.Enum):  # noqa: UP042  a StrEnum formats as its value
        SIGNUP = "signups_of_an_enumeration"
        A = "z"
        Z = "a"

    name = canonical(Event.SIGNUP)
    assert type(name) is str
    assert f"{name}" == "signups_of_an_enumeration"
    assert f"{canonical('signups_of_an_enumeration')}" == "signups_of_an_enumeration"
    assert type(check_text(Event.SIGNUP)) is str
    assert canonical("x", {Event.A: "1", Event.Z: Event.A}) == 'x{a="z",z="1"}'
    assert type(parse_name(Event.SIGNUP).base) is str


def test_a_label_is_found_by_its_key() -> None:
    """And None stands for a label that is not there, unlike the empty text."""
    name = parse_name('x{a="1",b=""}')
    assert (name.label("a"), name.label("b"), name.label("c")) == ("1", "", None)
    assert parse_name("x").label("a") is None
