"""top: what it prints for people, pipes and programs."""

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from redmeter import Meter
from redmeter.cli import top
from redmeter.reading import ranking
from support.commands import Done
from support.observed import put_observed

Run = Any


def test_top_ranks_the_values_of_a_label(redmeter: Run, meter: Meter) -> None:
    """Highest first, with counts and shares between tabs; what lacks the label is told apart."""
    meter.count("requests", 6, labels={"route": "/", "method": "GET"})
    meter.count("requests", 2, labels={"route": "/", "method": "HEAD"})
    meter.count("requests", 1, labels={"route": "/about"})
    meter.count("requests", 1)
    assert redmeter("top", "requests", "--by", "route", "-p", "1d").out == (
        "ROUTE\tCOUNT\tSHARE\n/\t8\t80.0%\n(without)\t1\t10.0%\n/about\t1\t10.0%\n"
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--by", "route"], "error: --by: name a counter, e.g. redmeter top http_requests --by"),
        (["hits", "--by", ""], "error: --by: name a label, e.g. redmeter top http_requests --by"),
    ],
)
def test_top_by_label_needs_a_counter_and_a_label(
    redmeter: Run, meter: Meter, words: list[str], told: str
) -> None:
    """Exit code 2 and an example, not a ranking of something else."""
    meter.count("hits")
    done = redmeter("top", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(told)


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_top_by_a_label_that_no_series_has_lists_those_there_are(
    redmeter: Run, meter: Meter, option: tuple[str, ...]
) -> None:
    """Exit code 1, also where the counter has no labels at all."""
    meter.count("http", labels={"route": "/", "method": "GET"})
    meter.count("http", labels={"route": "/", "status": "2xx"})
    meter.count("http")
    meter.count("http2", labels={"other": "1"})
    meter.count("hits")
    for name, labels, told in (
        ("http", "nope", "no series of 'http' has the label nope; labels: method, route, status"),
        ('http2{other="1"}', "nope", "has the label nope; labels: other"),
        ("hits", "nope", "error: 'hits' has no labels; leave out nope"),
    ):
        done = redmeter("top", name, "--by", labels, *option)
        assert done.code == 1
        assert json.loads(done.out)["error"]["code"] == "unknown-label" if option else not done.out
        assert done.err.endswith(f"{told}\n")


def test_top_ranks_what_lacks_a_label_that_older_series_have(redmeter: Run, meter: Meter) -> None:
    """The label is there, though within these slices nothing had it."""
    meter.count("requests", labels={"route": "/"}, at=time.time() - 7200)
    meter.count("requests")
    done = redmeter("top", "requests", "--by", "route", "-p", "60", "--last", "5m")
    assert done == Done(0, "ROUTE\tCOUNT\tSHARE\n(without)\t1\t100.0%\n", "")


def test_top_hints_at_a_precision_that_looks_further_back_if_there_is_one(
    redmeter: Run, meter: Meter
) -> None:
    """One that is kept, and coarser than the one that was asked for."""
    meter.count("hits", at=time.time() - 86400 * 100)
    assert "; -p 1d looks further back; available: hits" in redmeter("top", "-p", "5h").err
    done = redmeter("top", "-p", "1d")
    assert done.code == 1
    assert done.err.startswith("error: nothing was recorded in the 60 intervals of 1d from ")
    assert done.err.endswith("; available: hits\n")
    assert redmeter("retention", "86400=0", "18000=0").code == 0
    assert "; -p 1h looks further back; " in redmeter("top", "-p", "1m").err
    assert "looks further back" not in redmeter("top", "-p", "1h").err


def test_top_is_json_for_programs(redmeter: Run, meter: Meter) -> None:
    """A key of null stands for "without this label"."""
    meter.count("requests", 3, labels={"route": "/"})
    meter.count("requests", 1)
    today = int(time.time()) // 86400 * 86400
    done = redmeter("top", "requests", "--by", "route", "-p", "1d", "--json")
    assert json.loads(done.out) == {
        "rows": [
            {"key": "/", "count": 3, "share": 0.75, "value": 3},
            {"key": None, "count": 1, "share": 0.25, "value": 1},
        ],
        "groups": 2,
        "examined": 2,
        "complete": True,
        "left_out": [],
        "intervals": 60,
        "window": {
            "precision": 86400,
            "since": today - 59 * 86400,
            "until": today + 86400,
            "running": True,
            "requested": None,
            "reaching": None,
        },
        "missing": [],
    }


def test_top_ranks_names_that_match_a_pattern_and_cuts_where_told(
    redmeter: Run, meter: Meter
) -> None:
    """--limit rows; equal counts by name."""
    for name in ("sales_b", "sales_a", "sales_c", "other"):
        meter.count(name)
    done = redmeter("top", "sales*", "-p", "1d", "--limit", "2")
    assert [line.split("\t")[0] for line in done.out.splitlines()] == ["NAME", "sales_a", "sales_b"]


def test_top_takes_all_slices_where_fewer_than_its_default_are_kept(
    redmeter: Run, meter: Meter
) -> None:
    """A store that keeps 10 minutes is no reason for an error."""
    meter.count("hits")
    assert redmeter("retention", "60=10").code == 0
    assert redmeter("top", "-p", "1m").out == "NAME\tCOUNT\tSHARE\nhits\t1\t100.0%\n"
    done = redmeter("top", "-p", "1m", "--last", "11m")
    assert (done.code, done.out) == (0, "NAME\tCOUNT\tSHARE\nhits\t1\t100.0%\n")
    assert done.err.startswith("intervals of 1m are kept since ")
    assert done.err.endswith(": -p 5m reaches back to the start\n")


@pytest.mark.parametrize("option", ["--limit=0", "--limit=1001", "--last=0", "--limit=x"])
def test_top_refuses_numbers_out_of_range(redmeter: Run, meter: Meter, option: str) -> None:
    """Exit code 2, and what is allowed."""
    meter.count("hits")
    done = redmeter("top", option)
    assert (done.code, done.out) == (2, "")
    assert done.err


def put_routes(client: Any, base: str = "http_seconds") -> None:
    """Observe three routes: a busy one, a slow one, and one that is both a little."""
    now = time.time()
    times = {"/busy": [0.01] * 90, "/slow": [2.0] * 5, "/both": [0.5] * 40}
    put_observed(
        client,
        {f'{base}{{route="{r}"}}': [(now, v) for v in some] for r, some in times.items()},
    )


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        (["route"], ["ROUTE\tCOUNT\tSHARE", "/busy\t90\t66.7%"]),
        (["count", "route"], ["ROUTE\tCOUNT\tSHARE", "/busy\t90\t66.7%"]),
        (["route", "total"], ["ROUTE\tTOTAL\tCOUNT\tSHARE", "/both\t20.0\t40\t64.7%"]),
        (["route", "mean"], ["ROUTE\tMEAN\tCOUNT", "/slow\t2.0\t5"]),
        (["p95", "route"], ["ROUTE\tP95\tCOUNT", "/slow\t2.0\t5"]),
        (["P95", "route"], ["ROUTE\tP95\tCOUNT", "/slow\t2.0\t5"]),
        (["p99.9"], ["NAME\tP99.9\tCOUNT", 'http_seconds{route="/slow"}\t2.0\t5']),
    ],
)
def test_observed_values_are_ranked_by_a_label_and_by_a_word(
    redmeter: Run, client: Any, by: list[str], rows: list[str]
) -> None:
    """In either order; in a pipe the numbers are plain."""
    put_routes(client)
    words = [w for each in by for w in ("--by" if each == "route" else "--order", each)]
    name = "http_seconds" if "route" in by else "http_*"
    done = redmeter("top", name, *words)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[:2] == rows


