from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness.cache.experiments import recompiles, subjects
from harness.cache.experiments.children import ChildError
from harness.cache.experiments.recompiles import Call, Signature, entry_of
from harness.declare import discovery, location
from harness.errors import UsageError

SUITES = Path(__file__).parents[1] / "suites"
SMALL = SUITES / "troubled"

KINDS = """
import jax.numpy as jnp
from harness import Workload, spec


class Kinds(Workload):
    sweep = {"way": ["plain", "again", "wide", "half", "weak", "list"], "steps": [1]}
    static = ("steps",)

    def inputs(self, way):
        return {
            "plain": (spec(()),),
            "again": (spec((), low=0, high=1),),
            "wide": (spec((4,)),),
            "half": (spec((), "float16"),),
            "weak": (jnp.asarray(1.0),),
            "list": ([spec(())],),
        }[way]

    @staticmethod
    def function(x, steps):
        return [y * steps for y in x] if isinstance(x, list) else x * steps


class Useless(Workload):
    sweep = {"name": ["a", "b"]}
    static = ("name",)
    donate = ("x",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x, name):
        return x + 1


class Broken(Workload):
    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        raise ValueError("this function never works")
"""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds") / "kinds_suite"
    folder.mkdir()
    (folder / "kinds.py").write_text(KINDS)
    return folder


def map_of(name, folder, *choices):
    workload = discovery.one_workload(name, folder)
    return recompiles.recompiles(workload, subjects.cases_of(workload, choices))


def test_the_map_says_what_of_the_signature_made_each_executable_new(kinds):
    found = map_of("Kinds", kinds)
    entries = {entry.case.split(",")[0]: entry for entry in found.entries}
    assert [entry.problem for entry in found.entries] == [""] * 6
    assert entries["way=plain"].reason == "first call"
    assert entries["way=again"].shares_with == "way=plain, steps=1"
    assert not entries["way=again"].new_executable
    assert entries["way=again"].cost_s == 0
    assert entries["way=wide"].reason == "shape of [0]: () → (4,)"
    assert entries["way=half"].reason == "dtype of [0]: float32 → float16"
    assert entries["way=weak"].reason == "weak type of [0]: False → True"
    assert "pytree: " in entries["way=list"].reason
    assert all(entry.cost_s > entry.again_s for entry in found.entries if entry.new_executable)
    assert len(recompiles.frame(found)) == 6


def test_a_static_value_that_changes_nothing_is_named_as_compiled_for_nothing(kinds):
    first, second = map_of("Useless", kinds).entries
    assert second.new_executable
    assert second.reason == "static value of name: 'a' → 'b'"
    assert second.same_program_as == first.case


def test_a_function_that_raises_ends_with_its_own_words(kinds):
    with pytest.raises(ChildError, match=r"exit code 1 .*ValueError: this function never works"):
        map_of("Broken", kinds)


def call(**changes):
    signature = Signature("forward", {}, "*", {"[0]": {"shape": "(8,)"}})
    base = {
        "signature": signature,
        "steps_s": {"compile": 1.0},
        "events": {"compile": 1},
        "call_events": {},
        "fingerprint": "one",
        "again_s": 0.1,
        "again_events": {},
    }
    return Call(**{**base, **changes})


@pytest.mark.parametrize(
    ("calls", "problem"),
    [
        ([call(again_events={"compile": 1})], "the second round was not free"),
        ([call(call_events={"compile": 1})], "did not run what was compiled for it"),
        ([call(), call()], "has the same signature, and yet it was compiled again"),
    ],
)
def test_events_that_contradict_the_map_are_said(calls, problem):
    assert problem in entry_of(["a", "b"], calls, len(calls) - 1).problem


def test_the_command_prints_a_line_per_case_and_json():
    command = [sys.executable, "-m", "harness", "cache", "recompiles", "Scale"]
    command += ["--benchmarks", str(SMALL)]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "2 executables for 2 cases" in table
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    found = msgspec.convert(json.loads(done.stdout), recompiles.Map)
    assert [entry.case for entry in found.entries] == ["size=8", "size=16"]


def test_several_workloads_or_no_case_are_refused_with_the_names():
    with pytest.raises(UsageError, match=r"'small' matches 3 workloads; name one of .*Scale"):
        discovery.one_workload("small", SMALL)
    scale = discovery.one_workload("Scale", SMALL)
    with pytest.raises(UsageError, match=r"No case has size=3"):
        subjects.cases_of(scale, ["size=3"])
    several = location.import_file("troubled.small", SMALL / "small.py").Several
    with pytest.raises(UsageError, match=r"needs one device: transform forward, gradient, vmap"):
        subjects.cases_of(several, ["transform=sharded"])


def test_programs_without_a_fingerprint_are_no_twins():
    other = Signature("forward", {}, "*", {"[0]": {"shape": "(16,)"}})
    calls = [call(fingerprint=""), call(fingerprint="", signature=other, events={})]
    assert entry_of(["a", "b"], calls, 1).shares_with is None


def test_a_workload_that_is_missing_is_told_with_the_files_that_are_broken(tmp_path):
    (tmp_path / "wrong.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(UsageError, match=r"No workload matches 'Mine'.* wrong.py: importing it"):
        discovery.one_workload("Mine", tmp_path)
