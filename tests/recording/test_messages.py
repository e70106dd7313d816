"""Messages on their way: what is kept of them, masked and counted, and in how little memory."""

import logging
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import InvalidName, InvalidSetting, Meter
from redmeter.analysis.patterns import pattern_of
from redmeter.analysis.secrets import mask
from redmeter.analysis.texts import EMPTY
from redmeter.keys import HOUR, Kept, Keys
from redmeter.kinds.message import MAX_PATTERNS, OTHER, Group, LogHour
from redmeter.model import Loss
from redmeter.recording.buffer import Buffer
from redmeter.recording.cells import Cell
from redmeter.recording.exceptions import FRAMES, described
from redmeter.recording.grouping import Place, Placed, Said, placed, received, size_of
from redmeter.recording.messages import (
    LONGEST,
    MASKING_FAILED,
    TEXT_LIMIT,
    Log,
    Messages,
    Rules,
    digested,
    folded,
    formatted,
    received_event,
)
from redmeter.recording.registry import Registry
from redmeter.recording.runs import Sums
from redmeter.recording.tally import Tally
from redmeter.testing import ManualClock, MemoryMeter

NOON = 1700000000 - 1700000000 % HOUR

Trouble = list[tuple[str, str]]


class Nobody:
    """An attendant that does nothing, or what attend() of a recorder does for long lists."""

    def __init__(self, shorten: int = 0) -> None:
        self.troubles: Trouble = []
        self._shorten = shorten

    def attend(self, cell: Cell) -> None:
        """Shorten the list where it is long."""
        if self._shorten and len(cell.events) >= max(self._shorten, cell.long):
            cell.shorten()
            cell.long = max(self._shorten, 2 * len(cell.events))

    def trouble(self, kind: str, text: str) -> None:
        """Note it."""
        self.troubles.append((kind, text))


def a_cell(rules: Rules = Rules(), shorten: int = 0) -> Messages:  # noqa: B008
    """A cell of its own."""
    return Messages("app", "info", Nobody(shorten), lambda: NOON, rules)


def digest(*events: Any, rules: Rules = Rules(), trouble: Any = None) -> dict[int, LogHour]:  # noqa: B008
    """What comes out of some events."""
    return digested(list(events), rules, trouble or (lambda _kind, _text: None))


def sizes(hours: dict[int, LogHour]) -> Counter[str]:
    """How often each pattern came in all hours."""
    found: Counter[str] = Counter()
    for hour in hours.values():
        found.update({pattern: group.events for pattern, group in hour.patterns.items()})
    return found


# --- Patterns and secrets ------------------------------------------------------------------


def test_a_format_is_its_pattern_and_a_text_has_one_made_of_it() -> None:
    """A place is added to the pattern that the text has."""
    place = Place("[ValueError at app.py:12 in handler]")
    hours = digest(
        (NOON, "retrying %s", "retrying a"),
        (NOON, None, "order 17 done"),
        (NOON, place, "order 18 failed\n  frames"),
    )
    assert set(hours) == {NOON}
    assert sizes(hours) == {
        "retrying %s": 1,
        "order <n> done": 1,
        f"order <n> failed {place}": 1,
    }


def test_secrets_are_masked_before_anything_is_made_of_a_text() -> None:
    """In texts, samples and patterns, and in formats."""
    secret = "hunter2-abc"
    (hour,) = digest(
        (NOON, None, f"login password={secret} ok"),
        (NOON + 1, f"GET redis://bob:{secret}@db/%d", f"GET redis://bob:{secret}@db/0"),
        (NOON + 2, Place("[ValueError]"), f"token: {secret}\nValueError: password='{secret}'"),
    ).values()
    shown = [
        *hour.patterns,
        *(g.sample for g in hour.patterns.values()),
        *(t for _, t in hour.texts),
    ]
    assert not any(secret in text for text in shown)
    assert "login password=*** ok" in hour.patterns
    assert "GET redis://bob:***@db/%d" in hour.patterns


