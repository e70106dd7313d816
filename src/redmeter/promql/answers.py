"""Answers as Prometheus' HTTP API writes them, and as series of samples."""

import json
import math
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from redmeter.promql import nodes
from redmeter.promql.errors import BadQuery
from redmeter.promql.evaluator import Answer
from redmeter.promql.histogram import NativeHistogram
from redmeter.promql.values import (
    Floats,
    LabelSet,
    Objects,
    Times,
    Vector,
    are_histograms,
    format_float,
    format_floats,
)

#: A sample: milliseconds, and its value.
_Sample = tuple[int, float | NativeHistogram]


def series_of(answer: Answer) -> Iterator[tuple[LabelSet, list[_Sample]]]:
    """Yield the series of an answer, which is no text, with their samples."""
    value = answer.value
    if isinstance(value, np.ndarray):
        yield (), _samples(answer.times, value, None)
    elif isinstance(value, Vector):
        for row, labels in enumerate(value.labels):
            columns = np.flatnonzero(value.present[row])
            histograms = None if value.histograms is None else value.histograms[row, columns]
            yield labels, _samples(answer.times[columns], value.values[row, columns], histograms)
    elif isinstance(value, list):
        for one in value:
            yield one.labels, _samples(one.times, one.values, one.histograms)


def _samples(times: Times, values: Floats, histograms: Objects | None) -> list[_Sample]:
    samples: list[_Sample] = list(zip(times.tolist(), values.tolist(), strict=True))
    if histograms is not None:
        for place in np.flatnonzero(are_histograms(histograms)).tolist():
            samples[place] = samples[place][0], histograms[place]
    return samples


def as_data(answer: Answer) -> dict[str, Any]:
    """Return an answer as the `data` of Prometheus' HTTP API."""
    result: list[Any]
    if isinstance(answer.value, str):
        result = [seconds(int(answer.times[0])), answer.value]
    elif answer.kind is nodes.ValueType.SCALAR:
        ((_, (sample,)),) = series_of(answer)
        result = _pair(sample)
    elif answer.kind is nodes.ValueType.VECTOR:
        result = [
            {"metric": dict(labels), _key(sample): _pair(sample)}
            for labels, (sample,) in series_of(answer)
        ]
    else:
        result = [_row(*each) for each in series_of(answer)]
    return {"resultType": answer.kind.value, "result": result}


def json_text(answer: Answer, most: int | None = None) -> str:
    """Return the same as JSON text, of `most` series at most.

    Most of a long answer is values, which are written without an object for each.
    """
    if isinstance(answer.value, str | np.ndarray) or answer.kind is nodes.ValueType.SCALAR:
        return _encode(as_data(answer))
    if isinstance(answer.value, Vector):
        rows: Iterable[str] = _vector_rows(answer, answer.value)
    else:
        rows = (_encode(_row(*each)) for each in series_of(answer))
    return f'{{"resultType":"{answer.kind.value}","result":[{",".join(islice(rows, most))}]}}'


def _vector_rows(answer: Answer, vector: Vector) -> Iterator[str]:
    moments = [f'[{seconds(time)},"' for time in answer.times.tolist()]
    instant = answer.kind is nodes.ValueType.VECTOR
    texts = _texts(vector.values)
    for row, labels in enumerate(vector.labels):
        metric = f'{{"metric":{_encode(dict(labels))},'
        columns = np.flatnonzero(vector.present[row])
        if vector.histograms is not None and are_histograms(vector.histograms[row, columns]).any():
            histograms = vector.histograms[row, columns]
            samples = _samples(answer.times[columns], vector.values[row, columns], histograms)
            data = _row(labels, samples)
            if instant:
                data = {"metric": data["metric"], _key(samples[0]): _pair(samples[0])}
            yield _encode(data)
            continue
        shown = texts[row, columns].tolist()
        whole = len(columns) == len(moments)
        starts = moments if whole else map(moments.__getitem__, columns.tolist())
        values = "".join(chain.from_iterable(zip(starts, shown, repeat('"],'))))[:-1]
        yield f'{metric}"value":{values}}}' if instant else f'{metric}"values":[{values}]}}'


