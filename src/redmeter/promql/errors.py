"""The errors, limits and notes of a query.

Each error is a kind of QueryError. Notes are the warnings and infos of an answer, each with the
position that caused it, each once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from redmeter.errors import QueryError as QueryError


class BadQuery(QueryError):
    """The text is no query that can be evaluated: a syntax error, an unknown function."""

    kind = "bad_data"


class QueryTimeout(QueryError):
    """The evaluation of a query took too long."""

    kind = "timeout"


class UnsupportedQuery(BadQuery):
    """The query uses a feature that is experimental in Prometheus.

    Attributes:
        feature: the name of Prometheus' feature flag.
    """

    def __init__(self, message: str, feature: str) -> None:
        self.feature = feature
        super().__init__(f"{message} (experimental in Prometheus: --enable-feature={feature})")


@dataclass(frozen=True)
class Limits:
    """What one query may cost.

    Attributes:
        text: characters of the query.
        nesting: parentheses, brackets and braces within each other.
        operators: operators in the query. The parser takes quadratic time in them.
        steps: evaluation times of a range query, and of a subquery within its cells.
        series: series that one selector may select.
        cells: series times steps of any intermediate result, and samples in a window.
        interrupt: called before each node is evaluated; raises QueryError to end the query, for
            example after a deadline.
    """

    text: int = 64 * 1024
    nesting: int = 100
    operators: int = 200
    steps: int = 11_000
    series: int = 5_000
    cells: int = 2_000_000
    interrupt: Callable[[], None] = lambda: None

    def check_steps(self, steps: int) -> None:
        """Raise QueryError if a range query has too many steps."""
        if steps > self.steps + 1:  # as Prometheus counts: the steps between the points
            raise QueryError(
                f"exceeded maximum resolution of {self.steps:,} points per timeseries: the range"
                f" has {steps:,} steps. Choose a wider step or a shorter range"
            )

    def check_series(self, series: int) -> None:
        """Raise QueryError if a selector matches too many series."""
        if series > self.series:
            raise QueryError(
                f"the query selects {series:,} series, more than {self.series:,}."
                " Add label matchers to the selector"
            )

    def check_cells(self, rows: int, columns: int) -> None:
        """Raise QueryError if a result has too many values."""
        if rows * columns > self.cells:
            raise QueryError(
                f"the query needs {rows:,} series with {columns:,} values each, more than"
                f" {self.cells:,} values. Choose a wider step or fewer series"
            )

    def check_histograms(self, rows: int, columns: int) -> None:
        """Raise QueryError if a result has too many histograms; one is as large as ten values."""
        if rows * columns > self.cells // 10:
            raise QueryError(
                f"the query needs {rows:,} histograms at {columns:,} times each, more than"
                f" {self.cells // 10:,} in all. Choose a wider step or fewer series"
            )


def quoted(text: str) -> str:
    """Return a text in double quotes; bytes that are no UTF-8 as \\x escapes."""
    special = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    parts = []
    for character in text:
        if "\udc80" <= character <= "\udcff":
            parts.append(f"\\x{ord(character) - 0xDC00:02x}")
        elif character < " " or character == "\x7f":
            parts.append(special.get(character, f"\\x{ord(character):02x}"))
        else:
            parts.append(special.get(character, character))
    return f'"{"".join(parts)}"'


class Note(Enum):
    """Texts of warnings and infos: those of Prometheus, which dashboards look for."""

    BAD_QUANTILE = "warning: quantile value should be between 0 and 1, got {}"
    BAD_BUCKET = 'warning: bucket label "le" is missing or has a malformed value of {}{of_metric}'
    MIXED_SAMPLES = "warning: encountered a mix of histograms and floats for metric name {name}"
    MIXED_AGGREGATION = "warning: encountered a mix of histograms and floats for aggregation"
    MIXED_HISTOGRAMS = "warning: vector contains a mix of classic and native histograms{of_metric}"
    CONFLICTING_RESETS = "warning: conflicting counter resets during histogram {}"
    SORTED_RANGE = (
        "warning: sort is ineffective for range queries since results are always ordered by labels"
    )
    NO_COUNTER_HISTOGRAM = "warning: this native histogram metric is not a counter: {name}"
    NO_GAUGE_HISTOGRAM = "warning: this native histogram metric is not a gauge: {name}"
    POSSIBLY_NO_COUNTER = (
        "info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket:"
        " {name}"
    )
    FORCED_MONOTONICITY = (
        "info: input to histogram_quantile needed to be fixed for monotonicity (see"
        " https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)"
        "{of_metric}"
    )
    NAN_OBSERVATIONS = "info: input to histogram_{} has NaN observations{}{of_metric}"
    INCOMPATIBLE_TYPES = (
        'info: incompatible sample types encountered for binary operator "{1}": {0} {1} {2}'
    )
    IGNORED_IN_AGGREGATION = "info: ignored histogram in {} aggregation"
    IGNORED_IN_RANGE = (
        "info: ignored histograms in a range containing both floats and histograms for metric name"
        " {name}"
    )
    #: Ours: stored intervals are too wide for the windows, or the windows too long.
    WIDE_INTERVALS = (
        "info: windows of {} before {} are averages of stored intervals of up to {}; a longer"
        " retention of narrower intervals changes that"
    )
    FEW_SAMPLES = (
        "info: windows of {} before {} have one sample of each stored interval of up to {}, fewer"
        " than two of them, or the value at their end; a longer retention of narrower intervals"
        " changes that"
    )
    NOT_KEPT = (
        "info: windows of {} that begin before {} are cut, or have no value: older intervals are"
        " not kept"
    )


class Notes:
    """Collects annotations."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    @property
    def warnings(self) -> list[str]:
        """The warnings in the order of their first occurrence."""
        return [text for text in self._texts if text.startswith("PromQL warning")]

    @property
    def infos(self) -> list[str]:
        """The infos in the order of their first occurrence."""
        return [text for text in self._texts if text.startswith("PromQL info")]

    def add(self, note: Note, position: str, *details: str, name: str = "") -> None:
        """Add a note; `details` and the metric's name go in its text."""
        of_metric = f" for metric name {quoted(name)}" if name else ""
        text = note.value.format(*details, name=quoted(name), of_metric=of_metric)
        self._texts[f"PromQL {text} ({position})"] = None
