"""How many series there may be: what is beyond is counted together, nothing is refused."""

import pytest

from redmeter import InvalidValue, Meter
from redmeter.clock import ManualClock
from redmeter.names import canonical
from redmeter.recording.instruments import Counter, Gauge, Histogram, Instrument
from redmeter.recording.registry import OTHER_SERIES, Registry


class Idle:
    """Attends to nothing."""

    def attend(self, cell: Instrument) -> None:
        """See InstrumentOwner in instruments.py."""

    def record_error(self, kind: str, text: str) -> None:
        """See InstrumentOwner in instruments.py."""

    def process_gauge(self, series: str) -> Gauge:
        """No test here asks for one."""
        raise AssertionError(series)

    def drop_value(self, series: str) -> None:
        """Drop nothing: no test here records such a value."""
        raise AssertionError(series)


def registry(**limits: int) -> Registry:
    """Return one with small limits."""
    allowed = {"max_series": 9, "max_label_sets": 3} | limits
    return Registry(
        Idle(),
        ManualClock().wall,
        ManualClock().monotonic,
        max_series=allowed["max_series"],
        max_label_sets=allowed["max_label_sets"],
    )


def test_a_name_has_one_cell_however_it_is_spelled() -> None:
    """By labels beside or within it, in any order."""
    known = registry()
    cell = known.instrument(Counter, 'a{x="1",y="2"}')
    assert known.instrument(Counter, "a", {"y": "2", "x": "1"}) is cell
    assert known.instrument(Counter, 'a{ y="2", x="1", }') is cell
    assert len(known) == 1


def test_label_sets_beyond_the_limit_are_one_series() -> None:
    """Those within it stay apart; the name without labels is no label set."""
    known = registry()
    names = [known.instrument(Counter, "a", {"x": str(n)}).name for n in range(6)]
    assert names == [*(f'a{{x="{n}"}}' for n in range(3)), *['a{overflow="true"}'] * 3]
    assert known.instrument(Counter, "a").name == "a"
    assert [cell.name for cell in known.instruments() if cell._overflow] == ['a{overflow="true"}']


def test_series_beyond_the_limit_are_one_series() -> None:
    """However often they are asked for: a name does not run out of label sets by that."""
    known = registry(max_series=2)
    for _ in range(20):
        for n in range(50):
            known.instrument(Counter, f"n{n}", {"x": "1"})
    assert len(known) == 3
    assert {cell.name for cell in known.instruments()} == {'n0{x="1"}', 'n1{x="1"}', OTHER_SERIES}


def test_the_longest_name_has_an_overflow_label() -> None:
    """The longest name has room for it."""
    known, base = registry(max_label_sets=1), "n" * 200
    known.instrument(Counter, base, {"a": "1"})
    overflow = canonical(base, {"overflow": "true"})
    assert known.instrument(Counter, base, {"a": "2"}).name == overflow


def test_gauges_and_counters_of_a_name_are_two_series() -> None:
    """And a gauge of each process has a place for its number."""
    known = registry()
    cells: list[Instrument] = [
        known.gauge("a", None, per_process=False),
        known.instrument(Counter, "a"),
    ]
    assert known.instruments() == cells
    assert not known.per_process
    assert known.gauge("a", None, per_process=True)._series == 'a{instance=""}'
    assert known.per_process


def test_what_is_refused_makes_no_series() -> None:
    """An amount that cannot be counted is refused before anything is made for it."""
    meter = Meter("redis://127.0.0.1:1/0")
    with pytest.raises(InvalidValue):
        meter.count("a", -1, labels={"x": "1"})
    assert meter.recorder_health().series == 0


def test_beyond_the_limit_only_extra_labels_become_others() -> None:
    """What says what happened stays, and so do series without extra labels."""
    known = registry()
    status = {"status": "5xx"}
    made = [known.instrument(Counter, "a", status, {"user": str(n)}) for n in range(6)]
    within = [f'a{{status="5xx",user="{n}"}}' for n in range(3)]
    assert [each.name for each in made] == [*within, *['a{status="5xx",user="(other)"}'] * 3]
    assert [each._overflow for each in made] == [False] * 3 + [True] * 3
    assert known.instrument(Counter, "a", status, {"user": "1"}) is made[1]
    assert known.instrument(Counter, "a", {"status": "5xx", "user": "1"}) is made[1]
    assert known.instrument(Counter, "a", status).name == 'a{status="5xx"}'
    assert not known.instrument(Counter, "a", status)._overflow


def test_series_with_others_are_limited_as_well() -> None:
    """A name has at most twice as many label sets, and one for all others."""
    known = registry(max_series=100)
    for n in range(20):
        known.instrument(Histogram, "a", {"route": str(n)}, {"user": str(n)})
    assert len(known) == 3 + 3 + 1
    assert (
        known.instrument(Histogram, "a", {"route": "19"}, {"user": "19"}).name
        == 'a{overflow="true"}'
    )


def test_extra_labels_for_which_there_is_no_room_as_others_are_left_out() -> None:
    """The name would be too long."""
    known = registry()
    labels = dict.fromkeys("abcd", "x" * 118)
    for n in range(3):
        known.instrument(Counter, "a", None, {"u": str(n)})
    assert known.instrument(Counter, "a", labels, {"u": ""}).name == canonical("a", labels)
