"""URLs: where the store is, and never a word of the password."""

import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from hypothesis import example, given, settings
from hypothesis import strategies as st
from redis.connection import URL_QUERY_ARGUMENT_PARSERS

from redmeter.errors import InvalidSetting, StoreUnavailable
from redmeter.store import embedded, open
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.urls import advice, parse_target
from support.examples import scaled

#: What means something in a URL, or looks as if it did.
MARKS = [*":/?#[]@!$&'()*+,;=%\\\"<>{}|^`~ -._℀", "://", "%41", "..", "=x&", "redis://", "\t", "é"]
#: Pieces of passwords that no message of ours contains: a word, another script, and two that
#: could be ports, databases or hosts.
SECRETS = ["qzxv", "жщъ", "7731", "90417"]
#: Passwords with at least one of them.
secrets = st.tuples(
    st.lists(st.sampled_from(MARKS + SECRETS), max_size=5),
    st.sampled_from(SECRETS),
    st.lists(st.sampled_from(MARKS + SECRETS), max_size=5),
).map(lambda parts: "".join(parts[0]) + parts[1] + "".join(parts[2]))
#: Passwords of any characters.
passwords = st.lists(
    st.sampled_from(MARKS) | st.characters(exclude_categories=["Cs"]), min_size=1
).map("".join)

#: Forms of URL with a place for a password, right and wrong ones.
FORMS = [
    *("redis://:{}@host:6379/0", "redis://user:{}@host", "rediss://user:{}@h.example:7/2?db=3"),
    *("unix://:{}@/run/redis.sock", "unix://user:{}@/run/redis.sock?db=1", "redis://{}@host/0"),
    *("redis://user:{}@host:port/0", "redis://user:{}@host/x", "redis://u:{}@host?db=x", "{}@host"),
    *("redis://u:{}@host?nosuch=1", "redis://u:{}@host?protocol=9", "redis+cluster://u:{}@host"),
    *("redis+cluster://u:{}@host:1,other:2", "rediss+cluster://u:{}@h,i/1?db=2"),
    *("redis+sentinel://u:{}@host/0", "valkey://u:{}@host", "http://u:{}@host", "redis:/u:{}@host"),
    *("redis+cluster://h:1,u:{}@i:2", "redis+sentinel://h:1,u:{}@i:2/a"),
    *("redis+sentinel://u:{}@h,i/a", "redis+sentinel://h/a?sentinel_password={}&x=1"),
    *("redis://u:{}@host:99999", "redis://u:{}@[::1", "unix://u:{}@host/run/x", "unix://u:{}@"),
    *("redis//u:{}@host", ":{}@host:6379", "redis://u:{}@host:0", "redis://host?password={}&x=1"),
]  # fmt: skip


@settings(max_examples=scaled(200))
@given(st.sampled_from(FORMS), secrets, st.booleans())
@example("redis://user:{}@host", "7731#qzxv", False)
@example("redis://user:{}@host", "7731?qzxv=жщъ", False)
@example("unix://user:{}@/run/redis.sock", "7731/qzxv", False)
@example("unix://user:{}@/run/redis.sock", "x@/qzxv", False)
@example("{}@host", "qzxv://x", False)
@example("redis://host?password={}&x=1", "x&qzxv=1", False)
@example("redis+sentinel://h/a?sentinel_password={}&x=1", "&qzxv", False)
@example("redis://user:{}@host", "qzxv[7731]", False)
@example("redis://user:{}@host", "qzxv℀7731", False)
def test_no_piece_of_a_password_is_ever_shown(form: str, secret: str, escaped: bool) -> None:
    """In a location, a repr, a message or a traceback; escaped as it should be, or not at all."""
    try:
        target = parse_target(form.format(quote(secret, safe="") if escaped else secret))
    except InvalidSetting as error:
        texts = [repr(error), repr(vars(error)), *traceback.format_exception(error)]
    else:
        texts = [repr(target), target.location, ServerLink(lambda: None, target.location).location]
    assert [text for text in texts for piece in SECRETS if piece in text] == []


@given(passwords, st.sampled_from(["redis", "rediss", "unix", "REDIS"]))
def test_a_percent_encoded_password_reaches_the_client_as_it_was(
    password: str, scheme: str
) -> None:
    """Whatever characters it has."""
    place = "/run/redis.sock" if scheme == "unix" else "h:7/2"
    target = parse_target(f"{scheme}://us%3Aer:{quote(password, safe='')}@{place}")
    assert target.options["password"] == password
    assert target.options["username"] == "us:er"
    connection: Any = redis.ConnectionPool(**target.options).make_connection()
    assert connection.password == password


