r"""Route templates: converts ResolverMatch.route to a readable form.

    users/<int:pk>/                             /users/{pk}/
    ^articles/(?P<year>[0-9]{4})/$              /articles/{year}/
    api/^v1/(?P<id>[^/.]+)(?:\.(?P<f>\w+))?/?$  /api/v1/{id}.{f}/
    ^a/(\d+)/\w+$                               /a/{0}/{1}

A route is the concatenated patterns of all include()s, of path() and re_path(). Without any
character that is special in regular expressions, it is read in the syntax of path().

Not done: an unnamed choice, `(?:a|b)`, and anything repeated become a numbered placeholder.
"""

import re

_PARAMETER = re.compile(r"<(?:[^>:]+:)?([^>]+)>")
_REGEX = re.compile(r"[\^$\\(\[]")
_NAMED = re.compile(r"\(\?P<(\w+)>")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9,]*\})[?+]?")
_MANY = ("*", "+", "{")


def readable_route(route: str) -> str:
    """Return a route with its parameters in braces, and a slash in front.

    Args:
        route: ResolverMatch.route.
    """
    if _REGEX.search(route):
        route = _Reader(route).read()
    text = _PARAMETER.sub(r"{\1}", route)
    return text if text.startswith("/") else f"/{text}"


class _Reader:
    """Reads a regular expression once, from left to right.

    Args:
        text: the expression.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._unnamed = 0

    def read(self) -> str:
        """Return the template of the rest, up to the end or the bracket that closes this group."""
        made: list[str] = []
        while self._at < len(self._text) and self._text[self._at] != ")":
            piece = self._piece()
            quantifier = _QUANTIFIER.match(self._text, self._at)
            if quantifier:
                self._at = quantifier.end()
                if piece == "." and quantifier[0][0] in _MANY:
                    piece = self._placeholder()
            made.append(piece)
        self._at += 1
        return "".join(made)

    def _piece(self) -> str:
        """Return the template of the next character, class or group."""
        text, at = self._text, self._at
        letter = text[at]
        if letter == "(":
            return self._group()
        if letter == "[":
            end = text.find("]", at + 2)
            self._at = len(text) if end < 0 else end + 1
            return self._placeholder()
        if letter == "\\":
            escaped = text[at + 1 : at + 2]
            self._at += 2
            if escaped in "dDwWsS":
                return self._placeholder() if escaped else ""
            return "" if escaped in "AZzbB" else escaped
        self._at += 1
        return "" if letter in "^$" else letter

    def _group(self) -> str:
        text, at = self._text, self._at
        named = _NAMED.match(text, at)
        if named:
            self._skip()
            return f"{{{named[1]}}}"
        if text.startswith("(?:", at):
            self._at = at + 3
            if "|" not in text[at : self._end(at)]:
                return self.read()
            self._at = at
        if text.startswith(("(?=", "(?!", "(?<", "(?#"), at):
            self._skip()
            return ""
        self._skip()
        return self._placeholder()

    def _placeholder(self) -> str:
        self._unnamed += 1
        return f"{{{self._unnamed - 1}}}"

    def _skip(self) -> None:
        self._at = self._end(self._at)

    def _end(self, at: int) -> int:
        """Return the position after the group that begins at `at`."""
        depth, text = 0, self._text
        while at < len(text):
            if text[at] == "\\":
                at += 1
            elif text[at] == "[":
                end = text.find("]", at + 2)
                at = len(text) if end < 0 else end
            elif text[at] == "(":
                depth += 1
            elif text[at] == ")":
                depth -= 1
                if not depth:
                    return at + 1
            at += 1
        return len(text)
