"""Patterns: messages that differ in their variable parts alone are one group."""

import random
import string
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redmeter.analysis.text import patterns
from redmeter.analysis.text.patterns import PATTERN_CHARACTERS, PATTERN_VERSION, pattern_of
from support.realdata import real_log

UUID = "0d3c3f5e-1111-2222-3333-444455556666"
BASE62 = string.ascii_letters + string.digits


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("retrying order 17 in 250ms", "retrying order <n> in <duration>"),
        ("GET /users/7?page=2 HTTP/1.1 200 51", "GET <path> HTTP/<n> <n> <n>"),
        ("failure on /products/{id}", "failure on <path>"),
        ("{'path': /a/{b:path}}", "{'path': <path>}"),
        ("GET / HTTP/1.1", "GET <path> HTTP/<n>"),
        ("GET /?page=2 HTTP/1.1", "GET <path> HTTP/<n>"),
        ("open 'a b.txt' failed: [Errno 2]", "open <str> failed: [Errno <n>]"),
        ("celery@web-3: 10.0.0.7:6379 is gone", "celery@web-<n>: <host> is gone"),
        ("2015-05-17 10:05:03,123 up (pid=4711)", "<time> up (pid=<n>)"),
        ("2015-05-17T10:05:03.1+00:00 at 10:05:03", "<time> at <time>"),
        ("17/May/2015:10:05:03 up", "<time> up"),
        ("9:M 17 Nov 2026 10:05:03.123 * Ready", "<n>:M <time> * Ready"),
        (f"task {UUID} is {UUID.upper()}", "task <uuid> is <uuid>"),
        ("<Foo at 0x7f12ab> 9fceb02 deadbeef", "<Foo at <hex>> <hex> <hex>"),
        ("-5 +3 1e-5 1,234 1.2.3 v1.2.3 45%", "<n> <n> <n> <n> <n> <n> <n>%"),
        ("in 9.5e-05s or 1h2m, 1.5 s, 3 µs", "in <duration> or <duration>"),
        ("user 7f3a and a7f3 or 731F", "user <id> and <id> or <id>"),
        (
            "E101 db01 f731 3d 10ms 100d 1e10 2nd 7g3a",
            "E101 db<n> f<n> <duration> <duration> <duration> <n> <n>nd <n>g3a",
        ),
        ("1.5 MB of 512KiB at 3 kB/s", "<size> of <size> at <size>"),
        ("::1 fe80::1%eth0 [::]:80 10.0.0.0/8", "<ip> <ip> <host> <ip>"),
        ("std::string add::bad 00:1a:2b:3c:4d:5e", "std::string add::bad <mac>"),
        ("see https://a.b/c?d=1, mail ada@example.org.", "see <url>, mail <email>."),
        ("a/b.py a/b/c ./x ~/y C:\\a\\b.txt:", "<path> <path> <path> <path> <path>:"),
        ("(/a/b) at /a/b: no", "(<path>) at <path>: no"),
        ("and/or text/html n/a", "and/or text/html n/a"),
        ("utf8 S3 E101 worker3 x86_64 job_12 #5", "utf8 S3 E101 worker3 x86_<n> job_<n> #<n>"),
        ("key aB3dE5fG7hI9 a1b2c3 Zm9v-YmFy9_eHh4eHh4eA", "key <id> <id> <id>"),
        ("[1, 2, 3] is [7], ['a', 'b']", "[<n>] is [<n>], [<str>]"),
        ("'a 'x' y' or ''5''", "<str>x' y' or <str><n>''"),
        ("don't, \"it's\" and b'x'", "don't, <str> and b<str>"),
        ("点击量5次 🎉12 готово", "点击量<n>次 🎉<n> готово"),
        ("\n  first\t line \nsecond", "first line"),
        ("password=*** token: ***", "password=*** token: ***"),
        ("Words Keep their CASE", "Words Keep their CASE"),
        ("", "(empty)"),
        (" \n", "(empty)"),
    ],
)
def test_what_differs_is_replaced_by_the_name_of_its_kind(text: str, pattern: str) -> None:
    """Words stay, in their case and in every script."""
    assert pattern_of(text) == pattern


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("blk_-1608999687919862906 of blk_3888635850409849568", "blk_<n> of blk_<n>"),
        ("a-5 a_-5 =-5", "a-<n> a_<n> =<n>"),
        ("any [Thunderbird_A8] or [x_B12]", "any [Thunderbird_<id>] or [x_<id>]"),
        ("node-D3 x86_64 mod_jk2 E101 utf-8", "node-<id> x86_<n> mod_jk2 E101 utf-<n>"),
        ("rhost=x.ne.jp rhost=10.0.0.7", "rhost=<host> rhost=<host>"),
        ("t12.example.com:443 localhost:8080", "<host> <host>"),
        ("kafka-0:9092 db.prod:5432 a.b-c.io", "<host> <host> <host>"),
        ("10.0.0.7:6379 [::1]:80 /10.0.0.7:80 /10.0.0.7", "<host> <host> <host> <ip>"),
        ("Example.com: no (a.example.org).", "<host>: no (<host>)."),
        ("os.path user.id a.py:1200 x.io foo.bar()", "os.path user.id a.py:<n> x.io foo.bar()"),
        ("com.android.systemui org.apache.hadoop.io", "com.android.systemui org.apache.hadoop.io"),
        ("id:12345 retry-count:1234 x.y:12", "id:<n> retry-count:<n> x.y:<n>"),
        ("10.0.0.7 () 10.0.0.7 (a.example.com) a.de[10.0.0.7]", "<ip> <ip> <host>"),
        ("00000023 ffffffff FFFFFFFF 00ab12cd", "<hex> <hex> <hex> <hex>"),
        ("0000023 fffffff facade 12345678", "<n> fffffff facade <n>"),
        ("FF:F2:9F:16:E2:00:D0:00:E9:D8", "<mac>"),
        ("at Sun Jul 10 03:55:15 2005 up", "at <time> up"),
        ("[Sun Jul  3 03:55:15.123456 2005] up", "[<time>] up"),
        ("Sun Jul 10 03:55:15 PDT 2005 up", "<time> up"),
        ("Jul 10 03:55:15 web sshd[17]: up", "<time> web sshd[<n>]: up"),
        ("Sun, 10 Jul 2005 03:55:15 GMT, or", "<time>, or"),
        ("Sun, 10 Jul 2005 03:55:15 +0200 up", "<time> up"),
        ("Sunday, 10-Jul-05 03:55:15 GMT up", "<time> up"),
        ("[10/Jul/2005:03:55:15 +0200] up", "[<time>] up"),
        ("may 10 users at 10:05", "may <n> users at <time>"),
        ("Sun is up, May 5 too", "Sun is up, May <n> too"),
        ("lifetime 00:20, lifetime <1 sec", "lifetime <duration>, lifetime <duration>"),
        ("sent 2473 bytes (2.41 KB), got 5 bytes", "sent <size>, got <size>"),
    ],
)
def test_a_thing_is_known_however_it_is_written(text: str, pattern: str) -> None:
    """Signed numbers, identifiers, hosts, hexadecimal numbers and times in every usual form."""
    assert pattern_of(text) == pattern


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ('"GET /a HTTP/1.1" 200', '"GET <path> HTTP/<n>" <n>'),
        ('"POST /b/c?d=1 HTTP/2" 201', '"POST <path> HTTP/<n>" <n>'),
        ("'DELETE http://a.b/c'", "'DELETE <url>'"),
        ('"GET away" and "GOT /a"', '"GET <path>" and <str>'),
    ],
)
def test_a_quoted_request_keeps_its_method(text: str, pattern: str) -> None:
    """And whether it has a path, a URL and a protocol."""
    assert pattern_of(text) == pattern


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (
            '{"level": "info", "msg": "order 17 done", "user": "ada", "n": 5, "ok": true}',
            '{"level": "info", "msg": "order <n> done", "user": <str>, "n": <n>, "ok": true}',
        ),
        (
            '{"level":"error","message":"no \\"a b\\" at 10.0.0.7","error":null,"at":"x"}',
            '{"level":"error","message":"no <str> at <ip>","error":null,"at":<str>}',
        ),
        (
            "{'event': 'it is \"up\"', 'tags': ['a', 'b'], 'by': {'id': 'x', '17': 3}}",
            "{'event': 'it is <str>', 'tags': [<str>], 'by': {'id': <str>, <str>: <n>}}",
        ),
        (
            'level=info msg="order 17 done" user=ada to="b c" took=5ms ok=true at=10.0.0.7',
            'level=info msg="order <n> done" user=<str> to=<str> took=<duration> ok=true at=<ip>',
        ),
        (
            "ts=10:05:03 level=warn msg=started by=ada,",
            "ts=<time> level=warn msg=started by=<str>,",
        ),
        ("rhost= user=root tag='View Lock', name=a", "rhost= user=root tag=<str>, name=a"),
        ("no 'key': \"value\"", "no <str>: <str>"),
    ],
)
def test_a_structured_line_keeps_its_keys_and_its_text(text: str, pattern: str) -> None:
    """JSON, repr and logfmt: other values are masked, but for true, false and null."""
    assert pattern_of(text) == pattern