@pytest.mark.parametrize(
    ("url", "location", "options"),
    [
        ("redis://", "redis://localhost:6379/0", {}),
        ("redis://h", "redis://h:6379/0", {"host": "h"}),
        ("redis://h:7", "redis://h:7/0", {"host": "h", "port": 7}),
        ("redis://h:7/3", "redis://h:7/3", {"host": "h", "port": 7, "db": 3}),
        ("redis://h/3?db=4", "redis://h:6379/4", {"host": "h", "db": 4}),
        ("redis://h/", "redis://h:6379/0", {"host": "h"}),
        ("redis://[::1]:7/", "redis://[::1]:7/0", {"host": "::1", "port": 7}),
        ("REDIS://h", "redis://h:6379/0", {"host": "h"}),
        (
            "redis://u:p@h?socket_timeout=0.5&client_name=web%401&decode_responses=yes&encoding=x",
            "redis://h:6379/0",
            {"host": "h", "username": "u", "password": "p", "socket_timeout": 0.5}
            | {"client_name": "web@1"},
        ),
        ("redis://h?retry_on_timeout=1&encoding_errors=x", "redis://h:6379/0", {"host": "h"}),
        ("unix:///run/r.sock", "unix:///run/r.sock?db=0", {"path": "/run/r.sock"}),
        ("unix:///run/a%20b?db=2", "unix:///run/a b?db=2", {"path": "/run/a b", "db": 2}),
        ("unix:///run/user@7/r", "unix:///run/user@7/r?db=0", {"path": "/run/user@7/r"}),
        (
            "unix://u:p@/run/r.sock",
            "unix:///run/r.sock?db=0",
            {"path": "/run/r.sock", "username": "u", "password": "p"},
        ),
    ],
)
def test_a_servers_url_says_where_and_how(url: str, location: str, options: dict[str, Any]) -> None:
    """The client's options, and a location for messages without user and password."""
    target = parse_target(url)
    assert (target.kind, target.location, target.path) == ("server", location, None)
    found = {k: v for k, v in target.options.items() if k != "connection_class"}
    assert found == options
    redis.ConnectionPool(**target.options).make_connection()  # each is one that connections know


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("rediss://h", redis.SSLConnection),
        ("rediss://h?ssl_cert_reqs=none&ssl_check_hostname=no", redis.SSLConnection),
        ("unix:///run/r", redis.UnixDomainSocketConnection),
        ("redis://h", redis.Connection),
    ],
)
def test_the_scheme_chooses_the_kind_of_connection(url: str, kind: type) -> None:
    """TLS, a socket file, or plain TCP."""
    pool = redis.ConnectionPool(**parse_target(url).options)
    assert type(pool.make_connection()) is kind


@pytest.mark.parametrize(
    ("url", "location", "nodes", "options"),
    [
        (
            "redis+sentinel://h/figures",
            "redis+sentinel://h:26379/figures/0",
            [("h", 26379)],
            {},
        ),
        (
            "REDISS+Sentinel://a.b:1,[::1]:2,c_d-e/fig%2Fures/3?ssl_cert_reqs=none",
            "rediss+sentinel://a.b:1,[::1]:2,c_d-e:26379/fig%2Fures/3",
            [("a.b", 1), ("::1", 2), ("c_d-e", 26379)],
            {"db": 3, "ssl_cert_reqs": "none"},
        ),
        (
            "redis+sentinel://h/0?socket_timeout=0.5&sentinel_username=x",
            "redis+sentinel://h:26379/0/0",
            [("h", 26379)],
            {"socket_timeout": 0.5},
        ),
    ],
)
def test_a_sentinels_url_says_whom_to_ask_for_whom(
    url: str, location: str, nodes: list[tuple[str, int]], options: dict[str, Any]
) -> None:
    """The sentinels, what they call the master, and what is known of the master itself."""
    target = parse_target(url)
    assert (target.kind, target.location) == ("sentinel", location)
    assert list(target.nodes) == nodes
    found = {k: v for k, v in target.options.items() if k != "connection_class"}
    assert found == options
    kind = target.options.get("connection_class", redis.Connection)
    assert kind is (redis.SSLConnection if "rediss" in location else redis.Connection)
    redis.ConnectionPool(**target.options).make_connection()


@given(passwords, passwords)
def test_passwords_reach_the_master_and_the_sentinels_as_they_were(own: str, theirs: str) -> None:
    """Each its own."""
    end = f"figures/2?sentinel_password={quote(theirs, safe='')}&sentinel_username=w%2Bho"
    target = parse_target(f"redis+sentinel://us%3Aer:{quote(own, safe='')}@h:7,i:8/{end}")
    assert target.of_sentinels == {"username": "w+ho", "password": theirs}
    assert (target.options["username"], target.options["password"]) == ("us:er", own)


