"""The thread that cleans a store beside an application's requests, on a private server."""

import threading

from redmeter import Meter
from redmeter.integrations.shared.web import Cleaner
from redmeter.integrations.wsgi import RedmeterMiddleware
from support.servers import Server
from support.waiting import eventually


def test_a_cleaner_cleans_until_it_is_stopped(server: Server) -> None:
    """In a thread of its own, which ends promptly; it may be started again."""
    with Meter(server.url) as meter:
        store = meter._store
        assert store is not None
        cleaner = Cleaner(meter)
        cleaner.stop()
        for _ in range(2):
            store.ask([("DEL", store.keys.cleaned)])
            cleaner.start()
            cleaner.start()
            eventually(lambda: store.ask([("EXISTS", store.keys.cleaned)]) == [1], 5, "cleaned")
            cleaner.stop()
            assert cleaner._thread is not None
            assert not cleaner._thread.is_alive()


def test_a_cleaner_of_a_meter_that_is_off_does_nothing() -> None:
    """There is no store."""
    cleaner = Cleaner(Meter("off"))
    cleaner.start()
    assert cleaner._thread is None


def test_closing_a_meter_ends_its_cleaner_and_the_next_request_starts_another(
    server: Server,
) -> None:
    """Whoever started it; nothing is left to end once it was stopped by itself."""

    def running() -> list[str]:
        return [each.name for each in threading.enumerate() if each.name == "redmeter-cleaner"]

    meter = Meter(server.url)
    app = RedmeterMiddleware(lambda *_: [], meter, cleaner=True)
    for _ in range(2):
        for _ in range(2):
            app({"PATH_INFO": "/"}, lambda *_: lambda _: None)
        assert len(running()) == 1
        meter.close()
        assert running() == []
    other = Cleaner(meter)
    other.start()
    assert len(running()) == 1
    other.stop()
    assert (running(), meter._helpers) == ([], ())
    meter.close()
