"""The inside of a compile: XLA's events of real compiles, and what is made of them."""

import math

import jax
import jax.numpy as jnp
import pytest

from harness.program.compiler import recording
from harness.program.compiler.inside import Inside, PassBranch, SourceLine, inside, source_lines
from harness.program.compiler.recording import Untraceable
from harness.program.compiler.times import compile_times
from harness.program.compiler.tree import (
    AUTOTUNING,
    CONVERSION,
    CUBIN,
    FUSION,
    GENERATION,
    LAYOUT,
    LLVM,
    PASSES,
    REST,
    CompileEvent,
    group_of,
)


def planted(x):
    y = jnp.tanh(x) * 2
    return jnp.sort(y, axis=-1)


LINES = {"tanh": planted.__code__.co_firstlineno + 1, "sort": planted.__code__.co_firstlineno + 2}


@pytest.mark.parametrize(
    ("name", "parent", "is_pipeline", "expected"),
    [
        ("CpuCompiler::Compile", (PASSES, ""), True, (REST, "")),
        ("CpuCompiler::CompileCpuExecutable", (PASSES, ""), False, (GENERATION, "")),
        ("PjRtCpuClient::Compile", (PASSES, ""), True, (CONVERSION, "")),
        ("JitCompiler::Compile", (PASSES, ""), False, (GENERATION, LLVM)),
        ("ptxas", (GENERATION, LLVM), False, (GENERATION, CUBIN)),
        ("layout assignment", (GENERATION, LLVM), False, (GENERATION, LLVM)),
        ("layout assignment", (PASSES, ""), False, (LAYOUT, "")),
        ("gemm-algorithm-picker", (PASSES, ""), True, (AUTOTUNING, "")),
        ("fusion", (PASSES, ""), True, (FUSION, "")),
        ("of no known name", (FUSION, ""), True, (PASSES, "")),
        ("of no known name", (FUSION, ""), False, (FUSION, "")),
    ],
)
def test_an_event_is_of_a_group_by_its_name_and_its_parent(name, parent, is_pipeline, expected):
    assert group_of(name, parent, is_pipeline) == expected


def lowered():
    jax.clear_caches()
    return jax.jit(planted).lower(jax.ShapeDtypeStruct((64, 128), "float32"))


@pytest.fixture(scope="module")
def compiled():
    """A compile's events, and what was compiled."""
    found, program = [], lowered()
    seen = recording.recorded(lambda: found.append(program.compile()))
    return seen, found[0].as_text()


def test_every_moment_of_a_compile_is_told_once(compiled):
    told = inside(*compiled)
    assert math.isclose(sum(one.wall_s for one in told.groups), told.wall_s, rel_tol=1e-6)
    assert math.isclose(told.tree.wall_s, told.wall_s, rel_tol=1e-6)
    assert math.isclose(sum(one.threads_s for one in told.groups), told.threads_s, rel_tol=1e-6)
    assert told.threads_s >= told.wall_s * 0.999
    assert {CONVERSION, PASSES, GENERATION} <= {one.name for one in told.groups}
    assert 0 < told.covered <= 1


def test_kernels_have_the_lines_of_the_users_code(compiled):
    kernels = inside(*compiled).kernels
    found = {kernel.op_name.rpartition("/")[2]: kernel for kernel in kernels}
    for operation, kernel in found.items():
        if operation in LINES:
            assert (kernel.file, kernel.line) == (__file__, LINES[operation])
            assert kernel.function == "planted"
    assert "tanh" in found or "mul" in found
    assert all(kernel.threads_s > 0 for kernel in kernels)


def test_what_is_profiled_already_is_told(tmp_path):
    with jax.profiler.trace(tmp_path), pytest.raises(Untraceable, match="does not start"):
        recording.recorded(lambda: None)
    with pytest.raises(ZeroDivisionError):
        recording.recorded(lambda: 1 / 0)
    assert inside(recording.recorded(lowered().compile), "") is not None  # it can be started again


@pytest.mark.parametrize("whole", [b"", b"no profile at all"])
def test_a_profile_that_was_cut_off_is_told(tmp_path, compiled, whole):
    file = tmp_path / "one.xplane.pb"
    file.write_bytes(whole or b"\n\xff\xff")
    with pytest.raises(Untraceable, match=r"one\.xplane\.pb cannot be read"):
        recording.read(file)