def test_off_is_no_store() -> None:
    """Neither a server nor a path."""
    assert (parse_target("off").kind, parse_target("off").path, parse_target("off").options) == (
        "off",
        None,
        {},
    )
    assert open("off") is None


def test_an_embedded_url_names_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute, relative, below the home, escaped; without one, the default; nothing is made."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for url, path in [
        ("embedded:///var/lib/m", Path("/var/lib/m")),
        ("embedded://data/m", Path("data/m")),
        ("embedded://~/m", tmp_path / "m"),
        ("embedded://a%20b%3F", Path("a b?")),
        ("EMBEDDED:///a", Path("/a")),
        ("embedded://", embedded.default_path()),
        ("embedded", embedded.default_path()),
        ("", embedded.default_path()),
    ]:
        target = parse_target(url)
        assert (target.kind, target.path, target.options) == ("embedded", path, {})
        assert target.location == f"embedded://{path}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("urls", "told"),
    [
        ("embedded://~no-such-user/m", "no such user"),
        (
            "redis-cluster://h",
            r"unknown scheme \(redis-cluster\); use redis://HOST:PORT/DB, rediss",
        ),
        ("redis+cluster://h/1 rediss+cluster://h:1,i:2/3", "a cluster has no databases"),
        ("redis+cluster://h:x redis+cluster:// redis+cluster://h,i:0", "cannot be read"),
        (
            "redis+sentinel://h rediss+sentinel://h:1,i:2/ redis+sentinel://h//1",
            "lacks the service name",
        ),
        ("redis+sentinel://h/a/x redis+sentinel://h/a/1/2", "the database, a number"),
        ("redis+sentinel://h,/a redis+sentinel:///a redis+sentinel://h:0/a", "cannot be read"),
        ("redis+sentinel://h:99999/a redis+sentinel://h,i:x/a redis+sentinel://[::1/a", "as %XX"),
        ("redis+sentinel://h/a#b redis+sentinel://h/a?db=x redis+sentinel://h/a@b", "as %XX"),
        (
            "redis+cluster://h:7000,u:pw@i rediss+sentinel://h,u:pw@i/a",
            "one login precedes all",
        ),
        ("redis+sentinel://h/a?sentinel_user=x", "has an unknown option: 'sentinel_user'; use"),
        ("valkey://h HTTPS://h", r"unknown scheme \((valkey|https)\); use"),
        ("localhost:6379 redis:h redis:/h x://h OFF offf ://h embedded:/a", "unknown scheme; use"),
        ("redis://h:x redis://h:99999 redis://h:-1 redis://h:0", "cannot be read: check port"),
        ("redis://[::1 redis://h?db=x rediss://h?socket_timeout=soon", "database and options"),
        ("redis://h?protocol=9 redis://h?max_connections=0", "database and options"),
        ("redis://h#a redis://h?client_name=a@b", "special characters of the password as %XX"),
        ("redis://h/x redis://h/1/2 redis://h/-1 redis://h/1.0", "the database, a number"),
        ("redis://h/² redis://h/１ redis://h/%31", "the database, a number"),
        ("unix:// unix:/// unix://run/r.sock unix://h:1/run/r.sock", "unix:///PATH"),
    ],
)
def test_a_url_that_cannot_be_used_is_told_what_can(urls: str, told: str) -> None:
    """What is wrong with it, and the forms that there are."""
    for url in urls.split():
        with pytest.raises(InvalidSetting, match=told) as caught:
            parse_target(url)
        assert caught.value.setting == "url"


@pytest.mark.parametrize(
    "option",
    [
        *("nosuch", "timeout", "retry", "connection_class", "credential_provider", "socket_type"),
        *("host", "port", "path", "cache_config", "redis_connect_func", "DB", "a b", "\x1b[2J"),
    ],
)
@pytest.mark.parametrize("value", ["=1", "=", ""])
def test_an_unknown_option_is_named_with_those_that_are_known(option: str, value: str) -> None:
    """As soon as the URL is read, also where its value is an object and no text could be one."""
    with pytest.raises(InvalidSetting, match="client_name, db, decode_responses") as caught:
        parse_target(f"redis://user:secret@h?db=1&{quote(option)}{value}")
    assert f"has an unknown option: {option!a};" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("scheme", ["rediss://h", "rediss+cluster://h,i", "rediss+sentinel://h/s"])
