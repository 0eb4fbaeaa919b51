"""Sides, threads, variables, caches, names: the small rules of a comparison."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harness.baselines import guards, side, side_process, timing
from harness.baselines.numpy_side import NumpySide
from harness.baselines.registry import REFERENCE, find, of_family
from harness.baselines.side import SPECIAL, Unavailable, namespace
from harness.baselines.side_process import owned, problems, variables
from harness.errors import UsageError
from harness.workload import inputs
from harness.workload.workload import spec


def test_the_reference_is_one_of_the_sides_of_every_family_that_has_any():
    assert REFERENCE == "xla"
    for family in ("cpu", "gpu"):
        assert REFERENCE in [side.name for side in of_family(family)]
        colours = [side.colour for side in of_family(family)]
        assert len(set(colours)) == len(colours)
    assert of_family("tpu") == []
    assert find("numpy") is NumpySide
    with pytest.raises(UsageError, match=r"No side is called 'torch'\. There are: xla, numpy"):
        find("torch")


def test_one_thread_sets_every_librarys_variable_and_all_sets_none_but_the_sides():
    assert variables("numpy", "one", "", "") == dict.fromkeys(side_process.THREAD_VARIABLES, "1")
    assert variables("xla", "all", "", "") == {}
    cupys = variables("cupy-eager", "all", "ieee", "/scratch")
    assert cupys["CUPY_CACHE_DIR"] == "/scratch"
    assert all(map(owned, cupys))


def test_a_variable_that_is_not_what_was_wanted_and_a_library_loaded_too_early_are_named(
    monkeypatch,
):
    monkeypatch.setenv("NPROC", "4")
    assert problems({"NPROC": "4"}, modules=["os"]) == []
    assert problems({"NPROC": "1", "OMP_X": "1"}, modules=["numpy"]) == [
        "environment: numpy was loaded before its variables were verified",
        "environment: NPROC is '4'; the comparison needs '1'",
        "environment: OMP_X is None; the comparison needs '1'",
    ]


def test_the_worker_verifies_before_it_loads_what_reads_variables_and_one_thread_is_one_core():
    script = """
import os
import harness.measure.worker, harness.measure.containment, harness.measure.job
from harness.baselines import registry, side_process
assert side_process.problems({}) == [], side_process.problems({})
if hasattr(os, "sched_setaffinity"):
    before = os.sched_getaffinity(0)
    assert side_process.pin("all") == [] and os.sched_getaffinity(0) == before
    assert side_process.pin("one") == [] and len(os.sched_getaffinity(0)) == 1
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("setting", "cpu_per_wall", "cores", "fine"),
    [
        *(("one", 1.05, 1, True), ("one", 1.2, 1, False)),
        *(("all", 2.05, 2, True), ("all", 2.2, 2, False), ("all", 0.5, 2, True)),
    ],
)
def test_the_cores_at_work_must_agree_with_the_rule(setting, cpu_per_wall, cores, fine):
    assert (side_process.contradiction(setting, cpu_per_wall, cores) == "") == fine
    assert side_process.disturbed(cpu_per_wall) == (cpu_per_wall < 0.9)


@pytest.mark.parametrize(
    ("argument_bytes", "cache_bytes", "sets"),
    [
        (0, 10**6, 1),
        (100, 10**6, 16),
        (10**6, 10**6, 4),
        (3 * 10**6, 10**6, 2),
        (2**26, 2**30, 4),
        (2**29, 2**30, 1),
        (100, None, 1),
    ],
)
def test_as_many_sets_as_exceed_the_cache_and_can_be_afforded(argument_bytes, cache_bytes, sets):
    assert timing.set_count(argument_bytes, cache_bytes) == sets


def test_what_fits_into_a_quarter_of_the_cache_is_resident_in_it():
    assert timing.is_resident(3, 10, 9, 10)
    assert not timing.is_resident(3, 10, 10, 10)
    assert not timing.is_resident(1, 1, 1, None)


