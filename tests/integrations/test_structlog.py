"""RedmeterProcessor: what an application logs by structlog is counted by its events."""

import logging
import re
import sys
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from redmeter import Meter
from redmeter.integrations.structlog import RedmeterProcessor
from redmeter.testing import MemoryMeter


def patterns(meter: Meter, logger: str = "structlog") -> dict[str, int]:
    """Return how often each pattern of a logger came within these two hours."""
    meter.flush()
    return {f.pattern: f.count + f.before for f in meter.log_frequencies(logger)}


def texts(meter: Meter, logger: str = "structlog") -> list[str]:
    """Return the newest messages of a logger, the newest first."""
    meter.flush()
    return [message.text for message in meter.log_messages(logger)]


def wrapped(*processors: Any) -> Any:
    """Return a logger with these processors, which throws away what they render."""
    return structlog.wrap_logger(
        structlog.ReturnLogger(), processors=[*processors, structlog.processors.KeyValueRenderer()]
    )


def test_an_event_is_counted_by_itself_and_shown_with_its_values(meter: Meter) -> None:
    """What varies is beside it."""
    log = wrapped(structlog.processors.add_log_level, RedmeterProcessor(meter))
    for number in range(3):
        log.warning("retrying", url="/a b", number=number)
    assert patterns(meter) == {"retrying": 3}
    assert texts(meter)[0] == "retrying url='/a b' number=2"
    assert {m.severity for m in meter.log_messages("structlog")} == {"warning"}


def test_the_event_passes_on_unchanged(memory: MemoryMeter) -> None:
    """The same object, with the same content."""
    event = {"event": "x", "a": [1], "exc_info": True}
    copy = dict(event)
    assert RedmeterProcessor(memory)(None, "info", event) is event
    assert event == copy


@pytest.mark.parametrize(
    ("method", "level", "severity"),
    [
        ("info", None, "info"),
        ("warn", None, "warning"),
        ("exception", None, "error"),
        ("fatal", None, "critical"),
        ("msg", None, "info"),
        ("info", "error", "error"),
        ("log", 40, "40"),
    ],
)
def test_the_level_is_the_severity_else_the_methods_name(
    memory: MemoryMeter, method: str, level: Any, severity: str
) -> None:
    """What add_log_level found comes first."""
    event = {"event": "x"} | ({} if level is None else {"level": level})
    RedmeterProcessor(memory)(None, method, event)
    assert [s.severity for s in memory.loggers()] == [severity if level != 40 else "error"]


def test_the_loggers_name_is_that_of_the_event_else_of_the_logger(memory: MemoryMeter) -> None:
    """A logger without a name is structlog."""
    processor = RedmeterProcessor(memory)
    processor(None, "info", {"event": "x", "logger": "by.event"})
    processor(logging.getLogger("by.logger"), "info", {"event": "x"})
    processor(object(), "info", {"event": "x"})
    assert {s.logger for s in memory.loggers()} == {"by.event", "by.logger", "structlog"}


def test_an_exception_adds_its_type_and_place(memory: MemoryMeter) -> None:
    """Before it is rendered and after, as text and as data."""
    log = wrapped(RedmeterProcessor(memory), structlog.processors.format_exc_info)
    late = wrapped(structlog.processors.format_exc_info, RedmeterProcessor(memory))
    data = wrapped(structlog.processors.dict_tracebacks, RedmeterProcessor(memory))
    try:
        try:
            raise ValueError("its cause")
        except ValueError as cause:
            raise KeyError("job 7") from cause
    except KeyError as error:
        log.exception("failed", job=7)
        log.error("failed", job=7, exc_info=error)
        log.error("failed", job=7, exc_info=sys.exc_info())
        late.exception("failed", job=7)
        data.exception("failed", job=7)
    ((pattern, count),) = patterns(memory).items()
    assert count == 5
    assert pattern.startswith("failed [KeyError at test_structlog.py:")
    for text in texts(memory):
        assert text.startswith("failed job=7\n")
        assert "\nKeyError: 'job 7'" in text
        assert "ValueError: its cause" in text


