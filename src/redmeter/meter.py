"""Meter: what an application uses. Records through recording/, asks through reading/."""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from redmeter import store as stores
from redmeter.clock import SYSTEM, Clock
from redmeter.keys import check_time, slice_start
from redmeter.kinds import counter
from redmeter.model import Operations, Ranked, Series
from redmeter.names import canonical
from redmeter.reading import catalogue, rankings
from redmeter.reading import series as reading
from redmeter.recording.direct import check_written

if TYPE_CHECKING:
    import redis


class Meter:
    """Counts what happens in an application, and answers how often it did.

    Connects to nothing and starts nothing before its first use; safe to share between threads.
    With the URL `off`, every call does nothing and readings are empty.

    Args:
        url: `redis://`, `rediss://`, `unix://`, `embedded://PATH` or `off`. None: REDMETER_URL,
            else the embedded server in the user's data directory.
        client: a redis-py client of yours, used instead of a URL and never closed.
        prefix: what stands before every key.
        retention: precision (seconds) -> number of newest samples kept, should the store be new.
        timeout: how long to wait for the store, seconds.
        clock: where time comes from.

    Raises:
        InvalidSetting: a setting cannot be used.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client: "redis.Redis | None" = None,
        prefix: str | None = None,
        retention: Mapping[int, int] | str | None = None,
        timeout: float | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._clock = clock
        self._store = stores.open(
            url,
            client=client,
            prefix=prefix,
            retention=dict(retention) if isinstance(retention, Mapping) else retention,
            timeout=timeout,
            clock=clock,
        )

    def __repr__(self) -> str:
        return f"<Meter {self._store.location if self._store else 'off'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, unless they are the caller's."""
        if self._store is not None:
            self._store.close()

    # Recording

    def count(
        self,
        name: str,
        amount: int = 1,
        *,
        labels: Mapping[str, str] | None = None,
        at: float | None = None,
    ) -> None:
        """Count that something happened, at every precision that is kept. Returns when stored.

        Args:
            name: 1 to 200 bytes, see redmeter.names; may carry labels.
            amount: how often, a whole number, not negative.
            labels: more labels, e.g. {"plan": "pro"}; their order does not matter.
            at: when it happened, Unix seconds; now, if not given. A slice that the retention no
                longer holds is left out.

        Raises:
            InvalidName: the name or a label is not allowed.
            InvalidValue: amount or time out of range.
            TypeError: the amount is not a whole number.
            StoreError: the store cannot be reached or refuses; a part of the event may have been
                refused by itself, e.g. because a slice would pass 2^63 - 1.
        """
        series = canonical(name, labels)
        counter.check_amount(amount)
        second = slice_start(self._clock.wall() if at is None else check_time(at), 1)
        store = self._store
        if store is None:
            return
        counts = {series: {second: amount}}

        def build(retention: Mapping[int, int]) -> Operations:
            return counter.operations(store.keys, retention, counts)

        check_written(store.write(build), store)

    # Asking

    def series(
        self,
        name: str,
        *,
        precision: int,
        labels: Mapping[str, str] | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Series:
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
    ) -> dict[str, Series]:
        """Return the kept samples of many counters, in one round trip. See series().

        Raises:
            LimitExceeded: over 5,000 names.
        """
        wanted = [canonical(name) for name in names]
        for time in (since, until):
            if time is not None:
                check_time(time)
        if self._store is None:
            return {name: Series(name, precision, 0, (), partial=False) for name in wanted}
        return reading.read_series(self._store, wanted, precision, since=since, until=until)

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
