"""examine(): each finding, provoked on a real server."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter import Meter
from redmeter import store as stores
from redmeter.clock import ManualClock
from redmeter.errors import AccessDenied, IncompatibleStore, StoreRefused, StoreUnavailable
from redmeter.health import contents, servers
from redmeter.health.check import Finding
from redmeter.health.doctor import Health, examine
from redmeter.store import Store
from redmeter.stored.exception import group_of
from support.servers import Server
from support.stores import opened_store
from support.waiting import eventually

#: The key of a KeyError that has no traceback.
EXCEPTION_KEY = f"redmeter:exception:{group_of(('KeyError',))}"


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    """A client that does not decode."""
    with server.client() as client:
        yield client


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    """A store in which one counter was counted."""
    with Meter(server.url, sync=True) as meter:
        meter.count("hits")
    store = stores.open(server.url)
    assert store is not None
    yield store
    store.close()


def found(health: Health, topic: str) -> list[Finding]:
    """Return the findings about something."""
    return [finding for finding in health.findings if finding.topic == topic]


def only(health: Health, topic: str) -> Finding:
    """Return the one finding about something."""
    (finding,) = found(health, topic)
    return finding


def test_a_well_kept_store_is_ok(store: Store, client: Any) -> None:
    """With an append-only file and no eviction there is nothing to do."""
    client.config_set("appendonly", "yes")
    # While it writes its first file, the server would not end when told to.
    eventually(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
    health = examine(store)
    assert health.level == "ok"
    assert all(not finding.fix for finding in health.findings)
    assert (health.series[60], health.producers, health.estimated) == (1, 1, False)
    assert all(health.bytes[what] for what in ("counters", "index", "totals"))
    assert only(health, "persistence").text == "append-only file"


def test_an_empty_store_says_how_to_fill_it(server: Server) -> None:
    """Before anything was counted, and nothing is written by looking."""
    store = stores.open(server.url)
    assert store is not None
    health = examine(store)
    fix = "count in your application, or read an access log: redmeter replay FILE"
    assert only(health, "counters").fix == fix
    assert set(health.bytes.values()) == {0}
    assert health.others == {"gauges": 0, "histograms": 0, "messages": 0, "exceptions": 0}
    with server.client() as client:
        assert client.dbsize() == 0
    store.close()


@pytest.mark.parametrize(
    ("policy", "limit", "level"),
    [
        ("allkeys-lru", "0", "warn"),
        ("allkeys-lru", "500mb", "fail"),
        ("allkeys-lfu", "500mb", "fail"),
        ("allkeys-random", "500mb", "fail"),
        ("volatile-lru", "500mb", "fail"),
        ("volatile-ttl", "500mb", "ok"),
        ("noeviction", "500mb", "ok"),
    ],
)
def test_eviction_that_takes_watermarks_fails_where_there_is_a_limit(
    store: Store, client: Any, policy: str, limit: str, level: str
) -> None:
    """Without maxmemory nothing is evicted yet: a warning, which says so."""
    client.config_set("maxmemory", limit)
    client.config_set("maxmemory-policy", policy)
    finding = only(examine(store), "memory")
    assert finding.level == level
    assert policy in finding.text
    assert ("set maxmemory-policy noeviction" in finding.fix) == (level != "ok")
    assert ("harmless while" in finding.fix) == (limit == "0")


def test_memory_that_is_nearly_used_up_is_a_warning(store: Store, client: Any) -> None:
    """Above nine tenths of maxmemory, on a server and to the byte."""
    client.setrange("ballast", 30_000_000, "x")  # beside which what a client takes is little
    client.config_set("maxmemory", int(client.info("memory")["used_memory"] / 0.95))
    first, second = found(examine(store), "memory")
    assert first.level == "ok"
    assert (second.level, second.fix) == ("warn", "raise maxmemory")
    told = {"maxmemory_policy": "noeviction", "maxmemory": "1000"}
    assert len(list(servers.memory_findings(told | {"used_memory": "900"}, {}))) == 1
    _, second = servers.memory_findings(told | {"used_memory": "911"}, {})
    assert second.text == "91% of maxmemory is used"


def test_memory_that_is_used_up_fails_where_nothing_is_evicted(store: Store, client: Any) -> None:
    """Then nothing is stored any more: what script looks at the exit code has to see it."""
    client.setrange("ballast", 30_000_000, "x")
    client.config_set("maxmemory", client.info("memory")["used_memory"] - 5_000_000)
    client.config_set("maxmemory-policy", "noeviction")
    with (
        pytest.raises(StoreRefused, match="out of memory"),
        Meter(store.location, sync=True) as meter,
    ):
        meter.count("hits")
    health = examine(store)
    assert health.level == "fail"
    _, finding = found(health, "memory")
    assert finding.text.endswith("of maxmemory is used: nothing can be stored")
    told = {"maxmemory_policy": "noeviction", "maxmemory": "1000", "used_memory": "1010"}
    _, finding = servers.memory_findings(told | {"mem_not_counted_for_evict": "11"}, {})
    assert finding.level == "warn"
    _, finding = servers.memory_findings(told | {"mem_not_counted_for_evict": "10"}, {})
    assert finding.level == "fail"


def test_too_few_replicas_fail_where_the_server_wants_some(any_server: Server) -> None:
    """Nothing is stored then; how many it wants it may not tell."""
    with opened_store(any_server.url) as store, any_server.client() as client:
        assert not found(examine(store), "replicas")
        client.config_set("min-replicas-to-write", 2)
        with pytest.raises(StoreRefused, match="NOREPLICAS"):
            store.load_config()
        (finding,) = found(examine(store), "replicas")
        assert finding.level == "fail"
        assert finding.text == (
            "nothing can be stored: 0 replicas keep up, min-replicas-to-write is 2"
        )
    (unknown,) = servers.listener_findings({"min_slaves_good_slaves": "0"}, {})
    assert unknown.text.endswith("min-replicas-to-write is more")
    assert not list(servers.listener_findings({"min_slaves_good_slaves": "1"}, {}))


@pytest.mark.parametrize(
    ("fixture", "setting"),
    [("server", "hash-max-listpack-entries"), ("redis62", "hash-max-ziplist-entries")],
)
def test_hashes_that_leave_the_compact_form_early_are_a_warning(
    request: pytest.FixtureRequest, fixture: str, setting: str
) -> None:
    """The fix names the setting as this server calls it."""
    server: Server = request.getfixturevalue(fixture)
    store = stores.open(server.url)
    assert store is not None
    with server.client() as client:
        assert len(found(examine(store), "memory")) == 1
        client.config_set(setting, 128)
        finding = found(examine(store), "memory")[1]
    store.close()
    assert finding.level == "warn"
    assert finding.text.endswith("only up to 128 fields")
    assert finding.fix.startswith(f"set {setting} 512")


def test_a_replica_fails(server: Server, redis62: Server) -> None:
    """Writing there is refused."""
    store = stores.open(redis62.url)
    assert store is not None
    with redis62.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", server.port)
        finding = only(examine(store), "server")
        client.execute_command("REPLICAOF", "NO", "ONE")
    store.close()
    assert finding == Finding(
        "fail", "server", f"Redis {redis62.version} is a replica", "connect to its primary"
    )


def test_no_persistence_is_a_warning_and_snapshots_are_not(store: Store, client: Any) -> None:
    """What a restart would lose."""
    finding = only(examine(store), "persistence")
    assert (finding.level, finding.fix) == ("warn", "set appendonly yes")
    client.config_set("save", "900 1")
    finding = only(examine(store), "persistence")
    assert (finding.level, finding.text.partition(";")[0]) == ("ok", "snapshots")


def test_entries_that_are_none_are_a_warning_and_shown_as_ascii(store: Store, client: Any) -> None:
    """At most three of them, inert."""
    names = ("60*60:a", "\x1b[31m", ":x", "nothing")
    client.zadd("redmeter:known:", dict.fromkeys(names, 0))
    finding = only(examine(store), "counters")
    assert finding.level == "warn"
    assert finding.text.startswith("4 of 11 index entries are malformed, e.g. '")
    assert finding.text.count("'") == 6
    assert finding.text.isprintable()


def test_keys_of_the_wrong_type_fail(store: Store, client: Any) -> None:
    """Another program uses what should be a counter."""
    client.set("redmeter:count:60:x", "1")
    client.zadd("redmeter:known:", {"60:x": 0})
    finding = only(examine(store), "counters")
    assert finding.level == "fail"
    assert finding.text == "1 of 8 counters are not hashes, e.g. '60:x'"
    assert "another prefix" in finding.fix


def test_an_index_of_the_wrong_type_fails_and_is_named(store: Store, client: Any) -> None:
    """Instead of an error that does not say which key."""
    client.delete("redmeter:known:")
    client.set("redmeter:known:", "1")
    health = examine(store)
    finding = only(health, "counters")
    assert finding.level == health.level == "fail"
    assert finding.text.startswith("redmeter:known: is a string, not a sorted set")
    client.delete("redmeter:known:", "redmeter:total:")
    client.lpush("redmeter:total:", "1")
    finding = found(examine(store), "counters")[0]
    assert finding.text.startswith("redmeter:total: is a list, not a hash")
    assert health.series[60] == 0


def test_gauges_histograms_and_messages_are_counted_and_measured(
    server: Server, client: Any
) -> None:
    """Also where there is no counter; their memory is estimated from a sample of each."""
    with Meter(server.url, flush_interval=60) as meter:
        for number in range(150):
            meter.observe("took", 1.5, labels={"route": f"/{number}"})
            meter.gauge("depth").set(number)
            meter.log(f"logger{number}", "text")
        meter.record_exception(KeyError("x"))
    store = stores.open(server.url)
    assert store is not None
    health = examine(store)
    store.close()
    assert not found(health, "counters")
    assert health.others == {
        "gauges": 7,
        "histograms": 450,
        "messages": 150,
        "exceptions": 1,
    }
    for what, keys in (
        ("histograms", ("hist", "moments")),
        ("gauges", ("gauge",)),
        ("messages", ("recent", "common", "patterns", "distinct", "messages")),
        ("exceptions", ("exception", "exceptions")),
    ):
        heads = tuple(f"redmeter:{key}:".encode() for key in keys)
        whole = sum(client.memory_usage(k) for k in client.keys("*") if k.startswith(heads))
        told = health.bytes[what]
        assert told is not None
        assert 0.8 * whole < told < 1.2 * whole + 40_000
    assert health.estimated


@pytest.mark.parametrize(
    ("topic", "key"),
    [
        ("histograms", "redmeter:hist:60:took"),
        ("histograms", "redmeter:moments:60:took"),
        ("gauges", "redmeter:gauge:60:depth"),
        ("messages", "redmeter:recent:app:info"),
        ("messages", "redmeter:common:app:info"),
        ("messages", "redmeter:patterns:app:info"),
        ("messages", "redmeter:steps:app:info"),
        ("messages", "redmeter:distinct:app"),
        ("histograms", "redmeter:hists:"),
        ("gauges", "redmeter:gauges:"),
        ("messages", "redmeter:messages:"),
        ("exceptions", "redmeter:exceptions:"),
        ("exceptions", EXCEPTION_KEY),
    ],
)
def test_what_is_no_histogram_gauge_or_message_fails_and_is_named(
    store: Store, client: Any, topic: str, key: str
) -> None:
    """Whatever another program has put in its place."""
    with Meter(store.location, sync=True) as meter:
        meter.observe("took", 1.5)
        meter.gauge("depth").set(1)
        meter.log("app", "text")
        meter.record_exception(KeyError("x"))
    assert examine(store).level != "fail"
    client.delete(key)
    client.set(key, "theirs")
    finding = only(examine(store), topic)
    assert finding.level == "fail"
    assert key in finding.text
    assert "another prefix" in finding.fix


def test_entries_of_other_indexes_that_are_none_are_a_warning(store: Store, client: Any) -> None:
    """As those of the counters' index are."""
    for index in ("gauges", "hists", "messages", "exceptions"):
        client.zadd(f"redmeter:{index}:", {"\x1b[31m": 0})
    for topic in ("gauges", "histograms", "messages", "exceptions"):
        finding = only(examine(store), topic)
        assert finding.level == "warn"
        assert finding.text == r"1 of 1 index entries are malformed, e.g. '\x1b[31m'"