def test_structured_lines_with_other_texts_are_other_groups() -> None:
    """Also where they are too long for a pattern: then the text is kept, not what precedes it."""
    texts = [("info", "up"), ("info", "down"), ("error", "up"), ("error", "can't connect")]
    found = [
        [pattern_of(form.replace("LEVEL", level).replace("TEXT", text)) for level, text in texts]
        for form in (
            '{"level": "LEVEL", "msg": "TEXT"}',
            "{" + f'"{"k" * 30}": "v", ' * 8 + '"level": "LEVEL", "msg": "TEXT", "x": 1}',
            'level=LEVEL msg="TEXT"',
            f"{'k' * 30}=v " * 8 + 'level=LEVEL msg="TEXT"',
        )
    ]
    assert [len(set(patterns)) for patterns in found] == [4, 4, 4, 4]
    assert found[1][3] == '{"level": "error", "msg": "can\'t connect", …'
    assert found[3][3] == 'level=error msg="can\'t connect"'


LONG_OBJECT = f'{{"stack": "{"x " * 600}", "msg": "up"}}'
#: Version -> texts and their patterns. Where pattern_of() returns another one, PATTERN_VERSION goes
#: up and gets a line of its own here.
PINNED = {
    1: {"10:05:03 10:05:03 10:05:03 up": "<time> <time> up"},
    2: {
        "10:05:03 10:05:03 10:05:03 up": "<time> up",
        "retrying order 17 in 250ms": "retrying order <n> in <duration>",
        "GET /users/7?page=2 HTTP/1.1 200 51": "GET <path> HTTP/<n> <n> <n>",
        "open 'a b.txt' failed: [Errno 2]": "open <str> failed: [Errno <n>]",
        "2015-05-17 10:05:03,123 up (pid=4711)": "<time> up (pid=<n>)",
        "::1 10.0.0.7:6379 00:1a:2b:3c:4d:5e": "<ip> <ip> <mac>",
        "see https://a.b/c?d=1, mail ada@example.org.": "see <url>, mail <email>.",
        f"task {UUID} 9fceb02 aB3dE5fG7hI9": "task <uuid> <hex> <id>",
        "1.5 MB of [1, 2, 3] at worker3": "<size> of [<n>] at worker3",
    },
    3: {
        "10:05:03 10:05:03 10:05:03 up": "<time> up",
        "retrying order 17 in 250ms": "retrying order <n> in <duration>",
        "GET /users/7?page=2 HTTP/1.1 200 51": "GET <path> HTTP/<n> <n> <n>",
        'at 10.0.0.7: "GET /a HTTP/1.1" 200': 'at <ip>: "GET <path> HTTP/<n>" <n>',
        "open 'a b.txt' failed: [Errno 2]": "open <str> failed: [Errno <n>]",
        "2015-05-17 10:05:03,123 up (pid=4711)": "<time> up (pid=<n>)",
        "Sun Jul 10 03:55:15 2005 x.ne.jp is gone": "<time> <host> is gone",
        "::1 10.0.0.7:6379 00:1a:2b:3c:4d:5e": "<ip> <host> <mac>",
        "see https://a.b/c?d=1, mail ada@example.org.": "see <url>, mail <email>.",
        f"task {UUID} 9fceb02 00000023 aB3dE5fG7hI9": "task <uuid> <hex> <hex> <id>",
        "1.5 MB of [1, 2, 3] at worker37": "<size> of [<n>] at worker37",
        '{"level": "info", "msg": "7 sent", "to": "a"}': (
            '{"level": "info", "msg": "<n> sent", "to": <str>}'
        ),
    },
    4: {
        "10:05:03 10:05:03 10:05:03 up": "<time> up",
        "retrying order 17 in 250ms": "retrying order <n> in <duration>",
        "GET /users/7?page=2 HTTP/1.1 200 51": "GET <path> HTTP/<n> <n> <n>",
        'at 10.0.0.7: "GET /a HTTP/1.1" 200': 'at <ip>: "GET <path> HTTP/<n>" <n>',
        "open 'a b.txt' failed: [Errno 2]": "open <str> failed: [Errno <n>]",
        "2015-05-17 10:05:03,123 up (pid=4711)": "<time> up (pid=<n>)",
        "Sun Jul 10 03:55:15 2005 x.ne.jp is gone": "<time> <host> is gone",
        "::1 10.0.0.7:6379 00:1a:2b:3c:4d:5e": "<ip> <host> <mac>",
        "see https://a.b/c?d=1, mail ada@example.org.": "see <url>, mail <email>.",
        f"task {UUID} 9fceb02 00000023 aB3dE5fG7hI9": "task <uuid> <hex> <hex> <id>",
        "1.5 MB of [1, 2, 3] at worker37": "<size> of [<n>] at worker<n>",
        '{"level": "info", "msg": "7 sent", "to": "a"}': (
            '{"level": "info", "msg": "<n> sent", "to": <str>}'
        ),
        LONG_OBJECT: '{"stack": <str>, "msg": "up"}',
    },
}