def test_the_processors_cache_is_found_where_linux_tells_it(tmp_path, monkeypatch):
    for index, size in enumerate(("48K", "2048K", "36M", "nonsense")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(size + "\n")
    monkeypatch.setattr(side, "_CACHES", tmp_path)
    assert side.last_level_cache() == 36 * 2**20


def test_sets_of_inputs_share_numbers_but_neither_memory_nor_places():
    tree = {"a": spec((100,)), "n": spec((50,), "int32"), "given": np.arange(5)}
    sets = inputs.data_sets(tree, 3)
    plain = inputs.fill(tree)
    assert np.array_equal(sets[0]["a"], plain["a"])
    assert np.array_equal(sets[0]["n"], plain["n"])
    for other in sets[1:]:
        assert not np.array_equal(other["a"], plain["a"])
        assert np.array_equal(np.sort(other["a"]), np.sort(plain["a"]))
        assert np.array_equal(other["given"], np.arange(5))
        assert not np.shares_memory(other["given"], sets[0]["given"])
        assert other["n"].dtype == np.int32


def test_the_namespace_is_the_array_api_and_three_functions():
    xp = namespace("numpy")
    for name in (*SPECIAL, "tanh", "astype", "permute_dims", "matmul", "float32", "pi"):
        assert hasattr(xp, name), name
    assert xp.erf(np.float64(0)) == 0
    assert namespace("numpy").asarray([1.5]).dtype == np.float64


def test_without_array_api_compat_the_namespace_is_unavailable(monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat.numpy", None)
    with pytest.raises(Unavailable, match="array-api-compat cannot be imported"):
        namespace("numpy")


def test_leaves_are_called_by_parameter_and_path():
    arguments = ({"w": 1, "b": 2}, 3, (4, 5))
    names = guards.names_of(arguments, ["params", "x"])
    assert names == ["params['b']", "params['w']", "x", "argument 2[0]", "argument 2[1]"]


def test_constant_floats_are_noticed_and_constant_integers_and_scalars_are_not():
    arguments = (np.zeros(3), np.ones(3, int), np.float64(1), np.arange(3.0))
    assert guards.constant_inputs(arguments, list("abcd")) == [
        "constant inputs: a is 0.0 everywhere; expected random data"
    ]


def test_a_checksum_sees_one_changed_bit_in_any_dtype():
    for array in (np.ones(4), np.ones((2, 2), bool).T, jnp.ones(3, "bfloat16"), np.zeros((0, 2))):
        array = np.asarray(array).copy()
        before = guards.digest([array])
        assert guards.digest([array.copy()]) == before
        if array.size:
            array.flat[-1] = 0
            assert guards.mutated(before, guards.digest([array]), ["x"]) == [
                "mutated input: x is not what it was before the call"
            ]


def test_parameters_of_the_entry_computation_alone_are_counted():
    def function(a, b, c):
        return jax.lax.scan(lambda s, x: (s + x, jnp.tanh(s)), a, b)

    shape = jax.ShapeDtypeStruct
    specs = (shape((), "float32"), shape((8,), "float32"), shape((4,), "float32"))
    text = jax.jit(function).lower(*specs).compile().as_text()
    assert guards.entry_parameters(text) == 2
    jaxpr = jax.make_jaxpr(function)(*specs)
    said = ["argument c is not used by the program XLA built"]
    assert guards.unused_arguments(text, jaxpr, ["a", "b", "c"]) == said
    assert guards.unused_arguments(text, jaxpr, ["a", "b"]) == []
    assert guards.unused_arguments("", jaxpr, ["a", "b", "c"]) == []


def test_an_argument_that_is_used_without_effect_is_counted_though_not_named():
    def function(a, b):
        jnp.sin(b)
        return a + 1

    specs = (jax.ShapeDtypeStruct((4,), "float32"),) * 2
    text = jax.jit(function).lower(*specs).compile().as_text()
    (found,) = guards.unused_arguments(text, jax.make_jaxpr(function)(*specs), ["a", "b"])
    assert "not used by the program XLA built" in found
