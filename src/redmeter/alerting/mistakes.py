"""Mistakes in a file of alerts, each with its place. Pure: no I/O."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import TypeVar

from redmeter.alerting.toml_lines import TomlPath
from redmeter.errors import InvalidSetting, shown

T = TypeVar("T")

#: Most mistakes of a file, and names of a list, that a message contains.
_MOST, _LISTED = 100, 20

#: Longest text for which the word that it resembles is looked for.
_COMPARED = 40

_BARE = re.compile("[A-Za-z0-9_-]{1,100}")
#: What a value is called that a message does not contain: it may hold a secret, such as a URL.
_NOUNS = ((dict, "a table"), (list, "a list"), (str, "text"), ((date, time), "a time"))


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in a file of alerts."""

    #: The file's name; "" if it has none.
    file: str
    #: The line of the key, or of the table that lacks it.
    line: int | None
    #: The table, such as `alert "checkout-errors"`; "" at the top of the file.
    where: str
    #: The key, such as `above` or `windows.long`; "" if the mistake is not about one.
    key: str
    #: The mistake and its correction.
    reason: str

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line else ""
        place = f"{self.file or 'the file of alerts'}{line}"
        return ": ".join(filter(None, (place, self.where, self.key, self.reason)))


class InvalidRules(InvalidSetting):
    """The file of alerts cannot be used; the message has a line for each mistake.

    Attributes:
        mistakes: all of them, in the order of the file.
    """

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(file or "the file of alerts", "cannot be used")
        more = [f"… ({len(mistakes) - _MOST:,} more)"] if len(mistakes) > _MOST else []
        self.args = ("\n".join([*map(str, mistakes[:_MOST]), *more]),)


class FilePlace:
    """A place in a file, where a reader notes mistakes.

    Args:
        file: the file's name.
        lines: path -> its line.
        mistakes: where they are noted.
        path: the keys that lead to it.
        where: the table, for messages.
        table: the length of the table's path.
    """

    def __init__(
        self,
        file: str,
        lines: Mapping[TomlPath, int],
        mistakes: list[Mistake],
        path: TomlPath = (),
        where: str = "",
        table: int = 0,
    ) -> None:
        self._file, self._lines, self._mistakes = file, lines, mistakes
        self._path, self._where, self._table = path, where, table

    def at(self, *keys: str | int) -> "FilePlace":
        """Return the place of a key in this table or list."""
        return self._made((*self._path, *keys), self._where, self._table)

    def named(self, where: str) -> "FilePlace":
        """Return this place as a table with a name."""
        return self._made(self._path, where, len(self._path))

    def _made(self, path: TomlPath, where: str, table: int) -> "FilePlace":
        return FilePlace(self._file, self._lines, self._mistakes, path, where, table)

    def nearest(self, given: object, known: Collection[str]) -> str | None:
        """Return the word that a text resembles; None if it resembles none."""
        # Messages have so many mistakes at most, so a file of a million takes no longer.
        if not isinstance(given, str) or len(given) > _COMPARED or len(self._mistakes) >= _MOST:
            return None
        text = given.strip().casefold()
        begun = (word for word in known if len(word) > 2 and text.startswith(word))  # saturday
        return next(iter(difflib.get_close_matches(text, known, 1)), next(begun, None))

    def unknown(self, reason: str, given: object, known: Collection[str]) -> T | None:
        """Note a mistake with the word that the text resembles, and return None."""
        near = self.nearest(given, known)
        return self.wrong(f'{reason}; did you mean "{near}"?' if near else reason)

    def wrong(self, reason: str) -> T | None:
        """Note a mistake, and return None, in place of the value that cannot be read."""
        path = self._path
        keys = [shown_key(each) for each in path[self._table :] if isinstance(each, str)]
        while path and path not in self._lines:
            path = path[:-1]
        line = self._lines.get(path)
        mistake = Mistake(self._file, line, self._where, ".".join(keys), printable(reason))
        self._mistakes.append(mistake)
        return None


def printable(text: str) -> str:
    """Return a text on one line, with escape sequences for characters that are not printable."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def names_text(names: Iterable[str]) -> str:
    """Return names for a message: some of them if there are many."""
    keys = [*map(shown_key, names)]
    more = f" … ({len(keys) - _LISTED:,} more)" if len(keys) > _LISTED else ""
    return f"{', '.join(keys[:_LISTED])}{more}" or "none"


def shown_key(key: str) -> str:
    """Return a key of a file for a message: quoted unless it needs no quotes in TOML."""
    return key if _BARE.fullmatch(key) else shown(key, 40)


def noun_of(given: object) -> str:
    """Return what a value of a file is, without the value: "a table", "text", "a number"."""
    return next((noun for kind, noun in _NOUNS if isinstance(given, kind)), shown(given, _COMPARED))


def shown_value(given: object) -> str:
    """Return a value of a file for a message, as in TOML; of tables and lists only that."""
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, date | time):
        return given.isoformat()
    return noun_of(given) if isinstance(given, dict | list) else shown(given, _COMPARED)