def test_patterns_are_those_of_their_version() -> None:
    """What is stored by one does not add up with what is stored by another."""
    assert max(PINNED) == PATTERN_VERSION
    for version, pinned in PINNED.items():
        same = {text: pattern_of(text) for text in pinned} == pinned
        assert same == (version == PATTERN_VERSION)


@pytest.mark.parametrize(
    ("made", "most"),
    [
        (lambda r: "cus_" + "".join(r.choices(BASE62, k=14)), 20),
        (lambda r: "".join(r.choices(BASE62, k=22)), 12),
        (lambda r: "".join(r.choices(f"{BASE62}_-", k=21)), 40),
        (lambda r: f"u{r.randrange(10, 10_000)}", 1),
        (lambda r: f"job{r.randrange(10, 10_000)}", 1),
    ],
)
def test_identifiers_of_one_kind_make_few_patterns(
    made: Callable[[random.Random], str], most: int
) -> None:
    """Of 300 messages; a few look like words."""
    chance = random.Random(1)
    made_of = {pattern_of(f"request {made(chance)} finished") for _ in range(300)}
    assert len(made_of) <= most
    assert {pattern_of(pattern) for pattern in made_of} == made_of


@pytest.mark.parametrize(
    "word",
    [
        *("http2", "utf8", "ipv4", "s3", "sha256", "base64", "int64", "x86", "ES256", "E101"),
        *("getUserByIdAndName", "HttpServletRequest", "OutOfMemoryError", "java2DGraphics"),
        *("snake_case_words_of_a_name", "kebab-case-words-of-a-name", "CONSTANT_NAME_OF_17_WORDS"),
    ],
)
def test_names_are_no_identifiers(word: str) -> None:
    """With any letters and digits."""
    assert pattern_of(f"request {word} finished").count("<id>") == 0
    assert word == "CONSTANT_NAME_OF_17_WORDS" or pattern_of(word) == word


