"""Measure what a store costs by series, interval and batch, and compute what servers hold.

    python benchmarks/scaling.py [costs] [check] [--processes 10000] [--rounds 7] [--write]

`costs` measures them, `check` lets many processes flush to one server and holds that against what
is computed; both, unless one is chosen, and then the other's figures are those of the document. The
tables are printed as they stand in docs/scaling.md; with --write they are put there.
"""

import argparse
import os
import platform
import re
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parent)]

import capacity  # noqa: E402
import costs  # noqa: E402
import scaling_tables  # noqa: E402
import simulation  # noqa: E402
from batches import Bench  # noqa: E402
from support.servers import Server  # noqa: E402
from table import sized  # noqa: E402

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"


def measure(bench: Bench, processes: int, rounds: int) -> tuple[capacity.Costs, str]:
    """Measure all costs, and their notes."""
    reports = costs.reports(bench, processes)
    first = reports.pop("first_report")
    found = {**costs.memory(bench, 50), **reports}
    series = costs.Series(bench)
    found |= {**costs.sizes(series), **costs.times(series, rounds)}
    told = f"| an instance number for a process that joins {processes:,} others "
    told += f"| {first / 1e3:.1f} ms |"
    # A difference of two times may come out below nothing where the machine does something else.
    kept = {what: max(0.0, cost) for what, cost in found.items()}
    stated = capacity.Costs(**kept, among=1.0)
    # As the document has them: what is computed is computed of these.
    return scaling_tables.parse_costs(scaling_tables.costs_table(stated)), told


def check(bench: Bench, processes: int) -> tuple[list[tuple[float, float]], list[str]]:
    """Let processes flush, on one server and on one with shards; return what was seen."""
    measured, told = [], []
    for spread, count in ((False, processes), (True, max(sized(100, 16), processes // 5))):
        some = simulation.Processes(bench, capacity.USUAL, count, spread=spread)
        some.flush_all()  # by which each of them has been there
        busy, paced = some.flush_all(), some.flush_all(paced=True)
        time_of = (busy.cpu + paced.cpu) / (busy.flushes + paced.flushes) * 1e6
        measured.append((time_of, (busy.sent + paced.sent) / (busy.flushes + paced.flushes)))
        where = "64 shards on one server" if spread else "one server"
        told.append(
            f"| {count:,} flushes, {where}, at full speed | "
            f"{busy.flushes / busy.passed:,.0f} flushes per second, "
            f"{busy.batches / busy.passed:,.0f} batches |"
        )
        for how, each in (
            ("meanwhile", busy),
            ("with an equally long pause after each flush", paced),
        ):
            half, most, longest = (f"{1e3 * wait:.1f}" for wait in each.pings)
            told.append(f"| PING {how} | median {half} ms, p99 {most} ms, maximum {longest} ms |")
        marks = sum(1 for _ in bench.conn.scan_iter("*batch:*", count=1000))
        told.append(f"| watermarks of {count:,} processes, {where} | {marks:,} |")
    return measured, told


def machine() -> str:
    """Return what this runs on."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    models = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}"


def put(text: str, table: str) -> str:
    """Put a table into a text in place of the one with the same head."""
    head = re.escape(table.partition("\n")[0])
    changed, count = re.subn(rf"^{head}\n(\|.*\n)*", f"{table}\n", text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"{count} tables begin with {head}")
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", choices=["costs", "check", []], help="what to measure")
    parser.add_argument("--processes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--server", default="valkey-9.1", help="as in tests/support/binaries.py")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    options = parser.parse_args()
    words = options.words or ["costs", "check"]
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    seen = ["| measurement | result |", "|---|---|"]
    with Server(options.server, port=False) as server:
        line = f"Measured on {time.strftime('%Y-%m-%d')}, on {machine()}: "
        line += f"{options.server} ({server.version}), {options.processes:,} processes."
        print(f"{line}\n")
        bench = Bench(server.socket)
        if "costs" in words:
            stated, told = measure(bench, options.processes, options.rounds)
            seen.append(told)
        else:
            stated = scaling_tables.parse_costs(page)
        if "check" in words:
            measured, told_too = check(bench, options.processes)
            seen += told_too
            # Costs are measured one by one, on few keys that stay in the processor's caches.
            alone, _ = capacity.checked(stated._replace(among=1.0), spread=False)
            stated = stated._replace(among=round(measured[0][0] / alone, 2))
        else:
            measured = scaling_tables.parse_check(page)
        bench.close()
    tables = [
        scaling_tables.capacity_table(stated),
        scaling_tables.remedies_table(stated),
        scaling_tables.costs_table(stated),
        scaling_tables.check_table(stated, measured),
    ]
    if len(words) == 2:
        tables.append("\n".join(seen))
    for table in tables:
        print(f"{table}\n")
        if options.write:
            page = put(page, table)
    if options.write:
        page = re.sub(r"^Measured on .*$", line, page, flags=re.MULTILINE)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
