"""The servers of a store: their replies to INFO and CONFIG, and the findings about them.

There is one server, or the primaries of a cluster. A check that passes on all primaries is reported
once; a problem is reported with the name of its primary.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from redmeter.errors import StoreError, StoreRefused, StoreUnavailable
from redmeter.health.check import DoctorCheck, Finding, listed
from redmeter.health.server import OtherKeys, ServerState, followers, replicas
from redmeter.store import Store
from redmeter.store.query import Query
from redmeter.store.servers.cluster import ClusterLink
from redmeter.store.servers.replies import Command, Reply, pairs, raised
from redmeter.store.servers.retry import is_unanswered, unready_reason
from redmeter.store.servers.topology import SlotRange, name_of, slot_of
from redmeter.stored.keys import Keys

_STATE = ("TIME",), ("INFO",), ("CONFIG", "GET", "*")
#: The commands for one server: its state, and a sample of its keys.
COMMANDS: Sequence[Command] = (*_STATE, ("SCAN", "0", "COUNT", "1000"))
#: The commands for each primary of a cluster.
CLUSTER_COMMANDS: Sequence[Command] = (*_STATE, *[("RANDOMKEY",)] * 500)
#: Slots of a cluster.
CLUSTER_SLOTS = 16384
#: A primary may have this many times its fair share of the shards, plus one.
UNEVEN = 1.5


class StoreServers:
    """All servers of a store.

    Args:
        replies: the replies of each server to COMMANDS or CLUSTER_COMMANDS, by name.
        since: when they were sent, by this machine's clock.

    Raises:
        StoreError: none is reachable, or all deny access.
    """

    def __init__(self, store: Store, replies: Mapping[str, Sequence[Reply]], since: float) -> None:
        until = store.clock.wall()
        self._servers: list[ServerState] = []
        #: The errors of unreachable servers.
        self._unreachable: dict[str, StoreUnavailable | StoreRefused] = {}
        for name, (time, info, config, *drawn) in replies.items():
            if is_unanswered(info) or unready_reason(info):
                self._unreachable[name] = info
                continue
            seconds, microseconds = raised(time)
            time_there = int(seconds) + int(microseconds) / 1e6
            # It replied at some time in between: the request may have waited for another server.
            difference = time_there - min(max(time_there, since), until)
            self._servers.append(
                ServerState(name, difference, _info(raised(info)), _map(config), drawn)
            )
        if not self._servers:
            raise next(iter(self._unreachable.values()))
        link = store.shards[0].link
        self._ranges = link.ranges() if isinstance(link, ClusterLink) else None
        self._keys = [shard.keys for shard in store.shards]
        others = {each.name: each.other_keys(store.keys, link.database) for each in self._servers}
        #: The keys in their databases that are not the store's.
        self.other_keys = OtherKeys(
            sum(each.count for each in others.values()),
            any(each.estimated for each in others.values()),
            tuple(name for name, each in others.items() if name and each.count),
        )

    @property
    def first(self) -> ServerState:
        """The server whose version is reported."""
        return self._servers[0]

    def findings(self, *, from_replicas: bool) -> Iterator[Finding]:
        """Yield the findings about them.

        Args:
            from_replicas: whether reads use replicas.
        """
        if self._ranges is None:
            yield from self.first.findings(clustered=False)
            if from_replicas:
                yield from replicas(self.first.info)
            return
        yield from self._of_primaries()
        for name, error in self._unreachable.items():
            yield Finding(
                "fail",
                "cluster",
                f"{name} {_why(error)}: its data is missing here, and writers buffer its events",
                error.fix or "restart it, or promote a replica",
            )
        yield from _of_shards(self._ranges, self._keys)
        yield from self._detached_replicas()
        if from_replicas and any(one.replicas for one in self._ranges):
            text = "reads use a replica of each primary, which may be slightly behind"
            yield Finding("ok", "replicas", text)

    def _detached_replicas(self) -> Iterator[Finding]:
        """Report replicas that the cluster knows and their primary does not."""
        listed = {name_of(s.primary): len(s.replicas) for s in self._ranges or ()}
        for server in self._servers:
            if "connected_slaves" not in server.info:  # it reports none
                continue
            missing = listed.get(server.name, 0) - followers(server.info)
            if missing > 0:
                text = f"{missing} of the replicas of {server.name} do not follow it: data that "
                text += "they lack is lost with their primary"
                fix = "see their logs: perhaps masterauth is wrong, or they are still synchronizing"
                yield Finding("warn", "cluster", text, fix)

    def _of_primaries(self) -> Iterator[Finding]:
        """Yield each passed check once, and each problem with the name of its primary."""
        named = [
            (server.name, finding)
            for server in self._servers
            for finding in server.findings(clustered=True)
        ]
        passed = Counter(finding.topic for _, finding in named if finding.level == "ok")
        for name, finding in named:
            if finding.level != "ok":
                yield replace(finding, text=f"{name}: {finding.text}")
            elif finding.topic in passed:
                others = passed.pop(finding.topic) - 1
                primaries = "primaries" if others > 1 else "primary"
                more = f" (and {others} more {primaries})" if others else ""
                yield replace(finding, text=f"{name}: {finding.text}{more}")


def _of_shards(ranges: list[SlotRange], keys: list[Keys]) -> Iterator[Finding]:
    primaries = {one.primary: one for one in ranges}
    served = sum(one.last - one.first + 1 for one in ranges)
    if served < CLUSTER_SLOTS:
        free = f"{CLUSTER_SLOTS - served:,} of {CLUSTER_SLOTS:,} slots are not served"
        fix = "valkey-cli --cluster fix, or start the primaries that had them"
        yield Finding("fail", "cluster", f"{free}: writers buffer their events", fix)
    held = Counter(_primary(ranges, slot_of(each.meta)) for each in keys)
    least, most = min(held[one] for one in primaries), max(held[one] for one in primaries)
    each = f"{least}" if least == most else f"{least} to {most}"
    many = "primary" if len(primaries) == 1 else "primaries"
    text = f"{len(primaries)} {many}, {each} of {len(keys)} shards each"
    if most > UNEVEN * len(keys) / len(primaries) + 1:
        fix = "move slots: valkey-cli --cluster rebalance"
        yield Finding("warn", "cluster", f"{text}: the largest has far more than its share", fix)
    else:
        yield Finding("ok", "cluster", text)
    alone = [name_of(primary) for primary, one in primaries.items() if not one.replicas]
    if alone:
        text = f"{listed(alone)} has no replica: its data is lost with it"
        yield Finding("warn", "cluster", text, "add one: valkey-cli --cluster add-node")


def _primary(ranges: list[SlotRange], slot: int) -> tuple[str, int] | None:
    return next((s.primary for s in ranges if s.first <= slot <= s.last), None)


def _why(error: StoreUnavailable | StoreRefused) -> str:
    """Return why a server is unreachable, as the predicate of a sentence."""
    if isinstance(error, StoreUnavailable):
        return f"does not answer ({error.reason})"
    return unready_reason(error)


def _info(reply: bytes) -> dict[str, str]:
    lines = reply.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


def _map(reply: Reply) -> dict[str, str]:
    """Parse the settings, which a server may refuse to report."""
    if isinstance(reply, StoreError):
        return {}
    settings: list[tuple[Any, Any]] = pairs(reply)
    return {key.decode(): value.decode(errors="replace") for key, value in settings}


def _read_servers(store: Store) -> Query[StoreServers]:
    """Read the state of each server; on a cluster in a round trip of its own."""
    since = store.clock.wall()
    if len(store.shards) > 1:
        store.link.recover()  # slots may have moved since
        replies: Mapping[str, Sequence[Reply]] = store.link.ask_servers(CLUSTER_COMMANDS)
    else:
        _, found = yield COMMANDS
        replies = {"": found}
    return StoreServers(store, replies, since)


SERVERS = DoctorCheck(
    _read_servers, lambda servers, seen: servers.findings(from_replicas=seen.replicas)
)
