"""Reports: the rules that an evaluator evaluates, and its newest readings, as it publishes them.

The rules are in a file on the evaluator's host. It stores them in a field of `alerts:`, and after
each cycle what it read, so that the page, `redmeter alerts` and Prometheus' API show every rule
without the file. Both are informative: no decision of an evaluator depends on them.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from redmeter.alerting.rules import Maintenance, Rule, Rules
from redmeter.alerting.state import Reading

#: Longest detail of a reading, characters.
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Report:
    """What an evaluator read in its last cycle."""

    #: When, Unix seconds by the server's clock.
    time: float
    #: Seconds from one cycle to the next.
    interval: float
    #: Alert -> its reading.
    readings: dict[str, Reading] = field(default_factory=dict)
    #: Rule with `by` -> values beyond the limit, which are not evaluated.
    left_out: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as JSON."""
        readings = {
            name: [each.holds, _finite(each.value), each.detail[:_LONGEST]]
            for name, each in self.readings.items()
        }
        return _json({**asdict(self), "readings": readings})

    @classmethod
    def from_json(cls, text: str | bytes) -> "Report":
        """Read it.

        Raises:
            ValueError, TypeError, LookupError, AttributeError: another program wrote it.
        """
        given: Any = json.loads(text)
        readings = {
            str(name): Reading(holds, value, str(detail))
            for name, (holds, value, detail) in given["readings"].items()
        }
        left_out = {str(name): int(count) for name, count in given["left_out"].items()}
        return cls(float(given["time"]), float(given["interval"]), readings, left_out)


def rules_text(rules: Rules) -> str:
    """Return rules and maintenance windows as JSON; notifiers stay on the evaluator's host."""
    return _json(
        {
            "rules": [_changed(rule) for rule in rules.alerts],
            "maintenance": [asdict(window) for window in rules.maintenance],
        }
    )


def read_rules(text: str | bytes) -> Rules:
    """Return the rules that an evaluator published; fields of a later release are ignored.

    Raises:
        ValueError, TypeError, LookupError, AttributeError: another program wrote it.
    """
    given: Any = json.loads(text)
    rules = tuple(_made(Rule, each) for each in given["rules"])
    return Rules(rules, {}, tuple(_made(Maintenance, each) for each in given["maintenance"]))


def _made(cls: Any, given: Mapping[str, Any]) -> Any:
    known = {each.name for each in fields(cls)}
    return cls(**{name: _tuples(value) for name, value in given.items() if name in known})


def _changed(rule: Rule) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    defaults = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(rule)
    }
    return {name: value for name, value in asdict(rule).items() if value != defaults[name]}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
