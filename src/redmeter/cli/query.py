"""query: PromQL in the terminal."""

import math
from typing import Annotated

import typer

from redmeter.cli import chart, output
from redmeter.cli.app import NOT_FOUND, AsJson, Prefix, Url, command, fail, opened_store
from redmeter.cli.selectors import Last, Since, Until, length_of, time_option
from redmeter.clock import seconds_of
from redmeter.errors import InvalidSetting
from redmeter.reading.export.listing import ExportList
from redmeter.results.promql import QueryHistogram, QueryResult, QuerySample, QuerySeries
from redmeter.results.series import Series

#: Series that are drawn, and listed for people.
_DRAWN, _LISTED = 5, 50
#: Steps of a query over time, unless --step is given.
_STEPS = 100


@command(
    name="query",
    epilog="Examples: redmeter query 'sum by (route) (rate(http_requests_total[5m]))' · "
    "redmeter query 'rate(hits_total[5m])' --since 2h · "
    "redmeter query 'histogram_quantile(0.95, rate(hits_seconds[5m]))' --json",
)
def query_command(
    promql: Annotated[str, typer.Argument(help="A PromQL query.")],
    at: Annotated[str | None, typer.Option("--at", help="Evaluate at this time.")] = None,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    step: Annotated[
        str | None, typer.Option("--step", help="Time between values: seconds, or 30s, 5m, 1h.")
    ] = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Answer a PromQL query, now or over time.

    A counter x is x_total in a query, a histogram x is x and x_bucket, x_sum, x_count. With --json
    the answer has the form of Prometheus' HTTP API. Needs the extra redmeter[prometheus].
    """
    length = length_of(last, since, until)
    ranged = "--last" if since is None else "--since"
    if since is None and length is None and (until or step):
        raise InvalidSetting("--until" if until else "--step", "needs --since")
    if (since is not None or length is not None) and at is not None:
        raise InvalidSetting("--at", f"is one time, and {ranged} asks for many: give one of them")
    with opened_store(url, prefix, reading=True) as store:
        from redmeter.promql.answers import as_data
        from redmeter.reading.promql import query as evaluation

        exports = ExportList(store)
        now = exports.read().time()
        window = None
        if since is not None or length is not None:
            start = time_option("--since", since, now) or 0.0 if length is None else now - length
            end = time_option("--until", until, now)
            end = now if end is None else end
            window = (start, end, _step(step, end - start))
        answer = evaluation.answer(
            store, exports.read(), promql, time_option("--at", at, now), window
        )
    result = evaluation.result_of(answer)
    if json:
        data = as_data(answer)
        output.print_json({**data, "warnings": answer.warnings, "infos": answer.infos})
    else:
        for text in (*result.warnings, *result.infos):
            output.note(text)
        _show(result, None if window is None else window[2])
    if not result.series and result.kind != "string":
        fail("no series matches the query", NOT_FOUND, "redmeter names lists all series")


def _step(text: str | None, length: float) -> float:
    if text is None:
        return float(max(1, math.ceil(length / _STEPS)))
    width = seconds_of(text)
    if not width:
        raise InvalidSetting("--step", f"{text!r:.40}: give seconds, or 30s, 5m, 1h")
    return float(width)


def _show(result: QueryResult, step: float | None) -> None:
    if result.kind == "string":
        output.line(result.text)
    elif not output.is_terminal():
        rows: list[list[output.Cell]] = [
            [_name_of(one), output.time_text(float(sample.time)), _plain(sample)]
            for one in result.series
            for sample in one.samples
        ]
        if rows:
            output.table(["SERIES", "TIME", "VALUE"], rows)
    elif step is None:
        listed: list[list[output.Cell]] = [
            [_name_of(one), _text(one.samples[-1])]
            for one in result.series[:_LISTED]
            if one.samples
        ]
        if listed:
            output.table(["SERIES", "VALUE"], listed, right=[1])
        _more(result, _LISTED)
    else:
        for one in result.series[:_DRAWN]:
            _draw(one, step)
        _more(result, _DRAWN)


def _more(result: QueryResult, shown: int) -> None:
    if len(result.series) > shown:
        output.line(f"… ({len(result.series) - shown:,} more series)")


def _draw(one: QuerySeries, step: float) -> None:
    """Draw the floats of a series that are finite."""
    width = max(1, round(step))
    start = one.samples[0].time
    values = {
        round((sample.time - start) / step): sample.value
        for sample in one.samples
        if isinstance(sample.value, float) and math.isfinite(sample.value)
    }
    output.line(
        f"{_name_of(one)} · every {output.span(width)} · {_text(one.samples[-1])} at the end"
    )
    if values:
        row = tuple(values.get(number) for number in range(max(values) + 1))
        series = Series(_name_of(one), width, int(start), row, partial=False)
        write = output.writer_for(one.labels.get("__name__", ""))
        output.block(chart.draw_gauge(series, output.width(), write=write))
    output.line()


def _name_of(one: QuerySeries) -> str:
    """Return the name and the labels of a series, as Prometheus writes them."""
    name = one.labels.get("__name__", "")
    pairs = sorted((label, value) for label, value in one.labels.items() if label != "__name__")
    labels = ",".join(f"{label}={_quoted(value)}" for label, value in pairs)
    return f"{name}{{{labels}}}" if labels or not name else name


def _quoted(value: str) -> str:
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'


def _exact(number: float) -> str:
    return repr(int(number)) if number.is_integer() else repr(number)


def _plain(sample: QuerySample) -> str:
    """Return a value for programs: in full, and of a histogram how many values it has."""
    if isinstance(sample.value, QueryHistogram):
        return _exact(sample.value.count)
    return _exact(sample.value)


def _text(sample: QuerySample) -> str:
    if isinstance(sample.value, QueryHistogram):
        return f"{output.number_text(sample.value.count)} values"
    return output.number_text(sample.value) if math.isfinite(sample.value) else str(sample.value)
