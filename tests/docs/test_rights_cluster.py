"""The users of docs/stored-format.md on a cluster: what they need besides, and it is enough."""

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dashboard.test_api import ASKED
from docs.test_rights import ASKED_ANYWAY
from redmeter import AccessDenied, Meter
from redmeter import store as stores
from redmeter.dashboard import Dashboard
from redmeter.health import doctor
from redmeter.maintenance import cleaning, forgetting
from redmeter.store import Store
from redmeter.stored.keys import entry
from support import rights
from support.asking import asking
from support.clusters import Cluster
from support.progress import slot_of
from support.rights import ADA, QUESTIONS, USERS, User
from support.waiting import eventually

pytestmark = pytest.mark.slow

#: What each needs beside its line, and who needs something of his own.
MORE = ("+cluster|slots", "+asking")
OF_ROLE = {
    "reader": ("+evalsha", "+zscore"),
    "page": ("+evalsha", "+zscore"),
    "up": ("+zscore",),
    "doctor": ("+randomkey",),
}
FOR_REPLICAS = ("+readonly", "+role", "+cluster|nodes")


def on_cluster(role: str) -> User:
    """Return a user with the rights that the page gives it on a cluster."""
    user = USERS[role]
    keys = tuple(key.replace("~redmeter:", "~redmeter:{*}") for key in user.keys)
    return user._replace(keys=keys, commands=(*user.commands, *MORE, *OF_ROLE.get(role, ())))


def let_in(cluster: Cluster, user: User) -> str:
    """Make a user on all nodes; return the address with which it gets in."""
    for node in cluster.nodes:
        user.let_in(node.client)
        node.ask("ACL", "LOG", "RESET")
    return cluster.url.replace("://", f"://metrics-{user.name}:{user.password}@")


@pytest.fixture
def guarded(any_cluster: Cluster) -> Iterator[Cluster]:
    """A cluster on which users are made; they are gone afterwards."""
    yield any_cluster
    for node in any_cluster.nodes:
        for role in USERS:
            node.ask("ACL", "DELUSER", f"metrics-{role}")


def opened(url: str, **options: Any) -> Store:
    """Open a store."""
    store = stores.open(url, **options)
    assert store is not None
    return store


def write(url: str) -> None:
    """Record something of each kind, at once and buffered; tell of oneself; change what is kept."""
    with Meter(url, sync=True) as meter:
        for number in range(20):
            meter.count(f"hits{number}", at=time.time() - number)
        meter.count("hits", labels={"plan": "pro"})
        meter.gauge("queue").set(2)
        meter.observe("took", 1.5)
        meter.log("shop", "paid %s", 12)
        meter.mark("v1")
    with Meter(url) as meter:
        meter.count("hits")
        assert meter.flush()
        assert (meter.recorder_health().stored, meter.recorder_health().troubles) == (1, {})
    store = opened(url)
    for ended in (False, True):
        store.publish(ADA, "{}", instance=True, ended=ended)
    assert store.change_retention([(60, 60)])[60] == 60
    store.close()


def read(url: str) -> None:
    """Ask all that a Meter is asked."""
    with Meter(url) as meter:
        for question, ask in QUESTIONS.items():
            assert ask(meter), question


def look(url: str) -> None:
    """Ask all that the page asks."""
    dashboard = Dashboard(url, access="open")
    with asking(dashboard) as client:
        for path in ASKED:
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
            assert answer.json()["missing"] == []
    dashboard.close()


def passes(url: str) -> None:
    """Clean what is old."""
    store = opened(url)
    report = cleaning.clean(store)
    assert (report.hashes_removed, report.compacted, report.complete) == (30, 1, True)
    store.close()


def forget(url: str) -> None:
    """Remove a series, a logger, a mark."""
    store = opened(url)
    assert forgetting.forget(store, "hits")
    assert forgetting.forget_logger(store, "shop")
    assert forgetting.forget_mark(store, "v1")
    store.close()


