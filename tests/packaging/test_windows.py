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
READING = [
    "show",
    "compare 0.10.2 0.11.2",
    "compare --format json 0.10.2 0.11.2",
    "baselines",
    "fsck",
    "list",
    "export -o {out}/rows.csv",
    "report -o {out}/report.html",
    "profile show {out}/profile.json",
    "profile report {out}/profile.json -o {out}/profile.html",
    "profile diff {out}/profile.json {out}/profile.json",
    "cache stats {out}",
    "cache doctor {out}",
]
MEASURING = ["run", "aa", "nightly", "compare --live HEAD HEAD~1", "doctor"]


def few(folder):
    """Copy the committed results, and of their records those of one workload."""
    shutil.copytree(ROOT / "results", folder)
    for file in folder.rglob("*.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(line for line in lines if b"Softmax" in line))
    return str(folder)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    out = tmp_path_factory.mktemp("windows")
    with harness.profile(out / "profile.json"):
        jax.jit(lambda x: x + 1)(1.0)
    commands = "\n".join([*READING, *MEASURING]).format(out=out)
    done = subprocess.run(
        [sys.executable, "-m", "tests.packaging.windows"],
        cwd=ROOT,
        env={**os.environ, "HARNESS_RESULTS": few(out / "results"), "TMPDIR": str(out)},
        input=commands,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip([*READING, *MEASURING], json.loads(done.stdout), strict=True))


def test_what_was_measured_is_read(answers):
    for command in READING:
        code, said = answers[command]
        assert code in (0, 1), (command, said)
        assert said, command
        assert "Traceback" not in said


def test_nothing_is_measured(answers):
    for command in MEASURING:
        code, said = answers[command]
        assert (code, "Windows" in said) == (4, True), (command, said)
