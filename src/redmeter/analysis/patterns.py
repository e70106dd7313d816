r"""Patterns of messages: the text that many messages share, with what differs taken out.

Problem: "retrying order 17 in 250ms" and "retrying order 18 in 1.5s" are one thing that happens
often, and two lines. Where a program logs by format strings, the format is the group. Most text
comes without one: from f-strings, from other languages, from files.

Idea: what differs is known by its looks, and replaced by the name of its kind.

    retrying order 17 in 250ms                      retrying order <n> in <duration>
    GET /users/7?page=2 HTTP/1.1 200 51             GET <path> HTTP/<n> <n> <n>
    open 'a b.txt' failed: [Errno 2]                open <str> failed: [Errno <n>]
    celery@web-3: 10.0.0.7:6379 is gone             celery@web-<n>: <ip> is gone
    2015-05-17 10:05:03,123 up (pid=4711)           <time> up (pid=<n>)

A group is a text, made from the message alone. So every process finds the same one, whatever it
saw before and in whichever order, and groups of many processes add up in Redis by their text.

    <str>       quoted, by ' or " or `          <time>      date, time of day, or both
    <url>       scheme://… as a whole           <duration>  12ms, 1.5 s, 1h2m
    <email>     ada@example.org                 <size>      1.5 MB, 512KiB
    <path>      /a/b, a/b/c, a/b.py, C:\a       <ip>        with its port; <mac>
    <uuid>      in any case                     <n>         1, -2.5, 1,234, 1.2.3, 1e-5
    <hex>       0x7f, or 7 and more digits      <id>        letters and digits in turn, 6 and more,
                                                            or 4 hexadecimal digits: 7f3a

A number that ends a word of letters stays (utf8, S3, E101): it is a name more often than a count.
So do 4 to 6 hexadecimal digits in which no letter comes behind a digit (f731).
So does an IPv6 address without a digit: add::bad may be one.
A list of things of one kind is as long as it likes: [1, 2, 3] and [7] are [<n>].

A message is made of words, and most of them have been seen before: so it is words that are looked
at, and what each became is remembered. Only what may hold spaces is looked for in the line.

Bound: 1,000 characters of the first line are looked at; a pattern has at most 200; 2,048 words
are remembered. Patterns are stable: the pattern of a pattern is itself, but for some lines of which
only the beginning was looked at, where its end falls into hundreds of characters without a space.

Not done: words that differ. "user ada logged in" and "user bob logged in" are two patterns; who
wants one gives a format. drain3 finds such words by comparing messages, but what it finds depends
on what each process saw before, so its groups cannot be merged by their text. On the messages of
benchmarks/patterns.py it was less right; its last release is of 2022.

VERSION goes up with any change of what pattern_of() returns: patterns of different versions do
not add up. Writers tell theirs with their reports, and `redmeter doctor` where they differ.
"""

import re
from functools import cache, lru_cache
from typing import Final

from redmeter.analysis.texts import EMPTY
from redmeter.expressions import late

VERSION: Final = 2
#: Characters of a pattern at most, the … included.
PATTERN_LIMIT: Final = 200
#: Characters of a line that are looked at.
LINE_LIMIT: Final = 1000
#: Words that are remembered; few are longer than 20 characters.
WORDS: Final = 2048

