"""Imports go one way, also in functions: to rooms before, and to no file that uses this one."""

import ast
import collections
import functools
import graphlib
import itertools
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[1] / "harness"

MOST_FILES_IN_A_CHAIN = 12
"""The longest way down: who changes the file at its end may have to look into so many."""

MOST_CLASS_NAMES_WITH_SEVERAL_MEANINGS = 2

VAGUE = {"found", "known", "said", "told"}
"""No variable is called so: what was found?"""

BESIDE_ROOMS = {"damaged", "docs", "packaging", "suites", "tools"}
"""Folders of tests for what is no room: damaged files, pages, wheels, workloads, `tools/`."""

ROOMS = (
    *("errors", "jaxhooks", "targets", "workload", "program", "records", "stages", "baselines"),
    *("measure", "cache", "frame", "verdicts", "ir", "profiles", "patches", "output"),
    *("asv", "fleet", "nightly", "init", "cli", "__main__"),
)
"""From the ground up. The face, `harness/__init__.py`, resolves names when they are asked for."""


@functools.cache
def parsed(file):
    return ast.parse(file.read_text())


def is_for_types(node):
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def import_nodes(node, types=False):
    """Yield every import statement under `node`, inside functions included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif types or not is_for_types(child):
            yield from import_nodes(child, types)


@functools.cache
def imports(folder, types=False):
    """Return, for each file under `folder`, the files that it imports and the lines that do.

    With `types`, imports under TYPE_CHECKING as well.
    """
    top = folder.name
    files = {
        ".".join((top, *file.relative_to(folder).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): file
        for file in folder.rglob("*.py")
    }
    used = {name: {} for name in files}
    for name, file in files.items():
        for node in import_nodes(parsed(file), types):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            else:
                targets = []
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    targets.append(whole if whole in files else node.module)
            for target in targets:
                if target in files and target != name and not name.startswith(f"{target}."):
                    used[name].setdefault(target, node.lineno)
    return files, used


def room(name):
    return name.split(".")[1] if "." in name else "__init__"


def upwards(folder, rooms):
    """Return `file:line imports file` for each import of a room that stands above."""
    files, used = imports(folder)
    found = []
    for name, targets in used.items():
        for target, line in targets.items():
            here, there = room(name), room(target)
            if "__init__" not in (here, there) and rooms.index(there) > rooms.index(here):
                place = files[name].relative_to(folder.parent)
                found.append(f"{place}:{line} imports {target}, which stands above")
    return sorted(found)


def circle(folder, types=False):
    """Return the files of a circle of imports with the lines that close it, or an empty text.

    With `types`, imports under TYPE_CHECKING count.
    """
    files, used = imports(folder, types)
    graph = {name: set(targets) for name, targets in used.items() if name != folder.name}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        names = list(reversed(error.args[1]))
        steps = [
            f"{files[a].relative_to(folder.parent)}:{used[a][b]} imports {b}"
            for a, b in itertools.pairwise(names)
        ]
        return "\n".join(steps)
    return ""


def longest_chain(folder):
    """Return the files of the longest chain of imports, from the one that nobody needs down."""
    _, used = imports(folder)
    graph = {name: set(targets) for name, targets in used.items() if name != folder.name}
    chains = {}
    for name in graphlib.TopologicalSorter(graph).static_order():
        below = (chains[target] for target in graph.get(name, ()))
        chains[name] = [name, *max(below, key=len, default=[])]
    return max(chains.values(), key=len)


def test_no_room_imports_one_that_stands_above_it():
    assert upwards(HARNESS, ROOMS) == []


def test_there_is_no_circle_of_imports():
    assert circle(HARNESS) == ""


def test_types_make_no_circle_either():
    assert circle(HARNESS, types=True) == ""


def test_no_chain_of_imports_is_long():
    chain = longest_chain(HARNESS)
    assert len(chain) <= MOST_FILES_IN_A_CHAIN, "\n".join(chain)


def test_few_class_names_mean_several_things():
    places = collections.defaultdict(list)
    for file in HARNESS.rglob("*.py"):
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(file.relative_to(HARNESS)))
    several = [f"{name}: {', '.join(files)}" for name, files in places.items() if len(files) > 1]
    assert len(several) <= MOST_CLASS_NAMES_WITH_SEVERAL_MEANINGS, "\n".join(several)


def test_every_room_is_in_the_order_and_nothing_else_lies_at_the_top():
    there = {
        path.stem
        for path in HARNESS.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert there == {*ROOMS, "__init__"}


def not_mirrored(tests, house, beside):
    """Return folders of tests that are neither a room nor beside them, and files without a reason.

    A test lies in the folder of its room; what is at the top says in its docstring what it is for.
    """
    rooms = {path.name for path in house.iterdir() if (path / "__init__.py").exists()}
    folders = {path.name for path in tests.iterdir() if any(path.rglob("*.py"))}
    files = [file for file in tests.glob("*.py") if file.stem != "__init__"]
    return [
        *sorted(folders ^ (rooms | beside)),
        *sorted(file.name for file in files if not ast.get_docstring(parsed(file))),
    ]


def test_tests_mirror_the_rooms():
    assert not_mirrored(HARNESS.parent / "tests", HARNESS, BESIDE_ROOMS) == []


def test_a_folder_of_tests_without_its_room_and_a_file_without_a_reason_are_named(house):
    tests = house.parent / "tests"
    for name in ("low", "other"):
        (tests / name).mkdir(parents=True)
        (tests / name / "test_it.py").write_text("")
    (tests / "test_loose.py").write_text("")
    assert not_mirrored(tests, house, set()) == ["high", "other", "test_loose.py"]


def vague(file):
    """Yield the lines with a variable of a vague name, or a tuple written only to be unpacked."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List):
            yield node.lineno
        if isinstance(node, ast.arg) and node.arg in VAGUE:
            yield node.lineno
        if isinstance(node, ast.FunctionDef):
            names = (name for name in ast.walk(node) if isinstance(name, ast.Name))
            yield from (name.lineno for name in names if name.id in VAGUE)