def test_a_store_of_another_format_is_an_error(store: Store, client: Any) -> None:
    """Nothing in it can be judged."""
    client.hset("redmeter:meta:", "format", "99")
    with pytest.raises(IncompatibleStore):
        examine(store)


def test_counters_of_other_programs_want_a_cleaner(store: Store, client: Any) -> None:
    """Hashes without a time to live and entries without a hash, until a cleaner has come by."""
    client.zadd("redmeter:known:", {"60:endless": 0, "60:bare": 0})
    client.hset("redmeter:count:60:endless", str(int(time.time()) // 60 * 60), 1)
    health = examine(store)
    assert only(health, "counters").text.startswith("1 of 9 hashes have no time to live")
    cleaner = only(health, "cleaner")
    assert cleaner.level == "warn"
    assert cleaner.text == "has never run; 1 of 9 index entries belong to expired series"
    assert cleaner.fix.startswith("run one: redmeter up")
    client.hset("redmeter:cleaned:", "redmeter:", int(time.time()) - 300)
    assert only(examine(store), "cleaner").level == "ok"
    client.hset("redmeter:cleaned:", "redmeter:", int(time.time()) - 7200)
    cleaner = only(examine(store), "cleaner")
    assert (cleaner.level, cleaner.text[:28]) == ("warn", "last complete pass 2 h ago; ")
    client.hset("redmeter:cleaned:", "redmeter:", "yesterday")
    assert only(examine(store), "cleaner").text.startswith("has never run")


def test_a_cleaner_that_is_not_needed_so_far_is_no_warning(store: Store, client: Any) -> None:
    """And why it is not."""
    assert only(examine(store), "cleaner") == Finding(
        "ok", "cleaner", "has never run (not needed so far: hashes expire automatically)"
    )


def test_a_series_that_rests_wants_no_cleaner(store: Store, client: Any) -> None:
    """Its fine hashes have expired, and it uses their entries again; one that is gone wants one."""
    hashes = [key.decode() for key in client.scan_iter("redmeter:count:*:hits")]
    client.delete(*(key for key in hashes if ":86400:" not in key))
    assert only(examine(store), "cleaner") == Finding(
        "ok", "cleaner", "has never run (not needed so far: hashes expire automatically)"
    )
    client.delete(*hashes)
    assert only(examine(store), "cleaner").level == "warn"


def test_counters_without_prefix_beside_want_a_cleaner(store: Store, client: Any) -> None:
    """Until one has run, here or there."""
    client.zadd("known:", {"60:a": 0})
    cleaner = only(examine(store), "cleaner")
    assert cleaner.level == "warn"
    assert cleaner.text.startswith(
        "has never run; the counters without prefix on this server do not"
    )
    fix = "run one: redmeter up, or redmeter clean from cron; for those without prefix, with "
    assert cleaner.fix == fix + '--prefix ""'
    client.hset("redmeter:bare:cleaned:", "", int(time.time()))
    assert only(examine(store), "cleaner").level == "ok"
    client.delete("redmeter:bare:cleaned:")
    client.hset("redmeter:cleaned:", "redmeter:", int(time.time()))
    assert only(examine(store), "cleaner").level == "ok"


def test_a_store_without_prefix_beside_is_told(store: Store, client: Any) -> None:
    """Counters of the listings, or of redmeter.book; and ours, seen from there."""
    client.zadd("known:", {"60:a": 0, "60:b": 0})
    finding = only(examine(store), "other store")
    assert finding.level == "ok"
    assert finding.text.startswith("2 index entries without prefix")
    assert '--prefix ""' in finding.fix
    bare = stores.open(store.location, prefix="")
    assert bare is not None
    assert only(examine(bare), "other store").text == "7 index entries under redmeter:"
    bare.close()


@pytest.mark.parametrize(
    ("ahead", "level"), [(0.0, "ok"), (10.0, "warn"), (-10.0, "warn"), (90.0, "fail")]
)
def test_a_clock_difference_is_told(server: Server, ahead: float, level: str) -> None:
    """Above two seconds a warning, above a minute slices are wrong."""
    store = stores.open(server.url, clock=ManualClock(time.time() + ahead))
    assert store is not None
    health = examine(store)
    store.close()
    assert only(health, "clock").level == level
    assert abs(health.clock_difference + ahead) < 1.5
    assert ("NTP" in only(health, "clock").fix) == (level != "ok")


def test_a_server_that_forbids_config_is_examined_all_the_same(
    server: Server, store: Store, client: Any
) -> None:
    """As managed services do: what is not told is not judged, and no failure is made up."""
    forbidden = ("-config", "-memory", "-type")
    client.execute_command("ACL", "SETUSER", "ada", "on", ">s", "~*", "+@all", *forbidden)
    limited = stores.open(server.url.replace("://", "://ada:s@"))
    assert limited is not None
    health = examine(limited)
    limited.close()
    assert health.level == "ok"
    assert "this server does not report" in only(health, "persistence").text
    assert set(health.bytes.values()) == {None}
    assert health.series[60] == 1


def test_a_store_that_cannot_be_reached_is_an_error(server: Server, client: Any) -> None:
    """As is one that does not let us in."""
    store = stores.open(server.url.replace("://", "://nobody:s@"), timeout=0.5)
    assert store is not None
    with pytest.raises(AccessDenied):
        examine(store)
    server.kill()
    with pytest.raises(StoreUnavailable):
        examine(store)
    store.close()


def test_many_counters_are_estimated_from_a_sample(store: Store, client: Any) -> None:
    """Within a tenth where they are alike; the time does not grow with them."""
    pipe = client.pipeline(transaction=False)
    now = int(time.time()) // 60 * 60
    for number in range(1000):
        name = f"60:name-{number:04}"
        pipe.zadd("redmeter:known:", {name: 0})
        pipe.hset(f"redmeter:count:{name}", mapping={str(now - 60 * n): n for n in range(20)})
        pipe.memory_usage(f"redmeter:count:{name}")
    sizes = sum(pipe.execute()[2::3])
    health = examine(store)
    assert health.estimated
    counted = health.bytes["counters"]
    assert counted is not None
    assert sizes * 0.9 < counted < sizes * 1.1
    assert health.series[60] == 1001


@pytest.mark.parametrize(
    ("product", "version", "level"),
    [
        ("Redis", "6.2.14", "ok"),
        ("Redis", "6.0.20", "fail"),
        ("Redis", "8.2.3", "ok"),
        ("Valkey", "7.2.4", "ok"),
        ("Valkey", "7.0.0", "fail"),
        ("Valkey", "?", "fail"),
    ],
)
def test_a_server_that_is_too_old_fails(product: str, version: str, level: str) -> None:
    """Older than what is supported."""
    (finding,) = servers.server_findings(product, version, {})
    assert finding.level == level


@pytest.mark.parametrize(
    ("info", "text"),
    [
        ({"aof_enabled": "1", "aof_last_write_status": "err"}, "the last AOF write failed"),
        ({"rdb_last_bgsave_status": "err"}, "the last snapshot failed"),
    ],
)
def test_failed_writes_to_disk_fail(info: dict[str, str], text: str) -> None:
    """What a full disk looks like from here."""
    (finding,) = servers.persistence_findings(info, {"save": "60 1"})
    assert (finding.level, finding.text) == ("fail", text)


def test_an_untold_policy_is_a_warning() -> None:
    """It is not judged as if it were fine."""
    (finding,) = servers.memory_findings({}, {})
    assert finding.level == "warn"


@pytest.mark.parametrize("text", ["9" * 5000, "9" * 300, "²", "-1", ""])
def test_a_cleaner_that_tells_no_time_is_none(store: Store, client: Any, text: str) -> None:
    """Another program may write there; nobody has cleaned then, as far as it is known."""
    client.hset(store.keys.cleaned, store.keys.prefix, text)
    found = examine(store)
    assert found.cleaned is None
    assert found.findings


def test_a_lost_meta_key_is_told() -> None:
    """Counters without what says how long they are kept."""
    (finding,) = contents.counters("redmeter:", "", contents.IndexSample(count=5, size=5))
    assert (finding.level, finding.fix) == ("warn", "the next write restores it")
