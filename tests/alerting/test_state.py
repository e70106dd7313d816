"""The steps of one alert."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.alerting.rules import Rule
from redmeter.alerting.state import (
    FIRING,
    OK,
    AlertState,
    Reading,
    advance,
)

RULE = Rule("a", "threshold", "hits", above=1, notify=("ops",))
YES, NO, UNKNOWN = Reading(True, 2.0), Reading(False, 0.0), Reading(None)


def statuses(rule: Rule, readings: str, *, muted: str = "") -> list[str]:
    """Return the transition and notice of each evaluation, one a minute, by its letter."""
    state, found = AlertState(), []
    for number, letter in enumerate(readings):
        reading = {"y": YES, "n": NO, "?": UNKNOWN, "h": Reading(False, 0.9, "", False)}[letter]
        quiet = muted[number : number + 1] == "m"
        step = advance(rule, state, reading, 1000 + 60.0 * number, muted=quiet)
        assert step.changed == (step.state != state)
        assert step.state.version == state.version + step.changed
        state = step.state
        notice = f"+{step.notice}" if step.notice else ""
        found.append(f"{step.transition}{notice}")
    return found


@pytest.mark.parametrize(
    ("rule", "readings", "expected"),
    [
        (RULE, "nyyn", ["", "firing+firing", "", "resolved+resolved"]),
        (
            replace(RULE, for_seconds=120),
            "yynyyyn",
            ["", "", "", "", "", "firing+firing", "resolved+resolved"],
        ),
        (replace(RULE, keep=120), "ynynnn", ["firing+firing", "", "", "", "", "resolved+resolved"]),
        (replace(RULE, remind=120), "yyyy", ["firing+firing", "", "+reminder", ""]),
        (RULE, "yhhn", ["firing+firing", "", "", "resolved+resolved"]),
        (RULE, "h", [""]),
        (replace(RULE, for_seconds=60), "y?y", ["", "", "firing+firing"]),
    ],
)
def test_an_alert_fires_and_resolves(rule: Rule, readings: str, expected: list[str]) -> None:
    """After `for`, and after `keep`; in between it reminds. Unknown readings change nothing."""
    assert statuses(rule, readings) == expected


def test_a_muted_alert_is_sent_when_it_is_no_longer_muted() -> None:
    """If it still fires; else nobody hears of it."""
    assert statuses(RULE, "yyyn", muted="mm") == ["firing", "", "+firing", "resolved+resolved"]
    assert statuses(RULE, "yyn", muted="mmm") == ["firing", "", "resolved"]
    assert statuses(RULE, "yn", muted=" m") == ["firing+firing", "resolved+resolved"]


@given(
    st.text("ynh?", max_size=40),
    st.text("m ", max_size=40),
    st.integers(0, 300),
    st.integers(0, 300),
    st.integers(0, 300),
)
def test_transitions_alternate_and_notices_match(
    readings: str, muted: str, hold: int, keep: int, remind: int
) -> None:
    """Firing and resolved take turns, in transitions and in notices, whatever the readings are."""
    rule = replace(RULE, for_seconds=hold, keep=keep, remind=remind)
    steps = [each.partition("+") for each in statuses(rule, readings, muted=muted)]
    transitions = [each[0] for each in steps if each[0]]
    assert transitions == (["firing", "resolved"] * len(readings))[: len(transitions)]
    notices = [each[2] for each in steps if each[2] not in ("", "reminder")]
    assert notices == (["firing", "resolved"] * len(readings))[: len(notices)]


def test_a_state_survives_the_store_and_a_newer_release() -> None:
    """Unknown fields are ignored; no state is guessed from what is none."""
    state = replace(AlertState(), status=FIRING, notifiers=("ops",), value=1.5, version=3)
    assert AlertState.from_json(state.to_json()) == state
    assert AlertState.from_json('{"version":1,"later":2}') == AlertState(version=1, status=OK)
    for text in ("", "[]", "{"):
        with pytest.raises(ValueError, match=r".*"):
            AlertState.from_json(text)