def test_on_a_terminal_values_are_told_in_their_units(screen: Run, client: Any) -> None:
    """By the end of the name: of the one asked for, or of each row."""
    put_routes(client)
    put_observed(client, {"sent_bytes": [(time.time(), 4.5e6)]})
    shown = screen("top", "http_seconds", "--by", "route", "--order", "mean").out
    assert "10 ms" in shown
    assert "500 ms" in shown
    assert "4.5 MB" in screen("top", "--order", "total").out


def test_a_ranking_that_left_some_out_says_so(redmeter: Run, client: Any) -> None:
    """To standard error, so that a pipe gets rows alone."""
    now = time.time()
    put_observed(client, {f'x{{n="{n}"}}': [(now, n + 1.0)] for n in range(9)})
    done = redmeter("top", "x", "--by", "n", "--order", "p50", "--limit", "2")
    assert done.out == "N\tP50\tCOUNT\n8\t9.0\t1\n7\t8.0\t1\n"
    assert done.err == (
        "compared the p50 of 8 of 9: by mean and spread, none of the others can rank above these\n"
    )
    put_observed(client, {'x{n="tail"}': [(now, 0.0)] * 3 + [(now, 9.0)]})
    done = redmeter("top", "x", "--by", "n", "--order", "p50", "--limit", "1")
    assert done.err.startswith(
        "compared the p50 of 4 of 10: by mean and spread, none of the others"
    )
    put_observed(client, {f'y{{n="{n}"}}': [(now, 0.0), (now, 9.0 + n)] for n in range(9)})
    done = redmeter("top", "y", "--by", "n", "--order", "p50", "--limit", "2")
    assert done.err == (
        "compared the p50 of 8 of 9, those that can be highest by mean and spread; "
        "others may be higher; a higher --limit compares more\n"
    )
    assert redmeter("top", "x", "--by", "n", "--order", "p50").err == ""