# Three rules keep patterns stable. A thing begins where no word and no placeholder ends, and
# ends where none begins, so a placeholder beside it is as good as what it stands for. Nothing
# ends just before …, or cutting a pattern could make a thing out of what was none. And a word
# without a digit that is none of these stays one when its end is cut.
_QUOTED: Final = late(
    r"""
    ['"`] (?: (?<![\w>\\].) | (?<=(?<![\w>])[bBfFrRuU].) )
    (?: (?<=') [^']*+ ' | (?<=") (?:[^"\\]|\\.)*+ " | (?<=`) [^`]*+ ` )
    """,
    re.VERBOSE | re.ASCII,
)
_THING: Final = r"""
    (?P<url>
      (?<![\w>]) [A-Za-z][A-Za-z0-9+.-]{1,20}+ :// [^"'`<>…]*[^"'`<>….,:;)\]}!?] (?!…)
  ) | (?P<email>
      (?<![\w>.+-]) [\w.+-]{1,64}+ @ [A-Za-z0-9-]++ (?:\.[A-Za-z0-9-]++)++ (?!\.?[\w<…])
  ) | (?P<uuid>
      (?<![\w>]) [0-9A-Fa-f]{8} (?:-[0-9A-Fa-f]{4}){3} -[0-9A-Fa-f]{12} (?![\w<…])
  ) | (?P<time>
      (?<![\w>]) (?: \d{4}-\d\d-\d\d | \d{4}/\d\d/\d\d | \d\d?/[A-Z][a-z]{2}/\d{4} )
      (?: [T:] \d\d:\d\d (?: :\d\d (?:[.,]\d+)? )? (?: Z | [+-]\d\d:?\d\d )? )? (?![\w<…])
    | (?<![\w>]) \d\d?:\d\d:\d\d (?:[.,]\d+)? (?![\w<…:])
  ) | (?P<path>
      (?<![\w>./~-]) (?: ~?/ | \.{1,2}/ | [A-Za-z]:[\\/] ) [\w.%@+*{?&=~/-]
      (?: [^"'`<>…]* (?: [^"'`<>….,:;)\]}!?] | \([\w.%-]*\) ) )? (?![\w<…])
    | \A / \Z
    | (?<![\w>./~-]) [\w.-]++ (?: (?:/[\w.%@+-]++){2,} | /[\w-]++(?:\.[\w-]++)*\.[A-Za-z]{1,5} )
      (?![\w<…/])
  ) | (?P<mac>
      (?<![\w>:-]) [0-9A-Fa-f]{2} (?:[:-][0-9A-Fa-f]{2}){5} (?![\w<…:-])
  ) | (?P<ip>
      (?<![\w>.]) \d{1,3}(?:\.\d{1,3}){3} (?: :\d{1,5} | /\d\d? )? (?![\w<…]|\.\d)
    | \[ [0-9A-Fa-f]{0,4} : [0-9A-Fa-f]{0,4} : [0-9A-Fa-f:.]* (?:%\w+)? \]
      (?: :\d{1,5} )? (?![\w<…])
    | (?<![\w>:]) (?=[A-Fa-f:]*+\d) (?: [0-9A-Fa-f]{1,4} (?: :[0-9A-Fa-f]{1,4} ){0,6} )? ::
      (?: [0-9A-Fa-f]{1,4} (?: :[0-9A-Fa-f]{1,4} ){0,6} (?:\.\d{1,3}){0,3} )? (?:%\w+)?
      (?: (?<=\w) | (?<=\w::) ) (?![\w<…:])
    | (?<![\w>:]) [0-9A-Fa-f]{1,4} (?: :[0-9A-Fa-f]{1,4} ){7} (?![\w<…:])
  ) | (?P<hex>
      (?<![\w>]) 0[xX][0-9A-Fa-f]++ (?![\w<…])
    | (?<![\w>]) (?=[a-fA-F]*+\d) (?=\d*+[a-fA-F]) [0-9A-Fa-f]{7,}+ (?![\w<…])
  ) | (?P<duration>
      (?<![\w>]) (?: \d++ (?:\.\d++)? (?:e[+-]?\d++)? (?:ns|[uµμ]s|ms|s|sec|min|m|h|d) )+ (?![\w<…])
  ) | (?P<size>
      (?<![\w>]) \d++(?:\.\d++)? (?: [kKMGT]i?B | B | bytes? ) (?:/s)? (?![\w<…])
  ) | (?P<id>
      (?<![\w>]) (?= [A-Za-z]*+\d++[A-Za-z]++\d ) [0-9A-Za-z]{6,}+ (?![\w<…])
    | (?<![\w>]) (?= [A-Za-z_-]*+\d++[A-Za-z_-]++\d ) [\w-]{20,}+ (?![\w<…])
    | (?<![\w>]) (?! \d++ [eE] \d++ (?!\w) ) (?= [a-fA-F]*+\d++[a-fA-F] )
      (?: [0-9a-f]{4,6}+ | [0-9A-F]{4,6}+ ) (?![\w<…])
  ) | (?P<n>
      (?: (?<![\w>)\]}]) [+-] )? (?<![0-9A-Za-z]) \d++ (?: [.,]\d++ )*+ (?: [eE][+-]?\d++ )?
      (?![.,]?…|\d)
    | (?<![\w>]) v \d++ (?: \.\d++ )++ (?![.,]?…)
  )
"""
#: What a word must have to hold a thing.
_HINT: Final = late(r"[0-9/@\\]")
_SPACED: Final = late(
    r"""
    <(?: (?P<duration> n>[ ](?:ns|[uµμ]s|ms|s|sec|min|h) (?![\w<…]) )
       | (?P<size> n>[ ](?:[kKMGT]i?B|B|bytes?)(?:/s)? (?![\w<…]) )
       | (?P<time> (?: (?: time | n>[ ][JFMASOND][a-z]{2}[ ]<n ) >[ ]< )++ time> )
    )
    """,
    re.VERBOSE | re.ASCII,
)
_is_number: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)?").fullmatch
_LIST: Final = late(r"(<[a-z]+>)(?:, ?\1)+")


def pattern_of(text: str) -> str:
    """Return the group that a message without a format belongs to.

    Args:
        text: cleaned, and its secrets masked.

    Returns:
        Its first line that is not empty, with what differs replaced, at most 200 characters.
        "(empty)" where there is none.
    """
    line = text[: LINE_LIMIT + 1].lstrip().partition("\n")[0]
    if len(line) > LINE_LIMIT:
        line = line[:LINE_LIMIT] + "…"
    if "'" in line or '"' in line or "`" in line:
        line = _QUOTED.sub("<str>", line)
    # Words of letters and numbers are most of all words, and told at a glance.
    words = [
        word if word.isalpha() else "<n>" if _is_number(word) else _word(word)
        for word in line.split()
    ]
    pattern = " ".join(words)
    if "<n> " in pattern or "<time> " in pattern:
        pattern = _SPACED.sub(_placeholder, pattern)
    if ">," in pattern:
        pattern = _LIST.sub(r"\1", pattern)
    if len(pattern) > PATTERN_LIMIT:
        pattern = pattern[: PATTERN_LIMIT - 1] + "…"
    return pattern or EMPTY


@lru_cache(WORDS)
def _word(word: str) -> str:
    return _thing().sub(_placeholder, word) if _HINT.search(word) else word


@cache  # by the first word that needs it, or it would be a good part of an import
def _thing() -> re.Pattern[str]:
    return re.compile(_THING, re.VERBOSE | re.ASCII)


def _placeholder(match: re.Match[str]) -> str:
    return f"<{match.lastgroup}>"