@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("ssl_x=1", r"unknown option: 'ssl_x'; use ssl_ca_certs, .*, ssl_check_hostname, "),
        ("ssl_validate_ocsp=yes", r"ssl_validate_ocsp: OCSP .* Meter\(client=.*ssl_ca_certs, "),
        ("ssl_validate_ocsp=no", r"ssl_validate_ocsp: OCSP "),
        ("ssl_validate_ocsp_stapled=yes", r"ssl_validate_ocsp_stapled: OCSP "),
        ("ssl_validate_ocsp_stapled=no", r"ssl_validate_ocsp_stapled: OCSP "),
        ("ssl_validate_ocsp=", r"ssl_validate_ocsp: OCSP "),
        ("ssl_ocsp_context=x", r"ssl_ocsp_context: OCSP "),
        ("ssl_ocsp_expected_cert=x", r"ssl_ocsp_expected_cert: OCSP "),
        ("ssl_context=x", r"unknown option: 'ssl_context'"),
    ],
)
def test_an_option_of_tls_that_would_do_nothing_is_refused(
    scheme: str, option: str, said: str
) -> None:
    """What asks for a check is carried out, or said to be impossible; what there is, is named."""
    with pytest.raises(InvalidSetting, match=said) as caught:
        parse_target(f"{scheme}?{option}")
    assert len(str(caught.value)) < 500


def test_an_option_of_tls_is_read_as_what_it_is() -> None:
    """Text, a number, a yes or no, and whatever else the client reads from a text."""
    texts = ("ssl_ca_certs", "ssl_ca_path", "ssl_ca_data", "ssl_certfile", "ssl_keyfile")
    for name in (*texts, "ssl_password", "ssl_cert_reqs", "ssl_ciphers"):
        assert parse_target(f"rediss://h?{name}=x").options[name] == "x"
    assert parse_target("rediss://h?ssl_check_hostname=no").options["ssl_check_hostname"] is False
    parsers: dict[str, Any] = URL_QUERY_ARGUMENT_PARSERS
    for name, read in parsers.items():
        text = "VERIFY_X509_STRICT" if "flags" in name else "771" if "version" in name else "no"
        if name.startswith("ssl_"):
            assert parse_target(f"rediss://h?{name}={text}").options[name] == read(text)


@pytest.mark.parametrize("place", ["h", "h/1", "h:1?db=0"])
@pytest.mark.parametrize(
    ("words", "value"),
    [("true Yes ON 1 t y", True), ("false No OFF 0 F n", False)],
)
def test_yes_and_no_have_several_words(place: str, words: str, value: bool) -> None:
    """In any case."""
    for word in words.split():
        mark = "&" if "?" in place else "?"
        for option in ("ssl_check_hostname", "socket_keepalive"):
            options = parse_target(f"rediss://{place}{mark}{option}={word}").options
            assert options[option] is value


@pytest.mark.parametrize("scheme", ["rediss://h", "rediss+cluster://h,i", "rediss+sentinel://h/s"])
@pytest.mark.parametrize("option", ["ssl_check_hostname", "socket_keepalive"])
@pytest.mark.parametrize("word", ["disabled", "none", "2", "", "hidden-secret"])
def test_another_word_for_yes_or_no_is_refused(scheme: str, option: str, word: str) -> None:
    """The client would take it for yes; it is not repeated."""
    text = rf"^url: {option} is true, yes, on, 1, or false, no, off, 0$"
    with pytest.raises(InvalidSetting, match=text):
        parse_target(f"{scheme}?{option}={word}")


def test_an_option_that_this_connection_does_not_know_is_named_on_use() -> None:
    """TLS without TLS."""
    url = "redis://127.0.0.1:1?ssl_cert_reqs=none"
    store = open(url, timeout=0.1)
    assert store is not None
    with pytest.raises(InvalidSetting, match=r"url: has an unknown option: ssl_"):
        store.link.exchange([("PING",)])


@given(st.text(max_size=30) | st.sampled_from(FORMS).flatmap(lambda f: st.text().map(f.format)))
def test_any_text_is_a_place_or_an_invalid_setting(url: str) -> None:
    """Nothing else is raised."""
    try:
        target = parse_target(url)
    except InvalidSetting as error:
        refusal = error
    else:
        assert target.kind in ("server", "cluster", "sentinel", "embedded", "off")
        assert target.location
        return
    assert refusal.setting == "url"
    assert len(str(refusal)) < 500


@pytest.mark.parametrize(
    "url",
    ['"redis://h:6379"', "'redis://h'", " redis://h", "redis://h\n", '"off"', "embedded://a "],
)
def test_quotes_and_spaces_around_a_url_are_named(url: str) -> None:
    """Files of environment variables keep quotes, and files of secrets a line's end."""
    with pytest.raises(InvalidSetting, match="is in quotes, or has a space at an end"):
        parse_target(url)


def test_too_many_clients_are_no_wrong_url() -> None:
    """The server is there, and has no room."""
    fix = advice("redis://h:6379/0", "max number of clients reached")
    assert "maxclients" in fix
    error = StoreUnavailable("redis://h:6379/0", "max number of clients reached", fix=fix)
    assert fix[1:] in str(error)
    assert "URL right" not in str(error)
