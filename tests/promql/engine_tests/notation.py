"""The notation of series in test scripts.

`1+2x3` is 1 3 5 7, `5x2` is 5 5 5, `_` is no sample, `_x3` three of them, `stale` a staleness
marker, `{{schema:0 count:3 sum:5 buckets:[1 2]}}` a native histogram, with the same repetition.
"""

import re
from dataclasses import replace

from promql.engine_tests.samples import STALE
from redmeter.promql.errors import QueryError, UnsupportedQuery
from redmeter.promql.histogram import Hint, NativeHistogram
from redmeter.promql.values import METRIC_NAME, LabelSet

#: One sample; None where there is none.
Sample = float | NativeHistogram | None

#: The missing feature of evaluations that read histograms with custom buckets.
CUSTOM_BUCKETS = "custom-buckets"
#: That of evaluations that read series of which is known when their counters started.
START_TIMES = "start-timestamps"

_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNITS |= {"w": 7 * 86_400_000, "y": 365 * 86_400_000}
_NAME = re.compile(r"\s*([A-Za-z_:][A-Za-z0-9_:]*)?\s*(\{(?!\{))?")
_LABEL = re.compile(
    r"""\s*(?:([A-Za-z_][A-Za-z0-9_]*|"(?:\\.|[^"\\])*")\s*=\s*)?("(?:\\.|[^"\\])*")\s*(,|\})"""
)
_NUMBER = r"[+-]?(?:[Ii]nf|[Nn]a[Nn]|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_SAMPLES = re.compile(
    rf"""\s*(?:
      (?P<missing>_)(?:x(?P<times_missing>\d+))?
    | (?P<stale>stale)
    | (?P<number>{_NUMBER})(?:(?P<step>[+-]{_NUMBER[5:]})?x(?P<times>\d+))?
    | \{{\{{(?P<histogram>.*?)\}}\}}
      (?:(?:(?P<sign>[+-])\{{\{{(?P<more>.*?)\}}\}})?x(?P<repeats>\d+))?
    )(?=\s|$)""",
    re.VERBOSE,
)
_FIELD = re.compile(r"\s*(\w+):(\[[^\]]*\]|\S+)")
_HINTS: dict[str, Hint] = {"gauge": "gauge", "reset": "reset", "not_reset": "not_reset"}


def duration(text: str) -> int:
    """Return the milliseconds of `5m`, `1h30m`, or of a number of seconds."""
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return sign * round(float(text) * 1000)
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise QueryError(f"{text!r} is no duration")
    return sign * sum(int(number) * _UNITS[unit] for number, unit in parts)


def number(text: str) -> float:
    """Return a number, also NaN and Inf."""
    return float(text)


def unquoted(text: str) -> str:
    """Return the text between quotes."""
    if text[0] == "`":
        return text[1:-1]
    return re.sub(
        r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text[1:-1]
    )


def split_series(line: str) -> tuple[LabelSet, str]:
    """Return the labels of a line `name{label="value"} samples`, and the samples."""
    match = _NAME.match(line)
    if match is None or not match.group().strip():
        raise QueryError(f"no series: {line!r}")
    labels = {METRIC_NAME: match[1]} if match[1] else {}
    position = match.end()
    if match[2]:
        while line[position:].lstrip()[:1] != "}":
            pair = _LABEL.match(line, position)
            if pair is None:
                raise QueryError(f"no label: {line[position:]!r}")
            name = pair[1] or METRIC_NAME
            labels[unquoted(name) if name.startswith('"') else name] = unquoted(pair[2])
            position = pair.end()
            if pair[3] == "}":
                position -= 1
        position = line.index("}", position) + 1
    return tuple(sorted(pair for pair in labels.items() if pair[1])), line[position:]


def samples(text: str) -> list[Sample]:
    """Return the samples of a sequence.

    Raises:
        UnsupportedQuery: they have custom buckets, or are the starts of samples.
    """
    if text.startswith("@st"):
        raise UnsupportedQuery("starts of counters are not supported", START_TIMES)
    result: list[Sample] = []
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _SAMPLES.match(text, position)
        if match is None:
            raise QueryError(f"no samples: {text[position:]!r}")
        position = match.end()
        if match["missing"]:
            result += [None] * int(match["times_missing"] or 1)
        elif match["stale"]:
            result.append(float(STALE))
        elif match["number"]:
            first, step = number(match["number"]), number(match["step"] or "0")
            value = first
            for _ in range(int(match["times"] or 0) + 1):
                result.append(value)
                value += step
        else:
            result += _histograms(match)
    return result


def _histograms(match: re.Match[str]) -> list[Sample]:
    current = histogram(match["histogram"])
    result: list[Sample] = [current]
    more = histogram(match["more"]) if match["more"] is not None else None
    for _ in range(int(match["repeats"] or 0)):
        if more is not None:
            hint = current.hint
            current = current + more if match["sign"] == "+" else current - more
            current = replace(current, hint=hint)
        result.append(current)
    return result


def histogram(text: str) -> NativeHistogram:
    """Return the histogram of the text between double braces.

    Raises:
        UnsupportedQuery: it has custom buckets.
    """
    fields = dict(_FIELD.findall(text))
    if fields.get("schema") == "-53":
        raise UnsupportedQuery("histograms with custom buckets are not supported", CUSTOM_BUCKETS)

    def buckets(name: str, offset: str) -> dict[int, float]:
        first = int(fields.get(offset, 0))
        counts = fields.get(name, "[]").strip("[]").replace(",", " ").split()
        return {first + place: float(count) for place, count in enumerate(counts)}

    return NativeHistogram(
        schema=int(fields.get("schema", 0)),
        count=float(fields.get("count", 0)),
        sum=float(fields.get("sum", 0)),
        zero_threshold=float(fields.get("z_bucket_w", 0)),
        zero_count=float(fields.get("z_bucket", 0)),
        positive=buckets("buckets", "offset"),
        negative=buckets("n_buckets", "n_offset"),
        hint=_HINTS.get(fields.get("counter_reset_hint", ""), "unknown"),
    )
