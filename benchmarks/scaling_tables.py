"""The tables of docs/scaling.md: costs as they are stated there, and what is computed of them.

A table is text of which the document holds the same, to the letter, so that a test can tell whether
its figures follow from its costs.

Pure: no I/O.
"""

import math
import re
from collections.abc import Mapping, Sequence

from capacity import MEMORY, USUAL, Costs, Workload, capacity, checked
from redmeter.stored.shards import SHARDS

#: Numbers of primaries in the tables.
PRIMARIES = (1, 3, 6, 32, 60, 64)

#: Costs by name -> how the document calls them, and the unit: "us" of the server's time, "B" on the
#: wire, "B in memory", "times".
LABELS: Mapping[str, tuple[str, str]] = {
    "batch": ("an empty batch", "us"),
    "alone": ("extra for a batch sent alone instead of in a pipeline", "us"),
    "counters": ("extra if the batch has counters", "us"),
    "counter": ("a counter, without its intervals", "us"),
    "counter_slice": ("an interval of a counter", "us"),
    "gauges": ("extra if the batch has gauges", "us"),
    "gauge_slice": ("an interval of a gauge", "us"),
    "histograms": ("extra if the batch has histograms", "us"),
    "histogram": ("a histogram, without its intervals", "us"),
    "histogram_slice": ("an interval of a histogram", "us"),
    "new_slice": ("extra for a new interval of a counter or gauge", "us"),
    "report": ("the report of a process", "us"),
    "batch_bytes": ("an empty batch, sent", "B"),
    "counters_bytes": ("extra if the batch has counters, sent", "B"),
    "counter_bytes": ("a counter, without its intervals, sent", "B"),
    "counter_slice_bytes": ("an interval of a counter, sent", "B"),
    "gauges_bytes": ("extra if the batch has gauges, sent", "B"),
    "gauge_slice_bytes": ("an interval of a gauge, sent", "B"),
    "histograms_bytes": ("extra if the batch has histograms, sent", "B"),
    "histogram_bytes": ("a histogram, without its intervals, sent", "B"),
    "histogram_slice_bytes": ("an interval of a histogram, sent", "B"),
    "report_bytes": ("the report of a process, sent", "B"),
    "counter_memory": (
        "a counter at seven precisions, 400 events per second, retention full",
        "B in memory",
    ),
    "counter_young": ("the same with one interval per precision", "B in memory"),
    "gauge_memory": ("a gauge at seven precisions, retention full", "B in memory"),
    "histogram_memory": ("a histogram, 600 values per second, retention full", "B in memory"),
    "logger_memory": ("one severity of a logger: 100 messages, 50 patterns", "B in memory"),
    "watermark_memory": ("the watermark of a process in a shard", "B in memory"),
    "report_memory": ("the report of a process", "B in memory"),
    "connection_memory": ("a connection", "B in memory"),
    "among": ("batches among those of many processes, compared with alone", "times"),
}

#: What a user does when it is too much -> the workload then.
REMEDIES: Mapping[str, Workload] = {
    "unchanged": USUAL,
    "flush every 5 s": USUAL._replace(interval=5.0),
    "flush every 10 s": USUAL._replace(interval=10.0),
    "no 1 s precision": USUAL._replace(precisions=USUAL.precisions[1:]),
    "only 1 min, 1 h and 1 d": USUAL._replace(precisions=(60, 3600, 86400)),
    "only 1 min, 1 h and 1 d; flush every 10 s": USUAL._replace(
        precisions=(60, 3600, 86400), interval=10.0
    ),
    "half the label sets": USUAL._replace(counters=14, gauges=1, histograms=4),
    "no per-process gauges": USUAL._replace(own=0),
}


def costs_table(costs: Costs) -> str:
    """Write the costs as the document states them."""
    lines = ["| what | costs |", "|---|---|"]
    for name, (label, unit) in LABELS.items():
        lines.append(f"| {label} | {getattr(costs, name):,.{_digits(unit)}f} {unit} |")
    return "\n".join(lines)


def parse_costs(text: str) -> Costs:
    """Read costs from a text in which their table is.

    Raises:
        ValueError: one of them is not there.
    """
    found = {}
    for name, (label, unit) in LABELS.items():
        row = re.search(rf"^\| {re.escape(label)} \| ([\d,.]+) {unit} \|$", text, re.MULTILINE)
        if row is None:
            raise ValueError(f"nothing says what {label} costs, in {unit}")
        found[name] = float(row[1].replace(",", ""))
    return Costs(**found)


def _digits(unit: str) -> int:
    return 0 if unit.startswith("B") else 2


def capacity_table(costs: Costs) -> str:
    """Write the capacity of several primaries for the usual workload."""
    columns = ["primaries", "most shards on one", "batches per flush", "server time per flush"]
    columns += ["processes", "events per second", "traffic to the busiest", "its memory"]
    columns.append(f"series with {MEMORY / 1e9:.0f} GB each")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for primaries in PRIMARIES:
        found = capacity(costs, USUAL, primaries)
        cells = [
            f"{primaries}",
            "all, 1" if primaries == 1 else f"{found.shards} of {SHARDS}",
            f"{found.batches:.0f}",
            f"{found.flush / 1e3:.2f} ms",
            rounded(found.processes),
            rounded(found.events),
            f"{rounded(found.network / 1e6)} Mbit/s",
            f"{rounded(found.memory / 1e9)} GB",
            rounded(found.series),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def check_table(costs: Costs, measured: Sequence[tuple[float, float]]) -> str:
    """Write what a flush was computed to cost, and what it cost in the simulation.

    Args:
        measured: as checked() returns it, of one server, and of one with 64 shards.
    """
    lines = ["| one flush of a process | computed | measured |", "|---|---|---|"]
    for spread, (time, sent) in enumerate(measured):
        where = "64 shards on one server" if spread else "one server"
        us, size = checked(costs, spread=bool(spread))
        lines.append(f"| server time, {where} | {us / 1e3:.2f} ms | {time / 1e3:.2f} ms |")
        lines.append(f"| bytes sent, {where} | {rounded(size)} B | {rounded(sent)} B |")
    return "\n".join(lines)


def parse_check(text: str) -> list[tuple[float, float]]:
    """Read what was measured from a text in which that table is."""
    found = re.findall(
        r"^\| (?:server time|bytes sent), .* \| ([\d,.]+) (?:ms|B) \|$", text, re.MULTILINE
    )
    numbers = [float(each.replace(",", "")) for each in found]
    return [(numbers[at] * 1e3, numbers[at + 1]) for at in (0, 2)]


def remedies_table(costs: Costs) -> str:
    """Write how many processes there may be by what one does."""
    lines = [
        "| change | processes, one server | six primaries | memory for 10,000 |",
        "|---|---|---|---|",
    ]
    for what, work in REMEDIES.items():
        one, six = capacity(costs, work, 1), capacity(costs, work, 6)
        memory = one.memory / one.processes * 10_000
        cells = [what, rounded(one.processes), rounded(six.processes)]
        lines.append(f"| {' | '.join(cells)} | {rounded(memory / 1e9)} GB |")
    return "\n".join(lines)


def rounded(number: float) -> str:
    """Write a number with two digits that count."""
    if number == 0:
        return "0"
    digits = 1 - math.floor(math.log10(abs(number)))
    number = round(number, digits)
    return f"{number:,.{max(0, min(digits, 2))}f}"
