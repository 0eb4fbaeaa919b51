"""`harness compare` names the pass that a compile became slower in, where that was looked into."""

from __future__ import annotations

import json
import math

import pytest
from click.testing import CliRunner

from harness.cli import app
from harness.program.compiler.times import CompileTime, CompileTimes
from harness.records.store import Store, store_path
from tests.frame.trees import COMMIT, write
from tests.verdicts.arms_of import OTHER, records
from tests.verdicts.history.trees import nights


def times(fusion_s):
    return CompileTimes(
        [
            CompileTime("fusion", "", "", fusion_s, fusion_s),
            CompileTime("code generation", "LLVM", "", 0.5, 0.8),
        ],
        [
            CompileTime("fusion", "", "priority-fusion", fusion_s, fusion_s - 0.05, 3),
            CompileTime("fusion", "", "multi-output-fusion", 0.05, 0.05, 3),
            CompileTime("code generation", "LLVM", "Codegen", 0.5, 0.8, 1),
        ],
    )


def tree(folder, factor, sizes=(8,)):
    for size in sizes:
        for commit, more, each in ((COMMIT, 1.0, times(0.2)), (OTHER, factor, times(0.36))):
            own = records(more, commit=commit, axes={"size": size})
            own[0].compile_times = each
            Store(store_path(folder, "box", commit, own[0].env)).append(own)
    return folder


def test_the_pass_of_a_slower_compile_is_named(compare, tmp_path):
    assert "Inside of" not in compare(COMMIT, OTHER, "-r", tree(tmp_path / "same", 1.0))[1]
    folder = tree(tmp_path / "slower", 1.18)
    out = compare(COMMIT, OTHER, "-r", folder)[1]
    said = out[out.index("Inside of compiles") :].splitlines()[1]
    assert said == "  family.Work size=8: 1.0 s → 1.2 s, +16 %: +16 % fusion (priority-fusion)"
    assert "- family.Work size=8" in compare(COMMIT, OTHER, "-r", folder, "--format", "markdown")[1]
    told = json.loads(compare(COMMIT, OTHER, "-r", folder, "--format", "json")[1])["inside"]
    [fusion, generation] = told[0]["groups"]
    assert (fusion["group"], fusion["name"], fusion["a_s"]) == ("fusion", "priority-fusion", 0.2)
    assert math.isclose(fusion["share"], 0.16)
    assert (generation["part"], generation["share"], generation["name"]) == ("LLVM", 0, "")
    out = compare(COMMIT, OTHER, "-r", tree(tmp_path / "many", 1.2, range(7)))[1]
    assert out.count("(priority-fusion)") == 5, "the worst"
    assert "2 more; --format json has all" in out


@pytest.mark.parametrize("known", [None, times(0.2)], ids=["in no arm", "in one arm"])
def test_what_both_arms_were_not_looked_into_has_no_inside(compare, tmp_path, known):
    folder = tree(tmp_path, 1.3)
    for commit, factor, each in ((COMMIT, 1.0, known), (OTHER, 1.4, None)):
        own = records(factor, commit=commit, axes={"size": 9})
        own[0].compile_times = each
        Store(store_path(folder, "box", commit, own[0].env)).append(own)
    out = compare(COMMIT, OTHER, "-r", folder)[1]
    assert "2 slower" in out
    assert "family.Work size=9: " not in out


@pytest.mark.parametrize("told", [True, False])
def test_a_history_names_the_pass_where_both_ends_of_a_step_know_it(tmp_path, told):
    own = nights([1.0] * 4 + [1.16] * 4)
    for one in own[::8] if told else own[:8]:
        one.compile_times = times(0.2 if one.night < "2026-11-05" else 0.36)
    write(tmp_path, *own)
    done = CliRunner().invoke(app, ["history", "-r", str(tmp_path), "--format", "json"])
    (row,) = json.loads(done.stdout)
    assert row["inside"] == ("+16 % fusion (priority-fusion)" if told else "")
    page = CliRunner().invoke(app, ["history", "-r", str(tmp_path)]).stdout
    assert ("inside of the compile: +16 % fusion" in " ".join(page.split())) == told
