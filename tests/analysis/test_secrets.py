"""Secrets: what becomes ***, what stays, and that no cut leaves a part of one."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redmeter.analysis.text import secrets
from redmeter.analysis.text.secrets import mask
from redmeter.analysis.text.texts import clean_text

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
        ("[parameters: ('a]', {'b': [1]})]\nnext", "[parameters: ***]\nnext"),
        ("[parameters: [{'a': 1}, {'a': 2}]]", "[parameters: ***]"),
        ("x [parameters: (1,)] and what follows", "x [parameters: ***"),
        (
            "'[parameters: (1, \\'a)]\\\\nb\\')]\\n(Background on this error at: h)'",
            "'[parameters: ***]\\n(Background on this error at: h)'",
        ),
        ("[parameters: ", "[parameters: "),
        ("secret=" + PEM + " ok", "secret=*** ok"),
        (PEM + " ok", "*** ok"),
        (f"user {JWT} came", "user *** came"),
        ("id AKIAIOSFODNN7EXAMPLE used", "id *** used"),
        ("id ASIAIOSFODNN7EXAMPLE used", "id *** used"),
        ("(b'authorization', b'Bearer 0123456789abcdef')", "(b'authorization', b'***')"),
        ("Authorization: SharedKey a:b c", "Authorization: SharedKey ***"),
        ("Authorization: Own a:b c\nnext", "Authorization: ***\nnext"),
        ("HTTP_AUTHORIZATION=Hawk id=1, mac=b", "HTTP_AUTHORIZATION=Hawk ***"),
        (r"b'Authorization: Basic X\r\nCookie: s=S; a=b\r\nA: b'",
         r"b'Authorization: Basic ***\r\nCookie: ***\r\nA: b'"),
        (r"Authorization: NTLM CORP\nancy:x", "Authorization: NTLM ***"),
        (r"Cookie: a=b; c=d\nAccept: e", r"Cookie: ***\nAccept: e"),
        ("curl -H 'Cookie: a=b; c=d' http://x", "curl -H 'Cookie: ***' http://x"),
        ("HTTP_COOKIE=a=1; b=2", "HTTP_COOKIE=***"),
        ("HTTP_COOKIE=a; b=2", "HTTP_COOKIE=***"),
        ("cookie=a=1; b=2", "cookie=***"),
        ("Authorization: Basic a, Own b", "Authorization: ***"),
        ("[(b'authorization', b'Bearer S'), (b'cookie', b'a=b'), (b'a', b'b')]",
         "[(b'authorization', b'***'), (b'cookie', b'***'), (b'a', b'b')]"),
        ('[["x-api-key", "S1"], ["a", "b"]]', '[["x-api-key", "***"], ["a", "b"]]'),
        ("('DB_PASSWORD', 'S', 1)", "('DB_PASSWORD', '***', 1)"),
        ('{"authorization": ["Bearer S"], "id": 7}', '{"authorization": ***, "id": 7}'),
        ("f(secret=['A]', ['B', 'it\\'s'], {}], x=1)", "f(secret=***, x=1)"),
        ("{'password': {'v': 'S'}, 'x': 1}", "{'password': ***, 'x': 1}"),
        (r'"{\"token\": [\"a]\", \"b\"], \"x\": 1}"', r'"{\"token\": ***, \"x\": 1}"'),
        ("KEYS: secret_keys=[a, don't], b", "KEYS: secret_keys=***, b"),
        ("token=[a](b) c", "token=*** c"),
        ("passwords: [a, b", "passwords: ***"),
        ("password=SecretStr('a b'), x=1", "password=***, x=1"),
        ("SECRET_KEY_FALLBACKS=['S'] x", "SECRET_KEY_FALLBACKS=*** x"),
        ("secret_key_base: S x", "secret_key_base: *** x"),
        ("PASSWORD_HASH=S passwordHash: S", "PASSWORD_HASH=*** passwordHash: ***"),
        ("DB_PASS=S user_pass: S pass=S", "DB_PASS=*** user_pass: *** pass=***"),
        ("credentials=S credential: S", "credentials=*** credential: ***"),
        ("?X-Amz-Signature=S&a=1&sig=S%3D", "?X-Amz-Signature=***&a=1&sig=***"),
        ("X-Hub-Signature-256: sha256=S", "X-Hub-Signature-256: ***"),
        ('{"signature": "S", "a": 1}', '{"signature": "***", "a": 1}'),
        ("sessionid=S; csrftoken=S _csrf: S", "sessionid=***; csrftoken=*** _csrf: ***"),
        ("otp=123456", "otp=***"),
        ("?code=4/0AX4XfWhabcdefgh&a=1", "?code=***&a=1"),
        ("curl -u bob:S x --user=bob:S", "curl -u bob:*** x --user=bob:***"),
        ("curl -u 'bob:a b' x", "curl -u 'bob:***' x"),
        ("['x', '-u', 'bob:a b', '--token', 'S']", "['x', '-u', 'bob:***', '--token', '***']"),
        ("x --db-password S --token 'a b' y", "x --db-password *** --token '***' y"),
        ("Key (email, token)=(a@b, S) exists", "Key (email, token)=*** exists"),
        ("ALTER USER bob WITH PASSWORD 'S';", "ALTER USER bob WITH PASSWORD '***';"),
        ("IDENTIFIED BY 'a b' x", "IDENTIFIED BY '***' x"),
        ("https://0123456789abcdef@o1.example.org/5", "https://***@o1.example.org/5"),
        ("https://0123456789abcdef:x@o1.example.org/5", "https://***@o1.example.org/5"),
        ("\u0130\u0130 token=S x", "\u0130\u0130 token=*** x"),
        ('{"name": "DB_PASSWORD", "value": "S", "x": 1}',
         '{"name": "DB_PASSWORD", "value": "***", "x": 1}'),
        ("[{'name':'API_TOKEN','value':'a b'},1]", "[{'name':'API_TOKEN','value':'***'},1]"),
        ("name=password&value=S&x=1", "name=password&value=***&x=1"),
        ('<input name="password" value="S">', '<input name="password" value="***">'),
        ('; name="password"\n\nS\n--b', '; name="password"\n\n***\n--b'),
        (r'; name="token"\r\n\r\nS\r\n--b', r'; name="token"\r\n\r\n***\r\n--b'),
        ("password[]=S&x=1 token[0]=S", "password[]=***&x=1 token[0]=***"),
        ("user[password][]=S&x=1", "user[password][]=***&x=1"),
        ("password%5B%5D=S&a=1", "password%5B%5D=***&a=1"),
        ("user%5Btoken%5D%5B%5D=S&a=1", "user%5Btoken%5D%5B%5D=***&a=1"),
        ("%22token%22%3A%22a+b%22%2C%22id%22%3A7", "%22token%22%3A%22***%22%2C%22id%22%3A7"),
        ("password%3AS x", "password%3A*** x"),
        ("&quot;password&quot;: &quot;a b&quot;, &quot;id&quot;: 7",
         "&quot;password&quot;: &quot;***&quot;, &quot;id&quot;: 7"),
        ("&#34;token&#34;:&#34;S&#34;}", "&#34;token&#34;:&#34;***&#34;}"),
        (r"a\u003d1 password\u003dS x", r"a\u003d1 password\u003d*** x"),
        (r"\u0022pwd\u0022:\u0022a b\u0022,", r"\u0022pwd\u0022:\u0022***\u0022,"),
        ('7,"{""password"": ""a b"", ""id"": 7}"', '7,"{""password"": ""***"", ""id"": 7}"'),
        ("password_old=S password_new=S passwordAgain: S",
         "password_old=*** password_new=*** passwordAgain: ***"),
        ("password_repeat=S password_1=S password-2=S",
         "password_repeat=*** password_1=*** password-2=***"),
        ("pass_word=S pass-phrase: S secret_id=S", "pass_word=*** pass-phrase: *** secret_id=***"),
        ('{"SecretString": "S", "a": 1}', '{"SecretString": "***", "a": 1}'),
        ("?client_assertion_type=urn:a&client_assertion=S&a=1",
         "?client_assertion_type=urn:a&client_assertion=***&a=1"),
        ("x-functions-key: S\nOcp-Apim-Subscription-Key: S",
         "x-functions-key: ***\nOcp-Apim-Subscription-Key: ***"),
        ("CONFIG SET requirepass S", "CONFIG SET requirepass ***"),
        ('requirepass "a b"\nmasterauth S', 'requirepass "***"\nmasterauth ***'),
        ("['AUTH', 'default', 'a b'] x", "['AUTH', 'default', '***'] x"),
        ("(b'AUTH', b'S')", "(b'AUTH', b'***')"),
        ("HELLO 3 AUTH default hunter2 failed", "HELLO 3 AUTH default *** failed"),
        ("AUTH hunter2\nok", "AUTH ***\nok"),
        ("ACL SETUSER bob on >S ~*", "ACL SETUSER bob on >*** ~*"),
        ("['SETUSER', 'bob', 'on', '>S', '~*']", "['SETUSER', 'bob', 'on', '>***', '~*']"),
        ("password:\n  S\nnext: 1", "password:\n  ***\nnext: 1"),
        ("token: |\n  S\nnext: 1", "token: |\n  ***\nnext: 1"),
        ("SECRET_KEY =\n    'a b'", "SECRET_KEY =\n    '***'"),
        ("password='it''s S', x=1", "password='***', x=1"),
        ("API_KEY_STRIPE=S password_prod=S", "API_KEY_STRIPE=*** password_prod=***"),
        ("TOKEN_GITHUB: S\nDB_PASSWORD_A_2='a b'", "TOKEN_GITHUB: ***\nDB_PASSWORD_A_2='***'"),
        ("stripe_key=a1b2c3d4e5f6a7b8 x", "stripe_key=*** x"),
        ('{"licenseKey": "a1b2c3d4e5f6a7b8"}', '{"licenseKey": "***"}'),
        ("https://hooks.slack.com/services/T1/B2/S is gone",
         "https://hooks.slack.com/services/*** is gone"),
        ("https://discord.com/api/webhooks/12/S?wait=1",
         "https://discord.com/api/webhooks/***?wait=1"),
        ("https://a.webhook.office.com/webhookb2/S@S/IncomingWebhook/S",
         "https://a.webhook.office.com/webhookb2/***"),
        ("bot 123456789:AA" + "a1B2-" * 7, "bot 123456789:***"),
        ("<dbPassword>S</dbPassword><a>b</a>", "<dbPassword>***</dbPassword><a>b</a>"),
        ("<token>\n  S\n</token>", "<token>***</token>"),
        ('var apiToken string = "S"', 'var apiToken string = "***"'),
        ('password: str = "S"', 'password: str = "***"'),
        ("token := `a b`, x", "token := `***`, x"),
        ('token .= "S"; TOKEN ::= "S"', 'token .= "***"; TOKEN ::= "***"'),
        ("TOKEN ?= S x", "TOKEN ?= *** x"),
        ("apiToken,a1b2c3d4e5f6a7b8,x", "apiToken,***"),
    ],
)  # fmt: skip
def test_a_secret_becomes_three_stars_and_the_rest_stays(text: str, masked: str) -> None:
    """What stands around it is kept, so that the message can still be read."""
    assert mask(text) == masked


#: 24 characters, with digits.
LONG = "w3Rt" * 6
BASE64_OF_JSON = "eyJrIjoi" + "QmFzZTY0IG9m" * 5
TOKENS_OF_LETTERS = ["hf_" + "aB" * 17, "api_org_" + "aB" * 17]
TOKENS_OF_VENDORS = [
    "ABIA" + "Q2W3" * 4, "ACCA" + "Q2W3" * 4, "ABSK" + "q2W3" * 28 + "==", "sqp_" + "a1b2" * 10,
    "squ_" + "a1b2" * 10, "GR1348941" + "q2W3" * 5, "bedrock-api-key-" + "q2W3" * 8,
    "ico-" + "q2W3" * 8, "cmVmd" + "q2W3" * 14 + "abc",
]  # fmt: skip


@pytest.mark.parametrize(
    "form",
    [
        "app.secret.key={}", "shop.api.key: {}", "encryption.key = {}", '"user_auth": "{}"',
        "//registry.example.org/:_auth={}", "npm_auth: {}", 'userAuth = "{}"', "creds = {}",
        'DB_CREDS="{}"', "curl --user kevin:'{}' -i", "laravel_session={} ok",
        "token: |\n  {}=", "token: >-\n  https://{}", "at {} end",
    ],
)  # fmt: skip
def test_settings_of_programs_do_not_show_their_secrets(form: str) -> None:
    """Dotted names, auth, creds, quoted logins, session cookies, blocks of YAML, tokens alone."""
    values = [LONG] if form != "at {} end" else [*TOKENS_OF_LETTERS, *TOKENS_OF_VENDORS]
    values += [BASE64_OF_JSON] if form == "at {} end" else []
    for value in values:
        shown = mask(form.format(value))
        assert value not in shown, shown
        assert "***" in shown
        assert mask(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "record.key=order-1", "api.key: not found", "pam_unix(sshd:auth): authentication failure",
        "auth: ok", "sshd-auth: 1 of 5", "creds=none", "no creds: falling back to anonymous",
        "user_session=12", "ico-arrow-left-2x-large-blue", "author=somebody12345678901234",
    ],
)  # fmt: skip
def test_names_alike_are_no_secrets(text: str) -> None:
    """Without 16 characters and a digit, or with another meaning."""
    assert mask(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "password reset for bob", "token expired", "author: x", "secretary: y", "no secrets here",
        "Bearer token expired", "http://localhost:8080/x", "Listening at: http://0.0.0.0:8000 (7)",
        "at http://a.b:80/@user", "tokenizer=bpe", "max_tokens=100", "key=5", "the cookie is stale",
        "pass 3 of 5: all passed", "pass: 3 of 5", "signature verified", "session closed",
        "sig=11", "sig=SIGTERM", "signature=(self, x)", "signature: ok", "csrf=True", "bypass=a",
        "compass: north", "credentials: none", "allow-credentials: true", "session_id=17",
        "tokens: 1,234", '{"total_tokens": 12}', "secrets: 2 found", "cookies: 5", "code=200",
        "session=<Session at 1>", "use --password to set one", "--token is gone",
        "required: --password, --token",
        "docker run --user 1000:1000 x", "python -u worker.py: 5", "('email', 'password')",
        "['password', 'email']", "ssh://bob@host/x", "design: 5", "hotplug: 7", "sk-learn", "ghp_x",
        "disk-0123456789abcdef0123456789abcdef", "npm_config_cache", "desktop-xoxo", "AIzawa",
        "AUTH failed", "AUTH is required: no 12345", "401 Unauthorized: AUTH", "auth 1234567 ok",
        "requirepass is not set", "secrets:\n  db: x", "tokens:\n  - a", "Password:\nlogin failed",
        "setUser(a) -> ok", "assertion: failed", "AssertionError: x", "functions key",
        "token, value", '"password","say ""a"" b",x',
        "token=null", "password=None, x=1", '{"token": null, "x": 1}', "(using password: YES)",
        "password: undefined", "token_type=bearer", "password_reset=x", "token_count: 12",
        "api_key_id=x", "secret_name: x", "token_expires_at=7", "password_1st_try", "a_key=short",
        "cache_key=user:1234567890123456", "primary_key: 1234567890123456", "the_key: of the house",
        "hf_transformers_library_loader", "figd_x", "sl.py", "test_a_long_name_of_a_test_in_a_file",
        "key-value", "SKU", "https://discord.com/api/webhooks", "<token> is expected", "<token>",
        "AKIA", "eyJ", "-----BEGIN CERTIFICATE-----\nMII", "mail bob@example.org: hi", "点击量=5",
    ],
)  # fmt: skip
def test_innocent_text_stays_as_it_is(text: str) -> None:
    """A word alone is no secret, and neither is a port."""
    assert mask(text) is text


#: Tokens that are known by their looks.
TOKENS = [
    *(f"gh{kind}_" + "a1B2" * 9 for kind in "pousr"), "github_pat_" + "a1B2_" * 16 + "cd",
    "glpat-" + "a1B2-" * 4, "xoxb-123456789012-123456789012-" + "a1B2" * 6, "xoxp-" + "12-a" * 10,
    "sk_live_" + "a1B2" * 6, "sk_test_" + "a1B2" * 6, "rk_live_" + "a1B2" * 6, "sk-" + "a1B2" * 12,
    "sk-proj-" + "a1B2_" * 12, "sk-ant-" + "a1B2_" * 12, "AIza" + "a1B2_" * 7, "npm_" + "a1B2" * 9,
    "pypi-" + "a1B2_" * 20, "SG." + "a1" * 11 + "." + "a1B2_-x" * 6 + "y", "hvs." + "a1B2" * 6,
    "dop_v1_" + "a1b2" * 16, "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", JWT,
]  # fmt: skip


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_known_by_its_looks(token: str) -> None:
    """Wherever it stands; and what a cut leaves of it as well."""
    for form in ("{}", "with {} end", "/a/{}/b", "f('{}')", "x={}", "https://{}@host/"):
        assert mask(form.format(token)) == form.format("***")
    assert mask(token[:-1] + "… (1 more)") == "***… (1 more)"
    assert mask(f"at {token[:12]}… (1 more)") == "at ***… (1 more)"


@pytest.mark.parametrize("form", ["{}", "with {} end", "/a/{}/b", "f('{}')", "https://{}@host/"])
def test_tokens_of_services_are_known_by_their_beginnings(form: str) -> None:
    """All of the table; a beginning alone, or before a word without a digit, is none."""
    found = [*(prefix + "a1b2" * 6 for prefix in secrets.TOKEN_PREFIXES), "A3-" + "A1B2C3-" * 5]
    found += ["EAA" + "A" + "a1B2" * 12, "live_" + "a1B2" * 11, "API-" + "A1" * 13]
    found += ["sl." + "a1B2" * 30, "dapi" + "a1b2" * 8, "key-" + "a1b2" * 8, "SK" + "a1b2" * 8]
    assert [token for token in found if mask(form.format(token)) != form.format("***")] == []
    for prefix in secrets.TOKEN_PREFIXES:
        assert mask(f"at {prefix}a1… (1 more)") == "at ***… (1 more)"
        for text in (prefix, prefix + "a_word_without_any_digit"):
            assert mask(text) == text


#: Forms whose values hold spaces and quotes as they like.
whole_forms = st.sampled_from(
    [
        "Authorization: SharedKey a:{value}\nx", "proxy-authorization: Own {value}\nx",
        "HTTP_COOKIE=a=1; b={value}", "Cookie: a={value}; b={value}", "cookies: a=1; b={value}",
    ]
)  # fmt: skip


@given(whole_forms, st.text(SECRET_LETTERS + " ,;'\"&@)}", min_size=6, max_size=30))
def test_a_header_of_many_words_is_masked_to_the_end_of_its_line(form: str, secret: str) -> None:
    """A scheme that is not known may have any number of parts; a jar, of cookies."""
    shown = mask(form.format(value=secret))
    assert not set("QZ5798!%+~^é点") & set(shown)


nested = st.recursive(
    spaced, lambda inner: st.lists(inner, min_size=1) | st.dictionaries(words, inner, min_size=1)
).filter(lambda value: not isinstance(value, str))


dumped: list[Callable[[object], str]] = [json.dumps, lambda value: json.dumps(json.dumps(value))]


@pytest.mark.slow
@given(keys, nested, st.sampled_from([repr, *dumped]))
def test_no_secret_survives_within_brackets(
    key: str, value: object, dumps: Callable[[object], str]
) -> None:
    """Lists and objects in each other, with strings that hold brackets and quotes."""
    shown = mask(dumps({"a": 1, key: value, "b": 2}))
    assert not set("QZ5798$!%+~^é点") & set(shown.replace(key, ""))
    assert shown.endswith(dumps({"b": 2}).partition("{")[2])


@given(st.sampled_from([("(", ")"), ("[", "]")]), keys, spaced, st.sampled_from(["", "b"]))
def test_no_secret_survives_in_pairs(
    around: tuple[str, str], key: str, secret: str, prefix: str
) -> None:
    """As header lists have them."""
    left, right = around
    secret = "Q5" + secret.replace("é", "e").replace("点", "Q")
    value = repr(secret.encode() if prefix else secret)
    shown = mask(f"[{left}{prefix}'{key}', {value}{right}, {left}'a', 'b'{right}]")
    assert not set("QZ5798$!%+~^") & set(shown.replace(key, ""))
    assert shown.endswith(f"{right}, {left}'a', 'b'{right}]")


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
    cut = clean_text("- " * (before // 2) + text + " -" * 500, 120)
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
    "… (3 more)", "…", "点", "x=1", "\u0130", ", ", "('", "{", "}", "(", "tokens", "pass", "sig",
    "signature", "otp", "sessionid", "session=", "code=", "csrf", "credentials", "--", "--token ",
    "-u ", "--user", "bob:", "HTTP_COOKIE=", "cookie=a=", "Authorization: ", "SharedKey ", "Hawk ",
    "\\r\\n", "\\n", "\r\n", "ghp_", "ghp_" + "a1B2" * 9, "sk-", "sk-" + "a1B2" * 12, "hvs.",
    "xoxb-", "pypi-", "github_pat_", "SG.", "a1B2a1B2a1B2a1B2", "IDENTIFIED BY ", ")=(", "17",
    "auth", "_auth", "Auth=", "creds", ".key=",
    "true", "_hash", "_base", "s", "\\\\\"", "b'", "SecretStr(",
    "[]", "%5B", "%5D", "%3A", "%22", "&quot;", "&#34;", "\\u003d", "\\u0022", '""', "''",
    "hf_", "shp" + "at_", "a1B2" * 6, "glrt-", "ya29.", "AGE-SECRET-KEY-", "dapi",
    "0123456789abcdef", "key-", "SK", "EAA", "sl.", "12345:", "AA", "_key", "Key=",
    "https://hooks.slack.com/services/",
    "https://discord.com/api/webhooks/", ".webhook.office.com/webhookb2/", "/T1/B2", "<", ">", "</",
    "<token>", "</token>", "_STRIPE", "_prod", "_type", "null", "None", " string", ": str", " += ",
    " ?= ", "::=", "`", "T,",
    "value", "&value=", '"value":', "_old", "_1", "requirepass ", "masterauth", "AUTH ", "'AUTH', ",
    "SETUSER bob ", " >", "|\n ", "\n  ", "client_assertion", "subscription-key", "functions_key",
    "[parameters: ", ")]", "\n(Background on ",
]  # fmt: skip
mixtures = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(mixtures)
@example('authorization: password"AKIAIOSFODNN7EXAMPLE=>')
@example("://passwordcookie:=>password… (3 more)")
@example("Cookie: (a) b")
@example("-u " + PEM + ":a")
@example("AKIAIOSFODNN7EXAMPLE--token =")
def test_masking_twice_is_masking_once(text: str) -> None:
    """Nothing that was masked makes a secret of what stands next to it."""
    once = mask(text)
    assert mask(once) == once


@given(mixtures)
def test_each_form_begins_with_what_is_looked_for(text: str) -> None:
    """Looking everywhere finds no more than looking where a form may begin."""
    for forms in (secrets._in_whole(), secrets._in_cut()):
        lowered = text.replace("\u0130", "i").lower()
        everywhere = re.compile(r"(?=.)", re.DOTALL)
        found = secrets._masked(forms, text, text, everywhere)
        assert found == secrets._masked(forms, text, lowered)
        if forms is secrets._in_whole() and not secrets._may_hold_token(lowered):
            assert found == secrets._masked(forms, text, lowered, secrets._BEGINNINGS)


@given(mixtures)
def test_each_form_has_a_trigger(text: str) -> None:
    """A text that is let pass at a glance holds nothing that would have been masked."""
    if not secrets._triggered(text.lower()) and not secrets._may_hold_token(text.lower()):
        assert (
            secrets._masked(secrets._in_whole(), text, text.replace("\u0130", "i").lower()) == text
        )


@given(mixtures, st.integers(32, 80))
@example("'AUTH', 'AUTH', 'AUTH', 'AUTH', ", 32)
@example("password" * 3 + "<token>password += <token>password", 55)
def test_a_masked_text_can_be_cleaned_and_masked_again(text: str, limit: int) -> None:
    """The order that is asked for: clean, then mask; a second round changes nothing."""
    once = mask(clean_text(text, limit))
    assert mask(clean_text(once, 1000)) == once


LONG_PIECES = [
    *PIECES, "a:a:", "password='", "://a:", "-eyJaaaaa", "password ",
    "token=[", "token=[]", "token=['", "token=[\\\"", "('token", "('token', '", "['", "[(", "--a",
    "--token-", "-u a", "-u a:", "-u '", "Cookie: ", "\\n-", "\\na", "cookie=a", "ghp_a", "-sk-a",
    "sk-a.", "SG.a", "pypi-a_", "://a1", "code=a", "session=1", "X-Signature: a", "tokens=1.",
    "password[", "password[]", "password%5B%5D", "password&quot;:&quot;", "AUTH a ", "password=''",
    "'AUTH', '", "'AUTH', 'a', '", "setuser ", "setuser >", "setuser '", "password:\n ", "''a",
    "password: |\n", "password=" + 3 * "'", 'password=""a', "password&value=", "password%3A%22",
    "password\\u0022:\\u0022", "&#34;token&#34;:",
    "[parameters: ", ")]", "[parameters: ]",
    "sig=", "---", "--a=", "password 'a", "authorization=Hawk ", "\\\\'",
]  # fmt: skip
#: A text that is cut, or opened and never closed.
CUT = ("token {}… (1 more)", 'token="{}', "token: {}\\")


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", LONG_PIECES)
def test_a_long_hostile_text_is_masked_in_linear_time(piece: str) -> None:
    """What needs steps by the square of the length would run into the tests' time limit."""
    text = "token " + piece * (100_000 // len(piece))
    assert len(mask(text)) <= len(text) * 4


@pytest.mark.nightly
@pytest.mark.timeout(240)
@pytest.mark.parametrize("around", CUT)
def test_a_long_hostile_text_that_is_cut_is_masked_in_linear_time(around: str) -> None:
    """All of them one after the other, within the limit of one test."""
    for piece in LONG_PIECES:
        text = around.format(piece * (100_000 // len(piece)))
        assert len(mask(text)) <= len(text) * 4, piece
