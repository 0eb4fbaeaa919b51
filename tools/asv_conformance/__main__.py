"""Run all of it, in minutes: `python -m tools.asv_conformance`.

`existing` or `matrix` behind it runs that part alone. The first includes tests of asv's runs that
`make test` has too; the second needs a package index, Python 3.11 on PATH, npm and Chromium.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "tests" / "asv"
PARTS = {
    "existing": (HERE / "existing.py", TESTS / "test_quick.py", TESTS / "test_processes.py"),
    "matrix": (HERE / "matrix.py",),
}

if __name__ == "__main__":
    asked = sys.argv[1:] or PARTS
    if wrong := set(asked) - PARTS.keys():
        sys.exit(f"{sorted(wrong)[0]!r} is no part: expected {' or '.join(PARTS)}.")
    files = [str(file) for part in asked for file in PARTS[part]]
    pytest = [sys.executable, "-m", "pytest"]  # here `tests` is imported, and not rewritten
    options = ["-n", "0", "--timeout=1200", "-p", "no:cacheprovider"]
    sys.exit(subprocess.call([*pytest, *files, *options]))
