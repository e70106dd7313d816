r"""Secrets that a short expression and a check of the value find; see secrets.py for the others.

    {"auth": "Ym9iOmh1bnRlcjI="}          {"auth": "***"}           (base64 of user:password)
    /reset/MTc/c4h2x8-3f9a0b1c2d3e4f      /reset/MTc/***            (also verify, confirm, invite …)
    your verification code is 482913      your verification code is ***  (one-time passwords too)
    4111 1111 1111 1111                   ***                       (card numbers, by Luhn)
    DE89 3704 0044 0532 0130 00           ***                       (IBAN, by its check digits)
    /callback?code=abc123&state=x         /callback?code=***&state=x
    password[hunter2]                     password[***]
    <Password Type="x">hunter2</Password> <Password Type="x">***</Password>

Bound: no expression repeats over text that another part may repeat over, and each is only tried on
a text with a literal that it needs.

Source: ISO/IEC 7812-1 (Luhn), ISO 13616 (IBAN).
"""

import binascii
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from redmeter.lazy_regex import late


class _Shape(NamedTuple):
    #: This is in a text with such a secret, and one of these, in lower case.
    needed: str
    literals: tuple[str, ...]
    #: The group "secret" is masked.
    form: re.Pattern[str]
    #: Whether a value is a secret.
    check: Callable[[str], bool] | None = None


def _is_login(value: str) -> bool:
    try:
        return b":" in binascii.a2b_base64(value)
    except binascii.Error:
        return False


def _is_card(value: str) -> bool:
    digits = [int(char) for char in value if char.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


def _is_iban(value: str) -> bool:
    text = value.replace(" ", "")
    return (
        15 <= len(text) <= 34
        and int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1
    )


def _is_link_token(value: str) -> bool:
    kinds = sum(re.search(kind, value) is not None for kind in ("[a-z]", "[A-Z]", r"\d"))
    return bool(re.search(r"\d", value)) and kinds > 1 and (len(value) >= 16 or kinds == 3)


#: So many digits are in a card number and in an IBAN.
_DIGITS: Final = late(r"\d{4}[ -]?\d{4}[ -]?\d\d", re.ASCII)
#: These begin with a set of characters, which makes searching fast.
_NUMBERS: Final = (
    _Shape(
        "",
        (),
        late(
            r"""
            (?P<secret> [2-6] (?<! [\w.-]. )
              (?: (?: (?<=4)\d{3} | (?<=5)[1-5]\d\d | (?<=2)[2-7]\d\d | (?<=3)5\d\d
                    | (?<=6)(?:011|5\d\d|4[4-9]\d) )
                  (?P<gap>[ -]?) \d{4} (?P=gap) \d{4} (?P=gap) \d{4}
                | (?<=3)[47]\d\d (?P<space>[ -]?) \d{6} (?P=space) \d{5} ) ) (?! [\w-] | \.\d )
            """,
            re.VERBOSE | re.ASCII,
        ),
        _is_card,
    ),
    _Shape(
        "",
        (),
        late(
            r"""
            (?P<secret> [A-Z] (?<! [\w-]. ) [A-Z]\d\d
              (?:[ ]?[A-Z0-9]{4}){2,7} (?:[ ]?[A-Z0-9]{1,3})? ) (?![\w-])
            """,
            re.VERBOSE | re.ASCII,
        ),
        _is_iban,
    ),
)
_SHAPES: Final = (
    _Shape(
        "auth",
        ('auth"', "auth'"),
        late(
            r"""["']auth["'][ ]?:[ ]?["'](?P<secret>[A-Za-z0-9+/]{6,}={0,2})["']""",
            re.ASCII | re.IGNORECASE,
        ),
        _is_login,
    ),
    _Shape(
        "/",
        ("reset", "activat", "confirm", "verif", "invit", "magic"),
        late(
            r"""
            / (?= [\w-]{0,30}? (?: reset | activat | confirm | verif | invit | magic ) )
            [\w-]{5,60}+ /
            (?: (?! [\w.~=-]{16} ) [\w.~=-]{1,15}+ / ){0,2}? (?P<secret> [\w.~=-]{10,}+ )
            """,
            re.VERBOSE | re.ASCII | re.IGNORECASE,
        ),
        _is_link_token,
    ),
    _Shape(
        "",
        (" code", "_code", "-code", "otp", "one-time", "one time", " pin"),
        late(
            r"""
            (?<![a-z0-9])
            (?: (?: verification | security | confirmation | login | sign-?in | authentication
                  | sms | access | recovery | backup | 2fa | mfa | otp | one[- ]time )
                [ _-] (?: code | pin )
              | one[- _]time[- _]pass (?:word|code) | t?otp (?: [ _-] code )? )
            (?: [ ] (?: is | was | for[ ](?:user[ ])?[\w@.+-]{1,40}+ ) )?+ [ ]? [:=]? [ ]? ["']?
            (?P<secret> \d{3}[ -]\d{3} | \d{4,8} ) (?! \w | [.:-]\d )
            """,
            re.VERBOSE | re.ASCII | re.IGNORECASE,
        ),
    ),
    _Shape(
        " is your ",
        (" is your ",),
        late(
            r"(?<![\w.-])(?P<secret>\d{4,8})(?=[ ]is[ ]your[ ][\w -]{0,30}code)",
            re.ASCII | re.IGNORECASE,
        ),
    ),
    _Shape(
        "code=",
        ("?code=", "&code="),
        late(
            r"""[?&]code=(?P<secret>(?=[^\s&"'<>]*\d)[^\s&"'<>)\]}*]{6,})""",
            re.ASCII | re.IGNORECASE,
        ),
    ),
    _Shape(
        "[",
        tuple(f"{name}{gap}[" for name in ("word", "wd", "phrase", "code") for gap in ("", " ")),
        late(
            r"""
            (?: password | passwd | pwd | passphrase | passcode ) [ ]?
            \[ (?P<secret> (?! \d{1,3}\] ) [^\s"'=*\[\]]{4,} ) \] (?! \[ | [ ]?= )
            """,
            re.VERBOSE | re.ASCII | re.IGNORECASE,
        ),
    ),
    _Shape(
        "</",
        ("</",),
        late(
            r"""
            < (?:[\w.-]{1,40}:)? [\w.-]{0,20}?
            (?: password | passwd | pwd | secret | token | api-?_?key )
            [ \t\n] [^<>]{1,300}+ > (?P<secret> (?! \*{3} ) [^<>]{1,500}+ ) (?= </ )
            """,
            re.VERBOSE | re.ASCII | re.IGNORECASE,
        ),
    ),
)


def mask_shapes(text: str, lowered: str, by: str) -> str:
    """Return a text with its secrets replaced.

    Args:
        lowered: the text in lower case.
        by: what replaces a secret.
    """
    for shape in _SHAPES:
        if shape.needed in lowered:
            for literal in shape.literals:
                if literal in lowered:
                    text = _replaced(shape, text, by)
                    break
    if _DIGITS.search(text):
        for shape in _NUMBERS:
            text = _replaced(shape, text, by)
    return text


def _replaced(shape: _Shape, text: str, by: str) -> str:
    parts, done = list[str](), 0
    for match in shape.form.finditer(text):
        start, end = match.span("secret")
        if shape.check is None or shape.check(match["secret"]):
            parts += text[done:start], by
            done = end
    return "".join((*parts, text[done:])) if parts else text
