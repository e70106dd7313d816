"""summary: what it prints for people, pipes and programs."""

import json
import math
import re
import time
from typing import Any

import pytest

from redmeter import Meter
from redmeter.cli import chart, output
from redmeter.results.summaries import spread_of
from redmeter.stored.exponential_histogram import Distribution
from support.commands import is_clean, plain
from support.observed import put_observed

Run = Any


def put_times(client: Any, name: str = "took_seconds") -> list[float]:
    """Observe a hundred times, 10 ms to 1 s, two a minute."""
    now, values = time.time(), [n / 100 for n in range(1, 101)]
    put_observed(client, {name: [(now - 30 * n, v) for n, v in enumerate(values)]})
    return values


def test_a_summary_is_columns_in_a_pipe(redmeter: Run, client: Any) -> None:
    """One line of plain numbers under a line of names."""
    values = put_times(client)
    done = redmeter("summary", "took_seconds", "--above", "0.9")
    assert (done.code, done.err) == (0, "")
    names, row = (line.split("\t") for line in done.out.splitlines())
    assert names[:6] == ["NAME", "COUNT", "TOTAL", "MEAN", "STDDEV", "LOW"]
    assert names[6:] == ["P50", "P90", "P95", "P99", "HIGH", "ABOVE"]
    found = dict(zip(names, row, strict=True))
    assert (found["NAME"], found["COUNT"]) == ("took_seconds", "100")
    assert (float(found["LOW"]), float(found["HIGH"])) == (0.01, 1.0)
    assert math.isclose(float(found["TOTAL"]), sum(values))
    assert math.isclose(float(found["P95"]), 0.95, rel_tol=0.0217)
    assert math.isclose(float(found["ABOVE"]), 0.1, abs_tol=0.04)


def test_a_summary_is_json_for_programs(redmeter: Run, client: Any) -> None:
    """The numbers, the buckets and each slice, null for a gap."""
    now = time.time() // 3600 * 3600
    put_observed(client, {"x": [(now - 7200, 1.0), (now, 2.0), (now, 4.0)]})
    done = redmeter("summary", "x", "-p", "1h", "--above", "1.5", "--json")
    found = json.loads(done.out)
    assert (found["name"], found["window"]["precision"], found["window"]["running"]) == (
        "x",
        3600,
        True,
    )
    assert (found["count"], found["total"], found["low"], found["high"]) == (3, 7.0, 1.0, 4.0)
    assert found["above"] == {"threshold": 1.5, "share": pytest.approx(2 / 3)}
    assert [bucket["count"] for bucket in found["buckets"]] == [1, 1, 1]
    gap = {"start": now - 3600, "count": 0, "mean": None, "p50": None, "p95": None, "p99": None}
    assert [one["count"] for one in found["intervals"]] == [1, 0, 2]
    assert found["intervals"][1] == gap
    assert found["window"]["until"] - found["window"]["since"] == 240 * 3600
    cut = json.loads(redmeter("summary", "x", "-p", "1h", "--last", "1h", "--json").out)
    assert (cut["count"], "above" in cut) == (2, False)


def test_a_summary_is_drawn_on_a_terminal(screen: Run, client: Any, meter: Meter) -> None:
    """Numbers in units, a histogram, percentiles over time with marks, and the newest slices."""
    put_times(client)
    meter.mark("v2", at=time.time() - 600)
    done = screen("summary", "took_seconds", "--above", "0.5")
    shown = plain(done.out)
    assert (done.code, is_clean(shown)) == (0, True)
    assert shown.startswith("took_seconds · 100 values in 60 intervals of 1m from ")
    for line in (
        r"count +100",
        r"low +10 ms",
        r"high +1 s",
        r"mean +505 ms",
        r"above 500 ms +5\d\.",
    ):
        assert re.search(f"^{line}", shown, re.MULTILINE), line
    assert re.search(r"707 ms … 1 s +\d+ +\d+\.\d% +█", shown)
    assert "p95 over time · every 1m" in shown
    assert re.search(r"^ +▼ *$", shown, re.MULTILINE)
    assert re.search(r"^▼ [-0-9]+ [0-9:]+ v2$", shown, re.MULTILINE)
    assert "START (UTC)" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_a_summary_fits_the_terminal(screen: Run, client: Any, columns: int) -> None:
    """However narrow it is, for values of any sign."""
    now = time.time()
    put_observed(client, {"x": [(now - 60 * n, (n - 50) ** 3) for n in range(100)]})
    _, *shown = plain(screen("summary", "x", columns=columns).out).splitlines()
    assert max(map(len, shown)) <= columns


@pytest.mark.parametrize(("columns", "told"), [(59, "COUNT P95"), (60, "COUNT MEAN P50 P95 P99")])
def test_where_there_is_little_room_less_is_told_of_each_slice(
    screen: Run, client: Any, columns: int, told: str
) -> None:
    """The count, and the percentile that is drawn."""
    put_observed(client, {"x": [(time.time(), 4.0)] * 7})
    lines = [
        line.split() for line in plain(screen("summary", "x", columns=columns).out).splitlines()
    ]
    (at,) = (n for n, line in enumerate(lines) if line[:1] == ["START"])
    assert lines[at] == ["START", "(UTC)", *told.split()]
    assert lines[at + 1][2:] == ["7"] + ["4"] * (len(told.split()) - 1)


def test_label_sets_are_merged_or_split(redmeter: Run, client: Any) -> None:
    """A name means all of them."""
    now = time.time()
    put_observed(client, {f'x{{a="{n}"}}': [(now, float(n))] for n in range(4)})
    done = redmeter("summary", "x", "-p", "1h", "--json")
    assert json.loads(done.out)["total"] == 6.0
    done = redmeter("summary", "x", "--by", "a", "-p", "1h", "--json")
    groups = json.loads(done.out)["groups"]
    assert {one["labels"]["a"]: one["total"] for one in groups} == {str(n): n for n in range(4)}
    assert redmeter("summary", "x", "--exact").code == 1


