"""The command: tools/faults."""
# ruff: noqa: T201

import argparse
import contextlib
import datetime
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import redmeter
from fault_table.places import OneServer, Pair, Place, SentinelGroup, ThreeNodes
from fault_table.rows import CLUSTER_ROWS, PAIR_ROWS, SENTINEL_ROWS, SERVER_ROWS, Row
from fault_table.writers import BookWriter, MeterWriter, Numbers, Writer, quiet
from support.binaries import BINARIES
from support.fleet import DEFAULT

#: How it ends.
OK, WRONG = 0, 1

#: Between these lines of a page is the table.
BEGIN, END = "<!-- the fault table: made by tools/faults -->", "<!-- end of the fault table -->"

PLACES: dict[str, tuple[Callable[[str], Place], tuple[Row, ...]]] = {
    "server": (OneServer, SERVER_ROWS),
    "pair": (Pair, PAIR_ROWS),
    "sentinel": (SentinelGroup, SENTINEL_ROWS),
    "cluster": (ThreeNodes, CLUSTER_ROWS),
}
WRITERS = ("buffered", "sync", "book")


class Result(NamedTuple):
    """What became of the events of one writer in one row."""

    place: str
    row: Row
    writer: str
    numbers: Numbers
    #: Events that are stored; counted again although they were there.
    there: int
    doubled: int
    seconds: float
    #: What went wrong with the servers; "" if nothing.
    error: str = ""

    @property
    def lost(self) -> int:
        """Events that are gone, and that the writer believes to be stored."""
        n = self.numbers
        return max(0, n.recorded - n.buffered - n.uncertain - n.dropped.total() - self.there)

    @property
    def wrong(self) -> list[str]:
        """What should not be."""
        n = self.numbers
        most = n.recorded - n.buffered - n.dropped.total()
        found = {
            f"{self.lost} lost and not reported": self.lost and not self.row.unknown,
            f"{self.doubled} counted twice": self.doubled,
            f"{self.there - most} reported as dropped, and stored": self.there > most,
            f"{n.buffered} still buffered": n.buffered,
            f"books don't balance: {n}": not n.balanced,
            self.error: self.error,
        }
        return [text for text, is_wrong in found.items() if is_wrong]

    @property
    def name(self) -> str:
        """The row, for people."""
        return f"{self.place}, {self.row.name}, {self.writer}"


def run_row(place: Place, row: Row, kind: str) -> tuple[Numbers, int, int]:
    """Run a row; return what the writer knows, how many events are stored, and how many twice."""
    with place.row(), _opened(place, kind) as writer:
        if not row.starts:
            writer.start()
            writer.more()
        row.fault(place, writer)
        if not writer.ended:
            writer.more()
        writer.finish()
        counted = place.counted()
        del counted["earlier"]  # another writer's
        return writer.numbers(), len(counted), counted.total() - len(counted)


def _opened(place: Place, kind: str) -> Writer:
    if kind == "book":
        return BookWriter(place.client())
    return MeterWriter(place.url, place.shards, sync=kind == "sync")


def run(
    places: Sequence[str], writers: Sequence[str], words: Sequence[str], server: str
) -> Iterator[Result]:
    """Run rows, one after the other.

    Args:
        words: texts; only rows whose names have one of them. All, if none is given.
        server: a key of BINARIES.
    """
    for name in places:
        make, rows = PLACES[name]
        chosen = [row for row in rows if not words or any(word in row.name for word in words)]
        if not chosen:
            continue
        with contextlib.closing(make(server)) as place:
            for row in chosen:
                for kind in writers:
                    if kind == "book" and name == "cluster":
                        continue  # the listings know no cluster
                    yield _result(place, name, row, kind)


def _result(place: Place, name: str, row: Row, kind: str) -> Result:
    began, error = time.monotonic(), ""
    try:
        numbers, there, doubled = run_row(place, row, kind)
    except AssertionError as failed:
        numbers, there, doubled, error = Numbers(0, 0), 0, 0, f"not finished: {failed}"
    return Result(name, row, kind, numbers, there, doubled, time.monotonic() - began, error)


# --- Output ------------------------------------------------------------------------------------


def table(results: Sequence[Result]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| fault | writer | recorded | stored | repaired | uncertain | dropped | lost |",
        "|---|---|---:|---:|---:|---:|---|---:|",
    ]
    before = ""
    for result in results:
        if result.place != before:
            lines.append(f"| **{result.place}** | | | | | | | |")
            before = result.place
        n = result.numbers
        dropped = ", ".join(f"{reason} {events}" for reason, events in sorted(n.dropped.items()))
        cells = [
            *(result.row.name, result.writer, n.recorded, result.there),
            *(n.repaired, n.uncertain, dropped or 0, result.lost),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _conditions(results: Sequence[Result], server: str) -> str:
    today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    seconds = sum(result.seconds for result in results)
    return (
        f"{today}: {len(results)} rows in {seconds:,.0f} s, {server}; "
        f"Redmeter {redmeter.__version__}, Python {platform.python_version()}."
    )


def write(page: Path, text: str) -> None:
    """Put the table into a page, in place of the last one."""
    found = page.read_text(encoding="utf-8")
    if BEGIN not in found or END not in found:
        raise ValueError(f"{page} has no lines {BEGIN} and {END}")
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", found), encoding="utf-8")


def arguments(words: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="tools/faults",
        description="Break real servers in each way of a table while a writer records, and count "
        "what became of its events. Ends with 1 where events are lost and not reported.",
    )
    add = parser.add_argument
    add("rows", nargs="*", metavar="WORD", help="only rows whose names have one of these words")
    add("--places", default=",".join(PLACES), help=f"which of {', '.join(PLACES)} (all)")
    add("--writers", default=",".join(WRITERS), help=f"which of {', '.join(WRITERS)} (all)")
    add("--server", default=DEFAULT, choices=BINARIES, help=f"what serves ({DEFAULT})")
    add("--write", type=Path, metavar="PAGE", help="put the table into a page")
    given = parser.parse_args(words)
    for name, known in (("places", PLACES), ("writers", WRITERS)):
        chosen = [word.strip() for word in getattr(given, name).split(",") if word.strip()]
        if unknown := sorted(set(chosen) - set(known)):
            parser.error(f"no {', '.join(unknown)} among the {name}; there are {', '.join(known)}")
        setattr(given, name, chosen)
    return given


def main(words: list[str] | None = None) -> int:
    """Run the rows and print the table; return how it ended."""
    given, results = arguments(words), []
    with quiet():
        for result in run(given.places, given.writers, given.rows, given.server):
            results.append(result)
            told = "; ".join(result.wrong) or "ok"
            print(f"{result.seconds:5.1f} s  {result.name}: {told}", file=sys.stderr, flush=True)
    if not results:
        print("no row has such a name", file=sys.stderr)
        return WRONG
    text = f"{_conditions(results, given.server)}\n\n{table(results)}"
    print(text)
    if given.write:
        write(given.write, text)
    wrong = [result for result in results if result.wrong]
    for result in wrong:
        print(f"WRONG: {result.name}: {'; '.join(result.wrong)}", file=sys.stderr)
    return WRONG if wrong else OK
