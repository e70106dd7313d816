"""Fuzz: texts of messages, cleaned, masked and grouped as they are before they are stored; and SQL.

Next to tests/analysis, where secrets are looked for in each form, and any text is cleaned and
grouped.
"""

from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.text.patterns import PATTERN_CHARACTERS, pattern_of
from redmeter.analysis.text.secrets import mask
from redmeter.analysis.text.statements import LABEL_LIMIT, statement_of
from redmeter.analysis.text.texts import clean_text
from redmeter.names import cleaned
from support.fuzzing import (
    HOSTILE,
    assert_work_is_linear,
    fuzzed,
    fuzzed_slowly,
    grown,
    mutated,
    mutated_bytes,
)

MESSAGES = (
    *("retrying order 17 in 250ms", "GET /users/7?page=2 HTTP/1.1 200 51", "open 'a b.txt' failed"),
    *(
        "celery@web-3: 10.0.0.7:6379 is gone",
        "[1, 2, 3] and 1h2m of 1.5 MB at fe80::1",
        "\x1b[31mx",
    ),
    *(
        "redis://bob:hunter2@db:6379/0",
        "Authorization: Bearer abc.def.ghi1234567890",
        "Cookie: a=b",
    ),
    *('{"api-key": "a \\"b\\"", "id": 7}', "user[password][]=a%26b&x=1", "IDENTIFIED BY 'a''b'"),
    *("['AUTH', 'bob', 'hunter2']", "curl -u bob:hunter2 --token abc", "token: |\n  abc\n  def"),
    *("eyJhbGciOi.eyJzdWIiOi.SflKxw", "%22token%22%3A%22a%22", "code=abcdefgh12345678", "pass: 3"),
    *("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----", "SetUser bob on >secret ~*"),
    *('{"tokens": ["a", "b"], "x": f(("secret", b"y"))}', "AKIAIOSFODNN7EXAMPLE sk_live_x"),
)
STATEMENTS = (
    "SELECT o.id FROM orders o JOIN users u ON u.id = o.user WHERE o.status IN ('paid', 'sent')",
    'insert into "shop"."orders" (id, note) values (7, $a$secret$a$), (8, E\'it\\\'s\')',
    "WITH r AS (SELECT * FROM orders) UPDATE a SET b = 1 FROM r WHERE a.x = r.x AND y LIKE 2",
    "/* trace 4711 */ COMMIT; -- x\nDELETE FROM [my table] WHERE `a` = %s OR b LIKE '%x%'",
    "CREATE UNIQUE INDEX CONCURRENTLY i ON t (a); EXPLAIN SELECT extract(year FROM day) FROM t",
)


@fuzzed
@given(mutated((*MESSAGES, *STATEMENTS)), st.integers(32, 400))
def test_a_message_is_cleaned_masked_and_grouped(text: str, limit: int) -> None:
    """Whatever it is: what is stored is short, visible, and does not change when it comes again."""
    whole = clean_text(text, limit)
    assert len(whole) <= limit
    assert all(c.isprintable() or c in "\n\t" or ord(c) > 127 for c in whole)
    assert clean_text(whole, limit) == whole
    masked = mask(whole)
    pattern = pattern_of(masked)
    assert 0 < len(pattern) <= PATTERN_CHARACTERS
    assert "\n" not in pattern


@fuzzed
@given(mutated_bytes(MESSAGES))
def test_bytes_are_messages_too(data: bytes) -> None:
    """Also those that are no UTF-8."""
    pattern_of(mask(clean_text(data))).encode()


@fuzzed
@given(mutated(STATEMENTS), st.integers(20, LABEL_LIMIT))
def test_a_statement_has_a_label_that_can_be_stored(sql: str, limit: int) -> None:
    """However it was damaged."""
    label = statement_of(sql, limit)
    assert 0 < len(label.encode()) <= limit
    assert cleaned(label) == label


@fuzzed
@given(
    st.sampled_from(STATEMENTS[:3]), st.integers(0, 200), st.sampled_from(["'", '"', "--", "/*"])
)
def test_no_value_gets_into_a_label(sql: str, at: int, mark: str) -> None:
    """Also where a quote or a comment is in the middle of it."""
    assert "s3cr3t" not in statement_of(f"{sql} AND z = 's3cr3t'")
    assert "s3cr3t" not in statement_of(sql.replace("'paid'", f"'s3cr3t{mark}s3cr3t'"))


@fuzzed_slowly
@given(
    grown(
        (
            *(*MESSAGES, *STATEMENTS, *HOSTILE),
            *("a", "1", "://", "://a:", "@", "token=", "'token': [", '"secret": "', "-----BEGIN "),
            *("(", "$a$", "--", "/*", "\\'", "cookie: ", "\\", "1.", "a1", "<n>", ", "),
        )
    )
)
def test_messages_and_statements_take_work_by_their_length(of_length: object) -> None:
    """Whatever is repeated in them; also where nobody has cut them before."""

    def work(text: str) -> None:
        clean_text(text, 100_000)
        mask(text)
        pattern_of(text)
        statement_of(text)

    assert_work_is_linear(work, of_length)  # type: ignore[arg-type]
