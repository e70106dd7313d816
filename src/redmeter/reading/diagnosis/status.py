"""status(): reads the last five complete minutes, and their expected ranges.

One round trip; two or more if a measure is out of its range, to read what accounts for it. A store
without requests is judged by its busiest counters: see busiest.py.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from redmeter.analysis.comparing.sentences import (
    before_after,
    cause_parts,
    joined,
    text,
    value_text,
)
from redmeter.analysis.comparing.status import (
    BLOCK,
    LEAST_REQUESTS,
    check_of,
    check_p95,
    check_rate,
    check_requests,
)
from redmeter.names import HITS, HITS_FAILED, HITS_SECONDS
from redmeter.reading.diagnosis.busiest import busiest_counters
from redmeter.reading.diagnosis.explain import explain
from redmeter.reading.diagnosis.windows import ExplainRequest, length
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Ask, Joined
from redmeter.reading.selection import LabelSets
from redmeter.reading.totals import MAX_SAMPLED
from redmeter.results.explanation import Check, Part, Status
from redmeter.results.series import Series
from redmeter.store import Store
from redmeter.store.query import Query, Read, run_query, together
from redmeter.store.servers.replies import pairs
from redmeter.stored.counter import parse_counter
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import Kept, Keys, slice_start
from redmeter.stored.mark import parse_mark as parse_mark
from redmeter.stored.moments import merge_all
from redmeter.stored.packed_text import parse_distribution
from redmeter.types import Mark

MINUTE: Final = 60
#: How far back the beginning of a change is looked for, and its baseline, seconds.
_LOOK_BACK, _BASELINE = 1_800, 1_800
#: Newest marks that are read.
_MARKS: Final = 50

#: Measures, the most urgent first.
_URGENCY: Final = ("error rate", "p95", "requests", "count")

_TITLES: Final = {
    "requests": "Requests",
    "error rate": "Error rate",
    "p95": "p95 response time",
}


def _title(check: Check) -> str:
    return _TITLES.get(check.measure, check.name)


def _inner_title(check: Check) -> str:
    """Return the title within a sentence."""
    return _title(check) if check.measure in ("p95", "count") else _title(check).lower()


@dataclass(slots=True)
class Vitals:
    """The totals of a web application by interval."""

    #: By name and precision: start -> count.
    counts: dict[tuple[str, int], Mapping[int, int]] = field(default_factory=dict)
    #: Response times by minute.
    seconds: dict[int, Distribution] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    #: Counters that are judged instead of requests, if there are none.
    busiest: list[str] = field(default_factory=list)


def read_status(store: Store) -> tuple[float, Status]:
    """Return the status, and the server's clock, Unix seconds."""
    view, status = run_query(store, lambda kept: read_vitals(store.keys, kept))
    return view.now, status


def read_vitals(keys: Keys, kept: Kept) -> Query[Status]:
    """Read whether the last five complete minutes are as usual: see Meter.status()."""
    widths = [width for width in (MINUTE, BLOCK) if width in kept.series]
    names = [(name, width) for name in (HITS, HITS_FAILED) for width in widths]
    reads: list[Read] = [("HGETALL", keys.count(width, name)) for name, width in names]
    reads.append(
        ("ZREVRANGEBYSCORE", keys.marks, "+inf", "-inf", "LIMIT", "0", str(_MARKS)),
    )
    if MINUTE in kept.histograms:
        asks = [Ask("HGETALL", f"{keys.key(one)}{MINUTE}:") for one in ("hist", "moments")]
        label_sets = LabelSets(keys, keys.hists, MINUTE, HITS_SECONDS)
        reads += [label_sets.join_base(asks), label_sets.join(asks, MAX_SAMPLED)]
    view, replies = yield reads
    vitals = Vitals()
    for one, reply in zip(names, replies, strict=False):
        vitals.counts[one] = parse_counter(pairs(there(reply, [])))
    marks = (parse_mark(member) for member in there(replies[len(names)], []))
    vitals.marks = [mark for mark in marks if mark is not None]
    for reply in replies[len(names) + 1 :]:
        for _, (buckets, moments) in Joined(reply, 2, needed=False).readable():
            _add(vitals.seconds, dict(pairs(buckets)), dict(pairs(moments)))
    if not any(vitals.counts[HITS, width] for width in widths) and BLOCK in kept.series:
        counters = yield from busiest_counters(keys, view.now)
        vitals.busiest = list(counters)
        for name, by_width in counters.items():
            vitals.counts[name, MINUTE], vitals.counts[name, BLOCK] = by_width
    status = judge_vitals(vitals, view.now)
    unusual = [check for check in status.checks if check.state in ("high", "low")]
    requests = [cause_request(check, status) for check in unusual]
    explanations = yield from together(
        [explain(keys, kept, request, checked=False) for request in requests]
    )
    causes = {
        check.name: explanation.causes
        for check, explanation in zip(unusual, explanations, strict=True)
    }
    return with_sentence(
        replace(
            status,
            checks=tuple(replace(c, causes=causes.get(c.name, ())) for c in status.checks),
        ),
        view.now,
    )


