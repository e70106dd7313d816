"""Instance: the label by which processes are told apart, in what each of them has of its own.

Its value is a small number that the store gives out, never a process id: those never come again,
and each would leave a series behind. Until the number is known, the name has a place for it:
`instance=""`.
"""

from redmeter.names import canonical, format_name, parse_name

LABEL = "instance"
_PLACE = f'{LABEL}=""'

#: How long a number is used before it is asked for again, seconds; see store/publishing.py.
NUMBER_SECONDS = 60.0


def for_each_process(series: str) -> str:
    """Return a series' name with a place for the number of the process.

    Raises:
        InvalidName: it has that label already, or gets too long.
    """
    return canonical(series, {LABEL: ""})


def needs_instance(series: str) -> bool:
    """Tell whether a name may have a place for the number."""
    return _PLACE in series


def spelled(series: str, number: int | None) -> str:
    """Put the number into a name that has a place for it."""
    if number is None or not needs_instance(series):
        return series
    base, labels = parse_name(series)
    own = dict(labels)
    if own.get(LABEL) == "":
        own[LABEL] = str(number)
    return format_name(base, own)
