"""`harness compile`: what is told of a compile, on which target, and what becomes of failures."""

import csv
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from harness import targets
from harness.cli import app
from harness.cli.output import TextTable
from harness.errors import HarnessError
from harness.ir.growth import Growth
from harness.output.compile_page import _tree, growth_page
from harness.output.ir import growth_text
from harness.program.compiler import structure
from harness.program.compiler.causes import CompileCause
from harness.program.compiler.inside import PassBranch
from tests.ir import waves

GROWING = """
import numpy as np


class Chain(Workload):
    sweep = {"steps": [2, 4, 8], "word": ["a", "b", "c"], "few": [1, 2]}
    static = ("steps", "word", "few")

    def inputs(self):
        return spec((8,))

    def skip(self, steps, few, **case):
        return "too many" if steps == 8 and few == 2 else None

    @staticmethod
    def function(x, steps, word, few):
        for step in range(steps):
            x = jnp.sin(x)
        return x


class Constant(Workload):
    def inputs(self):
        return spec((2500,))

    @staticmethod
    def function(x):
        return jnp.sin(x) @ np.arange(2500 * 2500, dtype="float32").reshape(2500, 2500)
"""

ONE = ("--case", "size=8", "--case", "axes=(0,)")
REST = ("--case", "word=a", "--case", "few=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    text = waves.SUITE.replace("timeout_s = 0.5", "timeout_s = 60") + GROWING
    return waves.write(tmp_path_factory.mktemp("compile"), "compiling", text)


@pytest.fixture
def harness(command, folder):
    return lambda *arguments: command("compile", *arguments, "--benchmarks", folder)


@pytest.mark.parametrize("target", ["cpu", "gpu:h200", "tpu:v5e"])
def test_the_time_of_a_compile_is_told_by_group_pass_and_kernel(harness, target):
    lacking = targets.find(target).lacking()
    if lacking:
        pytest.skip(lacking)
    code, out, _ = harness("Wave", *ONE, "--target", target, "--format", "json")
    assert code == 0
    told = json.loads(out)
    assert math.isclose(sum(one["wall_s"] for one in told["groups"]), told["wall_s"], rel_tol=0.01)
    assert told["tree"]["name"] == "backend_compile_and_load"
    assert any(one["name"] == "code generation" for one in told["groups"])
    assert told["covered"] > 0.3, told["unknown"]
    named = [kernel for kernel in told["kernels"] if kernel["name"] and kernel["file"]]
    assert named or target.startswith("gpu")
    assert all(kernel["file"].endswith("waves.py") for kernel in named)
    stages = {one["stage"]: one for one in told["python"]}
    assert list(stages) == ["trace", "lower"]
    [line] = stages["trace"]["lines"]
    assert line["file"].endswith("waves.py")
    assert line["own_calls"] > stages["trace"]["calls"] / 2
    assert {"sin", "reduce_sum"} <= {one["name"] for one in stages["lower"]["primitives"]}
    if target == "cpu":
        code, rows, _ = harness("Wave", *ONE, "--format", "csv")
        assert rows.startswith("path,name,group,count,wall_s,own_wall_s,threads_s,calls,")
        assert "trace > Wave.function " in rows
        again = {row["path"]: row["calls"] for row in csv.DictReader(rows.splitlines())}
        assert all(again[stage] == str(one["calls"]) for stage, one in stages.items())


def test_a_page_for_people_begins_with_the_answer_and_may_be_looked_into(harness, tmp_path):
    drawn, traced = tmp_path / "flame.html", tmp_path / "new" / "trace.json"
    besides = ("--figure", str(drawn), "--trace", str(traced))
    code, out, err = harness("Wave", *ONE, "--least", "0", *besides)
    assert code == 0
    first, *rest = out.splitlines()
    assert "compiled in" in first
    assert "of the compile is in events that XLA names" in first
    headings = ["Stages", "Where the time goes", "Passes of XLA", "Kernels", "Lower, by primitive"]
    assert [line for line in rest if line in headings] == headings
    assert not [line for line in rest if line.startswith(("Calls of Python", "What has less"))]
    assert re.search(r"  0\.0\d* %  ", out), "some of XLA's passes take less than a thousandth"
    assert "  0.0 %  " not in out
    assert f"events in {traced}" in err
    events = json.loads(traced.read_text())["traceEvents"]
    timed = [one for one in events if one["ph"] == "X"]
    whole = max(timed, key=lambda one: one["dur"])
    assert (whole["name"], whole["ts"]) == ("backend_compile_and_load", 0)
    assert all(0 <= one["ts"] <= one["ts"] + one["dur"] <= whole["dur"] + 0.002 for one in timed)
    assert {"code generation", "optimisation passes"} <= {one["cat"] for one in timed}
    page = drawn.read_text()
    assert "backend_compile_and_load" in page
    assert " src=" not in page.partition("<body>")[2]  # it loads nothing


def test_only_rows_that_matter_are_told_and_how_to_get_the_others(harness):
    code, out, _ = harness("Chain", "--case", "steps=8", *REST, "--no-try")
    assert code == 0
    *tables, last = out.splitlines()
    assert last.endswith("--format json all.")
    shares = [float(line.split(" %")[0].split()[-1]) for line in tables[6:] if " % " in line]
    assert min(shares) >= 5
    assert not [line for line in tables if line.startswith("Calls of Python")]
    code, out, _ = harness("Chain", "--case", "steps=8", *REST, "--no-try", "--depth", "3")
    assert "Calls of Python in trace, by line of yours and equation" in out.splitlines()


def test_rows_of_one_name_are_told_apart_by_what_they_stand_in():
    fused = PassBranch("Fused", "code generation", 3, 1.0, 1.0, 1.0)
    around = [PassBranch(name, "", 1, 1.0, 0.0, 1.0, [fused]) for name in ("Emit", "Consume")]
    alone = PassBranch("Layout", "", 1, 1.0, 0.0, 1.0, [PassBranch("Copy", "", 1, 1.0, 1.0, 1.0)])
    top = PassBranch("all", "", 1, 3.0, 0.0, 3.0, [*around, alone])
    names = [name for name, _ in _tree(top, 6, "wall_s", 0.05)]
    assert names == ["all", "  Emit > Fused × 3", "  Consume > Fused × 3", "  Copy"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("Nothing",), 2, "Nothing"),
        (("Wave",), 2, "has 4 such cases"),
        (("Wave", *ONE, "--figure", "flame.txt"), 2, "ends in .svg, .png or .html"),
        (("Wave", *ONE, "--trace", "/dev/null/t.json"), 4, "Choose another place with --trace"),
        (("Wave", *ONE, "--target", "cpu:nothing"), 2, "cpu:nothing"),
        (("Troubled", "--case", "trouble=raise"), 3, "this workload cannot be traced"),
        (("Troubled", "--case", "trouble=abort"), 3, "ended in the step 'trace'"),
    ],
)
def test_what_cannot_be_compiled_is_one_clear_error(harness, arguments, code, says):
    found, out, err = harness(*arguments)
    assert (found, out) == (code, "")
    assert says in err


