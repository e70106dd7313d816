"""Durability: whether a replica, or the server's disk, has the batches that a server acknowledged.

A server acknowledges a batch once it is in its memory; a crash or a failover right after that loses
it. WAIT replies how many replicas have received what its own connection has written, and WAITAOF
whether that is in the append-only file on the disk. Both streams are in order, so they also cover
everything that the server had applied before.

So batches are sent and stored as always, and then each server is asked once, in one pipeline. It
renews the time to live of the producers' watermarks, which writes on this connection and changes
no data, and ends with WAIT. It also reads the watermarks: after a failover, the server may be
another one, which lacks acknowledged batches. The next batch finds those: see apply.lua.

Bound: a batch that was acknowledged more than half of WATERMARK_SECONDS ago is not asked for, since
its watermark may have expired. A batch that is not confirmed in time is reported, and not sent
again: it is stored.

Not covered: servers that confirm too early, see findings.durability().

Source: https://valkey.io/commands/wait/, https://valkey.io/commands/waitaof/.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from redmeter.errors import StoreError, StoreRefused, Unconfirmed
from redmeter.store.producers import WATERMARK_SECONDS, Producer
from redmeter.store.servers.cluster import in_parallel
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import Command, Link, Reply
from redmeter.stored.keys import Keys

#: The value of the setting with which nothing is confirmed.
NONE = "none"
#: Value of the setting -> the command that waits for it, without its time.
_WAITS: dict[str, Command] = {"replica": ("WAIT", "1"), "disk": ("WAITAOF", "1", "0")}
#: The share of the time for a reply that the server itself may wait; and by how much its reply may
#: be late in any case, seconds: it looks ten times a second for clients that have waited enough.
_SHARE, _LATE = 0.75, 0.25


def wait_command(durability: str, seconds: float) -> Command:
    """Return the command that waits for a replica or the disk, so many seconds at most."""
    return (*_WAITS[durability], str(max(1, int(1000 * seconds))))  # 0 would be for ever


class _Acknowledged(NamedTuple):
    """The batches of one producer, up to a number."""

    producer: Producer
    watermark: str
    number: int


def confirm_batches(
    link: Link,
    producers: Sequence[tuple[Keys, Producer]],
    durability: str,
    *,
    timeout: float,
    again: bool = True,
) -> list[Unconfirmed]:
    """Ask the servers whether the acknowledged batches of some producers are durable.

    Args:
        link: to all servers of the store.
        producers: producers, and the keys of the shard of each.
        durability: "replica" or "disk".
        timeout: how long to wait for the replies, seconds.
        again: also ask for batches for which this was tried before.

    Returns:
        An error for each server that did not confirm its batches.
    """
    batches: list[_Acknowledged] = []
    for keys, producer in producers:
        number = producer.floor
        due = again or producer.tried != (durability, number)
        if number and due and producer.confirmed != (durability, number):
            batches.append(_Acknowledged(producer, keys.batch(producer.id), number))
    if not batches:
        return []
    try:
        by_name = link.by_server([each.watermark for each in batches])
        links = {_name(server.location): server for server in link.servers()}
    except StoreError as error:
        return [_failed(batches, durability, link.location, str(error))]
    jobs = [
        partial(_ask, links.get(_name(name)), [batches[at] for at in places], durability, timeout)
        for name, places in by_name.items()
    ]
    return [problem for problem in in_parallel(jobs) if problem is not None]


def _name(location: str) -> str:
    return location.partition(" ")[0]  # as ClusterLink.node() names a node


def _ask(
    server: Link | None, batches: Sequence[_Acknowledged], durability: str, timeout: float
) -> Unconfirmed | None:
    """Ask one server; None: no node serves the slot."""
    if server is None:
        return _failed(batches, durability, "the cluster", "no node serves its slot")
    assert isinstance(server, ServerLink), "one server"
    commands: list[Command] = []
    for each in batches:
        commands += [("GET", each.watermark), ("EXPIRE", each.watermark, str(WATERMARK_SECONDS))]
    seconds = _SHARE * timeout
    # A caller's client may have any timeout.
    with server.within(max(timeout, seconds + _LATE)):
        *replies, waited = server.collect([*commands, wait_command(durability, seconds)])
    reason = next((str(reply) for reply in replies if isinstance(reply, StoreError)), "")
    for each, watermark, renewed in zip(batches, replies[::2], replies[1::2], strict=True):
        if not reason and (renewed != 1 or _number(watermark) < each.number):
            reason = "it lacks batches that were acknowledged, as after a failover"
    if reason := reason or _reason(waited, durability, seconds):
        return _failed(batches, durability, server.location, reason)
    for each in batches:
        each.producer.confirmed = each.producer.tried = durability, each.number
    return None


def _failed(
    batches: Sequence[_Acknowledged], durability: str, location: str, reason: str
) -> Unconfirmed:
    count = 0
    for each in batches:
        tried, number = each.producer.tried
        count += max(tried != durability, each.number - number)
        each.producer.tried = durability, each.number
    return Unconfirmed(location, durability, reason, count)


def _number(watermark: Reply) -> int:
    digits = watermark.partition(b" ")[0] if isinstance(watermark, bytes) else b""
    return int(digits) if digits.isdigit() else -1


def _reason(reply: Reply, durability: str, seconds: float) -> str:
    """Return why a reply to the command that waits confirms nothing; "" if it does."""
    if isinstance(reply, StoreRefused) and "unknown command" in reply.detail.lower():
        return f"it has no {_WAITS[durability][0]!s}: use Redis 7.2 or newer, or Valkey"
    if isinstance(reply, StoreRefused) and "appendonly is disabled" in reply.detail:
        return "it has no append-only file: set appendonly yes"
    if isinstance(reply, StoreError):
        return str(reply)
    if durability == "replica":
        fix = "start one, or see why it lags"
        return "" if reply >= 1 else f"no replica has received it within {seconds:.3g} s: {fix}"
    fix = "see appendfsync, and how long fsync takes there"
    return "" if reply[0] >= 1 else f"it was not on the disk within {seconds:.3g} s: {fix}"
