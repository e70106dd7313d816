r"""Secrets in messages: passwords, tokens and keys become ***.

Problem: people log URLs with passwords, headers, settings and query strings. Stored messages are
read by more people than the secret was meant for, and kept for longer.

Idea: find a secret by the text before it, or by its form.

    redis://bob:hunter2@db:6379/0         redis://bob:***@db:6379/0
    https://0123456789abcdef@host/5       https://***@host/5      (16 characters and a digit)
    Authorization: Bearer abc.def         Authorization: Bearer ***
    Authorization: SharedKey bob:abc=     Authorization: SharedKey ***
    DB_PASSWORD=hunter2 token=abc,id=7    DB_PASSWORD=*** token=***,id=7
    {"api-key": "a \"b\"", "id": 7}       {"api-key": "***", "id": 7}
    {"tokens": ["a", "b"], "id": 7}       {"tokens": ***, "id": 7}
    [(b'cookie', b'a=b'), (b'x', b'y')]   [(b'cookie', b'***'), (b'x', b'y')]
    GET /a?token=abc&x=1                  GET /a?token=***&x=1
    Cookie: a=b; c=d                      Cookie: ***
    curl -u bob:hunter2, --token abc      curl -u bob:***, --token ***
    IDENTIFIED BY 'hunter2'               IDENTIFIED BY '***'
    {"name": "password", "value": "a"}    {"name": "password", "value": "***"}
    user[password][]=a%26b&x=1            user[password][]=***&x=1
    %22token%22%3A%22a%22                 %22token%22%3A%22***%22   (so do &quot; and \u0022)
    ['AUTH', 'bob', 'hunter2']            ['AUTH', 'bob', '***']    (requirepass, masterauth …)
    [parameters: ('bob', 7)]              [parameters: ***]         (values bound by SQLAlchemy)
    eyJhbGciOi….eyJzdWIiOi….SflKxw…       ***       (JWT; so are AWS key ids, PEM private keys)
    ghp_… glpat-… xoxb-… sk_live_…        ***       (so are sk-… AIza… npm_ pypi- SG. hvs. dop_v1_,
                                                    and those of TOKEN_PREFIXES)
    API_KEY_STRIPE=abc password_prod=a    API_KEY_STRIPE=*** password_prod=***
    stripe_key=a1b2c3d4e5f6a7b8           stripe_key=***            (16 characters and a digit;
                                                    so have _auth, creds and secret.key)
    hooks.slack.com/services/T1/B2/abc    hooks.slack.com/services/*** (Discord, Teams, Zapier too)
    <password>hunter2</password>          <password>***</password>
    password: str = "a"; TOKEN ?= b       password: str = "***"; TOKEN ?= ***

What a short expression and a check of the value find (login in base64, links, codes, card numbers,
IBAN) is in shapes.py.

Names, also as the end of a longer name and with _hash, _confirmation, _fallbacks, _base, _old,
_new, _again, _repeat or a number behind: password, passwd, passphrase, passcode, pwd, token,
secret, cookie, authorization, credential, session id, client assertion, keys (api, access, secret,
private, account, encryption, signing, shared, master, session, functions, subscription); their
plurals, but for a plain number (max_tokens=100). As words of their own: pass, csrf, xsrf, sig,
signature, otp; but "pass: 3 of 5", "csrf=True" and "sig=11" stay. Words that may be harmless (code,
sid, session) need = and 16 characters with a digit. A name may have an ending of its own behind _
or - (API_KEY_STRIPE, password_prod), except for properties of a secret: token_type, password_reset.
null, none, undefined, true, false, yes and no are no secrets (`using password: YES`).

Tokens: services give theirs a prefix, so that leaked ones are found. A token begins where no word
does, has at least 20 further characters, and one of them is a digit; so hf_transformers stays.
Beginnings that are also words need more, see _SPECIAL.

Bound values end at a bracket that closes the line; without one, at the end of the text.

Where a value ends: a quoted one at its quote, escapes inside and newlines included; one that begins
with a bracket, or calls something with a literal, at the bracket that closes it. Where the quote or
the bracket is missing, all to the end is the value. One without quotes ends at white space, at \r\n
written as an escape, and at a bracket, quote, comma, semicolon or ampersand behind which no value
goes on: the text ends, or space, another of these or `word=` follows. One on the next line must be
indented, and no `word:` of its own. A doubled quote is a part of the value, as in SQL. Cookies, and
Authorization of a scheme that has more than one word, end with their line, or with the quote that
directly precedes the header; so does a list of schemes. In doubt more is masked rather than less;
but a value that begins with *** counts as masked.

Cuts: a text that clean_text() has cut may end within a secret. It is recognized by its mark, and
its end closes every form that is still open. So the order is mask(clean_text(text)).

Bound: time is linear in the length. No part of the expression repeats over text that another part
may repeat over, each form begins with a literal or at the start of a word, at most 40 characters
precede a name, and consumed text is not examined again. A text without any trigger costs a few
substring searches. A masked value grows by two characters at most.

Not done: secrets in prose ("the password is hunter2"), in short options (-p hunter2), as
the values of an SQL INSERT, in languages other than English; on a next line that is not indented,
and after the first line of a YAML block; the value of a name if other text is between both; AUTH
alone before a password without a digit or of less than 6 characters, and AUTH as a server
receives it (`$4\r\nAUTH`); colons that are no ASCII; with spaces and no quotes, where only
the first word goes; JSON in JSON in JSON, from an escaped quote on; passwords in URLs with an
unescaped slash, question mark or hash, which no client would parse either; `pin=` and a bare
`key=`; `["password", "letters"]`, which is a list of names more often than a pair; what repr()
makes of a value with both quotes, within JSON, from the second kind of quote on; tokens that stand
alone and look like none of the above; values that are part of a statement's text, or of a driver's
message, as in PostgreSQL's `Key (email)=(bob@example.com) already exists`.
A harmless `pwd=/home` is masked, and so is the second of `("password", "email")`: better that than
the other way around.

Source: RFC 3986, section 3.2.1; RFC 6265; RFC 7235; RFC 7519; RFC 7468.
"""