PROGRAM = """
import sys

import jax
import jax.numpy as jnp


@jax.jit
def small(x):
    return x + 1


@jax.jit
def train_step(x):
    for _ in range(20):
        x = jnp.sin(x) @ x
    return x


print(train_step(small(jnp.ones((8, 8)))).shape)
sys.exit(int(sys.argv[1]))
"""


LACKS = "import sys; sys.modules.update(dict.fromkeys({names!r}))"
"""The first line of a program in which these cannot be imported."""

DEPENDENCIES = (
    *("msgspec", "click", "pandas", "rich", "psutil", "packaging", "cloudpickle", "asv"),
    *("array_api_compat", "threadpoolctl", "virtualenv", "filelock"),
)
"""Of the harness, and not of JAX."""


@pytest.mark.parametrize("lacks", [DEPENDENCIES, pytest.param((), marks=pytest.mark.nightly)])
def test_one_function_of_a_program_is_told_with_its_lines_and_causes(tmp_path, capfd, lacks):
    file, page = tmp_path / "train.py", tmp_path / "page.json"
    file.write_text(LACKS.format(names=lacks) + PROGRAM)
    options = "-o", str(page), "--format", "json"
    done = CliRunner().invoke(app, ["compile", "Train", *options, "--", str(file), "5"])
    assert done.exit_code == 5, done.output
    assert capfd.readouterr().out == "(8, 8)\n"
    told = json.loads(page.read_text())
    assert told["case"].startswith("train_step, ")
    lines = {kernel["line"] for kernel in told["kernels"] if kernel["file"] == str(file)}
    assert lines == {16}
    total = sum(group["wall_s"] for group in told["groups"])
    assert total == pytest.approx(told["wall_s"], rel=0.01)
    [cause] = msgspec.convert(told["causes"], list[CompileCause])
    assert (cause.kind, cause.count, cause.place) == ("loop", 20, ("train_step", str(file), 15))


