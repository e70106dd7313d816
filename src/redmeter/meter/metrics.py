"""Recording of counters, gauges and histograms."""

from collections.abc import Callable, Mapping

from redmeter.recording.instruments import Counter, Gauge, Histogram
from redmeter.recording.recorder import Recorder
from redmeter.recording.scopes import CountedExceptions, Timer
from redmeter.recording.sync import SyncRecorder

# See recording/instruments.py: another 1, or True, takes the slower path.
_ONE = 1


class MetricMethods:
    """Methods of a Meter that record counters, gauges and histograms."""

    _recorder: Recorder | SyncRecorder
    _by_name: Mapping[str, Counter]
    _now: Callable[[], float]
    _monotonic: Callable[[], float]

    def count(
        self,
        name: str,
        amount: int = 1,
        *,
        labels: Mapping[str, object] | None = None,
        at: float | None = None,
    ) -> None:
        """Count an event, at every precision that is kept.

            meter.count("orders")
            meter.count("items_sold", 3, labels={"plan": "pro"})

        Args:
            name: 1 to 200 bytes of UTF-8, labels included, without control characters; labels in
                braces, `orders{plan="pro"}`.
            amount: the number of events, a whole number, not negative.
            labels: more labels; their order does not matter. Values are converted with str(), and
                truncated if the name would become too long; recorder_health() counts that.
            at: the time of the event, Unix seconds. Default: now. Intervals that the retention no
                longer holds are left out.

        Raises:
            InvalidName: the name or a label's name is not allowed.
            InvalidValue: the amount or the time is out of range.
            TypeError: the amount is not a whole number.
            StoreError: only with sync=True: the store is unreachable or refuses all of the event,
                or a part of it, such as an interval whose count would exceed 2^63 - 1.
        """
        if amount is _ONE and labels is None and at is None:
            try:
                counter = self._by_name[name]
            except (KeyError, TypeError):
                pass
            else:
                time = self._now()
                if time < counter._due:
                    counter._events.append(time)
                else:
                    counter._put(time, time)
                return
        self._recorder.count(name, amount, labels, at)

    def counter(self, name: str, *, labels: Mapping[str, object] | None = None) -> Counter:
        """Return the counter of a series, whose `inc()` is the fastest way to count.

            orders = meter.counter("orders", labels={"plan": "pro"})
            orders.inc()

        Args:
            name, labels: as for count().

        Raises:
            InvalidName: the name or a label's name is not allowed.
        """
        return self._recorder.counter(name, labels)

    def count_exceptions(
        self,
        name: str,
        kinds: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        *,
        labels: Mapping[str, object] | None = None,
    ) -> CountedExceptions:
        """Return a context manager and decorator that counts exceptions, and lets them propagate.

            with meter.count_exceptions("payment_failures", labels={"provider": "acme"}):
                ...

            @meter.count_exceptions("import_failures", (OSError, ValueError))
            def import_orders(): ...

        Args:
            name, labels: as for count().
            kinds: the classes of exceptions that are counted.

        Raises:
            InvalidName: the name or a label's name is not allowed.
        """
        return CountedExceptions(self._recorder.counter(name, labels), kinds)

    def gauge(
        self,
        name: str,
        *,
        labels: Mapping[str, object] | None = None,
        per_process: bool = False,
        callback: Callable[[], float | None] | None = None,
    ) -> Gauge:
        """Return the gauge of a series: a value that goes up and down.

            meter.gauge("waiting_list").set(17)
            meter.gauge("jobs_in_progress").inc()               # and dec(), track_in_progress()
            meter.gauge("queue_length", callback=queue.qsize)

        `set()` sets one value for the whole application. `inc()` and `dec()` change the part of
        this process; gauge_series() sums the parts of all processes. A counter and a gauge of the
        same name are two series.

        Args:
            name, labels: as for count().
            per_process: each process has a value of its own, identified by the label `instance`: 0,
                1, 2 …, assigned by the store. The number of a process that ended is reused.
            callback: a function that is called before each flush and returns the value, or None for
                no value. It replaces an earlier one of this gauge, and must not wait for anything.
                recorder_health() counts its exceptions. The background thread that calls it starts
                with the first recorded event of a process; with sync=True there is none.

        Raises:
            InvalidName: the name or a label's name is not allowed.
        """
        return self._recorder.gauge(name, labels, per_process=per_process, callback=callback)

    def observe(
        self,
        name: str,
        value: float,
        *,
        labels: Mapping[str, object] | None = None,
        at: float | None = None,
    ) -> None:
        """Record a value in a histogram: a duration, a size, an amount of money.

            meter.observe("checkout_seconds", 0.21)

        Each interval stores the distribution of its values: count, sum, extremes and percentiles.
        Values may be negative. A value that is not finite is dropped, and recorder_health() counts
        it.

        Args:
            name, labels, at: as for count(). End the name with its unit: `checkout_seconds`.
            value: a number.

        Raises:
            InvalidName: the name or a label's name is not allowed.
            InvalidValue: the time is out of range.
            TypeError: the value is not a number.
            StoreError: only with sync=True: the store is unreachable or refuses.
        """
        self._recorder.observe(name, value, labels, at)

    def histogram(self, name: str, *, labels: Mapping[str, object] | None = None) -> Histogram:
        """Return the histogram of a series, whose `observe()` is the fastest way to measure.

        Args:
            name, labels: as for count().

        Raises:
            InvalidName: the name or a label's name is not allowed.
        """
        return self._recorder.histogram(name, labels)

    def timer(self, name: str, *, labels: Mapping[str, object] | None = None) -> Timer:
        """Return a timer, which records durations in a histogram, in seconds.

            with meter.timer("checkout_seconds"):    # and `async with`
                ...

            @meter.timer("checkout_seconds")         # functions, coroutines, generators
            def check_out(): ...

        Blocks and calls that raise are timed as well. One timer can be used by many threads and
        tasks at once, and nested.

        Args:
            name, labels: as for count().

        Raises:
            InvalidName: the name or a label's name is not allowed.
        """
        return Timer(self._recorder.histogram(name, labels), self._monotonic)
