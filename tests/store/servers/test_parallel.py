"""Jobs that wait for different servers."""

import subprocess
import sys
import threading

import pytest

from redmeter.store.servers.cluster import in_parallel
from support.programs import SOURCES, TIMEOUT

#: What is asked of a cluster by a destructor, once the interpreter takes modules apart.
ENDING = """
import sys
from redmeter.store.servers.cluster import in_parallel

class Last:
    def __del__(self, ending=sys.is_finalizing, ask=in_parallel, out=sys.stdout):
        print(ending(), ask([lambda: 1, lambda: 2, lambda: 3]), file=out, flush=True)

last = Last()
"""


def test_jobs_are_done_at_the_same_time() -> None:
    """Each waits for all others, so one after the other none would ever be done."""
    barrier = threading.Barrier(3)
    assert sorted(in_parallel([lambda: barrier.wait(10)] * 3)) == [0, 1, 2]
    assert in_parallel([]) == []


def test_an_error_waits_until_all_jobs_have_ended() -> None:
    """The first of several is raised."""
    done = []

    def fail(what: str) -> None:
        done.append(what)
        raise ValueError(what)

    with pytest.raises(ValueError, match="one"):
        in_parallel([lambda: fail("one"), lambda: done.append("two"), lambda: fail("three")])
    assert sorted(done) == ["one", "three", "two"]


def test_an_interpreter_that_is_ending_does_one_job_after_the_other() -> None:
    """Where no thread runs any more, and none is waited for."""
    told = subprocess.run(
        [sys.executable, "-c", ENDING],
        env={"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
    )
    assert (told.stdout, told.stderr) == ("True [1, 2, 3]\n", "")
