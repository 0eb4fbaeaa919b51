"""Each small program is found to build what it says, for the reason that it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.profiles.causes.__main__ import SENTENCES, told

ROOT = Path(__file__).parents[3]


def test_the_named_cause_is_right_in_all_programs():
    command = [sys.executable, "-W", "ignore", "-m", "tests.profiles.causes", "--json"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(done.stdout)
    assert len(rows) >= 70
    wrong = {row["name"]: row["pairs"] for row in rows if not row["right"]}
    assert not wrong
    assert told(rows) == SENTENCES.read_text(encoding="utf-8"), (
        "what is said differs; if it is meant to: python -m tests.profiles.causes --write"
    )
