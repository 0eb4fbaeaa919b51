"""What `harness adopt` makes of existing tests."""

import pytest

from tests.scaffold.package import FEW, Package

MODELS = """
import functools

import jax


def predict(params, x):
    return jax.nn.relu(x @ params["w"] + params["b"])


@functools.partial(jax.jit, static_argnums=1)
def power(x, n):
    for _ in range(n):
        x = x @ x
    return x


def scale(x, factor, kind="mean"):
    return x * factor if kind == "mean" else x


def draw(key, shape):
    return jax.random.normal(key, shape)
"""

SPEED = """
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mypackage import models
from mypackage.models import predict


@pytest.fixture
def params():
    return {"w": jnp.ones((784, 128)), "b": jnp.zeros(128)}


@pytest.mark.parametrize("batch", [64, 256])
def test_predict(benchmark, params, batch):
    benchmark(predict, params, jnp.ones((batch, 784)))


def test_predict_again(benchmark, params):
    benchmark(predict, params=params, x=jnp.ones((2, 784)))


@pytest.mark.benchmark(group="jitted")
def test_ready(benchmark, params):
    f = jax.jit(predict)
    x = jnp.ones((2, 784))
    benchmark(lambda: f(params, x).block_until_ready())


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_power(benchmark, n, dtype):
    x = jnp.ones((32, 32), dtype)

    def run():
        return jax.block_until_ready(models.power(x, n))

    benchmark.extra_info["n"] = n
    benchmark.pedantic(run, rounds=3)


def test_scale(benchmark):
    def setup():
        return (np.ones(8, np.float32), 2.0), {"kind": "mean"}

    benchmark.pedantic(models.scale, setup=setup)


@pytest.mark.parametrize("shape", [(2, 3), (4, 5, 6)])
def test_shapes(benchmark, shape):
    benchmark(models.scale, jnp.ones(shape), jnp.float32(3))


def test_draw(benchmark):
    benchmark(models.draw, jax.random.key(0), (2, 3))


def test_gradient(benchmark, params):
    benchmark(jax.grad(lambda p: predict(p, jnp.ones((2, 784))).sum()), params)


def test_no_data(benchmark):
    raise FileNotFoundError("no data here")


def test_lookup(benchmark):
    def table(x):
        raise KeyError("no table here")

    shape = jax.ShapeDtypeStruct((), jnp.float32)
    jax.pure_callback(table, shape, jnp.zeros(())).block_until_ready()


def test_without_a_benchmark():
    raise AssertionError("it is not run")
"""

PLAIN = """
import unittest

import jax
import jax.numpy as jnp
import pytest

from mypackage import models


@pytest.mark.parametrize("n", [4, 8])
def test_scale(n):
    assert (models.scale(jnp.ones(n), 2.0) == 2).all()


class ScaleTest(unittest.TestCase):
    def test_same(self):
        x = models.draw(jax.random.PRNGKey(0), (2, 2))
        models.scale(x, 2.0, kind="other")
        self.fail("what was called counts all the same")


def test_nothing():
    assert 1 + 1 == 2
"""


@pytest.fixture(scope="module")
def adopted(tmp_path_factory):
    """A package with tests, which have been adopted."""
    package = Package(tmp_path_factory.mktemp("adopted"), models=MODELS)
    package.write(package.folder / "tests" / "test_speed.py", SPEED)
    package.write(package.folder / "tests" / "plain_test.py", PLAIN)
    package.said = package.harness("adopt tests/test_speed.py tests/plain_test.py")
    return package


def written(package):
    """Return the texts of all benchmarks."""
    return {file.name: file.read_text() for file in (package.folder / "benchmarks").glob("*.py")}


def classes(text):
    """Return the text of each class by its name."""
    return {one.partition("(")[0]: one for one in text.split("\n\n\nclass ")[1:]}


