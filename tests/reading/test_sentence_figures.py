"""Each figure in a sentence is that of the noun before it, counted again from the events."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redmeter.analysis.comparing.sentences import value_text
from redmeter.results.explanation import Check, Explanation, Part
from redmeter.testing import MemoryMeter
from support.examples import scaled

#: The running minute, and the minutes before it that are recorded.
END, MINUTES = 1_700_000_040, 89
#: Response times of a label set in each minute.
TIMES = 12

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Incident:
    """One value of one label becomes busier, slower or less successful in the last minutes."""

    #: The label sets: label -> values; there is one series for each combination with a status.
    labels: Mapping[str, Sequence[str]]
    label: str
    value: str
    minutes: int = 7
    #: Factors of its requests, of the share that fails and of its response times.
    busier: float = 1.0
    failing: float = 1.0
    slower: float = 1.0
    usual: int = 40


@dataclass
class Recorded:
    """The events of each minute."""

    #: Start, labels without the status, requests, failures, and response times.
    rows: list[tuple[int, Labels, int, int, list[float]]] = field(default_factory=list)

    def value(
        self, measure: str, window: tuple[float, float], group: tuple[str, str | None] | None = None
    ) -> float | None:
        """Return a measure of a window, of all requests or of one group; None without events."""
        rows = [
            row
            for row in self.rows
            if window[0] <= row[0] < window[1]
            and (group is None or row[1].get(group[0], group[1]) == group[1])
        ]
        count = sum(row[2] for row in rows)
        if group is not None and group[0] == "status":
            failed = sum(row[3] for row in rows)
            return failed if group[1] == "5xx" else count - failed
        if measure == "error rate":
            return sum(row[3] for row in rows) / count if count else None
        if measure == "p95":
            values = sorted(seconds for row in rows for seconds in row[4])
            return values[math.ceil(0.95 * len(values)) - 1] if values else None
        return count


def recorded(incident: Incident) -> tuple[MemoryMeter, Recorded]:
    """Record an incident as the integrations for the web do."""
    meter, truth = MemoryMeter(), Recorded()
    meter.clock.set_wall(END + 20)
    label_sets: list[dict[str, str]] = [{}]
    for label, values in incident.labels.items():
        label_sets = [{**one, label: value} for one in label_sets for value in values]
    for minute in range(MINUTES):
        at = END - (MINUTES - minute) * 60
        hits = failures = 0
        for number, labels in enumerate(label_sets):
            is_hit = labels[incident.label] == incident.value
            wrong = is_hit and minute >= MINUTES - incident.minutes
            count = incident.usual + (minute * 7 + number * 3) % 5
            count = round(count * (incident.busier if wrong else 1))
            share = min(0.9, 0.05 * (incident.failing if wrong else 1))
            failed = round(count * share + 0.4 * ((minute + number) % 3))
            failed = min(failed, count)
            base = 0.1 * (incident.slower if wrong else 1)
            times = [base * (1 + step / 40) for step in range(TIMES)] if count else []
            for status, amount in (("2xx", count - failed), ("5xx", failed)):
                if amount:
                    meter.count("http_requests", amount, labels=labels | {"status": status}, at=at)
            for seconds in times:
                meter.observe("http_request_seconds", seconds, labels=labels, at=at)
                meter.observe("hits_seconds", seconds, at=at)
            truth.rows.append((at, labels, count, failed, times))
            hits, failures = hits + count, failures + failed
        if hits:
            meter.count("hits", hits, at=at)
        if failures:
            meter.count("hits_failed", failures, at=at)
    return meter, truth


def assert_written(text: str, value: float | None, unit: str, measure: str) -> None:
    """Check a figure: exactly, or a p95, which is of buckets, within two of them."""
    if measure != "p95" or value is None:
        assert text == ("none" if value is None else value_text(value, unit))
        return
    match = re.fullmatch(r"([\d.,]+) (s|ms|µs)", text)
    assert match, text
    seconds = float(match[1].replace(",", "")) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[match[2]]
    assert seconds == pytest.approx(value, rel=0.1)


def assert_groups(
    parts: Sequence[Part],
    truth: Recorded,
    measure: str,
    unit: str,
    window: tuple[float, float],
    baseline: tuple[float, float],
    form: str = r" \((?P<before>.+?) to (?P<after>(?:[\d,.]+|none)(?: [^\s,)]+)?)[,)]",
) -> int:
    """Check the figures of each group, and return how many groups there are.

    Args:
        form: in which they are written.
    """
    groups = 0
    for part, then in zip(parts, [*parts[1:], Part(kind="text", text="")], strict=True):
        if part.kind != "group":
            continue
        groups += 1
        figures = re.match(form, then.text)
        assert figures, then.text
        assert part.label is not None
        before, after = (
            truth.value(measure, each, (part.label, part.value)) for each in (baseline, window)
        )
        if measure in ("count", "requests") and before is not None:
            before *= (window[1] - window[0]) / (baseline[1] - baseline[0])
        assert_written(figures["before"], before, unit, measure)
        assert_written(figures["after"], after, unit, measure)
    return groups


def parts_of(parts: Sequence[Part], name: str) -> list[Part]:
    """Return the pieces of a sentence from a metric up to the end of its clause."""
    at = next(n for n, part in enumerate(parts) if part.kind == "metric" and part.name == name)
    end = next(n for n in range(at, len(parts)) if parts[n].text.startswith(". "))
    return list(parts[at:end])


def assert_explained(found: Explanation, truth: Recorded) -> None:
    """Check the totals and the groups of an explanation's sentence."""
    window, baseline = (found.since, found.until), (found.against_since, found.against_until)
    before, after = (truth.value(found.measure, each) for each in (baseline, window))
    for part in found.parts:
        if part.kind == "value":
            assert_written(part.text, after, found.unit, found.measure)
        elif part.kind == "usual":
            assert_written(part.text, before, found.unit, found.measure)
    assert_groups(found.parts, truth, found.measure, found.unit, window, baseline)