def test_variables_are_called_what_they_hold_and_no_tuple_is_written_to_be_unpacked():
    files = HARNESS.rglob("*.py")
    assert [f"{file}:{line}" for file in files for line in sorted({*vague(file)})] == []


def test_a_vague_name_and_a_tuple_to_unpack_are_named_by_their_lines(tmp_path):
    (tmp_path / "one.py").write_text("def f(a, told):\n    found = 1\n    return (*(a, found),)\n")
    assert {*vague(tmp_path / "one.py")} == {1, 2, 3}


@pytest.fixture
def house(tmp_path):
    folder = tmp_path / "house"
    for name in ("low", "high"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("")
    (folder / "high" / "two.py").write_text("from house.low import one\n")
    (folder / "low" / "one.py").write_text("\n\ndef f():\n    from house.high import two\n")
    return folder


def test_an_import_that_goes_up_is_named_by_file_and_line_though_it_is_within_a_function(house):
    expected = "house/low/one.py:4 imports house.high.two, which stands above"
    assert upwards(house, ("low", "high")) == [expected]


def test_a_circle_is_named_by_its_files_and_lines(house):
    text = circle(house)
    assert "house/low/one.py:4 imports house.high.two" in text
    assert "house/high/two.py:1 imports house.low.one" in text


FOR_TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.{} import {}\n"


def test_a_circle_that_only_types_close_is_named(house):
    (house / "low" / "one.py").write_text(FOR_TYPES.format("high", "two"))
    assert circle(house) == ""
    assert "house/low/one.py:3 imports house.high.two" in circle(house, types=True)


def test_a_chain_is_named_from_its_upper_end(house):
    (house / "low" / "one.py").write_text("from house.low import ground\n")
    (house / "low" / "ground.py").write_text("")
    assert longest_chain(house) == ["house.high.two", "house.low.one", "house.low.ground"]
