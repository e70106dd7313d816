"""What is asked of a store on a cluster is answered as on one server, in as many round trips."""

import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.conftest import HOSTILE
from dashboard.test_api import ASKED
from redmeter import IncompatibleStore, Meter, StoreRefused
from redmeter.clock import ManualClock
from redmeter.dashboard.api import endpoints as api
from redmeter.dashboard.api.endpoints import ENDPOINTS
from redmeter.dashboard.api.parameters import parse_query
from redmeter.dashboard.api.serialize import as_json
from redmeter.health.doctor import examine
from redmeter.reading.join import Ask, Joined, join, join_of_newest, of_field, of_window
from redmeter.reading.names import read_names
from redmeter.reading.page.overview import Watch
from redmeter.reading.samples import read_series, read_totals
from redmeter.reading.windows import whole_window
from redmeter.store import Store, indexes
from redmeter.store.fan_out import FanOut
from redmeter.store.query import Read, ShardedRead
from redmeter.store.scripts import JOIN
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import Command, Reply, scored
from redmeter.stored.keys import entry
from redmeter.stored.shards import SHARDS, ShardedKeys, shard_of
from redmeter.types import Window
from support.clusters import Cluster, Clusters
from support.fleet import Fleet
from support.rights import QUESTIONS
from support.stores import opened_store


@dataclass
class Twins:
    """The same stored twice."""

    cluster: Cluster
    alone: Store
    spread: Store
    now: float

    def clients(self) -> list[Any]:
        """Return a client of each master."""
        return [node.client for node in self.cluster.masters()]


def fill(url: str, now: float) -> None:
    """Store a web application's figures, many label sets, many loggers, hostile texts."""
    with Meter(url, sync=True, clock=ManualClock(now)) as meter:
        for number in range(12):
            route = f"/page{number}"
            for status in ("2xx", "4xx", "5xx"):
                labels = {"method": "GET", "route": route, "status": status}
                for ago in (0, 70, 4000):
                    meter.count("http_requests", number + 1, labels=labels, at=now - ago)
            timed = {"method": "GET", "route": route}
            for value in (0.01, 0.02 * number, 0.4):
                meter.observe("http_request_seconds", value, labels=timed)
        for ago in range(0, 600, 20):
            meter.count("hits", 1 + ago % 7, at=now - ago)
        for number in range(150):
            meter.count("jobs", number, labels={"queue": f"q{number}"})
        for text in HOSTILE:
            meter.count("hostile", labels={"text": text})
            meter.log("shop", f"cannot do {text}", severity="error")
        for number in range(120):
            meter.log(f"app.worker{number}", f"job {number} is late", severity="warning")
        meter.log("shop", "paid %s", 12)
        for ago in (20, 10, 0):
            meter.gauge("queue_length").set(7.5 + ago)
            meter.observe("cart_value", 12.5 + ago)
            meter.mark(f"v{ago}", at=now - 90 * ago)
        meter.record_exception(LookupError("no card"))


@pytest.fixture(scope="module")
def twins(fleet: Fleet, clusters: Clusters) -> Iterator[Twins]:
    """A store on one server and one on a cluster, with the same in both; nobody changes it."""
    server, cluster, now = fleet.get("valkey-9.1"), clusters.get("valkey-9.1"), time.time()
    for url in (server.url, cluster.url):
        fill(url, now)
    with opened_store(server.url) as alone, opened_store(cluster.url) as spread:
        yield Twins(cluster, alone, spread, now)


