"""Steps: how often each pattern of a log came, by five minutes, for windows that slide.

Problem: clock hours compare badly. Three minutes past the hour nearly all counts are below those of
the hour before, so the result depends on the minute at which it is read.

Idea: in addition to the counts of two clock hours, one hash for each logger and severity holds the
counts of the newest STEPS steps:

    steps:LOGGER:SEVERITY    pattern -> "NEWEST COUNT COUNT …", the newest step first
                             ""      -> the same for all patterns together

The window is the current step and the 12 before it, so 60 to 65 minutes. It is compared with the 12
steps before that, 60 minutes. An event counts in the step of its own time, however late it arrives,
as long as that step is kept.

The number of counts of "" shows how far back the hash is complete. A hash that is created while its
log already exists, as after an upgrade, begins with one count and gains one every five minutes. One
that is created after a silence is complete at once.

Bound: room_of() patterns for each logger and severity. Beyond these a message counts under a coarse
pattern, made of its own pattern alone, for which COARSE_ROOM further places are reserved, and only
beyond these as `(other)`:

    payment failed for cus_x8Kd     payment failed for … (4 words)
    database is down                database is down (3 words)

Those that are stored keep their places while they have counts, so a flood takes none away. The hash
decides for the whole batch: hourly counts and times have the name that it found
here. A hash expires STEPS + 1 steps after its last event.

Pure: no I/O.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from redmeter.lazy_regex import late
from redmeter.stored.keys import HOUR, OTHER, STEP, Keys, slice_start
from redmeter.types import Operation

#: How many steps are kept: an hour, the hour before it, and the current step.
STEPS = 2 * HOUR // STEP + 1
#: Most patterns of a logger and severity; of one of URGENT; and coarse ones beyond these.
ROOM, URGENT_ROOM, COARSE_ROOM = 500, 1_000, 100
#: Severities of errors and above.
URGENT = frozenset(("emergency", "emerg", "panic", "alert", "critical", "error", "err"))
#: Words of a coarse pattern at most, and characters of each.
_WORDS, _WORD_LENGTH = 3, 30
#: The field that counts all patterns together.
ALL = ""


_COARSE = late(r"(?:\A| )\(\d+ words?\)\Z")
#: The text of a line of JSON or logfmt, whose first words name its event.
_TEXT = late(r"""(?<![\w.-])(?:msg|message|event|error)(?:"[ ]?:[ ]?|=)"((?:[^"\\]|\\.)+)""")
_PLAIN = late(r"[^\W\d_]+(?:['’-][^\W\d_]+)*[,.:;!?]?")
#: What follows one of these is a value, as a rule.
_BEFORE_VALUES = {"of", "for", "from", "to", "by", "at", "in", "on", "with", "as", "user", "named"}


def room_of(severity: str) -> int:
    """Return how many patterns of a severity of a logger have places of their own."""
    return URGENT_ROOM if severity in URGENT else ROOM


@lru_cache(1024)
def coarse_of(pattern: str) -> str:
    """Return the coarse pattern of a pattern: its first constant words, and how many it has.

    A pure function, so all processes find the same; that of a coarse pattern is itself.
    """
    if is_coarse(pattern):
        return pattern
    words = (found[1] if (found := _TEXT.search(pattern)) else pattern).split()
    kept: list[str] = []
    for word in words[:_WORDS]:
        spelled = word.islower() or word.istitle() or word.isupper()
        if not spelled or len(word) > _WORD_LENGTH or not _PLAIN.fullmatch(word):
            break
        kept.append(word)
        if word.lower() in _BEFORE_VALUES:
            break
    if len(kept) < len(words):
        kept.append("…")
    return " ".join([*kept, f"({len(words)} word{'s' * (len(words) != 1)})"])


def is_coarse(pattern: str) -> bool:
    """Return whether a pattern is one of coarse_of()."""
    return pattern.endswith(("words)", "word)")) and bool(_COARSE.search(pattern))


def name_in_room(pattern: str, known: Collection[str], room: int) -> str:
    """Return the name under which a pattern counts: its own, a coarse one, or OTHER.

    Args:
        known: the names that have places, perhaps OTHER as well.
        room: places before only coarse ones are added.
    """
    if pattern in known or pattern == OTHER:
        return pattern
    places = len(known) - (OTHER in known)
    if places < room:
        return pattern
    coarse = coarse_of(pattern)
    return coarse if coarse in known or places < room + COARSE_ROOM else OTHER


class StepCounts(NamedTuple):
    """Counts of consecutive steps."""

    #: Start of the newest step, Unix seconds.
    newest: int
    #: The newest first.
    counts: tuple[int, ...]

    @property
    def oldest(self) -> int:
        """The start of the oldest step that has a count, Unix seconds."""
        return self.newest - (len(self.counts) - 1) * STEP

    def between(self, start: int, end: int) -> int:
        """Return the count of the steps that begin within [start, end)."""
        first = max((self.newest - end) // STEP + 1, 0)
        last = max((self.newest - start) // STEP + 1, 0)
        return sum(self.counts[first:last])


def parse_steps(text: bytes | None) -> StepCounts | None:
    """Read a field; None where there is none, or it has another form."""
    try:
        newest, *counts = map(int, (text or b"").split(b" "))
    except ValueError:
        return None
    # The sum of all steps fits the widest number of the other counts.
    return StepCounts(newest, tuple(counts)) if all(0 <= n < 2**53 for n in counts) else None


def windows(steps: StepCounts, now: float) -> tuple[int, int]:
    """Return how many there were in the last hour, and in the hour before it."""
    running = slice_start(now, STEP)
    start = running - HOUR
    return steps.between(start, running + STEP), steps.between(start - HOUR, start)


def is_complete(steps: StepCounts | None, now: float) -> bool:
    """Return whether the counts of all patterns together are known for both windows.

    STEPS counts are enough, even if a step that began since `now` replaced the oldest.
    """
    if steps is None:
        return False
    oldest = slice_start(now, STEP) - (STEPS - 1) * STEP
    return len(steps.counts) >= STEPS or steps.oldest <= oldest


def step_operations(
    keys: Keys, counts: Mapping[str, Mapping[int, Iterable[tuple[str, int]]]]
) -> list[Operation]:
    """Count patterns by steps: LOGGER:SEVERITY -> {start of a step -> (pattern, events) pairs}."""
    hashes = [keys.messages]
    args = [str(STEP), str(STEPS), str(COARSE_ROOM)]
    for name, steps in counts.items():
        room = str(room_of(name.rpartition(":")[2]))
        for start in sorted(steps):
            pairs = [*steps[start]]
            hashes.append(keys.key("steps", name))
            args += (name, room, str(start), str(len(pairs)))
            for pattern, events in pairs:
                args += (pattern, coarse_of(pattern), str(events))
    # Events that are rejected here are still counted by the hour.
    losses = [("", 0)] * len(hashes)
    return [Operation("steps", tuple(hashes), tuple(args), lambda: losses)] if counts else []
