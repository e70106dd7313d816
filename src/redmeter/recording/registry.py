"""Registry: the instruments by name, and their limits.

A name has one instrument, however it is spelled and wherever it is requested. Series beyond a limit
share an overflow instrument: labeled overflow="true" for a name with too many label sets, and named
(other) for all.

Some series have labels of two kinds: those that describe the event, which have few values, and
extra labels that an application adds. Label sets with extra labels have a limit of their own.
Beyond it only the extra labels become (other), so that too many users do not hide a failed request:

    http_requests{method="GET",route="/",status="5xx",user="7"}
    http_requests{method="GET",route="/",status="5xx",user="(other)"}
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from redmeter.names import canonical, parse_name, recorded_name
from redmeter.recording.instruments import (
    Counter,
    Gauge,
    Instrument,
    InstrumentOwner,
    ProcessGauge,
)
from redmeter.recording.logging.exceptions import EXCEPTIONS, Exceptions
from redmeter.recording.logging.marks import Marks
from redmeter.recording.logging.messages import Messages
from redmeter.recording.logging.redact import MessageRules
from redmeter.recording.pending import (
    INSTANCE_BYTES,
    needs_instance,
    per_process_series,
    without_instance,
)
from redmeter.stored.message import SEVERITY_OF_LEVEL, source_name

#: The labels of a name's overflow instrument, and the name of the one for all.
OVERFLOW_LABELS = {"overflow": "true"}
OTHER_SERIES = "(other)"
#: The kind of error under which changed label values are counted.
LABEL_VALUE = "label-value"
#: Labels of a series, in addition to those in its name.
Labels = Mapping[str, object] | None
#: A kind of instrument.
C = TypeVar("C", bound=Instrument)

#: Cached spellings of names, per series of the limit.
SPELLINGS = 4
#: Severities that stay distinct beyond the limit of series.
_SEVERITIES = frozenset(SEVERITY_OF_LEVEL.values())


class Registry:
    """The instruments of a recorder. Threads and signal handlers may interrupt each step.

    Args:
        owner: the recorder.
        now, monotonic: clocks, seconds.
        max_series, max_label_sets, rules, release: see Recorder.
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
        self._monotonic = monotonic
        self._instruments: dict[tuple[type[Instrument], str], Instrument] = {}
        self._label_sets: dict[str, int] = {}
        #: Kind -> its class with these clocks, and its instruments by the spelling of a caller.
        self._kinds: dict[type[Instrument], tuple[type[Any], dict[Any, Any]]] = {}
        #: Those of counters; for Meter.count().
        self.by_name: dict[Any, Counter] = self._added(Counter)[1]
        #: Whether any series has a placeholder for the instance number.
        self.per_process = False

    def __len__(self) -> int:
        return len(self._instruments)

    def instruments(self) -> list[Instrument]:
        """Return all instruments."""
        return list(self._instruments.values())

    def instrument(
        self, kind: type[C], name: str, labels: Labels = None, extra: Labels = None
    ) -> C:
        """Return the instrument of a series, always the same one. See Meter.counter().

        Args:
            kind: Counter, Histogram, or another kind without options; gauges have gauge().
            name, labels: the series.
            extra: more labels, which become (other) beyond the limit of label sets.
        """
        made: type[C]
        by_name: dict[Any, C]
        try:
            made, by_name = self._kinds[kind]
        except KeyError:
            made, by_name = self._added(kind)
        if extra:
            return self._labelled(made, name, labels or {}, extra)
        try:
            spelling: Any = (name, tuple(labels.items())) if labels else name
            known = by_name.get(spelling)
        except (TypeError, AttributeError):  # not hashable, or not a mapping
            spelling = known = None
        if known is not None:
            return known
        instrument = self._instrument(made, self._name(name, labels))
        # Values that are not text may be equal and have different texts: 1, 1.0 and True.
        is_text = not labels or all(type(value) is str for value in labels.values())
        if spelling is not None and is_text and len(by_name) < SPELLINGS * self._max_series:
            by_name[spelling] = instrument
        return instrument

    def _added(self, kind: type[Instrument]) -> tuple[type[Any], dict[Any, Any]]:
        return self._kinds.setdefault(kind, (kind._clocked(self._now, self._monotonic), {}))

    def _labelled(
        self, kind: type[C], name: str, labels: Mapping[str, object], extra: Mapping[str, object]
    ) -> C:
        series = self._name(name, {**labels, **extra})
        instrument = self._instruments.get((kind, series))
        if instrument is None:
            budget = f"{parse_name(series).base}{{"  # no name has a brace at its end
            if self._label_sets.get(budget, 0) < self._max_label_sets:
                instrument = self._admit(kind, series, budget)
            else:
                instrument = self._instrument(kind, _without_values(name, labels, extra))
                instrument._overflow = True
        assert isinstance(instrument, kind), "it was made as one"
        return instrument

    def gauge(self, name: str, labels: Labels, *, per_process: bool) -> Gauge:
        """Return the gauge of a series. See Meter.gauge()."""
        series = self._name(name, labels, reserve=INSTANCE_BYTES if per_process else 0)
        if per_process:
            series = per_process_series(series)
            self.per_process = True
        return self._instrument(Gauge, series)

    def _name(self, name: str, labels: Labels, *, reserve: int = 0) -> str:
        """Return the stored spelling, and count label values that were changed."""
        series, note = recorded_name(name, labels, reserve=reserve)
        if note:
            self._owner.record_error(LABEL_VALUE, f"{series}: {note}")
        return without_instance(series)  # an application's empty label is no placeholder

    def process_gauges(self) -> list[Gauge]:
        """Return the gauges that are parts of this process."""
        return [each for each in self.instruments() if type(each) is ProcessGauge]

    def messages(self, logger: str, severity: str) -> Messages:
        """Return the instrument of a logger and severity, as they are stored; always the same."""
        instrument = self._instruments.get((Messages, source_name(logger, severity)))
        if instrument is None:
            overflow = len(self._instruments) >= self._max_series
            if overflow:
                logger, severity = OTHER_SERIES, severity if severity in _SEVERITIES else "info"
            instrument = Messages(logger, severity, self._owner, self._now, self._rules)
            instrument._overflow = overflow
            return self._kept(Messages, instrument.name, instrument)
        assert isinstance(instrument, Messages), "it was made as one"
        return instrument

    def marks(self) -> Marks:
        """Return the instrument of all marks, always the same one."""
        return self._made(Marks, "marks")

    def exceptions(self) -> Exceptions:
        """Return the instrument of all exceptions, always the same."""
        instrument = self._instruments.get((Exceptions, EXCEPTIONS))
        if instrument is None:
            instrument = Exceptions(self._owner, self._now, self._rules, self._release)
        return self._kept(Exceptions, EXCEPTIONS, instrument)

    def _kept(self, kind: type[C], series: str, made: Instrument) -> C:
        """Return the instrument of a series: the given one, unless there is one already."""
        instrument = self._instruments.setdefault((kind, series), made)
        assert isinstance(instrument, kind), "it was made as one"
        return instrument

    def _instrument(self, kind: type[C], series: str) -> C:
        instrument = self._instruments.get((kind, series))
        if instrument is None:
            return self._admit(kind, series)
        assert isinstance(instrument, kind), "it was made as one"
        return instrument

    def _admit(self, kind: type[C], series: str, budget: str = "") -> C:
        """Create the instrument of a series, or return an overflow instrument.

        Args:
            budget: the name whose limit counts the label set; by default that of the series.
        """
        base, labels = parse_name(series)
        budget = budget or base
        if labels and self._label_sets.get(budget, 0) >= self._max_label_sets:
            return self._overflow(kind, base)
        if len(self._instruments) >= self._max_series:
            return self._made(kind, OTHER_SERIES, overflow=True)
        before = len(self._instruments)
        instrument = self._made(kind, series)
        if labels and len(self._instruments) > before:
            self._label_sets[budget] = self._label_sets.get(budget, 0) + 1
        return instrument

    def _overflow(self, kind: type[C], base: str) -> C:
        series = canonical(base, OVERFLOW_LABELS)
        if (kind, series) not in self._instruments and len(self._instruments) >= self._max_series:
            series = OTHER_SERIES
        return self._made(kind, series, overflow=True)

    def _made(self, kind: type[C], series: str, *, overflow: bool = False) -> C:
        instrument: Instrument
        if kind is Gauge:
            made = ProcessGauge if needs_instance(series) else Gauge
            instrument = made(series, self._owner, self._now, overflow=overflow)
        else:
            instrument = kind(series, self._owner, overflow=overflow)
        return self._kept(kind, series, instrument)


def _without_values(name: str, labels: Mapping[str, object], extra: Mapping[str, object]) -> str:
    series, note = recorded_name(name, {**labels, **dict.fromkeys(extra, OTHER_SERIES)})
    return recorded_name(name, labels)[0] if note else series  # without extra labels if no room
