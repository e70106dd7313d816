"""Secrets: what becomes ***, what stays, and that no cut leaves a part of one."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redmeter.analysis.secrets import mask
from redmeter.analysis.texts import clean

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/IB\nAAKCAQ==\n-----END RSA PRIVATE KEY-----"

#: Characters of generated secrets: none of them is in the texts around.
SECRET_LETTERS = "QZ5798$!%+~^_.é点"
words = st.text(SECRET_LETTERS, min_size=6, max_size=30)
spaced = st.text(SECRET_LETTERS + " ,;'\"\\&@)}\n", min_size=6, max_size=30).map(
    lambda text: "Q" + text
)
KEYS = [
    "password", "PASSWORD", "passwd", "pwd", "token", "secret", "api_key", "api-key", "apikey",
    "access_key", "DB_PASSWORD", "x-auth-token", "clientSecret", "SECRET_KEY", "private_key",
    "password2", "password_confirmation", "cookie", "authorization",
]  # fmt: skip
keys = st.sampled_from(KEYS)
plain_forms = st.sampled_from(
    [
        "{key}={value}", "{key} = {value}", "{key}: {value}", "?{key}={value}&x=1",
        "a=1;{key}={value};b=2", "f({key}={value}, x=1)", "user[{key}]={value}&x=1",
        "({key}={value})", "{key}=>{value}",
        "redis://bob:{value}@db:6379/0", "redis://:{value}@db", "Authorization: Bearer {value}",
        "authorization: Basic {value} then", "next%3F{key}%3D{value}", "{{'{key}': ['{value}']}}",
        "Cookie: a={value}; b={value}\nthen", "Set-Cookie: a={value}; Path=/",
        "Authorization: Digest username=a, response={value}",
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("redis://bob:hunter2@db:6379/0", "redis://bob:***@db:6379/0"),
        ("redis://:hunter2@db", "redis://:***@db"),
        ("postgres://bob:p@ss:w@db/x is down", "postgres://bob:***@db/x is down"),
        ("Authorization: Bearer abc.def failed", "Authorization: Bearer *** failed"),
        ("DB_PASSWORD=hunter2 token=abc,id=7", "DB_PASSWORD=*** token=***,id=7"),
        (r'{"api-key": "a \"b\" c", "id": 7}', '{"api-key": "***", "id": 7}'),
        (r"Login(password='it\'s', id=7)", "Login(password='***', id=7)"),
        ('"{\\"token\\": \\"a b\\", \\"id\\": 7}"', '"{\\"token\\": \\"***\\", \\"id\\": 7}"'),
        ('token=abc"AKIAIOSFODNN7EXAMPLE=', 'token=***"***='),
        (f"token={PEM}= ok", "token=*** ok"),
        (repr('{"pwd": "a \\" b"}'), repr('{"pwd": "***"}')),
        ("GET /a?token=abc&x=1 HTTP/1.1", "GET /a?token=***&x=1 HTTP/1.1"),
        ("(?token=abc). Next", "(?token=***). Next"),
        ("password: abc, user: bob", "password: ***, user: bob"),
        ("Cookie: a=b; c=d\nnext", "Cookie: ***\nnext"),
        ("secret=" + PEM + " ok", "secret=*** ok"),
        (PEM + " ok", "*** ok"),
        (f"user {JWT} came", "user *** came"),
        ("id AKIAIOSFODNN7EXAMPLE used", "id *** used"),
        ("(b'authorization', b'Bearer 0123456789abcdef')", "(b'authorization', b'Bearer ***')"),
    ],
)
def test_a_secret_becomes_three_stars_and_the_rest_stays(text: str, masked: str) -> None:
    """What stands around it is kept, so that the message can still be read."""
    assert mask(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "password reset for bob", "token expired", "author: x", "secretary: y", "no secrets here",
        "Bearer token expired", "http://localhost:8080/x", "Listening at: http://0.0.0.0:8000 (7)",
        "at http://a.b:80/@user", "tokenizer=bpe", "max_tokens=100", "key=5", "the cookie is stale",
        "AKIA", "eyJ", "-----BEGIN CERTIFICATE-----\nMII", "mail bob@example.org: hi", "点击量=5",
    ],
)  # fmt: skip
def test_innocent_text_stays_as_it_is(text: str) -> None:
    """A word alone is no secret, and neither is a port."""
    assert mask(text) is text


@given(keys, plain_forms, words)
def test_no_secret_survives_without_quotes(key: str, form: str, secret: str) -> None:
    """In settings, headers, calls, query strings and URLs."""
    assert secret not in mask(form.format(key=key, value=secret))


@given(keys, spaced, st.booleans())
def test_no_secret_survives_within_quotes(key: str, secret: str, twice: bool) -> None:
    """As JSON, as JSON within JSON, and as Python writes it: spaces and quotes are part of it."""
    text = json.dumps({"a": 1, key: secret, "b": 2})
    shown = mask(json.dumps(text) if twice else text)
    assert not set(SECRET_LETTERS) - {"u", "_", "."} & set(shown.replace(key, ""))
    assert "***" in shown
    assert shown.replace("\\", "").strip('"').endswith(', "b": 2}')
    assert mask(f"f({key}={secret!r}, b=2)") in (f"f({key}='***', b=2)", f'f({key}="***", b=2)')


@given(
    st.one_of(
        st.tuples(keys, plain_forms, words).map(
            lambda t: (t[2], t[1].format(key=t[0], value=t[2]))
        ),
        st.tuples(keys, words).map(lambda t: (t[1], json.dumps({t[0]: t[1]}, ensure_ascii=False))),
        st.sampled_from([(JWT, f"with {JWT} end"), ("AKIAIOSFODNN7EXAMPLE",) * 2]),
        st.just(("MIIEow+/IB\nAAKCAQ==", PEM)),
        st.just(("abcdefghij0123456789", "by Bearer abcdefghij0123456789")),
    ),
    st.integers(0, 110),
)
def test_no_part_of_a_secret_survives_a_cut(case: tuple[str, str], before: int) -> None:
    """Wherever the cut falls, no four characters of the secret can be read."""
    secret, text = case
    cut = clean("- " * (before // 2) + text + " -" * 500, 120)
    shown = mask(cut)
    assert shown.endswith(" more)")
    if secret == JWT:
        secret = JWT[4:]
    for start in range(len(secret) - 3):
        part = secret[start : start + 4]
        assert part in ("AKIA", "***", "****") or part not in shown, (cut, shown)


PIECES = [
    "password", "token", "=", ":", " ", '"', "'", "\\", "\\\"", "&", ",", ";", ")", "]", "[", "{",
    "://", "@", "/", "?", "a", "b7", "***", "Bearer ", "bearer", "Basic ", "cookie:",
    "Set-Cookie: ",
    "authorization: ", "digest ", "eyJ", "eyJabcdefg", ".", "-", "_", JWT, "AKIA", PEM, "=>", "%3D",
    "AKIAIOSFODNN7EXAMPLE", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\n", "b'",
    "… (3 more)", "…", "点", "x=1",
]  # fmt: skip
mixtures = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(mixtures)
@example('authorization: password"AKIAIOSFODNN7EXAMPLE=>')
@example("://passwordcookie:=>password… (3 more)")
def test_masking_twice_is_masking_once(text: str) -> None:
    """Nothing that was masked makes a secret of what stands beside it."""
    once = mask(text)
    assert mask(once) == once


@given(mixtures, st.integers(32, 80))
def test_a_masked_text_can_be_cleaned_and_masked_again(text: str, limit: int) -> None:
    """The order that is asked for: clean, then mask; a second round changes nothing."""
    once = mask(clean(text, limit))
    assert mask(clean(once, 1000)) == once


@pytest.mark.parametrize(
    "piece", [*PIECES, "a:a:", "password='", "://a:", "-eyJaaaaa", "password "]
)
@pytest.mark.parametrize("around", ["token {}", "token {}… (1 more)", 'token="{}', "token: {}\\"])
def test_a_megabyte_of_hostile_text_is_masked_in_linear_time(piece: str, around: str) -> None:
    """What needs steps by the square of the length would run into the tests' time limit."""
    text = around.format(piece * (1_000_000 // len(piece)))
    assert len(mask(text)) <= len(text) * 4
