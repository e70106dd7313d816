"""The public API as a list of lines, held against a recorded one.

    python tools/api.py            prints the lines that differ from the recorded ones
    python tools/api.py --record   records them; `make release` does this

A difference is allowed once the section "Unreleased" of the changelog names it: the last word of a
line's name, such as `top`, `--last`, `precision`. Names that change or disappear have to be under
"Changed" or "Removed". tests/golden/test_public_names.py runs this.
"""
# ruff: noqa: INP001, T201

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redmeter import names
from redmeter.integrations import process

ROOT = Path(__file__).parents[1]
RECORDED = "tests/golden/public/names.txt"
#: Sections of the changelog that may name what programs of users relied on.
BREAKING = ("Changed", "Removed")
_HEADING = re.compile(r"^(#{2,4}) (.+)$")
_ROW = re.compile(r"^\| (`[^|]+?) \| (.*) \|$")
_CODE = re.compile(r"`([^`]+)`")


def lines(root: Path = ROOT) -> list[str]:
    """Return the public API: `kind name: text`, sorted.

    Generated pages are the source, as a test compares those with the code.
    """
    found = [
        *_python(_read(root / "docs/reference/python-api.md")),
        *_commands(_read(root / "docs/reference/commands.md")),
        *_settings(_read(root / "docs/reference/settings.md")),
        *_http(json.loads(_read(root / "src/redmeter/dashboard/openapi.json"))),
        *_printed(_read(root / "tests/golden/public/command.txt")),
        *_metrics(),
    ]
    complete = {line.partition(": ")[0] for line in found if ": " in line}
    return sorted(set(found) - complete)


def _python(page: str) -> Iterator[str]:
    """Yield classes and functions with their signatures, fields with their types."""
    owner = name = ""
    blocks = page.splitlines()
    for at, line in enumerate(blocks):
        if heading := _HEADING.match(line):
            level, title = len(heading[1]), heading[2]
            if level == 2:
                owner = title if title == "Meter" else ""
            elif level == 3 and owner != "Meter":
                owner = title
            name = f"{owner}.{title}" if level == 4 and owner else title
            if level > 2 and " " not in title:
                yield f"python {name}"
        elif line == "```py" and blocks[at - 2] and _HEADING.match(blocks[at - 2]):
            end = blocks.index("```", at)
            signature = " ".join(part.strip() for part in blocks[at + 1 : end])
            yield f"python {name}: {signature.replace('( ', '(').replace(', )', ')')}"
        elif row := _ROW.match(line):
            field, kind = _CODE.findall(row[1])[0], row[2].partition(" |")[0]
            yield f"python {name}.{field}: {kind}"


def _commands(page: str) -> Iterator[str]:
    command = ""
    for line in page.splitlines():
        if line.startswith("## "):
            command = line[3:]
        elif (row := _ROW.match(line)) and command.startswith("redmeter "):
            for option in _CODE.findall(row[1]):
                yield f"command {command} {option}: {row[2].partition(' |')[0]}".rstrip(": ")


def _settings(page: str) -> Iterator[str]:
    for line in page.splitlines():
        if row := _ROW.match(line):
            variable, default, unit, *_ = row[2].split(" | ")
            yield f"setting {_CODE.findall(row[1])[0]}: {variable} {default} {unit}".rstrip()


def _http(document: dict[str, Any]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            yield f"http {method.upper()} {path}"
            for one in call.get("parameters", ()):
                needed = ", required" if one.get("required") else ""
                yield f"http {method.upper()} {path}?{one['name']}: {_type(one['schema'])}{needed}"
    for name, schema in document["components"]["schemas"].items():
        for field, kind in schema.get("properties", {}).items():
            needed = "" if field in schema.get("required", ()) else ", optional"
            yield f"json {name}.{field}: {_type(kind)}{needed}"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    parts = schema.get("anyOf") or schema.get("oneOf")
    if parts:
        return " | ".join(_type(part) for part in parts)
    if "items" in schema:
        return f"{schema['type']} of {_type(schema['items'])}"
    return str(schema.get("type", "any"))


def _printed(golden: str) -> Iterator[str]:
    """Yield the fields on top of the JSON that commands print."""
    command = ""
    for line in golden.splitlines():
        if line.startswith("$ redmeter "):
            command = line.split()[2]
        elif field := re.match(r' "(\w+)":', line):
            yield f"json redmeter {command} --json {field[1]}"


def _metrics() -> Iterator[str]:
    own = [vars(module) for module in (names, process)]
    texts = [text for each in own for key, text in each.items() if key.isupper()]
    for text in texts:
        if isinstance(text, str) and re.fullmatch(r"[a-z]+(_[a-z]+)*", text):
            yield f"metric {text}"


# ---------------------------------------------------------------- differences


def undeclared(recorded: list[str], current: list[str], unreleased: str) -> list[str]:
    """Return the differences that the changelog does not name: `+ line` or `- line`.

    Args:
        recorded: the lines of the last release.
        current: those of now.
        unreleased: the section of the changelog, with its headings "### Added" and so on.
    """
    gone, new = set(recorded) - set(current), set(current) - set(recorded)
    parts = re.split(r"^### (\w+)$", unreleased, flags=re.MULTILINE)
    sections = dict[str, str]()
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        sections[title] = sections.get(title, "") + body
    breaking = "".join(sections.get(title, "") for title in BREAKING)
    before = {_name(line) for line in recorded}
    return [
        *(f"- {line}" for line in sorted(gone) if not _named(line, breaking)),
        *(
            f"+ {line}"
            for line in sorted(new)
            if not _named(line, breaking if _name(line) in before else unreleased)
        ),
    ]


def _name(line: str) -> str:
    return line.partition(": ")[0]


def _named(line: str, text: str) -> bool:
    word = re.split(r"[ .?]", _name(line))[-1]
    return bool(re.search(rf"(?<![\w-]){re.escape(word)}(?!\w)", text))


def unreleased_section(changelog: str) -> str:
    """Return the entries that are not released."""
    return changelog.partition("\n## Unreleased\n")[2].partition("\n## ")[0]


def main(arguments: list[str]) -> int:
    """Compare or record; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--record", action="store_true")
    current, file = lines(), ROOT / RECORDED
    if parser.parse_args(arguments).record:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(current) + "\n", encoding="utf-8")
        return 0
    unreleased = unreleased_section(_read(ROOT / "CHANGELOG.md"))
    found = undeclared(_read(file).splitlines(), current, unreleased)
    print("\n".join(found))
    return 1 if found else 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