PIECES = [
    *(
        "<n>",
        "<str>",
        "<time>",
        "<duration>",
        "<",
        ">",
        "…",
        ",",
        ", ",
        " ",
        ".",
        ":",
        "::",
        "/",
        "-",
    ),
    *(
        "'",
        '"',
        "`",
        "\\",
        "@",
        "+",
        "_",
        "%",
        "(",
        ")",
        "[",
        "]",
        "~",
        "=",
        "?",
        "://",
        "\n",
        "b'",
    ),
    *("1", "12", "2015-05-17", "10:05:03", "1.5", "ms", "s", "MB", "e5", "v1", "0x7f", "Nov", "Z"),
    *(
        "a",
        "x",
        "abc",
        "deadbeef1",
        UUID,
        "10.0.0.7",
        "::1",
        "fe80",
        "00:1a:2b:3c:4d:5e",
        "点",
        "é",
    ),
    *("http", "https://a.b", "ada@example.org", "/a/b", "a/b", ".py", "aB3dE5fG7", "C:\\", "***"),
    *("<ip>", "<host>", "()", "(<host>)", "[<ip>]", "example.com", ":443", "localhost", "db-1"),
    *("Sun ", "Sunday, ", "Jul ", "Jul <n> ", " 2005", " GMT", "lifetime ", "<1 sec", "10:05"),
    *('{"msg": "', "{'level': '", '": "', '"level":', '", "a":', " msg=", "level=", '="', "error="),
    *('\\"', "GET /a", " HTTP/1.1", '"GET <path> HTTP/<n>"', "ffffffff", "0000000", "_A8", "host="),
]
mixtures = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=60).map("".join)


