r"""Quotes and structured lines: what of a quoted text belongs to the pattern of a message.

Problem: a quoted text is a value, as a rule, and becomes <str>. But then all requests of an access
log are one group, and all JSON messages of the same shape.

Idea: the text right before and after the quotes decides.

    open 'a b' failed               open <str> failed
    "GET /a?b=c HTTP/1.1" 200       "GET <path> HTTP/<n>" 200       a request keeps its method
    {"user": "ada", "n": 7}         {"user": <str>, "n": 7}         so does an object its keys,
    {"level": "info", "msg": "up"}  {"level": "info", "msg": "up"}  and the text of msg, message,
    level=info msg="up" user=ada    level=info msg="up" user=<str>  event, level and error

Numbers and the like within kept text are replaced later, as everywhere. A key is a quoted name
behind { or , and before a colon; logfmt is a line that begins with key=value and has a text key.

Bound: each quoted text is looked at once, with a few characters around it. A pattern that is too
long begins with its text keys, so a message of many fields is still grouped by its text.

Not done: keys of two words; the text of a key that is nested in an escaped JSON text.
"""

import re
from typing import Final

from redmeter.lazy_regex import late

#: Characters of a pattern at most, the … included.
PATTERN_LIMIT: Final = 200

# Kept quotes must be kept again when the pattern itself is read, or it is not stable.
_QUOTED: Final = late(
    r"""
    ['"`] (?: (?<![\w>\\].) | (?<=(?<![\w>])[bBfFrRuU].) )
    (?: (?<=') [^']*+ ' | (?<=") (?:[^"\\]|\\.)*+ " | (?<=`) [^`]*+ ` ) (?!…)
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPED: Final = late(r"""\\"[^"\\]*+\\"|\\'[^'\\]*+\\'""")
#: A request in quotes begins with one of them, as servers log it.
_METHODS: Final = frozenset(
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"]
)
#: The keys of a structured line whose text is kept; the values of all others are masked.
_TEXT_KEYS: Final = "msg|message|event|level|error"
_is_text_key: Final = late(f"[@$]?(?:{_TEXT_KEYS})", re.IGNORECASE)
_text_key_ends: Final = late(rf"(?<![\w.-])(?:{_TEXT_KEYS})=\Z", re.ASCII | re.IGNORECASE)
_is_key: Final = late(r"[@$]?[A-Za-z_][\w.@$-]{0,39}", re.ASCII)
_LOGFMT: Final = late(
    rf"[A-Za-z_][\w.-]{{0,39}}+=\S (?=.*?(?<![\w.-])(?:{_TEXT_KEYS})=)".replace(" ", ""), re.ASCII
)
_PAIR: Final = late(r"([A-Za-z_][\w.-]{0,39}+)=[^\"'`=]*[^\"'`=<>,;…]([,;]?)", re.ASCII)
_LITERALS: Final = ("=true", "=false", "=null", "=nil", "=None", "=True", "=False")
_TEXT_PAIR: Final = late(
    rf"""
    (?P<quote>["'])[@$]?(?:{_TEXT_KEYS})(?P=quote)[ ]?:[ ]?
    (?: (?P=quote)TEXT(?P=quote) | [^\s,"'`}}]+ )
  | (?<![\w.-])(?:{_TEXT_KEYS})=(?: "TEXT" | [^\s"'`]+ )
    """.replace("TEXT", r"""(?: [^"'`\\] | (?<=\w)' | \\[nrtu/] )*+"""),
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)


def replace_quoted(line: str) -> str:
    """Replace quoted texts, except for requests, keys, and the text of a structured line."""
    parts: list[str] = []
    done = key_end = 0
    for quoted in _QUOTED.finditer(line):
        start, end = quoted.span()
        inner = line[start + 1 : end - 1]
        after = line[end : end + 1]
        if after == " ":
            after = line[end + 1 : end + 2]
        if (after == ":" or after == "…") and _keeps(line, start, inner):
            key_end = end if _is_text_key.fullmatch(inner) else 0
            continue
        if (key_end and line[key_end:start].strip() == ":") or (
            line[start - 1] == "=" and _text_key_ends.search(line[max(0, start - 9) : start])
        ):
            text = line[start] + _ESCAPED.sub("<str>", _QUOTED.sub("<str>", inner)) + line[end - 1]
        else:
            method, _, rest = inner.partition(" ")
            if method in _METHODS and rest:
                text = f"{line[start]}{method} {_request(rest)}{line[end - 1]}"
            else:
                text = "<str>"
        parts += line[done:start], text
        done = end
    parts.append(line[done:])
    return "".join(parts)


def _keeps(line: str, start: int, inner: str) -> bool:
    """Return whether a quoted text before a colon is a key, as in JSON."""
    before = line[max(0, start - 3) : start].rstrip()[-1:]
    return bool(
        _is_text_key.fullmatch(inner) or (before in ("{", ",") and _is_key.fullmatch(inner))
    )


def _request(text: str) -> str:
    """Return what a quoted request has behind its method."""
    path, _, version = text.partition(" ")
    kind = "<url>" if "://" in path or path == "<url>" else "<path>"
    return f"{kind} HTTP/<n>" if version.startswith("HTTP/") else kind


def is_logfmt(line: str) -> bool:
    """Return whether a line is a list of key=value pairs with a message among them."""
    return _LOGFMT.match(line) is not None


def mask_pair(word: str) -> str:
    """Mask the value of a word `key=value`, but for that of a text key."""
    pair = _PAIR.fullmatch(word)
    if pair is None or _is_text_key.fullmatch(pair[1]) or word.rstrip(",;").endswith(_LITERALS):
        return word
    return f"{pair[1]}=<str>{pair[2]}"


def cut(pattern: str) -> str:
    """Truncate a pattern; a structured line keeps its most informative values."""
    pairs = list(_TEXT_PAIR.finditer(pattern))
    if _LOGFMT.match(pattern):
        texts = [pair[0] for pair in pairs if pair["quote"] is None]
        shorter = " ".join(texts)
    else:
        texts = [pair[0] for pair in pairs if pair["quote"] is not None]
        shorter = f"{{{', '.join(texts)}, …"
    if texts and pairs[-1].end() >= PATTERN_LIMIT:
        pattern = shorter
    return pattern if len(pattern) <= PATTERN_LIMIT else pattern[: PATTERN_LIMIT - 1] + "…"
