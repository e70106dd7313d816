"""Registry: the cells there are, by name, and how many there may be.

A name has one cell, however it is spelled and from wherever it is asked for. What has too many
series gets one more for all the others: labelled overflow="true" for a name with too many label
sets, (other) for all.

Some series have labels of two kinds: those that say what happened, which have few values, and extra
labels that an application adds. Label sets with extra labels have a limit of their own. Beyond it
only the extra labels become (other), so that too many users do not hide a failed request:

    http_requests{method="GET",route="/",status="5xx",user="7"}
    http_requests{method="GET",route="/",status="5xx",user="(other)"}
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from redmeter.errors import InvalidName
from redmeter.format.message import SEVERITY, name_of
from redmeter.names import canonical, parse_name, recorded_name
from redmeter.recording.exceptions import NAME, Exceptions
from redmeter.recording.instance import INSTANCE_BYTES, needs_instance, per_process_series
from redmeter.recording.instruments import (
    Counter,
    Gauge,
    Histogram,
    Instrument,
    InstrumentOwner,
    ProcessGauge,
    counter_class,
    histogram_class,
)
from redmeter.recording.marks import Marks
from redmeter.recording.messages.instrument import Messages
from redmeter.recording.messages.redact import MessageRules

#: What stands for the series of a name that has too many, and for all series that are too many.
OVERFLOW_LABELS = {"overflow": "true"}
OTHER = "(other)"
#: The kind of error under which changed label values are counted.
LABEL_VALUE = "label-value"
#: Labels of a series, in addition to those in its name.
Labels = Mapping[str, object] | None
#: A kind of cell.
C = TypeVar("C", bound=Instrument)

#: Spellings of names that are looked up without taking them apart, for each series there may be.
SPELLINGS = 4
#: Severities that are told apart where there are too many series.
_SEVERITIES = frozenset(SEVERITY.values())


class Registry:
    """The cells of a recorder. Each step is one that threads and signal handlers may interrupt.

    Args:
        owner: the recorder.
        now, monotonic: clocks, seconds.
        max_series: how many series are told apart.
        max_label_sets: how many of one name.
        rules: how messages are read.
        release: of the application; "" if unknown.
    """

    def __init__(
        self,
        owner: InstrumentOwner,
        now: Callable[[], float],
        monotonic: Callable[[], float],
        *,
        max_series: int,
        max_label_sets: int,
        rules: MessageRules = MessageRules(),  # noqa: B008 - it does not change
        release: str = "",
    ) -> None:
        self._owner = owner
        self._now = now
        self._max_series = max_series
        self._max_label_sets = max_label_sets
        self._rules = rules
        self._release = release
        self._counter_class = counter_class(now)
        self._histogram_class = histogram_class(now, monotonic)
        self._instruments: dict[tuple[type[Instrument], str], Instrument] = {}
        self._label_sets: dict[str, int] = {}
        #: Counters by the spelling in which a caller names them; for Meter.count(). And histograms.
        self.by_name: dict[Any, Counter] = {}
        self._histograms_by_name: dict[Any, Histogram] = {}
        #: Whether a series has a place for the number of the process.
        self.per_process = False

    def __len__(self) -> int:
        return len(self._instruments)

    def instruments(self) -> list[Instrument]:
        """Return all there are at the moment."""
        return list(self._instruments.values())

    def counter(self, name: str, labels: Labels = None, extra: Labels = None) -> Counter:
        """Return the counter of a series, always the same one. See Meter.counter().

        Args:
            name, labels: the series.
            extra: more labels, which become (other) where there are too many label sets.
        """
        if extra:
            return self._labelled(self._counter_class, name, labels or {}, extra)
        return self._spelled(self._counter_class, self.by_name, name, labels)

    def histogram(self, name: str, labels: Labels = None, extra: Labels = None) -> Histogram:
        """Return the histogram of a series, always the same one. See counter()."""
        if extra:
            return self._labelled(self._histogram_class, name, labels or {}, extra)
        return self._spelled(self._histogram_class, self._histograms_by_name, name, labels)

    def _labelled(
        self, kind: type[C], name: str, labels: Mapping[str, object], extra: Mapping[str, object]
    ) -> C:
        series = self._name(name, {**labels, **extra})
        found = self._instruments.get((kind, series))
        if found is None:
            budget = f"{parse_name(series).base}{{"  # no name has a brace at its end
            if self._label_sets.get(budget, 0) < self._max_label_sets:
                found = self._admit(kind, series, budget)
            else:
                found = self._cell(kind, _without_values(name, labels, extra))
                found._overflow = True
        assert isinstance(found, kind), "it was made as one"
        return found

    def _spelled(
        self,
        kind: type[C],
        by_name: dict[Any, C],
        name: str,
        labels: Labels,
    ) -> C:
        try:
            spelling: Any = (name, tuple(labels.items())) if labels else name
            found = by_name.get(spelling)
        except (TypeError, AttributeError):  # not hashable, or no mapping
            spelling = found = None
        if found is not None:
            return found
        cell = self._cell(kind, self._name(name, labels))
        assert isinstance(cell, kind), "it was made as one"
        # Values that are not text may be equal and have different texts: 1, 1.0 and True.
        is_text = not labels or all(type(value) is str for value in labels.values())
        if spelling is not None and is_text and len(by_name) < SPELLINGS * self._max_series:
            by_name[spelling] = cell
        return cell

    def gauge(self, name: str, labels: Labels, *, per_process: bool) -> Gauge:
        """Return the gauge of a series. See Meter.gauge()."""
        series = self._name(name, labels, reserve=INSTANCE_BYTES if per_process else 0)
        if per_process:
            series = per_process_series(series)
            self.per_process = True
        cell = self._cell(Gauge, series)
        assert isinstance(cell, Gauge), "it was made as one"
        return cell

    def _name(self, name: str, labels: Labels, *, reserve: int = 0) -> str:
        """Return the stored spelling, and count label values that had to be changed."""
        series, note = recorded_name(name, labels, reserve=reserve)
        if note:
            self._owner.record_error(LABEL_VALUE, f"{series}: {note}")
        return series

    def process_gauges(self) -> list[Gauge]:
        """Return the gauges that are this process's parts."""
        return [each for each in self.instruments() if type(each) is ProcessGauge]

    def messages(self, logger: str, severity: str) -> Messages:
        """Return what takes the messages of a logger and severity, always the same.

        Args:
            logger, severity: as they are stored.
        """
        found = self._instruments.get((Messages, name_of(logger, severity)))
        if found is None:
            overflow = len(self._instruments) >= self._max_series
            if overflow:
                logger, severity = OTHER, severity if severity in _SEVERITIES else "info"
            made = Messages(logger, severity, self._owner, self._now, self._rules)
            made._overflow = overflow
            found = self._instruments.setdefault((Messages, made.name), made)
        assert isinstance(found, Messages), "it was made as one"
        return found

    def marks(self) -> Marks:
        """Return what takes all marks, always the same."""
        cell = self._made(Marks, "marks")
        assert isinstance(cell, Marks), "it was made as one"
        return cell

    def exceptions(self) -> Exceptions:
        """Return the instrument of all exceptions, always the same."""
        instrument = self._instruments.get((Exceptions, NAME))
        if instrument is None:
            made = Exceptions(self._owner, self._now, self._rules, self._release)
            instrument = self._instruments.setdefault((Exceptions, NAME), made)
        assert isinstance(instrument, Exceptions), "it was made as one"
        return instrument

    def _cell(self, kind: type[Instrument], series: str) -> Instrument:
        found = self._instruments.get((kind, series))
        return self._admit(kind, series) if found is None else found

    def _admit(self, kind: type[Instrument], series: str, budget: str = "") -> Instrument:
        """Make the cell of a series, or return the one that stands for too many.

        Args:
            budget: with which label sets its own is counted; with those of the name, if not given.
        """
        base, labels = parse_name(series)
        budget = budget or base
        if labels and self._label_sets.get(budget, 0) >= self._max_label_sets:
            return self._overflow(kind, base)
        if len(self._instruments) >= self._max_series:
            return self._made(kind, OTHER, overflow=True)
        before = len(self._instruments)
        cell = self._made(kind, series)
        if labels and len(self._instruments) > before:
            self._label_sets[budget] = self._label_sets.get(budget, 0) + 1
        return cell

    def _overflow(self, kind: type[Instrument], base: str) -> Instrument:
        try:
            series = canonical(base, OVERFLOW_LABELS)
        except InvalidName:  # there is no room for the label
            series = OTHER
        if (kind, series) not in self._instruments and len(self._instruments) >= self._max_series:
            series = OTHER
        return self._made(kind, series, overflow=True)

    def _made(self, kind: type[Instrument], series: str, *, overflow: bool = False) -> Instrument:
        cell: Instrument
        if kind is Gauge:
            made = ProcessGauge if needs_instance(series) else Gauge
            cell = made(series, self._owner, self._now, overflow=overflow)
        else:
            cell = kind(series, self._owner, overflow=overflow)
        return self._instruments.setdefault((kind, series), cell)


def _without_values(name: str, labels: Mapping[str, object], extra: Mapping[str, object]) -> str:
    series, note = recorded_name(name, {**labels, **dict.fromkeys(extra, OTHER)})
    return recorded_name(name, labels)[0] if note else series  # without extra labels if no room
