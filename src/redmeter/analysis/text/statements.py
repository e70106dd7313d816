r"""Statements of SQL: what groups them, short enough to be a label.

Problem: an application has some dozens of statements, and sends them as millions of texts: values
differ, lists are longer or shorter, tools add comments with ids of requests. A label has to be the
same for all texts of one statement, must not hold a value, and should fit into a column.

Idea: what one looks for is which tables are read or written, how, and by which columns rows are
chosen, since the columns decide whether an index serves. That is picked out of the text, and the
rest left out; so nothing has to be masked, and nothing can be forgotten.

    SELECT o.id FROM orders o JOIN users u ON …             SELECT orders JOIN users WHERE status
      WHERE o.status IN ('paid', 'sent')
    insert into "shop"."orders" (id) values (7), (8)        INSERT shop.orders
    WITH r AS (SELECT * FROM orders) SELECT * FROM r        WITH r SELECT orders SELECT r
    /* trace 4711 */ COMMIT                                 COMMIT

Bound: 20,000 characters of a statement are looked at, once each, and a label has at most 80. A
comment or a quoted text that does not end takes all the rest.

Not done: dialects. A backslash before a quote ends the quoted text in standard SQL and does not in
MySQL; the text after one may be a value, so it is replaced with "…". Only columns on the left of a
comparison are read. Statements that differ in anything else, in their order or aggregates, are one
group.
"""

import re
from typing import Final

from redmeter.analysis.text.texts import EMPTY
from redmeter.names import cleaned

#: Characters of a label at most, and bytes.
LABEL_LIMIT: Final = 80
#: Characters of a statement that are read.
LOOKED_AT: Final = 20_000

