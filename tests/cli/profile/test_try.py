"""`harness profile try`: remedies that are applied without an edit of the program."""

from __future__ import annotations

import json
import sys

import pytest

import harness
from tests import forks

PROGRAM = """
import functools, sys
import jax, jax.numpy as jnp

@functools.partial(jax.jit, static_argnames="steps")
def named(x, steps):
    return jax.lax.fori_loop(0, steps, lambda _, y: y * 0.5, x)

@jax.jit
def scaled(x, by):
    return x * by

@jax.jit
def both(x, by, settings):
    return x * by + settings["shift"]

class Model:
    @functools.partial(jax.jit, static_argnums=(0, -1))
    def step(self, x, rate, count):
        return x * rate + count

def numbered(x, n):
    return x.reshape(n, -1).sum()

jitted = jax.jit(numbered, static_argnums=1)
x, model = jnp.ones(4), Model()
for number in (1, 2, 4):
    named(x, number), jitted(x, number), model.step(x, 0.5, number)
scaled(x, jnp.float32(2)), scaled(x, by=2.0), scaled(x, 3.0)
both(x, 2.0, {"shift": 1}), both(x, jnp.float32(2), {"shift": jnp.int32(1)})
print("printed by the program")
"""


def recorded(folder, program):
    script = folder / "train.py"
    script.write_text(program)
    done = forks.harness("profile", "-o", folder / "p", "--", sys.executable, script, cwd=folder)
    return folder / "p", done


def test_each_remedy_is_applied_alone_and_what_it_saves_is_measured(tmp_path):
    profile, _ = recorded(tmp_path, PROGRAM)
    done = forks.harness("profile", "try", profile, "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {row["remedy"]: row for row in json.loads(done.stdout)}
    named = rows["`steps` of `named` as a dynamic argument"]
    assert (named["before"], named["after"], named["failed"]) == (3, 1, "")
    assert named["predicted"] == 2
    assert named["saved_s"] == pytest.approx(named["before_s"] - named["after_s"])
    assert rows["`count` of `step` as a dynamic argument"]["after"] == 1
    weak = rows["`by` of `scaled` always float32"]
    assert (weak["before"], weak["after"]) == (3, 2)  # by name is another call than by place
    weak = rows["`by`, `settings['shift']` of `both` always float32 or int32"]
    assert (weak["before"], weak["after"]) == (2, 1)
    sized = rows["`n` of `numbered` as a dynamic argument"]
    assert sized["failed"].startswith("TypeError: Shapes must be")
    cache = rows["the persistent cache, from the second run on"]
    assert cache["before"] == cache["predicted"] > 0 == cache["after"]
    assert cache["saved_s"] == pytest.approx(cache["before_s"] - cache["after_s"])
    assert (tmp_path / "p" / "run.json").exists()
    assert "printed by the program" not in done.stdout + done.stderr


SHAPES = """
import jax, jax.numpy as jnp, numpy as np

class Model:
    @jax.jit
    def loss(self, batch, *more):
        assert isinstance(batch["y"], jax.Array)
        return ((batch["x"] @ jnp.ones(3) - batch["y"]) ** 2).mean() + sum(more)

jax.tree_util.register_static(Model)
model = Model()
for n in (5, 6, 8, 9):
    batch = {"x": np.ones((n, 3), np.float32), "y": jnp.asarray(np.ones(n, np.float32))}
    model.loss(batch, 1.0, 2.0)
few = jax.jit(lambda x: x)
few(np.ones(2)), few(np.ones(3))
"""


@pytest.mark.nightly
def test_axes_that_vary_are_padded_together_where_that_leaves_builds_out(tmp_path):
    profile, _ = recorded(tmp_path, SHAPES)
    done = forks.harness("profile", "try", profile, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (padded,) = (line for line in done.stdout.splitlines() if "padded to powers of two" in line)
    assert padded.startswith("`batch['x']`, `batch['y']` of `loss` ")
    assert padded.partition("powers of two")[2].split()[:3] == ["4", "→", "2"], padded
    assert done.stdout.startswith("Remedies that leave builds out: 1 of 1, ")
    assert "The persistent cache saves " in done.stdout.partition("\n")[0]
    assert "Not tried: shape of `x` of `<lambda>`" in done.stdout


def test_where_nothing_can_be_tried_that_is_said(tmp_path):
    profile, _ = recorded(
        tmp_path,
        "import jax, numpy as np\n"
        "jax.config.update('jax_compilation_cache_dir', 'cache')\n"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)\n"
        "f = jax.jit(lambda x: x)\nf(np.ones(2)), f(np.ones(3))",
    )
    done = forks.harness("profile", "try", profile)
    assert done.returncode == 4
    assert "no remedy that can be tried without an edit" in done.stderr
    assert "shape of `x` of `<lambda>`" in done.stderr
    assert "the persistent cache, which the program has" in done.stderr


@pytest.mark.nightly
def test_a_program_that_cannot_run_again_is_said(tmp_path):
    profile, _ = recorded(
        tmp_path,
        "import jax, pathlib, sys\n"
        "pathlib.Path('made').mkdir()\n"
        "f = jax.jit(lambda x, n: x * n, static_argnums=1)\nf(1.0, 2), f(1.0, 3)",
    )
    done = forks.harness("profile", "try", profile, cwd=tmp_path)
    assert done.returncode == 2
    assert "The program fails as it is: FileExistsError" in done.stderr


def test_a_profile_of_no_command_is_refused(tmp_path):
    import jax

    jitted = jax.jit(lambda x, n: x * n, static_argnums=1)
    with harness.profile(tmp_path / "p"):
        jitted(1.0, 2), jitted(1.0, 3)
    done = forks.harness("profile", "try", tmp_path / "p")
    assert done.returncode == 2
    assert "This profile is of no command, which could run again." in done.stderr
