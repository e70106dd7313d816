"""The users that docs/stored-format.md makes, read from its lines, and what each of them is for.

A `Use` is one thing that a user does. It raises where something of it is denied: also where a
reading would do without, or a writer would go on. What it compares with, it asks over the server's
unix socket, so that `monitored` sees the user's own commands over TCP.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import redis

from redmeter import Meter, book
from redmeter import store as stores
from redmeter.alerting.evaluator import Evaluator
from redmeter.alerting.notifiers import NotDelivered
from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.store import AlertStore, Silence
from redmeter.dashboard import Dashboard
from redmeter.health import doctor
from redmeter.ingest.replay import replay
from redmeter.maintenance import cleaning, forgetting
from redmeter.stored.exception import MAX_GROUPS, Occurrences, exception_operations
from redmeter.stored.keys import HOUR, slice_start
from redmeter.stored.message import LogHour, PatternHour, message_operations
from support.asking import asking
from support.servers import Server
from support.stores import measure, opened_store

DOC = Path(__file__).parents[2] / "docs" / "stored-format.md"
_LINE = "ACL SETUSER "
#: Findings that are about the server's own settings.
SETTINGS = ("memory", "persistence")
#: Two writers.
ADA, BOB = "a" * 32, "b" * 32


class User(NamedTuple):
    """A user of the docs.

    Attributes:
        name: without `metrics-`.
        keys: `~PATTERN` each.
        commands: `+COMMAND` each.
    """

    name: str
    password: str
    keys: tuple[str, ...]
    commands: tuple[str, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """What it may: keys and commands."""
        return (*self.keys, *self.commands)

    def without(self, rule: str) -> "User":
        """Return the user with one rule less."""
        return self._replace(
            keys=tuple(key for key in self.keys if key != rule),
            commands=tuple(command for command in self.commands if command != rule),
        )

    def bare(self) -> "User":
        """Return the user with the keys of an empty prefix."""
        return self._replace(keys=BARE)

    def let_in(self, admin: Any) -> None:
        """Make it on a server, with these rights alone."""
        made = ("ACL", "SETUSER", f"metrics-{self.name}", "reset", "on", f">{self.password}")
        admin.execute_command(*made, *self.rules)

    def url(self, server: Server) -> str:
        """Return the address with which it gets in."""
        return f"redis://metrics-{self.name}:{self.password}@127.0.0.1:{server.port}/0"

    def store(self, server: Server) -> stores.Store:
        """Return the store as it sees it."""
        store = stores.open(self.url(server))
        assert store is not None
        return store


def _users() -> Iterator[User]:
    for line in DOC.read_text(encoding="utf-8").splitlines():
        if line.startswith(_LINE):
            name, state, password, *rules = line.removeprefix(_LINE).split()
            assert (state, password[0]) == ("on", ">"), line
            keys = tuple(rule for rule in rules if rule[0] == "~")
            commands = tuple(rule for rule in rules if rule[0] == "+")
            assert (*keys, *commands) == tuple(rules), line
            yield User(name.removeprefix("metrics-"), password[1:], keys, commands)


def _bare_keys() -> tuple[str, ...]:
    found = re.search(r"With an empty prefix the keys are `(.*?)`", DOC.read_text(encoding="utf-8"))
    assert found
    return tuple(found[1].split())


BARE = _bare_keys()
#: By name: writer, reader …
USERS = {user.name: user for user in _users()}
#: Who asks sentinels: a user of theirs, not of the server.
SENTINEL_USER = USERS.pop("sentinel")


@dataclass(frozen=True)
class Use:
    """Something that a user does.

    Attributes:
        run: does it, and raises where anything is denied.
        changes: whether it needs a server as new before each time.
        prepare: what is there before, made by a client that may do everything.
        bare: with an empty prefix, and its keys.
    """

    name: str
    run: Callable[[Server, User], object]
    changes: bool = False
    prepare: Callable[[Server, Any], object] = lambda server, _: fill(server)
    bare: bool = False


def fill(server: Server) -> None:
    """Store something of each kind, labelled and not, and two writers."""
    with Meter(server.url, sync=True) as meter:
        for status in ("2xx", "5xx"):
            labels = {"method": "GET", "route": "/cart", "status": status}
            meter.count("http_requests", 3, labels=labels)
        for value in (0.01, 0.4):
            timed = {"method": "GET", "route": "/cart"}
            meter.observe("http_request_seconds", value, labels=timed)
        for ago in range(12):
            meter.count("hits", at=time.time() - 5 * ago)
        meter.count("hits", labels={"plan": "pro"})
        meter.observe("cart_value", 12.5)
        meter.gauge("queue_length").set(7.5)
        meter.log("shop", "paid %s", 12)
        meter.mark("v1")
        meter.record_exception(KeyError("x"), route="/cart")
    with opened_store(server.url) as store:
        for producer in (ADA, BOB):
            store.publish(producer, "{}", instance=True, ended=False)
        cleaning.clean(store)


# --- The writer ----------------------------------------------------------------------------


def _nothing(_: Server, __: Any) -> None:
    pass


def _old(_: Server, admin: Any) -> None:
    """Messages of two hours ago, and writers of whom nothing was heard since."""
    started = slice_start(time.time(), HOUR) - 2 * HOUR
    admin.zadd("redmeter:common:app:info", {"old": 1})
    admin.set("redmeter:common:app:info:start", started)
    admin.zadd("redmeter:writers:", {"gone": 1000})
    admin.hset("redmeter:instances:", mapping={"gone": 0, "dead": 1})


def _count(server: Server, user: User) -> None:
    now = time.time()
    with Meter(user.url(server), retention={1: 3, 60: 120}, sync=True) as meter:
        for ago in range(-3, 8):
            meter.count("hits", at=now - ago)
        meter.count("hits", labels={"plan": "pro"})
    with Meter(user.url(server)) as meter:
        meter.count("hits")
        assert meter.flush()
        told = meter.recorder_health()
        assert (told.stored, told.troubles) == (1, {})


def _gauge(server: Server, user: User) -> None:
    store = user.store(server)
    for ago in (2, 1, 0):
        assert not measure(store, {"queue": 1.0}, time.time() - ago).rejections
    store.close()


def _observe(server: Server, user: User) -> None:
    now = time.time()
    with Meter(user.url(server), sync=True) as meter:
        for ago in (2 * HOUR, 0, HOUR):
            meter.observe("took", 1.5, at=now - ago)


def _mark(server: Server, user: User) -> None:
    with Meter(user.url(server), sync=True) as meter:
        for ago in (HOUR, 0):
            meter.mark("v1", at=time.time() - ago)


def _except(server: Server, user: User) -> None:
    """One group too many, of which one was silent for long."""
    store = user.store(server)
    now = time.time()
    for times, first in ((MAX_GROUPS, now - 86400), (1, now)):
        groups = {
            f"{number:015x}{times % 2}": Occurrences(1, first, first, None, {}, {})
            for number in range(times)
        }
        found = {slice_start(first, 300): groups}
        outcome = store.shard("").write(
            lambda _, f=found: exception_operations(store.keys, f, 300)  # type: ignore[misc]
        )
        assert not outcome.rejections
    store.close()


def _log(server: Server, user: User) -> None:
    """With so many patterns that some are forgotten, in an hour that takes the place of another."""
    store = user.store(server)
    for at in (time.time(), time.time() - HOUR):
        hour = LogHour(100)
        for n in range(1600):
            hour.add(f"p{n} at {at}", PatternHour(1, at, at, ""))
        hour.add_texts([(at, "text")])
        messages = {"app:info": {slice_start(at, HOUR): hour}}
        outcome = store.shard("").write(lambda _, m=messages: message_operations(store.keys, m))  # type: ignore[misc]
        assert not outcome.rejections
    store.close()


def _publish(server: Server, user: User) -> None:
    store = user.store(server)
    for ended in (False, True):
        store.publish(ADA, "{}", instance=True, ended=ended)
    store.close()


def _retain(server: Server, user: User) -> None:
    store = user.store(server)
    assert store.change_retention([(60, 60)])[60] == 60
    store.close()


def _replay(server: Server, user: User) -> None:
    store = user.store(server)
    report = replay(
        store, [[f'{{"time": {time.time()}, "path": "/", "method": "GET", "status": 200}}']]
    )
    assert (report.requests, report.stored) == (1, 2)
    store.close()


def _book_write(server: Server, user: User) -> None:
    with server.client(username=f"metrics-{user.name}", password=user.password) as client:
        book.update_counter(client, "hits")
        book.update_stats(client, "cart", "value", 42.5)
        with book.access_time(client, "/cart"):
            pass
        book.log_recent(client, "worker", "started")
        book.log_common(client, "worker", "retrying")


WRITER = (
    *(Use("count", _count, True, _nothing), Use("gauge", _gauge, True, _nothing)),
    *(Use("observe", _observe, True, _nothing), Use("mark", _mark, True, _nothing)),
    Use("exceptions", _except, True, _nothing),
    *(Use("log", _log, True, _old), Use("publish", _publish, True, _old)),
    *(Use("retention", _retain, True, _nothing), Use("replay", _replay, True, _nothing)),
    Use("book", _book_write, True, _nothing, bare=True),
)

# --- Readers -------------------------------------------------------------------------------


def _question(ask: Callable[[Meter], object]) -> Callable[[Server, User], object]:
    def run(server: Server, user: User) -> None:
        with Meter(user.url(server)) as meter:
            assert ask(meter)

    return run


def _expected(meter: Meter) -> object:
    return meter.forecast("hits", precision=60, ahead=3)


#: What a Meter is asked; each has an answer that is not empty.
QUESTIONS: dict[str, Callable[[Meter], object]] = {
    "total": lambda meter: meter.total("hits") > meter.total("hits", exact=True) == 12,
    "names": lambda meter: [meter.names(kind=k) for k in ("counter", "gauge", "histogram")],
    "series": lambda meter: meter.series("hits", precision=60).total,
    "gauge": lambda meter: meter.gauge_series("queue_length", precision=60).values,
    "summary": lambda meter: meter.summary("http_request_seconds", precision=60).count,
    "statistics": lambda meter: meter.statistics("cart_value").this,
    "marks": lambda meter: meter.marks(),
    "recent": lambda meter: meter.log_messages("shop"),
    "exceptions": lambda meter: meter.exception(meter.exceptions().groups[0].id),
    "common": lambda meter: meter.log_frequencies("shop"),
    "loggers": lambda meter: meter.loggers(),
    "changes": lambda meter: meter.log_changes(),
    "forecast": _expected,
    "top": lambda meter: len(meter.top("hits", by="plan", precision=60)) == 2,
    "status": lambda meter: meter.status().sentence,
    "top-p95": lambda meter: meter.top("cart_value", precision=3600, order="p95"),
}


def _book_read(server: Server, user: User) -> None:
    with server.client(username=f"metrics-{user.name}", password=user.password) as client:
        assert [count for _, count in book.get_counter(client, "hits", 3600)] == [1]
        assert book.get_stats(client, "cart", "value")["average"] == 42.5


def _by_book(server: Server, admin: Any) -> None:
    book.update_counter(admin, "hits")
    book.update_stats(admin, "cart", "value", 42.5)


READER = (
    *(Use(name, _question(ask)) for name, ask in QUESTIONS.items()),
    Use("book", _book_read, True, _by_book, bare=True),
)


def _odd(server: Server, admin: Any) -> None:
    """Something to tell next to what is well: a hash that stays for ever, and one that is none."""
    fill(server)
    admin.zadd("redmeter:known:", {"60:endless": 0, "60:wrong": 0})
    admin.hset("redmeter:count:60:endless", "60", 1)
    admin.set("redmeter:count:60:wrong", "x")


def _health(server: Server, user: User) -> None:
    found, whole = (_got(url, ["/api/doctor"])[0] for url in (user.url(server), server.unix_url))
    for name in ("bytes", "others", "series", "writers", "cleaner"):
        assert found[name] == whole[name], name
    levels = [{(f["topic"], f["level"]) for f in one["findings"]} for one in (found, whole)]
    assert {some for some in levels[0] ^ levels[1] if some[0] not in SETTINGS} == set()


def _got(url: str, paths: Sequence[str]) -> list[dict[str, Any]]:
    dashboard = Dashboard(url, access="open")
    found = []
    try:
        with asking(dashboard) as client:
            for path in paths:
                answer = client.get(path)
                assert answer.status_code == 200, (path, answer.text)
                found.append(answer.json())
    finally:
        dashboard.close()
    return found


def page_uses(asked: Sequence[str]) -> tuple[Use, ...]:
    """Return the uses of a page: all questions of its API, and its health in an odd store."""
    paths = [path for path in asked if path != "/api/doctor"] + ["/api/top?name=hits&by=plan"]
    tops = [path for path in paths if path.startswith("/api/top")]

    def ask(server: Server, user: User) -> None:
        found = dict(zip(paths, _got(user.url(server), paths), strict=True))
        for path, whole in zip(tops, _got(server.unix_url, tops), strict=True):
            assert found[path]["rows"] == whole["rows"], path

    return Use("page", ask), Use("health", _health, True, _odd)


def told(found: doctor.Health) -> dict[str, object]:
    """Return what the doctor says, but for places, clocks and the server's own settings."""
    names = ("series", "others", "bytes", "cleaned", "producers", "writers")
    findings = [(f.topic, f.level) for f in found.findings if f.topic not in SETTINGS]
    return {name: getattr(found, name) for name in names} | {"findings": findings}


