"""RedmeterHandler: what an application logs is counted, whatever it is, and costs it nothing."""

import asyncio
import logging
import logging.config
import logging.handlers
import queue
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter import Meter
from redmeter.integrations import intake
from redmeter.integrations.logging import RedmeterHandler, install
from redmeter.model import Frequency
from redmeter.store.link import Link
from redmeter.testing import MemoryMeter
from support.programs import Programs
from support.servers import Server


class Raising:
    """A value of which no text can be made."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


def patterns(meter: Meter, logger: str = "app.jobs") -> dict[str, int]:
    """Return how often each pattern of a logger came within these two hours."""
    meter.flush()
    return {f.pattern: f.count + f.before for f in meter.common(logger)}


def texts(meter: Meter, logger: str = "app.jobs") -> list[str]:
    """Return the newest messages of a logger, the newest first."""
    meter.flush()
    return [message.text for message in meter.recent(logger)]


def fail() -> None:
    """Raise."""
    raise KeyError("job 7")


# --- What is counted -----------------------------------------------------------------------


def test_a_record_is_counted_by_its_format(meter: Meter, log: logging.Logger) -> None:
    """The format is the pattern, exact; the text has the arguments."""
    install(meter, logger=log)
    for number in range(3):
        log.warning("retrying %s in %d ms", "/a", number)
    log.info("%(what)s done", {"what": "job"})
    assert patterns(meter) == {"retrying %s in %d ms": 3, "%(what)s done": 1}
    assert texts(meter)[0] == "job done"
    assert {m.severity for m in meter.recent("app.jobs")} == {"warning", "info"}


def test_a_record_without_arguments_is_counted_by_its_masked_text(
    meter: Meter, log: logging.Logger
) -> None:
    """It may be an f-string."""
    install(meter, logger=log)
    for number in (17, 18):
        log.info(f"order {number} took {number / 10}ms")
    assert patterns(meter) == {"order <n> took <duration>": 2}
    assert texts(meter) == ["order 18 took 1.8ms", "order 17 took 1.7ms"]


def test_an_exception_adds_its_type_and_place_to_the_pattern(
    meter: Meter, log: logging.Logger
) -> None:
    """What it says is in the text alone; with a format and without."""
    install(meter, logger=log)
    line = fail.__code__.co_firstlineno + 2
    for message, args in (("job %s failed", (7,)), ("job 7 failed", ())):
        try:
            fail()
        except KeyError:
            log.exception(message, *args)
    place = f"[KeyError at test_logging.py:{line} in fail]"
    assert patterns(meter) == {f"job %s failed {place}": 1, f"job <n> failed {place}": 1}
    for text in texts(meter):
        assert text.startswith("job 7 failed\n")
        assert text.endswith(f"{Path(__file__).name}:{line} in fail\nKeyError: 'job 7'")


@pytest.mark.parametrize(
    "given",
    [
        ValueError("x"),
        (ValueError, ValueError("x"), None),
        (None, ValueError("x"), None),
    ],
)
def test_an_exception_without_a_traceback_adds_its_type(
    memory: MemoryMeter, log: logging.Logger, given: Any
) -> None:
    """In any of the forms in which a record may have it."""
    handler = RedmeterHandler(memory)
    record = logging.LogRecord("app.jobs", logging.ERROR, "", 1, "bad %s", ("x",), None)
    record.exc_info = given
    handler.handle(record)
    assert patterns(memory) == {"bad %s [ValueError]": 1}
    assert texts(memory) == ["bad x\nValueError: x"]


@pytest.mark.parametrize("given", [(None, None, None), True, False, 17, "x", ((),)])
def test_exc_info_that_holds_no_exception_adds_nothing(memory: MemoryMeter, given: Any) -> None:
    """log.error("…", exc_info=True) where nothing is being handled."""
    record = logging.LogRecord("app.jobs", logging.ERROR, "", 1, "bad %s", ("x",), None)
    record.exc_info = given
    RedmeterHandler(memory).handle(record)
    assert patterns(memory) == {"bad %s": 1}


def test_a_traceback_that_is_text_already_tells_its_place_as_well(memory: MemoryMeter) -> None:
    """As of a record that came by a socket, or that another handler has formatted."""
    record = logging.LogRecord("app.jobs", logging.ERROR, "", 1, "bad %s", ("x",), None)
    record.exc_text = (
        'Traceback (most recent call last):\n  File "/srv/app/a.py", line 1, in <module>\n'
        '    f()\n  File "/srv/app/jobs.py", line 12, in run\n    g()\nmyapp.errors.Bad: no 7'
    )
    RedmeterHandler(memory).handle(record)
    assert patterns(memory) == {"bad %s [Bad at jobs.py:12 in run]": 1}
    assert texts(memory)[0].endswith("Bad: no 7")
    for trace in ("ValueError: x", "!", "\n"):
        record.exc_text = trace
        RedmeterHandler(memory).handle(record)
    assert patterns(memory)["bad %s [ValueError]"] == 1
    assert patterns(memory)["bad %s"] == 2


def test_a_stack_is_part_of_the_text(memory: MemoryMeter, log: logging.Logger) -> None:
    """The pattern is as without."""
    install(memory, logger=log)
    log.error("here %s", 1, stack_info=True)
    assert patterns(memory) == {"here %s": 1}
    assert "Stack (most recent call last)" in texts(memory)[0]


@pytest.mark.parametrize(
    ("message", "pattern"),
    [(ValueError("no 7"), "no <n>"), ({"a": 1}, "{<str>: <n>}"), (None, "None"), (7, "<n>")],
)
def test_a_message_may_be_anything(
    memory: MemoryMeter, log: logging.Logger, message: Any, pattern: str
) -> None:
    """Its text is what str() makes of it."""
    install(memory, logger=log)
    log.error(message)
    assert list(patterns(memory)) == [pattern]
    assert texts(memory) == [str(message)]


def test_secrets_are_masked(meter: Meter, log: logging.Logger) -> None:
    """In texts, formats and patterns."""
    install(meter, logger=log)
    log.warning("login with password=%s", "hunter2")
    log.warning("redis://bob:hunter2@db/0 is away")
    assert "hunter2" not in repr((meter.recent("app.jobs"), patterns(meter), texts(meter)))
    assert len(texts(meter)) == 2


def test_levels_become_severities(memory: MemoryMeter, log: logging.Logger) -> None:
    """Levels between the named ones mean the next below."""
    install(memory, level=logging.NOTSET, logger=log)
    for level in (1, 10, 20, 25, 30, 40, 50, 99):
        log.log(level, "x")
    log.setLevel(1)
    log.log(5, "x")
    assert sorted({f.severity for f in memory.common("app.jobs")}) == [
        *("critical", "debug", "error", "info", "warning")
    ]


def test_the_records_time_is_the_messages_time(memory: MemoryMeter) -> None:
    """Also where it comes late, through a queue for instance."""
    record = logging.LogRecord("app.jobs", logging.INFO, "", 1, "x", (), None)
    record.created = 1_700_000_000.25
    RedmeterHandler(memory).handle(record)
    (message,) = memory.recent("app.jobs")
    assert message.time == pytest.approx(1_700_000_000.25, abs=60)  # by the clock of the meter


def test_a_time_that_is_none_is_now(memory: MemoryMeter) -> None:
    """Of the first record of a logger, and of those after it."""
    handler, now = RedmeterHandler(memory), memory.clock.wall()
    for created in (float("inf"), float("nan"), -1e300, 1e300):
        record = logging.LogRecord("app.jobs", logging.INFO, "", 1, "x %s", (1,), None)
        record.created = created
        handler.handle(record)
    assert patterns(memory) == {"x %s": 4}
    for message in memory.recent("app.jobs"):
        assert message.time is not None
        assert now <= message.time < now + 60


# --- What cannot be read -------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("x",), (1, 2), (), (Raising(),), ({"a": 1},)])
@pytest.mark.parametrize("template", ["%d and %d", "%(b)s %d"])
def test_arguments_that_do_not_fit_lose_nothing(
    memory: MemoryMeter,
    log: logging.Logger,
    capsys: pytest.CaptureFixture[str],
    template: str,
    arguments: tuple[Any, ...],
) -> None:
    """The format is counted, the text is the format and a note, and nothing is printed."""
    install(memory, logger=log)
    log.error(template, *arguments)
    (frequency,) = memory.common("app.jobs")
    assert frequency.count + frequency.before == 1
    if arguments not in ((), (1, 2)):
        assert frequency.pattern == template
        assert texts(memory)[0].startswith(f"{template} (not formatted: ")
        assert memory.health().troubles == {"format": 1}
    assert capsys.readouterr() == ("", "")


def test_a_message_without_a_text_is_counted(memory: MemoryMeter, log: logging.Logger) -> None:
    """With its class for a pattern."""
    install(memory, logger=log)
    log.error(Raising())
    log.error("with %s", Raising())
    assert patterns(memory) == {"(Raising without a text: ValueError)": 1, "with %s": 1}


def test_a_formatter_makes_the_text_and_not_the_pattern(
    memory: MemoryMeter, log: logging.Logger
) -> None:
    """With arguments and without."""
    install(memory, logger=log).setFormatter(logging.Formatter("<%(levelname)s> %(message)s"))
    log.info("retrying %s", "/a")
    log.info("retrying 17")
    log.error("bad %s", 1, exc_info=ValueError("x"))
    assert patterns(memory) == {"retrying %s": 1, "retrying <n>": 1, "bad %s [ValueError]": 1}
    assert texts(memory) == [
        "<ERROR> bad 1\nValueError: x",
        "<INFO> retrying 17",
        "<INFO> retrying /a",
    ]


def test_a_formatter_that_raises_costs_only_its_text(
    memory: MemoryMeter, log: logging.Logger
) -> None:
    """The message is there without it, and a note."""
    install(memory, logger=log).setFormatter(logging.Formatter("%(nothing)s"))
    log.info("retrying %s", "/a")
    assert patterns(memory) == {"retrying %s": 1}
    assert texts(memory) == ["retrying /a (not formatted: ValueError)"]
    assert memory.health().troubles == {"format": 1}


def test_a_filter_that_raises_costs_the_text(memory: MemoryMeter, log: logging.Logger) -> None:
    """It may be there to keep a secret out: nothing of the message is stored, but that it was."""

    def careful(record: logging.LogRecord) -> bool:
        raise RuntimeError(record.msg)

    install(memory, logger=log).addFilter(careful)
    log.error("pin %s", 1234)
    assert texts(memory) == ["(left out: a filter raised RuntimeError)"]
    assert patterns(memory) == {"(left out: a filter raised RuntimeError)": 1}


@pytest.mark.parametrize("given", [None, 17, "text", object(), logging.makeLogRecord({})])
def test_what_is_no_record_raises_nothing(memory: MemoryMeter, given: Any) -> None:
    """Whatever hands it over."""
    handler = RedmeterHandler(memory)
    handler.handle(given)
    handler.emit(given)
    handler.handleError(given)
    assert len(memory.loggers()) == 1


_values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.just(Raising())
)
_odd = st.one_of(_values, st.lists(_values, max_size=3), st.dictionaries(st.text(), _values))
_texts = st.one_of(
    st.text(st.characters(), max_size=40),  # surrogates included
    st.sampled_from(
        ["", "%s", "%d %d", "%(a)s", "100%", "\x1b[31m", "a\nb", "\ud800", "x" * 2**20]
    ),
)


@given(
    msg=st.one_of(_texts, _odd),
    args=st.one_of(st.lists(_values, max_size=3).map(tuple), st.dictionaries(st.text(), _values)),
    fields=st.fixed_dictionaries(
        {},
        optional={
            "name": st.one_of(_texts, _odd),
            "levelno": st.one_of(st.integers(), _odd),
            "created": st.one_of(st.floats(), _odd),
            "exc_info": st.one_of(_odd, st.just(ValueError("x"))),
            "exc_text": st.one_of(_texts, _odd),
            "stack_info": st.one_of(_texts, _odd),
        },
    ),
    formatted=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_record_is_counted_and_none_raises(
    msg: Any, args: Any, fields: dict[str, Any], formatted: bool
) -> None:
    """Whatever its fields hold."""
    meter = MemoryMeter()
    handler = RedmeterHandler(meter)
    if formatted:
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    record = logging.makeLogRecord({"name": "app", "msg": msg, "args": args, **fields})
    handler.handle(record)
    handler.emit(record)
    own = isinstance(record.name, str) and (
        record.name == "redmeter" or record.name.startswith("redmeter.")
    )
    assert len(meter.messages) == (0 if own else 2)


def test_a_megabyte_is_cut_at_once(meter: Meter, log: logging.Logger) -> None:
    """It does not wait in memory as a whole, and says what is missing."""
    install(meter, logger=log)
    for _ in range(100):
        log.error("x" * 1_000_000)
    assert meter.health().buffer_bytes < 1_000_000
    (text,) = set(texts(meter))
    assert len(text) <= 2000
    assert text.endswith(" more)")


# --- Records that are made while one is handled --------------------------------------------


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
        assert meter.health().recorded == 1


@pytest.mark.parametrize("sync", [True, False])
def test_the_logs_of_the_client_library_come_to_an_end(
    server: Server, app_log: logging.Logger, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    """One that logs each exchange logs none for having been logged, with two meters as well."""
    exchange, chatty = Link.exchange, logging.getLogger("client")

    def talkative(*args: Any, **options: Any) -> Any:
        chatty.warning("sending")
        return exchange(*args, **options)

    monkeypatch.setattr(Link, "exchange", talkative)
    with Meter(server.url, sync=sync) as one, Meter(server.url, prefix="two:", sync=sync) as two:
        install(one)
        install(two)
        app_log.info("x")
        for _ in range(3):
            assert one.flush()
            assert two.flush()
        assert [one.health().recorded, two.health().recorded] == [1, 1]


# --- Levels, filters, and what else is there -----------------------------------------------


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
    assert [(m.logger, m.text) for m in memory.recent("app.jobs")] == [("app.jobs", "high enough")]
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
    assert said[0].startswith("messages are not counted: url: unknown scheme")


def test_only_so_many_loggers_are_remembered(
    memory: MemoryMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages of all others are counted as well."""
    monkeypatch.setattr(intake, "SINKS", 3)
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
    assert meter.recent("app.jobs") == []


