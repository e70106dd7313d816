"""The state of a store as a whole: its move, the types of its indexes, cleaner, size, neighbors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from redmeter import settings
from redmeter.errors import AccessDenied, StoreError, StoreUnavailable
from redmeter.health.check import DoctorCheck, Finding, Seen, no_reads, size_text
from redmeter.health.contents import COUNTER_CONTENTS, OTHER_CONTENTS, key_bytes
from redmeter.health.servers import SERVERS
from redmeter.health.writers import WRITERS, emptied_events
from redmeter.store import Store, indexes
from redmeter.store.config import ShardState, parse_state, read_meta, state_read
from redmeter.store.query import Query, in_parts
from redmeter.store.servers.replies import Reply, pairs, raised
from redmeter.stored.families import FAMILIES, INDEX_OF
from redmeter.stored.keys import DEFAULT_PREFIX, Keys
from redmeter.stored.shards import ShardedKeys

#: A cleaner makes a pass a minute; seconds without one that deserve a warning.
CLEANER_LATE = 600.0
#: Names of the types of keys.
_TYPES = {"zset": "sorted set", "hash": "hash"}
_SEPARATE = "choose another prefix, or remove that key"
_AGAIN = "run the same `redmeter migrate` again to continue"

# --- Migration -------------------------------------------------------------------------------


def _read_states(store: Store) -> Query[list[ShardState]]:
    _, replies = yield [state_read(shard.keys) for shard in store.shards]
    return [parse_state(reply) for reply in replies if not isinstance(reply, StoreError)]


def _migration_findings(states: Sequence[ShardState], seen: Seen) -> Iterator[Finding]:
    """Report that the store is being moved to another server, or was moved."""
    now = seen.view.now
    names = [state.name(now) for state in states]
    share = f"{sum(map(bool, names)):,} of {len(names):,} shards" if len(names) > 1 else "the store"
    if "moved" in names:
        sealed = all(name == "moved" for name in names)
        text = "moved to another server or prefix" + ("" if sealed else ", in part")
        fix = "set REDMETER_URL and REDMETER_PREFIX to the new one" if sealed else _AGAIN
        yield Finding("fail", "migration", f"{share}: {text}", fix)
    elif "receiving" in names:
        text = (
            "receives the data of another store by a migration that is running or was interrupted"
        )
        yield Finding("fail", "migration", f"{share}: {text}", _AGAIN)
    elif "frozen" in names:
        left = max(state.deadline for state in states) - now
        text = f"frozen while it is copied to another server, for {left:.0f} s unless it is renewed"
        yield Finding("warn", "migration", f"{share}: {text}")


MIGRATION = DoctorCheck(_read_states, _migration_findings)

# --- The types of indexes and totals ---------------------------------------------------------


@dataclass(slots=True)
class Misused:
    """Keys that another program uses for something else."""

    #: Index or totals -> its keys and their types; several on a cluster.
    keys: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    #: The `meta:` of shards of a cluster that cannot be written to, and their errors.
    metas: list[tuple[str, StoreError]] = field(default_factory=list)


def _read_types(store: Store) -> Query[Misused]:
    """Read the types of the indexes and totals, and `meta:`; on a cluster in each shard.

    A key without a reply counts as correct.
    """
    keys, found = store.keys, Misused()
    named = [
        (family, key)
        for family in FAMILIES.values()
        if family.members
        for key in keys.in_each(keys.key(family.name))
    ]
    # On a single server every read checks `meta:`.
    metas = keys.in_each(keys.meta) if isinstance(keys, ShardedKeys) else ()
    types, contents = yield from in_parts(
        [[("TYPE", key) for _, key in named], [("HGETALL", key) for key in metas]]
    )
    for (family, key), kind in zip(named, types, strict=True):
        if not isinstance(kind, StoreError) and kind not in (family.type.encode(), b"none"):
            found.keys.setdefault(family.name, []).append((key, kind.decode()))
    for key, meta in zip(metas, contents, strict=True):
        if isinstance(meta, StoreUnavailable | AccessDenied):
            continue
        try:
            read_meta(dict(pairs(raised(meta))), len(metas))
        except StoreError as error:
            found.metas.append((key, error))
    return found


def _type_findings(found: Misused, seen: Seen) -> Iterator[Finding]:
    for name, ((key, kind), *more) in found.keys.items():
        family = FAMILIES[name]
        shown = f" (and {len(more)} more shard{'s' * (len(more) > 1)})" if more else ""
        yield Finding(
            "fail",
            f"{family.kind}s",
            f"{key} is a {_TYPES.get(kind, kind)}, not a {_TYPES[family.type]}{shown}: another "
            "program uses it",
            _SEPARATE,
        )
    others = seen[OTHER_CONTENTS]
    for kind, index in INDEX_OF.items():
        error = others.get(f"{kind}s", seen[COUNTER_CONTENTS]).error
        if error and index.name not in found.keys:  # an ACL may forbid TYPE
            yield Finding("fail", f"{kind}s", str(error), _SEPARATE)
    if found.metas:
        (key, error), *_ = found.metas
        shards = len(seen.keys.in_each(seen.keys.meta))
        text = f"{len(found.metas)} of {shards} shards store nothing, {key}: {error}"
        fix = "remove the data that another program wrote there; the next write restores the key"
        yield Finding("fail", "cluster", text, fix)


TYPES = DoctorCheck(_read_types, _type_findings)

# --- Other stores on the same server ---------------------------------------------------------


@dataclass(slots=True)
class OtherStores:
    """Other stores on the same server; none on a cluster."""

    #: Entries in the index of counters without prefix, and in that of the default prefix.
    bare: int = 0
    prefixed: int = 0
    #: Whether a cleaner has visited the store without prefix.
    bare_cleaned: bool = False


def _read_other_stores(store: Store) -> Query[OtherStores]:
    if isinstance(store.keys, ShardedKeys):
        return OtherStores()
    _, (bare, prefixed, cleaned) = yield [
        ("ZCARD", "known:"),
        ("ZCARD", f"{DEFAULT_PREFIX}known:"),
        ("HGET", Keys("").cleaned, ""),
    ]
    return OtherStores(_number(bare), _number(prefixed), isinstance(cleaned, bytes))


def _number(reply: Reply) -> int:
    return reply if isinstance(reply, int) else 0


def _other_store_findings(others: OtherStores, seen: Seen) -> Iterator[Finding]:
    prefix, bare, prefixed = seen.keys.prefix, others.bare, others.prefixed
    if prefix and bare:
        yield Finding(
            "ok",
            "other store",
            f"{bare:,} index entries without prefix: counters of the listings of Redis in Action, "
            "or of redmeter.book",
            'redmeter names --prefix "" shows them; redmeter clean --prefix "" cleans them',
        )
    if prefix != DEFAULT_PREFIX and prefixed:
        yield Finding("ok", "other store", f"{prefixed:,} index entries under {DEFAULT_PREFIX}")


OTHER_STORES = DoctorCheck(_read_other_stores, _other_store_findings)

# --- Cleaner ---------------------------------------------------------------------------------


def _read_cleaned(store: Store) -> Query[int | None]:
    """Read when the cleaner's last complete pass ended, Unix seconds; None if there was none."""
    _, (ended,) = yield [("HGET", store.keys.cleaned, store.keys.prefix)]
    is_moment = isinstance(ended, bytes) and ended.isdigit() and len(ended) <= 12
    return int(ended) if is_moment else None


