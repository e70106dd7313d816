"""status: whether the last five minutes are as usual."""

from redmeter.analysis.comparing.sentences import value_text
from redmeter.cli import output
from redmeter.cli.app import NOT_FOUND, AsJson, Prefix, Url, command, fail, opened_store
from redmeter.queries import Queries
from redmeter.results.explanation import Check


@command(
    name="status",
    epilog="Exit codes: 0 as usual or unusual, 1 too little data to compare. "
    "Examples: redmeter status · redmeter status --json",
)
def status_command(url: Url = None, prefix: Prefix = None, json: AsJson = False) -> None:
    """Show whether the last five minutes were as usual.

    Compares requests, error rate and p95 response time of the last five complete minutes with their
    expected ranges, and names the route and the release that an unusual value began with.
    """
    with opened_store(url, prefix, reading=True) as store:
        result = Queries(store).status()
        if json:
            output.print_json(output.plain(result))
        elif output.is_terminal():
            output.line(result.sentence)
            output.line()
            output.table(
                ["", "NOW", "EXPECTED RANGE", ""], [_cells(check) for check in result.checks]
            )
        else:
            output.table(
                ["MEASURE", "STATE", "VALUE", "LOW", "HIGH"],
                [
                    [
                        check.measure,
                        check.state,
                        *("" if v is None else v for v in (check.value, check.low, check.high)),
                    ]
                    for check in result.checks
                ],
            )
        if result.state == "unknown":
            fail(result.sentence.removesuffix("."), NOT_FOUND)


def _cells(check: Check) -> list[output.Cell]:
    expected = check.reason
    if check.low is not None:
        low, high = (value_text(value, check.unit) for value in (check.low, check.high))
        expected = f"{low} to {high}"
    value = "" if check.value is None else value_text(check.value, check.unit)
    return [check.measure, value, expected, "" if check.state == "unknown" else check.state]
