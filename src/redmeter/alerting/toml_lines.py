"""The lines of a TOML text: of each key, table and element, which tomllib does not keep.

    [[alert]]                            ("alert", 0) -> 1
    name = "a"                           ("alert", 0, "name") -> 2
    windows = [{long = "1h",
                short = "5m"}]           ("alert", 0, "windows", 0, "short") -> 4

A scanner of texts that tomllib has accepted: it skips values without reading them, and checks
nothing. Source: the grammar of TOML 1.0. Pure: no I/O.
"""

import re
import tomllib
from collections.abc import Iterator

#: The keys and indexes that lead to a value.
TomlPath = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*([A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*')[ \t]*(\.?)""")
#: Strings, the long ones first: one that ends with three quotes may have two more before these.
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r"""|"(?:\\.|[^"\\])*"|'[^']*'""",
    re.DOTALL,
)
#: Numbers, booleans, and times, which may have a space before the time of day.
_WORD = re.compile(r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2} (?=[0-9]))?[^ \t\r\n#,\]}]+")


def toml_lines(text: str) -> dict[TomlPath, int]:
    """Return the line of each key, table and element of an array; lines count from 1.

    Args:
        text: valid TOML.
    """
    scanner = _Scanner(text)
    scanner.scan_document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines: dict[TomlPath, int] = {}
        self._text = text
        self._at = 0
        #: Up to where lines are counted.
        self._counted, self._line = 0, 1
        #: Array of tables -> the number of its tables so far.
        self._sizes: dict[TomlPath, int] = {}

    def scan_document(self) -> None:
        table: TomlPath = ()
        while self._skip_space():
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._assignment(table)

    def _header(self) -> TomlPath:
        many = self._text.startswith("[[", self._at)
        self._at += 1 + many
        path: TomlPath = ()
        for key in self._keys():
            if path in self._sizes:
                path += (self._sizes[path] - 1,)
            path += (key,)
            self._note(path)
        self._at += 1 + many
        if many:
            number = self._sizes.get(path, 0)
            self._sizes[path] = number + 1
            path += (number,)
            self._note(path)
        return path

    def _assignment(self, table: TomlPath) -> None:
        path = table
        for key in self._keys():
            path += (key,)
            self._note(path)
        self._at += 1  # the =
        self._value(path)

    def _keys(self) -> Iterator[str]:
        """Yield the parts of a dotted key, with the position after each."""
        dot = "."
        while dot:
            match = _KEY.match(self._text, self._at)
            assert match is not None, "valid TOML"
            self._at = match.end()
            key, dot = match.groups()
            yield str(tomllib.loads(f"key = {key}")["key"]) if key[0] in "\"'" else key

    def _value(self, path: TomlPath) -> None:
        self._skip_space()
        first = self._text[self._at]
        if first in "[{":
            self._at += 1
            number = 0
            while self._skip_space() and self._text[self._at] not in "]}":
                if first == "{":
                    self._assignment(path)
                else:
                    self._note((*path, number))
                    self._value((*path, number))
                    number += 1
                if self._skip_space() and self._text[self._at] == ",":
                    self._at += 1
            self._at += 1
            return
        match = (_STRING if first in "\"'" else _WORD).match(self._text, self._at)
        assert match is not None, "valid TOML"
        self._at = match.end()

    def _skip_space(self) -> bool:
        """Go to the next character that is not space or comment; return whether there is one."""
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return self._at < len(self._text)

    def _note(self, path: TomlPath) -> None:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        self.lines.setdefault(path, self._line)
