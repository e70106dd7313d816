"""Refuse words that this project's texts avoid, or lower the allowances of old text.

    python tools/words.py            lowers the allowances in .ci/words.json
    python tools/words.py --check    exits 1 and lists the lines where a file exceeds its allowance

The words are jargon of this project's early texts, or words whose usual term is another one; see
docs/glossary.md. Text that is older than this check has an allowance: how many such words its file
may contain. An allowance only falls, and a file without one may contain none; what other files no
longer use covers files that were renamed or split. The goal is an empty file of allowances.
"""
# ruff: noqa: INP001

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ALLOWANCES = ROOT / ".ci" / "words.json"
#: Texts that are read: documents, and code with its comments, docstrings and messages.
TEXTS = (
    *("*.md", "docs/**/*.md", "src/**/*.py", "src/**/*.lua", "frontend/src/**/*.ts*"),
    *("tests/**/*.py", "benchmarks/**/*.py"),
)
#: Made from other texts, or, like the changelog, a record of the past.
SKIPPED = (
    *("CHANGELOG.md", "docs/reference/commands.md", "docs/reference/settings.md"),
    "docs/reference/python-api.md",
    "frontend/src/api/generated.ts",
    "tests/docs/test_words.py",  # its examples
)


class Rule(NamedTuple):
    """Words to avoid, and the better ones."""

    pattern: re.Pattern[str]
    better: str
    #: Files in which the words are right.
    but: tuple[str, ...] = ()


def _rule(pattern: str, better: str, *but: str) -> Rule:
    return Rule(re.compile(pattern, re.MULTILINE), better, but)


_VARIABLE = "some|those|there|own|found|asked|said|told|given|wanted"
_CALLER = "asks?|calls?|has|is|knows?|looks?|needs?|only|reads?|wants?|waits?|writes?"

RULES = (
    # Idiom
    _rule(r"(?<!\.)\b[Tt](?:old|ells?)\b", "reports, returns, publishes"),
    _rule(r"\b[Ss]ays?\b", "reports, names, states"),
    _rule(r"\b[Ww]hat (?:is|was|are|were|has|had|it|they|can|cannot)\b(?!.*\?)", "the noun"),
    _rule(rf"\b[Ww]hoever\b|(?:^|[^a-z\s] ?)\b[Ww]ho (?:{_CALLER})\b(?!.*\?)", "the noun"),
    _rule(r"\blies\b", "is in"),
    _rule(r"\bstands\b(?! for\b)", "is in"),
    _rule(r"\b[Bb]eside\b", "next to, compared with, in addition to"),
    _rule(r"\bas ever\b|\bgoes out\b|\bin spite of all\b", "plain words"),
    _rule(r"\b(?:is|are|was|were) to be\b", "must be, is"),
    _rule(r"\bby (?:itself|themselves|himself)\b", "automatically"),
    _rule(r"\b(?:is|are|was|were) away\b", "is unreachable"),
    _rule(
        r"\b(?:Compared|Listed|Shown|Kept|Counted|Left out|Given|Meant|Measured|Stored|Read) "
        r"(?:is|are)\b",
        "subject first",
    ),
    _rule(r"(?:^|[.!?:(\"#]) ?Of (?!course)[a-z]", "subject first"),
    _rule(r'"""See [^"]*"""', "a docstring that is complete"),
    # Synonyms that replaced words above
    _rule(r"\b[Aa]sked\b", "requested, read, queried"),
    _rule(r"\b[Nn]obody\b", "no process, no caller, nothing"),
    _rule(r"\b[Ww]hatever\b", "any, regardless of"),
    _rule(r"\banew\b", "again"),
    # Terms
    # Not Python's own slices, nor the operation of that name.
    _rule(
        r"(?<!\[)\b[Ss]lices?\b(?![()\"]| \|)",
        "interval",
        *("docs/stored-format.md", "docs/glossary.md"),
    ),
    _rule(r"\b[Oo]bserved values?\b", "histogram, its values"),
    _rule(r"\b(?:the|a|this|its|outside) bands?\b", "expected range"),
    _rule(r"\b[Hh]its (?:a|per) (?:second|minute)\b", "requests per second"),
    _rule(r"\b[Ff]ailing share\b|\b[Ss]hare (?:that|which) fails\b", "error rate"),
    _rule(r"\badd(?:s|ed|ing)? up\b|\bputs? together\b", "sum, merge, aggregate"),
    _rule(r"\b(?:[Pp]arcels?|[Ww]ish(?:es)?|[Ee]rrands?|patiently)\b", "batch, node worker"),
    _rule(
        r"(?<!\.)\b[Pp]artitions?\b",
        "shard",
        # The name of a stored field.
        *(
            f"src/redmeter/store/{name}"
            for name in ("config.py", "lua/bind.lua", "lua/receive.lua")
        ),
        "docs/stored-format.md",
        # Names of keys that are secrets, or are not.
        "src/redmeter/analysis/text/secrets.py",
    ),
    _rule(
        r"\b[Mm]asters?\b",
        "primary",
        # Sentinel's own word, in its commands; an option of uWSGI.
        *("src/redmeter/store/servers/sentinel.py", "docs/stored-format.md", "docs/glossary.md"),
        *("docs/integrations/web.md", "src/redmeter/analysis/text/secrets.py"),
    ),
    # Names
    # `found: int = 0` is a field of a result: the number of rows, of which it has a page.
    _rule(rf"^\s*(?:const |let )?(?:{_VARIABLE})(?!: int = 0)(?:: [^=\n]+)? = ", "the noun"),
    _rule(rf"\bfor (?:{_VARIABLE}) in\b|\(const (?:{_VARIABLE}) of\b", "the noun"),
)