def _texts(values: Floats) -> Objects:
    """Return the texts of a table of numbers. Many are equal, as rates of small numbers are."""
    bits, places = np.unique(values.view(np.int64), return_inverse=True)
    texts = np.array(format_floats(bits.view(np.float64)), dtype=object)
    return texts[places].reshape(values.shape)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _row(labels: LabelSet, samples: list[_Sample]) -> dict[str, Any]:
    row: dict[str, Any] = {"metric": dict(labels)}
    for sample in samples:
        row.setdefault(f"{_key(sample)}s", []).append(_pair(sample))
    return row


def _key(sample: _Sample) -> str:
    return "histogram" if isinstance(sample[1], NativeHistogram) else "value"


def _pair(sample: _Sample) -> list[Any]:
    time, value = sample
    if isinstance(value, NativeHistogram):
        return [seconds(time), _histogram(value)]
    return [seconds(time), format_float(value)]


def seconds(milliseconds: int) -> float:
    """Return a time in seconds, a whole number where it is one."""
    whole, rest = divmod(milliseconds, 1000)
    return whole if not rest else milliseconds / 1000


def _histogram(histogram: NativeHistogram) -> dict[str, Any]:
    buckets = []
    for bucket in histogram.buckets():
        numbers = (bucket.lower, bucket.upper, bucket.count)
        buckets.append([_BOUNDARIES[bucket.side], *(format_float(number) for number in numbers)])
    totals = {"count": format_float(histogram.count), "sum": format_float(histogram.sum)}
    return {**totals, "buckets": buckets} if buckets else totals


#: Side of a bucket -> how the API writes which of its bounds belong to it.
_BOUNDARIES = {"positive": 0, "negative": 1, "zero": 3}


# --- Parameters ----------------------------------------------------------------------------------

# Times and durations as Prometheus' HTTP API takes them, in milliseconds.

_DAY = 86_400_000
#: In the order in which a duration has them.
_UNITS = {
    "y": 365 * _DAY,
    "w": 7 * _DAY,
    "d": _DAY,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
    "ms": 1,
}
_DURATION = re.compile("".join(rf"(?:(?P<{unit}>[0-9]{{1,12}}){unit})?" for unit in _UNITS))
_NUMBER = re.compile(r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?")


def parse_time(name: str, text: str) -> int:
    """Read a time: Unix seconds, or a date and time as RFC 3339 writes it.

    Raises:
        BadQuery: it is neither, or too far away.
    """
    try:
        if _NUMBER.fullmatch(text):
            seconds = float(text)
        else:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None or "T" not in text.upper():
                raise ValueError(text)
            seconds = moment.timestamp()
    except (ValueError, OverflowError):
        raise BadQuery(
            f'invalid parameter "{name}": cannot parse "{text[:80]}" to a valid timestamp.'
            " Give Unix seconds, or a time such as 2026-11-23T12:00:00Z"
        ) from None
    if not abs(seconds * 1000) < nodes.LONGEST_DURATION:
        raise BadQuery(f'invalid parameter "{name}": {text[:80]} is out of range')
    return round(seconds * 1000)


def parse_duration(name: str, text: str) -> int:
    """Read a duration: seconds, or text such as 5m or 1h30m.

    Raises:
        BadQuery: it is neither, or too long.
    """
    milliseconds = math.nan
    parts = _DURATION.fullmatch(text)
    if _NUMBER.fullmatch(text):
        milliseconds = float(text) * 1000
    elif text and parts:
        counts = parts.groupdict().items()
        milliseconds = sum(int(count or 0) * _UNITS[unit] for unit, count in counts)
    if not abs(milliseconds) < nodes.LONGEST_DURATION:
        raise BadQuery(
            f'invalid parameter "{name}": cannot parse "{text[:80]}" to a valid duration.'
            " Give seconds, or a duration such as 30s, 5m or 1h"
        )
    return round(milliseconds)
