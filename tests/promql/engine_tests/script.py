"""Test scripts: `load`, `clear` and `eval` commands with expectations."""

import re
from dataclasses import dataclass, field

from promql.engine_tests.notation import duration
from redmeter.promql.errors import QueryError

_EVAL = re.compile(
    r"eval(?P<old>_fail|_warn|_info|_ordered)?\s+"
    r"(?:instant(?:\s+at\s+(?P<at>\S+))?|range\s+from\s+(?P<start>\S+)\s+to\s+(?P<end>\S+)\s+step"
    r"\s+(?P<step>\S+))\s+(?P<query>.*)",
    re.DOTALL,
)
_EXPECT = re.compile(r"expect\s+(?P<what>\w+)(?:\s+(?P<how>msg|regex)\s*:)?\s*(?P<text>.*)")
#: Where a warning is, which a script may leave out.
_POSITION = re.compile(r" \(\d+:\d+\)$")
_RANGE = re.compile(r"expect\s+range\s+vector\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)")


@dataclass(frozen=True)
class Expectation:
    """An `expect` line: `what` as `fail` or `no_warn`; `how` is "msg", "regex" or ""."""

    what: str
    how: str
    text: str

    def fits(self, message: str) -> bool:
        """Return whether a message is as expected."""
        if self.how == "msg":
            return self.text in (message, _POSITION.sub("", message))
        if self.how == "regex":
            return re.search(self.text, message) is not None
        return True


@dataclass(frozen=True)
class Load:
    """A `load` command; `custom` if it also makes histograms with custom buckets."""

    line: int
    step: int
    series: list[str]
    custom: bool


@dataclass(frozen=True)
class Clear:
    """A `clear` command."""

    line: int


@dataclass(frozen=True)
class Eval:
    """An `eval` command.

    Attributes:
        query: the query.
        times: start, end and step in milliseconds; step 0 for an instant query.
        expectations: the `expect` lines.
        samples: start and step of a range vector that is expected, in milliseconds.
        results: the expected series, as they are written.
    """

    line: int
    query: str
    times: tuple[int, int, int]
    expectations: list[Expectation] = field(default_factory=list)
    samples: tuple[int, int] | None = None
    results: list[str] = field(default_factory=list)

    def expected(self, what: str) -> list[Expectation]:
        """Return the `expect` lines of a kind."""
        return [each for each in self.expectations if each.what == what]


Command = Load | Clear | Eval


def parse_script(text: str) -> list[Command]:
    """Return the commands of a script.

    Raises:
        QueryError: a line is no command.
    """
    lines = [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if not line.strip().startswith("#")
    ]
    commands: list[Command] = []
    position = 0
    while position < len(lines):
        number, line = lines[position]
        position += 1
        if not line:
            continue
        block = []
        if not line.startswith("clear"):
            while position < len(lines) and lines[position][1]:
                block.append(lines[position][1])
                position += 1
        commands.append(_command(number, line, block))
    return commands


def _command(number: int, line: str, block: list[str]) -> Command:
    word = line.split()[0]
    if word == "clear":
        return Clear(number)
    if word in ("load", "load_with_nhcb"):
        return Load(number, duration(line.split()[1]), block, word != "load")
    if word.startswith("eval"):
        return _eval(number, line, block)
    raise QueryError(f"line {number}: no command: {line!r}")


def _eval(number: int, line: str, block: list[str]) -> Eval:
    match = _EVAL.match(line)
    if match is None:
        raise QueryError(f"line {number}: no eval: {line!r}")
    if match["start"] is None:
        at = duration(match["at"] or "0")
        times = (at, at, 0)
    else:
        times = (duration(match["start"]), duration(match["end"]), duration(match["step"]))
    command = Eval(number, match["query"], times)
    if match["old"]:
        command.expectations.append(Expectation(match["old"][1:], "", ""))
    samples = None
    for each in block:
        expected = _EXPECT.match(each)
        vector = _RANGE.match(each)
        if vector:
            samples = duration(vector[1]), duration(vector[3])
        elif expected:
            text = expected["text"].partition("#")[0] if not expected["how"] else expected["text"]
            expectation = Expectation(expected["what"], expected["how"] or "", text.strip())
            command.expectations.append(expectation)
        elif each.startswith(("expected_fail_message", "expected_fail_regexp")):
            how = "msg" if each.startswith("expected_fail_message") else "regex"
            command.expectations.append(Expectation("fail", how, each.partition(" ")[2].strip()))
        else:
            command.results.append(each)
    return Eval(
        *(command.line, command.query, command.times, command.expectations, samples),
        command.results,
    )