def test_a_ranking_names_groups_of_too_many_series(
    redmeter: Run, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A higher limit would not help."""
    now = time.time()
    given = {f'x{{a="{n % 2}",b="{n}"}}': [(now, 1.0 + n % 2)] for n in range(20)}
    put_observed(client, given)
    monkeypatch.setattr(ranking, "MAX_RANKED_HISTOGRAMS", 15)
    monkeypatch.setattr(top, "MAX_RANKED_HISTOGRAMS", 15)
    done = redmeter("top", "x", "--by", "a", "--order", "p50")
    assert [line.split("\t")[0] for line in done.out.splitlines()] == ["A", "1"]
    assert done.err == (
        "compared the p50 of 1 of 2, those that can be highest by mean and spread; "
        "others may be higher\n"
        "omitted: 0: percentiles are computed for at most 15 series; add --label to select "
        "fewer\n"
    )
    found = json.loads(redmeter("top", "x", "--by", "a", "--order", "p50", "--json").out)
    assert [row["key"] for row in found["rows"]] == ["1"]
    assert (found["groups"], found["examined"], found["complete"]) == (2, 1, False)
    assert found["left_out"] == ["0"]


def test_top_ranks_a_window_of_the_past(redmeter: Run, meter: Meter) -> None:
    """By ages, times of UTC or Unix seconds, of the precision's slices."""
    now = time.time()
    for name, ago in (("new", 60), ("hours", 3 * 3600), ("days", 40 * 3600)):
        meter.count(name, at=now - ago)
    moment = datetime.fromtimestamp(now - 2 * 3600, UTC)
    spelled = (f"{now - 7200:.3f}", moment.isoformat(), f"{moment:%Y-%m-%dT%H:%M}")
    for until in ("2h", "120 min", *spelled):
        done = redmeter("top", "-p", "1h", "--since", "5h", "--until", until)
        assert done == Done(0, "NAME\tCOUNT\tSHARE\nhours\t1\t100.0%\n", "")
    done = redmeter("top", "-p", "1h", "--until", "4h")
    assert done.out.splitlines()[1:] == ["days\t1\t100.0%"]
    done = redmeter("top", "-p", "1h", "--since", "9h", "--until", "7h")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: nothing was recorded in the 3 intervals of 1h from ")


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_top_refuses_a_window_that_ends_before_it_begins(
    redmeter: Run, meter: Meter, option: tuple[str, ...]
) -> None:
    """The two were mixed up."""
    meter.count("hits")
    done = redmeter("top", "--since", "2h", "--until", "3h", *option)
    said = "error: --until: is not after --since: an age is longer for the earlier time, "
    said += "e.g. --since 2h --until 1h\n"
    assert (done.code, done.err) == (2, said)


@pytest.mark.parametrize("text", ["", "soon", "5y", "2026-13-01", "1e400", "9" * 20, "-5"])
def test_top_refuses_what_is_no_time(redmeter: Run, meter: Meter, text: str) -> None:
    """With what would be one."""
    meter.count("hits")
    done = redmeter("top", f"--since={text}")
    assert (done.code, done.out) == (2, "")
    assert "--since" in done.err
    assert "give an age, e.g. 2h" in done.err


def test_what_is_observed_does_not_fail(redmeter: Run, meter: Meter) -> None:
    """It is no counter, which is another answer than that nothing failed."""
    meter.observe("took", 1.5, labels={"route": "/"})
    done = redmeter("top", "took", "--by", "route", "--failing", "status=5xx")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: 'took' is recorded as a histogram; redmeter top took --by route --order p95\n"
    )
    meter.count("hits", labels={"route": "/", "status": "2xx"})
    done = redmeter("top", "hits", "--by", "route", "--failing", "status=5xx")
    assert done.err.startswith("nothing failed in the 60 intervals of 1m from ")