@pytest.mark.nightly
def test_a_jaxpr_that_was_not_read_is_one_line_that_says_why(tmp_path, capfd):
    file, page = tmp_path / "train.py", tmp_path / "page.json"
    file.write_text(LACKS.format(names=(structure.__name__,)) + PROGRAM)
    options = "-o", str(page), "--format", "json"
    done = CliRunner().invoke(app, ["compile", "train_step", *options, "--", str(file), "0"])
    assert done.exit_code == 0, done.output
    assert json.loads(page.read_text())["causes"] == []
    [line] = [line for line in done.output.splitlines() if "causes are unknown" in line]
    assert f"ModuleNotFoundError: import of {structure.__name__} halted" in line


@pytest.mark.nightly
def test_what_reads_a_jaxpr_in_a_program_needs_the_standard_library_alone():
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import {structure.__name__}"
    home = Path(structure.__file__).parents[3]
    subprocess.run([sys.executable, "-I", "-S", "-c", code, str(home)], check=True)


def test_a_function_that_a_program_does_not_compile_is_one_clear_error(tmp_path):
    file, none = tmp_path / "train.py", tmp_path / "none.py"
    file.write_text(PROGRAM)
    none.write_text("print('no JAX')")
    for words, code, says in (
        (["train_stop", "--", str(file), "0"], 2, "Did you mean 'train_step'?"),
        (["train_step", "--", str(none)], 4, "no compile was recorded"),
        (["train_step", "--target", "cpu", "--", str(file)], 2, "are for workloads"),
    ):
        done = CliRunner().invoke(app, ["compile", *words])
        assert isinstance(done.exception, HarnessError)
        assert (done.exception.exit_code, says in str(done.exception)) == (code, True)


ENDLESS = """import time

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

from harness import Workload, spec

KNOWN = np.random.default_rng(0).random((60, 60), np.float32)

asleep = Primitive("asleep")
asleep.def_impl(lambda x: time.sleep(600))
asleep.def_abstract_eval(lambda x: x)
mlir.register_lowering(asleep, lambda context, x: [x])


class Endless(Workload):
    timeout_s = 6
    targets = ("cpu",)

    def inputs(self):
        return spec((60,))

    @staticmethod
    def function(x):
        late = asleep.bind(KNOWN[0])
        late += jax.pure_callback(np.sum, jax.ShapeDtypeStruct((), "float32"), np.ones((99, 99)))
        most = jax.lax.sort(KNOWN)
        return x + late + most[0]
"""


SLOW = """import time

import jax.numpy as jnp

from harness import Workload, spec

TRACES = []


class Slow(Workload):
    timeout_s = 6
    targets = ("cpu",)

    def inputs(self):
        return spec((60,))

    @staticmethod
    def function(x):
        TRACES.append(x)
        if len(TRACES) > 1:
            time.sleep(600)
        for _ in range(20):
            x = jnp.sin(x)
        return x
"""


