"""Whether kernels that others wrote are named in what was built, each with the line that calls it.

    python -m tools.pallas_kernels [KERNEL ...]

The list is `kernels.py`; none of their code is here, it comes with JAX, or with tokamax, which must
be importable (Python 3.12 and jax 0.11.1 or later; `pip install --target FOLDER tokamax`, and
PYTHONPATH). Prints one line a kernel, and how many of those whose package is there are right.
"""

import importlib.util
import sys
import time
from importlib.metadata import version
from pathlib import Path

from harness.errors import HarnessError
from harness.ir import build
from harness.workload.discovery import discover

HERE = Path(__file__).parent


def main(select: list[str]) -> int:
    """Build the kernels; return how many are not named as they should be."""
    calls = [
        number
        for number, line in enumerate((HERE / "kernels.py").read_text().splitlines(), 1)
        if line.endswith("# called")
    ]
    wrong, right = 0, 0
    for workload in discover(HERE).workloads:
        name, target = workload.__name__, workload.targets[0]
        if (select and name not in select) or not importlib.util.find_spec(workload.package):
            continue
        begin = time.monotonic()
        try:
            job = build.job(workload, build.one_case(workload), "", with_facts=True)
            kernels = build.build(job).written
        except HarnessError as error:
            print(f"WRONG  {name} {target}: {error}"[:300])
            wrong += 1
            continue
        is_right = sorted({one.name for one in kernels}) == sorted(workload.called) and all(
            one.file == str(HERE / "kernels.py") and one.line in calls for one in kernels
        )
        wrong, right = wrong + (not is_right), right + is_right
        shown = ", ".join(f"{one.name} ({one.language}, line {one.line})" for one in kernels)
        seconds = time.monotonic() - begin
        print(f"{'right' if is_right else 'WRONG'}  {name} {target}: {shown}, {seconds:.1f} s")
    print(f"jax {version('jax')}: {right} of {right + wrong} are named, each with its line")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
