"""What the store says of itself, in `meta:`: format, partitions, retention and its version.

The store's retention holds for everyone, or one process would trim what another wants kept. Each
batch therefore carries the version that it was made for, and the script applies no batch made
for another one: a change of retention reaches every writer with its next write. The version is
the Unix time of the change in milliseconds (or one more than the last), so that a store wiped and
made anew never repeats an old one.
"""

import logging
import time
from typing import NamedTuple

from redmeter.errors import IncompatibleStore
from redmeter.keys import DEFAULT_HISTOGRAMS, FORMAT, HISTOGRAMS, Kept, Keys, Retention
from redmeter.store.link import Link, raised
from redmeter.store.scripts import BIND, RETAIN

#: How many groups of series there are, each in one slot of a cluster.
PARTITIONS = "1"

_FIELDS = b"format", b"partitions", b"retention", b"histograms", b"version"

logger = logging.getLogger("redmeter")


class Binding(NamedTuple):
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


def new_version(after: str = "") -> str:
    """Return a version that no earlier state of the store has had."""
    return str(max(time.time_ns() // 1_000_000, int(after or 0) + 1))


def read_meta(fields: dict[bytes, bytes | None]) -> Binding | None:
    """Read `meta:`, given as field -> value.

    Returns:
        None where there is none.

    Raises:
        IncompatibleStore: a format or a number of partitions that this version does not know.
    """
    text = {key.decode(): (value or b"").decode(errors="replace") for key, value in fields.items()}
    if not any(text.values()):
        return None
    if text.get("format") != FORMAT:
        raise IncompatibleStore("format version", text.get("format", ""), FORMAT)
    if text.get("partitions") != PARTITIONS:
        raise IncompatibleStore("number of partitions", text.get("partitions", ""), PARTITIONS)
    try:
        retention = Retention.parse(text.get("retention", ""))
        histograms = Retention(DEFAULT_HISTOGRAMS, of=HISTOGRAMS)
        if text.get("histograms"):
            histograms = Retention.parse(text["histograms"], of=HISTOGRAMS)
        version = text.get("version", "")
        int(version)
    except ValueError:
        raise IncompatibleStore("retention", text.get("retention", ""), "1=120 5=120 …") from None
    return Binding(retention, histograms, version)  # as it is spelled: the script compares texts


def bind(link: Link, keys: Keys, wanted: Binding) -> Binding:
    """Make the store say what is wanted if it says nothing yet, and return what it says.

    Raises:
        IncompatibleStore: see read_meta.
        StoreError: the server cannot be reached or refuses.
    """
    version = wanted.version or new_version()
    values = FORMAT, PARTITIONS, str(wanted.retention), str(wanted.histograms), version
    fields = raised(BIND.run(link, [keys.meta], values))
    binding = read_meta(dict(zip(_FIELDS, fields, strict=True)))
    if binding is None:  # a hash of somebody else's lies there
        raise IncompatibleStore("format version", "", FORMAT)
    return binding


def retain(link: Link, keys: Keys, seen: Binding, wanted: Binding) -> bool:
    """Change what the store keeps; False where someone else just did.

    Raises:
        StoreError: the server cannot be reached or refuses.
    """
    args = [
        *(str(wanted.retention), str(wanted.histograms)),
        *(seen.version, new_version(seen.version)),
    ]
    return bool(raised(RETAIN.run(link, [keys.meta], args)))


def say_difference(configured: Binding, found: Binding) -> None:
    """Log where the store's retention is used instead of the configured one."""
    for what, ours, theirs in (
        ("", configured.retention, found.retention),
        (" of histograms", configured.histograms, found.histograms),
    ):
        if ours != theirs:
            logger.warning(
                "the store keeps %s%s, this process is configured for %s and goes on with the "
                "store's; `redmeter retention` changes it for all",
                *(theirs, what, ours),
            )
