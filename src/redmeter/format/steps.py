"""Steps: how often each pattern of a log came, by five minutes, for windows that slide.

Problem: clock hours compare badly. Three minutes past the hour nearly everything is below the hour
before, and what is measured depends on where in the hour somebody looks.

Idea: beside the counts of the two clock hours, one hash for each logger and severity holds the
counts of the newest STEPS steps:

    steps:LOGGER:SEVERITY    pattern -> "NEWEST COUNT COUNT …", the newest step first
                             ""      -> the same of all patterns together

The window is the step that is running and the 12 before it, so 60 to 65 minutes. It is compared
with the 12 steps before that, which are 60 minutes. An event counts in the step of its own time,
however late it arrives, as long as that step is kept.

The counts of "" say how far back the hash is complete. A hash that begins while its log is already
there, as after an upgrade, begins with one count and gains one every five minutes. One that begins
after a silence is complete at once.

Bound: 1,000 patterns for each logger and severity; what exceeds them counts as `(other)`. A hash
expires STEPS + 1 steps after its last event.

Pure: no I/O.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from redmeter.keys import HOUR, STEP, Keys, slice_start
from redmeter.types import Operation

#: How many steps are kept: an hour, the hour before it, and the step that is running.
STEPS = 2 * HOUR // STEP + 1
#: Most patterns of a logger and severity.
MAX_FIELDS = 1_000
#: The field that counts all patterns together.
ALL = ""


class Steps(NamedTuple):
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


def parse(text: bytes | None) -> Steps | None:
    """Read a field; None where there is none, or it has another form."""
    try:
        newest, *counts = map(int, (text or b"").split(b" "))
    except ValueError:
        return None
    # The sum of all steps fits the widest number of the other counts.
    return Steps(newest, tuple(counts)) if all(0 <= n < 2**53 for n in counts) else None


def windows(steps: Steps, now: float) -> tuple[int, int]:
    """Return how many there were in the last hour, and in the hour before it."""
    running = slice_start(now, STEP)
    start = running - HOUR
    return steps.between(start, running + STEP), steps.between(start - HOUR, start)


def is_complete(steps: Steps | None, now: float) -> bool:
    """Tell whether the counts of all patterns together are known for both windows.

    All that are kept are enough: a step that began since `now` has pushed out the oldest.
    """
    if steps is None:
        return False
    oldest = slice_start(now, STEP) - (STEPS - 1) * STEP
    return len(steps.counts) >= STEPS or steps.oldest <= oldest


def operations(
    keys: Keys, counts: Mapping[str, Mapping[int, Iterable[tuple[str, int]]]]
) -> list[Operation]:
    """Count patterns by steps: LOGGER:SEVERITY -> {start of a step -> (pattern, events) pairs}."""
    found = [keys.messages]
    args = [str(STEP), str(STEPS), str(MAX_FIELDS)]
    for name, steps in counts.items():
        for start in sorted(steps):
            pairs = [*steps[start]]
            found.append(keys.key("steps", name))
            args += (name, str(start), str(len(pairs)))
            for pattern, events in pairs:
                args += (pattern, str(events))
    # What is refused here is still counted by the hour.
    told = [("", 0)] * len(found)
    return [Operation("steps", tuple(found), tuple(args), lambda: told)] if counts else []
