"""The sentence of a status, in pieces with names, so that a page can link each noun.

Changes that go on come first, by urgency; then new exceptions and errors, changes that are over,
measures as expected, measures that could not be judged, and the baselines. A number belongs to the
noun before it: a group has its own share, not that of all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from redmeter.analysis.comparing.incidents import MINUTE
from redmeter.analysis.comparing.sentences import group_part, joined, text, value_text
from redmeter.clock import Zone
from redmeter.reading.diagnosis.windows import length
from redmeter.results.explanation import (
    ChangedGroup,
    Check,
    ExceptionChange,
    LogPattern,
    Part,
    Status,
)
from redmeter.results.verdict import WORSE, Verdict
from redmeter.stored.keys import HOUR

#: Measures, the most urgent first.
_URGENCY: Final = ("error rate", "failures", "requests", "p95", "client errors", "count")
_TITLES: Final = {
    "requests": "Requests",
    "error rate": "Error rate",
    "failures": "Failures",
    "client errors": "Client errors",
    "p95": "p95 response time",
}
#: Groups of one measure, exceptions and patterns that are named.
_MOST: Final = 3


def with_sentence(
    status: Status,
    zone: Zone,
    verdict: Verdict | None,
    notes: Sequence[str],
    kinds: Sequence[str] = (),
) -> Status:
    """Return the status with its sentence.

    Args:
        kinds: the recorded kinds, if nothing of them is judged.
        verdict: of the newest deploy, if there is one.
        notes: further sentences.
    """
    parts: list[Part] = []
    bad = [check for check in status.checks if check.state in ("high", "low")]
    bad.sort(key=lambda check: (_URGENCY.index(check.measure), bool(check.labels), -_size(check)))
    numbers: dict[tuple[str, str], int] = {}
    for check in bad:
        kind = check.measure, next(iter(check.labels), "")
        numbers[kind] = numbers.get(kind, 0) + 1
        if not check.labels or numbers[kind] <= _MOST:
            parts += [*_changed(check, status, zone), text(". ")]
    for (measure, label), number in numbers.items():
        if label and number > _MOST:
            parts.append(text(f"{_TITLES[measure]} of {number - _MOST:,} more {label}s. "))
    if verdict is not None and verdict.verdict not in ("same", "better", "too little data"):
        parts += _of_verdict(verdict)
    for name in status.firing[:_MOST]:
        parts.append(Part(kind="alert", text=f"Alert {name} fires. "))
    if len(status.firing) > _MOST:
        more = f"{len(status.firing) - _MOST:,} more alerts fire. "
        parts.append(Part(kind="alert", text=more))
    parts += _new(status.exceptions, status.messages, zone)
    parts += [text(f"{note} ") for note in notes]
    for check in status.checks:
        if check.state == "usual" and check.ended is not None:
            parts += [*_over(check, zone), text(". ")]
    parts += _usual(status.checks)
    if not status.checks:
        known = f"{_listed(kinds)} are recorded, but " if kinds else ""
        what = "no requests, no tasks and no counters with events in the last hour"
        parts.append(text(f"Not enough data: {known}{what}."))
    return replace(status, parts=tuple(parts), sentence=joined(parts).strip())


def _size(check: Check) -> float:
    """Return how many events a change is of, for the order."""
    return abs((check.value or 0.0) - (check.mid or 0.0)) * max(check.count, 1)


def _title(check: Check, *, inner: bool = False) -> list[Part]:
    """Return the measure and whose it is."""
    title = _TITLES.get(check.measure, check.name)
    if check.measure == "p95" and "task" in check.labels:
        title = "p95"
    if inner and check.measure not in ("p95", "count"):
        title = title.lower()
    parts = [Part(kind="metric", text=title, name=check.name)]
    for label, value in check.labels.items():
        parts.append(text(" of task " if label == "task" else " of "))
        parts.append(Part(kind="group", text=value, name=check.explain.name, label=label,
                          value=value))  # fmt: skip
    return parts


def _changed(check: Check, status: Status, zone: Zone) -> list[Part]:
    """Return a change that goes on: the measure, its value, how long, and the cause."""
    until = status.until
    silent = check.measure in ("requests", "count") and check.began is not None and (
        check.value == 0 or (check.mid is not None and check.count == 0)
    )  # fmt: skip
    usual = [Part(kind="usual", text=value_text(check.mid, check.unit))]
    if silent:
        if check.labels:
            (label, value), what = next(iter(check.labels.items())), "No requests to "
            parts = [text("No runs of task " if label == "task" else what)]
            parts.append(Part(kind="group", text=value, name=check.explain.name, label=label,
                              value=value))  # fmt: skip
        else:
            what = "No requests" if check.measure == "requests" else f"No {check.name}"
            parts = [Part(kind="metric", text=what, name=check.name)]
        parts += [*_duration(check, until), text(" (usually "), *usual, text(" in 5 min)")]
    else:
        parts = [*_title(check), text(" ")]
        parts.append(Part(kind="value", text=value_text(check.value, check.unit)))
        parts += [text(" in 5 min" if check.measure == "requests" else ""), text(" (usually ")]
        parts += [*usual, text(")"), *_duration(check, until)]
    if check.everywhere:
        parts.append(text(", in all routes"))
    elif check.causes and not silent:
        for number, group in enumerate(check.causes[:_MOST]):
            parts += [text(", " if number else ": "), *_group(check, group)]
        if len(check.causes) > _MOST:
            parts.append(text(f" and {len(check.causes) - _MOST} more"))
    if check.unsure_since is not None:
        at = local_time(check.unsure_since, zone)
        parts.append(text("; too few since "))
        parts.append(Part(kind="time", text=at, time=check.unsure_since))
        parts.append(text(" to judge whether it is over"))
    return parts


def _duration(check: Check, until: float) -> list[Part]:
    """Return how long a change has lasted, and the mark that it began with."""
    if check.began is None:
        return []
    end = until if check.ended is None else check.ended
    seconds = end - check.began
    about = "about " if seconds > 10 * HOUR else ""
    parts = [text(" for "), Part(kind="time", text=f"{about}{_age(seconds)}", time=check.began)]
    if check.mark is not None:
        parts.append(text(", since "))
        parts.append(Part(kind="mark", text=check.mark.label, time=check.mark.time))
    return parts


def _over(check: Check, zone: Zone) -> list[Part]:
    """Return a change that is over: the measure, its value, how long, and the cause."""
    assert check.ended is not None
    parts = [*_title(check), text(" was ")]
    parts.append(Part(kind="value", text=value_text(check.value, check.unit)))
    parts += [*_duration(check, check.ended), text(" until ")]
    parts.append(Part(kind="time", text=local_time(check.ended, zone), time=check.ended))
    parts += [text(" (usually "), Part(kind="usual", text=value_text(check.mid, check.unit))]
    parts.append(text(")"))
    for number, group in enumerate(check.causes[:_MOST]):
        parts += [text(", " if number else ": "), *_group(check, group)]
    return parts


def _group(check: Check, group: ChangedGroup) -> list[Part]:
    """Return a group with its own figures, of the same minutes as those of the check."""
    after, before = (
        "none" if value is None else value_text(value, check.unit)
        for value in (group.after, group.before)
    )
    return [group_part(check.explain.name, group), text(f" {after} (usually {before})")]


def _of_verdict(verdict: Verdict) -> list[Part]:
    parts: list[Part] = []
    if verdict.mark is not None:
        parts.append(Part(kind="mark", text=verdict.mark.label, time=verdict.mark.time))
    what = " made it worse" if verdict.verdict == WORSE else f" is {verdict.verdict}"
    if verdict.verdict not in (WORSE, "watching"):
        return []
    return [*parts, text(f"{what}: {verdict.reason}. ")]


def _new(
    exceptions: Sequence[ExceptionChange], messages: Sequence[LogPattern], zone: Zone
) -> list[Part]:
    """Return the exceptions and errors that are new."""
    parts: list[Part] = []
    for exception in exceptions[:_MOST]:
        place = f" in {exception.place}" if exception.place else ""
        parts.append(text("New exception "))
        parts.append(Part(kind="exception", text=exception.type, name=exception.id))
        parts.append(text(f"{place} ({exception.count:,} since "))
        first = local_time(exception.first, zone)
        parts.append(Part(kind="time", text=first, time=exception.first))
        parts.append(text("). "))
    if len(exceptions) > _MOST:
        parts.append(text(f"{len(exceptions) - _MOST:,} more new exceptions. "))
    for pattern in messages[:_MOST]:
        count = "" if pattern.count is None else f"{pattern.count:,} "
        parts.append(text("New "))
        source = f"{pattern.severity} in {pattern.logger or 'the root logger'}"
        parts.append(Part(kind="messages", text=source, name=pattern.logger,
                          label=pattern.severity))  # fmt: skip
        parts.append(text(": "))
        parts.append(text(f"{pattern.pattern} ({count}since "))
        parts.append(Part(kind="time", text=local_time(pattern.first, zone), time=pattern.first))
        parts.append(text("). "))
    if len(messages) > _MOST:
        parts.append(text(f"{len(messages) - _MOST:,} more new errors. "))
    return parts


def _usual(checks: Sequence[Check]) -> list[Part]:
    """Return the measures as expected, those that were not judged, and the baselines."""
    parts: list[Part] = []
    whole = [check for check in checks if not check.labels]
    usual = [check for check in whole if check.state == "usual"]
    tasks = [check for check in checks if check.labels and check.state == "usual"]
    for number, check in enumerate(usual):
        if number:
            parts.append(text(" and " if number == len(usual) - 1 else ", "))
        parts += _title(check, inner=bool(number))
    if usual:
        parts.append(text(" as expected. "))
    if tasks:
        named = len(tasks)
        parts.append(
            text(f"Failures of {named:,} {'tasks' if named > 1 else 'task'} as expected. ")
        )
    for check in whole:
        if check.state == "unknown":
            parts += [*_title(check), text(f" not judged: {check.reason or 'no data'}. ")]
    judged = [check for check in whole if check.state != "unknown"]
    if judged:
        parts += _baselines(judged)
    return parts


def _baselines(judged: Iterable[Check]) -> list[Part]:
    """Return the baseline of each check."""
    lengths: dict[str, list[Check]] = {}
    for check in judged:
        reach = length((check.against_until - check.against_since) // MINUTE * MINUTE)
        lengths.setdefault(reach, []).append(check)
    parts: list[Part] = []
    for reach, checks in lengths.items():
        titles = [_title(check, inner=True)[0].text for check in checks]
        parts.append(text(f", {_listed(titles)} with " if parts else "Compared with "))
        parts.append(Part(kind="baseline", text=f"the {reach} before"))
    return [*parts, text(".")]


def _listed(titles: Sequence[str]) -> str:
    *others, last = titles
    return f"{', '.join(others)} and {last}" if others else last


def _age(seconds: float) -> str:
    """Return an age in whole minutes, from two hours on as length() does."""
    if seconds < 7_200:
        return f"{max(1, round(seconds / MINUTE))} min"
    unit = MINUTE if seconds < 10 * HOUR else HOUR
    return length(round(seconds / unit) * unit)


def local_time(moment: float, zone: Zone, *, day: bool = False) -> str:
    """Return a time of day in a zone: "14:05", "Tuesday 14:05"."""
    local = datetime.fromtimestamp(moment, UTC) + timedelta(seconds=zone.offset(moment))
    return f"{local:%A %H:%M}" if day else f"{local:%H:%M}"