def test_a_ranking_of_observed_values_is_json(redmeter: Run, client: Any) -> None:
    """With what it is ranked by as the value."""
    put_routes(client)
    done = redmeter("top", "http_seconds", "--by", "route", "--order", "mean", "--json")
    assert json.loads(done.out)["rows"][0] == {
        "key": "/slow",
        "count": 5,
        "share": 5 / 135,
        "value": 2.0,
    }


def test_what_failed_most_is_ranked(redmeter: Run, meter: Meter) -> None:
    """With how many there were and the part that failed; the others are left out."""
    for route, status, hits in (("/a", "2xx", 9), ("/a", "5xx", 1), ("/b", "5xx", 2)):
        meter.count("http", hits, labels={"route": route, "status": status})
    meter.count("http", 5, labels={"route": "/c", "status": "2xx"})
    words = ["top", "http", "-p", "1d", "--by", "route"]
    assert redmeter(*words, "--failing", "status=5xx").out == (
        "ROUTE\tFAILED\tCOUNT\tSHARE\n/b\t2\t2\t100.0%\n/a\t1\t10\t10.0%\n"
    )
    narrowed = redmeter(*words, "--failing", "status=5xx", "--label", "route=/a")
    assert narrowed.out == "ROUTE\tFAILED\tCOUNT\tSHARE\n/a\t1\t10\t10.0%\n"


@pytest.mark.parametrize("option", [(), ("--json",)])
@pytest.mark.parametrize("name", ["http", "http*", "*"])
def test_that_nothing_failed_is_good_news(
    redmeter: Run, meter: Meter, name: str, option: tuple[str, ...]
) -> None:
    """Exit code 0; a value that no series has is listed with those there are."""
    meter.count("http", 5, labels={"route": "/", "status": "2xx"})
    meter.count("hits")
    by = ["--by", "route"] if name == "http" else []
    done = redmeter("top", name, *by, "-p", "1d", "--failing", "status=5xx", *option)
    assert done.code == 0
    assert done.err.startswith("nothing failed in the 60 intervals of 1d from ")
    assert done.err.endswith("; no series has status=5xx so far; values: 2xx\n")
    assert json.loads(done.out)["rows"] == [] if option else done.out == ""


def test_that_nothing_failed_where_nothing_happened_says_both(redmeter: Run, meter: Meter) -> None:
    """With a precision that looks further back."""
    for status in ("2xx", "5xx"):
        meter.count("http", labels={"route": "/", "status": status}, at=time.time() - 86400)
    done = redmeter("top", "http", "--by", "route", "--failing", "status=5xx")
    assert done.code == 0
    assert done.err.startswith("nothing failed in the 60 intervals of 1m from ")
    assert done.err.endswith("; nothing was counted in it at all; -p 1d looks further back\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["htp", "--by", "route"], "nothing is stored under htp; available: http"),
        (["htp*"], "no counter matches htp*; "),
        (
            ["http*", "--failing", "statsu=5xx"],
            "no series of 'http*' has the label statsu; labels: route, status",
        ),
        (["hits*"], "'hits*' has no labels; leave out status"),
    ],
)
def test_a_name_that_cannot_have_failed_is_no_good_news(
    redmeter: Run, meter: Meter, words: list[str], told: str
) -> None:
    """It is mistyped, so nobody knows whether something failed."""
    meter.count("http", labels={"route": "/", "status": "5xx"})
    meter.count("hits")
    done = redmeter("top", *words, *(() if "--failing" in words else ("--failing", "status=5xx")))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {told}")