import re
from functools import cache
from typing import Final

from redmeter.analysis.text.shapes import LONG_NUMBER, mask_numbers, mask_shapes
from redmeter.analysis.text.texts import CUT
from redmeter.lazy_regex import any_of, late

MASK: Final = "***"

#: Shortest word, in characters, that may be a token.
_LEAST: Final = 20

_PREFIXES: Final = """
    glrt- gldt- glptt- glft- glimt- glagent- glsoat- glffct- glcbt- gloas- glsa_ glc_
    hf_ api_org_ shpat_ shpca_ shppa_ shpss_ xapp- PMAK-
    NRAK- NRJS- NRII- NRAL- NRRA- pul- rubygems_ pscale_tkn_ pscale_pw_ pscale_oauth_
    lin_api_ lin_oauth_ sntryu_ sntrys_ ya29. AKCp ATATT3 LTAI EZAK EZTK dt0c01.
    dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. duffel_test_ duffel_live_
    FLWSECK- FLWSECK_TEST- FLWPUBK- FLWPUBK_TEST- fio-u- fo1_ hvb. hvr. p8e-
    AGE-SECRET-KEY- sq0atp- sq0csp- sq0idp- xkeysib- xsmtpsib- shippo_live_ shippo_test_ sgp_
    sm_aat_ sm_pat_ sm_sat_ tk-us- tfp_ figd_ figu_ gsk_ r8_ GOCSPX- sbp_ nfp_ CFPAT- dckr_pat_
    HRKU- phx_ whsec_ ntn_ pplx- rdme_ pnu_ sha256~ sk_prod_ rk_prod_ tskey-auth- tskey-api-
    tskey-client- CLOJARS_ clojars_ BBFF- pat-na1- pat-eu1- access-sandbox- access-production-
    GR1348941 ABSK bedrock-api-key- cmVmd xoxe.xox
"""
TOKEN_PREFIXES: Final = tuple(_PREFIXES.split())
#: Expressions of tokens whose beginning is a word as well, by that beginning.
_SPECIAL: Final = {
    "ops_": r"ops_eyJ[\w=+/-]{20,}+",
    "A3-": r"A3-[A-Z0-9]{6}-[A-Z0-9-]{20,}+",
    "EAA": r"EAA[ACM][\w-]{40,}+",
    "fm1": r"fm1[ar]_[\w+/]{60,}+=*+",
    "fm2_": r"fm2_[\w+/]{60,}+=*+",
    "live_": r"live_(?=[^\s\d]{0,200}+\d)[\w=-]{40,}+",
    "test_": r"test_(?=[^\s\d]{0,200}+\d)[\w=-]{40,}+",
    "API-": r"API-[A-Z0-9]{26}+(?!\w)",
    "sl.": r"sl\.[\w-]{100,}+",
    "dapi": r"dapi[0-9a-f]{32}+",
    "key-": r"key-[0-9a-f]{32}+",
    "SK": r"SK[0-9a-f]{32}+(?!\w)",
    "hf_": r"hf_[A-Za-z]{34}+(?!\w)",
    "api_org_": r"api_org_[A-Za-z]{34}+(?!\w)",
    "ABIA": r"ABIA[A-Z0-9]{16}+(?!\w)",
    "ACCA": r"ACCA[A-Z0-9]{16}+(?!\w)",
    "squ_": r"squ_[0-9a-f]{40}+",
    "sqp_": r"sqp_[0-9a-f]{40}+",
    "ico-": r"ico-[A-Za-z0-9]{32}+(?![\w-])",
}

