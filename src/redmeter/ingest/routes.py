r"""Routes: the paths that strangers ask for, folded into a bounded number of label values.

Problem: /users/1, /users/2, … are one route of the application but a million series; the client
chooses the path, so it may hold control characters, secrets or nonsense; and it ends
up as a label value, in keys, in terminals and in browsers.

Idea: replace what differs from request to request by the name of its kind.

    /users/4711/orders/9          /users/{id}/orders/{id}
    /blog/2015/05/17/tea          /blog/{date}/tea
    /static/app.3f2a9c1b7d.js     /static/app.{hex}.js
    /u/ada@example.org            /u/{token}
    /a b, /a%20b                  /a%20b
    /images/2009/banner.png       /images/{id}/banner.png

The rest is brought into one spelling, so that folding twice is folding once: percent-escapes of
readable characters are undone, in every script; all others stay escaped. Characters that cannot
be seen (controls, bidi overrides, bytes that are no UTF-8) become U+FFFD. Braces become %7B and
%7D, except around exactly the five words that fold() itself writes: a request for the very path
/users/{id} is counted there. Parameters after ; go, they hold session ids. Runs of slashes become
one, because nearly all servers serve //a as /a; a slash at the end stays, because many serve /a/
and /a differently.

Bound: a folded route is at most 120 bytes of UTF-8, cut with … at the end. fold() looks at 4,096
characters. Routes answers (other) from its limit on; its cache holds at most 4,096 paths of at
most 512 characters.

Not done: an id is known by its looks alone. A short random word (/r/x7Kq) stays as it is, and so
does a title (/posts/how-to-make-tea); the limit of Routes is what holds then. A year alone
is an {id}, for so is /users/2009.

Source: RFC 3986, sections 2 and 3.3; Unicode TR36, section 3 (invisible characters).
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

#: Bytes of UTF-8 that a folded route takes at most, the … included.
ROUTE_BYTES: Final = 120
#: Characters of a path that are looked at.
PATH_LIMIT: Final = 4096

INVALID: Final = "(invalid)"
OTHER_ROUTE: Final = "(other)"

_PLACEHOLDER = re.compile(r"(\{(?:id|uuid|hex|date|token)\})")

# The replaced parts, by the name of their kind. The first alternative keeps parts unchanged:
# percent-escapes and placeholders. Nothing matches just before …, or cutting a route could make
# an id of other text.
_VARIABLE = re.compile(
    r"""
    (?P<keep>  %[0-9A-F]{2} | \{[a-z]+\} )
  | (?P<uuid>  (?<![0-9A-Za-z]) [0-9A-Fa-f]{8} (?:-[0-9A-Fa-f]{4}){3} -[0-9A-Fa-f]{12}
               (?![0-9A-Za-z…]) )
  | (?P<date>  (?<![0-9A-Za-z]) (?:19|20)\d\d - [01]\d - [0-3]\d (?![0-9A-Za-z…])      # 2015-05-17
             | (?<=/) (?:19|20)\d\d                                                    # 2015/05/17
               / (?:0?[1-9]|1[0-2]|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)
               (?: / (?:0?[1-9]|[12]\d|3[01]) )? (?=/|\Z) )
  | (?P<id>    (?<=/) [+-]?\d+ (?= / | \Z | \.[A-Za-z] ) )                         # 12, 12.html
  | (?P<hex>   (?<![0-9A-Za-z]) (?=[A-Fa-f]*\d) (?=\d*[A-Fa-f])
               [0-9A-Fa-f]{8,} (?![0-9A-Za-z…]) )
  | (?P<token> (?<=/) [^/@…]+ @ [^/@…]+ \. [A-Za-z]{2,} (?=/|\Z)                       # an email
             | (?<![0-9A-Za-z]) (?=[A-Za-z]*\d+[A-Za-z])
               [0-9A-Za-z]{16,} (?![0-9A-Za-z…]) [\w-]*+ (?!…) )
    """,
    re.VERBOSE | re.ASCII,
)

_LONG_WORD = re.compile(r"(?<![\w%-])[\w-]{20,}+(?!…)", re.ASCII)
_CHANGE = re.compile(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)", re.ASCII)


def fold(path: str) -> str:
    """Return the route that a path belongs to.

    Args:
        path: of a request, without its query string (if there is one it is dropped).

    Returns:
        A label value: visible characters only, at most 120 bytes of UTF-8. Folding it again
        changes nothing. (invalid) if it is not a path; * stays.
    """
    if not path.startswith("/"):
        return path if path == "*" else INVALID
    if len(path) > PATH_LIMIT:
        path = path[:PATH_LIMIT] + "…"
    path = path.partition("?")[0].partition("#")[0]
    segments = [_spell(segment.partition(";")[0]) for segment in path.split("/")]
    plain = re.sub("/{2,}", "/", "/".join(segments))
    folded = _VARIABLE.sub(
        lambda match: match[0] if match.lastgroup == "keep" else f"{{{match.lastgroup}}}", plain
    )
    return _cut(_LONG_WORD.sub(_token_or_title, folded))


def _spell(segment: str) -> str:
    """Return the one spelling of a segment: readable, and escaped where it must be."""
    parts = _PLACEHOLDER.split(segment)
    parts[::2] = [
        part and _escape(_visible(unquote(part, errors="replace"))) for part in parts[::2]
    ]
    return "".join(parts)


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    text = "".join(char if char.isprintable() else "\ufffd" for char in text)
    return unicodedata.normalize("NFC", text)


def _escape(text: str) -> str:
    return re.sub(r'[ "#%/;?\\{}]', lambda match: f"%{ord(match[0]):02X}", text)


def _token_or_title(match: re.Match[str]) -> str:
    """Return {token} for a random word with - and _, whose letters and digits alternate."""
    word = match[0]
    return "{token}" if len(_CHANGE.findall(word)) * 8 >= len(word) else word


def _cut(route: str) -> str:
    data = route.encode()
    if len(data) <= ROUTE_BYTES:
        return route
    kept = data[: ROUTE_BYTES - len("…".encode())].decode(errors="ignore")
    return re.sub(r"(?:%[0-9A-F]?|\{[a-z]*)\Z", "", kept) + "…"


class Routes:
    """Folds paths, and stops telling routes apart when there are too many.

    The routes seen first keep their names, so a flood of invented paths cannot push them out.

    Args:
        limit: number of distinct routes; 0 makes everything (other).
        known: earlier routes, which all keep their names.

    Attributes:
        overflowed: how many hits went to (other).
    """

    def __init__(self, limit: int = 500, known: Iterable[str] = ()) -> None:
        if limit < 0:
            raise ValueError(f"limit is {limit}: the number of routes is 0 or more")
        self._limit = limit
        self._known = set(known) if limit else set()
        self._cache: dict[str, str] = {}
        self.overflowed = 0

    def route(self, path: str) -> str:
        """Return the route of a path, or (other) once `limit` other routes have been seen.

        Args:
            path: of a request, without its query string.
        """
        route = self._cache.get(path)
        if route is None:
            route = self._learn(path)
        if route is OTHER_ROUTE:
            self.overflowed += 1
        return route

    def _learn(self, path: str) -> str:
        route = fold(path)
        if route not in self._known:
            if len(self._known) < self._limit:
                self._known.add(route)
            else:
                route = OTHER_ROUTE
        if len(path) <= 512:
            if len(self._cache) >= 4096:
                self._cache.clear()
            self._cache[path] = route
        return route
