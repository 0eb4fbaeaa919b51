from __future__ import annotations

import importlib
import json
import subprocess
import sys
import threading

import msgspec
import pytest
from msgspec.structs import replace

from harness.workload.location import Source, import_file, load, locate
from harness.workload.workload import Case, Workload, WorkloadError, make_arguments, spec

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
    return make_arguments(workload, Case()).flat[0].shape


# --- where a class is to be found ---------------------------------------------------------------


ELSEWHERE = """
import json, msgspec, sys
from harness.workload.location import Source, load
from harness.workload.workload import Case, make_arguments
sources = msgspec.json.decode(sys.stdin.read(), type=list[Source])
print(json.dumps([make_arguments(load(s), Case()).flat[0].shape for s in sources]))
"""


def test_every_kind_of_class_is_found_by_another_process(tmp_path):
    size = 11

    class Local(Workload):
        def inputs(self):
            return spec((size,))

        @staticmethod
        def function(x):
            return x

    names = {"__name__": "__main__"}
    exec("OFFSET = 2\n" + MODULE.format(name="Typed", size="OFFSET + 5"), names)
    flat = import_file("flat_module", write(tmp_path / "flat_module.py", size=3))
    deep = import_file("no_init.deep.leaf", write(tmp_path / "no_init/deep/leaf.py", size=9))
    made = write(tmp_path / "made.py", size=5)
    with made.open("a") as text:
        text.write("Twin = type('Twin', (Own,), {'made': 'by calling type'})\n")
    twin = import_file("made", made).Twin
    assert twin.__module__ == "made"
    # Other tests of this process may have added to the path.
    found = replace(locate(flat.Own), path=())
    assert found == Source("flat_module", "Own", str(tmp_path / "flat_module.py"))
    assert load(locate(flat.Own)) is flat.Own
    local = locate(Local)
    assert local.pickled
    assert (local.module, local.file) == (__name__, "")
    classes = [flat.Own, flat.Own.Nested, deep.Own, names["Typed"], twin, Local]
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        input=msgspec.json.encode([*map(locate, classes)]),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[3], [3, 2], [9], [7], [5], [11]]


def test_a_class_that_another_process_would_not_find_is_refused_with_what_to_do(tmp_path):
    file = write(tmp_path / "renamed.py")
    file.write_text(file.read_text() + "Old = Own\ndel Own\n")
    old = import_file("renamed", file).Old
    with pytest.raises(WorkloadError, match=r"renamed.py has no Own that is this class.*Give a cl"):
        locate(old)

    class Locked(old):
        lock = threading.Lock()

    said = r"Locked .* cannot be sent to the process that measures: .*Define it at the top of a mod"
    with pytest.raises(WorkloadError, match=said):
        locate(Locked)


# --- importing from a file ------------------------------------------------------------------------


@pytest.mark.parametrize("init", [None, "READY = True\n"])
def test_a_folder_is_a_package_with_or_without_an_init_file_and_by_any_link(tmp_path, init):
    before = list(sys.path)
    folder = tmp_path / "some_folder"
    file = write(folder / "one.py", size=3)
    (folder / "two.py").write_text("from some_folder.one import Own\n")
    if init:
        (folder / "__init__.py").write_text(init)
    one = import_file("some_folder.one", file)
    assert shape(one.Own) == (3,)
    assert import_file("some_folder.two", folder / "two.py").Own is one.Own
    (tmp_path / "link").symlink_to(tmp_path)
    assert import_file("some_folder.one", tmp_path / "link" / "some_folder" / "one.py") is one
    package = sys.modules["some_folder"]
    assert hasattr(package, "READY") == bool(init)
    if init:
        assert import_file("some_folder", folder / "__init__.py") is package
    assert sys.path == before

    second = write(tmp_path / "second" / "some_folder" / "one.py")
    said = r"second/some_folder cannot be imported as 'some_folder': .*/some_folder"
    with pytest.raises(WorkloadError, match=said):
        import_file("some_folder.one", second)
    assert import_file("some_folder.one", file).__file__ == str(file)


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


@pytest.mark.parametrize("file", ["raising.py", "raising/__init__.py"])
def test_a_module_that_raises_is_not_left_half_imported(tmp_path, file):
    broken = write(tmp_path / file)
    broken.write_text("x = 1\nraise ValueError('the data set is missing')\n")
    for _ in range(2):
        with pytest.raises(ValueError, match="the data set is missing"):
            import_file("raising", broken)
        assert "raising" not in sys.modules
    (tmp_path / "bad.py").write_text("1 / 0\n")
    good = write(tmp_path / "good.py")
    with pytest.raises(ZeroDivisionError):
        import_file(f"{tmp_path.name}.bad", tmp_path / "bad.py")
    assert shape(import_file(f"{tmp_path.name}.good", good).Own) == (3,)
    with pytest.raises(FileNotFoundError):
        import_file("gone", tmp_path / "gone.py")