def faults(text: str, path: str = "") -> Iterator[tuple[int, str, str]]:
    """Yield the banned words of a text: line number, words, and the better ones."""
    for rule in RULES:
        if path not in rule.but:
            for match in rule.pattern.finditer(text):
                line = text.count("\n", 0, match.start() + 1) + 1
                yield line, " ".join(match[0].split()), rule.better


def counts(root: Path) -> dict[str, int]:
    """Return how many banned words each file has, those with none left out."""
    result = {}
    for path in sorted({path for pattern in TEXTS for path in root.glob(pattern)}):
        name = path.relative_to(root).as_posix()
        if name not in SKIPPED and (count := len(list(_of_file(root, name)))):
            result[name] = count
    return result


def _of_file(root: Path, name: str) -> Iterator[tuple[int, str, str]]:
    return faults((root / name).read_text(encoding="utf-8"), name)


def lowered(allowances: Mapping[str, int], words: Mapping[str, int]) -> dict[str, int]:
    """Return the allowances, lowered to the words that are left.

    A file without an allowance gets one of what the others no longer use: it may be renamed, or a
    part of another one.
    """
    result = {name: min(words.get(name, 0), allowed) for name, allowed in allowances.items()}
    unused = sum(allowances.values()) - sum(result.values())
    for name in sorted(words.keys() - allowances.keys()):
        result[name] = min(words[name], unused)
        unused -= result[name]
    return {name: allowed for name, allowed in result.items() if allowed}


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Check the texts, or lower the allowances; return the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: tools/words.py [--check]\n")
        return 2
    file = root / ALLOWANCES.relative_to(ROOT)
    allowances: dict[str, int] = json.loads(file.read_text(encoding="utf-8"))
    words = counts(root)
    allowed = lowered(allowances, words)
    if not arguments and allowed != allowances:
        file.write_text(json.dumps(allowed, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    exceeded = [name for name, count in words.items() if count > allowed.get(name, 0)]
    for name in exceeded:
        sys.stderr.write(f"{name}: {words[name]} words to avoid, {allowed.get(name, 0)} allowed\n")
        for line, text, better in sorted(_of_file(root, name)):
            sys.stderr.write(f"  {name}:{line}: {text!r}: better: {better}\n")
    if exceeded:
        sys.stderr.write("fix: rewrite as many of these as are over\n")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