@pytest.mark.parametrize(
    "given_", [["x"], [{}], {"a": 1}, [{"exc_type": "E", "exc_value": "x", "frames": [{}]}], 5, []]
)
def test_an_exception_of_a_form_of_its_own_is_shown_as_it_is(
    memory: MemoryMeter, given_: object
) -> None:
    """Nothing of it is known but its repr()."""
    RedmeterProcessor(memory)(None, "error", {"event": "failed", "exception": given_})
    assert texts(memory) == [f"failed\n{given_!r}"]
    assert patterns(memory) == {"failed": 1}


def test_data_of_an_exception_without_frames_adds_its_type(memory: MemoryMeter) -> None:
    """There is no place."""
    told = [{"exc_type": "OSError", "exc_value": "disk is full", "frames": []}]
    RedmeterProcessor(memory)(None, "error", {"event": "failed", "exception": told})
    assert texts(memory) == ["failed\nOSError: disk is full"]
    assert patterns(memory) == {"failed [OSError]": 1}


def test_secrets_are_masked(meter: Meter) -> None:
    """Those that have a name."""
    log = wrapped(RedmeterProcessor(meter))
    log.info("login", password="hunter2", headers={"Authorization": "Bearer hunter2"})
    assert "hunter2" not in repr(meter.log_messages("structlog"))
    assert len(texts(meter)) == 1
    assert "hunter2" not in texts(meter)[0]


@pytest.mark.parametrize(
    "secret", ["ab&cd=ef", "ab;cd=ef", "ab,cd=ef", "ab'cd", 'ab"cd=e', "a)b=c"]
)
def test_a_secret_ends_where_its_value_ends(meter: Meter, secret: str) -> None:
    """Whatever is in it, nothing of it is left."""
    wrapped(RedmeterProcessor(meter)).info("login", password=secret, user="bob")
    (text,) = texts(meter)
    assert "***" in text
    assert text.endswith(" user=bob")
    assert not {"ab", "cd", "ef", "e'", "=c"} & set(re.findall(r"\w+|=c|e'", text))


def test_arguments_of_a_format_leave_it_as_the_pattern(meter: Meter) -> None:
    """Before they are put in; after that, what varies is taken out of the text."""
    formatter = structlog.stdlib.PositionalArgumentsFormatter
    count = RedmeterProcessor(meter)
    ways: dict[str, list[Any]] = {
        "before": [count, formatter()],
        "after": [formatter(), count],
        "left": [formatter(remove_positional_args=False), count],
    }
    for name, processors in ways.items():
        log = structlog.wrap_logger(
            structlog.testing.ReturnLogger(),
            processors=[*processors, structlog.processors.KeyValueRenderer()],
            wrapper_class=structlog.stdlib.BoundLogger,
        ).bind(logger=name)
        log.info("job %d at %s failed", 17, "the mint", area="eu")
        log.info("job %(n)d is done", {"n": 17})
        log.info("%s", "order 5 is lost")
    assert patterns(meter, "before") == {
        "job %d at %s failed": 1,
        "job %(n)d is done": 1,
        "order <n> is lost": 1,
    }
    for name in ("after", "left"):
        assert patterns(meter, name) == {
            "job <n> at the mint failed": 1,
            "job <n> is done": 1,
            "order <n> is lost": 1,
        }
    for name in ("before", "after", "left"):
        assert texts(meter, name) == [
            "order 5 is lost",
            "job 17 is done",
            "job 17 at the mint failed area=eu",
        ]


def test_arguments_that_do_not_fit_cost_only_themselves(memory: MemoryMeter) -> None:
    """The event is counted by its format."""
    processor = RedmeterProcessor(memory)
    for args in ((), (1, 2), ("a",), ["a"], 7, None):
        processor(None, "info", {"event": "job %d failed", "positional_args": args})
    assert patterns(memory) == {"job %d failed": 6}


