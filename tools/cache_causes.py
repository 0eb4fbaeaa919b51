"""How often `harness cache explain` gives the cause that an expert gives.

    python -m tools.cache_causes [NAME...]

Does each pair of runs of tests/cache/causes.py, or those whose names have one of the words, as
tests of tests/cache/test_explain.py, which else do one pair of each kind.
"""

import os
import sys

import pytest

if __name__ == "__main__":
    os.environ["TESTS_CAUSES"] = "all"
    chosen = " or ".join(sys.argv[1:]) or "test"
    test = "tests/cache/test_explain.py::test_a_cause_is_named"
    sys.exit(pytest.main(["-n", "0", "-rs", "--tb=short", "-k", chosen, test]))
