"""Sentences about changes, in pieces with names, so that a page can link each noun."""

from collections.abc import Callable, Sequence
from typing import Final

from redmeter.results.explanation import ChangedGroup, Explanation, Part

#: Least share of a change that a group accounts for mainly.
LEAST_MAIN: Final = 0.5

#: Units that values are written in.
_SECONDS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))

#: End of a name -> unit of its values.
_UNITS = {"_seconds": "seconds", "_bytes": "bytes", "_ratio": "ratio"}


def unit_of(name: str) -> str:
    """Return the unit of the values of a series, by the end of its name without labels."""
    base = f"_{name.partition('{')[0]}"
    return next((unit for end, unit in _UNITS.items() if base.endswith(end)), "")


def value_text(value: float | None, unit: str = "", *, exact: bool = False) -> str:
    """Write a value for people: "1,234", "7.7 %", "340 ms", "−2.5 %".

    Args:
        exact: whether all its digits are written.
    """
    written = _exact if exact else _short
    if value is None:
        return "unknown"
    if value < 0:
        return f"−{value_text(-value, unit, exact=exact)}"
    if unit == "ratio":
        return f"{written(value * 100)} %"
    if unit in ("seconds", "bytes") and value:
        units = _SECONDS if unit == "seconds" else _BYTES
        size, name = next((u for u in units if abs(value) >= 0.9995 * u[0]), units[-1])
        return f"{written(value / size)} {name}"
    return written(value)


def change_text(value: float, unit: str = "") -> str:
    """Write a change with its sign: "+340 ms", "−2.5 %"."""
    return f"{'+' if value >= 0 else ''}{value_text(value, unit)}"


def _short(value: float) -> str:
    if abs(value) >= 999.5 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.2g}" if abs(value) < 10 else f"{value:.3g}"


def _exact(value: float) -> str:
    return f"{value:,.10g}"


def text(words: str) -> Part:
    """Return a piece without a name."""
    return Part(kind="text", text=words)


def group_part(name: str, group: ChangedGroup) -> Part:
    """Return a group: a route is written alone, other labels with their name."""
    value = "none" if group.value is None else group.value
    words = value if group.label == "route" and group.value else f"{group.label} {value}"
    return Part(kind="group", text=words, name=name, label=group.label, value=group.value)


def joined(parts: Sequence[Part]) -> str:
    """Return the sentence."""
    return "".join(part.text for part in parts)


#: The subject of a sentence, by measure.
_TITLES: dict[str, Callable[[str], str]] = {
    "count": lambda name: name,
    "error rate": lambda name: f"Error rate of {name}",
    "p95": lambda name: f"p95 of {name}",
}


def explanation_parts(explanation: Explanation, baseline: str, precision: str) -> list[Part]:
    """Return the sentence of an explanation that was compared.

    Args:
        baseline: the baseline's name, e.g. "the 15 min before".
        precision: the width of an interval, e.g. "1m".
    """
    before, after, unit = explanation.before, explanation.after, explanation.unit
    title = _TITLES[explanation.measure](explanation.name)
    parts = [Part(kind="metric", text=title, name=explanation.name), text(" ")]
    if before == after:
        parts += [text("is unchanged at "), Part(kind="value", text=value_text(after, unit))]
    elif before is None or after is None:
        parts += [text("is "), Part(kind="value", text=value_text(after, unit))]
        parts += [text(", was "), Part(kind="usual", text=value_text(before, unit))]
    else:
        verb = "rose" if after > before else "fell"
        ratio = f" {abs(after / before - 1):.0%}".replace("%", " %") if before else ""
        parts += [text(f"{verb}{ratio}, from "), Part(kind="usual", text=value_text(before, unit))]
        parts += [text(" to "), Part(kind="value", text=value_text(after, unit))]
    parts += _reasons(explanation)
    parts += [text(". Compared with "), Part(kind="baseline", text=baseline)]
    parts.append(text(f", in intervals of {precision}."))
    return parts


def _reasons(explanation: Explanation) -> list[Part]:
    if not explanation.judged:
        return [text(" (too few intervals to name causes)")]
    if not explanation.causes:
        return [text(_without_causes(explanation))]
    return cause_parts(
        explanation.name,
        explanation.causes[:3],
        explanation.change,
        lambda group: _extent(explanation, group),
    )


def _without_causes(explanation: Explanation) -> str:
    if not explanation.changed:
        return ", within the usual variation"
    if explanation.even:
        return ", in all groups alike"
    if explanation.uneven:
        return ", but not in all groups alike"
    return ", with no clear cause"


def cause_parts(
    name: str,
    causes: Sequence[ChangedGroup],
    change: float | None,
    extent: Callable[[ChangedGroup], str],
) -> list[Part]:
    """Return the groups that account for a change, each with its own figures in parentheses.

    Args:
        name: the series that the groups are of.
        change: of the total; None if it is unknown.
        extent: writes how far a group changed: see before_after().
    """
    parts: list[Part] = []
    for number, group in enumerate(causes):
        if change is not None and group.change * change <= 0:
            parts.append(text(", despite "))
        elif number:
            parts.append(text(", then "))
        else:
            is_main = change is None or abs(group.change) >= LEAST_MAIN * abs(change)
            parts.append(text(", mainly " if is_main else ", partly "))
        parts += [group_part(name, group), text(f" ({extent(group)})")]
    return parts


def before_after(group: ChangedGroup, unit: str) -> str:
    """Return the values of a group: "2 to 8"; "none" where it had no events."""
    before, after = (
        "none" if value is None else value_text(value, unit)
        for value in (group.before, group.after)
    )
    return f"{before} to {after}"


def _extent(explanation: Explanation, group: ChangedGroup) -> str:
    extent = before_after(group, explanation.unit)
    if abs(group.mix_effect or 0.0) > abs(group.rate_effect or 0.0):
        # Its share of the requests accounts for the change, not its error rate.
        shares = (
            value_text(of / whole, "ratio")
            for of, whole in (
                (group.count_before, explanation.count_before),
                (group.count, explanation.count),
            )
        )
        extent = f"{' to '.join(shares)} of the requests"
    if explanation.measure == "p95":
        return f"{extent}, effect {change_text(group.change, explanation.unit)}"
    if group.share is not None and 0 < group.share <= 1.2:
        extent += f", {group.share:.0%} of the change".replace("%", " %")
    return extent
