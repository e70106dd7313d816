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

A word of ten or more letters and digits that changes between upper case, lower case and digits at
40 % of its places is an <id> too, as is what follows a prefix (cus_<id>).

A sign behind an underscore belongs to its number: blk_-17 and blk_17 are one group. A number of two
digits or more that ends a word of small letters is replaced (job<n>), but for those of well-known
names (sha256, x86). Others that end a word of letters stay (utf8, S3, E101): names, usually. So do
4 to 6 hexadecimal digits in which no letter follows a digit (F731), an IPv6 address without a digit
(add::bad may be one), and dotted names that look like modules, attributes or files (os.path,
user.id, a.py). A list of things of one kind has any length: [1, 2, 3] and [7] are both [<n>]. So is
the same thing written twice: 10.0.0.7 (a.example.com) and 10.0.0.7 () are both <ip>.

Most words of a message have been seen before. So a message is examined word by word, and the result
for each word is cached. Only things that may contain spaces are searched for in the line.

A quoted text is a value, as a rule, and becomes <str>. The text right before and after the quotes
decides when it is not, or all requests of an access log would be one group:

    "GET /a?b=c HTTP/1.1" 200       "GET <path> HTTP/<n>" 200       a request keeps its method
    {"user": "ada", "n": 7}         {"user": <str>, "n": <n>}       so does an object its keys,
    {"level": "info", "msg": "up"}  {"level": "info", "msg": "up"}  and the text of msg, message,
    level=info msg="up" user=ada    level=info msg="up" user=<str>  event, level and error

