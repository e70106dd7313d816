"""The table of endpoints and their parameters: parsing, error texts and openapi.json read it."""

from dataclasses import dataclass

from redmeter.dashboard import answers
from redmeter.dashboard.parameters import (
    FILTER,
    LABEL,
    LOGGER,
    MOMENT,
    NAME,
    ORDER,
    PAIR,
    PATTERN,
    SEVERITY,
    SLICES,
    SWITCH,
    WIDTH,
    Parameter,
    choice,
    number,
    whole,
)
from redmeter.types import MAX_RANKED_ROWS, RANKED_ROWS, RANKED_SLICES

#: Most names of one request: of series, of summaries, and on the overview.
MAX_SERIES, MAX_SUMMARIES, MAX_CHARTED = 200, 50, 20
#: Most quantiles of a summary, and most labels to look for.
MAX_QUANTILES, MAX_PAIRS = 10, 10


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A question that the API answers."""

    path: str
    summary: str
    answer: type
    parameters: tuple[Parameter, ...] = ()


def _precision(default: int = 60) -> Parameter:
    text = "Width of a slice, seconds: one that the store keeps; the error lists those."
    return Parameter("precision", WIDTH, text, default)


def _limit(most: int, default: int, of: str) -> Parameter:
    return Parameter("limit", whole(1, most), f"How many {of}.", default)


_SINCE = Parameter("since", MOMENT, "Leave out slices that end before, Unix seconds.")
_UNTIL = Parameter("until", MOMENT, "Leave out slices that start after, Unix seconds.")
_NAME = Parameter("name", NAME, "A series, with its labels.", required=True)
_WHERE = Parameter("where", PAIR, "Only series with this label, LABEL=VALUE.", most=MAX_PAIRS)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "/api/overview",
        "Everything that the overview shows",
        answers.OverviewAnswer,
        (
            _precision(),
            Parameter("series", NAME, "A series for the chart.", most=MAX_CHARTED),
        ),
    ),
    Endpoint(
        "/api/series",
        "Samples of counters or gauges, many at once",
        answers.SeriesAnswer,
        (
            Parameter("name", NAME, "A series.", required=True, most=MAX_SERIES),
            _precision(),
            _SINCE,
            _UNTIL,
            Parameter(
                "by", LABEL, "Of one name without labels: a series for each value of this label."
            ),
            Parameter("sum", SWITCH, "1: of one name without labels, all label sets added.", False),
            Parameter("kind", choice("counter", "gauge"), "What the names are of.", "counter"),
        ),
    ),
    Endpoint(
        "/api/names",
        "Names of series",
        answers.NamesAnswer,
        (
            Parameter("pattern", PATTERN, "`*` any text, `?` one character, `[abc]`.", "*"),
            Parameter(
                "kind", choice("counters", "gauges", "histograms"), "What they are of.", "counters"
            ),
            _limit(10_000, 1_000, "names"),
        ),
    ),
    Endpoint(
        "/api/top",
        "What happens most often, takes longest or fails most",
        answers.TopAnswer,
        (
            Parameter("name", PATTERN, "With `by` a name without labels; without, a pattern.", "*"),
            _precision(),
            Parameter("by", LABEL, "A label, by whose values to add up."),
            Parameter("order", ORDER, "What to rank by; percentiles as p95.", "count"),
            Parameter(
                "slices",
                SLICES,
                f"How many of the newest slices; default {RANKED_SLICES}, or all that are kept.",
            ),
            _limit(MAX_RANKED_ROWS, RANKED_ROWS, "rows"),
            _WHERE,
            Parameter(
                "failing",
                PAIR,
                "With order=failing: the label of what failed, as status=5xx.",
                most=MAX_PAIRS,
            ),
        ),
    ),
    Endpoint(
        "/api/summary",
        "How observed values were spread",
        answers.SummaryAnswer,
        (
            Parameter("name", NAME, "A histogram.", required=True, most=MAX_SUMMARIES),
            _precision(),
            _SINCE,
            _UNTIL,
            Parameter("all_labels", SWITCH, "1: merge all label sets of each name.", False),
            Parameter("where", PAIR, "With all_labels: only these, LABEL=VALUE.", most=MAX_PAIRS),
            Parameter(
                "q",
                number(0, 1, "a quantile"),
                "Quantiles; else 0.5 and 0.95.",
                most=MAX_QUANTILES,
            ),
            Parameter(
                "threshold",
                number(-1e300, 1e300, "a number"),
                "Also which share of the values is above.",
            ),
            Parameter("over_time", SWITCH, "1: slice by slice, too.", False),
        ),
    ),
    Endpoint(
        "/api/messages",
        "What was logged: changes, the most frequent, the newest",
        answers.MessagesAnswer,
        (
            Parameter("logger", LOGGER, "Only of this one."),
            Parameter("severity", SEVERITY, "Only of these.", most=MAX_PAIRS),
            _limit(500, 100, "messages, and patterns"),
        ),
    ),
    Endpoint(
        "/api/marks",
        "Marks, as deploys are",
        answers.MarksAnswer,
        (
            Parameter("since", MOMENT, "From here on, Unix seconds."),
            Parameter("until", MOMENT, "Up to here, Unix seconds."),
        ),
    ),
    Endpoint(
        "/api/pages",
        "Pages of a web application",
        answers.PagesAnswer,
        (
            _precision(),
            Parameter(
                "order", choice("count", "p95", "failing", "total"), "What to rank by.", "count"
            ),
            _limit(200, 50, "pages"),
            Parameter("offset", whole(0, 100_000), "Pages to pass over.", 0),
            Parameter("filter", FILTER, "Only routes that contain this text.", ""),
        ),
    ),
    Endpoint(
        "/api/counters",
        "Counters, gauges or histograms, each with a small curve",
        answers.CountersAnswer,
        (
            _precision(),
            Parameter("pattern", PATTERN, "`*` any text, `?` one character, `[abc]`.", "*"),
            Parameter(
                "kind", choice("counters", "gauges", "histograms"), "What they are of.", "counters"
            ),
            Parameter("grouped", SWITCH, "1: one row for all label sets of a name.", False),
            Parameter("order", choice("name", "count", "change"), "What to rank by.", "name"),
            _limit(200, 50, "rows"),
            Parameter("offset", whole(0, 100_000), "How many to leave out before.", 0),
        ),
    ),
    Endpoint(
        "/api/detail",
        "Everything about one series",
        answers.DetailAnswer,
        (_NAME, _precision()),
    ),
    Endpoint(
        "/api/forecast",
        "What is expected of a series",
        answers.ForecastAnswer,
        (_NAME, _precision(3600)),
    ),
    Endpoint("/api/health", "How the store is", answers.HealthAnswer),
)