def test_a_plugin_without_events_leaves_the_whole_compile_unknown():
    root = CompileEvent("python", 0, 100, "backend_compile_and_load")
    assert inside([], "") is None
    assert inside([CompileEvent("python", 0, 5, "something else")], "") is None
    told = inside([root, CompileEvent("python", 10, 40, "a name of tomorrow")], "")
    assert told.covered == 0
    assert told.unknown == {"a name of tomorrow": 3e-8}


def test_threads_share_a_moment_and_who_waits_has_none_of_it():
    told = inside(
        [
            CompileEvent("main", 0, 100, "backend_compile_and_load"),
            CompileEvent("main", 10, 90, "Codegen"),
            CompileEvent("one", 20, 60, "FusionCompiler::Compile", "a_kernel_module", 7),
            CompileEvent("other", 20, 80, "FusionCompiler::Compile", "b_kernel_module", 5),
        ],
        "",
    )
    walls = {kernel.name: round(kernel.wall_s * 1e9) for kernel in told.kernels}
    assert walls == {"a": 20, "b": 40}
    assert {k.name: round(k.threads_s * 1e9) for k in told.kernels} == {"a": 40, "b": 60}
    [codegen] = told.tree.inside
    assert (round(codegen.wall_s * 1e9), round(codegen.own_wall_s * 1e9)) == (80, 20)
    assert [kernel.operations for kernel in told.kernels] == [5, 7]


def test_a_pass_and_its_own_pipeline_are_told_once_with_the_time_of_both():
    told = inside(
        [
            CompileEvent("main", 0, 100, "backend_compile_and_load"),
            CompileEvent("main", 10, 90, "simplification"),
            CompileEvent("main", 20, 80, "simplification"),
        ],
        "",
    )
    [one] = told.tree.inside
    assert (one.name, one.count, one.inside) == ("simplification", 1, [])
    assert [round(s * 1e9) for s in (one.wall_s, one.own_wall_s, one.threads_s)] == [80, 80, 80]


OLD = """\
HloModule jit_f

ENTRY %main (x: f32[8]) -> f32[8] {
  ROOT %tanh.1 = f32[8]{0} tanh(%x), metadata={op_name="jit(f)/tanh" source_file="a.py" \
source_line=12}
}
"""

FUSED = """\
HloModule jit_f

FileNames
1 "/lib/site-packages/library.py"
2 "mine.py"

FunctionNames
1 "inner"
2 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=5 end_line=5 column=4 end_column=26}
2 {file_name_id=2 function_name_id=2 line=9 end_line=9 column=4 end_column=26}

StackFrames
1 {file_location_id=2 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %cos.1 = f32[8]{0} cosine(%p), metadata={op_name="jit(f)/cos" stack_frame_id=2}
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %fusion = f32[8]{0} fusion(%x), kind=kLoop, calls=%fused
}
"""


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        (OLD, "tanh.1", SourceLine("jit(f)/tanh", "", "a.py", 12)),
        (FUSED, "cos.1", SourceLine("jit(f)/cos", "f", "mine.py", 9)),
        (FUSED, "fusion", SourceLine("jit(f)/cos", "f", "mine.py", 9)),
        ("", "fusion", None),
        ("HloModule f\n", "fusion", None),
    ],
)
def test_the_line_of_an_instruction_is_the_users_innermost(text, name, place):
    assert source_lines(text).get(name) == place


def test_a_pass_that_runs_in_several_places_is_kept_once_with_its_sums():
    fusion = PassBranch("fusion", "fusion", 2, 0.2, 0.2, 0.3)
    pipeline = PassBranch(
        "again", "rest", 1, 0.3, 0.1, 0.3, [PassBranch("fusion", "fusion", 3, 0.2, 0.2, 0.2)]
    )
    tree = PassBranch("compile", "rest", 1, 1.0, 0.5, 1.0, [fusion, pipeline])
    kept = compile_times(Inside(1.0, 1.0, 0.0, [], tree, [], {})).passes
    (one,) = (each for each in kept if each.name == "fusion")
    assert (one.count, one.wall_s, one.threads_s) == (5, 0.4, 0.5)
