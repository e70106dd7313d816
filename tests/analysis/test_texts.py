"""Texts: what may be stored and shown of a message."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.text.texts import CUT, LEAST_LIMIT, clean_text

#: Pieces that meet the rules of cleaning, also in unhappy combinations.
PIECES = [
    "\x1b", "\x1b[", "\x1b[31m", "\x1b]0;title", "\x07", "\x1b\\", "\x9b", "\x9d", "\x9c", "\x90",
    "\x1bP", "\x1b(B", "31m", "0;", "\r", "\n", "\r\n", "\t", "\x00", "\x7f", "\x85", "\u2028",
    "\u2029", "\u202e", "\u2066", "\u200f", "\ufeff", "\ud83d", "\udcff", "…", "… (3 more)", " ",
    "failed", "点击量", "👩‍👩‍👧", "é", "e\u0301",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(st.characters(), max_size=5), max_size=40).map(
    "".join
)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("retrying order 17", "retrying order 17"),
        ("点击量 5 👩‍👩‍👧 готово", "点击量 5 👩‍👩‍👧 готово"),
        ("\x1b[31mfailed\x1b[0m\x07", "failed"),
        ("\x1b[38;5;196mred\x1b[m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://a.b\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0;2\x1b\\sixel", "sixel"),
        ("\x9b2Jgone \x9d0;t\x9cend", "gone end"),
        ("\x1b(Bx \x1b7y \x1bcz \x1b", "x y z "),
        ("\x1b]0;never ended\nnext line", "\nnext line"),
        ("\x1b[", "(empty)"),
        ("a\x00b\x08c\x7fd\x86e", "abcde"),
        ("one\r\ntwo\rthree\u2028four\u2029five\x85six", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("a\tb\n", "a\tb\n"),
        ("user \u202egnp.exe\u2069\u200e", "user gnp.exe"),
        ("\ufeffBOM", "BOM"),
        ("lone \ud83d", "lone \ufffd"),
        (b"caf\xc3\xa9 \xff", "café \ufffd"),
        ("", "(empty)"),
        (b"", "(empty)"),
        (" \t\n", "(empty)"),
        ("\x1b[0m\x00", "(empty)"),
    ],
)
def test_a_text_keeps_what_can_be_seen(text: str | bytes, cleaned: str) -> None:
    """Terminal sequences go as a whole, line breaks become newlines, bad characters are marked."""
    assert clean_text(text) == cleaned


@given(texts, st.integers(LEAST_LIMIT, 200))
def test_cleaning_twice_is_cleaning_once(text: str, limit: int) -> None:
    """Also where the text is cut, for the mark of the cut is within the limit."""
    once = clean_text(text, limit)
    assert clean_text(once, limit) == once


@given(texts, st.integers(LEAST_LIMIT, 200))
def test_nothing_unseen_is_left(text: str, limit: int) -> None:
    """No controls but newline and tab, no direction marks, no surrogates; it can be encoded."""
    cleaned = clean_text(text, limit)
    assert 0 < len(cleaned) <= limit
    cleaned.encode()
    for char in cleaned:
        assert char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(char) not in ("LRO", "RLO", "LRE", "RLE", "PDF", "RLI")
    assert not re.search("[\u200e\u200f\u061c\ufeff]", cleaned)


@given(st.binary(max_size=200))
def test_bytes_become_text_whatever_they_are(data: bytes) -> None:
    """Undecodable ones are replaced, and the rules for text hold."""
    assert clean_text(data) == clean_text(data.decode(errors="replace"))


@pytest.mark.parametrize("length", [1001, 4000, 4001, 1_000_000])
def test_a_long_text_is_cut_and_says_how_much_is_missing(length: int) -> None:
    """What is kept and what is missing is all there was."""
    cleaned = clean_text("x" * length)
    cut = CUT.search(cleaned)
    assert cut
    assert 990 <= len(cleaned) <= 1000
    assert cut.start() + int(re.sub(r"\D", "", cut[0])) == length


def test_a_text_of_exactly_the_limit_is_not_cut() -> None:
    """The limit is what may be, not what may not."""
    assert clean_text("x" * 1000) == "x" * 1000


def test_a_megabyte_of_sequences_is_looked_at_in_part() -> None:
    """A text that begins with nothing visible shows its cut alone."""
    assert clean_text("\x1b[0m" * 250_000 + "end") == "… (996,003 more)"


def test_a_string_subclass_comes_out_as_plain_text() -> None:
    """Or an Enum member would write itself otherwise."""

    class Loud(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "LOUD"

    assert type(clean_text(Loud("x"))) is str
    assert clean_text(Loud("x")) == "x"


def test_what_is_no_text_is_refused() -> None:
    """How an object is written is the caller's decision."""
    with pytest.raises(TypeError, match=r"str or bytes, not int: pass str"):
        clean_text(5)


def test_a_limit_without_room_for_the_mark_is_refused() -> None:
    """A cut that cannot be told is no cut of ours."""
    with pytest.raises(ValueError, match="the least is 32"):
        clean_text("x", 31)