A key is a quoted name behind { or , and before a colon; logfmt is a line that begins with key=value
and has a text key.

Three rules keep patterns stable. A thing begins where no word and no placeholder ends, and ends
where none begins, so a placeholder next to it counts like the text that it replaced. Nothing ends
just before …, or cutting a pattern could turn a fragment into a thing. And a word without a digit
that is none of these stays one when its end is cut.

A host is known by its top-level domain or its port. Domains that are also ends of file names or
names of attributes need a third label, or are left out; so is com.example.app, which is a package.

Bound: the first 1,000 characters of the first line are read; of a longer JSON object all that is
given, its long values shortened before. A pattern has at most 200 characters; 2,048 words are
remembered. A pattern that is too long begins with its text keys, so a message of many fields
is still grouped by its text. Patterns are stable: the pattern of a pattern is itself, except for
some lines that were read in part and have hundreds of characters without a space at the cut.

Not done: words that vary. "user ada logged in" and "user bob logged in" are two patterns; a format
avoids that. drain3 finds such words by comparing messages, but its result depends on what each
process saw before, so its groups cannot be merged by their text. Nor keys of two words, nor the
text of a key that is nested in an escaped JSON text.

PATTERN_VERSION increases with any change of the result of pattern_of(): counts by patterns of
different versions cannot be compared. Writers publish theirs, and `redmeter doctor` reports
differences.
"""

import re
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

from redmeter.analysis.text.texts import EMPTY
from redmeter.lazy_regex import any_of, late

PATTERN_VERSION: Final = 4
#: Characters of a pattern at most, the … included.
PATTERN_CHARACTERS: Final = 200
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
    if len(text) > CHARACTERS_READ and is_object(text):
        text = _shorten_object(text.lstrip().split("\n", 1)[0])
    line = text[: CHARACTERS_READ + 1].lstrip().partition("\n")[0]
    if len(line) > CHARACTERS_READ:
        line = line[:CHARACTERS_READ] + "…"
    if "'" in line or '"' in line or "`" in line:
        line = _replace_quoted(line)
    # Most words are only letters, or a number; a word of a to f may be hexadecimal.
    words = [
        word
        if word.isalpha() and word.strip("abcdefABCDEF")
        else "<n>"
        if _is_number(word)
        else _word(word)
        for word in line.split()
    ]
    if "=" in line and _LOGFMT.match(line):
        words = [_mask_pair(word) for word in words]
    pattern = " ".join(words)
    pattern = _replace_spaced(pattern)
    if len(pattern) > PATTERN_CHARACTERS:
        pattern = _cut(pattern)
    return pattern or EMPTY


@lru_cache(WORDS)
def _word(word: str) -> str:
    if _HINT.search(word):
        word = _things().sub(_placeholder, word)
        if word[-1] != "…":
            word = _COUNTED.sub(r"\1<n>", word)
    return _MIXED.sub(_mixed, word) if len(word) >= _LEAST_MIXED else word


# Identifiers that are made of letters and digits at random


#: A name and a number of two digits or more, that is no name as a whole.
_COUNTED: Final = late(
    r"(?<![A-Za-z0-9<>_.-])(?!(?:sha|utf|u?int|float|base|x|arm|amd|win|es|rs|hs|ps|md|crc|aes)\d)"
    r"([a-z]{1,20}?)\d{2,}(?![\w<>…-]|\.\w)",
    re.ASCII,
)
#: Characters of the shortest word that may be an identifier; of one without a digit; and the share
#: of neighbours that are of another class (upper case, lower case, digit, sign), and of that behind
#: a prefix, as in cus_NffrFeUfNV2Hib.
_LEAST_MIXED, _LEAST_LETTERS, _CHANGING, _CHANGING_BEHIND = 10, 14, 0.4, 0.25
_PART: Final = late(r"(?<![A-Za-z0-9<])[A-Za-z0-9]{10,}(?![A-Za-z0-9>…])", re.ASCII)
_MIXED: Final = late(
    r"(?<![\w<-])(?![a-z]{2,8}_)[\w-]{20,}(?![\w>…-])"
    r"|(?<![A-Za-z0-9<])[A-Za-z0-9]{10,}(?![A-Za-z0-9>…])",
    re.ASCII,
)


def _mixed(match: re.Match[str]) -> str:
    word = match[0]
    classes = ["-" if char in "_-" else "d" if char.isdigit() else char.isupper() for char in word]
    has_digit = "d" in classes
    start = match.start()
    is_behind = has_digit and start > 0 and match.string[start - 1] == "_"
    share = _CHANGING_BEHIND if is_behind else _CHANGING
    changes = sum(a != b for a, b in pairwise(classes))
    if (
        True in classes
        and False in classes
        and (has_digit or len(word) >= _LEAST_LETTERS)
        and changes >= share * (len(word) - 1)
    ):
        return "<id>"
    return _PART.sub(_mixed, word) if "-" in classes else word


# Quotes and structured lines

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
    rf"""[A-Za-z_][\w.-]{{0,39}}+=\S(?=.*?(?<![\w.-])(?:{_TEXT_KEYS})=)
    | (?:{_TEXT_KEYS})=\S+[ ][A-Za-z_][\w.-]{{0,39}}+=\S""",
    re.ASCII | re.VERBOSE,
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


#: A text of a JSON object, and whether it is a key; the last one may have been cut.
_JSON_TEXT: Final = late(r'"((?:[^"\\]|\\.)*+)("\s*:|"|\\?\Z)', re.DOTALL)
_JSON_PAIR: Final = late(
    rf'"[@$]?(?:{_TEXT_KEYS})"\s*:\s*(?:"(?:[^"\\]|\\.)*+"|[^\s,"\[\]{{}}]+)', re.IGNORECASE
)
#: Characters of a value from which on it is shortened; of the text of a text key.
_LONG_VALUE: Final = 40


def is_object(text: str) -> bool:
    """Return whether a text looks like a JSON object."""
    return text[:100].lstrip().startswith("{")


def _shorten_object(line: str) -> str:
    """Return a long JSON object as a shorter one, whose pattern is the same.

    Values that become <str> are shortened, the texts of text keys are cut, and a text that was cut
    is closed. One that is still too long keeps its text keys.
    """
    key = ""

    def shorter(match: re.Match[str]) -> str:
        nonlocal key
        inner, end = match[1], match[2]
        if end.endswith(":"):
            key = inner
            return match[0]
        kept = PATTERN_CHARACTERS if _is_text_key.fullmatch(key) else _LONG_VALUE
        if len(inner) > kept:
            inner = inner[:kept].rstrip("\\") if kept == PATTERN_CHARACTERS else "x"
        return f'"{inner}"'

    line = _JSON_TEXT.sub(shorter, line)
    if len(line) > CHARACTERS_READ and (pairs := _JSON_PAIR.findall(line)):
        line = f"{{{', '.join(dict.fromkeys(pairs))}, …"
    return line


def _replace_quoted(line: str) -> str:
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


def _mask_pair(word: str) -> str:
    """Mask the value of a word `key=value`, but for that of a text key."""
    pair = _PAIR.fullmatch(word)
    if pair is None or _is_text_key.fullmatch(pair[1]) or word.rstrip(",;").endswith(_LITERALS):
        return word
    return f"{pair[1]}=<str>{pair[2]}"


def _cut(pattern: str) -> str:
    """Truncate a pattern; a structured line keeps its most informative values."""
    pairs = list(_TEXT_PAIR.finditer(pattern))
    if _LOGFMT.match(pattern):
        texts = [pair[0] for pair in pairs if pair["quote"] is None]
        shorter = " ".join(texts)
    else:
        texts = [pair[0] for pair in pairs if pair["quote"] is not None]
        shorter = f"{{{', '.join(texts)}, …"
    if texts and pairs[-1].end() >= PATTERN_CHARACTERS:
        pattern = shorter
    return (
        pattern if len(pattern) <= PATTERN_CHARACTERS else pattern[: PATTERN_CHARACTERS - 1] + "…"
    )


# Things: numbers, addresses, times and the like

# Top-level domains that end a host name of two labels, and of three. Missing are those that end
# the names of files, attributes or modules more often (py, sh, rs, id, pk, name, info).
_DOMAINS: Final = """
    com net org edu gov mil arpa biz local localdomain internal lan
    ae ar at au be br ca ch cl cn cz de dk es eu fi fr gr hk hu ie il ir it jp kr mx nl nz pl pt ro
    ru se sg su th tr tw ua uk us vn za
"""
_DEEP_DOMAINS: Final = """
    app cloud dev info io
    ad af ag al am ao az ba bd bf bg bh bi bj bn bo bs bt bw by bz ci ck cm co cr cu cv cy dj dm do
    dz ec ee eg er et fj fo ga ge gh gi gl gm gn gt gu gy hn hr ht im in iq is je jm jo ke kg kh ki
    km kp kw ky kz lb lc li lk lr ls lt lu lv ly ma mc mg mn mr mt mu mv mw my mz na nc ne nf ng ni
    no np nu om pa pe pf pg ph pr ps qa rw sa sc sd si sk sl sm sn sr sv sy sz tg tj tk tm tn to tt
    tv tz ug uy uz va ve vi ws ye zm zw
"""
#: Ends of files, in which `:1200` is a line, not a port.
_SOURCES: Final = """
    c cc conf cpp cs css cxx erl ex exs go h hpp html ini java js json jsx kt log lua m md mjs mm
    php pl pm py pyx rb rs scala sh so sql swift toml ts tsx txt vue xml yaml yml
"""


# All of the first part begin where no word does and no placeholder ends.
_THING: Final = r"""
  (?<![\w>]) (?:
    (?P<url>
      [A-Za-z][A-Za-z0-9+.-]{1,20}+ :// [^"'`<>…]*[^"'`<>….,:;)\]}!?] (?!…)
  ) | (?P<email>
      (?<![.+-]) [\w.+-]{1,64}+ @ [A-Za-z0-9-]++ (?:\.[A-Za-z0-9-]++)++ (?!\.?[\w<…])
  ) | (?P<uuid>
      [0-9A-Fa-f]{8} (?:-[0-9A-Fa-f]{4}){3} -[0-9A-Fa-f]{12} (?![\w<…])
  ) | (?P<time>
      (?: \d{4}-\d\d-\d\d | \d{4}/\d\d/\d\d | \d\d?[/-]MONTH[/-]\d\d(?:\d\d)? )
      (?: [T:] \d\d:\d\d (?: :\d\d (?:[.,]\d+)? )? (?: Z | [+-]\d\d:?\d\d )? )? (?![\w<…])
    | \d\d?:\d\d:\d\d (?:[.,]\d+)? (?![\w<…:])
    | (?<![:.]) \d\d:\d\d (?![\w<…:]|[.,]\d)
  ) | (?P<path>
      (?<![./~-]) (?: (?! / ADDRESS (?: :\d{1,5} )? (?![\w<…/]|\.\d) )
        (?: ~?/ | \.{1,2}/ | [A-Za-z]:[\\/] ) (?: [\w.%@+*?&=~/-] | (?=VARIABLE) | \{ )
        (?: [^"'`<>…{]* (?: (?: VARIABLE | \{ (?! [\w.%:,-]*+\} ) ) [^"'`<>…{]* )*
          (?: [^"'`<>….,:;)\]}!?{] | \([\w.%-]*\) | VARIABLE ) )? (?![\w<…])
      | [\w.-]++ (?: (?:/[\w.%@+-]++){2,} | /[\w-]++(?:\.[\w-]++)*\.[A-Za-z]{1,5} ) (?![\w<…/]) )
    | \A / \Z
  ) | (?P<host>
      (?<![./@\\~-]) (?! (?:com|org|net|io|java|javax|sun)\. )
      (?: (?:LABEL\.){1,10} (?:DOMAINS) | (?:LABEL\.){2,10} (?:DEEP)
        | (?: localhost | (?:LABEL\.){1,10} (?! (?:SOURCES): ) [A-Za-z][\w-]*+
            | (?= [\w-]*-[\w-]*\d: ) [A-Za-z][\w-]*+ ) (?= : (?: 80 | 443 | \d{4,5} ) (?!\d) ) )
      (?: :\d{1,5} )? (?! [.:]?[\w<…] | [@/(-] )
    | (?<!\.) /? ADDRESS :\d{1,5} (?![\w<…]|\.\d)
  ) | (?P<mac>
      (?<![:-]) [0-9A-Fa-f]{2} (?:[:-][0-9A-Fa-f]{2}){5,19} (?![\w<…:-])
  ) | (?P<ip>
      (?<!\.) /? ADDRESS (?: :\d{1,5} | /\d\d? )? (?![\w<…]|\.\d)
    | (?<!:) (?=[A-Fa-f:]*+\d) (?: [0-9A-Fa-f]{1,4} (?: :[0-9A-Fa-f]{1,4} ){0,6} )? ::
      (?: [0-9A-Fa-f]{1,4} (?: :[0-9A-Fa-f]{1,4} ){0,6} (?:\.\d{1,3}){0,3} )? (?:%\w+)?
      (?: (?<=\w) | (?<=\w::) ) (?![\w<…:])
    | (?<!:) [0-9A-Fa-f]{1,4} (?: :[0-9A-Fa-f]{1,4} ){7} (?![\w<…:])
  ) | (?P<hex>
      (?: 0[xX][0-9A-Fa-f]++ | (?=[a-fA-F]*+\d) (?=\d*+[a-fA-F]) [0-9A-Fa-f]{7,}+
        | 0[0-9A-Fa-f]{7,}+ | [a-f]{8,}+ | [A-F]{8,}+ ) (?![\w<…])
  ) | (?P<duration>
      (?: \d++ (?:\.\d++)? (?:e[+-]?\d++)? (?:ns|[uµμ]s|ms|s|sec|min|m|h|d) )+ (?![\w<…])
  ) | (?P<size>
      \d++(?:\.\d++)? (?: [kKMGT]i?B | B | bytes? ) (?:/s)? (?![\w<…])
  ) | (?P<id>
      (?: (?= [A-Za-z]*+\d++[A-Za-z]++\d ) [0-9A-Za-z]{6,}+
        | (?= [A-Za-z_-]*+\d++[A-Za-z_-]++\d ) [\w-]{20,}+
        | (?! \d++ [eE] \d++ (?!\w) ) (?= [a-fA-F]*+\d++[a-fA-F] )
          (?: [0-9a-f]{4,6}+ | [0-9A-F]{4,6}+ ) ) (?![\w<…])
  ) )
  | (?P<n>
      (?: (?<![0-9A-Za-z>)\]}]) [+-] )? (?<![0-9A-Za-z]) \d++ (?: [.,]\d++ )*+ (?: [eE][+-]?\d++ )?
      (?![.,]?…|\d)
    | (?<![\w>]) v \d++ (?: \.\d++ )++ (?![.,]?…)
  ) | (?P<id_>
      (?<=[A-Za-z0-9][_-]) [A-Z]{1,2}\d++ (?![0-9A-Za-z<…])
  ) | (?P<host_>
      \[ SIX \] :\d{1,5} (?![\w<…])
  ) | (?P<ip_>
      \[ SIX \] (?: :\d{1,5} )? (?![\w<…])
  )
"""
_THING_PARTS: Final = {
    "MONTH": "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)",
    "ADDRESS": r"\d{1,3}(?:\.\d{1,3}){3}",
    "SIX": r"[0-9A-Fa-f]{0,4} : [0-9A-Fa-f]{0,4} : [0-9A-Fa-f:.]* (?:%\w+)?",
    "LABEL": r"[A-Za-z0-9][\w-]*+",
    "VARIABLE": r"\{[\w.%:,-]*+\}",
    "DOMAINS": any_of(_DOMAINS.split()),
    "DEEP": any_of(_DEEP_DOMAINS.split()),
    "SOURCES": any_of(_SOURCES.split()),
}
# Things with spaces are found when their words have been replaced.
_MEASURED: Final = late(
    r"""
    < (?: (?<![\w<]<) < (?=[nd]) )?
    (?: (?P<duration> n>[ ](?:ns|[uµμ]s|ms|s|sec|min|h) | duration>(?<=<<duration>) )
      | (?P<size> n>[ ](?:[kKMGT]i?B|B|bytes?)(?:/s)? ) ) (?![\w<>…])
    """,
    re.VERBOSE | re.ASCII,
)
_ZONES: Final = r"(?:[ ](?:GMT|UTC|[PMCEA][SD]T|[CEW]ES?T|BST|IST|JST|KST|MSK|AM|PM)(?!\w))*+"
_IS_DAY: Final = r"(?<=Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_IS_MONTH: Final = r"(?<=Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
# A set of characters at the beginning makes searching fast.
_TIME: Final = late(
    rf"""
    [<ADFJMNOSTW]
    (?: (?<=<) time> ZONES
      | [a-z]{{2}} {_IS_DAY} (?<![\w>]...) DAY MORE* <time> ZONES YEAR
      | (?: [a-z]{{2}} {_IS_MONTH} (?<![\w>]...) [ ]<n>,?[ ] (?:<n>,?[ ])? | (?<=<) n>[ ]MONTH )
        MORE* <time> ZONES )
    (?: [ ] (?: WEEKDAY MORE* <time> ZONES YEAR | MORE* <time> ZONES ) )*
    (?: [ ]<n> (?=\]) )*
    """.replace("YEAR", "(?: [ ]<n> )? ZONES")
    .replace("MORE", "(?: WEEKDAY | [A-Z]MONTHDAY | <n>[ ]MONTH )")
    .replace("WEEKDAY", rf"[A-Z][a-z]{{2}}{_IS_DAY} DAY")
    .replace("MONTHDAY", rf"[a-z]{{2}}{_IS_MONTH} [ ]<n>,?[ ] (?:<n>,?[ ])?")
    .replace("MONTH", rf"[A-Z][a-z]{{2}}{_IS_MONTH},?[ ] (?:<n>,?[ ])?")
    .replace("DAY", r"(?:[a-z]{0,6}day)?,?[ ]")
    .replace("ZONES", _ZONES),
    re.VERBOSE | re.ASCII,
)
#: Texts before a time that make it a duration.
_SPANS: Final = tuple(
    word + end for word in ("lifetime", "uptime", "elapsed", "duration", "delay") for end in " ="
)
#: One thing, repeated.
_SAME: Final = late(
    r"""
    (?P<list> <[a-z]+> ) (?: ,[ ]?(?P=list) (?![ ]?[:…]) )+
  | (?P<amount> <(?:size|duration)> ) (?: [ ]\((?P=amount)\) )+
  | (?P<address> <ip> ) (?: [ ]\((?:<host>)?\) )+
  | (?P<name> <host> ) (?: [ ]?\[<ip>\] | [ ]\(<ip>\) | /<ip> )+
    """,
    re.VERBOSE,
)


@cache  # by the first word that needs it, or it would be a good part of an import
def _things() -> re.Pattern[str]:
    source = _THING
    for name, part in _THING_PARTS.items():
        source = source.replace(name, part)
    return re.compile(source, re.VERBOSE | re.ASCII)


def _replace_spaced(pattern: str) -> str:
    """Replace things with spaces, and repeated things, in a text whose words are replaced."""
    if "<n> " in pattern or "<<" in pattern:
        pattern = _MEASURED.sub(_placeholder, pattern)
    if "<time>" in pattern:
        pattern = _TIME.sub(_time, pattern)
    if "host=<ip>" in pattern:
        pattern = pattern.replace("host=<ip>", "host=<host>")
    while ">," in pattern or "> (" in pattern or "[<ip>" in pattern or "/<ip>" in pattern:
        shorter = _SAME.sub(_first, pattern)
        if shorter == pattern:
            break
        pattern = shorter
    return pattern


def _time(match: re.Match[str]) -> str:
    start = match.start()
    return "<duration>" if match.string.endswith(_SPANS, 0, start) else "<time>"


def _first(match: re.Match[str]) -> str:
    assert match.lastgroup, "each form has one"
    return match[match.lastgroup]


def _placeholder(match: re.Match[str]) -> str:
    assert match.lastgroup, "each form has one"
    return f"<{match.lastgroup.rstrip('_')}>"
