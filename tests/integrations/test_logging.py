"""RedmeterHandler: what an application logs is counted, whatever it is."""

import logging
import logging.config
import logging.handlers
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter import Meter
from redmeter.integrations.logging import RedmeterHandler, install
from redmeter.testing import MemoryMeter
from support.logs import Raising, patterns, texts


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
    assert {m.severity for m in meter.log_messages("app.jobs")} == {"warning", "info"}


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
        frame = f"{Path(__file__).name}:{line} in fail"
        assert text.endswith(f"{frame}\n    raise KeyError(\"job 7\")\nKeyError: 'job 7'")


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
    [(ValueError("no 7"), "no <n>"), ({"a": 1}, "{'a': <n>}"), (None, "None"), (7, "<n>")],
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
    assert "hunter2" not in repr((meter.log_messages("app.jobs"), patterns(meter), texts(meter)))
    assert len(texts(meter)) == 2


def test_levels_become_severities(memory: MemoryMeter, log: logging.Logger) -> None:
    """Levels between the named ones mean the next below."""
    install(memory, level=logging.NOTSET, logger=log)
    for level in (1, 10, 20, 25, 30, 40, 50, 99):
        log.log(level, "x")
    log.setLevel(1)
    log.log(7, "x")  # 5 has a name where uvicorn is loaded
    assert sorted({f.severity for f in memory.log_frequencies("app.jobs")}) == [
        *("critical", "debug", "error", "info", "warning")
    ]


def test_the_records_time_is_the_messages_time(memory: MemoryMeter) -> None:
    """Also where it comes late, through a queue for instance."""
    record = logging.LogRecord("app.jobs", logging.INFO, "", 1, "x", (), None)
    record.created = 1_700_000_000.25
    RedmeterHandler(memory).handle(record)
    (message,) = memory.log_messages("app.jobs")
    assert message.time == pytest.approx(1_700_000_000.25, abs=60)  # by the clock of the meter


def test_a_time_that_is_none_is_now(memory: MemoryMeter) -> None:
    """Of the first record of a logger, and of those after it."""
    handler, now = RedmeterHandler(memory), memory.clock.wall()
    for created in (float("inf"), float("nan"), -1e300, 1e300):
        record = logging.LogRecord("app.jobs", logging.INFO, "", 1, "x %s", (1,), None)
        record.created = created
        handler.handle(record)
    assert patterns(memory) == {"x %s": 4}
    for message in memory.log_messages("app.jobs"):
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
    (frequency,) = memory.log_frequencies("app.jobs")
    assert frequency.count + frequency.before == 1
    if arguments not in ((), (1, 2)):
        assert frequency.pattern == template
        assert texts(memory)[0].startswith(f"{template} (not formatted: ")
        assert memory.recorder_health().troubles == {"format": 1}
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
    assert memory.recorder_health().troubles == {"format": 1}


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
    assert meter.recorder_health().buffer_bytes < 1_000_000
    (text,) = set(texts(meter))
    assert len(text) <= 2000
    assert text.endswith(" more)")


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