def test_a_name_that_is_not_there_gets_a_hint(redmeter: Run, client: Any) -> None:
    """One that is alike; the JSON is there all the same."""
    put_observed(client, {"took_seconds": [(time.time() - 9_000, 1.0)]})
    for name, hint in (
        ("took_secnods", "available: took_seconds"),
        ("took_seconds", "a coarser precision may reach further back"),
        ("zz", "redmeter names lists all"),
    ):
        done = redmeter("summary", name)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(f"error: no values under {name} in this window; ")
        assert hint in done.err
    empty = redmeter("summary", "zz", "--json")
    assert (empty.code, json.loads(empty.out)["count"]) == (1, 0)


def test_series_of_what_is_observed_names_the_right_command(redmeter: Run, client: Any) -> None:
    """A histogram is no counter."""
    put_times(client)
    done = redmeter("series", "took_seconds")
    assert done.err.endswith(" is recorded as a histogram; redmeter summary took_seconds\n")


def test_names_tell_kinds_apart(redmeter: Run, client: Any, meter: Meter) -> None:
    """All of them, or one kind."""
    put_times(client)
    meter.count("hits", 2)
    meter.gauge("queue").set(1)
    assert redmeter("names").out.splitlines()[1:] == [
        "hits\tcounter\t2",
        "queue\tgauge\t",
        "took_seconds\thistogram\t",
    ]
    for kind, name in (("counter", "hits"), ("gauge", "queue"), ("histogram", "took_seconds")):
        found = json.loads(redmeter("names", "--kind", kind, "--json").out)["names"]
        assert [(row["name"], row["kind"]) for row in found] == [(name, kind)]
    assert redmeter("names", "--kind", "timers").code == 2
    assert redmeter("names", "zz", "--kind", "gauge").err.startswith("error: no gauge matches zz")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-p", "1s"], "error: precision 1 is not kept of histograms; kept are (seconds): 5, 60,"),
        (["-p", "5s", "--last", "0"], "error: --last: '0': give 15m, 2h, or a number"),
        *(
            (["--above", text], "error: --above: give a finite number")
            for text in ("nan", "inf", "-inf")
        ),
    ],
)
def test_what_cannot_be_summed_up_is_refused(redmeter: Run, words: list[str], told: str) -> None:
    """Exit code 2."""
    done = redmeter("summary", "x", *words)
    assert done.code == 2
    assert done.err.startswith(told)


# --- Units and rows ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("took_seconds", 0.0123456, "12.3 ms"),
        ("took_seconds", 0.0, "0 s"),
        ("took_seconds", 0.9999, "1 s"),
        ("took_seconds", 119.0, "119 s"),
        ("took_seconds", 125.0, "2.08 min"),
        ("took_seconds", 7_200.0, "2 h"),
        ("took_seconds", 200_000.0, "2.31 d"),
        ("took_seconds", 3.5e-6, "3.5 µs"),
        ("took_seconds", 2e-10, "0.2 ns"),
        ("took_seconds", -0.5, "-500 ms"),
        ("took_seconds", 1e12, "11,574,074 d"),
        ('sent_bytes{to="x"}', 4.5e6, "4.5 MB"),
        ("sent_bytes", 0.0, "0 B"),
        ("sent_bytes", 999.0, "999 B"),
        ("sent_bytes", 999_999.0, "1 MB"),
        ("sent_bytes", 5e18, "5,000 PB"),
        ("hit_ratio", 0.1234, "12.3 %"),
        ("hit_ratio", 0.0, "0 %"),
        ("cart_value", 1234.5678, "1,234.57"),
    ],
)
def test_values_are_told_in_the_unit_of_their_name(name: str, value: float, text: str) -> None:
    """Three digits, in the unit that needs the fewest."""
    assert output.writer_for(name)(value) == text


def drawn(values: list[float], most: int = 20) -> list[tuple[str, int]]:
    """Return the rows of a histogram."""
    one = Distribution()
    one.add_all(values)
    return chart.rows(spread_of(one).buckets, lambda value: f"{value:g}", most)


def test_a_histogram_has_rows_of_equal_width() -> None:
    """Powers of two where there is much to show; what is empty between two others too."""
    assert drawn([1.5] * 2) == [("1.47683 … 1.54221", 2)]
    assert drawn([2.0**n for n in range(20)], 20)[-1] == ("262144 … 524288", 1)
    rows = drawn([1.1, 1000.0])
    assert (rows[0][0][:5], rows[0][1], rows[-1][1]) == ("1 … 1", 1, 1)
    assert 10 <= len(rows) <= 20


def test_a_histogram_shows_negative_values_and_zeros_in_order() -> None:
    """From the lowest to the highest, every value in one row."""
    values = [-300.0, -4.0, -3.0, 0.0, 0.0, 0.5, 7.0]
    rows = drawn(values)
    assert sum(count for _, count in rows) == len(values)
    assert ("0", 2) in rows
    lows = [float(edges.split(" ")[0]) for edges, _ in rows]
    assert lows == sorted(lows)
    assert len(rows) <= 20


@pytest.mark.parametrize("most", [5, 20])
def test_a_histogram_of_all_doubles_has_few_rows(most: int) -> None:
    """However far apart they are."""
    values = [s * 10.0**e for e in range(-307, 308, 3) for s in (-1, 1)]
    rows = drawn([*values, 0.0], most)
    assert len(rows) <= most + 1
    assert sum(count for _, count in rows) == len(values) + 1