def same(one: Any, other: Any) -> bool:
    """Whether two answers are the same; some numbers grow with the time of day."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return bool(other == pytest.approx(one, rel=1e-3, abs=1e-6))
    return bool(one == other)


def without_rates(answer: Any) -> Any:
    """Return an answer without what happened per second."""
    if isinstance(answer, dict):
        return {key: without_rates(answer[key]) for key in answer if key != "per_second"}
    return [without_rates(each) for each in answer] if isinstance(answer, list) else answer


def check_same(ask: Any, twins: Twins) -> None:
    """Check that both answer the same, whichever slice began meanwhile."""
    for _ in range(30):  # on a busy machine a second may begin in most of them
        before, answer, after = ask(twins.alone), ask(twins.spread), ask(twins.alone)
        if same(before, answer) or same(after, answer):
            return
    assert answer == after


# --- All that is read ----------------------------------------------------------------------


@pytest.mark.parametrize("url", [url for url in ASKED if not url.startswith("/api/doctor")])
def test_what_the_page_asks_is_answered_alike(url: str, twins: Twins) -> None:
    """All its questions: overview, lists, rankings, summaries, messages, marks, forecasts."""
    path, _, query = url.partition("?")
    (endpoint,) = (one for one in ENDPOINTS if one.path == path)
    if query == "precision=1":  # "until now" is another second in each answer of a busy machine
        query += f"&since={twins.now - 60}&until={twins.now}"

    def ask(store: Store) -> Any:
        answer = api.API(store).answer(endpoint, parse_query(endpoint, query.encode()))
        found = json.loads(as_json(answer))
        found.pop("now")
        if path == "/api/overview":
            found["store"].pop("location")
            found["store"].pop("version")
            # Up to this very moment; how many there were is compared.
            found = without_rates(found)
            found["numbers"]["hits"].pop("value")
        return found

    check_same(ask, twins)


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_a_meter_is_asked_is_answered_alike(question: str, twins: Twins) -> None:
    """Totals, names, series, gauges, summaries, statistics, marks, messages, rankings."""
    wanted: Any = {
        "names": lambda m: [m.names(kind=k) for k in ("counter", "gauge", "histogram")],
        "total": lambda m: [m.total(name) for name in ("hits", "nothing", 'jobs{queue="q7"}')],
        "top-p95": lambda m: m.top("http_request_seconds", by="route", precision=60, order="p95"),
        "top": lambda m: m.top("jobs", by="queue", precision=60, limit=200),
        "exceptions": lambda m: m.exception(m.exceptions(last="90d").groups[0].id, last="90d"),
        "changes": lambda m: (m.log_changes(), m.log_changes().sources, m.log_changes().compared),
    }.get(question, QUESTIONS[question])

    def ask(store: Store) -> Any:
        with Meter(store.location) as meter:
            return wanted(meter)

    check_same(ask, twins)


def test_a_hundred_thousand_names_are_asked_at_once(twins: Twins) -> None:
    """Of each what its shard has."""
    names = [f'jobs{{queue="q{number}"}}' for number in range(100_000)]
    random.Random(1).shuffle(names)
    (found,) = twins.spread.ask([indexes.grand_totals(twins.spread.keys, names)])
    assert {name: int(count) for name, count in zip(names, found, strict=True) if count} == {
        f'jobs{{queue="q{number}"}}': number for number in range(150)
    }


# --- Each rule -----------------------------------------------------------------------------

#: Names in no order, that begin alike or not; so many that a list of them is cut.
NAMES = [f"{word}{number}" for word in ("a", "b", "ba") for number in range(300)]
#: Names of one shard, where nobody expects so many.
CROWD = list(itertools.islice((f"c{n}" for n in itertools.count() if shard_of(f"c{n}") == 5), 400))


@pytest.fixture(scope="module")
def raw(twins: Twins) -> Iterator[Twins]:
    """Indexes, totals and hashes under another prefix, as they lie in either layout."""
    with (
        opened_store(twins.alone.location, prefix="raw:") as alone,
        opened_store(twins.spread.location, prefix="raw:") as spread,
    ):
        fill_raw(alone, spread)
        yield Twins(twins.cluster, alone, spread, twins.now)


def fill_raw(alone: Store, spread: Store) -> None:
    """Write by the keys, without a recorder."""
    commands: dict[Store, list[Command]] = {alone: [], spread: []}
    for store, some in commands.items():
        for number, name in enumerate((*NAMES, *CROWD)):
            member, keys = entry(60, name), store.shard(name).keys
            some.append(("ZADD", keys.known, "0", member))
            some.append(("HSET", keys.total, name, str(number)))
            some.append(("HSET", keys.count(60, name), "60", str(number)))
            some.append(("ZADD", keys.messages, str(number // 3), name))
    for store, some in commands.items():
        assert not [r for r in store.shard("").link.collect(some) if isinstance(r, Exception)]


def asked(twins: Twins, make: Any) -> tuple[Reply, Reply]:
    """Return what either replies to a read, which is made for its keys."""
    alone, spread = (
        store.link.exchange([make(store.keys)])[0] for store in (twins.alone, twins.spread)
    )
    return alone, spread


@pytest.mark.parametrize(
    "make",
    [
        lambda keys: indexes.size(keys, keys.known),
        lambda keys: indexes.size(keys, keys.gauges),
        lambda keys: indexes.size_between(keys, keys.known, "[60:b", "(60:c"),
        lambda keys: indexes.score(keys, keys.known, "60:b17"),
        lambda keys: indexes.score(keys, keys.known, b"60:b17"),
        lambda keys: indexes.score(keys, keys.known, "60:none"),
        lambda keys: indexes.grand_total(keys, "ba299"),
        lambda keys: indexes.grand_total(keys, b"ba299"),
        lambda keys: indexes.grand_total(keys, "none"),
        lambda keys: indexes.grand_totals(keys, [*NAMES, "none", *CROWD, NAMES[0]]),
        lambda keys: ("HGETALL", keys.count(60, "b17")),
        lambda keys: indexes.members(keys, keys.known, "[60:b17", "[60:b17", count=1),
        lambda keys: indexes.members(keys, keys.known, b"[60:none", b"[60:none", count=1),
    ],
)
def test_a_reply_is_that_of_one_server(make: Any, raw: Twins) -> None:
    """Sums, single members and fields, many fields of all shards."""
    alone, spread = asked(raw, make)
    assert alone == spread


@pytest.mark.parametrize("limit", [(0, 1), (0, 7), (3, 100), (250, 400), (0, 5000), (1290, 50)])
@pytest.mark.parametrize("ends", [("-", "+"), ("[60:b", "(60:c"), ("[60:c", "(60:d"), ("(", "(")])
def test_a_list_is_in_order_and_cut_where_one_server_cuts_it(
    ends: tuple[str, str], limit: tuple[int, int], raw: Twins
) -> None:
    """Also where all of its names lie in one shard, which is then asked again."""
    offset, count = limit
    alone, spread = asked(
        raw, lambda k: indexes.members(k, k.known, *ends, count=count, offset=offset)
    )
    assert alone == spread


@pytest.mark.parametrize("count", [1, 11, 300, 5001])
def test_the_newest_are_in_order_with_ties_as_one_server_has_them(count: int, raw: Twins) -> None:
    """Three members of each score."""
    alone, spread = asked(raw, lambda k: indexes.newest_members(k, k.messages, count))
    assert scored(alone) == scored(spread)


@pytest.mark.parametrize(
    ("ends", "offset", "count"),
    [
        (("[60:b17", "[60:b17"), 0, 1),
        (("[60:none", "[60:none"), 0, 1),
        (("-", "+"), 0, 100),
        ((b"[60:c", b"(60:d"), 0, 300),
        (("-", "+"), 1100, 60),
        (("-", "+"), 1100, 1),
        (("-", "+"), 5000, 60),
    ],
)
def test_a_join_is_that_of_one_server(ends: Any, offset: int, count: int, raw: Twins) -> None:
    """Members in their order, each with what its keys hold and its grand total."""

    def make(keys: Any) -> Read:
        asks = [Ask("HGETALL", keys.key("count") + "60:"), of_field(keys.total)]
        return join(keys, keys.known, ends, len("60:"), asks, count=count, offset=offset)

    alone, spread = (Joined(reply, 2) for reply in asked(raw, make))
    assert spread.members == alone.members
    assert list(spread.readable()) == list(alone.readable())
    assert abs(spread.now - alone.now) < 60


@pytest.mark.parametrize("count", [1, 100, 5001])
def test_a_join_of_the_newest_is_that_of_one_server(count: int, raw: Twins) -> None:
    """No others, and in their order, whichever shards have them."""

    def make(keys: Any) -> Read:
        asks = [Ask("HGETALL", keys.key("count") + "60:"), of_field(keys.total)]
        return join_of_newest(keys, keys.messages, count, asks)

    alone, spread = (Joined(reply, 2) for reply in asked(raw, make))
    assert spread.members == alone.members
    assert list(spread.readable()) == list(alone.readable())


def test_a_sample_has_some_of_all_and_sizes_are_added(raw: Twins) -> None:
    """About as many as are asked for, none twice; the index takes memory in each shard."""
    _, drawn = asked(raw, lambda keys: indexes.sample(keys, keys.known, 200))
    assert 200 <= len(drawn) == len(set(drawn)) <= 200 + SHARDS
    assert {member.decode() for member in drawn} <= {entry(60, n) for n in (*NAMES, *CROWD)}
    sizes = asked(raw, lambda keys: indexes.memory_usage(keys, keys.known))
    assert all(size > 10_000 for size in sizes)


def test_what_a_store_keeps_is_what_was_chosen_last(raw: Twins) -> None:
    """What somebody chose is above what a shard began with, however late that was."""
    store = raw.spread
    meta = {"format": "1", "partitions": "64", "retention": "60=10", "version": "1000000000000"}
    commands: list[Command] = []
    for number, part in enumerate(store.shards[:4]):
        version = str(1_000_000_000_000 + (2, 1, 3, 6)[number])
        own = dict(meta, retention=f"60={number + 10}", version=version)
        commands.append(("HSET", part.keys.meta, *itertools.chain(*own.items())))
    store.link.collect(commands)
    try:
        view, _ = store.read()
        assert (view.version, view.retention[60]) == ("1000000000003", 12)
    finally:
        store.link.collect([("DEL", part.keys.meta) for part in store.shards])


# --- Lists, whatever lies where ------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 63), st.integers(0, 500)), max_size=300, unique_by=lambda t: t[1]
    ),
    st.integers(1, 300),
    st.booleans(),
)
def test_a_cut_list_is_the_same_wherever_its_members_lie(
    members: list[tuple[int, int]], most: int, newest: bool
) -> None:
    """In two exchanges at most, and no shard is asked twice that had told all."""
    lying: dict[int, list[int]] = {part: [] for part in range(SHARDS)}
    for part, member in sorted(members, key=lambda one: one[1], reverse=newest):
        lying[part].append(member)
    steps = indexes.merge_members(
        range(SHARDS), most, lambda *which: which, lambda r: [(m,) for m in r], newest=newest
    )
    wanted: Any = next(steps)
    exchanges = 0
    while True:
        exchanges += 1
        try:
            wanted = steps.send([lying[part][:number] for part, number in wanted])
        except StopIteration as end:
            found = [member for (member,) in end.value]
            break
    assert found == sorted((m for _, m in members), reverse=newest)[:most]
    assert exchanges <= 2


def test_names_that_are_spread_by_chance_are_listed_in_one_exchange() -> None:
    """A share is large enough for that."""
    keys, lying = ShardedKeys("raw:"), [list[bytes]() for _ in range(SHARDS)]
    for number in range(5_000):
        name = f"name{number}"
        lying[shard_of(name)].append(entry(60, name).encode())
    for some in lying:
        some.sort()
    for count in (1, 10, 50, 100, 1_000, 10_001):
        read = indexes.members(keys, keys.known, "-", "+", count=count)
        assert isinstance(read, ShardedRead)
        steps = read.start()
        commands: Any = next(steps)
        assert len(commands) == SHARDS
        with pytest.raises(StopIteration) as end:
            steps.send([lying[part][: int(command[6])] for part, command in enumerate(commands)])
        assert end.value.value == sorted(itertools.chain(*lying))[:count]


# --- Errors --------------------------------------------------------------------------------


def test_an_index_that_is_another_programs_in_one_shard_is_said(twins: Twins) -> None:
    """As where there is one server: which key it is; panels are empty, and the rest is shown."""
    with opened_store(twins.spread.location, prefix="wrong:") as store:
        key = store.shards[40].keys.known
        with Meter(store.location, prefix="wrong:", sync=True) as meter:
            meter.count("hits", labels={"n": "1"})
            meter.log("shop", "paid")
        store.link.exchange([("DEL", key), ("SET", key, "a text")])
        with pytest.raises(StoreRefused) as raised:
            read_names(store)
        _, (counted,) = store.read([indexes.size(store.keys, store.keys.known)])
        for error in (raised.value, counted):
            assert (error.code, error.key) == ("WRONGTYPE", key)
        seen = Watch(store).look(60)[1]
        assert (seen.counters.rows, seen.messages.sources) == ([], 1)
        (finding,) = [one for one in examine(store).findings if one.topic == "counters"]
        assert finding.text == f"{key} is a string, not a sorted set: another program uses it"


def test_the_doctor_looks_at_what_each_shard_says_of_itself(twins: Twins) -> None:
    """One that another program has spoiled stores nothing, and the others do not know."""

    def told() -> list[str]:
        found = examine(store).findings
        return [f"{one.topic}: {one.text}" for one in found if one.level == "fail"]

    with opened_store(twins.spread.location, prefix="spoiled:") as store:
        assert told() == []
        with Meter(store.location, prefix="spoiled:", sync=True) as meter:
            meter.count("hits")
        assert told() == []
        keys, more = store.shard("hits").keys, store.shards[40].keys
        store.link.exchange([("HSET", keys.meta, "format", "2", "version", "0")])
        (text,) = told()
        assert text.startswith(f"cluster: 1 of 64 shards store nothing, {keys.meta}: the store")
        with (
            Meter(store.location, prefix="spoiled:", sync=True) as meter,
            pytest.raises(IncompatibleStore),
        ):
            meter.count("hits")
        store.link.exchange([("DEL", more.meta), ("SET", more.meta, "a text")])
        store.link.exchange([("DEL", keys.meta)])
        (text,) = told()
        assert f"{more.meta}: " in text
        assert "WRONGTYPE" in text
        store.link.exchange([("DEL", more.meta), ("DEL", keys.total)])
        store.link.exchange([("SET", keys.total, "a text"), ("SET", more.total, "another")])
        first = min(keys.total, more.total, key=[part.keys.total for part in store.shards].index)
        text = f"{first} is a string, not a hash (and 1 more shard): another program uses it"
        assert told() == [f"counters: {text}"]


# --- Round trips ---------------------------------------------------------------------------


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many exchanges each server had."""
    seen: Counter[str] = Counter()
    whole = ServerLink.exchange

    def counted(self: ServerLink, *args: Any, **options: Any) -> Any:
        seen[self.location] += 1
        return whole(self, *args, **options)

    monkeypatch.setattr(ServerLink, "exchange", counted)
    return seen


