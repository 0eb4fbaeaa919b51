"""CuPy's sides on a machine without a GPU: CuPy itself is real, the device is not there."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from harness.baselines import cupy_eager
from harness.baselines.cupy_eager import CupyEager
from harness.baselines.registry import find, of_family
from harness.baselines.side import Unavailable
from tools.gpu.libraries import count_kernel_nodes

needs_cupy = pytest.mark.skipif(
    importlib.util.find_spec("cupy") is None, reason="CuPy is not installed"
)
no_driver = pytest.mark.skipif(cupy_eager.DRIVER_FILE.exists(), reason="there is a CUDA driver")


def run(script, folder, **variables):
    """Run a script in a process of its own, with the environment of a comparison with CuPy."""
    environment = {**os.environ, **CupyEager.environment("", str(folder)), **variables}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()


CUPY = [side.name for side in of_family("gpu") if side.name != "xla"]


def test_without_cupy_the_reason_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"CuPy is not installed \(extra 'gpu'\)"):
        find("cupy-eager")("gpu")
    assert "extra 'gpu'" in cupy_eager.lacking()


@needs_cupy
@no_driver
@pytest.mark.parametrize("name", CUPY)
def test_without_a_driver_every_side_says_so_and_cupy_is_not_even_imported(name):
    loaded = "cupy" in sys.modules
    with pytest.raises(Unavailable, match="no CUDA driver"):
        find(name)("gpu")
    assert ("cupy" in sys.modules) == loaded
    assert "no CUDA driver" in cupy_eager.lacking()


PRETEND = """
from pathlib import Path
from harness.baselines import cupy_eager
from harness.baselines.registry import find
from harness.baselines.side import Unavailable
cupy_eager.DRIVER_FILE = Path("/")
try:
    find("cupy-eager")("gpu")
except Unavailable as error:
    print(error)
"""


@needs_cupy
@no_driver
def test_a_driver_without_a_device_is_told_by_cupy(tmp_path):
    assert run(PRETEND, tmp_path) == [
        "no CUDA device that CuPy can use (cupy.cuda.is_available() is False)"
    ]


FAILING = """
import cupy
from cupy.cuda.memory import OutOfMemoryError
from harness.baselines.cupy_eager import explain
for call in (lambda: cupy.zeros(1), cupy.cuda.nvrtc.getVersion):
    try:
        print(call())
    except RuntimeError as error:
        print(explain(error))
print(explain(OutOfMemoryError(2**40, 2**37)))
print(explain(ValueError("of something else")))
"""


@no_driver
def test_what_cupy_raises_is_explained(said):
    insufficient, library, memory, other = said["FAILING"]
    assert "no CUDA driver, or one that is too old" in insufficient
    assert "a library of CUDA is missing" in library or library.startswith("(")
    assert "memory is exhausted" in memory
    assert other == "ValueError: of something else"


def test_the_environment_isolates_the_caches_and_says_what_cublas_may_do(tmp_path):
    free = CupyEager.environment("", str(tmp_path))
    assert free["CUPY_CACHE_DIR"] == str(tmp_path)
    assert free["CUDA_CACHE_DISABLE"] == "1"
    assert free["CUPY_ACCELERATORS"] == "cub"
    assert "NVIDIA_TF32_OVERRIDE" not in free
    ieee, tf32 = (CupyEager.environment(precision, str(tmp_path)) for precision in ("ieee", "tf32"))
    assert (ieee["CUPY_TF32"], ieee["NVIDIA_TF32_OVERRIDE"]) == ("0", "0")
    assert tf32["CUPY_TF32"] == "1"
    assert "NVIDIA_TF32_OVERRIDE" not in tf32


COUNTING = """
from harness.baselines.cupy_eager import count_compiles
counts = count_compiles()
from cupy.cuda import compiler
backend = compiler._kernel_cache_backend
backend.load("a.cubin"); print(sorted(counts.items()))
backend.save("a.cubin", b"12345", "source"); print(sorted(counts.items()))
backend.load("a.cubin"); print(sorted(counts.items()))
import os
print(os.listdir(os.environ["CUPY_CACHE_DIR"]))
"""


def test_hits_and_misses_of_the_kernel_cache_are_counted_and_it_still_works(said):
    miss, saved, hit, files = said["COUNTING"]
    assert miss == "[('bytes', 0), ('hits', 0), ('misses', 1)]"
    assert saved == "[('bytes', 5), ('hits', 0), ('misses', 1)]"
    assert hit == "[('bytes', 10), ('hits', 1), ('misses', 1)]"
    assert files == "['a.cubin']"


FUSING = """
import cupy, numpy
from jax import tree_util
from harness.baselines.cupy_fused import Fused, fell_back
x = numpy.arange(4.0)
flat = Fused(cupy.fuse, lambda a, b: a * b + 1, (x, x), tree_util)
print(flat(x, x).tolist())
nested = Fused(cupy.fuse, lambda p, b: (p["w"] - p["u"][0], b), ({"u": [x], "w": x}, x), tree_util)
print([part.tolist() for part in nested({"w": x + 2, "u": [x]}, x)])
print(fell_back(None), fell_back(flat))
flat.fusion.new_fusion = object()
print(fell_back(flat))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The lines that each script prints, run one after the other in one process."""
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    scripts = {"COUNTING": COUNTING, "FUSING": FUSING}
    if not cupy_eager.DRIVER_FILE.exists():
        scripts["FAILING"] = FAILING
    text = "".join(f"print({name!r})\n{script}" for name, script in scripts.items())
    lines = run(text, tmp_path_factory.mktemp("kernels"))
    starts = [lines.index(name) for name in scripts] + [len(lines)]
    return {name: lines[starts[n] + 1 : starts[n + 1]] for n, name in enumerate(scripts)}


def test_a_fused_function_takes_nested_arguments_and_tells_when_it_fell_back(said):
    flat, nested, no, yes = said["FUSING"]
    assert flat == "[1.0, 2.0, 5.0, 10.0]"
    assert nested == "[[2.0, 2.0, 2.0, 2.0], [0.0, 1.0, 2.0, 3.0]]"
    assert no == "False False"
    assert yes == "True"


def test_kernel_nodes_are_counted_in_both_forms_of_a_graph_text():
    verbose = 'a[label="{KERNEL\n| {ID}}"] b[label="{MEMSET\n|x}"] c[label="{\nKERNEL\n|y}"]'
    assert count_kernel_nodes(verbose) == 2
    assert count_kernel_nodes('a[shape="octagon" label="0\nf"] b[shape="box"]') == 1
    assert count_kernel_nodes("digraph dot {}") == 0