#: Where a token may begin, in lower case.
_TOKEN_BEGINNINGS: Final = (
    any_of(sorted({prefix.lower() for prefix in (*TOKEN_PREFIXES, *_SPECIAL)} - {"sk"}))
    + "|sk(?=[0-9a-f]{32})"
)
#: A token, or in a cut text its beginning: CUT_HERE stands for the end of one.
_TOKEN: Final = rf"""
    (?<![\w.~-]) (?-i:
        (?: PREFIX ) (?=[^\s\d]{{0,200}}+\d) [\w.~+-]{{20,}}+ =*+ | {" | ".join(_SPECIAL.values())}
      | (?: PREFIX | ops_eyJ | dapi | key- ) [\w.~+/-]*+ =*+ CUT_HERE )
""".replace("PREFIX", any_of(TOKEN_PREFIXES))

_TOKEN_STARTS: Final = frozenset(
    prefix[:3].lower() for prefix in (*TOKEN_PREFIXES, *_SPECIAL)
) | frozenset(f"sk{digit}" for digit in "0123456789abcdef")
_LONG_WORDS: Final = late(rf"[\w.~-]{{{_LEAST},}}", re.ASCII)

#: A text without any of these, in lower case, holds no secret that mask() knows.
_TRIGGERS: Final = (
    *("pass", "pwd", "token", "secret", "key", "cookie", "sess", "sid=", "code="),
    *("://", "bearer", "otp", "srf", "identified by", "eyj", "akia", "asia", "aiza"),
    *("setuser", "[parameters:"),
)
#: Nor does one with these, where the word around them is missing.
_RARE_TRIGGERS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("auth", ("authorization", "masterauth", "_auth", "-auth", ".auth", "auth=", "auth:")),
    ("auth", ('auth"', "auth'", "auth ", "auth\t", "auth\\")),
    ("sig", ("signature", "sig=", "sig%", 'sig"', "sig'", "sig\\")),
    ("cred", ("credential", "creds")),
    ("assertion", ("client_assertion", "client-assertion", "clientassertion")),
)
_MARKED_TRIGGERS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("_", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "npm_", "k_live_")),
    ("_v1_", ("op_v1_", "oo_v1_", "or_v1_")),
    ("k_test_", ("k_test_",)),
    ("-", ("sk-", "xox", "glpat-", "pypi-", "-u ", "-u\t", "-u=", "-u'", '-u"', "-user")),
    (".", ("sg.", "hvs.")),
)
#: A text without any of these has no trigger but marked ones: one search is faster than thirty.
_NAMED: Final = late(any_of((*_TRIGGERS, *(part for part, _ in _RARE_TRIGGERS))))
#: What each form begins with, in lower case.
_NAMED_BEGINNINGS: Final = r"""
    :// | \[parameters: | - (?: u | -(?=\w) ) | -----begin | [(\[][ ]?b?\\{0,7}["'](?=[\w-])
  | a (?: uthoriz | uth[ \t"'=:\\] | pi | ccess | ccount | kia | sia | iza | ssertion ) | bearer
  | c (?: ookie | redential | reds | srf | ode= ) | do[opr]_ | e (?: yj | ncryption )
  | functions | g (?: h[oprsu]_ | ithub_ | lpat- ) | h (?: ttp_ | vs\. )
  | identified | key | master | npm_ | otp
  | p (?: ass | wd | rivate | roxy- | ypi- ) | rk_
  | s (?: ecret | ess | et- | etuser | ubscription | id= | ig | g\. | hared | k[_-] )
  | token | x (?: ox | srf )
"""
_BEGINNINGS: Final = late(_NAMED_BEGINNINGS, re.VERBOSE | re.ASCII)
#: The same, and those of tokens and webhooks.
_ALL_BEGINNINGS: Final = late(
    rf"{_NAMED_BEGINNINGS} | hooks\. | webhook\. | discord | outlook | :aa | {_TOKEN_BEGINNINGS}",
    re.VERBOSE | re.ASCII,
)