PREDICT = "    function = staticmethod(mypackage.models.predict)"
FOUND = {
    # Parameters that tell the shapes are axes.
    "speed.Predict": [
        '"""mypackage.models.predict, as test_predict calls it."""',
        '    sweep = {"batch": [64, 256]}\n',
        "    def inputs(self, batch):\n",
        '            {"w": spec((784, 128), "float32"), "b": spec((128,), "float32")},\n',
        '            spec((batch, 784), "float32"),\n',
        PREDICT,
    ],
    # A function of the test's own stands for what it calls.
    "speed.PredictAgain": [PREDICT],
    "speed.Power": [
        'sweep = {"dtype": ["float32", "bfloat16"], "n": [2, 3]}',
        "        return spec((32, 32), dtype), n\n",
    ],
    # What is no array is static.
    "speed.Scale": [
        'sweep = {"factor": [2.0], "kind": ["mean"]}',
        'static = ("factor", "kind")',
    ],
    "speed.Draw": ['sweep = {"shape": [(2, 3)]}', 'return spec((), "key")'],
    # Cases that no parameter tells have arguments of their own.
    "speed.Shapes": [
        '"shape0": {"given": (spec((2, 3), "float32"), numpy.float32(3.0))},',
        '"shape1": {"given": (spec((4, 5, 6), "float32"), numpy.float32(3.0))},',
    ],
    # Without benchmarks a test stands for what it calls.
    "plain.Scale": ['sweep = {"n": [4, 8], "factor": [2.0]}', 'return spec((n,), "float32")'],
    "plain.ScaleTestSame": ['"kind": ["other"]'],
}


@pytest.mark.parametrize("name", FOUND)
def test_a_workload_is_what_its_test_calls(name, adopted):
    module, _, workload = name.partition(".")
    text = classes(adopted.text(f"benchmarks/{module}.py"))[workload]
    assert [line for line in FOUND[name] if line not in text] == []


def test_tests_that_call_a_function_alike_are_one_workload(adopted):
    said = (
        "speed.PredictAgain measures mypackage.models.predict, of test_predict_again, test_ready."
    )
    assert said in adopted.said
    assert "Ready" not in classes(adopted.text("benchmarks/speed.py"))


def test_what_makes_random_data_for_another_function_is_no_workload(adopted):
    assert set(classes(adopted.text("benchmarks/plain.py"))) == {"Scale", "ScaleTestSame"}


def test_what_is_not_adopted_is_told_with_the_reason(adopted):
    lines = [line for line in adopted.said.splitlines() if line.startswith("Not adopted: ")]
    assert lines[0].startswith("Not adopted: test_gradient, test_nothing: it calls nothing")
    assert lines[0].endswith("; put what is to be measured into a function of your package.")
    no_data, lookup = lines[1:]
    assert no_data == "Not adopted: test_no_data: FileNotFoundError: no data here."
    assert lookup.startswith("Not adopted: test_lookup: ")
    assert lookup.endswith("KeyError: 'no table here'.")


def test_what_is_written_can_be_measured(adopted):
    said = adopted.harness("run --effort quick speed.Power speed.Shapes plain", **FEW)
    assert ", 0 measured before and reused, 0 failed" in said
    assert "test=shape1" in said


def test_adopting_again_changes_nothing_and_one_test_gets_a_file_of_its_own(adopted):
    before = written(adopted)
    said = adopted.harness("adopt tests/test_speed.py")
    assert "unchanged     benchmarks/speed.py" in said
    assert written(adopted) == before
    said = adopted.harness("adopt --dry-run tests/test_speed.py::test_ready")
    assert "would write   benchmarks/ready.py" in said
    assert written(adopted) == before


WRONG = {
    "tests/nowhere.py": "tests/nowhere.py is no file. Name a file of tests",
    "tests/test_speed.py::test_nowhere": "pytest finds no test there",
    "tests/test_speed.py::test_gradient": "a function of your package",
    "tests/wrong.py": "ModuleNotFoundError: No module named 'nowhere'",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_usage_says_what_and_writes_nothing(adopted, words):
    adopted.write(adopted.folder / "tests" / "wrong.py", "import nowhere\ndef test_it(): pass\n")
    before = written(adopted)
    said = adopted.harness(f"adopt {words}", code=2)
    assert WRONG[words] in said
    assert "Traceback" not in said
    assert written(adopted) == before


def test_what_asv_does_not_find_is_not_adopted(adopted):
    said = adopted.harness("adopt tests/plain_test.py", code=2, ASV_PYTHONPATH="")
    assert "python -m pip install -e . here, or export ASV_PYTHONPATH=$PWD" in said
