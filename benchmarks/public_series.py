"""How well ranges and anomalies are on public series, for docs/forecast.md; takes some minutes.

    python benchmarks/public_series.py [--origins N]
    REDMETER_BENCH_SMOKE=1 python benchmarks/public_series.py   one series

Prints the part of values in the range of 95 %, as a mean over series, and how many labeled
windows the strongest 1 % of intervals hit: of every other series by name, of the rest, and of all.
"""

import argparse
import sys
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.public_series import HOUR, MINUTE, SERIES, coverage, hits, mean_coverage, read
from table import sized

STEPS = (1, 3, 6, 12, 24)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--origins", type=int, default=sized(300, 1), help="forecasts of each series"
    )
    origins = parser.parse_args().origins
    if not SERIES.exists():
        print(f"left out: there is no {SERIES}", file=sys.stderr)
        return
    names = [series.name for series in read(HOUR)]
    for label, precision in (("1 hour", HOUR), ("5 minutes", 5 * MINUTE))[: sized(2, 1)]:
        chosen = islice(read(precision), sized(None, 1))
        found = [(series, coverage(series, origins), hits(series)) for series in chosen]
        for half, wanted in (
            ("first half", names[::2]),
            ("second half", names[1::2]),
            ("all", names),
        ):
            some = [one for one in found if one[0].name in wanted]
            held = [shares for _, shares, _ in some if shares]  # long enough
            if not held:
                continue
            means = mean_coverage(held)
            windows = sum(len(series.windows) for series, _, _ in some)
            ours, scores = (sum(struck[at] for _, _, struck in some) for at in (0, 1))
            print(
                f"{label}, {half} ({len(held)}):",
                *(f"{step}: {means[step]:.1%}" for step in STEPS),
                f"| lowest {min(means.values()):.1%}, highest {max(means.values()):.1%}",
                f"| {ours} of {windows} windows, z-score {scores}",
                flush=True,
            )


if __name__ == "__main__":
    main()