def _examine(server: Server, user: User) -> None:
    with opened_store(user.url(server)) as store, opened_store(server.unix_url) as admin:
        seen, whole = (told(doctor.examine(each)) for each in (store, admin))
        assert seen == whole


DOCTOR = (Use("doctor", _examine, True, _odd),)

# --- The cleaner ---------------------------------------------------------------------------


def _dirt(server: Server, admin: Any) -> None:
    """Old slices, a whole counter, a bare entry, hashes that are large; and a bit of each kind."""
    fill(server)
    admin.delete("redmeter:cleaned:")
    now = int(time.time()) // 60 * 60
    entries = ["60:old", "60:bare", "60:large", "60:gone", "60:short"]
    admin.zadd("redmeter:known:", dict.fromkeys(entries, 0))
    admin.hset("redmeter:count:60:old", mapping={str(at): 1 for at in range(0, 6000, 60)})
    admin.hset("redmeter:count:60:large", mapping={str(now - 60 * at): 1 for at in range(1200)})
    admin.expire("redmeter:count:60:large", 9000)
    admin.hset("redmeter:count:60:gone", mapping={str(60 * at): 1 for at in range(600)})
    admin.hset("redmeter:count:60:short", mapping={str(now): 1, "60": 1})
    admin.expire("redmeter:count:60:short", 100)


