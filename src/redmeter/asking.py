"""What a Meter answers, through reading/. What it records is in meter.py."""

from collections.abc import Mapping

from redmeter.keys import check_times
from redmeter.model import Ranked, Series
from redmeter.names import canonical
from redmeter.reading import catalogue, gauges, rankings
from redmeter.reading import series as reading
from redmeter.store import Store


class Asking:
    """Questions to a store.

    Args:
        store: None answers that there is nothing.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store

    def series(
        self,
        name: str,
        *,
        precision: int,
        labels: Mapping[str, str] | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Series[int]:
        """Return the kept samples of a counter, oldest first.

        Args:
            name: see count().
            precision: slice width, seconds; one of those kept.
            labels: see count().
            since, until: leave out slices that end before or start after, Unix seconds.

        Raises:
            UnknownPrecision: not kept; the error lists those that are.
            InvalidName, StoreError: see count().
        """
        wanted = canonical(name, labels)
        return self.series_of([wanted], precision=precision, since=since, until=until)[wanted]

    def series_of(
        self,
        names: list[str],
        *,
        precision: int,
        since: float | None = None,
        until: float | None = None,
    ) -> dict[str, Series[int]]:
        """Return the kept samples of many counters, in one round trip. See series().

        Raises:
            LimitExceeded: over 5,000 names.
        """
        wanted = [canonical(name) for name in names]
        check_times(since, until)
        if self._store is None:
            return {name: Series(name, precision, 0, (), partial=False) for name in wanted}
        return reading.read_series(self._store, wanted, precision, since=since, until=until)

    def gauge_series(
        self,
        name: str,
        *,
        precision: int,
        labels: Mapping[str, str] | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Series[float | None]:
        """Return the kept samples of a gauge, oldest first; None where it was not set.

        Args, Raises: see series().
        """
        wanted = canonical(name, labels)
        check_times(since, until)
        if self._store is None:
            return Series(wanted, precision, 0, (), partial=False)
        options = {"since": since, "until": until}
        return gauges.read_gauges(self._store, [wanted], precision, **options)[wanted]

    def total(self, name: str, *, labels: Mapping[str, str] | None = None) -> int:
        """Return everything ever counted of a series, also what no slice holds any more.

        Raises:
            InvalidName, StoreError: see count().
        """
        wanted = canonical(name, labels)
        return 0 if self._store is None else reading.read_totals(self._store, [wanted])[wanted]

    def names(self, pattern: str = "*") -> list[str]:
        """Return the names of all counters that match, sorted.

        Args:
            pattern: `*` any text, `?` one character, `[abc]` one of these.
        """
        return [] if self._store is None else catalogue.read_names(self._store, pattern)

    def top(
        self,
        name: str = "*",
        *,
        precision: int,
        by: str | None = None,
        slices: int = 5,
        limit: int = 10,
    ) -> list[Ranked]:
        """Return what happened most often within the newest slices, the running one included.

        Args:
            name: with `by`, a name without labels; without, a pattern of names.
            precision: slice width, seconds; one of those kept.
            by: a label, by whose values to add up: `top("http_requests", by="route", …)`.
            slices: how many of the newest slices.
            limit: how many rows.

        Raises:
            UnknownPrecision, LimitExceeded, StoreError: see redmeter.reading.rankings.rank.
        """
        if self._store is None:
            return []
        return rankings.rank(self._store, name, precision, by=by, slices=slices, limit=limit)