# The group of a form that closes last is kept; the rest becomes ***. CUT_HERE matches the end of a
# form that is still open: never, or in a cut text at its end.
_FORMS: Final = r"""
  (?: (?P<user>
      :// )
    (?: (?=[^\s/:@?\#"<>\d]*+\d) [^\s/:@?\#"<>*]{16,}+ (?: :[^\s/?\#"<>]* )?
        (?: (?=@) | (?<!\*{3}) CUT_HERE )
      | [^\s/:@?\#"<>*]++ CUT_HERE )
  | (?P<url>
      ://[^\s/:@?\#"<>]*+: )
    (?: [^\s/?\#"<>]+ (?: (?=@) | (?<!\*{3}) CUT_HERE ) | \*{3} CUT_HERE )
  | (?<![\w-]) (?-i:eyJ)                                              # a JSON web token
    (?: [\w-]{5,}+ (?:\.[\w-]*+){2,4} | [\w+/-]{60,}+ =*+ | [\w-]*+ (?:\.[\w-]*+){0,2} CUT_HERE )
  | (?<![A-Z0-9]) (?-i: (?:AKIA|ASIA) (?: [A-Z0-9]{16}(?![A-Za-z0-9]) | [A-Z0-9]+ CUT_HERE ) )
  | (?<![A-Za-z0-9]) (?-i:
      gh[oprsu]_ ALNUM{36,}+ | npm_ ALNUM{36,}+ | [rs]k_(?:live|test)_ ALNUM{24,}+
    | do[opr]_v1_ ALNUM{64,}+ | (?:gh[oprsu]|npm|[rs]k_(?:live|test)|do[opr]_v1)_ ALNUM*+ CUT_HERE )
  | (?<![\w-]) (?-i:
      github_pat_ \w{60,}+ | glpat- [\w-]{20,}+ | xox[abeoprs]- [\w-]{20,}+ | AIza [\w-]{35,}+
    | sk-(?:proj|svcacct|admin|ant)- (?=[^\s\d]{0,80}+\d) [\w-]{16,}+ | sk- ALNUM{32,}+
    | pypi- [\w-]{60,}+
    | hvs\. [\w-]{24,}+ | SG\. [\w-]{22}\.[\w-]{43,}+
    | (?: github_pat_ | glpat- | xox[abeoprs]- | AIza | sk- | pypi- | hvs\. | SG\. )
      [\w-]*+ (?:\.[\w-]*+)? CUT_HERE )
  | TOKEN
  | (?P<hook>
      hooks\.slack\.com/(?:services|workflows|triggers)/
    | discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/
    | (?<=\.)webhook\.office\.com/webhookb2/ | outlook\.office(?:365)?\.com/webhook/
    | hooks\.zapier\.com/hooks/catch/ )
    [^\s"'<>?&\#)\]}]++
  | (?P<bot> (?<=\d{5}) : ) (?-i:AA) (?: [\w-]{32,}+ | [\w-]*+ CUT_HERE )
  | KEY_BLOCK
  | (?P<bearer>
      (?<!\w) bearer [ \t]++ )
    (?: (?=[a-z._~+/-]*+\d) [\w.~+/-]{16,}+ =* | [\w.~+/-]++ =* CUT_HERE )
  | (?P<bound>
      \[parameters:[ ] (?!\*{3}) )
    (?: [^\]]++ | (?! BOUND_END ) \] )++
  | (?P<code>
      (?: (?<![\w-]) (?:code|sid) | (?<![a-z0-9-]) session ) = )
    (?: (?=[a-z._~%+/-]*+\d) [\w.~%+/-]{16,}+ =* | [\w.~%+/-]++ =* CUT_HERE )
  | (?P<login>
      (?<![\w*-]) (?: -u | --user | --proxy-user )
      (?: [ \t=]++ (?P<around>["'])? | ["'],[ ]?(?P<item>["']) )
      (?! \d++:\d++ (?!\S) ) [^\s:"'*]{1,100}+ : (?(around) | (?(item) | ["']? ) ) )
    (?(around) (?: (?!(?P=around)) . )++ | (?(item) (?: (?!(?P=item)) . )++ | [^\s"']++ ) )
  | (?P<acl>
      (?<!\w) setuser [\s"',]++ (?: [^\n>*] | \*(?!\*\*) ){0,200}? (?<=[\s"']) > )
    [^\s"']++
  | (?P<auth>
      (?<![\w-]) (?-i:AUTH)
      (?: [ \t]++ (?: [a-z_.@-]{1,60}+ [ \t]++ )?+ (?=(?P<plain>[^\s*"'\\]*?\d))
        | ["'], [ ]? (?: b?["'] (?!\*{3}) [^"'\\]{1,60}+ ["'], [ ]? )?+ b?(?P<within>["'])
          (?!\*{3}) ) )
    (?(plain) [^\s*"'\\]{6,}+ (?!\*) | (?: [^"'\\]++ | \\(?:.|\Z) | (?!(?P=within))["'] )++ )
  | (?P<line>
      (?: (?<=(?P<open>["'])) | ) (?: http_ | proxy- | set- )?
      (?: cookie (?: s NO_COUNT | 2 )? [ \t]*+ : [ \t]*+ (?!\*{3})
        | cookie = (?: (?<=http_cookie=) (?!\*{3}) | (?=[\w.-]{1,60}=) )
        | authorization [ \t]*+ (?: : [ \t]*+ (?!\*{3}) | = [ \t]*+ (?=SCHEME) )
          (?! ONE_WORD [ \t]++ (?: \*{3} | [^\s,;]++ (?![,;]) ) ) (?: SCHEME [ \t]++ )? )
      (?! \s | b?["'] | [\[({] ) )
    (?: (?(open) (?!(?P=open)) | ) LINE_CHARACTER )++
  | (?P<named>
      (?: (?P<pair> (?: \( | (?P<list>\[) ) [ ]? b? \\{0,7}["'] [\w-]{0,40}? )
        | (?P<option> (?<![\w*-]) --(?=\w)(?!no-) [\w-]{0,40}? ) )?
      (?: (?: pass [_-]? (?: word | code ) | passwd | pass [_\ -]? phrase | pwd | token | secret
            | (?: api|access|secret|private|account|encryption|signing|shared|master|session
                | functions|subscription ) (?: [_\ -]? key | \.key KEY_VALUE ) ) (?: s NO_COUNT )?
          (?: [_-]? (?: confirm(?:ation)? | hash(?:es)? | digest | fallbacks? | base | value | old
              | new | again | repeat(?:ed)? | current | (?<=secret) string | (?<=secret[_-]) id )
            | [_-]? \d{1,2} | ENDING )?
        | (?: (?<=[a-z0-9][_-]) | (?<=[a-z0-9])(?=(?-i:K)) ) HARMLESS key s? KEY_VALUE
        | (?: (?: (?<=[_.-]) | (?<=[a-z0-9])(?=(?-i:A)) ) auth | (?<![a-z0-9]) creds ) KEY_VALUE
        | masterauth | (?: (?<=client) | (?<=client[_-]) ) assertion
        | cookie (?: s NO_COUNT )? | authorization | credentials? NOT_PLAIN
        | sess(?:ion)? [_\ -]? id NO_COUNT | WORD otp
        | (?: WORD | (?<=db) | (?<=auth) | (?<=user) | (?<=require) ) pass NOT_PLAIN
        | WORD [cx]srf NOT_PLAIN
        | WORD sig(?:nature)? (?:-\d{1,3})?
          (?= (?:=|%3D) (?! \d{1,3}\b | sig[a-z] | [<(] ) | \\{0,7}["']
            | :[ ] (?: sha\d{1,3}= | (?=[a-z+/_.-]*+\d) [\w+/.-]{16} | [\w+/.=-]*+ CUT_HERE ) )
        | (?<!\w) identified[ ]by ) NO_VALUE
      (?(pair) \\{0,7}["'] | (?: \\{0,7}["']{1,2} | ENTITY )?+ )
      (?: \] | %5D | \[ [\w-]{0,20}+ \] | %5B [\w-]{0,20}+ %5D ){0,4}+
      (?: (?: :?[ ](?:str|string) (?=[ ]?=) )? [ \t]*+ IS_GIVEN NEXT_LINE [ \t]*+
        | (?P<xml> > )
          (?= [^<>]{1,500}+ </ | (?: [^<>*]++ | \*(?!\*\*) )*+ CUT_HERE )
        | (?<=\w) , (?= LONG )
        | (?: (?<=["']) ,? [ ]? | & ) ["']? value ["']? [ ]? [:=] [ ]?
        | (?<=["']) (?: \n\n | \\r\\n\\r\\n ) (?=\S)
        | (?: (?<=requirepass) | (?<=masterauth) ) [ \t]++ (?=\S) NO_PROSE
        | \) = (?=\()
        | (?: (?<=password) | (?<=identified\ by) ) [ \t]++ (?=["'])
        | (?(pair) , [ ]? (?= b?\\{0,7}["'] | [\[({] )
            (?(list) (?! \\{0,7}["'] [a-z_]{1,30}+ \\{0,7}["'] [ ]? [,\]] ) | )
          | (?(option) (?: (?<=["']), [ ]? (?=\\{0,7}["']) | (?<=\w) [ \t]++ (?=[^\s-]) NO_PROSE )
            | (?!) ) ) )
      (?: ONE_WORD [ \t]++ (?=\S) )?
      (?(xml) | (?: (?P<entity> ENTITY | (?: "" | '' ) (?= [^\s,;:&.)\]}>"'] ) )
        | b?(?P<quote>["']) | (?P<escaped>\\{1,7}["'])
        | (?P<back> ` )
        | (?P<nested> (?= [\[({] | [a-z_][\w.]{0,60}+ \( b?["'\[({] ) ) )?+ ) )
    (?(xml) [^<>]++
    |(?(back) [^`]*+
    |(?(entity)   (?: [^&%\\"']++ | (?!(?P=entity)) . )*+
    |(?(quote)   (?: [^"'\\]++ | REPR_OF_JSON | \\(?:.|\Z) | (?!(?P=quote))["']
                   | (?P=quote){2} (?=[\w\s]) )*+
    |(?(escaped) (?: [^\\]++ | (?!(?P=escaped)) (?: \\{4} | \\{3}["'] | . ) )*+
    |(?(nested)  (?=.) | (?: \*{3} | UNQUOTED++ ) )))))) )
"""
#: Names of keys that are not secrets.
_HARMLESS: Final = """
    primary foreign cache public sort partition routing object idempotency hash group index
"""
#: Endings after which a name of a secret means something else.
_PROPERTIES: Final = """
    active age attempts? auth cache changed? class count(?:er|s)? created data dir domain enabled
    endpoint expir\\w* fields? files? format handler headers? ids? index info is issuer keys? left
    len(?:gth)? lifetime limits? list manager max min mode names? ok param\\w* path policy prefix
    provider range rate refresh required reset\\w* retr\\w+ rotat\\w+ scheme scope sent service size
    state status store time\\w* total ttl types? ur[il]s? usage used user valid\\w* version
"""
_PARTS: Final = {
    # Newlines in values are escaped; if they are in the whole text, the words after it show that.
    "BOUND_END": r"""(?<=[)\]}]) \] (?: \n | \Z | \\{1,7}n\(Background\ on )""",
    "ENTITY": r"(?: &quot; | &apos; | &\#3[49]; | %2[27] | \\u002[27] )",
    # An indented line, of YAML for instance, that is not part of a list and has no name of its own.
    "NEXT_LINE": r"""(?: [ \t]*+ (?: [|>][+-]? [ \t]*+ )? \n [ \t]++
      (?! -[ ] | [\w.-]++["']? (?: = (?![=\s]|\Z) | : (?!//) ) ) )?""",
    "UNQUOTED": r"""(?: KEY_BLOCK | [^\s&,;)\]}>"'\\] | \\(?!LINE_END) | DELIMITER )""",
    # \\" ends a JSON string, but in the repr of JSON it is the \" that does not.
    "REPR_OF_JSON": r"""\\\\["'](?![,;)\]}"']|\Z)""",
    "KEY_BLOCK": r"-----BEGIN\ [ A-Z]{0,20}?PRIVATE\ KEY.*?(?:-----END[^-]{1,40}-----[\w-]*+|\Z)",
    "DELIMITER": r"""[&,;)\]}>"'](?![\s&,;)\]}>"']|\Z|\.(?:\s|\Z)|[\w.*-]++["']?[=:])""",
    "LINE_CHARACTER": r"(?: [^\r\n\\] | \\(?!LINE_END) )",
    # \r\n in the repr of bytes, or \n before the next header; not that of DOMAIN\nancy.
    "LINE_END": r"""(?: r\\ | n(?: [\w-]++:[ ] | [\\"'\s] | \Z ) )""",
    "ONE_WORD": r"(?: bearer | basic | token | negotiate | apikey | ntlm )",
    "SCHEME": r"""(?: sharedkey(?:lite)? | hawk | oauth | splunk | ssws | bot | jwt | geniekey
      | digest | aws4-hmac-sha256 )(?=[ \t])""",
    # What else a name of a secret may end with: STRIPE, prod, github …, but none of its properties.
    "ENDING": rf"""[_-] (?! (?: {"|".join(_PROPERTIES.split())} ) (?![a-z0-9]) )
      [a-z0-9]{{1,20}}+ (?: _[a-z0-9]{{1,20}}+ )?+
      (?= \\{{0,7}}["']{{0,2}} [ \t]? [=:] ) NO_COUNT""",
    "IS_GIVEN": r"""(?: => | <- | [~-]> | :{1,3}= | [.+]= | \?{1,2}= | ={1,3} | : | %3[AD]
      | \\u003[ad] )""",
    # Before `key`: names that make it harmless.
    "HARMLESS": "".join(f"(?<!{name}[_-])(?<!{name})" for name in _HARMLESS.split()),
    "KEY_VALUE": r"""(?= \\{0,7}["']? [ \t]? [=:] [ \t]? \\{0,7}["']?
      (?: LONG | [\w.~%+/-]*+ CUT_HERE ) )""",
    # 16 characters, one of them a digit.
    "LONG": r"(?=[a-z._~%+/-]*+\d) [\w.~%+/-]{16}",
    "NO_VALUE": r"""(?! IS (?: true | false | none | null | nil | undefined | yes | no )
      PLAIN_END )""",
    "NO_COUNT": r"(?! IS \d{1,9}(?:\.\d{1,3})? PLAIN_END )",
    "NOT_PLAIN": r"(?! IS (?: \d{1,3} | true | false | none | null | yes | no | ok ) PLAIN_END )",
    "PLAIN_END": r"(?![\w.$*-]*[\w$*-]) (?!CUT_HERE)",
    "NO_PROSE": r"""(?! (?: is | are | was | to | or | and | must | may | should | can | cannot
      | not | requires? | needs? | option | argument | flag | if | for | in | on | with )\b )""",
    "IS": r"""\\{0,7} ["']? [ \t]? \+?[=:] [ \t]{0,2}""",
    "WORD": r"(?: (?<![a-z0-9]) | (?<=\\[nrt]) )",
    "TOKEN": _TOKEN,
    "ALNUM": "[A-Za-z0-9]",
}


