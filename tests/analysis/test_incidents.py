"""Incidents in the cells of ten days: how long they last, and when they are over."""

import pytest

from redmeter.analysis.comparing.incidents import CellGrid, Shares
from redmeter.stored.keys import DEFAULT_RETENTION, Retention

END = 1_700_000_040


def shares(minutes: int, share: float, *, good: int = 0, per_minute: int = 600) -> Shares:
    """Return a series of which 1 % fails; more within some minutes, but for the last ones."""
    grid = CellGrid(END + 20, Retention(DEFAULT_RETENTION), END - 3 * 86_400)
    events, of = [], []
    for number, (start, length) in enumerate(zip(grid.starts, grid.lengths, strict=True)):
        ago = (END - start) / 60
        rate = share if good < ago <= minutes else 0.01
        count = per_minute * length // 60
        of.append(count)
        events.append(round(count * rate) + (number % 2 if per_minute > 100 else 0))
    return Shares(grid, events, of)


@pytest.mark.parametrize("minutes", [5, 70, 400, 1_200, 2_400])
def test_an_incident_never_becomes_usual(minutes: int) -> None:
    """It is compared with the time before it, and the usual share is of that time."""
    incident = shares(minutes, 0.2).incident()
    assert incident is not None
    assert not incident.over
    assert (END - incident.since) / 60 == pytest.approx(minutes, abs=60 if minutes > 600 else 5)
    assert incident.usual.share == pytest.approx(0.01, rel=0.3)


def test_a_few_good_minutes_of_few_requests_end_nothing() -> None:
    """They are too few to judge; as many of many requests end it."""
    unsure = shares(40, 0.2, good=3, per_minute=3).incident()
    assert unsure is not None
    assert not unsure.over
    assert unsure.unsure_since == END - 180
    over = shares(40, 0.2, good=4).incident()
    assert over is not None
    assert over.over
    assert over.until == END - 240
