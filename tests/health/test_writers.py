"""What writers tell of themselves, read and judged: whatever a report holds, nothing breaks."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import Meter
from redmeter import store as stores
from redmeter.analysis.text.patterns import PATTERN_VERSION
from redmeter.health.check import Finding
from redmeter.health.doctor import examine
from redmeter.health.writers import Writer, parse_writers, writer_findings
from redmeter.results import Loss, RecorderHealth
from redmeter.results.recorder import LOSS_REASONS
from redmeter.store import Store
from support.servers import Server
from support.stores import opened_store, read_writers
from support.waiting import eventually

NOW = 1_795_000_000.0
WRITERS, REPORTS, INSTANCES = (f"redmeter:{name}:" for name in ("writers", "reports", "instances"))


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    """A client that does not decode."""
    with server.client() as client:
        yield client


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    """An empty store."""
    store = stores.open(server.url)
    assert store is not None
    yield store
    store.close()


def health(**fields: Any) -> RecorderHealth:
    """Return what a recorder knows that has stored all it took in."""
    wanted: dict[str, Any] = {"producer": "a" * 32, "instance": None, "started": NOW - 900}
    wanted |= dict.fromkeys(("recorded", "stored", "batches"), 10)
    wanted |= dict.fromkeys(("buffered", "uncertain", "dropped", "overflowed", "series"), 0)
    wanted |= {"buffer_bytes": 0, "retried": 0, "last_flush": NOW - 1, "losses": ()}
    return RecorderHealth(**(wanted | {"troubles": {}, "last_trouble": ""} | fields))


def writer(host: str = "web-1", pid: str = "7", seen: float = NOW - 5, **fields: Any) -> Writer:
    """Return a writer that published what a recorder knows."""
    report = json.loads(json.dumps(health(**fields).as_dict() | {"host": host, "pid": pid}))
    return Writer("a" * 32, seen, None, report)


def judged(*found: Writer, unreadable: int = 0) -> list[Finding]:
    """Return what is said, after the line that says how many there are."""
    first, *others = writer_findings(NOW, found, unreadable)
    assert (first.level, first.fix) == ("ok", "")
    assert all(finding.level == "warn" for finding in others)
    assert all(finding.topic == "writers" for finding in (first, *others))
    return others


def counted(*found: Writer, unreadable: int = 0) -> str:
    """Return the line that says how many there are."""
    return next(writer_findings(NOW, found, unreadable)).text


# --- How many ------------------------------------------------------------------------------


def test_writers_are_counted_by_when_they_were_seen() -> None:
    """Within three minutes, and within a day; those that are well need no more words."""
    found = [writer(seen=NOW - ago) for ago in (0, 179, 180, 181, 80_000)]
    assert counted(*found) == "3 active within 3m, 5 within a day"
    assert counted(*found, unreadable=2) == "3 active within 3m, 7 within a day"
    assert judged(*found) == []


def test_no_writer_at_all_is_told() -> None:
    """Synchronous writers publish no report, so this is not a warning."""
    assert counted() == "none within a day (only buffered writers publish a report)"
    assert judged() == []


def test_more_writers_than_are_read_are_not_counted_as_if_they_were_all() -> None:
    """At a thousand there may be more."""
    assert counted(*[writer()] * 1000).endswith(", 1,000 or more within a day")


def test_reports_that_cannot_be_read_are_told() -> None:
    """How many, and what it may be."""
    (finding,) = judged(unreadable=2)
    assert finding.text == "reports that cannot be parsed: 2"
    assert "update this redmeter" in finding.fix


# --- What was lost -------------------------------------------------------------------------


def test_lost_events_are_summed_by_reason_and_precision() -> None:
    """Over writers and series; the one that lost most is named; the worst reason comes first."""
    losses = (
        Loss("aged", "a", 1, 5),
        Loss("aged", "b", 1, 4),
        Loss("aged", "b", 5, 9),
        Loss("aged", "b", 60, 1),
        Loss("overflow", "b", 0, 400),
        Loss("overflow", "b", 5, 400),
    )
    more = (Loss("aged", "a", 1, 100), Loss("aged", "a", 5, 100))
    second, first = judged(writer(losses=losses), writer("web-2", "8", losses=more), writer())
    assert first.text == (
        "events that arrived too late (aged) are missing: 109 in charts by 1s, 5s; "
        "1 in charts by 1m; all others and the grand totals have them; "
        "by 2 writers, most by web-2 pid 8"
    )
    assert "shorten outages of Redis" in first.fix
    assert second.text == (
        "events beyond the largest number (overflow) are missing: "
        "400 in charts by 5s; 400 in grand totals; by web-1 pid 7"
    )
    assert "count in larger units" in second.fix


def test_events_that_were_recorded_as_of_the_past_are_no_alarm(server: Server, client: Any) -> None:
    """Their program asked for it with at=; what only waited for too long is told."""
    with Meter(server.url, flush_interval=60) as meter:
        for minute in range(60):
            meter.count("orders", 2, at=time.time() - 60 * minute)
        assert meter.flush()
        assert meter.recorder_health().lost()["aged"][1] >= 100
    with opened_store(server.url) as store:
        assert examine(store).findings
        assert {f.level for f in examine(store).findings if f.topic == "writers"} == {"ok"}
    lost = {"lost": {"aged": {"1": 30}}, "host": "h", "pid": 7}
    for past, level in (({"1": 15}, {"ok"}), ({"1": 14}, {"ok", "warn"}), ({}, {"ok", "warn"})):
        report = Writer("p", NOW, None, {**lost, "past": past})
        assert {finding.level for finding in writer_findings(NOW, [report], 0)} == level


def test_each_reason_of_ours_says_which_events_are_missing_and_what_to_do() -> None:
    """In words, next to the reason's name in docs/faults.md."""
    for reason, known in LOSS_REASONS.items():
        (finding,) = judged(writer(losses=(Loss(reason, "a", 1, 3),)))
        assert finding.text.startswith(f"{known.events} ({reason}) are missing: 3 in charts by 1s;")
        assert finding.fix == known.fix


