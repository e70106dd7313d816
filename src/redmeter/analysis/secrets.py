r"""Secrets in messages: passwords, tokens and keys become ***.

Problem: people log URLs with passwords, headers, settings and query strings. What is stored is
read by more people than the secret was meant for, and kept for longer.

Idea: find a secret by what stands before it, or by its looks.

    redis://bob:hunter2@db:6379/0         redis://bob:***@db:6379/0
    Authorization: Bearer abc.def         Authorization: Bearer ***
    DB_PASSWORD=hunter2 token=abc,id=7    DB_PASSWORD=*** token=***,id=7
    {"api-key": "a \"b\"", "id": 7}       {"api-key": "***", "id": 7}
    GET /a?token=abc&x=1                  GET /a?token=***&x=1
    Cookie: a=b; c=d                      Cookie: ***
    eyJhbGciOi….eyJzdWIiOi….SflKxw…       ***       (JWT; so are AWS key ids, PEM private keys)

Where a value ends: a quoted one at its quote, escapes inside and newlines included; where the
quote is missing, all to the end is the value. One without quotes ends at white space, and at a
bracket, quote, comma, semicolon or ampersand behind which no value goes on: the text ends, or
space, another of these or `word=` follows. In doubt more is masked rather than less.

Cuts: a text that clean() has cut may end within a secret. It is known by its mark, and there the
end of the text ends every form that is still open. So mask(clean(text)) is the order.

Bound: time is linear in the length. No part of the expression repeats over what another part of
it may repeat over, each form begins with a literal or where a word does, and what one consumed
is not looked at again. A text without any trigger costs a few substring searches. A masked value
grows by two characters at most.

Not done: secrets in prose ("the password is hunter2"), as arguments (--password hunter2), in XML;
with spaces and no quotes, where only the first word goes; JSON in JSON in JSON, from an escaped
quote on; passwords in URLs with an unescaped slash, question mark or hash, which no client would
parse either; tokens that stand alone and look like none of the above.
A harmless `pwd=/home` is masked: better that than the other way around.

Source: RFC 3986, section 3.2.1; RFC 7235; RFC 7519; RFC 7468.
"""

import re
from typing import Final

from redmeter.analysis.texts import CUT

MASK: Final = "***"

#: A text without any of these, in lower case, holds no secret that mask() knows.
_TRIGGERS: Final = (
    *("passw", "passphrase", "pwd", "token", "secret", "key", "cookie", "authorization"),
    *("bearer", "://", "eyj", "akia", "asia"),
)

# What is kept of each form is its one group that closes last; the rest becomes ***. CUT_HERE stands
# for what ends a form that is still open: nothing, or in a cut text its end.
_FORMS: Final = r"""
  (?=[:ebascpt-])                                                     # skips most characters
  (?: (?P<url>
      ://[^\s/:@?\#"<>]*+: ) [^\s/?\#"<>]+ (?: (?=@) | (?<!\*{3}) CUT_HERE )
  | (?<![\w-]) (?-i:eyJ)                                              # a JSON web token
    (?: [\w-]{5,}+ (?:\.[\w-]*+){2,4} | [\w-]*+ (?:\.[\w-]*+){0,2} CUT_HERE )
  | (?<![A-Z0-9]) (?-i: (?:AKIA|ASIA) (?: [A-Z0-9]{16}(?![A-Za-z0-9]) | [A-Z0-9]+ CUT_HERE ) )
  | KEY_BLOCK
  | (?P<bearer>
      (?<!\w) bearer [ \t]++ )
    (?: (?=[a-z._~+/-]*+\d) [\w.~+/-]{16,}+ =* | [\w.~+/-]++ =* CUT_HERE )
  | (?P<line>
      (?<!\w) (?:set-)?cookie:[ \t]*+ | authorization:[ \t]*+(?:digest|aws4-hmac-sha256)[ \t]++ )
    [^\s"'] [^\r\n]*+
  | (?P<named>
      (?: password | passwd | passphrase | pwd | token | secret | cookie | authorization
        | (?:api|access|secret|private|account|encryption|signing|shared) [_\ -]? key )
      (?: _confirmation | \d{1,2} )?
      (?: \\{0,7} ["'] )? (?: \] | %5D )?
      [ \t]*+ (?: => | := | ={1,3} | : | %3D ) [ \t]*+
      (?: (?:bearer|basic|token|negotiate|apikey) [ \t]++ (?=\S) )?
      (?: b?(?P<quote>["']) | (?P<escaped>\\{1,7}["']) )?+ )
    (?(quote)    (?: [^"'\\]++ | REPR_OF_JSON | \\(?:.|\Z) | (?!(?P=quote))["'] )*+
    |(?(escaped) (?: [^\\]++ | (?!(?P=escaped)) (?: \\{4} | \\{3}["'] | . ) )*+
    |            (?: KEY_BLOCK | [^\s&,;)\]}>"'] | DELIMITER )++ )) )
"""
_PARTS: Final = {
    # \\" ends a JSON string, but in the repr of JSON it is the \" that does not.
    "REPR_OF_JSON": r"""\\\\["'](?![,;)\]}"']|\Z)""",
    "KEY_BLOCK": r"-----BEGIN\ [ A-Z]{0,20}?PRIVATE\ KEY.*?(?:-----END[^-]{1,40}-----[\w-]*+|\Z)",
    "DELIMITER": r"""[&,;)\]}>"'](?![\s&,;)\]}>"']|\Z|\.(?:\s|\Z)|[\w.*-]++["']?[=:])""",
}


def _compiled(cut_here: str) -> re.Pattern[str]:
    source = _FORMS.replace("CUT_HERE", cut_here)
    for name, part in _PARTS.items():
        source = source.replace(name, part)
    return re.compile(source, re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL)


_IN_WHOLE: Final = _compiled("(?!)")
_IN_CUT: Final = _compiled(r"\Z")


def mask(text: str) -> str:
    """Return a text with *** in place of its secrets.

    Args:
        text: what clean() returned. Masking before cleaning misses words with a control
            character in their middle.

    Returns:
        The text, the same object if no secret was found. Masking it again changes nothing.
    """
    lowered = text.lower()
    for trigger in _TRIGGERS:
        if trigger in lowered:
            break
    else:
        return text
    cut = CUT.search(text) if text.endswith(" more)") else None
    if cut is None:
        return _IN_WHOLE.sub(_masked, text)
    return _IN_CUT.sub(_masked, text[: cut.start()]) + cut[0]


def _masked(match: re.Match[str]) -> str:
    kept = match.lastgroup
    return MASK if kept is None else match[kept] + MASK
