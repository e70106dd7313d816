r"""Patterns of messages: the text that many messages share, with its variable parts replaced.

Problem: "retrying order 17 in 250ms" and "retrying order 18 in 1.5s" are one event, and two lines.
Where a program logs with format strings, the format is the group. Most text arrives without one:
from f-strings, from other languages, from files.

Idea: recognize variable parts by their looks, and replace each with the name of its kind.

    retrying order 17 in 250ms                      retrying order <n> in <duration>
    GET /users/7?page=2 HTTP/1.1 200 51             GET <path> HTTP/<n> <n> <n>
    10.0.0.7 "GET /a HTTP/1.1" 200                  <ip> "GET <path> HTTP/<n>" <n>
    open 'a b.txt' failed: [Errno 2]                open <str> failed: [Errno <n>]
    celery@web-3: 10.0.0.7:6379 is gone             celery@web-<n>: <host> is gone
    2015-05-17 10:05:03,123 up (pid=4711)           <time> up (pid=<n>)
    {"msg": "7 sent", "to": "ada"}                  {"msg": "<n> sent", "to": <str>}
    level=info msg="7 sent" to=ada                  level=info msg="<n> sent" to=<str>

A group is a text made from that message alone. So every process arrives at the same one, in any
order, and groups of many processes merge in Redis by their text.

    <str>       quoted, by ' or " or `          <time>      date, time of day or both, as written by
    <url>       scheme://… as a whole                       ISO 8601, asctime, syslog or HTTP
    <email>     ada@example.org                 <duration>  12ms, 1.5 s, 1h2m, lifetime 00:20
    <path>      /a/b, a/b/c, a/b.py, C:\a       <size>      1.5 MB, 512KiB, 1536 bytes (1.5 KB)
    <uuid>      in any case                     <ip>        without a port; <mac>
    <hex>       0x7f; 7 or more digits; 8 or    <host>      db.example.com, x.ne.jp, localhost:80,
                more with a leading 0 or of                 kafka-0:9092, 10.0.0.7:6379, and any
                letters alone                               address behind host=
    <n>         1, -2.5, 1,234, 1.2.3, 1e-5     <id>        6 or more letters and digits in turn,
                                                            4 hexadecimal digits (7f3a), _A8

A sign behind an underscore belongs to its number: blk_-17 and blk_17 are one group. A number that
ends a word of letters stays (utf8, S3, E101): it is usually a name. So do 4 to 6 hexadecimal digits
in which no letter follows a digit (f731), an IPv6 address without a digit (add::bad may be one),
and dotted names that look like modules, attributes or files (os.path, user.id, a.py).
A list of things of one kind has any length: [1, 2, 3] and [7] are both [<n>]. So is the same thing
written twice: 10.0.0.7 (a.example.com) and 10.0.0.7 () are both <ip>.

Most words of a message have been seen before. So a message is examined word by word, and the result
for each word is cached. Only things that may contain spaces are searched for in the line:
structured.py handles quotes and structured lines, things.py all the rest.

Bound: the first 1,000 characters of the first line are read; a pattern has at most 200; 2,048 words
are remembered. Patterns are stable: the pattern of a pattern is itself, except for some lines that
were read in part and have hundreds of characters without a space where they were cut.

Not done: words that vary. "user ada logged in" and "user bob logged in" are two patterns; a format
avoids that. drain3 finds such words by comparing messages, but its result depends on what each
process saw before, so its groups cannot be merged by their text.

VERSION increases with any change of the result of pattern_of(): counts by patterns of different
versions cannot be compared. Writers publish theirs, and `redmeter doctor` reports differences.
"""

import re
from functools import lru_cache
from typing import Final

from redmeter.analysis.text import json_texts as structured
from redmeter.analysis.text import things
from redmeter.analysis.text.texts import EMPTY
from redmeter.lazy_regex import late

VERSION: Final = 3
#: Characters of a pattern at most, the … included.
PATTERN_LIMIT: Final = structured.PATTERN_LIMIT
#: Characters of a line that are read.
CHARACTERS_READ: Final = 1000
#: How often a pattern that was cut is read again, at most.
_TRIES: Final = 4
#: Words that are remembered; few are longer than 20 characters.
WORDS: Final = 2048

#: What a word must have to hold a thing.
_HINT: Final = late(r"[0-9/@\\]|[a-fA-F]{8}|\w\.[a-z]", re.ASCII)
_is_number: Final = re.compile(r"(?!0[0-9]{7})[0-9]+(?:[.,][0-9]+)?").fullmatch


def pattern_of(text: str) -> str:
    """Return the group that a message without a format belongs to.

    Args:
        text: cleaned, and its secrets masked.

    Returns:
        The first line that is not empty, its variable parts replaced, at most 200 characters;
        "(empty)" where there is none.
    """
    pattern = _once(text)
    if pattern[-1] == "…":
        # The cut may have removed a closing quote or bracket: repeat until the result is stable.
        for _ in range(_TRIES):
            again = _once(pattern)
            if again == pattern:
                break
            pattern = again
    return pattern


def _once(text: str) -> str:
    line = text[: CHARACTERS_READ + 1].lstrip().partition("\n")[0]
    if len(line) > CHARACTERS_READ:
        line = line[:CHARACTERS_READ] + "…"
    if "'" in line or '"' in line or "`" in line:
        line = structured.replace_quoted(line)
    # Most words are only letters, or a number; a word of a to f may be hexadecimal.
    words = [
        word
        if word.isalpha() and word.strip("abcdefABCDEF")
        else "<n>"
        if _is_number(word)
        else _word(word)
        for word in line.split()
    ]
    if "=" in line and structured.is_logfmt(line):
        words = [structured.mask_pair(word) for word in words]
    pattern = " ".join(words)
    pattern = things.replace_spaced(pattern)
    if len(pattern) > PATTERN_LIMIT:
        pattern = structured.cut(pattern)
    return pattern or EMPTY


@lru_cache(WORDS)
def _word(word: str) -> str:
    return things.expression().sub(things.placeholder, word) if _HINT.search(word) else word