#: What is asked -> how often that asks each master, as it asks one server.
#: What is asked, in how many round trips, and of how many masters.
TRIPS: dict[str, tuple[Any, int, int]] = {
    "the first page": (lambda store: Watch(store).look(60)[1], 2, 3),
    "50 series": (
        lambda store: read_series(store, [f'jobs{{queue="q{n}"}}' for n in range(50)], Window(60)),
        *(1, 3),
    ),
    "names": (read_names, 1, 3),
    "totals": (lambda store: read_totals(store, ["hits", 'jobs{queue="q7"}']), 1, 2),
}


@pytest.mark.parametrize("question", TRIPS)
def test_each_master_is_asked_once_where_one_server_would_be(
    question: str, twins: Twins, trips: Counter[str]
) -> None:
    """However many shards it has; and what it executes is told by itself."""
    ask, times, masters = TRIPS[question]
    ask(twins.alone)  # which learns what is kept
    ask(twins.spread)  # likewise, which scripts there are, and who has which slots
    trips.clear()
    ask(twins.alone)
    assert list(trips.values()) == [times]
    trips.clear()
    before = [int(client.info("stats")["total_connections_received"]) for client in twins.clients()]
    ask(twins.spread)
    assert list(trips.values()) == [times] * masters
    after = [int(client.info("stats")["total_connections_received"]) for client in twins.clients()]
    assert before == after