@given(mixtures)
@example("ada@example.org1.5<n>")
@example("'a 'x' b' ''<n>''")
@example("10:05:03 10:05:03 10:05:03")
@example("2020-01-01 3 Nov 2020 10:05:03 up at 10:05:03")
@example("E1.2.3.4" * 300)
@example("`" + "1.2.3.4" * 300)
def test_the_pattern_of_a_pattern_is_itself(text: str) -> None:
    """So what was grouped once can be grouped again, by whichever process."""
    pattern = pattern_of(text)
    assert pattern_of(pattern) == pattern
    assert 0 < len(pattern) <= PATTERN_CHARACTERS


@given(st.lists(st.sampled_from(PIECES[-30:]), min_size=60, max_size=90).map("".join))
def test_a_cut_pattern_is_stable_too(text: str) -> None:
    """Nothing just before the … becomes a thing that it was not."""
    pattern = pattern_of(text)
    assert pattern_of(pattern) == pattern


@given(
    st.sampled_from(["order {} of {}", "{} is gone ({})", "a={} b={}", "[{}] {}", "{}: {}!"]),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.floats(0, 1e6),
    st.uuids(),
    st.ip_addresses().filter(lambda address: any(c.isdigit() for c in str(address))),
)
def test_values_of_one_kind_are_one_group(
    form: str, one: int, two: int, real: float, uuid: object, address: object
) -> None:
    """Whatever the number, the id or the address."""
    assert pattern_of(form.format(one, two)) == form.format("<n>", "<n>")
    assert pattern_of(form.format(real, one)) == form.format("<n>", "<n>")
    assert pattern_of(form.format(f"{real}s", uuid)) == form.format("<duration>", "<uuid>")
    assert pattern_of(form.format(one, address)).replace("ip", "n") == form.format("<n>", "<n>")


@given(st.lists(mixtures, min_size=2, max_size=6))
def test_a_pattern_does_not_depend_on_what_was_seen_before(texts: list[str]) -> None:
    """Patterns of many processes are put together by their text."""
    assert [pattern_of(text) for text in texts] == [pattern_of(text) for text in texts[::-1]][::-1]


