"""Lower floors know nothing of higher ones: no part of the harness imports, by any way, itself."""

import ast
import graphlib
from collections import defaultdict
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[1] / "harness"


def imported(tree):
    """Yield the parts of the harness that a module imports, at its top or later; types aside."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "harness":
            names = [f"harness.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        yield from (name.split(".")[1] for name in names if name.startswith("harness."))
        yield from imported(node)


def parts(folder):
    """Return what each module or package at the top of `folder` imports of the others."""
    found = defaultdict(set)
    for file in folder.rglob("*.py"):
        part = file.relative_to(folder).with_suffix("").parts[0]
        found[part] |= set(imported(ast.parse(file.read_text()))) - {part}
    del found["__init__"]  # the face, which resolves names when they are asked for
    return found


def test_no_part_of_the_harness_imports_one_that_stands_on_it():
    found = parts(HARNESS)
    assert {"session", "records"} <= found["case_run"]
    order = list(graphlib.TopologicalSorter(found).static_order())
    assert order.index("records") < order.index("analysis") < order.index("cli")


def test_a_circle_is_noticed_though_it_is_closed_within_a_function(tmp_path):
    (tmp_path / "low").mkdir()
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "low" / "one.py").write_text("def f():\n    from harness import high\n")
    (tmp_path / "high.py").write_text("from harness.low import one\n")
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(parts(tmp_path)).prepare()
