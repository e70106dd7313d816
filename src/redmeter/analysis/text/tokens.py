"""Tokens: the prefixes of well-known services' secrets.

Services give their tokens a prefix, so that leaked ones are found. One table serves three purposes:
which words may be tokens, where masking starts, and how much it masks.

    glsa_…  hf_…  shpat_…  PMAK-…  ya29.…  AGE-SECRET-KEY-…  dp.pt.…

A token begins where no word does, has at least 20 further characters, and one of them is a digit;
so hf_transformers stays. Beginnings that are also words need more, see SPECIAL.

Not here: those of secrets.py that are known by more than their beginning (JSON web tokens, AWS key
ids), and tokens without a beginning, such as 32 hexadecimal digits.
"""

import re
from typing import Final

from redmeter.lazy_regex import any_of, late

#: Shortest word, in characters, that may be a token.
LEAST: Final = 20

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
PREFIXES: Final = tuple(_PREFIXES.split())
#: Expressions of tokens whose beginning is a word as well, by that beginning.
SPECIAL: Final = {
    "ops_": r"ops_eyJ[\w=+/-]{20,}+",
    "A3-": r"A3-[A-Z0-9]{6}-[A-Z0-9-]{20,}+",
    "EAA": r"EAA[ACM][\w-]{40,}+",
    "fm1": r"fm1[ar]_[\w+/]{60,}+=*+",
    "fm2_": r"fm2_[\w+/]{60,}+=*+",
    "live_": r"live_[\w=-]{40,}+",
    "test_": r"test_[\w=-]{40,}+",
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
BEGINNINGS: Final = (
    any_of(sorted({prefix.lower() for prefix in (*PREFIXES, *SPECIAL)} - {"sk"}))
    + "|sk(?=[0-9a-f]{32})"
)
#: A token, or in a cut text its beginning: CUT_HERE stands for the end of one.
TOKEN: Final = rf"""
    (?<![\w.~-]) (?-i:
        (?: PREFIX ) (?=[^\s\d]{{0,200}}+\d) [\w.~+-]{{20,}}+ =*+ | {" | ".join(SPECIAL.values())}
      | (?: PREFIX | ops_eyJ | dapi | key- ) [\w.~+/-]*+ =*+ CUT_HERE )
""".replace("PREFIX", any_of(PREFIXES))

_STARTS: Final = frozenset(prefix[:3].lower() for prefix in (*PREFIXES, *SPECIAL)) | frozenset(
    f"sk{digit}" for digit in "0123456789abcdef"
)
_PARTS: Final = late(rf"[\w.~-]{{{LEAST},}}", re.ASCII)


def may_hold(lowered: str) -> bool:
    """Return whether a text, in lower case, has a word that may be a token, or a webhook."""
    if "hook" in lowered or ":aa" in lowered:
        return True
    for word in lowered.split():
        if len(word) >= LEAST:
            for part in _PARTS.findall(word):
                if part[:3] in _STARTS:
                    return True
    return False
