"""Windows of a deploy verdict: their times and precision, and whether they are kept.

After the deploy come fixed looks, which begin after the interval that contains the mark; that
interval is excluded. `previous` compares with the intervals right before it. `yesterday` and
`last-week` compare with the same time of day then; how much two days differ is learned from the
hours before the deploy, each compared with the same hour of the other day.

A baseline that is not kept at this precision is reported, and no coarser one is used.
"""

from dataclasses import dataclass

from redmeter.analysis.verdict import BLOCKS, MIN_PAIRS
from redmeter.errors import InvalidValue
from redmeter.keys import DEFAULT_RETENTION, HISTOGRAMS, HOUR, MAX_SAMPLES, Retention, slice_start
from redmeter.verdicts import LEVEL, LOOKS, NotKept, VerdictWindow

DAY = 24 * HOUR
#: What a deploy may be compared with -> how much earlier that is, seconds; 0: right before.
AGAINST = {"previous": 0, "yesterday": DAY, "last-week": 7 * DAY}
#: Pairs of intervals that are compared before a deploy.
_PAIRS = 24
#: The baseline right before a deploy: seconds, and intervals at least.
_BASELINE, _INTERVALS = HOUR, 12


@dataclass(frozen=True, slots=True)
class VerdictPlan:
    """What a verdict compares."""

    precision: int
    looks: tuple[int, ...]
    look: int | None
    next_look: int | None
    after: VerdictWindow | None = None
    before: VerdictWindow | None = None
    #: If the baseline is on another day: starts of intervals before the deploy, and of theirs.
    pairs: tuple[tuple[int, int], ...] = ()
    #: About counters, or only about histograms.
    not_kept: NotKept | None = None
    paired: bool = False

    @property
    def compares(self) -> bool:
        """Whether there is something to compare."""
        return self.look is not None and (self.not_kept is None or self.not_kept.of == HISTOGRAMS)

    @property
    def level(self) -> float:
        """The part of the error budget that each look has."""
        return LEVEL / len(self.looks)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of blocks, in intervals."""
        longest = BLOCKS.get(self.look or 0, self.precision) // self.precision
        return (1, longest) if longest > 1 else (1,)

    @property
    def starts(self) -> list[int]:
        """The intervals that are compared, ascending."""
        if self.after is None or self.before is None:
            return []
        starts = {start for pair in self.pairs for start in pair}
        for window in (self.after, self.before):
            starts |= {*range(window.since, window.until, self.precision)}
        return sorted(starts)


def check_against(against: object, precision: int | None) -> int:
    """Check what a verdict compares with, and return its precision.

    Args:
        precision: as given by the caller; None: a minute, or an hour if it is another day.

    Raises:
        InvalidValue: there is no such baseline, or intervals of that width cannot be compared.
    """
    if not isinstance(against, str) or against not in AGAINST:
        raise InvalidValue(against, f"compare against one of {', '.join(AGAINST)}")
    if precision is None:
        return HOUR if AGAINST[against] else 60
    if isinstance(precision, int) and precision > 0 and AGAINST[against] % precision:
        raise InvalidValue(precision, f"{against} is no multiple of this precision")
    return precision


def plan(
    mark: float,
    now: float,
    against: str,
    precision: int,
    retention: Retention,
    histograms: Retention,
) -> VerdictPlan:
    """Return the windows of a verdict.

    Args:
        mark, now: Unix seconds.
        against: a key of AGAINST.
        precision: interval width, seconds.
        retention, histograms: what the store keeps.

    Raises:
        UnknownPrecision: counters are not kept at this precision.
    """
    retention.check(precision)
    interval = slice_start(mark, precision)
    first = interval + precision
    looks = tuple(look for look in LOOKS if not look % precision) or (precision,)
    look = max((one for one in looks if first + one <= now), default=None)
    later = min((first + one for one in looks if first + one > now), default=None)
    earlier = AGAINST[against]
    if look is None:
        return VerdictPlan(precision, looks, None, later, paired=bool(earlier))
    after = VerdictWindow(first, first + look)
    if earlier:
        longest = shortest = interval - MIN_PAIRS * precision - earlier
    else:
        length = max(_BASELINE, _INTERVALS * precision)
        longest = interval - length
        shortest = interval - length // 2
    oldest, missing = retention.oldest(precision, now), None
    if oldest > shortest:
        missing = NotKept("counters", shortest, oldest, _command(precision, now - longest, ""))
        return VerdictPlan(
            precision, looks, look, later, after, not_kept=missing, paired=bool(earlier)
        )
    oldest_times = histograms.oldest(precision, now) if precision in histograms else int(now)
    if oldest_times > shortest:
        command = _command(precision, now - longest, "--histograms ")
        missing = NotKept("histograms", shortest, oldest_times, command)
    else:
        oldest = max(oldest, oldest_times)
    if earlier:
        before = VerdictWindow(after.since - earlier, after.until - earlier)
        starts = [interval - number * precision for number in range(1, _PAIRS + 1)]
        pairs = tuple((one, one - earlier) for one in starts if one - earlier >= oldest)
    else:
        before, pairs = VerdictWindow(max(longest, oldest), interval), ()
    return VerdictPlan(
        precision, looks, look, later, after, before, pairs, missing, paired=bool(earlier)
    )


def _command(precision: int, seconds: float, option: str) -> str:
    """Return the command that keeps a time; "" if no retention does."""
    samples = int(seconds // precision) + 2
    if samples > MAX_SAMPLES:
        return ""
    usual = DEFAULT_RETENTION.get(precision, 0)
    return f"redmeter retention {option}{precision}={usual if usual >= samples else MAX_SAMPLES}"