def test_what_is_below_the_level_is_left_out(memory: MemoryMeter) -> None:
    """A level without a number is not."""
    processor = RedmeterProcessor(memory, level=logging.WARNING)
    for method in ("debug", "info", "warning", "error", "strange"):
        processor(None, method, {"event": method})
    assert set(patterns(memory)) == {"warning", "error", "strange"}


class Raising:
    """A value of which no text can be made."""

    def __repr__(self) -> str:
        raise ValueError("no text")


class Logging:
    """A value whose text logs."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __repr__(self) -> str:
        self._log.info("again", value=self)
        return "text"


def test_values_without_a_text_cost_only_themselves(memory: MemoryMeter) -> None:
    """The others are there."""
    RedmeterProcessor(memory)(None, "info", {"event": "x", "a": Raising(), "b": 1})
    assert texts(memory) == ["x a=(Raising without a text: ValueError) b=1"]


def test_a_value_that_logs_is_not_asked_again(memory: MemoryMeter) -> None:
    """There would be no end of it."""
    processor = RedmeterProcessor(memory)

    class Log:
        def info(self, event: str, **values: Any) -> None:
            processor(None, "info", {"event": event, **values})

    processor(None, "info", {"event": "x", "value": Logging(Log())})
    assert patterns(memory) == {"x": 1}


def test_values_are_written_as_far_as_they_are_kept(memory: MemoryMeter) -> None:
    """Not a text for each of a million."""
    asked = []

    class Counting:
        def __repr__(self) -> str:
            asked.append(1)
            return "x" * 100

    event = {"event": "x", **{f"k{n}": Counting() for n in range(10_000)}}
    RedmeterProcessor(memory)(None, "info", event)
    assert len(asked) < 200


_values = st.one_of(st.none(), st.text(), st.floats(), st.binary(), st.just(Raising()))


@given(
    st.one_of(st.text(), st.none(), st.integers()),
    st.dictionaries(
        st.one_of(
            st.text(), st.sampled_from(["event", "level", "logger", "exc_info", "exception"])
        ),
        _values,
    ),
)
def test_any_event_is_counted_and_none_raises(method: Any, event: dict[str, Any]) -> None:
    """Whatever is in it."""
    meter = MemoryMeter()
    RedmeterProcessor(meter)(None, method, event)
    assert len(meter.messages) == 1


def test_what_is_no_event_raises_nothing(memory: MemoryMeter) -> None:
    """It is counted as what cannot be read."""
    strange: Any = 17
    assert RedmeterProcessor(memory)(None, "info", strange) is strange
    assert len(memory.messages) == 1


@pytest.mark.parametrize("sync", [True, False])
def test_a_store_that_is_away_raises_nothing(sync: bool) -> None:
    """Neither where an event is stored at once, nor where it cannot be read."""
    strange: Any = 17
    with Meter("redis://127.0.0.1:1/0", sync=sync, timeout=0.05, flush_interval=3600) as meter:
        processor = RedmeterProcessor(meter)
        for event in ({"event": "x"}, {"event": "x"}, strange):
            assert processor(None, "error", event) is event
        health = meter.recorder_health()
        assert (health.recorded, health.dropped if sync else health.buffered) == (3, 3)


def test_the_module_does_not_import_structlog() -> None:
    """Nobody needs to have it who does not use it."""
    import subprocess

    code = "import sys, redmeter.integrations.structlog; sys.exit('structlog' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_event_with_values_in_it_is_counted_without_them(memory: MemoryMeter) -> None:
    """As an f-string is; what is given beside it is in the text alone."""
    log = wrapped(RedmeterProcessor(memory))
    for number in (17, 18):
        log.info(f"order {number} is lost", user="ada")
    assert patterns(memory) == {"order <n> is lost": 2}