def _compiled(source: str, cut_here: str) -> re.Pattern[str]:
    for name, part in _PARTS.items():
        source = re.sub(rf"\b{name}\b", lambda _: part, source)  # noqa: B023
    source = source.replace("CUT_HERE", cut_here)
    return re.compile(source, re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL)


# Compiled by the first message, since that takes longer than all the rest of an import.


@cache
def _in_whole() -> re.Pattern[str]:
    return _compiled(_FORMS, "(?!)")


@cache
def _in_cut() -> re.Pattern[str]:
    return _compiled(_FORMS, r"\Z")


@cache
def _unquoted() -> re.Pattern[str]:
    return _compiled("UNQUOTED*+", "(?!)")


#: Brackets, and the strings in which they do not count.
_BRACKETS: Final = late(
    r"""
    (?P<opening> [\[({] ) | (?P<closing> [\])}] )
  | (?: (?<!\w) | (?<=(?<!\w)[bru]) )
    (?P<quote>["']) (?: [^"'\\]++ | \\(?:.|\Z) | (?!(?P=quote))["'] )*+ (?: (?P=quote) | \Z )
  | (?P<escaped> \\{1,7}["'] )
    (?: [^\\]++ | (?!(?P=escaped)) (?: \\{4} | \\{3}["'] | . ) )*+ (?: (?P=escaped) | \Z )
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)


def mask(text: str) -> str:
    """Return a text with *** in place of its secrets.

    Args:
        text: what clean_text() returned. Masking before cleaning misses words with a control
            character in their middle.

    Returns:
        The text, the same object if no secret was found. Masking it again changes nothing, or
        masks more: if a URL's beginning precedes `***`, and @ or the mark of a cut follows.
    """
    lowered = text.lower()
    triggered = _triggered(lowered)
    tokens = text.endswith(" more)") or _may_hold_token(lowered)
    masked = _mask_known(text, lowered, tokens=tokens) if tokens or triggered else text
    if triggered or "/" in lowered or "code" in lowered or " pin" in lowered:
        masked = mask_shapes(masked, lowered, MASK, triggered=triggered)
    return mask_numbers(masked, MASK) if LONG_NUMBER.search(masked) else masked


def _mask_known(text: str, lowered: str, *, tokens: bool) -> str:
    cut = CUT.search(text) if text.endswith(" more)") else None
    if len(lowered) != len(text):  # the one letter that does so
        lowered = text.replace("\u0130", "i").lower()
    if cut is None:
        beginnings = _ALL_BEGINNINGS if tokens else _BEGINNINGS
        return _masked(_in_whole(), text, lowered, beginnings)
    end = cut.start()
    return _masked(_in_cut(), text[:end], lowered[:end]) + cut[0]


def _triggered(lowered: str) -> bool:
    for part, triggers in _MARKED_TRIGGERS:
        if part in lowered:
            for trigger in triggers:
                if trigger in lowered:
                    return True
    if not _NAMED.search(lowered):
        return False
    for trigger in _TRIGGERS:
        if trigger in lowered:
            return True
    for part, triggers in _RARE_TRIGGERS:
        if part in lowered and any(trigger in lowered for trigger in triggers):
            return True
    return False


def _may_hold_token(lowered: str) -> bool:
    """Return whether a text, in lower case, may hold a token or a webhook."""
    if "hook" in lowered or ":aa" in lowered:
        return True
    for word in lowered.split():
        if len(word) >= _LEAST:
            for part in _LONG_WORDS.findall(word):
                if part[:3] in _TOKEN_STARTS:
                    return True
    return False


def _masked(
    forms: re.Pattern[str], text: str, lowered: str, beginnings: re.Pattern[str] = _ALL_BEGINNINGS
) -> str:
    parts: list[str] = []
    done = 0
    beginning = beginnings.search(lowered)
    while beginning:
        start = beginning.start()
        secret = forms.match(text, start)
        if secret is None:
            beginning = beginnings.search(lowered, start + 1)
            continue
        kept = secret.lastgroup
        parts += text[done:start], secret[kept] if kept else "", MASK
        done = secret.end()
        if secret["nested"] is not None:
            rest = _unquoted().match(text, _closed(text, done))
            done = rest.end() if rest else len(text)
        beginning = beginnings.search(lowered, done)
    return "".join((*parts, text[done:])) if parts else text


def _closed(text: str, start: int) -> int:
    """Return where the brackets that begin at `start`, or soon behind it, are closed.

    Returns:
        The index behind the last that follows another at once, or the text's end.
    """
    depth = 0
    for bracket in _BRACKETS.finditer(text, start):
        if bracket.lastgroup == "opening":
            depth += 1
        elif bracket.lastgroup == "closing":
            depth -= 1
            if depth == 0 and not text.startswith(("[", "(", "{"), bracket.end()):
                return bracket.end()
    return len(text)