def test_a_long_pattern_is_cut_visibly() -> None:
    """At 200 characters, the … included."""
    pattern = pattern_of("word " * 100)
    assert len(pattern) == PATTERN_CHARACTERS
    assert pattern.endswith("…")


def test_a_line_that_was_not_looked_at_to_its_end_says_so() -> None:
    """Even where its pattern is short."""
    assert pattern_of("'" + "x" * 900 + "' " + "1" * 5000) == "<str> " + "1" * 97 + "…"


@pytest.mark.parametrize("piece", PIECES)
def test_a_megabyte_of_hostile_text_has_a_pattern(piece: str) -> None:
    """Only its beginning is looked at, and no part of it again and again."""
    text = piece * (1_000_000 // len(piece))
    for _ in range(20):
        assert len(pattern_of(text)) <= PATTERN_CHARACTERS


@given(st.from_regex(r"[0-9]{1,9}([.,][0-9]{1,9})?", fullmatch=True))
def test_a_number_told_at_a_glance_is_what_the_rules_say(word: str) -> None:
    """The short way for words that are numbers leads to where the long one does."""
    assert bool(patterns._is_number(word)) == (patterns._word(word) == "<n>")
    assert patterns._word(word) == pattern_of(word)


@pytest.mark.realdata
def test_the_requests_of_the_real_log_are_a_handful_of_patterns() -> None:
    """As texts that come formatted: 10,000 lines, told apart by method and protocol."""
    lines = real_log().read_text(encoding="utf-8", errors="replace").splitlines()
    requests = [line.split('"')[1] for line in lines if line.count('"') > 1]
    found = {pattern_of(request) for request in requests}
    methods = {request.split(" ")[0] for request in requests}
    assert len(requests) > 9_900
    assert len(methods) <= len(found) <= 15


STACK = "Traceback (most recent call last):\\n" + "".join(
    f'  File \\"/srv/shop/{name}.py\\", line {n * 37}, in {name}\\n    raise it\\n'
    for n, name in enumerate(("jobs", "orders", "mail", "stock") * 6)
)
#: Lines as loggers write them, with the message, a stack and a number that varies.
WRITERS = {
    "python-json-logger": '{"asctime": "03:04:05,%d", "message": "%s", "exc_info": "%s"}',
    "structlog": '{"order": %d, "event": "%s", "level": "error", "exception": "%s"}',
    "bunyan": '{"pid":%d,"msg":"%s","err":{"stack":"%s"},"v":0}',
    "logback": '{"thread":"t-%d","message":"%s","stack_trace":"%s","level":"ERROR"}',
    "stack first": '{{"id": %d, "stack": "{1}", "more": [1, 2], "msg": "{0}"}}',
}


@pytest.mark.parametrize("writer", WRITERS)
def test_long_lines_of_json_are_grouped_by_their_message(writer: str) -> None:
    """However long the stack is, and also where it is cut; short ones are in the same group."""
    line = WRITERS[writer].replace("{0}", "%(0)s").replace("{1}", "%(1)s")

    def written(number: int, message: str, stack: str) -> str:
        if "%(0)s" in line:
            parts = {"0": message, "1": stack}
            return (line.replace("%d", str(number)) % parts).replace("{{", "{").replace("}}", "}")
        return line % (number, message, stack)

    messages = ("payment failed", "no stock", "mail refused")
    stacks = [STACK[: 200 * n].rstrip("\\") for n in range(1, 10)]
    assert len(written(1, messages[0], STACK)) > 1500
    patterns_of = {
        pattern_of(written(n, message, stack))
        for message in messages
        for n, stack in enumerate(stacks, 10)
    }
    assert len(patterns_of) == len(messages), patterns_of
    assert all(any(message in each for each in patterns_of) for message in messages)


def test_a_json_text_that_was_cut_is_closed() -> None:
    """It is a value: the pattern has no raw text."""
    line = f'{{"msg": "payment failed", "n": 7, "stack": "{STACK}"}}'
    assert pattern_of(line[:1300]) == '{"msg": "payment failed", "n": <n>, "stack": <str>'
