"""The history checker: what it lets pass, and that it finds a single event too many or too few."""

from collections import Counter

import pytest

from redmeter.stored.shards import TAGS, shard_of
from support.history import OBSERVED, TOTAL, Event, Ledger, Stored, check, check_exact
from support.servers import Server
from support.waiting import eventually
from support.writers import Writers, names

pytestmark = pytest.mark.nightly

#: A second that begins a minute, an hour and a day.
START = 1_700_006_400
SERIES = "load.1", f"{OBSERVED}.1"


def recorded() -> list[Event]:
    """Return three events of each of two series, in two seconds."""
    seconds = (START, START + 1, START + 1)
    return [Event(i, seconds[i], series, 1) for series in SERIES for i in range(3)]


def stored(events: list[Event]) -> Stored:
    """Return a store that has them."""
    found = Stored()
    found.counted, found.observed, found.now = {1: 120, 60: 120}, {5: 24, 60: 120}, START + 2
    for event in events:
        for precision in found.precisions(event.series):
            start = event.second // precision * precision if precision else 0
            found.slices[precision, event.series][start] += event.amount
        found.tags[event.series].add(TAGS[shard_of(event.series)])
    return found


def test_what_was_recorded_and_nothing_else_is_exact() -> None:
    """Each slice has its events; slices that are no longer kept may be gone."""
    check_exact(Ledger(recorded()), stored(recorded()))
    later = stored(recorded())
    later.now += 3600
    for series in SERIES:
        for precision in (1, 5):
            later.slices.pop((precision, series), None)
    check_exact(Ledger(recorded()), later)


@pytest.mark.parametrize("series", SERIES)
def test_an_event_too_few_is_found_unless_it_is_accounted_for(series: str) -> None:
    """As lost, as uncertain, or as what a failover may cost."""
    few = recorded()
    few.remove(next(event for event in few if event.series == series))
    ledger, there = Ledger(recorded()), stored(few)
    with pytest.raises(AssertionError, match="2 stored of 3"):
        check(ledger, there)
    lost = Counter({(precision, series): 1 for precision in there.precisions(series)})
    with pytest.raises(AssertionError):
        check_exact(ledger, there)
    check(Ledger(recorded(), lost), there)
    check(Ledger(recorded(), uncertain=1), there)
    missing = check(ledger, there, missing=lambda name: int(name == series))
    assert +missing == {series: 1}
    with pytest.raises(AssertionError):
        check(ledger, there, missing=lambda name: int(name != series))


@pytest.mark.parametrize("series", SERIES)
def test_an_event_too_many_is_found_whatever_is_missing(series: str) -> None:
    """In one slice of one precision, also where all of another slice is missing."""
    for precision in (1, 5, 60, TOTAL):
        there = stored(recorded())
        slices = there.slices[precision, series]
        if not slices:
            continue
        slices[min(slices)] += 1
        for other in set(slices) - {min(slices)}:
            slices[other] -= 1
        for ledger in (Ledger(recorded()), Ledger(recorded(), uncertain=9)):
            with pytest.raises(AssertionError, match="recorded"):
                check(ledger, there, missing=lambda _: 9)


def test_what_is_lost_and_there_all_the_same_is_found() -> None:
    """Counted as lost, it must not be stored."""
    lost = Counter({(60, "load.1"): 1})
    with pytest.raises(AssertionError, match="1 lost"):
        check(Ledger(recorded(), lost), stored(recorded()))


def test_what_is_uncertain_counts_once_for_all_series() -> None:
    """Two series cannot both lack the one event of which nobody can know."""
    few = [event for event in recorded() if event.second != START]
    with pytest.raises(AssertionError):
        check(Ledger(recorded(), uncertain=1), stored(few))
    check(Ledger(recorded(), uncertain=2), stored(few))


def test_fine_slices_that_do_not_add_up_are_found() -> None:
    """A batch is stored whole or not at all."""
    there = stored(recorded())
    there.slices[1, "load.1"][START] -= 1
    with pytest.raises(AssertionError, match="load"):
        check(Ledger(recorded()), there, missing=lambda _: 1)


def test_a_series_in_a_shard_that_is_not_its_own_is_found() -> None:
    """Or one that nobody recorded."""
    there = stored(recorded())
    there.tags["load.1"].add(TAGS[shard_of("load.1") - 1])
    with pytest.raises(AssertionError):
        check(Ledger(recorded()), there)
    with pytest.raises(AssertionError, match="nobody recorded"):
        check(Ledger(recorded()[:3]), stored(recorded()))


def test_writers_of_one_store_tell_what_they_recorded(server: Server) -> None:
    """Threads and a process, of counters and of observed values."""
    with Writers(server.url, threads=1, processes=1) as writers:
        eventually(lambda: len(writers.threads[0].events) > 1000, 10.0)
        ledger = writers.finish()
    with server.client(decode_responses=True) as client:
        check_exact(ledger, Stored.read([client]))
        assert {event.series for event in ledger.events} == set(names())
        client.hincrby("redmeter:total:", "load.0", 1)
        with pytest.raises(AssertionError, match=r"load\.0 at 0"):
            check(ledger, Stored.read([client]))
