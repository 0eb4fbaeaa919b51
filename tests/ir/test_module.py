"""One compile alone: written from a program or a workload, and read again."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from harness.ir.module import MODULE, SCRIPT
from tests.ir import waves

PROGRAM = """
import jax
import jax.numpy as jnp

@jax.jit
def slow(x):
    for _ in range(20):
        x = jnp.sin(x) @ x
    return x.sum()

slow(jnp.ones((8, 8)))
"""


def alone(folder):
    return subprocess.run(
        [sys.executable, folder / SCRIPT], capture_output=True, text=True, check=False
    )


def test_a_slow_compile_of_a_program_is_compiled_alone_with_jax_and_read_again(command, tmp_path):
    program, folder = tmp_path / "program.py", tmp_path / "slow"
    program.write_text(PROGRAM)
    words = ("--", sys.executable, program)
    code, _, err = command("compile", "slow", "--reproduce", folder, *words)
    assert code == 0, err
    assert sorted(one.name for one in folder.iterdir()) == [SCRIPT, MODULE]
    assert (folder / MODULE).read_text().count("stablehlo.sine") == 20
    assert f"jax {jax.__version__}" in alone(folder).stdout
    code, out, _ = command("compile", folder, "--format", "json")
    read = json.loads(out)
    assert (code, read["tree"]["name"]) == (0, "backend_compile_and_load")
    assert {one["name"] for one in read["groups"]} >= {"code generation", "optimisation passes"}


@pytest.mark.nightly
def test_a_case_is_reproduced_and_hlo_before_its_optimisation_is_read(command, tmp_path):
    suite = waves.write(tmp_path / "suite", "reproducing", waves.SUITE)
    which = ("--case", "size=8", "--case", "axes=(0,)", "--no-try", "--benchmarks", suite)
    code, _, err = command("compile", "Wave", *which, "--reproduce", tmp_path / "wave")
    assert code == 0, err
    assert alone(tmp_path / "wave").returncode == 0
    hlo = tmp_path / "before.hlo"
    shape = jax.ShapeDtypeStruct((8,), "float32")
    hlo.write_text(jax.jit(jnp.sin).lower(shape).as_text("hlo"))
    code, out, _ = command("compile", hlo, "--format", "json")
    assert (code, json.loads(out)["kernels"] != []) == (0, True)


@pytest.mark.parametrize(
    ("text", "arguments", "code", "says"),
    [
        ("module {", (), 3, "cannot be compiled for cpu"),
        ("module @m attributes {mhlo.num_partitions = 2 : i32} {}", (), 3, "of a single device"),
        ("module {}", ("--case", "size=8"), 2, "are not for a file"),
        ("module {}", ("--target", "gpu:h300"), 2, "No target is called 'gpu:h300'"),
    ],
)
def test_what_is_no_module_of_one_device_is_refused(command, tmp_path, text, arguments, code, says):
    file = tmp_path / "some.mlir"
    file.write_text(text)
    got, _, err = command("compile", file, *arguments)
    assert (got, says in err) == (code, True), err


def test_a_folder_with_something_else_is_left_alone(command, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    program = tmp_path.with_name("p.py")
    program.write_text(PROGRAM)
    words = ("--", sys.executable, program)
    code, _, err = command("compile", "slow", "--reproduce", tmp_path, *words)
    assert (code, "holds notes.txt" in err) == (2, True), err
