"""What was measured elsewhere is read where Windows' Python runs; nothing is measured there."""

from __future__ import annotations

import json
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


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    out = tmp_path_factory.mktemp("windows")
    with harness.profile(out / "profile.json"):
        jax.jit(lambda x: x + 1)(1.0)
    commands = "\n".join([*READING, *MEASURING]).format(out=out)
    done = subprocess.run(
        [sys.executable, "-m", "tests.packaging.windows"],
        cwd=ROOT,
        input=commands,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip([*READING, *MEASURING], json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("command", READING)
def test_what_was_measured_is_read(answers, command):
    code, said = answers[command]
    assert code in (0, 1), said
    assert said
    assert "Traceback" not in said


@pytest.mark.parametrize("command", MEASURING)
def test_nothing_is_measured(answers, command):
    code, said = answers[command]
    assert (code, "Windows" in said) == (4, True), said