def test_without_any_counter_nobody_knows_what_failed(redmeter: Run) -> None:
    """There is nothing that could be healthy."""
    done = redmeter("top", "--failing", "status=5xx")
    assert done.code == 1
    assert done.err.startswith("error: nothing is recorded yet; ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--order", "p101"], "error: invalid value 'p101': rank by one of count, total, mean"),
        (["--order", "P100.5"], "error: invalid value 'p100.5': rank by one of"),
        (["--order", "p1.2.3", "--by", "route"], "error: invalid value 'p1.2.3': rank by one of"),
        (["--order", "failing"], "error: --order: name the failures instead, e.g. --failing"),
        (["--failing", "5xx"], "error: --failing: '5xx': give each label once, as LABEL=VALUE"),
        (["--failing", "a=1", "--failing", "a=2"], "error: --failing: 'a=2': give each label once"),
        (["--label", "=x"], "error: --label: '=x': give each label once, as LABEL=VALUE"),
        (["--order", "p95", "--failing", "a=1"], "error: --failing: ranks by failures; omit"),
        (["--order", "p95", "-p", "1d"], "error: precision 86400 is not kept of histograms; kept"),
    ],
)
def test_what_cannot_be_ranked_is_refused_with_what_can(
    redmeter: Run, meter: Meter, words: list[str], told: str
) -> None:
    """Exit code 2."""
    meter.count("hits")
    done = redmeter("top", "hits", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(told)


def test_nothing_observed_says_what_to_do(redmeter: Run, client: Any) -> None:
    """Where it looks further back, and which series there are."""
    put_observed(client, {'http_seconds{route="/both"}': [(time.time() - 600, 1.0)]})
    done = redmeter("top", "http_seconds", "--by", "route", "--order", "p95", "--last", "5m")
    assert done.code == 1
    assert done.err.startswith("error: nothing was recorded in the 5 intervals of 1m from ")
    assert 'available: http_seconds{route="/both"}' in done.err


@pytest.mark.parametrize(
    "words", ["both --by route", "both --by kind --order p95", "both --label route=/ -n 1 -p 1"]
)
def test_what_is_counted_and_observed_has_the_labels_of_both(
    redmeter: Run, meter: Meter, words: str
) -> None:
    """Where the other kind has a label, nobody is told that there is none."""
    meter.count("both", labels={"kind": "a"}, at=time.time() - 60)
    meter.observe("both", 1.0, labels={"route": "/"})
    done = redmeter("top", *words.split())
    assert "has no labels" not in done.err
    assert "no series" not in done.err
    assert "--by kind" not in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("request --by route", 'nothing is stored under request; available: requests{route="/",'),
        ("requests", "requests has labels: redmeter top requests --by route, or redmeter top "),
        (
            "took --order p95",
            "took has labels: redmeter top took --by route --order p95, or redmeter top 'took{*'",
        ),
        (
            "requests --by route --order p95",
            "'requests' is recorded as a counter; redmeter top requests --by route",
        ),
        ("took", "took has labels: redmeter top took --by route, or redmeter top 'took{*'"),
        ("depth", "'depth' is recorded as a gauge; redmeter series depth"),
        (
            "requests --by route --label methd=GET",
            "no series of 'requests' has the label methd; labels: route, status",
        ),
        (
            "requests --by route --label status=9xx",
            "no series of requests has status=9xx; values: 2xx, 5xx",
        ),
        ("hits --label status=9xx", "'hits' has no labels; leave out status"),
        (
            "requests --by route --failing statsu=5xx",
            "no series of 'requests' has the label statsu; labels: route, status",
        ),
        (
            "requests --failing status=5xx",
            "requests has labels: redmeter top requests --by route --failing status=5xx, or ",
        ),
        ("heat", "'heat' is recorded as a gauge; redmeter series heat"),
    ],
)
def test_what_can_never_be_ranked_is_told_apart_from_what_did_not_happen(
    redmeter: Run, meter: Meter, words: str, told: str
) -> None:
    """A wider window would not help."""
    for status in ("2xx", "5xx"):
        meter.count("requests", labels={"route": "/", "status": status})
    meter.count("hits")
    meter.observe("took", 1.0, labels={"route": "/"})
    meter.gauge("depth").set(3)
    meter.gauge("heat", labels={"room": "a"}).set(3)
    done = redmeter("top", *words.split())
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {told}")


def test_last_is_the_length_of_a_window_up_to_now(redmeter: Run, meter: Meter) -> None:
    """The same of every command that has --since, and it excludes that."""
    now = time.time()
    meter.count("hits", 2, at=now - 5)
    meter.count("hits", 3, at=now - 3 * 3600)
    for last, count in (("2h", 2), ("5h", 5), ("18000", 5)):
        done = redmeter("top", "hits", "-p", "1h", "--last", last, "--json")
        assert json.loads(done.out)["rows"][0]["value"] == count, last
    rows = redmeter("export", "hits", "-p", "1h", "--last", "5h").out.splitlines()
    assert len(rows) > len(redmeter("export", "hits", "-p", "1h", "--last", "2h").out.splitlines())
    for line in ("top", "export", "exceptions", "explain hits", "query hits_total"):
        words = line.split()
        done = redmeter(*words, "--last", "2h", "--since", "1h")
        assert (done.code, done.err.splitlines()[0]) == (
            2,
            "error: --last: is the whole window: leave out --since and --until",
        ), words
        assert redmeter(*words, "--last", "soon").code == 2, words
