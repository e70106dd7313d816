"""RedmeterHandler beside others: levels, filters, dictConfig, and what cannot be used."""

import logging
import logging.config
import logging.handlers
import sys
from typing import Any

import pytest

from redmeter import Meter
from redmeter.integrations.logging import RedmeterHandler, install
from redmeter.integrations.shared import interface
from redmeter.testing import MemoryMeter
from support.logs import Raising, patterns, texts
from support.servers import Server


def test_install_adds_one_handler_and_changes_nothing_else(
    memory: MemoryMeter, app_log: logging.Logger
) -> None:
    """Levels of loggers, other handlers, the root's filters."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    handler = install(memory)
    assert root.handlers == [*handlers, handler]
    assert root.level == level
    assert handler.level == logging.INFO
    assert handler.meter is memory
    assert install(memory) is handler
    assert install(memory, level=logging.ERROR) is handler
    assert install(memory).level == logging.ERROR
    other = install(MemoryMeter())
    assert other is not handler
    assert root.handlers == [*handlers, handler, other]


def test_level_and_filters_of_the_user_hold(memory: MemoryMeter, app_log: logging.Logger) -> None:
    """They are asked as of any handler."""
    handler = install(memory, level="WARNING")
    handler.addFilter(lambda record: record.name != "app.noise")
    app_log.info("too low")
    app_log.warning("high enough")
    logging.getLogger("app.noise").error("filtered")
    handler.setLevel(logging.ERROR)
    app_log.warning("too low now")
    assert [(m.logger, m.text) for m in memory.log_messages("app.jobs")] == [
        ("app.jobs", "high enough")
    ]
    assert [s.logger for s in memory.loggers()] == ["app.jobs"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="filters replace records since Python 3.12")
def test_a_filter_may_replace_the_record(memory: MemoryMeter, log: logging.Logger) -> None:
    """What it puts in place is counted."""

    def replacing(record: logging.LogRecord) -> logging.LogRecord:
        return logging.makeLogRecord({**record.__dict__, "msg": "other", "args": ()})

    install(memory, logger=log).addFilter(replacing)  # type: ignore[arg-type]
    log.info("pin %s", 1234)
    assert texts(memory) == ["other"]


def test_it_may_hang_below_any_logger(memory: MemoryMeter, app_log: logging.Logger) -> None:
    """By name, or the logger itself; twice is once."""
    handler = install(memory, logger="app")
    assert install(memory, logger=logging.getLogger("app")) is handler
    app_log.info("x")
    logging.getLogger("other").error("x")
    logging.getLogger("app").removeHandler(handler)
    assert [s.logger for s in memory.loggers()] == ["app.jobs"]


def test_there_is_no_lock(memory: MemoryMeter, log: logging.Logger) -> None:
    """Whoever holds what other handlers would have for one, nobody waits."""
    handler = install(memory, logger=log)
    assert handler.lock is None
    handler.acquire()
    handler.release()
    log.info("x")
    assert patterns(memory) == {"x": 1}


def test_logging_shutdown_does_not_mind(meter: Meter, log: logging.Logger) -> None:
    """What is logged after it is counted as well."""
    handler = install(meter, logger=log)
    log.info("before")
    logging.shutdown([lambda: handler])
    log.info("after")
    assert patterns(meter) == {"before": 1, "after": 1}


def test_dictconfig_makes_a_handler_and_no_meter(
    server: Server, app_log: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The meter is made by the environment, for the first record."""
    monkeypatch.setenv("REDMETER_URL", server.url)
    made: dict[str, Any] = {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {
            "count": {
                "class": "redmeter.integrations.logging.RedmeterHandler",
                "level": "WARNING",
            }
        },
        "loggers": {"app.jobs": {"handlers": ["count"], "level": "INFO"}},
    }
    logging.config.dictConfig(made)
    (handler,) = app_log.handlers
    assert isinstance(handler, RedmeterHandler)
    assert handler.meter is None
    assert repr(handler) == "<RedmeterHandler None (WARNING)>"
    app_log.info("too low")
    assert handler.meter is None
    app_log.warning("x %s", 1)
    assert handler.meter is not None
    assert patterns(handler.meter) == {"x %s": 1}
    handler.meter.close()


def test_dictconfig_takes_a_meter(memory: MemoryMeter, app_log: logging.Logger) -> None:
    """As an object."""
    name = "redmeter.integrations.logging.RedmeterHandler"
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"count": {"class": name, "meter": memory}},
            "loggers": {"app.jobs": {"handlers": ["count"], "level": "INFO"}},
        }
    )
    app_log.info("x")
    assert patterns(memory) == {"x": 1}


def test_an_environment_that_cannot_be_used_is_said_once(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The application goes on."""
    monkeypatch.setenv("REDMETER_URL", "nonsense")
    handler = RedmeterHandler()
    log.addHandler(handler)
    for _ in range(3):
        log.error("x %s", Raising())
    assert handler.meter is None
    said = [r.getMessage() for r in caplog.records if r.name == "redmeter"]
    assert len(said) == 1
    assert said[0].startswith("redmeter: messages are not counted: url: unknown scheme")


def test_only_so_many_loggers_are_remembered(
    memory: MemoryMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages of all others are counted as well."""
    monkeypatch.setattr(interface, "SINKS", 3)
    handler = RedmeterHandler(memory)
    for number in (*range(6), *range(6)):
        name = f"app.{number}"
        handler.handle(logging.LogRecord(name, logging.INFO, "", 1, "x %s", (1,), None))
    assert len(handler._sinks) == 3
    assert len(memory.loggers()) == 6
    assert patterns(memory, "app.5") == {"x %s": 2}


def test_switched_off_it_does_nothing(log: logging.Logger) -> None:
    """No thread, and nothing waits."""
    meter = Meter("off")
    install(meter, logger=log)
    log.info("x")
    assert meter.log_messages("app.jobs") == []


@pytest.mark.parametrize("sync", [True, False])
def test_a_store_that_is_away_raises_nothing(log: logging.Logger, sync: bool) -> None:
    """Neither where a message is stored at once."""
    with Meter("redis://127.0.0.1:1/0", sync=sync, timeout=0.05, flush_interval=3600) as meter:
        install(meter, logger=log)
        log.error("x %s", 1)
        log.error("x %s", 2)  # now that the handler knows where to
        log.error("x %d", "no number")
        log.error("x %d", "no number")
        health = meter.recorder_health()
        assert (health.recorded, health.dropped if sync else health.buffered) == (4, 4)
