"""What a watched page costs its server: processor time of one and of five watchers.

    python benchmarks/watched.py redis://127.0.0.1:6379/0 --seconds 60

Serves the page in a process of its own, and asks what an open overview asks, as often: each watcher
begins at another moment. Prints the share of one core that the process takes, by number of
watchers. `--keep` sets how long answers are shared, to compare.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

#: What an open overview asks, and how often, seconds: see frontend/src/views/overview.tsx.
POLLS = (
    ("/api/overview?precision=60", 10.0),
    ("/api/status", 15.0),
    ("/api/alerts?limit=200", 15.0),
    ("/api/views", 60.0),
)
_SERVE = """
import sys, uvicorn
from redmeter.dashboard import Dashboard, app
url, port, keep = sys.argv[1:]
if keep:
    app.KEEP = float(keep) / app.REPEATED
uvicorn.run(Dashboard(url, access="open"), host="127.0.0.1", port=int(port), log_level="warning")
"""


def processor_time(pid: int) -> float:
    """Return how long a process has run, user and system, seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def poll(client: httpx.AsyncClient, path: str, every: float, phase: float) -> None:
    """Ask again and again, as a tab does: with the tag of the answer before."""
    etag = ""
    await asyncio.sleep(phase * every)
    while True:
        answer = await client.get(path, headers={"If-None-Match": etag})
        etag = answer.headers.get("etag", "")
        await asyncio.sleep(every)


async def watch(base: str, watchers: int, seconds: float, pid: int) -> float:
    """Return the share of a core that the server takes while a number of tabs is open."""
    async with httpx.AsyncClient(base_url=base, timeout=30) as client:
        for path, _ in POLLS:
            (await client.get(path)).raise_for_status()
        tabs = [
            asyncio.create_task(poll(client, path, every, number / watchers))
            for number in range(watchers)
            for path, every in POLLS
        ]
        began, spent = time.monotonic(), processor_time(pid)
        await asyncio.sleep(seconds)
        share = (processor_time(pid) - spent) / (time.monotonic() - began)
        for tab in tabs:
            tab.cancel()
        await asyncio.gather(*tabs, return_exceptions=True)
    return share


def main() -> None:
    """Measure one and five watchers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--keep", default="", help="seconds that an answer is shared")
    given = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", _SERVE, given.url, str(port), given.keep]
    with subprocess.Popen(command) as server:
        try:
            base = f"http://127.0.0.1:{port}"
            for _ in range(100):
                try:
                    httpx.get(f"{base}/-/healthy")
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            for watchers in (1, 5):
                share = asyncio.run(watch(base, watchers, given.seconds, server.pid))
                print(f"{watchers} watching: {share:.2%} of a core")
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
