"""Measure patterns of messages against drain3, and print one table for each set of messages.

    python benchmarks/patterns.py [--access-log FILE] [--records FILE.jsonl] [--logs FOLDER]

Messages come with the format they were made from, which is the truth about their groups. Formats
are the log calls in the sources of the installed packages and of the standard library, filled with
random arguments, each place with a kind of its own; --records adds real ones, a line each:
{"f": format, "m": text}; an access log has its requests, whose truth is the method. --logs names a
folder of labeled logs, one NAME.csv per set with the columns EventId and Content, such as the 2,000
lines per set of "Loghub: A Large Collection of System Log Datasets" (logpai/loghub). A table of its
own shows each of them, and their mean.

    accuracy  share of messages whose group holds exactly the messages of their format (grouping
              accuracy, as in "Tools and Benchmarks for Automated Log Parsing", Zhu et al., 2019)
    order     share of messages with another pattern when the messages come in another order
    merge     share of messages with another pattern when two processes get half of them each,
              in turn, and their patterns are put together by text
    FGA       F1 of the groups: how many were found exactly, of those found and of those there are
    pairs     F1 of the pairs of messages in one group: one odd message costs it little. Labeled
              logs also have its precision (few wrong merges) and recall (few wrong splits)

drain3 is measured as it comes, and with our patterns as its input. Its pattern is the last that the
group had, which flatters it: earlier ones differ.
"""

import argparse
import ast
import contextlib
import csv
import importlib
import json
import random
import re
import sys
import sysconfig
import time
import tracemalloc
import uuid
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from redmeter.analysis.text import patterns
from redmeter.analysis.text.secrets import mask
from redmeter.analysis.text.texts import clean_text
from redmeter.analysis.text.variants import merged_names
from support.realdata import REAL_LOG
from table import sized

#: (format, text)
Message = tuple[str, str]
#: Texts in, the pattern of each out; a fresh one has seen nothing.
Grouper = Callable[[Sequence[str]], list[str]]

LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
PLACE = re.compile(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?([sdrfigxX])")
HERE = random.Random(7)
NAMES = [f"{a}-{b}" for a in ("orders", "mail", "users", "search") for b in ("db", "web", "queue")]
KINDS: dict[str, Callable[[], str]] = {
    "d": lambda: str(HERE.randrange(10 ** HERE.randrange(1, 8))),
    "f": lambda: f"{HERE.random() * 100:.3f}",
    "x": lambda: f"{HERE.randrange(16**8):08x}",
    "path": lambda: "/" + "/".join(HERE.sample(NAMES, HERE.randrange(1, 4))) + ".py",
    "url": lambda: f"https://{HERE.choice(NAMES)}.example.org/v1/{HERE.randrange(9999)}",
    "uuid": lambda: str(uuid.UUID(int=HERE.getrandbits(128))),
    "address": lambda: f"10.0.{HERE.randrange(256)}.{HERE.randrange(256)}:{HERE.randrange(9999)}",
    "error": lambda: HERE.choice(["[Errno 111] Refused", f"{HERE.random():.2f}s over", "'key7'"]),
    "word": lambda: HERE.choice(NAMES),
    "object": lambda: f"<Connection object at 0x{HERE.getrandbits(40):x}>",
    "list": lambda: repr([HERE.randrange(99) for _ in range(HERE.randrange(1, 5))]),
    "quoted": lambda: repr(" ".join(HERE.sample(NAMES, HERE.randrange(1, 4)))),
}
TEXTS = sorted(set(KINDS) - set("dfx"))


def formats() -> list[str]:
    found: set[str] = set()
    for folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}:
        for path in islice(Path(folder).rglob("*.py"), sized(None, 200)):
            source = path.read_bytes()
            if b"log" in source and "test" not in str(path):
                with contextlib.suppress(SyntaxError, ValueError), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.update(calls(ast.parse(source)))
    return sorted(found)


def calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr=name),
                args=[*_, ast.Constant(value=str(text)), ast.Name() | ast.Attribute() | ast.Call()],
            ) if name in LEVELS and PLACE.search(text):
                line = text.split("\n")[0]
                if sum(word.isalpha() for word in PLACE.sub("", line).split()) >= 2:
                    yield line


def rendered(texts: Sequence[str], each: int = 10) -> list[Message]:
    messages = []
    for text in texts:
        places = [HERE.choice(TEXTS) if p in "sr" else p.lower() for p in PLACE.findall(text)]
        for _ in range(each):
            values = iter(places)
            full = PLACE.sub(lambda _m: KINDS.get(next(values), KINDS["d"])(), text)  # noqa: B023
            messages.append((text, full.replace("%%", "%")))
    HERE.shuffle(messages)
    return messages


def requests(path: Path) -> list[Message]:
    lines = re.findall(r'"([A-Z]+) (\S+ HTTP/\S+)" (\d+) (\d+)', path.read_text("utf-8"))
    return [(method, f"{method} {rest} {code} {size}") for method, rest, code, size in lines]


def ours(texts: Sequence[str]) -> list[str]:
    patterns._word.cache_clear()
    return [patterns.pattern_of(text) for text in texts]


def merged(texts: Sequence[str]) -> list[str]:
    """Return the groups as they are read: patterns that differ in one word are one."""
    recorded = ours(texts)
    names = merged_names(Counter(recorded))
    return [names.get(pattern, pattern) for pattern in recorded]