def test_many_precisions_and_reasons_are_cut_visibly() -> None:
    """Five of them, and how many more."""
    losses = [Loss("denied", "a", 60 * n, 3) for n in range(1, 9)]
    (finding,) = judged(writer(losses=tuple(losses)))
    assert "3 in charts by 1m, 2m, 3m, 4m, 5m … (3 more); all others" in finding.text
    losses = [Loss(f"reason-{n:02}", "a", 1, 100 - n) for n in range(12)]
    *five, rest = judged(writer(losses=tuple(losses)))
    assert [finding.text.partition(":")[0] for finding in five] == [
        f"events (reason-{n:02}) are missing" for n in range(5)
    ]
    assert rest.text == (
        "events are missing for other reasons: "
        "reason-05, reason-06, reason-07, reason-08, reason-09 … (2 more)"
    )
    assert rest.fix == five[0].fix == "the warnings in the writers' own logs have the details"


@pytest.mark.parametrize(
    ("field", "says", "fix"),
    [
        ("uncertain", "7 events have an unknown outcome", "maxmemory-policy noeviction"),
        ("dropped", "7 events were dropped", "have the reasons"),
        (
            "overflowed",
            '7 events are in series beyond a limit, labeled overflow="true" or named (other)',
            "out of labels",
        ),
    ],
)
def test_what_writers_count_as_one_number_is_summed(field: str, says: str, fix: str) -> None:
    """Each with what to do about it, also of writers that have ended."""
    old = writer("job", "9", seen=NOW - 70_000, **{field: 4})
    more: dict[str, Any] = {field: 3}
    (finding,) = judged(writer(**more), old, writer())
    assert finding.text.startswith(says)
    assert finding.text.endswith("; by 2 writers, most by job pid 9")
    assert fix in finding.fix


# --- Who is in trouble now -----------------------------------------------------------------

STUCK: dict[str, Any] = {
    "buffered": 1200,
    "last_trouble": "no answer from redis://a:1",
    "last_flush": NOW - 305,
}


def test_a_writer_that_cannot_store_is_told() -> None:
    """Who, since when, how much waits, and what it says."""
    (finding,) = judged(writer(**STUCK), writer())
    assert finding.text == (
        "web-1 pid 7 has not stored anything for 300 s and buffers 1,200 events: "
        "no answer from redis://a:1"
    )
    assert finding.fix == "fix this error: buffered events are lost when the process ends"
    (finding,) = judged(writer(**STUCK | {"last_flush": None}))
    assert "has not stored anything for 895 s" in finding.text, "since it started"


