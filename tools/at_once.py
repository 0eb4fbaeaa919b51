"""Start many sweeps at once on one results tree, and see that they measure one after the other.

    python -m tools.at_once --count 64

Each measures cases of its own sweep's seed with `--fresh`, so that each has records to add. All the
while the processes that measure are counted: never more than one. At the end every record of every
sweep must be there, whole, and every sweep must have ended with 0.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness.records.schema import Problems, read_file
from harness.records.store import record_files
from tests import started
from tools.left_over import Place
from tools.nightly_kills import Watch


def campaign(count: int, within_s: float = 3_600.0) -> Counter[str]:
    """Start `count` sweeps at once; return what came of it.

    Raises:
        AssertionError: two measured at once, a sweep failed, or a record is missing.
    """
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder)) as place:
        command = ("-m", "harness", "run", "--fresh", "--effort", "1x1", "--machine", "tested")
        began = time.monotonic()
        with Watch(of=folder) as watch:
            running = [
                place.start(*command, variables={started.TOKEN: f"{folder} {number}"})
                for number in range(count)
            ]
            ends = Counter(one.wait(within_s) for one in running)
        took_s = time.monotonic() - began
        problems = Problems()
        (file,) = record_files(place.results)
        records = list(read_file(file, problems))
        sweeps = {record.sweep for record in records}
        of_each = Counter(record.sweep for record in records)
        assert ends == {0: count}, ends
        assert watch.at_once == 1, f"{watch.at_once} measured at once"
        assert not problems, problems.summary()
        assert len(sweeps) == count, f"{len(sweeps)} sweeps of {count} have records"
        assert len(set(of_each.values())) == 1, of_each
        left = place.left()
        assert not left, left
    return Counter(
        {
            "sweeps": count,
            "records": len(records),
            "processes that measured at once, at most": watch.at_once,
            "looks at all processes": watch.looks,
            "seconds": round(took_s),
        }
    )


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=64)
    for what, number in campaign(parser.parse_args().count).items():
        print(f"{number:7d} {what}")


if __name__ == "__main__":
    main()