_TOKEN: Final = re.compile(
    r"""
    (?P<space> \s++ | --[^\n]*+ )
  | (?P<comment> /\*)
  | (?P<dollar> \$ (?:[^\W\d]\w*+)?+ \$)
  | (?P<text> [eEnNbBxX]?+ ' (?: [^'\\]++ | '' | \\. )*+ (?: ' | \\?+\Z ) )
  | (?P<name> " (?: [^"\\]++ | "" | \\. )*+ (?: " | \\?+\Z )
            | ` [^`]*+ (?: ` | \Z ) | \[ [^\W\d] [^\]\[]{0,63}+ \] )
  | (?P<value> \d[\w.]*+ | %s | %\(\w*+\)s | [:$@]{1,2}+\w++ )
  | (?P<word> [^\W\d]\w*+ )
  | (?P<compare> [<>=!~]++ )
  | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VERBS: Final = _words("SELECT INSERT UPDATE DELETE REPLACE MERGE")
#: Words after which these are not verbs: FOR UPDATE, ON CONFLICT DO UPDATE, INSERT OR REPLACE.
_NO_VERB_AFTER: Final = _words("FOR DO KEY ON OR NO OF BEFORE AFTER")
#: Statements whose group has their first name, whatever it names.
_WITH_A_NAME: Final = _words(
    "WITH TRUNCATE CALL EXEC PRAGMA SET SHOW COPY VACUUM ANALYZE LOCK USE REFRESH"
)
_DEFINE: Final = _words("CREATE DROP ALTER")
#: Words that stand before the name of a table.
_BEFORE_NAME: Final = _words(
    "ONLY LATERAL IF NOT EXISTS OR IGNORE TABLE TEMPORARY TEMP UNIQUE CONCURRENTLY INTO FROM "
    "RECURSIVE MATERIALIZED VIEW SESSION LOCAL GLOBAL VIRTUAL"
)
#: Words that end a list of tables or of conditions.
_CLAUSES: Final = _words(
    "GROUP ORDER HAVING LIMIT OFFSET FETCH SET VALUES UNION INTERSECT EXCEPT RETURNING WINDOW "
    "ON WHEN DEFAULT"
)
_COMPARISONS: Final = _words("LIKE ILIKE IN IS BETWEEN NOT REGEXP RLIKE SIMILAR GLOB MATCH")
_CONNECTIVES: Final = _words("AND OR NOT CASE WHEN THEN ELSE END NULL TRUE FALSE")
#: Words before "(" that call no function.
_KEYWORDS: Final = (
    _CLAUSES
    | _COMPARISONS
    | _CONNECTIVES
    | _words("FROM JOIN WHERE AS SELECT EXISTS ANY ALL SOME USING")
)

#: Kind, text, and the text in upper case if it is a word.
_Token = tuple[str, str, str]


def statement_of(sql: str, limit: int = LABEL_LIMIT) -> str:
    """Return the group of a statement.

    Args:
        sql: of any dialect; several statements become one group, truncated.
        limit: maximum characters, and bytes, of the result; 20 at least.

    Returns:
        E.g. `SELECT orders JOIN users WHERE status`; `(empty)` if it has no known word.
    """
    label = _Reader(_tokens(sql[:LOOKED_AT]), limit).read()
    fits = cleaned(label, limit)
    if fits != label:
        whole = cleaned(label, 4 * len(label))
        fits = whole if len(whole.encode()) <= limit else cleaned(whole, limit - 3).rstrip() + "…"
    return fits or EMPTY


def _tokens(sql: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, match = 0, _TOKEN.match
    while at < len(sql):
        token = match(sql, at)
        assert token is not None, "every character is one"
        kind, text, at = token.lastgroup or "", token[0], token.end()
        if kind == "word":
            tokens.append((kind, text, text.upper()))
        elif kind == "comment":
            end = sql.find("*/", at)
            at = end + 2 if end >= 0 else len(sql)
        elif kind == "dollar":
            end = sql.find(text, at)
            at = end + len(text) if end >= 0 else len(sql)
            tokens.append(("value", "", ""))
        elif kind in ("text", "name") and "\\" in text:
            tokens.append(("unsure", "", ""))
            break
        elif kind == "name":
            inner = text[1:-1].replace('"', "")
            tokens.append((kind, " ".join(inner.split()), ""))
        elif kind != "space":
            tokens.append((kind, text, text if kind == "other" else ""))
    return tokens


class _Reader:
    """Reads a statement once, from left to right."""

    def __init__(self, tokens: list[_Token], limit: int) -> None:
        self._tokens = [*tokens, ("end", "", ""), ("end", "", "")]
        self._limit = limit
        self._told: list[str] = []
        self._length = 0
        #: The statement's first word.
        self._verb = ""
        #: Whether a table's name comes next; whether a comma may bring another one.
        self._expecting = self._listing = False
        #: The columns of the conditions at hand; None where there are none.
        self._columns: list[str] | None = None
        #: Whether FROM belongs to a function, as in extract(year FROM day).
        self._argument = False
        self._around: list[tuple[bool, list[str] | None, bool]] = []

    def read(self) -> str:
        at = 0
        while at < len(self._tokens) - 2 and self._length <= self._limit:
            kind, text, upper = self._tokens[at]
            if kind in ("word", "name"):
                at = self._take_word(at, upper)
            else:
                if kind == "other":
                    self._take_sign(at, text)
                elif kind == "unsure":
                    self._tell("…")
                elif kind == "value":
                    self._expecting = False
                at += 1
        return " ".join(self._told)

    def _tell(self, text: str) -> None:
        if text:
            self._told.append(text)
            self._length += len(text) + 1

    def _take_sign(self, at: int, sign: str) -> None:
        if sign == "(":
            before = self._tokens[at - 1] if at else ("", "", "")
            self._around.append((self._listing, self._columns, self._argument))
            called = before[0] in ("word", "name") and before[2] not in _KEYWORDS
            self._argument, self._listing, self._expecting = called, False, False
        elif sign == ")":
            self._expecting = False
            if self._around:
                self._listing, self._columns, self._argument = self._around.pop()
        elif sign == "," and self._listing:
            self._told[-1] += ","
            self._expecting = True
        elif sign == ";":
            self._expecting = self._listing = False
            self._verb, self._columns, self._around = "", None, []

    def _take_word(self, at: int, upper: str) -> int:
        """Take a word or a name, and return where to go on."""
        before = self._tokens[at - 1][2] if at else ""
        follows = self._tokens[at + 1]
        if not self._verb:
            self._begin(upper, follows)
        elif (
            upper in _VERBS
            and before not in _NO_VERB_AFTER
            and (upper == "SELECT" or follows[1] != "(")
        ):
            self._tell(upper)
            self._argument = self._listing = False
            self._columns, self._expecting = None, upper == "UPDATE"
        elif upper == "WHERE":
            self._listing, self._expecting, self._columns = False, False, []
        elif upper == "FROM" and not self._argument and before != "DISTINCT":
            self._expecting, self._columns = True, None
        elif upper == "JOIN" or (upper == "USING" and self._verb in ("MERGE", "DELETE")):
            self._tell(upper)
            self._expecting = True
        elif upper == "INTO":
            self._expecting = True
        elif upper in _CLAUSES and not (upper == "ON" and self._verb in _DEFINE):
            self._expecting = self._listing = False
            if upper != "WHEN":
                self._columns = None
        elif self._expecting and upper in _BEFORE_NAME:
            pass
        elif self._verb in _DEFINE and upper in ("INDEX", "TRIGGER", "SEQUENCE", "TYPE"):
            self._tell(upper)
        elif self._expecting:
            return self._take_table(at)
        elif self._columns is not None and upper not in _CONNECTIVES:
            return self._take_column(at)
        return at + 1

    def _begin(self, upper: str, follows: _Token) -> None:
        if upper == "EXPLAIN" or not upper:
            self._tell(upper)
            return
        self._verb = upper
        self._tell(upper)
        if upper in _DEFINE and follows[0] == "word":
            self._expecting = True
            if follows[2] in ("TABLE", "VIEW", "MATERIALIZED"):
                self._tell(follows[2])
        elif upper in _WITH_A_NAME or upper in ("UPDATE", "MERGE", "DELETE"):
            self._expecting = upper != "DELETE"

    def _dotted(self, at: int) -> tuple[str, str, int]:
        """Return a name as written, its last part, and its end."""
        parts = [self._tokens[at][1]]
        while self._tokens[at + 1][1] == "." and self._tokens[at + 2][0] in ("word", "name"):
            at += 2
            parts.append(self._tokens[at][1])
        return ".".join(parts), parts[-1], at + 1

    def _take_table(self, at: int) -> int:
        name, _, after = self._dotted(at)
        self._tell(name)
        self._expecting = False
        # A called function takes arguments; otherwise more tables may follow.
        self._listing = self._verb not in _WITH_A_NAME and self._verb not in _DEFINE
        return after

    def _take_column(self, at: int) -> int:
        assert self._columns is not None, "the caller looks"
        _, name, after = self._dotted(at)
        beyond = after
        while self._tokens[beyond][1] == ")":
            beyond += 1
        kind, _, upper = self._tokens[beyond]
        if (kind == "compare" or upper in _COMPARISONS) and name not in self._columns:
            if self._columns and self._told[-1] == self._columns[-1]:
                self._told[-1] += ","
            else:
                self._tell("WHERE")
            self._columns.append(name)
            self._tell(name)
        return after
