"""CONTRIBUTING.md draws the paths of one inc() and of one series(), and states how many files run.

The drawn files run; those that are not drawn help them, and only their number matters.
"""

import gc
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import redmeter
from redmeter import Meter
from redmeter.recording.recorder import Recorder
from support.servers import Server

PACKAGE = Path(redmeter.__file__).parent
PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
#: Files of a drawn path at most.
MOST = 15


def drawn(call: str) -> tuple[list[str], int]:
    """Return the files of the path of a call, and how many files run according to the page."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## Where one `{call}()` goes")[2]
    tree, text = section.partition("\n## ")[0].split("```")[1:3]
    path = re.findall(r"^[ │├└─]*((?:\w+/)*\w+(?:\.\w+|/))(?= |$)", tree, re.MULTILINE)
    (stated,) = re.findall(r"\b(\d+) files run\b", text)
    return path, int(stated)


def files_that_run(call: Callable[[], object]) -> set[str]:
    """Return the files of the package whose functions a call runs in this thread."""
    files = set()

    def note(frame: FrameType, _: str, __: object) -> None:
        files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    gc.collect()  # objects of other tests, which would end meanwhile
    gc.disable()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        gc.enable()
    paths = {Path(file) for file in files}
    return {path.relative_to(PACKAGE).as_posix() for path in paths if PACKAGE in path.parents}


def compare(call: str, files: set[str]) -> None:
    path, stated = drawn(call)
    assert 10 < len(path) == len(set(path)) <= MOST
    assert all((PACKAGE / file).exists() for file in path)
    assert {file for file in path if file.endswith(".py")} <= files
    assert len(files) <= stated, sorted(files)


def test_the_path_of_an_event_is_drawn_as_it_runs(server: Server) -> None:
    """From the list of an instrument to the exchange with the server."""
    with Meter(server.url, flush_interval=3600) as meter:
        counter = meter.counter("orders")
        counter.inc()
        assert meter.flush(10.0)  # connects
        recorder = meter._recorder
        assert isinstance(recorder, Recorder)

        def record() -> None:
            counter._due = 0.0
            counter.inc()
            assert recorder._flusher.flush_until(time.monotonic() + 10, last=False)

        files = files_that_run(record)
        compare("inc", files)


def test_the_path_of_a_query_is_drawn_as_it_runs(server: Server) -> None:
    """From the method of a meter to the exchange with the server, and back."""
    with Meter(server.url, sync=True) as meter:
        meter.count("orders", labels={"plan": "pro"})
        meter.series("orders", precision=60)  # connects

        def read() -> None:
            assert meter.series("orders", precision=60).total == 1

        compare("series", files_that_run(read))
