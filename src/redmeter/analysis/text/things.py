r"""Things: numbers, addresses, times and the like, as they are written in messages.

One large expression finds them within a word. Three small ones find things with spaces, after the
words have been replaced. patterns.py lists the kinds.

Three rules keep patterns stable. A thing begins where no word and no placeholder ends, and ends
where none begins, so a placeholder next to it counts like the text that it replaced. Nothing ends
just before …, or cutting a pattern could turn a fragment into a thing. And a word without a digit
that is none of these stays one when its end is cut.

A host is known by its top-level domain or its port. Domains that are also ends of file names or
names of attributes need a third label, or are left out; so is com.example.app, which is a package.
"""

import re
from functools import cache
from typing import Final

from redmeter.lazy_regex import any_of, late

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
        (?: ~?/ | \.{1,2}/ | [A-Za-z]:[\\/] ) [\w.%@+*{?&=~/-]
        (?: [^"'`<>…]* (?: [^"'`<>….,:;)\]}!?] | \([\w.%-]*\) ) )? (?![\w<…])
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
def expression() -> re.Pattern[str]:
    """Return the expression that finds things within a word."""
    source = _THING
    for name, part in _THING_PARTS.items():
        source = source.replace(name, part)
    return re.compile(source, re.VERBOSE | re.ASCII)


def replace_spaced(pattern: str) -> str:
    """Replace things with spaces, and repeated things, in a text whose words are replaced."""
    if "<n> " in pattern or "<<" in pattern:
        pattern = _MEASURED.sub(placeholder, pattern)
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


def placeholder(match: re.Match[str]) -> str:
    """Return the name of the kind that was found."""
    assert match.lastgroup, "each form has one"
    return f"<{match.lastgroup.rstrip('_')}>"
