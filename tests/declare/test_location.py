from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading

import msgspec
import pytest

from harness.declare.location import Source, import_file, load, locate
from harness.declare.workload import Case, Workload, WorkloadError, make_inputs, spec

MODULE = """
from harness import Workload, spec

class {name}(Workload):
    def inputs(self):
        return spec(({size},))

    @staticmethod
    def function(x):
        return x

    class Nested(Workload):
        def inputs(self):
            return spec(({size}, 2))

        @staticmethod
        def function(x):
            return x
"""


class Here(Workload):
    def inputs(self):
        return spec((4,))

    @staticmethod
    def function(x):
        return x


@pytest.fixture(autouse=True)
def modules_as_before():
    """Forget what a test has imported."""
    before = dict(sys.modules)
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    importlib.invalidate_caches()


def write(file, name="Own", size=3):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(MODULE.format(name=name, size=size))
    return file


def shape(workload):
    return make_inputs(workload, Case())[0].shape


def load_elsewhere(*sources):
    """Load classes in a process that knows nothing of this one; return their inputs' shapes."""
    script = (
        "import json, msgspec, sys\n"
        "from harness.declare.location import Source, load\n"
        "from harness.declare.workload import Case, make_inputs\n"
        "sources = msgspec.json.decode(sys.stdin.read(), type=list[Source])\n"
        "print(json.dumps([make_inputs(load(s), Case())[0].shape for s in sources]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=msgspec.json.encode(list(sources)).decode(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [tuple(found) for found in json.loads(done.stdout)]


# --- where a class is to be found ---------------------------------------------------------------


def test_a_class_of_a_module_is_named_by_its_file():
    source = locate(Here)
    assert source == Source(__name__, "Here", os.path.realpath(__file__))
    assert load(source) is Here


def test_a_class_within_a_function_travels_as_a_pickle():
    size = 11

    class Local(Workload):
        def inputs(self):
            return spec((size,))

        @staticmethod
        def function(x):
            return x

    source = locate(Local)
    assert source.pickled
    assert (source.module, source.file) == (__name__, "")
    assert shape(load(source)) == (11,)


def test_every_kind_of_class_is_found_by_another_process(tmp_path):
    names = {"__name__": "__main__"}
    exec("OFFSET = 2\n" + MODULE.format(name="Typed", size="OFFSET + 5"), names)
    flat = import_file("flat_module", write(tmp_path / "flat_module.py", size=3))
    write(tmp_path / "no_init" / "deep" / "leaf.py", size=9)
    deep = import_file("no_init.deep.leaf", tmp_path / "no_init" / "deep" / "leaf.py")
    made = write(tmp_path / "made.py", size=5)
    with made.open("a") as text:
        text.write("Twin = type('Twin', (Own,), {'made': 'by calling type'})\n")
    twin = import_file("made", made).Twin
    assert twin.__module__ == "made"
    classes = [flat.Own, flat.Own.Nested, deep.Own, names["Typed"], twin]
    assert load_elsewhere(*map(locate, classes)) == [(3,), (3, 2), (9,), (7,), (5,)]


def test_what_cannot_be_pickled_is_an_error_that_says_what_to_do():
    class Locked(Here):
        lock = threading.Lock()

    said = r"Locked .* cannot be sent to the process that measures: .*Define it at the top of a mod"
    with pytest.raises(WorkloadError, match=said):
        locate(Locked)


def test_a_class_that_its_module_has_under_another_name_is_refused(tmp_path):
    file = write(tmp_path / "renamed.py")
    file.write_text(file.read_text() + "Old = Own\ndel Own\n")
    with pytest.raises(WorkloadError, match=r"renamed.py has no Own that is this class.*Give a cl"):
        locate(import_file("renamed", file).Old)


# --- importing from a file ------------------------------------------------------------------------


def test_a_folder_without_an_init_file_is_a_package(tmp_path):
    file = write(tmp_path / "bare_folder" / "one.py", size=3)
    (tmp_path / "bare_folder" / "two.py").write_text("from bare_folder.one import Own\n")
    assert shape(import_file("bare_folder.one", file).Own) == (3,)
    two = import_file("bare_folder.two", tmp_path / "bare_folder" / "two.py")
    assert two.Own is import_file("bare_folder.one", file).Own


def test_a_package_runs_its_init_file(tmp_path):
    folder = tmp_path / "with_init"
    write(folder / "one.py")
    (folder / "__init__.py").write_text("READY = True\n")
    import_file("with_init.one", folder / "one.py")
    assert sys.modules["with_init"].READY
    assert import_file("with_init", folder / "__init__.py") is sys.modules["with_init"]


def test_the_folder_above_is_not_put_on_the_path(tmp_path):
    before = list(sys.path)
    import_file("bare.one", write(tmp_path / "bare" / "one.py"))
    assert sys.path == before


def test_a_name_that_an_installed_package_has_as_well_is_the_users(tmp_path, monkeypatch):
    installed = write(tmp_path / "site" / "colours" / "shade.py", size=1)
    (installed.parent / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "site")
    ours = write(tmp_path / "project" / "colours" / "shade.py", size=2)
    assert shape(import_file("colours.shade", ours).Own) == (2,)


@pytest.mark.parametrize(
    ("module", "file"), [("json.dense", "json/dense.py"), ("json", "json.py"), ("sys", "sys.py")]
)
def test_a_name_that_is_taken_already_is_an_error_that_says_by_what(tmp_path, module, file):
    ours = write(tmp_path / file)
    top = file.split("/")[0]
    said = (
        rf"{top} cannot be imported as '{module.split('.')[0]}': a module of that name is loaded "
        r"already, from (.*json.__init__\.py|Python itself)\. Rename yours"
    )
    with pytest.raises(WorkloadError, match=said):
        import_file(module, ours)
    assert not hasattr(sys.modules[module.split(".")[0]], "Own")


def test_a_second_project_is_not_taken_for_the_first(tmp_path):
    first, second = (write(tmp_path / name / "twin" / "one.py") for name in ("first", "second"))
    import_file("twin.one", first)
    with pytest.raises(
        WorkloadError, match=r"second/twin cannot be imported as 'twin': .*first/tw"
    ):
        import_file("twin.one", second)
    assert import_file("twin.one", first).__file__ == str(first)


def test_a_link_to_the_folder_is_the_same_folder(tmp_path):
    file = write(tmp_path / "linked" / "one.py")
    (tmp_path / "link").symlink_to(tmp_path)
    module = import_file("linked.one", file)
    assert import_file("linked.one", tmp_path / "link" / "linked" / "one.py") is module


@pytest.mark.parametrize("file", ["raising.py", "raising/__init__.py"])
def test_a_module_that_raises_is_not_left_half_imported(tmp_path, file):
    broken = tmp_path / file
    broken.parent.mkdir(exist_ok=True)
    broken.write_text("x = 1\nraise ValueError('the data set is missing')\n")
    for _ in range(2):
        with pytest.raises(ValueError, match="the data set is missing"):
            import_file("raising", broken)
        assert "raising" not in sys.modules


def test_a_broken_module_of_a_package_leaves_its_neighbours_alone(tmp_path):
    (tmp_path / "mixed_lot").mkdir()
    (tmp_path / "mixed_lot" / "bad.py").write_text("1 / 0\n")
    good = write(tmp_path / "mixed_lot" / "good.py")
    with pytest.raises(ZeroDivisionError):
        import_file("mixed_lot.bad", tmp_path / "mixed_lot" / "bad.py")
    assert shape(import_file("mixed_lot.good", good).Own) == (3,)


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        import_file("gone", tmp_path / "gone.py")
