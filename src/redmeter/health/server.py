"""What each server of a store says of itself, and whether that is well.

There is one, or the masters of a cluster. What is well with all masters is told once; what is not,
by the name of the one that it is about.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redmeter.errors import StoreError, StoreRefused, StoreUnavailable
from redmeter.health import findings
from redmeter.health.findings import Finding
from redmeter.keys import Keys
from redmeter.store import Store
from redmeter.store.cluster import ClusterLink
from redmeter.store.replies import Reply, pairs, raised
from redmeter.store.retry import is_unanswered, unready_reason
from redmeter.store.topology import SlotRange, name_of, slot_of

#: What each is asked: what time it is, and what it says of itself, as far as it does.
QUESTIONS = ("TIME",), ("INFO",), ("CONFIG", "GET", "*")
#: Slots of a cluster.
SLOTS = 16384
#: How many times its fair share of the shards a master may have, and one.
UNEVEN = 1.5


@dataclass(slots=True)
class Server:
    """What one server says of itself."""

    #: Host and port of one of several; else "".
    name: str
    #: Its clock minus this machine's, seconds; 0 where the time that it took to ask explains it.
    difference: float
    info: dict[str, str]
    #: Its settings; none where it does not tell.
    config: dict[str, str] = field(default_factory=dict)

    @property
    def product(self) -> str:
        """Valkey, or Redis."""
        return "Valkey" if "valkey_version" in self.info else "Redis"

    @property
    def version(self) -> str:
        """Its version; "?" where it does not tell."""
        return self.info.get("valkey_version") or self.info.get("redis_version", "?")

    def findings(self, *, clustered: bool) -> Iterator[Finding]:
        """Judge it."""
        yield from findings.server(self.product, self.version, self.info, clustered=clustered)
        yield from findings.clock(self.difference)
        yield from findings.memory(self.info, self.config)
        yield from findings.persistence(self.info, self.config)
        yield from findings.listeners(self.info, self.config)
        if clustered and self.config.get("cluster-require-full-coverage") == "yes":
            text = "it stops as soon as a master without a successor is away"
            fix = "set cluster-require-full-coverage no: the others then go on"
            yield Finding("warn", "coverage", text, fix)


def ask_masters(store: Store) -> Mapping[str, Sequence[Reply]]:
    """Ask the masters of a cluster QUESTIONS, in one round trip.

    Raises:
        StoreError: none can be reached.
    """
    store.link.recover()  # who has which slots may have changed since it was asked
    return store.link.ask_servers(QUESTIONS)


class Servers:
    """All servers of a store.

    Args:
        asked: what each replied to QUESTIONS, by name.
        since: when they were asked, by this machine's clock.

    Raises:
        StoreError: none can be reached, or none lets us in.
    """

    def __init__(self, store: Store, asked: Mapping[str, Sequence[Reply]], since: float) -> None:
        until = store.clock.wall()
        self._servers: list[Server] = []
        #: Why those that are away are.
        self._away: dict[str, StoreUnavailable | StoreRefused] = {}
        for name, (time, info, config) in asked.items():
            if is_unanswered(info) or unready_reason(info):
                self._away[name] = info
                continue
            seconds, microseconds = raised(time)
            there = int(seconds) + int(microseconds) / 1e6
            # It answered at some time between: another one may have been waited for since.
            difference = there - min(max(there, since), until)
            self._servers.append(Server(name, difference, _info(raised(info)), _map(config)))
        if not self._servers:
            raise next(iter(self._away.values()))
        link = store.shards[0].link
        self._ranges = link.ranges() if isinstance(link, ClusterLink) else None
        self._keys = [shard.keys for shard in store.shards]

    @property
    def first(self) -> Server:
        """The one whose version is told."""
        return self._servers[0]

    def findings(self, *, replicas: bool) -> Iterator[Finding]:
        """Judge them.

        Args:
            replicas: whether readings ask replicas.
        """
        if self._ranges is None:
            yield from self.first.findings(clustered=False)
            if replicas:
                yield from findings.replicas(self.first.info)
            return
        yield from self._of_masters()
        for name, error in self._away.items():
            yield Finding(
                "fail",
                "cluster",
                f"{name} {_why(error)}: what lies there is missing here, and what is recorded for "
                "it waits in its writers",
                error.fix or "start it again, or give it a replica that takes its place",
            )
        yield from _of_shards(self._ranges, self._keys)
        yield from self._left_behind()
        if replicas and any(one.replicas for one in self._ranges):
            text = "readings ask a replica of each master, which may be some moments behind"
            yield Finding("ok", "replicas", text)

    def _left_behind(self) -> Iterator[Finding]:
        """Tell of replicas that the cluster knows, and their master does not."""
        listed = {name_of(s.primary): len(s.replicas) for s in self._ranges or ()}
        for server in self._servers:
            if "connected_slaves" not in server.info:  # it does not tell of any
                continue
            missing = listed.get(server.name, 0) - findings.followers(server.info)
            if missing > 0:
                text = f"{missing} of the replicas of {server.name} do not follow it: what they do "
                text += "not have is lost with their master"
                fix = "see their logs: perhaps masterauth is wrong, or they are just being filled"
                yield Finding("warn", "cluster", text, fix)

    def _of_masters(self) -> Iterator[Finding]:
        """Tell what is well with all of them, and what is not with some."""
        found = [
            (server.name, finding)
            for server in self._servers
            for finding in server.findings(clustered=True)
        ]
        well = Counter(finding.topic for _, finding in found if finding.level == "ok")
        for name, finding in found:
            if finding.level != "ok":
                yield replace(finding, text=f"{name}: {finding.text}")
            elif finding.topic in well:
                others = well.pop(finding.topic) - 1
                more = f" (and {others} more master{'s' * (others > 1)})" if others else ""
                yield replace(finding, text=f"{name}: {finding.text}{more}")


def _of_shards(ranges: list[SlotRange], keys: list[Keys]) -> Iterator[Finding]:
    """Judge how the slots, and so the shards, are shared."""
    masters = {one.primary: one for one in ranges}
    served = sum(one.last - one.first + 1 for one in ranges)
    if served < SLOTS:
        text = f"nobody serves {SLOTS - served:,} of {SLOTS:,} slots: what belongs there waits"
        fix = "valkey-cli --cluster fix, or start the masters that had them"
        yield Finding("fail", "cluster", text, fix)
    held = Counter(_master(ranges, slot_of(each.meta)) for each in keys)
    least, most = min(held[master] for master in masters), max(held[master] for master in masters)
    each = f"{least}" if least == most else f"{least} to {most}"
    text = f"{len(masters)} masters, {each} of {len(keys)} shards each"
    if most > UNEVEN * len(keys) / len(masters) + 1:
        fix = "move slots: valkey-cli --cluster rebalance"
        yield Finding("warn", "cluster", f"{text}: the fullest has far more than its share", fix)
    else:
        yield Finding("ok", "cluster", text)
    alone = [name_of(master) for master, one in masters.items() if not one.replicas]
    if alone:
        shown = ", ".join(alone[:3]) + (f" … ({len(alone) - 3} more)" if len(alone) > 3 else "")
        text = f"no replica of {shown}: what lies there is lost with it"
        yield Finding("warn", "cluster", text, "add one: valkey-cli --cluster add-node")


def _master(ranges: list[SlotRange], slot: int) -> tuple[str, int] | None:
    return next((s.primary for s in ranges if s.first <= slot <= s.last), None)


def _why(error: StoreUnavailable | StoreRefused) -> str:
    """Return what a server does that is away, shortly."""
    if isinstance(error, StoreUnavailable):
        return f"does not answer ({error.reason})"
    return unready_reason(error)


def _info(reply: bytes) -> dict[str, str]:
    lines = reply.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


def _map(reply: Reply) -> dict[str, str]:
    """Read the settings, which a server may refuse to tell."""
    if isinstance(reply, StoreError):
        return {}
    found: list[tuple[Any, Any]] = pairs(reply)
    return {key.decode(): value.decode(errors="replace") for key, value in found}
