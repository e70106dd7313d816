"""The past of the demo: charts are full at once, and their figures agree with each other."""

import pytest

from redmeter import Meter
from redmeter import store as stores
from redmeter.demo import past
from redmeter.stored.keys import DEFAULT_RETENTION, Retention
from support.servers import Server


def test_the_last_days_are_full_at_every_precision(server: Server) -> None:
    """Within seconds; and nothing is written of the future."""
    store = stores.open(server.url, prefix="demo:")
    assert store is not None
    hits = past.fill(store, 1)
    store.close()
    with Meter(server.url, prefix="demo:") as meter:
        assert meter.total("hits") == hits
        for precision in (60, 300, 3600):
            series = meter.series("hits", precision=precision)
            assert sum(sample.value > 0 for sample in series) >= 117, precision
        # At night not every second has a hit; what there is, is the same at all precisions.
        minutes = {sample.start: sample.value for sample in meter.series("hits", precision=60)}
        for precision, least in ((1, 1), (5, 8)):
            found = {s.start: s.value for s in meter.series("hits", precision=precision)}
            full = [m for m in minutes if m in found and m + 60 - precision in found]
            assert len(full) >= least
            for minute in full:
                fine = [found[at] for at in range(minute, minute + 60, precision)]
                assert sum(fine) == minutes[minute]
        days = [sample.value for sample in meter.series("hits", precision=3600)][-48:-1]
        assert max(days) > 2 * min(days)
        # Every hit is of some page, and every page took some time.
        by_route = meter.top("http_requests", by="route", precision=3600, last="240h")
        window = sum(sample.value for sample in meter.series("hits", precision=3600))
        assert sum(row.count for row in by_route) == window
        whole = meter.summary("http_request_seconds", precision=3600)
        assert whole.count == window
        report = meter.top("http_request_db_ratio", by="route", precision=3600, order="mean")[0]
        assert report.key == "/admin/report"
        # What is sold is paid for.
        paid = meter.total("payments", labels={"outcome": "paid"})
        assert meter.total("confirmations", labels={"outcome": "sent"}) == paid
        assert 2.5 < sum(map(meter.total, meter.names("sales{*"))) / paid < 4
        cents = sum(map(meter.total, meter.names("revenue_cents{*")))
        carts = meter.summary("cart_value", precision=3600)
        assert cents / paid / 100 == pytest.approx(carts.mean, rel=0.5)


def test_the_past_follows_from_the_seed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed is the same past, another one is another."""
    monkeypatch.setattr(past, "REACH", 6 * 3600)
    hours = []
    for prefix, seed in (("demo1:", 1), ("demo2:", 1), ("demo3:", 2)):
        # Of the default precisions, most intervals are finer than what is compared.
        store = stores.open(server.url, prefix=prefix, retention={300: 120, 3600: 120})
        assert store is not None
        past.fill(store, seed)
        store.close()
        with Meter(server.url, prefix=prefix) as meter:
            # As fine as five minutes at both times, wherever the seconds are.
            series = meter.series("hits", precision=300)
            hours.append([sample.value for sample in series][-60:-30])
    assert len(hours[0]) == 30
    assert hours[0] == hours[1] != hours[2]


def test_the_slices_of_the_past_neither_overlap_nor_leave_anything_out() -> None:
    """Each is as fine as its age is told by, and begins where it has to."""
    for now in (1_795_564_800.0, 1_795_567_311.7):
        found = list(past.slices(Retention(DEFAULT_RETENTION), now))
        ends = [start + width for start, width in found]
        assert ends[:-1] == [start for start, _ in found[1:]]
        assert all(start % width == 0 for start, width in found)
        assert now - 1 < ends[-1] <= now
        widths = [width for _, width in found]
        assert (max(widths), min(widths)) == (3600, 1)
        assert len(found) < 700
