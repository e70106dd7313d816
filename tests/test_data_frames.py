"""Series.to_frame(): series as data frames of pandas."""

import subprocess
import sys

import pandas

from redmeter import Meter
from redmeter.results import Series
from support.servers import Server


def test_a_counter_becomes_a_column_of_whole_numbers() -> None:
    """Indexed by the starts of the intervals, in UTC."""
    frame = Series("hits", 60, 1_700_000_040, (3, 0, 2), partial=False).to_frame()
    assert list(frame.columns) == ["hits"]
    assert frame["hits"].tolist() == [3, 0, 2]
    assert frame["hits"].dtype == "int64"
    assert frame.index.name == "time"
    assert frame.index[0] == pandas.Timestamp("2023-11-14T22:14:00Z")
    assert (frame.index[1] - frame.index[0]).total_seconds() == 60


def test_gaps_of_a_gauge_are_not_a_number() -> None:
    """So that pandas leaves them out of means."""
    frame = Series("queue", 1, 0, (1.5, None, 2.5), partial=False).to_frame()
    assert frame["queue"].isna().tolist() == [False, True, False]
    assert frame["queue"].mean() == 2


def test_an_empty_series_is_an_empty_frame() -> None:
    """With its column."""
    frame = Series[int]("hits", 60, 0, (), partial=False).to_frame()
    assert (len(frame), list(frame.columns)) == (0, ["hits"])


def test_a_summary_over_time_has_a_column_for_each_number(server: Server) -> None:
    """Buckets are left out."""
    with Meter(server.url, sync=True) as meter:
        meter.observe("took_seconds", 2.0)
        meter.observe("took_seconds", 4.0)
        frame = meter.summary("took_seconds", precision=60).over_time().to_frame()
    assert frame["count"].sum() == 2
    assert {"p50", "p95", "p99", "mean", "low", "high"} <= set(frame.columns)
    assert "buckets" not in frame.columns


def test_without_pandas_the_error_names_what_to_install() -> None:
    """As for other optional parts."""
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from redmeter.results import Series\n"
        "from redmeter import MissingExtra\n"
        "try: Series('x', 1, 0, (1,), partial=False).to_frame()\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install pandas" in done.stdout