def test_a_script_that_was_forgotten_is_sent_again(twins: Twins) -> None:
    """By each master that lacks it; what was asked is answered all the same."""
    for client in twins.clients()[:2]:
        client.script_flush()
    window = whole_window(twins.spread.seen.series, 60)
    keys = twins.spread.keys
    asks = [of_window(keys.key("count"), window)]
    ends = "[60:jobs{", "(60:jobs|"
    (reply,) = twins.spread.ask([join(keys, keys.known, ends, 3, asks, count=1000)])
    assert len(Joined(reply, 1).members) == 150
    assert JOIN.command(["k"], [])[0] == "EVALSHA"
    for client in twins.clients():
        assert client.script_exists(JOIN.command(["k"], [])[1]) == [True]


def test_far_down_a_list_only_its_names_are_passed_over(
    raw: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies before is not looked at: else one page would cost as much as all before it."""
    seen: list[Command] = []
    assert isinstance(raw.spread.link, FanOut)
    collect = raw.spread.link.cluster.collect

    def noted(some: Sequence[Command], **options: Any) -> list[Reply]:
        seen.extend(some)
        return collect(some, **options)

    monkeypatch.setattr(raw.spread.link.cluster, "collect", noted)
    keys = raw.spread.keys
    for offset in (indexes.SKIPPED, indexes.SKIPPED + 1):
        seen.clear()
        asks = [of_field(keys.total)]
        (reply,) = raw.spread.ask(
            [join(keys, keys.known, ("-", "+"), 3, asks, count=20, offset=offset)]
        )
        assert len(Joined(reply, 1).members) == 20
        counts = {int(str(command[10])) for command in seen if command[0] == "EVALSHA"}
        assert (max(counts) > 30) is (offset == indexes.SKIPPED), counts
