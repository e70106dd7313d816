"""explain(): reads two windows of a name and what accounts for the difference.

The method is in analysis/comparing/explain.py, the choice of intervals in windows.py. Three round
trips: one for the clock and the kind of the metric, one for the label sets, one for the groups of
exceptions. Further ones are read for each 1,000 label sets, and one for histograms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import add
from typing import Any, Final

from redmeter.analysis.comparing.explain import (
    Causes,
    HistogramRow,
    explain_count,
    explain_p95,
    explain_rate,
    judged,
)
from redmeter.analysis.comparing.outliers import Events
from redmeter.analysis.comparing.sentences import explanation_parts, joined, text, unit_of
from redmeter.clock import UTC, Zone
from redmeter.names import (
    HITS,
    HITS_FAILED,
    HITS_SECONDS,
    REQUESTS,
    SECONDS,
    canonical,
    is_failure,
)
from redmeter.reading.diagnosis.context import Circumstances, circumstances, window_note
from redmeter.reading.diagnosis.label_counts import (
    LabelEvents,
    edges_of,
    read_counts,
    read_histograms,
    with_overflow,
)
from redmeter.reading.diagnosis.windows import Comparison, ExplainRequest, compare
from redmeter.reading.foreign_keys import there
from redmeter.reading.samples import number_of
from redmeter.reading.selection import LabelSets, check_asked, check_kind, labels_in, stored_names
from redmeter.results.explanation import Explanation, Measure, Part
from redmeter.store import Store, View, indexes
from redmeter.store.query import Query, Read, run_query, together
from redmeter.store.servers.replies import Reply
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import Kept, Keys, Retention, entry, span
from redmeter.stored.moments import merge_all
from redmeter.types import Selection

#: Totals of a web application, and the metric whose label sets explain them.
WEB_TOTALS: Final = {HITS: REQUESTS, HITS_FAILED: REQUESTS, HITS_SECONDS: SECONDS}
#: The failures of web requests: any status class or status that is_failure() accepts.
FAILING: Final = {"status": "5xx"}

#: Values of a label that a sentence lists.
_VALUES: Final = 5

#: Kinds that are explained.
EXPLAINED: Final = ("counter", "histogram")

Rows = list[tuple[Mapping[str, str], Mapping[int, int]]]


def read_explanation(store: Store, request: ExplainRequest) -> tuple[float, Explanation]:
    """Read what accounts for a rise or a fall, as Meter.explain() does.

    Returns:
        The server's clock, Unix seconds, and the explanation.
    """
    view, explanation = run_query(
        store, lambda kept: explain(store.keys, kept, request, store.zone)
    )
    return view.now, explanation


def explain(
    keys: Keys, kept: Kept, request: ExplainRequest, zone: Zone = UTC, *, checked: bool = True
) -> Query[Explanation]:
    """Read what accounts for a rise or a fall.

    Args:
        checked: check the name and the labels, which nothing takes with a status.

    Raises:
        WrongKind: only a gauge has this name; not without `checked`.
        UnknownLabel: no series of the name has a label of the request; not without `checked`.
        UnknownPrecision: the precision of the request is not kept.
        StoreError: the server is unreachable or refuses.
    """
    name = WEB_TOTALS.get(request.name, request.name)
    view, sizes = yield [
        read
        for index, retention in ((keys.known, kept.series), (keys.hists, kept.histograms))
        for one in dict.fromkeys((name, request.name))
        for read in (
            LabelSets(keys, index, _longest(retention), one).size(),
            _base_entry(keys, index, entry(_longest(retention), one)),
        )
    ]
    counted, observed = _exist(sizes[: len(sizes) // 2]), _exist(sizes[len(sizes) // 2 :])
    if name != request.name and not (counted | observed) & {0}:
        name = request.name  # totals without label sets
    histogram = not counted and bool(observed)
    retention = view.histograms if histogram else view.retention
    comparison = compare(request, retention, view.now, zone)
    if comparison.reason:
        return not_compared(comparison, name, histogram=histogram)
    same = None
    if name in (REQUESTS, SECONDS):
        same = _same_time(comparison, view.histograms, view.now)
    read = read_histograms if histogram else read_counts
    queries: list[Query[Any]] = [
        read(keys, name, comparison, request.labels),
        circumstances(keys, comparison, same, view.now),
    ]
    recorded = bool(counted or observed)
    if checked and not recorded:
        queries.append(check_kind(keys, view, Selection(name), EXPLAINED))
    events, around, *_ = yield from together(queries)
    assert isinstance(events, LabelEvents)
    assert isinstance(around, Circumstances)
    if name in (REQUESTS, SECONDS) and same is None:
        around.not_compared.append("time in the database: not kept for these windows")
    if checked and recorded:
        around.none_failed = yield from _check_labels(
            keys, view, name, request, events, histogram=histogram
        )
    return compose(comparison, name, events, around, histogram=histogram)


def _check_labels(
    keys: Keys,
    view: View,
    name: str,
    request: ExplainRequest,
    events: LabelEvents,
    *,
    histogram: bool,
) -> Query[str]:
    """Check the name and the labels of a request; no round trip if it found what it asked for.

    Returns:
        See none_failed().
    """
    label_sets, failing = events.label_sets(), request.failing
    if not failing and (label_sets or not request.labels):
        return ""
    if label_sets and not none_failed(name, failing, label_sets):
        return ""
    kinds = ("histogram",) if histogram else ("counter",)
    found = [canonical(name, labels) for labels in label_sets]
    selection = Selection(name, request.labels)
    yield from check_asked(keys, view, selection, EXPLAINED, found, failing)
    if not failing:
        return ""
    stored = yield from stored_names(keys, view, name, kinds)
    return none_failed(name, failing, list(map(labels_in, stored)))


def none_failed(
    name: str, failing: Mapping[str, str], label_sets: Sequence[Mapping[str, str]]
) -> str:
    """Return that no series has the labels of failures, and the values there are; else "".

    Args:
        label_sets: of all series. One that has lost its labels may have had them.
    """
    web = name == REQUESTS
    if not failing or any(_failed(one, failing, web=web) or _lost(one) for one in label_sets):
        return ""
    pairs = ", ".join(f"{label}={value}" for label, value in failing.items())
    text = f"no series of {name} has {pairs} so far"
    for label in failing:
        values = sorted({labels[label] for labels in label_sets if label in labels})
        more = " …" if len(values) > _VALUES else ""
        text += f"; {label} is {', '.join(values[:_VALUES])}{more}" if values else ""
    return text


def _lost(labels: Mapping[str, str]) -> bool:
    """Return whether a series stands for all label sets over the limit."""
    return labels.get("overflow") == "true"


def _failed(labels: Mapping[str, str], failing: Mapping[str, str], *, web: bool) -> bool:
    """Return whether the events of a label set failed."""
    if web and failing == FAILING:
        return is_failure(labels.get("status"))
    return all(labels.get(label) == value for label, value in failing.items())


def not_compared(comparison: Comparison, name: str, *, histogram: bool) -> Explanation:
    """Return the explanation of windows that are not kept."""
    base = _base(comparison, name, "p95" if histogram else _measure(comparison.request))
    base = replace(
        base, state="not kept", reason=comparison.reason, alternatives=comparison.alternatives
    )
    return _with(base, [text(comparison.reason[0].upper() + comparison.reason[1:] + ".")])


def compose(
    comparison: Comparison,
    name: str,
    events: LabelEvents,
    around: Circumstances,
    *,
    histogram: bool,
) -> Explanation:
    """Return the explanation of events that were read."""
    request = comparison.request
    measure: Measure = "p95" if histogram else _measure(request)
    base = _base(comparison, name, measure)
    if request.name == HITS_FAILED and name == REQUESTS:
        events.counts = [row for row in events.counts if is_failure(row[0].get("status"))]
    first = _first(events)
    kept = comparison.recent if histogram else comparison.history
    history = [at for at in kept if first is not None and at >= first]
    count_before, count = _counts(events, comparison)
    causes = None
    if histogram and count_before and count:
        causes = explain_p95(_histogram_rows(events, comparison, history), comparison.windows)
    elif measure == "error rate" and count_before and count:
        rows = _rate_rows(events.counts, comparison, history, request.failing, web=name == REQUESTS)
        causes = explain_rate(rows, comparison.windows)
    elif measure == "count" and (count_before or count):
        causes = explain_count(_count_rows(events.counts, comparison, history), comparison.windows)
    left_out = [*events.not_compared, *around.not_compared]
    if around.exceptions.reason:
        left_out.append(f"exceptions: {around.exceptions.reason}")
    if note := window_note(first, comparison):
        left_out.append(note)
    base = replace(
        base,
        count_before=count_before,
        count=count,
        messages=around.messages,
        exceptions=around.exceptions,
        marks=tuple(around.marks),
        database=around.database,
        not_compared=tuple(left_out),
    )
    if causes is None:
        side = "the baseline" if count else "the window"
        reason = f"no events in {side if count or count_before else 'either window'}"
        base = replace(base, state="no data", reason=reason)
        return _with(base, [text(f"Nothing to compare: {reason}.")])
    return _complete(base, comparison, causes, judged(len(history)), around.none_failed)


def _complete(
    base: Explanation, comparison: Comparison, causes: Causes, unsure: str, none_failed: str
) -> Explanation:
    explanation = replace(
        base,
        state="compared",
        before=causes.before,
        after=causes.after,
        change=causes.after - causes.before,
        changed=causes.changed,
        even=causes.even,
        uneven=causes.uneven,
        judged=not unsure,
        judged_reason=unsure,
        causes=tuple(causes.causes),
        dimensions=tuple(causes.dimensions),
    )
    assert comparison.precision is not None, "it is compared"
    width = span(comparison.precision)
    parts = explanation_parts(explanation, comparison.baseline_name, width)
    if none_failed:  # which is no all-clear: the value may be misspelled
        parts.append(text(f" {none_failed[0].upper()}{none_failed[1:]}."))
    return _with(explanation, parts)


def _with(explanation: Explanation, parts: Sequence[Part]) -> Explanation:
    """Return an explanation with its sentence."""
    return replace(explanation, parts=tuple(parts), sentence=joined(parts))


def _base(comparison: Comparison, name: str, measure: Measure) -> Explanation:
    request, window, baseline = comparison.request, comparison.window, comparison.baseline
    return Explanation(
        name=name,
        labels=dict(request.labels),
        measure=measure,
        unit="ratio" if measure == "error rate" else unit_of(name),
        precision=comparison.precision,
        reaches=comparison.reaches,
        since=window.start if window else comparison.since,
        until=window.stop if window else comparison.until,
        asked_since=comparison.since,
        asked_until=comparison.until,
        against=request.against,
        against_since=baseline.start,
        against_until=baseline.stop,
    )


# --- Rows ----------------------------------------------------------------------------------


def _count_rows(counts: Rows, comparison: Comparison, history: Sequence[int]) -> list[Events]:
    labels = with_overflow([own for own, _ in counts])
    return [
        Events(
            own,
            _sum(found, comparison.baseline),
            _sum(found, comparison.window),
            [found.get(at, 0) for at in history],
            [found.get(at, 0) for at in comparison.window],
        )
        for own, (_, found) in zip(labels, counts, strict=True)
    ]


def _rate_rows(
    counts: Rows,
    comparison: Comparison,
    history: Sequence[int],
    failing: Mapping[str, str],
    *,
    web: bool,
) -> list[Events]:
    """Return the failures of label sets among their requests, without the failing labels."""
    rows: dict[tuple[tuple[str, str], ...], tuple[Events, Events]] = {}
    for row, (own, _) in zip(_count_rows(counts, comparison, history), counts, strict=True):
        labels = {key: value for key, value in row.labels.items() if key not in failing}
        key = tuple(sorted(labels.items()))
        if key not in rows:
            none = [0] * len(history), [0] * len(comparison.window)
            requests = Events(labels, 0, 0, *none)
            rows[key] = Events(labels, 0, 0, *none, requests), requests
        failures, requests = rows[key]
        _add(requests, row)
        if _failed(own, failing, web=web):
            _add(failures, row)
    return [failures for failures, _ in rows.values()]


def _add(events: Events, others: Events) -> None:
    events.before += others.before
    events.after += others.after
    events.history = list(map(add, events.history, others.history))
    events.within = list(map(add, events.within, others.within))


def _histogram_rows(
    events: LabelEvents, comparison: Comparison, history: Sequence[int]
) -> list[HistogramRow]:
    labels = with_overflow([own for own, _ in events.histograms])
    return [
        HistogramRow(
            own,
            edges_of(_merged(found, comparison.baseline)),
            edges_of(_merged(found, comparison.window)),
            [edges_of(found[at]) if at in found else {} for at in history],
        )
        for own, (_, found) in zip(labels, events.histograms, strict=True)
    ]


def _merged(found: Mapping[int, Distribution], intervals: range) -> Distribution:
    return merge_all(Distribution(), (found[start] for start in intervals if start in found))


def _sum(counts: Mapping[int, int], intervals: range) -> int:
    return sum([counts.get(start, 0) for start in intervals])


def _counts(events: LabelEvents, comparison: Comparison) -> tuple[int, int]:
    """Return the number of events in the baseline and in the window."""
    counts = [found for _, found in events.counts]
    counts += [{at: one.count for at, one in found.items()} for _, found in events.histograms]
    return (
        sum(_sum(each, comparison.baseline) for each in counts),
        sum(_sum(each, comparison.window) for each in counts),
    )


def _first(events: LabelEvents) -> int | None:
    """Return the start of the first interval with events."""
    starts = [min(found) for _, found in [*events.counts, *events.histograms] if found]
    return min(starts, default=None)


# --- Kinds and precisions ------------------------------------------------------------------


def _measure(request: ExplainRequest) -> Measure:
    return "error rate" if request.failing else "count"


def _base_entry(keys: Keys, index: str, member: str) -> Read:
    """Return the read of the entry of a series without labels, if there is one."""
    return indexes.members(keys, index, f"[{member}", f"[{member}", count=1)


def _longest(retention: Mapping[int, int]) -> int:
    """Return the precision that reaches furthest back."""
    return max(retention, key=lambda precision: precision * retention[precision])


def _exist(replies: Sequence[Reply]) -> set[int]:
    """Return which of the names have series: the numbers of their pairs of replies."""
    return {
        at
        for at in range(len(replies) // 2)
        if number_of(replies[2 * at]) or there(replies[2 * at + 1], 0)
    }


def _same_time(comparison: Comparison, retention: Retention, now: float) -> Comparison | None:
    """Return the comparison of the same time by histograms; None if they do not keep it."""
    request = comparison.request
    if request.precision is not None and request.precision not in retention:
        request = replace(request, precision=None)
    window, baseline = comparison.window, comparison.baseline
    request = replace(
        request,
        since=window.start,
        until=window.stop,
        against="custom",
        against_since=baseline.start,
        against_until=baseline.stop,
    )
    same = compare(request, retention, now)
    if same.reason or len(same.window) * same.window.step != len(window) * window.step:
        return None
    return same
