"""Bounds on the work of one query."""

from collections.abc import Callable
from dataclasses import dataclass

from redmeter.promql.errors import QueryError


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