def drain(masked: bool) -> Grouper | None:
    try:
        miners: Any = importlib.import_module("drain3.template_miner")
    except ImportError:
        return None

    def group(texts: Sequence[str]) -> list[str]:
        miner = miners.TemplateMiner(config=miners.TemplateMinerConfig())
        seen = ours(texts) if masked else texts
        added = [miner.add_log_message(text)["cluster_id"] for text in seen]
        last = {cluster.cluster_id: cluster.get_template() for cluster in miner.drain.clusters}
        return [last[number] for number in added]

    return group


def accuracy(messages: Sequence[Message], found: Sequence[str]) -> tuple[float, float]:
    """Return the share of messages in a group that is exactly right, and the F1 of groups."""
    truth, groups = defaultdict(set), defaultdict(set)
    for number, ((text, _), group) in enumerate(zip(messages, found, strict=True)):
        truth[text].add(number)
        groups[group].add(number)
    right = [numbers for numbers in truth.values() if groups[found[min(numbers)]] == numbers]
    return sum(map(len, right)) / len(messages), 2 * len(right) / (len(truth) + len(groups))


def pairs(messages: Sequence[Message], found: Sequence[str]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of the pairs of messages in one group."""
    truth = [text for text, _ in messages]
    of = (Counter(zip(truth, found, strict=True)), Counter(truth), Counter(found))
    both, true, grouped = (sum(n * (n - 1) for n in counts.values()) for counts in of)
    return both / (grouped or 1), both / (true or 1), 2 * both / (true + grouped or 1)


def labeled(path: Path) -> list[Message]:
    with path.open(encoding="utf-8", newline="") as lines:
        return [(row["EventId"], row["Content"]) for row in csv.DictReader(lines)]


def measure_labeled(folder: Path, group: Grouper) -> None:
    """Print the accuracy for each labeled log of a folder, as an application would store it."""
    print(f"\nlabeled logs in {folder}, cleaned and masked; {group.__name__}")
    heads = f"{'a message':>11}{'labels':>8}{'groups':>8}{'accuracy':>10}{'FGA':>8}"
    print(f"  {'':<14}{heads}{'precision':>11}{'recall':>8}{'pairs':>8}")
    shares = []
    for path in sorted(folder.glob("*.csv")):
        messages = labeled(path)
        texts = [mask(clean_text(text)) for _, text in messages]
        started = time.perf_counter()
        found = group(texts)
        took = (time.perf_counter() - started) / len(texts)
        shares.append((*accuracy(messages, found), *pairs(messages, found)))
        counts = f"{len(dict(messages)):>8}{len(set(found)):>8}"
        print(f"  {path.stem:<14}{took * 1e6:>8.1f} us{counts}{shown(shares[-1])}")
    if shares:
        means = [sum(column) / len(shares) for column in zip(*shares, strict=True)]
        print(f"  {'mean':<14}{'':>27}{shown(means)}")


def shown(shares: Sequence[float]) -> str:
    widths = (10, 8, 11, 8, 8)
    return "".join(f"{share:>{width}.3f}" for share, width in zip(shares, widths, strict=True))


def differing(one: Sequence[str], other: Sequence[str]) -> float:
    return sum(a != b for a, b in zip(one, other, strict=True)) / len(one)


def measure(name: str, group: Grouper, messages: Sequence[Message]) -> None:
    texts = [text for _, text in messages]
    started = time.perf_counter()
    found = group(texts)
    took = (time.perf_counter() - started) / len(texts)
    tracemalloc.start()
    group(texts)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    order = random.Random(1).sample(range(len(texts)), len(texts))
    moved, halves = [""] * len(texts), [""] * len(texts)
    for number, pattern in zip(order, group([texts[i] for i in order]), strict=True):
        moved[number] = pattern
    halves[::2], halves[1::2] = group(texts[::2]), group(texts[1::2])
    right, groups = accuracy(messages, found)
    shares = (groups, pairs(messages, found)[2], differing(found, moved), differing(found, halves))
    told = f"{right:>10.1%}" + "".join(f"{share:>8.1%}" for share in shares)
    print(f"  {name:<22}{took * 1e6:>8.1f} us{len(set(found)):>8}{told}{memory / 1e6:>8.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--access-log", type=Path, default=REAL_LOG)
    parser.add_argument("--records", type=Path)
    parser.add_argument("--logs", type=Path, default=REAL_LOG.parent / "logs")
    chosen = parser.parse_args()
    sets = {"formats of installed packages, filled": rendered(formats())}
    if chosen.records:
        lines = map(json.loads, chosen.records.read_text("utf-8").splitlines())
        sets["real log records"] = [(line["f"], line["m"]) for line in lines]
    if chosen.access_log.exists():
        sets["requests of an access log"] = requests(chosen.access_log)
    groupers = {"pattern_of": ours, "drain3": drain(False), "drain3 over pattern_of": drain(True)}
    for title, messages in sets.items():
        print(f"\n{title}: {len(messages):,} messages of {len(dict(messages)):,} formats")
        heads = f"{'a message':>11}{'groups':>8}{'accuracy':>10}{'FGA':>8}{'pairs':>8}"
        print(f"  {'':<22}{heads}{'order':>8}{'merge':>8}{'memory':>11}")
        for name, group in groupers.items():
            if group:
                measure(name, group, messages)
            else:
                print(f"  {name:<22} not installed: pip install drain3")
    if chosen.logs.exists():
        measure_labeled(chosen.logs, ours)
        measure_labeled(chosen.logs, merged)


if __name__ == "__main__":
    main()
