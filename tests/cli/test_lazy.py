"""Commands are loaded when they are asked for, and rooms that hold one can be taken away."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[2] / "harness"
MOST_IN_FUNCTIONS = 75
"""Imports inside functions in the whole house. What runs in a process of its own, beside the
program of a user or before JAX has to be imported, needs some."""

ALONE = """
import runpy, sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
sys.argv[0] = "harness"
runpy.run_module("harness", run_name="__main__")
"""
"""Run the package in the current folder, not the one that is installed for development."""


def imports_in_functions(folder):
    """Yield `file:line`, and whether a comment says why, of each import inside a function."""
    for file in sorted(folder.rglob("*.py")):
        text = file.read_text()
        lines = text.splitlines()
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Import | ast.ImportFrom):
                        place = f"{file.relative_to(folder.parent)}:{node.lineno}"
                        yield place, _says_why(lines, node.lineno - 1)


def _says_why(lines, number):
    """Tell whether the line of an import, or the one above its block, has a comment."""
    if "#" in lines[number]:
        return True
    while lines[number - 1].lstrip().startswith(("import ", "from ")) or not lines[number - 1]:
        number -= 1
        if "#" in lines[number]:
            return True
    return lines[number - 1].lstrip().startswith("#")


def test_few_imports_stand_inside_functions_and_each_says_why():
    places = dict(imports_in_functions(HARNESS))
    assert len(places) <= MOST_IN_FUNCTIONS, "\n".join(places)
    assert [place for place, says_why in places.items() if not says_why] == []


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the package without the rooms that nothing else needs."""
    folder = tmp_path_factory.mktemp("house")
    ignored = shutil.ignore_patterns("__pycache__", "fleet", "nightly", "init")
    shutil.copytree(HARNESS, folder / "harness", ignore=ignored)
    (folder / "benchmarks").mkdir()

    def run(*arguments):
        command = [sys.executable, "-c", ALONE, *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    return run


def test_fleet_nightly_and_scaffold_can_be_deleted(house):
    shown = house("--help")
    assert shown.returncode == 0, shown.stderr
    assert "nightly" not in shown.stdout
    assert " init " not in shown.stdout
    assert house("run", "--help").returncode == 0
    assert "No such command 'nightly'" in house("nightly").stderr


def test_measuring_on_a_fleet_that_was_deleted_says_so(house, tmp_path):
    (tmp_path / "own.py").write_text(
        "from harness import Workload, spec\n"
        "class Own(Workload):\n"
        "    def inputs(self): return spec((4,))\n"
        "    @staticmethod\n"
        "    def function(x): return x\n"
    )
    done = house("run", "--on", "tcp://nowhere:1", "--benchmarks", str(tmp_path))
    assert done.returncode == 5
    assert "pip install 'jax-harness[fleet]'" in done.stderr
