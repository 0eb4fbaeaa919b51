"""`harness profile patch`: a diff that saves builds and changes no result, or why there is none."""

from __future__ import annotations

import subprocess

import pytest

from harness.patches.proof import program_of, proposals
from harness.profiles.recorded import read
from tests import forks
from tests.cli.profile.test_try import recorded

PROGRAM = """\
import functools

import jax
import jax.numpy as jnp


def fit(data):
    @jax.jit
    def update(w):  # one step
        return w - 0.1 * jax.grad(lambda w: jnp.sum((w * data - 1.0) ** 2))(w)

    return update(jnp.ones(4, jnp.float32))


@functools.partial(jax.jit, static_argnames="n")
def ramp(x, n):
    return (jnp.arange(n) * x).sum()


for n in (2, 3, 4):
    print(fit(jnp.full(4, n, jnp.float32)).sum(), ramp(2.0, n=n))
"""


def test_a_patch_is_proven_applies_and_leaves_what_it_cannot_write(tmp_path):
    profile, _ = recorded(tmp_path, PROGRAM)
    done = forks.harness("profile", "patch", profile, cwd=tmp_path)
    assert done.returncode == 2  # nobody can be asked here
    assert "runs 5 times in copies of" in done.stderr
    assert "--yes" in done.stderr
    done = forks.harness("profile", "patch", profile, "--yes", "-o", "fix.patch", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, proven, *left = done.stdout.splitlines()
    assert first.startswith("Patched: 1 of ")
    assert "results equal" in first
    assert "`update`" in proven
    assert "3 builds → 1 (JH002)" in proven
    assert any("`ramp`" in line and "it raises: " in line for line in left)
    assert (tmp_path / "train.py").read_text() == PROGRAM
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "fix.patch"], cwd=tmp_path, check=True)
    assert "def _update(w, data):  # one step" in (tmp_path / "train.py").read_text()


def test_one_change_for_two_findings_is_one_patch(tmp_path):
    program = """\
import jax
import jax.numpy as jnp


def times(x, n):
    return jax.jit(lambda x: x * n)(x)


for n in range(3):
    times(jnp.ones(3), float(n))
"""
    folder, _ = recorded(tmp_path, program)
    profile = read(folder)
    (proposal,), _ = proposals(profile, program_of(profile))
    assert {one.remedy.id for one in proposal.findings} == {"JH002", "JH010"}
    assert sum(one.count for one in proposal.findings) == 2


@pytest.mark.nightly
def test_where_nothing_can_be_compared_there_is_no_patch(tmp_path):
    program = PROGRAM.replace("print(", "print(__import__('random').random(), ")
    program = program.replace("jnp.full(4, n,", "jnp.full(4, __import__('random').random(),")
    program = program.replace("ramp(2.0", "ramp(__import__('random').random()")
    profile, _ = recorded(tmp_path, program)
    done = forks.harness("profile", "patch", profile, "--yes", cwd=tmp_path)
    assert done.returncode == 4
    assert "agree on no output, file or result" in done.stdout
