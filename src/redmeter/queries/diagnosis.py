"""Queries that judge: status, explanations, verdicts; and marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from redmeter.queries.arguments import Time, explanation_of, select, unix_time, verdict_of
from redmeter.queries.source import QueryBase
from redmeter.stored.keys import check_times

if TYPE_CHECKING:
    from redmeter.results.explanation import Explanation, Status
    from redmeter.results.verdict import Verdict
    from redmeter.types import Mark


class DiagnosisQueries(QueryBase):
    """Whether all is well, and why not."""

    def status(self) -> Status:
        """Return whether the last five complete minutes are as usual.

        Compares the requests, the error rate (of at least 100 requests) and the p95 response time
        with their expected ranges. The result has a sentence, its parts by name, and a check for
        each of the three, with the groups that account for an unusual value and the newest mark
        before it. A store without requests is judged by its three busiest counters. The page
        "Explain" of the docs describes the method.

        Raises:
            StoreError: the store is unreachable or refuses.
        """
        from redmeter.reading.diagnosis.judged_status import read_status

        return self._source.ask(read_status)[1]

    def explain(
        self,
        name: str,
        since: Time | None = None,
        until: Time | None = None,
        against: str | tuple[Time, Time] | None = None,
        *,
        last: int | str | None = None,
        precision: int | str | None = None,
        labels: Mapping[str, object] | None = None,
        failing: Mapping[str, object] | None = None,
    ) -> Explanation:
        """Return what accounts for a rise or a fall between a baseline and a window.

            meter.explain("http_requests", last="15m")                     # its count
            meter.explain("http_requests", last="15m", failing={"status": "5xx"})  # error rate
            meter.explain("http_request_seconds", since, until, "yesterday")       # p95

        A counter is explained by the change of its count, with `failing` by that of its error rate;
        a histogram by the change of its p95. `hits`, `hits_failed` and `hits_seconds` are explained
        by the label sets of the web requests that they count. The page "Explain" of the docs
        describes the method and its measured error.

        Args:
            name: a counter or a histogram; labels in braces are a filter.
            since, until: the window; Unix seconds, or a datetime with a time zone. Without an end
                up to now, without a start the 15 minutes before.
            against: "previous" (as long, right before the window; the default), "yesterday",
                "last-week" (the same time a week before), or a pair of times.
            last: the window is the last so many seconds, or text such as "15m"; excludes `since`
                and `until`.
            precision: interval width. Default: the finest that keeps the window. If it does not
                keep the baseline, the state of the result is "not kept", and its `alternatives`
                are the precisions that keep both.
            labels: only label sets that have these labels.
            failing: the labels of events that failed, such as {"status": "5xx"}. If no series has
                ever had them, the sentence of the result states that.

        Raises:
            WrongKind: only a gauge has this name; the error names its call.
            UnknownLabel: no series of the name has a label of `labels` or `failing`; the error
                lists the labels.
            UnknownPrecision: the store does not keep this precision.
            InvalidName: the name or a label is not allowed.
            InvalidValue: a time, the baseline or a combination of arguments cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        request = explanation_of(
            select(name, labels),
            since=since,
            until=until,
            last=last,
            against=against,
            precision=precision,
            failing=failing,
        )
        from redmeter.reading.diagnosis.explain import read_explanation

        return self._source.ask(read_explanation, request)[1]

    def verdict(
        self,
        mark: str | None = None,
        *,
        since: Time | None = None,
        against: str = "previous",
        precision: int | str | None = None,
    ) -> Verdict:
        """Return whether a deploy made requests fail more often, or slower.

        All requests and each route are compared with before: error rate and p95, each with the test
        that was used. Traffic is reported, not judged. Verdicts are made at fixed looks, 5, 15 and
        60 minutes after the interval that contains the mark; the newest complete one is returned.
        A deploy without effect is called worse in at most 5 of 100 cases, over all looks and
        routes. A changed mix of routes is reported (`mix`), and not judged.

        Args:
            mark: the label of a mark; the newest one if neither it nor `since` is given.
            since: the moment of a deploy that has no mark; Unix seconds, or a datetime with a time
                zone.
            against: "previous" (right before), "yesterday" or "last-week" (the same time of day).
            precision: interval width; default one minute, and one hour for another day.

        Returns:
            A Verdict. Its `verdict` is "worse", "watching" (worse so far, but it could be a storm
            of some minutes), "better", "same", "too little data", or "not kept": the baseline is
            not kept at this precision, and `not_kept` has how far back it reaches.

        Raises:
            InvalidValue: there is no such mark, or an argument cannot be used.
            UnknownPrecision: the store does not keep this precision.
            StoreError: the store is unreachable or refuses.
        """
        asked = verdict_of(mark, since, against, precision)
        from redmeter.reading.diagnosis.verdict import read_verdict

        return self._source.ask(read_verdict, asked)[1]

    def marks(self, *, since: Time | None = None, until: Time | None = None) -> list[Mark]:
        """Return the marks noted by mark(), the oldest first, at most the newest 1,000.

        Args:
            since, until: leave out marks before or after; Unix seconds, or a datetime with a time
                zone. Default: the 90 days that marks are kept.

        Raises:
            InvalidValue: a time cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        first, last = unix_time(since), unix_time(until)
        check_times(first, last)
        from redmeter.reading.marks import read_marks

        return self._source.ask(read_marks, since=first, until=last)