@pytest.mark.parametrize(
    "well",
    [
        {"buffered": 0},
        {"last_trouble": ""},
        {"last_flush": NOW - 65},
        {"last_flush": None, "started": NOW - 30},
        {"seen": NOW - 181},
    ],
    ids=str,
)
def test_trouble_that_is_over_is_not_told(well: dict[str, Any]) -> None:
    """Nothing waits, all is stored, or it was stored a moment ago; or nobody is there any more."""
    assert judged(writer(**STUCK | well)) == []


def test_of_many_in_trouble_those_with_most_events_are_shown() -> None:
    """Five of them, and how many more."""
    found = [writer(pid=str(n), **STUCK | {"buffered": n}) for n in range(1, 10)]
    *five, rest = judged(*found)
    assert [finding.text.split(" has ")[0] for finding in five] == [
        f"web-1 pid {n}" for n in (9, 8, 7, 6, 5)
    ]
    assert rest.text == "… (4 more that cannot store)"


def test_messages_that_are_grouped_in_several_ways_are_told() -> None:
    """By those that are alive; of those that do not say, nothing is known."""

    def grouping(version: object, seen: float = NOW - 5) -> Writer:
        told = writer(seen=seen)
        return replace(told, report={**told.report, "patterns": version})

    assert judged(grouping(1), grouping(1), writer(), grouping(2, NOW - 500), grouping("x")) == []
    (finding,) = judged(grouping(2), grouping(1), grouping(2))
    assert finding.text == "writers group messages by different versions of patterns: 1, 2"


def test_a_recorder_tells_by_which_version_it_groups(server: Server, client: Any) -> None:
    """With all else that it reports."""
    with Meter(server.url, flush_interval=0.05) as meter:
        meter.count("x")
        told = eventually(lambda: client.hvals(REPORTS), timeout=20, what="a report")
    assert json.loads(told[0])["patterns"] == PATTERN_VERSION


def test_texts_of_other_processes_are_inert_and_short() -> None:
    """No escape, no line end, no turning of the text, no page of it."""
    hostile = "\x1b[2J\n\u202e" + "x" * 500
    found = writer(hostile, hostile, **STUCK | {"last_trouble": hostile})
    for finding in judged(found, writer(losses=(Loss(hostile, "a", 1, 3),))):
        assert finding.text.replace("…", "").isascii()
        assert finding.text.isprintable()
        assert len(finding.text) < 600
    (finding,) = judged(Writer("b" * 32, NOW, None, STUCK))
    assert finding.text.startswith("producer bbbbbbbb… has not stored")


# --- Reports that are none -----------------------------------------------------------------

NONE = [
    *("", "x", "[1]", "1", "null", '"x"', "{", '{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}'),
    *('{"a": ' * 300 + "1" + "}" * 300, "[" * 100_000, '{"a": ' + "9" * 5000 + "}"),
    '{"a": "' + "x" * 70_000 + '"}',
    b"\xff\xfe{}",
]


@pytest.mark.parametrize("text", NONE, ids=range(len(NONE)))
def test_a_report_that_is_none_is_skipped_and_counted(
    store: Store, client: Any, text: str | bytes
) -> None:
    """The others are read all the same, and doctor says so."""
    client.zadd(WRITERS, {"bad": time.time(), "good": time.time()})
    client.hset(REPORTS, mapping={"bad": text, "good": '{"dropped": 2}'})
    assert [writer.producer for writer in read_writers(store)] == ["good"]
    texts = [finding.text for finding in examine(store).findings if finding.topic == "writers"]
    assert texts[0] == "1 active within 3m, 2 within a day"
    assert texts[-1] == "reports that cannot be parsed: 1"


def test_a_report_that_is_missing_is_counted_too(store: Store, client: Any) -> None:
    """And a number that is none is none."""
    client.zadd(WRITERS, {"bad": time.time(), "good": time.time(), b"\xff": time.time()})
    client.hset(REPORTS, mapping={"good": "{}", b"\xff": "{}"})
    client.hset(INSTANCES, mapping={"good": "9" * 5000, b"\xff": "-1"})
    assert {(w.producer, w.instance) for w in read_writers(store)} == {("good", None), ("�", None)}
    view, replies = store.read([("ZREVRANGE", WRITERS, "0", "-1", "WITHSCORES")])
    assert parse_writers(view.now, [replies[0], [], []]) == ([], 3)