@pytest.mark.nightly
def test_calls_that_take_too_long_to_count_lose_no_compile(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    done = CliRunner().invoke(app, ["compile", "Slow", "--benchmarks", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "  Not tried: stopped before it was.\n" in done.stdout
    assert "Python's calls in trace and lower are not known" in done.stdout


LAYERS = """
import equinox as eqx
import jax
import jax.numpy as jnp
from harness import Workload


class Layers(Workload):
    targets = ("cpu",)

    def inputs(self):
        return eqx.nn.MLP(4, 4, 4, 1, key=jax.random.key(0)), jnp.ones(4)

    @staticmethod
    @eqx.filter_jit
    def function(model, x):
        for _ in range(40):
            x = model(x)
        return x
"""


@pytest.mark.nightly
def test_a_jitted_object_without_a_trace_of_its_own_has_a_jaxpr_and_causes(command, tmp_path):
    pytest.importorskip("equinox")
    (tmp_path / "layers.py").write_text(LAYERS)
    code, jaxpr, _ = command("ir", "Layers", "--stage", "jaxpr", "--benchmarks", tmp_path)
    assert (code, jaxpr.count("name=relu")) == (0, 40 * 2)
    code, told, _ = command("compile", "Layers", "--benchmarks", tmp_path, "--format", "json")
    [cause, *_] = msgspec.convert(json.loads(told)["causes"], list[CompileCause])
    assert (cause.kind, cause.count, cause.place.line) == ("loop", 40, 17)
    assert cause.trial.untried == ""
    assert cause.trial.saved_s is not None


@pytest.mark.nightly
def test_a_remedy_that_comes_to_no_end_stays_untried_and_loses_nothing(tmp_path):
    (tmp_path / "endless.py").write_text(ENDLESS)
    options = "--benchmarks", str(tmp_path), "--format", "json"
    told = []
    for more in ([], ["--no-try"]):
        done = CliRunner().invoke(app, ["compile", "Endless", *options, *more])
        assert done.exit_code == 0, done.output
        told.append(json.loads(done.stdout))
    for each in told:
        [cause] = [one for one in each["causes"] if one["kind"] == "folding"]
        trial = None if each is told[1] else {"untried": "stopped"}
        assert (cause.get("trial"), cause["cost_s"] > 0) == (trial, True)
        assert cause["place"][1:] == [str(tmp_path / "endless.py"), 29]


# --- with an axis ---------------------------------------------------------------------------------


@pytest.mark.nightly
def test_what_grows_is_told_with_its_power_and_the_lines_that_make_it(harness, tmp_path):
    file = tmp_path / "grown.json"
    words = ("--against", "steps", "--rounds", "1", "--format", "json", "-o", file)
    code, _, err = harness("Chain", *REST, *words)
    assert (code, err) == (0, "")
    grown = {(one["kind"], one["name"]): one for one in json.loads(file.read_text())}
    equations = grown["count", "jaxpr equations"]
    assert equations["values"] == {"2": 2, "4": 4, "8": 8}
    assert math.isclose(equations["exponent"], 1)
    assert (equations["each"], equations["is_power"]) == (1, True)
    [line] = [one for key, one in grown.items() if key[1].startswith("trace calls of Chain.f")]
    assert line["each"] > 10
    assert {"trace", "lower", "compile"} <= {name for kind, name in grown if kind == "stage"}
    assert {"group", "pass", "count"} <= {kind for kind, _ in grown}
    told = msgspec.convert(json.loads(file.read_text()), list[Growth])
    first, second, *rest = growth_page("Chain cpu", "steps", 1, told, 0.0)
    assert "compile" in first.removeprefix("Chain cpu: ")
    assert second.startswith("steps = 2, 4, 8: one compile each")
    tables = [table for table in rest if isinstance(table, TextTable)]
    assert [table.frame.columns[0] for table in tables] == ["what", "what"]
    grew = [
        float(row["at 8"].replace(",", "")) / float(row["at 2"].replace(",", ""))
        for _, row in tables[1].frame.iterrows()
    ]
    assert grew == sorted(grew, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((*REST, "--against", "nothing"), "No axis is called 'nothing'"),
        (("--case", "steps=2", "--case", "few=1", "--against", "word"), "0 of them can be comp"),
        (("--case", "word=a", "--case", "few=2", "--against", "steps"), "takes at least 3"),
        (("--case", "word=a", "--against", "steps"), "add one of"),
        ((*REST, "--case", "steps=2", "--against", "steps"), "drop --case steps"),
        ((*REST, "--against", "steps", "--trace", "t.json"), "show one compile"),
    ],
)
def test_an_axis_that_says_nothing_is_one_clear_error(harness, arguments, says):
    code, out, err = harness("Chain", *arguments)
    assert (code, out) == (2, "")
    assert says in err


@pytest.mark.nightly
def test_a_large_constant_is_tried_as_an_argument(harness):
    code, out, _ = harness("Constant", "--format", "json")
    assert code == 0
    [cause] = msgspec.convert(json.loads(out)["causes"], list[CompileCause])
    assert (cause.kind, cause.size_bytes) == ("constants", 25_000_000)
    assert cause.place.file.endswith("waves.py")
    assert cause.cost_s > 0
    assert len(cause.trial.before_s) == len(cause.trial.after_s) == 6


@pytest.mark.parametrize(
    ("fitted", "says"),
    [
        ((2.02, 1.8, 2.2, True), "it grows with the square of n"),
        ((1.001, 1.0005, 1.0015, True), "it grows in proportion to n"),
        ((1.4, 1.3, 1.5, True), "it grows with n to the power 1.4"),
        ((0.0, 0.0, 0.0, True), "it does not grow with n"),
        ((1.5, 1.2, 1.7, False), "it grows with n to the power 1.5 (1.2 to 1.7), roughly"),
        ((1.5, 0.4, 2.7, True), "not known: to a power between 0.4 and 2.7"),
        ((None, None, None, False), "not known: too few values have it"),
    ],
)
def test_words_say_what_the_interval_does(fitted, says):
    exponent, low, high, is_power = fitted
    growth = Growth("pass", "it", {"1": 1.0}, exponent, low, high, is_power, None)
    assert says in growth_text(growth, "n")
