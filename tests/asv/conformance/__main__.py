"""Run all of it: `python -m tests.asv.conformance`; options are pytest's. It takes minutes."""

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    here = Path(__file__).parent
    options = ["-m", "", "-n", "0", "--timeout=1200", "-p", "no:cacheprovider", "-rsf"]
    named = [str(here / f"test_{word}.py") for word in sys.argv[1:] if word[0] != "-"]
    sys.exit(pytest.main([*(named or [str(here)]), *options]))
