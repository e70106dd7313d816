"""Statements: one label for all texts of a statement, without values, and short."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.text.statements import LABEL_LIMIT, LOOKED_AT, statement_of
from redmeter.analysis.text.texts import EMPTY
from redmeter.names import canonical

EXAMPLES = {
    # reading
    "SELECT o.id FROM orders o JOIN users u ON o.u_id = u.id WHERE o.status IN ('paid', 'sent')": (
        "SELECT orders JOIN users WHERE status"
    ),
    "SELECT a FROM orders, users AS u, lines WHERE u.id = lines.u and lower(u.name) LIKE 'x%'": (
        "SELECT orders, users, lines WHERE id, name"
    ),
    "SELECT * FROM users LEFT OUTER JOIN orders ON users.id = orders.user_id": (
        "SELECT users JOIN orders"
    ),
    "SELECT count(*) FROM (SELECT * FROM orders) AS x WHERE x.day = ?": (
        "SELECT SELECT orders WHERE day"
    ),
    "select * from t where k in (select id from sub where q = 1) and last = 2": (
        "SELECT t WHERE k SELECT sub WHERE q WHERE last"
    ),
    "WITH r AS (SELECT * FROM orders) SELECT * FROM r": "WITH r SELECT orders SELECT r",
    "select extract(year from day), trim(leading from x) from t": "SELECT t",
    "select * from t where a is distinct from b": "SELECT t WHERE a",
    "SELECT * FROM generate_series(1, 2) g, t": "SELECT generate_series, t",
    "SELECT * FROM [dbo].[Orders] WHERE [Id] = @p1": "SELECT dbo.Orders WHERE Id",
    "SELECT * FROM `my orders` WHERE `id` = %s": "SELECT my orders WHERE id",
    "select * from t for update": "SELECT t",
    "select a from x union select b from y where b between 1 and 2": "SELECT x SELECT y WHERE b",
    "SELECT 1": "SELECT",
    "EXPLAIN SELECT * FROM t": "EXPLAIN SELECT t",
    # writing
    'insert into "shop"."orders" (id) values (7), (8)': "INSERT shop.orders",
    "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = excluded.a": "INSERT t",
    "INSERT OR REPLACE INTO t VALUES (?)": "INSERT t",
    "INSERT INTO t SELECT * FROM u WHERE v > 1": "INSERT t SELECT u WHERE v",
    "REPLACE INTO t SELECT replace(a, 'b', 'c') FROM u": "REPLACE t SELECT u",
    "UPDATE users SET name = ?, age = 3 WHERE id = ?": "UPDATE users WHERE id",
    "DELETE FROM a USING b WHERE a.id = b.id": "DELETE a USING b WHERE id",
    "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET x=1": "MERGE t USING s UPDATE",
    "TRUNCATE TABLE orders": "TRUNCATE orders",
    # all else
    "/* trace 4711 */ COMMIT -- FROM here": "COMMIT",
    "BEGIN (implicit)": "BEGIN",
    "ROLLBACK TO SAVEPOINT sa_savepoint_1": "ROLLBACK",
    "CREATE TABLE IF NOT EXISTS orders (id INT REFERENCES x ON DELETE CASCADE)": (
        "CREATE TABLE orders"
    ),
    "CREATE UNIQUE INDEX by_day ON orders (day)": "CREATE INDEX by_day",
    'PRAGMA main.table_info("orders")': "PRAGMA main.table_info",
    "SET search_path TO x": "SET search_path",
    "CALL pay(1, 'x')": "CALL pay",
    "SELECT * FROM t WHERE a = 1; DELETE FROM b WHERE c = 2": "SELECT t WHERE a DELETE b WHERE c",
    "": EMPTY,
    " ;(,": EMPTY,
}


@pytest.mark.parametrize("sql", EXAMPLES)
def test_a_statement_is_told_by_what_it_does_to_which_tables(sql: str) -> None:
    """And by the columns that choose its rows."""
    assert statement_of(sql) == EXAMPLES[sql]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t WHERE name = 'it''s FROM secret'",
        r"SELECT * FROM t WHERE name = 'it\'s' AND x = 'a FROM secret WHERE secret = 1'",
        r'SELECT * FROM t WHERE name = "it\"s FROM secret"',
        "SELECT $$ FROM secret $$, $a$ FROM secret $a$ FROM t WHERE name = $1",
        "SELECT E'FROM secret' FROM t WHERE name = :secret",
        "SELECT /* FROM secret */ a -- FROM secret\n FROM t WHERE name = %(secret)s",
        "SELECT * FROM t WHERE name = 'FROM secret",
        "SELECT * FROM t WHERE name = 1 /* FROM secret",
        "SELECT * FROM t WHERE name = $$ FROM secret",
    ],
)
def test_no_value_and_no_comment_gets_into_a_label(sql: str) -> None:
    """Whatever quotes it, also where it does not end."""
    assert statement_of(sql) in ("SELECT t WHERE name", "SELECT t WHERE name …")


def test_a_backslash_before_a_quote_ends_what_is_told() -> None:
    """Dialects differ in what comes after it: it may be a value."""
    assert statement_of(r"SELECT * FROM t WHERE a = 'C:\' OR b = 'x'") == "SELECT t WHERE a …"


values = st.one_of(
    st.integers(min_value=0).map(str),
    st.floats(min_value=0, allow_infinity=False, allow_nan=False).map(str),
    st.text(st.characters(exclude_characters="\\'", exclude_categories=["Cs"])).map("'{}'".format),
    st.sampled_from(["?", "%s", "$1", ":name", "%(name)s", "NULL"]),
)
spaces = st.text(" \t\n", min_size=1, max_size=3)
comments = st.sampled_from(["", "/* FROM a */", "-- x = 1\n", "/* ' */"])


@given(st.lists(values, min_size=1, max_size=20), values, spaces, comments, st.booleans())
def test_all_texts_of_a_statement_have_one_label(
    listed: list[str], value: str, space: str, comment: str, lower: bool
) -> None:
    """Whatever its values are, how many, and how it is written."""
    keywords = "SELECT", "FROM", "WHERE", "IN", "AND"
    select, from_, where, in_, and_ = (w.lower() if lower else w for w in keywords)
    parts = [select, "a,b", from_, comment, "orders", where, f"day {in_} ({','.join(listed)})"]
    sql = space.join([*parts, and_, f"shop={value}", ""])
    assert statement_of(sql) == "SELECT orders WHERE day, shop"


@given(st.text(max_size=300), st.integers(20, 120))
def test_any_text_has_a_label_that_fits(sql: str, limit: int) -> None:
    """It is not empty, not longer than asked for, and a name may hold it."""
    label = statement_of(sql, limit)
    assert 0 < len(label.encode()) <= limit
    assert canonical("db_query_seconds", {"statement": label})


SQL = (
    "select from where ( ) , . ; ' \" ` [ ] $$ /* */ -- \\ = in and join insert into update with "
    "as x y 1 ? create table 's' on"
)
words = st.sampled_from([*SQL.split(), " ", "\n"])


@given(st.lists(words, max_size=60))
def test_anything_made_of_sql_has_a_label_that_fits(parts: list[str]) -> None:
    """However wrong it is."""
    label = statement_of(" ".join(parts))
    assert 0 < len(label.encode()) <= LABEL_LIMIT
    assert canonical("db_query_seconds", {"statement": f"{label} (many)"})


def test_a_long_label_is_cut_visibly() -> None:
    """By bytes, between characters."""
    columns = " AND ".join(f"stretta_colonna_{n} = 1" for n in range(30))
    label = statement_of("SELECT * FROM t WHERE " + columns)  # noqa: S608
    assert label.startswith("SELECT t WHERE stretta_colonna_0, stretta_colonna_1, ")
    assert label.endswith("…")
    assert LABEL_LIMIT - 3 <= len(label.encode()) <= LABEL_LIMIT
    assert statement_of("SELECT * FROM " + "表" * 100).endswith("表…")


@pytest.mark.parametrize(
    "piece",
    ["'", '"', "[", "[a", "$a$", "/*", "(", "a.", "a)", "\\'", "-- ", "$a", "%(", "x", "1."],
)
def test_the_time_grows_with_the_length_alone(piece: str) -> None:
    """Nothing is looked at again and again: eight times the text takes no more than 30 times."""

    def seconds(size: int) -> float:
        sql = f"delete from t where {piece * size}"[:size]  # noqa: S608
        times = []
        for _ in range(3):
            began = time.thread_time()
            statement_of(sql)
            times.append(time.thread_time() - began)
        return min(times)

    assert seconds(LOOKED_AT) < 30 * seconds(LOOKED_AT // 8) + 0.05
