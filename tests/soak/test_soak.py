"""The soak, for a short time: nothing is wrong in the end, and nothing is left of it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from support.waiting import eventually

TOOL = Path(__file__).parents[2] / "tools" / "soak"

#: One server and one cluster; seconds for both.
CHOSEN = ["--seconds", "20", "--stages", "server,failover"]

pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.timeout(600)]


@contextlib.contextmanager
def soak(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a soak, whose files lie in a folder."""
    process = subprocess.Popen(
        [sys.executable, str(TOOL), *words],
        env=os.environ | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate()


def test_nothing_is_wrong_after_a_while_of_everything_at_once(tmp_path: Path) -> None:
    """Writers, readers, cleaners, clock steps, restarts, failovers."""
    with soak(tmp_path, "--json", *CHOSEN) as process:
        out, err = process.communicate()
    assert process.returncode == 0, err
    for stage in json.loads(out)["stages"]:
        assert stage["events"] > 500, stage
        assert sum(stage["faults"].values()) >= 2, stage
        assert stage["asked"] > 10, stage
    assert not list(tmp_path.glob("redmeter-soak-*"))


def test_ctrl_c_ends_all_that_a_soak_has_started(tmp_path: Path) -> None:
    """Writers and their children, readers, the page, the server; and its files are gone."""
    with soak(tmp_path, "--seconds", "60", "--stages", "server") as process:
        here = psutil.Process(process.pid)
        eventually(lambda: len(here.children(recursive=True)) >= 13, 60.0, "all have started")
        children = here.children(recursive=True)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)  # twice: one is impatient
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        _, left = psutil.wait_procs(children, timeout=10)
        assert [child for child in left if child.status() != psutil.STATUS_ZOMBIE] == []
    assert not list(tmp_path.glob("redmeter-soak-*"))
