"""What the store says of itself, in `meta:`: format, shards, retention and its version.

The store's retention holds for everyone, or one process would trim what another wants kept. Each
batch therefore carries the version that it was made for, and the script applies no batch made
for another one: a change of retention reaches every writer with its next write. The version is
the Unix time of the change in microseconds (or one or two more than the last), so that a store
wiped and made anew never repeats an old one; it is odd where somebody chose the retention. On a
cluster each shard has a `meta:` of its own, and they may differ for as long as one is away.
"""

import logging
from typing import NamedTuple

from redmeter.errors import IncompatibleStore
from redmeter.keys import DEFAULT_HISTOGRAMS, FORMAT, HISTOGRAMS, Kept, Keys, Retention
from redmeter.store.replies import Reply, raised
from redmeter.store.scripts import BIND, RETAIN, Steps

_FIELDS = b"format", b"partitions", b"retention", b"histograms", b"version"

logger = logging.getLogger("redmeter")


class StoreConfig(NamedTuple):
    """What this process and the store agree on."""

    #: Of counters and gauges.
    retention: Retention
    histograms: Retention
    #: Number of the retention; "" where the store does not exist yet.
    version: str

    @property
    def kept(self) -> Kept:
        """What is kept."""
        return Kept(self.retention, self.histograms)

    @property
    def rank(self) -> tuple[int, int]:
        """See epoch_of()."""
        return epoch_of(self.version)


def epoch_of(version: str) -> tuple[int, int]:
    """Return what tells which of two shards is right that keep something else each.

    The one with the higher rank: what somebody chose is above what a shard began with. What was
    chosen later is right; but what was there first, or a shard that has forgotten what it kept
    would bring the others what some new process is configured for.
    """
    number = int(version) if version.isdecimal() else 0
    if not number:
        return -1, 0
    return (1, number) if number % 2 else (0, -number)


class WantedConfig:
    """What this process would keep in a new store.

    It warns once if the store keeps something else than was configured for this process. A process
    for which nothing was configured adopts the store's retention silently.

    Args:
        configured: whether somebody chose the one, and the other.
    """

    def __init__(
        self,
        retention: Retention,
        histograms: Retention,
        configured: tuple[bool, bool] = (False, False),
    ) -> None:
        self.config = StoreConfig(retention, histograms, "")
        self._configured = configured
        #: What some shard is known to keep, the one that is right of them: see epoch_of().
        self.known: StoreConfig | None = None
        self._compared = False

    def compare(self, found: StoreConfig) -> None:
        """Log if the store's retention is used instead of the configured one."""
        if self.known is None or found.rank > self.known.rank:
            self.known = found
        if self._compared:
            return
        self._compared = True
        counters, histograms = self._configured
        for configured, what, ours, theirs in (
            (counters, "", self.config.retention, found.retention),
            (histograms, " of histograms", self.config.histograms, found.histograms),
        ):
            if configured and ours != theirs:
                logger.warning(
                    "the store keeps %s%s, this process is configured for %s and goes on with the "
                    "store's; `redmeter retention` changes it for all",
                    *(theirs, what, ours),
                )


def new_version(now: float, after: str = "", *, chosen: bool = False) -> str:
    """Return a version that no earlier state of the store has had.

    Args:
        now: Unix seconds.
        after: the version of the present state, "" where there is none.
        chosen: whether somebody chose the retention: then it is odd, else even.
    """
    version = max(int(now * 1e6), int(after or 0) + 1)
    return str(version + (version % 2 != chosen))


def read_meta(fields: dict[bytes, bytes | None], shards: int) -> StoreConfig | None:
    """Read `meta:`, given as field -> value.

    Args:
        shards: how many the store has to have.

    Returns:
        None where there is none.

    Raises:
        IncompatibleStore: a format or a number of shards that this version does not know.
    """
    text = {
        key.decode(errors="replace"): (value or b"").decode(errors="replace")
        for key, value in fields.items()
    }
    if not any(text.values()):
        return None
    if text.get("format") != FORMAT:
        raise IncompatibleStore("format version", text.get("format", ""), FORMAT)
    if text.get("partitions") != str(shards):
        raise IncompatibleStore("number of shards", text.get("partitions", ""), str(shards))
    try:
        retention = Retention.parse(text.get("retention", ""))
        histograms = Retention(DEFAULT_HISTOGRAMS, of=HISTOGRAMS)
        if text.get("histograms"):
            histograms = Retention.parse(text["histograms"], of=HISTOGRAMS)
        version = text.get("version", "")
        int(version)
    except ValueError:
        raise IncompatibleStore("retention", text.get("retention", ""), "1=120 5=120 …") from None
    return StoreConfig(
        retention, histograms, version
    )  # as it is spelled: the script compares texts


def bind(keys: Keys, wanted: StoreConfig, shards: int) -> Steps[StoreConfig]:
    """Make a shard say what is wanted if it says nothing yet, and return what it says.

    Args:
        wanted: with the version that a new shard shall have.

    Raises:
        IncompatibleStore: see read_meta.
        StoreError: the server cannot be reached or refuses.
    """
    assert wanted.version, "the caller makes one"
    kept = str(wanted.retention), str(wanted.histograms), wanted.version
    values = FORMAT, str(shards), *kept
    fields = raised((yield BIND.command(_named(keys), values)))
    config = read_meta(dict(zip(_FIELDS, fields, strict=True)), shards)
    if config is None:  # a hash of somebody else's lies there
        raise IncompatibleStore("format version", "", FORMAT)
    return config


def retain(keys: Keys, seen: StoreConfig, wanted: StoreConfig) -> Steps[Reply]:
    """Change what a shard keeps; the result is 0 where someone else just did, or an error.

    Args:
        wanted: with the version that it shall have.
    """
    args = str(wanted.retention), str(wanted.histograms), seen.version, wanted.version
    return (yield RETAIN.command(_named(keys), args))


def _named(keys: Keys) -> list[str]:
    """Return the keys that a script names to write `meta:`.

    With another one of the same store beside, a cluster's node that is taken for a server of its
    own refuses it, as it will all batches, and nothing is left there.
    """
    return [keys.meta, keys.known]
