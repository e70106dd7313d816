"""A database as text: all keys with type, time to live and content, sorted, random ids replaced.

    redmeter:count:60:hits  hash, 8160 s
      4102490040 = 3

A producer's random id becomes `<producer>`, a watermark's number `<number>`: how many batches a
writer needs is not part of the stored format. Lines that are the same afterwards appear once.
Times to live are rounded to 0.25 s, because reading one takes time.
"""

import re
from collections.abc import Iterator
from typing import Any

from support.fixed_time import FixedTime

_PRODUCER = re.compile(r"\b[0-9a-f]{32}\b")
#: Members of a writer's report that differ between runs, or are not part of the stored format.
_PROCESS = re.compile(r'("(?:host|pid|batches|buffer_bytes)": )("[^"]*"|\d+)')
#: How many frames of libraries a traceback leaves out.
_LEFT_OUT = re.compile(r"(?<=: )\d+(?= frames)")
_WATERMARK = re.compile(r"^\d+")


def dumped(client: Any, time: FixedTime) -> str:
    """Return all keys of a database.

    Args:
        client: of the real server; does not decode.
        time: by which keys expire.
    """
    found = {"\n".join(_lines(client, time, key)) for key in client.scan_iter(count=1000)}
    return "\n".join([*sorted(found), ""])


def _lines(client: Any, time: FixedTime, key: bytes) -> Iterator[str]:
    kind, left = client.type(key).decode(), time.left(client, key)
    lives = "stays" if left is None else f"{round(left * 4) / 4:.2f} s"
    yield f"{_text(key)}  {kind}, {lives}"
    for line in _content(client, kind, key):
        yield f"  {line}"


def _content(client: Any, kind: str, key: bytes) -> list[str]:
    match kind:
        case "string":
            text = _text(client.get(key))
            return [_WATERMARK.sub("<number>", text) if b"batch:" in key else text]
        case "hash":
            fields = client.hgetall(key)
            if key.endswith(b"meta:"):
                fields[b"born"] = b"<random>"
            return sorted(f"{_text(f)} = {_text(v)}" for f, v in fields.items())
        case "zset":
            found = client.zrange(key, 0, -1, withscores=True)
            return sorted(f"{_text(member)} = {score!r}" for member, score in found)
        case "list":
            return [_text(entry) for entry in client.lrange(key, 0, -1)]
        case _:
            raise AssertionError(f"{key!r} is a {kind}: say here how to write it")


def _text(raw: bytes) -> str:
    text = raw.decode(errors="backslashreplace").replace("\n", "\\n").replace("\r", "\\r")
    return settled(text)


def settled(text: str) -> str:
    """Replace what differs between runs, or between versions of other libraries."""
    text = _LEFT_OUT.sub("<n>", _PRODUCER.sub("<producer>", text))
    return _PROCESS.sub(r'\1"…"', text)
