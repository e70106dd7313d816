"""Numbers that applications record: of Python, decimal, fractions, numpy, and others."""

import math


def to_float(value: object, call: str) -> float:
    """Return a number as a float, which may be infinite or NaN: callers must reject these.

    A number that is too large for a float becomes infinite.

    Args:
        value: an int, a float, or an object with `__float__()`, such as a Decimal.
        call: what takes the number, for the error: "observe()".

    Raises:
        TypeError: not a number.
    """
    if type(value) is float:
        return value
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(
            f"{call} takes a number, not {type(value).__name__}: convert it, "
            "e.g. with float(value), or with value.total_seconds() for a timedelta"
        )
    try:
        return float(value)
    except ValueError:  # a signaling NaN of decimal
        return math.nan
    except OverflowError:  # of integers and fractions, which can be compared
        return -math.inf if value < 0 else math.inf  # type: ignore[operator]
