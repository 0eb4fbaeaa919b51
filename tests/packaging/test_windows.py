"""What was measured elsewhere is read where Windows' Python runs; nothing is measured there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import harness

ROOT = Path(__file__).parents[2]
REPORT = ["report -o {out}/report.html"]
READING = [
    "show",
    "compare 0.10.2 0.11.2",
    "compare --format json 0.10.2 0.11.2",
    "baselines",
    "list",
    "export -o {out}/rows.csv",
    "profile show {out}/profile.json",
    "profile report {out}/profile.json -o {out}/profile.html",
    "profile diff {out}/profile.json {out}/profile.json",
    "cache inspect {out}",
    "cache doctor {out}",
]
MEASURING = ["run", "aa", "nightly", "compare --live HEAD HEAD~1", "doctor"]


def few(folder):
    """Copy the committed results, and of their records those of one workload."""
    shutil.copytree(ROOT / "docs" / "example-results", folder)
    for file in folder.rglob("*.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(line for line in lines if b"Softmax" in line))
    return str(folder)


def answers(commands, out):
    """Return what each command ends with and says there, with committed results and a profile."""
    with harness.profile(out / "profile.json"):
        jax.jit(lambda x: x + 1)(1.0)
    done = subprocess.run(
        [sys.executable, "-m", "tests.packaging.windows"],
        cwd=ROOT,
        env={**os.environ, "HARNESS_RESULTS": few(out / "results"), "TMPDIR": str(out)},
        input="\n".join(commands).format(out=out),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(commands, json.loads(done.stdout), strict=True))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("reading", "measuring"),
    [
        (READING[:2], MEASURING),
        pytest.param([*READING[2:], *REPORT], [], marks=pytest.mark.nightly),
    ],
    ids=["some", "all others"],
)
def test_what_was_measured_is_read_and_nothing_is_measured(reading, measuring, tmp_path):
    said = answers([*reading, *measuring], tmp_path)
    for command in reading:
        code, text = said[command]
        assert code in (0, 1), (command, text)
        assert text, command
        assert "Traceback" not in text
    for command in measuring:
        code, text = said[command]
        assert (code, "Windows" in text) == (4, True), (command, text)
