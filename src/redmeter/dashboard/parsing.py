"""Reads the query of a URL by the table of endpoints.py.

Whether the store keeps a precision, and what is allowed together, only the reading tells. All else
is refused here, before anything is asked of a store: unknown and doubled parameters too, since a
typing error would be an answer to another question.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from redmeter.dashboard.endpoints import Endpoint
from redmeter.dashboard.parameters import Parameter
from redmeter.dashboard.refusals import Refusal
from redmeter.errors import InvalidName, InvalidValue, shown

#: Longest query of a URL, bytes: what servers take at least, with room for headers.
MAX_QUERY = 32_768


def parse(endpoint: Endpoint, query: bytes) -> dict[str, Any]:
    """Read the query of a URL.

    Returns:
        A value for every parameter; a tuple where it may be given several times.

    Raises:
        Refusal: 400, or 414 where it is too long.
    """
    given = _pairs(query)
    table = {parameter.name: parameter for parameter in endpoint.parameters}
    texts: dict[str, list[str]] = {}
    for name, text in given:
        if name not in table:
            known = ", ".join(table) or "none"
            raise _bad(
                "unknown-parameter", f"there is no parameter {_cut(name)}", f"known: {known}"
            )
        texts.setdefault(name, []).append(text)
    return {name: _value(row, texts.get(name, [])) for name, row in table.items()}


def _pairs(query: bytes) -> list[tuple[str, str]]:
    if len(query) > MAX_QUERY:
        message = f"the query has {len(query):,} bytes"
        raise Refusal(414, "query-too-long", message, f"at most {MAX_QUERY:,}: ask for fewer names")
    try:
        text = query.decode()
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=1000)
    except UnicodeDecodeError:
        raise _bad("not-utf-8", "the query is no UTF-8", "encode it as UTF-8") from None
    except ValueError:
        raise _bad("too-many", "over 1,000 parameters", "ask for fewer at a time") from None


def _value(row: Parameter, texts: list[str]) -> Any:
    if not texts:
        if row.required:
            raise _bad("missing-parameter", f"{row.name} is missing", row.kind.allowed)
        return () if row.most > 1 else row.default
    if row.most == 1 and len(texts) > 1:
        raise _bad("doubled-parameter", f"{row.name} is given {len(texts)} times", "give it once")
    if len(texts) > row.most:
        fix = f"at most {row.most}: ask for fewer at a time"
        raise _bad("too-many", f"{row.name} is given {len(texts):,} times", fix)
    values = [_one(row, text) for text in texts]
    return tuple(dict.fromkeys(values)) if row.most > 1 else values[0]


def _one(row: Parameter, text: str) -> Any:
    try:
        return row.kind.read(text)
    except (InvalidName, InvalidValue) as error:
        message = f"{row.name}={_cut(text)}: {error.reason}"
    except (ValueError, LookupError):
        message = f"{row.name}={_cut(text)} cannot be used"
    raise _bad("bad-parameter", message, row.kind.allowed)


def check_order_of_times(values: Mapping[str, Any]) -> None:
    """Check that a window does not end before it starts.

    Raises:
        Refusal: it does.
    """
    since, until = values.get("since"), values.get("until")
    if since is not None and until is not None and since > until:
        raise _bad(
            "start-after-end", f"since={since:.15g} is after until={until:.15g}", "swap them"
        )


def _bad(code: str, message: str, fix: str) -> Refusal:
    return Refusal(400, code, message, fix)


def _cut(text: str) -> str:
    """Return what was given as it stands in a message: ASCII, and short."""
    return shown(text.encode("ascii", "backslashreplace").decode(), 80)
