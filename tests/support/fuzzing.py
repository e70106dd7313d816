"""Fuzzing: inputs that are nearly valid, and whether work grows with the input alone.

Random text is refused at its first character, so what is given to a parser is made of valid inputs:
characters are turned into others, parts are cut, doubled, moved from one input to another, and
texts are put between that mean something to somebody.

REDMETER_FUZZ_EXAMPLES says how many inputs each test tries: few by default, since these tests run
with all others, thousands by `make fuzz`.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

#: Inputs that each test tries.
EXAMPLES = int(os.environ.get("REDMETER_FUZZ_EXAMPLES", "20"))

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
#: For tests of one input after the other.
fuzzed = settings(max_examples=EXAMPLES, suppress_health_check=_SLOW)
#: For tests whose every input takes some milliseconds: of a server, or of how work grows. What is
#: found is long enough to be seen as it is, and would take long to be made smaller.
fuzzed_slowly = settings(
    max_examples=max(8, EXAMPLES // 4),
    suppress_health_check=_SLOW,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)

#: Texts that mean something to somebody: to numbers, terminals, browsers, patterns, Redis, JSON.
HOSTILE = (
    *("", " ", "\0", "\n", "\r\n", "\t", "\x1b[2J", "\x1b]0;x\x07", "\x9b1m", "\u202e", "\ufeff"),
    *("\u2028", "\ud800", "\U0010ffff", "e\u0301" * 3, "\u0130", "\ufffd", "²", "٣", "½"),
    *("nan", "-inf", "1e308", "1e999", "-0.0", "9" * 20, "9" * 400, "9" * 5000, "1_0", "0x7f"),
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "${x}", "%00"),
    *("'", '"', "`", "\\", "\\u0022", "%22", "&quot;", "{", "}", "[", "]", "(", ")", "*", "?"),
    *("=", ":", ",", ";", "&", "/", "//", "#", "@", "|", "…", "-", "+", "%", "../..", "null"),
)

T = TypeVar("T", str, bytes)


def mutated(valid: Sequence[str], *, most: int = 4) -> st.SearchStrategy[str]:
    """Make texts that are nearly valid.

    Args:
        valid: what is changed.
        most: changes.
    """
    change = st.tuples(
        st.sampled_from(["flip", "cut", "repeat", "insert", "splice", "move"]),
        st.floats(0, 1),
        st.floats(0, 1),
        st.sampled_from(HOSTILE) | st.characters() | st.text(max_size=5),
        st.sampled_from(list(valid)),
    )
    whole = st.sampled_from(list(valid))
    return st.builds(_changed, whole, st.lists(change, max_size=most))


def _changed(text: str, changes: Sequence[tuple[str, float, float, str, str]]) -> str:
    for what, first, second, other, another in changes:
        at, end = sorted((int(first * len(text)), int(second * len(text))))
        part = text[at:end]
        if what == "flip":
            text = text[:at] + other[:1] + text[at + 1 :]
        elif what == "cut":
            text = text[:at] + text[end:]
        elif what == "repeat":
            text = text[:end] + part * 3 + text[end:]
        elif what == "insert":
            text = text[:at] + other + text[at:]
        elif what == "splice":
            text = text[:at] + another[int(second * len(another)) :]
        else:
            text = text[:at] + text[end:] + part
        text = text[:20_000]
    return text


def mutated_bytes(valid: Sequence[bytes | str], *, most: int = 4) -> st.SearchStrategy[bytes]:
    """Make bytes that are nearly valid; now and then no UTF-8."""
    texts = [one.decode("latin-1") if isinstance(one, bytes) else one for one in valid]
    changed = mutated(texts, most=most)
    return changed.map(lambda text: text.encode("utf-8", "surrogatepass")) | changed.map(
        lambda text: text.encode("latin-1", "replace")
    )


# --- Work ----------------------------------------------------------------------------------

#: Characters of the shorter input, and how many times as long the other one is.
SHORT, TIMES = 6_000, 8
#: By how much more than its length the work for the longer one may grow. Of a parser that looks
#: at each character for each other it grows by TIMES; caches and the machine make a half more.
SLACK = 3.0
#: Work that nobody notices, seconds of this thread's own: below that nothing is compared.
LEAST = 0.02


def grown(parts: Sequence[str]) -> st.SearchStrategy[Callable[[int], str]]:
    """Make functions from a length to a text of it: a beginning, something repeated, an end."""
    one = st.sampled_from(list(parts))
    unit = st.lists(one, min_size=1, max_size=3).map("".join).filter(bool)
    ends = st.lists(one, max_size=2).map("".join)

    def make(beginning: str, repeated: str, end: str) -> Callable[[int], str]:
        def of_length(length: int) -> str:
            return beginning + repeated * (length // len(repeated)) + end

        of_length.__doc__ = f"{beginning!r} {repeated!r} … {end!r}"
        return of_length

    return st.builds(make, ends, unit, ends)


def assert_work_is_linear(work: Callable[[str], object], of_length: Callable[[int], str]) -> None:
    """Assert that a text eight times as long takes about eight times the work.

    Compared is what this thread has computed, whatever else the machine does, and thrice before it
    is believed.
    """
    short, long = of_length(SHORT), of_length(SHORT * TIMES)
    for _ in range(3):
        whole = _seconds(work, long)
        if whole < LEAST:
            return
        part = min(_seconds(work, short) for _ in range(3))
        if whole <= part * TIMES * SLACK:
            return
        if whole > 2 * part * TIMES * SLACK and whole > 1.0:  # no machine is that moody
            break
    raise AssertionError(
        f"{len(short):,} characters took {part:.4f} s, {len(long):,} took {whole:.4f} s, of "
        f"{of_length.__doc__}"
    )


def _seconds(work: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    work(text)
    return time.thread_time() - began