def _add(
    seconds: dict[int, Distribution], buckets: Mapping[bytes, bytes], moments: Mapping[bytes, bytes]
) -> None:
    for start, bucket in buckets.items():
        distribution = parse_distribution(bucket, moments.get(start))
        if distribution is None or not start.isdigit():
            continue
        seconds.setdefault(int(start), Distribution()).merge(distribution)


def judge_vitals(vitals: Vitals, now: float) -> Status:
    """Judge each measure, and find when it began."""
    end = slice_start(now, MINUTE)
    checks = []
    for check in _checks(vitals, end):
        if check.state not in ("high", "low"):
            checks.append(check)
            continue
        began = end - MINUTE
        for back in range(MINUTE, _LOOK_BACK, MINUTE):
            earlier = next(c for c in _checks(vitals, end - back) if c.name == check.name)
            if earlier.state != check.state:
                break
            began = end - MINUTE - back
        marks = [mark for mark in vitals.marks if mark.time >= began - BLOCK and mark.time <= now]
        newest = max(marks, key=lambda mark: mark.time, default=None)
        checks.append(replace(check, began=began, mark=newest))
    states = {check.state for check in checks}
    state = "unusual" if states & {"high", "low"} else "usual" if "usual" in states else "unknown"
    return Status(
        state=state,  # type: ignore[arg-type]
        since=end - BLOCK,
        until=end,
        checks=tuple(checks),
    )


def _checks(vitals: Vitals, end: int) -> list[Check]:
    """Judge the five minutes before a time by the blocks before them."""
    start = end - BLOCK
    if vitals.busiest:
        counters = [check_of("count", name) for name in vitals.busiest]
        return [_check_count(vitals, one, start) for one in counters]
    blocks = _blocks(vitals, HITS, start)
    hits, failed = (vitals.counts.get((name, MINUTE), {}) for name in (HITS, HITS_FAILED))
    minutes = range(start, end, MINUTE)
    count = sum(hits.get(at, 0) for at in minutes)
    checks = [_check_count(vitals, check_of("requests", HITS), start)]
    failures = _blocks(vitals, HITS_FAILED, start)
    known = [(failures.get(at, 0), blocks[at]) for at in blocks if at >= min(failures, default=at)]
    rate = _against(check_of("error rate", HITS_FAILED, failing=["status=5xx"]), blocks, start)
    if failures or failed:
        number = sum(failed.get(at, 0) for at in minutes)
        checks.append(check_rate(rate, min(number, count), count, known))
    else:
        checks.append(replace(rate, reason="no failures were ever counted"))
    checks.append(_check_seconds(vitals, start))
    return checks


def _check_count(vitals: Vitals, check: Check, start: int) -> Check:
    """Judge the events of the five minutes from a time on by the blocks before them."""
    blocks = _blocks(vitals, check.name, start)
    minutes = vitals.counts.get((check.name, MINUTE), {})
    first = min(blocks, default=start)
    values = [blocks.get(at, 0) for at in range(first, max(blocks, default=start) + 1, BLOCK)]
    series = Series(check.name, BLOCK, first, tuple(values if blocks else ()), partial=False)
    count = sum(minutes.get(at, 0) for at in range(start, start + BLOCK, MINUTE))
    return check_requests(_against(check, blocks, start), count, series)


def _against(check: Check, blocks: Collection[int], start: int) -> Check:
    """Return a check with its baseline: blocks before a time, by their starts."""
    return replace(
        check,
        precision=BLOCK,
        against_since=float(min(blocks, default=start)),
        against_until=float(max(blocks) + BLOCK if blocks else start),
        intervals=len(blocks),
    )


def _blocks(vitals: Vitals, name: str, end: int) -> dict[int, int]:
    """Return the five-minute sums before a time: start -> count."""
    stored = vitals.counts.get((name, BLOCK))
    if stored is not None:
        return {at: count for at, count in stored.items() if at + BLOCK <= end}
    minutes, sums = vitals.counts.get((name, MINUTE), {}), dict[int, int]()
    oldest = min(minutes, default=end)
    for start in range(end - BLOCK, oldest - 1, -BLOCK):
        sums[start] = sum(minutes.get(at, 0) for at in range(start, start + BLOCK, MINUTE))
    return sums


