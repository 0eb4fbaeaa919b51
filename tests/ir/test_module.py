"""One compile alone: written from a program or a workload, and read again."""

import gzip
import io
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from jax import export

from harness import targets
from harness.errors import UsageError
from harness.ir import module_child
from harness.ir.module import DESCRIPTION, MODULE, SCRIPT, file_of, target_of, write
from harness.output.compile import script
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


LOWERED = jax.jit(lambda x: jnp.sin(x) @ x).lower(jax.ShapeDtypeStruct((8, 8), "float32"))
TEXT = LOWERED.as_text().encode()
PROTO = LOWERED.compiler_ir("hlo").as_serialized_hlo_module_proto()
"""An `HloModuleProto`; a dump has it as the first field of an `HloProto`."""
OF_DUMP = b"\n" + bytes([len(PROTO) & 0x7F | 0x80, len(PROTO) >> 7]) + PROTO


def bytecode():
    written = io.BytesIO()
    LOWERED.compiler_ir().operation.write_bytecode(written)
    return written.getvalue()


def exported():
    return export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((8,), "float32"))


OPTIMISED = LOWERED.compile().runtime_executable().hlo_modules()[0]

FORMATS = {
    "text": lambda: TEXT,
    "places": lambda: LOWERED.as_text(debug_info=True).encode(),
    "byte order mark and CRLF": lambda: b"\xef\xbb\xbf" + TEXT.replace(b"\n", b"\r\n"),
    "no name": lambda: TEXT.replace(b"module @jit__lambda", b"module"),
    "comments": lambda: b"// mine\n\n" + LOWERED.as_text("hlo").encode(),
    "bytecode": bytecode,
    "portable artifact": lambda: exported().mlir_module_serialized,
    "jax.export": lambda: exported().serialize(),
    "proto": lambda: PROTO,
    "proto of a dump": lambda: OF_DUMP,
    "gz": lambda: gzip.compress(bytecode()),
}


@pytest.mark.parametrize("form", FORMATS)
def test_a_module_is_read_in_each_form_that_it_is_written_in(form):
    parsed = str(module_child.parsed(FORMATS[form]()))
    assert "@main" in parsed
    assert "stablehlo.sine" in parsed


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b" \n", "it is empty"),
        (TEXT[: len(TEXT) // 2], "line 3, column"),
        (bytecode()[:100], "remain"),
        (gzip.compress(TEXT)[:50], "end-of-stream"),
        (LOWERED.compile().as_text().encode(), "optimised already"),
        (OPTIMISED.as_serialized_hlo_module_proto(), "optimised already"),
        (b"\x93NUMPY\x01\x00v\x00", "in no format"),
        (b"\n\x05\x00", "deserialize"),
        (b".version 8.3\n.target sm_90\n", "line 1"),
        (LOWERED.as_text("hlo").replace("\n", ", num_partitions=2\n", 1).encode(), "several"),
        (TEXT.replace(b"num_replicas = 1", b"num_replicas = 2"), "several devices"),
    ],
)
def test_what_is_no_module_of_one_device_is_refused_with_what_is_wrong(data, says):
    with pytest.raises(Exception) as raised:  # noqa: PT011 - of any parser
        module_child.parsed(data)
    assert says in module_child.reason(raised.value)


def test_a_name_is_of_a_file_where_there_is_one_or_one_is_meant(tmp_path):
    (tmp_path / "dump").mkdir()
    (tmp_path / "train.py").write_text("import jax\n")
    for name, says in (
        (tmp_path / "dump", "no module"),
        (tmp_path / "train.py", "harness compile FUNCTION -- python"),
        (tmp_path / "gone.mlir", "There is no file"),
        ("gone.mlir", "There is no file"),
    ):
        with pytest.raises(UsageError, match=says):
            file_of(str(name))
    assert file_of("Mlp") is None
    assert file_of("x" * 300) is None
    for number, size in ((0, 10), (4, 900)):
        name = f"module_{number:04}.jit_f.before_optimizations.txt"
        (tmp_path / "dump" / name).write_text("HloModule m" + " " * size)
        if not number:
            assert file_of(str(tmp_path / "dump")).name == name
    with pytest.raises(UsageError, match="holds 2 modules") as raised:
        file_of(str(tmp_path / "dump"))
    assert "0004" in str(raised.value).splitlines()[1]


@pytest.mark.parametrize("target", ["cpu", "tpu:v5e", "gpu:h200"])
def test_a_folder_is_compiled_for_what_it_was_written_for(tmp_path, target):
    made = targets.find(target)
    write(tmp_path, "module {}", script("f", made, {}, {}), made)
    assert target_of(tmp_path / MODULE) == target
    (tmp_path / SCRIPT).write_text('TARGET = "gpu:mine"\n')
    mine = f"gpu:{tmp_path / DESCRIPTION}"
    assert target_of(tmp_path / MODULE) == (mine if target == "gpu:h200" else "gpu:mine")
    write(tmp_path, "module {}", "", targets.find("cpu"))
    assert not (tmp_path / DESCRIPTION).exists()
    assert target_of(tmp_path / MODULE) == "cpu"


@pytest.mark.parametrize(
    ("text", "arguments", "code", "says"),
    [
        ("module {", (), 3, "is no module that can be compiled"),
        ("module @m attributes {mhlo.num_partitions = 2 : i32} {}", (), 3, "of several devices"),
        ("module {}", ("--case", "size=8"), 2, "are not for a file"),
        ("module {}", ("--against", "size"), 2, "--against is of workloads"),
        ("module {}", ("--target", "gpu:h300"), 2, "No target is called 'gpu:h300'"),
    ],
)
def test_what_cannot_be_compiled_from_a_file_is_one_clear_error(
    command, tmp_path, text, arguments, code, says
):
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
