"""RedmeterHandler leaves out what is logged while it handles a record, and while a meter stores."""

import logging
import logging.config
import logging.handlers
from typing import Any

import pytest

from redmeter import Meter
from redmeter.integrations.logging import install
from redmeter.store.servers.connection import ServerLink
from redmeter.testing import MemoryMeter
from support.logs import patterns
from support.servers import Server


class Logging:
    """A value whose text logs."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    def __str__(self) -> str:
        self._log.warning("making a text")
        self._log.warning("making %s", self)  # and so on
        return "text"


@pytest.mark.parametrize("formatter", [None, logging.Formatter("%(message)s")])
def test_a_record_made_while_one_is_handled_is_left_out(
    memory: MemoryMeter, log: logging.Logger, formatter: logging.Formatter | None
) -> None:
    """Else there would be no end of it; the next one is handled again."""
    install(memory, logger=log).setFormatter(formatter)
    log.info("with %s", Logging(log))
    log.info("after")
    assert patterns(memory) == {"with %s": 1, "after": 1}


def test_a_record_that_is_emitted_past_the_filters_is_handled_alike(
    memory: MemoryMeter, log: logging.Logger
) -> None:
    """As by a handler that passes records on: what it logs is left out, the next one is not."""
    handler = install(memory, logger=log)
    handler.addFilter(lambda _: False)

    class Emitting:
        def __str__(self) -> str:
            handler.emit(record("within", ()))
            return "text"

    def record(msg: str, args: tuple[Any, ...]) -> logging.LogRecord:
        return logging.LogRecord("app.jobs", logging.INFO, "", 1, msg, args, None)

    handler.emit(record("with %s", (Emitting(),)))
    handler.emit(record("after", ()))
    assert patterns(memory) == {"with %s": 1, "after": 1}


def test_a_filter_may_log(memory: MemoryMeter, log: logging.Logger) -> None:
    """It is not asked again about that."""
    handler = install(memory, logger=log)

    def chatty(record: logging.LogRecord) -> bool:
        log.info("filtering")
        return True

    handler.addFilter(chatty)
    log.info("x")
    assert patterns(memory) == {"x": 1}


def test_the_handler_works_again_after_an_interruption(
    memory: MemoryMeter, log: logging.Logger
) -> None:
    """Ctrl-C within an argument's __str__ passes on, and leaves nothing behind."""

    class Interrupting:
        def __str__(self) -> str:
            raise KeyboardInterrupt

    install(memory, logger=log)
    with pytest.raises(KeyboardInterrupt):
        log.info("with %s", Interrupting())
    log.info("after")
    assert patterns(memory) == {"after": 1}


def test_the_librarys_own_log_is_left_out(memory: MemoryMeter, app_log: logging.Logger) -> None:
    """By its name: what it says of a store that is away belongs to the store's own trouble."""
    install(memory)
    for name in ("redmeter", "redmeter.store", "redmeters", "a.redmeter"):
        logging.getLogger(name).error("x")
    assert sorted(s.logger for s in memory.loggers()) == ["a.redmeter", "redmeters"]


def test_what_is_logged_while_a_meter_stores_is_left_out(
    server: Server, log: logging.Logger
) -> None:
    """A mask that logs, say, or the client library: recorded, it would make for the next flush."""

    def mask(text: str) -> str:
        log.info("masking")
        return text

    with Meter(server.url, flush_interval=3600, mask=mask) as meter:
        install(meter, logger=log)
        log.info("x")
        assert patterns(meter) == {"x": 1}
        assert patterns(meter) == {"x": 1}
        assert meter.recorder_health().recorded == 1


@pytest.mark.parametrize("sync", [True, False])
def test_the_logs_of_the_client_library_come_to_an_end(
    server: Server, app_log: logging.Logger, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    """One that logs each exchange logs none for having been logged, with two meters as well."""
    exchange, chatty = ServerLink.exchange, logging.getLogger("client")

    def talkative(*args: Any, **options: Any) -> Any:
        chatty.warning("sending")
        return exchange(*args, **options)

    monkeypatch.setattr(ServerLink, "exchange", talkative)
    with Meter(server.url, sync=sync) as one, Meter(server.url, prefix="two:", sync=sync) as two:
        install(one)
        install(two)
        app_log.info("x")
        for _ in range(3):
            assert one.flush()
            assert two.flush()
        assert [one.recorder_health().recorded, two.recorder_health().recorded] == [1, 1]