def _check_seconds(vitals: Vitals, start: int) -> Check:
    """Judge the p95 of the five minutes from a time on."""
    check = check_of("p95", HITS_SECONDS)
    oldest = min(vitals.seconds, default=start)
    values = []
    first = start
    for block in range(start - BLOCK, oldest - 1, -BLOCK):
        distribution = _merged(vitals, block)
        if distribution.count >= LEAST_REQUESTS:
            values.append(distribution.quantile(0.95))
            first = block
    check = replace(
        check,
        precision=BLOCK,
        against_since=first,
        against_until=start,
        intervals=len(values),
    )
    now = _merged(vitals, start)
    return check_p95(check, now.quantile(0.95) if now.count else None, now.count, values)


def _merged(vitals: Vitals, start: int) -> Distribution:
    minutes = range(start, start + BLOCK, MINUTE)
    return merge_all(Distribution(), (vitals.seconds[at] for at in minutes if at in vitals.seconds))


def cause_request(check: Check, status: Status) -> ExplainRequest:
    """Return the comparison that explains a check: the same five minutes as the check's, with the
    half hour before its change."""
    began = min(check.began or status.since, status.since)
    return ExplainRequest(
        check.explain.name,
        status.since,
        status.until,
        "custom",
        began - _BASELINE,
        began,
        precision=MINUTE,
        failing=dict(pair.split("=", 1) for pair in check.explain.failing),
    )


def with_sentence(status: Status, now: float) -> Status:
    """Return the status with its sentence."""
    parts: list[Part] = []
    unusual = [check for check in status.checks if check.state in ("high", "low")]
    for check in sorted(unusual, key=lambda check: _URGENCY.index(check.measure)):
        parts += [*_unusual(check, now), text(". ")]
    usual = [check for check in status.checks if check.state == "usual"]
    for number, check in enumerate(usual):
        if number:
            parts.append(text(" and " if number == len(usual) - 1 else ", "))
        title = _inner_title(check) if number else _title(check)
        parts.append(Part(kind="metric", text=title, name=check.name))
    if usual:
        parts.append(text(" as expected. "))
    judged = [check for check in status.checks if check.state != "unknown"]
    if judged:
        parts += _baselines(judged, groups=any(part.kind == "group" for part in parts))
    else:
        parts.append(text(_too_little(status.checks)))
    return replace(status, parts=tuple(parts), sentence=joined(parts))


def _baselines(judged: Sequence[Check], *, groups: bool) -> list[Part]:
    """Return what each check was compared with, and groups if there are any."""
    lengths: dict[str, list[str]] = {}
    for check in judged:
        reach = length(check.against_until - check.against_since)
        lengths.setdefault(reach, []).append(_inner_title(check))
    parts: list[Part] = []
    for reach, titles in lengths.items():
        parts.append(text(f", {_listed(titles)} with " if parts else "Compared with "))
        parts.append(Part(kind="baseline", text=f"the {reach} before"))
    if groups:
        before = f"the {length(_BASELINE)} before the change"
        parts += [text(", groups with "), Part(kind="baseline", text=before)]
    return [*parts, text(".")]


def _too_little(checks: Sequence[Check]) -> str:
    """Return why nothing could be judged; the reason is beside the check that it is of."""
    titles = [_inner_title(check) for check in checks]
    at, reason = next(((n, one.reason) for n, one in enumerate(checks) if one.reason), (0, ""))
    titles[at] += f" ({reason or 'no data'})"
    return f"Not enough data to compare {_listed(titles)}."


def _listed(titles: Sequence[str]) -> str:
    *others, last = titles
    return f"{', '.join(others)} and {last}" if others else last


def _age(seconds: float) -> str:
    """Return an age in whole minutes, from two hours on as length() does."""
    return f"{max(1, round(seconds / MINUTE))} min" if seconds < 7_200 else length(seconds)


def _unusual(check: Check, now: float) -> list[Part]:
    parts = [Part(kind="metric", text=_title(check), name=check.name), text(" ")]
    parts.append(Part(kind="value", text=value_text(check.value, check.unit)))
    parts += [text(" (usually "), Part(kind="usual", text=value_text(check.mid, check.unit))]
    parts.append(text(")"))
    if check.mark is not None:
        parts.append(text(" since "))
        parts.append(Part(kind="mark", text=check.mark.label, time=check.mark.time))
        parts.append(text(","))
        age = f"{_age(now - check.mark.time)} ago"
        parts += [text(" "), Part(kind="time", text=age, time=check.mark.time)]
    elif check.began is not None:
        age = _age(now - check.began)
        parts += [text(" for "), Part(kind="time", text=age, time=check.began)]
    change = (check.value or 0.0) - (check.mid or 0.0)
    causes = [group for group in check.causes if group.change * change > 0]
    extent = partial(before_after, unit=check.unit)
    return parts + cause_parts(check.explain.name, causes[:1], change, extent)