def test_a_secret_that_is_hidden_by_control_characters_is_found() -> None:
    """What can be seen is masked, so texts are cleaned first."""
    (hour,) = digest((NOON, None, "pass\x1b[31mword=hun\x00ter2")).values()
    assert hour.texts == [(NOON, "password=***")]


def test_a_function_of_ones_own_masks_instead() -> None:
    """It may call ours; what it returns is cleaned."""

    def own(text: str) -> str:
        return mask(text).replace("Ada", "\x1b[1m<name>\ud800")

    (hour,) = digest((NOON, "hello Ada %s", "hello Ada token=abc"), rules=Rules(mask=own)).values()
    assert hour.texts == [(NOON, "hello <name>\ufffd token=***")]
    assert list(hour.patterns) == ["hello <name>\ufffd %s"]


class Angry(Exception):
    """Says what it must not say."""


def raising(text: str) -> str:
    """A masking function that breaks, with the secret in its error."""
    raise Angry(text)


@pytest.mark.parametrize(
    "broken", [raising, lambda _: None, lambda _: b"hunter2", lambda _: 5], ids=lambda f: f.__name__
)
def test_where_masking_fails_nothing_leaks(broken: Callable[[str], Any]) -> None:
    """Neither as a text nor as a pattern, nor by what is told of it; the message still counts."""
    troubles: Trouble = []

    def trouble(kind: str, text: str) -> None:
        troubles.append((kind, text))

    (hour,) = digest(
        (NOON, None, "password=hunter2"),
        (NOON, "password=hunter2 %s", "password=hunter2 x"),
        rules=Rules(mask=broken),
        trouble=trouble,
    ).values()
    assert hour.patterns.keys() == {MASKING_FAILED}
    assert hour.events == 2
    assert {text for _, text in hour.texts} == {MASKING_FAILED}
    assert {kind for kind, _ in troubles} == {"mask"}
    assert "hunter2" not in str(troubles)


def test_a_function_that_masks_is_asked_for_what_stays_and_no_more() -> None:
    """Of ten thousand messages of one format: for the newest hundred, a sample and the format."""
    asked: list[str] = []

    def count(text: str) -> str:
        asked.append(text)
        return text

    events = [(NOON + n / 10, "message %d", f"message {n}") for n in range(10_000)]
    (hour,) = digest(*events, rules=Rules(mask=count)).values()
    assert hour.patterns["message %d"].events == 10_000
    assert [text for _, text in hour.texts] == [f"message {n}" for n in range(9900, 10_000)]
    assert len(asked) == len(set(asked)) == 101