#: The figures of a group in the sentence of a status.
FORM = r" (?P<after>(?:[\d,.]+|none)(?: [^\s(]+)?) \(usually (?P<before>.+?)\)"


def assert_checked(meter: MemoryMeter, truth: Recorded) -> dict[str, int]:
    """Check the sentence of the status; return how many groups it names for each measure."""
    status = meter.status()
    groups: dict[str, int] = {}
    for check in status.checks:
        if check.state not in ("high", "low") or check.labels:
            continue
        parts = parts_of(status.parts, check.name)
        (usual,) = [part.text for part in parts if part.kind == "usual"]
        assert usual == value_text(check.mid, check.unit)
        assert check.began is not None
        minutes = check.since or status.since, status.until
        values = [part.text for part in parts if part.kind == "value"]
        assert len(values) == (0 if parts[0].text.startswith("No ") else 1)
        for value in values:
            assert_written(value, truth.value(check.measure, minutes), check.unit, check.measure)
        first = {"requests": check.began - 3600, "p95": check.began - 1800}
        before = first.get(check.measure, check.against_since), check.began
        groups[check.measure] = assert_groups(
            parts, truth, check.measure, check.unit, minutes, before, FORM
        )
    assert_baselines(status.parts, status.checks)
    return groups


def assert_baselines(parts: Sequence[Part], checks: Sequence[Check]) -> None:
    """Check that each baseline is the one of the measures before it; the first is the others'."""
    lengths = {}
    for check in checks:
        if check.state != "unknown":
            title = {"requests": "requests", "p95": "p95 response time"}
            minutes = round(check.against_until - check.against_since) // 60
            lengths[title.get(check.measure, check.measure)] = minutes
    at = max(n for n, part in enumerate(parts) if part.text.startswith("Compared with "))
    nouns, others = parts[at::2], set(lengths)
    for noun, baseline in list(zip(nouns, parts[at + 1 :: 2], strict=False))[::-1]:
        named = {title for title in lengths if title in noun.text} or others
        others = others - named
        units = {unit: int(n) for n, unit in re.findall(r"(\d+) (h|min)", baseline.text)}
        length = 60 * units.get("h", 0) + units.get("min", 0)
        assert {lengths[title] for title in named} == {length}


VALUES = st.sampled_from(["/buy", "/admin/login/", "7", "2 (3 to 4)", "v1, v2", "2xx", "eu"])


@st.composite
def incidents(draw: st.DrawFn) -> Incident:
    """Draw label sets and an incident of one value of a label."""
    names = draw(st.lists(st.sampled_from(["route", "method", "zone"]), min_size=1, unique=True))
    labels = {}
    for at, name in enumerate(names[:2]):
        most = 4 if not at else 2
        labels[name] = draw(st.lists(VALUES, min_size=1, max_size=most, unique=True))
    label = draw(st.sampled_from(list(labels)))
    return Incident(
        labels,
        label,
        draw(st.sampled_from(labels[label])),
        draw(st.integers(1, 12)),
        draw(st.sampled_from([0, 0.2, 1, 1, 4, 9])),
        draw(st.sampled_from([1, 1, 5, 12])),
        draw(st.sampled_from([1, 1, 0.3, 4])),
        draw(st.sampled_from([8, 40])),
    )


ROUTES = {"route": ["/buy", "/admin/login/", "/help"]}


@settings(max_examples=scaled(40), deadline=None)
@given(incidents())
@example(Incident(ROUTES, "route", "/buy", busier=0))
@example(Incident(ROUTES, "route", "/buy", minutes=1, busier=9))
def test_figures_belong_to_the_nouns_before_them(incident: Incident) -> None:
    """In the status, and in explanations of counts, error rates and p95."""
    meter, truth = recorded(incident)
    assert_checked(meter, truth)
    since = END - 60 * incident.minutes
    for name, failing in (
        ("http_requests", None),
        ("http_requests", {"status": "5xx"}),
        ("http_request_seconds", None),
    ):
        found = meter.explain(name, since, END, failing=failing)
        assert_explained(found, truth)


@pytest.mark.parametrize(
    ("incident", "measure"),
    [
        (Incident(ROUTES, "route", "/admin/login/", busier=9), "requests"),
        (Incident(ROUTES, "route", "/buy", busier=0), "requests"),
        (Incident(ROUTES, "route", "/buy", failing=12), "error rate"),
        (Incident(ROUTES, "route", "/buy", slower=4), "p95"),
    ],
)
def test_the_status_names_a_group_with_figures_of_its_own(incident: Incident, measure: str) -> None:
    """The total stands beside the measure, the group's part beside the group."""
    meter, truth = recorded(incident)
    assert assert_checked(meter, truth)[measure] == 1