@pytest.mark.parametrize("value", [-5, 0, 1.5, True, "5", None, [5], 2**63, 10**4299], ids=range(9))
def test_what_is_no_number_of_events_is_none(value: Any) -> None:
    """Nor one that no counter can hold, which would be too long to add up and print."""
    found = Writer("p", NOW, None, {"dropped": value, "lost": {"aged": {"1": value}}})
    assert (found.number("dropped"), found.lost()) == (0, {})
    assert judged(found) == []


@pytest.mark.parametrize("value", [True, "5", None, [5], 1e300, -(10**400)], ids=range(6))
def test_what_is_no_time_is_none(value: Any) -> None:
    """Nor one that is absurdly far away."""
    assert Writer("p", NOW, None, {"started": value}).moment("started") is None
    assert Writer("p", NOW, None, {"started": 12.5}).moment("started") == 12.5


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(sorted({*health().as_dict(), "host", "pid", "other"}))
lost = st.dictionaries(
    st.sampled_from(["aged", "x"]),
    values | st.dictionaries(st.sampled_from(["1", "0", "-1", "²", "9" * 11]), values),
)


@pytest.mark.slow
@given(st.lists(st.dictionaries(fields, values | lost), max_size=4))
def test_whatever_a_report_holds_it_is_judged(found: list[dict[str, Any]]) -> None:
    """Of any type, also where a number is expected: no error, and texts of one line."""
    writers = [Writer("p", NOW - 1, None, report) for report in found]
    for finding in writer_findings(NOW, writers, 0):
        assert finding.text.isprintable()


# --- Doctor --------------------------------------------------------------------------------


def test_doctor_knows_what_writers_told(store: Store, client: Any) -> None:
    """Published by one, examined by another."""
    report = json.dumps(health(dropped=3).as_dict() | {"host": "web-1", "pid": "7"})
    store.publish("a" * 32, report, instance=True, ended=False)
    found = examine(store)
    (one,) = found.writers
    assert (one.producer, one.instance, one.number("dropped")) == ("a" * 32, 0, 3)
    texts = [finding.text for finding in found.findings if finding.topic == "writers"]
    assert texts == [
        "1 active within 3m, 1 within a day",
        "3 events were dropped: no precision and no grand total has them; by web-1 pid 7",
    ]
    assert found.level == "warn"


def test_doctor_says_where_writers_cannot_be_read(
    store: Store, server: Server, client: Any
) -> None:
    """Somebody else's key, or missing rights; the rest is examined all the same."""
    client.set(WRITERS, "x")
    (finding,) = [f for f in examine(store).findings if f.topic == "writers"]
    assert finding.level == "warn"
    assert finding.text.startswith("redmeter:writers: and the keys of the reports cannot be read: ")
    assert "WRONGTYPE" in finding.text
    client.delete(WRITERS)
    client.execute_command("ACL", "SETUSER", "ada", "on", ">s", "~*", "+@all", "-zrevrange")
    limited = stores.open(server.url.replace("://", "://ada:s@"))
    assert limited is not None
    (finding,) = [f for f in examine(limited).findings if f.topic == "writers"]
    limited.close()
    assert "access denied" in finding.text


def test_loggers_with_too_many_patterns_are_named() -> None:
    """With severity and numbers, over all writers; the most messages first."""

    def crowded(coarse: object, other: object) -> Writer:
        each = writer()
        report = {**each.report, "coarse_messages": coarse, "other_messages": other}
        return replace(each, report=report)

    assert judged(crowded({}, {}), crowded("x", None)) == []
    pay, mail = judged(
        crowded({"shop.pay:error": 1200, "mail:info": 3}, {}),
        crowded({"shop.pay:error": 34}, {"shop.pay:error": 5}),
    )
    assert pay.level == "warn"
    assert pay.text == (
        "shop.pay, severity error, has too many patterns of messages: 1,234 are counted under "
        "coarse ones, 5 in (other), where new ones may be hidden"
    )
    assert mail.text == (
        "mail, severity info, has too many patterns of messages: 3 are counted under coarse ones, "
        "0 in (other)"
    )
    logs = {f"log{n}:info": n for n in range(1, 9)}
    *first, rest = judged(crowded(logs, {}))
    assert [finding.text.partition(",")[0] for finding in first] == [
        f"log{n}" for n in range(8, 3, -1)
    ]
    assert rest.text == "… (3 more loggers with too many patterns)"