def test_a_pattern_is_made_once_for_each_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it comes."""
    made: list[str] = []

    def counted(text: str) -> str:
        made.append(text)
        return pattern_of(text)

    monkeypatch.setattr("redmeter.recording.messages.pattern_of", counted)
    events = [(NOON + n / 10, None, f"order {n % 7} done") for n in range(10_000)]
    (hour,) = digest(*events).values()
    assert hour.patterns["order <n> done"].events == 10_000
    assert len(made) == 7


# --- Bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", EMPTY),
        ("  \n ", EMPTY),
        ("a\x00b\x1b[31mc\x1b[0m\x07", "abc"),
        ("user \u202egnp.exe", "user gnp.exe"),
        ("half \ud83d", "half \ufffd"),
        ("a\r\nb\u2028c\td", "a\nb\nc\td"),
    ],
)
def test_texts_are_cleaned(text: str, shown: str) -> None:
    """What is stored can be seen, can be encoded, and is no command to a terminal."""
    (hour,) = digest((NOON, None, text), (NOON, f"{text} %s", f"{text} x")).values()
    assert hour.texts[0] == (NOON, shown)
    for stored in [*hour.patterns, *(text for _, text in hour.texts)]:
        stored.encode()
        assert not set(stored) & {"\x00", "\x1b", "\x07", "\u202e"}


def test_a_megabyte_is_cut_at_once() -> None:
    """And says how much is missing; it does not wait in memory."""
    cell = a_cell()
    cell.put_message(None, "x" * 1_000_000, NOON)
    assert len(cell.events[0][2]) <= TEXT_LIMIT
    cell.put_message(None, "y" * LONGEST, NOON)
    (_, hour), *_ = cell.merged(cell.events)
    assert max(len(text) for _, text in hour.texts) <= TEXT_LIMIT
    assert hour.texts[0][1].endswith(" more)")
    assert "998," in hour.texts[0][1][-30:]
    for pattern, group in hour.patterns.items():
        assert len(pattern) <= 200
        assert len(group.sample) <= 300


def test_a_secret_at_a_cut_does_not_show() -> None:
    """Where a text was cut within one, what is left of it is masked."""
    cell = a_cell()
    cell.put_message(None, "x" * 1950 + " redis://bob:" + "hunter2" * 20_000 + "@db", NOON)
    (_, hour), *_ = cell.merged(cell.events)
    assert "hunter2" not in hour.texts[0][1]


def test_times_far_away_lie_in_hours_of_their_own() -> None:
    """Before 1970 as well."""
    hours = digest((-1, None, "a"), (-HOUR - 1, None, "b"), (2**40, None, "c"))
    assert set(hours) == {-HOUR, -2 * HOUR, 2**40 // HOUR * HOUR}


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_a_time_that_is_none_is_now(wrong: float) -> None:
    """A message is not lost by it, nor what comes after it."""
    cell = a_cell()
    cell.put_message(None, "text", wrong)
    assert list(dict(cell.merged(cell.events))) == [NOON]


# --- Putting together ----------------------------------------------------------------------


logged = st.lists(
    st.tuples(
        st.integers(NOON - 2 * HOUR, NOON + HOUR).map(float) | st.floats(NOON, NOON + HOUR),
        st.sampled_from([None, "f %s", "g %s", Place("[E]")]),
        st.sampled_from(["a 1", "a 2", "b", "c token=1"]),
    ),
    max_size=60,
)


def content(hours: dict[int, LogHour], keep: int) -> Any:
    """What is stored of hours: counts, times, and when the newest texts were."""
    patterns = {
        start: {p: (g.events, g.first, g.last) for p, g in hour.patterns.items()}
        for start, hour in hours.items()
    }
    times = sorted(at for hour in hours.values() for at, _ in hour.texts)[-keep:]
    return patterns, times


@given(logged, st.lists(st.integers(0, 60), max_size=4), st.integers(1, 20))
def test_whatever_was_put_together_before_means_the_same(
    events: list[Any], cuts: list[int], keep: int
) -> None:
    """Folded, digested, or one after the other."""
    rules = Rules(keep)
    wanted = content(digest(*events, rules=rules), keep)
    parts, rest = [], events
    for cut in cuts:
        parts.append(rest[:cut])
        rest = rest[cut:]
    made: list[Any] = []
    for at, part in enumerate([*parts, rest]):
        made += part
        made = folded(made, keep) if at % 2 else list(digest(*made, rules=rules).items())
        assert Messages.size(made) == sum(map(len, parts[: at + 1])) + (at == len(parts)) * len(
            rest
        )
    assert content(digest(*made, rules=rules), keep) == wanted
    assert content(digest(*folded(events, keep), rules=rules), keep) == wanted


def test_folding_masks_nothing_and_leaves_little() -> None:
    """The newest as they are, all others by pattern or, where there is none, by text."""
    events = [(NOON + n, ("f %d", None)[n % 2], f"f {n % 10}") for n in range(2000)]
    made = folded(events, 100)
    assert made[-100:] == events[-100:]
    assert len(made) == 100 + 1 + 5
    assert Messages.size(made) == 2000


def test_a_run_adds_up_what_comes_in_parts() -> None:
    """By hour, and may be cut and put together again."""
    run = Log()
    for event in ((NOON, None, "a"), (NOON + 1, None, "a"), (NOON - 5, None, "b")):
        for start, hour in digest(event).items():
            run.add(start, hour)
    assert (len(run), run.events, run.first, run.last) == (2, 3, NOON - HOUR, NOON)
    assert run.older(NOON) == 1
    part = run.cut(1)
    assert (part.events, run.events) == (1, 2)
    assert run.fields((HOUR,)) == 1 + 2 + 2
    assert run.fields(()) == 1 + 2  # older than any hour that is kept
    assert run.bytes > 0
    kept = Kept({1: 1}, {1: 1})
    assert Log.retention(kept) == {HOUR: 2}
    codes = [o.code for o in Log.operations(Keys(), kept, {"app:info": run}, HOUR)]
    assert codes == ["push", "tally", "seen", "touch"]
    assert [o.code for o in Log.operations(Keys(), kept, {"app:info": run}, 0)] == ["push", "touch"]


def test_many_patterns_are_sent_in_several_batches() -> None:
    """So that none takes the server long; the texts come with the last."""
    tally = Tally(NOON)
    buffer = Buffer(Kept({1: 9}, {1: 9}), tally, 2**30)
    events = [(NOON + n / 1000, f"p{n} %s", f"text {n}") for n in range(1200)]
    for start, hour in digest(*events, (NOON - 5, "late %s", "late")).items():
        buffer.add(Log, "app:info", start, hour, NOON)
    counts: Counter[str] = Counter()
    pushed: list[int] = []
    while (part := buffer.take()) is not None:
        assert part.fields <= 500
        made = {o.code: o for o in part.operations(Keys(), Kept({}, {}))}
        pushed.append(len(made["push"].args) if "push" in made else 0)
        for _, _, _, run in part.runs():
            for _, hour in run:
                counts.update({p: g.events for p, g in hour.patterns.items()})
                assert hour.events == sum(g.events for g in hour.patterns.values())
        assert part.events == sum(run.events for _, _, _, run in part.runs())
    assert len(pushed) > 3
    assert pushed[-1] > 100
    assert not any(pushed[1:-1])
    assert len(counts) == MAX_PATTERNS + 2
    assert counts[OTHER] == 200
    assert sum(counts.values()) == 1201


def test_in_a_buffer_messages_are_counted_while_their_hour_is_kept() -> None:
    """Afterwards they are only among the newest, and that is written down."""
    tally = Tally(NOON)
    buffer = Buffer(Kept({1: 9}, {1: 9}), tally, 2**30)
    for text, at in (("new", NOON), ("late", NOON - 1.5 * HOUR), ("old", NOON - 9 * HOUR)):
        for start, hour in digest((at, None, text)).items():
            buffer.add(Log, 'a{instance=""}:info', start, hour, NOON)
    tally.recorded = 3
    part = buffer.take(numbered=False)
    assert part is not None
    made = part.operations(Keys(), Kept({}, {}), instance=7)
    # The name of a logger is no series' name, whatever it looks like.
    assert made[0].keys == ('redmeter:recent:a{instance=""}:info',)
    # What is oldest comes first, or it would push out what is new.
    assert [o.code for o in made] == ["push", "touch", "push", "tally", "seen", "touch"]
    assert "old" in str(made[0].args)
    assert {"new", "late"} <= {arg for arg in made[3].args if isinstance(arg, str)}
    losses = tally.health(producer="", instance=None).losses
    assert losses == (Loss("aged", 'a{instance=""}:info', HOUR, 1),)


# --- Memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", ["of one format", "all different", "long and different"])
def test_a_cell_stays_small_while_nobody_looks(texts: str) -> None:
    """Whatever is logged between two flushes, and none of it is lost."""
    cell = a_cell(shorten=500)
    tracemalloc.start()
    for n in range(8_000):
        text = f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676 % 26)} said so"
        if texts == "of one format":
            cell.put_message("%s said so", text, NOON + n / 100)
        else:
            cell.put_message(None, text * (30 if texts.startswith("long") else 1), NOON + n / 100)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert Messages.size(cell.events) == 8_000
    assert most < 8e6
    assert len(cell.events) < 5_000
    hours = dict(cell.merged(cell.events))
    assert sum(hour.events for hour in hours.values()) == 8_000
    if texts == "all different":
        assert len(hours[NOON].patterns) == MAX_PATTERNS + 1
        assert hours[NOON].patterns[OTHER].events > 0


def test_loggers_beyond_the_limit_are_one() -> None:
    """For each standard severity; what is known keeps its own."""
    registry = Registry(Nobody(), lambda: NOON, max_series=3, max_label_sets=9)
    known = registry.messages("a", "info")
    registry.messages("b", "info")
    registry.messages("c", "odd")
    over = registry.messages("d", "error")
    assert (over.name, over.overflow) == ("(other):error", True)
    assert registry.messages("e", "error") is over
    assert registry.messages("e", "odd").name == "(other):info"
    assert registry.messages("a", "info") is known
    assert not known.overflow


# --- Exceptions and formats ----------------------------------------------------------------


class Unspeakable(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no")


def failing(error: BaseException, depth: int = 0) -> BaseException:
    """Return an exception that was raised so deep down."""

    def handler(left: int) -> None:
        if left:
            handler(left - 1)
        raise error

    try:
        handler(depth)
    except BaseException as caught:  # noqa: BLE001
        return caught
    raise AssertionError


def test_an_exception_tells_where_it_came_from() -> None:
    """Type, file, line and function of the innermost frame; and the frames on the way."""
    place, text = described(failing(ValueError("no\nway")))
    assert type(place) is Place
    assert place.startswith("[ValueError at test_messages.py:")
    assert place.endswith(" in handler]")
    lines = text.splitlines()
    assert lines[-2:] == ["ValueError: no", "way"]
    assert lines[-3].endswith(" in handler")


def test_an_exception_without_a_traceback_has_its_type() -> None:
    """And its text, where it has one that can be made."""
    assert described(ValueError("no")) == ("[ValueError]", "ValueError: no")
    assert described(ValueError()) == ("[ValueError]", "ValueError")
    assert described(Unspeakable()) == (
        "[Unspeakable]",
        "Unspeakable: (its text cannot be made)",
    )


def test_what_an_exception_tells_is_bounded() -> None:
    """The innermost frames, and names of a length that can be read."""
    place, text = described(failing(ValueError("x"), depth=500))
    assert text.startswith("… (494 more)\n")
    assert len(text.splitlines()) == FRAMES + 2
    assert len(described(type("E" * 500, (Exception,), {})())[0]) < 60
    assert len(place) < 130


def test_a_place_is_never_cut_off() -> None:
    """However long the format is."""
    place, _ = described(failing(ValueError("x")))
    (hour,) = digest((NOON, placed("word " * 100 + "%s", place), "text")).values()
    (pattern,) = hour.patterns
    assert pattern.endswith(f"more) {place}")
    made = placed(None, place)
    assert type(made) is Place
    assert made == place


def test_messages_are_formatted_as_logging_does() -> None:
    """A text without args stays as it is; a single mapping is looked into by names."""
    assert formatted("100 %", ()) == (None, "100 %", "")
    assert formatted("%s of %d", ("a", 3)) == ("%s of %d", "a of 3", "")
    assert formatted("%(a)s", ({"a": 1},)) == ("%(a)s", "1", "")
    assert formatted("%s", ({},)) == ("%s", "{}", "")
    assert formatted(5, ()) == (None, "5", "")


def test_what_cannot_be_formatted_is_told_and_still_a_message() -> None:
    """Arguments that do not fit, and those that have no text."""
    for args, problem in ((("a", "b"), "TypeError"), ((Unspeakable(),), "RuntimeError")):
        pattern, text, found = formatted("x %s", args)
        assert (pattern, found) == ("x %s", problem)
        assert text == f"x %s (its arguments do not fit: {problem})"
    note = "(Unspeakable without a text)"
    assert formatted(Unspeakable(), ()) == (note, note, "RuntimeError")


# --- Meter ---------------------------------------------------------------------------------


def test_a_memory_meter_has_what_would_be_stored() -> None:
    """Texts without secrets, patterns, severities; and it answers like a store."""
    clock = ManualClock(NOON)
    meter = MemoryMeter(clock=clock)
    meter.log("app", "login of %s", "ada password=x", severity=logging.WARNING)
    clock.advance(HOUR)
    meter.log("app", "login of %s", "bob", severity="warn")
    meter.log("app", "order 17 done")
    meter.log("other", "x", severity="critical", exception=failing(ValueError("no")))
    assert meter.logged("app", "warning") == ["login of ada password=***", "login of bob"]
    assert meter.logged("app") == [*meter.logged("app", 30), "order 17 done"]
    assert [each.pattern for each in meter.messages][:3] == [
        "login of %s",
        "login of %s",
        "order <n> done",
    ]
    assert meter.messages[3].pattern.startswith("x [ValueError at test_messages.py:")
    assert meter.recent("app")[0].text == "order 17 done"
    assert [m.text for m in meter.recent("app", severity=30, limit=1)] == ["login of bob"]
    assert [(f.pattern, f.count, f.before) for f in meter.common("app")] == [
        ("login of %s", 1, 1),
        ("order <n> done", 1, 0),
    ]
    assert {s.logger for s in meter.loggers()} == {"app", "other"}
    assert [c.what for c in meter.changes("app")] == ["new", "new"]
    meter.forget()
    assert meter.messages == []


def test_logging_refuses_what_the_caller_can_mend() -> None:
    """The name of a logger, a severity of another type, a masking function that is none."""
    for meter in (MemoryMeter(), Meter("off")):
        for name in ("", "a\nb", 5):
            with pytest.raises(InvalidName):
                meter.log(name, "text")  # type: ignore[arg-type]
        for severity in (None, True, 2.5):
            with pytest.raises(TypeError, match="severity"):
                meter.log("app", "text", severity=severity)  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="mask"):
        Meter("off", mask="x")  # type: ignore[arg-type]
    for number in (0, -1, 1_001, 1.5):
        with pytest.raises(InvalidSetting, match="recent_messages"):
            Meter("off", recent_messages=number)  # type: ignore[arg-type]


def test_switched_off_nothing_is_logged_and_nothing_found() -> None:
    """Arguments are checked all the same."""
    meter = Meter("off")
    meter.log("app", "%d", "x")
    found: list[Any] = [meter.recent("app"), meter.common("app"), meter.loggers(), meter.changes()]
    assert found == [[], [], [], []]
    assert meter.health().recorded == 0
    assert meter.health().troubles == {"format": 1}


# --- What groups a message -----------------------------------------------------------------


@pytest.mark.parametrize("template", ["%s", "%s: %s", "%(a)s -> %-10.3f", "[%d] %%"])
def test_a_format_without_a_word_groups_nothing(template: str) -> None:
    """So a pattern is made of the text, also where the place of an error is added."""
    assert received(template) is None
    assert received(Placed(template, "[E]")) == Place("[E]")
    (hour,) = digest(received_event(NOON, template, "order 17 is lost")).values()
    assert list(hour.patterns) == ["order <n> is lost"]


@pytest.mark.parametrize("template", ["%s é", "retrying %s", "---", "s", "%s" * 40])
def test_a_format_with_a_word_is_a_pattern(template: str) -> None:
    """So is a text that is no format, and one that is too long to be looked at."""
    assert received(template) == template


def test_a_meter_groups_by_the_text_where_the_format_says_nothing() -> None:
    """Unless its arguments do not fit: then there is only the format."""
    meter = MemoryMeter()
    meter.log("app", "%s", "order 17 is lost")
    meter.log("app", "%s", "order 18 is lost", exception=ValueError("no"))
    meter.log("app", "%s", "a", "b")
    assert [each.pattern for each in meter.messages] == [
        "order <n> is lost",
        "order <n> is lost [ValueError]",
        "%s",
    ]


def test_what_was_said_beside_values_is_read_for_a_pattern() -> None:
    """Masked before; the values are in the text, and not in the pattern."""
    said = Said("job 17 of token=abc")
    (hour,) = digest(
        (NOON, said, "job 17 of token=abc x=1"), (NOON, placed(said, Place("[E]")), "job 17 x=2")
    ).values()
    assert list(hour.patterns) == ["job <n> of token=***", "job <n> of token=*** [E]"]


@pytest.mark.parametrize(
    "secret", ["postgres://bob:HUNTER2HUNTER2HUNTER2HUNTER2@db", "eyJhbGciOiJI.eyJzdWIi.HUNTERHUN"]
)
def test_a_secret_at_the_cut_of_a_format_does_not_show_beside_a_place(secret: str) -> None:
    """Wherever the cut is."""
    place, _ = described(failing(ValueError("x")))
    for before in range(100, 200):
        words = f"{'c' * before} {secret} %s {'t' * 90}"
        (hour,) = digest(received_event(NOON, placed(words, place), "text")).values()
        (pattern,) = hour.patterns
        assert "HUNT" not in pattern
        assert "eyJh" not in pattern
        assert pattern.endswith(f" {place}")


def test_a_long_format_is_cut_at_once() -> None:
    """It does not wait in memory, with a place or without."""
    words = "x" * 1_000_000
    for grouping in (words, Said(words), placed(words, "[E]"), placed(Said(words), "[E]")):
        _, waiting, _ = received_event(NOON, grouping, "text")
        assert size_of(waiting) <= 2010
        (hour,) = digest((NOON, waiting, "text")).values()
        assert len(next(iter(hour.patterns))) <= 340


# --- Where there is too much ---------------------------------------------------------------


@pytest.mark.parametrize("pattern", [None, "of %s", "long"])
def test_texts_that_are_too_many_are_counted_and_not_kept(pattern: str | None) -> None:
    """Whoever logs masks nothing and makes no pattern, and the newest texts stay."""

    def never(text: str) -> str:
        raise AssertionError(text)

    cell = a_cell(Rules(keep=10, mask=never), shorten=500)
    most = 0
    for n in range(10_000):
        words = f"{n}{'p' * 300} %s" if pattern == "long" else pattern and f"{n} {pattern}"
        cell.put_message(words, f"{n} {'t' * 500}", NOON + n / 100)
        if n % 97 == 0:
            most = max(most, Messages.size_in_memory(cell.events))
    assert most < 12e6
    assert Messages.size(cell.events) == 10_000
    assert [event[2].split()[0] for event in cell.events[-10:]] == [
        str(n) for n in range(9_990, 10_000)
    ]
    cell.rules = Rules(keep=10)
    hours = dict(cell.merged(cell.events))
    assert sizes(hours).total() == 10_000
    assert sizes(hours)[OTHER] > 3_000


def test_many_texts_ask_for_the_thread_that_stores() -> None:
    """And few do not, however many messages they are of."""
    cell = a_cell()
    for n in range(3000):
        cell.put_message("of %s", f"of {n}", NOON)
    assert not cell.shorten()
    for n in range(3000):
        cell.put_message(None, f"of {n}", NOON)
    assert cell.shorten()


def flood(buffer: Buffer, logs: int, patterns: int = 500) -> None:
    """Fill a buffer with messages, each log with one more pattern than the one before."""
    for log in range(logs):
        events = [(NOON + n, f"p{n} {'x' * 100} %s", "y" * 900) for n in range(patterns + log)]
        for start, hour in digest(*events).items():
            buffer.add(Log, f"log{log}:info", start, hour, NOON)


def test_messages_push_no_number_out_of_the_buffer() -> None:
    """They take what numbers leave, or half of the limit; their texts go first, and are told."""
    tally = Tally(NOON)
    buffer = Buffer(Kept({1: 120, 60: 120}, {1: 9}), tally, 1_000_000)
    for second in range(60):
        buffer.add(Sums, "hits", NOON + second, 1, NOON + 60)
    flood(buffer, 8)
    tally.recorded = 60 + sum(500 + n for n in range(8))
    assert buffer.bytes > 2_000_000
    buffer.shrink(NOON + 60)
    assert 900_000 < buffer.bytes <= 1_000_000
    losses = tally.health(producer="", instance=None).losses
    assert {(loss.reason, loss.precision) for loss in losses} == {("memory", 0)}
    assert not [loss for loss in losses if loss.series == "hits"]
    part, events, hits = buffer.take(), 0, 0
    while part is not None:
        for kind, _, _, run in part.runs():
            events += run.events
            hits += len(run) if kind is Sums else 0
        part = buffer.take()
    assert (events, hits) == (tally.recorded, 60)


def test_numbers_give_way_for_what_numbers_take() -> None:
    """With messages beside them that take their half at most."""
    tally = Tally(NOON)
    buffer = Buffer(Kept({1: 120, 60: 120}, {1: 9}), tally, 400_000)
    for series in range(400):
        for second in range(100):
            buffer.add(Sums, f"s{series}", NOON + second, 1, NOON + 100)
    flood(buffer, 4)
    buffer.shrink(NOON + 100)
    assert buffer.bytes <= 400_000
    logs = sum(run.bytes for kind, _, _, run in buffer._runs() if kind is Log)
    assert 150_000 < logs <= 200_000
    assert tally.health(producer="", instance=None).lost()["memory"].keys() == {0, 1}


def test_messages_do_not_get_older_for_the_sake_of_numbers() -> None:
    """However much numbers fade: what was logged this hour is counted in it."""
    buffer = Buffer(Kept({1: 120, 60: 120}, {1: 9}), Tally(NOON), 65_000)
    for series in range(400):
        buffer.add(Sums, f"s{series}", NOON, 1, NOON)
    flood(buffer, 1, patterns=3)
    buffer.shrink(NOON)
    assert {width for kind, width, _, _ in buffer._runs() if kind is Log} == {HOUR}


def test_of_what_is_given_up_the_largest_log_gives_first() -> None:
    """And a small one keeps all it has, where that is enough."""
    tally = Tally(NOON)
    buffer = Buffer(Kept({1: 9}, {1: 9}), tally, 300_000)
    flood(buffer, 1)
    for start, hour in digest((NOON, None, "small")).items():
        buffer.add(Log, "small:info", start, hour, NOON)
    buffer.shrink(NOON)
    assert {loss.series for loss in tally.health(producer="", instance=None).losses} == {
        "log0:info"
    }


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 9)), max_size=30))
def test_whatever_is_given_up_the_books_of_an_hour_add_up(some: list[tuple[str, int]]) -> None:
    """Its messages and its bytes, whichever of it goes."""
    hour = LogHour(3)
    for at, (pattern, count) in enumerate(some):
        hour.add(pattern, Group(count, at, at, pattern * count))
        hour.add_texts([(at, pattern)])
    events = hour.events
    for give_up in (hour.give_up_texts, hour.give_up_samples, hour.give_up_patterns):
        give_up(100)
        give_up(10**9)
        same = LogHour(3)
        for pattern, group in hour.patterns.items():
            same.add(pattern, group)
        same.add_texts(hour.texts)
        assert (same.bytes, same.events) == (hour.bytes, events)
    assert set(hour.patterns) <= {OTHER}
    assert hour.texts == []
