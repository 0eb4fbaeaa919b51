"""The campaign's command line."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tools.damaged.campaign import BAD, Bench, Case, campaign
from tools.damaged.campaign import __doc__ as about


def main() -> int:
    """Run a campaign, and print what came of it."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--flips", type=int, default=0, help="single bits, instead of --count")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", type=int, help="one case, by its number")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    if given.only is not None:
        with tempfile.TemporaryDirectory(prefix="damaged-") as folder:
            os.chdir(folder)
            case = Case(given.only, given.seed, bool(given.flips))
            print(case.format.name, case.kind, *Bench(Path(folder)).judge(case), sep="\n")
        return 0
    began = time.monotonic()
    found = campaign(given.flips or given.count, given.seed, bool(given.flips))
    total: Counter[str] = Counter()
    for name, counts in found.items():
        print(f"{name:14} " + ", ".join(f"{one} {number}" for one, number in counts.items()))
        most = max(total["MiB"], counts["MiB"])
        total.update(counts)
        total["MiB"] = most
    bad = {one: total[one] for one in BAD}
    took_s = time.monotonic() - began
    print(f"{total['files']} files in {took_s:.0f} s: {bad}, at most {total['MiB']} MiB held")
    return int(any(bad.values()))


if __name__ == "__main__":
    sys.exit(main())
