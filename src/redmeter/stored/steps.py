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

Bound: 1,000 patterns for each logger and severity; further ones count as `(other)`. A hash expires
STEPS + 1 steps after its last event.

Pure: no I/O.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from redmeter.stored.keys import HOUR, STEP, Keys, slice_start
from redmeter.types import Operation

#: How many steps are kept: an hour, the hour before it, and the current step.
STEPS = 2 * HOUR // STEP + 1
#: Most patterns of a logger and severity.
MAX_FIELDS = 1_000
#: The field that counts all patterns together.
ALL = ""


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
    args = [str(STEP), str(STEPS), str(MAX_FIELDS)]
    for name, steps in counts.items():
        for start in sorted(steps):
            pairs = [*steps[start]]
            hashes.append(keys.key("steps", name))
            args += (name, str(start), str(len(pairs)))
            for pattern, events in pairs:
                args += (pattern, str(events))
    # Events that are rejected here are still counted by the hour.
    losses = [("", 0)] * len(hashes)
    return [Operation("steps", tuple(hashes), tuple(args), lambda: losses)] if counts else []
