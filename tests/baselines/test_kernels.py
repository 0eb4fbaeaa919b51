"""Every hand-written kernel is right, and compiles without spills; no GPU is needed."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.kernels import attention, nbody, rows_gpu
from harness.baselines.side import namespace
from harness.workload import discovery
from harness.workload.inputs import fill
from harness.workload.workload import enumerate_cases, make_arguments, static_arguments
from tests.baselines.cuda_on_cpu import COMPILER, CupyOnCpu
from tools.performance.command import BENCHMARKS

try:
    import cupy
    from cupy.cuda import nvrtc

    nvrtc.getVersion()
except (ImportError, RuntimeError) as error:
    cupy, problem = None, str(error)
else:
    problem = ""
needs_nvrtc = pytest.mark.skipif(cupy is None, reason=f"NVRTC cannot be used: {problem}")

KERNELS = Path(rows_gpu.__file__).parent
ARCHITECTURES = (80, 90, 100)
WHOLE = 90
"""The one whose kernels are compiled at every width; for the others the ends and the middle do."""
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
"""In what ptxas says of each kernel."""

NUMPY = namespace("numpy")
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory):
    """What stands in CuPy's place, over NumPy."""
    if COMPILER is None:
        pytest.skip("there is no g++ to run CUDA's source on the CPU with")
    place = CupyOnCpu(tmp_path_factory.mktemp("kernels"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", place)
        rows_gpu._kernel.cache_clear()
        yield place
    rows_gpu._kernel.cache_clear()


FUSED = [one for one in discovery.discover(BENCHMARKS).workloads if one.fused_gpu is not None]


def float32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def in_double(workload, arrays, static):
    """What the workload's baseline gives in double precision."""
    return workload.baseline(NUMPY, *(np.asarray(each, np.float64) for each in arrays), **static)


@pytest.mark.nightly
@pytest.mark.parametrize("workload", FUSED, ids=lambda workload: workload.__name__)
def test_a_kernel_computes_what_the_baseline_does_in_double_precision(on_cpu, workload):
    fused = workload.fused_gpu()
    cases = [
        case
        for case in enumerate_cases(workload, ["gpu"])
        if case.transform == "forward" and case.axes.get("dtype") != "bfloat16"
    ]
    assert cases
    for case in cases:
        arrays, static = fill(make_arguments(workload, case).flat), static_arguments(workload, case)
        expected = in_double(workload, arrays, static)
        found = fused(*arrays, **static)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * scale, err_msg=case.id)


def by_name(name):
    return next(one for one in FUSED if one.__name__ == name)


@pytest.mark.parametrize(
    ("name", "arrays", "static"),
    [
        ("Softmax", [1e4 * float32(3, 128)], {}),  # three rows, where a block has four
        ("Softmax", [np.where(np.arange(5)[:, None] == 2, np.nan, float32(5, 1024))], {}),
        ("Reduce", [float32(5, 33) - 1e4], {"operator": "logsumexp", "axis": 0}),
        ("Reduce", [float32(3, 256) + 1e4], {"operator": "logsumexp", "axis": 1}),
        (
            "Reduce",
            [np.where(np.arange(4)[:, None] == 1, np.nan, float32(4, 128))],
            {"operator": "logsumexp", "axis": 1},
        ),
        ("LayerNorm", [float32(7, 128) + 100, float32(128), float32(128)], {}),
        ("NaiveAttention", [float32(1, 2, 33, 32) for _ in range(3)], {}),
        ("NaiveAttention", [float32(1, 1, 65, 64) for _ in range(3)], {}),
        ("NBody", [float32(3, 65), np.abs(float32(65))], {}),
        ("NBody", [float32(3, 1), np.ones(1, np.float32)], {}),
        ("Heat", [float32(3, 7)], {"form": "roll"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_odd_sizes_large_values_and_nan(on_cpu, name, arrays, static):
    arrays = [each.astype(np.float32) for each in arrays]
    workload = by_name(name)
    found = workload.fused_gpu()(*arrays, **static)
    expected = in_double(workload, arrays, static)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_a_wrong_kernel_is_noticed(on_cpu, monkeypatch):
    monkeypatch.setattr(
        rows_gpu, "SOFTMAX", rows_gpu.SOFTMAX.replace("expf(v[k] - top)", "expf(v[k])")
    )
    rows_gpu._kernel.cache_clear()
    x = 1e3 + float32(4, 128)
    assert not np.isfinite(by_name("Softmax").fused_gpu()(x)).all()
    rows_gpu._kernel.cache_clear()


# --- compiled by NVRTC, for devices that are not here ---------------------------------------------


def compiled(source, architecture, *options):
    """Compile CUDA, and return what ptxas says of it."""
    program = nvrtc.createProgram(source, "kernel.cu", [], [])
    flags = (f"--gpu-architecture=sm_{architecture}", "--ptxas-options=-v", *options)
    try:
        nvrtc.compileProgram(program, flags)
    except nvrtc.NVRTCError as error:
        raise AssertionError(nvrtc.getProgramLog(program)) from error
    assert nvrtc.getCUBIN(program)
    return nvrtc.getProgramLog(program)


def raw_sources(powers=range(7, 16)):
    """Return the source of each kernel at each size that changes it, by name and size."""
    found = {f"attention {dim}": attention.source(dim) for dim in (32, 64)}
    found |= {"accelerations": nbody.source(), "logsumexp_columns": rows_gpu.LOGSUMEXP_COLUMNS}
    for kernel in ("SOFTMAX", "LAYER_NORM", "LOGSUMEXP_ROWS"):
        for width in (2**power for power in powers):
            source = rows_gpu.source(getattr(rows_gpu, kernel), width)
            found[f"{kernel.lower()} {width}"] = source
    return found


def elementwise_source(inputs, output, operation, name, dtype):
    """Return what CuPy compiles of an elementwise kernel over large arrays."""
    kernels = cupy._core._kernel
    kernel = cupy.ElementwiseKernel(inputs, output, operation, name)
    wide, integer = np.dtype(dtype), np.dtype(np.int32)
    words = [each.split()[:-1] for each in (*inputs.split(","), output)]
    types = [wide if "T" in each else integer for each in words]
    *_, chosen = kernel._decide_params_type(tuple(types[:-1]), (wide,))
    array, index, number = 1, 2, 3  # kinds of arguments, in CuPy 14
    infos = [
        kernels._ArgInfo(array, cupy.ndarray, kind, 1, True, False)
        if kind is wide
        else kernels._ArgInfo(number, np.int32, kind, 0, True, True)
        for kind in types
    ]
    infos.append(kernels._ArgInfo(index, object, None, 1, True, False))
    code = kernels._get_elementwise_kernel_code(
        tuple(infos), chosen, kernel.params, kernel.operation, kernel.name, kernel.preamble
    )
    return f"#include <cupy/complex.cuh>\n#include <cupy/carray.cuh>\n{code}"


USED = re.compile(r"Used (\d+) registers(?:, used \d+ barriers)?(?:, .*?(\d+) bytes smem)?")
HELD = Path(__file__).with_name("kernels.txt")
"""Registers and shared memory of each kernel, behind the beginning of its source's SHA-256; above
them what has compiled it."""


def taken(said):
    """Return the registers of a thread, the shared bytes of a block and the spilled bytes."""
    (registers, shared), spills = USED.search(said).groups(), SPILLS.findall(said)
    return int(registers), int(shared or 0), sum(int(number) for pair in spills for number in pair)


def held():
    return HELD.read_text().splitlines() if HELD.exists() else [""]


@pytest.fixture(scope="module")
def kernels(on_cpu):
    """The source of each kernel and the options to compile it with, by its name and device."""
    for workload in FUSED:
        workload.fused_gpu()
    assert len(set(on_cpu.elementwise)) >= 6
    headers = Path(cupy.__file__).parent / "_core/include"
    include = [f"-I{one}" for one in (headers, *headers.glob("cupy/_cccl/*")) if one.is_dir()]
    elementwise = {
        f"{texts[-1]} {dtype}": elementwise_source(*texts, dtype)
        for texts in set(on_cpu.elementwise)
        for dtype in ("float32", "float64")
    }
    found = {}
    for architecture in ARCHITECTURES:
        raw = raw_sources() if architecture == WHOLE else raw_sources((7, 11, 15))
        for options, sources in (((), raw), (include, elementwise)):
            for name, text in sources.items():
                found[f"{name} sm_{architecture}"] = text, (architecture, *options)
    return dict(sorted(found.items()))


@pytest.mark.nightly
@needs_nvrtc
def test_every_kernel_compiles_without_spills(kernels):
    spilled = {name: taken(compiled(text, *about))[2] for name, (text, about) in kernels.items()}
    assert {name: spills for name, spills in spilled.items() if spills} == {}


@needs_nvrtc
def test_registers_and_shared_memory_are_what_is_held(kernels):
    """The same compiler says the same of the same source, and is not asked again."""
    compiler = "NVRTC {}.{}".format(*nvrtc.getVersion())
    head, *before = held()
    if head not in ("", compiler):
        pytest.skip(f"what is held is of {head}, and here is {compiler}")
    known = {line.rpartition(": ")[0]: line for line in before}
    lines = []
    for name, (text, about) in kernels.items():
        title = f"{name}, {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        if title not in known:
            registers, shared, _ = taken(compiled(text, *about))
            known[title] = f"{title}: {registers} registers, {shared} bytes"
        lines.append(known[title])
    if not head:  # removed, to hold what is new
        HELD.write_text("\n".join([compiler, *lines, ""]))
    assert lines == held()[1:], f"if it is meant to differ: remove {HELD}, and run this test"


def test_no_kernel_is_forgotten():
    found = re.compile(r"__global__ void (?:__launch_bounds__\(\w+\) )?(\w+)\(")
    written = {name for file in KERNELS.glob("*.py") for name in found.findall(file.read_text())}
    assert {name for text in raw_sources().values() for name in found.findall(text)} == written