def _cleaner_findings(ended: int | None, seen: Seen) -> Iterator[Finding]:
    """Check whether the cleaner keeps up, also with the store without prefix on this server.

    Counters of the listings do not expire.
    """
    sample, others = seen[COUNTER_CONTENTS], seen[OTHER_STORES]
    if sample.error:
        return
    uncleaned = seen.keys.prefix and others.bare and not others.bare_cleaned
    lag = None if ended is None else seen.view.now - ended
    fix = "run one: redmeter up, or redmeter clean from cron"
    text = "has never run" if lag is None else f"last complete pass {_age(lag)} ago"
    if sample.gone:
        text += f"; {sample.gone} of {sample.size} index entries belong to expired series"
    late = lag is None or lag > CLEANER_LATE
    # An idle series has entries without a hash at fine precisions, and uses them again later.
    needed = sample.count > 0 and (sample.gone > 0 or sample.endless > 0)
    if lag is None and uncleaned:
        text += "; the counters without prefix on this server do not expire automatically"
        fix += '; for those without prefix, with --prefix ""'
    elif lag is None and not needed:
        text += " (not needed so far: hashes expire automatically)"
    warned = late and (needed or (lag is None and uncleaned))
    yield Finding("warn" if warned else "ok", "cleaner", text, fix if warned else "")


def _age(seconds: float) -> str:
    for width, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * width:
            return f"{seconds / width:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


CLEANER = DoctorCheck(_read_cleaned, _cleaner_findings)

# --- Size ------------------------------------------------------------------------------------


def _read_totals(store: Store) -> Query[int | None]:
    """Read the bytes of the grand totals; None if one of them is unknown."""
    keys = store.keys
    _, replies = yield [
        indexes.memory_usage(keys, key) for key in (keys.total, keys.sums, keys.spreads)
    ]
    sizes = [size for size in map(key_bytes, replies) if size is not None]
    return sum(sizes) if len(sizes) == len(replies) else None


def bytes_by_kind(seen: Seen) -> dict[str, int | None]:
    """Return the bytes of a store by kind, an estimate; None if the server does not report them."""
    return {
        "counters": seen[COUNTER_CONTENTS].estimate(),
        "index": seen[COUNTER_CONTENTS].index_bytes,
        "totals": seen[SIZE],
        **{kind: sample.with_index() for kind, sample in seen[OTHER_CONTENTS].items()},
    }


def _size_findings(_: int | None, seen: Seen) -> Iterator[Finding]:
    """Report a store of half of its limit, or more."""
    used = sum(size or 0 for size in bytes_by_kind(seen).values())
    limit = settings.resolve("store_bytes")
    if not limit or used < limit / 2:
        return
    text = f"about {size_text(used)} of the {size_text(limit)} that the store may take"
    if used > limit:
        text += ": the cleaner has new series refused"
    fix = (
        "redmeter names --by-size ranks names by memory; keep ids, addresses and raw "
        "paths out of labels, or raise REDMETER_STORE_BYTES"
    )
    yield Finding("warn", "size", text, fix)


SIZE = DoctorCheck(_read_totals, _size_findings)

# --- A database that others share ------------------------------------------------------------


def _shared_findings(_: None, seen: Seen) -> Iterator[Finding]:
    """Note that another program may empty the database, unless one did."""
    others = seen[SERVERS].other_keys
    if others.count and not emptied_events(seen[WRITERS].writers):
        text = f"{others.text()}; FLUSHDB, as Django's cache.clear() does, would empty the metrics"
        yield Finding("note", "database", text, others.fix)


SHARED_DATABASE = DoctorCheck(no_reads, _shared_findings)
