"""Run all of it, in minutes: `python -m tests.asv.conformance`.

`existing` or `matrix` behind it runs that part alone. The second needs a package index, Python 3.11
on PATH, npm and Chromium.
"""

import sys
from pathlib import Path

import pytest

PARTS = ("existing", "matrix")

if __name__ == "__main__":
    asked = sys.argv[1:] or PARTS
    if wrong := set(asked) - set(PARTS):
        sys.exit(f"{sorted(wrong)[0]!r} is no part: expected {' or '.join(PARTS)}.")
    files = [str(Path(__file__).with_name(f"{part}.py")) for part in asked]
    sys.exit(pytest.main([*files, "-n", "0", "--timeout=1200", "-p", "no:cacheprovider"]))