def examine(url: str) -> None:
    """Find out how the store is, as who may do everything does."""
    store, admin = opened(url), opened(re.sub(r"://.*@", "://", url))

    def told(one: Store) -> dict[str, object]:
        found = rights.told(doctor.examine(one))
        assert isinstance(found["bytes"], dict)
        return found | {"bytes": {kind: size > 0 for kind, size in found["bytes"].items()}}

    # A replica may just be coming back.
    eventually(lambda: told(store) == told(admin), 10.0)
    store.close()
    admin.close()


USES: dict[str, tuple[Callable[[str], None], ...]] = {
    "writer": (write,),
    "reader": (read,),
    "page": (look,),
    "cleaner": (passes, forget),
    "up": (passes, look),
    "doctor": (examine,),
    "alerts": (rights.evaluate,),
}


def fill(cluster: Cluster) -> None:
    """Store something of each kind, and leave what a cleaner has to do."""
    rights.fill(cluster)  # type: ignore[arg-type]  # of which it needs the address alone
    store, now = opened(cluster.url), int(time.time()) // 60 * 60
    for number in range(30):
        keys = store.shard(f"old{number}").keys
        store.ask([("ZADD", keys.known, "0", entry(60, f"old{number}"))])
        store.ask([("HSET", keys.count(60, f"old{number}"), "60", "1")])
    keys = store.shard("large").keys
    some = [text for at in range(1200) for text in (str(now - 60 * at), "1")]
    store.ask([("ZADD", keys.known, "0", "60:large"), ("HSET", keys.count(60, "large"), *some)])
    store.ask([("EXPIRE", keys.count(60, "large"), "9000")])
    store.close()


def test_the_page_tells_what_is_needed_besides() -> None:
    """In these words."""
    text = " ".join(rights.DOC.read_text(encoding="utf-8").split())
    assert "write `~redmeter:{*}` in place of `~redmeter:`" in text
    for right in (*MORE, *FOR_REPLICAS, *OF_ROLE["page"], *OF_ROLE["doctor"]):
        assert f"`{right}`" in text
    assert set(USES) == set(USERS)


@pytest.mark.parametrize("role", USES)
def test_the_rights_are_enough_on_a_cluster(role: str, guarded: Cluster) -> None:
    """Each user can do what it is there for, and no node has denied anything on the way."""
    fill(guarded)
    url = let_in(guarded, on_cluster(role))
    for use in USES[role]:
        use(url)
    denied = {one["object"] for node in guarded.nodes for one in node.client.acl_log()}
    assert denied <= ASKED_ANYWAY


def test_what_is_needed_besides_is_missed(guarded: Cluster) -> None:
    """Who has which slots; a key in a slot that moves; replicas; a script that is known."""
    fill(guarded)
    reader = on_cluster("reader")
    with pytest.raises(AccessDenied, match="cluster"):
        read(let_in(guarded, reader.without("+cluster|slots")))
    with pytest.raises(AssertionError, match="store-denied"):
        look(let_in(guarded, on_cluster("page").without("+evalsha")))
    url = let_in(guarded, reader)

    def is_denied() -> bool:
        """By a replica; one that is slow or behind for a moment is not asked."""
        with contextlib.closing(opened(url, read_from="replica")) as store:
            try:
                store.reader.read()
            except AccessDenied as error:
                return "readonly" in str(error)
            return False

    eventually(is_denied, 20.0, "a replica was asked")
    store = opened(url, read_from="replica")
    let_in(guarded, reader._replace(commands=(*reader.commands, *FOR_REPLICAS)))
    assert store.reader.read()
    denied = {one["object"] for node in guarded.nodes for one in node.client.acl_log()}
    assert denied <= ASKED_ANYWAY
    part = store.shard("hits")
    slot = slot_of(store.shard_number("hits"))
    to = guarded.other_than(guarded.node_of(slot))
    guarded.open_slot(slot, to)
    guarded.move_keys(slot, to)
    asked = ("HMGET", part.keys.total, "hits")
    let_in(guarded, reader.without("+asking"))
    (refused,) = store.link.exchange([asked])
    assert isinstance(refused, AccessDenied)
    assert "asking" in str(refused)
    let_in(guarded, reader)
    assert store.link.exchange([asked]) == [[b"12"]]
    guarded.close_slot(slot, to)
    store.close()
