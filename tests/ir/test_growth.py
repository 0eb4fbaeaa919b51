"""`harness compile --against`: what grows with an axis is told with its power, or as unknown."""

import json
import math

import msgspec
import pytest

from harness.cli.compile_page import growth_page
from harness.cli.output import TextTable
from harness.ir.growth import Growth
from tests.ir import waves

SUITE = """
import jax.numpy as jnp

from harness import Workload, spec


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
"""

CONSTANT = """
import numpy as np


class Constant(Workload):
    def inputs(self):
        return spec((2500,))

    @staticmethod
    def function(x):
        return jnp.sin(x) @ np.arange(2500 * 2500, dtype="float32").reshape(2500, 2500)
"""

REST = ("--case", "word=a", "--case", "few=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return waves.write(tmp_path_factory.mktemp("growth"), "growing", SUITE + CONSTANT)


@pytest.fixture
def harness(command, folder):
    return lambda *arguments: command("compile", *arguments, "--benchmarks", folder)


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


def test_a_large_constant_is_tried_as_an_argument(harness):
    code, out, _ = harness("Constant", "--format", "json")
    assert code == 0
    [remedy] = json.loads(out)["remedies"]
    assert remedy["cause"] == "constants of 25 MB are part of the program"
    assert remedy["line"].rpartition(":")[0].endswith("waves.py")
    assert remedy["cost_s"] > 0
    assert remedy["saved_s"] is not None


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
    assert says in growth.sentence("n")
