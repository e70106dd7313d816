"""Stores that earlier code has filled, as text: how they are made, and how they are loaded.

    python tests/upgrades/stored.py COMMIT    writes tests/upgrades/stores/COMMIT.txt

A line of a file is a key, as JSON: its name, type, content, and when it expires (Unix milliseconds,
null if never). Names and contents are decoded as UTF-8; the files of Redmeter have nothing else.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from support.fixed_time import FixedTime  # noqa: E402
from support.servers import Server  # noqa: E402

FOLDER = Path(__file__).parent / "stores"
#: 2100-01-01 12:34:56 UTC: no server expires such keys today.
START = 4_102_490_096.0
#: How often fill.py runs, an hour apart.
HOURS = 3


class NoSuchCommit(Exception):
    """The repository has no such commit, or there is none."""


def old_code(commit: str, folder: Path) -> Path:
    """Unpack the sources of a commit into a folder; return what PYTHONPATH has to have.

    Raises:
        NoSuchCommit: it is not there.
    """
    command = ["git", "archive", commit, "src/redmeter"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    if done.returncode:
        raise NoSuchCommit(done.stderr.decode().strip())
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder / "src"


def dump(client: Any) -> str:
    """Return all keys of a database as lines of JSON, sorted."""
    rows = []
    for key in client.scan_iter(count=1000):
        kind, expires = client.type(key).decode(), client.execute_command("PEXPIRETIME", key)
        row = {"key": key.decode(), "type": kind, "expires": expires if expires > 0 else None}
        rows.append(row | {"content": _content(client, kind, key)})
    rows.sort(key=lambda row: row["key"])
    return "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)


def _content(client: Any, kind: str, key: bytes) -> Any:
    match kind:
        case "string":
            return client.get(key).decode()
        case "hash":
            return {f.decode(): v.decode() for f, v in sorted(client.hgetall(key).items())}
        case "zset":
            members = client.zrange(key, 0, -1, withscores=True)
            return {member.decode(): score for member, score in members}
        case "list":
            return [each.decode() for each in client.lrange(key, 0, -1)]
        case _:
            raise AssertionError(f"{key!r} is a {kind}: add how to write it")


def load(client: Any, text: str) -> int:
    """Write the keys of a dump; return how many."""
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        key, content = row["key"], row["content"]
        match row["type"]:
            case "string":
                client.set(key, content)
            case "hash":
                client.hset(key, mapping=content)
            case "zset":
                client.zadd(key, content)
            case _:
                client.rpush(key, *content)
        if row["expires"]:
            client.pexpireat(key, row["expires"])
    return len(rows)


def fill(source: Path, url: str, now: float, hour: int) -> None:
    """Run fill.py with the code of a folder."""
    subprocess.run(
        [sys.executable, str(Path(__file__).parent / "fill.py"), url, str(now), str(hour)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(source)},
        check=True,
        timeout=60,
    )


def filled_by(commit: str) -> str:
    """Return what fill.py leaves in a new server with the code of a commit, as text."""
    with tempfile.TemporaryDirectory() as folder, Server() as server, server.client() as client:
        source = old_code(commit, Path(folder))
        with FixedTime(server.port, START) as fixed:
            for hour in range(HOURS):
                fill(source, fixed.url, fixed.now, hour)
                fixed.advance(3600.0, client)
        return dump(client)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{sys.argv[1]}.txt").write_text(filled_by(sys.argv[1]), encoding="utf-8")
