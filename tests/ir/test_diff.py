"""`harness ir --diff`: two programs that are built, at another commit as well."""

import re
import sys

import pytest

from harness.ir import comparison
from harness.output.ir import verdict_text
from harness.program.facts import Facts
from harness.records.git import checked_out
from harness.workload.location import Source
from tests.ir import waves
from tests.repositories import git

BEFORE = """
import jax.numpy as jnp

from harness import Workload, spec


class Grow(Workload):
    sweep = {"size": [8, 16]}

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return jnp.sin(x) + jnp.ones(())  # as wide as x64 makes it


class Same(Workload):
    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return x + 1


class Table(Workload):
    def inputs(self):
        return spec((32,))

    @staticmethod
    def function(x):
        return x + jnp.asarray([3.0, *range(31)])


class Mended(Workload):
    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        raise ValueError("it was broken then")
"""
AFTER = BEFORE.replace("jnp.sin(x)", "jnp.sin(x) * x").replace(
    "class Same(Workload):", '# a line more\nclass Same(Workload):\n    """Now it says so."""'
)
AFTER = (
    AFTER.replace("[3.0,", "[4.0,")
    .replace('raise ValueError("it was broken then")', "return x")
    .replace('sweep = {"size": [8, 16]}', 'sweep = {"size": [8, 16]}\n    x64 = True')
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository whose first commit has other workloads than its working tree."""
    top = tmp_path_factory.mktemp("repository")
    git(top, "init", "--quiet")
    (top / "nothing.txt").write_text("")
    git(top, "add", ".")
    git(top, "commit", "--quiet", "--message", "none")
    folder = waves.write(top, "ir_commits", BEFORE)
    git(top, "add", ".")
    git(top, "commit", "--quiet", "--message", "before")
    hook = top / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {top}/hooked\n")
    hook.chmod(0o755)
    (folder / "waves.py").write_text(AFTER)
    return top


@pytest.fixture
def diff(command, repository):
    where = ("--benchmarks", repository / "ir_commits")
    yield lambda name, what, *more: command("ir", name, "--diff", what, *more, *where)
    assert len(git(repository, "worktree", "list").splitlines()) == 1, "no worktree is left"
    assert not (repository / "hooked").exists(), "no hook was run"


def test_another_case_is_compared_and_told_by_the_exit_code_only_if_asked(diff):
    case = ("--case", "size=8", "--stage", "stablehlo")
    code, out, _ = diff("Grow", "case:size=16", *case)
    assert code == 0
    verdict, first, second, *rest = out.splitlines()
    assert (first, second) == ("a: waves.Grow size=8", "b: waves.Grow size=16")
    assert verdict.startswith("another program: ")
    assert any(line.startswith("-") and "tensor<8xf64>" in line for line in rest)
    assert any(line.startswith("+") and "tensor<16xf64>" in line for line in rest)
    code, out, _ = diff("Grow", "case:size=16", *case, "--exit-code", "--facts")
    assert code == 1
    assert "tensor<" not in out


@pytest.mark.parametrize(
    ("what", "a", "b"),
    [
        ("transform:forward", "", r" \(forward\)"),
        ("commit:HEAD", " at [0-9a-f]{8}", " now"),  # other lines and another docstring
    ],
)
def test_a_case_is_the_same_program_as_itself_now_and_before(diff, what, a, b):
    code, out, _ = diff("Same", what, "--exit-code")
    assert code == 0
    lines = rf"the same program \(.*\)\na: waves.Same{a}\nb: waves.Same{b}\n"
    assert re.fullmatch(lines, out)


@pytest.mark.parametrize("stage", ["jaxpr", "hlo"])
def test_values_of_a_constant_that_no_text_has_are_a_difference(diff, stage):
    code, out, _ = diff("Table", "commit:HEAD", "--stage", stage, "--exit-code")
    assert code == 1
    assert re.match(r"the same program \(.*\) but for the values of its constants\n", out)


def test_a_commit_is_built_as_it_was_with_its_own_types(diff):
    code, out, _ = diff("Grow", "commit:HEAD", "--case", "size=8", "--stage", "stablehlo")
    assert code == 0
    _, first, second, *rest = out.splitlines()
    assert first.startswith("a: waves.Grow size=8 at ")
    assert second == "b: waves.Grow size=8 now"
    before = [line for line in rest if line.startswith("-")]
    after = [line for line in rest if line.startswith("+")]
    assert any("stablehlo.multiply" in line for line in after)
    assert "f64" in "".join(after)
    assert "f64" not in "".join(before)


PACKAGED = """
import ir_packaged

from harness import Workload, spec


class Packaged(Workload):
    def inputs(self):
        return spec((8,))

    function = staticmethod(ir_packaged.function)
"""


@pytest.mark.parametrize("place", ["src", "parts/one/src", "parts/one"])
def test_a_commit_is_built_with_its_own_packages(tmp_path, place, monkeypatch, command):
    package = tmp_path / place / "ir_packaged.py"
    package.parent.mkdir(parents=True)
    above = package.parent if package.parent.name != "src" else package.parents[1]
    folder = waves.write(above, place.replace("/", "_"))
    (folder / "waves.py").write_text(PACKAGED)
    git(tmp_path, "init", "--quiet")
    for text in ("x - 1", "2 * x - 1"):
        package.write_text(f"def function(x): return {text}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "--quiet", "--message", text)
    monkeypatch.syspath_prepend(package.parent)  # as an editable install has it
    monkeypatch.delitem(sys.modules, "ir_packaged", raising=False)
    compared = ("Packaged", "--benchmarks", folder, "--exit-code", "--diff")
    assert command("ir", *compared, "commit:HEAD")[0] == 0
    code, out, _ = command("ir", *compared, "commit:HEAD~1")
    assert (code, out.split(":")[0]) == (1, "another program"), out


@pytest.mark.parametrize(
    ("name", "what", "code", "text"),
    [
        ("Mended", "commit:HEAD", 3, "raised ValueError: it was broken then (at waves.py:"),
        ("Same", "commit:HEAD~1", 2, "There is no ir_commits/waves.py at 'HEAD~1' ("),
        ("Same", "commit:nowhere", 2, "has no commit 'nowhere'"),
        ("Same", "commit:--all", 2, "has no commit '--all'"),
    ],
)
def test_what_a_commit_does_not_have_is_said_and_the_worktree_is_gone(diff, name, what, code, text):
    found, out, said = diff(name, what)
    assert (found, out) == (code, "")
    assert text in said


def test_an_interrupted_look_at_a_commit_leaves_no_worktree(repository):
    source = Source("ir_commits.waves", "Same", str(repository / "ir_commits" / "waves.py"))

    def interrupted():
        with checked_out(source, "HEAD"):
            assert len(git(repository, "worktree", "list").splitlines()) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_outside_of_a_repository_there_is_no_other_commit(monkeypatch, command, tmp_path):
    folder = waves.write(tmp_path, "ir_nogit")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    code, _, said = command("ir", "Wide", "--diff", "commit:HEAD", "--benchmarks", folder)
    assert code == 2
    assert "is not in a git repository" in said


def side(fingerprint, text, **facts):
    return comparison.ProgramSide("one", fingerprint, Facts(**facts), text)


@pytest.mark.parametrize(
    ("a", "b", "stage", "verdict", "differ"),
    [
        (side("f1", "x"), side("f1", "x"), "hlo", "the same program (f1)", False),
        (side("f1", "x"), side("f1", "y"), "jaxpr", "the same program (f1), from another", True),
        (side("f1", "x"), side("f2", "x"), "jaxpr", "the same jaxpr but for the names", False),
        (side("f1", "x"), side("f2", "y"), "hlo", "another program: f1 → f2", True),
        (side("f1", None), side("f2", "y"), "hlo", "Its text was not kept at both", True),
        (side("f1", None), side("f1", None), "hlo", "the same program (f1)", False),
        (side("f1", "x", flops=1), side("f2", "x", flops=2), "jaxpr", "of the same jaxpr", True),
    ],
)
def test_the_verdict_rests_on_fingerprint_facts_and_text(a, b, stage, verdict, differ):
    found = comparison.compare(a, b, stage)
    assert verdict in verdict_text(found, a, b, stage)
    assert found.differ == differ
    assert bool(found.text) == (None not in (a.text, b.text) and a.text != b.text)
