"""The errors, limits and notes of a query.

Each error is a kind of QueryError. Notes are the warnings and infos of an answer, each with the
position that caused it, each once.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

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


def never_interrupt() -> None:
    """Let a query run to its end."""


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
    interrupt: Callable[[], None] = never_interrupt

    def check_steps(self, steps: int) -> None:
        """Raise QueryError if a range query has too many steps."""
        if steps > self.steps:
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


class Notes:
    """Collects annotations. The texts are those of Prometheus, which dashboards look for."""

    def __init__(self) -> None:
        self._warnings: dict[str, None] = {}
        self._infos: dict[str, None] = {}

    @property
    def warnings(self) -> list[str]:
        """Return the warnings in the order of their first occurrence."""
        return list(self._warnings)

    @property
    def infos(self) -> list[str]:
        """Return the infos in the order of their first occurrence."""
        return list(self._infos)

    def warn(self, text: str, position: str) -> None:
        """Add a warning."""
        self._warnings[f"PromQL warning: {text} ({position})"] = None

    def inform(self, text: str, position: str) -> None:
        """Add an info."""
        self._infos[f"PromQL info: {text} ({position})"] = None

    def bad_quantile(self, quantile: str, position: str) -> None:
        """Warn about a quantile outside of 0 to 1."""
        self.warn(f"quantile value should be between 0 and 1, got {quantile}", position)

    def bad_bucket(self, label: str, name: str, position: str) -> None:
        """Warn about a classic histogram's bucket without a valid `le`."""
        what = f'bucket label "le" is missing or has a malformed value of {quoted(label)}'
        self.warn(what + _for_metric(name), position)

    def mixed_samples(self, name: str, position: str) -> None:
        """Warn about floats and histograms within one range."""
        what = f"encountered a mix of histograms and floats for metric name {quoted(name)}"
        self.warn(what, position)

    def mixed_aggregation(self, position: str) -> None:
        """Warn about floats and histograms within one group."""
        self.warn("encountered a mix of histograms and floats for aggregation", position)

    def mixed_histograms(self, name: str, position: str) -> None:
        """Warn about classic and native histograms of one label set."""
        what = "vector contains a mix of classic and native histograms"
        self.warn(what + _for_metric(name), position)

    def no_counter_histogram(self, name: str, position: str) -> None:
        """Warn about the rate of a gauge histogram."""
        self.warn(f"this native histogram metric is not a counter: {quoted(name)}", position)

    def no_gauge_histogram(self, name: str, position: str) -> None:
        """Warn about the delta of a counter histogram."""
        self.warn(f"this native histogram metric is not a gauge: {quoted(name)}", position)

    def possibly_no_counter(self, name: str, position: str) -> None:
        """Inform that a counter's name lacks the usual suffix."""
        what = "metric might not be a counter, name does not end in _total/_sum/_count/_bucket:"
        self.inform(f"{what} {quoted(name)}", position)

    def forced_monotonicity(self, name: str, position: str) -> None:
        """Inform that cumulative bucket counts decreased."""
        what = (
            "input to histogram_quantile needed to be fixed for monotonicity"
            " (see https://prometheus.io/docs/prometheus/latest/querying/functions/"
            "#histogram_quantile)"
        )
        self.inform(what + _for_metric(name), position)

    def nan_observations(self, function: str, effect: str, name: str, position: str) -> None:
        """Inform that a native histogram has observed NaN."""
        what = f"input to histogram_{function} has NaN observations{effect}"
        self.inform(what + _for_metric(name), position)

    def incompatible_types(self, left: str, operator: str, right: str, position: str) -> None:
        """Inform that an operator is not defined for these types of samples."""
        what = "incompatible sample types encountered for binary operator"
        self.inform(f"{what} {quoted(operator)}: {left} {operator} {right}", position)

    def wide_intervals(self, until: int, width: int, window: int, position: str) -> None:
        """Inform that stored intervals are wider than the windows of a rate.

        Args:
            until: the end of the last of them, in milliseconds.
            width, window: milliseconds.
        """
        moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(until // 1000))
        what = (
            f"windows of {_duration(window)} before {moment} are averages of stored intervals of"
            f" up to {_duration(width)}; a longer retention of narrower intervals changes that"
        )
        self.inform(what, position)

    def ignored_in_aggregation(self, aggregation: str, position: str) -> None:
        """Inform that an aggregation left histograms out."""
        self.inform(f"ignored histogram in {aggregation} aggregation", position)

    def ignored_in_range(self, name: str, position: str) -> None:
        """Inform that a function left the histograms of a mixed range out."""
        what = "ignored histograms in a range containing both floats and histograms"
        self.inform(f"{what} for metric name {quoted(name)}", position)


def _duration(milliseconds: int) -> str:
    """Return a duration as PromQL writes it, in its largest whole unit."""
    units = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))
    for unit, size in units:
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def _for_metric(name: str) -> str:
    return f" for metric name {quoted(name)}" if name else ""