def _clean(server: Server, user: User) -> None:
    store = user.store(server)
    report = cleaning.clean(store, progress=lambda *_: None)
    assert (report.strange, report.complete) == ([], True)
    assert (report.entries_removed, report.compacted) == (3, 1)
    with redis.Redis.from_url(server.unix_url) as admin:
        assert admin.ttl("redmeter:count:60:short") > 7000
        assert admin.hexists("redmeter:cleaned:", "redmeter:")
    store.close()


def _forget(server: Server, user: User) -> None:
    store = user.store(server)
    for name in ("hits", "cart_value", "queue_length"):
        assert forgetting.forget(store, name)
    assert not forgetting.forget(store, 'hits{b="1",a="2"}')  # spelled so by others, or by nobody
    assert forgetting.forget_logger(store, "shop")
    assert forgetting.forget_mark(store, "v1")
    with server.client() as admin:
        (group,) = admin.zrange("redmeter:exceptions:", 0, -1)
    assert forgetting.forget_exception(store, bytes(group).decode())
    store.close()


CLEANER = (Use("clean", _clean, True, _dirt), Use("forget", _forget, True))
#: What `redmeter up` does next to the page.
KEEPER = (Use("clean", _clean, True, _dirt),)


ALL_CONDITIONS = """
[[alert]]
name = "rate"
when = "threshold"
metric = "hits"
above = 0
window = "1m"
notify = ["log"]
[[alert]]
name = "slow"
when = "threshold"
metric = "cart_value"
value = "p95"
above = 1
[[alert]]
name = "queue"
when = "threshold"
metric = "queue_length"
value = "max"
above = 100
[[alert]]
name = "usual"
when = "expected"
metric = "hits"
precision = 5
[[alert]]
name = "patterns"
when = "new_pattern"
[[alert]]
name = "shop"
when = "new_pattern"
logger = "shop"
[[alert]]
name = "exceptions"
when = "new_exception"
[[alert]]
name = "deploy"
when = "verdict"
[notify.log]
type = "command"
command = ["true"]
"""


def evaluate(url: str) -> None:
    """Evaluate alerts of each condition, with a receiver that fails once."""
    rules = parse_rules(ALL_CONDITIONS)
    refusals = ["HTTP status 503"]

    def deliver(*_: object) -> tuple[()]:
        if refusals:
            raise NotDelivered(refusals.pop())
        return ()

    with opened_store(url) as store:
        alerts = AlertStore(store)
        alerts.silence(Silence("x", "none", time.time() + 60))
        assert alerts.unsilence("x")
        evaluator = Evaluator(store, rules, deliver=deliver)
        assert evaluator.cycle().evaluated == len(rules.alerts)
        removed = Evaluator(store, parse_rules(""), deliver=deliver)
        evaluator.run(lambda _: True)
        assert removed.cycle().leading
        alerts.transitions()


#: What `redmeter alerts` does.
ALERTS = (Use("evaluate", lambda server, user: evaluate(user.url(server)), True),)
