"""Measured values for people, by the unit that a name ends in: 12.3 ms, 4.5 MB, 12 %."""

from collections.abc import Callable, Sequence

from redmeter.cli import output

#: How many of the first unit make one of these, and its name; ascending.
_SECONDS = [(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")]
#: Units for durations of two or more of them, seconds.
_LONG = [(60.0, "min"), (3600.0, "h"), (86400.0, "d")]
_BYTES = [(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB")]

#: Writes a value for people.
Writer = Callable[[float], str]


def writer_for(name: str) -> Writer:
    """Return what writes the values of a series, by the end of its name without labels."""
    base = name.partition("{")[0]
    if base.endswith("_seconds"):
        return _seconds
    if base.endswith("_bytes"):
        return lambda value: _scaled(value, _BYTES)
    if base.endswith("_ratio"):
        return lambda value: f"{_short(value * 100)} %"
    return output.number


def _seconds(value: float) -> str:
    for size, unit in reversed(_LONG):
        if abs(value) >= 2 * size:
            return f"{_short(value / size)} {unit}"
    return _scaled(value, _SECONDS)


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Write three digits in the unit in which there are the fewest before the point."""
    if not value:
        return f"0 {units[-1][1] if units is _SECONDS else units[0][1]}"
    rounded = abs(float(f"{value:.3g}"))
    size, unit = next((u for u in reversed(units) if rounded >= u[0] * (1 - 1e-9)), units[0])
    return f"{_short(value / size)} {unit}"


def _short(value: float) -> str:
    """Write three digits, or all that stand before the point."""
    if 999.5 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"