@pytest.mark.parametrize("sync", [True, False])
def test_a_store_that_is_away_raises_nothing(log: logging.Logger, sync: bool) -> None:
    """Neither where a message is stored at once."""
    with Meter("redis://127.0.0.1:1/0", sync=sync, timeout=0.05, flush_interval=3600) as meter:
        install(meter, logger=log)
        log.error("x %s", 1)
        log.error("x %s", 2)  # now that the handler knows where to
        log.error("x %d", "no number")
        log.error("x %d", "no number")
        health = meter.health()
        assert (health.recorded, health.dropped if sync else health.buffered) == (4, 4)


# --- Threads, queues, tasks ----------------------------------------------------------------


def test_threads_log_side_by_side(meter: Meter, log: logging.Logger) -> None:
    """Each record counts once."""
    install(meter, logger=log)

    def run(number: int) -> None:
        for turn in range(500):
            log.info("turn %d of %d", turn, number)
            log.info(f"thread {number} at {turn}")

    threads = [threading.Thread(target=run, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert patterns(meter) == {"turn %d of %d": 2000, "thread <n> at <n>": 2000}
    assert meter.health().stored == 4000


def test_behind_a_queue_the_text_is_what_is_left(memory: MemoryMeter, log: logging.Logger) -> None:
    """QueueHandler makes text of its records; they are counted by that."""
    records: queue.SimpleQueue[Any] = queue.SimpleQueue()
    listener = logging.handlers.QueueListener(records, RedmeterHandler(memory))
    log.addHandler(logging.handlers.QueueHandler(records))
    listener.start()
    log.info("retrying order %s", 17)
    log.info("retrying order %s", 18)
    listener.stop()
    assert patterns(memory) == {"retrying order <n>": 2}


def test_asyncio_debug_logs_are_counted(memory: MemoryMeter, app_log: logging.Logger) -> None:
    """Its slow-callback warning, for instance, from within the loop."""
    install(memory)

    async def main() -> None:
        asyncio.get_running_loop().slow_callback_duration = 0.001
        asyncio.get_running_loop().call_soon(time.sleep, 0.01)
        await asyncio.sleep(0.02)

    asyncio.run(main(), debug=True)
    assert "Executing %s took %.3f seconds" in patterns(memory, "asyncio")


# --- Whole applications --------------------------------------------------------------------


@pytest.fixture
def programs(tmp_path: Path, server: Server) -> Iterator[Programs]:
    """Programs whose first argument is a private server's address."""
    with Programs(tmp_path, server.url) as programs:
        yield programs


APPLICATION = """
import logging
from concurrent.futures import ThreadPoolExecutor
from redmeter.integrations.logging import install

logging.basicConfig(level=logging.INFO, stream=sys.stderr)
install(Meter(URL))
log = logging.getLogger("shop.jobs")

def bill(order):
    if order % 5 == 0:
        raise ValueError(f"order {order} has no address")
    log.info("billed order %d", order)

def job(order):
    try:
        bill(order)
    except ValueError:
        log.exception("billing failed for customer %s", f"c{order}")

with ThreadPoolExecutor(4) as pool:
    list(pool.map(job, range(100)))
log.warning(f"{100} orders done, token=s3cr3t")
"""


def test_what_a_program_logs_is_there_when_it_has_ended(programs: Programs, server: Server) -> None:
    """A failing background job: how often, since when, where it came from, and the last of it."""
    began = time.time()
    done = programs.run(APPLICATION)
    assert done.code == 0, done.err
    with Meter(server.url) as meter:
        found = {f.pattern: f for f in meter.common("shop.jobs")}
        (place,) = (p for p in found if p.startswith("billing failed for customer %s [ValueError"))
        assert place.endswith(" in bill]")
        failed: Frequency = found[place]
        assert failed.severity == "error"
        assert failed.count + failed.before == 20
        assert failed.first is not None
        assert began - 1 < failed.first < time.time() + 1
        assert "has no address" in failed.sample
        billed = found["billed order %d"]
        assert billed.count + billed.before == 80
        assert "<n> orders done, token=***" in found
        assert len(meter.recent("shop.jobs", severity="error")) == 20
        new = {c.frequency.pattern for c in meter.changes() if c.what == "new"}
        assert place in new
        assert meter.recent("shop.jobs", severity="warning")[0].text.endswith("token=***")


NO_SOCKETS = """
import logging
from redmeter.integrations.logging import install

meter = Meter(URL, flush_interval=3600)
handler = install(meter)
log = logging.getLogger("app.jobs")
log.setLevel(logging.DEBUG)
log.info("the first one starts the thread")
seen = []
here = threading.get_ident()

def audit(event, arguments):
    if threading.get_ident() == here and event.startswith(("socket.", "open", "subprocess.")):
        seen.append(event)

sys.addaudithook(audit)
try:
    1 / 0
except ZeroDivisionError:
    for number in range(3000):
        log.info("by format %s", number)
        log.info(f"by text {number}")
        log.error("failed %s", number, exc_info=number % 100 == 0)
found = list(seen)
assert meter.flush(), meter.health()
print(len(found), *found)
"""


def test_nothing_is_sent_or_opened_where_one_logs(programs: Programs) -> None:
    """Not a single socket or file is touched by the thread that logs."""
    done = programs.run(NO_SOCKETS)
    assert done.code == 0, done.err
    assert done.out == "0\n"


FORKED = """
import logging
from redmeter.integrations.logging import install

meter = Meter(URL)
install(meter)
log = logging.getLogger("app.jobs")
log.warning("in %s", "parent")
child = os.fork()
log.warning("in %s", "child" if child == 0 else "parent")
if child == 0:
    logging.shutdown()
    sys.exit()
os.waitpid(child, 0)
"""


def test_a_forked_child_logs_on(programs: Programs, server: Server) -> None:
    """Nothing twice, nothing lost."""
    done = programs.run(FORKED)
    assert done.code == 0, done.err
    with Meter(server.url) as meter:
        assert patterns(meter) == {"in %s": 3}
        assert sorted(texts(meter)) == ["in child", "in parent", "in parent"]


SIGNALLED = """
import logging
from redmeter.integrations.logging import install

meter = Meter(URL)
install(meter)
log = logging.getLogger("app.jobs")
count = 0

def on_alarm(number, frame):
    global count
    count += 1
    log.warning("in a signal handler")

signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
until = time.monotonic() + 1.0
calls = 0
while time.monotonic() < until:
    log.warning("turn %d", calls)
    calls += 1
signal.setitimer(signal.ITIMER_REAL, 0)
meter.flush()
found = {f.pattern: f.count + f.before for f in meter.common("app.jobs")}
print(calls, found["turn %d"], count, found["in a signal handler"])
"""


def test_signal_handlers_may_log(programs: Programs) -> None:
    """All that was interrupted is counted; of what interrupts the handler itself, a part is not."""
    done = programs.run(SIGNALLED)
    assert done.code == 0, done.err
    calls, counted, signals, told = done.numbers
    assert counted == calls
    assert 0 < told <= signals


def test_a_format_that_says_nothing_is_counted_by_the_text(
    meter: Meter, log: logging.Logger
) -> None:
    """With a formatter too, of which nothing belongs into the pattern."""
    handler = install(meter, logger=log)
    log.error("%s", KeyError(17))
    handler.setFormatter(logging.Formatter("at noon: %(message)s"))
    log.error("%s: %d", "order", 18)
    log.error(f"order {19} is lost")
    assert patterns(meter) == {"<n>": 1, "order: <n>": 1, "order <n> is lost": 1}
